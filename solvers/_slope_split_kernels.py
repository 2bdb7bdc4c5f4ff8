"""Compiled kernels of the SLOPE solver: how clusters split (see ``_slope_kernels`` for the partition)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.theory._jit import kernel, leaf
from convexlaw.theory._sorted_l1_kernels import sort_decreasing

# inlined from other files: 4cc943426918

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@leaf
def pool_from(key: Floats, lam: Floats, first: int, size: int, slack: float, end: Ints, mean: Floats) -> int:
    """Pool key[i] - lam[first + i] to a non-increasing fit; block b has end end[b + 1] and sum mean[b + 1].

    Neighbours whose means differ by ``slack`` or less are pooled too: a difference of rounding is no split.
    """
    blocks = 0
    end[0] = 0
    for i in range(size):
        total = key[i] - lam[first + i]
        n = 1
        while blocks > 0:
            before = end[blocks] - end[blocks - 1]
            if mean[blocks] * n > total * before + slack * n * before:
                break
            total += mean[blocks]
            n += before
            blocks -= 1
        blocks += 1
        end[blocks] = i + 1
        mean[blocks] = total
    return blocks


@kernel
def pool_cluster(
    first: int,
    size: int,
    order: Ints,
    sign: Floats,
    g: Floats,
    lam: Floats,
    slack: float,
    key: Floats,
    item: Ints,
    end: Ints,
    mean: Floats,
) -> int:
    """Blocks into which the cluster on ``size`` ranks from ``first`` would split, in the order of item."""
    low = 0.0
    for i in range(size):
        j = order[first + i]
        item[i] = j
        key[i] = sign[j] * g[j]
        low = min(low, key[i])
    for i in range(size):
        key[i] -= low
    sort_decreasing(key, item, size)
    return int(pool_from(key, lam, first, size, slack, end, mean))


@kernel
def pool_zeros(
    first: int,
    w: int,
    order: Ints,
    g: Floats,
    lam: Floats,
    slack: float,
    key: Floats,
    item: Ints,
    end: Ints,
    mean: Floats,
) -> int:
    """Pool the pulls of the zeros; item holds all of them, those that may become nonzero first."""
    zeros = w - first
    for i in range(zeros):
        item[i] = order[first + i]
        key[i] = abs(g[item[i]])
    alive = zeros
    while alive > 0:
        # as in the filter of the prox; the others keep their place behind
        bound = lam[first + alive - 1] + slack
        kept = 0
        for i in range(alive):
            if key[i] > bound:
                a = key[i]
                j = item[i]
                key[i] = key[kept]
                item[i] = item[kept]
                key[kept] = a
                item[kept] = j
                kept += 1
        if kept == alive:
            break
        alive = kept
    if alive == 0:
        return 0
    sort_decreasing(key, item, alive)
    return int(pool_from(key, lam, first, alive, 0.0, end, mean))


@kernel
def split(
    w: int,
    order: Ints,
    start: Ints,
    value: Floats,
    m: int,
    sign: Floats,
    g: Floats,
    lam: Floats,
    slack: float,
    share: float,
    new_start: Ints,
    new_value: Floats,
    origin: Ints,
) -> int:
    """Split clusters as an infinitesimal prox-gradient step would; returns the new number of clusters.

    Inside a cluster, members are ordered by their signed pull and pooled against lam; zeros whose pooled
    pull is positive become clusters of magnitude 0. ``order`` and ``sign`` are updated, ``start`` and
    ``value`` are not: the new ones are in ``new_start``, ``new_value``. ``origin[k]`` is the old cluster, -2
    less the old cluster where k is a piece of it, -1 where k was zero. Differences of ``slack`` or less
    count as rounding; with ``share`` > 0 so does what is below that share of the largest one: near a
    solution, the small ones mostly mend themselves once the large ones are split.
    """
    key = np.empty(w, np.float64)
    item = np.empty(w, np.int64)
    end = np.empty(w + 1, np.int64)
    mean = np.empty(w + 1, np.float64)
    if share > 0.0:
        worst = 0.0
        for k in range(m):
            size = start[k + 1] - start[k]
            if size > 1:
                blocks = pool_cluster(start[k], size, order, sign, g, lam, slack, key, item, end, mean)
                for b in range(1, blocks):
                    here = mean[b] / (end[b] - end[b - 1])
                    worst = max(worst, here - mean[b + 1] / (end[b + 1] - end[b]))
        if pool_zeros(start[m], w, order, g, lam, slack, key, item, end, mean) > 0:
            worst = max(worst, mean[1] / end[1])
        slack = max(slack, share * worst)
    count = 0
    for k in range(m):
        first = start[k]
        size = start[k + 1] - first
        new_start[count] = first
        new_value[count] = value[k]
        origin[count] = k
        count += 1
        if size == 1:
            continue
        blocks = pool_cluster(first, size, order, sign, g, lam, slack, key, item, end, mean)
        if blocks > 1:
            for i in range(size):
                order[first + i] = item[i]
            origin[count - 1] = -2 - k
            for b in range(1, blocks):
                new_start[count] = first + end[b]
                new_value[count] = value[k]
                origin[count] = -2 - k
                count += 1
    first = start[m]
    blocks = pool_zeros(first, w, order, g, lam, slack, key, item, end, mean)
    back = 0
    for b in range(1, blocks + 1):
        if mean[b] <= slack * (end[b] - end[b - 1]):
            break
        new_start[count] = first + back
        new_value[count] = 0.0
        origin[count] = -1
        count += 1
        back = end[b]
    for i in range(back):
        sign[item[i]] = 1.0 if g[item[i]] > 0.0 else -1.0
    for i in range(w - first):
        order[first + i] = item[i]
    new_start[count] = first + back
    return count
