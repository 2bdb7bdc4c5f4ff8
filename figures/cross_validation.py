"""Pictures of a cross-validation: the curve of scores with its standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.solvers._cv_curve import CVCurve

__all__ = ["plot_cv_curve"]


@styled
def plot_cv_curve(curve: CVCurve, ax: Axes | None = None, *, folds: bool = False) -> Axes:
    """Mean score by alpha with a band of one standard error, the best alpha and that of the 1-SE rule.

    Parameters
    ----------
    curve : CVCurve
    ax : matplotlib Axes, optional
    folds : bool
        Also the curve of every fold, in grey.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    alphas = curve.alphas
    if (alphas > 0).all() and alphas.size > 1:
        axes.set_xscale("log")
    axes.invert_xaxis()
    if folds:
        axes.plot(alphas, curve.scores, color=COLORS["muted"], linewidth=0.6, alpha=0.6)
    if np.isfinite(curve.se).all():
        axes.fill_between(
            alphas,
            curve.mean - curve.se,
            curve.mean + curve.se,
            color=COLORS["fit"],
            alpha=0.2,
            linewidth=0,
            label="one standard error",
        )
    axes.plot(alphas, curve.mean, color=COLORS["fit"], label="mean over folds")
    for name, k, style in (("best", curve.best, "--"), ("1-SE rule", curve.one_se, ":")):
        text = f"{name}: {alphas[k]:.3g}, {curve.n_nonzero[k]} nonzero"
        axes.axvline(
            alphas[k],
            color=COLORS["highlight"] if k == curve.chosen else COLORS["data"],
            linestyle=style,
            linewidth=1.0,
            label=text + (" (chosen)" if name.startswith(("best", "1")[curve.selection == "1se"]) else ""),
        )
    axes.set_xlabel(r"penalty $\alpha$")
    axes.set_ylabel(curve.criterion)
    axes.legend(loc="best", fontsize="small")
    return axes
