"""Simulation dots over theory lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from convexlaw.errors import ConvexlawError
from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.simulations.monte_carlo import MonteCarlo

__all__ = ["plot_monte_carlo"]

_NAMES = {"tpp": "TPP", "fdp": "FDP", "mse": "MSE", "df": "df / p", "selected": "selected / p"}
# in the order of the columns of a MonteCarlo
QUANTITIES = tuple(_NAMES)
_STYLES = [
    (COLORS["lasso"], "-", "o"),
    (COLORS["slope"], (0, (5, 1.5)), "s"),
    (COLORS["two_level"], (0, (1.2, 1.2)), "^"),
    (COLORS["bound"], (0, (6, 1.5, 1.2, 1.5)), "D"),
    (COLORS["highlight"], (0, (9, 2)), "v"),
]


@styled
def plot_monte_carlo(
    result: MonteCarlo,
    ax: Axes | None = None,
    *,
    quantities: Sequence[str] = ("tpp", "fdp"),
    x: Sequence[float] | None = None,
    xlabel: str = "",
) -> Axes:
    """Draw means with two standard errors over the limits.

    Parameters
    ----------
    result : MonteCarlo
    ax : matplotlib Axes, optional
    quantities : sequence of {"tpp", "fdp", "mse", "df", "selected"}
    x : sequence of float, optional
        Horizontal places, one a setting; the labels where they are all numbers, else 1, 2, ...
    xlabel : str

    Returns
    -------
    matplotlib Axes
    """
    unknown = [q for q in quantities if q not in QUANTITIES]
    if unknown:
        raise ConvexlawError(f"quantity {unknown[0]!r} is unknown; there are {', '.join(QUANTITIES)}")
    axes = axes_or_new(ax)
    places, names = _places(result, x)
    order = np.argsort(places)
    error = np.nan_to_num(result.standard_error)
    for i, quantity in enumerate(quantities):
        j = QUANTITIES.index(quantity)
        color, dash, marker = _STYLES[i % len(_STYLES)]
        label = _NAMES[quantity]
        if names is None:
            axes.plot(places[order], result.theory[order, j], color=color, ls=dash, label=f"{label}, limit")
        else:
            axes.plot(places, result.theory[:, j], color=color, ls="none", marker="_", ms=22, mew=2)
        axes.errorbar(
            places,
            result.mean[:, j],
            yerr=2 * error[:, j],
            color=color,
            mfc="white",
            ls="none",
            marker=marker,
            ms=4.5,
            capsize=2.5,
            label=f"{label}, {result.repetitions} fits",
            zorder=3,
        )
    if names is not None:
        axes.set_xticks(places, names, rotation=30, ha="right")
        axes.set_xlim(0.4, len(places) + 0.6)
    sizes = sorted({s.p for s in result.settings})
    axes.set(xlabel=xlabel or "setting", ylabel=" and ".join(_NAMES[q] for q in quantities))
    axes.set_title(f"p = {', '.join(map(str, sizes))}: means, two standard errors, limits")
    axes.legend()
    return axes


def _places(
    result: MonteCarlo, x: Sequence[float] | None
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], list[str] | None]:
    count = len(result.settings)
    if x is not None:
        places = np.asarray(x, dtype=float)
        if places.shape != (count,):
            raise ConvexlawError(f"x has shape {places.shape} for {count} settings; give one place a setting")
        return places, None
    try:
        return np.array([float(s.label) for s in result.settings]), None
    except ValueError:
        return np.arange(1.0, count + 1), [s.label or s.design for s in result.settings]
