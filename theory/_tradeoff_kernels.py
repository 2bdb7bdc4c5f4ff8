"""Compiled thresholds of the trade-off curves. Units: tau = 1; a is a zero threshold, u a TPP.

E(a) is the smallest normalised error ``E (h(pi + Z) - pi)^2`` of a design with zero threshold a and TPP u;
the threshold of a curve is the largest a with E(a) <= delta, and its FDP is ``fdp(a, u)``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import math

import numpy as np

from convexlaw.theory._jit import leaf

__all__ = [
    "SPAN",
    "branch_one",
    "common_error",
    "density",
    "fdp",
    "lasso_threshold",
    "lower_threshold",
    "phi",
    "shared_part",
    "shared_root",
    "signal_size",
    "single_error",
    "single_profile",
    "soft_risk",
    "start",
    "survival",
    "upper",
]

_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
SPAN = 9.5


@leaf
def phi(x):
    return _DENSITY * math.exp(-0.5 * x * x)


@leaf
def upper(x):
    return 0.5 * math.erfc(x * _ROOT_HALF)


@leaf
def soft_risk(a):
    """E soft(Z; a)^2 = 2 [(1 + a^2) Phi(-a) - a phi(a)]."""
    return 2.0 * ((1.0 + a * a) * upper(a) - a * phi(a))


@leaf
def fdp(a, u, epsilon):
    """FDP of the threshold a at TPP u."""
    false = 2.0 * (1.0 - epsilon) * upper(a)
    return false / (false + epsilon * u) if false > 0.0 else 0.0


@leaf
def start(u):
    """Smallest threshold a with 2 Phi(-a) <= u: below it even null signals are found more often than u."""
    low, high = 0.0, 40.0
    if u >= 1.0:
        return 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if 2.0 * upper(middle) > u:
            low = middle
        else:
            high = middle
        if high - low <= 1e-16 * high:
            break
    return high


@leaf
def shared_part(a, u):
    """Probability p that a signal is large when the others are at 0+ and the TPP is u."""
    null = 2.0 * upper(a)
    return min(max((u - null) / (1.0 - null), 0.0), 1.0) if null < 1.0 else 0.0


@leaf
def shared_root(a, u, delta, epsilon, clustered):
    """E(a) - delta for signals at 0+ or far out; far ones lose 1 + a^2, or kappa(a) in one cluster."""
    p = epsilon * shared_part(a, u)
    big = 1.0 + a * a
    if clustered:
        big = big * upper(-a) + a * phi(a)
    return (1.0 - p) * soft_risk(a) + p * big - delta


@leaf
def _reach(delta, epsilon, u):
    return max(12.0, math.sqrt(delta / (epsilon * u)) + 2.0)


@leaf
def _bisect_shared(low, high, u, delta, epsilon, clustered):
    for _ in range(200):
        middle = 0.5 * (low + high)
        if shared_root(middle, u, delta, epsilon, clustered) > 0.0:
            high = middle
        else:
            low = middle
        if high - low <= 4e-16 * high:
            break
    return 0.5 * (low + high)


@leaf
def lasso_threshold(u, delta, epsilon, limit, t_dt):
    """Largest zero threshold of a Lasso with TPP u; NaN beyond the power limit."""
    if u > limit:
        return np.nan
    if u == 0.0:
        return np.inf
    if limit < 1.0 and u == limit:
        return t_dt
    # E - delta is <= 0 at max(a0, t_DT) for every u up to the limit, and increases from there
    low = max(start(u), t_dt)
    return _bisect_shared(low, _reach(delta, epsilon, u) + low, u, delta, epsilon, False)


@leaf
def branch_one(u, delta, epsilon):
    """Largest threshold with signals at 0+ or in one far cluster; NaN where there is none."""
    low = start(u)
    high = max(low + 4.0, math.sqrt(delta / (epsilon * u)) + 2.0)
    while shared_root(high, u, delta, epsilon, True) <= 0.0:
        high *= 2.0
    steps = 160
    below = np.nan
    best, place = np.inf, -1
    for i in range(steps, -1, -1):
        x = i / steps
        a = low + (high - low) * x * x
        value = shared_root(a, u, delta, epsilon, True)
        if value <= 0.0:
            below = a
            break
        if value < best:
            best, place = value, i
        high_side = a
    if not below >= 0.0 and 0 < place < steps:
        # a dip narrower than the scan: its bottom by golden section
        left = low + (high - low) * ((place - 1) / steps) ** 2
        right = low + (high - low) * ((place + 1) / steps) ** 2
        for _ in range(80):
            x1 = right - 0.6180339887498949 * (right - left)
            x2 = left + 0.6180339887498949 * (right - left)
            if shared_root(x1, u, delta, epsilon, True) < shared_root(x2, u, delta, epsilon, True):
                right = x2
            else:
                left = x1
        bottom = 0.5 * (left + right)
        if shared_root(bottom, u, delta, epsilon, True) <= 0.0:
            below = bottom
            high_side = low + (high - low) * ((place + 1) / steps) ** 2
    if not below >= 0.0:
        return np.nan
    if below >= high:
        return high
    return _bisect_shared(below, high_side, u, delta, epsilon, True)


@leaf
def signal_size(a, u):
    """Size t with Phi(t - a) + Phi(-t - a) = u (one common size for all signals)."""
    low, high = 0.0, a + SPAN
    t = min(max(a - start(u) if u < 0.5 else a, 0.1), high)
    for _ in range(200):
        # the complement keeps its digits where u is close to 1
        if u > 0.5:
            value = (1.0 - u) - (upper(t - a) - upper(t + a))
        else:
            value = upper(a - t) + upper(t + a) - u
        if value < 0.0:
            low = t
        else:
            high = t
        slope = phi(t - a) - phi(t + a)
        new = t - value / slope if slope > 1e-300 else -1.0
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 1e-15 * (1.0 + t) or high - low <= 1e-15 * (1.0 + high):
            return new
        t = new
    return t


@leaf
def density(z, t, epsilon):
    return 2.0 * (1.0 - epsilon) * phi(z) + epsilon * (phi(z - t) + phi(z + t))


@leaf
def survival(z, t, epsilon):
    return 2.0 * (1.0 - epsilon) * upper(z) + epsilon * (upper(z - t) + upper(z + t))


@leaf
def _score(z, t, epsilon):
    """Score s = -K'/K = z - E[pi sgn Y | |Y| = z] and its derivative, K the density of |Y|."""
    # odds against the signal at +t; exponentials of differences, since all three densities may underflow
    log_null = -t * z + 0.5 * t * t
    minus = math.exp(-2.0 * t * z)
    null = 2.0 * (1.0 - epsilon) / epsilon * math.exp(log_null) if log_null < 700.0 else np.inf
    if null > 1e300:
        return z, 1.0
    total = null + 1.0 + minus
    mean = t * (1.0 - minus) / total
    return z - mean, 1.0 - (t * t * (1.0 + minus) / total - mean * mean)


@leaf
def _score_root(level, left, right, t, epsilon):
    """Root of s(z) = level where s increases on [left, right]."""
    z = 0.5 * (left + right)
    for _ in range(100):
        s, slope = _score(z, t, epsilon)
        if s < level:
            left = z
        else:
            right = z
        new = z - (s - level) / slope if slope > 1e-12 else left - 1.0
        if not left < new < right:
            new = 0.5 * (left + right)
        if abs(new - z) <= 1e-14 * (1.0 + z) or right - left <= 1e-15 * (1.0 + right):
            return new
        z = new
    return z


@leaf
def single_profile(a, t, epsilon):
    """Best penalty A >= a, non-decreasing, for signals of one size t: A = max(a, isotonic fit of s).

    Returns (z_a, l, r, level): A = a up to z_a, s up to l, level up to r, s beyond; l = r without a flat
    piece. s' = 1 - Var(pi | z), and the variance, as a function of y = cosh(t z), rises and then falls: s
    decreases on one interval at most, whose ends solve y^2 + g (2 - t^2) y + g^2 - t^2 = 0.
    """
    far = a + t
    log_g = math.log((1.0 - epsilon) / epsilon) + 0.5 * t * t if epsilon < 1.0 else -np.inf
    g = math.exp(min(log_g, 300.0))
    disc = t * t - 4.0 + 4.0 / (g * g) if g > 0.0 else np.inf
    z1, z2 = 0.0, 0.0
    if log_g > 200.0 and disc > 0.0:
        # y2 = g bracket / 2 and y1 = 2 g / bracket overflow: acosh(y) = log(2 y)
        bracket = math.log(t * t - 2.0 + t * math.sqrt(disc))
        z1, z2 = (log_g + math.log(4.0) - bracket) / t, (log_g + bracket) / t
    elif disc > 0.0:
        y2 = 0.5 * (g * (t * t - 2.0) + t * math.sqrt(g * g * (t * t - 4.0) + 4.0))
        y1 = (g * g - t * t) / y2
        z2 = math.acosh(y2) / t if y2 > 1.0 else 0.0
        z1 = math.acosh(y1) / t if y1 > 1.0 else 0.0
    if z2 <= a:
        end = _score_root(a, a, far, t, epsilon)
        return end, end, end, a
    top = _score(z1, t, epsilon)[0] if z1 > a else a
    bottom = _score(z2, t, epsilon)[0]
    right_end = z2 + t + 1.0 + max(a, top)
    if top <= a:
        end = _score_root(a, z2, right_end, t, epsilon)
        return end, end, end, a
    low, high = max(a, bottom), top
    level = low
    for i in range(100):
        left = _score_root(level, a, z1, t, epsilon)
        right = _score_root(level, z2, right_end, t, epsilon)
        mass = survival(left, t, epsilon) - survival(right, t, epsilon)
        balance = density(left, t, epsilon) - density(right, t, epsilon) - level * mass
        if i == 0 and balance <= 0.0:
            return right, right, right, a
        if balance > 0.0:
            low = level
        else:
            high = level
        new = level + balance / mass
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - level) <= 1e-14 * (1.0 + level) or high - low <= 1e-15 * (1.0 + high):
            break
        level = new
    return _score_root(a, a, left, t, epsilon), left, right, level


@leaf
def _score_energy(left, right, t, epsilon):
    """Integral of K s^2 over [left, right].

    s turns within a few 1/t of 0 and of the point where signal and null are equally likely, elsewhere on the
    scale 1: panels are short only there.
    """
    short = 4.0 / (t + 1e-9)
    if short >= 0.5:
        return _energy(left, right, min(short, 1.0), t, epsilon)
    turn = 0.5 * t + (math.log(2.0 * (1.0 - epsilon) / epsilon) / t if epsilon < 1.0 else -t)
    total = 0.0
    at = left
    for end, wide in (
        (10.0 * short, short),
        (turn - 10.0 * short, 1.0),
        (turn + 10.0 * short, short),
        (right, 1.0),
    ):
        end = min(end, right)
        total += _energy(at, end, wide, t, epsilon)
        at = max(at, end)
    return total


@leaf
def _energy(left, right, width, t, epsilon):
    if not right > left:
        return 0.0
    panels = max(1, math.ceil((right - left) / width))
    half = 0.5 * (right - left) / panels
    total = 0.0
    for i in range(panels):
        centre = left + (2 * i + 1) * half
        for k in range(_NODES.size):
            z = centre + half * _NODES[k]
            s, _ = _score(z, t, epsilon)
            total += _WEIGHTS[k] * density(z, t, epsilon) * s * s
    return total * half


@leaf
def common_error(a, t, u, epsilon):
    """E[pi^2; |Y| <= a] + E[Z^2; |Y| > a]."""
    null = 2.0 * (upper(a) + a * phi(a))
    signal = upper(a - t) + (a - t) * phi(a - t) + upper(a + t) + (a + t) * phi(a + t)
    return epsilon * t * t * (1.0 - u) + (1.0 - epsilon) * null + epsilon * signal


@leaf
def single_error(a, u, epsilon):
    """Smallest E over all penalties with zero threshold a, all signals of the one size that gives TPP u."""
    t = signal_size(a, u)
    z_a, left, right, level = single_profile(a, t, epsilon)
    s_a = survival(a, t, epsilon)
    k_a = density(a, t, epsilon)
    end = max(t, right) + SPAN
    error = common_error(a, t, u, epsilon)
    error += a * a * (s_a - survival(z_a, t, epsilon)) + 2.0 * a * (density(z_a, t, epsilon) - k_a)
    if left < right:
        error -= _score_energy(z_a, left, t, epsilon)
        error += level * level * (survival(left, t, epsilon) - survival(right, t, epsilon))
        error += 2.0 * level * (density(right, t, epsilon) - density(left, t, epsilon))
    return error - _score_energy(right, end, t, epsilon)


@leaf
def lower_threshold(u, delta, epsilon, first):
    """Largest threshold over all SLOPE designs; ``first`` is branch_one at the same place (or NaN)."""
    if u == 0.0:
        return np.inf
    if u >= 1.0:
        return first if first >= 0.0 else 0.0
    a0 = start(u)
    low = max(a0, first) if first >= 0.0 else a0
    span = a0 + math.sqrt(2.0 * delta / epsilon) + 4.0 - low
    if span <= 0.0:
        return low
    steps = 40
    above = low + span
    for i in range(steps - 1, -1, -1):
        x = i / steps
        a = low + span * x * x
        value = single_error(a, u, epsilon) - delta if i > 0 or first >= 0.0 else -delta
        if value <= 0.0:
            return _root_single(a, above, u, delta, epsilon)
        above = a
    return low


@leaf
def _root_single(low, high, u, delta, epsilon):
    """Root of single_error = delta by false position with the Illinois weights."""
    f_low = single_error(low, u, epsilon) - delta if low > start(u) else -delta
    f_high = single_error(high, u, epsilon) - delta
    side = 0
    for _ in range(100):
        a = (low * f_high - high * f_low) / (f_high - f_low)
        if not low < a < high:
            a = 0.5 * (low + high)
        value = single_error(a, u, epsilon) - delta
        if value > 0.0:
            high, f_high = a, value
            f_low = 0.5 * f_low if side == 1 else f_low
            side = 1
        else:
            low, f_low = a, value
            f_high = 0.5 * f_high if side == -1 else f_high
            side = -1
        if abs(value) <= 1e-14 * delta or high - low <= 1e-14 * high:
            return a
    return 0.5 * (low + high)
