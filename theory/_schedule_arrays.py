"""Schedules as arrays, one function a shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_checks import (
    fraction,
    learning_rates,
    nonnegative,
    peak_and_end,
    points,
    positive,
    rate,
    whole_steps,
)
from convexlaw.theory._schedule_shapes import cooldown_shape

__all__ = [
    "constant",
    "cosine",
    "inverse_sqrt",
    "linear",
    "one_minus_sqrt",
    "poly",
    "step",
    "with_warmup",
    "wsd",
]

Array = NDArray[np.float64]


def constant(steps: int, peak: float) -> Array:
    """Constant learning rate.

    Parameters
    ----------
    steps : int
        Number of updates, at least 1.
    peak : float
        Learning rate, positive.

    Returns
    -------
    (steps,) array

    Raises
    ------
    ConvexlawError
        A value outside its range (so in every schedule here).

    Examples
    --------
    >>> constant(3, 0.5).tolist()
    [0.5, 0.5, 0.5]
    """
    return np.full(whole_steps(steps), rate(peak))


def linear(steps: int, peak: float, end: float = 0.0) -> Array:
    """Linear decay: end + (peak - end) (1 - t/steps).

    Parameters
    ----------
    steps : int
        Number of updates.
    peak, end : float
        Learning rates at t = 0 and at t = steps.

    Returns
    -------
    (steps,) array

    Examples
    --------
    >>> linear(4, 1.0).tolist()
    [1.0, 0.75, 0.5, 0.25]
    """
    return _between(1 - _clock(steps), peak, end)


def cosine(steps: int, peak: float, end: float = 0.0) -> Array:
    """Cosine decay: end + (peak - end) (1 + cos(pi t/steps))/2.

    Parameters
    ----------
    steps : int
        Number of updates.
    peak, end : float
        Learning rates at t = 0 and at t = steps.

    Returns
    -------
    (steps,) array

    Examples
    --------
    >>> cosine(4, 1.0).round(3).tolist()
    [1.0, 0.854, 0.5, 0.146]
    """
    return _between(cooldown_shape("cosine")(_clock(steps)), peak, end)


def one_minus_sqrt(steps: int, peak: float, end: float = 0.0) -> Array:
    """Decay by a square root: end + (peak - end) (1 - sqrt(t/steps)).

    Parameters
    ----------
    steps : int
        Number of updates.
    peak, end : float
        Learning rates at t = 0 and at t = steps.

    Returns
    -------
    (steps,) array

    Examples
    --------
    >>> one_minus_sqrt(4, 1.0).round(3).tolist()
    [1.0, 0.5, 0.293, 0.134]
    """
    return _between(cooldown_shape("sqrt")(_clock(steps)), peak, end)


def poly(steps: int, peak: float, power: float, end: float = 0.0) -> Array:
    """Polynomial decay: end + (peak - end) (1 - t/steps)^power.

    Parameters
    ----------
    steps : int
        Number of updates.
    peak, end : float
        Learning rates at t = 0 and at t = steps.
    power : float
        Exponent, positive; 1 is :func:`linear`.

    Returns
    -------
    (steps,) array

    Examples
    --------
    >>> poly(4, 1.0, power=2).tolist()
    [1.0, 0.5625, 0.25, 0.0625]
    """
    return _between((1 - _clock(steps)) ** positive("power", power), peak, end)


def wsd(steps: int, peak: float, decay: float = 0.2, end: float = 0.0, cooldown: str = "linear") -> Array:
    """Warmup-stable-decay without its warmup: constant, then a cooldown.

    Parameters
    ----------
    steps : int
        Number of updates.
    peak, end : float
        Learning rates of the stable part and at t = steps.
    decay : float
        Fraction of the steps in cooldown, in [0, 1]: the last round(decay * steps) updates. (Some papers name
        the stable fraction 1 - decay.)
    cooldown : {"linear", "sqrt", "cosine"}
        Shape of the cooldown: 1-u, 1-sqrt(u) or (1+cos(pi u))/2.

    Returns
    -------
    (steps,) array

    Examples
    --------
    >>> wsd(5, 1.0, decay=0.4).tolist()
    [1.0, 1.0, 1.0, 1.0, 0.5]
    """
    steps = whole_steps(steps)
    cooled = round(fraction("decay", decay) * steps)
    h = np.ones(steps)
    h[steps - cooled :] = cooldown_shape(cooldown)(np.arange(cooled) / max(cooled, 1))
    return _between(h, peak, end)


def step(steps: int, peak: float, at: float | Sequence[float], factor: float) -> Array:
    """Piecewise constant: multiplied by ``factor`` at each point of ``at``.

    Parameters
    ----------
    steps : int
        Number of updates.
    peak : float
        First learning rate, positive.
    at : float or sequence of float
        Where it changes: below 1 a fraction of the steps, otherwise the number of the first update with the
        changed rate. In text, points are joined by ``/``: ``at=0.5/0.75``.
    factor : float
        What the learning rate is multiplied by at each point, >= 0.

    Returns
    -------
    (steps,) array

    Examples
    --------
    >>> step(4, 1.0, at=0.5, factor=0.25).tolist()
    [1.0, 1.0, 0.25, 0.25]
    >>> step(4, 1.0, at=[1, 3], factor=0.5).tolist()
    [1.0, 0.5, 0.5, 0.25]
    """
    passed = np.zeros(whole_steps(steps))
    for point in points(at):
        passed[(round(point * passed.size) if point < 1 else int(point)) :] += 1
    return np.asarray(rate(peak) * nonnegative("factor", factor) ** passed)


def inverse_sqrt(steps: int, peak: float, offset: float) -> Array:
    """Inverse square root decay peak / sqrt(1 + t/offset).

    Parameters
    ----------
    steps : int
        Number of updates.
    peak : float
        First learning rate, positive.
    offset : float
        Time scale in steps, positive (``timescale`` in Hugging Face); 1 is peak / sqrt(t + 1).

    Returns
    -------
    (steps,) array

    Examples
    --------
    >>> inverse_sqrt(4, 1.0, offset=1).round(3).tolist()
    [1.0, 0.707, 0.577, 0.5]
    """
    return np.asarray(rate(peak) / np.sqrt(1 + np.arange(whole_steps(steps)) / positive("offset", offset)))


def with_warmup(lr: ArrayLike, warmup: float) -> Array:
    """Replace the first ``warmup`` steps by the line peak (t + 1)/warmup, peak = max(lr).

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates.
    warmup : int or float
        Number of steps; below 1 a fraction of T.

    Returns
    -------
    (T,) array
        A new array.

    Raises
    ------
    ConvexlawError
        The warmup is negative, not whole, or longer than the schedule.

    Examples
    --------
    >>> with_warmup(linear(4, 1.0), 2).tolist()
    [0.5, 1.0, 0.5, 0.25]
    """
    out = learning_rates(lr)
    length = nonnegative("warmup", warmup)
    count = round(length * out.size) if length < 1 else int(length)
    if length >= 1 and count != length:
        raise ConvexlawError(f"warmup = {warmup}: give whole steps, or a fraction of the steps below 1")
    if count > out.size:
        raise ConvexlawError(f"warmup = {count} steps is longer than the schedule ({out.size} steps)")
    out[:count] = out.max() * ((np.arange(count) + 1) / max(count, 1))
    return out


def _clock(steps: int) -> Array:
    count = whole_steps(steps)
    return np.arange(count) / count


def _between(h: Array, peak: float, end: float) -> Array:
    top, bottom = peak_and_end(peak, end)
    return np.where(h >= 1, top, bottom + (top - bottom) * h)
