"""Parquet files (needs pyarrow: the extra ``parquet``)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.runs._cells import FrameTable
from convexlaw.runs._raw import Floats, Mask, RawRun, printable
from convexlaw.runs._source import Source
from convexlaw.runs._tables import runs_of_table

__all__ = ["read_parquet"]

MAX_ROWS = 50_000_000


class _ParquetTable:
    """A parquet file as a table; only the columns asked for are read."""

    place = "row"

    def __init__(self, file: Any, label: str) -> None:
        self._file, self._label = file, label
        self.header: list[str] = [str(n) for n in file.schema_arrow.names]
        self._tables: dict[int, FrameTable] = {}

    def prepare(self, places: Sequence[int]) -> None:
        """Read these columns."""
        for place in places:
            if place in self._tables:
                continue
            group = [i for i in range(self._file.metadata.num_columns) if self._root(i) == self.header[place]]
            try:
                column = self._file.read(
                    columns=[self._file.metadata.schema.column(i).path for i in group] or [self.header[place]]
                )
                cells = column.column(0).to_pandas() if column.num_columns else pd.Series([], dtype=float)
            except Exception as error:
                raise ConvexlawError(
                    f"{self._label}: column {printable(self.header[place], 40)!r} cannot be read "
                    f"({printable(error)})"
                ) from None
            self._tables[place] = FrameTable(pd.DataFrame({self.header[place]: cells}), self._label)

    def _root(self, leaf: int) -> str:
        return str(self._file.metadata.schema.column(leaf).path).split(".")[0]

    def _column(self, place: int) -> FrameTable:
        self.prepare([place])
        return self._tables[place]

    def numbers(self, place: int) -> Floats:
        """Return a column as floats."""
        return self._column(place).numbers(0)

    def nan_marks(self, place: int) -> Mask | None:
        """Nothing is marked: most writers turn NaN into an empty cell."""
        return None

    def words(self, place: int) -> NDArray[np.object_]:
        """Return a column as text."""
        return self._column(place).words(0)

    def lines(self) -> NDArray[np.int64] | None:
        """Rows are counted from 1."""
        return None


def read_parquet(source: Source) -> list[RawRun]:
    """Read the runs of a parquet file.

    Raises
    ------
    ConvexlawError
        pyarrow is missing, or the file is damaged, too large, or no log.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise ConvexlawError(
            f"{source.label}: parquet files need pyarrow; install convexlaw[parquet]"
        ) from None
    try:
        file = parquet.ParquetFile(io.BytesIO(source.data()))
        rows = file.metadata.num_rows
    except Exception as error:  # whatever a damaged file makes of the parser
        raise ConvexlawError(
            f"{source.label}: not a whole parquet file ({printable(error)}); copy it again"
        ) from None
    if rows > MAX_ROWS:
        raise ConvexlawError(f"{source.label}: {rows} rows; the limit is {MAX_ROWS}, thin the log first")
    return runs_of_table(_ParquetTable(file, source.label), source.label, source.name, "parquet")
