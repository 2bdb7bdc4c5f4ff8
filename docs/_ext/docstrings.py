"""Docstrings are written for the terminal: what reStructuredText would misread is put right here.

``|x|`` is an absolute value, not a substitution; constants that a public module takes over from a private one
are documented where they are defined.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer

# what stays as it is: literals, roles, examples up to the next empty line
_KEEP = re.compile(r"(``.*?``|`[^`]+`|^ *>>> .*?(?:\n *\n|\Z))", re.DOTALL | re.MULTILINE)


def plain_bars(text: str) -> str:
    """Escape the bars of absolute values outside literals and examples."""
    parts = _KEEP.split(text)
    return "".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


def _read(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what == "data":
        lines[:] = _constant(name, obj)
    if lines:
        # an ellipsis would end the sentence of a summary
        lines[0] = lines[0].replace("...", "\N{HORIZONTAL ELLIPSIS}")
    lines[:] = plain_bars("\n".join(lines)).split("\n")


def _constant(name: str, obj: Any) -> list[str]:
    """Find the docstring of a constant in the module that defines it."""
    module, _, short = name.rpartition(".")
    homes = [m for m in sorted(sys.modules) if m.startswith("convexlaw.") and m != module]
    for home in [module, *homes]:
        if getattr(sys.modules[home], short, None) is not obj:
            continue
        try:
            docs = ModuleAnalyzer.for_module(home).find_attr_docs()
        except PycodeError:
            continue
        if ("", short) in docs:
            return list(docs["", short])
    return []


def _signature(app: Sphinx, what: str, name: str, obj: Any, options: Any, args: Any, result: Any) -> Any:
    """Leave private parameters out of a signature."""
    if what != "class" or not args:
        return None
    kept = [part for part in args[1:-1].split(", ") if not part.startswith("_")]
    return f"({', '.join(kept)})", result


def _skip(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from other projects: it is documented there."""
    home = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", None), "__module__", None)
    return True if isinstance(home, str) and not home.startswith("convexlaw") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hooks, before numpydoc's."""
    app.connect("autodoc-process-docstring", _read, priority=100)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _signature, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
