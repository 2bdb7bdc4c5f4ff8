"""The forms of the inner solver, the two ways to descend on them, and the model of their costs.

- gram: the full p x p Gram matrix once; everything else happens in p dimensions (n >> p).
- working_gram: the Gram matrix of the working set, grown with it (dense X).
- columns: sums of the columns of each cluster and their m x m Gram matrix (few giant clusters).
- residual: coordinate descent on columns and residual (sparse X, very large working sets).

:func:`sweeps`: epochs of cluster coordinate descent, each opened by a split, and a Newton step on the reduced
problem whenever as much has been spent on epochs; with a Gram matrix and few clusters both in one compiled
loop. :func:`pursue`: Newton steps on the reduced problem of a
pattern until it is solved, then its largest splits; for the neighbourhood of a solution and for giant
clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers import _slope_kernels as kernels
from convexlaw.solvers._slope_model_kernels import alternate
from convexlaw.solvers._slope_split_kernels import split
from convexlaw.solvers._slope_store import DenseStore, Partition, SparseStore, WholeStore
from convexlaw.solvers._slope_sweep_kernels import sweep
from convexlaw.solvers._slope_view import MAX_GRAM, Reduced, View

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
# the largest reduced problem that gets Newton steps
MAX_NEWTON = 3000
# up to here a compiled step costs less than the calls of one that uses LAPACK
_FEW = 70


def choose(n: int, p: int, sparse: bool, n_penalties: int) -> str:
    """Form for a problem: the full Gram matrix where it is cheaper than the passes over X that it saves.

    Parameters
    ----------
    n, p : int
    sparse : bool
    n_penalties : int
        A single penalty takes about seven passes over X, each further one of a path a little over one. In a
        small problem the calls cost more than any arithmetic, and a Gram matrix saves them.

    Returns
    -------
    str
    """
    small = n >= p and n * p * p * _BLAS < 20.0 * _CALL
    if not sparse and (small or gram_pays(n, p, n, n_penalties)):
        return "gram"
    return "residual" if sparse else "working_gram"


def gram_pays(n: int, p: int, rows: float, n_penalties: int) -> bool:
    """Whether a full Gram matrix, made from ``rows`` rows, costs less than the passes over X it saves."""
    passes = 7.0 + 1.3 * (n_penalties - 1)
    return n >= 3 * p and p <= 3000 and rows * p * p * _BLAS < passes * n * p * _STREAM


def partition(b: Vector) -> Partition:
    """Partition of a coefficient vector by slot."""
    part = Partition(b.size)
    part.m = kernels.partition_of(b, part.order, part.start, part.value, part.sign)
    return part


def sweeps(
    engine: Engine, lam: Vector, cum: Vector, goal: float, max_rounds: int, *, settled: bool = False
) -> None:
    """Coordinate descent over clusters, with Newton steps where they pay, to a gap on the working set.

    ``settled``: the pattern is that of a nearby penalty, so a Newton step comes first.
    """
    store, part = engine.store, engine.part
    view = View(engine, sums=False)
    if view.mode == 0 and part.m <= _FEW:
        _few_clusters(view, lam, cum, goal, max_rounds, settled=settled)
    n, w = view.n, view.w
    progress = np.zeros(3)
    spent = np.inf if settled else 0.0
    fallen = 0.0
    patience = 1.0
    before = best = np.inf
    last = ""
    idle = 0
    kept = part
    while True:
        gap, value = view.gap(lam, cum)
        if last == "newton" and not value <= before + 1e-10 * engine.energy:
            # rounding made an ill-conditioned step climb: back, and less of them
            part.take(kept)
            view.refresh()
            gap, value = view.gap(lam, cum)
            patience = 20.0
            last = ""
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
            kept = part.copy()
            H, grad = view.reduce(None)
            reduced = Reduced(part, H, grad, lam, cum, engine.design.n)
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


def _few_clusters(
    view: View, lam: Vector, cum: Vector, goal: float, max_rounds: int, *, settled: bool
) -> None:
    """Descend on the Gram matrix in compiled code as long as there are few clusters and the gap falls."""
    engine, store, part = view.engine, view.store, view.engine.part
    spent = np.zeros(2, dtype=np.int64)
    part.m = alternate(
        view.w,
        store.G,
        store.q,
        store.norm2,
        engine.energy,
        view.g,
        part.order,
        part.start,
        part.value,
        part.m,
        part.sign,
        lam,
        cum,
        engine.noise,
        goal,
        max_rounds - engine.rounds,
        _FEW,
        settled and part.m > 0,
        spent,
    )
    epochs, steps = int(spent[0]), int(spent[1])
    engine.rounds += epochs + steps
    nonzero = part.nonzero
    engine.cost += epochs * epoch_cost(view, nonzero) + steps * newton_cost(view, nonzero, part.m)


def epoch_cost(view: View, nonzero: int) -> float:
    """Seconds that the model gives to an epoch of coordinate descent."""
    if view.mode == 0:
        return 0.3 * _CALL + _LOOP * nonzero * view.w
    if isinstance(view.store, SparseStore):
        return 0.3 * _CALL + 5.0 * _LOOP * view.store.nnz * (1.0 + 2.0 * nonzero / view.w)
    return 0.3 * _CALL + _LOOP * view.n * (2.0 * nonzero + view.w)


def newton_cost(view: View, nonzero: int, m: int) -> float:
    """Seconds that the model gives to building a reduced problem and one Newton step on it."""
    if view.mode == 0:
        build = _LOOP * nonzero * (view.w + 4.0 * nonzero)
    else:
        build = 0.5 * _STREAM * view.n * (view.w + nonzero) + 2.0 * _BLAS * view.n * m**2
    return 2.0 * _CALL + build + step_cost(m, view.engine.design.n)


def step_cost(m: int, n: int) -> float:
    """Seconds that the model gives to one more Newton step on a reduced problem with n rows."""
    cost = _CALL + _BLAS * m**3 / 3.0 + 5.0 * _LOOP * m**2
    if m > n:
        # the clusters that are too many are merged one by one, and the rest is factored again
        cost += cost + (m - n) * (0.5 * _CALL + 3.0 * _LOOP * m * (m - n))
    return cost


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
) -> bool:
    """Solve the reduced problem of the pattern by Newton steps, split where the pull is largest, repeat.

    Parameters
    ----------
    settled : bool
        The pattern is that of a nearby penalty: solve on it before the first split.
    budget : float
        Give up when the model's cost exceeds it.

    Returns
    -------
    bool
        False where rounding made an ill-conditioned step climb; it is taken back.
    """
    part = engine.part
    view = View(engine, sums=_sums_pay(engine))
    best = np.inf
    idle = 0
    skip = settled and part.m > 0
    w = view.w
    end = engine.cost + budget
    kept, before = part, np.inf
    while True:
        gap, objective = view.gap(lam, cum)
        if not objective <= before + 1e-10 * engine.energy:
            part.take(kept)
            return False
        before = objective
        idle = 0 if gap < 0.9 * best else idle + 1
        best = min(best, gap)
        if gap <= goal or engine.rounds >= max_rounds or idle > 20 or engine.cost > end:
            return True
        kept = part.copy()
        origin: Index | None = None
        if not skip:
            start, value = np.zeros(w + 2, dtype=np.int64), np.zeros(w + 2)
            origin = np.empty(w + 1, dtype=np.int64)
            m = split(
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
        if part.m == 0 or part.m > MAX_NEWTON:
            return True
        H, grad = view.reduce(origin)
        reduced = Reduced(part, H, grad, lam, cum, engine.design.n)
        engine.cost += newton_cost(view, part.nonzero, part.m) - step_cost(part.m, engine.design.n)
        for _ in range(3):
            engine.cost += step_cost(reduced.live, engine.design.n) + 3.0 * _LOOP * reduced.live**2
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
