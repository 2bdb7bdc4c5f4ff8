"""Compiled proximal Newton method for small dense problems, without a return to Python between its steps.

All columns are in the working set. ``U`` (p, n) holds the seen columns. Updated in place: coefficients ``b``
(m p,), predictor ``eta``, weighted residuals ``R`` and curvatures ``h`` (n, m), and the pull ``g`` (m p,).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers._glm_kernels import (
    MULTINOMIAL,
    divergence,
    model,
    residual_energy,
    settle,
    softmax_divergence,
    softmax_settle,
)
from convexlaw.solvers._slope_kernels import coefficients, partition_of
from convexlaw.solvers._slope_model_kernels import alternate, cholesky, cholesky_solve
from convexlaw.theory._jit import kernel
from convexlaw.theory._sorted_l1_kernels import dual_norm, norm_value

# inlined from other files: ae8df9a64366

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@kernel
def hessian(kind: int, U: Floats, h: Floats, weights: Floats, free: bool, reference: bool, G: Floats) -> None:
    """Second derivatives of the loss in the coefficients, intercepts eliminated, from curvatures."""
    p, n = U.shape
    m = h.shape[1]
    C = np.zeros((m * p, m))
    M = np.zeros((m, m))
    weighted = np.empty((p, n))
    c = np.empty(n)
    for k in range(m):
        for other in range(k + 1):
            for i in range(n):
                if kind != MULTINOMIAL:
                    c[i] = h[i, 0]
                elif k == other:
                    c[i] = weights[i] * h[i, k] * (1.0 - h[i, k])
                else:
                    c[i] = -weights[i] * h[i, k] * h[i, other]
            for j in range(p):
                for i in range(n):
                    weighted[j, i] = U[j, i] * c[i]
            block = np.dot(weighted, U.T)
            for j in range(p):
                for x in range(j + 1 if k == other else p):
                    G[k * p + j, other * p + x] = block[j, x]
                    G[other * p + x, k * p + j] = block[j, x]
            if free:
                M[k, other] = M[other, k] = c.sum()
                along = np.dot(U, c)
                for j in range(p):
                    C[k * p + j, other] = along[j]
                    C[other * p + j, k] = along[j]
    if not free:
        return
    if kind == MULTINOMIAL and not reference:
        # a common shift of all intercepts is seen by nothing
        M += np.trace(M) / m**2
    cholesky(M, m, 1e-15)
    Z = np.empty((m, m * p))
    right = np.empty(m)
    for j in range(m * p):
        for k in range(m):
            right[k] = C[j, k]
        cholesky_solve(M, m, right)
        for k in range(m):
            Z[k, j] = right[k]
    G -= np.dot(C, Z)


@kernel
def solve_model(
    G: Floats,
    g: Floats,
    b: Floats,
    loss_energy: float,
    lam: Floats,
    cum: Floats,
    goal: float,
    limit: int,
    new: Floats,
) -> int:
    """Minimise the model with Hessian G and pull g at b, plus the penalty, to a gap of ``goal``.

    Fills ``new``; returns the epochs and steps spent.
    """
    w = b.size
    order = np.empty(w, np.int64)
    start = np.zeros(w + 2, np.int64)
    value = np.zeros(w + 2)
    sign = np.empty(w)
    m = partition_of(b, order, start, value, sign)
    q = np.dot(G, b) + g
    energy = max(np.dot(b, q + g) + loss_energy, 0.0)
    pull = g.copy()
    norm2 = np.diag(G).copy()
    slack = 1e-15 * np.abs(q).max()
    spent = np.zeros(2, np.int64)
    m = alternate(
        w, G, q, norm2, energy, pull, order, start, value, m, sign, lam, cum, slack, goal, limit, w, m > 0,
        spent,
    )  # fmt: skip
    coefficients(order, start, value, m, sign, new)
    return int(spent[0] + spent[1])


@kernel
def evaluate(
    kind: int,
    Y: Floats,
    eta: Floats,
    weights: Floats,
    size: float,
    free: bool,
    reference: bool,
    R: Floats,
    h: Floats,
) -> float:
    """Loss of eta, to which the best intercepts are added in place; fills residuals and curvatures."""
    if kind == MULTINOMIAL:
        return float(softmax_settle(Y, eta, weights, reference, free, R, h))
    n = Y.shape[0]
    c, loss = settle(kind, Y.reshape(n), eta.reshape(n), weights, size, free, R.reshape(n), h.reshape(n))
    eta += c
    return float(loss)


@kernel
def full_gap(
    kind: int,
    Y: Floats,
    eta: Floats,
    weights: Floats,
    size: float,
    reference: bool,
    b: Floats,
    g: Floats,
    lam: Floats,
    goal: float,
) -> float:
    """Duality gap over all columns; above ``goal``, a lower bound of it."""
    norm = dual_norm(g, lam)
    s = min(1.0, 1.0 / norm) if norm > 0.0 else 1.0
    gap = norm_value(b, lam) - s * np.dot(b, g)
    if s < 1.0 and gap <= 4.0 * goal:
        if kind == MULTINOMIAL:
            gap += softmax_divergence(Y, eta, weights, reference, s)
        else:
            n = Y.shape[0]
            gap += divergence(kind, Y.reshape(n), eta.reshape(n), weights, size, s)
    return float(gap)


@kernel
def solve_small(
    kind: int,
    Y: Floats,
    weights: Floats,
    size: float,
    free: bool,
    reference: bool,
    U: Floats,
    lam: Floats,
    cum: Floats,
    goal: float,
    limit: int,
    b: Floats,
    eta: Floats,
    R: Floats,
    h: Floats,
    g: Floats,
    state: Floats,
) -> float:
    """Proximal Newton steps to a duality gap of ``goal``, or as far as they go; returns the gap.

    state = loss, accuracy of the models as a share of the gap, epochs and steps; ``limit`` bounds these.
    """
    n, m = Y.shape
    p = U.shape[0]
    loss, share = state[0], state[1]
    G = np.empty((m * p, m * p))
    curvatures = np.empty((n, m))
    change = np.empty((n, m))
    eta_new, R_new, h_new = np.empty((n, m)), np.empty((n, m)), np.empty((n, m))
    new = np.empty(m * p)
    rounds = 0
    safe = False
    gap = full_gap(kind, Y, eta, weights, size, reference, b, g, lam, goal)
    best = np.inf
    idle = 0
    while gap > goal and rounds < limit and idle <= 12:
        model(kind, Y, eta, h, weights, size, safe, curvatures)
        hessian(kind, U, curvatures, weights, free, reference, G)
        energy = residual_energy(kind, curvatures, R, weights, reference)
        spent = solve_model(G, g, b, energy, lam, cum, share * gap, limit - rounds, new)
        rounds += max(1, spent)
        d = new - b
        before = norm_value(b, lam)
        fall = norm_value(new, lam) - before - np.dot(g, d)
        noise = 1e-14 * (loss + before)
        t, value = 0.0, loss
        moves = fall <= noise and np.any(d != 0.0)
        if not np.any(d != 0.0):
            t = 1.0
        elif moves:
            for k in range(m):
                change[:, k] = np.dot(d[k * p : (k + 1) * p], U)
            t = 1.0
            for _ in range(40):
                eta_new[:] = eta + t * change
                value = evaluate(kind, Y, eta_new, weights, size, free, reference, R_new, h_new)
                if t < 1.0:
                    new[:] = b + t * d
                if value + norm_value(new, lam) <= loss + before + min(1e-3 * t * fall, 0.0) + noise:
                    break
                t *= 0.5
            else:
                t = 0.0
        if moves and t > 0.0:
            b[:], eta[:], R[:], h[:] = new, eta_new, R_new, h_new
            loss = value
            for k in range(m):
                g[k * p : (k + 1) * p] = np.dot(U, R[:, k].copy())
        last = gap
        gap = full_gap(kind, Y, eta, weights, size, reference, b, g, lam, goal)
        idle = 0 if gap < 0.5 * best else idle + 1
        best = min(best, gap)
        if t == 1.0 and gap > 0.5 * last and -fall < 0.1 * last:
            # the model had little to give though the gap is large: it falls with the root of the model's
            share = max(1e-1 * share, 1e-12)
            safe = False
        elif t < 0.3:
            # where the curvature misleads: a bound on it, for once
            if safe and t == 0.0:
                break
            safe = True
        else:
            safe = False
    state[0], state[1], state[2] = loss, share, rounds
    return float(gap)
