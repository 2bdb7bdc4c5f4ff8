"""The limit of the Gaussian penalty sequence as a function of the rank fraction."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["corrected_bh"]

_FAR = 38.0  # Phi(-38) is the smallest normal double
_PANELS = 2400


class _Limit:
    """l and its integrals on panels in x = Phi^{-1}(1 - q r / 2), from x = 38 (r = 0) down to ``low``.

    l_i^2 = BH_i^2 (1 + S_i / (n - i)) with S_i = sum_{j<i} l_j^2 gives S'(r) = BH^2 (1 + S/(delta - r)), a
    linear equation: S(r) = e^J int_0^r BH^2 e^-J dr' with J(r) = int_0^r BH^2/(delta - r') dr'.
    """

    def __init__(self, q: float, delta: float, low: float) -> None:
        from numpy.polynomial.legendre import leggauss

        self.q, self.delta = q, delta
        self.edges = np.linspace(_FAR, low, _PANELS + 1)
        nodes, self._weights = leggauss(8)
        self._half = -0.5 * np.diff(self.edges)
        t = 0.5 * (self.edges[1:] + self.edges[:-1])[:, None] + self._half[:, None] * nodes
        rate = t * t * self.density(t)
        growth = self._accumulate(rate / (delta - self.rank(t)))
        # J inside the panels by its own panel's average slope is enough: it only enters e^-J there
        share = (growth[1:] - growth[:-1])[:, None] * (0.5 * (1.0 - nodes))
        inner = growth[:-1, None] + share
        self.mass = np.exp(growth) * self._accumulate(rate * np.exp(-inner))
        self.factor = np.sqrt(1.0 + self.mass / (delta - self.rank(self.edges)))

    def density(self, t: Vector) -> Vector:
        """Density of the rank in x (with the sign turned)."""
        out: Vector = (2.0 / self.q) * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
        return out

    def rank(self, t: Vector) -> Vector:
        """Rank fraction at x."""
        from scipy.special import ndtr

        return (2.0 / self.q) * np.asarray(ndtr(-t))

    def _accumulate(self, integrand: Vector) -> Vector:
        return np.concatenate(([0.0], np.cumsum((integrand * self._weights).sum(axis=1) * self._half)))

    def slope(self) -> Vector:
        """Compute (log l^2)' in r, times the density, at the edges; l falls where it is negative."""
        x, room = self.edges, self.delta - self.rank(self.edges)
        level = 1.0 + self.mass / room
        return (x * x / room + self.mass / (room * room * level)) * self.density(x) - 2.0 / x

    def integral(self, factor: Callable[[Vector], Vector]) -> tuple[Vector, Vector]:
        """Integrals of ``x factor(x)`` and of x over (0, r), at the edges."""
        from numpy.polynomial.legendre import leggauss

        t = 0.5 * (self.edges[1:] + self.edges[:-1])[:, None] + self._half[:, None] * leggauss(8)[0]
        plain = t * self.density(t)
        return self._accumulate(plain * factor(t)), self._accumulate(plain)


@lru_cache(maxsize=64)
def corrected_bh(
    q: float, delta: float
) -> tuple[Callable[[Vector], Vector], Callable[[Vector], Vector], float]:
    """Return l/BH and the ratio of their integrals as functions of r, and the rank where l stops falling."""
    from scipy.interpolate import CubicSpline
    from scipy.special import ndtri

    low = max(-float(ndtri(0.5 * q)), 1e-9)  # r = 1
    if delta <= 1.0:
        low = max(low, -float(ndtri(0.5 * q * delta * (1.0 - 1e-9))))
    wide = _Limit(q, delta, low)
    slope = wide.slope()
    rising = np.flatnonzero(slope >= 0)
    if rising.size:
        i = int(rising[0])
        part = CubicSpline(wide.edges[i - 2 : i + 2][::-1], slope[i - 2 : i + 2][::-1])
        roots = part.roots(extrapolate=False)
        low = float(roots[(roots >= wide.edges[i]) & (roots <= wide.edges[i - 1])][0])
    fine = _Limit(q, delta, low)
    factor = CubicSpline(fine.edges[::-1], fine.factor[::-1])
    area, plain = fine.integral(factor)
    quotient = np.ones_like(area)
    np.divide(area, plain, out=quotient, where=plain > 1e-290)
    ratio = CubicSpline(fine.edges[::-1], quotient[::-1])

    def at(spline: CubicSpline) -> Callable[[Vector], Vector]:
        def evaluate(r: Vector) -> Vector:
            x = -np.asarray(ndtri(0.5 * q * np.asarray(r, dtype=np.float64)))
            return np.asarray(spline(np.clip(x, low, _FAR)), dtype=np.float64)

        return evaluate

    return at(factor), at(ratio), float(fine.rank(np.array(low)))
