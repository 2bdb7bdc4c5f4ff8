"""From the shape of a two-level function (zero threshold, upper level, flat value) to its penalty."""

from __future__ import annotations

from convexlaw.theory._penalties import TwoLevel
from convexlaw.theory._priors import Prior

__all__ = ["penalty_of_shape"]


def penalty_of_shape(prior: Prior, tau: float, zero: float, top: float, flat: float) -> TwoLevel:
    """Two-level penalty (units of tau) whose limit is 0 to ``zero``, soft, ``flat``, then soft at ``top``.

    Exactly one share realises it: the mean of the pooled piece must match, g(q) = 0, and
    g'(q) = density(q) (top - zero) >= 0 on (zero + flat, top + flat).
    """
    from scipy.optimize import brentq

    from convexlaw.theory import _limit_kernels as kernels

    law = (*prior.arrays, tau)
    if not top > zero:
        return TwoLevel(zero / tau, zero / tau, 1.0)

    def balance(q: float) -> float:
        left = kernels.excess(*law, zero + flat, q, zero + flat)
        return float(left + kernels.excess(*law, q, top + flat, top + flat))

    low, high = zero + flat, top + flat
    q = low
    if balance(low) < 0:
        q = float(brentq(balance, low, high, xtol=1e-15 * high, rtol=1e-15)) if balance(high) > 0 else high
    return TwoLevel(top / tau, zero / tau, min(max(float(kernels.tail(*law, q)), 0.0), 1.0))
