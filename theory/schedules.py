"""Learning-rate schedules as plain arrays: ``lr[t]`` is the step size of update t = 0..steps-1.

The value at update t is the shape at t/steps, as in torch and Hugging Face, so the last step of a decay to
zero is still positive. ``peak`` and ``end`` are learning rates with ``0 <= end <= peak``; ``end`` would be
reached at t = steps. Fractions of steps round by Python's ``round``. A value outside its range is a
ConvexlawError.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

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
    unknown,
    whole_steps,
)
from convexlaw.theory._schedule_shapes import Shape, continuous, cooldown_shape
from convexlaw.theory._schedule_text import read_number, split_text, write_text

__all__ = [
    "NAMES",
    "constant",
    "cosine",
    "format",
    "inverse_sqrt",
    "linear",
    "make",
    "one_minus_sqrt",
    "parse",
    "parse_parameters",
    "poly",
    "shape",
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


_MAKERS: dict[str, Callable[..., Array]] = {
    f.__name__: f for f in (constant, linear, cosine, one_minus_sqrt, poly, wsd, step, inverse_sqrt)
}
NAMES: tuple[str, ...] = tuple(_MAKERS)
"""Names that :func:`make`, :func:`parse` and :func:`shape` know."""


def make(name: str, **parameters: Any) -> Array:
    """Call the schedule function ``name``, then :func:`with_warmup` where ``warmup`` is given.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    **parameters
        The parameters of that function, and ``warmup``.

    Returns
    -------
    (steps,) array

    Raises
    ------
    ConvexlawError
        Unknown name, unknown or missing parameter, or a value outside its range.

    Examples
    --------
    >>> make("constant", steps=3, peak=1.0, warmup=2).tolist()
    [0.5, 1.0, 1.0]
    """
    _check_names(name, parameters)
    warmup = parameters.pop("warmup", 0)
    return with_warmup(_MAKERS[name](**parameters), warmup)


def parse(text: str) -> Array:
    """Schedule from text such as ``"wsd:steps=50000,peak=1e-3,decay=0.2,warmup=300"``.

    Parameters
    ----------
    text : str
        ``name:key=value,...``: a name of ``NAMES``, the parameters of that function, and ``warmup``.

    Returns
    -------
    (steps,) array

    Raises
    ------
    ConvexlawError
        Unknown name, unknown, missing, repeated or non-numeric parameter; the message lists what is allowed.

    Examples
    --------
    >>> parse("linear:steps=4,peak=1,warmup=2").tolist()
    [0.5, 1.0, 0.5, 0.25]
    """
    name, values = parse_parameters(text)
    return make(name, **values)


def parse_parameters(text: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters written in a schedule text, as :func:`make` and :func:`format` take them.

    Parameters
    ----------
    text : str
        As in :func:`parse`; ``steps`` and ``peak`` may be missing here.

    Returns
    -------
    name : str
    values : dict
        Numbers, tuples of numbers (``at``) and words (``cooldown``), in the order written.

    Raises
    ------
    ConvexlawError
        Unknown name, unknown, repeated or non-numeric parameter.

    Examples
    --------
    >>> parse_parameters("wsd:steps=50000,peak=1e-3,decay=0.2")
    ('wsd', {'steps': 50000, 'peak': 0.001, 'decay': 0.2})
    """
    name, written = split_text(text)
    _check_names(name, written, optional=_allowed(name) if name in _MAKERS else ())
    return name, {
        k: v if k == "cooldown" else read_number(name, k, v, _allowed(name)) for k, v in written.items()
    }


def format(name: str, **parameters: Any) -> str:
    """Text of a schedule, the inverse of :func:`parse`: ``parse(format(...))`` is ``make(...)``.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    **parameters
        The parameters of that function, and ``warmup``.

    Returns
    -------
    str
        Every number is written so that it is read back to the last bit.

    Raises
    ------
    ConvexlawError
        Unknown name, unknown or missing parameter.

    Examples
    --------
    >>> format("wsd", steps=50000, peak=1e-3, decay=0.2, warmup=300)
    'wsd:steps=50000,peak=0.001,decay=0.2,warmup=300'
    """
    _check_names(name, parameters)
    return write_text(name, parameters)


def shape(name: str, **parameters: Any) -> Shape:
    """Continuous shape h(u), u = t/steps in [0, 1], of a schedule, with h = 1 at the peak.

    Parameters
    ----------
    name : str
        One of ``NAMES``, or a schedule text.
    **parameters
        Parameters that the text does not give. ``steps`` and ``peak`` may be missing: then ``end`` is
        relative to the peak, ``at`` and ``warmup`` are fractions and ``offset`` is in units of the horizon.

    Returns
    -------
    callable
        Maps an array of positions u to h(u).

    Raises
    ------
    ConvexlawError
        As :func:`make`; also a parameter in steps without ``steps``.

    Examples
    --------
    >>> shape("wsd", decay=0.5)(np.array([0.0, 0.5, 0.75])).tolist()
    [1.0, 1.0, 0.5]
    """
    name, written = parse_parameters(name)
    values = {**written, **parameters}
    _check_names(name, values, optional=("steps", "peak"))
    return continuous(name, values)


def _allowed(name: str) -> list[str]:
    return [*inspect.signature(_MAKERS[name]).parameters, "warmup"]


def _check_names(name: str, given: Iterable[str], optional: Iterable[str] = ()) -> None:
    if name not in _MAKERS:
        raise ConvexlawError(unknown("schedule", name, NAMES))
    for key in given:
        if key not in _allowed(name):
            raise ConvexlawError(unknown(f"parameter of {name}", key, _allowed(name)))
    known = inspect.signature(_MAKERS[name]).parameters.values()
    missing = [p.name for p in known if p.default is p.empty and p.name not in {*given, *optional}]
    if missing:
        allowed = ", ".join(_allowed(name))
        raise ConvexlawError(f"schedule {name} lacks {', '.join(missing)}; its parameters are {allowed}")


def _clock(steps: int) -> Array:
    count = whole_steps(steps)
    return np.arange(count) / count


def _between(h: Array, peak: float, end: float) -> Array:
    top, bottom = peak_and_end(peak, end)
    return np.where(h >= 1, top, bottom + (top - bottom) * h)
