"""Limiting scalar functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import COLORS, axes_or_new, styled
from convexlaw.theory.scalar_limit import ScalarLimit
from convexlaw.theory.state_evolution import StateEvolution

__all__ = ["plot_scalar_limit", "plot_scalar_limits", "plot_state_evolution"]

_DASHES = ["-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (9, 2))]
_CYCLE = ["lasso", "slope", "two_level", "bound", "highlight"]


def _density(limit: ScalarLimit, y: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    total = np.zeros_like(y)
    for w, m, v in zip(*limit.prior.arrays, strict=True):
        s = np.sqrt(v + limit.tau**2)
        for sign in (1, -1):
            total += w * np.exp(-0.5 * ((y - sign * m) / s) ** 2) / (s * np.sqrt(2 * np.pi))
    return total


@styled
def plot_scalar_limit(result: ScalarLimit, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw h over y >= 0, above the density of |Y|.

    Parameters
    ----------
    result : ScalarLimit
    ax : matplotlib Axes, optional
    **options
        For ``Axes.plot``.

    Returns
    -------
    matplotlib Axes
    """
    return _draw([(result, "h", options)], ax)


@styled
def plot_scalar_limits(limits: dict[str, ScalarLimit], ax: Axes | None = None) -> Axes:
    """Draw several limiting functions together; the density is that of the first.

    Parameters
    ----------
    limits : dict of str to ScalarLimit
        Names for the legend.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    items = []
    for i, (name, limit) in enumerate(limits.items()):
        style = {"color": COLORS[_CYCLE[i % 5]], "ls": _DASHES[i % 5], "lw": 1.6 + 0.5 * (i % 3 == 2)}
        items.append((limit, name, style))
    axes = _draw(items, ax)
    axes.legend(loc="upper left")
    return axes


def _draw(items: list[tuple[ScalarLimit, str, dict[str, Any]]], ax: Axes | None) -> Axes:
    axes = axes_or_new(ax)
    first = items[0][0]
    reach = max(abs(m) + 3.2 * np.sqrt(v + first.tau**2) for _, m, v in zip(*first.prior.arrays, strict=True))
    reach = max(reach, 1.15 * max(limit.threshold for limit, _, _ in items))
    y = np.linspace(0.0, reach, 1200)
    density = _density(first, y)
    axes.fill_between(y, 0, density / density.max() * 0.25 * reach, color=COLORS["muted"], alpha=0.25, lw=0)
    axes.plot(y, y, color=COLORS["muted"], lw=0.9, ls=":")
    for limit, name, style in items:
        axes.plot(y, limit(y), label=name, **{"color": COLORS["slope"], **style})
    axes.set(xlabel="y", ylabel="h(y)", xlim=(0, reach), ylim=(0, None))
    axes.set_title(f"limiting function, tau = {first.tau:.4g} (grey: density of |Y|)")
    return axes


@styled
def plot_state_evolution(result: StateEvolution, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the limiting function at the fixed point.

    Parameters
    ----------
    result : StateEvolution
    ax : matplotlib Axes, optional
    **options
        For ``Axes.plot``.

    Returns
    -------
    matplotlib Axes
    """
    return _draw([(result.limit, "h", options)], ax)
