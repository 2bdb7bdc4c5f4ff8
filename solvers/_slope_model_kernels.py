"""Compiled descent on a Gram matrix without a return to Python between its steps, for few clusters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers._slope_kernels import ALIVE, certificate, expand
from convexlaw.solvers._slope_newton_kernels import advance
from convexlaw.solvers._slope_reduce_kernels import gram_pull, gram_reduce, pulls
from convexlaw.solvers._slope_sweep_kernels import sweep
from convexlaw.theory._jit import kernel, leaf

# inlined from other files: 3a9440717b76

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@leaf
def cholesky(A: Floats, m: int, floor: float) -> bool:
    """Factor A = F'F in place, F in the upper triangle; False where a pivot is not positive.

    Pivots are at least ``floor`` times the trace.
    """
    least = 0.0
    for k in range(m):
        least += floor * A[k, k]
    for k in range(m):
        pivot = max(A[k, k], least)
        if not pivot > 0.0:
            return False
        pivot = math.sqrt(pivot)
        A[k, k] = pivot
        for j in range(k + 1, m):
            A[k, j] /= pivot
        for i in range(k + 1, m):
            f = A[k, i]
            for j in range(i, m):
                A[i, j] -= f * A[k, j]
    return True


@leaf
def cholesky_solve(F: Floats, m: int, x: Floats) -> None:
    """Solve F'F x = x in place."""
    for k in range(m):
        x[k] /= F[k, k]
        for j in range(k + 1, m):
            x[j] -= F[k, j] * x[k]
    for k in range(m - 1, -1, -1):
        for j in range(k + 1, m):
            x[k] -= F[k, j] * x[j]
        x[k] /= F[k, k]


@kernel
def newton_step(
    G: Floats,
    g: Floats,
    order: Ints,
    start: Ints,
    value: Floats,
    m: int,
    sign: Floats,
    lam: Floats,
    cum: Floats,
    progress: Floats,
) -> int:
    """Newton step on the problem reduced to clusters; how many are left, -1 where its Hessian is singular."""
    H = np.empty((m, m))
    grad = np.empty(m)
    gram_reduce(G, g, order, start, m, sign, H, grad)
    c = value[:m].copy()
    sizes = start[1 : m + 1] - start[:m]
    seq = np.arange(m)
    pos = np.arange(m)
    rank = start[:m].copy()
    into = np.full(m, ALIVE)
    rel = np.ones(m)
    pull = np.empty(m)
    pulls(grad, c, sizes, seq, rank, m, lam, cum, pull)
    factor = H.copy()
    if not cholesky(factor, m, 0.0):
        return -1
    for k in range(m):
        if factor[k, k] ** 2 <= 1e-12 * m * H[k, k]:
            return -1
    step = pull.copy()
    cholesky_solve(factor, m, step)
    live = advance(
        H, grad, c, sizes, seq, pos, rank, m, m, lam, cum, into, rel, pull, step, 1.0, True, progress
    )
    return int(expand(order, start, value, m, sign, c, seq, live, into, rel))


@kernel
def alternate(
    w: int,
    G: Floats,
    q: Floats,
    norm2: Floats,
    energy: float,
    pull: Floats,
    order: Ints,
    start: Ints,
    value: Floats,
    m: int,
    sign: Floats,
    lam: Floats,
    cum: Floats,
    slack: float,
    goal: float,
    limit: int,
    most: int,
    turn: bool,
    spent: Ints,
) -> int:
    """Take turns of epochs of coordinate descent over clusters and Newton steps on the clusters.

    Ends at a gap of ``goal``, after ``limit`` epochs and steps, where there are more than ``most`` clusters,
    or where the gap no longer falls. ``turn``: a Newton step comes first. The partition and its pull are
    updated in place; ``spent`` = epochs, steps. Returns the number of clusters.
    """
    progress = np.zeros(3)
    out = np.zeros(3)
    none = np.zeros(1)
    nothing = np.zeros(1, np.int64)
    allowed, newton = True, False
    best, before = np.inf, np.inf
    idle = 0
    kept = m
    kept_order, kept_start, kept_value, kept_sign = order, start, value, sign
    while True:
        gap = certificate(w, order, start, value, m, sign, pull, q, lam, cum, energy, -1.0, out)
        objective = 0.5 * out[1] + out[0]
        if newton and not objective <= before + 1e-10 * energy:
            # rounding made an ill-conditioned step climb: back, and no more of them
            m, allowed, newton = kept, False, False
            order[:], start[:], value[:], sign[:] = kept_order, kept_start, kept_value, kept_sign
            gram_pull(w, G, q, order, start, value, m, sign, pull)
            continue
        before = objective
        idle = 0 if gap < 0.9 * best else idle + 1
        best = min(best, gap)
        if gap <= goal or spent[0] + spent[1] >= limit or m > most or idle > 30:
            return m
        newton = turn and allowed
        if newton:
            kept = m
            kept_order, kept_start = order.copy(), start.copy()
            kept_value, kept_sign = value.copy(), sign.copy()
            left = newton_step(G, pull, order, start, value, m, sign, lam, cum, progress)
            spent[1] += 1
            turn = False
            if left < 0:
                newton = False
            else:
                m = left
                gram_pull(w, G, q, order, start, value, m, sign, pull)
                continue
        # as many epochs as a Newton step costs
        epochs = 3 + m * m // (6 * w)
        m = sweep(
            0, 1, w, G, none, nothing, nothing, norm2, none, none, 0.0, none, none, pull, order, start,
            value, m, sign, lam, cum, slack, epochs, progress,
        )  # fmt: skip
        spent[0] += int(progress[1])
        turn = m > 0
