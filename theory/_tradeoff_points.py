"""Threshold and FDP of the four trade-off curves at one or many TPPs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory._donoho_tanner import power_limit, sparsity_and_threshold
from convexlaw.theory._selection_checks import interval_array, ratio_and_sparsity, real_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["KINDS", "Kind", "check_kind", "evaluate", "threshold_and_fdp"]

Kind = Literal["lasso", "slope_upper", "slope_lower", "two_level"]
KINDS = ("lasso", "slope_upper", "slope_lower", "two_level")


def check_kind(kind: str) -> Kind:
    """One of the four curves."""
    if kind not in KINDS:
        raise ConvexlawError(f"kind = {kind!r}: the curves are {', '.join(KINDS)}")
    return kind  # type: ignore[return-value]


def _lasso(u: float, delta: float, epsilon: float) -> float:
    from convexlaw.theory import _tradeoff_kernels as kernels

    limit = power_limit(delta, epsilon)
    found: float = kernels.lasso_threshold(u, delta, epsilon, limit, sparsity_and_threshold(delta)[1])
    return found


def _upper(u: float, delta: float, epsilon: float) -> float:
    if u <= power_limit(delta, epsilon):
        return _lasso(u, delta, epsilon)
    from scipy.special import ndtri

    star = sparsity_and_threshold(delta)[0]
    return -float(ndtri((epsilon * u - star) / (2.0 * (epsilon - star))))


def _lower(u: float, delta: float, epsilon: float) -> float:
    from convexlaw.theory import _tradeoff_kernels as kernels

    first = kernels.branch_one(u, delta, epsilon) if u > 0 else math.nan
    found: float = kernels.lower_threshold(u, delta, epsilon, first)
    return found


def _two_level(u: float, delta: float, epsilon: float) -> float:
    from convexlaw.theory import _tradeoff_kernels as kernels
    from convexlaw.theory import _two_level_kernels as shapes

    first = kernels.branch_one(u, delta, epsilon) if u > 0 else math.nan
    general = kernels.lower_threshold(u, delta, epsilon, first)
    found: float = shapes.two_level_threshold(u, delta, epsilon, first, general)
    return found


_THRESHOLDS: dict[str, Callable[[float, float, float], float]] = {
    "lasso": _lasso,
    "slope_upper": _upper,
    "slope_lower": _lower,
    "two_level": _two_level,
}


def threshold_and_fdp(kind: str, u: float, delta: float, epsilon: float) -> tuple[float, float]:
    """Largest zero threshold and smallest FDP at one TPP, for checked numbers."""
    a = _THRESHOLDS[kind](u, delta, epsilon)
    if u == 0.0:
        return a, 0.0
    false = (1.0 - epsilon) * math.erfc(a / math.sqrt(2.0))
    return a, false / (false + epsilon * u)


def evaluate(
    kind: str, tpp: ArrayLike, delta: ArrayLike, epsilon: ArrayLike, place: int
) -> float | NDArray[np.float64]:
    check_kind(kind)
    u = interval_array("tpp", tpp, "true positive proportions")
    d = real_array("delta", delta, "rows per feature, n/p > 0")
    e = real_array("epsilon", epsilon, "fractions of nonzero signals")
    for one in np.broadcast(d, e):
        ratio_and_sparsity(*one)
    grid = np.broadcast(u, d, e)
    out = np.array([threshold_and_fdp(kind, *map(float, one))[place] for one in grid]).reshape(grid.shape)
    return float(out) if grid.ndim == 0 else out
