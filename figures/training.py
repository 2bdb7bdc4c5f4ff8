"""One training run: losses with the learning rate behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.simulations.training_log import TrainLog

__all__ = ["plot_training"]


@styled
def plot_training(log: TrainLog, ax: Axes | None = None, *, every: int | None = None) -> Axes:
    """Draw the training and validation loss of a run, and its learning rate on a second scale.

    Parameters
    ----------
    log : TrainLog
        From :func:`convexlaw.simulations.train.train`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    every : int, optional
        Window of the drawn training loss, in steps; a two-hundredth of the run without it.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    rows = log.thin(every or max(1, len(log) // 200))
    ax.plot(rows["step"], rows["loss"], color=COLORS["muted"], label="training")
    known = np.isfinite(log.columns["val_loss"])
    ax.plot(
        log.columns["step"][known], log.columns["val_loss"][known], color=COLORS["data"], label="validation"
    )
    ax.set_xlabel("step")
    ax.set_ylabel("loss (nats per token)")
    rates = ax.twinx()
    rates.plot(log.columns["step"], log.columns["lr"], color=COLORS["schedule"], label="learning rate")
    rates.set_ylabel("learning rate")
    rates.set_ylim(bottom=0)
    lines = [*ax.get_lines(), *rates.get_lines()]
    ax.legend(lines, [str(line.get_label()) for line in lines])
    ax.set_zorder(rates.get_zorder() + 1)
    ax.patch.set_visible(False)
    return ax
