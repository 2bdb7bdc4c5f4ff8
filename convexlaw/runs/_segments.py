"""Resumed runs: where segments start, which rows each stream keeps, and rows that are merely out of order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Segments", "find_segments", "kept_rows", "merge_equal_steps"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class Segments:
    """Segment number of every row, and what each segment is.

    ``ids`` is (rows,); ``drops`` holds one (last step before, first step after) a restart; ``unsorted`` says that the rows
    were out of order rather than resumed (then there is one segment and ``order`` sorts the rows).
    """

    ids: Ints
    drops: list[tuple[int, int]]
    unsorted: bool = False


def _out_of_order(steps: Ints, drops: int) -> bool:
    """Tell a shuffled file from a resumed one: no step twice, and sorting gives even spacing or drops are everywhere.

    A run resumed at the same cadence logs steps again; one resumed at another cadence leaves uneven spacing once sorted.
    """
    ordered = np.sort(steps)
    gaps = np.diff(ordered)
    if np.any(gaps == 0):
        return False
    even = bool(gaps.size and gaps.min() == gaps.max())
    return even or (steps.size >= 8 and drops > 0.3 * (steps.size - 1))


def find_segments(steps: Ints, train: Mask) -> Segments:
    """Number the segments of a log: the first drop in ``step`` of the training rows starts a new one.

    Parameters
    ----------
    steps : (n,) int array
        Steps in file order.
    train : (n,) bool array
        Rows that carry a training loss (all rows where a log has none).

    Returns
    -------
    Segments
    """
    n = steps.size
    ids = np.zeros(n, dtype=np.int64)
    rows = np.flatnonzero(train) if train.any() else np.arange(n)
    own = steps[rows]
    falls = np.flatnonzero(np.diff(own) < 0) + 1
    if falls.size == 0:
        return Segments(ids, [])
    if _out_of_order(own, falls.size):
        return Segments(ids, [], unsorted=True)
    drops: list[tuple[int, int]] = []
    for fall in falls:
        before, first = rows[fall - 1], rows[fall]
        # rows of other kinds between the two belong to the new segment from the first that goes back
        between = np.flatnonzero(steps[before + 1 : first] < steps[before])
        start = before + 1 + between[0] if between.size else first
        ids[start:] += 1
        drops.append((int(steps[before]), int(steps[first])))
    return Segments(ids, drops)


def kept_rows(steps: Ints, ids: Ints, starts: Ints, ends: Ints, duplicates: str) -> Mask:
    """Return the rows of one stream that survive the overlap of segments.

    Parameters
    ----------
    steps, ids : (n,) int arrays
        Step and segment of the rows of one stream (training, validation or learning rate), in file order.
    starts, ends : (segments,) int arrays
        First and last step of the training rows of every segment.
    duplicates : {"later", "earlier", "mean", "error"}
        ``later``: a segment ends where a later one starts. ``earlier``: a segment starts after the earlier ones end.
        The others keep all rows.

    Returns
    -------
    (n,) bool array
    """
    keep = np.ones(steps.size, dtype=bool)
    if duplicates not in ("later", "earlier") or starts.size < 2:
        return keep
    count = starts.size
    first, last = starts.copy(), ends.copy()
    for k in range(count):
        own = steps[ids == k]
        if own.size:
            first[k] = min(first[k], own.min())
            last[k] = max(last[k], own.max())
    if duplicates == "later":
        # lowest first step of any later segment
        cut = np.minimum.accumulate(first[::-1])[::-1]
        limit = np.append(cut[1:], np.iinfo(np.int64).max)
        return steps < limit[ids]
    reach = np.maximum.accumulate(last)
    floor = np.concatenate(([-1], reach[:-1]))
    return steps > floor[ids]


def merge_equal_steps(steps: Ints, values: Floats) -> tuple[Ints, Floats, int]:
    """Average ``values`` over equal steps and sort by step.

    Parameters
    ----------
    steps : (n,) int array
    values : (n, columns) array
        NaN cells do not count in a mean.

    Returns
    -------
    steps : (m,) int array
        Strictly increasing.
    values : (m, columns) array
    merged : int
        How many rows went into others.
    """
    if steps.size == 0:
        return steps, values, 0
    gaps = np.diff(steps)
    if np.all(gaps > 0):
        return steps, values, 0
    order = np.argsort(steps, kind="stable")
    steps, values = steps[order], values[order]
    starts = np.flatnonzero(np.concatenate(([True], np.diff(steps) > 0)))
    if starts.size == steps.size:
        return steps, values, 0
    there = ~np.isnan(values)
    counts = np.maximum(np.add.reduceat(there.astype(np.int64), starts, axis=0), 1)
    low = np.minimum.reduceat(np.where(there, values, np.inf), starts, axis=0)
    high = np.maximum.reduceat(np.where(there, values, -np.inf), starts, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.add.reduceat(np.where(there, values, 0.0), starts, axis=0) / counts
    # equal values are their own mean to the last bit; a mean lies between its values even where the sum overflows
    means = np.where(low == high, low, np.clip(means, low, np.maximum(low, high)))
    means[~np.logical_or.reduceat(there, starts, axis=0)] = np.nan
    return steps[starts], means, int(steps.size - starts.size)
