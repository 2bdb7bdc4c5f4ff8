"""Compiled kernels of the SLOPE solver: the partition of a working set, its splits and its certificate.

A working set of w columns is kept as a partition: ``order`` lists slots by decreasing magnitude, cluster k is
``order[start[k]:start[k + 1]]`` with magnitude ``value[k]``, what follows ``start[m]`` is zero, ``sign`` holds
the signs. ``lam`` is alpha times the penalty sequence, ``cum`` its cumulative sum from 0; both may be longer than
w. Where clusters move, ``seq`` lists the living ones by decreasing magnitude, ``pos`` is its inverse and
``rank[i]`` the first rank of place i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from convexlaw.theory._sorted_l1_kernels import dual_norm, sort_decreasing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ALIVE = -1
DEAD = -2


@njit(cache=True)
def load(lam: Floats, cum: Floats, first: int, size: int) -> float:
    """Sum of lam over ``size`` ranks; short ranges directly, as differences of cum lose digits."""
    if size > 4:
        return cum[first + size] - cum[first]
    total = 0.0
    for i in range(first, first + size):
        total += lam[i]
    return total


@njit(cache=True)
def pool_from(key: Floats, lam: Floats, first: int, size: int, slack: float, end: Ints, mean: Floats) -> int:
    """Pool key[i] - lam[first + i] to a non-increasing fit; block b ends at end[b + 1], its sum is mean[b + 1].

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


@njit(cache=True)
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
    """Blocks into which the cluster on ``size`` ranks from ``first`` would split; item holds its new order."""
    low = 0.0
    for i in range(size):
        j = order[first + i]
        item[i] = j
        key[i] = sign[j] * g[j]
        low = min(low, key[i])
    for i in range(size):
        key[i] -= low
    sort_decreasing(key, item, size)
    return pool_from(key, lam, first, size, slack, end, mean)


@njit(cache=True)
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
    return pool_from(key, lam, first, alive, 0.0, end, mean)


@njit(cache=True)
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

    Inside a cluster, members are ordered by their signed pull and pooled against lam; zeros whose pooled pull is
    positive become clusters of magnitude 0. ``order`` and ``sign`` are updated, ``start`` and ``value`` are not:
    the new ones are in ``new_start``, ``new_value``. ``origin[k]`` is the old cluster, -2 less the old cluster where k is a piece of it,
    -1 where k was zero.
    Differences of ``slack`` or less count as rounding; with ``share`` > 0 so does what is below that share of
    the largest one: near a solution, the small ones mostly mend themselves once the large ones are split.
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


@njit(cache=True)
def place(
    a: float,
    h: float,
    size: int,
    k: int,
    c: Floats,
    sizes: Ints,
    seq: Ints,
    rank: Ints,
    live: int,
    lam: Floats,
    cum: Floats,
) -> tuple[float, int, bool]:
    """Minimise h t^2 / 2 - a t + penalty(t) over t >= 0 for the cluster at place k, the others fixed.

    Returns t, the new place, and whether t is the magnitude of the cluster now there, to merge with.
    """
    first = rank[k]
    t = (a - load(lam, cum, first, size)) / h
    i = k
    while i > 0:
        j = seq[i - 1]
        v = abs(c[j])
        if t < v:
            break
        up = first - sizes[j]
        further = (a - load(lam, cum, up, size)) / h
        if further <= v:
            return v, i - 1, v > 0.0
        first = up
        t = further
        i -= 1
    if i == k:
        while i < live - 1:
            j = seq[i + 1]
            v = abs(c[j])
            if t > v:
                break
            down = first + sizes[j]
            further = (a - load(lam, cum, down, size)) / h
            if further >= v and v > 0.0:
                return v, i + 1, True
            first = down
            t = further
            i += 1
    return max(t, 0.0), i, False


@njit(cache=True)
def renumber(seq: Ints, pos: Ints, rank: Ints, sizes: Ints, first: int, last: int) -> None:
    """Recompute pos and rank for the places first..last-1."""
    at = 0 if first == 0 else rank[first - 1] + sizes[seq[first - 1]]
    for i in range(first, last):
        j = seq[i]
        pos[j] = i
        rank[i] = at
        at += sizes[j]


@njit(cache=True)
def move(seq: Ints, pos: Ints, rank: Ints, sizes: Ints, old: int, new: int) -> None:
    """Move the cluster at place ``old`` to place ``new``."""
    j = seq[old]
    if new > old:
        for i in range(old, new):
            seq[i] = seq[i + 1]
    else:
        for i in range(old, new, -1):
            seq[i] = seq[i - 1]
    seq[new] = j
    renumber(seq, pos, rank, sizes, min(old, new), max(old, new) + 1)


@njit(cache=True)
def drop(seq: Ints, pos: Ints, rank: Ints, sizes: Ints, k: int, live: int) -> None:
    """Remove the cluster at place k from a sequence of ``live``."""
    for i in range(k, live - 1):
        seq[i] = seq[i + 1]
    renumber(seq, pos, rank, sizes, k, live - 1)


@njit(cache=True)
def certificate(
    w: int,
    order: Ints,
    start: Ints,
    value: Floats,
    m: int,
    sign: Floats,
    g: Floats,
    q: Floats,
    lam: Floats,
    cum: Floats,
    energy: float,
    rss: float,
    out: Floats,
) -> float:
    """Duality gap of a partition with pull g = X'r over the first w columns; q = X'z, energy = z'z.

    With the dual point s r, gap = (1 - s)^2 r'r / 2 + (penalty - s b'g): no difference of large numbers but the
    last, which is one of nearly equal sums. ``rss`` < 0: r'r from z'z - b'q - b'g. out = penalty, r'r, s.
    """
    penalty = 0.0
    bg = 0.0
    bq = 0.0
    for k in range(m):
        first = start[k]
        pull = 0.0
        along = 0.0
        for i in range(first, start[k + 1]):
            j = order[i]
            pull += sign[j] * g[j]
            along += sign[j] * q[j]
        penalty += value[k] * load(lam, cum, first, start[k + 1] - first)
        bg += value[k] * pull
        bq += value[k] * along
    if rss < 0.0:
        rss = max(energy - bq - bg, 0.0)
    norm = dual_norm(g[:w], lam[:w])
    s = 1.0 / norm if norm > 0.0 else 1.0
    best = (energy - bq) / rss if rss > 0.0 else 1.0
    s = min(s, max(best, 0.0))
    out[0] = penalty
    out[1] = rss
    out[2] = s
    return 0.5 * (1.0 - s) * (1.0 - s) * rss + (penalty - s * bg)


@njit(cache=True)
def coefficients(order: Ints, start: Ints, value: Floats, m: int, sign: Floats, out: Floats) -> None:
    """Write the coefficients by slot into ``out``."""
    for i in range(out.size):
        out[i] = 0.0
    for k in range(m):
        for i in range(start[k], start[k + 1]):
            out[order[i]] = value[k] * sign[order[i]]


@njit(cache=True)
def partition_of(b: Floats, order: Ints, start: Ints, value: Floats, sign: Floats) -> int:
    """Partition of a coefficient vector; equal magnitudes form a cluster. Returns their number."""
    w = b.size
    key = np.empty(w, np.float64)
    nonzero = 0
    for j in range(w):
        sign[j] = -1.0 if b[j] < 0.0 else 1.0
        if b[j] != 0.0:
            key[nonzero] = abs(b[j])
            order[nonzero] = j
            nonzero += 1
    sort_decreasing(key, order, nonzero)
    at = nonzero
    for j in range(w):
        if b[j] == 0.0:
            order[at] = j
            at += 1
    m = 0
    for i in range(nonzero):
        if m == 0 or key[i] != value[m - 1]:
            start[m] = i
            value[m] = key[i]
            m += 1
    start[m] = nonzero
    return m


@njit(cache=True)
def expand(
    order: Ints,
    start: Ints,
    value: Floats,
    m: int,
    sign: Floats,
    c: Floats,
    seq: Ints,
    live: int,
    into: Ints,
    rel: Floats,
) -> int:
    """Write a reduced solution of ``live`` clusters back as a partition; returns the number of clusters.

    ``into[k]`` is ALIVE, DEAD (zero) or the slot that cluster k merged into, with the relative sign ``rel[k]``.
    """
    root = np.empty(m, np.int64)
    factor = np.empty(m, np.float64)
    count = np.zeros(live + 2, np.int64)
    place_of = np.empty(m, np.int64)
    for i in range(live):
        place_of[seq[i]] = i
    for k in range(m):
        j = k
        f = 1.0
        while into[j] >= 0:
            f *= rel[j]
            j = into[j]
        if into[j] == DEAD:
            root[k] = live
        else:
            root[k] = place_of[j]
            if c[j] < 0.0:
                f = -f
        factor[k] = f
        count[root[k] + 1] += start[k + 1] - start[k]
    for i in range(live + 1):
        count[i + 1] += count[i]
    old = order[: start[m]].copy()
    at = count.copy()
    for k in range(m):
        r = root[k]
        for i in range(start[k], start[k + 1]):
            j = old[i]
            sign[j] *= factor[k]
            order[at[r]] = j
            at[r] += 1
    for i in range(live):
        start[i] = count[i]
        value[i] = abs(c[seq[i]])
    start[live] = count[live]
    for i in range(live - 2, -1, -1):
        # rounding in a line search may turn equals around
        value[i] = max(value[i], value[i + 1])
    while live > 0 and value[live - 1] == 0.0:
        live -= 1
    return live
