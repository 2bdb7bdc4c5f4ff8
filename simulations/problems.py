"""Convex problems whose constants are known: minimum, distance to it, gradient noise. Numpy only.

Everywhere the gradient of a batch of B samples is g = f'(x) + noise with E|noise|^2 = (noise of one
sample)/B, the update is x <- x - lr g, and the quantities of the bounds are exact: the gap f(x) - f*, the
distance |x_1 - x*|, and E|g|^2 at a point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError

__all__ = [
    "LogisticRegression",
    "MaxOfAffine",
    "Problem",
    "Quadratic",
    "noise_dominated_quadratic",
    "power_law_quadratic",
    "random_logistic_regression",
    "random_max_of_affine",
]

Array = NDArray[np.float64]


class Problem(Protocol):
    """What descent needs to know; points have shape (R, d), one row a replica."""

    @property
    def start(self) -> Array:
        """First point, shape (d,)."""

    @property
    def distance(self) -> float:
        """Distance of the first point from the minimiser."""

    def gap(self, points: Array) -> Array:
        """f(x) - f* at every point, shape (R,)."""

    def gradient(self, points: Array, batch: int, rng: np.random.Generator) -> Array:
        """Gradient of a batch at every point, shape (R, d)."""

    def second_moment(self, points: Array, batch: float) -> Array:
        """E|g|^2 of a batch at every point, shape (R,)."""


@dataclass(frozen=True)
class Quadratic:
    """f(x) = 1/2 sum_i h_i x_i^2 with independent gradient noise of standard deviation s_i for one sample.

    Attributes
    ----------
    curvature : ndarray, shape (d,)
        Eigenvalues h_i > 0.
    start : ndarray, shape (d,)
        First point; the minimiser is 0.
    noise : ndarray, shape (d,)
        s_i >= 0.
    """

    curvature: Array = field(repr=False)
    start: Array = field(repr=False)
    noise: Array = field(repr=False)

    def __post_init__(self) -> None:
        shapes = {np.shape(self.curvature), np.shape(self.start), np.shape(self.noise)}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise ConvexlawError(f"curvature, start and noise have shapes {sorted(shapes)}: all are (d,)")
        if not (np.all(np.asarray(self.curvature) > 0) and np.all(np.asarray(self.noise) >= 0)):
            raise ConvexlawError("a quadratic needs curvature > 0 and noise >= 0 in every direction")

    @property
    def distance(self) -> float:
        """|x_1|."""
        return float(np.linalg.norm(self.start))

    def gap(self, points: Array) -> Array:
        """f(x) - f* at every point, shape (R,)."""
        return 0.5 * (points**2 @ self.curvature)

    def gradient(self, points: Array, batch: int, rng: np.random.Generator) -> Array:
        """Gradient of a batch at every point, shape (R, d)."""
        noise: Array = rng.standard_normal(points.shape) * (self.noise / np.sqrt(batch))
        return points * self.curvature + noise

    def second_moment(self, points: Array, batch: float) -> Array:
        """E|g|^2 of a batch at every point, shape (R,)."""
        return points**2 @ self.curvature**2 + float(self.noise @ self.noise) / batch


@dataclass(frozen=True)
class LogisticRegression:
    """f(w) = mean_i log(1 + exp(-y_i x_i.w)) + ridge/2 |w|^2, batches drawn with replacement.

    Attributes
    ----------
    features : ndarray, shape (n, d)
        Rows x_i.
    signs : ndarray, shape (n,)
        y_i in {-1, 1}.
    ridge : float
        Strength of the quadratic term, positive (the minimiser is then unique).
    minimiser : ndarray, shape (d,)
        w*, found by Newton's method.
    """

    features: Array = field(repr=False)
    signs: Array = field(repr=False)
    ridge: float
    minimiser: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.ridge > 0:
            raise ConvexlawError(f"ridge = {self.ridge}: give a positive one, for a finite minimiser")
        w = np.zeros(self.features.shape[1])
        for _ in range(100):
            pull = self._pull(w[None])[0]
            gradient = -(self.signs * pull) @ self.features / len(self.signs) + self.ridge * w
            weight = pull * (1 - pull) / len(self.signs)
            hessian = (self.features.T * weight) @ self.features + self.ridge * np.eye(w.size)
            step = np.linalg.solve(hessian, gradient)
            value, scale = self._value(w[None])[0], 1.0
            while self._value((w - scale * step)[None])[0] > value and scale > 1e-8:
                scale /= 2
            w = w - scale * step
            if np.linalg.norm(step) <= 1e-13 * (1 + np.linalg.norm(w)):
                break
        object.__setattr__(self, "minimiser", w)

    @property
    def start(self) -> Array:
        """The origin."""
        return np.zeros(self.features.shape[1])

    @property
    def distance(self) -> float:
        """|w*|."""
        return float(np.linalg.norm(self.minimiser))

    def gap(self, points: Array) -> Array:
        """f(w) - f* at every point, shape (R,)."""
        return self._value(points) - self._value(self.minimiser[None])

    def gradient(self, points: Array, batch: int, rng: np.random.Generator) -> Array:
        """Gradient of a batch at every point, shape (R, d)."""
        chosen = rng.integers(len(self.signs), size=(len(points), int(batch)))
        x, y = self.features[chosen], self.signs[chosen]
        pull = _sigmoid(-y * np.einsum("rbd,rd->rb", x, points))
        mean: Array = -np.einsum("rb,rbd->rd", y * pull, x) / int(batch)
        return mean + self.ridge * points

    def second_moment(self, points: Array, batch: float) -> Array:
        """E|g|^2 of a batch at every point, shape (R,)."""
        pull = self._pull(points)
        mean = -(self.signs * pull) @ self.features / len(self.signs)
        spread = (pull**2 @ np.sum(self.features**2, axis=1)) / len(self.signs) - np.sum(mean**2, axis=1)
        return np.asarray(np.sum((mean + self.ridge * points) ** 2, axis=1) + spread / batch)

    def _pull(self, points: Array) -> Array:
        return _sigmoid(-(points @ self.features.T) * self.signs)

    def _value(self, points: Array) -> Array:
        losses = np.logaddexp(0.0, -(points @ self.features.T) * self.signs).mean(axis=1)
        return np.asarray(losses + 0.5 * self.ridge * np.sum(points**2, axis=1))


@dataclass(frozen=True)
class MaxOfAffine:
    """f(x) = max_i (a_i.x + b_i), non-smooth, with isotropic gradient noise; minimiser 0, minimum max_i b_i.

    Attributes
    ----------
    slopes : ndarray, shape (m, d)
        Rows a_i; 0 lies in the convex hull of those with the largest b_i.
    offsets : ndarray, shape (m,)
        b_i.
    start : ndarray, shape (d,)
        First point.
    noise : float
        Root of E|noise|^2 for one sample.
    """

    slopes: Array = field(repr=False)
    offsets: Array = field(repr=False)
    start: Array = field(repr=False)
    noise: float = 0.0

    @property
    def distance(self) -> float:
        """|x_1|."""
        return float(np.linalg.norm(self.start))

    def gap(self, points: Array) -> Array:
        """f(x) - f* at every point, shape (R,)."""
        return np.asarray((points @ self.slopes.T + self.offsets).max(axis=1) - self.offsets.max())

    def gradient(self, points: Array, batch: int, rng: np.random.Generator) -> Array:
        """Subgradient at every point, plus noise, shape (R, d)."""
        active = (points @ self.slopes.T + self.offsets).argmax(axis=1)
        scale = self.noise / np.sqrt(batch * points.shape[1])
        noise: Array = rng.standard_normal(points.shape) * scale
        return np.asarray(self.slopes[active] + noise)

    def second_moment(self, points: Array, batch: float) -> Array:
        """E|g|^2 at every point, shape (R,)."""
        active = (points @ self.slopes.T + self.offsets).argmax(axis=1)
        return np.asarray(np.sum(self.slopes[active] ** 2, axis=1) + self.noise**2 / batch)


def power_law_quadratic(
    dimension: int, *, curvature: float = 1.0, start: float = 1.0, noise: float = 1.0,
    distance: float = 1.0, sigma: float = 1.0,
) -> Quadratic:  # fmt: skip
    """Quadratic with power-law spectra.

    Parameters
    ----------
    dimension : int
        Number of directions d.
    curvature : float
        a in h_i = i^-a, i = 1..d.
    start : float
        b in (x_1)_i^2 proportional to i^-b.
    noise : float
        c in s_i^2 proportional to h_i^c; 1 is the noise of least squares with noisy labels.
    distance : float
        |x_1|.
    sigma : float
        Root of E|noise|^2 = sum s_i^2 for one sample.

    Returns
    -------
    Quadratic

    Examples
    --------
    >>> problem = power_law_quadratic(100, sigma=2.0)
    >>> round(problem.distance, 6), round(float(problem.noise @ problem.noise), 6)
    (1.0, 4.0)
    """
    index = np.arange(1, _dimension(dimension) + 1, dtype=float)
    h = index**-curvature
    spread = h**noise
    begin = index**-start
    return Quadratic(
        h, distance * np.sqrt(begin / begin.sum()), sigma * np.sqrt(spread / spread.sum())
    )  # fmt: skip


def noise_dominated_quadratic(
    dimension: int = 400, *, condition: float = 1e6, distance: float = 1.0, sigma: float = 1.0
) -> Quadratic:
    """Quadratic on which the convex bound has the right shape: bias like 1/S, noise like eta^2/tail.

    The eigenvalues are uniform in log h on [1/condition, 1], start and noise are the same in every direction.
    With n eigenvalues a factor of e, sum_i h_i exp(-2 h_i u) = n int h exp(-2 h u) d log h = n/(2u) for u
    between 1 and the condition number: the gap decays like 1/S, and a step eta leaves noise that decays like
    eta^2/tail.

    Parameters
    ----------
    dimension : int
        Number of directions.
    condition : float
        Largest over smallest eigenvalue; the largest is 1.
    distance : float
        |x_1|.
    sigma : float
        Root of E|noise|^2 for one sample; large against the gradient itself, sigma^2/B dominates E|g|^2.

    Returns
    -------
    Quadratic

    Examples
    --------
    >>> problem = noise_dominated_quadratic(4, condition=1000.0)
    >>> [float(h) for h in problem.curvature.round(6)]
    [1.0, 0.1, 0.01, 0.001]
    """
    d = _dimension(dimension)
    if not condition > 1:
        raise ConvexlawError(f"condition = {condition}: the largest over the smallest eigenvalue is above 1")
    each = np.full(d, d**-0.5)
    return Quadratic(np.geomspace(1.0, 1.0 / condition, d), distance * each, sigma * each)


def random_logistic_regression(
    samples: int, dimension: int, rng: np.random.Generator, *, ridge: float = 1e-2
) -> LogisticRegression:
    """Logistic regression on Gaussian features with labels of a planted model.

    Parameters
    ----------
    samples, dimension : int
        n and d.
    rng : numpy Generator
        Source of the data.
    ridge : float
        Strength of the quadratic term.

    Returns
    -------
    LogisticRegression

    Examples
    --------
    >>> problem = random_logistic_regression(50, 3, np.random.default_rng(0))
    >>> bool(abs(problem.gap(problem.minimiser[None])[0]) < 1e-15)
    True
    """
    features = rng.standard_normal((samples, _dimension(dimension))) / np.sqrt(dimension)
    planted = 3 * rng.standard_normal(dimension)
    chance = _sigmoid(features @ planted)
    return LogisticRegression(features, np.where(rng.random(samples) < chance, 1.0, -1.0), ridge)


def random_max_of_affine(
    pieces: int, dimension: int, rng: np.random.Generator, *, active: int | None = None, noise: float = 0.0
) -> MaxOfAffine:
    """Maximum of random affine functions with minimiser 0.

    Parameters
    ----------
    pieces, dimension : int
        m >= 2 and d.
    rng : numpy Generator
        Source of the slopes.
    active : int, optional
        Pieces that meet at the minimiser, at least 2; all without it.
    noise : float
        Root of E|noise|^2 for one sample.

    Returns
    -------
    MaxOfAffine

    Examples
    --------
    >>> problem = random_max_of_affine(8, 4, np.random.default_rng(0))
    >>> bool((problem.gap(np.random.default_rng(1).standard_normal((100, 4))) >= 0).all())
    True
    """
    active = pieces if active is None else active
    if not 2 <= active <= pieces:
        raise ConvexlawError(f"active = {active} of {pieces} pieces: from 2 to all of them meet at 0")
    slopes = rng.standard_normal((pieces, _dimension(dimension))) / np.sqrt(dimension)
    weights = rng.dirichlet(np.ones(active - 1))
    # 0 becomes a convex combination of the active slopes, so that no direction descends from 0
    slopes[active - 1] = -weights @ slopes[: active - 1]
    offsets = np.zeros(pieces)
    offsets[active:] = -rng.random(pieces - active)
    start = rng.standard_normal(dimension)
    return MaxOfAffine(slopes, offsets, start / np.linalg.norm(start), noise)


def _sigmoid(z: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * z)))


def _dimension(value: int) -> int:
    if value < 1:
        raise ConvexlawError(f"dimension = {value}: give at least 1")
    return int(value)
