"""Delimited text: CSV, TSV, semicolons and decimal commas, any encoding, ``# key: value`` lines on top."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.runs._cells import to_numbers
from convexlaw.runs._columns import metric_role
from convexlaw.runs._raw import Floats, Mask, RawRun, UnknownFormat, listed, printable
from convexlaw.runs._source import Source
from convexlaw.runs._tables import runs_of_table
from convexlaw.runs._text import Text
from convexlaw.runs.tensorboard import is_scalar_export, read_scalar_export

__all__ = ["read_delimited"]


def read_delimited(source: Source) -> list[RawRun]:
    """Read the runs of a delimited text.

    Parameters
    ----------
    source : Source

    Returns
    -------
    list of RawRun

    Raises
    ------
    ConvexlawError
        No table, no step, no loss, irregular lines, cells that are not numbers.
    """
    text = Text(source)
    if text.dialect is None:
        raise UnknownFormat(
            f"{source.label}: no table with a header line (names parted by , ; tab or |) and in no other "
            f"known format"
        )
    table = CsvTable(text)
    if is_scalar_export(table.header):
        table.prepare([0, 1, 2])
        home = source.path.parent.as_posix() if source.path is not None else ""
        return read_scalar_export(table.numbers, source.label, source.name, home)
    meta = {k: v for k, v in text.dialect.meta.items() if v is not None}
    runs = runs_of_table(table, source.label, source.name, "csv", meta)
    for run in runs:
        run.notes[:0] = [*_dialect_note(text, source), *text.notes]
    return runs


def _dialect_note(text: Text, source: Source) -> list[tuple[str, str]]:
    """Say what was guessed about the writing, where it is not plain CSV."""
    assert text.dialect is not None
    names = {
        ";": "semicolons between cells",
        "\t": "tabs between cells",
        "|": "bars between cells",
        " ": "spaces between cells",
    }
    said = [names[text.delimiter]] if text.delimiter in names else []
    if text.dialect.decimal == ",":
        said.append("decimal commas" + (" and points between thousands" if text.dialect.thousands else ""))
    if source.head(3) == b"\xef\xbb\xbf":
        said.append("a byte-order mark")
    if source.packed:
        said.append("packed with gzip")
    return [("dialect", f"read with {listed(said)}")] if said else []


def _own(values: Floats) -> Floats:
    """Make a parsed column writable: its frame is let go, so the guard of pandas guards nothing."""
    try:
        values.flags.writeable = True
    except ValueError:
        return values.copy()
    return values


def _zeros_and_ones(values: Floats) -> bool:
    """Tell a column that may have held True and False, from its first cells where they say enough."""
    for part in (values[:8], values):
        if not np.all(np.isnan(part) | (part == 0) | (part == 1)):
            return False
    return values.size > 0


class CsvTable:
    """A delimited text as a table; only the columns asked for are parsed."""

    place = "line"

    def __init__(self, text: Text) -> None:
        assert text.dialect is not None
        self._text, self._dialect = text, text.dialect
        self.header = text.dialect.header
        self._inspected = False
        self._floats: dict[int, Floats] = {}
        self._words: dict[int, pd.Series[Any]] = {}
        self._rows = 0

    def prepare(self, places: Sequence[int]) -> None:
        """Parse these columns: as floats where all their cells are numbers, else as text."""
        wanted = [p for p in places if p not in self._floats and p not in self._words]
        texts = [p for p in wanted if (metric_role(self.header[p]) or ("",))[0] in ("run", "split", "seed")]
        numbers = [p for p in wanted if p not in texts]
        table = (
            self._first_look(numbers)
            if not self._inspected
            else self._parse(numbers, "float64")
            if numbers
            else None
        )
        if table is not None:
            self._floats |= {p: _own(table[p].to_numpy()) for p in numbers}
            self._rows = len(table)
        elif numbers:
            texts = wanted
        if texts:
            self._as_text(texts)

    def _first_look(self, numbers: Sequence[int]) -> pd.DataFrame | None:
        """Parse at once and check the lines after, which is cheap; look at each line only if it must be."""
        self._inspected = True
        last = len(self.header) - 1
        table = self._parse(sorted({*numbers, last}), "float64") if numbers else None
        if table is not None and not table[last].isna().any() and self._text.regular(len(table)):
            return table
        del table
        self._text.inspect()
        table = self._parse(numbers, "float64") if numbers else None
        if table is None and numbers and self._text.lines is None:
            self._text.line_by_line()
            table = self._parse(numbers, "float64")
        return table

    def _parse(self, places: Sequence[int], dtype: str, **more: Any) -> pd.DataFrame | None:
        dialect = self._dialect
        options: dict[str, Any] = {
            "sep": r"\s+" if dialect.delimiter == " " else dialect.delimiter,
            "decimal": dialect.decimal,
            "thousands": dialect.thousands,
            "encoding": self._text.encoding,
            "encoding_errors": "replace",
            "skiprows": dialect.skip,
            "header": 0,
            "names": [str(k) for k in range(len(self.header))],  # numbers as names halve the speed
            "usecols": list(places),
            "index_col": False,
            "skip_blank_lines": False,
        }
        if tuple(int(v) for v in pd.__version__.split(".")[:2]) < (3, 1):
            options["float_precision"] = "round_trip"  # newer versions round correctly by themselves
        try:
            with warnings.catch_warnings(), self._text.open() as file:
                warnings.simplefilter("ignore")
                table: pd.DataFrame = pd.read_csv(file, dtype=dtype, **options, **more)
        except (ValueError, OverflowError) as error:
            if dtype == "float64":
                return None  # cells that are no numbers, or lines that only a look at each of them explains
            raise ConvexlawError(f"{self._text.label}: not a regular table ({printable(error)})") from None
        table.columns = pd.Index([int(c) for c in table.columns])
        if (
            dtype == "float64"
            and any(_zeros_and_ones(table[p].to_numpy()) for p in places)
            and self._text.has_booleans
        ):
            return None  # pandas reads True as 1.0; as text it is told from a number
        return table

    def _as_text(self, places: Sequence[int]) -> None:
        self._text.check_encoding()
        table = self._parse(places, "str", keep_default_na=False, na_values=[""])
        assert table is not None
        self._words |= {p: table[p] for p in places}
        self._rows = len(table)

    def numbers(self, place: int) -> Floats:
        """Return a column as floats."""
        if place in self._floats:
            return self._floats[place]
        return self._convert(place)[0]

    def _convert(self, place: int) -> tuple[Floats, Mask]:
        cells = self._words[place]
        if self._dialect.decimal == ",":
            if self._dialect.thousands:
                cells = cells.str.replace(self._dialect.thousands, "", regex=False)
            cells = cells.str.replace(",", ".", regex=False)
        return to_numbers(cells, self.header[place], self._text.label, self.lines(), self.place)

    def nan_marks(self, place: int) -> Mask | None:
        """Return the cells that hold a word for NaN; a column of floats is read again as text for that."""
        if place in self._words:
            return self._convert(place)[1]
        table = self._parse([place], "str", keep_default_na=False, na_values=[""])
        assert table is not None
        said: Mask = table[place].notna().to_numpy(bool) & np.isnan(self._floats[place])
        return said

    def words(self, place: int) -> NDArray[np.object_]:
        """Return a column as text, None where a cell is empty."""
        if place not in self._words:
            self._as_text([place])
        out = np.empty(self._rows, dtype=object)
        for k, cell in enumerate(self._words[place].tolist()):
            text = cell.strip() if isinstance(cell, str) else ""
            out[k] = text or None
        return out

    def lines(self) -> NDArray[np.int64]:
        """Return the line of every row."""
        if self._text.lines is not None:
            return self._text.lines
        start = self._dialect.skip + 2
        return np.arange(start, start + self._rows, dtype=np.int64)
