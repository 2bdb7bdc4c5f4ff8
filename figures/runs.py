"""Training logs: losses above, learning rates below or on the same axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.runs.table import RunTable

__all__ = ["plot_runs"]

_MOST = 12  # lines with a legend entry


@styled
def plot_runs(table: RunTable, ax: Axes | None = None, *, y: str = "loss", log: bool = False) -> Axes:
    """Draw the losses (or learning rates) of every run against the step.

    Parameters
    ----------
    table : RunTable
        From :func:`convexlaw.read_runs`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    y : {"loss", "lr"}
        What to draw: training losses as lines with validation losses dashed, or learning rates as logged.
    log : bool
        Logarithmic steps.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.9, max(len(table), 2)))
    frame = table.frame
    for k, name in enumerate(table.runs):
        own = frame.loc[frame["run"] == name]
        label = name if k < _MOST else None
        for split, line in (("train", "-"), ("val", "--")):
            rows = own.loc[own["split"] == split].dropna(subset=[y])
            if rows.empty or (y == "lr" and split == "val"):
                continue
            ax.plot(
                rows["step"],
                rows[y],
                line,
                color=colors[k],
                label=label,
                marker="." if len(rows) < 40 else "",
            )
            label = None
            if y == "loss" and {"loss_min", "loss_max"} <= set(rows.columns):
                ax.fill_between(
                    rows["step"], rows["loss_min"], rows["loss_max"], color=colors[k], alpha=0.15, linewidth=0
                )
    ax.set_xlabel("step")
    ax.set_ylabel("loss (nats)" if y == "loss" else "learning rate")
    if log:
        ax.set_xscale("log")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(title=f"{len(table)} runs, first {_MOST} named" if len(table) > _MOST else None)
    return ax
