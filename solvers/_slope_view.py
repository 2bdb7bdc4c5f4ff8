"""The working problem as the descents see it: pulls, certificates, and the cluster-reduced problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers import _slope_kernels as kernels
from convexlaw.solvers import _slope_newton_kernels as newton
from convexlaw.solvers import _slope_reduce_kernels as reduction
from convexlaw.solvers._slope_store import DenseStore, Partition, SparseStore, WholeStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_engine import Engine

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]

# beyond this many columns the Gram matrix of a working set is too large to stay in cache, or in memory
MAX_GRAM = 8000


class View:
    """Pull and reduced problem of the current partition, in the form that the working set allows."""

    def __init__(self, engine: Engine, *, sums: bool) -> None:
        self.engine = engine
        self.store = store = engine.store
        self.n, self.w = store.n, store.w
        self.mode = store.mode
        self.sums = sums
        if isinstance(store, DenseStore) and not sums and engine.form != "residual" and store.w <= MAX_GRAM:
            self.mode = 0
            store.fill_gram()
        self.g: Vector = np.empty(self.w)
        self.residual: Vector = np.zeros(1)
        self.acc = np.zeros(2)
        self.A: Vector = np.empty((0, self.n))
        self.out = np.zeros(3)
        self.refresh()

    def refresh(self) -> None:
        """Compute residual and pull from the coefficients."""
        store, part = self.store, self.engine.part
        if self.mode == 0:
            reduction.gram_pull(
                self.w, store.G, store.q, part.order, part.start, part.value, part.m, part.sign, self.g
            )
            return
        slots, values = part.support()
        z = self.engine.z
        self.residual = z - store.product(slots, values) if slots.size else z.copy()
        self.settle()

    def settle(self) -> None:
        """Compute the pull from the residual."""
        self.acc = np.array([0.0, float(self.engine.design.root @ self.residual)])
        self.g = self.store.pull(self.residual)

    def gap(self, lam: Vector, cum: Vector) -> tuple[float, float]:
        """Duality gap and objective on the working set."""
        part, store = self.engine.part, self.store
        if self.acc[0] != 0.0:
            self.residual += self.acc[0] * self.engine.design.root
            self.acc[0] = 0.0
        rss = -1.0 if self.mode == 0 else float(self.residual @ self.residual)
        gap = kernels.certificate(
            self.w,
            part.order,
            part.start,
            part.value,
            part.m,
            part.sign,
            self.g,
            store.q,
            lam,
            cum,
            self.engine.energy,
            rss,
            self.out,
        )
        return float(gap), float(0.5 * self.out[1] + self.out[0])

    def reduce(self, origin: Index | None) -> tuple[Vector, Vector]:
        """Hessian and pull of the reduced problem; ``origin`` tells whose column sums are still at hand."""
        store, part = self.store, self.engine.part
        m = part.m
        if self.mode == 0:
            H, grad = np.empty((m, m)), np.empty(m)
            reduction.gram_reduce(store.G, self.g, part.order, part.start, m, part.sign, H, grad)
            return H, grad
        slots = part.order[: part.nonzero]
        grad = np.add.reduceat(self.g[slots] * part.sign[slots], part.start[:m])
        if isinstance(store, SparseStore):
            return store.hessian(part), grad
        self.A = self._column_sums(np.full(m, -1, dtype=np.int64) if origin is None else origin[:m])
        return self.A @ self.A.T, grad

    def _column_sums(self, origin: Index) -> Vector:
        """Signed sums of the columns of each cluster, taken over where a cluster did not change."""
        store, part = self.store, self.engine.part
        m = part.m
        A = np.empty((m, self.n))
        if self.A.shape[0] == 0:
            origin = np.full(m, -1, dtype=np.int64)
        kept = origin >= 0
        A[kept] = self.A[origin[kept]]
        if isinstance(store, DenseStore):
            table = store.data.reshape(-1, self.n)
            reduction.column_sums(self.n, table, part.order, part.start, origin, m, part.sign, A)
        elif isinstance(store, WholeStore):
            sizes = np.diff(part.start[: m + 1])
            rest: dict[int, Index] = {}
            for parent in np.unique(origin[origin < -1]):
                # the largest piece of a cluster is what the others leave of it
                pieces = np.flatnonzero(origin == parent)
                rest[int(pieces[np.argmax(sizes[pieces])])] = pieces
            fresh = [k for k in np.flatnonzero(~kept).tolist() if k not in rest]
            small = [k for k in fresh if 4 * sizes[k] <= self.w]
            for k in fresh:
                if 4 * sizes[k] > self.w:
                    slots = part.order[part.start[k] : part.start[k + 1]]
                    A[k] = store.product(slots, part.sign[slots])
            for a in range(0, len(small), 64):
                some = small[a : a + 64]
                slots = np.concatenate([part.order[part.start[k] : part.start[k + 1]] for k in some])
                first = np.concatenate([[0], np.cumsum(sizes[some])])[:-1]
                A[some] = np.add.reduceat(part.sign[slots, None] * store.rows_of(slots), first, axis=0)
            for k, pieces in rest.items():
                A[k] = self.A[-2 - origin[k]] - A[pieces[pieces != k]].sum(axis=0)
        return A

    def write_back(self, c: Vector, seq: Index, live: int, into: Index, rel: Vector) -> None:
        """Take over the solution of a reduced problem."""
        part = self.engine.part
        m = into.size
        old = part.value[:m].copy()
        if not self.sums:
            part.m = kernels.expand(part.order, part.start, part.value, m, part.sign, c, seq, live, into, rel)
            self.refresh()
            return
        factor, root = _roots(into, rel, seq, live)
        final = np.append(c[seq[:live]], 0.0)[root]
        self.residual = self.residual + (old - factor * final) @ self.A
        mix = np.zeros((live + 1, m))
        mix[root, np.arange(m)] = factor * np.sign(final)
        part.m = kernels.expand(part.order, part.start, part.value, m, part.sign, c, seq, live, into, rel)
        self.A = mix[: part.m] @ self.A
        self.settle()


def _roots(into: Index, rel: Vector, seq: Index, live: int) -> tuple[Vector, Index]:
    """Relative sign of each old cluster and the place of the cluster it ended in (``live``: zero)."""
    m = into.size
    place = np.full(m, live)
    place[seq[:live]] = np.arange(live)
    factor = np.ones(m)
    root = np.arange(m)
    moved = into[root] >= 0
    while moved.any():
        factor[moved] *= rel[root[moved]]
        root[moved] = into[root[moved]]
        moved = into[root] >= 0
    return factor, place[root]


class Reduced:
    """The reduced problem of a partition while it is being solved."""

    def __init__(self, part: Partition, H: Vector, grad: Vector, lam: Vector, cum: Vector, rows: int) -> None:
        m = part.m
        # the rank of H is at most this
        self.rows = rows
        self.m = self.live = m
        self.H, self.grad, self.lam, self.cum = H, grad, lam, cum
        self.c = part.value[:m].copy()
        self.sizes = np.diff(part.start[: m + 1])
        self.seq, self.pos = np.arange(m), np.arange(m)
        self.rank = part.start[:m].copy()
        self.into = np.full(m, kernels.ALIVE)
        self.rel = np.ones(m)
        self.progress = np.zeros(3)

    def descend(self, epochs: int) -> None:
        """Epochs of coordinate descent."""
        self.live = reduction.descend(
            self.H,
            self.grad,
            self.c,
            self.sizes,
            self.seq,
            self.pos,
            self.rank,
            self.live,
            self.m,
            self.lam,
            self.cum,
            self.into,
            self.rel,
            epochs,
            self.progress,
        )

    def newton(self) -> bool:
        """One Newton step with its bending line search; True where the full step met nothing."""
        pull = self._pulls()
        step = self._solve(pull)
        excess = self.live - self.rows
        if step is None and excess > max(4, self.live // 20):
            # far too many clusters: a damped step, whose many kinks merge them
            F = self._living()
            damping = 1e-2 * float(F.diagonal().mean())
            step = solve_ridged(F, pull, damping)
            if step is not None:
                # beyond the full step, as far as another cluster can be
                reach = float(np.abs(self.c[self.seq[: self.live]]).max())
                limit = max(1.0, 4.0 * reach / max(float(np.abs(step).max()), 1e-300))
                self._advance(pull - damping * step, step, limit, True)
            if self.live - self.rows < 0.75 * excess:
                return False
            step = None
        if step is None:
            self._leave_null_space()
            if self.live == 0:
                return False
            pull = self._pulls()
            step = self._solve(pull)
            if step is None:
                F = self._living()
                step = solve_ridged(F, pull, 1e-11 * float(F.diagonal().mean()))
        if step is None:
            return False
        self._advance(pull, step, 1.0, True)
        return bool(self.progress[1] == 1.0)

    def _pulls(self) -> Vector:
        out = np.empty(self.live)
        reduction.pulls(
            self.grad, self.c, self.sizes, self.seq, self.rank, self.live, self.lam, self.cum, out
        )
        return out

    def _living(self) -> Vector:
        """Hessian of the living clusters, in the order of seq."""
        F = np.empty((self.live, self.live))
        reduction.gather(self.H, self.seq, self.live, F)
        return F

    def _solve(self, pull: Vector) -> Vector | None:
        """Newton's direction; None where the Hessian is singular to rounding.

        Before anything merged, the factor goes into the lower triangle of H, restored from the upper one.
        """
        from scipy.linalg.lapack import dpotrf, dpotrs

        live = self.live
        whole = live == self.m and bool((self.seq[:live] == np.arange(live)).all())
        F = self.H if whole else self._living()
        diagonal = F.diagonal().copy()
        step: Vector | None = None
        if (diagonal > 0.0).all():
            factor, info = dpotrf(F.T, lower=0, overwrite_a=1, clean=0)
            if info == 0 and (factor.diagonal() ** 2 > 1e-14 * live * diagonal).all():
                step = np.asarray(dpotrs(factor, pull, lower=0)[0])
            if whole:
                reduction.restore(self.H, diagonal)
        return step if step is not None and np.isfinite(step).all() else None

    def _advance(self, pull: Vector, step: Vector, limit: float, bend: bool) -> None:
        self.live = newton.advance(
            self.H,
            self.grad,
            self.c,
            self.sizes,
            self.seq,
            self.pos,
            self.rank,
            self.live,
            self.m,
            self.lam,
            self.cum,
            self.into,
            self.rel,
            pull,
            step,
            limit,
            bend,
            self.progress,
        )

    def _leave_null_space(self) -> None:
        """Merge clusters along directions that the loss does not see, which would dominate Newton's."""
        from scipy.linalg.lapack import dpstrf, dtrtrs

        live = self.live
        F = self._living()
        diagonal = F.diagonal()
        size = np.where(diagonal > 0.0, np.sqrt(np.maximum(diagonal, 1e-300)), 1.0)
        F /= size
        F /= size[:, None]
        factor, pivots, rank, _ = dpstrf(F.T, lower=0, tol=3e-14 * live, overwrite_a=1)
        if rank == live:
            return
        order = pivots.astype(np.int64) - 1
        span = np.zeros((live - rank, live))
        span[np.arange(live - rank), order[rank:]] = 1.0
        if rank > 0:
            below, _ = dtrtrs(factor[:rank, :rank], factor[:rank, rank:], lower=0)
            span[:, order[:rank]] = -below.T
        span /= size
        span /= np.abs(span).max(axis=1, keepdims=True)
        self.live = newton.leave_null_space(
            span,
            self.H,
            self.grad,
            self.c,
            self.sizes,
            self.seq,
            self.pos,
            self.rank,
            live,
            self.m,
            self.lam,
            self.cum,
            self.into,
            self.rel,
            self.progress,
        )


def solve_ridged(F: Vector, right: Vector, ridge: float) -> Vector | None:
    """Solve (F + ridge I) x = right, with a larger ridge where that is needed; None where it is hopeless."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    m = right.size
    diagonal = F.diagonal().copy()
    for _ in range(4):
        A = F.copy()
        A.reshape(-1)[:: m + 1] = diagonal + ridge
        factor, info = dpotrf(A.T, lower=0, overwrite_a=1, clean=0)
        if info == 0:
            x = np.asarray(dpotrs(factor, right, lower=0)[0])
            return x if np.isfinite(x).all() else None
        ridge = max(ridge * 1e3, 1e-300)
    return None
