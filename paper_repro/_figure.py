"""What the figures of several papers share."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from convexlaw.figures.style import styled

__all__ = ["absent"]


@styled
def absent(missing: dict[str, str]) -> Figure:
    """Draw nothing but the reason why there is nothing to draw."""
    figure, ax = plt.subplots()
    ax.set_axis_off()
    ax.text(0.5, 0.5, "\n".join(missing.values()), ha="center", va="center", wrap=True)
    return figure
