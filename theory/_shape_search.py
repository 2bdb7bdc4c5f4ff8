"""Search for the best two-level shape, and the smallest fixed point of a class."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.theory._penalties import Lasso, Penalty
from convexlaw.theory._priors import Prior
from convexlaw.theory._state_solver import TINY
from convexlaw.theory._two_level_shape import penalty_of_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Law = tuple[Vector, Vector, Vector, float]

__all__ = ["best_two_level", "level_of", "smallest_tau"]

_BARRIER = 1e100  # value of shapes that do not exist


def smallest_tau(prior: Prior, delta: float, sigma: float, risk: Callable[[float], float]) -> float:
    """Root of ``sigma^2 + risk(tau)/delta = tau^2`` for the smallest risk of a class; 0 is exact recovery.

    The smallest risk over tau^2 decreases, as every member's does, so there is one root.
    """
    top = sigma**2 + prior.second_moment / delta

    def excess(log_x: float) -> float:
        return (sigma**2 + risk(math.exp(0.5 * log_x)) / delta) / math.exp(log_x) - 1.0

    high = math.log(top) + 1e-12
    floor = math.log(top) + 2.0 * math.log(TINY)
    if sigma**2 >= 1e-2 * math.exp(floor):
        floor = 2.0 * math.log(sigma)
    f_high = excess(high)
    if f_high >= 0:
        return math.exp(0.5 * high)
    step = 0.05
    while high > floor:
        low = max(high - step, floor)
        f_low = excess(low)
        if f_low > 0:
            return math.exp(0.5 * _false_position(excess, low, f_low, high, f_high))
        high, f_high, step = low, f_low, 2.0 * step
    # no root above the floor: there the risk is linear in tau^2
    left = sigma**2 / math.exp(floor) - f_high
    return sigma / math.sqrt(min(left, 1.0)) if left > 0 else sigma


def _false_position(
    f: Callable[[float], float], low: float, f_low: float, high: float, f_high: float
) -> float:
    """Root by false position with halved weights; ends are never evaluated again, since f may remember."""
    side = 0
    for _ in range(80):
        x = (low * f_high - high * f_low) / (f_high - f_low)
        value = f(x)
        if value > 0:
            low, f_low = x, value
            f_high = 0.5 * f_high if side == 1 else f_high
            side = 1
        else:
            high, f_high = x, value
            f_low = 0.5 * f_low if side == -1 else f_low
            side = -1
        if abs(value) < 1e-14 or high - low < 1e-14:
            return x
    return 0.5 * (low + high)


def level_of(prior: Prior, delta: float, tau: float) -> float:
    """Noise level at which a penalty is read off: tau, or a very small one near exact recovery."""
    return max(tau, TINY * math.sqrt(prior.second_moment / delta))


def best_two_level(prior: Prior, delta: float, sigma: float, alpha: float | None) -> Penalty:
    """Two-level penalty with the smallest tau, its zero threshold free or fixed at ``alpha`` tau."""
    search = _ShapeSearch(prior, alpha)
    tau = 0.0
    for _ in range(5):
        tau = smallest_tau(prior, delta, sigma, lambda t: search.best(t)[0])
        known = search.best(level_of(prior, delta, tau))[0]
        # a scan at the solution: another basin may be better there than the one that was followed
        found = search.best(level_of(prior, delta, tau), thorough=True)[0]
        if found >= known * (1.0 - 1e-11):
            break
    level = level_of(prior, delta, tau)
    _, zero, top, flat = search.best(level)
    return _shape_penalty(prior, level, zero, top, flat)


def _shape_penalty(prior: Prior, tau: float, zero: float, top: float, flat: float) -> Penalty:
    if top <= zero * (1.0 + 1e-9) or flat <= 1e-9 * tau:
        return Lasso((top if flat <= 1e-9 * tau else zero) / tau)
    return penalty_of_shape(prior, tau, zero, top, flat)


class _ShapeSearch:
    """Best two-level shape at each noise level: a scan where nothing is known, then local refinement.

    Two families are searched: with the best upper level for where its piece starts, and without an upper
    piece (it begins where no mass is left). ``alpha`` fixes the zero threshold at alpha tau.
    """

    def __init__(self, prior: Prior, alpha: float | None = None) -> None:
        self.law, self.alpha = prior.arrays, alpha
        self.far: bool | None = None
        self.start: Vector = np.zeros(0)

    def best(self, tau: float, thorough: bool = False) -> tuple[float, float, float, float]:
        """Return (risk, zero, top, flat)."""
        from convexlaw.theory import _design_kernels as kernels
        from convexlaw.theory import _limit_kernels as limits

        law: Law = (*self.law, tau)
        tries = [] if self.far is None else [(self.far, self.start)]
        if self.far is None or thorough:
            tries += [(far, self._scan(law, far)) for far in (False, True)]
        found = [(*self._refine(law, far, x), far) for far, x in tries]
        risk, self.start, self.far = min(found, key=lambda f: f[0])
        zero, x = self._place(self.start, tau)
        if self.far:
            reach = float(limits.upper_quantile(*law, 1e-9))
            return risk, zero, max(reach - x, zero), x
        _, top, flat = kernels.shape_at(*law, zero, zero + x)
        return risk, zero, float(top), float(flat)

    def _place(self, x: Vector, tau: float) -> tuple[float, float]:
        """Zero threshold and second coordinate in the units of the coefficients."""
        zero = tau * (self.alpha if self.alpha is not None else float(x[0]))
        return zero, tau * abs(float(x[-1]))

    def _value(self, law: Law, far: bool, x: Vector) -> float:
        from convexlaw.theory import _design_kernels as kernels

        zero, y = self._place(x, law[3])
        if zero < 0:
            return _BARRIER
        found = float(kernels.far_risk(*law, zero, y) if far else kernels.shape_at(*law, zero, zero + y)[0])
        return min(found, _BARRIER)

    def _refine(self, law: Law, far: bool, x: Vector) -> tuple[float, Vector]:
        from scipy.optimize import minimize

        moves = [[0.2]] if self.alpha is not None else [[0.05, 0.0], [0.0, 0.2]]
        options = {
            "initial_simplex": np.array([x, *(x + m for m in moves)]),
            "xatol": 1e-8,
            "fatol": 1e-15,
            "maxfev": 600,
        }
        search: Any = minimize
        found = search(lambda y: self._value(law, far, y), x, method="Nelder-Mead", options=options)
        return float(found.fun), found.x

    def _scan(self, law: Law, far: bool) -> Vector:
        from convexlaw.theory import _design_kernels as kernels
        from convexlaw.theory import _limit_kernels as limits

        tau = law[3]
        reach = float(limits.upper_quantile(*law, 1e-9))
        zeros = np.linspace(0.0, 5.0 * tau, 26) if self.alpha is None else np.array([self.alpha * tau])
        _, zero, x = kernels.scan_shapes(*law, zeros, reach, 48, far)
        return np.array([zero / tau, x / tau] if self.alpha is None else [x / tau])
