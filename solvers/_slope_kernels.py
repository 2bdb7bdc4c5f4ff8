"""Compiled kernels of the SLOPE solver: the partition of a working set, its moves and its certificate.

A working set of w columns is kept as a partition: ``order`` lists slots by decreasing magnitude, cluster k
is ``order[start[k]:start[k + 1]]`` with magnitude ``value[k]``, what follows ``start[m]`` is zero, ``sign``
holds the signs. ``lam`` is alpha times the penalty sequence, ``cum`` its cumulative sum from 0; both may be
longer than w. Where clusters move, ``seq`` lists the living ones by decreasing magnitude, ``pos`` is its
inverse and ``rank[i]`` the first rank of place i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.theory._jit import kernel, leaf
from convexlaw.theory._sorted_l1_kernels import dual_norm, sort_decreasing

# inlined from other files: 4cc943426918

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ALIVE = -1
DEAD = -2


@leaf
def load(lam: Floats, cum: Floats, first: int, size: int) -> float:
    """Sum of lam over ``size`` ranks; short ranges directly, as differences of cum lose digits."""
    if size > 4:
        return float(cum[first + size] - cum[first])
    total = 0.0
    for i in range(first, first + size):
        total += lam[i]
    return total


@leaf
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
            if t > v or v == 0.0:
                # behind a cluster at zero there is no place for t > 0
                break
            down = first + sizes[j]
            further = (a - load(lam, cum, down, size)) / h
            if further >= v:
                return v, i + 1, True
            first = down
            t = further
            i += 1
    return max(t, 0.0), i, False


@leaf
def renumber(seq: Ints, pos: Ints, rank: Ints, sizes: Ints, first: int, last: int) -> None:
    """Recompute pos and rank for the places first..last-1."""
    at = 0 if first == 0 else rank[first - 1] + sizes[seq[first - 1]]
    for i in range(first, last):
        j = seq[i]
        pos[j] = i
        rank[i] = at
        at += sizes[j]


@leaf
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


@leaf
def drop(seq: Ints, pos: Ints, rank: Ints, sizes: Ints, k: int, live: int) -> None:
    """Remove the cluster at place k from a sequence of ``live``."""
    for i in range(k, live - 1):
        seq[i] = seq[i + 1]
    renumber(seq, pos, rank, sizes, k, live - 1)


@kernel
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

    With the dual point s r, gap = (1 - s)^2 r'r / 2 + (penalty - s b'g): no difference of large numbers but
    the last, which is one of nearly equal sums. ``rss`` < 0: r'r from z'z - b'q - b'g. out = penalty, r'r,
    s.
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


@leaf
def coefficients(order: Ints, start: Ints, value: Floats, m: int, sign: Floats, out: Floats) -> None:
    """Write the coefficients by slot into ``out``."""
    for i in range(out.size):
        out[i] = 0.0
    for k in range(m):
        for i in range(start[k], start[k + 1]):
            out[order[i]] = value[k] * sign[order[i]]


@kernel
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


@kernel
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

    ``into[k]`` is ALIVE, DEAD (zero) or the slot that cluster k merged into, with the relative sign
    ``rel[k]``.
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
