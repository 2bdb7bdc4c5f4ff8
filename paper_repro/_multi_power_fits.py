"""Laws fitted to the Multi-Power curves: held-out curves, other training sets, second halves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvergenceWarning
from convexlaw.paper_repro._multi_power_data import NAMES, PUBLISHED, TRAIN, schedule
from convexlaw.paper_repro._multi_power_trials import metrics
from convexlaw.paper_repro._scores import far_score
from convexlaw.runs.table import RunTable, read_runs
from convexlaw.solvers.fit import Problem, solve
from convexlaw.solvers.fit_curves import CurveFit, fit_curves
from convexlaw.theory.laws import MultiPower, RunPath

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["LAWS", "TRAINING_SETS", "cell", "default_laws", "follow", "printed_curves", "second_half"]

LAWS = ("averaged", "cd3", "cb4", "cvx3", "cvx4", "cvx4q", "cvx5")
TRAINING_SETS = (  # beside the default one
    ("cosine_24000", "wsdcon_9"),
    ("cosine_24000",),
    ("cosine_72000",),
    ("cosine_24000", "wsd_20000_24000"),
    ("constant_24000", "wsdld_20000_24000"),
    ("wsdcon_3", "wsdcon_9", "wsdcon_18"),
)


def default_laws(table: RunTable) -> dict[str, CurveFit]:
    """All laws but Multi-Power, fitted to the default three curves."""
    fits = {law: _fit(table, law, TRAIN) for law in (*LAWS, "tissue", "rc4")}
    for lam in (0.998, 0.999):
        fits[f"tissue, lambda {lam:.3f}".replace("0.", ".")] = _fit(
            table, "tissue", TRAIN, fixed={"lam": lam}
        )
    return fits


def _fit(
    table: RunTable, law: str, train: Sequence[str], prior: bool | None = None, **options: Any
) -> CurveFit:
    """Fit as the tables were made: no prior but for rc4. A law too rich for one curve may stop early."""
    if law == "rc4":
        options["weight_decay"] = 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_curves(
            table, law, train=list(train), alpha_prior=law == "rc4" if prior is None else prior, **options
        )


def printed_curves(table: RunTable, size: int) -> dict[str, NDArray[np.float64]]:
    """Losses of every curve by the printed Multi-Power parameters."""
    law = MultiPower(**_printed(size))
    return {run: law.predict(schedule(run), at=table.curve(run)[0]) for run in NAMES}


def _printed(size: int) -> dict[str, float]:
    return dict(zip(MultiPower.names(), PUBLISHED[size], strict=True))


def follow(
    table: RunTable, start: dict[str, float] | int, train: Sequence[str], every: int = 1
) -> MultiPower:
    """Follow the Multi-Power fit from one start to convergence (20 starts take a minute).

    ``start``: parameters, or the size whose printed ones are taken; ``every``: use of so many rows one.
    """
    logs = [(schedule(run), *(part[::every] for part in table.curve(run))) for run in train]
    loss = np.concatenate([y for _, _, y in logs])
    columns = MultiPower.columns([RunPath.make(lr, steps) for lr, steps, _ in logs])
    problem = Problem(columns, loss, MultiPower.linear(), MultiPower.nonlinear, np.ones(loss.size))
    first = _printed(start) if isinstance(start, int) else start
    return MultiPower(**solve(problem, polish=1, start=first).params)


def cell(table: RunTable, size: int, train: Sequence[str]) -> dict[str, Any]:
    """Mean test errors of six fits on all curves that are not in a training set."""
    found: dict[str, Any] = {"size": size, "train": " ".join(train)}
    for law, prior in (("rc4", True), ("rc4", False), ("cvx4q", False), ("cvx4q", True), ("tissue", False)):
        name = law if prior == (law == "rc4") else f"{law}, {'' if prior else 'no '}prior"
        found[name] = float(far_score(_fit(table, law, train, prior))["mae"].mean())
    power = follow(table, size, train)
    held = {run: table.curve(run)[0] for run in NAMES if run not in train}
    guesses = {run: power.predict(schedule(run), at=at) for run, at in held.items()}
    found["multipower"] = metrics(table, guesses)["mae"]
    return found


def second_half(part: pd.DataFrame, size: int, run: str, law: str) -> dict[str, Any]:
    """R² on the second half of a curve of a law fitted on its first half (cd3: by the papers' protocol)."""
    rows = part[part.run == run]
    first = rows.step < schedule(run).size / 2
    if law == "cd3":
        score = fit_curves(read_runs(rows, schedule=schedule), protocol="paper").score()
    else:
        fit = _fit(read_runs(rows[first], schedule=schedule), law, [run])
        with np.errstate(over="ignore"):  # a parameter that the first half does not bound may be anything
            score = far_score(fit, read_runs(rows[~first], schedule=schedule))
    return {"size": size, "schedule": run, "law": law, "r2": float(score["r2"].iloc[0])}
