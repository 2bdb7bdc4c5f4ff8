"""Picture of a batch schedule beside its learning rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.theory.batch import BatchPlan

__all__ = ["plot_batch_plan"]


@styled
def plot_batch_plan(plan: BatchPlan, ax: Axes | None = None) -> Axes:
    """Batch sizes over the steps, the static batch, and the learning rates on an axis of their own.

    Parameters
    ----------
    plan : BatchPlan
        Result of ``plan``, ``stages`` or ``plan_in_samples``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    steps = np.arange(plan.batch.size)
    ax.step(steps, plan.batch, where="post", color=COLORS["fit"], label=f"batch, gain {plan.gain:.3f}")
    ax.axhline(plan.static_batch, linestyle="--", color=COLORS["muted"], label="static batch")
    ax.set_xlabel("step")
    ax.set_ylabel("batch size (samples)")
    ax.set_ylim(bottom=0)
    rates = ax.twinx()
    rates.plot(steps, plan.lr, color=COLORS["schedule"], label="learning rate")
    rates.set_ylabel("learning rate")
    rates.set_ylim(bottom=0)
    handles = [*ax.get_lines(), *rates.get_lines()]
    ax.legend(handles, [str(line.get_label()) for line in handles])
    return ax
