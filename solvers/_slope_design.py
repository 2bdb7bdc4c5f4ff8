"""A design matrix seen through observation weights, a shift and a scale, none of which touches X itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.solvers._slope_columns import (
    BLOCK,
    blocks,
    by_column,
    column_means,
    constant_columns,
    is_sparse,
    transposed_product,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


class Design:
    """The matrix with rows ``sqrt(weights_i) (x_i - shift) / scale``, as products with the given X.

    Parameters
    ----------
    X : ndarray, shape (n, p), or scipy sparse CSC or CSR
        Any real dtype and memory order; never copied, densified or written to.
    weights : ndarray, shape (n,)
        Observation weights >= 0: sample weights over their sum, or the curvatures of a loss.
    intercept : bool
        Take out a free intercept: the shift is the weighted mean of the columns.
    center, scale : ndarray, shape (p,), optional
        Shift without an intercept, and scale.
    tol : float
        Relative accuracy that is asked for; decides whether X must be centred before it is multiplied.
    """

    def __init__(
        self,
        X: Any,
        weights: Vector,
        *,
        intercept: bool,
        center: Vector | None = None,
        scale: Vector | None = None,
        tol: float = 1e-6,
    ) -> None:
        self.X = X
        self.n, self.p = (int(k) for k in X.shape)
        self.sparse = is_sparse(X)
        self.columnwise = by_column(X)
        self.root: Vector = np.sqrt(weights)
        self.mass = float(weights.sum())
        self.intercept = intercept
        self.scale = scale
        self.shift = center
        self.plain = X.dtype == np.float64 and (self.sparse or 8 in X.strides)
        far = 0.0
        if intercept:
            self.shift, far = column_means(X, weights, self.plain)
        elif center is not None:
            far = np.inf
        self.flat = constant_columns(X, weights) if self.shift is not None else np.zeros(0, np.int64)
        if far * 1e-15 > 1e-2 * tol and not self.sparse:
            self.plain = False

    def pull(self, r: Vector) -> Vector:
        """Transposed product with r, shape (n,): the correlations of the columns, shape (p,)."""
        v = self.root * r
        if self.plain:
            g = np.asarray(self.X.T @ v)
        else:
            g = transposed_product(self.X, v, self.shift)
        if self.shift is not None and (self.plain or self.sparse):
            g -= self.shift * v.sum()
        if self.scale is not None:
            g /= self.scale
        g[self.flat] = 0.0
        return g

    def product(self, b: Vector) -> Vector:
        """Product with b, shape (p,)."""
        coef = self.original(b)
        if self.plain:
            out = np.asarray(self.X @ coef)
        else:
            out = np.zeros(self.n)
            for rows, columns, block in blocks(self.X, self.shift):
                out[rows] += block @ coef[columns]
        if self.shift is not None and (self.plain or self.sparse):
            out -= self.shift @ coef
        out *= self.root
        return out

    def columns(self, index: NDArray[np.int64], out: Vector) -> None:
        """Write the columns ``index`` of a dense X into the rows of ``out``, shape (k, n)."""
        step = max(1, BLOCK // max(1, self.n))
        for a in range(0, index.size, step):
            part = index[a : a + step]
            block = out[a : a + part.size]
            block[:] = self.X.T[part] if self.columnwise else self.X[:, part].T
            if self.shift is not None:
                block -= self.shift[part, None]
            if self.scale is not None:
                block /= self.scale[part, None]
            block *= self.root
        if self.flat.size:
            out[: index.size][np.isin(index, self.flat)] = 0.0

    def sparse_columns(self, index: NDArray[np.int64]) -> tuple[Vector, NDArray[np.int64], NDArray[np.int64]]:
        """Columns ``index`` of a sparse X with weights and scale but without the shift: data, rows, sizes."""
        part = self.X[:, index].tocsc()
        rows = part.indices.astype(np.int64)
        sizes = np.diff(part.indptr).astype(np.int64)
        data = part.data.astype(np.float64) * self.root[rows]
        if self.scale is not None:
            data /= np.repeat(self.scale[index], sizes)
        if self.flat.size:
            data[np.repeat(np.isin(index, self.flat), sizes)] = 0.0
        return data, rows, sizes

    def gram(self) -> Vector:
        """Gram matrix, shape (p, p)."""
        if self.sparse:
            weights = self.root**2
            rows = (
                self.X.indices
                if self.X.format == "csc"
                else np.repeat(np.arange(self.n), np.diff(self.X.indptr))
            )
            scaled = type(self.X)(
                (self.X.data * weights[rows], self.X.indices, self.X.indptr), shape=self.X.shape
            )
            G = np.asarray((self.X.T @ scaled).toarray(), dtype=np.float64)
            if self.shift is not None:
                cross = np.outer(self.shift, np.asarray(self.X.T @ weights))
                G += self.mass * np.outer(self.shift, self.shift) - cross - cross.T
        else:
            G = np.zeros((self.p, self.p))
            step = max(1, 4 * BLOCK // max(1, self.p))
            for a in range(0, self.n, step):
                block = self.X[a : a + step].astype(np.float64)
                if self.shift is not None:
                    block -= self.shift
                block *= self.root[a : a + step, None]
                G += block.T @ block
        if self.scale is not None:
            G /= self.scale
            G /= self.scale[:, None]
        G[self.flat] = 0.0
        G[:, self.flat] = 0.0
        return G

    def original(self, b: Vector) -> Vector:
        """Coefficients on the given X."""
        coef = b.copy() if self.scale is None else b / self.scale
        coef[self.flat] = 0.0
        return coef

    def seen(self, coef: Vector) -> Vector:
        """Inverse of :meth:`original`."""
        return coef.copy() if self.scale is None else coef * self.scale
