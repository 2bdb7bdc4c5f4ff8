"""What the API reference documents: the names that a module exports, in its order, by kind."""

from __future__ import annotations

import importlib
import inspect


def public_members(module: str) -> list[tuple[str, str]]:
    """List (directive, name) of everything in ``__all__`` of ``module``.

    Exceptions have no members worth listing; values are data.
    """
    found = importlib.import_module(module)
    out = []
    for name in getattr(found, "__all__", ()):
        value = getattr(found, name)
        if inspect.isclass(value):
            kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        elif inspect.isroutine(value) or hasattr(value, "py_func"):
            kind = "autofunction"
        else:
            kind = "autodata"
        out.append((kind, name))
    order = {"autoclass": 1, "autofunction": 0, "autoexception": 2, "autodata": 3}
    return sorted(out, key=lambda pair: order[pair[0]])
