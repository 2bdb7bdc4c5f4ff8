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


_COMPLEX = "Complex data not supported: X has complex numbers; pass their real parts"


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
        if X.dtype.kind == "c":
            raise ConvexlawError(_COMPLEX)
        return _summed(X if X.format in ("csc", "csr") else X.tocsc())
    names = column_names(X)
    array = np.asarray(X)
    if array.dtype.kind not in "fiub":
        array = _converted(array, names)
    if array.ndim != 2:
        raise ConvexlawError(f"X has shape {array.shape}: two dimensions are needed; use X.reshape(-1, 1)")
    return array


def _summed(X: Any) -> Any:
    """Return a sparse X in which no entry is stored in parts: their squares would not be its square."""
    if X.has_canonical_format:
        return X
    whole = X.copy()
    whole.sum_duplicates()
    return whole if whole.nnz < X.nnz else X


def _converted(array: NDArray[Any], names: Sequence[Any] | None) -> Vector:
    if array.dtype.kind == "c":
        raise ConvexlawError(_COMPLEX)
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


def refuse_response(y: Any, *, labels: bool) -> None:
    """Raise the error for values of y that no fit can use, with their rows; before scikit-learn's, without.

    Raises
    ------
    ConvexlawError
        NaN, infinity or another missing value; for a regression also text.
    """
    array = np.asarray(y)
    if array.ndim not in (1, 2) or array.dtype.kind not in "fOUS":
        return
    if array.dtype.kind == "f":
        bad = ~np.isfinite(array)
        text = np.zeros(array.shape, dtype=bool)
    else:
        values = array.ravel().tolist()
        bad = np.array([_is_missing(v) for v in values], dtype=bool).reshape(array.shape)
        text = np.array([not labels and not _is_number(v) for v in values], dtype=bool)
        text = text.reshape(array.shape) & ~bad
    for wrong in (bad, text):
        if not wrong.any():
            continue
        j = int(np.flatnonzero(wrong.any(axis=0))[0]) if array.ndim == 2 else 0
        rows = np.flatnonzero(wrong[:, j] if array.ndim == 2 else wrong)
        names = column_names(y)
        where = f"{_label(j, names)}, {row_list(rows)}" if array.ndim == 2 else row_list(rows)
        value = array[rows[0], j] if array.ndim == 2 else array[rows[0]]
        if wrong is text:
            raise ConvexlawError(
                f"y is not numeric: {str(value)!r} in {where}; pass numbers, or take SlopeClassifier "
                "for classes"
            )
        infinite = isinstance(value, float | np.floating) and bool(np.isinf(value))
        what = "infinity or a value too large for float64" if infinite else "NaN"
        raise ConvexlawError(f"Input y contains {what}: {where}; drop these rows")


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, infinite, or pandas' NA or NaT."""
    if isinstance(value, float):
        return not np.isfinite(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def as_offset(offset: Any, n: int) -> Vector:
    """Return the known part of the linear predictor as a float64 vector.

    Raises
    ------
    ConvexlawError
        Not numeric, wrong length, or not finite.
    """
    try:
        known = np.asarray(offset, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConvexlawError("offset is not numeric; pass one number a row") from None
    if known.ndim == 0:
        known = np.full(n, float(known))
    if known.shape != (n,):
        raise ConvexlawError(f"offset has shape {known.shape}, X has {n} rows; pass one number a row")
    bad = np.flatnonzero(~np.isfinite(known))
    if bad.size:
        raise ConvexlawError(
            f"offset is {known[bad[0]]} in {row_list(bad)}: it must be finite, as the log of an exposure"
        )
    return known


def as_response(y: Any, n: int) -> Vector:
    """Return y as a float64 vector.

    Raises
    ------
    ConvexlawError
        Wrong shape or length, not numeric, NaN or infinity.
    """
    if np.asarray(y).dtype.kind == "c":
        raise ConvexlawError("y has complex numbers: pass real ones")
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
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConvexlawError(f"sample_weight is not numeric ({error}); pass numbers >= 0") from None
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
    top = float(weights.max())
    if top > 1e307 / n:
        raise ConvexlawError(f"sample_weight reaches {top:.3g}, whose sum overflows: rescale the weights")
    if not weights.any():
        raise ConvexlawError("sample_weight is zero in every row: at least one must be positive")
    return weights
