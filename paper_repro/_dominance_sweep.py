"""What the public sweep and quadratics say of claims whose own training runs are not public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.paper_repro._sweep_data import best_peak
from convexlaw.simulations.descent import expected_descent
from convexlaw.simulations.problems import noise_dominated_quadratic
from convexlaw.theory.schedules import linear

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["measure_sweep", "rate_exponents", "square_r"]

_REFS = (0.15, 0.3, 0.6)


def square_r(seen: Any, fitted: Any) -> float:
    """R² of fitted values."""
    return 1 - float(np.sum((seen - fitted) ** 2) / np.sum((seen - np.mean(seen)) ** 2))


def measure_sweep(sweep: pd.DataFrame) -> dict[str, Any]:
    """Best eta sqrt(T) by horizon, lines in 1/sqrt(T) at fixed eta sqrt(T), and the final-loss law (4.1).

    ``sweep`` has steps, peak and loss of one shape.
    """
    horizons = sorted(sweep.steps.unique())
    cells = [sweep[sweep.steps == steps].groupby("peak").loss.mean() for steps in horizons]
    refs = [best_peak(sweep[sweep.steps == steps]) * float(np.sqrt(steps)) for steps in horizons]
    x = np.array(horizons, dtype=float) ** -0.5
    lines = []
    for ref in _REFS:
        at = np.array([_at_peak(cell, ref * root) for cell, root in zip(cells, x, strict=True)])
        lines.append(square_r(at, np.polyval(np.polyfit(x, at, 1), x)))
    rate, steps = sweep.peak.to_numpy(), sweep.steps.to_numpy()
    X = np.column_stack([np.ones(rate.size), 1 / (steps * rate), rate])
    loss = sweep.loss.to_numpy()
    fitted = X @ np.linalg.lstsq(X, loss, rcond=None)[0]
    return {"horizons": horizons, "refs": refs, "lines": lines, "final_r2": square_r(loss, fitted)}


def _at_peak(cell: pd.Series, peak: float) -> float:
    """Loss at a peak: the parabola in log peak through the three nearest learning rates."""
    x, y = np.log(cell.index.to_numpy(dtype=float)), cell.to_numpy()
    near = np.argsort(np.abs(x - np.log(peak)))[:3]
    return float(np.polyval(np.polyfit(x[near], y[near], 2), np.log(peak)))


def rate_exponents(batches: tuple[int, ...] = (1, 4, 16)) -> NDArray[np.float64]:
    """Exponent of the final gap in T, peak eta_ref/sqrt(T), on a noise-dominated quadratic, by batch size."""
    problem = noise_dominated_quadratic(sigma=3.0)
    horizons, out = (400, 1600, 6400), []
    for batch in batches:
        gaps = [expected_descent(problem, linear(t, 3 / np.sqrt(t)), batch).gap[-1] for t in horizons]
        out.append(np.polyfit(np.log(horizons), np.log(gaps), 1)[0])
    return np.array(out)
