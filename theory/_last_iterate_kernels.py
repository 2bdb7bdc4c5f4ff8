"""Numba kernels of the last-iterate bounds: sums of exponentials, direct sums, the tight recursion.

All take the positive steps alone, scaled so that sums stay near 1 (``_noise_sum.py``, ``last_iterate.py``).
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import numpy as np

from convexlaw.theory._jit import kernel, leaf

LANES = 8  # nodes in a group: 6 Gauss nodes and the first 2 nodes of the chain, then 8 chain nodes a group
CUT = 36.0  # lambda x e^{-lambda x} < 1e-14 beyond it
DONE = 1e-4  # relative Newton step after which a second-order expansion is exact to about 1e-12
MAX_NEWTON = 200
LEAST = 1e-150  # no smaller v: its square must not vanish
C2, C3, C4, C5, C6, C7, C8 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320


@kernel
def running_sum(x):
    """Compensated cumulative sum (Neumaier)."""
    out = np.empty(x.size)
    total = 0.0
    lost = 0.0
    for i in range(x.size):
        new = total + x[i]
        if total >= x[i]:
            lost += (total - new) + x[i]
        else:
            lost += (x[i] - new) + total
        total = new
        out[i] = total + lost
    return out


@leaf
def _decays(step, lam, count, out):
    """Fill out = expm1(-lam*step): 8 exponentials, then squarings, since lam[j+2] = 2 lam[j] in the chain.

    In the form expm1 a squaring E(2+E) keeps the relative accuracy of the rate, which exp near 1 would lose.
    """
    if lam[LANES - 1] * step < 0.05:
        for i in range(LANES):
            y = -lam[i] * step
            out[i] = y * (1 + y * (C2 + y * (C3 + y * (C4 + y * (C5 + y * (C6 + y * (C7 + y * C8)))))))
    else:
        for i in range(LANES):
            out[i] = np.expm1(-lam[i] * step)
    a = out[LANES - 2]
    b = out[LANES - 1]
    for j in range(LANES, count, 2):
        a = a * (2 + a)
        b = b * (2 + b)
        out[j] = a
        out[j + 1] = b


@leaf
def _total(x, count):
    """Sum of the first ``count`` (a multiple of 8) values in eight independent lanes."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    for j in range(0, count, LANES):
        a0 += x[j]
        a1 += x[j + 1]
        a2 += x[j + 2]
        a3 += x[j + 3]
        a4 += x[j + 4]
        a5 += x[j + 5]
        a6 += x[j + 6]
        a7 += x[j + 7]
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@leaf
def _newton(v, low, high, psi, slope, w):
    """One Newton step for psi(v) = w on psi^(-1/2), which is concave: from the left it never overshoots."""
    new = v + 2 * (psi - psi * np.sqrt(psi / w)) / slope
    if not new > low:
        new = low
    if new > high:
        new = high
    return new


@leaf
def _at(v, past, work, lam, count, s_total, bias, last):
    """Value, -first and -second derivative in v (without the w v term) from the weighted states ``past``."""
    used = LANES
    while used < count and lam[used] * v <= CUT:
        used += LANES
    _decays(v, lam, used, work)
    for j in range(used):
        work[j] = past[j] + past[j] * work[j]
    f0 = _total(work, used)
    for j in range(used):
        work[j] *= lam[j]
    f1 = _total(work, used)
    for j in range(used):
        work[j] *= lam[j]
    f2 = _total(work, used)
    r = 1 / (s_total + v) if bias > 0 else 0.0
    q = 1 / v if last > 0 else 0.0
    return (
        f0 + bias * r + last * q,
        f1 + bias * r * r + last * q * q,
        -(f2 + 2 * (bias * r * r * r + last * q * q * q)),
    )


@kernel
def fast_sums(eta, weights, lam, omega, reads, next_weights, bias, free):
    """Noise sums at ``reads`` by sums of exponentials, O(T J) time and O(J) memory beside the arrays.

    ``reads``: sorted numbers of applied steps (free) or positions of the step that is v (tail).
    past = omega e^{-lam eta_s} H is what step s leaves of the weights before it.
    """
    nodes = lam.size
    state = np.zeros(nodes)
    past = np.zeros(nodes)
    decay = np.zeros(nodes)
    work = np.zeros(nodes)
    out = np.empty(reads.size)
    count = LANES
    last_weight = 0.0
    last_eta = -1.0
    total = 0.0
    s_total = 0.0
    v = 0.0
    r = 0
    while r < reads.size and free and reads[r] == 0:
        out[r] = 2 * np.sqrt(bias * next_weights[r])
        r += 1
    for s in range(eta.size):
        if r == reads.size:
            break
        e = eta[s]
        w_s = weights[s]
        if e != last_eta:
            # a node with lam*eta > CUT forgets all but the last weight: it is kept only while it matters
            while count < nodes and lam[count] * e <= CUT:
                state[count : count + LANES] = last_weight
                count += LANES
            while count > LANES and lam[count - LANES] * e > CUT:
                count -= LANES
            _decays(e, lam, count, decay)
            last_eta = e
        s_total += e
        total += w_s
        last_weight = w_s
        if reads[r] != (s + 1 if free else s):
            for j in range(count):
                state[j] = state[j] + (decay[j] * state[j] + w_s)
            continue
        for j in range(count):
            kept = state[j] + decay[j] * state[j]
            past[j] = omega[j] * kept
            state[j] = kept + w_s
        if free:
            while r < reads.size and reads[r] == s + 1:
                w = next_weights[r]
                out[r], v = _minimise_fast(v, past, work, lam, count, s_total, total, bias, w_s, w)
                r += 1
        else:
            value = _total(past, count)
            while r < reads.size and reads[r] == s:
                out[r] = value + e * next_weights[r]
                r += 1
    return out


@leaf
def _minimise_fast(v, past, work, lam, count, s_total, total, bias, last, w):
    if w == 0 or bias + total == 0:
        return 0.0, v
    low = max(np.sqrt(last / w), LEAST)
    high = np.sqrt((bias + total) / w)
    if last == 0:
        value, psi, slope = _at(0.0, past, work, lam, count, s_total, bias, last)
        if psi <= w:
            return value, v
    v = min(max(v, low), high)
    value = 0.0
    for _ in range(MAX_NEWTON):
        value, psi, slope = _at(v, past, work, lam, count, s_total, bias, last)
        new = _newton(v, low, high, psi, slope, w)
        move = new - v
        if abs(move) <= DONE * v:
            return value + w * v + move * (w - psi - 0.5 * move * slope), new
        v = new
    return value + w * v, v


@leaf
def _direct_at(v, eta, weights, count, bias):
    """Sum over the first ``count`` steps from the back, compensated: as :func:`_at`."""
    d = 0.0
    lost = 0.0
    f0 = 0.0
    f1 = 0.0
    f2 = 0.0
    for s in range(count - 1, -1, -1):
        x = d + lost + v
        if weights[s] > 0:
            q = 1 / x
            a = weights[s] * q
            f0 += a
            f1 += a * q
            f2 += 2 * a * q * q
        new = d + eta[s]
        if d >= eta[s]:
            lost += (d - new) + eta[s]
        else:
            lost += (eta[s] - new) + d
        d = new
    if bias > 0:
        q = 1 / (d + lost + v)
        f0 += bias * q
        f1 += bias * q * q
        f2 += 2 * bias * q * q * q
    return f0, f1, -f2


@kernel
def direct_sums(eta, weights, reads, next_weights, bias, free):
    """Noise sums at ``reads`` straight from the definition, O(T) each; see :func:`fast_sums`."""
    out = np.empty(reads.size)
    v = 0.0
    for r in range(reads.size):
        count = reads[r]
        w = next_weights[r]
        if not free:
            out[r] = _direct_at(eta[count], eta, weights, count, 0.0)[0] + eta[count] * w
            continue
        if count == 0:
            out[r] = 2 * np.sqrt(bias * w)
            continue
        total = weights[:count].sum()
        if w == 0 or bias + total == 0:
            out[r] = 0.0
            continue
        low = max(np.sqrt(weights[count - 1] / w), LEAST)
        high = np.sqrt((bias + total) / w)
        if weights[count - 1] == 0:
            value, psi, slope = _direct_at(0.0, eta, weights, count, bias)
            if psi <= w:
                out[r] = value
                continue
        v = min(max(v, low), high)
        for _ in range(MAX_NEWTON):
            value, psi, slope = _direct_at(v, eta, weights, count, bias)
            new = _newton(v, low, high, psi, slope, w)
            move = new - v
            out[r] = value + w * v
            if abs(move) <= DONE * v:
                out[r] += move * (w - psi - 0.5 * move * slope)
                v = new
                break
            v = new
    return out


@kernel
def _tight_at(x, eta, costs, count, bias, w, out):
    """Tight form at each x = rho_{T-1}^2: rho_{t-1} = rho_t + eta_t/rho_t, sum of costs_t/rho_t^2."""
    rho = np.sqrt(x)
    out[:] = w * x
    for s in range(count - 1, -1, -1):
        for i in range(LANES):
            q = 1 / rho[i]
            out[i] += costs[s] * q * q
            rho[i] += eta[s] * q
    for i in range(LANES):
        out[i] += bias / (rho[i] * rho[i])


@kernel
def tight_sums(eta, costs, counts, next_weights, bias):
    """Minimise the tight form over x > 0 for each horizon: scan in log x, then sections around the best.

    The function may have two wells (x and eta^2/x give the same rho_{T-2}), hence the scan.
    """
    res = np.empty(counts.size)
    x = np.empty(LANES)
    val = np.empty(LANES)
    for r in range(counts.size):
        count = counts[r]
        w = next_weights[r]
        if count == 0:
            res[r] = 2 * np.sqrt(bias * w)
            continue
        if w == 0 or costs[count - 1] == 0:
            res[r] = 0.0
            continue
        for i in range(LANES):
            x[i] = eta[count - 1] * 4.0 ** (i - 1)
        _tight_at(x, eta, costs, count, bias, w, val)
        best = val.min()
        low = np.log(costs[count - 1] / best)
        high = np.log(best / w)
        points = LANES * max(4, int((high - low) / (LANES * 0.35)) + 1)
        gap = (high - low) / (points - 1)
        best = np.inf
        where = low
        for block in range(0, points, LANES):
            for i in range(LANES):
                x[i] = np.exp(low + gap * (block + i))
            _tight_at(x, eta, costs, count, bias, w, val)
            k = np.argmin(val)
            if val[k] < best:
                best = val[k]
                where = low + gap * (block + k)
        while gap > 1e-8:
            gap *= 2.0 / (LANES + 1)
            centre = where
            for i in range(LANES):
                x[i] = np.exp(centre + gap * (i - 0.5 * (LANES - 1)))
            _tight_at(x, eta, costs, count, bias, w, val)
            k = np.argmin(val)
            if val[k] < best:
                best = val[k]
                where = centre + gap * (k - 0.5 * (LANES - 1))
        res[r] = best
    return res
