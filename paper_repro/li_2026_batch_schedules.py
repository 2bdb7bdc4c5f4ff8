"""
The batch size that fits a learning-rate schedule (J. Li, Bu and Xu 2026).
==========================================================================

Optimal batch sizes over a run for four schedules, the noise that they save, and how much less loss they leave
on power-law quadratics, each run at its best learning rate.
"""  # noqa: D205

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import COLORS, SCHEDULES, styled
from convexlaw.paper_repro import _batch_optima_checks as optima
from convexlaw.paper_repro import _batch_printed_checks as printed
from convexlaw.paper_repro import _batch_simulations as sims
from convexlaw.paper_repro import _batch_theory_checks as theory
from convexlaw.paper_repro._batch_theory_checks import STEPS, schedule
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_li_2026_batch_schedules import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.theory import batch
from convexlaw.theory.schedules import cosine, linear, wsd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]


def compute(quick: bool = False) -> Data:
    """Compute optimal batch schedules, and simulate what they gain."""
    import pandas as pd

    at = np.linspace(0, STEPS - 1, 401).astype(int)
    table = {"fraction": (at + 0.5) / STEPS}
    for name, shape in sims.SHAPES.items():
        table[name] = schedule(shape(STEPS, 1.0))[at]
    short = (300, 3000) if quick else (1000, 20_000)
    values = {
        "same": sims.same_optimum(1000 if quick else 2000),
        "gradients": sims.sampled_gradients(12_000 if quick else 40_000),
        "decayed": {
            "root": sims.decayed_exponents(lambda steps: 0.3 * steps**-0.5, short),
            "none": sims.decayed_exponents(lambda steps: 0.0, short),
            "constant": sims.decayed_exponents(lambda steps: 0.1, short),
        },
        "decay_bias": sims.decay_bias(),
        "normalised": sims.normalised_paths(200 if quick else 1000),
        "collapse": sims.collapse(),
        "sequences": sims.sequence_fits(),
        "eta_over_batch": _eta_over_batch(10_000),
        "noise_dominated": _noise_dominated(1000),
        "protocol": _protocol(),
        "matched": sims.matched_paths(),
    }
    return Data({"batch_schedules": pd.DataFrame(table), "quadratic_gains": sims.gains(1000)}, values)


def _eta_over_batch(steps: int) -> dict[str, tuple[float, ...]]:
    """Ratio of the sums of rates, half noise sums of the rate and of the batch schedule (G, then X)."""
    out = {}
    for name, shape in (("WSD", lambda t, p: wsd(t, p, decay=0.1)), ("cosine", cosine), ("linear", linear)):
        lr1, b1, lr2, b2 = sims.eta_over_batch(shape, steps)
        noise = [0.5 * batch.noise_sum(lr, b) for lr, b in ((lr1, 1.0), (lr2, 1.0), (lr1, b1), (lr2, b2))]
        out[name] = (float(lr1.sum() / lr2.sum()), *noise)
    return out


def _noise_dominated(steps: int) -> float:
    """Loss of the batch schedule over that of the rate schedule, eta/B test, largest of three shapes."""
    from convexlaw.simulations.descent import expected_descent
    from convexlaw.simulations.problems import noise_dominated_quadratic

    problem = noise_dominated_quadratic(200, condition=1e3, sigma=10.0)
    ratios = []
    for shape in (lambda t, p: wsd(t, p, decay=0.1), cosine, linear):
        lr1, b1, lr2, b2 = sims.eta_over_batch(shape, steps)
        one, two = (expected_descent(problem, 0.3 * lr, b).gap[-1] for lr, b in ((lr1, b1), (lr2, b2)))
        ratios.append(float(two / one))
    return max(ratios)


def _protocol() -> dict[str, Any]:
    """Fit the columns of (2.5) to losses made from them, with two batch sizes and with one."""
    import pandas as pd

    from convexlaw.solvers.fit_curves import fit_curves
    from convexlaw.theory.laws import CD3

    truth = {"Linf": 2.0, "a": 0.5, "b": 20.0, "b_batch": 600.0}
    law, steps = CD3(**truth), np.arange(50, 2000, 10)
    logs = []
    for name, size in (("small", 16.0), ("large", 128.0)):
        lr = wsd(2000, 1e-3)
        loss = law.predict(lr, at=steps, batch_size=np.full(lr.size, size))
        logs.append(
            pd.DataFrame({"run": name, "step": steps, "lr": lr[steps], "batch_size": size, "loss": loss})
        )
    rates = dict.fromkeys(("small", "large"), wsd(2000, 1e-3))
    from convexlaw.runs.table import read_runs

    both = fit_curves(read_runs(pd.concat(logs), schedule=rates), protocol="paper")
    one = fit_curves(read_runs(logs[0], schedule={"small": rates["small"]}), protocol="paper")
    return {"truth": truth, "both": dict(both.params), "one": dict(one.params)}


@styled
def draw(data: Data) -> Figure:
    """Batch schedules, noise saved, and loss saved on quadratics."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.8))
    table = data["batch_schedules"]
    looks = {name: SCHEDULES[name.removesuffix(" 20 %")] | {"marker": ""} for name in sims.SHAPES}
    for name in sims.SHAPES:
        left.plot(table.fraction, table[name], label=name, **looks[name])
    left.set_ylim(0, 4)
    left.set_xlabel("step / steps (the last step has no tail)")
    left.set_ylabel("optimal batch / static batch")
    left.set_title("same samples, least noise")
    left.legend()
    names = list(sims.SHAPES)
    at = np.arange(len(names))
    saved = [100 * (1 - 1 / batch.plan(s(STEPS, 1.0), STEPS, min_batch=0, integer=False).gain)
             for s in sims.SHAPES.values()]  # fmt: skip
    middle.bar(at, saved, 0.6, color=[looks[name]["color"] for name in names])
    middle.set_xticks(at, names)
    middle.set_ylabel("less gradient noise (%)")
    middle.set_title(f"theory, {STEPS} steps")
    seen = data["quadratic_gains"].pivot(index="shape", columns="sigma", values="gain_percent").loc[names]
    # greys: the colours mean schedules beside
    styles = ({"color": COLORS["muted"]}, {"color": "#e3e3e3", "edgecolor": COLORS["muted"], "hatch": "///"})
    for side, sigma, style in zip((-0.18, 0.18), seen.columns, styles, strict=True):
        right.bar(at + side, seen[sigma], 0.34, label=f"noise {sigma:g}", **style)
    right.axhline(0, color=COLORS["data"], lw=0.8)
    right.set_xticks(at, names)
    right.set_ylabel("less loss at the best peak (%)")
    right.set_title("power-law quadratics, 1000 steps")
    right.legend()
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    theory.check_theorems(sheet)
    theory.check_table_two(sheet)
    theory.check_costs(sheet)
    optima.check_table_three(sheet)
    optima.check_optima(sheet)
    optima.check_peaks(sheet)
    optima.check_rules(sheet)
    optima.check_kernel(sheet)
    printed.check_scores(sheet)
    printed.check_figures(sheet)
    printed.check_presets(sheet)
    printed.check_eta_over_batch(sheet, data["eta_over_batch"], data["noise_dominated"])
    printed.check_small_runs(sheet)
    _check_simulated(sheet, data)
    return sheet.done()


def _check_simulated(sheet: Sheet, data: Data) -> None:
    value, error = data["gradients"]["moment"]
    sheet.judge("C212", value, error=error)
    means, errors, truth = data["gradients"]["noise"]
    text = ", ".join(
        f"{m:.5f} +- {e:.2g} (truth {t:.5f})" for m, e, t in zip(means, errors, truth, strict=True)
    )
    sheet.judge("C272", (means - truth) / errors, error=1.0, note=f"G² and S: {text}")
    for id, name in (("C237", "root"), ("C238", "none"), ("C239", "constant")):
        sheet.judge(id, data["decayed"][name])
    sheet.judge("C394", data["decay_bias"])
    fitted = data["protocol"]
    truth, both = fitted["truth"], fitted["both"]
    text = f"fitted with one size: {', '.join(fitted['one'])}; with two: {', '.join(both)}"
    sheet.judge("C240", text, holds="b_batch" not in fitted["one"] and "b_batch" in both)
    sheet.judge("C241", [both[name] / truth[name] for name in truth])
    same = list(data["same"].values())
    sheet.judge("C266", max(same) / min(same) - 1)
    seen = data["quadratic_gains"].pivot(index="shape", columns="sigma", values="gain_percent")
    for id, parts in (
        ("C269", [("constant", 37, 49)]),
        ("C270", [("WSD 20 %", 12, 16)]),
        ("C271", [("cosine", -1.4, 1.6), ("linear", 0, 0)]),
    ):
        outside = [max(low - v, v - high, 0) for name, low, high in parts for v in seen.loc[name]]
        text = "; ".join(f"{name} " + ", ".join(f"{v:.1f}" for v in seen.loc[name]) for name, _, _ in parts)
        sheet.judge(id, max(outside), note=f"{text} % at noise .15 and .3")
    sheet.judge("C274", data["matched"])
    paths = data["normalised"]
    sheet.judge("C390", paths["B/eta^2"], note=f"with B/eta matched instead: {paths['B/eta']:.3f}")
    sheet.unobtainable("C250", computed=data["collapse"])
    fits = data["sequences"]
    worst = min(fits["one"], key=fits["one"].get)
    sheet.judge(
        "C246",
        [min(fits["one"].values()), np.median(list(fits["one"].values()))],
        note=f"R², smallest ({worst}) and median of {len(fits['one'])} runs of a small transformer, each "
        f"with its own constants; one set of constants for all runs of a seed: {fits['all']:.2f}",
    )


if __name__ == "__main__":
    draw(compute(quick=True))
