"""Laws fitted to the public sweep: held-out final losses, unseen peaks, the learning rate they pick."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvergenceWarning, ExtrapolationWarning
from convexlaw.paper_repro._multi_power_data import PUBLISHED
from convexlaw.paper_repro._scores import far_score
from convexlaw.paper_repro._sweep_data import best_peak, schedule
from convexlaw.runs.table import RunTable, read_runs
from convexlaw.solvers.fit import Problem, solve
from convexlaw.solvers.fit_curves import CurveFit, fit_curves
from convexlaw.theory.laws import MultiPower, RunPath

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = [
    "base_rates",
    "final_losses",
    "multi_power_finals",
    "stand_in",
    "unseen_peaks",
    "validation_losses",
]

_ALIKE = (  # stable run, shortest cooldown of 20 %, cooldowns of longer horizons; 33M to 124M
    ("r226", "r021", ("r022",)),
    ("r202", "r023", ("r024",)),
    ("r230", "r039", ("r040",)),
    ("r231", "r043", ("r044", "r045", "r046")),
    ("r214", "r013", ("r014",)),
    ("r232", "r049", ("r050", "r051", "r052")),
    ("r233", "r055", ("r056", "r057", "r058")),
)


def _splits(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """Which runs are fitted; the others are held out."""
    short = (runs.schedule == "wsd") & (runs.cooldown_fraction == 0.2) & (runs.decay_type != "sqrt")
    return {
        "horizons": runs.steps <= 25_000,
        "peaks": runs.peak.isin([5e-4, 1e-3]),
        "shapes": (runs.schedule == "cos") | short,
    }


def _schedules(runs: pd.DataFrame) -> dict[str, Any]:
    return {str(run.run_id): schedule(run) for _, run in runs.iterrows()}


def _fit(table: RunTable, law: str, **options: Any) -> CurveFit:
    return fit_curves(table, law, weight_decay=0.1, alpha_prior=law == "rc4", **options)


def final_losses(
    runs: pd.DataFrame, laws: tuple[str, ...], quick: bool
) -> tuple[dict[tuple[str, str], dict[str, float]], pd.DataFrame]:
    """Parameters, and errors on held-out final losses; one split alone if ``quick``."""
    import pandas as pd

    frame = pd.DataFrame({"run": runs.run_id, "step": runs.steps, "val_loss": runs.loss})
    table = read_runs(frame, schedule=_schedules(runs))
    rows, params = [], {}
    for (name, mask), law in itertools.product(_splits(runs).items(), laws):
        if quick and (name != "shapes" or law == "tissue"):  # its sums run over every step in each evaluation
            continue
        fit = _fit(table, law, train=list(runs.run_id[mask]))
        # one row a run: the error of its final loss
        error = far_score(fit).set_index("run").final_error.reindex(runs.run_id[~mask]).to_numpy()
        rows.append((law, name, *_summary(error, runs.loss[~mask].to_numpy())))
        params[law, name] = dict(fit.params)
    return params, pd.DataFrame(rows, columns=["law", "held_out", "mae", "r2"])


def _score(fit: CurveFit) -> pd.DataFrame:
    """Scores of the runs held out, also where they lie far from those fitted: that is the question here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return fit.score()


def _summary(error: NDArray[np.float64], loss: NDArray[np.float64]) -> tuple[float, float]:
    """Mean absolute error, and R² over the runs."""
    spread = float(np.sum((loss - loss.mean()) ** 2))
    return float(np.abs(error).mean()), 1 - float(np.sum(error**2)) / spread


def multi_power_finals(runs: pd.DataFrame) -> pd.DataFrame:
    """Errors of Multi-Power on the three splits, followed from one start (a minute)."""
    import pandas as pd

    start = dict(zip(MultiPower.names(), PUBLISHED[100], strict=True))
    paths = [RunPath.make(schedule(run), [int(run.steps)]) for _, run in runs.iterrows()]
    loss, rows = runs.loss.to_numpy(), []
    for name, mask in _splits(runs).items():
        fitted = np.flatnonzero(mask)
        columns = MultiPower.columns([paths[i] for i in fitted])
        problem = Problem(
            columns, loss[fitted], MultiPower.linear(), MultiPower.nonlinear, np.ones(fitted.size)
        )
        law = MultiPower.from_params(solve(problem, polish=1, start=start).params)
        held = np.flatnonzero(~mask)
        ends = [law.predict(paths[i].lr, at=paths[i].at)[0] for i in held]
        rows.append((name, *_summary(np.array(ends) - loss[held], loss[held])))
    return pd.DataFrame(rows, columns=["held_out", "mae", "r2"]).set_index("held_out")


def validation_losses(folder: Path) -> pd.DataFrame:
    """Read the validation losses along all runs: run, step, val_loss."""
    import pandas as pd

    history = pd.read_csv(folder / "history.csv.gz", usecols=["run_id", "step", "val_loss"])
    return history[history.val_loss.notna()].rename(columns={"run_id": "run"})


def _curves(history: pd.DataFrame, runs: pd.DataFrame) -> RunTable:
    return read_runs(history[history.run.isin(runs.run_id)], schedule=_schedules(runs))


def stand_in(folder: Path) -> dict[str, float]:
    """Mean test errors on cooldowns of longer horizons, fitted to a stable run and the shortest cooldown."""
    import pandas as pd

    runs = pd.read_csv(folder / "runs.csv").rename(columns={"iterations": "steps", "base_lr": "peak"})
    runs, history = runs.set_index("run_id"), validation_losses(folder)
    errors: dict[str, list[float]] = {"cvx4q": [], "tissue": [], "multipower": []}
    for stable, short, longer in _ALIKE:
        parts = []
        for name in (stable, short, *longer):
            steps = int(runs.steps[name])
            rows = history[history.run == name]
            kept = (
                rows.step <= runs.steps[short] if name == stable else rows.step >= steps - round(0.2 * steps)
            )
            parts.append(rows[kept])
        rates = {name: schedule(runs.loc[name]) for name in (stable, short, *longer)}
        table = read_runs(pd.concat(parts), schedule=rates)
        for law, found in errors.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fit = fit_curves(table, law, train=[stable, short], alpha_prior=False, split="val")
            found.append(float(far_score(fit)["mae"].mean()))
    return {law: float(np.mean(found)) for law, found in errors.items()}


def unseen_peaks(history: pd.DataFrame, runs: pd.DataFrame, quick: bool) -> pd.DataFrame:
    """Two of four peaks fitted, the others predicted: errors of two laws in six splits, or three."""
    import pandas as pd

    keep = (runs.schedule == "wsd") & (runs.grad_norm_rerun == 0) & runs.decay_type.notna()
    runs = runs[keep & runs.cooldown_fraction.isin([0.0, 0.2]) & (runs.peak < 2.5e-3)]
    table = _curves(history, runs)
    rows = []
    pairs = list(itertools.combinations(sorted(runs.peak.unique()), 2))
    for low, high in pairs[:3] if quick else pairs:
        train = list(runs.run_id[runs.peak.isin([low, high])])
        fits = {law: _fit(table, law, train=train, split="val") for law in ("rc4", "cvx4q")}
        rows.append((low, high, *(float(far_score(fit)["mae"].mean()) for fit in fits.values())))
    return pd.DataFrame(rows, columns=["low", "high", "rc4", "cvx4q"])


def base_rates(history: pd.DataFrame, runs: pd.DataFrame, quick: bool) -> pd.DataFrame:
    """Best peak that a law fitted at one peak picks, in octaves from the measured one, for WSD cooldowns."""
    import pandas as pd

    keep = (runs.schedule == "wsd") & (runs.decay_type == "linear") & (runs.grad_norm_rerun == 0)
    runs = runs[keep & (runs.cooldown_fraction > 0) & (runs.cooldown_fraction < 0.95)]
    cells = [cell for _, cell in runs.groupby(["steps", "cooldown_fraction"]) if cell.peak.nunique() >= 3]
    if quick:
        cells = [cell for cell in cells if cell.steps.iloc[0] == 50_000][1::2]
    rows = []
    peaks = (5e-4, 1e-3) if quick else (5e-4, 1e-3, 2e-3)
    for peak, law in itertools.product(peaks, ("cvx4q", "rc4")):
        fit = fit_curves(_curves(history, runs[runs.peak == peak]), law, weight_decay=0.1, split="val")
        octaves = [np.log2(_picked(fit, cell.iloc[0]) / best_peak(cell)) for cell in cells]
        rows.append(
            (peak, law, len(cells), float(np.sqrt(np.mean(np.square(octaves)))), float(np.mean(octaves)))
        )
    return pd.DataFrame(rows, columns=["fitted_at", "law", "cells", "rms_octaves", "mean_octaves"])


def _picked(fit: CurveFit, run: Any) -> float:
    import pandas as pd

    run = run.copy()

    def best(grid: NDArray[np.float64]) -> float:
        ends = []
        for peak in grid:
            run["peak"] = peak
            ends.append(float(fit.predict(schedule(run), at=[int(run.steps)])[0]))
        return best_peak(pd.DataFrame({"peak": grid, "loss": ends}))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        # octaves first, then a quarter of one on both sides
        rough = best(np.geomspace(1e-4, 1.28e-2, 8))
        return best(rough * 2.0 ** np.linspace(-0.5, 0.5, 5))
