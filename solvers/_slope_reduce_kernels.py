"""Compiled kernels for the cluster-reduced problem: building it, descent on it.

The reduced problem has one signed variable c for each cluster; ``H`` is its (m, m) Hessian and
``grad = d - H c``. A merged cluster keeps the slot of the other (``into``, with the relative sign ``rel``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers._slope_kernels import ALIVE, DEAD, drop, load, move, place, renumber
from convexlaw.theory._jit import kernel, leaf

# inlined from other files: a830b3b7abfd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@leaf
def gram_pull(
    w: int, G: Floats, q: Floats, order: Ints, start: Ints, value: Floats, m: int, sign: Floats, g: Floats
) -> None:
    """Compute g = q - G b from scratch."""
    for j in range(w):
        g[j] = q[j]
    for k in range(m):
        for i in range(start[k], start[k + 1]):
            a = order[i]
            v = value[k] * sign[a]
            for j in range(w):
                g[j] -= v * G[a, j]


@kernel
def gram_reduce(
    G: Floats, g: Floats, order: Ints, start: Ints, m: int, sign: Floats, H: Floats, grad: Floats
) -> None:
    """Reduced Hessian U'GU and reduced pull U'g of a partition with cluster indicators U."""
    nonzero = start[m]
    row = np.empty(nonzero, np.float64)
    for k in range(m):
        first = start[k]
        for i in range(first, start[k + 1]):
            a = order[i]
            s = sign[a]
            if i == first:
                for j in range(nonzero):
                    row[j] = s * G[a, order[j]]
            else:
                for j in range(nonzero):
                    row[j] += s * G[a, order[j]]
        for j in range(nonzero):
            row[j] *= sign[order[j]]
        pull = 0.0
        for i in range(first, start[k + 1]):
            pull += sign[order[i]] * g[order[i]]
        grad[k] = pull
        for x in range(m):
            total = 0.0
            for i in range(start[x], start[x + 1]):
                total += row[i]
            H[k, x] = total


@leaf
def column_sums(
    n: int, columns: Floats, order: Ints, start: Ints, origin: Ints, m: int, sign: Floats, A: Floats
) -> None:
    """Signed column sums of the clusters with origin[k] < 0 as rows of A (m, n), from rows of (w, n)."""
    for k in range(m):
        if origin[k] >= 0:
            continue
        for p in range(n):
            A[k, p] = 0.0
        for i in range(start[k], start[k + 1]):
            a = order[i]
            s = sign[a]
            for p in range(n):
                A[k, p] += s * columns[a, p]


@leaf
def pulls(
    grad: Floats,
    c: Floats,
    sizes: Ints,
    seq: Ints,
    rank: Ints,
    live: int,
    lam: Floats,
    cum: Floats,
    out: Floats,
) -> None:
    """Reduced pull less the penalty, in the order of seq: what a Newton step must take to zero."""
    for i in range(live):
        j = seq[i]
        weight = load(lam, cum, rank[i], sizes[j])
        out[i] = grad[j] - weight if c[j] > 0.0 else grad[j] + weight


@leaf
def gather(H: Floats, seq: Ints, live: int, out: Floats) -> None:
    """Living part of H in the order of seq."""
    for i in range(live):
        row = seq[i]
        for j in range(live):
            out[i, j] = H[row, seq[j]]


@leaf
def restore(H: Floats, diagonal: Floats) -> None:
    """Copy the upper triangle of H to the lower, and put the diagonal back."""
    m = diagonal.size
    for i in range(m):
        for j in range(i):
            H[i, j] = H[j, i]
        H[i, i] = diagonal[i]


@leaf
def merge(H: Floats, grad: Floats, m: int, gone: int, kept: int, r: float) -> None:
    """Fold slot ``gone`` into ``kept`` with relative sign r: rows, columns, pull."""
    for x in range(m):
        H[kept, x] += r * H[gone, x]
    for x in range(m):
        H[x, kept] = H[kept, x]
    H[kept, kept] += r * H[kept, gone]
    grad[kept] += r * grad[gone]


@leaf
def descend(
    H: Floats,
    grad: Floats,
    c: Floats,
    sizes: Ints,
    seq: Ints,
    pos: Ints,
    rank: Ints,
    live: int,
    m: int,
    lam: Floats,
    cum: Floats,
    into: Ints,
    rel: Floats,
    epochs: int,
    progress: Floats,
) -> int:
    """Cyclic descent over the clusters of the reduced problem, with exact merges; returns how many live."""
    for epoch in range(epochs):
        decrease = 0.0
        for j in range(m):
            if into[j] != ALIVE:
                continue
            k = pos[j]
            old = c[j]
            h = H[j, j]
            size = sizes[j]
            new = 0.0
            to = k
            merges = False
            if h > 0.0:
                z = h * old + grad[j]
                if old != 0.0 and (old > 0.0) != (z > 0.0):
                    # the magnitude passes through zero
                    c[j] = 0.0
                    move(seq, pos, rank, sizes, k, live - 1)
                    k = live - 1
                t, to, merges = place(abs(z), h, size, k, c, sizes, seq, rank, live, lam, cum)
                new = t if z > 0.0 else -t
            delta = new - old
            c[j] = new
            if delta != 0.0:
                decrease += h * delta * delta
                for y in range(m):
                    grad[y] -= delta * H[j, y]
            if new == 0.0:
                into[j] = DEAD
                drop(seq, pos, rank, sizes, k, live)
                live -= 1
            elif merges:
                other = seq[to]
                r = 1.0 if (c[other] > 0.0) == (new > 0.0) else -1.0
                into[j] = other
                rel[j] = r
                sizes[other] += size
                merge(H, grad, m, j, other, r)
                drop(seq, pos, rank, sizes, k, live)
                live -= 1
                renumber(seq, pos, rank, sizes, min(k, pos[other]), live)
            elif to != k:
                move(seq, pos, rank, sizes, k, to)
        progress[0] = decrease
        progress[1] = epoch + 1
        if decrease == 0.0:
            break
    return live
