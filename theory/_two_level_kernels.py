"""Compiled two-level thresholds: the best two-level shape for one common signal size."""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import numpy as np

from convexlaw.theory._jit import leaf
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


# inlined from other files: 9388b5a904f1


@leaf
def _second_moment(z, c, t, epsilon):
    """Integral of (y - c)^2 K(y) over (z, inf)."""
    total = 2.0 * (1.0 - epsilon) * ((1.0 + c * c) * upper(z) + (z - 2.0 * c) * phi(z))
    for x in (t, -t):
        d = z - x
        m = x - c
        total += epsilon * ((1.0 + m * m) * upper(d) + (d + 2.0 * m) * phi(d))
    return total


@leaf
def _with_top(r, a, t, epsilon, s_a, common):
    """E, T, c of the shape whose upper soft piece starts at r, with its best level T = K(r)/S(r)."""
    s_r = survival(r, t, epsilon)
    if s_r <= 0.0:
        return np.inf, a, 0.0  # no mass left: the other family has this shape
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
    value = common + a * a * (s_a - s_l) - 2.0 * (s_l - s_r) + top * top * s_r
    value += _second_moment(left, c, t, epsilon) - _second_moment(r, c, t, epsilon)
    return value, top, c


@leaf
def _without_top(c, a, t, epsilon, s_a, common):
    """E, T, c of the shape that stays at c: the upper piece starts where no mass is left."""
    left = a + c
    s_l = survival(left, t, epsilon)
    value = common + a * a * (s_a - s_l) - 2.0 * s_l + _second_moment(left, c, t, epsilon)
    return value, max(a, t) + 2.0 * _TAIL, c


@leaf
def _family(far, low, high, steps, a, t, epsilon, s_a, common):
    """Smallest E of one family over [low, high]: a scan, then golden section."""
    best, place = np.inf, 0
    for i in range(steps + 1):
        value, _, _ = _shape(far, low + (high - low) * i / steps, a, t, epsilon, s_a, common)
        if value < best:
            best, place = value, i
    left = low + (high - low) * max(place - 1, 0) / steps
    right = low + (high - low) * min(place + 1, steps) / steps
    x1 = right - 0.6180339887498949 * (right - left)
    x2 = left + 0.6180339887498949 * (right - left)
    f1, _, _ = _shape(far, x1, a, t, epsilon, s_a, common)
    f2, _, _ = _shape(far, x2, a, t, epsilon, s_a, common)
    while right - left > 1e-9 * right:
        if f1 <= f2:
            right, x2, f2 = x2, x1, f1
            x1 = right - 0.6180339887498949 * (right - left)
            f1, _, _ = _shape(far, x1, a, t, epsilon, s_a, common)
        else:
            left, x1, f1 = x1, x2, f2
            x2 = left + 0.6180339887498949 * (right - left)
            f2, _, _ = _shape(far, x2, a, t, epsilon, s_a, common)
    return _shape(far, 0.5 * (left + right), a, t, epsilon, s_a, common)


@leaf
def _shape(far, x, a, t, epsilon, s_a, common):
    if far:
        return _without_top(x, a, t, epsilon, s_a, common)
    return _with_top(x, a, t, epsilon, s_a, common)


@leaf
def two_level_error(a, u, epsilon):
    """Smallest E over two-level penalties, all signals of one size: (E, T, c); the zero threshold is a.

    Given where the upper piece starts, r = T + c, its best level is T = K(r)/S(r), so that one variable is
    left; the shapes that never leave the flat value (the limit of a large T) are a second family.
    """
    t = signal_size(a, u)
    s_a = survival(a, t, epsilon)
    common = common_error(a, t, u, epsilon) - 2.0 * a * density(a, t, epsilon)
    found = _family(False, a, max(a, t) + _TAIL, 52, a, t, epsilon, s_a, common)
    far = _family(True, 0.0, t, 20, a, t, epsilon, s_a, common)
    return far if far[0] < found[0] else found


@leaf
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
