"""The text form of a schedule: round trip, and messages that list what is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convexlaw.errors import ConvexlawError
from convexlaw.theory import schedules

positive = st.floats(1e-12, 1e6)


@st.composite
def texts(draw):
    """A schedule name with values inside their ranges."""
    name = draw(st.sampled_from(schedules.NAMES))
    peak = draw(positive)
    values = {"steps": draw(st.integers(1, 300)), "peak": peak}
    if name in ("linear", "cosine", "one_minus_sqrt", "poly", "wsd") and draw(st.booleans()):
        values["end"] = peak * draw(st.floats(0, 1))
    if name == "poly":
        values["power"] = draw(st.floats(0.01, 20))
    if name == "wsd" and draw(st.booleans()):
        values["decay"] = draw(st.floats(0, 1))
        values["cooldown"] = draw(st.sampled_from(["linear", "sqrt", "cosine"]))
    if name == "step":
        points = st.one_of(st.floats(0, 1, exclude_max=True), st.integers(1, 400))
        values["at"] = draw(st.one_of(points, st.lists(points, min_size=1, max_size=4)))
        values["factor"] = draw(st.floats(0, 3))
    if name == "inverse_sqrt":
        values["offset"] = draw(positive)
    if draw(st.booleans()):
        values["warmup"] = draw(st.one_of(st.integers(0, values["steps"]), st.floats(0, 1, exclude_max=True)))
    return name, values


@given(texts())
def test_text_is_read_back_to_the_last_bit(case):
    name, values = case
    text = schedules.format(name, **values)
    np.testing.assert_array_equal(schedules.parse(text), schedules.make(name, **values))
    again, read = schedules.parse_parameters(text)
    assert schedules.parse_parameters(schedules.format(again, **read)) == (again, read)
    np.testing.assert_array_equal(schedules.make(again, **read), schedules.make(name, **values))


def test_the_documented_text():
    lr = schedules.parse("wsd:steps=50000,peak=1e-3,decay=0.2,warmup=300")
    assert lr.shape == (50_000,)
    np.testing.assert_allclose(
        lr[[0, 299, 300, 39_999, 40_000, 49_999]], 1e-3 * np.array([1 / 300, 1, 1, 1, 1, 1e-4])
    )


def test_spaces_case_dashes_and_whole_floats_are_understood():
    a = schedules.parse(" One-Minus-Sqrt : steps = 1e2 , peak=.5 ")
    np.testing.assert_array_equal(a, schedules.one_minus_sqrt(100, 0.5))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write name:steps=...,peak=..."),
        ("cosin:steps=3,peak=1", "did you mean 'cosine'? known: constant, linear, cosine"),
        ("exponential:steps=3,peak=1", "unknown schedule 'exponential'; known: constant"),
        (
            "wsd:steps=3,peak=1,decya=0.2",
            "'decya', did you mean 'decay'? known: steps, peak, decay, end, cooldown",
        ),
        ("linear:steps=3,peak=1,decay=0.2", "unknown parameter of linear 'decay'"),
        ("linear:steps=3", "lacks peak; its parameters are steps, peak, end, warmup"),
        ("linear", "lacks steps, peak"),
        ("poly:steps=3,peak=1", "lacks power"),
        (
            "linear:steps=many,peak=1",
            "steps = 'many' in schedule linear is not a number; its parameters are steps",
        ),
        ("step:steps=9,peak=1,at=0.2/x,factor=1", "at = 'x'"),
        ("linear:steps=3,peak=1,peak=2", "peak is given twice"),
        ("linear:steps=3,peak", "'peak' in schedule text"),
        ("linear:steps=3,peak=nan", "peak = nan"),
        ("linear:steps=3,peak=1,warmup=9", "warmup = 9 steps is longer"),
        ("wsd:steps=3,peak=1,cooldown=exp", "unknown cooldown 'exp'; known: linear, sqrt, cosine"),
    ],
)
def test_messages_name_the_value_and_what_is_allowed(text, said):
    with pytest.raises(ConvexlawError) as error:
        schedules.parse(text)
    assert said in str(error.value)


def test_format_refuses_what_parse_would_refuse():
    with pytest.raises(ConvexlawError, match="did you mean 'peak'"):
        schedules.format("linear", steps=3, peek=1)
    with pytest.raises(ConvexlawError, match="lacks peak"):
        schedules.format("linear", steps=3)
    with pytest.raises(ConvexlawError, match="unknown schedule"):
        schedules.format("wds", steps=3, peak=1)
