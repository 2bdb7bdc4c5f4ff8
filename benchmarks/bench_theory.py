"""How fast the theory of selection is computed, and how many products with X message passing needs.

``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/bench_theory.py [--quick]``
prints Markdown tables. Times are process CPU seconds on one core, warm (compiled code loaded), the median of
the repeats; some stand beside a plain way to compute the same numbers, measured in the same run.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import ndtr

from convexlaw.simulations.linear_model import design_matrix
from convexlaw.solvers._first_order import proximal_descent
from convexlaw.solvers.amp import amp_slope
from convexlaw.solvers.path import slope_path
from convexlaw.theory import designs, tradeoff
from convexlaw.theory.scalar_limit import BH, Gaussian, Lasso, Oscar, Prior, TwoLevel
from convexlaw.theory.sorted_l1 import bh_sequence, dual_sorted_l1_norm, prox_sorted_l1
from convexlaw.theory.state_evolution import calibrate, solve

BG = Prior.bernoulli_gaussian(0.1)


def cpu(run: Callable[[], object], repeats: int) -> float:
    """Median process CPU seconds of ``run``, after one warm-up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return statistics.median(times)


def plain_lower_error(a: float, u: float, epsilon: float, dz: float = 0.01) -> float:
    """One evaluation of the error of a single-size design on a grid: what a script does at each threshold."""
    lows, highs = 0.0, a + 9.0
    for _ in range(60):
        t = 0.5 * (lows + highs)
        lows, highs = (t, highs) if ndtr(t - a) + ndtr(-t - a) < u else (lows, t)
    z = np.arange(a, max(a, t) + 9.0, dz)
    phi = lambda x: np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)  # noqa: E731
    survival = 2 * (1 - epsilon) * ndtr(-z) + epsilon * (ndtr(t - z) + ndtr(-t - z))
    density = 2 * (1 - epsilon) * phi(z) + epsilon * (phi(z - t) + phi(z + t))
    mass, rise = np.maximum(-np.diff(survival), 1e-300), np.diff(density)
    best = np.maximum(isotonic_regression(-rise / mass, weights=mass).x, a)
    noise = ndtr(t - a) + (a - t) * phi(a - t) + ndtr(-t - a) + (a + t) * phi(a + t)
    head = 2 * (1 - epsilon) * (ndtr(-a) + a * phi(a)) + epsilon * (t * t * (1 - u) + noise)
    return float(head + (best**2 * mass + 2 * best * rise).sum())


def monte_carlo_tau(shape: BH | TwoLevel, p: int = 20_000, steps: int = 30) -> float:
    """State evolution by sampling: the fixed point of one random draw of p coordinates."""
    rng = np.random.default_rng(0)
    beta, noise = BG.sample(p, rng), rng.standard_normal(p)
    weights, tau = shape.weights(p), 0.5
    for _ in range(steps):
        error = prox_sorted_l1(beta + tau * noise, tau * weights) - beta
        tau = math.sqrt(0.04 + float((error**2).mean()) / 0.5)
    return tau


def theory_table(repeats: int) -> None:
    rows: list[tuple[str, float, str, str]] = []

    def curves() -> None:
        for kind in ("slope_lower", "slope_upper", "two_level"):
            tradeoff.tradeoff_curve(kind, 0.3, 0.2, 201)

    three = cpu(curves, repeats)
    # 201 points, about 15 thresholds each, on the grid: only a few are run
    grid = cpu(lambda: [plain_lower_error(1.0 + 0.01 * k, 0.6, 0.2) for k in range(30)], 1) / 30 * 201 * 15
    rows.append(
        (
            "q_*, q^*, two-level, 201 points together",
            three,
            "< 2 s, aim .5 s",
            f"grid of .01 for q_* alone {grid:.1f} s (extrapolated)",
        )
    )
    for name, shape, goal in (
        ("one state evolution, Lasso", Lasso(1.5), ""),
        ("one state evolution, two levels", TwoLevel(1.8, 1.0, 0.25), "< 5 ms"),
        ("one state evolution, BH", BH(1.0, 0.2), "< 50 ms"),
        ("one state evolution, OSCAR", Oscar(0.8, 1.2), ""),
        ("one state evolution, Gaussian", Gaussian(0.9, 0.2, 0.5), ""),
    ):
        spent = cpu(lambda s=shape: solve(BG, s, 0.5, 0.2), repeats)
        other = ""
        if isinstance(shape, BH | TwoLevel):
            sampled = cpu(lambda s=shape: monte_carlo_tau(s), 1)
            error = abs(monte_carlo_tau(shape) / solve(BG, shape, 0.5, 0.2).tau - 1)
            other = f"30 steps with 20000 samples {1e3 * sampled:.0f} ms, off by {error:.0e}"
        rows.append((name, spent, goal, other))
    sizes = np.geomspace(0.05, 1.0, 100)
    for name, unit in (
        ("Lasso", Lasso(1.0)),
        ("two levels", TwoLevel(2.0, 1.0, 0.25)),
        ("BH", BH(1.0, 0.2)),
    ):
        spent = cpu(
            lambda s=unit: [calibrate(BG, s.scaled(k), 0.5, 0.2) for k in sizes], max(1, repeats // 3)
        )
        rows.append((f"100 calibrations, {name}", spent, "< 2 s", ""))
    law = Prior.parse("1:0.5")
    for name, find in (
        ("optimal Lasso", designs.optimal_lasso),
        ("optimal two-level SLOPE", designs.optimal_two_level),
        ("optimal SLOPE", designs.optimal_slope),
    ):
        rows.append((name, cpu(lambda f=find: f(law, 0.5, 0.2), repeats), "", ""))
    rows.append(
        (
            "rows needed (one aim, two-level)",
            cpu(lambda: tradeoff.rows_needed(0.7, 0.4, 0.2), repeats),
            "",
            "",
        )
    )
    print("| task | CPU | goal | a plain way |")
    print("|---|---|---|---|")
    for name, spent, goal, other in rows:
        shown = f"{spent:.3f} s" if spent >= 0.5 else f"{1e3 * spent:.2f} ms"
        print(f"| {name} | {shown} | {goal} | {other} |")
    print()


def message_passing_table(seeds: int) -> None:
    """n = 2000, p = 4000, half of alpha_max, BH q = .1, 100 signals of size 1, SNR 2, gap 1e-6 of the null."""
    counts, spent = [], {"AMP": [], "FISTA": [], "solver": []}
    for seed in range(seeds + 1):
        rng = np.random.default_rng(seed)
        X = design_matrix("gaussian", 2000, 4000, rng)
        beta = np.zeros(4000)
        beta[rng.choice(4000, 100, replace=False)] = rng.choice([-1.0, 1.0], 100)
        signal = X @ beta
        y = signal + math.sqrt(signal.var() / 2) * rng.standard_normal(2000)
        lam = bh_sequence(4000, 0.1)
        lam = 0.5 * dual_sorted_l1_norm(X.T @ y, lam) * lam
        times = {}
        start = time.process_time()
        ours = amp_slope(X, y, lam=lam, tol=1e-6)
        times["AMP"] = time.process_time() - start
        start = time.process_time()
        plain = amp_slope(X, y, lam=lam, tol=1e-6, polish=False)
        start = time.process_time()
        theirs = proximal_descent(X, y, lam, tol=1e-6)
        times["FISTA"] = time.process_time() - start
        start = time.process_time()
        slope_path(X, y, alphas=[1 / 2000], lam=lam, fit_intercept=False, tol=1e-6)
        times["solver"] = time.process_time() - start
        if seed == 0:
            continue  # compiles
        counts.append((ours.n_products, plain.n_products, theirs.n_products))
        for name, value in times.items():
            spent[name].append(value)
    table = np.array(counts)
    print("| method | products with X or X' (each seed) | ratio to AMP | CPU, median |")
    print("|---|---|---|---|")
    names = ("SLOPE-AMP, exact finish", "SLOPE-AMP alone", "FISTA with restarts")
    medians = (statistics.median(spent["AMP"]), None, statistics.median(spent["FISTA"]))
    for j, (name, seconds) in enumerate(zip(names, medians, strict=True)):
        ratio = (table[:, j] / table[:, 0]).mean()
        shown = "" if seconds is None else f"{1e3 * seconds:.0f} ms"
        print(f"| {name} | {', '.join(map(str, table[:, j]))} | {ratio:.2f} | {shown} |")
    print(
        f"| SLOPE solver (`slope_path`, one alpha) | | | {1e3 * statistics.median(spent['solver']):.0f} ms |"
    )
    print("\nFISTA's 30 products for its step size (power iterations) are not counted, its time is.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and seeds")
    quick = parser.parse_args().quick
    theory_table(3 if quick else 9)
    message_passing_table(2 if quick else 8)


if __name__ == "__main__":
    main()
