"""Checks of the numbers that schedules take."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError

__all__ = [
    "fraction",
    "learning_rates",
    "nonnegative",
    "number",
    "peak_and_end",
    "points",
    "positive",
    "rate",
    "unknown",
    "whole_steps",
]


def unknown(what: str, value: object, known: Sequence[str]) -> str:
    """Write the message for a name that is not among ``known``, with a suggestion where one is near."""
    near = difflib.get_close_matches(str(value), known, n=1)
    hint = f", did you mean {near[0]!r}?" if near else ";"
    return f"unknown {what} {value!r}{hint} known: {', '.join(known)}"


def whole_steps(value: Any) -> int:
    """Check a number of steps: whole, at least 1."""
    count = number("steps", value, "a whole number of steps, at least 1", lambda x: x >= 1 and x == int(x))
    return int(count)


def number(name: str, value: Any, rule: str, ok: Callable[[float], bool]) -> float:
    """Check a finite number that satisfies ``ok``; ``rule`` says so in words."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise ConvexlawError(f"{name} = {value!r} is not a number; give {rule}")
    if not math.isfinite(float(value)) or not ok(float(value)):
        raise ConvexlawError(f"{name} = {value}: give {rule}")
    return float(value)


def rate(value: Any) -> float:
    """Check a peak learning rate."""
    return number("peak", value, "a positive learning rate", lambda x: x > 0)


def positive(name: str, value: Any) -> float:
    """Check a positive number."""
    return number(name, value, "a positive number", lambda x: x > 0)


def nonnegative(name: str, value: Any) -> float:
    """Check a number >= 0."""
    return number(name, value, "a number >= 0", lambda x: x >= 0)


def fraction(name: str, value: Any) -> float:
    """Check a fraction of the steps."""
    return number(name, value, "a fraction of the steps in [0, 1]", lambda x: 0 <= x <= 1)


def peak_and_end(peak: Any, end: Any) -> tuple[float, float]:
    """Check the peak and end of a decay, 0 <= end <= peak."""
    top, bottom = rate(peak), nonnegative("end", end)
    if bottom > top:
        raise ConvexlawError(
            f"end = {bottom} is above peak = {top}; a schedule decays: give 0 <= end <= peak"
        )
    return top, bottom


def points(at: Any) -> list[float]:
    """Check points of change: fractions below 1 or whole steps."""
    if isinstance(at, (numbers.Real, str, bytes)):
        at = [at]
    found = [nonnegative("at", p) for p in (at.tolist() if isinstance(at, np.ndarray) else at)]
    for p in found:
        if p >= 1 and p != int(p):
            raise ConvexlawError(f"at = {p}: give a fraction of the steps below 1, or a whole step number")
    return found


def learning_rates(lr: Any) -> NDArray[np.float64]:
    """Check one learning rate a step: a new float array of shape (T,), finite, >= 0, T >= 1."""
    try:
        out = np.array(lr, dtype=float)
    except (TypeError, ValueError):
        raise ConvexlawError(
            f"lr = {lr!r} is not an array of numbers; give one learning rate a step"
        ) from None
    if out.ndim != 1 or out.size == 0:
        raise ConvexlawError(
            f"lr has shape {out.shape}: give one learning rate a step, shape (T,) with T >= 1"
        )
    bad = np.flatnonzero(~(np.isfinite(out) & (out >= 0)))
    if bad.size:
        t = int(bad[0])
        raise ConvexlawError(
            f"lr[{t}] = {out[t]}: learning rates are finite and >= 0; repair or cut the array"
        )
    return out
