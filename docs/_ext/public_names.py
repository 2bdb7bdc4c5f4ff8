"""What the API reference documents: the names that a module exports, functions first."""

from __future__ import annotations

import importlib
import inspect

import convexlaw

_ORDER = ("autofunction", "autoclass", "autoexception", "autodata", "")


def public_members(module: str) -> list[tuple[str, str]]:
    """List (directive, name) of everything in ``__all__`` of ``module``.

    What the package itself exports has a page of its own: no directive, and the name it has there.
    """
    found = importlib.import_module(module)
    out = []
    for name in getattr(found, "__all__", ()):
        value = getattr(found, name)
        if name in convexlaw.__all__ and getattr(convexlaw, name) is value:
            out.append(("", f"~convexlaw.{name}"))
        else:
            out.append((_directive(value), name))
    return sorted(out, key=lambda pair: _ORDER.index(pair[0]))


def _directive(value: object) -> str:
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    # functions compiled by numba are objects
    return "autofunction" if inspect.isroutine(value) or hasattr(value, "py_func") else "autodata"
