"""
Compute-optimal models, refitted (Hoffmann et al. 2022, Besiroglu et al. 2024).
===============================================================================

The loss E + A/N^alpha + B/D^beta fitted to the digitised points by the sum of Huber losses, and the tokens
per parameter that it advises: the printed parameters advise four times as many.
"""  # noqa: D205

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.fits import plot_table_fit
from convexlaw.figures.style import COLORS, styled
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_hoffmann_2022_chinchilla import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data, public_data
from convexlaw.paper_repro._figure import absent
from convexlaw.solvers.fit_table import fit_table
from convexlaw.theory.laws import Chinchilla

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from convexlaw.solvers.fit_table import TableFit

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_PRINTED = Chinchilla(E=1.69, A=406.4, B=410.7, alpha=0.34, beta=0.28)
_BUDGET = 5.76e23
_DELTA = 1e-3
_STARTS = ((0.5, 5.0, 5.0, 0.5, 0.5), (0.0, 10.0, 10.0, 0.5, 0.5), (0.5, 15.0, 15.0, 1.0, 1.0))


def compute(quick: bool = False) -> Data:
    """Fit the points, with intervals, and give the tokens a parameter that the fit advises by budget."""
    import pandas as pd

    missing: dict[str, str] = {}
    folder = public_data("chinchilla", missing)
    if folder is None:
        return Data({}, missing=missing)
    points = pd.read_csv(folder / "points.csv")
    resamples = 400 if quick else 4000
    fit = fit_table(points, exclude_largest=5)
    limits = fit.interval(resamples=resamples)
    advice = [_advice(fit, float(c), resamples) for c in np.geomspace(1e19, 1e22, 7 if quick else 25)]
    values = {
        "fit": fit,
        "limits": limits,
        "whole": fit_table(points),
        "kaplan": fit_table(points, "kaplan"),
        "printed": fit_table(points, exclude_largest=5, fixed=_PRINTED.params),
        "optimal": fit.optimal(float(advice[-1]["flops"]), resamples=resamples),
        "early": {name: _descent(points, scale) for name, scale in (("mean", 1 / 240), ("sum", 1.0))},
    }
    return Data(
        {
            "residuals": fit.residuals(),
            "parameters": limits.reset_index(),
            "tokens_per_parameter": pd.DataFrame(advice),
        },
        values,
        missing,
    )


def _advice(fit: TableFit, flops: float, resamples: int) -> dict[str, float]:
    """Tokens a parameter at a budget; D/N = C/(6 N^2) falls with N: its limits are those of N, exchanged."""
    found = fit.optimal(flops, resamples=resamples)
    low, high = found.N_interval
    n, d = _PRINTED.optimal(flops)
    return {
        "flops": flops,
        "refit": found.D / found.N,
        "low": flops / (6 * high**2),
        "high": flops / (6 * low**2),
        "printed": float(d / n),
    }


def _descent(points: pd.DataFrame, scale: float) -> float:
    """Huber sum that L-BFGS reaches at its default tolerance when ``scale`` times the sum is minimised."""
    from scipy.optimize import minimize
    from scipy.special import huber

    used = points.sort_values("loss").iloc[:-5]
    n, d, target = used.N.to_numpy(), used.D.to_numpy(), np.log(used.loss.to_numpy())

    def objective(x: NDArray[np.float64]) -> float:
        e, a, b = np.exp(x[:3])
        law = Chinchilla(E=e, A=a, B=b, alpha=x[3], beta=x[4])
        return scale * float(np.sum(huber(_DELTA, np.log(law.loss(n, d)) - target)))

    search: Any = minimize
    ends = [search(objective, np.array(start), method="L-BFGS-B").fun for start in _STARTS]
    return float(min(ends)) / scale


@styled
def draw(data: Data) -> Figure:
    """Points with the fitted law, and tokens a parameter against the budget."""
    if data.missing:
        return absent(data.missing)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0))
    plot_table_fit(data["fit"], ax=left)
    left.set_title("refit of 240 points")
    table = data["tokens_per_parameter"]
    right.fill_between(table.flops, table.low, table.high, color=COLORS["fit"], alpha=0.15, lw=0)
    right.semilogx(table.flops, table.refit, color=COLORS["fit"], label="refit, 95 %")
    right.semilogx(table.flops, table.printed, "--", color=COLORS["prediction"], label="printed parameters")
    right.axhline(20, color=COLORS["data"], lw=0.8, ls=":", label="20 tokens a parameter")
    right.set_ylim(bottom=0)
    right.set_xlabel("compute (FLOPs)")
    right.set_ylabel("tokens a parameter at the optimum")
    right.set_title("advice")
    right.legend()
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    n, d = _PRINTED.optimal(_BUDGET)
    sheet.judge("C346", d / n, note="tokens a parameter that the printed parameters advise at 5.76e23 FLOPs")
    sheet.judge("C348", _closed_optimum())
    if not data.missing:
        _check_fits(sheet, data)
        _check_advice(sheet, data)
    return sheet.done()


def _closed_optimum() -> float:
    """Relative difference of the closed optimum from the best size on a grid of 20 001."""
    n = np.geomspace(1e9, 1e12, 20_001)
    loss = _PRINTED.loss(n, _BUDGET / (6 * n))
    return abs(float(_PRINTED.optimal(_BUDGET)[0]) / float(n[np.argmin(loss)]) - 1)


# 95 % limits of A, B, E, alpha, beta in the reference bootstrap
_RESAMPLED = ((282.0, 724.0), (1111.0, 5896.0), (1.77, 1.876), (0.316, 0.372), (0.335, 0.416))


def _check_fits(sheet: Sheet, data: Data) -> None:
    names = ("E", "alpha", "beta", "A", "B")
    fit, whole, limits = data["fit"], data["whole"], data["limits"]
    sheet.judge("C333", [fit.params[k] for k in names])
    sheet.judge("C334", fit.objective)
    sheet.judge("C335", [fit.params[k] for k in names])
    low, high = limits["low"], limits["high"]
    # a normal interval is 2 * 1.96 standard errors wide
    sheet.judge(
        "C336", [(high[k] - low[k]) / 3.92 for k in names[:3]], note="width of the 95 % interval / 3.92"
    )
    sheet.judge("C337", [edge[k] for k in names[:3] for edge in (low, high)])
    sheet.judge("C338", [np.log(edge[k]) for k in names[3:] for edge in (low, high)])
    order = ("A", "B", "E", "alpha", "beta")
    edges = zip(_RESAMPLED, ((low[k], high[k]) for k in order), strict=True)
    off = [
        abs(ours - theirs) / (pair[1] - pair[0])
        for pair, found in edges
        for ours, theirs in zip(found, pair, strict=True)
    ]
    sheet.judge("C459", off)
    sheet.judge("C339", [whole.params[k] for k in order])
    sheet.judge("C340", data["printed"].objective / fit.objective)
    early = data["early"]
    sheet.judge("C349", early["mean"] / fit.objective)
    sheet.judge("C350", early["sum"] / fit.objective)
    sheet.judge("C351", data["kaplan"].objective / whole.objective)


def _check_advice(sheet: Sheet, data: Data) -> None:
    optimal = data["optimal"]
    low, high = optimal.exponent_interval
    inside = f"{optimal.exponent:.4f}, 95 % [{low:.3f}, {high:.3f}]"
    sheet.judge("C341", optimal.exponent, note=f"refit: {inside}")
    sheet.judge("C342", inside, holds=low <= 0.49 and high >= 0.50)
    sheet.judge("C343", [optimal.exponent, low, high])
    # an interval shrinks with the square root of the number of points
    sheet.judge("C344", 240 * ((high - low) / 0.001) ** 2, note="240 (width of our interval / 0.001)^2")
    fit = data["fit"]
    size, tokens = fit.model.optimal(_BUDGET)
    ratio = float(tokens / size)
    sheet.judge("C345", f"{ratio:.1f} tokens a parameter", holds=10 <= ratio <= 30)
    known = 6 * data["residuals"].N * data["residuals"].D
    sheet.judge(
        "C347",
        f"{size:.3g} parameters, {tokens:.3g} tokens",
        holds=bool(abs(np.log(size / 70e9)) < 0.15 and abs(np.log(tokens / 1.4e12)) < 0.15),
        note=f"refit, at {_BUDGET / float(known.max()):.0f} times the largest budget fitted",
    )


if __name__ == "__main__":
    draw(compute(quick=True))
