"""Training logs: losses (or learning rates) against the step, one line a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.runs.table import RunTable

__all__ = ["plot_runs"]

_MOST = 12  # lines with a legend entry
_FEW = ("fit", "prediction", "two_level", "bound", "highlight", "schedule", "data")


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
        The frame holds the bulk of the losses; triangles at its upper edge stand for those above it.
    log : bool
        Logarithmic steps.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import pandas as pd
    >>> from convexlaw import read_runs
    >>> ax = read_runs(pd.DataFrame({"step": [1, 2, 3], "lr": 0.1, "loss": [3.0, 2.5, 2.2]})).plot()
    >>> ax.get_ylabel()
    'loss (nats)'
    >>> import matplotlib.pyplot as plt
    >>> plt.close(ax.figure)
    """
    ax = axes_or_new(ax)
    names = table.runs
    few = [COLORS[c] for c in _FEW]
    colors = few if len(names) <= len(few) else plt.get_cmap("viridis")(np.linspace(0, 0.92, len(names)))
    frame = table.frame
    top = _top(frame["loss"].to_numpy(np.float64)) if y == "loss" else np.inf
    dashed = False
    for k, name in enumerate(names):
        own = frame.loc[frame["run"] == name]
        label = name if k < _MOST else None
        for split, line in (("train", "-"), ("val", "--")):
            rows = own.loc[own["split"] == split].dropna(subset=[y])
            if rows.empty or (y == "lr" and split == "val" and label is None):
                continue
            dashed = dashed or (split == "val" and y == "loss")
            ax.plot(rows["step"], rows[y], line, color=colors[k], label=label, linewidth=1.2)
            label = None
            if y == "lr":
                break
            above = rows.loc[rows["loss"] > top, "step"]
            if len(above):
                ax.plot(above, np.full(len(above), top), "^", color=colors[k], markersize=4, clip_on=False)
            if {"loss_min", "loss_max"} <= set(rows.columns):
                ax.fill_between(
                    rows["step"], rows["loss_min"], rows["loss_max"], color=colors[k], alpha=0.15, linewidth=0
                )
    if np.isfinite(top):
        low = float(frame["loss"].min())
        ax.set_ylim(low - 0.05 * (top - low), top)
    ax.set_xlabel("step")
    ax.set_ylabel("loss (nats)" if y == "loss" else "learning rate")
    if log:
        ax.set_xscale("log")
    handles, labels = ax.get_legend_handles_labels()
    if dashed and handles:
        handles.append(Line2D([], [], color=COLORS["muted"], linestyle="--", linewidth=1.2))
        labels.append("validation")
    if handles:
        title = f"{len(names)} runs, first {_MOST} named" if len(names) > _MOST else None
        outside: dict[str, Any] = (
            {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if len(handles) > 6 else {}
        )
        ax.legend(handles, labels, title=title, fontsize="small", **outside)
    return ax


def _top(losses: np.ndarray) -> float:
    """Choose the upper edge that shows the bulk: infinity where nothing sticks far out."""
    if not losses.size:
        return np.inf
    low, high, bulk = losses.min(), losses.max(), float(np.quantile(losses, 0.95))
    edge = bulk + 0.5 * (bulk - low)
    return float(edge) if high > edge > low and high - low > 2 * (bulk - low) else np.inf
