"""Curves along a run: every horizon is the bound of its prefix, however it is computed; zeros and drops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convexlaw.errors import ConvexlawError
from convexlaw.theory import schedules
from convexlaw.theory.last_iterate import FORMS, bound, curve

SMOOTH = ("free", "tail")

rates = st.one_of(st.just(0.0), st.floats(-9, 2).map(lambda x: 10.0**x))


@st.composite
def runs(draw):
    """Learning rates with zeros and drops over eleven decades, gradient norms, distance, all scales."""
    size = draw(st.integers(1, 30))
    lr = np.array(draw(st.lists(rates, min_size=size, max_size=size)))
    scale = 10.0 ** draw(st.floats(-60, 60))
    norms = np.array(draw(st.lists(st.floats(0.01, 100), min_size=size + 1, max_size=size + 1)))
    return lr * scale, norms * 10.0 ** draw(st.floats(-20, 20)), 10.0 ** draw(st.floats(-20, 20))


@settings(deadline=None, max_examples=150)
@given(runs(), st.sampled_from(FORMS))
def test_every_horizon_is_the_bound_of_its_prefix(run, form):
    lr, norms, far = run
    seen = curve(lr, norms, far, form)
    assert (seen >= 0).all()
    for k in {0, lr.size // 2, lr.size - 1}:
        assert seen[k] == pytest.approx(bound(lr[: k + 1], norms[: k + 2], far, form), rel=1e-9)


@settings(deadline=None, max_examples=300)
@given(runs(), st.sampled_from(SMOOTH))
def test_fast_is_direct(run, form):
    lr, norms, far = run
    fast = curve(lr, norms, far, form, method="fast")
    np.testing.assert_allclose(fast, curve(lr, norms, far, form, method="direct"), rtol=1e-10)


@settings(deadline=None, max_examples=100)
@given(runs(), st.sampled_from(FORMS), st.floats(-30, 30))
def test_units_do_not_matter(run, form, power):
    lr, norms, far = run
    c = 2.0 ** round(power)
    same = curve(lr * c, norms, far * c, form)
    np.testing.assert_allclose(same, c * curve(lr, norms, far, form), rtol=1e-9)
    np.testing.assert_allclose(
        curve(lr / c, norms * c, far, form), c * curve(lr, norms, far, form), rtol=1e-9
    )


@settings(deadline=None, max_examples=100)
@given(runs(), st.sampled_from(FORMS), st.integers(0, 29), st.integers(1, 4))
def test_a_step_of_rate_zero_is_no_step(run, form, where, count):
    lr, norms, far = run
    where = min(where, lr.size)
    padded = np.insert(lr, where, np.zeros(count))
    # the inserted steps see the gradient of the point they stand at
    padded_norms = np.insert(norms, where, np.full(count, norms[where]))
    a, b = curve(lr, norms, far, form), curve(padded, padded_norms, far, form)
    np.testing.assert_allclose(np.delete(b, np.arange(where, where + count)), a, rtol=1e-9)
    if where:
        stay = np.full(count, a[where - 1])
        if form == "tail":
            np.testing.assert_allclose(b[where : where + count], stay, rtol=1e-9)
        else:
            other = bound(lr[:where], norms[: where + 1], far, form)
            np.testing.assert_allclose(b[where : where + count], other, rtol=1e-9)


@pytest.mark.parametrize("zeros", [1, 3])
def test_nothing_but_zeros(zeros):
    lr = np.zeros(zeros)
    norms = np.arange(2.0, zeros + 3)
    for form in ("tail", "averaged"):
        assert np.isinf(curve(lr, norms, 0.5, form)).all()
    for form in ("free", "tight"):
        # f(x_1) - f* <= D G by convexity, G at the point itself
        np.testing.assert_allclose(curve(lr, norms, 0.5, form), 0.5 * norms[1:])
        assert bound(lr, 3.0, 0.5, form) == pytest.approx(1.5)


def test_leading_zeros_keep_their_places():
    lr = np.array([0.0, 0.0, 0.3, 0.1])
    np.testing.assert_allclose(curve(lr, form="free")[2:], curve(lr[2:], form="free"), rtol=1e-12)
    np.testing.assert_allclose(curve(lr, form="free")[:2], [1.0, 1.0])
    tail = curve(lr, form="tail")
    assert np.isinf(tail[:2]).all()
    np.testing.assert_allclose(tail[2:], curve(lr[2:], form="tail"), rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-1, 1e-4, 1e-8])
def test_no_spike_after_a_drop(factor):
    lr = schedules.step(400, 0.05, at=200, factor=factor)
    free, tail = curve(lr, form="free"), curve(lr, form="tail")
    assert tail[200] > 0.3 * 0.05 / factor  # the artefact of the literal formula
    for form in ("free", "tight"):
        values = curve(lr, form=form)
        assert (values[200:] <= values[199] * (1 + 1e-9)).all()
    # a free virtual step is never worse than the next step used as one
    assert (free[:-1] <= tail[1:] * (1 + 1e-12)).all()


def test_schedule_that_ends_at_exactly_zero():
    lr = np.linspace(0.1, 0, 101)
    for form in FORMS:
        assert bound(lr, form=form) == pytest.approx(bound(lr[:-1], form=form), rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_chosen_horizons_are_those_of_the_whole_curve(form):
    lr = schedules.with_warmup(schedules.cosine(300, 0.1), 30)
    at = [299, 0, 17, 17, 150]
    np.testing.assert_allclose(curve(lr, form=form, at=at), curve(lr, form=form)[at], rtol=1e-10)
    assert curve(lr, form=form, at=[]).shape == (0,)


@pytest.mark.parametrize("form", SMOOTH)
@pytest.mark.parametrize("text", ["cosine", "wsd", "one_minus_sqrt", "step:at=0.5,factor=0.01"])
def test_long_runs_keep_ten_digits(form, text):
    steps = 200_000
    name, values = schedules.parse_parameters(text)
    lr = schedules.make(name, steps=steps, peak=1e-3, warmup=0.01, **values)
    rng = np.random.default_rng(0)
    norms = np.exp(0.3 * rng.standard_normal(steps + 1))
    at = np.array([0, 1, 1999, 2000, 99_999, 100_000, 100_001, 160_001, 199_000, 199_999])
    fast = curve(lr, norms, form=form, method="fast")
    direct = curve(lr, norms, form=form, at=at, method="direct")
    np.testing.assert_allclose(fast[at], direct, rtol=1e-10)
    np.testing.assert_allclose(fast[-1], bound(lr, norms, form=form), rtol=1e-10)


def test_tight_of_a_long_run_asks_for_horizons():
    lr = schedules.wsd(20_001, 1e-2)
    with pytest.raises(ConvexlawError, match="give the horizons"):
        curve(lr, form="tight")
    assert curve(lr, form="tight", at=[20_000])[0] == pytest.approx(bound(lr, form="tight"), rel=1e-12)


def test_gradient_norm_of_the_next_step_is_the_next_of_the_run():
    lr, norms = np.full(5, 0.1), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert curve(lr, norms)[2] == pytest.approx(bound(lr[:3], norms[:4]), rel=1e-12)
    # five values: the virtual step after the fifth takes the last
    assert bound(lr, norms) == pytest.approx(bound(lr, np.append(norms, 5.0)), rel=1e-15)


def test_no_distance_and_no_gradient():
    lr = np.array([0.1, 0.2, 0.05])
    assert bound(lr, 1.0, 0.0, "tail") == pytest.approx(0.5 * (0.01 / 0.25 + 0.04 / 0.05 + 0.05))
    assert bound(lr, 1.0, 0.0, "averaged") == pytest.approx((0.01 + 0.04 + 0.0025) / 0.7)
    assert bound(lr, 0.0, 2.0, "tail") == pytest.approx(4 / 0.7)
    for form in ("free", "tight"):
        assert bound(lr, 0.0, 2.0, form) == 0.0
        assert bound(np.zeros(2), 1.0, 0.0, form) == 0.0
        assert bound(lr, [1.0, 1.0, 1.0, 0.0], 1.0, form) == 0.0  # the point has no gradient


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: bound([]), "shape (0,)"),
        (lambda: bound([[0.1]]), "shape (1, 1)"),
        (lambda: bound([0.1, -0.2]), "lr[1] = -0.2"),
        (lambda: bound([0.1, np.nan]), "lr[1] = nan"),
        (lambda: bound(["a"]), "not an array of numbers"),
        (lambda: bound([0.1], form="fre"), "did you mean 'free'"),
        (lambda: bound([0.1], grad_norm=[1.0, 2.0, 3.0]), "give a number, 1 or 2 values"),
        (lambda: bound([0.1], grad_norm=-1.0), "grad_norm[0] = -1.0"),
        (lambda: bound([0.1], grad_norm="big"), "grad_norm = 'big'"),
        (lambda: bound([0.1], distance=-1.0), "distance = -1.0"),
        (lambda: bound([1.0, 1e-150]), "lr spans from 1e-150 to 1.0"),
        (lambda: bound([1e-200], 1e-200, 1e200, "tail"), "overflow"),
        (lambda: curve([0.1], at=[1]), "at contains 1: horizons of this run are 0 to 0"),
        (lambda: curve([0.1], at=[0.5]), "whole numbers"),
        (lambda: curve([0.1], method="quick"), "method = 'quick'"),
    ],
)
def test_bad_values_are_named(call, said):
    with pytest.raises(ConvexlawError) as error:
        call()
    assert said in str(error.value)
