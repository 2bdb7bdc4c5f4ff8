"""
The bound of the last iterate and learning-rate schedules (Defazio et al. 2023, Schaipp et al. 2025).
=====================================================================================================

Bounds along a run for four schedules at their best peak, the effect of the length of the cooldown, and the
best learning rate by cooldown that the theory gives beside the one measured on 124M-parameter runs.
"""  # noqa: D205

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import COLORS, SCHEDULES, styled
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_defazio_2023_last_iterate import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data, public_data
from convexlaw.paper_repro._sweep_data import best_peak, finals
from convexlaw.paper_repro._sweep_fits import (
    base_rates,
    final_losses,
    multi_power_finals,
    unseen_peaks,
    validation_losses,
)
from convexlaw.simulations.descent import descend
from convexlaw.simulations.problems import random_max_of_affine
from convexlaw.theory import last_iterate as li
from convexlaw.theory.schedules import constant, cosine, linear, step, wsd

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_SHAPES = {
    "constant": constant,
    "WSD 20 %": wsd,
    "cosine": cosine,
    "linear": linear,
}
_COOLDOWNS = (0.1, 0.2, 0.4, 0.6, 0.8)
_LAWS = {"C149": "cvx6", "C150": "rc4", "C151": "cvx4q", "C152": "cd3", "C432": "tissue"}
_R2 = {"C433": "cvx6", "C434": "cvx4q", "C435": "tissue", "C436": "cd3"}
_SPLITS = ("horizons", "peaks", "shapes")


def compute(quick: bool = False) -> Data:
    """Compute bounds along runs, simulated gaps beside them, and what the public sweep of runs says."""
    import pandas as pd

    steps = 2000 if quick else 20_000
    at = np.linspace(0.02 * steps, steps - 1, 200).astype(int)
    curves = {"step": at + 1}
    for name, shape in _SHAPES.items():
        peak, _ = li.optimal_peak(shape(steps, 1.0))
        curves[name] = li.curve(shape(steps, peak), at=at)
    shares = np.linspace(0.02, 1.0, 50)
    optimum = [li.shape_constants("wsd", decay=float(c)) for c in shares]
    cooldown = {
        "cooldown": shares,
        "bound": [c.bound_factor for c in optimum],
        "peak": [c.peak_factor for c in optimum],
    }
    tables = {
        "bounds": pd.DataFrame(curves),
        "cooldown": pd.DataFrame(cooldown),
        "simulated": _simulated(40 if quick else 214),
    }
    missing: dict[str, str] = {}
    folder = public_data("lr_scheduling", missing)
    values: dict[str, Any] = {}
    if folder is not None:
        runs = finals(folder)
        tables["measured_peaks"] = _peaks(runs)
        values["fits"], tables["finals"] = final_losses(runs, tuple(_LAWS.values()), quick)
        values["multipower"] = None if quick else multi_power_finals(runs)
        history = validation_losses(folder)
        tables["unseen_peaks"] = unseen_peaks(history, runs, quick)
        tables["picked_rates"] = base_rates(history, runs, quick)
    return Data(tables, values, missing)


def _simulated(count: int) -> pd.DataFrame:
    """Loss gap over bound at the end of gradient descent on random non-smooth problems."""
    import pandas as pd

    rng = np.random.default_rng(11)
    rows = []
    for i in range(count):
        problem = random_max_of_affine(int(rng.integers(2, 20)), int(rng.integers(1, 12)), rng)
        steps = int(rng.integers(5, 120))
        shape = list(_SHAPES.values())[i % 4]
        run = descend(problem, shape(steps, float(rng.uniform(0.3, 3)) / np.sqrt(steps)), replicas=1)
        gap = float(run.gap[-1])
        rows.append((steps, gap, gap / run.bound("tight"), gap / run.bound("free")))
    return pd.DataFrame(rows, columns=["steps", "gap", "over_tight", "over_free"])


def _peaks(runs: pd.DataFrame) -> pd.DataFrame:
    """Best measured peak of each shape at 15 000 and 50 000 steps beside the theory's factor."""
    import pandas as pd

    down = runs[(runs.schedule == "wsd") & (runs.decay_type == "linear")]
    rows = []
    for steps, cooldown in product((15_000, 50_000), _COOLDOWNS):
        kept = down[(down.steps == steps) & np.isclose(down.cooldown_fraction, cooldown)]
        theory = li.shape_constants("wsd", decay=cooldown).peak_factor
        rows.append((f"WSD {cooldown:g}", cooldown, steps, best_peak(kept), theory))
    cosines = runs[(runs.steps == 50_000) & (runs.schedule == "cos")]
    kept = cosines[np.isclose(cosines.cos_final_lr, 1e-7, rtol=1e-3)]
    rows.append(("cosine", np.nan, 50_000, best_peak(kept), li.shape_constants("cosine").peak_factor))
    frame = pd.DataFrame(rows, columns=["shape", "cooldown", "steps", "peak", "theory"])
    # all but the warmup is cooldown: linear decay
    whole = down[(down.steps == 50_000) & np.isclose(down.cooldown_fraction, 0.994)]
    frame["relative"] = np.where(frame.steps == 50_000, frame.peak / best_peak(whole), np.nan)
    return frame


@styled
def draw(data: Data) -> Figure:
    """Bounds along a run, the best bound by cooldown, and the best peak by cooldown."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.8))
    curves = data["bounds"]
    for name in _SHAPES:
        looks = SCHEDULES[name.removesuffix(" 20 %")] | {"marker": ""}
        left.semilogy(curves.step / curves.step.max(), curves[name], label=name, **looks)
    left.set_xlabel("step / steps")
    left.set_ylabel("bound on the loss gap / (D G)")
    left.set_title("along a run, each at its best peak")
    left.legend()
    table = data["cooldown"]
    # no colour of a schedule: every point has a cooldown of its own
    theory: dict[str, Any] = {"color": COLORS["data"], "ls": (0, (9, 2.5)), "lw": 1.6, "label": "theory"}
    middle.plot(table.cooldown, table.bound, **theory)
    middle.axhline(2, label="linear decay", **SCHEDULES["linear"] | {"marker": ""})
    middle.set_xlabel("cooldown / steps")
    middle.set_ylabel("best bound × √T / (D G)")
    middle.set_title("WSD by cooldown")
    middle.legend()
    right.plot(table.cooldown, table.peak, **theory)
    if not data.missing:
        seen = data["measured_peaks"].dropna()
        right.plot(seen.cooldown, seen.relative, "o", color=COLORS["data"], label="measured, 124M, 50k steps")
    right.set_ylim(0, 1.1)
    right.set_xlabel("cooldown / steps")
    right.set_ylabel("best peak / best peak of linear decay")
    right.set_title("transfer between shapes")
    right.legend(loc="lower right")
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    _check_bounds(sheet, data)
    _check_closed_forms(sheet)
    _check_along_runs(sheet, data)
    if not data.missing:
        _check_sweep(sheet, data)
    return sheet.done()


def _three_terms(lr: NDArray[np.float64], g: NDArray[np.float64]) -> float:
    """Theorem 10 as printed, D = 1: bias, weighted noise, and the sum over tails, each by definition."""
    square = lr**2 * g**2
    total = 1 / (2 * lr.sum()) + square.sum() / (2 * lr.sum())
    for k in range(lr.size - 1):
        total += 0.5 * lr[k] / lr[k + 1 :].sum() * square[k:].sum() / lr[k:].sum()
    return float(total)


def _check_bounds(sheet: Sheet, data: Data) -> None:
    rng = np.random.default_rng(2)
    apart = []
    for size in rng.integers(2, 200, 20):
        lr, g = rng.uniform(0.01, 1, size), rng.uniform(0.3, 2, size)
        apart.append(abs(li.bound(lr, g, form="tail") / _three_terms(lr, g) - 1))
    sheet.judge("C116", max(apart))
    rates = [linear(t, t**-0.5)[1:] for t in (10, 100, 1000)]
    sheet.judge("C117", [li.bound(lr, form="tight") * np.sqrt(lr.size + 1) for lr in rates])
    sheet.judge("C118", li.optimal_peak(linear(1000, 1.0))[1] * np.sqrt(1000))
    halves = {}
    for name, shape in _SHAPES.items():
        lr = shape(20_000, 0.01)
        halves[name] = li.bound(lr, form="tight") / li.bound(lr, form="free")
    known = halves.pop("constant")
    sheet.judge(
        "C119", halves.values(), note=f"WSD, cosine, linear at T = 20 000; a constant rate has {known:.3f}"
    )
    simulated = data["simulated"]
    sheet.judge("C120", simulated.over_tight.max(), note=f"largest of {len(simulated)} problems")
    sheet.judge("C121", simulated.over_free.max(), note=f"largest of {len(simulated)} problems")


def _check_closed_forms(sheet: Sheet) -> None:
    horizons = (1000, 10_000, 100_000)
    sheet.judge("C122", [li.optimal_peak(constant(t, 1.0))[1] * np.sqrt(t) for t in horizons])
    sheet.judge("C123", li.bound(constant(500, 0.03), form="tail") / li.constant_bound(500, 0.03) - 1)
    sheet.judge("C124", li.bound(linear(500, 0.03), form="tail") / li.linear_bound(500, 0.03) - 1)
    shapes = {
        "C125": "linear",
        "C126": "cosine",
        "C127": "one_minus_sqrt",
        "C128": "poly:power=3",
        "C129": "wsd:decay=0.2",
        "C130": "wsd:decay=0.1",
        "C131": "wsd:decay=0.5",
    }
    for id, shape in shapes.items():
        c = li.shape_constants(shape)
        sheet.judge(id, [c.s, c.I, c.peak_factor, c.bound_factor, c.batch_gain])
    sheet.judge("C132", li.wsd_upper_bound(1000, 800))
    sheet.judge("C133", li.optimal_peak(wsd(1000, 1.0))[1])
    peak, best = li.optimal_peak(wsd(1000, 1.0))
    ratios = [li.bound(wsd(1000, r * peak), form="tail") / best - (r + 1 / r) / 2 for r in (0.1, 0.5, 3.0)]
    sheet.judge("C134", max(map(abs, ratios)))
    bounds = [li.shape_constants("wsd", decay=c).bound_factor for c in (0.1, 0.2, 0.5, 1.0)]
    sheet.judge("C135", np.diff(bounds).max(), note="bounds " + ", ".join(f"{b:.4f}" for b in bounds))
    factors = [li.shape_constants("wsd", decay=c).peak_factor for c in _COOLDOWNS]
    sheet.judge("C146", [*factors, li.shape_constants("cosine").peak_factor])
    peaks = [li.optimal_peak(cosine(t, 1.0))[0] for t in (10_000, 100_000)]
    sheet.judge("C143", np.log(peaks[1] / peaks[0]) / np.log(10))
    average = [li.bound(constant(t, t**-0.5), form="averaged") * np.sqrt(t) for t in (100, 10_000)]
    sheet.judge("C137", average)
    sheet.judge("C138", _best_averaged(linear(10_000, 1.0)) / _best_averaged(constant(10_000, 1.0)))


def _best_averaged(h: NDArray[np.float64]) -> float:
    """Best averaged bound over the peak: (D² + gamma² sum h²)/(2 gamma sum h) at gamma = 1/|h|."""
    return li.bound(h / np.linalg.norm(h), form="averaged")


def _check_along_runs(sheet: Sheet, data: Data) -> None:
    curves = data["bounds"]
    late = curves[curves.step >= 0.8 * curves.step.max()]
    drops = late.iloc[-1] / late.iloc[0]
    text = (
        f"over the last fifth it falls to {drops['WSD 20 %']:.2f} (WSD), {drops['constant']:.2f} (constant)"
    )
    sheet.judge("C136", text, holds=bool(drops["WSD 20 %"] < 0.75 < drops["constant"]))
    drop = step(2000, 0.02, at=0.5, factor=0.01)
    at = [999, 1000]
    before, after = li.curve(drop, form="tail", at=at)
    sheet.judge("C139", (after - before) / (0.5 * drop[999] / 0.01))
    before, after = li.curve(drop, form="free", at=at)
    sheet.judge("C140", after / before)
    sheet.judge(
        "C141", _refined(), note="tight bound of the refined schedule over linear decay's, three profiles"
    )
    same, lower, longer = _continued()
    text = f"bound {same:.4f} as before, {lower:.4f} with a lower rate, {longer:.4f} with a longer cooldown"
    sheet.judge("C142", text, holds=lower < same and longer < same)


def _refined() -> list[float]:
    """Schedule w R/W with weights w = 1/G², against the best linear decay, for falling and rising norms."""
    t = np.arange(1, 1001)
    ratios = []
    for g in (t**-0.3, 1 + 3 * np.exp(-t / 50), (1 + t / 500) ** 0.5):
        weight = g**-2.0
        after = np.cumsum(weight[::-1])[::-1] - weight
        lr = (weight * after / weight.sum())[:-1]
        scale = np.geomspace(0.05, 20, 121)
        norms = g  # one more than the updates: the last is the norm at the point bounded
        best = min(li.bound(s * lr / lr.sum(), norms, form="tight") for s in scale * 30)
        plain = linear(1000, 1.0)[1:]
        other = min(li.bound(s * plain / plain.sum(), norms, form="tight") for s in scale * 30)
        ratios.append(best / other)
    return ratios


def _continued() -> tuple[float, float, float]:
    """Train for twice the horizon that the stable rate was chosen for: as before, lower, longer cooldown."""
    short = 1000
    peak, _ = li.optimal_peak(wsd(short, 1.0))
    stable = constant(800, peak)
    same = li.bound(np.concatenate([stable, wsd(1200, peak, decay=1 / 6)]), form="tail")
    lower = min(
        li.bound(np.concatenate([stable, wsd(1200, r * peak, decay=1 / 6)]), form="tail")
        for r in np.linspace(0.3, 1.0, 36)
    )
    longer = min(
        li.bound(np.concatenate([stable, wsd(1200, peak, decay=c)]), form="tail")
        for c in np.linspace(0.2, 1.0, 33)
    )
    return same, lower, longer


def _check_sweep(sheet: Sheet, data: Data) -> None:
    peaks = data["measured_peaks"]
    by = peaks.set_index(["shape", "steps"]).peak
    for id, shape in (("C144", "WSD 0.2"), ("C145", "WSD 0.6")):
        exponent = np.log(by[shape, 50_000] / by[shape, 15_000]) / np.log(50 / 15)
        sheet.judge(
            id, exponent, note="exponent between 15 000 and 50 000 steps, parabolas in log learning rate"
        )
    seen = peaks[peaks.steps == 50_000]
    sheet.judge("C147", seen.relative)
    sheet.judge("C148", seen.relative / seen.theory)
    finals = data["finals"].pivot(index="law", columns="held_out")
    for kind, laws in (("mae", _LAWS), ("r2", _R2)):
        names = list(finals[kind].columns)
        for id, law in laws.items():
            if law not in finals.index:
                sheet.skip(id, "left out of a quick run: seconds of fitting")
                continue
            known = dict(zip(_SPLITS, _reference(id), strict=True))
            wanted, note = [known[n] for n in names], "held out: " + ", ".join(names)
            seen = finals[kind].loc[law]
            if kind == "r2":
                note += "; twice the relative tolerance of the errors, of which it is a square"
            sheet.judge(id, 1 - seen if kind == "r2" else seen, reference=wanted, note=note)
    found = data["fits"]["cvx6", "shapes"]
    rest = 1 + found["alpha"] - found["r"] - found["q"]
    exponent = -(found["alpha"] - found["q"]) / rest
    outside = max(-0.09 - exponent, exponent + 0.05, 0.0)
    sheet.judge("C153", outside, note=f"exponent {exponent:.3f} of the fit to shapes")
    found = data["multipower"]
    if found is None:
        for id in ("C154", "C437"):
            sheet.skip(id, "left out of a quick run: a minute of fitting")
    else:
        found = found.loc[list(_SPLITS)]
        ratio = found.mae / finals["mae"].loc["cvx6"]
        sheet.judge("C154", ratio, note="held out: " + ", ".join(_SPLITS))
        sheet.judge("C437", [*found.mae, *found.r2])
    unseen = data["unseen_peaks"]
    note = f"CVX4q has {unseen.cvx4q.mean():.4f}; {len(unseen)} splits"
    sheet.judge("C155", unseen.rc4.mean(), note=note)
    ratios = unseen.rc4 / unseen.cvx4q
    mean = float(np.exp(np.log(ratios).mean()))
    sheet.judge("C156", mean if ratios.max() < 1 else np.inf, note=f"largest ratio {ratios.max():.2f}")
    picks = data["picked_rates"].pivot(index="fitted_at", columns="law", values="rms_octaves")
    cells = int(data["picked_rates"].cells.iloc[0])
    sheet.judge(
        "C158",
        picks.cvx4q,
        note=f"fitted at {', '.join(map(str, picks.index))}; {cells} cells of cooldown and horizon",
    )
    text = (
        f"CVX4q {picks.cvx4q[1e-3]:.2f}, RC4 {picks.rc4[1e-3]:.2f} octave; at .0005 {picks.cvx4q[5e-4]:.2f}, "
    )
    text += f"{picks.rc4[5e-4]:.2f}: there RC4 is better"
    sheet.judge("C159", picks.rc4[1e-3] / picks.cvx4q[1e-3], note=text)


def _reference(id: str) -> tuple[float, ...]:
    value = next(claim.reference for claim in CLAIMS if claim.id == id)
    return value if isinstance(value, tuple) else ()


if __name__ == "__main__":
    draw(compute(quick=True))
