"""Continuous shapes h(u), u = t/steps in [0, 1], of the schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_checks import (
    fraction,
    nonnegative,
    peak_and_end,
    points,
    positive,
    unknown,
    whole_steps,
)

__all__ = ["Shape", "continuous", "cooldown_shape"]

Shape = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_COOLDOWNS: dict[str, Shape] = {
    "linear": lambda u: 1 - u,
    "sqrt": lambda u: 1 - np.sqrt(u),
    "cosine": lambda u: np.cos(0.5 * np.pi * u) ** 2,
}


def cooldown_shape(name: Any) -> Shape:
    """Decay from 1 at u = 0 to 0 at u = 1."""
    if not isinstance(name, str) or name not in _COOLDOWNS:
        raise ConvexlawError(unknown("cooldown", name, tuple(_COOLDOWNS)))
    return _COOLDOWNS[name]


def continuous(name: str, values: dict[str, Any]) -> Shape:
    """Shape of the schedule ``name``; values in steps become fractions of ``steps``, needed only then."""
    steps = values.get("steps")
    peak, end = peak_and_end(values.get("peak", 1.0), values.get("end", 0.0))
    core = _core(name, values, steps)
    warmup = nonnegative("warmup", values.get("warmup", 0))
    ramp = warmup if warmup < 1 else _in_horizon("warmup", warmup, steps)
    if ramp > 1:
        raise ConvexlawError(f"warmup = {warmup:g} steps is longer than the schedule ({steps} steps)")

    def h(u: NDArray[np.float64]) -> NDArray[np.float64]:
        u = np.asarray(u, dtype=float)
        value = end / peak + (1 - end / peak) * core(u)
        return np.where(u < ramp, u / ramp, value) if ramp > 0 else value

    return h


def _core(name: str, values: dict[str, Any], steps: Any) -> Shape:
    if name == "constant":
        return np.ones_like
    if name in ("linear", "cosine"):
        return _COOLDOWNS[name]
    if name == "one_minus_sqrt":
        return _COOLDOWNS["sqrt"]
    if name == "poly":
        power = positive("power", values["power"])
        return lambda u: np.asarray((1 - u) ** power)
    if name == "wsd":
        decay, cool = (
            fraction("decay", values.get("decay", 0.2)),
            cooldown_shape(values.get("cooldown", "linear")),
        )
        return (lambda u: cool(np.maximum(u - (1 - decay), 0) / decay)) if decay > 0 else np.ones_like
    if name == "step":
        at = np.array([p if p < 1 else _in_horizon("at", p, steps) for p in points(values["at"])])
        factor = nonnegative("factor", values["factor"])
        return lambda u: np.asarray(factor ** (u[..., None] >= at).sum(axis=-1, dtype=float))
    offset = positive("offset", values["offset"])
    scale = offset if steps is None else offset / whole_steps(steps)
    return lambda u: 1 / np.sqrt(1 + u / scale)


def _in_horizon(name: str, value: float, steps: Any) -> float:
    if steps is None:
        raise ConvexlawError(f"{name} = {value:g} is in steps: give steps= as well, or a fraction below 1")
    return value / whole_steps(steps)
