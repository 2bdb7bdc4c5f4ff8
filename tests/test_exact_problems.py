"""Problems with known constants: their numbers against brute force, simulated gaps against the bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize, minimize_scalar

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.descent import descend, expected_descent
from convexlaw.simulations.problems import (
    LogisticRegression,
    MaxOfAffine,
    Problem,
    Quadratic,
    noise_dominated_quadratic,
    power_law_quadratic,
    random_logistic_regression,
    random_max_of_affine,
)
from convexlaw.theory import schedules


def problems() -> dict[str, Problem]:
    rng = np.random.default_rng(0)
    return {
        "quadratic": power_law_quadratic(7, sigma=0.8),
        "noise dominated": noise_dominated_quadratic(9, condition=50, sigma=3.0),
        "logistic": random_logistic_regression(40, 5, rng),
        "max of affine": random_max_of_affine(8, 5, rng, active=5, noise=0.5),
    }


@pytest.mark.parametrize("name", list(problems()))
def test_gradients_have_the_stated_mean_and_second_moment(name: str):
    problem = problems()[name]
    rng = np.random.default_rng(1)
    point = problem.start + 0.3 * rng.standard_normal(problem.start.size)
    many = np.tile(point, (20_000, 1))
    for batch in (1, 4):
        drawn = problem.gradient(many, batch, rng)
        error = drawn.std(axis=0) / np.sqrt(len(many))
        h = 1e-6
        slope = [
            (problem.gap((point + e)[None])[0] - problem.gap((point - e)[None])[0]) / (2 * h)
            for e in h * np.eye(point.size)
        ]
        assert np.all(np.abs(drawn.mean(axis=0) - slope) <= 4.5 * error + 1e-8)
        squares = np.sum(drawn**2, axis=1)
        told = problem.second_moment(point[None], batch)[0]
        assert abs(squares.mean() - told) <= 4.5 * squares.std() / np.sqrt(len(many)) + 1e-12


def test_logistic_minimum_is_that_of_a_general_minimiser():
    problem = random_logistic_regression(60, 6, np.random.default_rng(2))

    def value(w: np.ndarray) -> float:
        margins = problem.features @ w * problem.signs
        return float(np.log1p(np.exp(-margins)).mean() + 0.5 * problem.ridge * w @ w)

    found = minimize(value, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(problem.minimiser, found.x, atol=1e-6)
    assert problem.distance == pytest.approx(np.linalg.norm(found.x), rel=1e-6)
    point = np.arange(6.0)
    assert problem.gap(point[None])[0] == pytest.approx(value(point) - found.fun, rel=1e-8)


def test_max_of_affine_minimum_is_that_of_a_linear_programme():
    for seed in range(10):
        problem = random_max_of_affine(9, 4, np.random.default_rng(seed), active=4)
        costs = np.append(np.zeros(4), 1.0)
        solved = linprog(
            costs,
            A_ub=np.column_stack([problem.slopes, -np.ones(9)]),
            b_ub=-problem.offsets,
            bounds=(None, None),
        )
        assert solved.status == 0
        assert solved.fun == pytest.approx(problem.offsets.max(), abs=1e-9)
        assert problem.gap(np.zeros((1, 4)))[0] == 0.0


def test_exact_expectation_agrees_with_simulation():
    problem = power_law_quadratic(20, sigma=0.7)
    lr = schedules.parse("wsd:steps=60,peak=0.5,decay=0.3,warmup=5")
    batch = np.repeat([1, 2, 4], 20)
    exact = expected_descent(problem, lr, batch)
    drawn = descend(problem, lr, batch, replicas=4000, seed=3)
    assert np.all(np.abs(drawn.gap - exact.gap) <= 4.5 * drawn.error + 1e-12)
    np.testing.assert_allclose(drawn.grad_norm, exact.grad_norm, rtol=0.02)
    assert exact.error.max() == 0
    assert exact.to_frame()["batch_size"].tolist()[:-1] == batch.tolist()


def test_no_simulated_gap_is_above_a_bound_on_200_random_problems():
    rng = np.random.default_rng(5)
    shapes = ["constant", "linear", "cosine", "wsd", "one_minus_sqrt"]
    largest = {"free": 0.0, "tight": 0.0}
    for trial in range(200):
        steps = int(rng.integers(5, 60))
        peak = float(10 ** rng.uniform(-2, 0.3))
        lr = schedules.make(shapes[trial % 5], steps=steps, peak=peak)
        batch = rng.integers(1, 9, size=steps) if trial % 3 else 1
        kind, d = trial % 4, int(rng.integers(2, 8))
        problem: Problem
        if kind == 0:
            problem = random_max_of_affine(int(rng.integers(3, 20)), d, rng)
        elif kind == 1:
            problem = random_max_of_affine(6, d, rng, active=4, noise=float(rng.uniform(0, 2)))
        elif kind == 2:
            problem = random_logistic_regression(25, d, rng, ridge=float(10 ** rng.uniform(-3, -1)))
        else:
            problem = power_law_quadratic(
                d, curvature=float(rng.uniform(0, 2)), sigma=float(rng.uniform(0, 2))
            )
        run = (
            expected_descent(problem, lr, batch)
            if isinstance(problem, Quadratic)
            else descend(problem, lr, batch, replicas=1 if kind == 0 else 400, seed=trial)
        )
        for form in largest:
            ratio = run.gap[-1] / run.bound(form)
            largest[form] = max(largest[form], ratio)
            assert ratio <= 1, (trial, form)
    assert largest["tight"] > 0.3  # the comparison is not vacuous
    assert largest["free"] < largest["tight"]


def optimal_batch(lr: np.ndarray, samples: float) -> np.ndarray:
    tail = np.append(np.cumsum(lr[::-1])[-2::-1], lr[-1])
    weight = lr / np.sqrt(tail)
    return samples * weight / weight.sum()


def best_gap(problem: Quadratic, shape: np.ndarray, batch: np.ndarray) -> float:
    found = minimize_scalar(
        lambda log_peak: expected_descent(problem, np.exp(log_peak) * shape, batch).gap[-1],
        bounds=(-7, 0.6), method="bounded",
    )  # fmt: skip
    return float(found.fun)


def test_under_its_optimal_batches_every_shape_is_equally_good_where_noise_dominates():
    problem = noise_dominated_quadratic(200, condition=1e5, sigma=1.0)
    steps, samples = 1000, 10_000
    shapes = {
        "constant": schedules.constant(steps, 1.0), "linear": schedules.linear(steps, 1.0),
        "cosine": schedules.cosine(steps, 1.0), "wsd": schedules.wsd(steps, 1.0),
    }  # fmt: skip
    best = {name: best_gap(problem, h, optimal_batch(h, samples)) for name, h in shapes.items()}
    values = np.array(list(best.values()))
    assert values.max() / values.min() < 1.015
    static = {name: best_gap(problem, h, np.full(steps, samples / steps)) for name, h in shapes.items()}
    gain = {name: 1 - best[name] / static[name] for name in shapes}
    assert abs(gain["linear"]) < 0.005  # static is optimal for linear decay
    assert gain["constant"] > 0.1
    assert gain["constant"] > gain["wsd"] > 0.02


def test_growing_the_batch_acts_as_lowering_the_rate_where_noise_dominates():
    """Equal lr/B in sample time gives equal losses (Section 6.3)."""
    problem = noise_dominated_quadratic(200, condition=1e4, sigma=20.0)
    samples, halves = 4000, 2
    slow = np.repeat([0.02, 0.01], samples // halves)
    decayed = expected_descent(problem, slow, 1.0)
    grown = expected_descent(
        problem, np.full(samples // 2 + samples // 4, 0.02), np.repeat([1, 2], [2000, 1000])
    )
    kept = expected_descent(problem, np.full(samples, 0.02), 1.0)
    assert grown.gap[-1] == pytest.approx(decayed.gap[-1], rel=0.02)
    assert kept.gap[-1] > 1.2 * decayed.gap[-1]


def test_bad_input_is_refused():
    with pytest.raises(ConvexlawError, match="batch has shape"):
        expected_descent(power_law_quadratic(3), [0.1, 0.1], [1.0])
    with pytest.raises(ConvexlawError, match="are whole"):
        descend(power_law_quadratic(3), [0.1], 1.5)
    with pytest.raises(ConvexlawError, match="finite learning rate"):
        descend(power_law_quadratic(3), [-0.1])
    with pytest.raises(ConvexlawError, match="active = 1 of 5"):
        random_max_of_affine(5, 2, np.random.default_rng(0), active=1)
    with pytest.raises(ConvexlawError, match="ridge = 0"):
        LogisticRegression(np.ones((2, 1)), np.array([1.0, 1.0]), 0.0)
    with pytest.raises(ConvexlawError, match="curvature > 0"):
        Quadratic(np.array([0.0]), np.array([1.0]), np.array([1.0]))
    with pytest.raises(ConvexlawError, match="dimension = 0"):
        power_law_quadratic(0)
    with pytest.raises(ConvexlawError, match="condition = 1"):
        noise_dominated_quadratic(3, condition=1.0)
    assert isinstance(random_max_of_affine(3, 2, np.random.default_rng(0)), MaxOfAffine)
