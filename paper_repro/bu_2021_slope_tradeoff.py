"""
Beyond the power limit of the Lasso (Bu, Klusowski, Rush and Su 2021).
======================================================================

SLOPE reaches every true positive proportion. Its best false discovery proportion lies between an upper curve,
the Lasso's and then a Moebius function, and a lower one; random SLOPE problems lie above the lower curve.
"""  # noqa: D205

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import COLORS, styled
from convexlaw.figures.tradeoff import LINES, plot_tradeoff
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_bu_2021_slope_tradeoff import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.paper_repro._random_designs import slope_points
from convexlaw.theory.designs import improve_lasso
from convexlaw.theory.scalar_limit import KLevel, Lasso, Prior, TwoLevel, limiting_function
from convexlaw.theory.state_evolution import alpha_min, solve
from convexlaw.theory.tradeoff import (
    attaining_design,
    crossings,
    dagger,
    donoho_tanner_power,
    donoho_tanner_sparsity,
    lasso_fdp,
    moebius_design,
    slope_fdp_lower,
    slope_fdp_upper,
    tradeoff_curve,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_SETTINGS = ((0.3, 0.2), (0.3, 0.5), (0.6, 0.25))
_FAMILIES = {  # as the authors' script draws them: title -> (delta, epsilon), ...
    "ε = 0.2": ((0.2, 0.2), (0.3, 0.2), (0.5, 0.2)),
    "ε = 0.1": ((0.3, 0.1), (0.4, 0.1), (0.5, 0.1)),
    "δ = 0.9": ((0.9, 0.1), (0.9, 0.2), (0.9, 0.5)),
    "δ = 0.1": ((0.1, 0.1), (0.1, 0.2), (0.1, 0.5)),
}
_LABELS = {  # TPP at which each curve of a family is named
    "ε = 0.2": (0.3, 0.45, 0.6),
    "ε = 0.1": (0.5, 0.64, 0.84),
    "δ = 0.9": (0.88, 0.75, 0.5),
    "δ = 0.1": (0.35, 0.6, 0.8),
}
_FDP = {"lasso": lasso_fdp, "slope_upper": slope_fdp_upper, "slope_lower": slope_fdp_lower}


def compute(quick: bool = False) -> Data:
    """Compute the curves, random SLOPE problems, and how random Lassos are improved."""
    import pandas as pd

    curves = pd.concat(
        [
            tradeoff_curve(kind, d, e, 101 if quick else 401).to_frame().assign(kind=kind, delta=d, epsilon=e)
            for d, e in _SETTINGS
            for kind in _FDP
        ],
        ignore_index=True,
    )
    near = np.linspace(0.5, 0.6, 101)
    zoom = pd.DataFrame({"tpp": near} | {kind: curve(near, 0.3, 0.2) for kind, curve in _FDP.items()})
    points = slope_points(0.3, 0.2, 250 if quick else 3000, seed=3)
    tables = {
        "curves": curves,
        "zoom": zoom,
        "families": _families(51 if quick else 201),
        "random_designs": points,
        "improved": _improvements(quick),
    }
    return Data(tables, {"moebius": _moebius_errors(), "lower": _lower_errors()})


def _families(n: int) -> pd.DataFrame:
    """Both curves of SLOPE in the four families of settings."""
    import pandas as pd

    tpp = np.linspace(0.0, 1.0, n)
    curves = {"reached": slope_fdp_upper, "limit": slope_fdp_lower}
    parts = [
        pd.DataFrame({"tpp": tpp, "family": title, "delta": delta, "epsilon": epsilon})
        .assign(**{name: curve(tpp, delta, epsilon) for name, curve in curves.items()})
        for title, settings in _FAMILIES.items()
        for delta, epsilon in settings
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def _improvements(quick: bool) -> pd.DataFrame:
    """Gains of the best two-level penalty with the zero threshold of a Lasso."""
    import pandas as pd

    signals = ("4:0.2", "1:0.5", "N(0,1):0.1", "N(0,1):0.5")
    rows = []
    for delta, text, sigma, margin in product((0.3, 0.64, 1.0), signals, (0.2, 0.5, 2.0), (0.5, 1.0)):
        prior, alpha = Prior.parse(text), alpha_min(delta) + margin
        if quick and margin == 1.0:
            continue
        lasso = solve(prior, Lasso(alpha), delta, sigma, require_lambda=False)
        better = improve_lasso(prior, delta, sigma, alpha).state
        gain = (better.tpp - lasso.tpp, lasso.fdp - better.fdp, 1 - better.mse / lasso.mse)
        rows.append((delta, text, sigma, alpha, *gain))
    names = ["delta", "prior", "sigma", "alpha", "tpp_gain", "fdp_gain", "mse_gain"]
    return pd.DataFrame(rows, columns=names)


def _moebius_errors() -> tuple[float, float]:
    """Error of the attaining designs (with a hair less share), and the jump of TPP with a hair more."""
    worst, jump = 0.0, np.inf
    for delta, epsilon, u in ((0.3, 0.5, 0.5), (0.3, 0.5, 0.9), (0.3, 0.2, 0.7), (0.3, 0.2, 0.95)):
        design = moebius_design(u, delta, epsilon)
        below, above = (
            limiting_function(design.prior, TwoLevel(design.alpha1, design.alpha2, design.fraction + x), 1.0)
            for x in (-1e-7, 1e-4)
        )
        worst = max(worst, abs(below.tpp - u), abs(below.fdp - design.fdp), abs(below.mse / delta - 1))
        jump = min(jump, below.tpp - above.tpp)
    return worst, float(jump)


def _lower_errors() -> tuple[float, float]:
    """Error of the designs of the lower curve, and the largest df/delta of them."""
    worst, share = 0.0, 0.0
    for delta, epsilon, u in ((0.3, 0.2, 0.3), (0.3, 0.2, 0.7), (0.3, 0.5, 0.5), (0.5, 0.3, 0.5)):
        design = attaining_design("slope_lower", u, delta, epsilon)
        h = limiting_function(design.prior, design.penalty, 1.0)
        worst = max(worst, abs(h.tpp - u), abs(h.fdp - float(slope_fdp_lower(u, delta, epsilon))))
        share = max(share, h.df / delta)
    return worst, share


@styled
def draw(data: Data) -> Figure:
    """Curves and regions in two settings, the zoom around the power limit, four families of settings."""
    figure = plt.figure(figsize=(12.0, 7.6))
    grid = figure.add_gridspec(2, 12, height_ratios=(4.2, 3.4))
    axes = [figure.add_subplot(grid[0, 4 * i : 4 * i + 4]) for i in range(3)]
    curves, points = data["curves"], data["random_designs"]
    count = len(curves) // (len(_SETTINGS) * len(_FDP))
    kinds = tuple(_FDP)
    axes[0].plot(points.tpp, points.fdp, ".", ms=2, color=COLORS["data"], alpha=0.5)
    for ax, epsilon in zip(axes[:2], (0.2, 0.5), strict=True):
        plot_tradeoff(0.3, epsilon, ax, kinds=kinds, n=count)
        ax.legend([]).remove()  # the zoom has it
    axes[0].set_title("δ = 0.3, ε = 0.2; dots: random SLOPE")
    # the points of the zoomed curves lie a thousandth apart, as those in its table
    plot_tradeoff(0.3, 0.2, axes[2], kinds=kinds, regions=False, tpp=(0.5, 0.6), n=1001)
    families = data["families"]
    for i, title in enumerate(_FAMILIES):
        ax = figure.add_subplot(grid[1, 3 * i : 3 * i + 3])
        _draw_family(ax, families[families.family == title], _LABELS[title])
        ax.set_title(title)
        ax.set_ylabel("" if i else "false discovery proportion")
    return figure


def _draw_family(ax: Axes, part: pd.DataFrame, places: tuple[float, float, float]) -> None:
    """Draw both curves of three settings, each named beside its upper curve."""
    name, sign = ("delta", "δ") if part.delta.nunique() > 1 else ("epsilon", "ε")
    for (value, own), place in zip(part.groupby(name), places, strict=True):
        ax.plot(own.tpp, own.reached, **LINES["slope_upper"] | {"lw": 1.4, "label": None})
        ax.plot(own.tpp, own.limit, **LINES["slope_lower"] | {"lw": 1.4, "label": None})
        at = (place, float(np.interp(place, own.tpp, own.reached)))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
        ax.text(*at, f"{sign} = {value:g}", fontsize=8, ha="center", va="center", bbox=box)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="true positive proportion")


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    points = data["random_designs"]
    count = f"of {len(points)} random problems"
    above = points.fdp - slope_fdp_lower(points.tpp.to_numpy(), 0.3, 0.2)
    sheet.judge("C049", above.min(), note=f"smallest FDP - q_*(TPP) {count}")
    sheet.judge(
        "C050", points.tpp.max(), note=f"largest TPP {count}; u_DT = {donoho_tanner_power(0.3, 0.2):.4f}"
    )
    _check_upper(sheet, data["curves"].query("kind == 'slope_upper' and delta == 0.3"))
    worst, jump = data["moebius"]
    sheet.judge("C055", worst, note="largest error of TPP, FDP and error/delta - 1 in four settings")
    sheet.judge("C056", f"TPP falls by at least {jump:.3f}", holds=jump > 0.01)
    grid = np.linspace(0.2, 0.98, 40)  # nearer to 0 both are 0 to double precision
    gap = np.concatenate([slope_fdp_upper(grid, *s) - slope_fdp_lower(grid, *s) for s in _SETTINGS])
    sheet.judge("C057", gap.min(), note=f"smallest difference; the largest is {gap.max():.4f}")
    small = np.linspace(0.02, 0.2, 10)
    sheet.judge("C058", np.max(slope_fdp_upper(small, 0.3, 0.2) - slope_fdp_lower(small, 0.3, 0.2)))
    drawn = data["curves"].query("kind == 'slope_lower' and delta == 0.3 and epsilon == 0.2")
    places = [int(np.argmin(np.abs(drawn.tpp - u))) for u in (0.5, 0.7, 0.9)]
    both = (slope_fdp_lower([0.5, 0.7, 0.9], 0.3, 0.2), drawn.fdp.iloc[places])
    sheet.judge("C059", np.concatenate(both))
    error, share = data["lower"]
    sheet.judge(
        "C060", error if share < 1 else np.inf, note=f"in four settings; largest df/delta {share:.3f}"
    )
    sheet.judge("C061", dagger(0.3, 0.2), note=str(crossings(0.3, 0.2)))
    sheet.judge("C062", donoho_tanner_power(0.3, 0.2))
    lower = data["curves"].query("kind == 'slope_lower'")
    step = min(part.fdp.diff().min() for _, part in lower.groupby(["delta", "epsilon"]))
    over = (lower.fdp - (1 - lower.epsilon)).max()
    sheet.judge("C063", min(step, -over + 1e-12), note="smallest step along the curves")
    _check_families(sheet, data["families"])
    gains = data["improved"][["tpp_gain", "fdp_gain", "mse_gain"]]
    sheet.judge(
        "C066",
        [gains.min().min(), gains.mse_gain.min()],
        note=f"smallest of the three gains, of that in error, in {len(gains)} problems; medians "
        + ", ".join(f"{v:.2g}" for v in gains.median()),
    )
    prior = Prior.parse("4:0.2")
    before = solve(prior, Lasso(1.5), 0.64, 0.5)
    after = improve_lasso(prior, 0.64, 0.5, 1.5).state
    sheet.judge("C067", [before.tpp, before.fdp, before.mse, after.tpp, after.fdp, after.mse])
    one = solve(prior, KLevel((1.5,), (1.0,)), 0.64, 0.5)
    sheet.judge("C068", max(abs(one.tau - before.tau), abs(one.tpp - before.tpp)))
    top = [float(slope_fdp_lower(u, *s)) - (1 - s[1]) for s in _SETTINGS for u in (0.5, 0.99, 1.0)]
    sheet.judge("C069", max(top))
    return sheet.done()


def _check_upper(sheet: Sheet, drawn: pd.DataFrame) -> None:
    same, formula, jump = 0.0, 0.0, 0.0
    ends = drawn[drawn.tpp == 1]
    end = float((ends.fdp - (1 - ends.epsilon)).abs().max())
    for delta, epsilon in ((0.3, 0.2), (0.3, 0.5), (0.1, 0.5)):
        limit, star = donoho_tanner_power(delta, epsilon), float(donoho_tanner_sparsity(delta))
        below, beyond = np.linspace(0.05, 1, 8) * limit, limit + (1 - limit) * np.linspace(0.1, 1, 8)
        apart = np.asarray(slope_fdp_upper(below, delta, epsilon)) - np.asarray(
            lasso_fdp(below, delta, epsilon)
        )
        same = max(same, float(np.abs(apart).max()))
        eu = epsilon * beyond
        moebius = (1 - epsilon) * (eu - star) / (eu * (1 - star) - star * (1 - epsilon))
        formula = max(formula, float(np.abs(slope_fdp_upper(beyond, delta, epsilon) - moebius).max()))
        end = max(end, abs(float(slope_fdp_upper(1.0, delta, epsilon)) - (1 - epsilon)))
        near = slope_fdp_upper([limit * (1 - 1e-9), limit * (1 + 1e-9)], delta, epsilon)
        jump = max(jump, abs(float(np.diff(near)[0])))
    sheet.judge("C051", same)
    sheet.judge("C052", formula)
    sheet.judge("C053", end)
    sheet.judge(
        "C054", jump, note="change of q^* over 2e-9 u_DT, where the Lasso's threshold is a double root"
    )


def _check_families(sheet: Sheet, families: pd.DataFrame) -> None:
    deltas, sparse, easy, hard = (_ratios(families[families.family == title]) for title in _FAMILIES)
    sheet.judge("C064", deltas[1], note="largest ratio from one delta to the next, TPP .1 to .9")
    sheet.judge("C358", sparse[1], note="largest ratio from one delta to the next, TPP .1 to .9")
    sheet.judge("C065", easy[0], note="smallest ratio from one epsilon to the next, TPP .1 to .9")
    late = _ratios(families[families.family == "δ = 0.1"], first=0.3)[1]
    sheet.judge("C359", late, note="largest ratio from one epsilon to the next, TPP .3 to .9")
    text = f"smallest ratio from one epsilon to the next; the largest {hard[1]:.3f}"
    sheet.judge("C360", hard[0], note=text)
    settings = ((0.3, 0.1), (0.4, 0.1), (0.5, 0.1), (0.1, 0.1), (0.1, 0.2), (0.1, 0.5))
    sheet.judge("C361", [donoho_tanner_power(*setting) for setting in settings])
    sheet.judge("C362", slope_fdp_lower(0.5, *np.transpose(settings)))


def _ratios(part: pd.DataFrame, first: float = 0.1) -> tuple[float, float]:
    """Smallest and largest ratio of both curves from one setting of a family to the next."""
    inside = part[(part.tpp > first - 1e-9) & (part.tpp < 0.9 + 1e-9)]
    settings = [own for _, own in inside.groupby(["delta", "epsilon"])]
    found = [
        after[name].to_numpy() / before[name].to_numpy()
        for before, after in pairwise(settings)
        for name in ("reached", "limit")
    ]
    return float(np.min(found)), float(np.max(found))


if __name__ == "__main__":
    draw(compute(quick=True))
