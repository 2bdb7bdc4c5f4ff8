"""
Convex dominance: rates, an exam, and lines in 1/sqrt(T) (Bu, Xu and Mao 2026).
===============================================================================

The bound times sqrt(T) by schedule (flat: qualified; growing: not), the loss of 15 model sizes against 1 over
the square root of their tokens, and the limits of those lines by size.
"""  # noqa: D205

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.figures.style import COLORS, SCHEDULES, styled
from convexlaw.paper_repro._check import Check, Claim, Sheet
from convexlaw.paper_repro._claims_bu_2026_convex_dominance import CLAIMS, PAPER, RUNS
from convexlaw.paper_repro._data import Data, public_data
from convexlaw.paper_repro._dominance_sweep import measure_sweep, rate_exponents, square_r
from convexlaw.paper_repro._multi_power_data import schedule
from convexlaw.paper_repro._sweep_data import finals
from convexlaw.runs.table import read_runs
from convexlaw.solvers.fit_curves import fit_curves, measured_transfer
from convexlaw.solvers.fit_table import per_size
from convexlaw.theory import last_iterate as li
from convexlaw.theory.schedules import constant, cosine, inverse_sqrt, linear, one_minus_sqrt, wsd

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_SIZES = (
    0.074,
    0.140,
    0.279,
    0.425,
    0.632,
    1.143,
    1.429,
    1.611,
    2.004,
    2.280,
    2.979,
    4.519,
    6.792,
    9.290,
    12.56,
)
_HORIZONS = (1_000, 10_000, 100_000, 1_000_000)
_SCHEDULES: dict[str, Callable[[int, float], NDArray[np.float64]]] = {
    "constant": constant,
    "linear to 10 %": lambda steps, peak: linear(steps, peak, 0.1 * peak),
    "linear to 1 %": lambda steps, peak: linear(steps, peak, 0.01 * peak),
    "cosine to 10 %": lambda steps, peak: cosine(steps, peak, 0.1 * peak),
    "WSD 10 %": lambda steps, peak: wsd(steps, peak, decay=0.1),
    "1 - sqrt": one_minus_sqrt,
    "cosine": cosine,
    "linear": linear,
}


def compute(quick: bool = False) -> Data:
    """Compute bound times sqrt(T) by schedule and horizon, and the lines of Table 2."""
    import pandas as pd

    rows = []
    for name, shape in _SCHEDULES.items():
        for steps in _HORIZONS:
            scaled = li.bound(shape(steps, steps**-0.5), form="tail") * np.sqrt(steps)
            rows.append((name, steps, scaled))
    tables = {"scaled_bounds": pd.DataFrame(rows, columns=["schedule", "steps", "scaled"])}
    missing: dict[str, str] = {}
    values: dict[str, Any] = {"rates": rate_exponents()}
    folder = public_data("chinchilla", missing)
    if folder is not None:
        points = pd.read_csv(folder / "points.csv")
        tables["sizes"], tables["points"] = _lines(points)
    folder = public_data("lr_scheduling", missing)
    if folder is not None:
        runs = finals(folder)
        keep = (runs.schedule == "wsd") & (runs.decay_type == "linear") & (runs.grad_norm_rerun == 0)
        sweep = runs.loc[keep & (runs.cooldown_fraction == 0.2), ["steps", "peak", "loss"]]
        values["sweep"] = measure_sweep(sweep)
        values["transfer"] = measured_transfer(sweep, resamples=200 if quick else 1000)
    folder = public_data("multi_power_law", missing)
    if folder is not None:
        frame = pd.read_csv(folder / "curves.csv").rename(columns={"schedule": "run"})
        sizes = (25,) if quick else (25, 100, 400)
        tables["second_halves"] = pd.concat([_halves(frame, size) for size in sizes], ignore_index=True)
    return Data(tables, values, missing)


def _lines(points: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Regress the loss on 1/sqrt(tokens) for each size of Table 2: the rows within .3 % of its label."""
    import pandas as pd

    lines, used = [], []
    for size in _SIZES:
        part = points[(points.N / (1e9 * size) - 1).abs() < 0.003]
        line = per_size(part)
        lines.append(line)
        fitted = line.Linf.iloc[0] + line.C.iloc[0] / np.sqrt(part.D)
        used.append(part.assign(size=size, fitted=fitted))
    return pd.concat(lines, ignore_index=True).assign(size=_SIZES), pd.concat(used, ignore_index=True)


def _halves(frame: pd.DataFrame, size: int) -> pd.DataFrame:
    """R² on the second half of each public curve by the paper's protocol."""
    import pandas as pd

    part = frame.loc[frame.model_m == size, ["run", "step", "lr", "loss"]]
    rows = []
    for run, own in part.groupby("run"):
        score = fit_curves(read_runs(own, schedule=schedule), protocol="paper").score()
        rows.append((size, run, float(score["r2"].iloc[0])))
    return pd.DataFrame(rows, columns=["size", "schedule", "r2"])


@styled
def draw(data: Data) -> Figure:
    """Scaled bounds, lines in 1/sqrt(tokens), and their limits by size."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.8))
    bounds = data["scaled_bounds"]
    for name in _SCHEDULES:
        part = bounds[bounds.schedule == name]
        family = name if name in SCHEDULES else name.split()[0]
        # decays to a floor lie on those to zero at first: wide open marks under filled ones
        floor = {"mfc": "none", "ms": 9 if "10 %" in name else 5} if " to " in name else {"ms": 3}
        left.semilogx(part.steps, part.scaled, label=name, **SCHEDULES[family] | floor)
    left.set_xlabel("steps T")
    left.set_ylabel("bound × √T / (D G), peak D/(G √T)")
    # most lie near 2: an axis logarithmic in the distance from a value just below
    left.set_yscale(
        "function", functions=(lambda y: np.log(np.maximum(y - 1.97, 1e-3)), lambda v: 1.97 + np.exp(v))
    )
    left.set_yticks([2, 2.05, 2.1, 2.2, 2.5, 3, 4, 6, 8], minor=False)
    left.set_yticklabels(["2", "2.05", "2.1", "2.2", "2.5", "3", "4", "6", "8"])
    left.set_ylim(1.993, 60)
    left.set_title("the exam: flat or growing")
    left.legend(fontsize="small", ncols=2, loc="upper left")
    if "sizes" in data.tables:
        _draw_sizes(middle, right, data)
    return figure


def _draw_sizes(middle: Any, right: Any, data: Data) -> None:
    lines, points = data["sizes"], data["points"]
    # five colours by three dashes, a row and a column of the legend
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.85, -(-len(lines) // 3)))
    drawn = []
    for i, line in enumerate(lines.itertuples()):
        color, dash = colors[i // 3], ("-", (0, (4, 1.5)), (0, (1, 1)))[i % 3]
        part = points[points["size"] == line.size]
        x = np.array([0.0, float((part.D**-0.5).max())])
        drawn += middle.plot(
            1e5 * x, line.Linf + line.C * x, color=color, ls=dash, lw=1.2, label=f"{line.size:.3g}"
        )
        middle.plot(1e5 * part.D**-0.5, part.loss, ".", ms=4, color=color)
    middle.set_xlabel("1 / √tokens (1e-5)")
    middle.set_ylabel("loss (nats)")
    middle.set_title("loss of 15 sizes")
    middle.set_ylim(top=6.6)  # the legend above the longest line
    order = [line for column in range(3) for line in drawn[column::3]]
    middle.legend(handles=order, fontsize="small", ncols=3, loc="upper left", title="parameters (1e9)")
    right.semilogx(1e9 * lines["size"], lines.Linf, "o", color=COLORS["data"], label="Linf of each line")
    size = np.geomspace(0.07, 13, 50)
    slope, level, _ = _log_linear(lines)
    right.plot(1e9 * size, level + slope * np.log10(size), color=COLORS["fit"], label="line in log N")
    limit, factor, power, _ = _power(lines)
    right.plot(1e9 * size, limit + factor * size**power, "--", color=COLORS["prediction"], label="power law")
    right.set_xlabel("parameters N")
    right.set_ylabel("Linf (nats)")
    right.set_title("limit by size")
    right.legend()


def _log_linear(lines: pd.DataFrame) -> tuple[float, float, float]:
    x = np.log10(lines["size"].to_numpy())
    slope, level = np.polyfit(x, lines.Linf, 1)
    return float(slope), float(level), square_r(lines.Linf, level + slope * x)


def _power(lines: pd.DataFrame) -> tuple[float, float, float, float]:
    from scipy.optimize import curve_fit

    size = lines["size"].to_numpy()
    fit: Any = curve_fit
    (limit, factor, power), _ = fit(
        lambda n, a, b, k: a + b * n**k, size, lines.Linf.to_numpy(), (1.7, 0.5, -0.3)
    )
    return float(limit), float(factor), float(power), square_r(lines.Linf, limit + factor * size**power)


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    _check_table_one(sheet)
    _check_exam(sheet, data["scaled_bounds"])
    _check_orders(sheet)
    _check_growth(sheet, data["scaled_bounds"])
    rates = ", ".join(f"{rate:.3f}" for rate in data["rates"])
    note = f"{RUNS}; measured instead: exponents {rates} of the gap of SGD at batch 1, 4, 16 on a quadratic"
    sheet.unobtainable("C208", note, data["rates"])
    if "sizes" in data.tables:
        _check_sizes(sheet, data)
    if "transfer" in data.values:
        found = data["transfer"]
        x = found.steps**-0.5
        line = np.polyval(np.polyfit(x, found.loss, 1), x)
        sheet.judge("C197", square_r(found.loss, line))
        low, high = found.exponent_interval
        sheet.judge("C198", found.exponent, note=f"95 % [{low:.2f}, {high:.2f}], 124M, 15k to 50k steps")
        _check_public_sweep(sheet, data["sweep"], float(found.exponent))
    if "second_halves" in data.tables:
        halves = data["second_halves"]
        sheet.judge("C199", halves.r2.max(), note=f"largest of {len(halves)} curves, literal bound")
        measured = f"measured instead: R² of at most {halves.r2.max():.2f} on {len(halves)} public curves"
        for id in ("C200", "C201"):
            sheet.unobtainable(id, f"{RUNS}; {measured}", halves.r2.max())
    return sheet.done()


def _check_public_sweep(sheet: Sheet, sweep: dict[str, Any], exponent: float) -> None:
    """Claims about runs that are not public, on the public runs of 124M parameters."""
    horizons = ", ".join(f"{steps // 1000}k" for steps in sweep["horizons"])
    sheet.judge("C203", sweep["refs"], note=f"{_claim('C203').why}, T = {horizons}")
    sheet.judge("C205", sweep["lines"], note=f"{_claim('C205').why}, T = {horizons}")
    note = f"{_claim('C206').why}; measured instead: R² {sweep['final_r2']:.2f} on the 124M sweep"
    sheet.unobtainable("C206", note, sweep["final_r2"])
    note = f"{_claim('C202').why}; measured instead, over 3.3 times: exponent {exponent:.2f}"
    sheet.unobtainable("C202", note, exponent)


def _claim(id: str) -> Claim:
    return next(claim for claim in CLAIMS if claim.id == id)


def _terms(shape: Callable[[int, float], NDArray[np.float64]], steps: int) -> tuple[float, float]:
    """Bias over D²/(T eta), and noise over eta G², of the literal bound."""
    lr = shape(steps, 0.01)
    bias = steps * 0.01 * li.bound(lr, grad_norm=0.0, form="tail")
    return bias, li.bound(lr, distance=0.0, form="tail") / 0.01


def _check_orders(sheet: Sheet) -> None:
    """Bias and noise columns of Table 1."""
    (bias, first), (_, last) = (_terms(constant, steps) for steps in (10_000, 1_000_000))
    sheet.judge("C420", [bias, (last - first) / np.log(100)])
    steps = 1_000_000
    slow = li.bound(inverse_sqrt(steps, 0.01, offset=1), grad_norm=0.0, form="tail")
    sheet.judge("C421", 0.01 * np.sqrt(steps) * slow)
    sheet.judge("C422", [v for shape in (linear, cosine) for v in _terms(shape, 100_000)])
    sheet.judge("C423", _terms(lambda steps, peak: wsd(steps, peak, decay=0.2), 100_000))


def _check_growth(sheet: Sheet, bounds: pd.DataFrame) -> None:
    """Cycles, and the growth of bound sqrt(T) an e-fold of T."""
    for id, halves in (("C424", 5), ("C425", 6)):
        scaled = []
        for steps in (1_000, 1_000_000):
            u = np.arange(1, steps + 1) / steps
            h = np.maximum(0.5 * (1 + np.cos(halves * np.pi * u)), 0)
            h[h < 1e-14] = 0
            scaled.append(li.bound(h / np.sqrt(steps), form="tail") * np.sqrt(steps))
        sheet.judge(id, scaled)
    table = bounds.pivot(index="schedule", columns="steps", values="scaled")
    names = ["constant", "linear to 10 %", "linear to 1 %", "cosine to 10 %"]
    sheet.judge("C426", (table.loc[names, 1_000_000] - table.loc[names, 100_000]) / np.log(10))


def _leading(shape: Callable[[int], NDArray[np.float64]]) -> tuple[float, float, float]:
    """Slopes against ln T between 1e4 and 1e6: noise sqrt(T), T bound², 1/eta² (D = G = 1)."""
    noise, best, rate, logs = [], [], [], []
    for steps in (10_000, 1_000_000):
        h = shape(steps)
        peak, value = li.optimal_peak(h)
        # at its best peak half of the bound is noise
        noise.append(0.5 * value / peak * np.sqrt(steps))
        best.append(steps * value**2)
        rate.append(1 / peak**2)
        logs.append(np.log(steps))
    per = logs[1] - logs[0]
    first, second, third = ((v[1] - v[0]) / per for v in (noise, best, rate))
    return float(first), float(second), float(third)


def _check_table_one(sheet: Sheet) -> None:
    peaks = [li.optimal_peak(constant(t, 1.0)) for t in (10_000, 1_000_000)]
    logs = np.log(1e6) - np.log(1e4)
    best = [t * value**2 for t, (_, value) in zip((1e4, 1e6), peaks, strict=True)]
    rate = [1 / (t * peak**2) for t, (peak, _) in zip((1e4, 1e6), peaks, strict=True)]
    sheet.judge("C160", (best[1] - best[0]) / logs)
    sheet.judge("C161", (rate[1] - rate[0]) / logs)
    for id, shape in (("C162", "linear"), ("C163", "cosine")):
        c = li.shape_constants(shape)
        sheet.judge(id, [c.bound_factor, c.peak_factor])
    c = li.shape_constants("wsd", decay=0.2)
    sheet.judge("C164", c.bound_factor)
    sheet.judge("C165", c.peak_factor)
    noise, best_slope, rate_slope = _leading(lambda steps: inverse_sqrt(steps, 1.0, offset=1))
    for ids, value in (
        (("C166", "C167"), noise),
        (("C168", "C169"), best_slope),
        (("C170", "C171"), rate_slope),
    ):
        for id in ids:
            sheet.judge(id, value)
    c = li.shape_constants("wsd", decay=0.1)
    # bias D²/(2 s T eta) = q1²/(T eta)
    for id in ("C172", "C173"):
        sheet.judge(id, (2 * c.s) ** -0.5, note="q1/D at c = .9")
    c, steps = li.shape_constants("cosine"), 100_000
    q1, q2 = (2 * c.s) ** -0.5, (c.I / 2) ** 0.5
    apart = []
    for ref in (0.3, 1.0, 3.0):
        scaled = li.bound(cosine(steps, ref / np.sqrt(steps)), form="tail") * np.sqrt(steps)
        apart.append(scaled / (q1**2 / ref + ref * q2**2) - 1)
    sheet.judge("C174", np.abs(apart).max(), note="cosine, T = 1e5, eta_ref .3, 1, 3")
    top, lowest = li.optimal_peak(cosine(steps, 1.0))
    root = np.sqrt(steps)
    sheet.judge("C175", [top * root / (q1 / q2) - 1, lowest * root / (2 * q1 * q2) - 1])


def _check_exam(sheet: Sheet, bounds: pd.DataFrame) -> None:
    good = [li.qualify(name) for name in ("linear", "cosine", "wsd:decay=0.1", "one_minus_sqrt")]
    sheet.judge("C176", f"{sum(map(bool, good))} of 4 pass (1 - sqrt too)", holds=all(good))
    flat, root = li.qualify("constant"), li.qualify(lambda u: u**-0.5)
    text = f"growth {flat.growth:g} (constant), {root.growth:g} (1/sqrt t) G² eta_ref per e-fold of T"
    sheet.judge("C177", text, holds=not flat and not root)
    table = bounds.pivot(index="schedule", columns="steps", values="scaled")
    scaled = {
        "C178": "linear",
        "C179": "cosine",
        "C180": "WSD 10 %",
        "C181": "1 - sqrt",
        "C182": "constant",
        "C183": "linear to 10 %",
    }
    for id, name in scaled.items():
        sheet.judge(id, table.loc[name])
    for id, name in (("C184", "linear to 1 %"), ("C185", "cosine to 10 %")):
        sheet.judge(id, table.loc[name].iloc[[0, -1]])
    ends = [
        li.qualify(lambda u: 0.5 * (1 + np.cos(7 * np.pi * u))),
        li.qualify(lambda u: 0.5 * (1 + np.cos(8 * np.pi * u))),
    ]
    text = (
        f"ends at 0: {'passes' if ends[0] else 'fails'}; ends at the peak: {'passes' if ends[1] else 'fails'}"
    )
    sheet.judge(
        "C186", text, holds=bool(ends[0]) and not ends[1], note=f"growth {ends[1].growth:g} at the peak"
    )
    sheet.judge("C187", [li.qualify(f"linear:end={end}").slope for end in (0.01, 0.1)])


def _check_sizes(sheet: Sheet, data: Data) -> None:
    lines, points = data["sizes"], data["points"]
    sheet.judge("C188", lines.points)
    sheet.judge("C189", lines.C / 1e4)
    sheet.judge("C190", lines.Linf)
    sheet.judge("C191", lines.r2)
    apart = (points.fitted / points.loss - 1).abs()
    note = f"largest relative residual; {int((apart > 0.01).sum())} of {len(apart)} points exceed 1 %"
    sheet.judge("C192", apart.max(), note=note)
    slope, level, r2 = _log_linear(lines)
    sheet.judge("C193", [level, slope, r2])
    sheet.judge("C194", _power(lines))
    rise, height = np.polyfit(np.log(lines["size"]), np.log(lines.C), 1)
    sheet.judge("C195", [np.exp(height) / 1e4, rise])
    sheet.judge("C196", lines.N.max() / lines.N.min())


if __name__ == "__main__":
    draw(compute(quick=True))
