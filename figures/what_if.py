"""Predicted loss of schedules, or of sizes and tokens, that were not run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ExtrapolationWarning
from convexlaw.figures.style import COLORS, CYCLE, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.solvers.fit_table import TableFit

__all__ = ["Forecast", "plot_forecasts", "plot_table_forecast"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Forecast:
    """One schedule and the loss predicted along it."""

    name: str
    """Label of the curve."""
    lr: Array
    """Learning rate of each update, shape (T,)."""
    at: NDArray[np.intp]
    """Steps (0-based) at which the loss is given, shape (m,)."""
    loss: Array
    """Predicted loss in nats at ``at``, shape (m,)."""
    low: Array | None = None
    """Lower limit of the band, shape (m,), or None."""
    high: Array | None = None
    """Upper limit of the band, shape (m,), or None."""


@styled
def plot_forecasts(forecasts: Sequence[Forecast], *, skip: float = 0.1, title: str = "") -> Figure:
    """Draw predicted losses (with bands) above their learning rates.

    Parameters
    ----------
    forecasts : sequence of Forecast
        Curves to draw.
    skip : float
        Leading fraction of the longest run left out of the loss axis, where the loss falls too fast to read.
    title : str
        Title of the upper panel.

    Returns
    -------
    matplotlib Figure
    """
    fig, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(7.2, 5.6), gridspec_kw={"height_ratios": [2.2, 1]}, layout="constrained"
    )
    first = skip * max(len(f.lr) for f in forecasts)
    markers = ["-", "--", "-.", ":"]
    for i, f in enumerate(forecasts):
        keep = f.at >= first
        color, style = CYCLE[i % len(CYCLE)], markers[(i + i // len(CYCLE)) % len(markers)]
        upper.plot(f.at[keep], f.loss[keep], style, color=color, label=f.name)
        if f.low is not None and f.high is not None:
            upper.fill_between(f.at[keep], f.low[keep], f.high[keep], color=color, alpha=0.15, linewidth=0)
        lower.plot(np.arange(len(f.lr)), f.lr, style, color=color)
    upper.set_ylabel("predicted loss (nats)")
    upper.set_title(title)
    upper.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    lower.set_ylabel("learning rate")
    lower.set_xlabel("step")
    lower.set_ylim(bottom=0)
    return fig


@styled
def plot_table_forecast(
    fit: TableFit, N: ArrayLike, D: ArrayLike, ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Draw the predicted loss of each size against the tokens with its band; the points asked for are marked.

    Parameters
    ----------
    fit : TableFit
    N, D : (n,) arrays
        Parameters and tokens of the points.
    ax : matplotlib Axes, optional
    level : float, default 0.95
        Level of the bands.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    sizes, tokens = np.atleast_1d(*np.broadcast_arrays(np.asarray(N, float), np.asarray(D, float)))
    rows = fit.residuals()
    ax.plot(rows["D"], rows["loss"], ".", ms=3, color=COLORS["muted"], alpha=0.6, label="fitted rows")
    first = min(float(rows["D"].min()), float(tokens.min()))
    last = max(float(rows["D"].max()), float(tokens.max()))
    along = np.geomspace(first, last, 60)
    for i, size in enumerate(np.unique(sizes)):
        color = CYCLE[i % len(CYCLE)]
        ax.plot(along, fit.model.loss(size, along), color=color, lw=1.2, label=f"N = {size:.3g}")
        with warnings.catch_warnings():  # said of the prediction, not of its picture
            warnings.simplefilter("ignore", ExtrapolationWarning)
            low, high = fit.band(size, along, level)
        ax.fill_between(along, low, high, color=color, alpha=0.2, lw=0)
        asked = tokens[sizes == size]
        ax.plot(asked, fit.model.loss(size, asked), "o", ms=5, color=color)
    ax.set_xscale("log")
    ax.set_xlabel("D (tokens)")
    ax.set_ylabel("predicted loss (nats)")
    ax.set_title(f"{fit.law}, {level:.0%} limits")
    ax.legend()
    return ax
