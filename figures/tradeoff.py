"""Trade-off diagrams: curves, regions, the complete Lasso region."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from convexlaw.figures.style import COLORS, axes_or_new, styled
from convexlaw.theory.tradeoff import (
    LassoRegion,
    TradeoffCurve,
    crossings,
    donoho_tanner_power,
    tradeoff_curve,
)

__all__ = ["plot_lasso_region", "plot_tradeoff", "plot_tradeoff_curve"]

# colour and dash pattern together: the lines stay apart in grey
LINES: dict[str, dict[str, Any]] = {
    "lasso": {"color": COLORS["lasso"], "ls": "-", "lw": 2.0, "label": "Lasso"},
    "slope_upper": {"color": COLORS["highlight"], "ls": (0, (5, 1.5)), "lw": 1.8, "label": "SLOPE, reached"},
    "two_level": {"color": COLORS["two_level"], "ls": (0, (1.2, 1.2)), "lw": 2.2, "label": "two-level SLOPE"},
    "slope_lower": {
        "color": COLORS["slope"],
        "ls": (0, (6, 1.5, 1.2, 1.5)),
        "lw": 1.6,
        "label": "SLOPE, limit",
    },
}
_UNREACHABLE = "#b5b5b5"
# behind words that dots or hatches would run through
_BOX: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 2.0, "alpha": 0.9}


def _axes(ax: Axes | None, delta: float, epsilon: float) -> Axes:
    axes = axes_or_new(ax)
    axes.set(xlabel="true positive proportion", ylabel="false discovery proportion")
    axes.set_title(rf"$\delta = n/p = {delta:g}$, $\epsilon = k/p = {epsilon:g}$")
    return axes


@styled
def plot_tradeoff_curve(result: TradeoffCurve, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw one trade-off curve.

    Parameters
    ----------
    result : TradeoffCurve
    ax : matplotlib Axes, optional
    **options
        For ``Axes.plot``.

    Returns
    -------
    matplotlib Axes
    """
    axes = _axes(ax, result.delta, result.epsilon)
    axes.plot(result.tpp, result.fdp, **{**LINES[result.kind], **options})
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="lower right")
    return axes


@styled
def plot_lasso_region(result: LassoRegion, ax: Axes | None = None) -> Axes:
    """Draw every pair (TPP, FDP) that the Lasso reaches, and why it reaches no others.

    Parameters
    ----------
    result : LassoRegion
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    axes = _axes(ax, result.delta, result.epsilon)
    axes.fill_between(result.tpp, result.lower, result.upper, color=COLORS["lasso"], alpha=0.22, lw=0)
    axes.plot(result.tpp, result.lower, **{**LINES["lasso"], "label": "best Lasso, $q^*$"})
    bound: dict[str, Any] = {"color": "black", "lw": 1.2, "ls": (0, (4, 2))}
    axes.plot(result.tpp, result.upper, label="at most n selected, or chance", **bound)
    if result.power < 1:
        # up to the region: the legend stands above it
        axes.axvline(result.power, 0.0, result.bounds(result.power)[1], color="black", lw=0.9, ls=":")
        axes.annotate(
            f"power limit {result.power:.3f}",
            (result.power, 0.03),
            xytext=(4, 0),
            textcoords="offset points",
            rotation=90,
            va="bottom",
            fontsize=8,
        )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper left")
    return axes


@styled
def plot_tradeoff(
    delta: float,
    epsilon: float,
    ax: Axes | None = None,
    *,
    kinds: Sequence[str] = ("lasso", "slope_upper", "two_level", "slope_lower"),
    regions: bool = True,
    marks: bool = True,
    tpp: tuple[float, float] = (0.0, 1.0),
    n: int = 201,
) -> Axes:
    """Draw the trade-off diagram: curves, regions, the points where curves part.

    Parameters
    ----------
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].
    ax : matplotlib Axes, optional
    kinds : sequence of str
        Curves to draw.
    regions : bool
        Shade what nothing reaches, what the Lasso reaches, what only SLOPE reaches.
    marks : bool
        Mark the power limit of the Lasso and the crossings.
    tpp : (float, float)
        Range of the horizontal axis.
    n : int
        Points of each curve.

    Returns
    -------
    matplotlib Axes
    """
    axes = _axes(ax, delta, epsilon)
    curves = {
        kind: tradeoff_curve(kind, delta, epsilon, n) for kind in dict.fromkeys((*kinds, "slope_lower"))
    }
    power = donoho_tanner_power(delta, epsilon)
    u = curves["slope_lower"].tpp
    if regions:
        _shade(axes, delta, epsilon, curves["slope_lower"], power, whole=tpp == (0.0, 1.0))
    for kind in kinds:
        axes.plot(u, curves[kind].fdp, **LINES[kind])
    low, high = tpp
    inside = (u >= low) & (u <= high)
    seen = np.concatenate([curves[k].fdp[inside] for k in kinds])
    if (low, high) == (0.0, 1.0):
        axes.set(xlim=(0, 1), ylim=(0, 1))
    else:
        bottom, top = np.nanmin(seen), np.nanmax(seen)
        axes.set(xlim=tpp, ylim=(bottom - 0.04 * (top - bottom), top + 0.04 * (top - bottom)))
    if marks:
        _mark(axes, delta, epsilon, power, curves, tpp)
    axes.legend(loc="lower right" if (low, high) == (0.0, 1.0) else "upper left")
    return axes


def _shade(
    axes: Axes, delta: float, epsilon: float, best: TradeoffCurve, power: float, *, whole: bool
) -> None:
    """Shade what nothing reaches (grey), what a Lasso reaches (blue), what only SLOPE reaches (hatched)."""
    u = best.tpp
    upper = tradeoff_curve("slope_upper", delta, epsilon, u.size).fdp
    chance = np.full(u.size, 1.0 - epsilon)
    top = np.minimum(chance, 1.0 - epsilon * u / delta)
    axes.fill_between(u, 0, best.fdp, color=_UNREACHABLE, alpha=0.55, lw=0)
    axes.fill_between(u, chance, 1, color=_UNREACHABLE, alpha=0.55, lw=0)
    reach = u <= power + 1e-12
    axes.fill_between(u, upper, np.maximum(top, upper), where=reach, color=COLORS["lasso"], alpha=0.15, lw=0)
    floor = np.where(reach, np.maximum(top, upper), upper)
    hatch: dict[str, Any] = {
        "facecolor": "none",
        "edgecolor": COLORS["highlight"],
        "hatch": "////",
        "alpha": 0.4,
        "lw": 0,
    }
    axes.fill_between(u, floor, chance, where=floor < chance - 1e-9, **hatch)
    if not whole:
        return
    text: dict[str, Any] = {"fontsize": 8.5, "ha": "center", "va": "center"}
    axes.text(0.5, 1 - 0.5 * epsilon, "worse than chance", **text)
    low = float(np.interp(0.52, u, best.fdp))
    if low > 0.15:
        axes.text(0.52, 0.35 * low, "reached by no SLOPE", **text)
    place = 0.35 * power
    if place > 0.1:  # wide enough for the word
        axes.text(place, 0.5 * (float(np.interp(place, u, upper)) + 1 - epsilon), "Lasso", bbox=_BOX, **text)
    if power < 0.9:
        edge = float(np.interp(power, u, upper))
        axes.text(power, edge + 0.68 * (1 - epsilon - edge), "SLOPE only", bbox=_BOX, **text)


_PLACES = {
    "Lasso power limit": (-8, 10, "right"),
    r"$u^\dagger$": (-20, 0, "right"),
    "two levels part": (10, -6, "left"),
    "general branch": (10, -24, "left"),
}


def _mark(
    axes: Axes,
    delta: float,
    epsilon: float,
    power: float,
    curves: dict[str, TradeoffCurve],
    tpp: tuple[float, float],
) -> None:
    """Mark the power limit of the Lasso and, in a zoom, the crossings."""
    shown = [("slope_upper", power, "Lasso power limit")] if power < 1 else []
    if tpp != (0.0, 1.0):
        points = crossings(delta, epsilon)
        shown += [
            ("slope_lower", points.general, "general branch"),
            ("two_level", points.two_level, "two levels part"),
            ("lasso", points.dagger, r"$u^\dagger$"),
        ]
    for kind, u, text in shown:
        if math.isnan(u) or kind not in curves or not tpp[0] <= u <= tpp[1]:
            continue
        q = float(curves[kind].at(u))
        axes.plot([u], [q], marker="o", ms=4.5, mfc="white", mec="black", mew=1.0, ls="none", zorder=5)
        x, y, side = _PLACES[text]
        label = f"{text} {u:.4f}"
        if text.startswith("Lasso") and u - tpp[0] < 0.45 * (tpp[1] - tpp[0]):  # little room left of the mark
            if tpp == (0.0, 1.0):
                x, y, side = 10, -14, "left"
            else:
                x, y, label = -14, 8, label.replace(" limit", "\nlimit")
        axes.annotate(
            label,
            (u, q),
            xytext=(x, y),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=8,
            bbox=_BOX,
            # from the near end of the words, across no other label
            arrowprops={
                "arrowstyle": "-",
                "lw": 0.6,
                "color": "black",
                "shrinkB": 2,
                "relpos": (float(side == "right"), 0.5),
            },
        )
