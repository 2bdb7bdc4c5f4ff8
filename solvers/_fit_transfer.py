"""Transfer of the base learning rate between horizons: what a fit or a sweep says, beside theory's -1/2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from convexlaw._progress import progress_bar
from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fit_intervals import check_level, tails
from convexlaw.solvers._fit_range import beyond, warn_all
from convexlaw.theory.laws import RunPath, curve_law

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers._curve_fit import CurveFit

Array = NDArray[np.float64]

FLAT = 1e-9  # share of the loss below which its change with the peak is rounding
THEORY = -0.5  # d log(best peak) / d log(steps) of the convex bound
# 24 cells of cooldown and horizon of a public 124M sweep, fitted at 5e-4, 1e-3, 2e-3 (claims C158, C159)
PICKS = (
    "on a public sweep of 124M runs cvx4q missed the measured best peak by 0.21 octave rms fitted at a peak "
    "near it, by 0.82 and 0.53 fitted at half and twice that peak; rc4 by 0.41, 0.56 and 0.54"
)


@dataclass(frozen=True)
class Transfer(Result):
    """Best peak learning rate at several horizons.

    Attributes
    ----------
    steps : (h,) array
        Horizons.
    peak : (h,) array
        Best peak at each.
    low, high : (h,) arrays
        Interval of each; NaN where none can be given.
    loss : (h,) array
        Loss at the best peak after the last update, in nats.
    exponent : float
        Slope of log peak against log steps.
    exponent_interval : (float, float)
    theory : float
        -1/2, the convex bound's exponent.
    sentences : list of str
        What to trust, and what lies at the edge of the peaks looked at.
    level : float
    """

    steps: Array
    peak: Array
    low: Array
    high: Array
    loss: Array
    exponent: float
    exponent_interval: tuple[float, float]
    theory: float
    sentences: list[str]
    level: float
    _figure: ClassVar[str] = "fits:plot_transfer"

    def to_frame(self) -> pd.DataFrame:
        """Return steps, peak, low, high, loss."""
        import pandas as pd

        return pd.DataFrame(
            {"steps": self.steps, "peak": self.peak, "low": self.low, "high": self.high, "loss": self.loss}
        )

    def __str__(self) -> str:
        lines = [f"best peak at {len(self.steps)} horizons"]
        for t, p, a, b in list(zip(self.steps, self.peak, self.low, self.high, strict=True))[:5]:
            lines.append(f"  {t:>9.0f} steps: {p:.4g}   {self.level:.0%} [{a:.4g}, {b:.4g}]")
        low, high = self.exponent_interval
        lines.append(
            f"peak ~ steps^{self.exponent:.3f} [{low:.3f}, {high:.3f}]; the convex bound says {self.theory}"
        )
        return "\n".join([*lines, *self.sentences[:4]])


def _lowest(log_peak: Array, loss: Array) -> tuple[float, float]:
    """Log peak and loss at the minimum of a curve on a grid, by a parabola through three points."""
    i = int(np.argmin(loss))
    if i in (0, loss.size - 1):
        return float(log_peak[i]), float(loss[i])
    x, y = log_peak[i - 1 : i + 2], loss[i - 1 : i + 2]
    a, b, c = np.polyfit(x - x[1], y, 2)
    return float(x[1] - b / (2 * a)), float(c - b * b / (4 * a))


def transfer(
    fit: CurveFit,
    shape: str,
    steps: Sequence[int],
    *,
    peaks: tuple[float, float] | None = None,
    points: int = 41,
    level: float = 0.95,
    batch_size: float | None = None,
    progress: bool | None = None,
) -> Transfer:
    """Find the peak learning rate that a law thinks best at several horizons (see CurveFit.transfer)."""
    from convexlaw.solvers._fit_intervals import _over, _pieces, curve_draws, thinned
    from convexlaw.theory.schedules import parse

    check_level(level)
    state = fit._state
    horizons = sorted({int(s) for s in steps})
    if len(horizons) < 2 or horizons[0] < 2:
        raise ConvexlawError(
            f"steps = {list(steps)}: an exponent needs at least two horizons of 2 steps or more"
        )
    low, high = peaks or (state.ranges.peaks[0] / 16, state.ranges.peaks[1] * 16)
    if not 0 < low < high:
        raise ConvexlawError(f"peaks = ({low}, {high}): pass two positive numbers, the smaller one first")
    grid = np.geomspace(low, high, points)
    kind, _, rest = shape.partition(":")
    options = [o for o in rest.split(",") if o and o.partition("=")[0].strip() not in ("steps", "peak")]
    if not state.draws:
        curve_draws(fit, _over(fit, "auto"), 1000, 10, 0, 1, None)
    key, draws = next(reversed(state.draws.items()))
    draws = thinned(fit.law, draws)
    estimate = np.array(list(fit.params.values()))
    cls = curve_law(fit.law)
    p = len(cls.linear(state.batch))
    best = np.empty((len(horizons), 2))
    drawn = np.empty((len(horizons), len(draws)))
    edge = []
    far = []
    for h, horizon in enumerate(horizons):
        text = ",".join([f"steps={horizon}", "peak=1", *options])
        unit = np.asarray(parse(f"{kind}:{text}"), dtype=np.float64)
        unit = np.append(unit, unit[-1])  # the loss after the last update is the value at step `horizon`
        paths = [
            RunPath.make(
                peak * unit,
                [horizon],
                batch_size if state.batch else None,
                state.weight_decay or 0.0,
                state.init_std,
            )
            for peak in grid
        ]
        columns = cls.columns(paths, batch=state.batch)
        best[h] = _lowest(np.log(grid), columns(estimate[p:])[0] @ estimate[:p])
        with progress_bar(f"refits at {horizon} steps", len(draws), progress) as advance:
            for i, draw in enumerate(draws):
                drawn[h, i] = _lowest(np.log(grid), columns(draw[p:])[0] @ draw[:p])[0]
                advance(1)
        if best[h, 0] <= np.log(grid[0]) or best[h, 0] >= np.log(grid[-1]):
            edge.append(horizon)
        chosen = np.exp(best[h, 0]) * unit
        far.append((f"at {horizon} steps", beyond(state.ranges, chosen[:-1], horizon)))
    warn_all(
        "best peaks", far, "no interval covers the failure of a law there; fit runs nearer to these horizons"
    )
    log_t = np.log(horizons)
    slope = float(np.polyfit(log_t, best[:, 0], 1)[0])
    slopes = np.polyfit(log_t, drawn, 1)[0]
    edges = tails(level, _pieces(fit, key))
    limits = np.percentile(np.exp(drawn), edges, axis=1)
    ends = np.percentile(slopes, edges)
    return Transfer(
        steps=np.array(horizons, dtype=np.float64),
        peak=np.exp(best[:, 0]),
        low=limits[0],
        high=limits[1],
        loss=best[:, 1],
        exponent=slope,
        exponent_interval=(float(ends[0]), float(ends[1])),
        theory=THEORY,
        sentences=_advice(fit, edge, grid),
        level=level,
    )


def _advice(fit: CurveFit, edge: Sequence[int], grid: Array) -> list[str]:
    out = []
    low, high = fit._state.ranges.peaks
    if edge:
        out.append(
            f"At {', '.join(map(str, edge))} steps the best peak lies outside {grid[0]:.3g} to "
            f"{grid[-1]:.3g}: "
            "the exponent is not to be trusted."
        )
    if fit.law == "rc4":
        out.append(
            "rc4 predicts losses well, but its horizon exponent near -1/2 contradicts measured ones (-0.24, "
            f"-0.13), and {PICKS}: for the base learning rate use cvx4q fitted at one peak near the best, "
            "and sweep two peaks before you believe either."
        )
    elif high > 1.05 * low and fit.law in ("cvx4", "cvx4q", "cb4", "cd3", "cvx5"):
        out.append(
            f"The fitted runs have peaks from {low:.3g} to {high:.3g}: for the base learning rate fit those "
            f"near the best peak alone; {PICKS}."
        )
    if high <= 1.05 * low:
        out.append(
            "All fitted runs share one peak, so the exponent is the law's, not the data's: a sweep of two "
            "peaks at two "
            "horizons would test it (solvers.fit_curves.measured_transfer)."
        )
    return out


def measured_transfer(
    frame: pd.DataFrame, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Transfer:
    """Best peak at each horizon of a sweep, by a parabola in log peak, and the exponent it supports.

    Parameters
    ----------
    frame : DataFrame
        One row a run: steps, peak, loss (final, nats). Runs of one schedule shape; at least three peaks at
        each of at least two horizons.
    level : float, default 0.95
    resamples : int, default 1000
        Refits with resampled residuals, for the intervals.
    seed : int, default 0

    Returns
    -------
    Transfer
        ``.sentences`` names horizons whose optimum lies at the edge of the peaks tried, or is not told by
        the losses.

    Raises
    ------
    ConvexlawError
        A missing column, or too few peaks or horizons.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> sweep = [(t, p) for t in (1e4, 4e4) for p in (5e-4, 1e-3, 2e-3)]
    >>> table = pd.DataFrame(sweep, columns=["steps", "peak"])
    >>> table["loss"] = 3 + 0.1 * np.log(table["peak"] * np.sqrt(table["steps"]) / 0.1) ** 2
    >>> round(measured_transfer(table).exponent, 6)
    -0.5
    """
    check_level(level)
    for column in ("steps", "peak", "loss"):
        if column not in frame.columns:
            raise ConvexlawError(f"the sweep has columns {list(frame.columns)} but no {column!r}")
    rows = frame[["steps", "peak", "loss"]].astype(float)
    if not bool((np.isfinite(rows) & (rows > 0)).all().all()):
        raise ConvexlawError("steps, peak and loss must be positive and finite in every row; drop the others")
    horizons, fits, residuals = [], [], []
    for steps, part in rows.groupby("steps"):
        x, y = np.log(part["peak"].to_numpy()), part["loss"].to_numpy()
        if np.unique(x.round(6)).size < 3:
            continue
        fitted = np.polyfit(x, y, 2)
        horizons.append(float(str(steps)))
        fits.append((x, fitted))
        residuals.append((y - np.polyval(fitted, x)) * np.sqrt(x.size / max(x.size - 3, 1)))
    if len(horizons) < 2:
        raise ConvexlawError(
            "an exponent needs at least three peaks at each of at least two horizons; add runs"
        )
    log_t = np.log(horizons)
    pool = np.concatenate(residuals)
    pool = pool - pool.mean()
    rng = np.random.default_rng(seed)

    def reach(x: Array) -> tuple[float, float]:
        return float(x.min() - np.log(4)), float(x.max() + np.log(4))

    # parabolas of rounding: any peak is as good as any other
    flat = [float(np.ptp(np.polyval(c, x))) < FLAT * float(np.abs(np.polyval(c, x)).max()) for x, c in fits]

    def vertex(c: Array, x: Array) -> float:
        inside = float(-c[1] / (2 * c[0])) if c[0] > 0 else float(x[np.argmin(np.polyval(c, x))])
        return float(np.clip(inside, *reach(x)))

    centre = np.array([x.mean() if f else vertex(c, x) for f, (x, c) in zip(flat, fits, strict=True)])
    drawn = np.empty((resamples, len(fits)))
    for i in range(resamples):
        for j, (x, c) in enumerate(fits):
            if flat[j]:
                drawn[i, j] = rng.uniform(*reach(x))
                continue
            again = np.polyfit(x, np.polyval(c, x) + rng.choice(pool, x.size), 2)
            drawn[i, j] = vertex(again, x)
    slopes = np.polyfit(log_t, drawn.T, 1)[0]
    outer = tails(level, pool.size)
    low, high = np.percentile(drawn, outer, axis=0)
    low, high = np.minimum(low, centre), np.maximum(high, centre)
    slope = float(np.polyfit(log_t, centre, 1)[0])
    ends = np.percentile(slopes, outer)
    sentences = [
        f"At {t:.0f} steps the limits hold every peak tried: the losses tell no best one; repeat runs, or "
        "try peaks further apart."
        for t, a, b, (x, _) in zip(horizons, low, high, fits, strict=True)
        if a <= x.min() and b >= x.max()
    ]
    sentences += [
        f"At {t:.0f} steps the optimum lies at or beyond the edge of the peaks tried: try further ones."
        for t, m, (x, _) in zip(horizons, centre, fits, strict=True)
        if m <= x.min() or m >= x.max()
    ]
    return Transfer(
        steps=np.array(horizons),
        peak=np.exp(centre),
        low=np.exp(low),
        high=np.exp(high),
        loss=np.array([float(np.polyval(c, m)) for m, (_, c) in zip(centre, fits, strict=True)]),
        exponent=slope,
        exponent_interval=(min(float(ends[0]), slope), max(float(ends[1]), slope)),
        theory=THEORY,
        sentences=sentences,
        level=level,
    )
