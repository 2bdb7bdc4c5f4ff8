"""Penalties as non-increasing functions of the rank fraction r in (0, 1], largest magnitudes first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory._selection_checks import between, fraction, nonnegative, positive, real
from convexlaw.theory.sorted_l1 import bh_sequence, gaussian_sequence, k_level_sequence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["BH", "Gaussian", "KLevel", "Lasso", "Oscar", "Penalty", "TwoLevel", "Weights"]


class Penalty(ABC):
    """Non-increasing function A(r) of the rank fraction r, its integral, and its sequence for p features."""

    @abstractmethod
    def value(self, r: ArrayLike) -> Vector:
        """A(r), same shape as r."""

    @abstractmethod
    def integral(self, r: ArrayLike) -> Vector:
        """Integral of A over (0, r), same shape as r."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Penalty ``factor * A``."""

    @abstractmethod
    def weights(self, p: int) -> Vector:
        """Sequence for p features, shape (p,), non-increasing."""

    @property
    def breaks(self) -> Vector:
        """Rank fractions where A jumps, increasing."""
        return np.zeros(0)


def _reject_zero(*values: float) -> None:
    if max(values) <= 0:
        raise ConvexlawError("the penalty is 0 at every rank; at least one level must be > 0")


class _Steps(Penalty):
    """Piecewise constant penalties: levels on consecutive rank fractions that sum to 1."""

    @property
    @abstractmethod
    def steps(self) -> tuple[Vector, Vector]:
        """Levels (K,) and cumulative fractions (K,), the last one 1."""

    def value(self, r: ArrayLike) -> Vector:
        """A(r), same shape as r."""
        levels, ends = self.steps
        place = np.searchsorted(ends, np.asarray(r, dtype=np.float64), side="left")
        found: Vector = levels[np.minimum(place, levels.size - 1)]
        return found

    def integral(self, r: ArrayLike) -> Vector:
        """Integral of A over (0, r), same shape as r."""
        levels, ends = self.steps
        knots = np.concatenate(([0.0], ends))
        area = np.concatenate(([0.0], np.cumsum(levels * np.diff(knots))))
        return np.interp(np.asarray(r, dtype=np.float64), knots, area)

    @property
    def breaks(self) -> Vector:
        """Rank fractions where A jumps, increasing."""
        levels, ends = self.steps
        return ends[:-1][np.diff(levels) < 0]


@dataclass(frozen=True)
class Lasso(_Steps):
    """Constant penalty ``alpha``.

    Examples
    --------
    >>> Lasso(1.5).integral([0.0, 0.5, 1.0])
    array([0.  , 0.75, 1.5 ])
    """

    alpha: float

    def __post_init__(self) -> None:
        nonnegative("alpha", self.alpha, "a penalty level >= 0")

    @cached_property
    def steps(self) -> tuple[Vector, Vector]:
        """Levels and cumulative fractions."""
        return np.array([float(self.alpha)]), np.ones(1)

    def scaled(self, factor: float) -> Self:
        """Penalty times ``factor``."""
        return replace(self, alpha=factor * self.alpha)

    def weights(self, p: int) -> Vector:
        """Sequence for p features."""
        return np.full(p, float(self.alpha))


@dataclass(frozen=True)
class TwoLevel(_Steps):
    """``alpha1`` on the top ``fraction`` of the ranks, ``alpha2`` below; 0 <= alpha2 <= alpha1.

    Examples
    --------
    >>> TwoLevel(2.0, 1.0, 0.25).weights(4)
    array([2., 1., 1., 1.])
    """

    alpha1: float
    alpha2: float
    fraction: float

    def __post_init__(self) -> None:
        high = nonnegative("alpha1", self.alpha1, "a penalty level >= 0")
        low = nonnegative("alpha2", self.alpha2, "a penalty level >= 0")
        between("fraction", self.fraction, 0.0, 1.0, "the share of the ranks with the high level")
        if low > high:
            raise ConvexlawError(
                f"alpha1 = {high:g} < alpha2 = {low:g}: levels must not increase with the rank; swap them"
            )
        _reject_zero(high)

    @cached_property
    def steps(self) -> tuple[Vector, Vector]:
        """Levels and cumulative fractions."""
        return np.array([float(self.alpha1), float(self.alpha2)]), np.array([float(self.fraction), 1.0])

    def scaled(self, factor: float) -> Self:
        """Penalty times ``factor``."""
        return replace(self, alpha1=factor * self.alpha1, alpha2=factor * self.alpha2)

    def weights(self, p: int) -> Vector:
        """Sequence for p features: the high level on the top ``round(fraction p)`` ranks."""
        return k_level_sequence(p, [self.alpha1, self.alpha2], [self.fraction])


@dataclass(frozen=True)
class KLevel(_Steps):
    """``levels[k]`` on consecutive ``fractions[k]`` of the ranks.

    Parameters
    ----------
    levels : sequence of K floats
        Non-increasing, >= 0.
    fractions : sequence of K or K - 1 floats
        Each >= 0; K of them sum to 1, or the last is left out and is the rest.

    Examples
    --------
    >>> KLevel([3.0, 2.0, 1.0], [0.25, 0.25]).weights(4)
    array([3., 2., 1., 1.])
    """

    levels: Sequence[float]
    fractions: Sequence[float]

    def __post_init__(self) -> None:
        levels = tuple(real(f"levels[{i}]", x, "a level >= 0") for i, x in enumerate(self.levels))
        shares = tuple(real(f"fractions[{i}]", x, "a share of ranks") for i, x in enumerate(self.fractions))
        if not levels:
            raise ConvexlawError("levels is empty: give at least one level")
        if len(shares) == len(levels) - 1:
            shares = (*shares, 1.0 - sum(shares))
            if -1e-9 < shares[-1] < 0:
                shares = (*shares[:-1], 0.0)
        if len(shares) != len(levels):
            raise ConvexlawError(
                f"{len(levels)} levels and {len(shares)} fractions: K levels need K - 1 fractions, "
                "or K that sum to 1"
            )
        if min(shares) < 0 or abs(sum(shares) - 1.0) > 1e-9:
            raise ConvexlawError(
                f"fractions = {_short(shares)} sum to {sum(shares):.12g}: each must be >= 0 and their sum 1"
            )
        _check_falling("levels", np.array(levels))
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "fractions", shares)

    @cached_property
    def steps(self) -> tuple[Vector, Vector]:
        """Levels and cumulative fractions."""
        ends = np.minimum(np.cumsum(self.fractions), 1.0)
        ends[-1] = 1.0
        return np.array(self.levels), ends

    def scaled(self, factor: float) -> Self:
        """Penalty times ``factor``."""
        return replace(self, levels=tuple(factor * x for x in self.levels))

    def weights(self, p: int) -> Vector:
        """Sequence for p features: level k ends at rank ``round((s_1 + ... + s_k) p)``."""
        return k_level_sequence(p, self.levels, self.fractions[:-1])


@dataclass(frozen=True)
class Weights(_Steps):
    """Any non-increasing sequence: ``values[i]`` on the rank fractions (i/m, (i+1)/m].

    Examples
    --------
    >>> Weights([3.0, 1.0]).value([0.2, 0.5, 0.6])
    array([3., 3., 1.])
    """

    values: Sequence[float]

    def __post_init__(self) -> None:
        array = np.asarray(self.values, dtype=np.float64)
        if array.ndim != 1 or array.size == 0:
            raise ConvexlawError(f"values has shape {array.shape}: give one weight a rank, at least one")
        if not np.isfinite(array).all():
            where = int(np.flatnonzero(~np.isfinite(array))[0])
            raise ConvexlawError(f"values[{where}] = {array[where]}: must be finite; remove it")
        _check_falling("values", array)
        object.__setattr__(self, "values", tuple(array.tolist()))

    @cached_property
    def steps(self) -> tuple[Vector, Vector]:
        """Levels and cumulative fractions."""
        m = len(self.values)
        return np.array(self.values), np.arange(1, m + 1) / m

    def scaled(self, factor: float) -> Self:
        """Penalty times ``factor``."""
        return replace(self, values=tuple(factor * x for x in self.values))

    def weights(self, p: int) -> Vector:
        """Sequence for p features; the values themselves where there are p of them."""
        return self.value((np.arange(p) + 0.5) / p)


@dataclass(frozen=True)
class BH(Penalty):
    """Benjamini-Hochberg: ``A(r) = scale * Phi^{-1}(1 - q r / 2)``, unbounded at r = 0.

    Examples
    --------
    >>> BH(1.0, 0.1).weights(100)[[0, 99]].round(6)
    array([3.290527, 1.644854])
    """

    scale: float
    q: float

    def __post_init__(self) -> None:
        positive("scale", self.scale, "a factor > 0")
        fraction("q", self.q, "a nominal false discovery rate, e.g. 0.1")

    def value(self, r: ArrayLike) -> Vector:
        """A(r), same shape as r."""
        from scipy.special import ndtri

        found: Vector = -self.scale * ndtri(0.5 * self.q * np.asarray(r, dtype=np.float64))
        return found

    def integral(self, r: ArrayLike) -> Vector:
        """Integral of A over (0, r): ``scale (2/q) phi(Phi^{-1}(1 - q r / 2))``."""
        from scipy.special import ndtri

        x = ndtri(0.5 * self.q * np.asarray(r, dtype=np.float64))
        area: Vector = (self.scale * 2.0 / self.q) * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
        return area

    def scaled(self, factor: float) -> Self:
        """Penalty times ``factor``."""
        return replace(self, scale=factor * self.scale)

    def weights(self, p: int) -> Vector:
        """Sequence for p features."""
        return self.scale * bh_sequence(p, self.q)


@dataclass(frozen=True)
class Oscar(Penalty):
    """Linear: ``A(r) = theta1 + theta2 (1 - r)``; the sequence is ``theta1 + (theta2/p)(p - i)``.

    Examples
    --------
    >>> Oscar(1.0, 2.0).weights(4)
    array([2.5, 2. , 1.5, 1. ])
    """

    theta1: float
    theta2: float

    def __post_init__(self) -> None:
        nonnegative("theta1", self.theta1, "the level at the last rank, >= 0")
        nonnegative("theta2", self.theta2, "the fall from the first to the last rank, >= 0")
        _reject_zero(self.theta1, self.theta2)

    def value(self, r: ArrayLike) -> Vector:
        """A(r), same shape as r."""
        found: Vector = self.theta1 + self.theta2 * (1.0 - np.asarray(r, dtype=np.float64))
        return found

    def integral(self, r: ArrayLike) -> Vector:
        """Integral of A over (0, r)."""
        x = np.asarray(r, dtype=np.float64)
        area: Vector = (self.theta1 + self.theta2) * x - 0.5 * self.theta2 * x * x
        return area

    def scaled(self, factor: float) -> Self:
        """Penalty times ``factor``."""
        return replace(self, theta1=factor * self.theta1, theta2=factor * self.theta2)

    def weights(self, p: int) -> Vector:
        """Sequence for p features."""
        return self.theta1 + self.theta2 / max(p, 1) * np.arange(p - 1.0, -1.0, -1.0)


@dataclass(frozen=True)
class Gaussian(Penalty):
    """BH corrected for the noise that shrinkage adds in a Gaussian design with ``delta = n/p``.

    ``A = scale * l``, the limit of the sequence of Bogdan et al. (arXiv 1407.3824, section 3.2.2):
    ``l(r)^2 = BH(r)^2 (1 + S(r)/(delta - r))``, ``S(r) = int_0^r l^2``, constant from where it stops falling.

    Examples
    --------
    >>> abs(Gaussian(1.0, 0.1, 1e6).value(0.3) - BH(1.0, 0.1).value(0.3)) < 1e-5
    np.True_
    """

    scale: float
    q: float
    delta: float

    def __post_init__(self) -> None:
        positive("scale", self.scale, "a factor > 0")
        fraction("q", self.q, "a nominal false discovery rate, e.g. 0.1")
        positive("delta", self.delta, "delta = n/p, rows per feature")

    @property
    def _table(self) -> tuple[Any, Any, float]:
        from convexlaw.theory._gaussian_limit import corrected_bh

        return corrected_bh(float(self.q), float(self.delta))

    def value(self, r: ArrayLike) -> Vector:
        """A(r), same shape as r."""
        growth, _, stop = self._table
        rank = np.minimum(np.asarray(r, dtype=np.float64), stop)
        level: Vector = BH(self.scale, self.q).value(rank) * growth(rank)
        return level

    def integral(self, r: ArrayLike) -> Vector:
        """Integral of A over (0, r)."""
        _, ratio, stop = self._table
        x = np.asarray(r, dtype=np.float64)
        rank = np.minimum(x, stop)
        area: Vector = BH(self.scale, self.q).integral(rank) * ratio(rank)
        return area + self.value(stop) * np.maximum(x - stop, 0.0)

    def scaled(self, factor: float) -> Self:
        """Penalty times ``factor``."""
        return replace(self, scale=factor * self.scale)

    def weights(self, p: int) -> Vector:
        """Sequence for p features and ``round(delta p)`` rows."""
        return self.scale * gaussian_sequence(p, self.q, n=max(1, round(self.delta * p)))


def _check_falling(name: str, array: Vector) -> None:
    rises = np.flatnonzero(np.diff(array) > 0)
    if rises.size:
        i = int(rises[0])
        raise ConvexlawError(
            f"{name}[{i}] = {array[i]:g} < {name}[{i + 1}] = {array[i + 1]:g}: a penalty must not increase "
            "with the rank; sort it downwards"
        )
    if array[-1] < 0:
        raise ConvexlawError(f"{name}[{array.size - 1}] = {array[-1]:g}: levels must be >= 0; clip them at 0")
    _reject_zero(float(array[0]))


def _short(values: Sequence[float]) -> str:
    shown = ", ".join(f"{v:g}" for v in values[:5])
    return f"[{shown}{', ...' if len(values) > 5 else ''}]"
