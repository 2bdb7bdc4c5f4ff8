"""Compiled risks of two-level shapes and of the best function for a prior."""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import numpy as np

from convexlaw.theory._jit import kernel, leaf
from convexlaw.theory._limit_kernels import excess_noise, flat_risk, soft_risk, tail

__all__ = ["best_function", "far_risk", "scan_shapes", "shape_at", "shape_risk", "soft_threshold_risk"]


# inlined from other files: 53f0cbdfa5ae


@leaf
def soft_threshold_risk(w, m, v, tau, a):
    """Risk of soft thresholding at a."""
    return flat_risk(w, m, v, tau, 0.0, a, 0.0)[1] + soft_risk(w, m, v, tau, a, np.inf, a)[1]


@leaf
def shape_risk(w, m, v, tau, zero, top, flat):
    """Risk of: 0 up to ``zero``, soft, ``flat`` up to ``top + flat``, soft at ``top``."""
    risk = flat_risk(w, m, v, tau, 0.0, zero, 0.0)[1]
    risk += soft_risk(w, m, v, tau, zero, zero + flat, zero)[1]
    risk += flat_risk(w, m, v, tau, zero + flat, top + flat, flat)[1]
    return risk + soft_risk(w, m, v, tau, top + flat, np.inf, top)[1]


@leaf
def shape_at(w, m, v, tau, zero, r):
    """Best shape whose upper soft piece starts at r: top = E[(Y-B) sgn Y | |Y| > r], flat = r - top.

    Returns (risk, top, flat); where the best top lies below ``zero`` this is soft thresholding at ``zero``.
    """
    mass = tail(w, m, v, tau, r)
    top = excess_noise(w, m, v, tau, r) / mass if mass > 0.0 else zero
    flat = r - top
    if top <= zero:
        return soft_threshold_risk(w, m, v, tau, zero), zero, max(r - zero, 0.0)
    if flat < 0.0:
        return np.inf, top, flat
    return shape_risk(w, m, v, tau, zero, top, flat), top, flat


@leaf
def far_risk(w, m, v, tau, zero, flat):
    """Risk of the shape without upper soft piece: 0 up to ``zero``, soft, ``flat`` from there on."""
    risk = flat_risk(w, m, v, tau, 0.0, zero, 0.0)[1]
    risk += soft_risk(w, m, v, tau, zero, zero + flat, zero)[1]
    return risk + flat_risk(w, m, v, tau, zero + flat, np.inf, flat)[1]


@leaf
def scan_shapes(w, m, v, tau, zeros, reach, points, far):
    """Smallest risk over the given zero thresholds and ``points`` second coordinates: (risk, zero, x).

    x is r - zero (see `shape_at`), or with ``far`` the flat value without an upper piece.
    """
    best, at_zero, at_x = np.inf, 0.0, 0.0
    for zero in zeros:
        for j in range(1, points + 1):
            y = j / points
            x = (reach - zero) * y * (0.5 + 0.5 * y)
            if far:
                value = far_risk(w, m, v, tau, zero, x)
            else:
                value = shape_at(w, m, v, tau, zero, zero + x)[0]
            if value < best:
                best, at_zero, at_x = value, zero, x
    return best, at_zero, at_x


@kernel
def best_function(moments, edges, floor):
    """Best non-decreasing penalty A >= floor on the cells beyond ``floor``, h = |Y| - A there and 0 below.

    A is the isotonic fit of E[(Y - B) sgn Y | |Y|] with the mass as weight, at least ``floor``. Returns the
    levels (one a cell, ``floor`` on the cells below it), and E[(h - B)^2] with A linear inside single cells.
    """
    n = moments.shape[1]
    level = np.full(n, floor)
    member = np.empty(n, np.int64)
    start = np.empty(n, np.int64)
    weight = np.empty(n)
    area = np.empty(n)
    blocks, count = 0, 0
    risk = 0.0
    for i in range(n):
        if edges[i] < floor * (1.0 - 1e-12) or moments[0, i] <= 1e-290:
            risk += moments[4, i]
            continue
        member[count] = i
        start[blocks] = count
        weight[blocks] = moments[0, i]
        area[blocks] = moments[2, i]
        count += 1
        while blocks > 0 and area[blocks - 1] * weight[blocks] >= area[blocks] * weight[blocks - 1]:
            area[blocks - 1] += area[blocks]
            weight[blocks - 1] += weight[blocks]
            blocks -= 1
        blocks += 1
    for b in range(blocks):
        stop = start[b + 1] if b + 1 < blocks else count
        value = max(area[b] / weight[b], floor)
        alone = stop - start[b] == 1 and value > floor
        for k in range(start[b], stop):
            i = member[k]
            level[i] = value
            risk += moments[3, i] - 2.0 * value * moments[2, i] + value * value * moments[0, i]
            lo = member[k - 1] if k > 0 else i
            hi = member[k + 1] if k + 1 < count else i
            run = moments[1, hi] / moments[0, hi] - moments[1, lo] / moments[0, lo]
            if alone and run > 0.0:
                slope = (moments[2, hi] / moments[0, hi] - moments[2, lo] / moments[0, lo]) / run
                wide = edges[i + 1] - edges[i]
                risk -= slope * slope * wide * wide / 12.0 * moments[0, i]
    last = floor
    for i in range(n):
        last = max(last, level[i])
        level[i] = last
    return level, risk
