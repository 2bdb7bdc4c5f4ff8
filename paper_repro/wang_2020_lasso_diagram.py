"""
All that the Lasso can reach (Wang, Yang, Bu and Su 2020).
==========================================================

The region of all pairs of true positive and false discovery proportion that some Lasso has, for some signals,
noise and penalty, with random problems that fill it: on both sides of the Donoho-Tanner curve.
"""  # noqa: D205

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import COLORS, styled
from convexlaw.figures.tradeoff import plot_lasso_region
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_wang_2020_lasso_diagram import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.paper_repro._lasso_by_roots import largest_root_fdp
from convexlaw.paper_repro._random_designs import lasso_points
from convexlaw.theory.tradeoff import complete_lasso_region, donoho_tanner_power, lasso_fdp

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_SETTINGS = ((0.5, 0.3), (0.6, 0.25))
_CELLS = 10
_POINTS = 201


def compute(quick: bool = False) -> Data:
    """Compute the regions and random Lasso problems, above and below the Donoho-Tanner curve."""
    import pandas as pd

    regions, points = [], []
    for seed, (delta, epsilon) in enumerate(_SETTINGS):
        setting = {"delta": delta, "epsilon": epsilon}
        regions.append(complete_lasso_region(delta, epsilon, n=_POINTS).to_frame().assign(**setting))
        found = lasso_points(delta, epsilon, 1200 if quick else 20000, seed)
        points.append(found.drop(columns="penalty").assign(**setting))
    return Data(
        {
            "regions": pd.concat(regions, ignore_index=True),
            "random_designs": pd.concat(points, ignore_index=True),
        }
    )


def _covered(points: pd.DataFrame, delta: float, epsilon: float) -> float:
    """Share of the grid cells that lie wholly inside the region and are hit."""
    width = donoho_tanner_power(delta, epsilon) / _CELLS
    height = (1 - epsilon) / _CELLS
    hit = set(zip((points.tpp // width).astype(int), (points.fdp // height).astype(int), strict=True))
    inside = []
    for i in range(_CELLS):
        region = complete_lasso_region(delta, epsilon, width * np.linspace(i, min(i + 1, _CELLS), 5))
        low, high = region.lower.max(), region.upper.min()
        inside += [(i, j) for j in range(_CELLS) if low <= j * height and (j + 1) * height <= high]
    return sum(cell in hit for cell in inside) / len(inside)


@styled
def draw(data: Data) -> Figure:
    """Two regions with the random problems in them."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.0))
    for ax, (delta, epsilon) in zip(axes, _SETTINGS, strict=True):
        points = data["random_designs"]
        shown = points[(points.delta == delta) & (points.epsilon == epsilon)].iloc[:3000]
        ax.plot(shown.tpp, shown.fdp, ".", ms=1.5, color=COLORS["muted"], alpha=0.5, label="random problems")
        plot_lasso_region(complete_lasso_region(delta, epsilon, n=_POINTS), ax)
        ax.legend(loc="upper right", fontsize="small", markerscale=4)
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    points = data["random_designs"]
    delta, epsilon = points.delta.to_numpy(), points.epsilon.to_numpy()
    count = f"of {len(points)} random problems"
    above = points.fdp - lasso_fdp(points.tpp.to_numpy(), delta, epsilon)
    sheet.judge("C017", above.min(), note=f"smallest FDP - q*(TPP) {count}")
    room = points.fdp - (1 - epsilon * points.tpp / delta)
    sheet.judge("C018", room.max(), note=f"largest FDP - (1 - epsilon TPP/delta) {count}")
    sheet.judge("C019", (points.fdp - (1 - epsilon)).max(), note=f"largest FDP - (1 - epsilon) {count}")
    limits = np.array([donoho_tanner_power(*setting) for setting in _SETTINGS])
    limit = limits[(delta != _SETTINGS[0][0]).astype(int)]
    sheet.judge("C020", (points.tpp - limit).max(), note=f"largest TPP - u_DT {count}")
    parts = [points[(points.delta == d) & (points.epsilon == e)] for d, e in _SETTINGS]
    shares = [_covered(part, *setting) for part, setting in zip(parts, _SETTINGS, strict=True)]
    sheet.judge("C021", shares, note=f"share of the cells inside both regions that are hit, {count}")
    sheet.judge("C022", limits[0])
    ends = [(0.5, 0.3), (0.3, 0.2), (0.3, 0.5)]
    meet = [_gap_at_end(d, e) for d, e in ends]
    sheet.judge("C023", max(map(abs, meet)), note="largest difference in three settings")
    worst = [_boundary_error(part, *s) for s, part in data["regions"].groupby(["delta", "epsilon"])]
    sheet.judge("C355", max(worst), note=f"{2 * len(data['regions'])} points of both boundaries as drawn")
    drawn = data["regions"].query("delta == 0.6").iloc[-1]
    end = float(lasso_fdp(1.0, 0.6, 0.25))
    sheet.judge("C024", [drawn.tpp, drawn.lower, end, 1 - 0.25 / 0.6 - end])
    beyond = lasso_fdp(limits[0] + np.array([1e-9, 1e-3, 0.2]), 0.5, 0.3)
    sheet.judge("C025", "NaN at u_DT + 1e-9, 1e-3, 0.2", holds=bool(np.isnan(beyond).all()))
    return sheet.done()


def _boundary_error(part: pd.DataFrame, delta: float, epsilon: float) -> float:
    """Largest error of the two boundaries drawn and of q*; infinite where one is undefined."""
    tpp = part.tpp.to_numpy()
    lower, upper = largest_root_fdp(tpp, delta, epsilon), 1 - epsilon * np.maximum(1, tpp / delta)
    pairs = ((part.lower, lower), (lasso_fdp(tpp, delta, epsilon), lower), (part.upper, upper))
    errors = [np.abs(found - wanted) for found, wanted in pairs]
    return float(np.max(errors)) if np.isfinite(errors).all() else np.inf


def _gap_at_end(delta: float, epsilon: float) -> float:
    region = complete_lasso_region(delta, epsilon, n=2)
    return float(region.lower[-1] - (1 - epsilon * region.power / delta))


if __name__ == "__main__":
    draw(compute(quick=True))
