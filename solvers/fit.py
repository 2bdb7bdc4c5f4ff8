"""The one robust fitting engine: Huber sum on log loss, bounds, multi-start, variable projection.

A problem is ``min sum_i w_i huber(log y_i - kappa log(X(theta) c)_i) + priors`` over linear parameters c >= 0
and a few nonlinear ones theta in a box. For every theta the c are solved for by Newton (variable projection);
theta moves by Levenberg-Marquardt on the projected sum with analytic derivatives, from several starts.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._law_inputs import number
from convexlaw.theory.laws import Parameter

if TYPE_CHECKING:
    from convexlaw.solvers.fit_curves import CurveFit

__all__ = ["Problem", "Solution", "load_fit", "solve"]

Array = NDArray[np.float64]
Columns = Callable[[Array], tuple[Array, Array]]

LOSSES = (1e-30, 1e30)  # far from under- and overflow of their squares
DELTA = 1e-3  # Huber threshold on log loss
PRIOR_SIZE, PRIOR_WIDTH, PRIOR_CENTRE = 0.01, 0.15, 0.5  # residual .01 (ln alpha - ln 1/2)/.15


@dataclass(frozen=True)
class Problem:
    """Data and law of one fit.

    Attributes
    ----------
    columns : callable
        ``columns(theta) -> X (n, p), dX (n, p, m)``.
    y : (n,) array
        Observed losses, in nats.
    linear : tuple of str
        Names of the p linear parameters (all held >= 0).
    nonlinear : tuple of Parameter
        The m nonlinear ones.
    weights : (n,) array
        Weight of each row (1 in a plain fit; counts in a bootstrap).
    delta : float
        Huber threshold on log loss.
    prior : tuple of str
        Nonlinear parameters that carry the prior residual ``0.01 (ln x - ln 1/2)/0.15``.
    link : int
        Index in theta of the power kappa, -1 where the law has none.
    fixed : dict
        Parameters held at a value.
    """

    columns: Columns
    y: Array
    linear: tuple[str, ...]
    nonlinear: tuple[Parameter, ...]
    weights: Array
    delta: float = DELTA
    prior: tuple[str, ...] = ()
    link: int = -1
    fixed: dict[str, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Every parameter, linear ones first."""
        return self.linear + tuple(p.name for p in self.nonlinear)


@dataclass(frozen=True)
class Solution:
    """What a fit found, with its certificate.

    Attributes
    ----------
    params : dict
        Parameter values by name.
    objective : float
        Huber sum plus priors at the optimum.
    data_objective : float
        Huber sum alone.
    gradient : float
        Largest projected derivative by a search coordinate, relative to the objective.
    converged : bool
        Whether the steps and the gradient came below tolerance.
    starts, agreeing : int
        Starts polished, and how many of them ended within 1e-6 (relative) of the best objective.
    evaluations : int
        Evaluations of the columns.
    """

    params: dict[str, float]
    objective: float
    data_objective: float
    gradient: float
    converged: bool
    starts: int
    agreeing: int
    evaluations: int


def _prior(problem: Problem, theta: Array) -> tuple[float, Array, Array]:
    """Value, and first and second derivatives by ln theta, of the priors."""
    value = 0.0
    first = np.zeros(theta.size)
    second = np.zeros(theta.size)
    for k, parameter in enumerate(problem.nonlinear):
        if parameter.name in problem.prior and parameter.name not in problem.fixed:
            slope = PRIOR_SIZE / PRIOR_WIDTH
            r = slope * (np.log(theta[k]) - np.log(PRIOR_CENTRE))
            delta = problem.delta
            value += 0.5 * r * r if abs(r) <= delta else delta * (abs(r) - 0.5 * delta)
            first[k] = slope * float(np.clip(r, -delta, delta))
            second[k] = slope**2 * min(1.0, delta / max(abs(r), 1e-300))
    return value, first, second


class _Reduced:
    """The sum as a function of theta alone (the linear parameters solved for), warm-started."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.z = np.log(problem.y)
        self.w = np.ascontiguousarray(problem.weights, dtype=np.float64)
        p = len(problem.linear)
        self.held = np.array([name in problem.fixed for name in problem.linear])
        self.at = np.array([problem.fixed.get(name, 0.0) for name in problem.linear])
        self.evaluations = 0
        self.p = p
        lows, highs, locked = [], [], []
        for q in problem.nonlinear:
            fixed = problem.fixed.get(q.name)
            lows.append(q.inside(q.low))
            highs.append(q.inside(q.high))
            locked.append(fixed is not None)
        self.low, self.high = np.array(lows), np.array(highs)
        self.locked = np.array(locked, dtype=bool)

    def theta(self, coordinates: Array) -> Array:
        values = [q.outside(x) for q, x in zip(self.problem.nonlinear, coordinates, strict=True)]
        for k, q in enumerate(self.problem.nonlinear):
            if q.name in self.problem.fixed:
                values[k] = self.problem.fixed[q.name]
        return np.array(values, dtype=np.float64)

    def first_guess(self, X: Array, kappa: float) -> Array:
        """Weighted least squares of y on the columns, clipped into the positive."""
        target = np.exp(self.z / kappa)
        root = np.sqrt(self.w) / target
        moving = ~self.held
        rest = target - X[:, self.held] @ self.at[self.held]
        scale = np.abs(X[:, moving]).mean(axis=0)
        scale[scale == 0] = 1.0
        solution = np.linalg.lstsq(X[:, moving] / scale * root[:, None], rest * root, rcond=None)[0] / scale
        c = self.at.copy()
        c[moving] = solution
        if not np.all(c > 0) or not np.all(X @ c > 0):
            c[moving] = np.maximum(solution, 0.0)
            mean = np.abs(X).mean(axis=0)
            # a column of zeros (no drop of the learning rate) says nothing of its parameter: 0
            least = np.divide(
                0.02 * float(np.median(target)), self.p * mean, out=np.zeros(self.p), where=mean > 0
            )
            c = np.where(self.held, c, np.maximum(c, least))
            if not np.all(X @ c > 0) and not self.held[0]:
                c[0] = float(target.min())
        return c

    def __call__(
        self, coordinates: Array, c: Array | None, rounds: int = 200
    ) -> tuple[float, Array, Array, Array, Array]:
        """Objective, c, theta, X, dX."""
        from convexlaw.solvers._fit_kernels import inner

        theta = self.theta(coordinates)
        X, dX = self.problem.columns(theta)
        self.evaluations += 1
        kappa = float(theta[self.problem.link]) if self.problem.link >= 0 else 1.0
        start = self.first_guess(X, kappa) if c is None else c
        if c is not None and not np.all(X @ c > 0):
            start = self.first_guess(X, kappa)
        c, value, _ = inner(X, self.z, self.w, start, self.held, kappa, self.problem.delta, rounds)
        return value + _prior(self.problem, theta)[0], c, theta, X, dX

    def derivatives(
        self, c: Array, theta: Array, X: Array, dX: Array, tail: float
    ) -> tuple[Array, Array, Array]:
        """Projected gradient and Hessian by the search coordinates, and dc/dcoordinates."""
        from convexlaw.solvers._fit_kernels import curvature, project

        kappa = float(theta[self.problem.link]) if self.problem.link >= 0 else 1.0
        g, H, _, _ = curvature(X, dX, self.z, self.w, c, kappa, self.problem.link, self.problem.delta, tail)
        _, first, second = _prior(self.problem, theta)
        slope = np.array([q.slope(t) for q, t in zip(self.problem.nonlinear, theta, strict=True)])
        by_log = slope / np.where(theta != 0, theta, np.inf)  # of the priors, which are in ln theta
        gradient, reduced, dc = project(g, H, c, self.held, slope, first * by_log, second * by_log**2)
        return np.asarray(gradient), np.asarray(reduced), np.asarray(dc)


def _polish(
    reduced: _Reduced, start: Array, c: Array | None, limit: int = 300
) -> tuple[float, Array, Array, float, bool]:
    """Levenberg-Marquardt from one start: objective, coordinates, c, gradient, converged."""
    from convexlaw.solvers._fit_kernels import damped_step

    x = np.clip(start, reduced.low, reduced.high)
    value, c, theta, X, dX = reduced(x, c)
    if reduced.locked.all():
        return value, x, c, 0.0, bool(np.isfinite(value))
    # an objective below this is an exact fit: residuals of 1e-9
    least = 1e-18 * float(reduced.w.sum())
    damping = 1e-3
    quiet = 0
    gradient_size = np.inf
    converged = False
    for _ in range(limit):
        gradient, H, dc = reduced.derivatives(c, theta, X, dX, 0.1)
        stuck = (
            reduced.locked | ((x <= reduced.low) & (gradient > 0)) | ((x >= reduced.high) & (gradient < 0))
        )
        moving = ~stuck
        gradient_size = float(np.max(np.abs(gradient[moving]), initial=0.0) / max(value, least))
        if gradient_size < 1e-9 or value < least:
            converged = True
            break
        diagonal = np.maximum(np.abs(np.diag(H)), 1e-12 * max(value, least))
        accepted = False
        for _ in range(25):
            step, positive = damped_step(H, gradient, moving, diagonal, damping)
            if not positive:
                damping = max(10 * damping, 1e-3)
                continue
            new = np.clip(x + step, reduced.low, reduced.high)
            guess = np.where(reduced.held, c, np.maximum(c + dc @ (new - x), 0.05 * c))
            trial = reduced(new, guess)
            if trial[0] < value:
                accepted = True
                break
            damping = max(4 * damping, 1e-6)
            if np.max(np.abs(new - x)) < 1e-11:
                break
        if not accepted:
            converged = gradient_size < 1e-3
            break
        gain = (value - trial[0]) / max(value, least)
        move = float(np.max(np.abs(new - x)))
        x = new
        value, c, theta, X, dX = trial
        damping = max(damping / 6, 1e-12)
        quiet = quiet + 1 if gain < 1e-11 else 0
        if quiet >= 2 or move < 1e-10:
            converged = True
            break
    return value, x, c, gradient_size, converged


def solve(
    problem: Problem,
    *,
    polish: int = 8,
    start: dict[str, float] | None = None,
    tick: Callable[[], None] | None = None,
) -> Solution:
    """Fit a problem from its starts (or from one given start only).

    Parameters
    ----------
    problem : Problem
    polish : int, default 8
        How many of the starts are followed to the end: the best ones after their linear parameters are solved
        for.
    start : dict, optional
        Parameter values to start from, instead of the law's own starts.
    tick : callable, optional
        Called after each start (for a progress bar).

    Returns
    -------
    Solution

    Raises
    ------
    ConvexlawError
        Fewer rows than parameters, a loss that is not positive, an unknown fixed parameter, no finite start.
    """
    _check(problem)
    reduced = _Reduced(problem)
    grid: list[Array]
    first_c: Array | None = None
    if start is None:
        choices = [
            (problem.fixed[q.name],) if q.name in problem.fixed else q.starts for q in problem.nonlinear
        ]
        grid = [
            np.array([q.inside(v) for q, v in zip(problem.nonlinear, values, strict=True)], dtype=np.float64)
            for values in itertools.product(*choices)
        ]
    else:
        grid = [np.array([q.inside(float(np.clip(start[q.name], q.low, q.high))) for q in problem.nonlinear])]
        first_c = np.array([problem.fixed.get(n, start[n]) for n in problem.linear])
        first_c = np.maximum(first_c, 0.0)
    used = problem.weights > 0
    if not np.all(np.isfinite(problem.columns(reduced.theta(grid[0]))[0][used])):
        raise ConvexlawError(
            "the law is not finite on some rows (losses before the first positive learning rate?): drop "
            "these rows"
        )
    if len(grid) > polish:
        values = [reduced(x, None, 25)[0] for x in grid]
        order = np.argsort(values, kind="stable")[:polish]
        grid = [grid[i] for i in order]
    ends = []
    for x in grid:
        end = _polish(reduced, x, first_c)
        if np.isfinite(end[0]):
            ends.append(end)
        if tick is not None:
            tick()
    if not ends:
        raise ConvexlawError("no start of the fit has a finite objective: hold a parameter with fixed=")
    best = min(ends, key=lambda end: end[0])
    agreeing = sum(end[0] <= best[0] * (1 + 1e-6) for end in ends)
    value, x, c, gradient, converged = best
    theta = reduced.theta(x)
    params = {n: float(v) for n, v in zip(problem.linear, c, strict=True)}
    params |= {q.name: float(v) for q, v in zip(problem.nonlinear, theta, strict=True)}
    return Solution(
        params=params,
        objective=float(value),
        data_objective=float(value - _prior(problem, theta)[0]),
        gradient=gradient,
        converged=converged,
        starts=len(grid),
        agreeing=int(agreeing),
        evaluations=reduced.evaluations,
    )


def held(fixed: Any) -> dict[str, float]:
    """Return the parameters held at a value as numbers."""
    if fixed is not None and not isinstance(fixed, Mapping):
        raise ConvexlawError(f"fixed = {fixed!r}: pass {{parameter: value}}")
    return {name: number(f"fixed {name}", value) for name, value in (fixed or {}).items()}


def _check(problem: Problem) -> None:
    n = int(np.count_nonzero(problem.weights))
    unknown = sorted(set(problem.fixed) - set(problem.names), key=str)
    if unknown:
        raise ConvexlawError(f"fixed parameter {unknown[0]!r} is not one of {list(problem.names)}")
    for q in problem.nonlinear:
        value = problem.fixed.get(q.name)
        if value is not None and not q.low <= value <= q.high:
            raise ConvexlawError(f"fixed {q.name} = {value} is outside its range {q.low}..{q.high}")
    for name in problem.linear:
        if problem.fixed.get(name, 0.0) < 0:
            raise ConvexlawError(f"fixed {name} = {problem.fixed[name]}: it must not be negative")
    wanted = len(problem.names) - len(problem.fixed)
    if n < wanted + 1:
        raise ConvexlawError(
            f"{n} losses to fit {wanted} parameters: at least {wanted + 1} are needed; "
            "log more often, give more runs, or fix parameters"
        )
    if not np.all(np.isfinite(problem.y) & (problem.y > 0)):
        bad = problem.y[~(np.isfinite(problem.y) & (problem.y > 0))][0]
        raise ConvexlawError(f"loss {bad}: fits work on log loss, so every loss must be finite and positive")
    far = problem.y[(problem.y < LOSSES[0]) | (problem.y > LOSSES[1])]
    if far.size:
        raise ConvexlawError(
            f"loss {far[0]:.3g} is no loss in nats, fits take {LOSSES[0]:g} to {LOSSES[1]:g}: correct it"
        )


def load_fit(path: str | os.PathLike[str]) -> CurveFit | Any:
    """Read a fit written by ``.to_json``.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    CurveFit or TableFit

    Raises
    ------
    ConvexlawError
        Not a file of ours, or one of a newer version of the format.
    """
    from convexlaw.solvers._fit_json import read

    return read(path)
