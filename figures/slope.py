"""Pictures of SLOPE: coefficient paths with their clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from convexlaw.errors import ConvexlawError
from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from convexlaw.solvers.path import SlopePath

__all__ = ["plot_slope_path"]

_QUALITATIVE = (
    "fit",
    "prediction",
    "two_level",
    "bound",
    "schedule",
    "data",
)  # a highlight marks the chosen alpha


@styled
def plot_slope_path(
    path: SlopePath,
    ax: Axes | None = None,
    *,
    top: int = 7,
    x: str = "alpha",
    scale: ArrayLike | None = None,
    chosen: float | None = None,
) -> Axes:
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
    scale : array_like, shape (p,), optional
        Divisors of the columns: draws the coefficients of the scaled columns, which compare.
    chosen : float, optional
        Alpha to mark, where that is the horizontal axis.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ConvexlawError
        Unknown ``x``, or a scale of another length.
    """
    axes = axes_or_new(ax)
    order = np.argsort(-path.alphas, kind="stable")
    shown = path.coefs[..., order]
    if scale is not None:
        divisors = np.asarray(scale, dtype=np.float64)
        if divisors.shape != shown.shape[:1]:
            raise ConvexlawError(
                f"scale has shape {divisors.shape}: give one divisor a column, {shown.shape[:1]}"
            )
        shown = shown * divisors.reshape(-1, *[1] * (shown.ndim - 1))
    coefs = shown.reshape(-1, order.size)
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
    colors = {j: COLORS[_QUALITATIVE[i % len(_QUALITATIVE)]] for i, j in enumerate(largest)}
    style = {j: "-" if i < len(_QUALITATIVE) else "--" for i, j in enumerate(largest)}
    # named from top to bottom, as the lines end
    for j in largest[np.argsort(-coefs[largest, -1], kind="stable")]:
        axes.plot(values, coefs[j], color=colors[j], label=names[j], linestyle=style[j])
    others = np.setdiff1d(ever, largest)
    if others.size:
        drawn = axes.plot(
            values, coefs[others].T, color=COLORS["muted"], linewidth=0.7, alpha=0.6, zorder=1.9
        )
        drawn[0].set_label(f"{others.size} more")
    axes.axhline(0.0, color=COLORS["data"], linewidth=0.6)
    if chosen is not None and x == "alpha":
        axes.axvline(chosen, color=COLORS["highlight"], linewidth=1.2, label="chosen")
    axes.set_ylabel("coefficient" if scale is None else "coefficient of the scaled column")
    if ever.size:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", borderaxespad=0.2)
    return axes
