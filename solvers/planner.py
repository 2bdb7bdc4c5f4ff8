"""Plan a run under a budget from a fitted law: shape, peak, horizon, batch sizes, and what to trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from convexlaw._progress import progress_bar
from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._curve_fit import CurveFit
from convexlaw.solvers._fit_intervals import check_level
from convexlaw.solvers._plan_batches import BatchForecast, forecast_batches
from convexlaw.solvers._plan_budget import Budget, horizons
from convexlaw.solvers._plan_caveats import caveats
from convexlaw.solvers._plan_losses import View, limits_of, no_batch_reason, view_of
from convexlaw.solvers._plan_search import Candidate, Search, horizon_row
from convexlaw.solvers._scaling_rules import unit_schedule
from convexlaw.theory.batch import BatchPlan
from convexlaw.theory.batch import plan as plan_batches
from convexlaw.theory.batch import stages as plan_stages

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SHAPES", "BatchForecast", "Candidate", "RunPlan", "forecast_batches", "plan_run"]

Array = NDArray[np.float64]

SHAPES = (
    "constant",
    "linear",
    "cosine",
    "one_minus_sqrt",
    "wsd:decay=0.1",
    "wsd:decay=0.2",
    "wsd:decay=0.4",
)
"""Shapes that a plan compares where none are given."""
_PEAKS = 17
_LONG = 20_000  # steps from which planning takes seconds
_REACH = 4.0  # peaks looked at: this far beyond the fitted ones, as far as predictions go unwarned


@dataclass(frozen=True)
class RunPlan(Result):
    """A planned run.

    Attributes
    ----------
    shape, steps, samples
        Schedule and horizon; samples None where nothing is known of batch sizes.
    lr : (T,) array
        Learning rates.
    batch : BatchPlan or None
        Batch sizes: the optimal schedule with ``scheduled``, one size otherwise.
    loss, low, high : float
        Predicted loss after the last update with these very batch sizes, in nats, and its interval.
    best : Candidate
        The candidate chosen (its batch sizes are not rounded yet).
    candidates : list of Candidate
        By predicted loss.
    horizons : list of dict
        steps, batch, shape, peak, loss of every horizon looked at (one where the budget fixes it).
    forecast : BatchForecast or None
        Predicted loss of the batch schedule against a static batch.
    sentences : list of str
        What to trust.
    level : float
    """

    shape: str
    steps: int
    samples: float | None
    lr: Array = field(repr=False)
    batch: BatchPlan | None
    loss: float
    low: float
    high: float
    best: Candidate
    candidates: list[Candidate]
    horizons: list[dict[str, Any]]
    forecast: BatchForecast | None
    sentences: list[str]
    level: float
    _figure: ClassVar[str] = "planner:plot_run_plan"

    def to_frame(self) -> pd.DataFrame:
        """Candidates, one a row."""
        import pandas as pd

        return pd.DataFrame([vars(c) for c in self.candidates])

    def __str__(self) -> str:
        best = self.best
        lines = [f"{self.shape}, {self.steps} steps, peak {best.peak:.4g}"]
        if not math.isnan(best.peak_low):
            lines[0] += f" [{best.peak_low:.4g}, {best.peak_high:.4g}]"
        if self.batch is not None:
            sizes = self.batch.batch
            span = f"{sizes.min():g}" if sizes.min() == sizes.max() else f"{sizes.min():g} to {sizes.max():g}"
            lines.append(f"batch sizes {span} ({best.batches}), {sizes.sum():.10g} samples")
        limits = "" if math.isnan(self.low) else f" {self.level:.0%} [{self.low:.4f}, {self.high:.4f}]"
        lines.append(f"predicted loss {self.loss:.4f}{limits} nats")
        for other in [c for c in self.candidates if c is not best][:3]:
            lines.append(f"  {other.shape} ({other.batches}): {other.behind:+.4f}")
        return "\n".join([*lines, *(f"- {s}" for s in self.sentences[:5])])


def plan_run(
    fit: CurveFit,
    *,
    steps: int | None = None,
    samples: float | None = None,
    seconds: float | None = None,
    overhead: float = 0.0,
    per_sample: float | None = None,
    batch_size: float | None = None,
    shapes: Sequence[str] = SHAPES,
    warmup: float = 0,
    peak: float | None = None,
    peaks: tuple[float, float] | None = None,
    peak_fit: CurveFit | None = None,
    scheduled: bool | None = None,
    min_batch: float = 1,
    max_batch: float | None = None,
    multiple_of: int = 1,
    stages: int | None = None,
    powers_of_two: bool = False,
    noise_scale: float | None = None,
    weight_decay: float | None = None,
    level: float = 0.95,
    progress: bool | None = None,
) -> RunPlan:
    """Choose shape, peak, horizon and batch sizes of a run under a budget.

    Parameters
    ----------
    fit : CurveFit
        Predicts the losses.
    steps, samples, seconds : optional
        Budget: number of updates, of samples (unit of the logged batch size), or time with ``per_sample``
        and ``overhead`` (seconds of a sample and of a step). Samples or seconds alone leave the horizon open
        where the fit tells batch sizes apart (within the fitted ones); with ``steps`` they fix the batch.
    batch_size : float, optional
        Static (mean) batch size; default the one of the fitted runs.
    shapes : sequence of str
        Schedule texts without steps and peak.
    warmup : float
        Warmup in steps, or as a fraction below 1.
    peak : float, optional
        Peak to hold.
    peaks : (float, float), optional
        Range of peaks searched; default the fitted ones and 4 times beyond, with rc4 the fitted ones alone.
    peak_fit : CurveFit, optional
        Another fit that chooses the peaks: best a cvx4q fitted at one peak near the best one.
    scheduled : bool, optional
        Batch sizes by the optimal schedule rather than one size; default where the fit can tell its worth.
    min_batch, max_batch, multiple_of, stages, powers_of_two
        Of the batch schedule, as in ``theory.batch``.
    noise_scale : float, optional
        sigma^2/G^2 in samples, measured (``theory.batch.noise_scale``), where the fitted runs have one batch.
    weight_decay : float, optional
        For rc4; default that of the fitted runs.
    level : float
        Of all intervals. They hold the bootstrap draws' spread, not the failure of a law.
    progress : bool, optional
        True or False to force a progress bar; None shows one on a terminal where planning takes seconds.

    Returns
    -------
    RunPlan

    Raises
    ------
    ConvexlawError
        A budget that cannot be met (the message gives the range), one that the fit knows nothing of.

    References
    ----------
    arXiv 2607.27731, Theorem 3 (batch sizes) and eq. (2.5) (losses).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from convexlaw import fit_curves
    >>> from convexlaw.theory.laws import CVX4q
    >>> law, lr = CVX4q(2.0, 0.5, 20.0, 0.5), np.linspace(1e-3, 1e-5, 400)
    >>> log = pd.DataFrame({"run": "a", "step": range(400), "lr": lr, "batch_size": 32})
    >>> fit = fit_curves(log.assign(loss=law.predict(lr)), "cvx4q")
    >>> limits = fit.interval(resamples=20)
    >>> plan = plan_run(fit, samples=32 * 800, shapes=("constant", "linear", "wsd:decay=0.2"))
    >>> plan.shape, plan.steps, int(plan.batch.batch[0])
    ('linear', 800, 32)
    """
    check_level(level)
    budget = Budget(steps, samples, seconds, overhead, per_sample, batch_size, min_batch, max_batch).checked()
    if not shapes:
        raise ConvexlawError("shapes is empty: give at least one schedule, e.g. 'wsd:decay=0.2'")
    view = view_of(fit, noise_scale=noise_scale, weight_decay=weight_decay)
    allowed = horizons(fit, budget, view.batch)
    chooser = view if peak_fit is None else view_of(peak_fit, weight_decay=weight_decay)
    grid = _grid(fit if peak_fit is None else peak_fit, peak, peaks)
    if scheduled and allowed[0].batch is None:
        raise ConvexlawError("a batch schedule needs samples= or batch_size= beside the steps")
    kinds = ["static"]
    if view.batch and scheduled is not False:
        kinds = ["scheduled"] if scheduled else ["static", "scheduled"]
    search = Search(view, chooser, grid, tuple(shapes), warmup, min_batch, max_batch, level)
    count = len(shapes) * len(kinds)
    rows: list[dict[str, Any]] = []
    chosen = allowed[0]
    long = fit.law in ("multipower", "tissue") or max(h.steps for h in allowed) > _LONG
    with progress_bar(
        "planning", count * (len(allowed) + 1), progress if progress is not None or long else False
    ) as advance:
        if len(allowed) > 1:
            rows = [search.quick(horizon, kinds, advance) for horizon in allowed]
            chosen = allowed[int(np.argmin([row["loss"] for row in rows]))]
        candidates = search.full(chosen, kinds, advance)
    best = candidates[0]
    lr = best.peak * unit_schedule(best.shape, chosen.steps, warmup)
    if not rows:
        rows = [horizon_row(chosen, best.shape, best.peak, best.loss)]
    limits = dict(min_batch=min_batch, max_batch=max_batch, multiple_of=multiple_of)
    use = best.batches == "scheduled" or bool(scheduled)
    batch = _batches(view, lr, chosen.samples, use, stages, powers_of_two, limits)
    said = caveats(
        fit, lr, [(c.shape, c.peak) for c in candidates], grid, chosen, [h.steps for h in allowed],
        peak=peak, peak_fit=peak_fit, noise_scale=noise_scale, warmup=warmup, draws=view.draws is not None,
    )  # fmt: skip
    forecast = None
    if batch is not None and use:
        forecast = forecast_batches(
            fit, lr, batch.batch, noise_scale=noise_scale, weight_decay=weight_decay, level=level
        )
    elif batch is not None and not view.batch:
        said.append(_worth(fit, view, lr, chosen.samples, limits, level))
    losses, drawn = view.losses([(lr, batch.batch if view.batch and batch is not None else None)])
    span = (math.nan, math.nan) if drawn is None else limits_of(drawn[:, 0], level)
    return RunPlan(
        best.shape, chosen.steps, chosen.samples, lr, batch, float(losses[0]), *span, best, candidates, rows,
        forecast, said, level,
    )  # fmt: skip


def _worth(
    fit: CurveFit, view: View, lr: Array, samples: float | None, limits: dict[str, Any], level: float
) -> str:
    """Say what an optimal batch schedule might be worth to a fit that saw one batch size."""
    reason = no_batch_reason(fit)
    try:
        made = _batches(view, lr, samples, True, None, False, limits)
        told = None if made is None else forecast_batches(fit, lr, made.batch, level=level)
    except ConvexlawError:
        told = None
    if told is None:
        return f"What a batch schedule is worth cannot be told: {reason}."
    return (
        f"The optimal batch schedule at the same samples saves between {told.saved_low:.2g} and "
        f"{told.saved_high:.2g} nats, closer it cannot be told: {reason}."
    )


def _grid(fit: CurveFit, peak: float | None, peaks: tuple[float, float] | None) -> Array:
    low, high = fit._state.ranges.peaks
    if peak is not None:
        if not (math.isfinite(peak) and peak > 0):
            raise ConvexlawError(f"peak = {peak}: give a positive learning rate")
        return np.array([float(peak)])
    if peaks is not None:
        if not 0 < peaks[0] < peaks[1] < math.inf:
            raise ConvexlawError(f"peaks = {peaks}: give two positive learning rates, the smaller one first")
        return np.geomspace(peaks[0], peaks[1], _PEAKS)
    reach = 1.0 if fit.law == "rc4" else _REACH
    low, high = low / reach, high * reach
    return np.array([low]) if high <= 1.001 * low else np.geomspace(low, high, _PEAKS)


def _batches(
    view: View,
    lr: Array,
    samples: float | None,
    scheduled: bool,
    stages: int | None,
    powers_of_two: bool,
    limits: dict[str, Any],
) -> BatchPlan | None:
    if samples is None:
        return None
    rates, sigma = view.noise(lr)
    if scheduled and (stages is not None or powers_of_two):
        made = plan_stages(rates, samples, stages, sigma=sigma, powers_of_two=powers_of_two, **limits)
    elif scheduled:
        made = plan_batches(rates, samples, sigma=sigma, **limits)
    else:
        unit = int(limits["multiple_of"])
        size = math.floor(samples / lr.size / unit * (1 + 1e-12)) * unit
        if size < 1:
            raise ConvexlawError(
                f"{samples:.10g} samples in {lr.size} steps are {samples / lr.size:.4g} a step, less than "
                f"one batch of {unit}: give more samples, fewer steps or a smaller multiple_of"
            )
        made = plan_batches(rates, size * lr.size, sigma=sigma, min_batch=size, max_batch=size)
    return replace(made, lr=lr)  # the clock's rates served the allocation alone
