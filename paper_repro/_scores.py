"""Scores of fits on runs that lie far beyond the fitted ones, as the papers ask for."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from convexlaw.errors import ExtrapolationWarning

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers.fit_curves import CurveFit


def far_score(fit: CurveFit, runs: Any = None) -> pd.DataFrame:
    """Errors of a fit as by ``fit.score``; that some runs are far from the fitted ones is the question."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return fit.score(runs)
