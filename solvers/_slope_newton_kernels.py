"""Compiled kernels for Newton's direction on the reduced problem: its line search, and singular Hessians.

The arrays are those of ``_slope_reduce_kernels``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers._slope_kernels import ALIVE, DEAD, load, renumber
from convexlaw.solvers._slope_reduce_kernels import merge, pulls
from convexlaw.theory._jit import kernel, leaf

# inlined from other files: c6c01bdc72e4

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@leaf
def meeting(i: int, live: int, now: float, base: float, size: Floats, speed: Floats, seq: Ints) -> float:
    """Time at which the cluster at place i meets the one below it, or zero; infinite where it does not."""
    a = seq[i]
    room = size[a] + (now - base) * speed[a]
    fall = -speed[a]
    if i + 1 < live:
        b = seq[i + 1]
        room -= size[b] + (now - base) * speed[b]
        fall += speed[b]
    if fall <= 0.0:
        return np.inf
    return float(now + max(room, 0.0) / fall)


@kernel
def advance(
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
    pull: Floats,
    step: Floats,
    limit: float,
    bend: bool,
    progress: Floats,
) -> int:
    """Exact line search along a Newton direction, bent where clusters meet; returns how many are left.

    ``step`` (in the order of seq) solves H step = pull, ``limit`` is 1; or any descent direction with pull =
    H step, and no limit. Along it the objective is a convex piecewise
    quadratic whose kinks are the swaps of neighbours and the passages through zero. Where a kink is the
    minimiser, the two clusters merge (or the one dies) and the search goes on along what is left of the
    direction. progress = (length, 1 if nothing was met, number of kinks).
    """
    D = np.zeros(m, np.float64)
    HD = np.zeros(m, np.float64)
    size = np.zeros(m, np.float64)
    speed = np.zeros(m, np.float64)
    up = np.zeros(m, np.float64)
    when = np.empty(live, np.float64)
    for i in range(live):
        a = seq[i]
        up[a] = 1.0 if c[a] > 0.0 else -1.0
        D[a] = step[i]
        HD[a] = pull[i]
        size[a] = abs(c[a])
        speed[a] = up[a] * step[i]
    now = 0.0
    base = 0.0
    kinks = 0
    fresh = True
    slope = 0.0
    curve = 0.0
    while live > 0:
        if fresh:
            # after a merge: values, pull and slope at the time now
            slope = 0.0
            curve = 0.0
            for i in range(live):
                a = seq[i]
                slope -= (grad[a] - up[a] * load(lam, cum, rank[i], sizes[a])) * D[a]
                curve += D[a] * HD[a]
            if slope >= 0.0:
                break
            for i in range(live):
                when[i] = meeting(i, live, now, base, size, speed, seq)
            fresh = False
        best = limit
        tie = -1
        for i in range(live):
            if when[i] < best:
                best = when[i]
                tie = i
        if tie < 0 or slope + curve * (best - now) >= 0.0:
            if curve > 0.0:
                best = min(best, now - slope / curve)
            if best < np.inf:
                now = best
            break
        slope += curve * (best - now)
        now = best
        kinks += 1
        a = seq[tie]
        na = sizes[a]
        last = tie == live - 1
        b = a if last else seq[tie + 1]
        nb = sizes[b]
        first = rank[tie]
        if last:
            jump = -2.0 * speed[a] * load(lam, cum, first, na)
        else:
            jump = speed[b] * load(lam, cum, first, nb) + speed[a] * load(lam, cum, first + nb, na)
            jump -= speed[a] * load(lam, cum, first, na) + speed[b] * load(lam, cum, first + na, nb)
        if slope + jump < 0.0:
            slope += jump
            if last:
                up[a] = -up[a]
                speed[a] = -speed[a]
                size[a] = -size[a]
            else:
                seq[tie] = b
                seq[tie + 1] = a
                rank[tie + 1] = first + nb
                if tie + 2 <= live:
                    when[tie + 1] = meeting(tie + 1, live, now, base, size, speed, seq)
            when[tie] = np.inf
            if tie > 0:
                when[tie - 1] = meeting(tie - 1, live, now, base, size, speed, seq)
            continue
        for i in range(live):
            j = seq[i]
            size[j] += (now - base) * speed[j]
            grad[j] -= (now - base) * HD[j]
        base = now
        if last:
            for i in range(live):
                HD[seq[i]] -= D[a] * H[a, seq[i]]
            into[a] = DEAD
            c[a] = 0.0
        else:
            r = up[a] * up[b]
            size[a] = size[b]
            v = (H[a, a] * r * D[a] + H[b, b] * D[b]) / (H[a, a] + H[b, b])
            da = r * v - D[a]
            db = v - D[b]
            for i in range(live):
                j = seq[i]
                HD[j] += da * H[a, j] + db * H[b, j]
            HD[b] += r * HD[a]
            D[b] = v
            speed[b] = up[b] * v
            into[a] = b
            rel[a] = r
            sizes[b] += na
            merge(H, grad, m, a, b, r)
        for i in range(tie, live - 1):
            seq[i] = seq[i + 1]
        live -= 1
        for i in range(tie, live):
            rank[i] = first if i == tie else rank[i - 1] + sizes[seq[i - 1]]
        if not bend:
            break
        fresh = True
    for i in range(live):
        j = seq[i]
        c[j] = up[j] * max(size[j] + (now - base) * speed[j], 0.0)
        grad[j] -= (now - base) * HD[j]
    renumber(seq, pos, rank, sizes, 0, live)
    progress[0] = now
    progress[1] = 1.0 if kinks == 0 and now == 1.0 else 0.0
    progress[2] = kinks
    return live


@leaf
def dot(a: Floats, b: Floats, m: int) -> float:
    """Inner product with four running sums, which the processor can overlap."""
    s0 = s1 = s2 = s3 = 0.0
    end = m - m % 4
    for i in range(0, end, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(end, m):
        s0 += a[i] * b[i]
    return s0 + s1 + s2 + s3


@kernel
def leave_null_space(
    N: Floats,
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
    progress: Floats,
) -> int:
    """Merge clusters along directions that the loss does not see; returns how many are left.

    The rows of ``N`` (k, live) span the null space of the living part of H, in the order of seq. The penalty
    falls linearly along such a direction up to a kink, where two clusters meet or one dies: a tie, which
    takes one direction from the span.
    """
    k = N.shape[0]
    width = live
    start = seq[:width].copy()
    place_of = np.full(m, -1, np.int64)
    for i in range(width):
        place_of[start[i]] = i
    counted = np.zeros(width, np.bool_)
    pull = np.zeros(width, np.float64)
    full = np.zeros(width, np.float64)
    along = np.zeros(width, np.float64)
    step = np.zeros(width, np.float64)
    while k > 0 and live > 0:
        pulls(grad, c, sizes, seq, rank, live, lam, cum, pull)
        for i in range(width):
            full[i] = 0.0
            along[i] = 0.0
        reach = 0.0
        for i in range(live):
            full[place_of[seq[i]]] = pull[i]
            reach = max(reach, abs(c[seq[i]]))
        for j in range(k):
            weight = dot(N[j], full, width)
            for i in range(width):
                along[i] += weight * N[j, i]
        top = 0.0
        for i in range(live):
            step[i] = along[place_of[seq[i]]]
            top = max(top, abs(step[i]))
            pull[i] = 0.0
        if top == 0.0:
            break
        before = live
        live = advance(
            H,
            grad,
            c,
            sizes,
            seq,
            pos,
            rank,
            live,
            m,
            lam,
            cum,
            into,
            rel,
            pull,
            step,
            4.0 * reach / top,
            False,
            progress,
        )
        if live == before:
            break
        for i in range(width):
            if into[start[i]] == ALIVE or counted[i]:
                continue
            # the tie is a row of the span that must vanish: eliminate it with the largest pivot
            counted[i] = True
            kept = into[start[i]]
            other = place_of[kept] if kept >= 0 else i
            r = rel[start[i]] if kept >= 0 else 0.0
            best = 0.0
            pivot = -1
            for j in range(k):
                here = abs(N[j, i] - r * N[j, other])
                if here > best:
                    best = here
                    pivot = j
            if pivot < 0:
                continue
            scale = N[pivot, i] - r * N[pivot, other]
            for j in range(k):
                if j != pivot:
                    f = (N[j, i] - r * N[j, other]) / scale
                    for x in range(width):
                        N[j, x] -= f * N[pivot, x]
            for x in range(width):
                N[pivot, x] = N[k - 1, x]
            k -= 1
    return live
