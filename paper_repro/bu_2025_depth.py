"""
Growing a model during its training (Bu 2025).
==============================================

A run that trains half of the coordinates from the start and the others from a step tau on, beside one that
trains all: the gap of the weighted averages against its bound, and the excess of the final loss, by schedule.
"""  # noqa: D205

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import SCHEDULES, styled
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_bu_2025_depth import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.simulations.descent import expected_descent
from convexlaw.simulations.problems import Quadratic, power_law_quadratic
from convexlaw.theory.depth import compute_ratio
from convexlaw.theory.last_iterate import optimal_peak
from convexlaw.theory.schedules import constant, cosine, wsd

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_STARTS = (0.3, 0.5, 0.7, 0.8)
_SHAPES = {
    "WSD": lambda steps, peak: wsd(steps, peak, decay=0.1),
    "cosine": cosine,
    "constant": constant,
}


def compute(quick: bool = False) -> Data:
    """Train quadratics whole and grown, each schedule at its best peak."""
    import pandas as pd

    steps = 1000 if quick else 4000
    problem = power_law_quadratic(200, sigma=0.3)
    new = np.arange(200) % 2 == 1
    old, grown = (
        Quadratic(problem.curvature[part], problem.start[part], problem.noise[part]) for part in (~new, new)
    )
    rows, curves = [], {}
    for name, shape in _SHAPES.items():
        peaks = np.geomspace(0.02, 1.5, 15)
        ends = [expected_descent(problem, shape(steps, float(peak))).gap[-1] for peak in peaks]
        lr = shape(steps, float(peaks[int(np.argmin(ends))]))
        shared, extra = (expected_descent(part, lr).gap for part in (old, grown))
        whole = shared + extra
        curves[f"{name}, whole"] = whole
        for start in _STARTS:
            tau = int(start * steps)
            late = expected_descent(grown, lr[tau:]).gap
            path = shared + np.concatenate([np.full(tau, extra[0]), late])
            early = float(lr[:tau].sum() / lr.sum())
            gap = float(lr @ (path - whole)[:-1] / lr.sum())
            rows.append((name, start, early, gap, early * extra[0], float(path[-1] - whole[-1]), whole[-1]))
            curves[f"{name}, grown at {start:g} T"] = path
    columns = ["schedule", "tau", "early_share", "average_gap", "formula", "final_excess", "final_loss"]
    thin = slice(None, None, max(1, steps // 500))
    table = pd.DataFrame({"step": np.arange(steps + 1)[thin]} | {k: v[thin] for k, v in curves.items()})
    return Data({"growth": pd.DataFrame(rows, columns=columns), "curves": table})


@styled
def draw(data: Data) -> Figure:
    """Loss gaps grown at .8 T, gap against its bound, and excess of the final loss."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.8))
    curves, growth = data["curves"], data["growth"]
    names = ("WSD", "cosine")
    for name in names:
        mark = {k: SCHEDULES[name][k] for k in ("color", "marker")} | {"ms": 4, "markevery": 0.08}
        left.semilogy(curves.step, curves[f"{name}, whole"], "-", label=f"{name}, whole", **mark)
        mark["mfc"] = "white"
        left.semilogy(curves.step, curves[f"{name}, grown at 0.8 T"], "--", label=f"{name}, grown", **mark)
    left.set_xlabel("step")
    left.set_ylabel("loss gap")
    left.set_title("grown at τ = 0.8 T")
    left.legend()
    for name in names:
        part, looks = growth[growth.schedule == name], SCHEDULES[name]
        middle.plot(part.tau, part.formula, label=f"{name}, bound", **looks | {"marker": ""})
        middle.plot(part.tau, part.average_gap, label=f"{name}, seen", **looks | {"linestyle": ""})
        right.semilogy(part.tau, part.final_excess / part.final_loss, label=name, **looks)
    middle.set_xlabel("τ / T")
    middle.set_ylabel("gap of the averaged losses")
    middle.set_title("averages")
    middle.legend()
    right.set_xlabel("τ / T")
    right.set_ylabel("excess of the final loss gap (share)")
    right.set_title("last iterate")
    right.legend()
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    ratio = compute_ratio(0.8, 39e6, 124e6)
    sheet.judge("C278", ratio)
    sheet.judge("C279", ratio)
    sheet.judge("C280", compute_ratio(0.8, 0.0, 124e6))
    sheet.judge("C281", 480 / 528)
    sheet.judge("C282", [480 / 600, 528 / 600])
    growth = data["growth"]
    close = growth.average_gap / growth.formula
    sheet.judge("C283", close.max())
    sheet.judge("C284", close.min())
    late = growth[growth.tau == 0.8].set_index("schedule")
    sheet.judge("C285", late.early_share["WSD"] / late.early_share["cosine"])
    sheet.judge("C286", (1 - late.early_share["WSD"]) / (1 - late.early_share["cosine"]))
    share = late.final_excess / late.final_loss
    text = f"excess {share['WSD']:.1f} (WSD) and {share['cosine']:.1f} (cosine) times the loss gap"
    sheet.judge("C287", share["cosine"] / share["WSD"], note=text)
    steps = [part.final_excess.diff().min() for _, part in growth.groupby("schedule")]
    sheet.judge("C288", min(steps))
    left = {name: _rates_left(shape(10_000, 1.0)) for name, shape in _SHAPES.items()}
    sheet.judge("C289", left["WSD"] / left["cosine"])
    return sheet.done()


def _rates_left(shape: NDArray[np.float64]) -> float:
    """Sum of the rates after .8 T at the peak that is best for the whole run."""
    peak, _ = optimal_peak(shape)
    return float(peak * shape[int(0.8 * shape.size) :].sum())


if __name__ == "__main__":
    draw(compute(quick=True))
