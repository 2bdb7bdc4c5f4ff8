"""
The batch size that fits a learning-rate schedule (J. Li, Bu and Xu 2026).
==========================================================================

Optimal batch sizes over a run for four schedules, the noise that they save, and how much less loss they leave
on power-law quadratics, each run at its best learning rate.
"""  # noqa: D205

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import COLORS, CYCLE, SCHEDULES, styled
from convexlaw.paper_repro import _batch_simulations as sims
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_li_2026_batch_schedules import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data
from convexlaw.theory import batch
from convexlaw.theory import last_iterate as li
from convexlaw.theory.schedules import constant, cosine, linear, poly, with_warmup, wsd

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_STEPS = 20_000


def compute(quick: bool = False) -> Data:
    """Compute optimal batch schedules, and simulate what they gain."""
    import pandas as pd

    at = np.linspace(0, _STEPS - 1, 401).astype(int)
    table = {"fraction": (at + 0.5) / _STEPS}
    for name, shape in sims.SHAPES.items():
        table[name] = _schedule(shape(_STEPS, 1.0))[at]
    short = (300, 3000) if quick else (1000, 20_000)
    values = {
        "same": sims.same_optimum(500 if quick else 2000),
        "gradients": sims.sampled_gradients(4000 if quick else 40_000),
        "decayed": {
            "root": sims.decayed_exponent(lambda steps: 0.3 * steps**-0.5, short),
            "none": sims.decayed_exponent(lambda steps: 0.0, short),
            "constant": sims.decayed_exponent(lambda steps: 0.1, short),
        },
        "eta_over_batch": _eta_over_batch(10_000),
        "noise_dominated": _noise_dominated(1000),
        "protocol": _protocol(),
        "matched": sims.matched_paths(),
    }
    return Data({"batch_schedules": pd.DataFrame(table), "quadratic_gains": sims.gains(1000)}, values)


def _schedule(lr: NDArray[np.float64], samples: float | None = None) -> NDArray[np.float64]:
    """Optimal batch sizes, on average 1 or with a given total."""
    total = float(lr.size) if samples is None else samples
    found = batch.optimal_batch_sizes(lr, total, min_batch=0, integer=False)
    return np.asarray(found, dtype=float)


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
    for name in sims.SHAPES:
        looks = SCHEDULES[name.removesuffix(" 20 %")] | {"marker": ""}
        left.plot(table.fraction, table[name], label=name, **looks)
    left.set_ylim(0, 4)
    left.set_xlabel("step / steps (the last step has no tail)")
    left.set_ylabel("optimal batch / static batch")
    left.set_title("same samples, least noise")
    left.legend()
    names = list(sims.SHAPES)
    at = np.arange(len(names))
    saved = [100 * (1 - 1 / batch.plan(s(_STEPS, 1.0), _STEPS, min_batch=0, integer=False).gain)
             for s in sims.SHAPES.values()]  # fmt: skip
    middle.bar(at, saved, 0.6, color=COLORS["bound"])
    middle.set_xticks(at, names)
    middle.set_ylabel("less gradient noise (%)")
    middle.set_title(f"theory, {_STEPS} steps")
    seen = data["quadratic_gains"].pivot(index="shape", columns="sigma", values="gain_percent").loc[names]
    for i, sigma in enumerate(seen.columns):
        right.bar(at + 0.36 * (i - 0.5), seen[sigma], 0.34, color=CYCLE[i], label=f"noise {sigma:g}",
                  hatch=("", "///")[i], edgecolor="white")  # fmt: skip
    right.axhline(0, color=COLORS["data"], lw=0.8)
    right.set_xticks(at, names)
    right.set_ylabel("less loss at the best peak (%)")
    right.set_title("power-law quadratics, 1000 steps")
    right.legend()
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    _check_theorems(sheet)
    _check_table_two(sheet)
    _check_table_three(sheet)
    _check_costs(sheet)
    _check_printed(sheet)
    _check_eta_over_batch(sheet, data)
    _check_rules(sheet)
    _check_simulated(sheet, data)
    return sheet.done()


def _check_theorems(sheet: Sheet) -> None:
    rng = np.random.default_rng(4)
    apart = []
    for _ in range(20):
        lr, b = rng.uniform(0.1, 1, 50), rng.uniform(1, 20, 50)
        whole = li.bound(lr, np.sqrt(0.7 + 3 / b), form="tail")
        parts = 1 / (2 * lr.sum()) + 0.35 * batch.noise_sum(lr, 1.0) + 1.5 * batch.noise_sum(lr, b)
        apart.append(abs(whole / parts - 1))
    sheet.judge("C211", max(apart))
    worst, early = 0.0, int(0.99 * _STEPS)
    for shape in sims.SHAPES.values():
        lr = shape(_STEPS, 1.0)
        # the tail seen from the middle of a step
        tail = np.cumsum(lr[::-1])[::-1] - 0.5 * lr
        formula = 0.5 * _STEPS * lr / np.sqrt(lr.sum() * tail)
        worst = max(worst, float(np.abs(_schedule(lr) / formula - 1)[:early].max()))
    sheet.judge("C213", worst)
    lr = wsd(200, 1.0)
    best = _schedule(lr)
    least = batch.noise_sum(lr, best)
    other = [best * np.exp(rng.normal(0, s, 200)) for s in (0.001, 0.01, 0.1, 1.0) for _ in range(25)]
    sheet.judge("C214", min(batch.noise_sum(lr, b * 200 / b.sum()) / least for b in other))
    sheet.judge("C215", np.abs(_schedule(wsd(200, 1e-3)) / best - 1).max())
    noise = []
    for shape in sims.SHAPES.values():
        plan = batch.plan(shape(_STEPS, 1.0), _STEPS, min_batch=0, integer=False)
        noise.append(0.5 * plan.noise / (2 * plan.lr.sum() / _STEPS))
    sheet.judge("C221", noise)
    differences = []
    for samples in (200.0, 400.0):
        plan = batch.plan(lr, samples, min_batch=0, integer=False)
        c = _noise_terms(lr)
        printed = 200**2 / (2 * samples) * (np.mean(np.sqrt(c)) ** 2 - np.mean(c))
        differences.append((0.5 * (plan.noise - plan.static_noise), printed))
    (one, printed), (two, _) = differences
    sheet.judge("C222", one / printed - 1, note=f"{one:.4g} X at K = 200, WSD, 200 steps")
    sheet.judge("C223", one / two)


def _noise_terms(lr: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give Z² of every step: the noise sum with a huge batch everywhere else."""
    terms = [batch.noise_sum(lr, np.where(np.arange(lr.size) == t, 1.0, 1e300)) for t in range(lr.size)]
    return np.array(terms)


def _check_table_two(sheet: Sheet) -> None:
    at = np.linspace(0, 0.95, 96)
    steps = (at * _STEPS).astype(int)
    u, c = (steps + 0.5) / _STEPS, 0.8
    wsd_shape = np.where(
        u <= c, 1 / np.sqrt((1 + c - 2 * np.minimum(u, c)) * (1 + c)), 1 / np.sqrt(1 - c * c)
    )
    printed = {
        "C216": (constant, 0.5 / np.sqrt(1 - u)),
        "C217": (linear, np.ones_like(u)),
        "C218": (wsd, wsd_shape),
        "C219": (cosine, np.cos(np.pi * u / 2) ** 2 / np.sqrt(1 - u - np.sin(np.pi * u) / np.pi)),
    }
    for id, (shape, formula) in printed.items():
        sheet.judge(id, np.abs(_schedule(shape(_STEPS, 1.0))[steps] / formula - 1).max())
    slopes = []
    for power in (1, 2, 3):
        b = _schedule(poly(_STEPS, 1.0, power))
        left = 1 - (np.array([0.9, 0.99]) * _STEPS) / _STEPS
        ends = b[(np.array([0.9, 0.99]) * _STEPS).astype(int)]
        slopes.append(np.log(ends[1] / ends[0]) / np.log(left[1] / left[0]))
    sheet.judge("C220", slopes)


def _check_table_three(sheet: Sheet) -> None:
    for id, shape, steps in (
        ("C225", constant, 10_000),
        ("C226", cosine, _STEPS),
        ("C227", lambda t, p: wsd(t, p, decay=0.1), _STEPS),
        ("C228", linear, _STEPS),
    ):
        plan = batch.plan(shape(steps, 1.0), steps, min_batch=0, integer=False)
        sheet.judge(id, [0.5 * plan.static_noise, 0.5 * plan.noise])
    d, g, x, b, steps = 2.0, 0.7, 9.0, 16.0, 5000

    def loss(shape: str, grad_norm: float, scheduled: bool = True) -> float:
        return batch.joint_optimum(
            b * steps, x**0.5, d, grad_norm, steps=steps, shape=shape, scheduled=scheduled
        ).loss

    sheet.judge("C229", loss("cosine", g) / (2 * d * np.sqrt((1.061 * g**2 + x / b) / steps)) - 1)
    c = 0.9
    bracket = 1 + 0.5 * np.log((1 + c) / (1 - c))
    for id, scheduled, inside in (
        ("C230", True, bracket * g**2 + (1 + c) * x / b),
        ("C231", False, bracket * (g**2 + x / b)),
    ):
        printed = 2 * d * np.sqrt(inside / ((1 + c) * steps))
        sheet.judge(id, loss("wsd:decay=0.1", g, scheduled) / printed - 1)
    sheet.judge("C232", loss("constant", 0.0) / (d * np.sqrt(4 * x / (b * steps))) - 1)
    plans = [batch.plan(constant(t, 1.0), t, min_batch=0, integer=False) for t in (1000, 10_000, 100_000)]
    sheet.judge("C233", [plan.gain for plan in plans])
    peaks = []
    for t in (1000, 100_000):
        s = li.shape_constants("cosine").s
        peaks.append(batch.joint_optimum(b * t, x**0.5, shape="cosine").total_rate / (s * t))
    sheet.judge("C236", np.log(peaks[1] / peaks[0]) / np.log(100))


def _check_costs(sheet: Sheet) -> None:
    lr = cosine(300, 1.0)

    def price(size: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(size, dtype=float) ** 1.5

    costly = batch.optimal_batch_sizes(lr, 300 * 32.0**1.5, min_batch=1e-3, integer=False, cost=price)
    # B² f'(B) is proportional to c
    ratio = (1.5 * np.asarray(costly) ** 2.5 / _noise_terms(lr))[:290]
    sheet.judge("C234", np.log(ratio.max() / ratio.min()))
    clock = batch.WallClock(overhead=0.2, per_sample=0.01)
    timed = batch.optimal_batch_sizes(lr, 300.0, min_batch=1e-3, integer=False, cost=clock)
    plain = _schedule(lr, (300.0 - 300 * 0.2) / 0.01)
    sheet.judge("C235", np.abs(np.asarray(timed) / plain - 1).max())
    gains = [
        batch.plan(s(_STEPS, 1.0), _STEPS, min_batch=0, integer=False).gain for s in sims.SHAPES.values()
    ]
    text = ", ".join(f"{name} {g:.3f}" for name, g in zip(sims.SHAPES, gains, strict=True))
    sheet.judge("C242", "noise gains " + text, holds=all(a > b for a, b in pairwise(gains)))


def _check_printed(sheet: Sheet) -> None:
    sheet.judge("C224", 2.5 / 1.1)
    loss = 244.963 * 1e20**-0.097
    sheet.judge("C247", (246.244 / loss) ** (1 / 0.097) / 1e20)
    loss = 36.933 * 1e20**-0.058
    sheet.judge("C248", (34.184 / loss) ** (1 / 0.056) / 1e20)
    reported = {
        "llama3-405b": ((0, 4e6), (252e6, 8e6), (2.87e12, 16e6)),
        "palm": ((0, 512), (50e3, 1024), (115e3, 2048)),
        "chinchilla": ((0, 1.5e6), (0.5, 3e6)),
        "gopher": ((0, 3e6), (0.5, 6e6)),
        "glm-130b": ((0, 192), (0.025, 4224)),
        "gpt-3": ((0, 32e3), (12e9, 3.2e6)),
        "mt-nlg": ((0, 65_536), (12e9, 3.93e6)),
        "kimi-k2": ((0, 67e6),),
        "deepseek-v4-flash": ((0, 75.5e6),),
        "deepseek-v4-pro": ((0, 94.4e6),),
    }
    wrong = sum(
        float(batch.preset(name).batch_at([at])[0]) != size
        for name, points in reported.items()
        for at, size in points
    )
    sheet.judge("C261", f"{wrong} breakpoints of {len(reported)} presets differ", holds=wrong == 0)


def _check_eta_over_batch(sheet: Sheet, data: Data) -> None:
    found = data["eta_over_batch"]
    names = ("WSD", "cosine", "linear")
    sheet.judge("C254", [found[n][0] for n in names])
    sheet.judge("C255", [*(found[n][1] for n in names), *(found[n][2] for n in names)])
    sheet.judge("C256", [*(found[n][3] for n in names), *(found[n][4] for n in names)])
    gaps = dict(zip(names, (0.136, 0.743, 0.416), strict=True))
    ordered = sorted(names, key=lambda n: found[n][0]) == sorted(names, key=gaps.__getitem__)
    sheet.judge(
        "C257", "order of the ratios: " + " < ".join(sorted(names, key=lambda n: found[n][0])), holds=ordered
    )
    sheet.judge("C258", data["noise_dominated"])


def _check_rules(sheet: Sheet) -> None:
    static, scheduled = batch.critical_batch_size("wsd:decay=0.1", 400.0, 2.0)
    c = li.shape_constants("wsd", decay=0.1)
    sheet.judge("C263", max(abs(static / 200 - 1), abs(scheduled / (200 * 4 * c.s / c.I) - 1)))
    steps, samples = 2000, 50_000.0

    def loss(samples: float, grad_norm: float) -> float:
        return batch.joint_optimum(samples, 3.0, 1.0, grad_norm, steps=steps, shape="cosine").loss

    both = loss(samples, 0.5)
    fewest_steps = steps * (loss(1e300, 0.5) / both) ** 2
    fewest = samples * (loss(samples, 0.0) / both) ** 2
    sheet.judge("C264", fewest_steps / steps + fewest / samples)
    shapes = ("linear", "cosine", "wsd:decay=0.1", "constant")
    losses = [batch.joint_optimum(1e6, 3.0, 2.0, shape=s).loss for s in shapes]
    sheet.judge("C265", np.ptp(losses) + abs(losses[0] - 2 * 2 * 3 / 1000))
    lr = wsd(_STEPS, 1.0)
    b = _schedule(lr)
    before = np.cumsum(b) - 0.5 * b
    ratio = lr / b
    line = (2 * lr.sum() / _STEPS) * (1 - before / _STEPS)
    sheet.judge("C267", np.abs(ratio - line)[: int(0.99 * _STEPS)].max() / line[0])
    used, lr = 0.0, wsd(1000, 1.0)
    for rate in lr:
        used += batch.next_batch(float(rate), float(lr.sum()), 1e6, used)
    sheet.judge("C268", used / 1e6)
    quarter = np.cos(0.5 * np.pi * np.arange(20_000) / 20_000)
    sheet.judge("C273", batch.seesaw(quarter, 256, factor=1.01).steps_saved)
    lr = with_warmup(cosine(_STEPS, 1.0), 0.02)
    total = 256.0 * _STEPS
    smart = batch.plan(lr, total, min_batch=32, integer=False).noise
    naive = batch.optimal_batch_sizes(cosine(_STEPS, 1.0), total, min_batch=32, integer=False)
    sheet.judge("C262", batch.noise_sum(lr, naive) / smart - 1)
    curves = [
        li.curve(linear(t, t**-0.5), at=(np.linspace(0.1, 1, 19) * t).astype(int) - 1) for t in (2000, 20_000)
    ]
    sheet.judge("C249", np.abs((curves[0] / curves[0][-1]) / (curves[1] / curves[1][-1]) - 1).max())


def _check_simulated(sheet: Sheet, data: Data) -> None:
    for id, name in (("C212", "moment"), ("C272", "noise")):
        value, error = data["gradients"][name]
        sheet.judge(id, value, error=error)
    for id, name in (("C237", "root"), ("C238", "none"), ("C239", "constant")):
        sheet.judge(id, data["decayed"][name])
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


if __name__ == "__main__":
    draw(compute(quick=True))
