"""Critical batch, noise scale, joint optimum, Seesaw, the online rule, rates by samples, presets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from convexlaw.errors import ConvexlawError
from convexlaw.theory import batch, schedules
from convexlaw.theory.last_iterate import bound, optimal_peak, shape_constants


@pytest.fixture(scope="module")
def case(golden):
    rows = golden("loss_laws_and_batches")["values"]
    return lambda kind: next(row for row in rows if row["kind"] == kind)


def test_reference_values(case):
    row = case("critical_batch")
    i, want = row["inputs"], row["expected"]
    seen = batch.critical_batch_size(i["shape"], i["sigma2"], i["G2"])
    assert seen == pytest.approx((want["static"], want["optimal_schedule"]), rel=row["tol"]["rel"])
    row = case("joint_lr_batch")
    i, want = row["inputs"], row["expected"]
    seen = batch.joint_optimum(i["N"], i["sigma"], i["D"], i["G"])
    assert (seen.total_rate, seen.loss) == pytest.approx(
        (want["S_star"], want["loss"]), rel=row["tol"]["rel"]
    )
    row = case("noise_scale")
    i, want = row["inputs"], row["expected"]
    seen = batch.noise_scale(i["B_small"], i["B_big"], i["g2_small"], i["g2_big"])
    assert seen == pytest.approx((want["G2"], want["S"]), rel=row["tol"]["rel"])


@pytest.mark.parametrize("text", ["linear", "cosine", "wsd:decay=0.1", "poly:power=2"])
def test_critical_batch_of_shape_function_and_array_agree(text):
    static, scheduled = batch.critical_batch_size(text, 100.0, 2.0)
    assert static == 50.0
    assert scheduled == pytest.approx(50.0 / shape_constants(text).batch_gain)
    assert batch.critical_batch_size(schedules.shape(text), 100.0, 2.0)[1] == pytest.approx(
        scheduled, rel=1e-9
    )
    name, values = schedules.parse_parameters(text)
    lr = schedules.make(name, steps=100_000, peak=1.0, **values)
    assert batch.critical_batch_size(lr, 100.0, 2.0)[1] == pytest.approx(scheduled, rel=1e-2)


def test_critical_batch_is_the_knee_of_steps_against_samples():
    # runs that reach the same best bound: (T/Tmin - 1)(N/Nmin - 1) = 1 with Nmin/Tmin the critical batch
    sigma2, grad, loss = 300.0, 2.0, 0.05
    c = shape_constants("cosine")
    t_min = grad**2 * c.I / (c.s * loss**2)
    for scheduled, knee in zip(
        (False, True), batch.critical_batch_size("cosine", sigma2, grad**2), strict=True
    ):
        for ratio in (1.3, 2.0, 10.0):
            steps = round(ratio * t_min)
            n = knee * t_min * (1 + 1 / (steps / t_min - 1))
            reached = batch.joint_optimum(
                n, math.sqrt(sigma2), 1.0, grad, steps=steps, shape="cosine", scheduled=scheduled
            )
            assert reached.loss == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("name", ["constant", "linear", "cosine", "wsd", "one_minus_sqrt"])
def test_joint_optimum_is_the_same_for_every_shape(name):
    # noise alone, optimal batch schedule, peak chosen by search over the actual bound
    steps, samples, sigma, far = 50_000, 5e6, 3.0, 2.0
    h = schedules.make(name, steps=steps, peak=1.0)
    sizes = batch.optimal_batch_sizes(h, samples, min_batch=0, integer=False)
    value = optimal_peak(h, sigma / np.sqrt(sizes), far)[1]
    ideal = batch.joint_optimum(samples, sigma, far)
    assert value == pytest.approx(ideal.loss, rel=6e-3)
    peak = optimal_peak(h, sigma / np.sqrt(sizes), far)[0]
    assert peak * h.sum() == pytest.approx(ideal.total_rate, rel=6e-3)
    static = optimal_peak(h, sigma / np.sqrt(samples / steps), far)[1]
    assert static >= value * (1 - 1e-12)


def test_static_joint_optimum_is_the_bound_at_the_best_peak():
    steps, size, sigma, grad = 20_000, 64, 5.0, 1.5
    h = schedules.cosine(steps, 1.0)
    norms = math.sqrt(grad**2 + sigma**2 / size)
    seen = batch.joint_optimum(size * steps, sigma, 0.7, grad, steps=steps, shape="cosine", scheduled=False)
    assert optimal_peak(h, norms, 0.7)[1] == pytest.approx(seen.loss, rel=1e-3)


def test_published_gains_of_wsd():
    # static noise coefficient 2.47, dynamic 1.9 for a stable fraction of .9: in units of eta X/B
    c = shape_constants("wsd:decay=0.1")
    assert c.I / 2 == pytest.approx(2.47, abs=5e-3)
    assert 2 * c.s == pytest.approx(1.9)
    lr = schedules.wsd(100_000, 1.0, decay=0.1)
    found = batch.plan(lr, 1e7, min_batch=0, integer=False)
    assert found.gain == pytest.approx(1.301, abs=2e-3)


def test_equal_eta_over_batch_is_not_equal_bound():
    # the published test: rates with floor .1 at one batch against one rate with batches ~ 1/rate. The sum of
    # rates differs by arithmetic over harmonic mean; G-noise favours the decay, batch noise the other
    steps = 10_000
    table = {
        "wsd:decay=0.1": (1.104, 2.67, 4.67, 2.67, 2.03),
        "cosine": (1.739, 1.35, 1.71, 1.35, 0.91),
        "linear": (1.407, 1.35, 2.11, 1.35, 0.99),
    }
    for text, (ratio, g_decay, g_batch, x_decay, x_batch) in table.items():
        name, values = schedules.parse_parameters(text)
        lr = schedules.make(name, steps=steps, peak=1.0, end=0.1, **values)
        one = np.full(steps, steps / (1 / lr).sum())
        sizes = 1 / lr
        sizes *= steps / sizes.sum()
        assert lr.sum() / one.sum() == pytest.approx(ratio, rel=3e-3)
        # noise terms at their full value, half of the sums; the paper's horizon enters through log T
        mine = [batch.noise_sum(lr, 1.0), batch.noise_sum(one, 1.0)]
        assert mine[0] / 2 == pytest.approx(g_decay, rel=0.02)
        assert mine[1] / 2 == pytest.approx(g_batch, rel=0.02)
        assert batch.noise_sum(lr, 1.0) / 2 == pytest.approx(x_decay, rel=0.02)
        assert batch.noise_sum(one, sizes) / 2 == pytest.approx(x_batch, rel=0.02)


def test_noise_scale_recovers_the_truth_and_averages_before_it_divides():
    rng = np.random.default_rng(2)
    mean, spread, small, big = np.array([0.3, -0.2, 0.1]), 2.0, 8, 64
    count = 40_000

    def squared(size):
        return ((mean + spread / math.sqrt(size) * rng.standard_normal((count, 3))) ** 2).sum(axis=1)

    a, b = squared(small), squared(big)
    g2, s = batch.noise_scale(small, big, a, b)
    assert abs(g2.mean() - (mean @ mean)) < 4 * g2.std() / math.sqrt(count)
    assert abs(s.mean() - 3 * spread**2) < 4 * s.std() / math.sqrt(count)
    series = batch.noise_scale_series(small, big, a, b, memory=5000)
    truth = 3 * spread**2 / (mean @ mean)
    assert series[-1] == pytest.approx(truth, rel=0.1)
    # the average of ratios is no estimate at all
    assert abs(np.mean(s / g2) / truth - 1) > 0.3


def test_noise_scale_series_waits_for_a_positive_gradient():
    series = batch.noise_scale_series(1, 2, [3.0, 2.0], [1.0, 2.0], memory=1)
    assert np.isnan(series[0])
    assert series[1] == 0.0


@pytest.mark.parametrize("factor", [1.0001, 1.2, 2.0])
def test_seesaw_saves_what_the_paper_says(factor):
    steps = 200_000
    quarter = np.cos(0.5 * np.pi * np.arange(steps) / steps)
    result = batch.seesaw(quarter, 100.0, factor=factor)
    assert result.batch.sum() == pytest.approx(100.0 * steps, rel=1e-9)
    limit = 1 - 2 / math.pi
    assert result.steps_saved <= limit + 1e-4
    if factor == 1.0001:
        assert result.steps_saved == pytest.approx(limit, abs=2e-3)


def test_seesaw_stages():
    lr = schedules.with_warmup(schedules.step(1000, 1.0, at=[0.5, 0.75], factor=0.5), 100)
    adam = batch.seesaw(lr, 10.0)
    np.testing.assert_array_equal(adam.lr[:100], lr[:100])
    assert adam.batch.tolist()[:500] == [10.0] * 500
    # half the rate for 250 steps becomes 125 steps of twice the batch, then 250/4 steps
    np.testing.assert_allclose(adam.lr[[500, 624, 625]], [2**-0.5, 2**-0.5, 0.5])
    np.testing.assert_allclose(adam.batch[[500, 624, 625]], [20, 20, 40])
    assert adam.batch.sum() == pytest.approx(10_000)
    sgd = batch.seesaw(lr, 10.0, rule="sgd")
    assert set(sgd.lr[100:].tolist()) == {1.0}
    # eta/B falls as the reference's eta does
    np.testing.assert_allclose(sgd.lr[-3] / sgd.batch[-3], 0.25 / 10)
    capped = batch.seesaw(lr, 10.0, max_batch=20)
    assert capped.batch.max() == 20
    assert capped.lr[-2] == pytest.approx(2**-0.5 / 2)


def test_online_rule_follows_the_schedule():
    lr = schedules.wsd(5000, 1e-3)
    samples, used, sizes = 1e6, 0.0, []
    for eta in lr:
        sizes.append(batch.next_batch(float(eta), float(lr.sum()), samples, used))
        used += sizes[-1]
    best = batch.optimal_batch_sizes(lr, samples, min_batch=0, integer=False)
    assert 0.95 * samples < used <= samples
    np.testing.assert_allclose(np.array(sizes)[:4500], best[:4500], rtol=0.05)
    assert batch.next_batch(1.0, 1.0, 10.0, 10.0) == 0.0


@pytest.mark.parametrize("text", ["constant", "linear", "cosine:end=0.1", "wsd:decay=0.3"])
def test_rates_by_samples(text):
    steps, samples = 400, 40_000
    found = batch.plan_in_samples(text, samples, steps, min_batch=0, integer=False)
    used = np.cumsum(found.batch) - found.batch
    np.testing.assert_allclose(found.lr, schedules.shape(text)(used / samples), rtol=1e-9)
    assert found.batch.sum() == pytest.approx(samples, rel=1e-9)
    # eta/B falls linearly in samples
    ratio = found.lr / found.batch
    inner = used < 0.8 * samples
    line = (1 - used / samples)[inner]
    scaled = ratio[inner] / line
    if text != "cosine:end=0.1":
        assert scaled.std() / scaled.mean() < 0.05
    assert found.gain >= 1.0
    whole = batch.plan_in_samples(text, samples, steps, multiple_of=4)
    assert whole.batch.sum() == samples
    assert (whole.batch % 4 == 0).all()
    assert whole.noise / whole.lr.sum() < 1.05 * found.noise / found.lr.sum()


def test_rates_by_samples_from_functions_and_tables():
    a = batch.plan_in_samples("linear:end=0.2", 9000, 100)
    b = batch.plan_in_samples(lambda x: 1 - 0.8 * x, 9000, 100)
    c = batch.plan_in_samples([1.0, 0.2], 9000, 100)
    np.testing.assert_array_equal(a.batch, b.batch)
    np.testing.assert_array_equal(a.batch, c.batch)


def test_presets():
    assert batch.preset("Llama3-405B").batch_at([0, 251e6, 252e6, 3e12]).tolist() == [4e6, 4e6, 8e6, 16e6]
    assert batch.preset("gpt-3").batch_at([0, 6e9, 12e9, 1e12]).tolist() == pytest.approx(
        [32e3, 1.616e6, 3.2e6, 3.2e6]
    )
    assert batch.preset("palm").batch_at([49_999, 50_000, 115_000]).tolist() == [512, 1024, 2048]
    assert batch.preset("glm-130b").batch_at([0.0125, 0.5]).tolist() == [2208, 4224]
    assert set(batch.PRESETS) >= {"mt-nlg", "chinchilla", "gopher", "kimi-k2", "deepseek-v4-pro"}
    assert "3e+06 from 0" in str(batch.preset("gopher"))


def test_no_descent_with_scheduled_batches_lies_above_its_bound():
    # f = |x|, gradient sign(x) + noise/sqrt(B): 3000 runs, the mean plus four standard errors
    rng = np.random.default_rng(4)
    sigma, steps = 6.0, 150
    lr = schedules.wsd(steps, 0.05)
    sizes = batch.optimal_batch_sizes(lr, 8 * steps)
    x = np.full(3000, 1.0)
    for eta, size in zip(lr, sizes, strict=True):
        x = x - eta * (np.sign(x) + sigma / math.sqrt(size) * rng.standard_normal(3000))
    norms = np.append(np.sqrt(1 + sigma**2 / sizes), math.sqrt(1 + sigma**2 / sizes[-1]))
    gap = np.abs(x)
    assert gap.mean() - 4 * gap.std() / math.sqrt(3000) <= bound(lr, norms, 1.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: batch.critical_batch_size("linear", 1.0, 0.0), "G2 = 0"),
        (lambda: batch.joint_optimum(10, 0.0), "every larger learning rate"),
        (lambda: batch.joint_optimum(10, 1.0, 1.0, 1.0), "needs steps"),
        (lambda: batch.joint_optimum(10, 1.0, scheduled=False, shape="constant"), "ends above 0"),
        (lambda: batch.noise_scale(8, 8, 1.0, 1.0), "a smaller and a larger"),
        (lambda: batch.noise_scale_series(1, 2, [1.0], [1.0, 2.0]), "same length"),
        (lambda: batch.seesaw([1.0, 0.5], 8, factor=1.0), "above 1"),
        (lambda: batch.seesaw([1.0, 0.5], 8, rule="adamw"), "did you mean 'adam'"),
        (lambda: batch.seesaw([1.0, 0.5], 8, max_batch=4), "below batch"),
        (lambda: batch.plan_in_samples("linear", 5, 10), "take 10 to inf"),
        (lambda: batch.preset("gpt3"), "did you mean 'gpt-3'"),
        (lambda: batch.preset("palm").batch_at(-1), "positions >= 0 in steps"),
    ],
)
def test_bad_values_are_named(call, said):
    with pytest.raises(ConvexlawError) as error:
        call()
    assert said in str(error.value)
