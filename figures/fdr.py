"""Pictures of simulated false discovery rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.simulations.fdr import FDRTable

__all__ = ["plot_fdr"]

_COLORS = ("fit", "prediction", "two_level", "bound", "schedule", "data")


@styled
def plot_fdr(table: FDRTable, ax: Axes | None = None) -> Axes:
    """FDR against the number of signals with two standard errors, and the level that was asked for.

    Parameters
    ----------
    table : FDRTable
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    groups = dict.fromkeys((r.design, r.n, r.p, r.sequence, r.noise) for r in table.rows)
    shapes = list(dict.fromkeys(group[:4] for group in groups))
    for group in groups:
        rows = [r for r in table.rows if (r.design, r.n, r.p, r.sequence, r.noise) == group]
        design, n, p, sequence, noise = group
        axes.errorbar(
            [r.signals for r in rows],
            [r.fdr for r in rows],
            yerr=2.0 * np.array([r.fdr_se for r in rows]),
            color=COLORS[_COLORS[shapes.index(group[:4]) % len(_COLORS)]],
            linestyle="-" if noise == "known" else "--",
            marker="o",
            markersize=3,
            capsize=2,
            label=f"{design} {n} x {p}, {sequence}, noise {noise}",
        )
    for q in sorted({r.q for r in table.rows}):
        axes.axhline(q, color=COLORS["highlight"], linewidth=1.0, label=f"level q = {q:g}")
    axes.set_xlabel("signals")
    axes.set_ylabel("false discovery rate")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="best", fontsize="x-small")
    return axes
