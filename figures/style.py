"""The one figure style: a context, a colour for each method, and the axes to draw on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["COLORS", "CYCLE", "SCHEDULES", "STYLE", "axes_or_new", "figure_of", "styled"]

STYLE = str(Path(__file__).with_name("convexlaw.mplstyle"))
"""Path of the style sheet, for ``plt.style.context``."""

COLORS = {
    "data": "#000000",
    "prediction": "#D55E00",
    "fit": "#0072B2",
    "lasso": "#0072B2",
    "slope": "#D55E00",
    "two_level": "#009E73",
    "bound": "#CC79A7",
    "muted": "#888888",
    "schedule": "#56B4E9",
    "highlight": "#E69F00",
}
"""Colours by method and by role, of Okabe and Ito: one colour a method in every figure."""

CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888")
"""Colours in order, for curves without a colour of their own ("C0" would be looked up outside the style)."""

SCHEDULES: dict[str, dict[str, Any]] = {
    "constant": {"color": CYCLE[0], "linestyle": "-", "marker": "o"},
    "WSD": {"color": CYCLE[1], "linestyle": "--", "marker": "s"},
    "cosine": {"color": CYCLE[2], "linestyle": "-.", "marker": "^"},
    "linear": {"color": CYCLE[3], "linestyle": ":", "marker": "D"},
    "1 - sqrt": {"color": CYCLE[5], "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
}
"""Colour, line and marker of the learning-rate schedules, the same in every figure and told apart in grey."""

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run ``draw`` inside the package's style; global rcParams stay as they are."""

    @wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        with plt.style.context(STYLE):
            return draw(*args, **kwargs)

    return inner


def axes_or_new(ax: Axes | None) -> Axes:
    """Return ``ax``, or the axes of a new figure."""
    if ax is not None:
        return ax
    return plt.subplots()[1]


def figure_of(ax: Axes) -> Figure:
    """Return the figure that ``ax`` lies in, also where that is inside a subfigure."""
    figure = ax.figure
    while not isinstance(figure, Figure):
        figure = figure.figure
    return figure
