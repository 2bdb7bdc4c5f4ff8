"""Trade-offs between true positives and false discoveries: what the Lasso, two levels and SLOPE can reach.

All limits are for X with independent N(0, 1/n) entries, n/p -> delta, a fraction epsilon of nonzero signals
of any law, any noise level. ``tpp`` is written u in the papers, ``fdp`` q; thresholds are in units of tau.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory._donoho_tanner import (
    donoho_tanner_power,
    donoho_tanner_sparsity,
    donoho_tanner_threshold,
)
from convexlaw.theory._lasso_region import LassoRegion, complete_lasso_region
from convexlaw.theory._selection_checks import ratio_and_sparsity
from convexlaw.theory._tradeoff_designs import AttainingDesign, attaining_design, moebius_design
from convexlaw.theory._tradeoff_inverse import Crossings, best_tpp, crossings, dagger, rows_needed
from convexlaw.theory._tradeoff_points import Kind, check_kind, evaluate, threshold_and_fdp

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = [
    "AttainingDesign",
    "Crossings",
    "LassoRegion",
    "TradeoffCurve",
    "attaining_design",
    "best_tpp",
    "complete_lasso_region",
    "crossings",
    "dagger",
    "donoho_tanner_power",
    "donoho_tanner_sparsity",
    "donoho_tanner_threshold",
    "lasso_fdp",
    "moebius_design",
    "rows_needed",
    "slope_fdp_lower",
    "slope_fdp_upper",
    "tradeoff_curve",
    "tradeoff_threshold",
    "two_level_fdp",
]


def lasso_fdp(tpp: ArrayLike, delta: ArrayLike, epsilon: ArrayLike) -> float | NDArray[np.float64]:
    """Smallest FDP of the Lasso at a TPP, ``q*(u; delta, epsilon)``.

    Parameters
    ----------
    tpp : float or array
        True positive proportion, in [0, 1].
    delta : float or array
        Rows per feature, n/p > 0.
    epsilon : float or array
        Fraction of nonzero signals, in (0, 1].

    Returns
    -------
    float or ndarray
        Broadcast shape; NaN where no Lasso reaches the TPP (beyond `donoho_tanner_power`).

    Raises
    ------
    ConvexlawError
        tpp outside [0, 1], epsilon outside (0, 1], delta not > 0, NaN.

    References
    ----------
    Su, Bogdan and Candes, arXiv 1511.01957, Theorem 2.1.

    Examples
    --------
    >>> lasso_fdp([0.1, 0.4, 0.9], 0.3, 0.2).round(6)
    array([0.00717 , 0.453183,      nan])
    """
    return evaluate("lasso", tpp, delta, epsilon, 1)


def slope_fdp_upper(tpp: ArrayLike, delta: ArrayLike, epsilon: ArrayLike) -> float | NDArray[np.float64]:
    """FDP that SLOPE reaches at every TPP, ``q^*(u)``: the Lasso to its power limit, then the Moebius part.

    ``q^* = (1-eps)(eps u - eps*) / (eps u (1-eps*) - eps*(1-eps))`` for u > u_DT; ``q^*(1) = 1 - eps``.

    Parameters
    ----------
    tpp, delta, epsilon
        As in `lasso_fdp`.

    Returns
    -------
    float or ndarray
        Broadcast shape.

    Raises
    ------
    ConvexlawError
        As in `lasso_fdp`.

    References
    ----------
    Bu, Klusowski, Rush and Su, arXiv 2105.13302, Theorem 1 (the upper curve) and Proposition 2.1.

    Examples
    --------
    >>> slope_fdp_upper([0.4, 0.7, 1.0], 0.3, 0.2).round(6)
    array([0.453183, 0.727804, 0.8     ])
    """
    return evaluate("slope_upper", tpp, delta, epsilon, 1)


def slope_fdp_lower(tpp: ArrayLike, delta: ArrayLike, epsilon: ArrayLike) -> float | NDArray[np.float64]:
    """Smallest FDP of any SLOPE at a TPP, ``q_*(u)``.

    The optimum over all priors and penalties is the better of two families: signals at 0+ or in one far
    cluster, and signals of one common size with the best penalty for it (exact, no grid).

    Parameters
    ----------
    tpp, delta, epsilon
        As in `lasso_fdp`.

    Returns
    -------
    float or ndarray
        Broadcast shape.

    Raises
    ------
    ConvexlawError
        As in `lasso_fdp`.

    References
    ----------
    Bu, Klusowski, Rush and Su, arXiv 2105.13302, Theorem 1 (the lower curve). The reduction to two families
    was found numerically (it agrees with the search over all two-point laws to 1e-6), not proved.

    Examples
    --------
    >>> slope_fdp_lower([0.3, 0.7], 0.3, 0.2).round(5)
    array([0.33124, 0.66024])
    """
    return evaluate("slope_lower", tpp, delta, epsilon, 1)


def two_level_fdp(tpp: ArrayLike, delta: ArrayLike, epsilon: ArrayLike) -> float | NDArray[np.float64]:
    """Smallest FDP of two-level SLOPE at a TPP, over all priors and two-level penalties.

    Below a crossing point it equals `slope_fdp_lower`; above it lies between that and `slope_fdp_upper`.

    Parameters
    ----------
    tpp, delta, epsilon
        As in `lasso_fdp`.

    Returns
    -------
    float or ndarray
        Broadcast shape.

    Raises
    ------
    ConvexlawError
        As in `lasso_fdp`.

    References
    ----------
    arXiv 2507.09110 announces an exact curve; this one was derived independently of its text.

    Examples
    --------
    >>> two_level_fdp([0.3, 0.7], 0.3, 0.2).round(6)
    array([0.331241, 0.667336])
    """
    return evaluate("two_level", tpp, delta, epsilon, 1)


def tradeoff_threshold(
    kind: str, tpp: ArrayLike, delta: ArrayLike, epsilon: ArrayLike
) -> float | NDArray[np.float64]:
    """Zero threshold of the best design at a TPP, in units of tau; infinite at TPP 0.

    Parameters
    ----------
    kind : {"lasso", "slope_upper", "slope_lower", "two_level"}
    tpp, delta, epsilon
        As in `lasso_fdp`.

    Returns
    -------
    float or ndarray
        Broadcast shape; NaN where infeasible.

    Examples
    --------
    >>> round(tradeoff_threshold("slope_lower", 0.7, 0.3, 0.2), 4)
    0.954
    """
    return evaluate(kind, tpp, delta, epsilon, 0)


@dataclass(frozen=True)
class TradeoffCurve(Result):
    """Best FDP as a function of the TPP.

    Attributes
    ----------
    kind : {"lasso", "slope_upper", "slope_lower", "two_level"}
    delta, epsilon : float
    tpp, fdp, threshold : ndarray, shape (n,)
        NaN where infeasible; thresholds in units of tau.
    """

    _figure: ClassVar[str] = "tradeoff:plot_tradeoff_curve"

    kind: Kind
    delta: float
    epsilon: float
    tpp: Vector = field(repr=False, compare=False)
    fdp: Vector = field(repr=False, compare=False)
    threshold: Vector = field(repr=False, compare=False)

    def at(self, tpp: ArrayLike) -> float | NDArray[np.float64]:
        """Exact FDP at other TPPs (computed, not interpolated)."""
        return evaluate(self.kind, tpp, self.delta, self.epsilon, 1)

    def to_frame(self) -> pd.DataFrame:
        """Columns tpp, fdp, threshold."""
        import pandas as pd

        return pd.DataFrame({"tpp": self.tpp, "fdp": self.fdp, "threshold": self.threshold})

    def __str__(self) -> str:
        lines = [
            f"Trade-off {self.kind}, delta = {self.delta:g}, epsilon = {self.epsilon:g}",
            "  TPP     FDP",
        ]
        for i in np.linspace(0, self.tpp.size - 1, min(9, self.tpp.size)).round().astype(int):
            lines.append(f"  {self.tpp[i]:.4f}  {self.fdp[i]:.6f}")
        return "\n".join(lines)


def tradeoff_curve(kind: str, delta: float, epsilon: float, n: int = 201) -> TradeoffCurve:
    """Evaluate one trade-off curve on ``n`` equally spaced TPPs from 0 to 1.

    Parameters
    ----------
    kind : {"lasso", "slope_upper", "slope_lower", "two_level"}
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].
    n : int
        Number of points, at least 2.

    Returns
    -------
    TradeoffCurve

    Raises
    ------
    ConvexlawError
        Unknown kind, n < 2, delta or epsilon out of range.

    Examples
    --------
    >>> curve = tradeoff_curve("two_level", 0.3, 0.2, n=5)
    >>> curve.fdp.round(4)
    array([0.    , 0.2518, 0.5449, 0.6937, 0.8   ])
    """
    name = check_kind(kind)
    ratio, share = ratio_and_sparsity(delta, epsilon)
    if not isinstance(n, (int, np.integer)) or n < 2:
        raise ConvexlawError(f"n = {n!r}: a curve needs at least 2 points")
    tpp = np.linspace(0.0, 1.0, int(n))
    pairs = np.array([threshold_and_fdp(name, float(u), ratio, share) for u in tpp])
    return TradeoffCurve(name, ratio, share, tpp, pairs[:, 1], pairs[:, 0])
