"""Pictures of planned runs: learning rates, batch sizes and predicted losses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.solvers.joint_law import JointLaw
    from convexlaw.solvers.planner import BatchForecast, RunPlan

__all__ = ["plot_batch_forecast", "plot_joint_law", "plot_run_plan", "plot_schedule"]


@styled
def plot_run_plan(plan: RunPlan, ax: Axes | None = None) -> Axes:
    """Candidates by predicted loss, with intervals, the chosen one first.

    Parameters
    ----------
    plan : RunPlan
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        height = 1.2 + 0.32 * len(plan.candidates)
        ax = plt.subplots(figsize=(7.2, height), layout="constrained")[1]
    colors = {"static": COLORS["muted"], "scheduled": COLORS["fit"]}
    for place, c in enumerate(plan.candidates):
        error = None if math.isnan(c.low) else [[max(c.loss - c.low, 0.0)], [max(c.high - c.loss, 0.0)]]
        ax.errorbar(c.loss, place, xerr=error, fmt="o", color=colors[c.batches], capsize=2)
    ax.set_yticks(
        range(len(plan.candidates)),
        [f"{c.shape}, peak {c.peak:.3g}" for c in plan.candidates],
    )
    ax.invert_yaxis()
    ax.set_xlabel(f"predicted loss after {plan.steps} steps (nats)")
    kinds = dict.fromkeys(c.batches for c in plan.candidates)
    if len(kinds) > 1:
        marks = [ax.plot([], [], "o", color=colors[k], label=f"{k} batch")[0] for k in kinds]
        ax.legend(handles=marks)
    return ax


@styled
def plot_batch_forecast(forecast: BatchForecast, ax: Axes | None = None, *, skip: float = 0.1) -> Axes:
    """Predicted loss of a batch schedule and of a static batch along the run.

    Parameters
    ----------
    forecast : BatchForecast
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    skip : float
        Leading fraction of the run left out, where the loss falls too fast to read.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    keep = forecast.at >= skip * forecast.at[-1]
    at, static, scheduled = forecast.at[keep], forecast.static[keep], forecast.scheduled[keep]
    ax.plot(at, static, "--", color=COLORS["muted"], label=f"static batch {forecast.static_batch:.4g}")
    if forecast.known:
        label = f"schedule, saves {forecast.saved:.2g}"
        ax.plot(at, scheduled, color=COLORS["prediction"], label=label)
    else:
        ax.fill_between(
            at, static, scheduled, color=COLORS["prediction"], alpha=0.25, linewidth=0,
            label=f"schedule, saves {forecast.saved_low:.2g} to {forecast.saved_high:.2g}",
        )  # fmt: skip
    ax.set_xlabel("step")
    ax.set_ylabel("predicted loss (nats)")
    ax.legend()
    return ax


@styled
def plot_joint_law(law: JointLaw, ax: Axes | None = None) -> Axes:
    """Part of the noise that falls with the batch, over batch sizes; the fitted sizes are shaded.

    Parameters
    ----------
    law : JointLaw
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    low, high = law.batches
    sizes = np.geomspace(low / 16, high * 16, 200)

    def share(scale: float) -> NDArray[np.float64]:
        return np.ones_like(sizes) if math.isinf(scale) else scale / (scale + sizes)

    ax.axvspan(low, high, color=COLORS["muted"], alpha=0.15, linewidth=0, label="fitted batch sizes")
    if not math.isnan(law.low):
        ax.fill_between(sizes, share(law.low), share(law.high), color=COLORS["fit"], alpha=0.2, linewidth=0)
    ax.plot(sizes, share(law.noise_scale), color=COLORS["fit"], label=f"noise scale {law.noise_scale:.3g}")
    ax.set_xscale("log")
    ax.set_ylim(0, 1)
    ax.set_xlabel("batch size (unit of the log)")
    ax.set_ylabel("part of the noise that falls as 1/batch")
    ax.legend()
    return ax


@styled
def plot_schedule(
    lr: ArrayLike,
    batch: ArrayLike | None,
    static_batch: float | None = None,
    forecast: BatchForecast | None = None,
    *,
    title: str = "",
) -> Figure:
    """Learning rates, batch sizes and, with a forecast, predicted losses against a static batch.

    Parameters
    ----------
    lr : (T,) array_like
    batch : (T,) array_like, optional
        Batch sizes.
    static_batch : float, optional
        One batch size that uses the same samples.
    forecast : BatchForecast, optional
    title : str

    Returns
    -------
    matplotlib Figure
    """
    rates = np.asarray(lr, dtype=float)
    ratios = [*([1.6, 1.0] if forecast is not None else []), *([1.0] if batch is None else [1.0, 1.0])]
    fig, grid = plt.subplots(
        len(ratios), 1, sharex=True, squeeze=False, figsize=(7.2, 1.4 + 1.5 * sum(ratios)),
        gridspec_kw={"height_ratios": ratios}, layout="constrained",
    )  # fmt: skip
    panels = list(grid[:, 0])
    if forecast is not None:
        plot_batch_forecast(forecast, panels.pop(0)).set_xlabel("")
        _difference(forecast, panels.pop(0))
    steps = np.arange(rates.size)
    upper = panels.pop(0)
    upper.plot(steps, rates, color=COLORS["schedule"])
    upper.set_ylabel("learning rate")
    upper.set_ylim(bottom=0)
    if batch is not None:
        sizes = np.asarray(batch, dtype=float)
        lower = panels.pop(0)
        lower.step(steps, sizes, where="post", color=COLORS["fit"], label="batch schedule")
        if static_batch is not None:
            lower.axhline(static_batch, linestyle="--", color=COLORS["muted"], label="static batch")
            lower.legend(loc="lower right")
        lower.set_ylabel("batch size")
        lower.set_ylim(bottom=0)
    grid[-1, 0].set_xlabel("step")
    grid[0, 0].set_title(title)
    return fig


def _difference(forecast: BatchForecast, ax: Axes, skip: float = 0.1) -> None:
    """Loss of the schedule minus that of the static batch along the run."""
    keep = forecast.at >= skip * forecast.at[-1]
    at, gap = forecast.at[keep], (forecast.scheduled - forecast.static)[keep]
    ax.axhline(0.0, linestyle="--", color=COLORS["muted"])
    if forecast.known:
        ax.plot(at, gap, color=COLORS["prediction"])
    else:
        ax.fill_between(at, 0.0, gap, color=COLORS["prediction"], alpha=0.25, linewidth=0)
    ax.set_ylabel("schedule - static\n(nats)")
