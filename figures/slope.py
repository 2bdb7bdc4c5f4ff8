"""Pictures of SLOPE: coefficient paths with their clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from convexlaw.errors import ConvexlawError
from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.solvers.path import SlopePath

__all__ = ["plot_slope_path"]

_QUALITATIVE = ("fit", "prediction", "two_level", "bound", "highlight", "schedule", "data")


@styled
def plot_slope_path(path: SlopePath, ax: Axes | None = None, *, top: int = 7, x: str = "alpha") -> Axes:
    """Coefficients along a path; members of a cluster run on one line.

    Parameters
    ----------
    path : SlopePath
    ax : matplotlib Axes, optional
    top : int
        How many coefficients, the largest at the end of the path, get a colour and a name; the others are
        grey.
    x : {"alpha", "clusters", "deviance"}
        Horizontal axis: alpha (logarithmic, decreasing to the right), number of clusters, deviance ratio.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ConvexlawError
        Unknown ``x``.
    """
    axes = axes_or_new(ax)
    order = np.argsort(-path.alphas, kind="stable")
    coefs = path.coefs[..., order].reshape(-1, order.size)
    if x == "alpha":
        values: Any = path.alphas[order]
        if (values > 0).all() and values.size > 1:
            axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set_xlabel(r"penalty $\alpha$")
    elif x == "clusters":
        values = path.n_clusters[order]
        axes.set_xlabel("clusters (distinct nonzero magnitudes)")
    elif x == "deviance":
        values = path.deviance_ratios[order]
        axes.set_xlabel("deviance ratio")
    else:
        raise ConvexlawError(f"x = {x!r}: use 'alpha', 'clusters' or 'deviance'")
    ever = np.flatnonzero(np.abs(coefs).max(axis=1, initial=0.0) > 0.0)
    largest = ever[np.argsort(-np.abs(coefs[ever, -1]), kind="stable")[: max(top, 0)]]
    names = [name + out for name in path.names for out in path.outputs]
    others = np.setdiff1d(ever, largest)
    if others.size:
        axes.plot(values, coefs[others].T, color=COLORS["muted"], linewidth=0.7, alpha=0.6)
    for i, j in enumerate(largest):
        color = COLORS[_QUALITATIVE[i % len(_QUALITATIVE)]]
        axes.plot(
            values, coefs[j], color=color, label=names[j], linestyle="-" if i < len(_QUALITATIVE) else "--"
        )
    axes.axhline(0.0, color=COLORS["data"], linewidth=0.6)
    axes.set_ylabel("coefficient")
    if largest.size:
        axes.legend(loc="best", fontsize="small")
    return axes
