"""What a fit keeps beside its numbers: its problem, the range of its data, results computed so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fit_data import Constants, Prepared, RunData
from convexlaw.solvers.fit import Problem, Solution, solve

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ranges:
    """Extremes of the fitted runs: what 4x extrapolation is measured against.

    ``steps``: longest run; ``total``: largest sum of learning rates; ``peaks``, ``batches``: smallest and
    largest (batches are None where the fitted runs log none).
    """

    steps: int
    total: float
    peaks: tuple[float, float]
    batches: tuple[float, float] | None

    @staticmethod
    def of(runs: list[RunData]) -> Ranges:
        """Ranges of some runs."""
        peaks = [float(run.lr.max()) for run in runs]
        sizes = [run.batch for run in runs if run.batch is not None]
        return Ranges(
            steps=max(run.lr.size for run in runs),
            total=max(float(run.lr.sum()) for run in runs),
            peaks=(min(peaks), max(peaks)),
            batches=(min(float(b.min()) for b in sizes), max(float(b.max()) for b in sizes))
            if sizes
            else None,
        )


def refit(
    problem: Problem,
    paper: bool,
    y: Array | None = None,
    weights: Array | None = None,
    start: dict[str, float] | None = None,
) -> Solution:
    """Solve a problem again on other losses or weights, by the protocol of the fit."""
    changed = replace(
        problem, y=problem.y if y is None else y, weights=problem.weights if weights is None else weights
    )
    if paper:
        return least_squares(changed)
    return solve(changed, polish=1, start=start)


def least_squares(problem: Problem) -> Solution:
    """Non-negative least squares of the loss on the columns: the papers' protocol."""
    from scipy.optimize import nnls

    X, _ = problem.columns(np.empty(0))
    root = np.sqrt(problem.weights)
    scale = np.abs(X).mean(axis=0)
    if not np.all(np.isfinite(X)):
        raise ConvexlawError(
            "the bound is infinite on some rows (losses before the first positive learning rate?)"
        )
    c, norm = nnls(X / scale * root[:, None], problem.y * root)
    params = {n: float(v) for n, v in zip(problem.linear, c / scale, strict=True)}
    value = 0.5 * float(norm) ** 2
    return Solution(params, value, value, 0.0, True, 1, 1, 1)


@dataclass
class FitState:
    """State shared by the methods of one CurveFit."""

    solution: Solution
    constants: Constants
    skip: int
    batch: bool
    alpha_prior: bool
    fixed: dict[str, float]
    ranges: Ranges
    last_value: float
    weight_decay: float | None
    init_std: float
    rows: tuple[int, ...] = ()  # fitted rows of each run
    problem: Problem | None = None
    prepared: Prepared | None = None
    data: tuple[RunData, ...] | None = None
    observed: dict[str, dict[str, Array]] = field(
        default_factory=dict
    )  # run -> step, loss, predicted, lr (of a saved fit)
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    draws: dict[str, Array] = field(default_factory=dict)
    identifiability: Any = None

    def needs_data(self, what: str) -> tuple[Problem, Prepared]:
        """Return the problem and its rows, or say why they are not here."""
        if self.problem is None or self.prepared is None:
            raise ConvexlawError(
                f"this fit was loaded from a file, which holds no logs, and {what} needs them: "
                "compute it before .to_json, or fit the logs again"
            )
        return self.problem, self.prepared
