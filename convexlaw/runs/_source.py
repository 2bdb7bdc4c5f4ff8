"""Files, folders, globs and standard input as bounded bytes, whatever their names."""

from __future__ import annotations

import glob
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from convexlaw.errors import ConvexlawError

__all__ = ["MAX_BYTES", "Source", "expand", "printable"]

MAX_BYTES = 2 << 30  # of one source, unpacked
MAX_FILES = 20_000  # of one folder
_FREE_RATIO = 64 << 20  # below this size any compression ratio is believed
_MAX_RATIO = 250  # text logs pack 3 to 30 times


def printable(text: object, limit: int = 200) -> str:
    """Return ``text`` on one line without control characters, cut to ``limit``."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in str(text))
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


@dataclass
class Source:
    """One thing to read.

    ``label`` names it in messages, ``name`` is the run it would be alone, ``path`` is None for standard input;
    ``listed`` is True for a path the caller named, False for one found in a folder.
    """

    label: str
    name: str
    path: Path | None
    root: Path | None = None
    listed: bool = True
    packed: bool = False

    def head(self, size: int = 65536) -> bytes:
        """Return the first ``size`` bytes, unpacked."""
        return self.read()[:size]

    def read(self) -> bytes:
        """Return the whole content, unpacked.

        Raises
        ------
        ConvexlawError
            Too large, a cut or corrupt gzip, not a regular file.
        """
        if not hasattr(self, "_data"):
            self._data = self._read()
        return self._data

    def forget(self) -> None:
        """Let the bytes go."""
        if hasattr(self, "_data"):
            del self._data

    def _read(self) -> bytes:
        raw = _read_stdin() if self.path is None else _read_path(self.path, self.label)
        if raw[:2] != b"\x1f\x8b":
            return raw
        self.packed = True
        data = _gunzip(raw, self.label)
        if data[:2] == b"\x1f\x8b":
            raise ConvexlawError(f"{self.label}: gzip inside gzip; unpack it once by hand")
        return data


def _read_stdin() -> bytes:
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConvexlawError(f"standard input holds more than {MAX_BYTES >> 20} MiB; thin the log first")
    return data


def _read_path(path: Path, label: str) -> bytes:
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode) and not str(path).startswith(
            ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
        ):
            raise ConvexlawError(
                f"{label}: not a regular file; pass a file, a folder, a glob, or - for standard input"
            )
        if info.st_size > MAX_BYTES:
            raise ConvexlawError(
                f"{label}: {info.st_size >> 20} MiB is more than {MAX_BYTES >> 20} MiB; thin the log first"
            )
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConvexlawError(f"{label}: cannot be read ({error.strerror or error})") from None
    if len(data) > MAX_BYTES:
        raise ConvexlawError(f"{label}: more than {MAX_BYTES >> 20} MiB; thin the log first")
    return data


def _gunzip(raw: bytes, label: str) -> bytes:
    """Unpack gzip members, bounded in size and ratio."""
    out = io.BytesIO()
    rest = raw
    try:
        while rest[:2] == b"\x1f\x8b":
            unpack = zlib.decompressobj(wbits=31)
            chunk = rest
            while chunk and not unpack.eof:
                out.write(unpack.decompress(chunk, 1 << 24))
                chunk = unpack.unconsumed_tail
                size = out.tell()
                if size > MAX_BYTES or (size > _FREE_RATIO and size > _MAX_RATIO * len(raw)):
                    raise ConvexlawError(
                        f"{label}: {len(raw)} packed bytes unpack to more than {size} bytes; this is no training log (limit "
                        f"{MAX_BYTES >> 20} MiB, ratio {_MAX_RATIO})"
                    )
            if not unpack.eof:
                raise ConvexlawError(
                    f"{label}: the gzip file is cut short after {out.tell()} unpacked bytes; copy it again"
                )
            rest = unpack.unused_data
    except zlib.error as error:
        raise ConvexlawError(f"{label}: not a whole gzip file ({error}); copy it again") from None
    return out.getvalue()


# names that say nothing about the run: the folder names it
_PLAIN = re.compile(
    r"^(metrics|trainer_state|history|log|logs|train|training|train_log|events|data|output|progress|results|scalars|export|"
    r"wandb-history|wandb_export.*|events\.out\.tfevents.*)$"
)


def run_name(path: Path, root: Path | None) -> str:
    """Name a run by its file, or by its folder where the file's name says nothing."""
    stem = path.name
    for suffix in (".gz", *_SUFFIXES):
        stem = stem.removesuffix(suffix)
    if stem.startswith("events.out.tfevents") or (_PLAIN.match(stem.lower()) and root is not None):
        parent = path.parent
        if root is not None and parent != root:
            return parent.relative_to(root).as_posix()
        if not stem.startswith("events.out.tfevents"):
            return stem
        return parent.resolve().name or stem
    if root is not None and path.parent != root:
        return (path.parent.relative_to(root) / stem).as_posix()
    return stem or path.name


_SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".log")


def expand(source: str | os.PathLike[str]) -> Iterator[Source]:
    """Yield the files behind a path, a glob, a folder, or ``-``.

    Raises
    ------
    ConvexlawError
        Nothing there.
    """
    text = os.fspath(source)
    if not isinstance(text, str):
        text = os.fsdecode(text)
    if text == "-":
        yield Source("standard input", "stdin", None)
        return
    if re.match(r"^[a-z][a-z0-9+.-]+://", text):
        raise ConvexlawError(f"{printable(text)}: logs are read from local files; download it first")
    if not text or "\0" in text:
        raise ConvexlawError(
            f"source = {printable(text)!r} is no path; pass a file, a folder, a glob, or - for standard input"
        )
    path = Path(text)
    try:
        there, folder = path.exists(), path.is_dir()
    except OSError as error:
        raise ConvexlawError(f"{printable(text)}: cannot be read ({error.strerror or error})") from None
    if folder:
        yield from _walk(path)
    elif there:
        yield Source(printable(text), run_name(path, None), path)
    else:
        found = sorted(glob.glob(text, recursive=True)) if glob.has_magic(text) else []
        if not found:
            raise ConvexlawError(
                f"{printable(text)}: no such file or folder, and no file matches it as a pattern"
            )
        for match in found:
            if Path(match).is_dir():
                yield from _walk(Path(match))
            else:
                yield Source(printable(match), run_name(Path(match), None), Path(match))


def _walk(root: Path) -> Iterator[Source]:
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(d for d in folders if not d.startswith(".") and d != "__pycache__")
        for file in sorted(files):
            if file.startswith("."):
                continue
            seen += 1
            if seen > MAX_FILES:
                raise ConvexlawError(
                    f"{printable(root)}: more than {MAX_FILES} files; pass the folder or glob that holds the logs"
                )
            path = Path(folder) / file
            yield Source(printable(path), run_name(path, root), path, root, listed=False)
