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
    from convexlaw.solvers.cross_validation import CVCurve, SlopeClassifierCV, SlopeCV, TwoLevelSlopeCV
    from convexlaw.solvers.estimators import Slope, TwoLevelSlope
    from convexlaw.solvers.fit import load_fit
    from convexlaw.solvers.fit_curves import CurveFit, fit_curves
    from convexlaw.solvers.fit_table import TableFit, fit_table
    from convexlaw.solvers.glm import SlopeClassifier
    from convexlaw.solvers.path import SlopePath, slope_path
    from convexlaw.solvers.slope import sorted_l1_dual_gap

_HOME = {
    "ConvergenceWarning": "errors",
    "ConvexlawError": "errors",
    "ExtrapolationWarning": "errors",
    "RunTable": "runs.table",
    "read_runs": "runs.table",
    "CVCurve": "solvers.cross_validation",
    "CurveFit": "solvers.fit_curves",
    "Slope": "solvers.estimators",
    "SlopeCV": "solvers.cross_validation",
    "SlopeClassifierCV": "solvers.cross_validation",
    "SlopeClassifier": "solvers.glm",
    "SlopePath": "solvers.path",
    "TableFit": "solvers.fit_table",
    "TwoLevelSlope": "solvers.estimators",
    "TwoLevelSlopeCV": "solvers.cross_validation",
    "fit_curves": "solvers.fit_curves",
    "fit_table": "solvers.fit_table",
    "load_fit": "solvers.fit",
    "slope_path": "solvers.path",
    "sorted_l1_dual_gap": "solvers.slope",
}
_SUBPACKAGES = ("errors", "figures", "paper_repro", "report", "runs", "simulations", "solvers", "theory")

__all__ = [
    "CVCurve",
    "ConvergenceWarning",
    "ConvexlawError",
    "CurveFit",
    "ExtrapolationWarning",
    "RunTable",
    "Slope",
    "SlopeCV",
    "SlopeClassifier",
    "SlopeClassifierCV",
    "SlopePath",
    "TableFit",
    "TwoLevelSlope",
    "TwoLevelSlopeCV",
    "__version__",
    "fit_curves",
    "fit_table",
    "load_fit",
    "read_runs",
    "slope_path",
    "sorted_l1_dual_gap",
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
