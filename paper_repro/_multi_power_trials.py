"""Two trial laws with four parameters on the Multi-Power curves: a tight kernel, noise by the loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from convexlaw.paper_repro._multi_power_data import TEST, TRAIN, schedule
from convexlaw.solvers._fit_metrics import curve_metrics
from convexlaw.solvers.fit import Problem, solve
from convexlaw.theory import last_iterate as li
from convexlaw.theory.laws import CVX4q

if TYPE_CHECKING:
    from convexlaw.runs.table import RunTable

__all__ = ["loss_noise_law", "metrics", "tight_law"]

Array = NDArray[np.float64]

_FLOOR = 3e-4  # of the sum of learning rates in gradient norms, as in the laws of the package
_ROUNDS = 30


def tight_law(table: RunTable) -> dict[str, float]:
    """Mean test metrics of Linf + a S^-alpha + b N, N the noise of the tight bound, E|g|² as S^-1/8."""
    noise = {
        run: _noise(run, _sums(run) ** -(1 / 16), table.curve(run)[0], "tight") for run in (*TRAIN, *TEST)
    }
    params = _fit(table, noise)
    return metrics(
        table, {run: _loss(params, run, table.curve(run)[0]) + params["b"] * noise[run] for run in TEST}
    )


def loss_noise_law(table: RunTable) -> dict[str, float]:
    """Mean test metrics of Linf + a S^-alpha + b N, E|g|² in N as the third power of Linf + a S^-alpha."""
    params = {"Linf": 2.5, "a": 0.5, "b": 0.0, "alpha": 0.5}

    def noise(run: str, at: NDArray[np.int64]) -> Array:
        every = np.arange(schedule(run).size)
        return _noise(run, _loss(params, run, every, _FLOOR) ** 1.5, at, "free")

    for _ in range(_ROUNDS):
        found = _fit(table, {run: noise(run, table.curve(run)[0]) for run in TRAIN})
        moved = max(abs(found[name] - value) / found[name] for name, value in params.items())
        params = found
        if moved < 1e-6:
            break
    at = {run: table.curve(run)[0] for run in TEST}
    return metrics(
        table, {run: _loss(params, run, at[run]) + params["b"] * noise(run, at[run]) for run in TEST}
    )


def metrics(table: RunTable, predicted: Mapping[str, Array]) -> dict[str, float]:
    """Means over the predicted curves of what ``CurveFit.score`` gives for each."""
    rows = [curve_metrics(table.curve(run)[1], loss) for run, loss in predicted.items()]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _sums(run: str, floor: float = _FLOOR) -> Array:
    return np.asarray(np.maximum(np.cumsum(schedule(run)), floor))


def _noise(run: str, norm: Array, at: NDArray[np.int64], form: str) -> Array:
    """Noise sum of the bound at the losses before the updates ``at``: twice the bound of distance 0."""
    return 2 * li.curve(schedule(run), norm, distance=0.0, form=form, at=at - 1)


def _loss(params: dict[str, float], run: str, at: NDArray[np.int64], floor: float = 0.0) -> Array:
    return np.asarray(params["Linf"] + params["a"] * _sums(run, floor)[at] ** -params["alpha"])


def _fit(table: RunTable, noise: dict[str, Array]) -> dict[str, float]:
    S = np.concatenate([_sums(run)[table.curve(run)[0]] for run in TRAIN])
    loss = np.concatenate([table.curve(run)[1] for run in TRAIN])
    sums = np.concatenate([noise[run] for run in TRAIN])

    def columns(theta: Array) -> tuple[Array, Array]:
        power = S ** -float(theta[0])
        slope = np.zeros((S.size, 3, 1))
        slope[:, 1, 0] = -np.log(S) * power
        return np.column_stack([np.ones(S.size), power, sums]), slope

    return solve(Problem(columns, loss, ("Linf", "a", "b"), CVX4q.nonlinear, np.ones(S.size))).params
