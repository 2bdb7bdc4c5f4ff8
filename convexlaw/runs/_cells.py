"""What a table must answer, and how its cells become numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.runs._raw import Floats, Mask, listed, places_called, plural, printable

__all__ = ["FrameTable", "Table", "to_numbers"]

NAN_WORDS = (
    "nan",
    "-nan",
    "+nan",
    "na",
    "n/a",
    "null",
    "none",
    "#n/a",
    "#na",
    "<na>",
    "nil",
    "undefined",
    "-",
)


class Table(Protocol):
    """What a table must answer; columns go by their place in ``header``."""

    header: list[str]
    place: str

    def prepare(self, places: Sequence[int]) -> None:
        """Get these columns ready."""

    def numbers(self, place: int) -> Floats:
        """Return a column as floats; an error names the cells that are no numbers."""

    def nan_marks(self, place: int) -> Mask | None:
        """Return the cells that say NaN, None where the source cannot tell them from absent ones."""

    def words(self, place: int) -> NDArray[np.object_]:
        """Return a column as text, None where a cell is empty."""

    def lines(self) -> NDArray[np.int64] | None:
        """Return the place of every row in the source, None where it is the row's number."""


def to_numbers(
    cells: pd.Series[Any], name: str, label: str, lines: NDArray[np.int64], place: str
) -> tuple[Floats, Mask]:
    """Turn cells of any kind into floats.

    Returns
    -------
    values : (n,) array
    said_nan : (n,) bool array
        Cells that say NaN rather than being empty.

    Raises
    ------
    ConvexlawError
        Cells that are no numbers: column, how many, the first of them and where.
    """
    if cells.dtype.kind in "iuf" and not isinstance(cells.dtype, pd.api.extensions.ExtensionDtype):
        return cells.to_numpy(np.float64, copy=True), np.zeros(len(cells), dtype=bool)
    if cells.dtype.kind == "b":
        raise ConvexlawError(
            f"{label}: column {printable(name, 40)!r} holds True and False, not numbers; rename or remove it"
        )
    given = np.full(len(cells), np.nan)
    said = np.zeros(len(cells), dtype=bool)
    wrong: list[int] = []
    for k, cell in enumerate(cells.tolist()):
        if cell is None or cell is pd.NA or cell is pd.NaT:
            continue
        if isinstance(cell, str):
            text = cell.strip()
            if not text:
                continue
            if text.lower() in NAN_WORDS:
                said[k] = True
                continue
            cell = text.replace("_", "x")  # 1_000 is no number in a log
        if isinstance(cell, (bool, np.bool_, complex, bytes, list, dict)):
            wrong.append(k)
            continue
        try:
            given[k] = float(cell)
        except OverflowError:
            given[k] = np.inf
        except (TypeError, ValueError):
            wrong.append(k)
            continue
        said[k] = given[k] != given[k]
    if wrong:
        where = f"{places_called(place, len(wrong))} {listed(lines[wrong])}"
        raise ConvexlawError(
            f"{label}: column {printable(name, 40)!r} has {plural(len(wrong), 'cell')} that "
            f"{'are' if len(wrong) > 1 else 'is'} no "
            f"number, first {printable(cells.iloc[wrong[0]], 40)!r} ({where}); mend or remove "
            f"{'them' if len(wrong) > 1 else 'it'}"
        )
    return given, said


class FrameTable:
    """A pandas frame as a table.

    Parameters
    ----------
    frame : pandas.DataFrame
    label : str
    place : str
        What a row is called in messages.
    lines : (n,) int array, optional
        Where the rows lie; 1, 2, ... without it.
    tells_nan : bool
        Whether NaN cells say NaN (JSON) or may be absent (a frame).
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        label: str,
        place: str = "row",
        lines: NDArray[np.int64] | None = None,
        tells_nan: bool = False,
    ) -> None:
        self.frame, self.label, self.place = frame, label, place
        self.header = [str(c) for c in frame.columns]
        self._lines = lines
        self._tells_nan = tells_nan

    def prepare(self, places: Sequence[int]) -> None:
        """Nothing to do."""

    def _both(self, place: int) -> tuple[Floats, Mask]:
        rows = self._lines if self._lines is not None else np.arange(1, len(self.frame) + 1)
        cells = self.frame.iloc[:, place]
        if isinstance(cells.dtype, pd.CategoricalDtype):
            cells = cells.astype(object)
        if cells.dtype.kind in "mM":
            raise ConvexlawError(
                f"{self.label}: column {self.header[place]!r} holds times, not numbers; rename or remove it"
            )
        return to_numbers(cells, self.header[place], self.label, rows, self.place)

    def numbers(self, place: int) -> Floats:
        """Return a column as floats."""
        return self._both(place)[0]

    def nan_marks(self, place: int) -> Mask | None:
        """Return the cells that say NaN, where the source can tell."""
        return self._both(place)[1] if self._tells_nan else None

    def words(self, place: int) -> NDArray[np.object_]:
        """Return a column as text."""
        cells = self.frame.iloc[:, place].astype(object)
        return np.array([None if pd.isna(c) else _word(c) for c in cells.tolist()] or [], dtype=object)

    def lines(self) -> NDArray[np.int64] | None:
        """Return the place of every row."""
        return self._lines


def _word(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell).strip()
