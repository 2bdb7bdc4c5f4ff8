"""Few stages and powers of two: against enumeration, with a certificate."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convexlaw.errors import ConvexlawError
from convexlaw.theory import batch, schedules


def coefficients(lr):
    last = np.flatnonzero(lr > 0)[-1]
    return np.array(
        [0.0 if e == 0 else (e if t == last else e * e / lr[t + 1 :].sum()) for t, e in enumerate(lr)]
    )


def segmentations(size, k):
    for cuts in itertools.combinations(range(1, size), k - 1):
        yield (0, *cuts, size)


rates = st.floats(-2, 1).map(lambda x: 10.0**x)


@settings(deadline=None, max_examples=80)
@given(st.lists(rates, min_size=1, max_size=9), st.integers(1, 4))
def test_real_batch_sizes_in_stages_are_optimal(lr, k):
    lr = np.array(lr)
    k = min(k, lr.size)
    found = batch.stages(lr, 900.0, k, min_batch=0, integer=False)
    c = coefficients(lr)
    best = min(
        sum(math.sqrt(c[a:b].sum() * (b - a)) for a, b in itertools.pairwise(cuts)) ** 2 / 900.0
        for cuts in segmentations(lr.size, k)
    )
    assert found.noise == pytest.approx(best, rel=1e-10)
    assert found.spent == pytest.approx(900.0, rel=1e-12)
    assert len(found.stages) <= k


def enumerated(c, sizes, k, samples):
    best = math.inf
    for cuts in segmentations(c.size, k):
        lengths = np.diff(cuts)
        noise = np.array([c[a:b].sum() for a, b in itertools.pairwise(cuts)])
        for chosen in itertools.product(sizes, repeat=k):
            if lengths @ np.array(chosen) <= samples:
                best = min(best, float((noise / np.array(chosen)).sum()))
    return best


@settings(deadline=None, max_examples=40)
@given(st.lists(rates, min_size=2, max_size=7), st.integers(1, 3), st.booleans(), st.floats(1.2, 7.5))
def test_listed_batch_sizes_are_certified(lr, k, powers, mean):
    lr = np.array(lr)
    k = min(k, lr.size)
    samples = round(mean * lr.size)
    found = batch.stages(lr, samples, k, max_batch=8, powers_of_two=powers)
    sizes = [1, 2, 4, 8] if powers else list(range(1, 9))
    best = enumerated(coefficients(lr), sizes, k, samples)
    assert found.spent <= samples
    assert set(found.batch.tolist()) <= set(sizes)
    assert len(found.stages) <= k
    # lower bound <= optimum <= found, and the printed certificate says how far it may be
    assert found.ideal_noise <= best * (1 + 1e-9)
    assert best <= found.noise * (1 + 1e-9)


def test_stages_of_small_problems_are_mostly_the_best():
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(40):
        lr = 10 ** rng.uniform(-2, 0, 8)
        samples = int(rng.integers(12, 60))
        found = batch.stages(lr, samples, 2, max_batch=10)
        ratios.append(found.noise / enumerated(coefficients(lr), range(1, 11), 2, samples))
    assert np.mean(np.array(ratios) < 1 + 1e-9) >= 0.6
    assert np.mean(ratios) < 1.02


@settings(deadline=None, max_examples=80)
@given(st.lists(rates, min_size=1, max_size=6), st.floats(1.0, 7.9))
def test_powers_of_two_for_every_step(lr, mean):
    lr = np.array(lr)
    samples = int(mean * lr.size)
    found = batch.stages(lr, samples, max_batch=8, powers_of_two=True)
    c = coefficients(lr)
    best = min(
        float((c / np.array(b)).sum())
        for b in itertools.product([1, 2, 4, 8], repeat=lr.size)
        if sum(b) <= samples
    )
    assert found.spent <= samples
    assert found.ideal_noise <= best * (1 + 1e-9) <= found.noise * (1 + 2e-9)


def test_long_runs_come_near_their_lower_bound():
    lr = schedules.wsd(20_000, 1e-3)
    samples = 256 * 20_000
    noise = [batch.stages(lr, samples, k, multiple_of=16).noise for k in (1, 2, 4, 8)]
    best = batch.plan(lr, samples, min_batch=0, integer=False).noise
    static = batch.noise_sum(lr, 256)
    assert noise[0] == pytest.approx(static, rel=1e-9)
    assert noise[0] > noise[1] > noise[2] > noise[3] > best
    assert noise[3] < 1.01 * best
    # of the gain of the best schedule, four stages have nine tenths
    assert (static - noise[2]) / (static - best) > 0.9


def test_refinement_over_the_grid_finds_the_change_points_of_the_full_search():
    # 3000 steps are searched on a grid and refined; the full programme is the reference
    lr = schedules.constant(3000, 1e-3)
    found = batch.stages(lr, 256.0 * 3000, 3, min_batch=0, integer=False)
    c = coefficients(lr)
    total = np.concatenate([[0.0], np.cumsum(c)])
    best = np.sqrt(total * np.arange(3001))
    for _ in range(2):
        best = np.array(
            [0.0]
            + [
                (best[:j] + np.sqrt((total[j] - total[:j]) * (j - np.arange(j)))).min()
                for j in range(1, 3001)
            ]
        )
    assert found.noise == pytest.approx(best[-1] ** 2 / (256.0 * 3000), rel=1e-9)


def test_multiples_of_powers_and_zero_rates():
    lr = np.concatenate([[0.0], schedules.linear(30, 1.0), [0.0, 0.0]])
    found = batch.stages(lr, 33 * 48, 3, min_batch=16, max_batch=256, multiple_of=16, powers_of_two=True)
    assert set(found.batch.tolist()) <= {16, 32, 64, 128, 256}
    assert found.spent <= 33 * 48
    assert len(found.stages) <= 3
    every = batch.stages(lr, 33 * 48, multiple_of=16, powers_of_two=True)
    assert every.batch[[0, 31, 32]].tolist() == [16, 16, 16]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.one_of(st.just(0.0), rates), min_size=2, max_size=6).filter(any),
    st.integers(1, 3),
    st.booleans(),
    st.floats(2.0, 7.5),
)
def test_steps_without_a_rate_are_steps_of_a_stage(lr, k, powers, mean):
    lr = np.array(lr)
    k, samples = min(k, lr.size), int(mean * lr.size)
    found = batch.stages(lr, samples, k, min_batch=1.5, max_batch=8, powers_of_two=powers)
    sizes = [2, 4, 8] if powers else list(range(2, 9))
    best = enumerated(coefficients(lr), sizes, k, samples)
    assert len(found.stages) <= k
    assert set(found.batch.tolist()) <= set(sizes)
    assert found.spent <= samples
    assert found.ideal_noise <= best * (1 + 1e-9) <= found.noise * (1 + 2e-9)
    if powers:
        each = batch.stages(lr, samples, min_batch=1.5, max_batch=8, powers_of_two=True)
        assert set(each.batch.tolist()) <= set(sizes)


def test_the_range_said_is_that_of_powers_of_two():
    lr = schedules.linear(3, 1.0)
    for samples in (11, 13):
        with pytest.raises(ConvexlawError, match="from 4 to 4 take 12 to 12"):
            batch.stages(lr, samples, min_batch=3, max_batch=7, powers_of_two=True)
    assert batch.stages(lr, 12, min_batch=3, max_batch=7, powers_of_two=True).batch.tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda lr: batch.stages(lr, 100), "k is missing"),
        (lambda lr: batch.stages(lr, 5, 2), "take 10 to inf"),
        (lambda lr: batch.stages(lr, 50, 2, sigma=0.0), "sigma is 0 wherever lr is positive"),
        (lambda lr: batch.plan(lr, 50, sigma=np.zeros(10)), "sigma is 0 wherever lr is positive"),
        (lambda lr: batch.stages(lr, 100, 0), "stages = 0: give a whole number of stages"),
        (lambda lr: batch.stages(lr, 50, 2, min_batch=5, max_batch=7, powers_of_two=True), "no power of two"),
    ],
)
def test_bad_values_are_named(call, said):
    with pytest.raises(ConvexlawError) as error:
        call(schedules.linear(10, 1.0))
    assert said in str(error.value)
