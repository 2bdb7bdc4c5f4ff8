"""Compiled sums behind the loss laws: noise with a batch term, the rotational clock, Tissue, Multi-Power."""

from __future__ import annotations

import numpy as np

from convexlaw.theory._jit import kernel

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


@kernel
def multipower_sum(lr, cumulative, at, C, beta, gamma):  # type: ignore[no-untyped-def]
    """LD_k = sum_{1<=j<=k} (lr_j - lr_{j-1}) G(lr_j^-gamma (S_k - S_{j-1})) and its slope in C, beta, gamma.

    G(x) = 1 - (1 + C x)^-beta.
    """
    n = at.size
    value = np.zeros(n)
    slope = np.zeros((n, 3))
    power = np.empty(lr.size)
    log_lr = np.empty(lr.size)
    for j in range(lr.size):
        if lr[j] > 0.0:
            log_lr[j] = np.log(lr[j])
            power[j] = np.exp(-gamma * log_lr[j])
        else:
            log_lr[j] = 0.0
            power[j] = np.inf
    for j in range(1, lr.size):
        change = lr[j] - lr[j - 1]
        if change == 0.0:
            continue
        for i in range(n):
            k = at[i]
            if k < j:
                continue
            if lr[j] <= 0.0:  # limit of a small rate: 1 as soon as something has moved since, else 0
                if cumulative[k] > cumulative[j - 1]:
                    value[i] += change
                continue
            x = power[j] * (cumulative[k] - cumulative[j - 1])
            base = 1.0 + C * x
            log_base = np.log(base)
            decay = np.exp(-beta * log_base)
            value[i] += change * (1.0 - decay)
            common = change * beta * decay * x / base
            slope[i, 0] += common
            slope[i, 1] += change * log_base * decay
            slope[i, 2] -= common * C * log_lr[j]
    return value, slope
