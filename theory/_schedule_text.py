"""The text form of a schedule: ``name:key=value,key=value``."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from convexlaw.errors import ConvexlawError

__all__ = ["read_number", "split_text", "write_text"]


def split_text(text: str) -> tuple[str, dict[str, str]]:
    """Split ``name:key=value,...`` into the name and the values as written."""
    if not isinstance(text, str) or not text.strip():
        raise ConvexlawError(f"schedule text {text!r}: write name:steps=...,peak=...")
    head, _, tail = text.partition(":")
    name = head.strip().lower().replace("-", "_")
    values: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in tail.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise ConvexlawError(f"{part!r} in schedule text {text!r} is not of the form key=value")
        key = key.lower().replace("-", "_")
        if key in values:
            raise ConvexlawError(f"{key} is given twice in schedule text {text!r}; give it once")
        values[key] = value
    return name, values


def read_number(name: str, key: str, text: str, allowed: Sequence[str]) -> Any:
    """Read the number written in ``text`` (whole numbers as int), or numbers joined by ``/``."""
    if key == "at" and "/" in text:
        return tuple(read_number(name, key, piece, allowed) for piece in text.split("/"))
    try:
        value = float(text)
    except ValueError:
        raise ConvexlawError(
            f"{key} = {text!r} in schedule {name} is not a number; its parameters are {', '.join(allowed)}"
        ) from None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def write_text(name: str, values: dict[str, Any]) -> str:
    """Inverse of the two functions above."""
    return f"{name}:" + ",".join(f"{key}={_write(key, value)}" for key, value in values.items())


def _write(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    try:
        return "/".join(_write(key, v) for v in np.asarray(value).tolist())
    except TypeError:
        raise ConvexlawError(
            f"{key} = {value!r} cannot be written as a schedule text; give numbers"
        ) from None
