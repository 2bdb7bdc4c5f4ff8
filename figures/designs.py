"""Optimal penalties and the errors they reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import COLORS, axes_or_new, styled
from convexlaw.theory.designs import Design, DesignComparison, GradientDesign

__all__ = ["plot_design", "plot_design_comparison", "plot_designs", "plot_gradient_design"]

LINES: dict[str, dict[str, Any]] = {
    "lasso": {"color": COLORS["lasso"], "ls": "-", "lw": 1.8, "label": "Lasso"},
    "two_level": {"color": COLORS["two_level"], "ls": (0, (1.2, 1.2)), "lw": 2.4, "label": "two-level SLOPE"},
    "slope": {"color": COLORS["slope"], "ls": (0, (6, 1.5, 1.2, 1.5)), "lw": 1.8, "label": "SLOPE"},
}
_MORE: list[dict[str, Any]] = [
    {"color": COLORS["bound"], "ls": (0, (9, 2)), "lw": 1.6},
    {"color": COLORS["highlight"], "ls": (0, (3, 1, 1, 1, 1, 1)), "lw": 1.6},
]


@styled
def plot_design(result: Design, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the penalty, in units of tau, over the rank fraction (largest magnitudes first).

    Parameters
    ----------
    result : Design
    ax : matplotlib Axes, optional
    **options
        For ``Axes.plot``.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    r = np.unique(np.concatenate((np.geomspace(1e-4, 1.0, 1500), np.linspace(1e-4, 1.0, 1500))))
    style = {"color": COLORS["slope"], "label": result.name, **options}
    axes.plot(r, result.penalty.value(r), **style)
    axes.set(xlabel="rank fraction, largest magnitudes first", ylabel="penalty / tau", xlim=(0, 1))
    axes.set_ylim(bottom=0)
    axes.set_title(f"{result.name}: MSE {result.state.mse:.4g}")
    return axes


@styled
def plot_designs(results: Sequence[Design], ax: Axes | None = None) -> Axes:
    """Draw the penalties of several designs together, in units of each tau.

    Parameters
    ----------
    results : sequence of Design
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    r = np.unique(np.concatenate((np.geomspace(1e-4, 1.0, 1500), np.linspace(1e-4, 1.0, 1500))))
    styles = [*LINES.values(), _MORE[0], _MORE[1]]
    top = 0.0
    for style, one in zip(styles, results, strict=False):
        level = one.penalty.value(r)
        axes.plot(r, level, **{**style, "label": f"{one.name}: MSE {one.state.mse:.4g}"})
        top = max(top, float(np.quantile(level, 0.985)))
    axes.set(xlabel="rank fraction, largest magnitudes first", ylabel="penalty / tau", xlim=(0, 1))
    axes.set_ylim(0, 1.6 * top)
    state = results[0].state
    axes.set_title(rf"$\delta = {state.delta:g}$, $\sigma = {state.sigma:g}$")
    axes.legend(loc="upper right")
    return axes


@styled
def plot_gradient_design(result: GradientDesign, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the weights that the projected gradient found, by rank.

    Parameters
    ----------
    result : GradientDesign
    ax : matplotlib Axes, optional
    **options
        For ``Axes.step``.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    rank = np.arange(1, result.weights.size + 1)
    axes.step(rank, result.weights, where="mid", **{"color": COLORS["slope"], **options})
    axes.set(xlabel="rank", ylabel="penalty / tau")
    axes.set_ylim(bottom=0)
    axes.set_title(f"tau {result.history[0]:.4g} to {result.tau:.4g} in {result.history.size - 1} steps")
    return axes


@styled
def plot_design_comparison(
    result: DesignComparison, ax: Axes | None = None, *, relative: bool = False
) -> Axes:
    """Draw the smallest MSE of the three classes over the noise level or the fraction of signals.

    Parameters
    ----------
    result : DesignComparison
    ax : matplotlib Axes, optional
    relative : bool
        MSE over that of the Lasso, which shows the gain.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    base = result.mse["lasso"] if relative else 1.0
    for name, style in LINES.items():
        axes.plot(result.x, result.mse[name] / base, **style)
    names = {"sigma": r"noise $\sigma$", "epsilon": r"fraction of signals $\epsilon$"}
    axes.set(
        xlabel=names[result.axis], ylabel="smallest MSE / that of the Lasso" if relative else "smallest MSE"
    )
    axes.set_title(rf"$\delta = {result.delta:g}$")
    axes.legend()
    return axes
