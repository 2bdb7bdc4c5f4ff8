"""
SLOPE by approximate message passing (Bu, Klusowski, Rush and Su 2019).
=======================================================================

Distance to the minimiser by iteration for AMP, FISTA and ISTA; the noise level of the iterates beside the
state evolution; true positives and false discoveries of solutions beside their limits.
"""  # noqa: D205

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.errors import ConvergenceWarning
from convexlaw.figures.monte_carlo import plot_monte_carlo
from convexlaw.figures.style import COLORS, styled
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_bu_2019_slope_amp import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.simulations.linear_model import LinearModel, simulate
from convexlaw.simulations.monte_carlo import Setting, along_scale, monte_carlo
from convexlaw.solvers._first_order import proximal_descent
from convexlaw.solvers.amp import amp_slope
from convexlaw.solvers.prox import prox_sorted_l1
from convexlaw.solvers.slope import sorted_l1_dual_gap
from convexlaw.theory.scalar_limit import BH, Lasso, Prior, TwoLevel, limiting_function, null_risk
from convexlaw.theory.state_evolution import (
    NoFixedPointError,
    alpha_min,
    calibrate,
    estimate_from_fit,
    solve,
    trajectory,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_DELTA, _SIGMA = 0.5, 0.2
_SIGNALS = Prior.bernoulli_gaussian(0.1)
_LEVELS = TwoLevel(2.0, 0.0, 0.5)
_MILD = TwoLevel(1.8, 1.0, 0.25)
_GOALS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_STEPS = 120
# algorithms in greys: the colours belong to the penalties
_LOOKS: dict[str, dict[str, Any]] = {
    "AMP": {"color": COLORS["data"], "ls": "-"},
    "FISTA": {"color": "#444444", "ls": (0, (5, 1.5))},
    "ISTA": {"color": COLORS["muted"], "ls": (0, (6, 1.5, 1.2, 1.5))},
}


def compute(quick: bool = False) -> Data:
    """Run the three algorithms, the state evolution beside AMP, and repeated fits."""
    p, repetitions = (500, 8) if quick else (1000, 30)
    settings = [
        Setting(_SIGNALS, penalty, _DELTA, _SIGMA, p) for penalty in (Lasso(1.5), _MILD, BH(1.0, 0.2))
    ]
    scaled = along_scale(settings[1], (0.7, 0.85, 1.0, 1.2, 1.5, 2.0))
    found = monte_carlo(settings, repetitions, seed=1, progress=False)
    line = monte_carlo(scaled, repetitions, seed=2, progress=False)
    tables = {
        "distances": _distances(),
        "noise_levels": _noise_levels(8 if quick else 24),
        "limits": found.to_frame(),
        "along_scale": line.to_frame(),
    }
    values = {
        "deviation": float(np.abs(found.deviation).max()),
        "line": line,
        "alpha": _alpha_mode(),
        "estimates": _estimates(12 if quick else 60, p),
    }
    return Data(tables, values)


def _distances() -> pd.DataFrame:
    """Distance to the minimiser and size of the support difference by iteration, three seeds."""
    import pandas as pd

    lam = solve(_SIGNALS, _LEVELS, _DELTA, _SIGMA).lam.weights(1000)
    rows = []
    for seed in range(3):
        model = simulate(_SIGNALS, _DELTA, _SIGMA, 1000, rng=seed)
        target = amp_slope(model.X, model.y, lam=lam, tol=1e-13).coef
        paths = {"AMP": _amp_path(model, lam)}
        for name, accelerated in (("FISTA", True), ("ISTA", False)):
            seen = [np.zeros(1000)]

            def note(_: int, coef: Any, seen: list[Any] = seen) -> None:
                seen.append(coef.copy())

            options: dict[str, Any] = {"accelerated": accelerated, "callback": note}
            proximal_descent(model.X, model.y, lam, tol=0.0, max_iter=_STEPS, **options)
            paths[name] = seen
        for name, path in paths.items():
            apart = [(float(np.mean((b - target) ** 2)), np.sum((b != 0) != (target != 0))) for b in path]
            rows += [(seed, name, k, *values) for k, values in enumerate(apart)]
    return pd.DataFrame(rows, columns=["seed", "method", "iteration", "distance", "support"])


def _amp_path(model: LinearModel, lam: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [
            amp_slope(model.X, model.y, lam=lam, max_iter=k, polish=False, fallback=False, tol=0.0).coef
            for k in range(20)
        ]


def _noise_levels(runs: int) -> pd.DataFrame:
    """|z|/sqrt(n) of AMP by iteration, mean of runs, beside tau of the state evolution."""
    import pandas as pd

    theory = trajectory(_SIGNALS, _MILD, _DELTA, _SIGMA, 8)
    seen = np.empty((runs, 9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for run in range(runs):
            model = simulate(_SIGNALS, _DELTA, _SIGMA, 1000, rng=100 + run)
            options: dict[str, Any] = {"prior": _SIGNALS, "sigma": _SIGMA, "polish": False, "fallback": False}
            seen[run] = [
                amp_slope(model.X, model.y, _MILD, max_iter=k, tol=0.0, **options).tau for k in range(9)
            ]
    error = seen.std(axis=0, ddof=1) / np.sqrt(runs)
    return pd.DataFrame({"iteration": range(9), "tau": theory, "mean": seen.mean(axis=0), "error": error})


def _alpha_mode() -> dict[str, float]:
    """Gap after 50 iterations with data-driven thresholds, and the independent gap of its fixed point."""
    model = simulate(_SIGNALS, _DELTA, _SIGMA, 1000, rng=7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = amp_slope(model.X, model.y, _MILD, max_iter=50, tol=1e-15, polish=False, fallback=False)
    n = model.y.size
    # the package's objective has 1/n in front: alpha lam = lam_amp/n
    gap = sorted_l1_dual_gap(model.X, model.y, found.coef, 0.0, 1.0 / n, found.lam)
    return {"gap": found.relative_gap, "independent": gap / (0.5 * float(model.y @ model.y) / n)}


def _estimates(runs: int, p: int) -> pd.DataFrame:
    """Residual, estimated tau and estimated error of exact solutions, minus their targets."""
    import pandas as pd

    state = solve(_SIGNALS, _MILD, _DELTA, _SIGMA)
    lam = state.lam.weights(p)
    rows = []
    for run in range(runs):
        model = simulate(_SIGNALS, _DELTA, _SIGMA, p, rng=200 + run)
        coef = amp_slope(model.X, model.y, lam=lam, tol=1e-10).coef
        guess = estimate_from_fit(model.X, model.y, coef, sigma=_SIGMA, lam=lam)
        residual = float(np.mean((model.y - model.X @ coef) ** 2))
        seen = float(np.mean((coef - model.beta) ** 2))
        rows.append((residual - state.residual, guess.tau - state.tau, guess.mse - seen))
    return pd.DataFrame(rows, columns=["residual", "tau", "mse"])


@styled
def draw(data: Data) -> Figure:
    """Three algorithms by distance and support, state evolution beside AMP, limits beside repeated fits."""
    figure, ((left, support), (middle, right)) = plt.subplots(2, 2, figsize=(9.0, 7.2))
    paths = data["distances"]
    for (name, seed), part in paths.groupby(["method", "seed"]):
        look = _LOOKS[name] | {"label": None if seed else name}
        left.semilogy(part.iteration, part.distance, **look)
        support.plot(part.iteration, part.support, **look)
    left.set_ylim(1e-8, 1)
    left.set_ylabel("mean squared distance to the minimiser")
    support.set_yscale("symlog", linthresh=1)
    support.set_ylim(0, 1000)
    support.set_ylabel("features selected wrongly")
    for ax, title in ((left, "distance"), (support, "support")):
        ax.set_xlim(0, _STEPS)
        ax.set_xlabel("iteration")
        ax.set_title(f"{title}: n = 500, p = 1000, three draws")
        ax.legend()
    levels = data["noise_levels"]
    middle.plot(levels.iteration, levels.tau, color=COLORS["slope"], label="state evolution")
    middle.errorbar(levels.iteration, levels["mean"], 2 * levels.error, fmt="o", color=COLORS["data"],
                    label="AMP, 2 standard errors")  # fmt: skip
    middle.set_ylim(bottom=0)
    middle.set_xlabel("iteration")
    middle.set_ylabel("noise level τ")
    middle.set_title("state evolution")
    middle.legend()
    plot_monte_carlo(data["line"], right, xlabel="scale of the penalty")
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    counts = {name: _counts(data, name) for name in ("AMP", "FISTA", "ISTA")}
    sheet.judge("C026", counts["AMP"])
    sheet.judge("C027", counts["ISTA"])
    fista = ", ".join(f"{v:.0f}" for v in counts["FISTA"])
    sheet.judge(
        "C028", counts["FISTA"][-1] / counts["AMP"][-1], note=f"FISTA with restarts: {fista} iterations"
    )
    exact = {name: _exact_from(data, name) for name in counts}
    sheet.judge("C356", exact["AMP"], note="by draw; features selected wrongly are counted")
    ratios = [float(np.mean(exact[name]) / np.mean(exact["AMP"])) for name in ("FISTA", "ISTA")]
    text = "; ".join(f"{k} {', '.join(f'{v:.0f}' for v in exact[k])}" for k in ("FISTA", "ISTA"))
    sheet.judge("C357", ratios, note=f"from iteration: {text}")
    sheet.judge("C029", data["alpha"]["gap"])
    sheet.judge("C030", data["alpha"]["independent"])
    levels = data["noise_levels"]
    deviation = ((levels["mean"] - levels.tau) / levels.error).abs().max()
    worst = (levels["mean"] / levels.tau - 1).abs().max()
    sheet.judge("C031", deviation, note=f"relative distance at most {100 * worst:.1f} %, p = 1000")
    _check_state_evolution(sheet)
    sheet.judge("C037", data["deviation"], note="15 quantities of repeated fits")
    for id, name in (("C039", "residual"), ("C040", "tau"), ("C041", "mse")):
        values = data["estimates"][name]
        error = float(values.std(ddof=1) / np.sqrt(values.size))
        sheet.judge(id, values.mean(), error=error, note=f"estimate minus target, {values.size} fits")
    _check_scalar_limit(sheet)
    divergence, count = _divergence()
    sheet.judge("C045", divergence - count, note=f"{count} distinct nonzero magnitudes of 80 values")
    sheet.judge("C046", divergence - (count + 1))
    quiet = solve(_SIGNALS, TwoLevel(1.0, 0.0, 0.5), _DELTA, 0.0, require_lambda=False)
    sheet.judge(
        "C047", quiet.lambda_factor, note=f"tau = {quiet.tau:g}: exact recovery, lambda is not defined"
    )
    noisy = solve(_SIGNALS, TwoLevel(1.0, 0.0, 0.5), _DELTA, _SIGMA)
    sheet.judge("C048", 1 - noisy.df / _DELTA)
    return sheet.done()


def _counts(data: Data, name: str) -> list[float]:
    """Mean over seeds of the first iteration below each goal."""
    paths = data["distances"]
    part = paths[paths.method == name]
    firsts = [
        [int(own.iteration[own.distance < goal].min()) for goal in _GOALS] for _, own in part.groupby("seed")
    ]
    return [float(v) for v in np.mean(firsts, axis=0)]


def _exact_from(data: Data, name: str) -> list[float]:
    """Find from which iteration on the support is exactly the minimiser's, by seed; infinite for never."""
    paths = data["distances"]
    firsts = []
    for _, own in paths[paths.method == name].groupby("seed"):
        wrong = own.iteration[own.support > 0].max()
        firsts.append(float(wrong + 1) if wrong < own.iteration.max() else np.inf)
    return firsts


def _check_state_evolution(sheet: Sheet) -> None:
    squares = np.linspace(0.02, 2.0, 80)
    values = [_SIGMA**2 + limiting_function(_SIGNALS, _MILD, float(s**0.5)).mse / _DELTA for s in squares]
    rises, bends = np.diff(values).min(), np.diff(values, 2).max()
    text = f"smallest step {rises:.2g}, largest bend {bends:.2g} on 80 points"
    sheet.judge("C032", text, holds=bool(rises > 0 and bends < 1e-9))
    state = solve(_SIGNALS, _MILD, _DELTA, _SIGMA)
    sheet.judge("C033", trajectory(_SIGNALS, _MILD, _DELTA, _SIGMA, 80)[-1] / state.tau - 1)
    edge = alpha_min(_DELTA)
    try:
        solve(_SIGNALS, Lasso(edge * (1 - 1e-9)), _DELTA, _SIGMA, require_lambda=False)
        below = True
    except NoFixedPointError:
        below = False
    above = solve(_SIGNALS, Lasso(edge * 1.001), _DELTA, _SIGMA, require_lambda=False).tau
    text = f"f(alpha_min) = {null_risk(Lasso(edge)):.6f}, none below, tau = {above:.3g} just above"
    sheet.judge("C034", text, holds=bool(not below and np.isfinite(above)))
    scales = np.linspace(0.65, 3.0, 25)
    factors = [
        k * solve(_SIGNALS, _MILD.scaled(float(k)), _DELTA, _SIGMA, require_lambda=False).lambda_factor
        for k in scales
    ]
    sheet.judge("C035", np.diff(factors).min(), note="smallest step of the scale of lambda along 25 scales")
    back = calibrate(_SIGNALS, state.lam, _DELTA, _SIGMA)
    sheet.judge("C036", back.tau / state.tau - 1)
    sheet.judge("C038", limiting_function(_SIGNALS, _MILD, state.tau).mse - state.mse)


def _check_scalar_limit(sheet: Sheet) -> None:
    prior, penalty, tau = Prior.parse("4:0.2"), TwoLevel(2.0, 1.0, 0.2), 1.0
    h = limiting_function(prior, penalty, tau)
    y = np.linspace(-10.0, 14.0, 240_001)
    density = (0.8 * np.exp(-0.5 * y**2) + 0.2 * np.exp(-0.5 * (y - 4) ** 2)) / np.sqrt(2 * np.pi)
    square = float(np.trapezoid(density * (h(y) - y) ** 2, y))
    sheet.judge("C042", square + 2 * tau**2 * h.df - tau**2 - h.mse)
    apart = []
    for text, epsilon in (("N(0,1):0.1", 0.1), ("4:0.2", 0.2), ("1:0.1, 6:0.1", 0.2)):
        for delta, sigma, q in ((0.5, 0.2, 0.2), (1.0, 1.0, 0.1), (0.8, 0.5, 0.05)):
            state = solve(Prior.parse(text), BH(1.0, q), delta, sigma, require_lambda=False)
            apart.append(abs(state.fdp - q * (1 - epsilon)))
    sheet.judge("C043", max(apart))
    state = solve(prior, BH(0.6, 0.5), 0.64, 0.5, require_lambda=False)
    sheet.judge("C044", [state.df, state.selected])


def _divergence() -> tuple[float, int]:
    """Divergence of the prox by central differences, and the number of distinct nonzero magnitudes."""
    rng = np.random.default_rng(3)
    v, lam = 2.0 * rng.standard_normal(80), BH(0.8, 0.5).weights(80)
    step = 1e-7
    total = 0.0
    for i in range(v.size):
        move = np.zeros(v.size)
        move[i] = step
        total += float(prox_sorted_l1(v + move, lam)[i] - prox_sorted_l1(v - move, lam)[i]) / (2 * step)
    sizes = np.abs(prox_sorted_l1(v, lam))
    return total, int(np.unique(sizes[sizes > 0]).size)


if __name__ == "__main__":
    draw(compute(quick=True))
