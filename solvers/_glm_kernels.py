"""Compiled loops of the losses: values, residuals, curvatures, conjugates and intercepts.

A loss of one column has a ``kind``; ``weights`` sum to one, ``size`` is the threshold of the Huber loss.
Every loss is half a deviance, so it is >= 0, and 0 where the prediction equals the response.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.solvers._slope_model_kernels import cholesky, cholesky_solve
from convexlaw.theory._jit import kernel, leaf

# inlined from other files: 47e6aa5e9387

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

QUADRATIC, LOGISTIC, POISSON, HUBER, MULTINOMIAL = range(5)


@leaf
def _terms(kind: int, y: float, eta: float, size: float) -> tuple[float, float, float]:
    """Loss, residual (minus its derivative) and curvature of one observation."""
    if kind == LOGISTIC:
        # with y in {0, 1}: log(1 + exp(-t)) for t = +-eta, and both tails without cancellation
        t = eta if y > 0.5 else -eta
        e = math.exp(-abs(t))
        away = e / (1.0 + e) if t >= 0.0 else 1.0 / (1.0 + e)
        return math.log1p(e) + max(-t, 0.0), away if y > 0.5 else -away, e / (1.0 + e) ** 2
    if kind == POISSON:
        mu = math.exp(min(eta, 700.0))
        if y == 0.0:
            return mu, -mu, mu
        t = eta - math.log(y)
        away = math.expm1(min(t, 700.0))
        return y * (away - t), -y * away, mu
    r = y - eta
    if kind == HUBER and abs(r) > size:
        return size * (abs(r) - 0.5 * size), math.copysign(size, r), 0.0
    return 0.5 * r * r, r, 1.0


@leaf
def _relative_entropy(d: float, mu: float, log_mu: float) -> float:
    """Q log(q / mu) - q + mu at q = mu + d."""
    q = mu + d
    if q <= 0.0:
        return mu - q
    if mu > 0.0 and abs(d) < 0.1 * mu:
        x = d / mu
        return mu * ((1.0 + x) * math.log1p(x) - x)
    return q * (math.log(q) - log_mu) - d


@leaf
def divergence(kind: int, y: Floats, eta: Floats, weights: Floats, size: float, s: float) -> float:
    """Fenchel-Young remainder f(eta) + f*(-s r) + s r eta of the residuals r, scaled by s in [0, 1]; >= 0."""
    total = 0.0
    rest = 1.0 - s
    for i in range(y.size):
        if kind == LOGISTIC:
            t = eta[i] if y[i] > 0.5 else -eta[i]
            e = math.exp(-abs(t))
            log_big = -math.log1p(e)
            log_small = log_big - abs(t)
            # the probability of what was not seen, and of what was; a share of the former moves
            other, log_other = math.exp(log_small), log_small
            seen, log_seen = math.exp(log_big), log_big
            if t < 0.0:
                other, seen = seen, other
                log_other, log_seen = log_seen, log_other
            d = rest * other
            f = _relative_entropy(d, seen, log_seen) + _relative_entropy(-d, other, log_other)
        elif kind == POISSON:
            mu = math.exp(min(eta[i], 700.0))
            f = _relative_entropy(rest * (y[i] - mu), mu, eta[i])
        else:
            r = y[i] - eta[i]
            f = 0.5 * rest * rest * r * r
            if kind == HUBER and abs(r) > size:
                f = rest * size * abs(r) - 0.5 * size * size * (1.0 - s * s)
        total += weights[i] * max(f, 0.0)
    return total


@kernel
def _start(kind: int, y: Floats, eta: Floats, weights: Floats) -> tuple[float, float, float]:
    """First intercept, and bounds on the best one."""
    if kind == POISSON:
        # in closed form, from the largest term down
        top = eta.max()
        mean, given = 0.0, 0.0
        for i in range(y.size):
            mean += weights[i] * math.exp(eta[i] - top)
            given += weights[i] * y[i]
        return math.log(given / mean) - top, -np.inf, np.inf
    if kind == LOGISTIC:
        given, mass = 0.0, 0.0
        for i in range(y.size):
            given += weights[i] * y[i]
            mass += weights[i]
        even = math.log(given / (mass - given))
        low, high = even - eta.max() - 1e-3, even - eta.min() + 1e-3
        return min(max(0.0, low), high), low, high
    if kind == HUBER:
        low, high = np.inf, -np.inf
        for i in range(y.size):
            low = min(low, y[i] - eta[i])
            high = max(high, y[i] - eta[i])
        return min(max(0.0, low), high), low, high
    return 0.0, -np.inf, np.inf


@kernel
def settle(
    kind: int, y: Floats, eta: Floats, weights: Floats, size: float, free: bool, r: Floats, h: Floats
) -> tuple[float, float]:
    """Best constant to add to eta (0 if not free), and the loss there; fills weighted residuals, curvatures.

    The residuals sum to zero at the best constant, which Newton finds within a bracket.
    """
    c, low, high = 0.0, 0.0, 0.0
    if free:
        c, low, high = _start(kind, y, eta, weights)
    for k in range(200):
        loss, slope, total, curvature = 0.0, 0.0, 0.0, 0.0
        for i in range(y.size):
            f, away, second = _terms(kind, y[i], eta[i] + c, size)
            loss += weights[i] * f
            r[i] = weights[i] * away
            h[i] = weights[i] * second
            slope += r[i]
            total += abs(r[i])
            curvature += h[i]
        if not free or abs(slope) <= 1e-15 * total:
            break
        if slope > 0.0:
            low = max(low, c)
        else:
            high = min(high, c)
        new = c + slope / curvature if curvature > 0.0 else np.nan
        if not low <= new <= high or k > 30:
            if low == -np.inf or high == np.inf:
                break
            new = 0.5 * (low + high)
        if abs(new - c) <= 2e-16 * abs(c):
            break
        c = new
    return c, loss


@leaf
def softmax_terms(Y: Floats, eta: Floats, weights: Floats, reference: bool, P: Floats, R: Floats) -> float:
    """Multinomial loss; fills probabilities and weighted residuals. A reference class has eta = 0, unseen."""
    n, m = Y.shape
    total = 0.0
    for i in range(n):
        top = 0.0 if reference else -np.inf
        for k in range(m):
            top = max(top, eta[i, k])
        mass = math.exp(-top) if reference else 0.0
        seen = 0.0
        one = 0.0
        for k in range(m):
            P[i, k] = math.exp(eta[i, k] - top)
            mass += P[i, k]
            seen += Y[i, k] * eta[i, k]
            one += Y[i, k]
        total += weights[i] * max(math.log(mass) + top - seen, 0.0)
        for k in range(m):
            P[i, k] /= mass
        for k in range(m):
            away = Y[i, k] - P[i, k]
            if Y[i, k] > 0.5:
                # the others' sum: without cancellation where P is close to one
                away = math.exp(-top) / mass if reference else 0.0
                for j in range(m):
                    if j != k:
                        away += P[i, j]
            R[i, k] = weights[i] * away
    return total


@leaf
def softmax_divergence(Y: Floats, eta: Floats, weights: Floats, reference: bool, s: float) -> float:
    """Fenchel-Young remainder of the multinomial residuals, scaled by s in [0, 1]."""
    n, m = Y.shape
    rest = 1.0 - s
    total = 0.0
    for i in range(n):
        top = 0.0 if reference else -np.inf
        for k in range(m):
            top = max(top, eta[i, k])
        mass = math.exp(-top) if reference else 0.0
        for k in range(m):
            mass += math.exp(eta[i, k] - top)
        log_mass = math.log(mass) + top
        f = 0.0
        left = 1.0
        for k in range(m):
            mu = math.exp(eta[i, k] - log_mass)
            left -= Y[i, k]
            f += _relative_entropy(rest * (Y[i, k] - mu), mu, eta[i, k] - log_mass)
        if reference:
            mu = math.exp(-log_mass)
            f += _relative_entropy(rest * (left - mu), mu, -log_mass)
        total += weights[i] * max(f, 0.0)
    return total


@kernel
def softmax_settle(
    Y: Floats, eta: Floats, weights: Floats, reference: bool, free: bool, R: Floats, P: Floats
) -> float:
    """Add the best intercepts to eta, by damped Newton steps where they are free; the loss there.

    Fills weighted residuals and probabilities. Without a reference class only differences of the intercepts
    matter.
    """
    n, m = Y.shape
    value = softmax_terms(Y, eta, weights, reference, P, R)
    M = np.empty((m, m))
    step, moved = np.empty(m), np.empty(m)
    new = np.empty_like(eta)
    for _ in range(100 if free else 0):
        settled = True
        for k in range(m):
            step[k], size = 0.0, 0.0
            for i in range(n):
                step[k] += R[i, k]
                size += abs(R[i, k])
            settled = settled and abs(step[k]) <= 1e-15 * size
        if settled:
            break
        M[:] = 0.0
        for i in range(n):
            for k in range(m):
                f = weights[i] * P[i, k]
                M[k, k] += f
                for j in range(k + 1):
                    M[k, j] -= f * P[i, j]
        trace = 0.0
        for k in range(m):
            trace += M[k, k]
            for j in range(k):
                M[j, k] = M[k, j]
        trace = max(trace, 1e-300)
        if not reference:
            M += trace / m**2
        for k in range(m):
            M[k, k] += 1e-14 * trace
        cholesky(M, m, 1e-15)
        cholesky_solve(M, m, step)
        longest = np.abs(step).max()
        step /= max(1.0, longest / 5.0)
        t = 1.0
        while True:
            for k in range(m):
                moved[k] = t * step[k]
            for i in range(n):
                for k in range(m):
                    new[i, k] = eta[i, k] + moved[k]
            after = softmax_terms(Y, new, weights, reference, P, R)
            if after <= value + 1e-14 * abs(value) or t < 1e-10:
                break
            t *= 0.5
        done = after >= value - 1e-15 * abs(value) and longest < 1e-12
        eta[:] = new
        value = after
        if done:
            break
    return float(value)


@kernel
def model(
    kind: int, Y: Floats, eta: Floats, h: Floats, weights: Floats, size: float, safe: bool, out: Floats
) -> None:
    """Curvatures for a quadratic model that is not singular; ``safe``: one that bounds the loss."""
    n, m = h.shape
    if kind == MULTINOMIAL:
        for i in range(n):
            for k in range(m):
                out[i, k] = min(max(h[i, k], 1e-6), 1.0 - 1e-6)
        return
    least = 1e-6 * h.mean()
    for i in range(n):
        if kind == HUBER:
            bound = weights[i] * size / max(abs(Y[i, 0] - eta[i, 0]), size)
            out[i, 0] = bound if safe else max(h[i, 0], 1e-3 * bound)
        else:
            out[i, 0] = max(h[i, 0], least)


@leaf
def residual_energy(kind: int, h: Floats, R: Floats, weights: Floats, reference: bool) -> float:
    """Squared length of weighted residuals in units of a model with curvatures h."""
    n, m = h.shape
    total = 0.0
    for i in range(n):
        if kind != MULTINOMIAL:
            for k in range(m):
                total += R[i, k] ** 2 / h[i, k]
            continue
        rest, left, here = 1.0, 0.0, 0.0
        for k in range(m):
            here += R[i, k] ** 2 / max(h[i, k], 1e-12)
            rest -= h[i, k]
            left -= R[i, k]
        if reference:
            here += left**2 / max(rest, 1e-12)
        total += here / weights[i]
    return total
