"""The engine of the SLOPE solver: weighted least squares plus sorted L1, by working sets and several forms.

It minimises ``1/2 ||z - A b||^2 + sum_i lam_i |b|_(i)`` where A is a :class:`Design` (weights, shift and
scale included), so that any loss can use it for its quadratic model. The certificate is the duality gap over
all columns of A.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers import _slope_forms as forms
from convexlaw.solvers._slope_store import DenseStore, GramStore, Partition, SparseStore, Store, WholeStore
from convexlaw.solvers._slope_view import View
from convexlaw.theory._sorted_l1_kernels import dual_norm, survivors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_design import Design

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]


class Engine:
    """State of the solver between penalties: working set, coefficients, residual, pull of every column.

    Parameters
    ----------
    design : Design
    target : ndarray, shape (n,)
        z, in weighted rows (``sqrt(weights) * response``, centred if there is an intercept).
    pull : ndarray, shape (p,), optional
        ``design.pull(target)`` where it is known.
    form : str
        "auto", or one of the forms "gram", "working_gram", "columns", "residual".
    n_penalties : int
        How many penalties will be solved; a full Gram matrix pays for many.
    gram : ndarray, shape (p, p), optional
        ``design.gram()`` where it is known; for the form "gram".
    """

    def __init__(
        self,
        design: Design,
        target: Vector,
        pull: Vector | None = None,
        *,
        form: str = "auto",
        n_penalties: int = 1,
        gram: Vector | None = None,
    ) -> None:
        self.design = design
        self.z = target
        self.q: Vector = design.pull(target) if pull is None else pull
        self.energy = float(target @ target)
        self.noise = 1e-15 * float(np.abs(self.q).max(initial=0.0))
        self.form = forms.choose(design.n, design.p, design.sparse, n_penalties) if form == "auto" else form
        self.fixed = form != "auto"
        self.rounds = 0
        self.rss = self.energy
        self.giant = False
        self.cost = 0.0
        self.spent = [1e-9, 1e-9]
        self.visits = 0
        self.retry = 1.0
        self.pursuing = False
        self.g: Vector = self.q
        self.r: Vector = target
        if self.form == "gram":
            self.store: Store = GramStore(design, self.q, gram)
        elif self.form == "columns" and self.fixed:
            self.store = WholeStore(design, self.q)
        else:
            self.store = SparseStore(design) if design.sparse else DenseStore(design)
        self.part = Partition(self.store.w)

    # -- state ---------------------------------------------------------------------------------------------

    def start_at(self, b: Vector) -> None:
        """Warm start from coefficients on the seen columns, shape (p,)."""
        features = np.flatnonzero(b)
        if not isinstance(self.store, GramStore | WholeStore):
            self._add(features)
            slots = self._slot_of()[features]
        else:
            slots = features
        full = np.zeros(self.store.w)
        full[slots] = b[features]
        self.part = forms.partition(full)
        if self.form != "gram":
            self._refresh()

    def coef(self) -> Vector:
        """Coefficients on the seen columns, shape (p,)."""
        b = np.zeros(self.design.p)
        slots, values = self.part.support()
        b[self.store.ids[slots]] = values
        return b

    def _slot_of(self) -> Index:
        slot_of = np.full(self.design.p, -1, dtype=np.int64)
        slot_of[self.store.ids[: self.store.w]] = np.arange(self.store.w)
        return slot_of

    def _refresh(self) -> None:
        """Recompute the residual, and the pull of all columns on it."""
        slots, values = self.part.support()
        self.r = self.z - self.store.product(slots, values) if slots.size else self.z.copy()
        self.g = self.design.pull(self.r)

    # -- certificate ---------------------------------------------------------------------------------------

    def gap(self, lam: Vector, cum: Vector) -> float:
        """Duality gap over all columns at the current residual."""
        part = self.part
        slots, values = part.support()
        bg = float(values @ self.g[self.store.ids[slots]])
        penalty = float(np.diff(cum[part.start[: part.m + 1]]) @ part.value[: part.m])
        self.rss = rss = float(self.r @ self.r)
        norm = dual_norm(self.g, lam)
        s = 1.0 / norm if norm > 0.0 else 1.0
        if rss > 0.0:
            s = min(s, max(float(self.r @ self.z) / rss, 0.0))
        return 0.5 * (1.0 - s) ** 2 * rss + (penalty - s * bg)

    # -- solving -------------------------------------------------------------------------------------------

    def solve(
        self, lam: Vector, cum: Vector, goal: float, max_rounds: int, previous: Vector | None = None
    ) -> float:
        """Solve for one penalty from the current coefficients; returns the duality gap reached.

        Parameters
        ----------
        lam, cum : ndarray, shapes (p,) and (p + 1,)
            Penalty by rank and its cumulative sum from 0.
        goal : float
            Duality gap to reach.
        max_rounds : int
            Bound on ``rounds`` (epochs of coordinate descent and Newton steps).
        previous : ndarray, shape (p,), optional
            Penalty of the current coefficients, for the strong rule.
        """
        if isinstance(self.store, GramStore):
            return self._solve_gram(lam, cum, goal, max_rounds, settled=previous is not None)
        inner = 0.3 * goal
        gap = self.gap(lam, cum)
        best = np.inf
        stuck = 0
        near = previous is not None and self.part.m > 0
        while gap > goal and self.rounds < max_rounds:
            settled = previous is not None
            new = self._violators(lam, cum, previous)
            previous = None
            if new.size:
                self._add(new)
            if isinstance(self.store, GramStore):
                return self._solve_gram(lam, cum, goal, max_rounds, settled=settled)
            target = 0.7 * goal if settled or new.size == 0 else max(inner, 0.1 * gap)
            before = self.rounds
            self._inner(lam, cum, target, max_rounds, near=near, settled=settled)
            self.giant = False
            self._refresh()
            gap = self.gap(lam, cum)
            if new.size == 0 and gap > 0.5 * best:
                # all violators are in: what is left is the accuracy of the subproblem, or rounding
                inner *= 0.1
                stuck += 1
                near = True
                self.pursuing = not self.pursuing
                if self.rounds == before or (stuck > 8 and gap < 1e-11 * self.energy):
                    break
                if stuck > 16 and self.form != "residual":
                    # what sums and products of columns have lost does not come back
                    break
            best = min(best, gap)
        return gap

    def _inner(
        self, lam: Vector, cum: Vector, target: float, max_rounds: int, *, near: bool, settled: bool
    ) -> None:
        """Solve on the working set, by the form and the way of descent that suit it.

        Near a solution either way of descent may be the better one by an order of magnitude, and it stays so
        along a path: the cheaper one so far is taken, the other is tried now and then, at limited cost.
        """
        if self._giant():
            steady = forms.pursue(self, lam, cum, target, max_rounds, settled=settled)
            # X itself holds no columns for the kernel of coordinate descent
            if not steady and not isinstance(self.store, WholeStore):
                forms.sweeps(self, lam, cum, target, max_rounds)
            return
        if not near or self.part.m > forms.MAX_NEWTON:
            forms.sweeps(self, lam, cum, target, max_rounds)
            return
        self.visits += settled
        ratio = self.spent[0] / self.spent[1]
        if settled and self.visits >= self.retry:
            # the other way, for once
            self.pursuing = ratio < 1.0
            self.retry = self.visits + 5.0 + 5.0 * max(ratio, 1.0 / ratio) ** 2
        elif settled:
            self.pursuing = ratio > 1.0
        before = self.cost
        if self.pursuing:
            budget = 4.0 * self.spent[0] if settled and self.spent[0] > 1e-8 else np.inf
            steady = forms.pursue(self, lam, cum, target, max_rounds, settled=settled, budget=budget)
            if not steady or self.cost - before > budget or self.part.m > forms.MAX_NEWTON:
                forms.sweeps(self, lam, cum, target, max_rounds)
        else:
            forms.sweeps(self, lam, cum, target, max_rounds, settled=settled)
        if settled:
            way = int(self.pursuing)
            self.spent[way] += 0.5 * (self.cost - before - self.spent[way])

    def _solve_gram(self, lam: Vector, cum: Vector, goal: float, max_rounds: int, *, settled: bool) -> float:
        self._inner(lam, cum, goal, max_rounds, near=settled and self.part.m > 0, settled=settled)
        view = View(self, sums=False)
        gap = view.gap(lam, cum)[0]
        self.rss = float(view.out[1])
        return gap

    def _violators(self, lam: Vector, cum: Vector, previous: Vector | None) -> Index:
        """Features outside the working set that the prox of the pull would activate, the strongest first."""
        whole = isinstance(self.store, WholeStore)
        if whole and (self.fixed or previous is None):
            return np.empty(0, dtype=np.int64)
        bound = 0.9995 * lam
        if previous is not None:
            # strong rule, for a penalty that falls in proportion or any other
            bound = np.minimum(bound, np.maximum(np.minimum.accumulate(2.0 * lam - previous), 0.0))
        index = np.empty(self.design.p, dtype=np.int64)
        key = np.empty(self.design.p)
        k = survivors(self.g, bound, index, key)
        index, key = index[:k], key[:k]
        # a small X is taken in at once
        least = 256 if self.design.n * self.design.p <= 50_000 else 50
        most = max(least, self.part.nonzero // 2 if previous is not None else self.part.nonzero)
        if previous is not None:
            if k > self.part.nonzero + most:
                strongest = np.argpartition(-key, self.part.nonzero + most)[: self.part.nonzero + most]
                index, key = index[strongest], key[strongest]
            self._compact(index)
            if isinstance(self.store, WholeStore):
                return np.empty(0, dtype=np.int64)
        inside = np.zeros(self.design.p, dtype=bool)
        inside[self.store.ids[: self.store.w]] = True
        out = np.flatnonzero(~inside[index])
        if out.size > most:
            top = out[np.argpartition(-key[out], most)[:most]]
            large = self._moves_as_one(key[out], cum, most)
            if large or not self._can_move(np.sort(key[top])[::-1], cum):
                # fewer than all of them are at rest together: a giant cluster
                out = out[np.argsort(-key[out], kind="stable")]
                first = self.part.nonzero
                excess = np.cumsum(key[out]) - (cum[first + 1 : first + out.size + 1] - cum[first])
                if (excess > 0.0).any():
                    self.giant = True
                    most = out.size if large else 2 * int(np.argmax(excess > 0.0)) + 1
                top = out[:most]
            out = top
        return np.sort(index[out])

    def _can_move(self, key: Vector, cum: Vector) -> bool:
        """Whether zeros with these pulls, largest first, would leave zero behind the present support."""
        first = self.part.nonzero
        excess = np.cumsum(key) - (cum[first + 1 : first + key.size + 1] - cum[first])
        return bool((excess > 0.0).any())

    @property
    def _may_use_sums(self) -> bool:
        """Whether sums of the columns of X, taken where they are, can serve a giant cluster."""
        return not self.fixed and not self.design.sparse and self.design.p <= 2 * self.design.n

    def _moves_as_one(self, key: Vector, cum: Vector, least: int) -> bool:
        """Whether the first cluster to leave zero has more than ``least`` columns and is likely whole still.

        It attains the dual norm; as the penalty falls, it breaks.
        """
        if self.part.m > 0 or not self._may_use_sums:
            return False
        ratios = np.cumsum(np.sort(key)[::-1]) / np.maximum(cum[1 : key.size + 1], 1e-300)
        first = int(np.argmax(ratios))
        return first + 1 > least and bool(ratios[first] < 2.5)

    def _add(self, features: Index) -> None:
        """Put features into the working set; move to the whole of X, or drop old zeros, where that is due."""
        store = self.store
        w = store.w + features.size
        n, p = self.design.n, self.design.p
        free = not self.fixed and not self.design.sparse
        giant = self.giant and self._may_use_sums
        if free and n >= 3 * p and p <= 3000 and 3 * w > p and not giant:
            # copies of most of X would cost more than its Gram matrix
            self.store = GramStore(self.design, self.q)
            self.form = "gram"
            self.part = self.part.moved(p, store.ids[: store.w])
            return
        if free and ((giant and 3 * w > p) or w > max(4 * n, p // 3, 2000)):
            # sums of the columns of a giant cluster cost less than either
            self.store = WholeStore(self.design, self.q)
            self.part = self.part.moved(p, store.ids[: store.w])
            return
        store.add(features, self.q[features])
        self.part = self.part.grown(store.w)

    def _compact(self, wanted: Index) -> None:
        """Drop columns that are zero and not wanted, where they are a large part of the working set."""
        store, part = self.store, self.part
        if isinstance(store, WholeStore):
            if self.fixed or 10 * part.nonzero > self.design.p:
                return
            slots, _ = part.support()
            new: Store = DenseStore(self.design)
            new.add(slots, self.q[slots])
        elif isinstance(store, DenseStore | SparseStore):
            keep = np.isin(store.ids[: store.w], wanted)
            keep[part.order[: part.nonzero]] = True
            slots = np.flatnonzero(keep)
            if store.w <= 1.3 * slots.size + 50:
                return
            new = store.kept(slots)
        else:
            return
        back = np.full(store.w, -1, dtype=np.int64)
        back[slots] = np.arange(slots.size)
        self.store = new
        self.part = part.moved(slots.size, back)

    def _giant(self) -> bool:
        """Whether few large clusters make the cluster-sum columns the better form."""
        if isinstance(self.store, WholeStore) or self.giant:
            return True
        if self.fixed or isinstance(self.store, GramStore) or self.design.sparse:
            return False
        nonzero, m, w, n = self.part.nonzero, self.part.m, self.part.w, self.design.n
        return nonzero > 4 * m and n * (w + nonzero) < 8 * nonzero * w
