"""Reading X, y and weights: no copies, and errors that name the column and the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._slope_columns import blocks, is_sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


class NotNumericError(ConvexlawError, TypeError):
    """A value that is no number at all; a TypeError too, as scikit-learn's conventions ask."""


def row_list(found: NDArray[np.int64]) -> str:
    shown = ", ".join(str(i) for i in found[:5])
    more = f", ... ({found.size} in all)" if found.size > 5 else ""
    return f"row{'s' if found.size > 1 else ''} {shown}{more}"


def _label(j: int, names: Sequence[Any] | None) -> str:
    return f"column {names[j]!r}" if names is not None and j < len(names) else f"column {j}"


def column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a data frame, None for anything else."""
    columns = getattr(X, "columns", None)
    return list(columns) if columns is not None and not is_sparse_like(X) else None


def is_sparse_like(X: Any) -> bool:
    """Whether X is a scipy sparse matrix or array."""
    return hasattr(X, "tocsc") and hasattr(X, "nnz")


def as_matrix(X: Any) -> Any:
    """Return X as an ndarray or as a CSC or CSR matrix, without a copy where it is one already.

    Raises
    ------
    ConvexlawError
        Not two-dimensional, or not numeric; names the column and the rows.
    """
    if is_sparse_like(X):
        return X if X.format in ("csc", "csr") else X.tocsc()
    names = column_names(X)
    array = np.asarray(X)
    if array.dtype.kind not in "fiub":
        array = _converted(array, names)
    if array.ndim != 2:
        raise ConvexlawError(f"X has shape {array.shape}: two dimensions are needed; use X.reshape(-1, 1)")
    return array


def _converted(array: NDArray[Any], names: Sequence[Any] | None) -> Vector:
    if array.dtype.kind == "c":
        raise ConvexlawError("Complex data not supported: X has complex numbers; pass their real parts")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    if array.ndim == 2:
        for j in range(array.shape[1]):
            bad = np.array([i for i, v in enumerate(array[:, j]) if not _is_number(v)], dtype=np.int64)
            if bad.size:
                value = array[bad[0], j]
                if value is None or type(value).__name__ == "NAType":
                    _refuse(np.nan, j, bad, names)
                kind = ConvexlawError if isinstance(value, str) else NotNumericError
                raise kind(
                    f"X: {_label(j, names)} is not numeric: {value!r} in {row_list(bad)} "
                    "(argument must be a string or a real number); encode it, drop the column, or use "
                    "from_formula"
                )
    raise ConvexlawError("X is not numeric; pass an array of numbers")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def refuse_non_finite(X: Any, names: Sequence[Any] | None) -> None:
    """Raise the error for NaN or infinity in X; called once a product with X was not finite.

    Raises
    ------
    ConvexlawError
    """
    if is_sparse(X):
        entries = X.tocoo()
        bad = ~np.isfinite(entries.data)
        if bad.any():
            j = int(entries.col[bad].min())
            here = bad & (entries.col == j)
            _refuse(entries.data[here][0], j, np.sort(entries.row[here]).astype(np.int64), names)
    else:
        for _, columns, block in blocks(X):
            bad_columns = np.flatnonzero(~np.isfinite(block).all(axis=0))
            if bad_columns.size:
                j = int(bad_columns[0]) + (columns.start or 0)
                where = np.flatnonzero(~np.isfinite(np.asarray(X[:, j], dtype=np.float64)))
                _refuse(float(X[where[0], j]), j, where, names)
    raise ConvexlawError("products with X overflow: its values are too large; rescale its columns")


def _refuse(value: float, j: int, rows: NDArray[np.int64], names: Sequence[Any] | None) -> None:
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    raise ConvexlawError(
        f"Input X contains {what}: {_label(j, names)}, {row_list(rows)}; "
        "drop these rows or fill the values in"
    )


def as_response(y: Any, n: int) -> Vector:
    """Return y as a float64 vector.

    Raises
    ------
    ConvexlawError
        Wrong shape or length, not numeric, NaN or infinity.
    """
    try:
        array = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConvexlawError(f"y is not numeric ({error}); pass numbers") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise ConvexlawError(
            f"y has shape {array.shape}, X has {n} rows; pass one response a row, shape ({n},)"
        )
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ConvexlawError(f"Input y contains {array[bad[0]]} in {row_list(bad)}; drop these rows")
    return np.ascontiguousarray(array)


def as_weights(sample_weight: Any, n: int) -> Vector:
    """Return the sample weights as a float64 vector, ones without any.

    Raises
    ------
    ConvexlawError
        Wrong length, negative, not finite, or all zero.
    """
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ConvexlawError(
            f"sample_weight has shape {weights.shape}, X has {n} rows; pass one weight a row"
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ConvexlawError(
            f"sample_weight = {weights[bad[0]]:g} in {row_list(bad)}: weights must be finite and >= 0"
        )
    if not weights.any():
        raise ConvexlawError("sample_weight is zero in every row: at least one must be positive")
    return weights
