"""Compiled sums behind the loss laws: noise with a batch term, the rotational clock, Tissue, Multi-Power."""

from __future__ import annotations

import numpy as np

from convexlaw.theory._jit import fused, kernel

__all__ = ["clock", "free_noise", "multipower_sum", "noise_at", "tissue_sum"]


@kernel
def free_noise(lr, weight, last, at, tol):  # type: ignore[no-untyped-def]
    """Minimum over v > 0 of ``sum_{s<k} weight_s/(tail_s + v) + v last_k``, and its minimiser, at each k.

    The stationarity condition phi(v) = sum weight/(tail + v)^2 = last is solved as
    phi^(-1/2) = last^(-1/2): that form is concave, increasing and nearly linear in v, so Newton steps from
    any side converge in two to four rounds.
    """
    value = np.empty(at.size)
    where = np.empty(at.size)
    v = 0.0
    for i in range(at.size):
        k = at[i]
        some = False
        for s in range(k - 1, -1, -1):
            if weight[s] > 0.0:
                some = True
                if v <= 0.0:
                    v = np.sqrt(weight[s] / last[k])
                break
        if not some:
            value[i] = 0.0
            where[i] = 0.0
            continue
        target = 1.0 / np.sqrt(last[k])
        first = 0.0
        for _ in range(60):
            tail = v
            first = 0.0
            second = 0.0
            third = 0.0
            for s in range(k - 1, -1, -1):
                inverse = 1.0 / tail
                term = weight[s] * inverse
                first += term
                term *= inverse
                second += term
                third += term * inverse
                tail += lr[s]
            root = np.sqrt(second)
            step = (target - 1.0 / root) * second * root / third
            if abs(step) <= tol * v:
                # value at the minimiser up to second order in the step that is left
                first -= second * step
                v += step
                break
            v = min(max(v + step, 0.1 * v), 10.0 * v)
        value[i] = first + v * last[k]
        where[i] = v
    return value, where


@kernel
def noise_at(lr, weight, last, at, v):  # type: ignore[no-untyped-def]
    """``sum_{s<k} weight_s/(tail_s + v_i) + v_i last_k`` at each k = at[i] for given v."""
    out = np.empty(at.size)
    for i in range(at.size):
        k = at[i]
        tail = v[i]
        total = tail * last[k]
        for s in range(k - 1, -1, -1):
            if weight[s] > 0.0:
                total += weight[s] / tail
            tail += lr[s]
        out[i] = total
    return out


@kernel
def clock(lr, weight_decay, init_std):  # type: ignore[no-untyped-def]
    """Effective learning rates e_t = lr_t / rho_t of scale-invariant weights under decoupled weight decay."""
    out = np.empty(lr.size)
    square = 1.0
    for t in range(lr.size):
        out[t] = lr[t] / np.sqrt(square)
        shrink = 1.0 - lr[t] * weight_decay
        square = shrink * shrink * square + (lr[t] / init_std) ** 2
    return out


@kernel
def tissue_sum(lr, start, lam):  # type: ignore[no-untyped-def]
    """S2 = cumsum(m), m_i = lam m_{i-1} + (lr_{i-1} - lr_i) for i > start (else 0), and dS2/dlam."""
    total = np.zeros(lr.size)
    slope = np.zeros(lr.size)
    m = 0.0
    dm = 0.0
    running = 0.0
    drunning = 0.0
    for i in range(1, lr.size):
        if i > start:
            dm = m + lam * dm
            m = lam * m + (lr[i - 1] - lr[i])
            running += m
            drunning += dm
        total[i] = running
        slope[i] = drunning
    return total, slope


@fused
def multipower_sum(lr, cumulative, at, C, beta, gamma):  # type: ignore[no-untyped-def]
    """LD_k = sum_{1<=j<=k} (lr_j - lr_{j-1}) G(lr_j^-gamma (S_k - S_{j-1})) and its slope in C, beta, gamma.

    G(x) = 1 - (1 + C x)^-beta. From one j to the next 1 + C x moves little: its logarithm and power are taken
    at an anchor a, and near it follow from the series of log(1 + r) and (1 + r)^-beta, r = (1 + C x)/a - 1,
    whose first term left out is below the rounding. A sum so wants one exp and log in tens of terms.
    """
    n = at.size
    value = np.zeros(n)
    slope = np.zeros((n, 3))
    steps = np.flatnonzero(np.diff(lr) != 0.0) + 1
    change = lr[steps] - lr[steps - 1]
    before = cumulative[steps - 1]
    log_lr = np.zeros(steps.size)
    power = np.full(steps.size, np.inf)
    for m in range(steps.size):
        if lr[steps[m]] > 0.0:
            log_lr[m] = np.log(lr[steps[m]])
            power[m] = np.exp(-gamma * log_lr[m])
    near = 2.0**-7 / max(1.0, abs(beta))
    b1 = -beta
    b2 = b1 * (b1 - 1.0) / 2.0
    b3 = b2 * (b1 - 2.0) / 3.0
    b4 = b3 * (b1 - 3.0) / 4.0
    b5 = b4 * (b1 - 4.0) / 5.0
    b6 = b5 * (b1 - 5.0) / 6.0
    b7 = b6 * (b1 - 6.0) / 7.0
    for i in range(n):
        now = cumulative[at[i]]
        total = 0.0
        by_C = 0.0
        by_beta = 0.0
        by_gamma = 0.0
        anchor = 1.0
        inverse = 1.0
        log_anchor = 0.0
        decay_anchor = 1.0
        for m in range(np.searchsorted(steps, at[i], side="right")):
            if power[m] == np.inf:  # limit of a small rate: 1 as soon as something has moved since, else 0
                if now > before[m]:
                    total += change[m]
                continue
            x = power[m] * (now - before[m])
            base = 1.0 + C * x
            r = (base - anchor) * inverse
            if not abs(r) <= near:
                anchor = base
                inverse = 1.0 / base
                log_anchor = np.log(base)
                decay_anchor = np.exp(b1 * log_anchor)
                r = 0.0
            log_base = log_anchor + r * (
                1.0 - r * (1 / 2 - r * (1 / 3 - r * (1 / 4 - r * (1 / 5 - r * (1 / 6 - r * (1 / 7))))))
            )
            decay = decay_anchor + decay_anchor * (
                r * (b1 + r * (b2 + r * (b3 + r * (b4 + r * (b5 + r * (b6 + r * b7))))))
            )
            total += change[m] * (1.0 - decay)
            common = change[m] * decay * (x / base)
            by_C += common
            by_beta += change[m] * log_base * decay
            by_gamma -= common * log_lr[m]
        value[i] = total
        slope[i, 0] = beta * by_C
        slope[i, 1] = by_beta
        slope[i, 2] = beta * C * by_gamma
    return value, slope
