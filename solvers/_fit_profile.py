"""Covariances at the optimum of a robust fit, and profile intervals scaled by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.solvers.fit import Problem, Solution, _prior, solve
from convexlaw.theory.laws import Parameter

Array = NDArray[np.float64]

FAR = 14.0  # distance on a log scale (a factor of 1e6) at which a profile is called flat


@dataclass(frozen=True)
class Spread:
    """Covariances at the optimum, in natural units of the free parameters.

    ``names``; ``naive``: inverse Hessian; ``robust``: sandwich with autocorrelation within curves.
    """

    names: tuple[str, ...]
    naive: Array
    robust: Array

    def scale(self, name: str) -> float:
        """Objective units of one chi-square unit in the profile of ``name``."""
        j = self.names.index(name)
        return float(self.robust[j, j] / self.naive[j, j]) if self.naive[j, j] > 0 else np.nan

    def error(self, name: str) -> float:
        """Return the standard error of ``name``."""
        j = self.names.index(name)
        return float(np.sqrt(self.robust[j, j]))


def lag_one(values: Array, groups: Sequence[slice], parameters: int) -> float:
    """Correlation between neighbours inside the curves, in 0..0.95, corrected for the fit's own part.

    A fit with p parameters takes about (p + 2 p r)/n from the correlation r of n residuals.
    """
    above = sum(float(values[g][1:] @ values[g][:-1]) for g in groups)
    size = float(values @ values)
    pairs = sum(g.stop - g.start - 1 for g in groups)
    if size <= 0 or pairs < 10:
        return 0.0
    plain = above / size * values.size / pairs
    found = plain + parameters * (1 + 2 * plain) / values.size
    # below two standard errors it is noise
    return float(min(found, 0.95)) if plain * np.sqrt(pairs) > 2 else 0.0


def whiten(rows: Array, carry: float) -> Array:
    """Rows less ``carry`` times the row before; the first one scaled to the same variance."""
    out = rows.copy()
    out[1:] -= carry * rows[:-1]
    out[0] *= np.sqrt(1 - carry**2)
    return out


def spread(problem: Problem, solution: Solution, groups: Sequence[slice]) -> Spread:
    """Hessian and score covariance of a robust fit at its optimum.

    The scores psi_i J_i are autocorrelated along a curve (losses are window means), so their covariance is
    summed with Bartlett weights up to lag 1.5 n^(1/3) inside each curve, after whitening by the lag-1
    correlation of psi, and never taken below the uncorrelated one in the diagonal.

    References
    ----------
    Andrews and Monahan 1992 (prewhitened kernel estimate of a long-run covariance).
    """
    from convexlaw.solvers._fit_kernels import curvature

    theta = np.array([solution.params[q.name] for q in problem.nonlinear], dtype=np.float64)
    c = np.array([solution.params[n] for n in problem.linear])
    X, dX = problem.columns(theta)
    kappa = float(theta[problem.link]) if problem.link >= 0 else 1.0
    z = np.log(problem.y)
    _, H, J, psi = curvature(X, dX, z, problem.weights, c, kappa, problem.link, problem.delta, 0.0)
    p = len(problem.linear)
    value, _, second = _prior(problem, theta)
    del value
    for k in range(theta.size):
        H[p + k, p + k] += second[k] / max(theta[k] ** 2, 1e-300)
    names = problem.names
    at_bound = {n for n, v in zip(problem.linear, c, strict=True) if v <= 0}
    for q, t in zip(problem.nonlinear, theta, strict=True):
        if q.at_end(float(t)):
            at_bound.add(q.name)
    free = np.array([n not in problem.fixed and n not in at_bound for n in names])
    rows = J * (psi * problem.weights)[:, None]
    scores = rows[:, free]
    plain = scores.T @ scores
    long_run = np.zeros_like(plain)
    carry = lag_one(psi, groups, int(free.sum()))
    for group in groups:
        part = whiten(scores[group], carry)
        n = part.shape[0]
        lags = min(int(1.5 * n ** (1 / 3)), n - 1)
        long_run += part.T @ part
        for lag in range(1, lags + 1):
            cross = part[lag:].T @ part[:-lag]
            long_run += (1 - lag / (lags + 1)) * (cross + cross.T)
    long_run /= (1 - carry) ** 2
    n, d = scores.shape
    correction = n / max(n - d, 1)
    A = H[np.ix_(free, free)]
    size = np.sqrt(np.maximum(np.abs(np.diag(A)), 1e-300))
    inverse = np.linalg.pinv(A / np.outer(size, size), hermitian=True, rcond=1e-14) / np.outer(size, size)
    first = inverse @ plain @ inverse * correction
    second_ = inverse @ long_run @ inverse * correction
    robust = second_.copy()
    # a negative or shrunk estimate of the long-run variance is noise
    grow = np.sqrt(np.maximum(np.diag(first), 1e-300) / np.maximum(np.diag(second_), 1e-300))
    grow = np.maximum(grow, 1.0)
    robust = robust * np.outer(grow, grow)
    return Spread(tuple(n for n, keep in zip(names, free, strict=True) if keep), inverse, robust)


def profile_value(
    problem: Problem, name: str, value: float, start: dict[str, float]
) -> tuple[float, dict[str, float]]:
    """Best objective with one parameter held, and the parameters there (its own prior counts)."""
    held = replace(problem, fixed={**problem.fixed, name: value})
    found = solve(held, polish=1, start={**start, name: value})
    theta = np.array([found.params[q.name] for q in problem.nonlinear], dtype=np.float64)
    return found.data_objective + _prior(problem, theta)[0], found.params


def profile(
    problem: Problem, solution: Solution, name: str, level: float, table: Spread
) -> tuple[float, float]:
    """Interval of one parameter: the values whose best objective rises by less than scale * F(level)/2.

    For a Huber sum with correlated residuals twice the rise is not chi-square but, to first order,
    (robust variance)/(inverse Hessian) times it: that ratio is the scale.
    """
    best = solution.params[name]
    rise, error = _threshold(problem, name, level, table)
    axis = _axis(problem, name, best)
    low, here, high = (axis.inside(v) for v in (axis.low, best, axis.high))
    step = 1.5 * error * axis.slope(best) ** -1 if error > 0 else 0.05 * min(high - low, 1.0)
    return (
        axis.outside(_cross(problem, solution, axis, here, -1.0, step, rise, low)),
        axis.outside(_cross(problem, solution, axis, here, 1.0, step, rise, high)),
    )


def _threshold(problem: Problem, name: str, level: float, table: Spread) -> tuple[float, float]:
    """Rise of the objective at the limits, and the standard error (0 at the end of the range)."""
    from scipy.stats import f

    rows = int(np.count_nonzero(problem.weights))
    if name in table.names:
        scale, error = table.scale(name), table.error(name)
    else:
        scale, error = np.nan, 0.0
    if not scale > 0:  # at the end of its range, without any effect, exact: the scale of the others
        others = [s for s in map(table.scale, table.names) if s > 0]
        scale, error = float(np.mean(others)) if others else problem.delta**2, 0.0
    return 0.5 * float(f.ppf(level, 1, max(rows - len(table.names), 1))) * scale, error


def _axis(problem: Problem, name: str, best: float) -> Parameter:
    """Scale and range on which the profile of a parameter is searched."""
    for q in problem.nonlinear:
        if q.name == name:
            return q
    if best > 0:
        return Parameter(name, best * np.exp(-FAR), best * np.exp(FAR), ())
    return Parameter(name, 0.0, 1e3 * float(np.median(problem.y)), (), "linear")


def _cross(
    problem: Problem,
    solution: Solution,
    axis: Parameter,
    here: float,
    sign: float,
    step: float,
    rise: float,
    end: float,
) -> float:
    """Search coordinate at which the profile has risen by ``rise``; ``end`` where it never does."""
    if sign * (end - here) <= 0:
        return end
    state: dict[str, float] = dict(solution.params)

    def excess(coordinate: float) -> float:
        nonlocal state
        objective, state = profile_value(problem, axis.name, axis.outside(coordinate), state)
        return objective - solution.objective - rise

    step = max(step, 1e-9)
    inner, inner_excess = here, -rise
    while True:
        outer = here + sign * step
        stop = sign * (outer - end) >= 0
        outer = end if stop else outer
        outer_excess = excess(outer)
        if outer_excess > 0:
            break
        if stop:
            return end
        inner, inner_excess = outer, outer_excess
        step *= 1.7
    # the square root of the rise is nearly linear in the parameter: interpolate on it, bracketed
    for _ in range(60):
        a, b = np.sqrt(max(inner_excess + rise, 0.0)), np.sqrt(outer_excess + rise)
        share = float(np.clip((np.sqrt(rise) - a) / (b - a), 0.05, 0.95)) if b > a else 0.5
        middle = inner + share * (outer - inner)
        now = excess(middle)
        if now > 0:
            outer, outer_excess = middle, now
        else:
            inner, inner_excess = middle, now
        if abs(now) < 1e-3 * rise or abs(outer - inner) < 1e-7:
            return middle
    return 0.5 * (inner + outer)


def profiled(fit: Any) -> list[str]:
    """Parameters of a fit whose profile can be drawn: those of its engine that are not held."""
    problem = fit._state.problem
    return [n for n in fit.params if n in problem.names and n not in problem.fixed]


def profile_curve(fit: Any, name: str, low: float, high: float, level: float) -> tuple[Array, Array]:
    """Values of a parameter around its interval, and the rise of the objective in units of the limit."""
    if hasattr(fit, "protocol"):
        problem, prepared = fit._state.needs_data("a profile")
        groups = prepared.groups
    else:
        problem = fit._state.problem
        groups = [slice(i, i + 1) for i in range(problem.y.size)]
    drawn = profiled(fit)
    if name not in drawn:
        raise ConvexlawError(f"parameter {name!r} has no profile to draw: choose one of {drawn}")
    solution = fit._state.solution
    rise, _ = _threshold(problem, name, level, spread(problem, solution, groups))
    axis = _axis(problem, name, solution.params[name])
    least, most = axis.inside(axis.low), axis.inside(axis.high)
    left, right = axis.inside(max(low, axis.low)), axis.inside(min(high, axis.high))
    reach = 0.25 * (right - left)
    grid = np.linspace(max(left - reach, least), min(right + reach, most), 31)
    values = np.array([axis.outside(float(x)) for x in grid])
    state = dict(solution.params)
    out = np.empty(values.size)
    for i, value in enumerate(values):
        objective, state = profile_value(problem, name, float(value), state)
        out[i] = (objective - solution.objective) / rise
    return values, out
