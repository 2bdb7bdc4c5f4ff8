"""The forms of the inner solver and the model of their costs.

========================  ====================================================================================
gram                      the full p x p Gram matrix once; everything else happens in p dimensions (n >> p)
working_gram              Gram matrix of the working set, grown with it (dense X)
columns                   sums of the columns of each cluster and their m x m Gram matrix (few giant clusters)
residual                  coordinate descent on the columns and the residual (sparse X, very large working sets)
========================  ====================================================================================

Two ways to descend share them. :func:`sweeps`: epochs of cluster coordinate descent, each opened by a split, with
a Newton step on the reduced problem whenever as much has been spent on epochs. :func:`pursue`: Newton steps on
the reduced problem of the current pattern until it is solved, then the largest splits; for the neighbourhood of
a solution and for giant clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers import _slope_kernels as kernels
from convexlaw.solvers import _slope_newton_kernels as newton
from convexlaw.solvers._slope_store import DenseStore, Partition, SparseStore, WholeStore
from convexlaw.solvers._slope_sweep_kernels import sweep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_engine import Engine

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]

FORMS = ("gram", "working_gram", "columns", "residual")

# seconds: one multiply-add in memory-bound loops, in compiled loops, in matrix products, and one call
_STREAM = 4e-10
_LOOP = 3e-10
_BLAS = 2.5e-11
_CALL = 2e-5
# beyond this many columns the Gram matrix of a working set is too large to stay in cache, or in memory
MAX_GRAM = 8000
# the largest reduced problem that gets Newton steps
MAX_NEWTON = 3000


def choose(n: int, p: int, sparse: bool, n_penalties: int) -> str:
    """Form for a problem: the full Gram matrix where it is cheaper than the passes over X that it saves.

    Parameters
    ----------
    n, p : int
    sparse : bool
    n_penalties : int
        A single penalty takes about seven passes over X, each further one of a path a little over one.

    Returns
    -------
    str
    """
    passes = 7.0 + 1.3 * (n_penalties - 1)
    if not sparse and n >= 3 * p and p <= 3000 and n * p * p * _BLAS < passes * n * p * _STREAM:
        return "gram"
    return "residual" if sparse else "working_gram"


def partition(b: Vector) -> Partition:
    """Partition of a coefficient vector by slot."""
    part = Partition(b.size)
    part.m = kernels.partition_of(b, part.order, part.start, part.value, part.sign)
    return part


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
            newton.gram_pull(
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
        """Hessian and pull of the reduced problem; ``origin``: clusters whose column sums are still at hand."""
        store, part = self.store, self.engine.part
        m = part.m
        if self.mode == 0:
            H, grad = np.empty((m, m)), np.empty(m)
            newton.gram_reduce(store.G, self.g, part.order, part.start, m, part.sign, H, grad)
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
            newton.column_sums(self.n, table, part.order, part.start, origin, m, part.sign, A)
        else:
            sizes = np.diff(part.start[: m + 1])
            rest = {}
            for parent in np.unique(origin[origin < -1]):
                # the largest piece of a cluster is what the others leave of it
                pieces = np.flatnonzero(origin == parent)
                rest[int(pieces[np.argmax(sizes[pieces])])] = pieces
            for k in np.flatnonzero(~kept):
                if k not in rest:
                    slots = part.order[part.start[k] : part.start[k + 1]]
                    A[k] = store.product(slots, part.sign[slots])
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

    def __init__(self, part: Partition, H: Vector, grad: Vector, lam: Vector, cum: Vector) -> None:
        m = part.m
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
        self.live = newton.descend(
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
        live = self.live
        pull = np.empty(live)
        newton.pulls(self.grad, self.c, self.sizes, self.seq, self.rank, live, self.lam, self.cum, pull)
        F = np.empty((live, live))
        newton.gather(self.H, self.seq, live, F)
        step = solve_positive(F, pull)
        if step is None:
            return False
        self.live = newton.advance(
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
            pull,
            step,
            self.progress,
        )
        return bool(self.progress[1] == 1.0)


def solve_positive(F: Vector, right: Vector) -> Vector | None:
    """Solve F x = right for a symmetric F that may be singular up to rounding; None where it is hopeless."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    m = right.size
    diagonal = F.reshape(-1)[:: m + 1].copy()
    ridge = 1e-12 * float(diagonal.mean())
    kept = F.copy()
    for _ in range(4):
        F.reshape(-1)[:: m + 1] = diagonal + ridge
        factor, info = dpotrf(F.T, lower=0, overwrite_a=1, clean=0)
        if info == 0:
            x, _ = dpotrs(factor, right, lower=0)
            if np.isfinite(x).all():
                return np.asarray(x)
        F[:] = kept
        ridge = max(ridge * 1e3, 1e-300)
    return None


def sweeps(
    engine: Engine, lam: Vector, cum: Vector, goal: float, max_rounds: int, *, settled: bool = False
) -> None:
    """Coordinate descent over clusters, with Newton steps where they pay, to a gap on the working set.

    ``settled``: the pattern is that of a nearby penalty, so a Newton step comes first.
    """
    store, part = engine.store, engine.part
    view = View(engine, sums=False)
    n, w = view.n, view.w
    progress = np.zeros(3)
    spent = np.inf if settled else 0.0
    fallen = 0.0
    patience = 1.0
    before = best = np.inf
    last = ""
    idle = 0
    while True:
        gap, value = view.gap(lam, cum)
        if last == "newton":
            # as often as it brings more than the epochs since the last one
            patience = min(max(patience / 1.5 if before - value > fallen else patience * 1.5, 0.3), 20.0)
            fallen = 0.0
        elif last == "sweep":
            fallen += before - value
        before = value
        idle = 0 if gap < 0.9 * best else idle + 1
        best = min(best, gap)
        if gap <= goal or engine.rounds >= max_rounds or idle > 60:
            return
        m = part.m
        step = newton_cost(view, part.nonzero, m)
        if m and m <= MAX_NEWTON and spent >= patience * step:
            H, grad = view.reduce(None)
            reduced = Reduced(part, H, grad, lam, cum)
            reduced.newton()
            view.write_back(reduced.c, reduced.seq, reduced.live, reduced.into, reduced.rel)
            engine.rounds += 1
            engine.cost += step
            spent = 0.0
            last = "newton"
            continue
        part.m = sweep(
            view.mode,
            n,
            w,
            store.G,
            store.data,
            store.rows,
            store.ptr,
            store.norm2,
            store.shift,
            store.dot,
            store.mass,
            view.residual,
            view.acc,
            view.g,
            part.order,
            part.start,
            part.value,
            part.m,
            part.sign,
            lam,
            cum,
            engine.noise,
            5,
            progress,
        )
        last = "sweep"
        epochs = int(progress[1])
        epoch = epochs * epoch_cost(view, part.nonzero)
        spent += epoch
        engine.cost += epoch
        engine.rounds += epochs
        if progress[0] == 0.0:
            # a fixed point of the descent, up to rounding
            spent = np.inf
            idle += 15


def epoch_cost(view: View, nonzero: int) -> float:
    """Seconds that the model gives to an epoch of coordinate descent."""
    if view.mode == 0:
        return 0.1 * _CALL + _LOOP * nonzero * view.w
    if isinstance(view.store, SparseStore):
        return 0.1 * _CALL + 5.0 * _LOOP * view.store.nnz * (1.0 + 2.0 * nonzero / view.w)
    return 0.1 * _CALL + _LOOP * view.n * (2.0 * nonzero + view.w)


def newton_cost(view: View, nonzero: int, m: int) -> float:
    """Seconds that the model gives to building a reduced problem and one Newton step on it."""
    if view.mode == 0:
        build = _LOOP * nonzero * (view.w + 4.0 * nonzero)
    else:
        build = 0.5 * _STREAM * view.n * (view.w + nonzero) + 2.0 * _BLAS * view.n * m**2
    return 2.0 * _CALL + build + step_cost(m)


def step_cost(m: int) -> float:
    """Seconds that the model gives to one more Newton step on a reduced problem."""
    return _CALL + _BLAS * m**3 / 3.0 + 5.0 * _LOOP * m**2


def _sums_pay(engine: Engine) -> bool:
    """Whether a round is cheaper on sums of columns than on the Gram matrix of the working set."""
    store, part = engine.store, engine.part
    if isinstance(store, WholeStore):
        return True
    if not isinstance(store, DenseStore) or engine.form == "residual":
        return False
    if engine.fixed or store.w > MAX_GRAM:
        return engine.form == "columns" or store.w > MAX_GRAM
    n, w, nonzero = store.n, store.w, part.nonzero
    gram = _LOOP * nonzero * (w + 4.0 * nonzero) + _BLAS * n * w * (w - store.filled)
    sums = 0.5 * _STREAM * n * (w + nonzero) + _BLAS * n * part.m**2
    return sums < gram


def pursue(
    engine: Engine,
    lam: Vector,
    cum: Vector,
    goal: float,
    max_rounds: int,
    *,
    settled: bool,
    budget: float = np.inf,
) -> None:
    """Solve the reduced problem of the pattern by Newton steps, split where the pull is largest, repeat.

    Parameters
    ----------
    settled : bool
        The pattern is that of a nearby penalty: solve on it before the first split.
    budget : float
        Give up when the model's cost exceeds it.
    """
    part = engine.part
    view = View(engine, sums=_sums_pay(engine))
    best = np.inf
    idle = 0
    skip = settled and part.m > 0
    w = view.w
    end = engine.cost + budget
    while True:
        gap, _ = view.gap(lam, cum)
        idle = 0 if gap < 0.9 * best else idle + 1
        best = min(best, gap)
        if gap <= goal or engine.rounds >= max_rounds or idle > 20 or engine.cost > end:
            return
        origin: Index | None = None
        if not skip:
            start, value = np.zeros(w + 2, dtype=np.int64), np.zeros(w + 2)
            origin = np.empty(w + 1, dtype=np.int64)
            m = kernels.split(
                w,
                part.order,
                part.start,
                part.value,
                part.m,
                part.sign,
                view.g,
                lam,
                engine.noise,
                0.1,
                start,
                value,
                origin,
            )
            part.start, part.value, part.m = start, value, m
        if part.m == 0:
            return
        H, grad = view.reduce(origin)
        reduced = Reduced(part, H, grad, lam, cum)
        engine.cost += newton_cost(view, part.nonzero, part.m) - step_cost(part.m)
        for _ in range(3):
            engine.cost += step_cost(reduced.live) + 3.0 * _LOOP * reduced.live**2
            if not skip:
                reduced.descend(3)
                engine.rounds += int(reduced.progress[1])
                if reduced.live == 0 or reduced.progress[0] == 0.0:
                    break
            skip = False
            engine.rounds += 1
            if reduced.newton():
                break
        view.write_back(reduced.c, reduced.seq, reduced.live, reduced.into, reduced.rel)


__all__ = ["FORMS", "choose", "partition", "pursue", "sweeps"]
