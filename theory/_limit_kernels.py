"""Compiled moments of |B + tau Z| for mixtures, the closed two-level function, and pooling on cells.

A prior is three arrays (w, m, v). Given component k, Y ~ N(m, s^2) with s^2 = v + tau^2, and
E[B | Y, k] = m + kappa (Y - m), kappa = v / s^2. The lower tail of Y is the upper tail of N(-m, s^2): every
sum runs over the centres +m and -m. Moments are taken of Y - m, never of Y, so that no digits are lost where
tau is much smaller than m.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import math

import numpy as np

from convexlaw.theory._jit import kernel, leaf

__all__ = [
    "cells",
    "density",
    "excess",
    "excess_noise",
    "flat_risk",
    "mesh_edges",
    "pool_cells",
    "soft_risk",
    "tail",
    "two_level",
    "upper_quantile",
]

_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


@leaf
def _piece(centre, s, left, right):
    """P, E[U], E[U^2] of U = Y - centre on left < Y < right, Y ~ N(centre, s^2); right may be inf."""
    a = (left - centre) / s
    b = (right - centre) / s
    if a > 40.0 or b < -40.0:
        return 0.0, 0.0, 0.0
    if a >= 0.0:
        p = 0.5 * (math.erfc(a * _ROOT_HALF) - math.erfc(b * _ROOT_HALF))
    elif b <= 0.0:
        p = 0.5 * (math.erfc(-b * _ROOT_HALF) - math.erfc(-a * _ROOT_HALF))
    else:
        p = 0.5 * (math.erf(b * _ROOT_HALF) - math.erf(a * _ROOT_HALF))
    fa = _DENSITY * math.exp(-0.5 * a * a)
    if b > 40.0:
        return p, s * fa, s * s * (p + a * fa)
    fb = _DENSITY * math.exp(-0.5 * b * b)
    return p, s * (fa - fb), s * s * (p + a * fa - b * fb)


@leaf
def tail(w, m, v, tau, z):
    """P(|Y| > z)."""
    total = 0.0
    for k in range(w.size):
        s = math.sqrt(v[k] + tau * tau) / _ROOT_HALF
        if m[k] == 0.0:
            total += w[k] * math.erfc(z / s)
        else:
            total += 0.5 * w[k] * (math.erfc((z - m[k]) / s) + math.erfc((z + m[k]) / s))
    return total


@leaf
def density(w, m, v, tau, z):
    """Density of |Y| at z >= 0."""
    total = 0.0
    for k in range(w.size):
        s = math.sqrt(v[k] + tau * tau)
        a = (z - m[k]) / s
        b = (z + m[k]) / s
        total += w[k] * _DENSITY / s * (math.exp(-0.5 * a * a) + math.exp(-0.5 * b * b))
    return total


@leaf
def excess(w, m, v, tau, left, right, k0):
    """E[|Y| - k0; left < |Y| < right]."""
    total = 0.0
    for k in range(w.size):
        s = math.sqrt(v[k] + tau * tau)
        for sign in (1.0, -1.0):
            c = sign * m[k]
            p, u, _ = _piece(c, s, left, right)
            total += w[k] * ((c - k0) * p + u)
    return total


@leaf
def excess_noise(w, m, v, tau, z):
    """E[(Y - B) sgn Y; |Y| > z]."""
    total = 0.0
    for k in range(w.size):
        s2 = v[k] + tau * tau
        s = math.sqrt(s2)
        for centre in (m[k], -m[k]):
            a = (z - centre) / s
            total += w[k] * tau * tau / s * _DENSITY * math.exp(-0.5 * a * a)
    return total


@leaf
def soft_risk(w, m, v, tau, left, right, x):
    """Return P and E[(|Y| - x - B sgn Y)^2] on left < |Y| < right."""
    risk = 0.0
    mass = 0.0
    for k in range(w.size):
        s2 = v[k] + tau * tau
        s = math.sqrt(s2)
        rest = tau * tau / s2
        noise = v[k] * rest
        for sign in (1.0, -1.0):
            p, u, uu = _piece(sign * m[k], s, left, right)
            mass += w[k] * p
            risk += w[k] * (rest * rest * uu - 2.0 * x * rest * u + (x * x + noise) * p)
    return mass, risk


@leaf
def flat_risk(w, m, v, tau, left, right, c):
    """Return P and E[(c - B sgn Y)^2] on left < |Y| < right."""
    risk = 0.0
    mass = 0.0
    for k in range(w.size):
        s2 = v[k] + tau * tau
        s = math.sqrt(s2)
        kappa = v[k] / s2
        noise = kappa * tau * tau
        for sign in (1.0, -1.0):
            off = c - sign * m[k]
            p, u, uu = _piece(sign * m[k], s, left, right)
            mass += w[k] * p
            risk += w[k] * ((off * off + noise) * p - 2.0 * off * kappa * u + kappa * kappa * uu)
    return mass, risk


@leaf
def _largest(m, v, tau, sds):
    top = 0.0
    for k in range(m.size):
        top = max(top, abs(m[k]) + sds * math.sqrt(v[k] + tau * tau))
    return top


@leaf
def upper_quantile(w, m, v, tau, share):
    """Point q with P(|Y| > q) = share, by Newton steps on log P inside a bracket."""
    if share >= 1.0:
        return 0.0
    low = 0.0
    high = _largest(m, v, tau, 38.0)
    if share <= tail(w, m, v, tau, high):
        return np.inf
    q = min(high, _largest(m, v, tau, 0.0) + tau)
    for _ in range(200):
        t = tail(w, m, v, tau, q)
        if t > share:
            low = q
        else:
            high = q
        slope = density(w, m, v, tau, q)
        if t > 0.0 and slope > 0.0:
            new = q + math.log(t / share) * t / slope
        else:
            new = -1.0
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - q) <= 1e-15 * high or high - low <= 1e-15 * high:
            return new
        q = new
    return q


@leaf
def two_level(w, m, v, tau, high, low, share):
    """Limiting function of the two-level penalty with absolute levels ``high`` >= ``low``.

    Returns (zero threshold, flat value, soft level at the top, quantile, risk, df). The flat value is 0 where
    the lower level has no effect; then the function is soft thresholding at the zero threshold.
    """
    q = upper_quantile(w, m, v, tau, share)
    top = high
    zero = low
    c = 0.0
    if q == np.inf:
        top = low
    elif q <= low or high == low:
        zero = high
    else:
        at_zero = 1.0
        if q <= high:
            at_zero = excess(w, m, v, tau, low, q, low) + excess(w, m, v, tau, q, high, high)
        if at_zero <= 0.0:
            zero = high
        else:
            c = _matching(w, m, v, tau, high, low, q)
    if c == 0.0:
        zero = top
    mass_a, risk_a = soft_risk(w, m, v, tau, top + c, np.inf, top)
    _, risk_0 = flat_risk(w, m, v, tau, 0.0, zero, 0.0)
    risk = risk_0 + risk_a
    df = mass_a
    if c > 0.0:
        mass_b, risk_b = soft_risk(w, m, v, tau, low, low + c, low)
        _, risk_c = flat_risk(w, m, v, tau, low + c, top + c, c)
        risk += risk_b + risk_c
        df += mass_b
    return zero, c, top, q, risk, df


@leaf
def _matching(w, m, v, tau, high, low, q):
    """Flat value: the root of g(c) = E[|Y|-low-c; low+c<|Y|<q] + E[|Y|-high-c; q<|Y|<high+c].

    The integrands vanish at the moving ends, so g'(c) = -P(low + c < |Y| < high + c).
    """
    left = max(0.0, q - high)
    right = q - low
    c = 0.5 * (left + right)
    for _ in range(200):
        g = excess(w, m, v, tau, low + c, q, low + c) + excess(w, m, v, tau, q, high + c, high + c)
        if g > 0.0:
            left = c
        else:
            right = c
        mass = tail(w, m, v, tau, low + c) - tail(w, m, v, tau, high + c)
        new = c + g / mass if mass > 0.0 else -1.0
        if not left < new < right:
            new = 0.5 * (left + right)
        if abs(new - c) <= 1e-15 * q or right - left <= 1e-15 * q:
            return new
        c = new
    return c


@kernel
def mesh_edges(m, v, tau, resolution, span, extra):
    """Cell edges on [0, inf): fine where a component has mass, one cell over a gap, an edge at each extra."""
    k = m.size
    s = np.sqrt(v + tau * tau)
    low = np.maximum(np.abs(m) - span * s, 0.0)
    high = np.abs(m) + span * s
    top = high.max()
    marks = np.empty(2 * k + 1 + extra.size)
    marks[:k], marks[k : 2 * k], marks[2 * k], marks[2 * k + 1 :] = low, high, 0.0, extra
    marks.sort()
    # marks closer than rounding would make cells without width
    close = 1e-9 * s.min()
    knots = np.empty(marks.size)
    count = 0
    for x in marks:
        if x <= top and (count == 0 or x - knots[count - 1] > close):
            knots[count] = x
            count += 1
    pieces = np.empty(count - 1, np.int64)
    for i in range(count - 1):
        step = np.inf
        for j in range(k):
            if low[j] <= knots[i] + close and high[j] >= knots[i + 1] - close:
                step = min(step, s[j] / resolution)
        pieces[i] = max(1, math.ceil((knots[i + 1] - knots[i]) / step)) if step < np.inf else 1
    edges = np.empty(pieces.sum() + 1)
    place = 0
    for i in range(count - 1):
        width = (knots[i + 1] - knots[i]) / pieces[i]
        for j in range(pieces[i]):
            edges[place] = knots[i] + j * width
            place += 1
    edges[place] = knots[count - 1]
    return edges


@kernel
def cells(w, m, v, tau, edges):
    """Per cell of |Y|: P, E|Y|, E[(Y-B) sgn Y], E[(Y-B)^2], E[B^2]; shape (5, cells)."""
    n = edges.size - 1
    out = np.zeros((5, n))
    for k in range(w.size):
        s2 = v[k] + tau * tau
        s = math.sqrt(s2)
        kappa = v[k] / s2
        rest = tau * tau / s2
        noise = v[k] * rest
        for sign in (1.0, -1.0):
            if m[k] == 0.0 and sign < 0.0:
                continue
            weight = 2.0 * w[k] if m[k] == 0.0 else w[k]
            c = sign * m[k]
            a = (edges[0] - c) / s
            near_a = math.erfc(abs(a) * _ROOT_HALF)
            fa = _DENSITY * math.exp(-0.5 * a * a)
            for i in range(n):
                b = (edges[i + 1] - c) / s
                near_b = math.erfc(abs(b) * _ROOT_HALF)
                fb = _DENSITY * math.exp(-0.5 * b * b)
                if a >= 0.0:
                    p = 0.5 * (near_a - near_b)
                elif b <= 0.0:
                    p = 0.5 * (near_b - near_a)
                else:
                    p = 1.0 - 0.5 * (near_a + near_b)
                if p > 0.0:
                    u = s * (fa - fb)
                    uu = s2 * (p + a * fa - b * fb)
                    out[0, i] += weight * p
                    out[1, i] += weight * (c * p + u)
                    out[2, i] += weight * rest * u
                    out[3, i] += weight * (rest * rest * uu + noise * p)
                    out[4, i] += weight * ((c * c + noise) * p + 2.0 * c * kappa * u + kappa * kappa * uu)
                a, near_a, fa = b, near_b, fb
    return out


@kernel
def pool_cells(moments, edges, penalty):
    """Monotone function on cells: the isotonic fit of |Y| - penalty with the mass as weight, cut at 0.

    ``penalty`` holds the integral of the penalty over each cell. Returns (mean of |Y|, value, slope, block
    start, cell) per cell of positive mass, the zero threshold (linear between cells), E[(h - B)^2] and
    E[h (Y - B)]. Inside a cell that is no part of a block the function is taken linear.
    """
    total = moments.shape[1]
    cell = np.empty(total, np.int64)
    n = 0
    for i in range(total):
        if moments[0, i] > 1e-290:
            cell[n] = i
            n += 1
    cell = cell[:n]
    y = np.empty(n)
    raw = np.empty(n)
    off = np.empty(n)
    for j in range(n):
        i = cell[j]
        y[j] = moments[1, i] / moments[0, i]
        raw[j] = (moments[1, i] - penalty[i]) / moments[0, i]
        off[j] = moments[2, i] / moments[0, i]
    value, first, single = _isotonic(moments[0], raw, cell)
    slope = np.zeros(n)
    zero, steep = 0.0, 0.0
    for j in range(n):
        if single[j]:
            lo = j - 1 if j > 0 and single[j - 1] else j
            hi = j + 1 if j + 1 < n and single[j + 1] else j
            if y[hi] > y[lo]:
                slope[j] = min(max((raw[hi] - raw[lo]) / (y[hi] - y[lo]), 0.0), 1.0)
        if j > 0 and value[j] > 0.0 and value[j - 1] == 0.0:
            zero = edges[cell[j]]
            if single[j] and single[j - 1] and y[j] > y[j - 1]:
                steep = (raw[j] - raw[j - 1]) / (y[j] - y[j - 1])
                zero = y[j] - raw[j] / steep
    risk = 0.0
    product = 0.0
    for j in range(n):
        i = cell[j]
        p = moments[0, i]
        lo = j - 1 if j > 0 else j
        hi = j + 1 if j + 1 < n else j
        bend = (off[hi] - off[lo]) / (y[hi] - y[lo]) if y[hi] > y[lo] else 0.0
        wide = edges[i + 1] - edges[i]
        if steep > 0.0 and edges[i] < zero < edges[i + 1]:
            # h = steep (|Y| - zero)_+ within this cell; its density is taken linear, from the mean of |Y|
            t = edges[i + 1] - zero
            middle = 0.5 * (edges[i] + edges[i + 1])
            tilt = 12.0 * (y[j] - middle) / (wide * wide)
            level = (1.0 + tilt * (zero - middle)) / wide
            mean = p * steep * (level * t * t / 2.0 + tilt / wide * t * t * t / 3.0)
            cross = p * steep / wide * (t * t * t / 3.0 + (zero - y[j]) * t * t / 2.0)
            square = p * steep * steep * (level * t * t * t / 3.0 + tilt / wide * t * t * t * t / 4.0)
            product += off[j] * mean + bend * cross
            risk += moments[4, i] + square - 2.0 * ((y[j] - off[j]) * mean + (1.0 - bend) * cross)
        elif value[j] > 0.0:
            gap = y[j] - value[j]
            rest = 1.0 - slope[j]
            spread = wide * wide / 12.0 * p
            risk += moments[3, i] - 2.0 * gap * moments[2, i] + gap * gap * p
            risk += (rest * rest - 2.0 * rest * bend) * spread
            product += value[j] * moments[2, i] + slope[j] * bend * spread
        else:
            risk += moments[4, i]
    return y, value, slope, first, cell, zero, risk, product


@kernel
def _isotonic(mass, raw, cell):
    """Pool adjacent violators, then cut at 0: value, first member of the block, alone in its block."""
    n = cell.size
    start = np.empty(n, np.int64)
    weight = np.empty(n)
    area = np.empty(n)
    blocks = 0
    for j in range(n):
        start[blocks] = j
        weight[blocks] = mass[cell[j]]
        area[blocks] = weight[blocks] * raw[j]
        while blocks > 0 and area[blocks - 1] * weight[blocks] >= area[blocks] * weight[blocks - 1]:
            area[blocks - 1] += area[blocks]
            weight[blocks - 1] += weight[blocks]
            blocks -= 1
        blocks += 1
    value = np.zeros(n)
    first = np.empty(n, np.int64)
    single = np.zeros(n, np.bool_)
    for b in range(blocks):
        stop = start[b + 1] if b + 1 < blocks else n
        level = max(area[b] / weight[b], 0.0)
        for j in range(start[b], stop):
            value[j] = level
            first[j] = start[b]
            single[j] = stop - start[b] == 1
    return value, first, single
