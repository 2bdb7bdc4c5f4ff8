"""Inverse questions about the trade-off curves, and the points where their branches cross."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.theory._donoho_tanner import power_limit, sparsity_and_threshold
from convexlaw.theory._selection_checks import fraction, interval_array, ratio_and_sparsity
from convexlaw.theory._tradeoff_points import check_kind, threshold_and_fdp

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Crossings", "best_tpp", "crossings", "dagger", "rows_needed"]


def _bisect(good: Callable[[float], bool], bad_end: float, good_end: float, relative: float) -> float:
    """Border of the set where ``good`` holds, from the good side."""
    for _ in range(200):
        if abs(good_end - bad_end) <= relative * abs(good_end):
            break
        middle = 0.5 * (bad_end + good_end)
        if good(middle):
            good_end = middle
        else:
            bad_end = middle
    return good_end


def rows_needed(
    tpp: ArrayLike, fdp: ArrayLike, epsilon: float, kind: str = "two_level"
) -> float | NDArray[np.float64]:
    """Find the fewest rows per feature (delta = n/p) with which the FDP at a TPP can be kept at ``fdp``.

    Parameters
    ----------
    tpp, fdp : float or array
        The aim, both in [0, 1]; they broadcast.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].
    kind : {"lasso", "slope_upper", "slope_lower", "two_level"}
        Which designs are allowed.

    Returns
    -------
    float or ndarray
        delta; 0 where any design does (fdp >= 1 - epsilon, or tpp = 0), infinite where fdp = 0 < tpp.

    Raises
    ------
    ConvexlawError
        A number out of range, NaN, or an unknown kind.

    Notes
    -----
    The answer is about the most favourable law of the signals and vanishing noise: no design can do with
    fewer rows, whatever the signals; a given problem may need more (see `convexlaw.theory.designs`).

    Examples
    --------
    >>> from convexlaw.theory.tradeoff import two_level_fdp
    >>> delta = rows_needed(0.7, 0.4, 0.2)
    >>> round(delta, 4), round(two_level_fdp(0.7, delta, 0.2), 4)
    (0.4878, 0.4)
    """
    check_kind(kind)
    share = fraction("epsilon", epsilon, "epsilon = k/p, the fraction of nonzero signals")
    u = interval_array("tpp", tpp, "true positive proportions")
    q = interval_array("fdp", fdp, "false discovery proportions")
    grid = np.broadcast(u, q)
    out = np.array([_rows(kind, float(a), float(b), share) for a, b in grid]).reshape(grid.shape)
    return float(out) if grid.ndim == 0 else out


def _rows(kind: str, u: float, q: float, epsilon: float) -> float:
    if u == 0.0 or q >= 1.0 - epsilon:
        return 0.0
    if q == 0.0:
        return math.inf
    from scipy.special import ndtri

    # this FDP fixes the threshold a; even signals far out in a Lasso cost no more than 1 + a^2
    a = -float(ndtri(0.5 * epsilon * u * q / ((1.0 - epsilon) * (1.0 - q))))
    return _bisect(lambda d: threshold_and_fdp(kind, u, d, epsilon)[1] <= q, 0.0, 2.0 + a * a, 1e-12)


def best_tpp(
    fdp: ArrayLike, delta: float, epsilon: float, kind: str = "two_level"
) -> float | NDArray[np.float64]:
    """Find the largest TPP whose best FDP is at most ``fdp``.

    Parameters
    ----------
    fdp : float or array
        False discovery proportion allowed, in [0, 1].
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].
    kind : {"lasso", "slope_upper", "slope_lower", "two_level"}

    Returns
    -------
    float or ndarray

    Raises
    ------
    ConvexlawError
        A number out of range, NaN, or an unknown kind.

    Examples
    --------
    >>> round(best_tpp(0.3, 0.3, 0.2), 4), round(best_tpp(0.3, 0.3, 0.2, "lasso"), 4)
    (0.2792, 0.2789)
    """
    check_kind(kind)
    ratio, share = ratio_and_sparsity(delta, epsilon)
    q = interval_array("fdp", fdp, "false discovery proportions")
    out = np.array([_power(kind, float(x), ratio, share) for x in q.reshape(-1)]).reshape(q.shape)
    return float(out) if q.ndim == 0 else out


def _power(kind: str, q: float, delta: float, epsilon: float) -> float:
    end = power_limit(delta, epsilon) if kind == "lasso" else 1.0

    def good(u: float) -> bool:
        return threshold_and_fdp(kind, u, delta, epsilon)[1] <= q

    return end if good(end) else _bisect(good, end, 0.0, 1e-13)


@dataclass(frozen=True)
class Crossings:
    """TPPs where the branches of the curves cross; NaN where they do not.

    Attributes
    ----------
    dagger : float
        One common signal size with its best penalty overtakes the Lasso curve.
    general : float
        It overtakes the designs with one far cluster; `slope_fdp_lower` changes its branch here.
    two_level : float
        The same with two-level penalties; below it two levels are as good as any SLOPE.
    power_limit : float
        Largest TPP of the Lasso, u_DT.
    """

    dagger: float
    general: float
    two_level: float
    power_limit: float

    def __str__(self) -> str:
        return (
            f"crossing with the Lasso at TPP {self.dagger:.6g}, general change of branch at "
            f"{self.general:.6g}, "
            f"two-level at {self.two_level:.6g}, power limit {self.power_limit:.6g}"
        )


def _sign_change(gain: Callable[[float], float], low: float, high: float, points: int = 96) -> float:
    """First u where ``gain`` turns from positive to not positive."""
    from scipy.optimize import brentq

    grid = np.linspace(low, high, points + 2)[1:-1]
    values = np.array([gain(float(u)) for u in grid])
    turns = np.flatnonzero((values[:-1] > 0) & (values[1:] <= 0))
    if not turns.size:
        return math.nan
    i = int(turns[0])
    return float(brentq(gain, grid[i], grid[i + 1], xtol=1e-13, rtol=1e-13))


def dagger(delta: float, epsilon: float) -> float:
    """Find the TPP from which one common signal size with its best penalty beats the Lasso curve.

    Parameters
    ----------
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].

    Returns
    -------
    float
        u-dagger; NaN where the curves do not cross below the power limit of the Lasso.

    References
    ----------
    arXiv 2105.13302, the point marked in its figures.

    Examples
    --------
    >>> round(dagger(0.3, 0.2), 5)
    0.52826
    """
    from convexlaw.theory import _tradeoff_kernels as kernels

    ratio, share = ratio_and_sparsity(delta, epsilon)
    limit = power_limit(ratio, share)
    t_dt = sparsity_and_threshold(ratio)[1]

    def gain(u: float) -> float:
        a = kernels.lasso_threshold(u, ratio, share, limit, t_dt)
        return float(kernels.single_error(a, u, share)) - ratio

    return _sign_change(gain, 0.0, limit)


def crossings(delta: float, epsilon: float) -> Crossings:
    """Find every point where the branches of the SLOPE and two-level curves cross.

    Parameters
    ----------
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].

    Returns
    -------
    Crossings

    Examples
    --------
    >>> found = crossings(0.3, 0.2)
    >>> [round(u, 5) for u in (found.dagger, found.general, found.two_level, found.power_limit)]
    [0.52826, 0.54123, 0.54618, 0.5676]
    """
    from convexlaw.theory import _tradeoff_kernels as kernels
    from convexlaw.theory import _two_level_kernels as shapes

    ratio, share = ratio_and_sparsity(delta, epsilon)

    def gain(error: Callable[[float, float, float], Any]) -> Callable[[float], float]:
        def evaluate(u: float) -> float:
            a = kernels.branch_one(u, ratio, share)
            return float(error(a, u, share)) - ratio if a == a else -1.0

        return evaluate

    return Crossings(
        dagger=dagger(ratio, share),
        general=_sign_change(gain(kernels.single_error), 0.0, 1.0),
        two_level=_sign_change(gain(lambda a, u, e: shapes.two_level_error(a, u, e)[0]), 0.0, 1.0),
        power_limit=power_limit(ratio, share),
    )
