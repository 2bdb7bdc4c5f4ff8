"""Where the columns of a working set live: dense copies, sparse copies, a full Gram matrix, or X itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_design import Design

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]

_NO_MATRIX = np.zeros((1, 1))
_NO_VECTOR = np.zeros(1)
_NO_INDEX = np.zeros(1, dtype=np.int64)


class Partition:
    """Order, clusters, magnitudes and signs of the coefficients on a working set (see the kernels)."""

    __slots__ = ("m", "order", "sign", "start", "value", "w")

    def __init__(self, w: int) -> None:
        self.w = w
        self.m = 0
        self.order: Index = np.arange(w)
        self.start: Index = np.zeros(w + 2, dtype=np.int64)
        self.value: Vector = np.zeros(w + 2)
        self.sign: Vector = np.ones(w)

    @property
    def nonzero(self) -> int:
        """Number of nonzero coefficients."""
        return int(self.start[self.m])

    def copy(self) -> Partition:
        """Return an independent copy."""
        new = Partition.__new__(Partition)
        new.w, new.m = self.w, self.m
        new.order, new.start = self.order.copy(), self.start.copy()
        new.value, new.sign = self.value.copy(), self.sign.copy()
        return new

    def take(self, other: Partition) -> None:
        """Become what ``other`` is."""
        self.m = other.m
        self.order, self.start, self.value, self.sign = other.order, other.start, other.value, other.sign

    def grown(self, w: int) -> Partition:
        """Return the partition with further zero slots."""
        new = Partition(w)
        new.m = self.m
        new.order[: self.w] = self.order[: self.w]
        new.sign[: self.w] = self.sign[: self.w]
        new.start[: self.m + 1] = self.start[: self.m + 1]
        new.value[: self.m] = self.value[: self.m]
        return new

    def moved(self, w: int, slot_of: Index) -> Partition:
        """Return the partition on other slots: slot i goes to ``slot_of[i]``; only zeros may go to -1."""
        new = Partition(w)
        new.m = self.m
        nonzero = self.nonzero
        new.start[: self.m + 1] = self.start[: self.m + 1]
        new.value[: self.m] = self.value[: self.m]
        head = slot_of[self.order[:nonzero]]
        rest = np.ones(w, dtype=bool)
        rest[head] = False
        new.order[:nonzero] = head
        new.order[nonzero:] = np.flatnonzero(rest)
        new.sign[head] = self.sign[self.order[:nonzero]]
        return new

    def support(self) -> tuple[Index, Vector]:
        """Slots and coefficients of the nonzeros, by decreasing magnitude."""
        slots = self.order[: self.nonzero]
        sizes = np.diff(self.start[: self.m + 1])
        return slots, np.repeat(self.value[: self.m], sizes) * self.sign[slots]


class Store:
    """Columns of a working set by slot, and what the kernels need of them.

    Attributes
    ----------
    ids : ndarray of int64, shape (w,)
        The feature in each slot.
    q : ndarray, shape (w,)
        Pull of each column on the target.
    """

    mode = 0
    n = 0
    w = 0
    ids: Index = _NO_INDEX
    q: Vector = _NO_VECTOR
    G: Vector = _NO_MATRIX
    data: Vector = _NO_VECTOR
    rows: Index = _NO_INDEX
    ptr: Index = _NO_INDEX
    norm2: Vector = _NO_VECTOR
    shift: Vector = _NO_VECTOR
    dot: Vector = _NO_VECTOR
    mass = 1.0

    def add(self, features: Index, q: Vector) -> None:
        """Append columns."""
        raise NotImplementedError

    def pull(self, r: Vector) -> Vector:
        """Correlations of the stored columns with r, shape (w,)."""
        raise NotImplementedError

    def product(self, slots: Index, coef: Vector) -> Vector:
        """Linear combination of stored columns, shape (n,)."""
        raise NotImplementedError


def _room(array: NDArray[np.generic], rows: int) -> NDArray[np.generic]:
    """Return the array with room for ``rows`` rows, its content first."""
    if array.shape[0] >= rows:
        return array
    new = np.empty((rows + rows // 8 + 16, *array.shape[1:]), dtype=array.dtype)
    new[: array.shape[0]] = array
    return new


class DenseStore(Store):
    """Centred, scaled and weighted float64 copies of the columns, and their Gram matrix when asked."""

    mode = 1

    def __init__(self, design: Design) -> None:
        self.design = design
        self.n = design.n
        self.w = 0
        self.table: Vector = np.empty((0, design.n))
        self.ids = np.empty(0, dtype=np.int64)
        self.q = np.empty(0)
        self.norm2 = np.empty(0)
        self.G = _NO_MATRIX
        self.flat = np.empty(0)
        self.filled = 0

    def add(self, features: Index, q: Vector) -> None:
        """Append columns."""
        old, self.w = self.w, self.w + features.size
        if self.table.shape[0] < self.w:
            # in place, where the system can: the table is never held twice
            self.data = _NO_VECTOR
            room = self.w // 16 + 8 if old else 0
            self.table.resize((self.w + room, self.n), refcheck=False)
        self.design.columns(features, self.table[old : self.w])
        new = self.table[old : self.w]
        norm2 = np.einsum("ij,ij->i", new, new)
        if self.design.shift is not None:
            # what is left of a constant column is rounding
            scale = 1.0 if self.design.scale is None else self.design.scale[features]
            norm2[norm2 <= 1e-26 * self.design.mass * (self.design.shift[features] / scale) ** 2] = 0.0
        self.ids = np.concatenate([self.ids[:old], features])
        self.q = np.concatenate([self.q[:old], q])
        self.norm2 = np.concatenate([self.norm2[:old], norm2])
        self.data = self.table.reshape(-1)

    def fill_gram(self) -> None:
        """Bring the Gram matrix up to the columns that are stored."""
        old, w = self.filled, self.w
        if old == w:
            return
        if self.flat.size < w * w:
            self._widen(w + (w // 16 + 8 if old else 0))
        table = self.table[:w]
        np.matmul(table[old:], table.T, out=self.G[old:w, :w])
        self.G[:old, old:w] = self.G[old:w, :old].T
        self.filled = w

    def _widen(self, size: int) -> None:
        """Make room for ``size`` rows of the Gram matrix within its own memory: it is never held twice."""
        old, filled = self.G.shape[0], self.filled
        self.G = _NO_MATRIX
        flat = self.flat
        flat.resize(size * size, refcheck=False)
        for i in range(filled - 1, 0, -1):
            flat[i * size : i * size + filled] = flat[i * old : i * old + filled]
        self.G = flat.reshape(size, size)

    def kept(self, slots: Index) -> DenseStore:
        """Return a store with some of the columns only."""
        new = DenseStore(self.design)
        new.w = slots.size
        new.table = self.table[slots]
        new.data = new.table.reshape(-1)
        new.ids, new.q, new.norm2 = self.ids[slots], self.q[slots], self.norm2[slots]
        if self.filled == self.w:
            new.flat = np.empty(new.w * new.w)
            new.G = new.flat.reshape(new.w, new.w)
            new.G[:] = self.G[np.ix_(slots, slots)]
            new.filled = new.w
        return new

    def pull(self, r: Vector) -> Vector:
        """Correlations of the stored columns with r, shape (w,)."""
        return self.table[: self.w] @ r

    def product(self, slots: Index, coef: Vector) -> Vector:
        """Linear combination of stored columns, shape (n,)."""
        if slots.size * 4 > self.w:
            full = np.zeros(self.w)
            full[slots] = coef
            return full @ self.table[: self.w]
        return coef @ self.table[slots]


class SparseStore(Store):
    """Scaled and weighted copies of sparse columns; their shift stays implicit."""

    mode = 2

    def __init__(self, design: Design) -> None:
        self.design = design
        self.n = design.n
        self.mass = design.mass
        self.ids = np.empty(0, dtype=np.int64)
        self.data = self.q = self.norm2 = self.shift = self.dot = np.empty(0)
        self.rows = np.empty(0, dtype=np.int64)
        self.ptr = np.zeros(1, dtype=np.int64)
        self.nnz = 0

    def add(self, features: Index, q: Vector) -> None:
        """Append columns."""
        data, rows, sizes = self.design.sparse_columns(features)
        ends = np.cumsum(sizes)
        old = self.nnz
        self.nnz += data.size
        self.data = _room(self.data, self.nnz)  # type: ignore[assignment]
        self.rows = _room(self.rows, self.nnz)  # type: ignore[assignment]
        self.data[old : self.nnz] = data
        self.rows[old : self.nnz] = rows
        self.ptr = np.concatenate([self.ptr, old + ends])
        shift = np.zeros(features.size)
        if self.design.shift is not None:
            shift = self.design.shift[features]
            if self.design.scale is not None:
                shift = shift / self.design.scale[features]
            shift[np.isin(features, self.design.flat)] = 0.0
        owner = np.repeat(np.arange(features.size), sizes)
        dot = np.zeros(features.size)
        np.add.at(dot, owner, data * self.design.root[rows])
        squares = np.zeros(features.size)
        np.add.at(squares, owner, data * data)
        norm2 = squares - 2.0 * shift * dot + shift * shift * self.mass
        norm2[norm2 <= 1e-14 * shift * shift * self.mass] = 0.0
        self.shift = np.concatenate([self.shift, shift])
        self.dot = np.concatenate([self.dot, dot])
        self.norm2 = np.concatenate([self.norm2, norm2])
        self.ids = np.concatenate([self.ids, features])
        self.q = np.concatenate([self.q, q])
        self.w += features.size

    def kept(self, slots: Index) -> SparseStore:
        """Return a store with some of the columns only."""
        new = SparseStore(self.design)
        sizes = np.diff(self.ptr)[slots]
        new.ptr = np.concatenate([[0], np.cumsum(sizes)])
        new.nnz = int(new.ptr[-1])
        take = np.repeat(self.ptr[slots] - new.ptr[:-1], sizes) + np.arange(new.nnz)
        new.data, new.rows = self.data[take], self.rows[take]
        for name in ("shift", "dot", "norm2", "ids", "q"):
            setattr(new, name, getattr(self, name)[slots])
        new.w = slots.size
        return new

    def hessian(self, part: Partition) -> Vector:
        """Gram matrix of the signed sums of the columns of each cluster, shape (m, m)."""
        from scipy.sparse import csr_array

        m = part.m
        slots = part.order[: part.nonzero]
        signs = part.sign[slots]
        sizes = np.diff(self.ptr)[slots]
        first = np.concatenate([[0], np.cumsum(sizes)])
        take = np.repeat(self.ptr[slots] - first[:-1], sizes) + np.arange(first[-1])
        data = self.data[take] * np.repeat(signs, sizes)
        sums = csr_array((data, self.rows[take], first[part.start[: m + 1]]), shape=(m, self.n))
        sums.sum_duplicates()
        H = np.asarray((sums @ sums.T).toarray())
        if self.design.shift is not None:
            shifts = np.add.reduceat(self.shift[slots] * signs, part.start[:m])
            cross = np.outer(shifts, np.add.reduceat(self.dot[slots] * signs, part.start[:m]))
            H += self.mass * np.outer(shifts, shifts) - cross - cross.T
        return H

    def pull(self, r: Vector) -> Vector:
        """Correlations of the stored columns with r, shape (w,)."""
        from scipy.sparse import csr_array

        table = csr_array((self.data[: self.nnz], self.rows[: self.nnz], self.ptr), shape=(self.w, self.n))
        return np.asarray(table @ r - self.shift * (self.design.root @ r))

    def product(self, slots: Index, coef: Vector) -> Vector:
        """Linear combination of stored columns, shape (n,)."""
        from scipy.sparse import csr_array

        full = np.zeros(self.w)
        full[slots] = coef
        table = csr_array((self.data[: self.nnz], self.rows[: self.nnz], self.ptr), shape=(self.w, self.n))
        return np.asarray(table.T @ full - (self.shift @ full) * self.design.root)


class GramStore(Store):
    """The full Gram matrix in place of the columns, for n much larger than p."""

    mode = 0

    def __init__(self, design: Design, q: Vector, G: Vector | None = None) -> None:
        self.w = design.p
        self.ids = np.arange(design.p)
        self.q = q
        self.G = np.ascontiguousarray(design.gram() if G is None else G)
        self.norm2 = self.G.diagonal().copy()


class WholeStore(Store):
    """X itself: for working sets that are most of X."""

    mode = 1

    def __init__(self, design: Design, q: Vector) -> None:
        self.design = design
        self.n = design.n
        self.w = design.p
        self.ids = np.arange(design.p)
        self.q = q

    def pull(self, r: Vector) -> Vector:
        """Correlations of the columns with r, shape (p,)."""
        return self.design.pull(r)

    def rows_of(self, slots: Index) -> Vector:
        """Columns as the rows of a dense array, shape (k, n)."""
        table = np.empty((slots.size, self.n))
        if self.design.sparse:
            for i, j in enumerate(slots):
                unit = np.zeros(self.w)
                unit[j] = 1.0
                table[i] = self.design.product(unit)
        else:
            self.design.columns(slots, table)
        return table

    def product(self, slots: Index, coef: Vector) -> Vector:
        """Linear combination of columns, shape (n,)."""
        if 4 * slots.size > self.w or self.design.sparse:
            full = np.zeros(self.w)
            full[slots] = coef
            return self.design.product(full)
        return coef @ self.rows_of(slots)
