"""Predicted loss of schedules that were not run, above the schedules themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from convexlaw.figures.style import CYCLE, styled

__all__ = ["Forecast", "plot_forecasts"]

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
