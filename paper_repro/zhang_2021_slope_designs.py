"""
Penalty sequences designed for a problem (Zhang and Bu 2021).
=============================================================

Projected gradient steps on p weights lower the noise level of SLOPE; the sequence found is compared with the
best of the limit, two levels and the Lasso.
"""  # noqa: D205

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import COLORS, styled
from convexlaw.figures.tradeoff import LINES
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_zhang_2021_slope_designs import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.simulations.linear_model import design_matrix
from convexlaw.simulations.monte_carlo import Setting, monte_carlo
from convexlaw.solvers.estimators import Slope
from convexlaw.theory.designs import (
    finite_tau,
    gradient_design,
    optimal_lasso,
    optimal_slope,
    optimal_two_level,
)
from convexlaw.theory.scalar_limit import Lasso, Prior

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_SIGNALS = Prior.two_point(0.5, 1.0)
_DELTA, _SIGMA, _P = 0.5, 0.2, 200
_SCRIPT = 50  # repetitions of the authors' script


def compute(quick: bool = False) -> Data:
    """Design a sequence, compare it on fresh draws, and repeat the fits of the authors' script."""
    import pandas as pd

    found = gradient_design(_SIGNALS, _DELTA, _SIGMA, Lasso(0.8), p=_P, draws=20 if quick else 100, rng=0)
    best = {
        "Lasso": optimal_lasso(_SIGNALS, _DELTA, _SIGMA),
        "two levels": optimal_two_level(_SIGNALS, _DELTA, _SIGMA),
        "best of the limit": optimal_slope(_SIGNALS, _DELTA, _SIGMA),
    }
    weights = {name: design.penalty.weights(_P) for name, design in best.items()}
    weights["gradient steps"] = found.weights
    draws = 200 if quick else 1000
    taus = {name: finite_tau(w, _SIGNALS, _DELTA, _SIGMA, draws=draws, rng=1) for name, w in weights.items()}
    setting = Setting(_SIGNALS, found.penalty, _DELTA, _SIGMA, 160 if quick else 400)
    fits = monte_carlo(setting, 10 if quick else 60, seed=3, progress=False)
    tables = {
        "weights": pd.DataFrame({"rank": np.arange(1, _P + 1), **weights}),
        "steps": pd.DataFrame({"step": np.arange(found.history.size), "tau": found.history}),
        "noise_levels": pd.DataFrame({"design": list(taus), "tau": list(taus.values())}),
        "fits": fits.to_frame(),
        "leave_one_out": _leave_one_out(3 if quick else 300),
    }
    values = {
        "errors": {name: design.state.mse for name, design in best.items()},
        "deviation": float(fits.deviation[0, 2]),
        "cosine": _gradient_cosine(),
        "quick": quick,
    }
    return Data(tables, values)


def _gradient_cosine() -> float:
    """Cosine between the first gradient step and finite differences of tau, same draws."""
    start = np.linspace(2.0, 0.3, 24)
    beta = _SIGNALS.sample(24, np.random.default_rng(0))
    options = {"draws": 200, "rng": 5}
    move = gradient_design(beta, _DELTA, _SIGMA, start, max_iter=1, draws=200, rng=5).weights - start
    step = 1e-3
    slopes = np.empty(24)
    for i in range(24):
        change = np.zeros(24)
        change[i] = step
        up, down = (finite_tau(start + s * change, beta, _DELTA, _SIGMA, **options) for s in (1, -1))
        slopes[i] = (up - down) / (2 * step)
    return float(-move @ slopes / (np.linalg.norm(move) * np.linalg.norm(slopes)))


def _leave_one_out(repetitions: int) -> pd.DataFrame:
    """Errors of the authors' experiment: standardised ARMA rows, 20 folds of one row."""
    import pandas as pd

    n, p = 20, 50
    penalties = {"Lasso": np.full(p, 1e-4), "two levels": np.where(np.arange(p) < 0.4 * p, 1e-3, 0.0)}
    rows = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([918, repetition])
        X = design_matrix("arma", n, p, rng, rho=0.8, ma=0.8) * np.sqrt(n)
        y = X @ (rng.binomial(5, 0.3, p) * rng.standard_normal(p)) + rng.standard_normal(n)
        X, y = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1), (y - y.mean()) / y.std(ddof=1)
        errors = {}
        for name, lam in penalties.items():
            left = []
            for i in range(n):
                keep = np.arange(n) != i
                fit = Slope(alpha=1.0, lam=lam).fit(X[keep], y[keep])
                left.append(float(fit.predict(X[i : i + 1])[0] - y[i]) ** 2)
            errors[name] = float(np.mean(left))
        rows.append({"repetition": repetition, **errors})
    return pd.DataFrame(rows)


@styled
def draw(data: Data) -> Figure:
    """Weights, noise level by step, and noise levels of the designs."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.8))
    table = data["weights"]
    looks: dict[str, dict[str, Any]] = {
        "Lasso": LINES["lasso"],
        "two levels": LINES["two_level"],
        "best of the limit": LINES["slope_lower"],
        "gradient steps": {"color": COLORS["data"], "ls": "-", "lw": 1.0},
    }
    for name, look in looks.items():
        left.step(table["rank"], table[name], where="mid", **look | {"label": name})
    left.set_ylim(bottom=0)
    left.set_xlabel("rank of the coefficient")
    left.set_ylabel("weight (units of τ)")
    left.set_title(f"p = {_P}, signals 1 (50 %)")
    left.legend()
    steps = data["steps"]
    middle.plot(steps.step, steps.tau, ".-", color=COLORS["data"])
    middle.set_xlabel("accepted step")
    middle.set_ylabel("noise level τ")
    middle.set_title("gradient steps")
    levels = data["noise_levels"]
    for i, row in enumerate(levels.itertuples()):
        right.plot(row.tau, i, "o", ms=9, color=looks[str(row.design)]["color"])
    right.set_yticks(np.arange(len(levels)), list(levels.design))
    right.margins(x=0.15, y=0.2)
    right.set_xlabel("noise level τ, fresh draws")
    right.set_title("designs compared")
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    sheet.judge("C070", data["cosine"])
    sheet.judge("C071", data["steps"].tau.diff().max(), note=f"{len(data['steps']) - 1} accepted steps")
    weights = data["weights"]["gradient steps"]
    sheet.judge("C072", max(float(weights.diff().max()), -float(weights.min())))
    tau = data["noise_levels"].set_index("design").tau
    for id, other in (("C073", "Lasso"), ("C074", "two levels"), ("C075", "best of the limit")):
        sheet.judge(id, tau["gradient steps"] / tau[other])
    fits = data["fits"].set_index("quantity").loc["mse"]
    text = f"error {fits['mean']:.4f}, limit {fits.theory:.4f}, p = {int(fits.p)}"
    sheet.judge("C076", abs(data["deviation"]), note=text)
    lasso, two, general = data["errors"].values()
    sheet.judge("C077", (lasso - two) / (lasso - general))
    sheet.judge("C078", max(two - lasso, general - two))
    _check_folds(sheet, data)
    return sheet.done()


def _check_folds(sheet: Sheet, data: Data) -> None:
    folds = data["leave_one_out"]
    means = {name: float(folds[name].mean()) for name in ("Lasso", "two levels")}
    text = f"{len(folds)} repetitions"
    if data["quick"]:
        for id in ("C079", "C080", "C081"):
            sheet.skip(id, "left out of a quick run: a minute of fits")
    else:
        for id, name in (("C079", "Lasso"), ("C080", "two levels")):
            # the script's own mean of 50 repetitions has an error too
            error = float(np.hypot(_error(folds[name]), folds[name].std(ddof=1) / np.sqrt(_SCRIPT)))
            own = f"{text}, their own standard error {_error(folds[name]):.4f}"
            sheet.judge(id, means[name], error=error, note=own)
        difference = folds["Lasso"] - folds["two levels"]
        first = difference[:_SCRIPT]
        early = first.mean() / _error(first)
        more = f"{text}, difference {difference.mean():.4f}; after {_SCRIPT}: {early:.2f}"
        sheet.judge("C081", difference.mean() / _error(difference), note=more)
    sheet.unobtainable(
        "C082",
        "the data is not public; computed instead: mean errors of the Lasso and of two levels on the ARMA "
        f"rows above, {text}",
        list(means.values()),
    )
    rows, before, after = 300, 0.62, 0.66
    error = np.sqrt((before * (1 - before) + after * (1 - after)) / rows)
    sheet.unobtainable(
        "C083",
        f"the data is not public; computed: the printed gain in standard errors of two shares of {rows} rows",
        (after - before) / error,
    )


def _error(values: pd.Series) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size))


if __name__ == "__main__":
    draw(compute(quick=True))
