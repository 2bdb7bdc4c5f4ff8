"""Checks of the numbers that the theory of selection takes; every message names value, rule and remedy."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZES = (1e-60, 1e60)  # of signals and noise: their fourth powers stay numbers

__all__ = [
    "SIZES",
    "between",
    "fraction",
    "interval_array",
    "noise_level",
    "nonnegative",
    "positive",
    "ratio_and_sparsity",
    "real",
    "real_array",
]


def real(name: str, value: Any, rule: str) -> float:
    """Finite real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, np.number)):
        raise ConvexlawError(f"{name} = {value!r} is not a number; give {rule}")
    number = float(value)
    if not math.isfinite(number):
        raise ConvexlawError(f"{name} = {number}: must be finite; give {rule}")
    return number


def positive(name: str, value: Any, what: str = "a number > 0") -> float:
    """Finite number > 0."""
    number = real(name, value, what)
    if number <= 0:
        raise ConvexlawError(f"{name} = {number:g}: must be > 0; give {what}")
    return number


def nonnegative(name: str, value: Any, what: str = "a number >= 0") -> float:
    """Finite number >= 0."""
    number = real(name, value, what)
    if number < 0:
        raise ConvexlawError(f"{name} = {number:g}: must be >= 0; give {what}")
    return number


def noise_level(value: Any) -> float:
    """Noise standard deviation: 0, or a number whose square is one too."""
    number = nonnegative("sigma", value, "the noise standard deviation, >= 0")
    if number > SIZES[1]:
        raise ConvexlawError(
            f"sigma = {number:g}: its square leaves the floating-point range; "
            f"choose a unit that gives noise below {SIZES[1]:g}"
        )
    return number


def between(name: str, value: Any, low: float, high: float, what: str) -> float:
    """Finite number in [low, high]."""
    number = real(name, value, what)
    if not low <= number <= high:
        raise ConvexlawError(f"{name} = {number:g}: must lie in [{low:g}, {high:g}]; give {what}")
    return number


def fraction(name: str, value: Any, what: str) -> float:
    """Finite number in (0, 1]."""
    number = real(name, value, what)
    if not 0 < number <= 1:
        raise ConvexlawError(f"{name} = {number:g}: must lie in (0, 1]; give {what}")
    return number


def ratio_and_sparsity(delta: Any, epsilon: Any) -> tuple[float, float]:
    """Rows per feature (> 0) and fraction of signals (in (0, 1])."""
    return (
        positive("delta", delta, "delta = n/p, rows per feature"),
        fraction("epsilon", epsilon, "epsilon = k/p, the fraction of nonzero signals"),
    )


def real_array(name: str, value: Any, what: str) -> NDArray[np.float64]:
    """Array (any shape) of numbers."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConvexlawError(f"{name} = {value!r} is not numeric; give {what}") from None


def interval_array(name: str, value: Any, what: str) -> NDArray[np.float64]:
    """Array (any shape) of numbers in [0, 1]; NaN is refused."""
    array = real_array(name, value, what)
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        seen = array[wrong].reshape(-1)[0]
        raise ConvexlawError(f"{name} = {seen:g}: must lie in [0, 1]; give {what}")
    return array
