"""Self-contained HTML pages, and beside each the PNG and CSV files of what they show."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import convexlaw
from convexlaw._files import replacing, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Page", "digests", "format_column", "format_number"]

DPI = 160  # of the figures: sharp where a page is zoomed or printed


@dataclass(frozen=True)
class _Part:
    kind: str
    text: str = ""
    lines: tuple[str, ...] = ()
    rows: Mapping[str, Any] = field(default_factory=dict)
    best: int | None = None
    data: str = ""
    width: int = 0


def format_number(value: object, digits: int = 4) -> str:
    """Write a number for people: ``digits`` significant figures, no exponent where it can be avoided.

    Parameters
    ----------
    value : object
        A number, or anything else (returned as text); NaN and None become a dash.
    digits : int
        Significant figures.

    Returns
    -------
    str

    Examples
    --------
    >>> [format_number(v) for v in (3.14159265, 24000.0, 0.003, 0.000123456, float("nan"), "cosine")]
    ['3.142', '24000', '0.003', '0.0001235', '–', 'cosine']
    """
    if value is None:
        return "–"
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        return str(value)
    number = float(value)
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if float(number).is_integer() and abs(number) < 1e12:
        return f"{abs(number) if number == 0 else number:.0f}"
    short = f"{number:.{digits}g}"
    if float(short) == number and "e" not in short:
        return short
    # the exponent after rounding: 0.00099999 is written 0.001000
    size = int(f"{number:.{digits - 1}e}".partition("e")[2])
    if size < -4 or size >= 7:
        return f"{number:.{digits - 1}e}"
    return f"{number:.{max(digits - 1 - size, 0)}f}"


def format_column(values: Iterable[object], digits: int = 4) -> list[str]:
    """Write the numbers of a column with the same decimals, where they are of similar size.

    Parameters
    ----------
    values : iterable
        Numbers or anything else.
    digits : int
        Significant figures of the largest number; where others would keep fewer than two each is written by
        :func:`format_number`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> format_column([-0.035812, 0.0047684, float("nan")])
    ['-0.03581', '0.00477', '–']
    >>> format_column([0.003, 0.001]), format_column([1.8, 2143.5])
    (['0.003', '0.001'], ['1.8', '2144'])
    """
    given = list(values)
    alone = [format_number(v, digits) for v in given]
    numbers = [isinstance(v, float) and math.isfinite(v) for v in map(_plain, given)]
    sizes = [abs(float(v)) for v, number in zip(map(_plain, given), numbers, strict=True) if number and v]
    if (
        not sizes
        or max(sizes) > min(sizes) * 10 ** (digits - 2)
        or any("e" in c for c in alone if _is_number(c))
    ):
        return alone
    most = max(digits - 1 - math.floor(math.log10(max(sizes))), 0)
    decimals = next(d for d in range(most + 1) if d == most or all(round(v, d) == v for v in sizes))
    return [
        f"{float(v) + 0.0:.{decimals}f}" if number else cell
        for v, number, cell in zip(map(_plain, given), numbers, alone, strict=True)
    ]


def _plain(value: object) -> Any:
    """Return a number as int or float, anything else as it is."""
    return value.item() if hasattr(value, "item") else value


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("∞", "inf"))
    except ValueError:
        return False
    return True


def digests(paths: Iterable[str | os.PathLike[str]]) -> list[tuple[str, str]]:
    """SHA-256 of each file, as (path, hex digest); what is not a file is left out."""
    found = []
    for path in map(Path, paths):
        if path.is_file():
            with path.open("rb") as handle:
                found.append((str(path), hashlib.file_digest(handle, "sha256").hexdigest()))
    return found


class Page:
    """A report built part by part and written once: ``report.html`` with every picture and table inside.

    Parameters
    ----------
    out : path-like
        Folder for ``report.html``, the PNG of each figure and the CSV of each table.
    title : str
        Heading of the page.
    subtitle : str
        One line under the heading.
    """

    def __init__(self, out: str | os.PathLike[str], title: str, subtitle: str = "") -> None:
        self.out = Path(out)
        self.title = title
        self.subtitle = subtitle
        self._parts: list[_Part] = []

    def add(self, kind: str, text: str) -> None:
        """Add a part of text: heading, verdict, warning, text, note or code."""
        self._parts.append(_Part(kind, text))

    def bullets(self, lines: Iterable[str]) -> None:
        """Add a list of sentences; nothing for an empty one."""
        kept = tuple(lines)
        if kept:
            self._parts.append(_Part("bullets", lines=kept))

    def table(
        self,
        frame: pd.DataFrame,
        name: str,
        *,
        digits: int = 4,
        best: int | None = None,
        most: int | None = None,
    ) -> None:
        """Add ``frame`` as a table and write it, unrounded, to ``name``.csv.

        Parameters
        ----------
        frame : DataFrame
            Columns become headings; the index is not shown.
        name : str
            File name without its suffix.
        digits : int
            Significant figures on the page (the CSV has them all).
        best : int, optional
            Position of a row to set in bold.
        most : int, optional
            Show this many rows at most; the CSV has them all.
        """
        with replacing(self.out / f"{name}.csv") as tmp:
            frame.to_csv(tmp, index=False)
        shown = frame.head(len(frame) if most is None else most)
        columns = [format_column(shown.iloc[:, j], digits) for j in range(shown.shape[1])]
        cells = list(zip(*columns, strict=True))
        # of words alone: numbers with dashes between them stay on the right
        text = [not any(_is_number(row[j]) for row in cells) for j in range(frame.shape[1])]
        rows = {"columns": [str(c) for c in frame.columns], "cells": cells, "text": text}
        self._parts.append(_Part("table", rows=rows, best=best))
        if len(cells) < len(frame):
            self.add("note", f"The first {len(cells)} of {len(frame)} rows; {name}.csv has all.")

    def figure(self, figure: Figure, name: str, caption: str) -> None:
        """Add a figure, write it to ``name``.png, and close it."""
        import matplotlib.pyplot as plt

        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)
        plt.close(figure)
        with replacing(self.out / f"{name}.png") as tmp:
            tmp.write_bytes(buffer.getvalue())
        data = base64.b64encode(buffer.getvalue()).decode()
        # as wide as drawn (96 CSS pixels an inch): letters of one size in every figure of a page
        width = round(int.from_bytes(buffer.getvalue()[16:20], "big") * 96 / DPI)
        self._parts.append(_Part("figure", text=caption, data=data, width=width))

    def write(self, command: str, sources: Iterable[str | os.PathLike[str]] = ()) -> Path:
        """Write ``report.html``, whole or not at all.

        Parameters
        ----------
        command : str
            What reproduces the page; shown at its end.
        sources : iterable of path-like
            Input files; their digests are shown at the end.

        Returns
        -------
        pathlib.Path
            The page.
        """
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("convexlaw"), autoescape=True, undefined=jinja2.StrictUndefined
        )
        text = environment.get_template("page.html.j2").render(
            title=self.title,
            subtitle=self.subtitle,
            parts=self._parts,
            command=command,
            sources=digests(sources),
            version=convexlaw.__version__,
        )
        target = self.out / "report.html"
        write_text(target, text)
        return target
