"""
Growing a model during its training (Bu 2025).
==============================================

A run that trains half of the coordinates from the start and the others from a step tau on, beside one that
trains all: the gap of the weighted averages against its bound, and the excess of the final loss, by schedule.
"""  # noqa: D205

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import SCHEDULES, styled
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_bu_2025_depth import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.paper_repro._depth_growth import STARTS, grow, small_runs, theory_errors
from convexlaw.theory import depth

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]


def compute(quick: bool = False) -> Data:
    """Train quadratics whole and grown, test the theory's functions, read the packaged small runs."""
    growth, curves = grow(1000 if quick else 4000)
    return Data({"growth": growth, "curves": curves}, {"theory": theory_errors(), "small": small_runs()})


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
    _check_compute(sheet)
    _check_quadratics(sheet, data["growth"])
    _check_theory(sheet, data["theory"])
    _check_small_gaps(sheet, data["small"])
    _check_small_mixing(sheet, data["small"])
    return sheet.done()


def _check_compute(sheet: Sheet) -> None:
    ratio = depth.compute_ratio(0.8, 39e6, 124e6)
    sheet.judge("C278", ratio)
    sheet.judge("C279", ratio)
    sheet.judge("C280", depth.compute_ratio(0.8, 0.0, 124e6))
    sheet.judge("C281", depth.compute_ratio(480 / 528, 0.0, 124e6))
    whole = 6 * 512 * 600_000 * 124e6
    left = [depth.flops(512, at, 0.0, 124e6, steps=600_000) / whole for at in (480_000, 528_000)]
    sheet.judge("C282", left)


def _check_quadratics(sheet: Sheet, growth: pd.DataFrame) -> None:
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
    ranks = growth[["grown_loss", "final_bound", "formula"]].rank().corr().loc["grown_loss"]
    text = f"rank correlations {ranks.final_bound:.3f} and {ranks.formula:.3f}"
    sheet.judge("C289", ranks.final_bound - ranks.formula, note=text)
    sheet.judge("C402", (growth.final_bound / growth.grown_loss).min())
    differ = (growth.mixing != growth.mixing_searched) & ~(
        growth.mixing.isna() & growth.mixing_searched.isna()
    )
    met = growth.dropna(subset="mixing").groupby("schedule").tau.max()
    text = "latest tau/T that mixes: " + ", ".join(f"{name} {tau:g}" for name, tau in met.items())
    sheet.judge("C407", differ.sum(), note=text)


def _check_theory(sheet: Sheet, errors: dict[str, float]) -> None:
    sheet.judge("C400", errors["average_gap"])
    sheet.judge("C401", errors["final_bound"])
    sheet.judge("C403", [errors["mixing_steps"], errors["latest_step"]])
    sheet.judge("C404", errors["expansion_step"])
    sheet.judge("C405", errors["flops"])


def _check_small_gaps(sheet: Sheet, small: dict[str, pd.DataFrame]) -> None:
    gaps, equal, inits = small["gaps"].sort_index(), small["same_compute"], small["inits"]
    sheet.unobtainable("C290", computed=[gaps.gap[s, k, 0.8] for s in ("wsd", "cosine") for k in (0, 1)])
    saved = gaps.loc[("wsd", 1, 0.8), :]
    sheet.unobtainable("C292", computed=[1 / saved.blocks, 1 / saved["all"]])
    sheet.unobtainable("C295", computed=[(equal.difference < 0).sum(), (equal.high < 0).sum()])
    sheet.judge("C408", equal.difference)
    last, stack, between = (inits.gap[f"copy_{name}"] for name in ("last", "stack", "interpolate"))
    sheet.judge(
        "C296",
        [last, stack, between],
        holds=bool(last > max(stack, between)),
        note="percent gap to the whole model: last, stacked, interpolated; copying the last block does best",
    )
    sheet.judge("C406", [inits.jump["zero"], inits.jump["copy_zero"]])
    sheet.unobtainable("C297", computed=[inits.gap[name] for name in ("random", "zero", "copy_zero")])


def _check_small_mixing(sheet: Sheet, small: dict[str, pd.DataFrame]) -> None:
    share = small["gaps"].mixed.sort_index().map(lambda text: float(Fraction(text)))
    late = [share["cosine", k][lambda s: s.index >= 0.5].mean() for k in (0, 1)]
    sheet.judge("C293", [share["wsd", 0, 0.8], share["wsd", 1, 0.8], *late])
    mostly = [share["wsd", k] for k in (0, 1)]
    sheet.judge("C294", [float(s.index[s > 0.5].max()) if (s > 0.5).any() else 0.0 for s in mostly])
    taus = small["mixing"]["tau/T"]
    nearest = [STARTS[int(np.argmin(np.abs(np.array(STARTS) - taus[k])))] for k in (0, 1)]
    found = [share["wsd", k, tau] for k, tau in zip((0, 1), nearest, strict=True)]
    sheet.judge("C299", found, note=f"the recipe gives {taus[0]:.2f} T from 0 blocks, {taus[1]:.2f} T from 1")


if __name__ == "__main__":
    draw(compute(quick=True))
