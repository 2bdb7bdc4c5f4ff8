"""Compare laws on a user's own curves by cross-validation over curves and over horizons."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._progress import progress_bar
from convexlaw._result import Result
from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._fit_data import RunData
from convexlaw.solvers._fit_metrics import curve_metrics
from convexlaw.solvers._fit_problem import has_batch_term, make_problem
from convexlaw.solvers.fit import solve
from convexlaw.theory.laws import CurveLaw, curve_law

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers._curve_fit import CurveFit

DEFAULT = ("cvx4q", "rc4", "cvx4", "cb4", "cd3", "tissue")
MOST_FOLDS = 10
LONGER = 1.2  # a run this many times as long as the fitted ones tests a horizon


@dataclass(frozen=True)
class Comparison(Result):
    """Errors of laws on runs, or parts of runs, that they were not fitted on.

    Attributes
    ----------
    laws : tuple of str
        In the order of their mean error, best first.
    winner : str or None
        The best law, where its lead over every other one is significant (one-sided 95 %, paired over runs).
    sentence : str
        The outcome in words.
    cells : DataFrame
        One row a law, fold and test run: law, kind ("curve" or "horizon"), fold, run, points, mae, rmse, r2
        (nats).
    """

    laws: tuple[str, ...]
    winner: str | None
    sentence: str
    cells: pd.DataFrame
    _table: pd.DataFrame
    _figure: ClassVar[str] = "fits:plot_comparison"

    def to_frame(self) -> pd.DataFrame:
        """Return the rows described in CurveFit.compare."""
        frame = self._table.copy()
        frame["winner"] = frame["law"] == (self.winner or "")
        frame.attrs["sentence"] = self.sentence
        return frame

    def __str__(self) -> str:
        lines = [f"{'law':<11}{'MAE':>10}{'+-':>10}{'curves':>10}{'horizons':>10}   ratio to best [95 %]"]
        for row in self._table.head(9).to_dict("records"):
            lines.append(
                f"{row['law']:<11}{row['mae']:>10.5f}{row['se']:>10.5f}{row['curve_mae']:>10.5f}"
                f"{row['horizon_mae']:>10.5f}   {row['ratio']:.2f} [{row['ratio_low']:.2f}, "
                f"{row['ratio_high']:.2f}]"
            )
        return "\n".join([*lines, self.sentence])


@dataclass(frozen=True)
class _Fold:
    kind: str
    name: str
    train: list[RunData]
    test: list[RunData]


def _cut(run: RunData, step: float, after: bool) -> RunData:
    losses = {}
    for split, (steps, loss) in run.losses.items():
        keep = steps >= step if after else steps < step
        losses[split] = (steps[keep], loss[keep])
    return RunData(run.name, run.lr, run.batch, losses, run.weight_decay, run.init_std, run.optimizer)


def make_folds(runs: Sequence[RunData], split: str, skip: int) -> list[_Fold]:
    """Folds over curves (each curve out, or ten groups) and over horizons (short runs fit, longer ones test).

    Where all runs are of one length, the horizon fold fits the rows before the middle and tests those after
    it.
    """
    folds = []
    if len(runs) >= 3:
        groups = min(len(runs), MOST_FOLDS)
        for g in range(groups):
            test = [run for i, run in enumerate(runs) if i % groups == g]
            train = [run for i, run in enumerate(runs) if i % groups != g]
            folds.append(_Fold("curve", ", ".join(run.name for run in test), train, test))
    lengths = sorted({run.lr.size for run in runs})
    for cut in lengths[:-1]:
        train = [run for run in runs if run.lr.size <= cut]
        test = [run for run in runs if run.lr.size >= LONGER * cut]
        if len(train) >= 2 and test:
            folds.append(_Fold("horizon", f"up to {cut} steps", train, test))
    if not any(fold.kind == "horizon" for fold in folds):
        half = max(run.lr.size for run in runs) / 2
        train = [_cut(run, half, False) for run in runs]
        test = [_cut(run, half, True) for run in runs]
        test = [run for run in test if run.rows(split, skip)[0].size]
        if test:
            folds.append(_Fold("horizon", f"steps before {half:.0f}", train, test))
    return folds


def compare(fit: CurveFit, laws: Sequence[str] | None = None, *, progress: bool | None = None) -> Comparison:
    """Fit laws to parts of the fitted runs and score them on the rest; held-out runs are never touched.

    Parameters
    ----------
    fit : CurveFit
        Its fitted runs, split, prior and constants are used.
    laws : sequence of str, optional
        Default: cvx4q, rc4 (where the weight decay is known), cvx4, cb4, cd3, tissue.
    progress : bool, optional
        None shows a bar on a terminal.

    Returns
    -------
    Comparison
        The standard errors are over test runs. ``.winner`` is None where the lead of the best law is within
        them.

    Raises
    ------
    ConvexlawError
        An unknown law, fewer than two laws, or too few runs to make a fold.
    """
    state = fit._state
    state.needs_data(".compare")
    runs = [run for run in state.data or () if run.name in fit.train]
    chosen = list(laws) if laws is not None else list(DEFAULT)
    if laws is None and any(state.constants.of(run)[0] is None for run in runs):
        chosen.remove("rc4")
    classes = [curve_law(name) for name in dict.fromkeys(chosen)]
    if len(classes) < 2:
        raise ConvexlawError(f"laws = {chosen}: a comparison needs at least two laws")
    folds = make_folds(runs, fit.split, state.skip)
    if not folds:
        raise ConvexlawError(
            "too few runs to compare laws on: fit at least two runs of different lengths, or three"
        )
    rows: list[dict[str, Any]] = []
    with progress_bar("comparing laws", len(classes) * len(folds), progress) as advance:
        for cls in classes:
            for fold in folds:
                rows += _cells(fit, cls, fold)
                advance(1)
    return _summary(rows, [cls.name for cls in classes])


def _cells(fit: CurveFit, cls: type[CurveLaw], fold: _Fold) -> list[dict[str, Any]]:
    state = fit._state
    base = {"law": cls.name, "kind": fold.kind, "fold": fold.name}
    nothing = {"points": 0, "mae": np.nan, "rmse": np.nan, "r2": np.nan}
    batch = has_batch_term(cls, fold.train)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            problem, _ = make_problem(
                cls,
                fold.train,
                fit.split,
                state.skip,
                state.constants,
                batch=batch,
                alpha_prior=state.alpha_prior,
                fixed=state.fixed if cls.name == fit.law else {},
            )
            law = cls.from_params(solve(problem).params)
    except ConvexlawError:
        return [{**base, "run": run.name, **nothing} for run in fold.test]
    out = []
    for run in fold.test:
        steps, loss = run.rows(fit.split, state.skip)
        if not steps.size:
            continue
        decay, std = state.constants.of(run)
        predicted = law.predict(
            run.lr, steps, run.batch if batch else None, weight_decay=decay or 0.0, init_std=std
        )
        found = curve_metrics(loss, predicted)
        out.append(
            {**base, "run": run.name, "points": loss.size, **{k: found[k] for k in ("mae", "rmse", "r2")}}
        )
    return out


def _summary(rows: list[dict[str, Any]], laws: list[str]) -> Comparison:
    import pandas as pd
    from scipy.stats import t as student

    cells = pd.DataFrame(rows)
    # a run counts once, however many folds test it: first over folds within a kind, then over kinds
    by_kind = cells.groupby(["law", "kind", "run"])["mae"].mean()
    by_run = by_kind.groupby(["law", "run"]).mean().unstack("law")[laws]
    kinds = by_kind.groupby(["law", "kind"]).mean().unstack("kind")
    whole = by_run.dropna()
    failed = cells["mae"].isna().groupby(cells["law"]).sum()
    usable = [law for law in laws if by_run[law].notna().all()]
    whole = by_run[usable] if usable else by_run
    means = by_run.mean().to_dict()  # NaN where a law failed everywhere: last
    order = sorted(laws, key=lambda law: (law not in usable, np.nan_to_num(means[law], nan=np.inf)))
    best = order[0]
    count = len(whole)
    quantile = float(student.ppf(0.975, count - 1)) if count > 1 else np.nan
    one_sided = float(student.ppf(0.95, count - 1)) if count > 1 else np.inf
    table = []
    beaten = []
    for law in order:
        errors = by_run[law].dropna().to_numpy()
        row: dict[str, Any] = {
            "law": law,
            "mae": float(errors.mean()) if errors.size else np.nan,
            "se": float(errors.std(ddof=1) / np.sqrt(errors.size)) if errors.size > 1 else np.nan,
            "curve_mae": float(kinds["curve"].get(law, np.nan)) if "curve" in kinds else np.nan,
            "horizon_mae": float(kinds["horizon"].get(law, np.nan)) if "horizon" in kinds else np.nan,
        }
        both = by_run[[law, best]].dropna().to_numpy() if law != best else None
        if both is None:
            row |= {"ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0}
        else:
            logs = np.log(both[:, 0] / both[:, 1])
            centre = float(logs.mean()) if logs.size else np.nan
            error = float(logs.std(ddof=1) / np.sqrt(logs.size)) if logs.size > 1 else np.nan
            row |= {
                "ratio": float(np.exp(centre)),
                "ratio_low": float(np.exp(centre - quantile * error)),
                "ratio_high": float(np.exp(centre + quantile * error)),
            }
            # a law that cannot be fitted on every fold is beaten where it can
            if error == error and centre > one_sided * error:
                beaten.append(law)
        row["failed"] = int(failed.get(law, 0))
        table.append(row)
    rivals = [law for law in order[1:] if law not in beaten and by_run[law].notna().any()]
    winner = best if count >= 3 and not rivals else None
    scatter = f"{table[0]['mae']:.4g} +- {table[0]['se']:.2g} nats over {count} runs"
    lead = f"{best} has the smallest mean error ({scatter})"
    if winner:
        sentence = f"{lead} and beats every other law compared, beyond the scatter over runs."
    elif count < 3:
        sentence = f"{lead}, but {count} test runs are too few to call a winner."
    else:
        sentence = (
            f"{lead}, but its lead over {', '.join(rivals)} is within the scatter over runs: no winner."
        )
    return Comparison(tuple(order), winner, sentence, cells, pd.DataFrame(table))
