"""
False discoveries of the Lasso (Su, Bogdan and Candès 2017).
============================================================

No Lasso reaches a true positive proportion u with a false discovery proportion below q*(u), whatever the
signals, the noise and the penalty. The dots are random problems; the curve is q*.
"""  # noqa: D205

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from convexlaw.figures.style import COLORS, styled
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_su_2017_lasso import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.paper_repro._lasso_by_roots import equation, largest_root_fdp
from convexlaw.paper_repro._random_designs import lasso_points
from convexlaw.simulations.monte_carlo import Setting, along_scale, monte_carlo
from convexlaw.theory.scalar_limit import Lasso, Prior, limiting_function, null_risk
from convexlaw.theory.tradeoff import (
    attaining_design,
    complete_lasso_region,
    donoho_tanner_power,
    donoho_tanner_sparsity,
    donoho_tanner_threshold,
    lasso_fdp,
    tradeoff_threshold,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_SETTINGS = ((0.3, 0.2), (0.3, 0.5), (0.6, 0.25), (1.0, 0.2))


def compute(quick: bool = False) -> Data:
    """Compute q* in four settings, random Lasso problems in the first, and both sides of the identities."""
    import pandas as pd

    points = lasso_points(0.3, 0.2, 400 if quick else 4000, seed=1)
    curves = pd.concat(
        [
            complete_lasso_region(d, e, n=101 if quick else 401).to_frame().assign(delta=d, epsilon=e)
            for d, e in _SETTINGS
        ],
        ignore_index=True,
    )
    curves = curves.rename(columns={"lower": "fdp"}).drop(columns="upper")
    tables = {"curves": curves, "random_designs": points, "fits": _fits(10 if quick else 50)}
    return Data(tables, {"attained": _attained(quick), "sharp": _sharp_fits(20 if quick else 200)})


def _fits(repetitions: int) -> pd.DataFrame:
    """Repeated Lasso fits of strong signals with little noise at delta = .3, epsilon = .2."""
    setting = Setting(Prior.parse("8:0.2"), Lasso(1.6), 0.3, 0.1, 400)
    scales = along_scale(setting, (0.85, 0.95, 1.05, 1.2, 1.4, 1.8))
    return monte_carlo(scales, repetitions, seed=4, progress=False).to_frame()


def _sharp_fits(repetitions: int) -> tuple[float, float]:
    """Mean of FDP - q*(TPP) and its standard error: signals nearly as the sharpness proof takes them."""
    far = float(attaining_design("lasso", 0.4, 0.3, 0.2).prior.weights[-1])
    prior = Prior((0.8, 0.2 - far, far), (0.0, 1e-3, 50.0), (0.0, 0.0, 0.0))
    # a hair above the threshold of the limit, where there would be no fixed point
    penalty = Lasso(float(tradeoff_threshold("lasso", 0.4, 0.3, 0.2)) + 0.02)
    fits = monte_carlo([Setting(prior, penalty, 0.3, 0.3, 1000)], repetitions, seed=5, progress=False)
    tpp, fdp = fits.values[0, :, 0], fits.values[0, :, 1]
    above = fdp - lasso_fdp(np.minimum(tpp, donoho_tanner_power(0.3, 0.2)), 0.3, 0.2)
    return float(above.mean()), float(above.std(ddof=1) / np.sqrt(above.size))


def _attained(quick: bool) -> float:
    """Largest difference between q* and the limiting FDP of the design of the proof, where E = delta too."""
    worst = 0.0
    for delta, epsilon in _SETTINGS:
        limit = donoho_tanner_power(delta, epsilon)
        for u in np.linspace(0.05, 0.98, 5 if quick else 20) * limit:
            design = attaining_design("lasso", float(u), delta, epsilon)
            h = limiting_function(design.prior, design.penalty, 1.0)
            floor = float(lasso_fdp(u, delta, epsilon))
            worst = max(worst, abs(h.fdp - floor), abs(h.tpp - u), abs(h.mse - delta))
    return worst


def _equations() -> tuple[float, float]:
    """Residuals of the two equations of t* over settings and TPPs; infinite where a larger root exists."""
    worst = [0.0, 0.0]
    for delta, epsilon in _SETTINGS:
        for u in np.linspace(0.1, 0.9, 9) * donoho_tanner_power(delta, epsilon):
            a = float(tradeoff_threshold("lasso", u, delta, epsilon))
            worst[0] = max(worst[0], abs(float(equation(a, u, delta, epsilon))))
            beyond = equation(a + np.geomspace(1e-3, 20.0, 40), u, delta, epsilon)
            worst[0] = worst[0] if beyond.min() > 0 else np.inf
            tail = 2.0 * float(ndtr(-a))
            p = (u - tail) / (1 - tail)
            rewritten = (1 - epsilon * p) * null_risk(Lasso(a)) + epsilon * p * (1 + a * a)
            worst[1] = max(worst[1], abs(rewritten - delta))
    return worst[0], worst[1]


def _sup_on_grid(delta: float) -> float:
    a = np.linspace(1e-3, 6.0, 6000)
    e0 = np.array([null_risk(Lasso(float(x))) for x in a])
    return float(np.max((delta - e0) / (1 + a * a - e0)))


@styled
def draw(data: Data) -> Figure:
    """Random Lasso problems above q*, and q* in four settings."""
    curves, points = data["curves"], data["random_designs"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.8), sharex=True, sharey=True)
    first = curves[(curves.delta == 0.3) & (curves.epsilon == 0.2)]
    left.plot(points.tpp, points.fdp, ".", ms=2.5, color=COLORS["muted"], alpha=0.6, label="random problems")
    left.plot(first.tpp, first.fdp, color=COLORS["lasso"], label="q*")
    fits = data["fits"].pivot(index="label", columns="quantity")
    means, errors = fits["mean"], 2 * fits["standard_error"]
    left.errorbar(means.tpp, means.fdp, errors.fdp, errors.tpp, fmt="o", ms=3.5, lw=1, color=COLORS["data"],
                  label="Lasso fits, p = 400")  # fmt: skip
    left.fill_between(first.tpp, 0, first.fdp, color=COLORS["lasso"], alpha=0.12, lw=0)
    limit = donoho_tanner_power(0.3, 0.2)
    left.axvline(limit, color=COLORS["data"], lw=0.8, ls=":", label=f"power limit {limit:.3f}")
    left.set_title("δ = 0.3, ε = 0.2")
    left.legend(loc="lower right", fontsize="small")
    for (delta, epsilon), style in zip(_SETTINGS, ("-", "--", "-.", ":"), strict=True):
        part = curves[(curves.delta == delta) & (curves.epsilon == epsilon)]
        right.plot(part.tpp, part.fdp, style, color=COLORS["lasso"], label=f"δ = {delta:g}, ε = {epsilon:g}")
    right.set_title("q* ends at the power limit")
    right.legend(loc="upper left")
    for ax in (left, right):
        ax.set_xlabel("true positive proportion")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
    left.set_ylabel("false discovery proportion")
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    curves, points = data["curves"], data["random_designs"]
    above = points.fdp - lasso_fdp(points.tpp.to_numpy(), 0.3, 0.2)
    sheet.judge("C001", above.min(), note=f"smallest FDP - q*(TPP) of {len(points)} random problems")
    quiet = above[points.sigma == 0]
    sheet.judge("C002", quiet.min(), note=f"smallest FDP - q*(TPP) of {quiet.size} problems without noise")
    sheet.judge("C003", data["attained"], note="largest difference in FDP, TPP and error/delta - 1")
    mean, error = data["sharp"]
    sheet.judge("C354", mean, error=error, note="mean of FDP - q*(TPP) of fits, p = 1000, TPP about .39")
    parts = list(curves.groupby(["delta", "epsilon"]))
    errors = [_curve_error(part, *setting) for setting, part in parts]
    sheet.judge("C353", max(errors), note=f"{len(curves)} points of the four curves drawn")
    start = float(curves.fdp[curves.tpp == 0].abs().max())
    sheet.judge("C004", [0.0 - start, min(_rise(part) for _, part in parts)])
    paper, rewritten = _equations()
    sheet.judge("C005", paper)
    sheet.judge("C006", rewritten)
    sheet.judge("C007", lasso_fdp(0.1, 0.6, 0.25))
    deltas = (0.1, 0.3, 0.5, 0.6, 0.9)
    sheet.judge("C008", max(abs(_sup_on_grid(d) - float(donoho_tanner_sparsity(d))) for d in deltas))
    sheet.judge("C009", donoho_tanner_sparsity(0.6))
    sheet.judge("C010", max(abs(_threshold_identity(d)) for d in deltas))
    sheet.judge("C011", donoho_tanner_power(0.3, 0.5))
    sheet.judge("C012", [donoho_tanner_power(d, e) for d, e in ((1.0, 0.5), (2.0, 0.9), (0.6, 0.25))])
    sheet.judge("C013", points.tpp.max() - donoho_tanner_power(0.3, 0.2), note="largest TPP - u_DT")
    ends = [(d, e, donoho_tanner_power(d, e)) for d, e in ((0.3, 0.2), (0.3, 0.5), (0.1, 0.5))]
    sheet.judge("C014", max(abs(1 - float(lasso_fdp(u, d, e)) - e * u / d) for d, e, u in ends))
    u = np.linspace(0.05, 0.5, 10)
    curves_of = [np.asarray(lasso_fdp(u, d, 0.2)) for d in (0.3, 0.5, 0.8, 1.2)]
    ratio = np.max([b / a for a, b in pairwise(curves_of)])
    sheet.judge("C016", ratio, note="largest ratio of q* from one delta to the next, TPP .05 to .5")
    fits = data["fits"].pivot(index="label", columns="quantity")
    tpp, fdp = fits["mean"].tpp, fits["mean"].fdp
    floor = np.asarray(lasso_fdp(np.minimum(tpp, donoho_tanner_power(0.3, 0.2)), 0.3, 0.2))
    scores = (fdp - floor) / fits["standard_error"].fdp
    text = (
        f"mean TPP from {tpp.min():.2f} to {tpp.max():.2f}; smallest mean FDP - q*: {(fdp - floor).min():.4f}"
    )
    sheet.judge("C015", scores.min(), note=text)
    return sheet.done()


def _curve_error(part: pd.DataFrame, delta: float, epsilon: float) -> float:
    """Largest error of a curve drawn and of q* itself; infinite where only one side is undefined."""
    tpp = part.tpp.to_numpy()
    wanted = largest_root_fdp(tpp, delta, epsilon)
    errors = [np.abs(found - wanted) for found in (part.fdp, lasso_fdp(tpp, delta, epsilon))]
    return float(np.max(errors)) if np.isfinite(errors).all() else np.inf


def _rise(part: pd.DataFrame) -> float:
    """Smallest relative rise of q* per unit of TPP along a curve, from TPP .1 on."""
    tpp, fdp = part.tpp.to_numpy(), part.fdp.to_numpy()
    tpp, fdp = tpp[tpp >= 0.1], fdp[tpp >= 0.1]
    with np.errstate(invalid="ignore", divide="ignore"):
        rises = np.diff(fdp) / fdp[:-1] / np.diff(tpp)
    return float(rises.min())  # NaN, and so no rise, where the curve is 0


def _threshold_identity(delta: float) -> float:
    star = float(donoho_tanner_sparsity(delta))
    return 2.0 * float(ndtr(-float(donoho_tanner_threshold(delta)))) - (delta - star) / (1 - star)


if __name__ == "__main__":
    draw(compute(quick=True))
