"""Least squares without a penalty, of minimal norm where it is not unique: SLOPE at alpha = 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_design import Design

    Vector = NDArray[np.float64]

# the largest n p that is solved by a singular value decomposition, and min(n, p) by an eigendecomposition
_SMALL = 20_000_000
_DIRECT = 3000


def least_squares(design: Design, target: Vector, gram: Vector | None = None) -> tuple[Vector, float]:
    """Minimise ``1/2 ||z - A b||^2``.

    Parameters
    ----------
    design : Design
    target : ndarray, shape (n,)
    gram : ndarray, shape (p, p), optional
        ``design.gram()`` where it is known.

    Returns
    -------
    b : ndarray, shape (p,)
    gap : float
        The objective less its minimum, as far as it can be lowered numerically.
    """
    if not design.sparse and design.n * design.p <= _SMALL:
        table = np.empty((design.p, design.n))
        design.columns(np.arange(design.p), table)
        b = np.asarray(np.linalg.lstsq(table.T, target)[0], dtype=np.float64)
        again = np.linalg.lstsq(table.T, target - b @ table)[0]
        step = again @ table
        b += again
        b[~table.any(axis=1)] = 0.0
        return b, 0.5 * float(step @ step)
    if min(design.n, design.p) > _DIRECT:
        return _iterative(design, target)
    if design.p <= design.n:
        values, vectors = np.linalg.eigh(design.gram() if gram is None else gram)
    else:
        values, vectors = np.linalg.eigh(_outer(design))
    kept = values > max(values[-1], 0.0) * 1e-13 * values.size
    values, vectors = values[kept], vectors[:, kept]

    def solve(r: Vector) -> tuple[Vector, float]:
        if design.p <= design.n:
            along = vectors.T @ design.pull(r)
            return vectors @ (along / values), 0.5 * float(along @ (along / values))
        along = vectors.T @ r
        return design.pull(vectors @ (along / values)), 0.5 * float(along @ along)

    b = np.zeros(design.p)
    gap = 0.0
    for _ in range(3):
        # the normal equations square the condition number: refine
        step, gap = solve(target - design.product(b) if b.any() else target)
        b = b + step
    _, gap = solve(target - design.product(b))
    return b, gap


def _outer(design: Design) -> Vector:
    """Return A A', shape (n, n), from columns in blocks."""
    K = np.zeros((design.n, design.n))
    step = max(1, (1 << 18) // design.n)
    for a in range(0, design.p, step):
        index = np.arange(a, min(a + step, design.p))
        block = np.empty((index.size, design.n))
        if design.sparse:
            for i, j in enumerate(index):
                unit = np.zeros(design.p)
                unit[j] = 1.0
                block[i] = design.product(unit)
        else:
            design.columns(index, block)
        K += block.T @ block
    return K


def _iterative(design: Design, target: Vector) -> tuple[Vector, float]:
    from scipy.sparse.linalg import LinearOperator, lsmr

    operator = LinearOperator(
        (design.n, design.p),
        matvec=lambda b: design.product(b.ravel()),
        rmatvec=lambda r: design.pull(r.ravel()),
    )
    b = lsmr(operator, target, atol=1e-14, btol=1e-14, maxiter=20000)[0]
    r = target - design.product(b)
    again = lsmr(operator, r, atol=1e-14, btol=1e-14, maxiter=20000)[0]
    step = design.product(again)
    return np.asarray(b + again), 0.5 * float(step @ step)
