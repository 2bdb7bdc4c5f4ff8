"""Where the warmup of a learning rate ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["warmup_end"]

Array = NDArray[np.float64]

LEVEL = 0.01  # rates within this share of each other are one level of a warmup in stairs or with jitter
LOOK = 10  # steps that jitter may hide its rise at the start
RISES = 8  # fewer of them are stages


def warmup_end(lr: Array) -> int:
    """Count the warmup steps: the leading rise, up to its first peak or plateau; 0 where the run rises on.

    A level stretch before it, no longer than the rise, belongs to it: logs that begin late, or count from 1.
    A rise in stairs or with jitter (rates printed with few digits, or measured) ends within 1 % of the level
    at which the running maximum M first stays: M(2 t) <= 1.01 M(t), or M(t + 10) where t < 10. It has eight
    rises at least and ends in the first half of the run, or it is taken for stages of the schedule.

    Parameters
    ----------
    lr : (T,) array

    Returns
    -------
    int
        First step after the warmup.

    Examples
    --------
    >>> warmup_end(np.array([0.1, 0.2, 0.3, 0.3, 0.3, 0.2]))
    3
    >>> warmup_end(np.array([0.1, 0.1, 0.2, 0.3, 0.3, 0.2])), warmup_end(np.array([0.1, 0.1, 0.3, 0.3]))
    (4, 0)
    >>> warmup_end(np.concatenate([np.repeat(np.arange(0.1, 1, 0.1), 10), np.ones(110)]))
    91
    """
    change = np.diff(lr)
    noise = 1e-9 * lr.max()  # rounding is no rise
    rising = change > noise
    if not rising.any():
        return 0
    first = int(np.argmax(rising))
    stops = np.flatnonzero(~rising[first:])
    if not stops.size:
        return 0
    last = first + int(stops[0])
    # rates known from a later step on are held back to step 0: a short level stretch, then the ramp
    level = bool(np.all(np.abs(change[:first]) <= noise))
    ramp = 0 if first and not (level and last - first >= max(first, 2)) else last + 1
    return max(ramp, _stairs_end(lr, rising, noise))


def _stairs_end(lr: Array, rising: NDArray[np.bool_], noise: float) -> int:
    """First step after a warmup in stairs or with jitter (see warmup_end); 0 where there is none."""
    top = np.maximum.accumulate(lr)
    records = np.flatnonzero(np.diff(top) > noise) + 1
    if records.size < RISES:
        return 0
    steps = np.arange(records[RISES - 1], lr.size)
    ahead = top[np.minimum(steps + np.maximum(steps, LOOK), lr.size - 1)]
    stays = int(np.argmax(ahead <= (1 + LEVEL) * top[steps]))  # true at the last step at the latest
    reached = int(np.argmax(top >= (1 - LEVEL) * ahead[stays]))
    falls = np.flatnonzero(~rising[reached:])  # an exact ramp goes on to its very peak
    last = reached + int(falls[0]) if falls.size else lr.size
    lead = int(records[0]) - 1
    whole = last >= records[RISES - 1] and last - lead >= lead and 2 * (last + 1) <= lr.size
    return last + 1 if whole else 0
