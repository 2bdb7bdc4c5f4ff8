"""Compiled two-level thresholds: the best two-level shape for one common signal size."""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import numpy as np
from numba import njit

from convexlaw.theory._tradeoff_kernels import (
    common_error,
    density,
    phi,
    signal_size,
    start,
    survival,
    upper,
)

__all__ = ["two_level_error", "two_level_threshold"]

_TAIL = 8.0  # standard deviations beyond which the mass does not matter


@njit(cache=True)
def _second_moment(z, c, t, epsilon):
    """Integral of (y - c)^2 K(y) over (z, inf)."""
    total = 2.0 * (1.0 - epsilon) * ((1.0 + c * c) * upper(z) + (z - 2.0 * c) * phi(z))
    for x in (t, -t):
        d = z - x
        m = x - c
        total += epsilon * ((1.0 + m * m) * upper(d) + (d + 2.0 * m) * phi(d))
    return total


@njit(cache=True)
def _two_level_at(r, a, t, epsilon, s_a, common):
    """E of the two-level shape whose upper soft piece starts at r, with its best level T = K(r)/S(r)."""
    far = r > t + _TAIL and r > a + _TAIL
    if far:
        # no mass beyond r: only c = r - T = t - 1/(r - t) + ... matters, and it runs on to t
        s_r = 0.0
        top = (r - t) + 1.0 / (r - t)
    else:
        s_r = survival(r, t, epsilon)
        top = density(r, t, epsilon) / s_r
    c = r - top
    if top < a:
        # the best level of this piece is below a: the shape is the Lasso at a
        top = a
        c = r - a
    if c < 0.0:
        return np.inf, top, c
    left = a + c
    s_l = survival(left, t, epsilon)
    value = common + a * a * (s_a - s_l) - 2.0 * (s_l - s_r) + _second_moment(left, c, t, epsilon)
    if not far:
        value += top * top * s_r - _second_moment(r, c, t, epsilon)
    return value, top, c


@njit(cache=True)
def _scan_place(i, low, high, steps):
    """Places of the scan: even up to ``high``, then doubling distances."""
    if i <= steps:
        return low + (high - low) * i / steps
    return high + _TAIL * (2.0 ** (i - steps) - 1.0)


@njit(cache=True)
def two_level_error(a, u, epsilon):
    """Smallest E over two-level penalties, all signals of one size: (E, T, c); the zero threshold is a.

    The best upper level given where its piece starts, T + c = r, is T = K(r)/S(r), so that one variable is
    left; the smallest value along it is found by a scan and golden section.
    """
    t = signal_size(a, u)
    s_a = survival(a, t, epsilon)
    common = common_error(a, t, u, epsilon) - 2.0 * a * density(a, t, epsilon)
    low, high = a, max(a, t) + _TAIL
    steps, last = 52, 60
    best, place = np.inf, 0
    for i in range(last + 1):
        value, _, _ = _two_level_at(_scan_place(i, low, high, steps), a, t, epsilon, s_a, common)
        if value < best:
            best, place = value, i
    left = _scan_place(max(place - 1, 0), low, high, steps)
    right = _scan_place(min(place + 1, last), low, high, steps)
    x1 = right - 0.6180339887498949 * (right - left)
    x2 = left + 0.6180339887498949 * (right - left)
    f1, _, _ = _two_level_at(x1, a, t, epsilon, s_a, common)
    f2, _, _ = _two_level_at(x2, a, t, epsilon, s_a, common)
    while right - left > 1e-9 * right:
        if f1 <= f2:
            right, x2, f2 = x2, x1, f1
            x1 = right - 0.6180339887498949 * (right - left)
            f1, _, _ = _two_level_at(x1, a, t, epsilon, s_a, common)
        else:
            left, x1, f1 = x1, x2, f2
            x2 = left + 0.6180339887498949 * (right - left)
            f2, _, _ = _two_level_at(x2, a, t, epsilon, s_a, common)
    return _two_level_at(0.5 * (left + right), a, t, epsilon, s_a, common)


@njit(cache=True)
def two_level_threshold(u, delta, epsilon, first, general):
    """Largest threshold over two-level designs, between branch_one and the general threshold."""
    if u == 0.0 or u >= 1.0 or (first >= 0.0 and general <= first):
        return general
    low = first if first >= 0.0 else start(u)
    high = general
    f_high = two_level_error(high, u, epsilon)[0] - delta
    if f_high <= 1e-12 * delta:
        return high
    steps = 14
    f_low, found = 0.0, False
    for i in range(steps - 1, -1, -1):
        a = low + (general - low) * i / steps
        value = two_level_error(a, u, epsilon)[0] - delta if a > start(u) else -delta
        if value <= 0.0:
            low, f_low, found = a, value, True
            break
        high, f_high = a, value
    if not found:
        return first
    side = 0
    for _ in range(100):
        a = (low * f_high - high * f_low) / (f_high - f_low)
        if not low < a < high:
            a = 0.5 * (low + high)
        value = two_level_error(a, u, epsilon)[0] - delta
        if value > 0.0:
            high, f_high = a, value
            f_low = 0.5 * f_low if side == 1 else f_low
            side = 1
        else:
            low, f_low = a, value
            f_high = 0.5 * f_high if side == -1 else f_high
            side = -1
        if abs(value) <= 1e-13 * delta or high - low <= 1e-14 * high:
            return a
    return 0.5 * (low + high)
