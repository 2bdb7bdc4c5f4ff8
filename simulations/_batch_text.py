"""Batch-size schedules as text: a number, ``0:256 1000000:512``, ``optimal:samples=...``, or a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["parse_batch_sizes"]

_RULE = (
    "write a number, start:size pairs in samples such as '0:256 1000000:512', "
    "optimal:samples=N[,min=..,max=..,multiple=..], or a CSV file"
)


def parse_batch_sizes(text: str, lr: NDArray[np.float64]) -> NDArray[np.int64]:
    """Batch size of every update.

    Parameters
    ----------
    text : str
        A number; pairs ``start:size`` separated by blanks or commas (from ``start`` samples on, as Megatron
        writes them); or a CSV file with a column ``batch_size``, one row an update.
    steps : int
        Number of updates.

    Returns
    -------
    ndarray of int64, shape (steps,)

    Raises
    ------
    ConvexlawError
        Where the text is none of these, or the file has another number of rows.

    Examples
    --------
    >>> parse_batch_sizes("0:2 4:3", np.full(4, 0.1)).tolist()
    [2, 2, 3, 3]
    >>> parse_batch_sizes("optimal:samples=40,min=4,multiple=2", np.full(5, 0.1)).tolist()
    [6, 6, 8, 10, 10]
    """
    steps = len(lr)
    if text.strip().endswith(".csv"):
        return _column(Path(text.strip()), steps)
    if text.strip().startswith("optimal:"):
        return _optimal(text.strip(), lr)
    pairs = []
    for part in text.replace(",", " ").split():
        start, colon, size = part.partition(":")
        numbers = (start, size) if colon else ("0", start)
        if not all(number.isdecimal() for number in numbers):
            raise ConvexlawError(f"{part!r} in batch schedule {text!r} is not understood: {_RULE}")
        pairs.append((int(numbers[0]), int(numbers[1])))
    starts = [start for start, _ in pairs]
    if not pairs or starts[0] != 0 or starts != sorted(set(starts)) or min(size for _, size in pairs) < 1:
        raise ConvexlawError(
            f"batch schedule {text!r}: the first start is 0, starts increase, sizes are at least 1; {_RULE}"
        )
    out = np.empty(steps, dtype=np.int64)
    taken = position = 0
    for t in range(steps):
        while position + 1 < len(pairs) and taken >= pairs[position + 1][0]:
            position += 1
        out[t] = pairs[position][1]
        taken += pairs[position][1]
    return out


def _optimal(text: str, lr: NDArray[np.float64]) -> NDArray[np.int64]:
    from convexlaw.theory.batch import optimal_batch_sizes

    values: dict[str, int] = {}
    for part in filter(None, text.removeprefix("optimal:").split(",")):
        key, _, number = part.partition("=")
        if key.strip() not in ("samples", "min", "max", "multiple") or not number.strip().isdecimal():
            raise ConvexlawError(f"{part!r} in batch schedule {text!r} is not understood: {_RULE}")
        values[key.strip()] = int(number)
    if "samples" not in values:
        raise ConvexlawError(f"batch schedule {text!r} lacks samples=, the sequences of the whole run")
    return optimal_batch_sizes(
        lr,
        values["samples"],
        min_batch=values.get("min", 1),
        max_batch=values.get("max"),
        multiple_of=values.get("multiple", 1),
    ).astype(np.int64)


def _column(path: Path, steps: int) -> NDArray[np.int64]:
    import pandas as pd

    if not path.is_file():
        raise ConvexlawError(f"batch schedule {path}: no such file; {_RULE}")
    frame = pd.read_csv(path, comment="#")
    if "batch_size" not in frame.columns:
        raise ConvexlawError(f"{path} has columns {list(frame.columns)}: it needs a column batch_size")
    sizes = pd.to_numeric(frame["batch_size"], errors="coerce").to_numpy(dtype=float)
    if len(sizes) != steps:
        raise ConvexlawError(
            f"{path} has {len(sizes)} rows, the schedule {steps} updates; give one row an update"
        )
    bad = np.flatnonzero(~((sizes >= 1) & (sizes == np.round(sizes))))
    if bad.size:
        raise ConvexlawError(
            f"{path}, column batch_size, data row {bad[0] + 1}: batch sizes are whole numbers of sequences, "
            "at least 1"
        )
    return sizes.astype(np.int64)
