"""Predictions of a fit on runs that are known: the rows that are scored, drawn and saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fit_data import RunData, as_runs, pick
from convexlaw.solvers._fit_range import are_names, beyond, warn_all
from convexlaw.solvers._fit_state import Ranges

if TYPE_CHECKING:
    from convexlaw.solvers._curve_fit import CurveFit

Array = NDArray[np.float64]
Row = tuple[str, Any, Array, Array, bool]  # run, steps, losses, predictions, trained


def predictions(fit: CurveFit, runs: Any = None, *, every: bool = False) -> list[tuple[Row, Array]]:
    """Rows of the named runs, or of other logs, each with the learning rates of its run.

    Parameters
    ----------
    fit : CurveFit
    runs : names, globs or logs, optional
        Default: the runs held out, or all where none are.
    every : bool
        With the papers' protocol also the fitted half of a fitted run.
    """
    state = fit._state
    named = runs is None or are_names(runs, fit.runs)
    wanted: Sequence[str] = ()
    out: list[tuple[Row, Array]] = []
    if named:
        held = [n for n in fit.runs if n not in fit.train] or list(fit.runs)
        wanted = held if runs is None else pick(fit.runs, runs)
    if named and state.data is None:
        for n in wanted:
            if n in state.observed:
                saved = state.observed[n]
                rates = saved["lr"]
                if saved["step"].size:  # of a saved fit the rates at the logged steps are known
                    rates = np.interp(np.arange(saved["step"][-1] + 1), saved["step"], rates)
                out.append(((n, saved["step"], saved["loss"], saved["predicted"], n in fit.train), rates))
        return out
    data: Sequence[RunData]
    data = [run for run in state.data or () if run.name in wanted] if named else as_runs(runs)[0]
    for run in data:
        steps, loss = run.rows(fit.split, state.skip)
        trained = named and run.name in fit.train
        if trained and fit.protocol == "paper" and not every:
            second = steps >= run.lr.size / 2
            steps, loss = steps[second], loss[second]
        predicted = _at(fit, run, steps) if steps.size else np.empty(0)
        out.append(((run.name, steps, loss, predicted, trained), run.lr))
    return out


def _at(fit: CurveFit, run: RunData, steps: NDArray[np.int64]) -> Array:
    state = fit._state
    decay, std = state.constants.of(run)
    if state.batch and run.batch is None:
        raise ConvexlawError(f"run {run.name!r} has no batch size, and this fit has a batch term")
    return fit.model.predict(
        run.lr,
        steps,
        run.batch if state.batch else None,
        weight_decay=(state.weight_decay if decay is None else decay) or 0.0,
        init_std=std,
    )


def warn_scored(ranges: Ranges, found: Sequence[tuple[Row, Array]]) -> None:
    """Warn about runs whose scored losses lie beyond 4 times the fitted range."""
    far = [
        (f"run {row[0]!r}", beyond(ranges, rates, int(row[1][-1]) + 1)) for row, rates in found if row[1].size
    ]
    warn_all("scored losses", far, "their errors are those of an extrapolation; score the others apart")
