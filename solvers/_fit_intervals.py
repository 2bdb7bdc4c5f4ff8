"""Intervals of fits: block bootstraps over curves or within them, profiles, bands of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._progress import progress_bar
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fit_profile import lag_one, profile, spread, whiten
from convexlaw.solvers._fit_range import check_batch
from convexlaw.solvers._fit_state import refit
from convexlaw.solvers.fit import Problem

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers._curve_fit import CurveFit

Array = NDArray[np.float64]

CURVES_ENOUGH = 8  # curves from which over="auto" resamples whole curves
SHORT = 10  # rows below which the residuals of curves are pooled
FEW = 4  # rows a parameter below which no curves or rows are resampled, only residuals
AGES = 200  # rows by which a carried residual forgets where it began
BAND_ROWS = 5000  # steps of a band computed at a time
CHUNK = 50  # resamples between two steps of the progress bar


def _draw_key(over: str, resamples: int, block: int, seed: int) -> str:
    return f"{over}|{resamples}|{block}|{seed}"


def _pieces(fit: CurveFit, key: str) -> int:
    """Count the blocks or curves that the draws under ``key`` were made of."""
    over, _, block, _ = key.split("|")
    return len(fit.train) if over == "curves" else sum(-(-n // int(block)) for n in fit._state.rows)


def tails(level: float, pieces: int) -> tuple[float, float]:
    """Percentiles of a bootstrap over ``pieces`` blocks, curves or rows.

    Plain percentiles are too narrow for few pieces by the factor between normal and t quantiles and by
    sqrt((n - 1)/n): the level is expanded for both (Hesterberg 2015).
    """
    from scipy.special import ndtr, stdtrit  # scipy.stats takes most of a second to import

    if pieces < 3:
        return 50 * (1 - level), 100 - 50 * (1 - level)
    quantile = np.sqrt(pieces / (pieces - 1)) * stdtrit(pieces - 1, 0.5 * (1 + level))
    tail = 100 * float(ndtr(-quantile))
    return tail, 100 - tail


def centre(residual: Array, delta: float) -> float:
    """Huber location: where the clipped residuals sum to 0."""
    found = float(np.median(residual))
    for _ in range(50):
        psi = np.clip(residual - found, -delta, delta)
        inside = int(np.count_nonzero(np.abs(residual - found) < delta))
        move = float(psi.sum()) / max(inside, 1)
        found += move
        if abs(move) < 1e-9 * delta:
            break
    return found


def pooled(residual: Array, free: int, delta: float, rng: np.random.Generator) -> Array:
    """Residuals drawn with replacement, centred, and widened for the ``free`` parameters fitted to them."""
    n = residual.size
    widen = min(np.sqrt(n / (n - free)), 2.0) if n > free else 2.0
    drawn = rng.integers(0, n, n)
    return np.asarray(widen * (residual - centre(residual, delta))[drawn])


def _resample_within(
    problem: Problem, fitted: Array, groups: Sequence[slice], block: int, rng: np.random.Generator
) -> Array:
    """Losses made of the fit and circular blocks of its log residuals, a curve at a time.

    The residuals of each curve are centred, or the refits would scatter around another value than the fit. A
    fit takes its parameters out of the residuals, mostly from their slow part, of which there are only as
    many pieces as blocks: they are widened by sqrt(blocks/(blocks - parameters)). What carries over from row
    to row is taken out before the blocks are drawn and put back after ("post-blackening"): blocks alone lose
    the correlation at their ends.

    References
    ----------
    Davison and Hinkley 1997, section 8.2.3.
    """
    y = np.empty_like(problem.y)
    free = len(problem.names) - len(problem.fixed)
    short = [g for g in groups if g.stop - g.start < SHORT]
    if short:  # centred by itself a curve of few rows would keep no residuals: theirs are one pool
        rows = np.concatenate([np.arange(g.start, g.stop) for g in short])
        y[rows] = fitted[rows] * np.exp(
            pooled(np.log(problem.y[rows] / fitted[rows]), free, problem.delta, rng)
        )
        groups = [g for g in groups if g.stop - g.start >= SHORT]
        if not groups:
            return y
    blocks = sum(-(-(g.stop - g.start) // block) for g in groups)
    widen = min(np.sqrt(blocks / (blocks - free)), 2.0) if blocks > free else 2.0
    rest = np.log(problem.y) - np.log(fitted)
    for group in groups:
        rest[group] -= centre(rest[group], problem.delta)
    reach = 3.7 * float(np.median(np.abs(rest)))  # 2.5 standard deviations: no single row makes a correlation
    carry = lag_one(np.clip(rest, -reach, reach), groups, free)
    for group in groups:
        residual = whiten(widen * rest[group], carry)
        n = residual.size
        size = min(block, n)
        count = n + (AGES if carry > 0 else 0)
        starts = rng.integers(0, n, -(-count // size))
        index = ((starts[:, None] + np.arange(size)) % n).ravel()[:count]
        drawn = residual[index]
        if carry > 0:
            carried = accumulate(drawn.tolist(), lambda before, new: new + carry * before)
            drawn = np.fromiter(carried, float, count)[-n:]
        y[group] = fitted[group] * np.exp(drawn)
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
    if whole("resamples", resamples) < 20:
        raise ConvexlawError(f"resamples = {resamples}: percentiles need at least 20")
    if whole("seed", seed) < 0:
        raise ConvexlawError(f"seed = {seed}: it must be 0 or more")
    if whole("jobs", jobs) == 0:
        raise ConvexlawError("jobs = 0: give the number of processes, or -1 for all cores")
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


def whole(name: str, value: Any) -> int:
    """Return an argument that must be a whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ConvexlawError(f"{name} = {value!r} is no whole number: pass an int")
    return int(value)


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
    if whole("block", block) < 1:
        raise ConvexlawError(f"block = {block}: a block holds at least one row")
    draws = curve_draws(fit, where, resamples, block, seed, jobs, progress)
    key = f"bootstrap|{level!r}|{where}|{resamples}|{block}|{seed}"
    edges = np.percentile(draws, tails(level, _pieces(fit, _draw_key(where, resamples, block, seed))), axis=0)
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
    free = len(fit.params) - len(fit._state.fixed)
    few = sum(fit._state.rows) < FEW * free
    if over == "auto":
        return "curves" if len(fit.train) >= CURVES_ENOUGH and not few else "within"
    if over == "curves" and few:
        raise ConvexlawError(
            f"over='curves' needs {FEW * free} losses for {free} parameters and {sum(fit._state.rows)} were "
            "fitted: use over='within'"
        )
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
    key = _draw_key(over, resamples, block, seed)
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


def thinned(law: str, draws: Array) -> Array:
    """Every draw, or about 200 of them where each costs a pass over the schedule."""
    return draws[:: max(1, len(draws) // 200)] if law in ("multipower", "tissue") else draws


def band(
    fit: CurveFit, rates: Array, level: float, at: ArrayLike | None, batch_size: ArrayLike | None
) -> tuple[Array, Array]:
    """Pointwise percentiles of the predictions of the bootstrap refits (see CurveFit.band)."""
    from convexlaw.theory.laws import RunPath, curve_law

    check_level(level)
    state = fit._state
    if not state.draws:
        curve_draws(fit, _over(fit, "auto"), 1000, 10, 0, 1, None)
    key, draws = next(reversed(state.draws.items()))
    draws = thinned(fit.law, draws)
    sizes = check_batch(state, rates, batch_size)
    path = RunPath.make(rates, at, sizes, state.weight_decay or 0.0, state.init_std)
    cls = curve_law(fit.law)
    p = len(cls.linear(state.batch))
    edges = tails(level, _pieces(fit, key))
    low = np.full(path.at.size, np.inf)
    high = np.full(path.at.size, np.inf)
    # in parts: all draws at all steps of a long schedule do not fit into memory
    parts = np.array_split(np.arange(path.at.size), -(-path.at.size // BAND_ROWS) or 1)
    with progress_bar("band", path.at.size, None if len(parts) > 2 else False) as advance:
        for part in parts:
            columns: Any = cls.columns([replace(path, at=path.at[part])], batch=state.batch)
            values = np.empty((len(draws), part.size))
            for i, draw in enumerate(draws):
                with np.errstate(invalid="ignore"):
                    values[i] = columns(draw[p:])[0] @ draw[:p]
            finite = np.all(np.isfinite(values), axis=0)
            low[part[finite]], high[part[finite]] = np.percentile(values[:, finite], edges, axis=0)
            advance(part.size)
    return low, high
