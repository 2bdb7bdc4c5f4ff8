"""Column summaries of a design matrix in blocks along its memory; X is never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

CENTERINGS = ("none", "mean", "min")
SCALINGS = ("none", "sd", "l1", "l2", "max_abs")
BLOCK = 1 << 16


def is_sparse(X: Any) -> bool:
    """Tell a scipy sparse matrix or array from an ndarray."""
    return not isinstance(X, np.ndarray)


def by_column(X: Any) -> bool:
    """Whether columns are the contiguous direction."""
    return bool(X.format == "csc") if is_sparse(X) else X.strides[0] <= X.strides[1]


def blocks(X: Any, shift: Vector | None = None) -> Iterator[tuple[slice, slice, Any]]:
    """Yield (rows, columns, float64 block of X); dense blocks are fresh and less their shift."""
    n, p = X.shape
    every = slice(None)
    column = by_column(X)
    if is_sparse(X):
        lines = X.indptr.size - 1
        step = max(1, lines // max(1, X.nnz // (4 * BLOCK)))
        for a in range(0, lines, step):
            b = min(a + step, lines)
            inside = slice(X.indptr[a], X.indptr[b])
            parts = (X.data[inside].astype(np.float64), X.indices[inside], X.indptr[a : b + 1] - X.indptr[a])
            shape = (n, b - a) if column else (b - a, p)
            block = type(X)(parts, shape=shape)
            yield (every, slice(a, b), block) if column else (slice(a, b), every, block)
        return
    step = max(1, BLOCK // max(1, n if column else p))
    for a in range(0, p if column else n, step):
        part = slice(a, a + step)
        block = (X[:, part] if column else X[part]).astype(np.float64)
        if shift is not None:
            block -= shift[part] if column else shift
        yield (every, part, block) if column else (part, every, block)


def transposed_product(X: Any, v: Vector, shift: Vector | None = None) -> Vector:
    """(X - shift)' v in blocks; the shift of a sparse X is left to the caller."""
    out = np.zeros(X.shape[1])
    for rows, columns, block in blocks(X, shift):
        out[columns] += block.T @ v[rows]
    return out


def column_means(X: Any, weights: Vector, plain: bool) -> tuple[Vector, float]:
    """Weighted means of the columns, and the largest mean against the spread of its column (in a sample).

    Parameters
    ----------
    X : ndarray or scipy sparse
    weights : ndarray, shape (n,)
    plain : bool
        Whether ``X.T @ v`` works without copying X.

    Returns
    -------
    means : ndarray, shape (p,)
    far : float
        Where it is large, products with X lose that many digits unless X is centred first.
    """
    share = weights / weights.sum()
    means: Vector = np.asarray(X.T @ share) if plain else transposed_product(X, share)
    if is_sparse(X):
        return means, 0.0
    spread = np.zeros(X.shape[1])
    for row in X[:: max(1, X.shape[0] // 16)]:
        np.maximum(spread, np.abs(row - means), out=spread)
    spread[spread == 0.0] = np.inf
    far = float((np.abs(means) / spread).max(initial=0.0))
    if far > 10.0:
        # the second pass takes out the rounding of the first
        means = means + transposed_product(X, share, means)
    return means, far


def constant_columns(X: Any, weights: Vector) -> NDArray[np.int64]:
    """Columns with a single value in the rows that count, which centring turns into rounding noise."""
    counting = np.flatnonzero(weights)
    rows: Any = counting if 0 < counting.size < X.shape[0] else slice(None)
    if is_sparse(X):
        X = X if isinstance(rows, slice) else X[rows]
        stored = np.diff(X.indptr) if by_column(X) else np.bincount(X.indices, minlength=X.shape[1])
        full = np.flatnonzero(stored == X.shape[0])
        found = [j for j in full if np.ptp(X[:, [j]].toarray()) == 0]
    else:
        some = counting[:: max(1, counting.size // 6)] if counting.size else [0]
        sample = X[some]
        same = np.flatnonzero((sample == sample[0]).all(axis=0))
        found = [j for j in same if (X[rows, j] == sample[0, j]).all()]
    return np.asarray(found, dtype=np.int64)


def column_centers(X: Any, centering: str, counts: Vector, *, needed: bool = True) -> Vector | None:
    """Return the fixed shift of the columns without an intercept.

    Parameters
    ----------
    X : ndarray or scipy sparse
    centering : {"none", "mean", "min"}
    counts : ndarray, shape (n,)
        Sample weights.

    Returns
    -------
    ndarray, shape (p,), or None

    Raises
    ------
    ConvexlawError
        Unknown name.
    """
    if centering not in CENTERINGS:
        raise ConvexlawError(f"centering = {centering!r}: use one of {', '.join(map(repr, CENTERINGS))}")
    if centering == "none" or not needed:
        return None
    if centering == "mean":
        return column_means(X, counts, False)[0]
    low = X[counts > 0].min(axis=0) if (counts == 0).any() else X.min(axis=0)
    return np.asarray(low.toarray() if is_sparse(X) else low, dtype=np.float64).reshape(-1)


def column_scales(X: Any, scaling: str, counts: Vector) -> Vector | None:
    """Scale of the columns: the standard deviation, or a norm of the values as given; 1 where it is zero.

    Parameters
    ----------
    X : ndarray or scipy sparse
    scaling : {"none", "sd", "l1", "l2", "max_abs"}
    counts : ndarray, shape (n,)
        Sample weights: a row counts that many times.

    Returns
    -------
    ndarray, shape (p,), or None

    Raises
    ------
    ConvexlawError
        Unknown name.
    """
    if scaling not in SCALINGS:
        raise ConvexlawError(f"scaling = {scaling!r}: use one of {', '.join(map(repr, SCALINGS))}")
    if scaling == "none":
        return None
    out = np.zeros(X.shape[1])
    center = column_means(X, counts, False)[0] if scaling == "sd" else None
    for rows, columns, block in blocks(X, center):
        weight = counts[rows]
        if is_sparse(X) and center is not None:
            # of the zeros, all of center^2; of the stored entries the difference
            away = block.tocoo()
            at = center[columns][away.col]
            np.add.at(out[columns], away.col, weight[away.row] * ((away.data - at) ** 2 - at**2))
        elif scaling == "max_abs":
            size = abs(block[weight > 0]).max(axis=0)
            size = size.toarray().reshape(-1) if is_sparse(X) else size
            out[columns] = np.maximum(out[columns], size)
        elif scaling == "l1":
            out[columns] += abs(block).T @ weight
        else:
            out[columns] += (block.multiply(block) if is_sparse(X) else block * block).T @ weight
    if scaling == "sd" and center is not None:
        if is_sparse(X):
            out += counts.sum() * center**2
        out = np.sqrt(np.maximum(out, 0.0) / counts.sum())
        out[constant_columns(X, counts)] = 0.0
    elif scaling == "l2":
        out = np.sqrt(out)
    out[out == 0.0] = 1.0
    return out
