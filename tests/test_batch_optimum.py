"""Optimal batch sizes against reference values, a convex solver, brute force, and the closed forms."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convexlaw.errors import ConvexlawError
from convexlaw.theory import batch, schedules


def golden_shape(name, steps):
    t = np.arange(1, steps + 1)
    if name.startswith("wsd:"):
        k = round((1 - float(name[4:])) * steps)
        return np.where(t <= k, 1.0, (steps + 1 - t) / (steps + 1 - k))
    w = max(round(0.1 * steps), 1)
    return {
        "constant": np.ones(steps),
        "linear": 1 - t / (steps + 1),
        "cosine": (1 + np.cos(np.pi * t / (steps + 1))) / 2,
        "one_minus_sqrt": 1 - np.sqrt(t / (steps + 1)),
        "warmup_cosine": np.where(t <= w, t / w, (1 + np.cos(np.pi * (t - w) / (steps + 1 - w))) / 2),
    }[name]


def coefficients(lr, sigma=1.0):
    """c_t by its definition, one sum a step."""
    lr = np.asarray(lr, dtype=float)
    last = np.flatnonzero(lr > 0)[-1]
    c = [0.0 if e == 0 else (e if t == last else e * e / lr[t + 1 :].sum()) for t, e in enumerate(lr)]
    return np.array(c) * np.broadcast_to(sigma, lr.shape) ** 2


@st.composite
def problems(draw, longest=30):
    size = draw(st.integers(1, longest))
    rates = st.one_of(st.just(0.0), st.floats(-4, 1).map(lambda x: 10.0**x))
    lr = np.array(draw(st.lists(rates, min_size=size, max_size=size)))
    lr[draw(st.integers(0, size - 1))] = 10.0 ** draw(st.floats(-3, 1))
    return lr


def test_reference_values(golden):
    rows = [r for r in golden("loss_laws_and_batches")["values"] if r["kind"] == "optimal_batch"]
    assert len(rows) == 8
    for row in rows:
        i, want = row["inputs"], row["expected"]
        lr = golden_shape(i["shape"], i["T"])
        found = batch.plan(lr, i["N"], min_batch=i["bmin"], max_batch=i["bmax"], integer=False)
        seen = [found.batch[t] for t in (0, 49, 89, 99)]
        expected = [want[f"B_t{t}"] for t in (1, 50, 90, 100)]
        np.testing.assert_allclose(seen, expected, rtol=row["tol"]["rel"], err_msg=row["id"])
        assert found.noise == pytest.approx(want["sum_c_over_B"], rel=row["tol"]["rel"])
        assert found.gain == pytest.approx(want["gain_vs_static"], rel=row["tol"]["rel"])
        assert found.spent == pytest.approx(i["N"], rel=1e-12)


def test_reference_integers(golden):
    rows = [r for r in golden("loss_laws_and_batches")["values"] if r["kind"] == "integer_batch"]
    assert len(rows) == 2
    for row in rows:
        i, want = row["inputs"], row["expected"]
        lr = golden_shape(i["shape"], i["T"])
        found = batch.optimal_batch_sizes(
            lr, i["N"], min_batch=i["bmin"], max_batch=i["bmax"], multiple_of=i["multiple"]
        )
        # several vectors may be optimal: the objective decides
        assert batch.noise_sum(lr, found) == pytest.approx(want["sum_c_over_B"], rel=1e-11)
        assert batch.noise_sum(lr, want["B"]) == pytest.approx(batch.noise_sum(lr, found), rel=1e-13)
        assert found.sum() == i["N"]


@settings(deadline=None, max_examples=30)
@given(problems(), st.floats(0.1, 0.9), st.booleans(), st.booleans())
def test_a_convex_solver_finds_nothing_better(lr, where, capped, profiled):
    moving = lr > 0
    low, high = 3.0, (50.0 if capped else None)
    sigma = np.linspace(0.5, 2.0, lr.size) if profiled else None
    most = 50.0 if capped else 400.0
    samples = low * lr.size + where * (most - low) * moving.sum()
    found = batch.plan(lr, samples, min_batch=low, max_batch=high, integer=False, sigma=sigma)
    c = coefficients(lr, 1.0 if sigma is None else sigma)
    assert found.spent == pytest.approx(samples, rel=1e-10)
    assert found.batch.min() >= low - 1e-12
    assert (found.batch[~moving] == low).all()
    # in units of the mean batch, objective near 1: the solver's tolerances are absolute
    mean = samples / lr.size
    b = cp.Variable(lr.size)
    rules = [cp.sum(b) == lr.size, b >= low / mean]
    if not moving.all():
        rules.append(b[~moving] == low / mean)
    if capped:
        rules.append(b <= 50.0 / mean)
        assert found.batch.max() <= 50.0 + 1e-9
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(c / c.mean(), cp.inv_pos(b)))), rules)
    problem.solve(solver=cp.CLARABEL)
    assert mean * found.noise / c.mean() == pytest.approx(problem.value, rel=1e-6)


@settings(deadline=None, max_examples=120)
@given(
    problems(longest=4),
    st.integers(1, 3),
    st.integers(1, 5),
    st.one_of(st.none(), st.integers(5, 9)),
    st.data(),
)
def test_whole_batches_are_those_of_brute_force(lr, unit, low, high, data):
    least = math.ceil(low / unit)
    most = 9 if high is None else high // unit
    if most < least:
        return
    moving = int((lr > 0).sum())
    smallest = least * unit * lr.size
    largest = smallest + (most - least) * unit * moving
    samples = data.draw(st.integers(smallest, largest))
    found = batch.optimal_batch_sizes(lr, samples, min_batch=low, max_batch=high, multiple_of=unit)
    c = coefficients(lr)
    choices = [[k * unit for k in range(least, most + 1)] if e > 0 else [least * unit] for e in lr]
    best = min(
        sum(ct / b for ct, b in zip(c, sizes, strict=True))
        for sizes in itertools.product(*choices)
        if sum(sizes) <= samples
    )
    assert found.sum() <= samples
    assert (found % unit == 0).all()
    if high is None and found.max() > 9 * unit:
        assert batch.noise_sum(lr, found) <= best
        return
    assert batch.noise_sum(lr, found) == pytest.approx(best, rel=1e-12)


def greedy(c, units, low, high):
    """Unit after unit to the largest gain."""
    n = np.full(c.size, low)
    for _ in range(units - n.sum()):
        gain = np.where(n < high, c / (n * (n + 1)), -1.0)
        n[np.argmax(gain)] += 1
    return n


@pytest.mark.parametrize("name", ["constant", "linear", "cosine", "wsd", "one_minus_sqrt"])
@pytest.mark.parametrize(("low", "high"), [(1, 10**9), (5, 60)])
def test_whole_batches_of_longer_runs_are_the_greedys(name, low, high):
    lr = schedules.with_warmup(schedules.make(name, steps=300, peak=1e-3), 20)
    found = batch.optimal_batch_sizes(lr, 6000, min_batch=low, max_batch=high)
    want = greedy(coefficients(lr), 6000, low, high)
    assert found.sum() == 6000
    assert batch.noise_sum(lr, found) == pytest.approx(batch.noise_sum(lr, want), rel=1e-12)


def test_equal_coefficients_share_equally():
    # c_t = 1 for every step: a profile that undoes the learning rate
    lr = schedules.linear(1000, 1e-3)
    sigma = 1 / np.sqrt(coefficients(lr))
    found = batch.optimal_batch_sizes(lr, 10_500, sigma=sigma)
    assert sorted(set(found.tolist())) == [10, 11]
    assert (found == 11).sum() == 500


@pytest.mark.parametrize(("samples", "unit"), [(1000, 7), (1000, 16), (999, 8)])
def test_what_does_not_divide_is_reported(samples, unit):
    found = batch.plan(schedules.cosine(30, 1.0), samples, multiple_of=unit)
    assert found.unused == samples % unit
    assert found.spent + found.unused == samples


def test_steps_without_learning_rate_take_the_smallest_batch():
    lr = np.array([0.0, 0.4, 0.0, 0.2, 0.0, 0.0])
    found = batch.plan(lr, 100, min_batch=4)
    assert found.batch[[0, 2, 4, 5]].tolist() == [4, 4, 4, 4]
    assert found.batch.sum() == 100
    # the last positive step has c = eta
    inner = batch.plan(lr[lr > 0], 100 - 16, min_batch=4)
    np.testing.assert_array_equal(found.batch[lr > 0], inner.batch)
    assert batch.noise_sum(lr, found.batch) == pytest.approx(
        0.16 / 0.2 / found.batch[1] + 0.2 / found.batch[3]
    )


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("constant", lambda u: 0.5 / np.sqrt(1 - u)),
        ("linear", lambda u: np.ones_like(u)),
        ("wsd:decay=0.1", lambda u: 1 / np.sqrt(np.maximum(1.9 * (1.9 - 2 * u), 0.19))),
        (
            "cosine",
            lambda u: np.cos(np.pi * u / 2) ** 2 / np.sqrt(1 - u - np.sin(np.pi * u) / np.pi),
        ),
    ],
)
def test_published_continuous_schedules(text, exact):
    # batch over static batch, Table 2 of the paper (its WSD parameter is the stable fraction .9)
    steps = 200_000
    name, values = schedules.parse_parameters(text)
    lr = schedules.make(name, steps=steps, peak=1e-3, **values)
    found = batch.optimal_batch_sizes(lr, 256.0 * steps, min_batch=0, integer=False)
    t = (np.array([0.0, 0.2, 0.5, 0.8, 0.89, 0.93, 0.99]) * steps).astype(int)
    np.testing.assert_allclose(found[t] / 256, exact(t / steps), rtol=6e-3)


@pytest.mark.parametrize("name", ["constant", "linear", "cosine", "wsd", "one_minus_sqrt"])
def test_best_noise_is_the_same_for_every_shape(name):
    # noise at the optimum is 2 sigma^2 S/N; here sum c/B = 4 S/N
    steps, samples = 100_000, 2.56e7
    lr = schedules.make(name, steps=steps, peak=3e-3)
    found = batch.plan(lr, samples, min_batch=0, integer=False)
    assert found.noise * samples / lr.sum() == pytest.approx(4.0, rel=1e-2)
    c = coefficients(lr[:1000])
    small = batch.plan(lr[:1000], 1e5, min_batch=0, integer=False)
    assert small.noise == pytest.approx(np.sqrt(c).sum() ** 2 / 1e5, rel=1e-12)  # Cauchy-Schwarz


def test_peak_does_not_matter():
    lr = schedules.wsd(500, 1.0)
    a = batch.optimal_batch_sizes(lr, 30_000)
    np.testing.assert_array_equal(a, batch.optimal_batch_sizes(1e-7 * lr, 30_000))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda lr: batch.plan(lr, 30, min_batch=4),
            "10 steps with batch sizes from 4 to inf take 40 to inf",
        ),
        (lambda lr: batch.plan(lr, 900, max_batch=64), "take 10 to 640"),
        (
            lambda lr: batch.plan(lr, 500, min_batch=9, max_batch=15, multiple_of=8),
            "no multiple of 8 lies from",
        ),
        (lambda lr: batch.plan(lr, 500, min_batch=9, max_batch=8), "max_batch = 8"),
        (lambda lr: batch.plan(lr, -5), "samples = -5"),
        (lambda lr: batch.plan(lr, 500, multiple_of=0), "multiple_of = 0"),
        (lambda lr: batch.plan(lr, 500, multiple_of=8, integer=False), "leave integer=True"),
        (lambda lr: batch.plan(0 * lr, 500), "no positive step"),
        (lambda lr: batch.plan(lr, 500, sigma=[1.0, 2.0]), "sigma has shape (2,)"),
        (lambda lr: batch.plan(lr, 500, sigma=-1.0), "sigma holds a negative"),
        (lambda lr: batch.noise_sum(lr, [1.0, 2.0]), "batch has shape (2,)"),
        (lambda lr: batch.noise_sum(lr, 0.0), "not positive"),
    ],
)
def test_infeasible_budgets_and_bad_values_are_named(call, said):
    with pytest.raises(ConvexlawError) as error:
        call(schedules.linear(10, 1.0))
    assert said in str(error.value)


def test_plans_print_tabulate_and_draw():
    found = batch.plan(schedules.wsd(100, 1e-3), 6400, multiple_of=8)
    assert len(str(found).splitlines()) <= 12
    assert "gain" in str(found)
    table = found.to_frame()
    assert table.columns.tolist() == ["step", "lr", "batch_size", "samples"]
    assert table["samples"].iloc[-1] + table["batch_size"].iloc[-1] == 6400
    assert found.plot().get_xlabel() == "step"
    assert found.stages[0] == (0, found.batch[0])
