"""All pairs (TPP, FDP) that the Lasso reaches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.theory._donoho_tanner import power_limit
from convexlaw.theory._selection_checks import interval_array, ratio_and_sparsity
from convexlaw.theory._tradeoff_points import threshold_and_fdp

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["LassoRegion", "complete_lasso_region"]


@dataclass(frozen=True)
class LassoRegion(Result):
    """All pairs (TPP, FDP) that some Lasso reaches: ``lower <= FDP <= upper`` for TPP up to ``power``.

    Attributes
    ----------
    delta, epsilon : float
    power : float
        Largest TPP, u_DT.
    tpp, lower, upper : ndarray
    """

    _figure: ClassVar[str] = "tradeoff:plot_lasso_region"

    delta: float
    epsilon: float
    power: float
    tpp: Vector = field(repr=False, compare=False)
    lower: Vector = field(repr=False, compare=False)
    upper: Vector = field(repr=False, compare=False)

    def bounds(self, tpp: float) -> tuple[float, float]:
        """Smallest and largest FDP at one TPP, NaN beyond ``power``."""
        u = float(interval_array("tpp", tpp, "a true positive proportion"))
        low = threshold_and_fdp("lasso", u, self.delta, self.epsilon)[1]
        return low, _region_top(u, self.delta, self.epsilon) if low == low else math.nan

    def to_frame(self) -> pd.DataFrame:
        """Columns tpp, lower, upper."""
        import pandas as pd

        return pd.DataFrame({"tpp": self.tpp, "lower": self.lower, "upper": self.upper})

    def __str__(self) -> str:
        return (
            f"Complete Lasso region, delta = {self.delta:g}, epsilon = {self.epsilon:g}\n"
            f"  TPP up to {self.power:.6g}; there FDP from {self.lower[-1]:.6g} to {self.upper[-1]:.6g}\n"
            f"  FDP never above min(1 - epsilon, 1 - epsilon TPP / delta)"
        )


def _region_top(u: float, delta: float, epsilon: float) -> float:
    return min(1.0 - epsilon, 1.0 - epsilon * u / delta)


def complete_lasso_region(
    delta: float, epsilon: float, tpp: ArrayLike | None = None, n: int = 201
) -> LassoRegion:
    """Region of all (TPP, FDP) limits of the Lasso over priors, noise levels and penalties.

    Parameters
    ----------
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].
    tpp : array_like, optional
        Where to evaluate; ``n`` points from 0 to the power limit without it.
    n : int

    Returns
    -------
    LassoRegion
        For one TPP use its ``.bounds(tpp)``.

    References
    ----------
    Wang, Yang, Bu and Su, arXiv 2007.11078, Theorem 1.

    Examples
    --------
    >>> [round(x, 6) for x in complete_lasso_region(0.5, 0.3).bounds(0.6)]
    [0.399288, 0.64]
    """
    ratio, share = ratio_and_sparsity(delta, epsilon)
    power = power_limit(ratio, share)
    u = np.linspace(0.0, power, n) if tpp is None else np.atleast_1d(interval_array("tpp", tpp, "TPPs"))
    lower = np.array([threshold_and_fdp("lasso", float(x), ratio, share)[1] for x in u])
    upper = np.array([_region_top(float(x), ratio, share) for x in u])
    return LassoRegion(ratio, share, power, u, lower, np.where(np.isnan(lower), np.nan, upper))
