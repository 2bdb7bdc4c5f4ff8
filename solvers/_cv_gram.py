"""Gram matrices of the folds of a cross-validation, by subtraction from that of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.solvers._slope_columns import BLOCK
from convexlaw.solvers._slope_forms import gram_pays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_design import Design

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]
    Moments = tuple[Vector, Vector]

# a column whose sum of squares falls to this share has lost too many digits
_DIGITS = 1e-6


def moments(X: Any, counts: Vector, origin: Vector, rows: Index | None = None) -> Moments:
    """Weighted sums of ``a a'`` and of ``a`` with ``a = x - origin`` over some rows of a dense X.

    Parameters
    ----------
    X : ndarray, shape (n, p)
    counts : ndarray, shape (n,)
    origin : ndarray, shape (p,)
    rows : ndarray of int, optional
        All rows without it.

    Returns
    -------
    second : ndarray, shape (p, p)
    first : ndarray, shape (p,)
    """
    p = X.shape[1]
    second, first = np.zeros((p, p)), np.zeros(p)
    size = X.shape[0] if rows is None else rows.size
    step = max(1, 4 * BLOCK // p)
    for a in range(0, size, step):
        part: Any = slice(a, a + step) if rows is None else rows[a : a + step]
        block = X[part].astype(np.float64) - origin
        weight = counts[part]
        first += weight @ block
        block *= np.sqrt(weight)[:, None]
        second += block.T @ block
    return second, first


def fold_gram(design: Design, X: Any, counts: Vector, held: Vector, origin: Vector, whole: Moments) -> Vector:
    """Gram matrix of a fold's design.

    Parameters
    ----------
    design : Design
        Of the fold.
    X : ndarray, shape (n, p)
        All rows.
    counts, held : ndarray, shape (n,)
        Sample weights of all rows, and of the fold (0 on the rows left out).
    origin : ndarray, shape (p,)
        What ``whole`` was centred with.
    whole : tuple
        :func:`moments` of all rows.

    Returns
    -------
    ndarray, shape (p, p)
    """
    out = np.flatnonzero(held != counts)
    G: Vector | None = None
    if 2 * out.size < held.size and (held <= counts).all():
        second, first = moments(X, counts - held, origin, out)
        G = _centred(design, held, origin, (whole[0] - second, whole[1] - first))
        if (held.sum() * G.diagonal() < _DIGITS * whole[0].diagonal()).any():
            G = None
    if G is None:
        # from the fold's own rows, about its own centre
        origin = origin if design.shift is None else design.shift
        G = _centred(design, held, origin, moments(X, held, origin, np.flatnonzero(held)))
    if design.scale is not None:
        G /= design.scale
        G /= design.scale[:, None]
    G[design.flat] = 0.0
    G[:, design.flat] = 0.0
    return np.ascontiguousarray(G)


def _centred(design: Design, held: Vector, origin: Vector, sums: Moments) -> Vector:
    """Weighted means of ``(x - shift)(x - shift)'`` from moments about an origin."""
    away = -origin if design.shift is None else design.shift - origin
    cross = np.outer(sums[1], away)
    return np.asarray((sums[0] - cross - cross.T) / float(held.sum()) + np.outer(away, away))


def sharing_pays(X: Any, left_out: list[int], solver: str, n_penalties: int) -> bool:
    """Whether Gram matrices by subtraction cost less than the passes over X that they save.

    Parameters
    ----------
    X : ndarray or scipy sparse, shape (n, p)
    left_out : list of int
        Rows that each fold leaves out.
    solver : str
        A form that was asked for, or "auto".
    n_penalties : int
        Penalties to solve for in every fold.
    """
    if not isinstance(X, np.ndarray) or solver not in ("auto", "gram"):
        return False
    n, p = X.shape
    if solver == "gram":
        return True
    rows = n + sum(min(k, n - k) for k in left_out)
    return gram_pays(n, p, rows / (1 + len(left_out)), n_penalties)
