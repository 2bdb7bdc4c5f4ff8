"""The qualifying exam: verdicts, floors and growth against the published criterion and direct evaluation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from convexlaw.errors import ConvexlawError
from convexlaw.theory import schedules
from convexlaw.theory.last_iterate import bound, qualify, shape_constants

# bound * sqrt(T) at T = 1e3, 1e4, 1e5, 1e6, eta_ref = D = G = 1
TABLE = {
    "linear": (2.006, 2.001, 2.000, 2.000),
    "cosine": (2.064, 2.061, 2.061, 2.061),
    "wsd:decay=0.1": (3.044, 3.005, 2.999, 2.999),
    "one_minus_sqrt": (2.180, 2.177, 2.176, 2.176),
    "constant": (4.74, 5.89, 7.05, 8.20),
    "linear:end=0.1": (2.153, 2.264, 2.378, 2.493),
    "cosine:end=0.1": (2.144, None, None, 2.487),
    "linear:end=0.01": (2.008, None, None, 2.037),
}
QUALIFIED = ("linear", "cosine", "wsd:decay=0.1", "one_minus_sqrt")


@pytest.mark.parametrize("name", TABLE)
def test_published_table(name):
    exam = qualify(name)
    assert exam.qualified == (name in QUALIFIED)
    seen = list(exam.scaled)
    h = schedules.shape(name)
    steps = 1_000_000
    seen.append(bound(h(np.arange(steps) / steps) * 1e-3, form="tail") * 1e3)
    for value, want in zip(seen, TABLE[name], strict=True):
        # schedules sampled at t/T or (t+1)/(T+1) differ by about 2/T
        assert want is None or value == pytest.approx(want, abs=6e-3 if want > 4 else 2.1e-3)
    if not exam.qualified:
        assert exam.I == math.inf
        # the growth coefficient predicts the step from 1e5 to 1e6
        assert seen[3] - seen[2] == pytest.approx(exam.growth * math.log(10), rel=2e-2)


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        ("linear:end=0.1", 0.1),
        ("cosine:end=0.01", 0.01),
        ("constant", 1.0),
        ("step:at=0.5/0.9,factor=0.5", 0.25),
    ],
)
def test_floor_is_the_last_learning_rate(text, floor):
    exam = qualify(text)
    assert not exam
    assert exam.floor == pytest.approx(floor, rel=1e-6)
    assert exam.growth == pytest.approx(floor / 2, rel=1e-6)
    assert f"h ends at {floor:g}" in str(exam)


@pytest.mark.parametrize(
    "text",
    [
        "poly:power=0.05",
        "poly:power=4",
        "wsd:decay=0.01",
        "wsd:decay=0.2,cooldown=sqrt",
        "cosine:warmup=0.1",
        "linear:warmup=0.3",
    ],
)
def test_decays_to_zero_pass(text):
    exam = qualify(text)
    assert exam
    assert exam.floor == exam.growth == 0
    c = shape_constants(text)
    assert (exam.s, exam.I) == pytest.approx((c.s, c.I), rel=1e-9)


@pytest.mark.parametrize(
    ("h", "s", "noise"),
    [
        (lambda u: np.cos(np.pi * u / 2) ** 2, 0.5, None),
        (lambda u: (1 - u) ** 2 * (1 + u), 5 / 12, None),
        (lambda u: np.exp(-3 * u) * (1 - u), None, None),
        (lambda u: 1 - u, 0.5, 2.0),
    ],
)
def test_integrals_are_those_of_another_quadrature(h, s, noise):
    exam = qualify(h)

    def tail(u):
        return quad(h, u, 1, epsabs=0, epsrel=1e-12)[0]

    def integrand(u):
        return h(u) ** 2 / tail(u)

    assert exam.s == pytest.approx(s if s is not None else tail(0.0), rel=1e-10)
    # near 1 the integrand is smooth: stop at 1 - 1e-4 and add the trapezoid of the rest
    want = quad(integrand, 0, 1 - 1e-4, epsrel=1e-10)[0] + 1e-4 * integrand(1 - 1e-4) * (
        1.0 if noise == 2.0 else 0.5
    )
    assert exam.I == pytest.approx(noise if noise is not None else want, rel=3e-4)
    assert exam.I == pytest.approx(want, rel=3e-4)


def test_functions_of_one_number_are_taken():
    assert qualify(lambda u: 1 - math.sqrt(u)).I == pytest.approx(3 - 1.5 * math.log(3), rel=1e-10)


def test_cycles():
    assert qualify(lambda u: np.abs(np.cos(2.5 * np.pi * u))).qualified  # ends at 0
    peak = qualify(lambda u: np.abs(np.cos(3 * np.pi * u)))
    assert not peak.qualified
    assert peak.floor == pytest.approx(1.0, rel=1e-6)


def test_inverse_sqrt_fails_at_both_ends():
    # the published table drops a term of the same order: the coefficient of log T is 3/4, not 1/4
    exam = qualify(lambda u: u**-0.5)
    assert not exam.qualified
    assert exam.growth == pytest.approx(0.75, rel=1e-6)
    low, high = exam.scaled[0], exam.scaled[-1]
    assert (high - low) / math.log(100) == pytest.approx(0.75, rel=2e-3)
    assert not qualify("inverse_sqrt:steps=1000,peak=1,offset=10").qualified


@pytest.mark.parametrize(
    ("h", "why"),
    [
        (np.zeros_like, "the mean of h is 0"),
        (lambda u: 1 / u, "the mean of h is infinite"),
        (lambda u: (1 - u) * u**-0.7, "not integrable at 0"),
        (lambda u: 1.0 * (u < 0.6), "h ends at 1"),
        (lambda u: 1 / np.log(np.e / (1 - u)), "h ends at"),
    ],
)
def test_degenerate_shapes_are_diagnosed(h, why):
    exam = qualify(h)
    assert not exam.qualified
    assert why in exam.reason


def test_support_may_end_before_the_run():
    exam = qualify(lambda u: np.maximum(1 - u / 0.7, 0))
    assert exam.qualified
    assert (exam.s, exam.I) == pytest.approx((0.35, 2.0), rel=1e-9)


@pytest.mark.parametrize("steps", [50, 1000, 30_000])
@pytest.mark.parametrize(
    "text", ["linear", "cosine", "one_minus_sqrt", "wsd:decay=0.4", "poly:power=0.3", "poly:power=3"]
)
def test_arrays_of_decays_pass(text, steps):
    name, values = schedules.parse_parameters(text)
    lr = schedules.make(name, steps=steps, peak=3e-4, **values)
    exam = qualify(schedules.with_warmup(lr, 0.1))
    assert exam.qualified
    assert exam.horizons == (steps,)


@pytest.mark.parametrize("steps", [50, 1000, 30_000])
@pytest.mark.parametrize("end", [1.0, 0.1, 0.03])
@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_arrays_with_a_floor_fail(name, end, steps):
    exam = qualify(schedules.make(name, steps=steps, peak=3e-4, end=3e-4 * end))
    assert not exam.qualified
    assert exam.floor == pytest.approx(end, rel=0.05)


def test_arrays_that_touch_zero():
    assert qualify(np.linspace(1e-3, 0, 100)).qualified
    assert not qualify(np.append(np.full(50, 1e-3), np.zeros(5))).qualified
    empty = qualify(np.zeros(30))
    assert not empty.qualified
    assert "no step" in empty.reason


def test_exam_prints_tabulates_and_draws():
    exam = qualify("cosine:end=0.1")
    assert len(str(exam).splitlines()) <= 12
    assert "not qualified" in str(exam)
    assert exam.to_frame()["steps"].tolist() == [1000, 10_000, 100_000]
    ax = exam.plot()
    assert ax.get_xlabel() == "steps T"
    # the slope test of a 10 % floor is about -.48
    assert exam.slope == pytest.approx(-0.48, abs=5e-3)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("cosin", "did you mean 'cosine'"),
        ("poly", "lacks power"),
        (lambda u: u - 0.5, "finite and >= 0 inside"),
        (np.ones(9), "too few for an exam"),
        ([0.1, -0.1], "lr[1] = -0.1"),
    ],
)
def test_bad_shapes_are_named(shape, said):
    with pytest.raises(ConvexlawError) as error:
        qualify(shape)
    assert said in str(error.value)
