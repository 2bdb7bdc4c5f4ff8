"""
Seven parameters or four (Luo et al. 2025).
===========================================

The Multi-Power law with its printed parameters on held-out schedules of its own public curves, beside laws
that come from the convex last-iterate bound and have four parameters.
"""  # noqa: D205

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from convexlaw.errors import ConvergenceWarning
from convexlaw.figures.style import COLORS, CYCLE, styled
from convexlaw.paper_repro._check import Check, Sheet
from convexlaw.paper_repro._claims_luo_2025_multi_power import CLAIMS, PAPER
from convexlaw.paper_repro._data import Data, public_data
from convexlaw.paper_repro._figure import absent
from convexlaw.paper_repro._multi_power_data import NAMES, PUBLISHED, SIZES, TEST, TRAIN, schedule
from convexlaw.runs.table import RunTable, read_runs
from convexlaw.solvers.fit import Problem, solve
from convexlaw.solvers.fit_curves import CurveFit, fit_curves
from convexlaw.theory.laws import MultiPower, RunPath

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "PAPER", "check", "compute", "draw"]

_TRAINING_SETS = (  # beside the default one
    ("cosine_24000", "wsdcon_9"),
    ("cosine_24000",),
    ("cosine_72000",),
    ("cosine_24000", "wsd_20000_24000"),
    ("constant_24000", "wsdld_20000_24000"),
    ("wsdcon_3", "wsdcon_9", "wsdcon_18"),
)
_LAWS = ("averaged", "cd3", "cb4", "cvx3", "cvx4", "cvx4q", "cvx5")
_METRICS = ["r2", "mae", "rmse", "prede", "worste"]
_SHOWN = ("wsd_20000_24000", "cosine_72000", "wsdcon_3")


def compute(quick: bool = False) -> Data:
    """Fit every law on three curves a size and score it on six.

    ``quick`` leaves out six of the seven training sets, the slow refit of Multi-Power at 100M and 400M, and
    some of the second halves.
    """
    import pandas as pd

    missing: dict[str, str] = {}
    folder = public_data("multi_power_law", missing)
    if folder is None:
        return Data({}, missing=missing)
    frame = pd.read_csv(folder / "curves.csv").rename(columns={"schedule": "run"})
    scores: list[dict[str, Any]] = []
    cells, halves, predictions = [], [], pd.DataFrame()
    values: dict[str, Any] = {}
    for size in SIZES:
        part = frame.loc[frame.model_m == size, ["run", "step", "lr", "loss"]]
        table = read_runs(part, schedule=schedule)
        slow = not quick or size == SIZES[0]
        fits = _all_laws(table, size, slow)
        means = {name: fit.score(list(TEST))[_METRICS].mean() for name, fit in fits.items()}
        scores += [{"size": size, "law": name, **mean} for name, mean in means.items()]
        values[f"params_{size}"] = {name: dict(fit.params) for name, fit in fits.items()}
        values[f"ends_{size}"] = _final_losses(table, fits["multipower, printed"])
        if size == 100:
            predictions = _predictions(table, fits)
            values["bootstrap"] = fits["cvx5"].interval(over="within", resamples=60)
        cells.append(_cell(size, TRAIN, {name: mean["mae"] for name, mean in means.items()}))
        for train in () if quick else _TRAINING_SETS:
            others = _some_laws(table, size, train)
            cells.append(
                _cell(size, train, {name: fit.score()["mae"].mean() for name, fit in others.items()})
            )
        if not quick or size < 400:
            laws = ("cb4",) if quick and size > 25 else ("cd3", "cb4", "tissue")
            halves += [_second_half(part, size, run, law) for run in NAMES for law in laws]
    tables = {
        "scores": pd.DataFrame(scores),
        "predictions": predictions,
        "training_sets": pd.DataFrame(cells),
        "second_halves": pd.DataFrame(halves),
    }
    return Data(tables, values, missing)


def _fit(table: RunTable, law: str, train: Sequence[str], **options: Any) -> CurveFit:
    """Fit as the tables were made: no prior but for rc4. A law too rich for one curve may stop early."""
    if law == "rc4":
        options["weight_decay"] = 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_curves(table, law, train=list(train), alpha_prior=law == "rc4", **options)


def _all_laws(table: RunTable, size: int, slow: bool) -> dict[str, CurveFit]:
    fits = {law: _fit(table, law, TRAIN) for law in (*_LAWS, "tissue", "rc4")}
    fits["tissue, lambda .999"] = _fit(table, "tissue", TRAIN, fixed={"lam": 0.999})
    fits["multipower, printed"] = _fit(table, "multipower", TRAIN, fixed=_printed(size))
    if slow:
        fits["multipower"] = _refit(table, size, TRAIN)
    return fits


def _some_laws(table: RunTable, size: int, train: tuple[str, ...]) -> dict[str, CurveFit]:
    fits = {law: _fit(table, law, train) for law in ("rc4", "cvx4q", "tissue")}
    return {**fits, "multipower": _refit(table, size, train)}


def _printed(size: int) -> dict[str, float]:
    return dict(zip(MultiPower.names(), PUBLISHED[size], strict=True))


def _refit(table: RunTable, size: int, train: Sequence[str]) -> CurveFit:
    """Follow the Multi-Power fit from the printed parameters to convergence (20 starts take a minute)."""
    logs = [(schedule(run), *table.curve(run)) for run in train]
    loss = np.concatenate([y for _, _, y in logs])
    columns = MultiPower.columns([RunPath.make(lr, steps) for lr, steps, _ in logs])
    problem = Problem(columns, loss, MultiPower.linear(), MultiPower.nonlinear, np.ones(loss.size))
    return _fit(table, "multipower", train, fixed=solve(problem, polish=1, start=_printed(size)).params)


def _cell(size: int, train: tuple[str, ...], maes: dict[str, float]) -> dict[str, Any]:
    """Mean test errors of four laws on all curves that are not in a training set."""
    laws = [law for law in ("rc4", "cvx4q", "tissue", "multipower") if law in maes]
    return {"size": size, "train": " ".join(train)} | {law: float(maes[law]) for law in laws}


def _second_half(part: pd.DataFrame, size: int, run: str, law: str) -> dict[str, Any]:
    """R² on the second half of a curve of a law fitted on its first half (cd3: by the papers' protocol)."""
    rows = part[part.run == run]
    first = rows.step < schedule(run).size / 2
    if law == "cd3":
        score = fit_curves(read_runs(rows, schedule=schedule), protocol="paper").score()
    else:
        fit = _fit(read_runs(rows[first], schedule=schedule), law, [run])
        with np.errstate(over="ignore"):  # a parameter that the first half does not bound may be anything
            score = fit.score(read_runs(rows[~first], schedule=schedule))
    return {"size": size, "schedule": run, "law": law, "r2": float(score["r2"].iloc[0])}


def _predictions(table: RunTable, fits: dict[str, CurveFit]) -> pd.DataFrame:
    import pandas as pd

    parts = []
    for run in _SHOWN:
        steps, loss = table.curve(run)
        predicted = {
            law: fits[law].predict(schedule(run), at=steps) for law in ("multipower, printed", "cvx4q", "rc4")
        }
        parts.append(pd.DataFrame({"schedule": run, "step": steps, "loss": loss, **predicted}))
    return pd.concat(parts, ignore_index=True)


def _final_losses(table: RunTable, fit: CurveFit) -> list[float]:
    """Last loss of cosine minus WSD at 24 000 steps: seen, and by the law."""
    ends = []
    for run in ("cosine_24000", "wsd_20000_24000"):
        steps, loss = table.curve(run)
        ends.append((float(loss[-1]), float(fit.predict(schedule(run), at=steps[-1:])[0])))
    return [cosine - wsd for cosine, wsd in zip(*ends, strict=True)]


@styled
def draw(data: Data) -> Figure:
    """Held-out curves with two predictions, and the error of every law by size."""
    if data.missing:
        return absent(data.missing)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.4), gridspec_kw={"width_ratios": (1.25, 1)})
    table = data["predictions"]
    for i, (run, part) in enumerate(table.groupby("schedule", sort=False)):
        late = part[part.step > 5000]
        at = late.step / 1000
        left.plot(at, late.loss, color=COLORS["data"], lw=0.7, label=None if i else "loss")
        for law, style, color in (
            ("multipower, printed", "--", COLORS["prediction"]),
            ("rc4", "-.", COLORS["fit"]),
        ):
            left.plot(at, late[law], style, color=color, lw=1.3, label=None if i else law)
        end = (at.iloc[-1], late.loss.iloc[-1])
        left.annotate(str(run), end, (-6, -10), textcoords="offset points", ha="right", fontsize="small")
    left.set_xlabel("step (1000)")
    left.set_ylabel("training loss (nats)")
    left.set_title("100M, three of six held-out schedules")
    left.legend()
    scores = data["scores"].pivot(index="law", columns="size", values="mae") * 1e3
    scores = scores[scores.max(axis=1) < 20].sort_values(25, ascending=False)
    at = np.arange(len(scores))
    for i, size in enumerate(SIZES):
        right.barh(at + 0.26 * (i - 1), scores[size], 0.24, color=CYCLE[i], label=f"{size}M",
                   hatch=("", "////", "xxxx")[i], edgecolor="white")  # fmt: skip
    right.set_yticks(at, [str(law) for law in scores.index])
    right.set_xlabel("MAE on six held-out schedules (1e-3 nats)")
    right.set_title("laws by error at 25M (cd3, averaged: 36 to 47)")
    right.legend()
    return figure


def check(data: Data) -> list[Check]:
    """Judge every claim."""
    sheet = Sheet(CLAIMS, data.missing)
    if not data.missing:
        table = data["scores"].pivot(index="law", columns="size")
        _check_table(sheet, table)
        _check_parameters(sheet, data)
        _check_cells(sheet, data)
        _check_halves(sheet, data["second_halves"])
    return sheet.done()


def _check_table(sheet: Sheet, table: pd.DataFrame) -> None:
    mae = table["mae"]
    printed, tissue = mae.loc["multipower, printed"], mae.loc["tissue"]
    refit = mae.loc["multipower"].dropna()  # not at every size where quick
    for id, size in (("C301", 25), ("C302", 400)):
        sheet.judge(id, [table[m].loc["multipower, printed", size] for m in _METRICS[1:]])
    sheet.judge("C303", printed[100])
    sheet.judge("C304", table["r2"].loc["multipower, printed"])
    known = dict(zip(SIZES, (0.00462, 0.00499, 0.00603), strict=True))
    sheet.judge("C305", refit, reference=[known[size] for size in refit.index], note=_sizes(refit))
    sheet.judge("C306", (refit / printed).drop(100).dropna())
    sheet.judge("C307", (printed / mae.loc["tissue, lambda .999"])[[25, 400]])
    sheet.judge("C308", (refit / tissue).dropna(), note=_sizes(refit))
    ids = ("C309", "C310", "C311", "C312", "C313", "C314", "C315", "C316", "C317", "C318")
    names = ("tissue, lambda .999", "tissue", *(n for n in _LAWS if n != "cvx3"), "cvx3", "rc4")
    for id, name in zip(ids, names, strict=True):
        sheet.judge(id, mae.loc[name])
    sheet.judge("C320", mae.loc["cvx4q"] / printed, note="MAE of CVX4q over that of the printed parameters")


def _sizes(values: pd.Series) -> str:
    return "at " + ", ".join(f"{size}M" for size in values.index)


def _check_parameters(sheet: Sheet, data: Data) -> None:
    rc4, cvx5 = data["params_25"]["rc4"], data["params_25"]["cvx5"]
    sheet.judge("C324", [rc4[k] for k in ("Linf", "a", "b", "alpha")])
    sheet.judge("C325", [cvx5[k] for k in ("Linf", "a", "b", "alpha", "q")])
    q = data["bootstrap"].loc["q"]
    text = f"q = {q['estimate']:.3f}, 95 % [{q['low']:.3f}, {q['high']:.3f}] of 60 resamples"
    sheet.judge("C326", text, holds=not q["low"] <= q["estimate"] <= q["high"])
    ends = np.array([data[f"ends_{size}"] for size in SIZES])
    text = "cosine minus WSD: seen " + ", ".join(f"{v:.4f}" for v in ends[:, 0])
    text += "; law " + ", ".join(f"{v:.4f}" for v in ends[:, 1]) + " nats"
    sheet.judge("C332", text, holds=bool((ends > 0).all()))


def _check_cells(sheet: Sheet, data: Data) -> None:
    cells = data["training_sets"]
    for id, better, other in (
        ("C321", "cvx4q", "multipower"),
        ("C322", "cvx4q", "tissue"),
        ("C323", "rc4", "cvx4q"),
    ):
        ratio = (cells[better] / cells[other]).dropna()
        wins, mean = int((ratio < 1).sum()), float(np.exp(np.log(ratio).mean()))
        sheet.judge(id, wins / ratio.size, note=f"{wins} of {ratio.size} cells run, mean ratio {mean:.2f}")


def _check_halves(sheet: Sheet, halves: pd.DataFrame) -> None:
    kind = halves.schedule.str.split("_").str[0]
    bound, law = halves[halves.law == "cd3"], halves.law != "cd3"
    sheet.judge("C327", halves.r2[law & kind.isin(["constant", "cosine"])].min())
    sheet.judge("C328", halves.r2[law & (kind == "wsdcon")].max())
    sheet.judge("C329", halves.r2[law & kind.isin(["wsd", "wsdld"])].max())
    sheet.judge("C330", bound.r2.max(), note=f"largest of {len(bound)} curves")


if __name__ == "__main__":
    draw(compute(quick=True))
