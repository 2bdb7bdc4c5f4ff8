"""Picture of the qualifying exam of a schedule shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import COLORS, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.theory.last_iterate import Exam

__all__ = ["plot_exam"]


@styled
def plot_exam(exam: Exam, ax: Axes | None = None) -> Axes:
    """Bound at the best peak against the number of steps, beside 1/sqrt(T).

    Parameters
    ----------
    exam : Exam
        Result of ``qualify``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    steps = np.array(exam.horizons, dtype=float)
    values = np.array(exam.optimal) / np.sqrt(steps)
    ax.loglog(steps, values, "o-", color=COLORS["bound"], label=f"best peak, slope {exam.slope:.4f}")
    if steps.size:
        ax.loglog(
            steps, values[0] * np.sqrt(steps[0] / steps), "--", color=COLORS["muted"], label="1/sqrt(T)"
        )
    ax.set_xlabel("steps T")
    ax.set_ylabel("bound / (D G)")
    ax.set_title(f"{exam.shape}: {'qualified' if exam.qualified else 'not qualified'}")
    ax.legend()
    return ax
