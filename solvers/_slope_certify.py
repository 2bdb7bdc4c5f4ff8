"""Duality gaps of many coefficient vectors at once, from the data themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers._slope_columns import BLOCK
from convexlaw.theory._sorted_l1_kernels import dual_norm, norm_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_design import Design

    Vector = NDArray[np.float64]


def gaps(design: Design, target: Vector, B: Vector, lam: Vector) -> Vector:
    """Duality gaps over all columns.

    Parameters
    ----------
    design : Design
    target : ndarray, shape (n,)
    B : ndarray, shape (p, k)
        Coefficients on the seen columns.
    lam : ndarray, shape (p, k)
        Their penalties by rank.

    Returns
    -------
    ndarray, shape (k,)
    """
    k = B.shape[1]
    if k == 0:
        return np.zeros(0)
    if design.sparse or k < 4:
        residuals = [target - design.product(np.ascontiguousarray(B[:, i])) for i in range(k)]
        pulls = np.stack([design.pull(r) for r in residuals], axis=1)
        rss = np.array([r @ r for r in residuals])
        along = np.array([r @ target for r in residuals])
    else:
        pulls = np.zeros_like(B)
        rss, along = np.zeros(k), np.zeros(k)
        coef = B if design.scale is None else B / design.scale[:, None]
        step = max(1, 4 * BLOCK // design.p)
        for a in range(0, design.n, step):
            block = design.X[a : a + step].astype(np.float64)
            if design.shift is not None:
                block -= design.shift
            block *= design.root[a : a + step, None]
            z = target[a : a + step]
            r = z[:, None] - block @ coef
            pulls += block.T @ r
            rss += np.einsum("ij,ij->j", r, r)
            along += z @ r
        if design.scale is not None:
            pulls /= design.scale[:, None]
        pulls[design.flat] = 0.0
    out = np.empty(k)
    for i in range(k):
        penalty = np.ascontiguousarray(lam[:, i])
        norm = dual_norm(np.ascontiguousarray(pulls[:, i]), penalty)
        s = 1.0 / norm if norm > 0.0 else 1.0
        if rss[i] > 0.0:
            s = min(s, max(along[i] / rss[i], 0.0))
        value = norm_value(np.ascontiguousarray(B[:, i]), penalty)
        out[i] = 0.5 * (1.0 - s) ** 2 * rss[i] + (value - s * float(B[:, i] @ pulls[:, i]))
    return out
