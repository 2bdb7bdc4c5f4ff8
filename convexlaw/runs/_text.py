"""Delimited text before it is parsed: its encoding, its dialect, and lines that do not belong in a table."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.runs._columns import metric_role
from convexlaw.runs._lines import no_line_end, regular_lines
from convexlaw.runs._raw import Ints, printable
from convexlaw.runs._source import Source

__all__ = ["Dialect", "Text", "sniff"]

_META_LINE = re.compile(r"^#\s*([A-Za-z_][\w .\-/]{0,80}?)\s*[:=]\s*(.*?)\s*$")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_THOUSANDS_POINT = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_COUNTS = ("step", "tokens", "samples", "batch_size", "seq_len")  # a point in these can only part thousands
_SEPARATOR_LINE = re.compile(r"[\"']?sep=.[\"']?\s*", re.IGNORECASE)  # what Excel takes a hint from
_WIDEST = 4_000_000  # characters of a header line


@dataclass
class Dialect:
    """How a delimited text is written; ``skip`` lines (comments, blanks) stand above the header."""

    delimiter: str
    header: list[str]
    skip: int = 0
    decimal: str = "."
    thousands: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    mixed: tuple[str, str] | None = None  # points that part thousands and points that are decimal


def cells_of(line: str, delimiter: str) -> list[str]:
    """Part one line into stripped cells; an empty list where its quotes do not close."""
    if delimiter == " ":
        return line.split()
    try:
        return [h.strip() for h in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except (csv.Error, StopIteration):
        return []


def sniff(text: str) -> Dialect | None:
    """Find delimiter, decimal sign and header of a delimited text; None where there is no table.

    Parameters
    ----------
    text : str
        The beginning of the content.
    """
    lines = io.StringIO(text, newline=None)
    skip, meta = 0, {}
    body: list[str] = []
    for line in lines:
        if line.startswith("#"):
            found = _META_LINE.match(line.rstrip("\n"))
            if found:
                meta[found[1].strip().replace(" ", "_")] = _value(found[2])
        elif line.strip() and not (skip == 0 and _SEPARATOR_LINE.fullmatch(line.lstrip("\ufeff"))):
            body.append(line.rstrip("\n"))
            break
        skip += 1
    body += [line.rstrip("\n") for line in itertools.islice(lines, 300) if line.strip()]
    if not body or len(body[0]) > _WIDEST:
        return None
    best: tuple[tuple[int, int], str, list[str]] | None = None
    for delimiter in (",", ";", "\t", "|", " "):
        header = cells_of(body[0], delimiter)
        known = sum(metric_role(h) is not None or " - " in h for h in header)
        if len(header) < 2 or (
            delimiter == " " and (known < 2 or (best is not None and best[0][0] >= known))
        ):
            continue  # blanks part a header only where nothing else does
        if best is None or (known, len(header)) > best[0]:
            best = (known, len(header)), delimiter, header
    if best is None or (not best[0][0] and any(h.count(" ") > 3 for h in best[2])):
        return None  # nothing parted, or prose
    _, delimiter, header = best
    dialect = Dialect(delimiter, header, skip, meta=meta)
    if delimiter != ",":
        rows = [cells_of(line, delimiter) for line in body[1:-1] or body[1:]]
        if any(_DECIMAL_COMMA.fullmatch(c.replace(".", "")) for row in rows for c in row):
            dialect.decimal = ","
            _point(dialect, rows)
    return dialect


def _point(dialect: Dialect, rows: list[list[str]]) -> None:
    """Say what points mean beside decimal commas: thousands, or decimals in some of the columns."""
    thousands = points = ""
    for row in rows:
        for name, cell in zip(dialect.header, row, strict=False):
            role = (metric_role(name) or ("",))[0]
            if _THOUSANDS_POINT.fullmatch(cell) and ("," in cell or role in _COUNTS):
                thousands = cell
            elif _DECIMAL_POINT.fullmatch(cell):
                points = cell
    if thousands:
        dialect.thousands = "."
        dialect.mixed = (thousands, points) if points else None


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return printable(text, 2000)
    return value if value is None or isinstance(value, (int, float, bool, str)) else printable(text, 2000)


class Text:
    """A delimited text whose lines all have as many cells as its header.

    Parameters
    ----------
    source : Source

    Attributes
    ----------
    dialect : Dialect or None
        None where there is no table.
    encoding : str
        Of the bytes that :meth:`open` yields.
    lines : (rows,) int array or None
        Line of every row; None: the rows follow the header line by line.
    notes : list of (kind, sentence)
        Encodings, cut last lines, headers repeated inside.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._content: bytes | None = None
        self.label = source.label
        self.encoding = "utf-8"
        self.lines: Ints | None = None
        self.notes: list[tuple[str, str]] = []
        self._checked = False
        self._decode()
        self.dialect = sniff(self._head().decode(self.encoding, errors="replace").lstrip("\ufeff"))
        if self.dialect is not None and self.dialect.mixed is not None:
            parted, point = (printable(c, 40) for c in self.dialect.mixed)
            raise ConvexlawError(
                f"{self.label}: beside decimal commas, points part thousands in {parted!r} and decimals in "
                f"{point!r}; write numbers in one way"
            )
        self.delimiter = (
            self.dialect.delimiter if self.dialect is not None else ""
        )  # as found, whatever it becomes

    def _head(self) -> bytes:
        return self._content[:262144] if self._content is not None else self._source.head()

    @cached_property
    def has_booleans(self) -> bool:
        """Whether True or False stands near the beginning."""
        return re.search(rb"\b(true|false)\b", self._head(), re.IGNORECASE) is not None

    def open(self) -> BinaryIO:
        """Open the bytes."""
        return self._source.stream() if self._content is None else io.BytesIO(self._content)

    def _decode(self) -> None:
        head = self._source.head()
        sample = head[:4096]
        name = ""
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            name = "utf-16"
        elif len(sample) >= 8 and sample.count(b"\0") > 0.3 * len(sample):
            name = "utf-16-le" if sample[1::2].count(b"\0") > sample[::2].count(b"\0") else "utf-16-be"
        if not name:
            return
        try:
            self._content = self._source.data().decode(name).lstrip("\ufeff").encode()
        except UnicodeDecodeError as error:
            raise ConvexlawError(
                f"{self.label}: not whole UTF-16 text ({error.reason} at byte {error.start}); save it as "
                f"UTF-8"
            ) from None
        self.notes.append(("encoding", "UTF-16 text"))

    def regular(self, rows: int) -> bool:
        """Tell whether ``rows`` whole rows are all there is, from the count of delimiters alone.

        Only right where the last column of every row has been seen to hold a value: then no line is short,
        and a line too long is one delimiter too many.
        """
        dialect = self.dialect
        if dialect is None or dialect.delimiter == " ":
            return False
        mark = ord(dialect.delimiter)
        head = b"\n".join(self._head().split(b"\n", dialect.skip + 1)[: dialect.skip + 1])
        count, tail = -head.count(dialect.delimiter.encode()), b""
        with self.open() as file:
            while chunk := file.read(1 << 20):
                self._refuse_zeros(chunk)
                count += int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == mark))
                tail = chunk[-64:]
        if count != rows * (len(dialect.header) - 1):
            return False
        if not tail.endswith((b"\n", b"\r")):
            self.notes += no_line_end(tail.decode(errors="replace"))
        return True

    def _refuse_zeros(self, chunk: bytes) -> None:
        if b"\0" in chunk:
            raise ConvexlawError(
                f"{self.label}: zero bytes in what looks like a table; it is damaged, copy it again"
            )

    def _closed(self) -> bool:
        with self.open() as file:
            file.seek(0, io.SEEK_END)
            file.seek(max(file.tell() - 1, 0))
            return file.read() in (b"\n", b"\r", b"")

    def inspect(self) -> None:
        """Check every line in one pass over the bytes; go line by line only where something is odd.

        Raises
        ------
        ConvexlawError
            Zero bytes, lines with more or fewer cells than the header, quotes that never close.
        """
        dialect = self.dialect
        assert dialect is not None
        mark = dialect.delimiter.encode()
        row = mark * (len(dialect.header) - 1) + b"\n"
        rest = bytes(set(range(256)) - set(mark + b'\n"#\0'))
        even, rows, tail = b"\n" in self._head(), 0, b""
        with self.open() as file:
            for _ in range(dialect.skip + 1 if even else 0):
                file.readline()
            while even and (chunk := file.read(1 << 22)):
                chunk += file.readline()
                self._refuse_zeros(chunk)
                end = chunk.rfind(b"\n") + 1
                tail = chunk[end:]
                marks = chunk[:end].translate(None, rest)
                count = len(marks) // len(row)
                even = marks == row * count and tail.translate(None, rest) in (b"", row[:-1])
                rows += count
        if not even or mark == b" ":
            self.check_encoding()
            self.line_by_line()
        elif tail:
            self.notes += no_line_end(tail.decode(errors="replace"))

    def check_encoding(self) -> None:
        """Make sure that text can be read as text."""
        if self._checked:
            return
        self._checked = True
        with io.TextIOWrapper(self.open(), encoding="utf-8") as text:
            try:
                while text.read(1 << 20):
                    pass
            except UnicodeDecodeError:
                self.encoding = "cp1252"
                self.notes.append(("encoding", "not UTF-8: read as Windows-1252"))

    def line_by_line(self) -> None:
        """Drop comments, repeated headers and a cut last line; refuse other lines of a wrong width."""
        dialect = self.dialect
        assert dialect is not None
        closed = self._closed()
        with io.TextIOWrapper(self.open(), encoding=self.encoding, errors="replace", newline=None) as text:
            self._content, self.lines, notes = regular_lines(
                text, dialect.header, dialect.delimiter, dialect.skip, closed, self.label
            )
        self.notes += notes
        self.encoding = "utf-8"
        self._source.forget()
        dialect.skip = 0
        if dialect.delimiter == " ":
            dialect.delimiter = ","
