"""Exact discrete bounds of the constant and linear schedules, and the published upper bound for WSD."""

from __future__ import annotations

import math

from scipy.special import digamma

from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_checks import nonnegative, rate, whole_steps

__all__ = ["constant_bound", "linear_bound", "wsd_upper_bound"]


def constant_bound(steps: int, peak: float, grad_norm: float = 1.0, distance: float = 1.0) -> float:
    """Tail bound of ``constant(steps, peak)``: D^2/(2 gamma T) + gamma G^2 (1 + H_{T-1})/2.

    Parameters
    ----------
    steps : int
        T.
    peak : float
        gamma, positive.
    grad_norm, distance : float
        G and D.

    Returns
    -------
    float

    Raises
    ------
    ConvexlawError
        A value outside its range.

    Examples
    --------
    >>> constant_bound(1, 1.0)
    1.0
    """
    t, gamma, g, d = _checked(steps, peak, grad_norm, distance)
    return d * d / (2 * gamma * t) + gamma * g * g * (1 + _harmonic(t - 1)) / 2


def linear_bound(steps: int, peak: float, grad_norm: float = 1.0, distance: float = 1.0) -> float:
    """Tail bound of ``linear(steps, peak)``: D^2/(gamma (T+1)) + gamma G^2 (2(T-1+H_{T-1}) + 1)/(2T).

    Parameters
    ----------
    steps : int
        T; the rates are gamma (1 - t/T), t = 0..T-1.
    peak : float
        gamma, positive.
    grad_norm, distance : float
        G and D.

    Returns
    -------
    float

    Raises
    ------
    ConvexlawError
        A value outside its range.

    Examples
    --------
    >>> round(linear_bound(1000, 1000**-0.5) * 1000**0.5, 4)
    2.006
    """
    t, gamma, g, d = _checked(steps, peak, grad_norm, distance)
    return d * d / (gamma * (t + 1)) + gamma * g * g * (2 * (t - 1 + _harmonic(t - 1)) + 1) / (2 * t)


def wsd_upper_bound(steps: int, cooldown_start: int, grad_norm: float = 1.0, distance: float = 1.0) -> float:
    """Upper bound published for WSD, linear cooldown, at its best peak; looser than ``optimal_peak``.

    Parameters
    ----------
    steps : int
        T.
    cooldown_start : int
        T0, 1 <= T0 < T: the steps T0..T cool down.
    grad_norm, distance : float
        G and D.

    Returns
    -------
    float

    Raises
    ------
    ConvexlawError
        A value outside its range.

    References
    ----------
    arXiv 2501.18965 (Schaipp et al. 2025), the theorem on WSD.

    Examples
    --------
    >>> round(wsd_upper_bound(1000, 800), 4)
    0.0846
    """
    t, _, g, d = _checked(steps, 1.0, grad_norm, distance)
    t0 = whole_steps(cooldown_start)
    if t0 >= t:
        raise ConvexlawError(f"cooldown_start = {t0}: give a step from 1 to steps - 1 = {t - 1}")
    cooled, both = t - t0, t + t0
    inner = 2 / 3 + (t + 2 * t0) / (3 * both) + _harmonic(both - 2) - _harmonic(cooled + 1)
    inner += (
        -cooled * (t0 - 1) / (3 * (cooled + 2) * both) + 1 / cooled**2 + _harmonic(cooled - 1) / (cooled + 1)
    )
    return d * g * math.sqrt(4 / both * inner)


def _harmonic(n: int) -> float:
    return float(digamma(n + 1) + 0.57721566490153286) if n > 0 else 0.0


def _checked(steps: int, peak: float, grad_norm: float, distance: float) -> tuple[int, float, float, float]:
    return (
        whole_steps(steps),
        rate(peak),
        nonnegative("grad_norm", grad_norm),
        nonnegative("distance", distance),
    )
