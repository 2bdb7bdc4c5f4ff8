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
from convexlaw.theory.last_iterate import curve
from convexlaw.theory.schedules import constant, cosine, linear, wsd

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SHAPES",
    "best_loss",
    "collapse",
    "decay_bias",
    "decayed_exponents",
    "eta_over_batch",
    "gains",
    "matched_paths",
    "normalised_paths",
    "same_optimum",
    "sampled_gradients",
    "sequence_fits",
]

Shape = Callable[[int, float], Any]

SHAPES: dict[str, Shape] = {"constant": constant, "WSD 20 %": wsd, "cosine": cosine, "linear": linear}


def best_loss(problem: Quadratic, shape: Shape, steps: int, scheduled: bool) -> float:
    """Loss gap at the best peak, one sample a step on average, static or optimal batch schedule."""
    from scipy.optimize import minimize_scalar

    unit = shape(steps, 1.0)
    batch = _batches(unit, scheduled)

    def loss(log_peak: float) -> float:
        return float(expected_descent(problem, np.exp(log_peak) * unit, batch).gap[-1])

    grid = np.log(np.geomspace(1e-3, 1.9, 8))
    i = int(np.clip(np.argmin([loss(x) for x in grid]), 1, grid.size - 2))
    found = minimize_scalar(
        loss, bounds=(grid[i - 1], grid[i + 1]), method="bounded", options={"xatol": 1e-3}
    )
    return float(found.fun)


def _batches(lr: Any, scheduled: bool) -> Any:
    """Optimal batch sizes of one sample a step on average, or 1."""
    return optimal_batch_sizes(lr, len(lr), min_batch=1e-3, integer=False) if scheduled else 1.0


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


def decayed_exponents(decay: Callable[[int], float], horizons: tuple[int, int]) -> list[float]:
    """Exponents in T of the bound on L(w_T) - L* under a weight decay kappa: regularised gap + kappa W²/2.

    Weight decay is descent on L + kappa |w|²/2, whose minimiser is h x/(h + kappa) in each direction. Cosine
    decay, static and optimal batch sizes.
    """
    plain = power_law_quadratic(200, curvature=1.5, sigma=0.3)
    h, x = plain.curvature, plain.start
    found = []
    for scheduled in (False, True):
        bounds = []
        for steps in horizons:
            kappa, lr = decay(steps), cosine(steps, 2.0 / np.sqrt(steps))
            problem = Quadratic(h + kappa, h * x / (h + kappa), plain.noise)
            run = expected_descent(problem, lr, _batches(lr, scheduled))
            bounds.append(float(run.gap[-1]) + 0.5 * kappa * float(x @ x))
        found.append(float(np.log(bounds[1] / bounds[0]) / np.log(horizons[1] / horizons[0])))
    return found


def decay_bias() -> float:
    """Largest rise of the minimum by weight decay over its bound kappa W²/2, minimised numerically."""
    from scipy.optimize import minimize

    plain = power_law_quadratic(30, curvature=1.5)
    h, x = plain.curvature, plain.start
    ratios = []
    for kappa in (0.01, 0.1, 1.0):

        def decayed(w: Any, kappa: float = kappa) -> tuple[float, Any]:
            value = 0.5 * h @ (w - x) ** 2 + 0.5 * kappa * w @ w
            return float(value), h * (w - x) + kappa * w

        rise = minimize(decayed, np.zeros(x.size), jac=True, method="L-BFGS-B").fun
        ratios.append(float(rise / (0.5 * kappa * x @ x)))
    return max(ratios)


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


def normalised_paths(replicas: int = 200) -> dict[str, float]:
    """Loss of normalised descent on a path matched in intrinsic time, over that of the original.

    A step of length eta along the gradient is one of eta sqrt(B)/sigma in pure noise. The second half is run
    at eta/2 with B/4 (B/eta² matched, 4 times the steps) or with B/2 (B/eta matched, 2 sqrt 2 times).
    """
    problem = noise_dominated_quadratic(60, condition=1e3, sigma=10.0)
    h, s = problem.curvature, problem.noise

    def run(points: Any, eta: float, batch: float, steps: int, rng: Any) -> Any:
        seen = []
        for _ in range(steps):
            g = points * h + rng.standard_normal(points.shape) * s / np.sqrt(batch)
            points = points - eta * g / np.linalg.norm(g, axis=1, keepdims=True)
            seen.append(problem.gap(points).mean())
        return points, np.array(seen)

    # steps of .02 in intrinsic time
    eta, batch, half = 0.04, 25.0, 150
    middle, _ = run(np.tile(problem.start, (replicas, 1)), eta, batch, half, np.random.default_rng(5))
    _, plain = run(middle, eta, batch, half, np.random.default_rng(6))
    found = {}
    for name, size, times in (("B/eta^2", batch / 4, 4.0), ("B/eta", batch / 2, 8**0.5)):
        _, path = run(middle, eta / 2, size, round(times * half), np.random.default_rng(7))
        # means over the last half of intrinsic time, where the new ratio has had its effect
        found[name] = float(path[path.size // 2 :].mean() / plain[half // 2 :].mean())
    return found


def collapse() -> tuple[float, float]:
    """Spread of normalised loss curves over sizes, in steps and in samples, optimal batches under WSD.

    Power-law quadratics of 100 to 400 directions, 10 steps a direction, peak proportional to T^-1/2.
    """
    at = np.linspace(0.1, 0.95, 18)
    curves: dict[str, list[Any]] = {"steps": [], "samples": []}
    for size in (100, 200, 400):
        steps = 10 * size
        lr = wsd(steps, 10.0 / np.sqrt(steps))
        batch = _batches(lr, True)
        gap = expected_descent(power_law_quadratic(size, sigma=0.3), lr, batch).gap
        used = np.concatenate([[0.0], np.cumsum(batch)]) / batch.sum()
        for clock, times in (("steps", np.linspace(0, 1, steps + 1)), ("samples", used)):
            curves[clock].append(np.interp(at, times, gap / gap[-1]))
    spread = [np.ptp(c, axis=0) / np.mean(c, axis=0) for c in curves.values()]
    return float(spread[0].max()), float(spread[1].max())


def sequence_fits() -> dict[str, Any]:
    """R² of least squares on the columns of (2.5), packaged runs of a small transformer after 100 updates.

    Returns
    -------
    dict
        ``one``: R² by run, each with its own constants; ``all``: the smaller R² of two seeds, one set of
        constants for all runs of a seed.
    """
    from convexlaw.simulations._evidence_data import logged, prolonged
    from convexlaw.simulations.evidence import EXPERIMENTS

    one: dict[str, float] = {}
    together = []
    for seed in (0, 1):
        parts = []
        for spec in EXPERIMENTS["joint"]:
            if spec.options.seed != seed:
                continue
            steps, loss = logged("joint", spec, after=100)
            lr, batch = prolonged(spec.lr()), prolonged(spec.batches())
            bias = curve(lr, 0.0, form="tail", at=steps - 1)
            noise = [curve(lr, g, form="tail", at=steps - 1) - bias for g in (1.0, batch**-0.5)]
            columns = np.column_stack([np.ones(steps.size), bias, *noise])
            parts.append((columns, loss))
            # at one batch size the two noise columns are proportional
            one[spec.name] = _r2(columns[:, : 3 if np.ptp(batch) == 0 else 4], loss)
        together.append(_r2(*(np.concatenate(x) for x in zip(*parts, strict=True))))
    return {"one": one, "all": min(together)}


def _r2(columns: Any, loss: Any) -> float:
    residual = loss - columns @ np.linalg.lstsq(columns, loss, rcond=None)[0]
    return float(1 - residual @ residual / np.sum((loss - loss.mean()) ** 2))


def sampled_gradients(count: int) -> dict[str, Any]:
    """E|g|² of sampled gradients against the formula, and the noise scale's G² and S against the truth.

    Returns
    -------
    dict
        ``moment``: mean difference and its standard error. ``noise``: mean estimates of G² and S, their
        standard errors, and the truth.
    """
    rng = np.random.default_rng(21)
    problem = random_logistic_regression(400, 10, rng)
    points = np.tile(problem.start, (count, 1))
    small, big = (np.sum(problem.gradient(points, b, rng) ** 2, axis=1) for b in (8, 64))
    moment = small - problem.second_moment(problem.start[None], 8)[0]
    one, many = (float(problem.second_moment(problem.start[None], b)[0]) for b in (1.0, np.inf))
    estimates = np.array(noise_scale(8, 64, small, big))
    error = estimates.std(axis=1, ddof=1) / np.sqrt(count)
    return {
        "moment": (float(moment.mean()), float(moment.std(ddof=1) / np.sqrt(count))),
        "noise": (estimates.mean(axis=1), error, np.array([many, one - many])),
    }
