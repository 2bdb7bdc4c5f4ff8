"""Root finding for the state evolution: fixed points, the edge of the domain, both equations at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory.scalar_limit import Lasso, Penalty, Prior, TwoLevel, null_risk, risk_and_df

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = [
    "COARSE",
    "TINY",
    "NoFixedPointError",
    "NonPositiveLambdaError",
    "check_domain",
    "crossing",
    "fixed_point",
    "log_domain_edge",
    "polish",
    "tolerance",
]

COARSE = 32  # cells per standard deviation while brackets are wide
TINY = 1e-7  # relative to the spread of the signals: a fixed point below it is exact recovery


class NoFixedPointError(ConvexlawError):
    """The penalty lies outside the domain: its risk at pure noise is not below delta."""


class NonPositiveLambdaError(ConvexlawError):
    """The fixed point exists, but df >= delta: the thresholds belong to no SLOPE problem with lambda > 0."""


def tolerance(penalty: Penalty) -> float:
    """Relative noise level of the risk: rounding in closed form, the changing mesh on cells."""
    return 1e-13 if isinstance(penalty, (Lasso, TwoLevel)) else 1e-9


def check_domain(penalty: Penalty, delta: float) -> None:
    risk = null_risk(penalty)
    if risk >= delta:
        raise NoFixedPointError(
            f"null_risk(penalty) = {risk:.6g} >= delta = {delta:g}: the state evolution has no fixed point; "
            "use larger penalty levels or more rows"
        )


def fixed_point(
    prior: Prior,
    penalty: Penalty,
    delta: float,
    sigma: float,
    resolution: int,
    guess: float = 0.0,
    tol: float = 1e-14,
) -> float:
    """Root of F(tau^2)/tau^2 = 1; the left side decreases, since F is concave with F(0) = sigma^2 >= 0."""

    def excess(log_x: float) -> float:
        x = math.exp(log_x)
        risk = risk_and_df(prior, penalty, math.sqrt(x), resolution)[0]
        return (sigma * sigma + risk / delta) / x - 1.0

    spread = sigma * sigma + prior.second_moment / delta
    if spread == 0.0:
        return 0.0
    start = math.log(spread)
    floor = start + 2.0 * math.log(TINY)
    if sigma * sigma < 1e-2 * math.exp(floor):
        # sigma below the resolution: with exact recovery at sigma = 0, F is linear down there
        slope = excess(floor) + 1.0 - sigma * sigma / math.exp(floor)
        if slope < 1.0:
            return sigma / math.sqrt(1.0 - max(slope, 0.0))
    else:
        floor = 2.0 * math.log(sigma)
    if guess > 0:
        low, high = _around(excess, max(2.0 * math.log(guess), floor), floor)
    else:
        low, high = _around(excess, start, floor)
    if low == high:
        return math.exp(0.5 * low)
    from scipy.optimize import brentq

    return math.exp(0.5 * float(brentq(excess, low, high, xtol=tol or 0.1 * tolerance(penalty), rtol=1e-14)))


def crossing(
    f: Callable[..., float], low: float, high: float, args: tuple[int, float], xtol: float
) -> float | None:
    """Root of ``f`` in the bracket; None where the values at its ends are rounding noise of one sign."""
    from scipy.optimize import brentq

    try:
        return float(brentq(f, low, high, args=args, xtol=xtol))
    except ValueError:
        return None


def _around(excess: Callable[[float], float], start: float, floor: float) -> tuple[float, float]:
    """Bracket of the root of a decreasing function near ``start``; both ends ``floor`` if it lies below."""
    step = 0.02
    if excess(start) > 0:
        low, high = start, start + step
        while excess(high) > 0:
            step *= 3.0
            low, high = high, min(high + step, start + 60.0)
            if low == high:
                raise NoFixedPointError(
                    "tau grows beyond every bound: the penalty is at the edge of the domain "
                    "null_risk(penalty) < delta; use larger penalty levels or more rows"
                )
        return low, high
    high = start
    while high > floor:
        low = max(high - step, floor)
        if excess(low) > 0:
            return low, high
        high, step = low, 3.0 * step
    return floor, floor


def log_domain_edge(lam: Penalty, delta: float) -> float:
    """Logarithm of the smallest scale with a fixed point, to 1e-3 (a very small one where there is none)."""
    from scipy.optimize import brentq

    null = Prior.null()

    def outside(log_k: float) -> float:
        return risk_and_df(null, lam.scaled(math.exp(log_k)), 1.0, COARSE)[0] - delta

    middle = -math.log(float(lam.value(np.array(0.5))) + float(lam.value(np.array(1e-3))))
    low, high = middle - 1.0, middle + 1.0
    while outside(high) >= 0:
        low, high = high, high + 1.0
    while outside(low) < 0:
        low, high = low - 2.0, low
        if low < middle - 40.0:
            return low
    return float(brentq(outside, low, high, xtol=1e-3))


def polish(
    prior: Prior, lam: Penalty, delta: float, sigma: float, log_k: float, tau: float
) -> tuple[float, float] | None:
    """Broyden's method on both equations (fixed point and lambda) at once; None where it does not settle."""
    if tau <= 0:
        return None
    goal = tolerance(lam)

    def equations(z: Vector) -> Vector:
        scale, noise = math.exp(z[0]), math.exp(z[1])
        risk, df = risk_and_df(prior, lam.scaled(scale), noise)
        return np.array(
            [(sigma**2 + risk / delta) / noise**2 - 1.0, scale * noise * (1.0 - df / delta) - 1.0]
        )

    z = np.array([log_k, math.log(tau)])
    here = equations(z)
    step = 1e-4
    slopes = np.column_stack([(equations(z + step * e) - here) / step for e in np.eye(2)])
    for _ in range(25):
        if not np.isfinite(slopes).all() or abs(np.linalg.det(slopes)) < 1e-12:
            return None
        move = -np.linalg.solve(slopes, here)
        if not np.abs(move).max() < 0.5:
            return None
        z = z + move
        here = equations(z)
        if np.abs(here).max() < goal:
            return float(z[0]), math.exp(z[1])
        slopes = slopes + np.outer(here, move) / (move @ move)
    return None
