"""Whole files or none: everything that is written goes through a temporary file in the same folder."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from convexlaw.errors import ConvexlawError


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; move it into place when the block ends without an error.

    Parameters
    ----------
    path : path-like
        The file to be written; its folder is made where it is missing.

    Yields
    ------
    pathlib.Path
        Write here. An error or an interrupt in the block removes it and leaves ``path`` as it was.

    Raises
    ------
    ConvexlawError
        ``path`` is no path, a folder, or in a folder that cannot be written to.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as tmp:
    ...     _ = tmp.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fsdecode(path):
        raise ConvexlawError(f"path = {path!r} is no path: pass the name of a file to write")
    target = Path(path)
    try:
        if target.is_dir():
            raise ConvexlawError(f"{target} is a folder: pass the name of a file to write")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.stem[:100]}-", suffix=target.suffix
        )
    except OSError as error:
        raise ConvexlawError(
            f"{target}: cannot be written ({error.strerror or error}); name another place"
        ) from None
    os.close(handle)
    tmp = Path(name)
    try:
        yield tmp
        umask = os.umask(0)
        os.umask(umask)
        tmp.chmod(0o666 & ~umask)
        tmp.replace(target)
    finally:
        tmp.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` (UTF-8) to ``path``, whole or not at all."""
    with replacing(path) as tmp:
        tmp.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` as indented JSON (UTF-8) to ``path``, whole or not at all; NaN is refused."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")
