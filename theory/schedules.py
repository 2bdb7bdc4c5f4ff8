"""Learning-rate schedules as plain arrays: ``lr[t]`` is the step size of update t = 0..steps-1.

The value at update t is the shape at t/steps, as in torch and Hugging Face, so the last step of a decay to
zero is still positive. ``peak`` and ``end`` are learning rates with ``0 <= end <= peak``; ``end`` would be
reached at t = steps. Fractions of steps round by Python's ``round``. A value outside its range is a
ConvexlawError.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_arrays import (
    constant,
    cosine,
    inverse_sqrt,
    linear,
    one_minus_sqrt,
    poly,
    step,
    with_warmup,
    wsd,
)
from convexlaw.theory._schedule_checks import unknown
from convexlaw.theory._schedule_shapes import Shape, continuous
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
