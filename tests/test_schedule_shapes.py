"""Schedules against torch's own schedulers, their definitions, and degenerate lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from convexlaw.errors import ConvexlawError
from convexlaw.theory import schedules

STEPS, PEAK = 37, 3e-3


def torch_rates(build):
    """Rates that ``optimizer.step()`` would use at updates 0..STEPS-1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = build(optimizer)
    rates = []
    for _ in range(STEPS):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(rates)


PEERS = {
    "constant": (
        lambda o: torch.optim.lr_scheduler.ConstantLR(o, factor=1.0),
        schedules.constant(STEPS, PEAK),
    ),
    "linear": (
        lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.0, STEPS),
        schedules.linear(STEPS, PEAK),
    ),
    "linear to a floor": (
        lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, STEPS),
        schedules.linear(STEPS, PEAK, end=0.1 * PEAK),
    ),
    "cosine": (
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, STEPS),
        schedules.cosine(STEPS, PEAK),
    ),
    "cosine to a floor": (
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, STEPS, eta_min=1e-4),
        schedules.cosine(STEPS, PEAK, end=1e-4),
    ),
    "poly": (
        lambda o: torch.optim.lr_scheduler.PolynomialLR(o, STEPS, power=1.7),
        schedules.poly(STEPS, PEAK, power=1.7),
    ),
    "step": (
        lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [11, 30], gamma=0.3),
        schedules.step(STEPS, PEAK, at=[11, 30], factor=0.3),
    ),
}


@pytest.mark.parametrize("name", PEERS)
def test_the_value_at_update_t_is_torchs(name):
    build, ours = PEERS[name]
    np.testing.assert_allclose(ours, torch_rates(build), rtol=1e-9)


def test_inverse_sqrt_is_the_timescale_rule():
    ours = schedules.inverse_sqrt(STEPS, PEAK, offset=10)
    np.testing.assert_allclose(ours, [PEAK * math.sqrt(10 / (10 + t)) for t in range(STEPS)], rtol=1e-14)


@pytest.mark.parametrize(
    ("cooldown", "h"),
    [
        ("linear", lambda u: 1 - u),
        ("sqrt", lambda u: 1 - math.sqrt(u)),
        ("cosine", lambda u: (1 + math.cos(math.pi * u)) / 2),
    ],
)
@pytest.mark.parametrize("end", [0.0, 1e-4])
def test_wsd_is_flat_and_then_the_cooldown(cooldown, h, end):
    lr = schedules.wsd(50, PEAK, decay=0.3, end=end, cooldown=cooldown)
    expected = [PEAK] * 35 + [end + (PEAK - end) * h(k / 15) for k in range(15)]
    np.testing.assert_allclose(lr, expected, rtol=1e-13)
    assert lr[-1] > end


def test_cooldown_steps_round_as_python_rounds():
    # 0.5 of 5 steps: round(2.5) is 2
    assert schedules.wsd(5, 1.0, decay=0.5).tolist() == [1, 1, 1, 1, 0.5]
    assert schedules.step(5, 1.0, at=0.5, factor=0.1)[1:3].tolist() == [1.0, 0.1]


def test_edges_of_wsd_are_constant_and_linear():
    np.testing.assert_array_equal(schedules.wsd(9, 2.0, decay=0.0), schedules.constant(9, 2.0))
    np.testing.assert_allclose(schedules.wsd(9, 2.0, decay=1.0), schedules.linear(9, 2.0), rtol=1e-15)
    np.testing.assert_allclose(schedules.poly(9, 2.0, power=1), schedules.linear(9, 2.0), rtol=1e-15)


@pytest.mark.parametrize("name", schedules.NAMES)
def test_one_step_is_the_peak_and_every_decay_stays_positive(name):
    extra = {"poly": {"power": 2}, "step": {"at": 0.5, "factor": 0.5}, "inverse_sqrt": {"offset": 3}}
    one = schedules.make(name, steps=1, peak=0.25, **extra.get(name, {}))
    if name != "step":  # round(0.5) = 0: the only step lies after the change
        assert one.tolist() == [0.25]
    lr = schedules.make(name, steps=200, peak=0.25, **extra.get(name, {}))
    assert lr[0] == 0.25
    assert (lr > 0).all()
    assert (np.diff(lr) <= 0).all()


def test_warmup_replaces_the_first_steps():
    base = schedules.cosine(100, PEAK)
    lr = schedules.with_warmup(base, 10)
    np.testing.assert_allclose(lr[:10], PEAK * np.arange(1, 11) / 10, rtol=1e-15)
    np.testing.assert_array_equal(lr[10:], base[10:])
    np.testing.assert_array_equal(schedules.with_warmup(base, 0.1), lr)
    np.testing.assert_array_equal(schedules.with_warmup(base, 0), base)
    assert base[0] == PEAK  # the input is left alone
    assert schedules.with_warmup([2.0], 1).tolist() == [2.0]


@pytest.mark.parametrize("name", schedules.NAMES)
@pytest.mark.parametrize("warmup", [0, 0.25])
def test_the_continuous_shape_is_the_array(name, warmup):
    extra = {"poly": {"power": 0.7}, "step": {"at": 0.5, "factor": 0.5}, "inverse_sqrt": {"offset": 30}}
    values = {"steps": 400, "peak": 2.0, **extra.get(name, {})}
    if name in ("linear", "cosine", "one_minus_sqrt", "poly", "wsd"):
        values["end"] = 0.1
    h = schedules.shape(name, **values, warmup=warmup)
    u = np.arange(400) / 400
    lr = schedules.make(name, **values, warmup=warmup)
    later = u >= warmup
    np.testing.assert_allclose(2.0 * h(u)[later], lr[later], rtol=1e-12)
    # the line of the array is one step ahead
    np.testing.assert_allclose(2.0 * h(u)[~later] + 2.0 / 100, lr[~later], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: schedules.linear(0, 1.0), "steps = 0"),
        (lambda: schedules.linear(2.5, 1.0), "steps = 2.5"),
        (lambda: schedules.linear(True, 1.0), "steps = True"),
        (lambda: schedules.linear("9", 1.0), "steps = '9'"),
        (lambda: schedules.linear(9, 0.0), "peak = 0.0"),
        (lambda: schedules.linear(9, float("nan")), "peak = nan"),
        (lambda: schedules.linear(9, 1.0, end=2.0), "above peak"),
        (lambda: schedules.linear(9, 1.0, end=-0.1), "end = -0.1"),
        (lambda: schedules.wsd(9, 1.0, decay=1.2), "decay = 1.2"),
        (lambda: schedules.wsd(9, 1.0, cooldown="sqr"), "did you mean 'sqrt'"),
        (lambda: schedules.poly(9, 1.0, power=0), "power = 0"),
        (lambda: schedules.step(9, 1.0, at=1.5, factor=0.1), "at = 1.5"),
        (lambda: schedules.step(9, 1.0, at=[0.2, -1], factor=0.1), "at = -1"),
        (lambda: schedules.step(9, 1.0, at="early", factor=0.1), "at = 'early'"),
        (lambda: schedules.inverse_sqrt(9, 1.0, offset=0), "offset = 0"),
        (lambda: schedules.with_warmup([1.0, 1.0], 3), "longer than the schedule (2 steps)"),
        (lambda: schedules.with_warmup([1.0, 1.0], 1.5), "whole steps"),
        (lambda: schedules.with_warmup([], 1), "shape (0,)"),
        (lambda: schedules.with_warmup([1.0, -1.0], 1), "lr[1] = -1.0"),
        (lambda: schedules.shape("step", at=5, factor=0.1), "give steps= as well"),
        (lambda: schedules.shape("wsd:warmup=3"), "give steps= as well"),
        (lambda: schedules.shape("linear:steps=5,warmup=8"), "longer than the schedule"),
    ],
)
def test_bad_values_are_named(call, said):
    with pytest.raises(ConvexlawError) as error:
        call()
    assert said in str(error.value)
