"""Budgets that are not samples: wall clock, roofline and any cost, by Lemma 4."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from convexlaw.errors import ConvexlawError
from convexlaw.theory import batch, schedules

UNIT = 64.0  # the solver sees batch sizes in units of it: its tolerances are absolute
LR = schedules.with_warmup(schedules.wsd(40, 1e-3), 5)


def coefficients(lr):
    last = np.flatnonzero(lr > 0)[-1]
    return np.array(
        [0.0 if e == 0 else (e if t == last else e * e / lr[t + 1 :].sum()) for t, e in enumerate(lr)]
    )


COSTS = {
    "wall clock": (batch.WallClock(20.0, 0.5), lambda b: 20.0 + 0.5 * b, 2500.0),
    "roofline": (batch.Roofline(30.0, 0.5), lambda b: cp.maximum(30.0, 0.5 * b), 3000.0),
    "quadratic": (lambda b: b + 0.01 * b**2, lambda b: b + 0.01 * UNIT**2 * cp.square(b / UNIT), 6000.0),
    "a kink": (
        lambda b: np.maximum(b, 3 * b - 120),
        lambda b: cp.maximum(b, 3 * b - 120),
        3000.0,
    ),
}


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("name", COSTS)
def test_a_convex_solver_finds_nothing_better(name, limited):
    cost, expression, budget = COSTS[name]
    c = coefficients(LR)
    low, high = (40.0, 110.0) if limited else (1.0, None)
    if limited:
        budget = 1900.0 if name == "roofline" else 2500.0
    found = batch.plan(LR, budget, cost=cost, min_batch=low, max_batch=high, integer=False)
    assert found.spent == pytest.approx(budget, rel=1e-9)
    x = cp.Variable(LR.size)
    b = UNIT * x
    rules = [cp.sum(expression(b)) / budget <= 1, x >= low / UNIT]
    if limited:
        rules.append(x <= high / UNIT)
        assert found.batch.min() >= low * (1 - 1e-12)
        assert found.batch.max() <= high * (1 + 1e-12)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(c / c.max(), cp.inv_pos(x)))), rules)
    problem.solve(solver=cp.CLARABEL)
    assert UNIT * found.noise / c.max() == pytest.approx(problem.value, rel=2e-6)


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_power_costs_have_a_closed_form(power):
    # f = B^p: x^2 f' = p x^(p+1), so B ~ c^(1/(p+1))
    c = coefficients(LR)
    budget = float((64.0**power) * LR.size)
    found = batch.plan(LR, budget, cost=lambda b: b**power, min_batch=1e-3, integer=False)
    want = c ** (1 / (power + 1))
    want *= (budget / (want**power).sum()) ** (1 / power)
    np.testing.assert_allclose(found.batch, want, rtol=1e-5)


def test_samples_are_the_cost_b():
    a = batch.plan(LR, 2560, integer=False)
    b = batch.plan(LR, 2560, integer=False, cost=lambda x: x)
    np.testing.assert_allclose(b.batch, a.batch, rtol=1e-6)
    assert b.static_batch == pytest.approx(64.0)
    assert b.gain == pytest.approx(a.gain, rel=1e-9)


def test_overhead_is_a_smaller_budget_of_samples():
    clock = batch.WallClock(3.0, 0.01)
    found = batch.plan(LR, 40 * 3.0 + 25.6, cost=clock)
    np.testing.assert_array_equal(found.batch, batch.optimal_batch_sizes(LR, 2560))
    assert found.spent == pytest.approx(40 * 3.0 + 25.6)


def test_a_full_device_is_the_smallest_batch_of_a_roofline():
    found = batch.plan(LR, 40 * 32.0, cost=batch.Roofline(30.0, 0.5), integer=False)
    assert found.batch.min() == pytest.approx(60.0)
    flat = batch.plan(LR, 40 * 30.0, cost=batch.Roofline(30.0, 0.5))
    assert set(flat.batch.tolist()) == {60}


@pytest.mark.parametrize("name", ["roofline", "quadratic", "a kink"])
def test_whole_batches_stay_within_the_budget_and_near_the_optimum(name):
    cost, _, budget = COSTS[name]
    found = batch.plan(LR, budget, cost=cost, multiple_of=2, min_batch=2)
    assert (found.batch % 2 == 0).all()
    assert 0 <= found.unused
    assert float(np.sum(cost(found.batch.astype(float)))) <= budget * (1 + 1e-12)
    assert found.ideal_noise <= found.noise <= 1.01 * found.ideal_noise


def test_zero_rate_steps_pay_for_the_smallest_batch():
    lr = np.concatenate([[0.0, 0.0], LR])
    cost = COSTS["quadratic"][0]
    found = batch.plan(lr, 6000.0, cost=cost, integer=False)
    inner = batch.plan(LR, 6000.0 - 2 * 1.01, cost=cost, integer=False)
    np.testing.assert_allclose(found.batch[2:], inner.batch, rtol=1e-9)
    assert found.batch[:2].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: batch.plan(LR, 100.0, cost=batch.WallClock(3.0, 0.1)), "the budget 100 cannot"),
        (lambda: batch.plan(LR, 1e6, cost=batch.WallClock(3.0, 0.1), max_batch=10), "cost 124 to 160"),
        (lambda: batch.plan(LR, 100.0, cost=np.ones_like), "does not grow"),
        (lambda: batch.plan(LR, 200.0, cost=lambda b: b + 2 * np.sin(3 * b), max_batch=9), "must not fall"),
        (lambda: batch.plan(LR, 390.0, cost=lambda b: 10 - 9 / b**2, max_batch=50), "bends down too fast"),
        (lambda: batch.WallClock(-1.0, 1.0), "overhead = -1.0"),
        (lambda: batch.Roofline(1.0, 0.0), "per_sample = 0.0"),
    ],
)
def test_impossible_costs_are_named(call, said):
    with pytest.raises(ConvexlawError) as error:
        call()
    assert said in str(error.value)
