"""Files, folders, globs and standard input as bounded bytes, whatever their names."""

from __future__ import annotations

import glob
import gzip
import io
import itertools
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from convexlaw.errors import ConvexlawError
from convexlaw.runs._raw import printable

__all__ = ["MAX_BYTES", "Source", "expand"]

MAX_BYTES = 4 << 30  # of one source
MAX_UNPACKED = 1 << 30  # of a packed one, held in memory
MAX_FILES = 20_000  # of one folder
_FREE = 32 << 20  # up to this size any packing ratio is believed
_RATIO = 50  # text logs pack 3 to 30 times
_GZIP = b"\x1f\x8b"
_PIPES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


class Source:
    """One thing to read.

    Parameters
    ----------
    label : str
        Its name in messages.
    name : str
        The run it would be alone.
    path : pathlib.Path or None
        None for standard input.
    root : pathlib.Path, optional
        The folder it was found in, where the caller named the folder and not the file.
    """

    def __init__(self, label: str, name: str, path: Path | None, root: Path | None = None) -> None:
        self.label, self.name, self.path, self.root = label, name, path, root
        self.listed = root is None
        self.packed = False
        self._data: bytes | None = None

    def head(self, size: int = 262144) -> bytes:
        """Return the first bytes, unpacked."""
        if self._data is not None:
            return self._data[:size]
        if self.path is None or not self._regular():
            return self.data()[:size]
        with self._open() as file:
            start = file.read(size)
        if start[:2] != _GZIP:
            return start
        self.packed = True
        try:
            head = zlib.decompressobj(wbits=31).decompress(start, size)
        except zlib.error as error:
            raise ConvexlawError(f"{self.label}: not a whole gzip file ({error}); copy it again") from None
        if head[:2] == _GZIP:
            raise ConvexlawError(f"{self.label}: gzip inside gzip; unpack it once by hand")
        return head

    def data(self) -> bytes:
        """Return the whole content, unpacked and within bounds."""
        if self._data is None:
            if self.path is None:
                raw = self._whole(sys.stdin.buffer, MAX_BYTES)
            else:
                size = self.path.stat().st_size if self._regular() else MAX_BYTES
                with self._open() as file:
                    raw = self._whole(file, size)
            self._data = self._unpacked(raw) if raw[:2] == _GZIP else raw
        return self._data

    def stream(self) -> BinaryIO:
        """Open the content for reading: the file itself where it is plain, else what was unpacked."""
        if self._data is None and not self.packed and self.path is not None and self._regular():
            return self._open()
        return io.BytesIO(self.data())

    def plain_path(self) -> Path | None:
        """Return the path of a plain regular file, None for what is packed or piped."""
        if self.packed or self.path is None or not self._regular():
            return None
        return self.path

    def forget(self) -> None:
        """Let the bytes go."""
        self._data = None

    def _regular(self) -> bool:
        assert self.path is not None
        try:
            info = self.path.stat()
        except (OSError, ValueError) as error:
            raise ConvexlawError(f"{self.label}: cannot be read ({_reason(error)})") from None
        if stat.S_ISREG(info.st_mode):
            if info.st_size > MAX_BYTES:
                raise ConvexlawError(
                    f"{self.label}: {info.st_size >> 20} MiB; the limit is {MAX_BYTES >> 20} MiB, thin "
                    f"the log first"
                )
            return True
        if str(self.path).startswith(_PIPES):
            return False
        raise ConvexlawError(
            f"{self.label}: not a regular file; pass a file, a folder, a glob, or - for standard input"
        )

    def _open(self) -> BinaryIO:
        assert self.path is not None
        try:
            return self.path.open("rb")
        except OSError as error:
            raise ConvexlawError(f"{self.label}: cannot be read ({_reason(error)})") from None

    def _whole(self, file: BinaryIO, size: int) -> bytes:
        pieces, count = [], 0
        try:
            # a read of n bytes sets n aside at once: ask for no more than there is
            while piece := file.read(min(size - count + 1, 1 << 26)):
                pieces.append(piece)
                count += len(piece)
                if count > MAX_BYTES:
                    raise ConvexlawError(f"{self.label}: more than {MAX_BYTES >> 20} MiB; thin the log first")
        except OSError as error:
            raise ConvexlawError(f"{self.label}: cannot be read ({_reason(error)})") from None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _unpacked(self, raw: bytes) -> bytes:
        """Unpack gzip members, bounded in size and ratio."""
        self.packed = True
        out = io.BytesIO()
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                while piece := packed.read(1 << 20):
                    out.write(piece)
                    size = out.tell()
                    if size > MAX_UNPACKED or (size > _FREE and size > _RATIO * len(raw)):
                        raise ConvexlawError(
                            f"{self.label}: {len(raw)} packed bytes unpack to more than {size}: no "
                            f"training log packs like "
                            f"this (limits: {_RATIO} times beyond {_FREE >> 20} MiB, "
                            f"{MAX_UNPACKED >> 20} MiB in all)"
                        )
        except EOFError:
            raise ConvexlawError(
                f"{self.label}: the gzip file is cut after {out.tell()} unpacked bytes; copy it again"
            ) from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise ConvexlawError(f"{self.label}: not a whole gzip file ({error}); copy it again") from None
        data = out.getvalue()
        if data[:2] == _GZIP:
            raise ConvexlawError(f"{self.label}: gzip inside gzip; unpack it once by hand")
        return data


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


# names that say nothing about the run: the folder names it
_PLAIN = re.compile(
    r"^(metrics|trainer_state|history|log|logs|train|training|train_log|training_log|events|data|output|progress|results|scalars|"
    r"wandb-history|summary)$"
)
_SUFFIX = re.compile(r"\.(csv|tsv|txt|jsonl|ndjson|json|parquet|pq|log)$", re.IGNORECASE)


def run_name(path: Path, root: Path | None) -> str:
    """Name a run by its file, or by its folder where the file's name says nothing."""
    stem = _SUFFIX.sub("", re.sub(r"\.gz$", "", path.name, flags=re.IGNORECASE)) or path.name
    inside = root is not None and path.parent != root
    folder = (
        path.parent.relative_to(root).as_posix()
        if inside and root is not None
        else path.parent.resolve().name
    )
    if path.name.startswith("events.out.tfevents") and folder:
        return printable(folder)
    if inside:
        return printable(folder if _PLAIN.match(stem.lower()) else f"{folder}/{stem}")
    return printable(stem)


def expand(source: str | os.PathLike[str]) -> Iterator[Source]:
    """Yield the files behind a path, a glob, a folder, or ``-``.

    Parameters
    ----------
    source : path-like

    Yields
    ------
    Source

    Raises
    ------
    ConvexlawError
        Nothing there, or more files than anyone means.
    """
    text = os.fsdecode(source)
    if text == "-":
        yield Source("standard input", "stdin", None)
        return
    if re.match(r"^[A-Za-z][A-Za-z0-9+.-]+://", text):
        raise ConvexlawError(f"{printable(text)}: logs are read from local files; download it first")
    if not text or "\0" in text:
        raise ConvexlawError(
            f"source = {printable(text)!r} is no path; pass a file, a folder, a glob, or - for standard input"
        )
    path = Path(text)
    try:
        there, folder = path.exists(), path.is_dir()
    except OSError as error:
        raise ConvexlawError(f"{printable(text)}: cannot be read ({_reason(error)})") from None
    if folder:
        yield from _walk(path)
        return
    if there:
        piped = text.startswith(_PIPES)
        yield Source(printable(text), "stdin" if piped else run_name(path, None), path)
        return
    found = _matches(path) if glob.has_magic(text) else []
    if not found:
        raise ConvexlawError(
            f"{printable(text)}: no such file or folder, and nothing matches it as a pattern"
        )
    fixed = itertools.takewhile(lambda part: not glob.has_magic(part), path.parent.parts)
    root = Path(*fixed)
    for match in found:
        if match.is_dir():
            yield from _walk(match)
        else:
            yield Source(printable(match), run_name(match, root), match, root)


def _matches(pattern: Path) -> list[Path]:
    home = Path(pattern.anchor)
    rest = str(pattern.relative_to(pattern.anchor))
    try:
        found = list(itertools.islice(home.glob(rest), MAX_FILES + 1))
    except (ValueError, NotImplementedError, OSError, re.error, RecursionError) as error:
        raise ConvexlawError(
            f"{printable(pattern)}: cannot be read as a pattern ({_reason(error)})"
        ) from None
    if len(found) > MAX_FILES:
        raise ConvexlawError(
            f"{printable(pattern)}: matches more than {MAX_FILES} files; pass a narrower pattern"
        )
    return sorted(p for p in found if not p.name.startswith("."))


def _own_output(files: list[str]) -> bool:
    """Tell a folder that ``convexlaw fit`` or ``predict`` wrote: its tables are results, not logs."""
    return {"fit.json", "report.html"} <= set(files) or {"forecast.csv", "forecast.png"} <= set(files)


def _walk(root: Path) -> Iterator[Source]:
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(d for d in folders if not d.startswith(".") and d != "__pycache__")
        if _own_output(files):
            folders.clear()
            continue
        for file in sorted(files):
            path = Path(folder) / file
            if file.startswith(".") or not path.is_file():
                continue
            seen += 1
            if seen > MAX_FILES:
                raise ConvexlawError(
                    f"{printable(root)}: more than {MAX_FILES} files; pass the folder or glob that holds "
                    f"the logs"
                )
            yield Source(printable(path), run_name(path, root), path, root)
