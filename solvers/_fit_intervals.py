"""Intervals: profiles scaled by the sandwich variance, and block bootstraps over curves or within them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._progress import progress_bar
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fit_state import refit
from convexlaw.solvers.fit import Problem, Solution, solve

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers._curve_fit import CurveFit

Array = NDArray[np.float64]

CURVES_ENOUGH = 8  # curves from which over="auto" resamples whole curves
CHUNK = 50  # resamples between two steps of the progress bar


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
        return float(self.robust[j, j] / self.naive[j, j])

    def error(self, name: str) -> float:
        """Return the standard error of ``name``."""
        j = self.names.index(name)
        return float(np.sqrt(self.robust[j, j]))


def spread(problem: Problem, solution: Solution, groups: Sequence[slice]) -> Spread:
    """Hessian and score covariance of a robust fit at its optimum.

    The scores psi_i J_i are autocorrelated along a curve (losses are window means), so their covariance is
    summed with Bartlett weights up to lag 1.5 n^(1/3) inside each curve, and never taken below the
    uncorrelated one in the diagonal.
    """
    from convexlaw.solvers._fit_kernels import curvature
    from convexlaw.solvers.fit import _prior

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
        room = 1e-6 * (q.high - q.low)
        if t <= q.low + room or t >= q.high - room:
            at_bound.add(q.name)
    free = np.array([n not in problem.fixed and n not in at_bound for n in names])
    rows = J * (psi * problem.weights)[:, None]
    scores = rows[:, free]
    plain = scores.T @ scores
    long_run = np.zeros_like(plain)
    for group in groups:
        part = scores[group]
        n = part.shape[0]
        lags = min(int(1.5 * n ** (1 / 3)), n - 1)
        long_run += part.T @ part
        for lag in range(1, lags + 1):
            cross = part[lag:].T @ part[:-lag]
            long_run += (1 - lag / (lags + 1)) * (cross + cross.T)
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


def _limits_of(problem: Problem, name: str) -> tuple[float, float]:
    for q in problem.nonlinear:
        if q.name == name:
            return q.low, q.high
    return 0.0, np.inf


def profile_value(
    problem: Problem, name: str, value: float, start: dict[str, float]
) -> tuple[float, dict[str, float]]:
    """Best objective with one parameter held, and the other parameters there."""
    held = replace(problem, fixed={**problem.fixed, name: value})
    found = solve(held, polish=1, start={**start, name: value})
    return found.objective, found.params


def profile(
    problem: Problem, solution: Solution, name: str, level: float, table: Spread
) -> tuple[float, float]:
    """Interval of one parameter: values whose best objective rises by less than scale * chi2(level)/2."""
    from scipy.stats import chi2

    low, high = _limits_of(problem, name)
    best = solution.params[name]
    if name in table.names:
        scale, error = table.scale(name), table.error(name)
    else:  # at the end of its range: one-sided, with the plain scale of the residuals
        scale = float(np.mean([table.scale(n) for n in table.names])) if table.names else problem.delta**2
        error = 0.1 * max(abs(best), 1e-3 if np.isinf(high) else 0.05 * (high - low))
    rise = 0.5 * float(chi2.ppf(level, 1)) * scale
    # with small samples the t quantile is the honest one: the same factor is used on the rise
    limits = []
    for sign in (-1.0, 1.0):
        end = low if sign < 0 else high
        limits.append(_cross(problem, solution, name, best, sign, error, rise, end))
    return limits[0], limits[1]


def _cross(
    problem: Problem,
    solution: Solution,
    name: str,
    best: float,
    sign: float,
    error: float,
    rise: float,
    end: float,
) -> float:
    if best == end:
        return end
    state: dict[str, float] = dict(solution.params)

    def excess(value: float) -> float:
        nonlocal state
        objective, params = profile_value(problem, name, value, state)
        state = params
        return objective - solution.objective - rise

    step = 1.5 * max(error, 1e-9 * max(abs(best), 1e-12))
    inner_value, inner_excess = best, -rise
    for _ in range(40):
        outer = best + sign * step
        stop = (sign < 0 and outer <= end) or (sign > 0 and outer >= end)
        if stop and np.isfinite(end):
            outer = end
        outer_excess = excess(outer)
        if outer_excess > 0:
            break
        if stop:
            return end
        inner_value, inner_excess = outer, outer_excess
        step *= 1.7
    else:
        return end
    # the square root of the rise is nearly linear in the parameter: interpolate on it, bracketed
    for _ in range(40):
        a, b = np.sqrt(max(inner_excess + rise, 0.0)), np.sqrt(outer_excess + rise)
        share = (np.sqrt(rise) - a) / (b - a) if b > a else 0.5
        value = inner_value + float(np.clip(share, 0.05, 0.95)) * (outer - inner_value)
        now = excess(value)
        if now > 0:
            outer, outer_excess = value, now
        else:
            inner_value, inner_excess = value, now
        if abs(now) < 1e-3 * rise or abs(outer - inner_value) < 1e-6 * max(abs(value), 1e-12):
            return value
    return 0.5 * (inner_value + outer)


def _resample_within(
    problem: Problem, fitted: Array, groups: Sequence[slice], block: int, rng: np.random.Generator
) -> Array:
    """Losses made of the fit and moving blocks of its log residuals, a curve at a time."""
    y = np.empty_like(problem.y)
    for group in groups:
        residual = np.log(problem.y[group]) - np.log(fitted[group])
        n = residual.size
        size = min(block, n)
        starts = rng.integers(0, n - size + 1, -(-n // size))
        index = (starts[:, None] + np.arange(size)).ravel()[:n]
        y[group] = fitted[group] * np.exp(residual[index])
    return y


def one_resample(
    problem: Problem,
    paper: bool,
    start: dict[str, float],
    fitted: Array,
    groups: Sequence[slice],
    over: str,
    block: int,
    seed: np.random.SeedSequence,
) -> list[float]:
    """Parameters of one bootstrap refit."""
    rng = np.random.default_rng(seed)
    if over == "within":
        found = refit(problem, paper, y=_resample_within(problem, fitted, groups, block, rng), start=start)
    else:
        counts = np.bincount(rng.integers(0, len(groups), len(groups)), minlength=len(groups))
        weights = problem.weights.copy()
        for group, count in zip(groups, counts, strict=True):
            weights[group] = weights[group] * count
        found = refit(problem, paper, weights=weights, start=start)
    return [found.params[n] for n in problem.names]


def run_resamples(
    work: Callable[[np.random.SeedSequence], list[float]],
    resamples: int,
    seed: int,
    jobs: int,
    progress: bool | None,
    label: str,
) -> Array:
    """Rows of parameters of all resamples: the same for any number of processes."""
    if resamples < 20:
        raise ConvexlawError(f"resamples = {resamples}: percentiles need at least 20")
    seeds = np.random.SeedSequence(seed).spawn(resamples)
    chunks = [seeds[i : i + CHUNK] for i in range(0, resamples, CHUNK)]
    rows: list[list[float]] = []
    with progress_bar(label, resamples, progress) as advance:
        if jobs == 1:
            for chunk in chunks:
                rows += [work(one) for one in chunk]
                advance(len(chunk))
        else:
            from joblib import Parallel, delayed

            parallel = Parallel(n_jobs=jobs, return_as="generator")
            for chunk_rows in parallel(delayed(_chunk)(work, chunk) for chunk in chunks):
                rows += chunk_rows
                advance(len(chunk_rows))
    return np.array(rows)


def _chunk(
    work: Callable[[np.random.SeedSequence], list[float]], seeds: Sequence[np.random.SeedSequence]
) -> list[list[float]]:
    return [work(one) for one in seeds]


def frame_of(params: dict[str, float], limits: dict[str, tuple[float, float]]) -> pd.DataFrame:
    """Frame indexed by parameter: estimate, low, high."""
    import pandas as pd

    frame = pd.DataFrame(
        {
            "estimate": list(params.values()),
            "low": [limits[n][0] for n in params],
            "high": [limits[n][1] for n in params],
        },
        index=pd.Index(list(params), name="parameter"),
    )
    return frame


def check_level(level: float) -> None:
    """Refuse levels that are no probability."""
    if not 0 < level < 1:
        raise ConvexlawError(f"level = {level}: it must lie between 0 and 1, e.g. 0.95")


def curve_interval(
    fit: CurveFit,
    level: float,
    method: str,
    over: str,
    resamples: int,
    block: int,
    seed: int,
    jobs: int,
    progress: bool | None,
) -> pd.DataFrame:
    """Intervals of a fit of curves (see CurveFit.interval)."""
    check_level(level)
    if method not in ("bootstrap", "profile"):
        raise ConvexlawError(f"method = {method!r}: choose 'bootstrap' or 'profile'")
    state = fit._state
    if method == "profile":
        if fit.protocol == "paper":
            raise ConvexlawError("the papers' protocol has no profile intervals here: use method='bootstrap'")
        key = f"profile|{level!r}"
        if key not in state.intervals:
            problem, prepared = state.needs_data(".interval(method='profile')")
            table = spread(problem, state.solution, prepared.groups)
            limits = {}
            free = [n for n in fit.params if n not in problem.fixed]
            with progress_bar("profiles", len(free), progress) as advance:
                for name in free:
                    limits[name] = profile(problem, state.solution, name, level, table)
                    advance(1)
            _keep(fit, key, level, method, limits)
        return frame_of(fit.params, {n: tuple(v) for n, v in state.intervals[key]["limits"].items()})
    where = _over(fit, over)
    if block < 1:
        raise ConvexlawError(f"block = {block}: a block holds at least one row")
    draws = curve_draws(fit, where, resamples, block, seed, jobs, progress)
    key = f"bootstrap|{level!r}|{where}|{resamples}|{block}|{seed}"
    tails = [50 * (1 - level), 100 - 50 * (1 - level)]
    edges = np.percentile(draws, tails, axis=0)
    fixed = state.fixed
    limits = {n: (float(edges[0, j]), float(edges[1, j])) for j, n in enumerate(fit.params) if n not in fixed}
    _keep(fit, key, level, method, limits)
    return frame_of(fit.params, {n: tuple(v) for n, v in state.intervals[key]["limits"].items()})


def _keep(fit: CurveFit, key: str, level: float, method: str, limits: dict[str, tuple[float, float]]) -> None:
    both = {n: limits.get(n, (fit.params[n], fit.params[n])) for n in fit.params}
    fit._state.intervals.pop(key, None)
    fit._state.intervals[key] = {"level": level, "method": method, "limits": both}


def _over(fit: CurveFit, over: str) -> str:
    if over not in ("auto", "curves", "within"):
        raise ConvexlawError(f"over = {over!r}: choose 'auto', 'curves' or 'within'")
    if over == "auto":
        return "curves" if len(fit.train) >= CURVES_ENOUGH else "within"
    if over == "curves" and len(fit.train) < 3:
        raise ConvexlawError(
            f"over='curves' resamples whole curves and only {len(fit.train)} were fitted: use over='within'"
        )
    return over


def curve_draws(
    fit: CurveFit, over: str, resamples: int, block: int, seed: int, jobs: int, progress: bool | None
) -> Array:
    """Parameters of bootstrap refits (resamples, parameters), kept for later calls."""
    state = fit._state
    key = f"{over}|{resamples}|{block}|{seed}"
    if key not in state.draws:
        problem, prepared = state.needs_data(".interval(method='bootstrap') with these settings")
        theta = np.array([fit.params[q.name] for q in problem.nonlinear], dtype=np.float64)
        c = np.array([fit.params[n] for n in problem.linear])
        fitted = problem.columns(theta)[0] @ c
        work = _Work(problem, fit.protocol == "paper", fit.params, fitted, prepared.groups, over, block)
        state.draws[key] = run_resamples(work, resamples, seed, jobs, progress, f"{resamples} refits")
    return state.draws[key]


@dataclass(frozen=True)
class _Work:
    problem: Problem
    paper: bool
    start: dict[str, float]
    fitted: Array
    groups: Sequence[slice]
    over: str
    block: int

    def __call__(self, seed: np.random.SeedSequence) -> list[float]:
        return one_resample(
            self.problem, self.paper, self.start, self.fitted, self.groups, self.over, self.block, seed
        )


def band(
    fit: CurveFit, lr: ArrayLike | str, level: float, at: ArrayLike | None, batch_size: ArrayLike | None
) -> tuple[Array, Array]:
    """Pointwise percentiles of the predictions of the bootstrap refits (see CurveFit.band)."""
    from convexlaw.theory.laws import RunPath, curve_law

    check_level(level)
    state = fit._state
    if isinstance(lr, str):
        from convexlaw.theory.schedules import parse

        lr = parse(lr)
    rates = np.asarray(lr, dtype=np.float64)
    if not state.draws:
        curve_draws(fit, _over(fit, "auto"), 1000, 10, 0, 1, None)
    draws = next(reversed(state.draws.values()))
    sizes = fit._batch(rates, batch_size)
    path = RunPath.make(rates, at, sizes, state.weight_decay or 0.0, state.init_std)
    cls = curve_law(fit.law)
    columns: Any = cls.columns([path], batch=state.batch)
    p = len(cls.linear(state.batch))
    if (
        cls.name == "multipower"
    ):  # every draw costs a pass over the schedule: two hundred are enough for a band
        draws = draws[:: max(1, len(draws) // 200)]
    values = np.empty((len(draws), path.at.size))
    for i, draw in enumerate(draws):
        with np.errstate(invalid="ignore"):
            values[i] = columns(draw[p:])[0] @ draw[:p]
    values = np.where(np.isnan(values), np.inf, values)
    finite = np.all(np.isfinite(values), axis=0)
    low = np.full(path.at.size, np.inf)
    high = np.full(path.at.size, np.inf)
    tails = [50 * (1 - level), 100 - 50 * (1 - level)]
    low[finite], high[finite] = np.percentile(values[:, finite], tails, axis=0)
    return low, high
