"""Message passing beside proximal gradient methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from convexlaw.figures.style import COLORS, axes_or_new, styled
from convexlaw.solvers.amp import AMPResult

__all__ = ["plot_amp", "plot_convergence"]

_STYLES: list[dict[str, Any]] = [
    {"color": COLORS["slope"], "ls": "-", "marker": "o"},
    {"color": COLORS["lasso"], "ls": (0, (5, 1.5)), "marker": "s"},
    {"color": COLORS["two_level"], "ls": (0, (1.2, 1.2)), "marker": "^"},
    {"color": COLORS["bound"], "ls": (0, (6, 1.5, 1.2, 1.5)), "marker": "D"},
]


@styled
def plot_amp(result: AMPResult, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the relative duality gap by iteration.

    Parameters
    ----------
    result : AMPResult
    ax : matplotlib Axes, optional
    **options
        For ``Axes.plot``.

    Returns
    -------
    matplotlib Axes
    """
    axes = plot_convergence({f"AMP, {result.mode} mode": result.gaps}, ax, **options)
    if result.method != "amp":
        axes.axhline(max(result.relative_gap, 1e-17), color=COLORS["muted"], lw=1, ls=":", zorder=1)
        axes.text(0.98, max(result.relative_gap, 1e-17), f"after {result.method}", **_corner(axes))
    return axes


def _corner(axes: Axes) -> dict[str, Any]:
    return {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "bottom", "fontsize": 8}


@styled
def plot_convergence(
    series: Mapping[str, Sequence[float] | np.ndarray[Any, np.dtype[np.float64]]],
    ax: Axes | None = None,
    *,
    xlabel: str = "iteration",
    ylabel: str = "relative duality gap",
    step: Mapping[str, float] | None = None,
    **options: Any,
) -> Axes:
    """Draw errors by iteration (or by products with X) on a logarithmic axis.

    Parameters
    ----------
    series : mapping of str to sequence of float
        Errors by name, from iteration 0 on; values <= 0 are not drawn.
    ax : matplotlib Axes, optional
    xlabel, ylabel : str
    step : mapping of str to float, optional
        Horizontal distance of two values, by name; 1 without it (2 for products with X).
    **options
        For ``Axes.plot``.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    for i, (name, values) in enumerate(series.items()):
        y = np.asarray(values, dtype=float)
        x = np.arange(y.size) * (1.0 if step is None else step.get(name, 1.0))
        keep = y > 0
        every = max(1, int(keep.sum()) // 12)
        style = {**_STYLES[i % len(_STYLES)], "ms": 4, "markevery": every, "mfc": "white", **options}
        axes.plot(x[keep], y[keep], label=name, **style)
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log")
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=9))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if len(series) > 1:
        axes.legend(loc="upper right")
    return axes
