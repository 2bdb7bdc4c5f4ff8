"""Priors, penalties as functions of the rank, and the scalar function that the sorted L1 prox becomes.

For p large, the prox of the sequence ``tau * A(i/p)`` at ``B + tau Z`` acts on every coordinate as one odd,
non-decreasing, 1-Lipschitz function h of ``Y = B + tau Z``. Nothing here is random: h and its moments come
from exact integrals over cells, and in closed form for the Lasso and for two levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory._penalties import BH, Gaussian, KLevel, Lasso, Oscar, Penalty, TwoLevel, Weights
from convexlaw.theory._priors import Prior
from convexlaw.theory._selection_checks import positive

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = [
    "BH",
    "Gaussian",
    "KLevel",
    "Lasso",
    "Oscar",
    "Penalty",
    "Prior",
    "ScalarLimit",
    "TwoLevel",
    "Weights",
    "limiting_function",
    "null_risk",
]

RESOLUTION = 96  # cells per standard deviation
_SPAN = 9.5  # standard deviations beyond which the mass is below 1e-20
_BREAKS = 64  # penalties with more jumps than this get no cell edge at each of them

_RARE = 1e-5  # mass of a cell over its rank below which its share of the penalty is taken at the middle rank
_NULL = Prior.null()

Method = Literal["auto", "cells"]


@dataclass(frozen=True)
class ScalarLimit(Result):
    """Limiting scalar function h of a prior, a penalty and a noise level; call it on values of Y.

    Attributes
    ----------
    prior : Prior
    penalty : Penalty
        Levels in units of ``tau``.
    tau : float
        Noise level, in the units of the coefficients.
    threshold : float
        Largest z with h(z) = 0, in the units of the coefficients.
    flat : float
        Value of the heaviest tied nonzero piece, 0 where there is none.
    mse : float
        E[(h(Y) - B)^2].
    df : float
        E h'(Y), the limit of (number of distinct nonzero magnitudes) / p.
    tpp : float
        P(|B + tau Z| > threshold) for a nonzero B; NaN where the prior has none.
    fdp : float
        Share of nulls among |Y| > threshold; 0 where nothing is selected.
    """

    _figure: ClassVar[str] = "scalar:plot_scalar_limit"

    prior: Prior
    penalty: Penalty
    tau: float
    threshold: float
    flat: float
    mse: float
    df: float
    tpp: float
    fdp: float
    knots: Vector = field(repr=False, compare=False)
    values: Vector = field(repr=False, compare=False)
    end_slope: float = field(repr=False, compare=False, default=1.0)

    def __call__(self, y: ArrayLike) -> Vector:
        """h(y), same shape as y."""
        at = np.asarray(y, dtype=np.float64)
        size = np.abs(at)
        inner = np.interp(size, self.knots, self.values)
        beyond = self.values[-1] + self.end_slope * (size - self.knots[-1])
        out: Vector = np.sign(at) * np.where(size > self.knots[-1], beyond, inner)
        return out

    def to_frame(self) -> pd.DataFrame:
        """Return the function at its knots: columns y, h."""
        import pandas as pd

        return pd.DataFrame({"y": self.knots, "h": self.values})

    def __str__(self) -> str:
        return "\n".join(
            (
                f"Limiting function of {self.penalty}",
                f"  {self.prior}, tau = {self.tau:.6g}",
                f"  zero up to {self.threshold:.6g}, flat value {self.flat:.6g}",
                f"  MSE {self.mse:.6g}, degrees of freedom per feature {self.df:.6g}",
                f"  TPP {self.tpp:.6g}, FDP {self.fdp:.6g}",
            )
        )


def limiting_function(
    prior: Prior, penalty: Penalty, tau: float, *, method: Method = "auto", resolution: int = RESOLUTION
) -> ScalarLimit:
    """Scalar function that the prox of ``tau * penalty`` becomes on ``B + tau Z``, with its moments.

    Parameters
    ----------
    prior : Prior
        Law of B.
    penalty : Penalty
        Levels in units of ``tau``.
    tau : float
        Noise level > 0, in the units of the coefficients.
    method : {"auto", "cells"}
        ``auto``: closed form for the Lasso and for two levels, cells for the rest. ``cells``: always cells.
    resolution : int
        Cells per standard deviation. The error falls with its third power or faster; at the default it is
        about 1e-8 in mse.

    Returns
    -------
    ScalarLimit

    Raises
    ------
    ConvexlawError
        tau not > 0, or a resolution below 4.

    References
    ----------
    Hu and Lu, arXiv 1903.11582 (the scalar limit of the sorted L1 prox).

    Examples
    --------
    >>> h = limiting_function(Prior.parse("0:0.8, 4:0.2"), TwoLevel(2.0, 1.0, 0.2), 1.0)
    >>> round(h.threshold, 6), round(h.flat, 6)
    (1.0, 0.967945)
    >>> h([-0.5, 1.5, 2.5, 5.0]).round(4)
    array([-0.    ,  0.5   ,  0.9679,  3.    ])
    """
    level = positive("tau", tau, "a noise level > 0")
    if resolution < 4:
        raise ConvexlawError(f"resolution = {resolution!r}: give at least 4 cells per standard deviation")
    if method == "auto" and isinstance(penalty, (Lasso, TwoLevel)):
        return _closed(prior, penalty, level)
    return _on_cells(prior, penalty, level, int(resolution))


def null_risk(penalty: Penalty) -> float:
    """Risk at pure noise, ``f(alpha) = lim (1/p) E ||prox_alpha(Z)||^2``; a fixed point exists iff f < delta.

    Parameters
    ----------
    penalty : Penalty
        Levels in units of the noise.

    Returns
    -------
    float

    Examples
    --------
    >>> round(null_risk(TwoLevel(1.5, 0.5, 0.3)), 6)
    0.048593
    """
    if isinstance(penalty, Lasso):
        return soft_null_risk(float(penalty.alpha))
    return risk_and_df(_NULL, penalty, 1.0)[0]


def soft_null_risk(a: float) -> float:
    """E of soft thresholding of Z at a, squared: 2 [(1 + a^2) Phi(-a) - a phi(a)]."""
    density = math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    return (1.0 + a * a) * math.erfc(a / math.sqrt(2.0)) - 2.0 * a * density


def risk_and_df(
    prior: Prior, penalty: Penalty, tau: float, resolution: int = RESOLUTION
) -> tuple[float, float]:
    """Mse and df alone: what the fixed-point iterations need."""
    if isinstance(penalty, (Lasso, TwoLevel)):
        _, _, _, _, risk, df = _two_level(prior, penalty, tau)
        return risk, df
    _, pooled, _ = _pooled(prior, penalty, tau, resolution)
    return pooled[6], pooled[7] / (tau * tau)


def _two_level(
    prior: Prior, penalty: Lasso | TwoLevel, tau: float
) -> tuple[float, float, float, float, float, float]:
    from convexlaw.theory import _limit_kernels as kernels

    if isinstance(penalty, Lasso):
        high, low, share = float(penalty.alpha), float(penalty.alpha), 1.0
    else:
        high, low, share = float(penalty.alpha1), float(penalty.alpha2), float(penalty.fraction)
    found: tuple[float, float, float, float, float, float] = kernels.two_level(
        *prior.arrays, tau, tau * high, tau * low, share
    )
    return found


def _closed(prior: Prior, penalty: Lasso | TwoLevel, tau: float) -> ScalarLimit:
    zero, flat, top, _, risk, df = _two_level(prior, penalty, tau)
    if flat > 0:
        knots = np.array([0.0, zero, zero + flat, top + flat])
        values = np.array([0.0, 0.0, flat, flat])
    else:
        knots, values = np.array([0.0, zero]), np.zeros(2)
    tpp, fdp = selection(prior, tau, zero)
    return ScalarLimit(prior, penalty, tau, zero, flat, risk, df, tpp, fdp, knots, values)


def mesh(prior: Prior, tau: float, resolution: int, extra: Vector) -> Vector:
    """Cell edges on [0, inf), with an edge at each of ``extra``."""
    from convexlaw.theory import _limit_kernels as kernels

    _, m, v = prior.arrays
    edges: Vector = kernels.mesh_edges(m, v, tau, resolution, _SPAN, extra)
    return edges


def _pooled(prior: Prior, penalty: Penalty, tau: float, resolution: int) -> tuple[Vector, Any, Vector]:
    """Mass of the cells, the pooled function on them, and its kinks at the ends of tied pieces."""
    kinks = np.zeros(0)
    mass, pooled = _pass(prior, penalty, tau, resolution, kinks)
    if 0 < penalty.breaks.size <= _BREAKS:
        # a second pass with edges at the kinks of the first makes the error of stepped penalties negligible
        kinks = _kinks(pooled)
        mass, pooled = _pass(prior, penalty, tau, resolution, kinks)
    return mass, pooled, kinks


def _pass(prior: Prior, penalty: Penalty, tau: float, resolution: int, extra: Vector) -> tuple[Vector, Any]:
    from convexlaw.theory import _limit_kernels as kernels

    if 0 < penalty.breaks.size <= _BREAKS:
        jumps = [kernels.upper_quantile(*prior.arrays, tau, r) for r in penalty.breaks]
        extra = np.concatenate((extra, jumps))
    edges = mesh(prior, tau, resolution, extra)
    moments = kernels.cells(*prior.arrays, tau, edges)
    above = np.concatenate((np.cumsum(moments[0, ::-1])[::-1], [0.0]))
    ranks = np.minimum(above, 1.0)
    area = penalty.integral(ranks)
    pulled = area[:-1] - area[1:]
    # between far-apart masses the difference of two integrals is all rounding: the middle rank is exact there
    rare = np.flatnonzero((moments[0] < _RARE * ranks[1:]) & (moments[0] > 0.0))
    pulled[rare] = moments[0, rare] * penalty.value(0.5 * (ranks[rare] + ranks[rare + 1]))
    return moments[0], kernels.pool_cells(moments, edges, tau * pulled)


def _kinks(pooled: Any) -> Vector:
    """Where the function enters and leaves its tied pieces, and where it leaves 0."""
    y, value, slope, first, _, zero, _, _ = pooled
    found = [zero]
    starts, size = np.unique(first, return_counts=True)
    for start, n in zip(starts, size, strict=True):
        if n == 1 or value[start] == 0:
            continue
        level, stop = value[start], start + n
        if start > 0 and value[start - 1] > 0 and slope[start - 1] > 0:
            found.append(y[start - 1] + (level - value[start - 1]) / slope[start - 1])
        if stop < y.size and slope[stop] > 0:
            found.append(y[stop] - (value[stop] - level) / slope[stop])
    return np.array(found)


def _on_cells(prior: Prior, penalty: Penalty, tau: float, resolution: int) -> ScalarLimit:
    mass, pooled, kinks = _pooled(prior, penalty, tau, resolution)
    y, value, slope, first, cell, zero, risk, product = pooled
    rising = np.flatnonzero((value[1:] > 0) & (value[:-1] == 0))
    if rising.size:
        zero = _refined_threshold(prior, penalty, tau, zero, float(y[rising[0]]), float(y[rising[0] + 1]))
    elif not (value > 0).any():
        zero = float(y[-1])
    starts, size = np.unique(first, return_counts=True)
    tied = starts[(size > 1) & (value[starts] > 0)]
    flat = 0.0
    if tied.size:
        heft = np.bincount(first, weights=mass[cell], minlength=first.size)
        heaviest = tied[np.argmax(heft[tied])]
        flat = float(value[heaviest]) if heft[heaviest] > 1e-9 else 0.0
    keep = (value > 0) & (y > zero)
    knots = np.concatenate(([0.0, zero], y[keep]))
    values = np.concatenate(([0.0, 0.0], value[keep]))
    at = kinks[1:][(kinks[1:] > zero) & (kinks[1:] < knots[-1])]
    corner = np.searchsorted(knots, at)
    before, after = values[corner - 1], values[corner]
    tied_value = np.where(np.isin(before, value[tied]), before, after)
    knots, values = np.insert(knots, corner, at), np.insert(values, corner, tied_value)
    tpp, fdp = selection(prior, tau, zero)
    end = float(slope[-1]) if slope.size else 1.0
    df = float(product) / (tau * tau)
    return ScalarLimit(prior, penalty, tau, float(zero), flat, float(risk), df, tpp, fdp, knots, values, end)


def _refined_threshold(
    prior: Prior, penalty: Penalty, tau: float, guess: float, left: float, right: float
) -> float:
    """Root of ``z - tau A(P(|Y| > z))`` between two cell means, where it crosses zero upwards there."""
    from scipy.optimize import brentq

    from convexlaw.theory import _limit_kernels as kernels

    w, m, v = prior.arrays

    def crossing(z: float) -> float:
        return z - tau * float(penalty.value(kernels.tail(w, m, v, tau, z)))

    if crossing(left) <= 0 <= crossing(right):
        return float(brentq(crossing, left, right, xtol=1e-15 * right, rtol=1e-15))
    return guess


def check_problem(prior: object, penalty: object) -> None:
    """Refuse what is no prior or no penalty."""
    if not isinstance(prior, Prior):
        raise ConvexlawError(f"prior = {prior!r}: give a Prior, e.g. Prior.parse('4:0.2')")
    if not isinstance(penalty, Penalty):
        raise ConvexlawError(f"penalty = {penalty!r}: give a function of the rank, e.g. Lasso(1.5)")


def selection(prior: Prior, tau: float, threshold: float) -> tuple[float, float]:
    """TPP and FDP of selecting |Y| > threshold."""
    from convexlaw.theory import _limit_kernels as kernels

    signals, epsilon = prior.signals, prior.epsilon
    false = (1.0 - epsilon) * math.erfc(threshold / (tau * math.sqrt(2.0)))
    if signals is None:
        return math.nan, 1.0 if false > 0 else 0.0
    tpp = min(float(kernels.tail(*signals.arrays, tau, threshold)), 1.0)  # weights sum to 1 up to rounding
    chosen = false + epsilon * tpp
    return tpp, false / chosen if chosen > 0 else 0.0
