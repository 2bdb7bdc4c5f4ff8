"""Resumed runs: where segments start, which rows each stream keeps, and rows that are merely out of order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convexlaw.runs._raw import Floats, Ints, Mask

__all__ = ["Segments", "find_segments", "kept_rows", "merge_equal_steps"]


@dataclass
class Segments:
    """Segment number of every row, and what each segment is.

    ``ids`` is (rows,); ``drops`` holds one (last step before, first step after) a restart; ``starts`` and
    ``ends`` are the first and last step of the leading rows of every segment; ``unsorted``: the rows are out
    of order rather than resumed.
    """

    ids: Ints
    drops: list[tuple[int, int]]
    starts: Ints
    ends: Ints
    unsorted: bool = False


def _out_of_order(steps: Ints, drops: int) -> bool:
    """Tell a shuffled file from a resumed one: no step twice, and even spacing once sorted or many drops.

    A run resumed at the same cadence logs steps again; one resumed at another cadence leaves uneven spacing
    once sorted.
    """
    ordered = np.sort(steps)
    gaps = np.diff(ordered)
    if np.any(gaps == 0):
        return False
    even = bool(gaps.size and gaps.min() == gaps.max())
    return even or (steps.size >= 8 and drops > 0.3 * (steps.size - 1))


def find_segments(steps: Ints, train: Mask) -> Segments:
    """Find the segment of every row: the first drop in ``step`` of the training rows starts a new one.

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
    rows = np.flatnonzero(train)
    own = steps if rows.size == steps.size else steps[rows]
    falls = np.flatnonzero(own[1:] < own[:-1]) + 1
    one = np.zeros(steps.size if falls.size else 0, dtype=np.int64)
    edges = own[:1], own[-1:]
    if falls.size == 0:
        return Segments(one, [], *edges)
    if _out_of_order(own, falls.size):
        return Segments(one, [], *edges, unsorted=True)
    drops: list[tuple[int, int]] = []
    turns = np.zeros(steps.size, dtype=np.int64)
    for fall in falls:
        before, first = rows[fall - 1], rows[fall]
        # rows of other kinds between the two belong to the new segment from the first that goes back
        between = np.flatnonzero(steps[before + 1 : first] < steps[before])
        turns[before + 1 + between[0] if between.size else first] += 1
        drops.append((int(steps[before]), int(steps[first])))
    heads = np.concatenate(([0], falls))
    return Segments(np.cumsum(turns), drops, np.minimum.reduceat(own, heads), np.maximum.reduceat(own, heads))


def kept_rows(steps: Ints, segments: Segments, duplicates: str, place: NDArray[np.intp]) -> Mask:
    """Return the rows of one stream that survive the overlap of segments.

    Parameters
    ----------
    steps : (n,) int array
        Steps of the rows of one stream (training, validation or learning rate), in file order.
    segments : Segments
    duplicates : {"later", "earlier", "mean", "error"}
        ``later``: a segment ends where a later one starts. ``earlier``: a segment starts after the earlier
        ones end. The others keep all rows.
    place : (n,) int array
        Which rows of the log these are.

    Returns
    -------
    (n,) bool array
    """
    if duplicates not in ("later", "earlier") or not segments.drops:
        return np.ones(steps.size, dtype=bool)
    ids = segments.ids[place]
    first, last = segments.starts.copy(), segments.ends.copy()
    # a stream may reach further back (an evaluation at the checkpoint itself) or further on than the
    # training rows
    np.minimum.at(first, ids, steps)
    np.maximum.at(last, ids, steps)
    if duplicates == "later":
        later = np.minimum.accumulate(first[::-1])[::-1]
        limit = np.append(later[1:], np.iinfo(np.int64).max)
        return np.asarray(steps < limit[ids])
    reach = np.maximum.accumulate(last)
    floor = np.concatenate(([-1], reach[:-1]))
    return np.asarray(steps > floor[ids])


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
    if np.all(steps[1:] > steps[:-1]):
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
    # equal values are their own mean to the last bit; a mean lies between its values even where the sum
    # overflows
    means = np.where(low == high, low, np.clip(means, low, np.maximum(low, high)))
    means[~np.logical_or.reduceat(there, starts, axis=0)] = np.nan
    return steps[starts], means, int(steps.size - starts.size)
