"""Convex theory for training runs and high-dimensional selection.

Everything is imported on first use, so that ``import convexlaw`` and the command line start at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from convexlaw.errors import ConvergenceWarning, ConvexlawError, ExtrapolationWarning
    from convexlaw.runs.table import RunTable, read_runs
    from convexlaw.solvers.fit import load_fit
    from convexlaw.solvers.fit_curves import CurveFit, fit_curves
    from convexlaw.solvers.fit_table import TableFit, fit_table

_HOME = {
    "ConvergenceWarning": "errors",
    "ConvexlawError": "errors",
    "ExtrapolationWarning": "errors",
    "RunTable": "runs.table",
    "read_runs": "runs.table",
    "CurveFit": "solvers.fit_curves",
    "TableFit": "solvers.fit_table",
    "fit_curves": "solvers.fit_curves",
    "fit_table": "solvers.fit_table",
    "load_fit": "solvers.fit",
}
_SUBPACKAGES = ("errors", "figures", "paper_repro", "report", "runs", "simulations", "solvers", "theory")

__all__ = [
    "ConvergenceWarning",
    "ConvexlawError",
    "CurveFit",
    "ExtrapolationWarning",
    "RunTable",
    "TableFit",
    "__version__",
    "fit_curves",
    "fit_table",
    "load_fit",
    "read_runs",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"convexlaw.{_HOME[name]}"), name)
    elif name in _SUBPACKAGES:
        value = importlib.import_module(f"convexlaw.{name}")
    else:
        raise AttributeError(f"module 'convexlaw' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_SUBPACKAGES})
