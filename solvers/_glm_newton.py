"""SLOPE with any loss by proximal Newton steps on working sets, certified over all columns.

Each step solves a quadratic model of the loss plus the penalty with the engine of the quadratic loss, then
searches along it; free intercepts are at their optimum after every step, so that the residuals, scaled, are a
point of the dual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers._glm_families import Responses
from convexlaw.solvers._glm_model import Columns, Work, giant_clusters
from convexlaw.solvers._glm_small_kernels import solve_small
from convexlaw.solvers._slope_forms import partition
from convexlaw.theory._sorted_l1_kernels import dual_norm, norm_value, survivors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._glm_problem import GlmProblem

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

# Newton steps on one working set before its violators are looked for again
_STEPS = 12


class Newton:
    """State of the solver between penalties: coefficients, predictor, residuals, pull of every column.

    Parameters
    ----------
    problem : GlmProblem
    """

    def __init__(self, problem: GlmProblem) -> None:
        self.given = problem
        self.problem = problem = problem.folded()
        self.columns = Columns(problem)
        self.all: Work | None = None
        self.table: Array | None = None
        self.rounds = 0
        # accuracy of the models, as a share of the gap; learnt, and kept along a path
        self.share = 0.03
        self.fall = 0.0
        self.b: Array = np.zeros(problem.p * problem.m)
        self.g: Array = problem.pull
        self.eta, self.loss = problem.base, problem.null
        self.R, self.h = problem.residuals, problem.curvatures
        size = self.b.size
        self.small = size <= 256 and problem.rows * size <= 50_000
        self.compiled = self.small and not isinstance(problem.family, Responses)

    def start_at(self, b: Array) -> None:
        """Warm start from coefficients of the given problem on the seen columns, shape (p m,)."""
        b = np.array(b, dtype=np.float64)
        self.b = b if self.problem is self.given else b[self.problem.p :] - b[: self.problem.p]
        self.eta, self.loss, self.R, self.h = self.problem.settle(self.problem.predictor(self.b))
        self.g = self.problem.pulls(self.R)

    def original(self) -> tuple[Array, Array]:
        """Coefficients (p, m) and intercepts (m,) of the given problem, on its X."""
        b, eta = self.b, self.eta
        if self.problem is not self.given:
            b, eta = 0.5 * np.concatenate([-b, b]), 0.5 * np.hstack([-eta, eta])
        return self.given.original(b, eta)

    @property
    def clusters(self) -> int:
        """Number of distinct nonzero magnitudes."""
        return int(partition(self.b).m)

    def gap(self, b: Array, g: Array, lam: Array, goal: float) -> float:
        """Duality gap of coefficients b with pull g on their columns; above ``goal``, a lower bound of it."""
        problem = self.problem
        norm = dual_norm(g, lam)
        s = min(1.0, 1.0 / norm) if norm > 0.0 else 1.0
        value = norm_value(b, lam) - s * float(b @ g)
        if s < 1.0 and value <= 4.0 * goal:
            value += problem.family.divergence(problem.Y, self.eta, problem.weights, s)
        return float(value)

    def solve(
        self, lam: Array, cum: Array, goal: float, max_rounds: int, previous: Array | None = None
    ) -> float:
        """Solve for one penalty from the current coefficients; returns the duality gap reached.

        Parameters
        ----------
        lam, cum : ndarray, shapes (p m,), (p m + 1,)
            Penalty by rank and its cumulative sum from 0.
        goal : float
            Duality gap to reach.
        max_rounds : int
            Bound on ``rounds``.
        previous : ndarray, shape (p m,), optional
            Penalty of the current coefficients, for the strong rule.
        """
        size = lam.size
        if self.compiled:
            gap = self._at_once(lam, cum, goal, max_rounds)
            if gap <= goal:
                return gap
            # what the compiled steps cannot do is left to the engine, also at the next penalties
            self.compiled = False
        gap = best = self.gap(self.b, self.g, lam, goal)
        inside = np.zeros(size, dtype=bool)
        w = 0
        inner, stuck = 0.3 * goal, 0
        while gap > goal and self.rounds < max_rounds:
            if self.small:
                grown, w = False, size
                work = self._whole()
            else:
                inside[self.b != 0.0] = True
                inside[self._violators(lam, cum, previous, inside)] = True
                grown = int(np.count_nonzero(inside)) > w
                if grown:
                    work = Work(self.problem, self.columns, np.flatnonzero(inside))
                    w = work.w
                elif w == 0:
                    break
            previous = None
            target = max(inner, 0.1 * gap) if grown and w < size else inner
            moved = self._descend(work, lam, cum, target, max_rounds)
            self.g = self.problem.pulls(self.R)
            gap = self.gap(self.b, self.g, lam, goal)
            if (not grown or w == size) and gap > goal:
                inner *= 0.1
                stuck = stuck + 1 if gap > 0.5 * best else 0
                if not moved or stuck > 8:
                    break
            best = min(best, gap)
        return gap

    def _at_once(self, lam: Array, cum: Array, goal: float, max_rounds: int) -> float:
        """Compiled Newton steps over all columns; returns the gap reached."""
        problem, family = self.problem, self.problem.family
        if self.table is None:
            # the arrays of the problem stay as they are
            self.table = problem.columns(np.arange(problem.p))
            self.eta, self.R, self.h, self.g = (v.copy() for v in (self.eta, self.R, self.h, self.g))
        state = np.array([self.loss, self.share, 0.0])
        gap = solve_small(
            family.kind,
            problem.Y,
            problem.weights,
            family.threshold,
            problem.fit_intercept,
            family.reference,
            self.table,
            lam,
            cum,
            0.9 * goal,
            max_rounds - self.rounds,
            self.b,
            self.eta,
            self.R,
            self.h,
            self.g,
            state,
        )
        self.loss, self.share = float(state[0]), float(state[1])
        self.rounds += int(state[2])
        return float(gap)

    def _whole(self) -> Work:
        """Return the working set of all columns, of a small problem; it is kept along a path."""
        if self.all is None:
            self.all = Work(self.problem, self.columns, np.arange(self.b.size))
        return self.all

    def _violators(self, lam: Array, cum: Array, previous: Array | None, inside: NDArray[np.bool_]) -> Index:
        """Entries outside the working set that the prox of the pull would activate, the strongest first."""
        bound = 0.9995 * lam
        if previous is not None:
            bound = np.minimum(bound, np.maximum(np.minimum.accumulate(2.0 * lam - previous), 0.0))
        index, key = np.empty(lam.size, dtype=np.int64), np.empty(lam.size)
        k = survivors(self.g, bound, index, key)
        index, key = index[:k], key[:k]
        nonzero = int(np.count_nonzero(self.b))
        out = ~inside[index]
        index, key = index[out], key[out]
        # a pass over X costs as much as the Gram matrix of this many columns
        most = max(10, min(50, int(2.0 * lam.size**0.5)), nonzero)
        if giant_clusters(self.b):
            # of which more are to come: their number costs little
            most *= 20
        if index.size > most:
            order = np.argsort(-key, kind="stable")
            first = nonzero
            excess = np.cumsum(key[order]) - (cum[first + 1 : first + order.size + 1] - cum[first])
            if not (excess[:most] > 0.0).any() and (excess > 0.0).any():
                # fewer than these cannot leave zero together: a giant cluster
                most = 2 * int(np.argmax(excess > 0.0)) + 1
            index = index[order[:most]]
        return index

    def _descend(self, work: Work, lam: Array, cum: Array, goal: float, max_rounds: int) -> bool:
        """Newton steps on a working set to a gap on it; whether any of them moved."""
        w = work.w
        lam, cum = lam[:w], cum[: w + 1]
        b = self.b[work.index]
        g = work.pull(self.R)
        gap = self.gap(b, g, lam, goal)
        moved = safe = False
        problem = self.problem
        for _ in range(_STEPS):
            if gap <= goal or self.rounds >= max_rounds:
                break
            h = problem.family.model(problem.Y, self.eta, self.h, problem.weights, safe=safe)
            left = max_rounds - self.rounds
            new = work.solve(b, h, self.R, g, lam, cum, self.share * max(gap, goal), left)
            self.rounds += max(1, work.spent)
            t = self._search(work, b, new, g, lam)
            if t > 0.0:
                moved = True
                b = new if t == 1.0 else b + t * (new - b)
                g = work.pull(self.R)
            before, gap = gap, self.gap(b, g, lam, goal)
            if t == 1.0 and gap > 0.5 * before and -self.fall < 0.1 * before:
                # the model had little to give though the gap is large: it falls with the root of the model's
                self.share = max(1e-1 * self.share, 1e-12)
            elif t < 0.3:
                # where the curvature misleads: a bound on it, for once
                if safe and t == 0.0:
                    break
                safe = True
                continue
            safe = False
        self.b[work.index] = b
        return moved

    def _search(self, work: Work, b: Array, new: Array, g: Array, lam: Array) -> float:
        """Step length from b towards new that lowers the objective enough, 0 where none does; moves eta."""
        problem = self.problem
        d = new - b
        before = norm_value(b, lam)
        fall = norm_value(new, lam) - before - float(g @ d)
        self.fall = fall
        noise = 1e-14 * (self.loss + before)
        if fall > noise or not d.any():
            return 1.0 if fall <= noise else 0.0
        change = work.product(d)
        t = 1.0
        for _ in range(40):
            eta, value, R, h = problem.settle(self.eta + t * change)
            penalty = norm_value(new if t == 1.0 else b + t * d, lam)
            if value + penalty <= self.loss + before + min(1e-3 * t * fall, 0.0) + noise:
                self.eta, self.loss, self.R, self.h = eta, value, R, h
                return t
            t *= 0.5
        return 0.0
