"""Quadratic models of a loss on a working set, in the forms that the SLOPE engine solves.

A model is ``1/2 d'Hd - g'd`` with the free intercepts eliminated, d the change of the coefficients. Its Gram
matrix serves working sets of moderate size; the table of weighted columns serves large ones, where few
clusters may hold most of them; a sparse X keeps its columns sparse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dgemm

from convexlaw.solvers._slope_design import Design
from convexlaw.solvers._slope_engine import Engine
from convexlaw.solvers._slope_forms import partition
from convexlaw.solvers._slope_store import DenseStore, GramStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._glm_problem import GlmProblem

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

# a Gram matrix beyond this is slower than the table, whatever the number of rows
_MAX_GRAM = 4000
# entries of a dense copy of sparse columns; a very sparse X has its copies no larger than the second
_MAX_DENSE = 4_000_000
_FEW = 200_000
# share of entries from which on products of dense columns are faster than those of sparse ones
_SPARSE = 0.1
# least size of a working set of giant clusters for which the table is built
_SUMS = 500


class Table(Design):
    """Weighted, centred columns as the rows of an array: a design for the engine."""

    def __init__(self, rows: int, size: int, table: Array | None = None) -> None:
        self.n, self.p = rows, size
        self.sparse, self.plain, self.intercept = False, True, False
        self.columnwise = True
        self.scale = self.shift = None
        self.flat = np.zeros(0, dtype=np.int64)
        self.mass = 1.0
        self.table = np.empty((size, 0)) if table is None else table
        self.root = np.ones(self.table.shape[1])

    def pull(self, r: Array) -> Array:
        """Correlations with r."""
        return np.asarray(self.table @ r)

    def product(self, b: Array) -> Array:
        """Linear combination of the columns."""
        return np.asarray(b @ self.table)

    def columns(self, index: Index, out: Array) -> None:
        """Copy columns."""
        out[:] = self.table[index]


class Columns:
    """Seen columns of X, dense, unweighted, each at most once: rows of a table that grows."""

    def __init__(self, problem: GlmProblem) -> None:
        self.problem = problem
        self.slot = np.full(problem.p, -1, dtype=np.int64)
        self.table: Array = np.empty((0, problem.rows))
        self.size = 0

    def rows_of(self, features: Index) -> Index:
        """Rows of the table that hold these features, which are added where they are missing."""
        wanted = np.unique(features)
        missing = wanted[self.slot[wanted] < 0]
        if missing.size:
            if self.size + missing.size > 2 * wanted.size + 200:
                # forget what is not in use
                held = np.flatnonzero(self.slot >= 0)
                kept = np.intersect1d(held, wanted)
                self.table = self.table[self.slot[kept]]
                self.slot[held] = -1
                self.slot[kept] = np.arange(kept.size)
                self.size = kept.size
            need = self.size + missing.size
            if need > self.table.shape[0]:
                table = np.empty((need + need // 8 if self.size else need, self.table.shape[1]))
                table[: self.size] = self.table[: self.size]
                self.table = table
            self.table[self.size : need] = self.problem.columns(missing)
            self.slot[missing] = np.arange(self.size, need)
            self.size = need
        return self.slot[features]


class Work:
    """A working set: its columns, and the quadratic models on them.

    Parameters
    ----------
    problem : GlmProblem
    columns : Columns
    index : ndarray of int64, shape (w,)
        Entries of vec B.
    whole : bool
        Keep dense columns whatever their size: for :meth:`hessian`.
    """

    def __init__(self, problem: GlmProblem, columns: Columns, index: Index, *, whole: bool = False) -> None:
        self.problem = problem
        self.w = index.size
        p, rows, m = problem.p, problem.rows, problem.m
        sparse = problem.design.sparse and not whole
        self.thin = sparse and m == 1 and rows * self.w > _MAX_DENSE
        self.sparse = self.thin or (sparse and rows * self.w > _FEW and problem.X.nnz < _SPARSE * rows * p)
        limit = min(max(400, 2 * rows * m), _MAX_GRAM)
        self.gram = not self.thin and (self.sparse or self.w <= limit)
        self.engine: Engine | None = None
        self.spent = 0
        at = index % p if self.sparse else columns.rows_of(index % p)
        order = np.lexsort((at, index // p))
        self.index, at = index[order], at[order]
        self.features = self.index % p
        ends = np.searchsorted(self.index // p, np.arange(m + 1))
        self.blocks = [slice(int(ends[k]), int(ends[k + 1])) for k in range(m)]
        self.sizes = np.diff(ends)
        if self.sparse:
            self.parts = [self._design(block) for block in self.blocks]
        else:
            table = columns.table
            self.U = [table[_slice(at[ends[k] : ends[k + 1]])] for k in range(m)]

    def pull(self, R: Array) -> Array:
        """Correlations of the columns with weighted residuals (n, m)."""
        g = np.empty(self.w)
        for k, block in enumerate(self.blocks):
            g[block] = self.parts[k].pull(R[:, k]) if self.sparse else self.U[k] @ R[:, k]
        return g

    def product(self, d: Array) -> Array:
        """Change of the predictor (n, m) by a change of the coefficients, without intercepts."""
        out = np.zeros((self.problem.rows, self.problem.m))
        for k, block in enumerate(self.blocks):
            part = d[block]
            moving = np.flatnonzero(part)
            if self.sparse:
                out[:, k] = self.parts[k].product(part)
            elif 4 * moving.size < part.size:
                out[:, k] = part[moving] @ self.U[k][moving]
            else:
                out[:, k] = part @ self.U[k]
        return out

    def _design(self, block: slice, h: Array | None = None) -> Design:
        """Sparse columns as the problem's design sees them; with curvatures h, less their weighted mean."""
        base, features = self.problem.design, self.features[block]
        center = None if base.shift is None else base.shift[features]
        scale = None if base.scale is None else base.scale[features]
        free = self.problem.fit_intercept and h is not None
        X = self.problem.X[:, features].tocsc() if h is None else self.parts[0].X
        weights = np.ones(self.problem.rows) if h is None else h
        design = Design(X, weights, intercept=free, center=None if free else center, scale=scale)
        design.flat = np.flatnonzero(np.isin(features, base.flat))
        return design

    def solve(
        self, b: Array, h: Array, R: Array, g: Array, lam: Array, cum: Array, goal: float, rounds: int
    ) -> Array:
        """Coefficients that minimise the model plus the penalty, to a gap of ``goal``.

        Parameters
        ----------
        b, g : ndarray, shape (w,)
            Present coefficients, and the pull on them.
        h : ndarray, shape (n, m)
            Curvatures, see :meth:`Family.model`.
        R : ndarray, shape (n, m)
            Weighted residuals; they sum to zero where the intercept is free.
        lam, cum : ndarray, shapes (w,), (w + 1,)
        goal : float
        rounds : int
            Bound on epochs and Newton steps.
        """
        if self.thin:
            engine = self._thin_engine(b, h, R)
            engine.solve(lam, cum, goal, rounds)
        elif self.gram and (self.sparse or self.w < _SUMS or not giant_clusters(b)):
            engine = self._gram_engine(b, h, R, g)
            engine.solve(lam, cum, goal, engine.rounds + rounds, lam)
        else:
            engine = self._table_engine(b, h, R)
            engine.solve(lam, cum, goal, rounds)
        self.spent = engine.rounds
        return engine.coef()

    def _thin_engine(self, b: Array, h: Array, R: Array) -> Engine:
        design = self._design(self.blocks[0], h[:, 0])
        engine = Engine(design, design.product(b) + R[:, 0] / design.root, form="residual")
        engine.start_at(b)
        return engine

    def hessian(self, h: Array) -> Array:
        """Second derivatives of the loss in the coefficients, intercepts eliminated: shape (w, w)."""
        family, weights = self.problem.family, self.problem.weights
        m, free = self.problem.m, self.problem.fit_intercept
        G = np.zeros((self.w, self.w))
        C, M = np.zeros((self.w, m)), np.zeros((m, m))
        for k in range(m):
            for other in range(k + 1):
                curvature = family.curvature(h, k, other, weights)
                if curvature is None:
                    continue
                M[k, other] = M[other, k] = curvature.sum()
                here, there = self.blocks[k], self.blocks[other]
                if not (self.sizes[k] or self.sizes[other]):
                    continue
                cross = self._sparse_cross if self.sparse else self._cross
                block, C[here, other], C[there, k] = cross(k, other, curvature)
                if m == 1:
                    G = block
                else:
                    G[here, there] = block
                    G[there, here] = block.T
        if free:
            # in place: G may be large
            G = dgemm(-1.0, C.T, (C @ _inverse(M)).T, 1.0, G.T, trans_a=1, overwrite_c=1).T
        return G

    def _cross(self, k: int, other: int, curvature: Array) -> tuple[Array, Array, Array]:
        """Weighted products of the columns of two blocks, and of each of them with ones."""
        if k == other:
            # a product with its own transpose takes half the time
            root = np.sqrt(curvature)
            weighted = self.U[k] * root
            sums = weighted @ root
            return weighted @ weighted.T, sums, sums
        weighted = self.U[k] * curvature
        return weighted @ self.U[other].T, weighted.sum(axis=1), self.U[other] @ curvature

    def _sparse_cross(self, k: int, other: int, curvature: Array) -> tuple[Array, Array, Array]:
        """As :meth:`_cross`, of sparse columns; those that a free intercept centres are left as they are."""
        left, right = self.parts[k], self.parts[other]
        scaled = sp.csc_array(
            (right.X.data * curvature[right.X.indices], right.X.indices, right.X.indptr), shape=right.X.shape
        )
        block = np.asarray((left.X.T @ scaled).toarray())
        sums = np.asarray(left.X.T @ curvature), np.asarray(right.X.T @ curvature)
        if left.shift is not None and right.shift is not None and not self.problem.fit_intercept:
            block -= np.outer(sums[0] - curvature.sum() * left.shift, right.shift)
            block -= np.outer(left.shift, sums[1])
        if left.scale is not None and right.scale is not None:
            block /= left.scale[:, None]
            block /= right.scale
            sums = sums[0] / left.scale, sums[1] / right.scale
        block[left.flat] = 0.0
        block[:, right.flat] = 0.0
        sums[0][left.flat] = 0.0
        sums[1][right.flat] = 0.0
        return block, *sums

    def _gram_engine(self, b: Array, h: Array, R: Array, g: Array) -> Engine:
        G = self.hessian(h)
        q = G @ b + g
        energy = float(b @ (q + g)) + self.problem.family.energy(h, R, self.problem.weights)
        rank = self.problem.rows * self.problem.m
        if self.engine is None:
            model = Table(rank, self.w)
            self.engine = Engine(model, np.array([energy**0.5]), q, form="gram", gram=G)
        else:
            engine = self.engine
            engine.q, engine.energy = q, energy
            engine.noise = 1e-15 * float(np.abs(q).max(initial=0.0))
            engine.store = GramStore(engine.design, q, G)
        self.engine.part = partition(b)
        return self.engine

    def _table_engine(self, b: Array, h: Array, R: Array) -> Engine:
        problem = self.problem
        S, u = problem.family.factor(h, R, problem.weights)
        table = np.empty((self.w, S.shape[0] * S.shape[1]))
        for k, block in enumerate(self.blocks):
            np.multiply(self.U[k][:, :, None], S[:, :, k], out=table[block].reshape(-1, *S.shape[:2]))
        if problem.fit_intercept:
            ones = S.reshape(-1, problem.m)
            table -= (table @ ones) @ _inverse(ones.T @ ones) @ ones.T
        model = Table(table.shape[1], self.w, table)
        engine = Engine(model, model.product(b) + u.reshape(-1))
        store = DenseStore(model)
        store.w, store.table, store.data = self.w, table, table.reshape(-1)
        store.ids, store.q = np.arange(self.w), engine.q
        store.norm2 = np.einsum("ij,ij->i", table, table)
        engine.store = store
        engine.part = partition(b)
        engine._refresh()
        return engine


def giant_clusters(b: Array) -> bool:
    """Whether few clusters hold many nonzeros: sums of columns are cheaper than a Gram matrix then."""
    size = np.abs(b[b != 0.0])
    return bool(size.size >= 100 and size.size > 16 * np.unique(size).size)


def _inverse(M: Array) -> Array:
    """Inverse of a curvature matrix of intercepts, which a common shift of all classes may leave singular."""
    if M.shape[0] == 1:
        return 1.0 / M
    values, vectors = np.linalg.eigh(M)
    kept = values > 1e-12 * values[-1]
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def _slice(at: Index) -> Any:
    """Index of rows, as a slice where they follow each other: a view then, no copy."""
    if at.size and at[-1] - at[0] == at.size - 1:
        return slice(int(at[0]), int(at[-1]) + 1)
    return at


__all__ = ["Columns", "Table", "Work", "giant_clusters"]
