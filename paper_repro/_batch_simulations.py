"""Batch schedules, weight decay and matched paths on problems whose loss gap is known exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.simulations.descent import expected_descent
from convexlaw.simulations.problems import (
    Quadratic,
    noise_dominated_quadratic,
    power_law_quadratic,
    random_logistic_regression,
)
from convexlaw.theory.batch import noise_scale, optimal_batch_sizes
from convexlaw.theory.schedules import constant, cosine, linear, wsd

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SHAPES",
    "best_loss",
    "decayed_exponent",
    "eta_over_batch",
    "gains",
    "matched_paths",
    "same_optimum",
    "sampled_gradients",
]

Shape = Callable[[int, float], Any]

SHAPES: dict[str, Shape] = {"constant": constant, "WSD 20 %": wsd, "cosine": cosine, "linear": linear}


def best_loss(problem: Quadratic, shape: Shape, steps: int, scheduled: bool) -> float:
    """Loss gap at the best peak, one sample a step on average, static or optimal batch schedule."""
    grid = np.geomspace(1e-3, 1.9, 20)
    found = []
    for peak in grid:
        lr = shape(steps, float(peak))
        batch = optimal_batch_sizes(lr, steps, min_batch=1e-3, integer=False) if scheduled else 1.0
        found.append(float(expected_descent(problem, lr, batch).gap[-1]))
    i = int(np.clip(np.argmin(found), 1, len(found) - 2))
    a, b, c = np.polyfit(np.log(grid[i - 1 : i + 2]), found[i - 1 : i + 2], 2)
    return float(c - b * b / (4 * a))


def gains(steps: int) -> pd.DataFrame:
    """Percent less loss by the optimal batch schedule, each at its best peak, at two noise levels."""
    import pandas as pd

    rows = []
    for sigma in (0.15, 0.3):
        problem = power_law_quadratic(300, curvature=1.5, sigma=sigma)
        for name, shape in SHAPES.items():
            static, scheduled = (best_loss(problem, shape, steps, s) for s in (False, True))
            rows.append((sigma, name, static, scheduled, 100 * (1 - scheduled / static)))
    return pd.DataFrame(rows, columns=["sigma", "shape", "static", "scheduled", "gain_percent"])


def same_optimum(steps: int) -> dict[str, float]:
    """Best loss of each shape with its optimal batch schedule, noise-dominated quadratic."""
    problem = noise_dominated_quadratic(200, condition=1e4, sigma=3.0)
    return {name: best_loss(problem, shape, steps, True) for name, shape in SHAPES.items()}


def decayed_exponent(decay: Callable[[int], float], horizons: tuple[int, int]) -> float:
    """Exponent in T of the bound on L(w_T) - L* under a weight decay kappa: regularised gap + kappa W²/2.

    Weight decay is descent on L + kappa |w|²/2, whose minimiser is h x/(h + kappa) in each direction.
    """
    plain = power_law_quadratic(200, curvature=1.5, sigma=0.3)
    h, x = plain.curvature, plain.start
    bounds = []
    for steps in horizons:
        kappa = decay(steps)
        problem = Quadratic(h + kappa, h * x / (h + kappa), plain.noise)
        run = expected_descent(problem, linear(steps, 2.0 / np.sqrt(steps)))
        bounds.append(float(run.gap[-1]) + 0.5 * kappa * float(x @ x))
    return float(np.log(bounds[1] / bounds[0]) / np.log(horizons[1] / horizons[0]))


def eta_over_batch(shape: Shape, steps: int) -> tuple[Any, Any, Any, Any]:
    """Rates and batches of the eta/B test: a decay to a floor of .1, and its harmonic mean with batches."""
    lr = shape(steps, 1.0)
    lr = 0.1 + 0.9 * lr
    mean = steps / np.sum(1 / lr)
    return lr, np.ones(steps), np.full(steps, mean), mean / lr


def matched_paths() -> float:
    """Largest relative difference of the loss of two runs with the same B/eta at the same sum of rates."""
    problem = power_law_quadratic(300, curvature=1.5, sigma=0.3)
    fast = np.full(800, 0.02)
    slow = np.concatenate([fast[:400], np.full(800, 0.01)])
    ratio = 50.0  # B/eta
    a = expected_descent(problem, fast, ratio * fast).gap[400:801:8]
    b = expected_descent(problem, slow, ratio * slow).gap[400:1201:16]
    return float(np.abs(b / a - 1).max())


def sampled_gradients(count: int) -> dict[str, tuple[float, float]]:
    """Mean and standard error of two differences that are 0 in expectation: E|g|^2, and the noise scale."""
    rng = np.random.default_rng(21)
    problem = random_logistic_regression(400, 10, rng)
    points = np.tile(problem.start, (count, 1))
    small, big = (np.sum(problem.gradient(points, b, rng) ** 2, axis=1) for b in (8, 64))
    moment = small - problem.second_moment(problem.start[None], 8)[0]
    one, many = (float(problem.second_moment(problem.start[None], b)[0]) for b in (1.0, np.inf))
    noise = noise_scale(8, 64, small, big)[1] - (one - many)
    found = {}
    for name, values in (("moment", moment), ("noise", noise)):
        found[name] = (float(values.mean()), float(values.std(ddof=1) / np.sqrt(count)))
    return found
