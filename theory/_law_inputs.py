"""Checks of what the laws take: numbers, arrays of them, one value a step, steps asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError

__all__ = ["floats", "number", "per_step", "steps_asked"]

Array = NDArray[np.float64]


def number(name: str, value: Any) -> float:
    """Return a number that is not infinite; NaN goes through to the check of its range."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ConvexlawError(f"{name} = {value!r} is not a number; give one") from None
    if np.isinf(found):
        raise ConvexlawError(f"{name} = {found}: it must be finite")
    return found


def floats(name: str, values: Any) -> Array:
    """Return an array of numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConvexlawError(f"{name} = {repr(values)[:60]} holds values that are no numbers") from None


def per_step(name: str, values: Any, count: int) -> Array:
    """Return one number a step; a scalar stands throughout."""
    found = floats(name, values)
    if found.shape not in ((), (1,), (count,)):
        raise ConvexlawError(
            f"{name} has shape {found.shape}: give a number, or one for each of {count} steps"
        )
    return np.broadcast_to(found, (count,))


def steps_asked(at: Any, count: int) -> NDArray[np.int64]:
    """Return the steps ``at`` (all where None) of a schedule of ``count`` steps."""
    if at is None:
        return np.arange(count, dtype=np.int64)
    asked = np.atleast_1d(floats("at", at))
    if asked.ndim != 1 or np.any(asked != np.round(asked)):
        raise ConvexlawError(f"at = {repr(at)[:60]}: give steps as a list of whole numbers")
    wrong = asked[~((asked >= 0) & (asked < count))]
    if wrong.size:
        raise ConvexlawError(
            f"step {wrong[0]:.0f} is asked of a schedule of {count} steps: "
            f"steps are 0..{count - 1}; append the continued schedule"
        )
    return asked.astype(np.int64)
