"""Compiled kernel of cluster coordinate descent on a working set, on a Gram matrix or on columns.

mode 0: ``G`` holds the Gram matrix, the pull g = q - G b is updated row by row.
mode 1: dense columns, column j at data[j n:(j + 1) n]; the residual is updated, g is recomputed every epoch.
mode 2: sparse columns (data, rows, ptr); a column stands for x_j - shift_j root. The residual is kept as
        residual + acc[0] root, so that centring never fills it in; acc[1] = root' (residual + acc[0] root),
        and ``dot[j]`` = root' x_j.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers._slope_kernels import ALIVE, DEAD, drop, move, place, renumber
from convexlaw.solvers._slope_split_kernels import split
from convexlaw.theory._jit import kernel, leaf

# inlined from other files: 791f10dd3d15

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@leaf
def correlation(
    mode: int,
    n: int,
    data: Floats,
    rows: Ints,
    ptr: Ints,
    shift: Floats,
    dot: Floats,
    residual: Floats,
    acc: Floats,
    j: int,
) -> float:
    """Pull of column j on the residual."""
    total = 0.0
    if mode == 1:
        off = j * n
        for i in range(n):
            total += data[off + i] * residual[i]
        return total
    for p in range(ptr[j], ptr[j + 1]):
        total += data[p] * residual[rows[p]]
    return float(total + acc[0] * dot[j] - shift[j] * acc[1])


@leaf
def take(
    mode: int,
    n: int,
    data: Floats,
    rows: Ints,
    ptr: Ints,
    shift: Floats,
    dot: Floats,
    mass: float,
    residual: Floats,
    acc: Floats,
    j: int,
    f: float,
) -> None:
    """Subtract f times column j from the residual."""
    if mode == 1:
        off = j * n
        for i in range(n):
            residual[i] -= f * data[off + i]
        return
    for p in range(ptr[j], ptr[j + 1]):
        residual[rows[p]] -= f * data[p]
    acc[0] += f * shift[j]
    acc[1] -= f * (dot[j] - shift[j] * mass)


@leaf
def curvature(
    mode: int,
    n: int,
    G: Floats,
    data: Floats,
    rows: Ints,
    ptr: Ints,
    shift: Floats,
    dot: Floats,
    mass: float,
    head: int,
    link: Ints,
    sign: Floats,
    work: Floats,
) -> float:
    """Squared norm of the signed sum of the columns in the list from ``head``; work is left zero."""
    total = 0.0
    i = head
    if mode == 0:
        while i >= 0:
            row = G[i, i]
            j = head
            while j != i:
                row += 2.0 * sign[i] * sign[j] * G[i, j]
                j = link[j]
            total += row
            i = link[i]
        return total
    if mode == 1:
        while i >= 0:
            off = i * n
            for p in range(n):
                work[p] += sign[i] * data[off + p]
            i = link[i]
        for p in range(n):
            total += work[p] * work[p]
            work[p] = 0.0
        return total
    shifts = 0.0
    along = 0.0
    while i >= 0:
        shifts += sign[i] * shift[i]
        along += sign[i] * dot[i]
        for p in range(ptr[i], ptr[i + 1]):
            work[rows[p]] += sign[i] * data[p]
        i = link[i]
    i = head
    while i >= 0:
        for p in range(ptr[i], ptr[i + 1]):
            total += work[rows[p]] * work[rows[p]]
            work[rows[p]] = 0.0
        i = link[i]
    return max(total - 2.0 * shifts * along + shifts * shifts * mass, 0.0)


@kernel
def sweep(
    mode: int,
    n: int,
    w: int,
    G: Floats,
    data: Floats,
    rows: Ints,
    ptr: Ints,
    norm2: Floats,
    shift: Floats,
    dot: Floats,
    mass: float,
    residual: Floats,
    acc: Floats,
    g: Floats,
    order: Ints,
    start: Ints,
    value: Floats,
    m: int,
    sign: Floats,
    lam: Floats,
    cum: Floats,
    slack: float,
    epochs: int,
    progress: Floats,
) -> int:
    """Cyclic descent over the clusters with exact merges, every epoch opened by a split.

    ``norm2`` holds the squared norms of the columns. Returns the number of clusters; progress = (decrease of
    the last epoch, epochs done, changes of the pattern in the last epoch).
    """
    new_start = np.empty(w + 2, np.int64)
    new_value = np.empty(w + 1, np.float64)
    origin = np.empty(w + 1, np.int64)
    h = np.empty(w + 1, np.float64)
    old_h = np.empty(w + 1, np.float64)
    c = np.empty(w + 1, np.float64)
    head = np.empty(w + 1, np.int64)
    tail = np.empty(w + 1, np.int64)
    link = np.empty(w, np.int64)
    sizes = np.empty(w + 1, np.int64)
    seq = np.empty(w + 1, np.int64)
    pos = np.empty(w + 1, np.int64)
    rank = np.empty(w + 1, np.int64)
    into = np.empty(w + 1, np.int64)
    work = np.zeros(n if mode > 0 else 1, np.float64)
    for k in range(m):
        old_h[k] = -1.0
    for epoch in range(epochs):
        if mode > 0:
            for j in range(w):
                g[j] = correlation(mode, n, data, rows, ptr, shift, dot, residual, acc, j)
        before = m
        m = split(w, order, start, value, m, sign, g, lam, slack, 0.0, new_start, new_value, origin)
        changes = m - before
        for k in range(m):
            first = new_start[k]
            last = new_start[k + 1]
            start[k] = first
            head[k] = order[first]
            tail[k] = order[last - 1]
            for i in range(first, last - 1):
                link[order[i]] = order[i + 1]
            link[order[last - 1]] = -1
            sizes[k] = last - first
            c[k] = new_value[k]
            seq[k] = k
            pos[k] = k
            rank[k] = first
            into[k] = ALIVE
            if last - first == 1:
                h[k] = norm2[order[first]]
            elif origin[k] >= 0 and old_h[origin[k]] >= 0.0:
                h[k] = old_h[origin[k]]
            else:
                h[k] = curvature(mode, n, G, data, rows, ptr, shift, dot, mass, head[k], link, sign, work)
        start[m] = new_start[m]
        live = m
        decrease = 0.0
        for a in range(m):
            if into[a] != ALIVE:
                continue
            k = pos[a]
            old = c[a]
            size = sizes[a]
            new = 0.0
            to = k
            merges = False
            if h[a] > 0.0:
                pull = 0.0
                i = head[a]
                while i >= 0:
                    if mode == 0:
                        pull += sign[i] * g[i]
                    else:
                        pull += sign[i] * correlation(mode, n, data, rows, ptr, shift, dot, residual, acc, i)
                    i = link[i]
                z = h[a] * old + pull
                if old != 0.0 and (old > 0.0) != (z > 0.0):
                    # the magnitude passes through zero
                    c[a] = 0.0
                    move(seq, pos, rank, sizes, k, live - 1)
                    k = live - 1
                t, to, merges = place(abs(z), h[a], size, k, c, sizes, seq, rank, live, lam, cum)
                new = t if z > 0.0 else -t
            delta = new - old
            c[a] = new
            if delta != 0.0:
                decrease += h[a] * delta * delta
                i = head[a]
                while i >= 0:
                    f = delta * sign[i]
                    if mode == 0:
                        for y in range(w):
                            g[y] -= f * G[i, y]
                    else:
                        take(mode, n, data, rows, ptr, shift, dot, mass, residual, acc, i, f)
                    i = link[i]
            if new == 0.0:
                into[a] = DEAD
                drop(seq, pos, rank, sizes, k, live)
                live -= 1
                changes += 1
            elif merges:
                b = seq[to]
                if (c[b] > 0.0) != (new > 0.0):
                    i = head[a]
                    while i >= 0:
                        sign[i] = -sign[i]
                        i = link[i]
                if mode == 0:
                    i = head[a]
                    while i >= 0:
                        j = head[b]
                        row = 0.0
                        while j >= 0:
                            row += sign[j] * G[i, j]
                            j = link[j]
                        h[b] += 2.0 * sign[i] * row
                        i = link[i]
                    h[b] += h[a]
                link[tail[b]] = head[a]
                tail[b] = tail[a]
                sizes[b] += size
                if mode > 0:
                    h[b] = curvature(mode, n, G, data, rows, ptr, shift, dot, mass, head[b], link, sign, work)
                into[a] = b
                drop(seq, pos, rank, sizes, k, live)
                live -= 1
                renumber(seq, pos, rank, sizes, min(k, pos[b]), live)
                changes += 1
            elif to != k:
                move(seq, pos, rank, sizes, k, to)
        # back to a partition: the living in their order, then the dead, then the old zeros where they are
        at = 0
        for i in range(live):
            a = seq[i]
            start[i] = at
            value[i] = abs(c[a])
            old_h[i] = h[a]
            flip = c[a] < 0.0
            j = head[a]
            while j >= 0:
                order[at] = j
                if flip:
                    sign[j] = -sign[j]
                at += 1
                j = link[j]
        start[live] = at
        for a in range(m):
            if into[a] == DEAD:
                j = head[a]
                while j >= 0:
                    order[at] = j
                    at += 1
                    j = link[j]
        m = live
        progress[0] = decrease
        progress[1] = epoch + 1
        progress[2] = changes
        if decrease == 0.0:
            break
    if mode > 0:
        for j in range(w):
            g[j] = correlation(mode, n, data, rows, ptr, shift, dot, residual, acc, j)
    return m
