"""Priors of the signals: mixtures of normals and point masses."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory._selection_checks import SIZES, between, fraction, positive, real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["Prior"]

_NORMAL = re.compile(r"^N\(([^,()]+),([^,()]+)\)$", re.IGNORECASE)


def _tuple(name: str, values: Any, size: int | None) -> tuple[float, ...]:
    array = np.atleast_1d(np.asarray(values, dtype=object))
    if array.ndim != 1 or array.size == 0:
        raise ConvexlawError(f"{name} has shape {array.shape}: give one number a component, at least one")
    if size is not None and array.size == 1:
        array = np.repeat(array, size)
    if size is not None and array.size != size:
        raise ConvexlawError(f"{name} has {array.size} entries for {size} weights; give one a component")
    return tuple(real(f"{name}[{i}]", x, "a finite number") for i, x in enumerate(array))


@dataclass(frozen=True)
class Prior:
    """Law of one coefficient: component k has weight ``weights[k]`` and is N(means[k], variances[k]).

    A component with mean 0 and variance 0 is the null (no effect); variance 0 is a point mass.

    Parameters
    ----------
    weights : sequence of float, K of them
        Non-negative, sum 1.
    means : sequence of float
        In the units of the coefficients.
    variances : sequence of float
        Non-negative; 0 everywhere without it.

    Raises
    ------
    ConvexlawError
        Weights that are negative or do not sum to 1, negative variances, NaN, unequal lengths.

    Examples
    --------
    >>> prior = Prior([0.9, 0.1], [0.0, 0.0], [0.0, 1.0])
    >>> prior.epsilon, prior.second_moment
    (0.1, 0.1)
    >>> Prior.parse("0:0.8, 4:0.2") == Prior.two_point(0.2, 4.0)
    True
    """

    weights: Sequence[float]
    means: Sequence[float]
    variances: Sequence[float] = (0.0,)

    def __post_init__(self) -> None:
        weights = _tuple("weights", self.weights, None)
        means = _tuple("means", self.means, len(weights))
        variances = _tuple("variances", self.variances, len(weights))
        if min(weights) < 0:
            raise ConvexlawError(f"weights = {list(weights)}: each must be >= 0; they are probabilities")
        if abs(sum(weights) - 1.0) > 1e-9:
            raise ConvexlawError(
                f"weights sum to {sum(weights):.12g}: they must sum to 1; divide them by their sum"
            )
        if min(variances) < 0:
            raise ConvexlawError(f"variances = {list(variances)}: each must be >= 0; 0 is a point mass")
        size = max(max(map(abs, means)), math.sqrt(max(variances)))
        if size and not SIZES[0] <= size <= SIZES[1]:
            raise ConvexlawError(
                f"signals of size {size:g}: their squares leave the floating-point range; "
                f"choose a unit that gives sizes between {SIZES[0]:g} and {SIZES[1]:g}"
            )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "variances", variances)

    @classmethod
    def two_point(cls, epsilon: float, value: float) -> Prior:
        """Signal of the size ``value`` with probability ``epsilon``, else nothing."""
        eps = fraction("epsilon", epsilon, "the fraction of nonzero signals")
        return cls((1.0 - eps, eps), (0.0, value), (0.0, 0.0))

    @classmethod
    def bernoulli_gaussian(cls, epsilon: float, variance: float = 1.0) -> Prior:
        """Signal N(0, variance) with probability ``epsilon``, else nothing."""
        eps = fraction("epsilon", epsilon, "the fraction of nonzero signals")
        spread = positive("variance", variance, "the variance of the signals, > 0")
        return cls((1.0 - eps, eps), (0.0, 0.0), (0.0, spread))

    @classmethod
    def null(cls) -> Prior:
        """No signals at all."""
        return cls((1.0,), (0.0,), (0.0,))

    @classmethod
    def parse(cls, text: str) -> Prior:
        """Read ``"value:weight, N(mean,variance):weight, ..."``; a missing rest is put on zero.

        Parameters
        ----------
        text : str
            E.g. ``"0:0.8, 4:0.2"``, ``"N(0,1):0.1"`` (0.9 on zero), ``"1:0.1, -1:0.1"``.

        Returns
        -------
        Prior

        Raises
        ------
        ConvexlawError
            A part without a weight, not a number, or weights above 1 in sum.
        """
        weights: list[float] = []
        means: list[float] = []
        variances: list[float] = []
        for part in re.split(r",(?![^()]*\))", text):
            value, colon, weight = part.strip().rpartition(":")
            match = _NORMAL.match(value.replace(" ", ""))
            try:
                if not colon:
                    raise ValueError
                mean, variance = (float(match[1]), float(match[2])) if match else (float(value), 0.0)
                share = float(weight)
            except ValueError:
                raise ConvexlawError(
                    f"prior part {part.strip()!r}: give value:weight or N(mean,variance):weight, "
                    'as in "0:0.8, 4:0.2" or "N(0,1):0.1"'
                ) from None
            weights.append(between("weight", share, 0.0, 1.0, "a probability"))
            means.append(mean)
            variances.append(variance)
        rest = 1.0 - sum(weights)
        if rest > 1e-12:
            weights, means, variances = [rest, *weights], [0.0, *means], [0.0, *variances]
        return cls(tuple(weights), tuple(means), tuple(variances))

    @cached_property
    def arrays(self) -> tuple[Vector, Vector, Vector]:
        """Weights, means, variances as arrays of shape (K,), components of weight 0 left out."""
        w, m, v = (np.array(x, dtype=np.float64) for x in (self.weights, self.means, self.variances))
        keep = w > 0
        return w[keep], m[keep], v[keep]

    @cached_property
    def _signal(self) -> tuple[bool, ...]:
        return tuple(m != 0 or v > 0 for m, v in zip(self.means, self.variances, strict=True))

    @cached_property
    def epsilon(self) -> float:
        """Fraction of nonzero signals."""
        return float(sum(w for w, s in zip(self.weights, self._signal, strict=True) if s))

    @cached_property
    def second_moment(self) -> float:
        """E B^2, in squared units of the coefficients."""
        w, m, v = self.arrays
        return float(w @ (m * m + v))

    @cached_property
    def signals(self) -> Prior | None:
        """Law of the nonzero signals; None where there are none."""
        eps = self.epsilon
        if eps == 0:
            return None
        parts = [
            (w / eps, m, v)
            for w, m, v, s in zip(self.weights, self.means, self.variances, self._signal, strict=True)
            if s
        ]
        weights, means, variances = zip(*parts, strict=True)
        return Prior(weights, means, variances)

    def scaled(self, factor: float) -> Prior:
        """Law of ``factor`` times the coefficient."""
        k = positive("factor", factor, "a factor > 0")
        return Prior(self.weights, tuple(k * m for m in self.means), tuple(k * k * v for v in self.variances))

    def sample(
        self, size: int, rng: np.random.Generator | int | None = None, *, exact: bool = False
    ) -> Vector:
        """Draw coefficients.

        Parameters
        ----------
        size : int
            How many.
        rng : numpy Generator or seed, optional
        exact : bool
            True: every component has ``round(weight * size)`` members (in random order), which removes the
            binomial noise of their numbers.

        Returns
        -------
        ndarray, shape (size,)
        """
        rng = np.random.default_rng(rng)
        w, m, v = self.arrays
        if exact:
            ends = np.round(np.cumsum(w) / w.sum() * size).astype(np.int64)
            which = rng.permutation(np.searchsorted(ends, np.arange(size), side="right"))
        else:
            which = rng.choice(w.size, size=size, p=w / w.sum())
        draw: Vector = m[which] + np.sqrt(v[which]) * rng.standard_normal(size)
        return draw

    def __str__(self) -> str:
        def one(m: float, v: float) -> str:
            return f"N({m:g}, {v:g})" if v > 0 else f"{m:g}"

        parts: Sequence[str] = [
            f"{one(m, v)}: {w:g}" for w, m, v in zip(self.weights, self.means, self.variances, strict=True)
        ]
        shown = ", ".join(parts[:6]) + (f", ... ({len(parts)} components)" if len(parts) > 6 else "")
        return f"Prior({shown})"
