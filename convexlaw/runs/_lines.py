"""Delimited text line by line: for the files in which not every line is a regular row."""

from __future__ import annotations

import array
import csv
import io
from collections.abc import Iterator
from typing import TextIO

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.runs._raw import Ints, listed, places_called, plural, printable

__all__ = ["no_line_end", "regular_lines"]

Notes = list[tuple[str, str]]


def no_line_end(line: str) -> Notes:
    """Say that a last line without a line end may be cut, unless a quote closes it."""
    if line.rstrip().endswith('"'):
        return []
    return [("no_line_end", "the last line has no line end: if the file was cut, its last number may be too")]


class _Lines:
    """The physical lines of a text, which remembers the last one."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self.last = ""

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self.last = line
            yield line


def regular_lines(
    text: TextIO, header: list[str], delimiter: str, skip: int, closed: bool, label: str
) -> tuple[bytes, Ints, Notes]:
    """Keep the regular rows of a table.

    Parameters
    ----------
    text : text file
    header : list of str
    delimiter : str
        A space stands for any blanks.
    skip : int
        Lines above the header.
    closed : bool
        Whether the text ends with a line end.
    label : str
        The source in messages.

    Returns
    -------
    content : bytes
        A plain table in UTF-8 with a header line and the regular rows.
    lines : (rows,) int array
        Line of every row.
    notes : list of (kind, sentence)
        A cut last line, repeated headers, a missing line end.

    Raises
    ------
    ConvexlawError
        Lines with another number of cells, quotes that never close.
    """
    width, again = len(header), 0
    out = io.StringIO()
    write = csv.writer(out, delimiter="," if delimiter == " " else delimiter, lineterminator="\n").writerow
    write(range(width))
    places = array.array("q")
    odd: list[tuple[int, int]] = []
    notes: Notes = []
    lines = _Lines(text)
    held: tuple[int, list[str]] | None = None

    def sort_out(line: int, row: list[str]) -> bool:
        """Write a regular row, note an odd one; return True for a repeated header."""
        if not row or (len(row) == 1 and not row[0].strip()) or row[0].startswith("#"):
            return False
        if [c.strip() for c in row] == header:
            return True
        if len(row) > width and not any(c.strip() for c in row[width:]):
            row = row[:width]
        if len(row) == width:
            write(row)
            places.append(line)
        else:
            odd.append((line, len(row)))
        return False

    for record in _records(lines, delimiter, skip, closed, label, notes):
        if held is not None:
            again += sort_out(*held)
        held = record
    if held is not None:
        line, row = held
        if not closed and not notes and len(row) < width:
            notes.append(_cut(lines.last, line))
        else:
            again += sort_out(line, row)
            if not closed and not notes:
                notes += no_line_end(lines.last)
    if odd:
        where = listed([line for line, _ in odd])
        raise ConvexlawError(
            f"{label}: {plural(len(odd), 'line')} with other than {width} cells "
            f"({places_called('line', len(odd))} {where}; the first has {odd[0][1]}): "
            f"the header names {plural(width, 'column')}; mend or remove {'it' if len(odd) == 1 else 'them'}"
        )
    if again:
        notes.append(
            (
                "header_again",
                f"the header line stands {plural(again, 'more time')} inside the file (a restarted logger)",
            )
        )
    return out.getvalue().encode(), np.array(places, dtype=np.int64), notes


def _cut(line: str, number: int) -> tuple[str, str]:
    return "cut", f"the last line ({printable(line, 40)!r}, line {number}) is cut: dropped"


def _records(
    lines: _Lines, delimiter: str, skip: int, closed: bool, label: str, notes: Notes
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of every record below the header; note a last one whose quotes do not close."""
    source = iter(lines)
    for _ in range(skip):
        next(source, None)
    if delimiter == " ":
        next(source, None)
        for number, line in enumerate(source, skip + 2):
            yield number, line.split()
        return
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    start = skip + 1
    try:
        for row in reader:
            if start > skip + 1:
                yield start, row
            start = skip + reader.line_num + 1
    except csv.Error as error:
        last = skip + reader.line_num
        if "unexpected end" in str(error) and start == last and not closed:
            notes.append(_cut(lines.last, start))
            return
        where = f"line {start}" if start >= last else f"lines {start} to {last}"
        raise ConvexlawError(
            f"{label}: {where} cannot be parted into cells ({error}: a stray quote?); mend or remove it"
        ) from None
