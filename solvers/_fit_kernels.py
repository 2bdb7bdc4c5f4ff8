"""Compiled inner problem of the fits: the linear parameters of a law under a Huber sum on log loss."""

from __future__ import annotations

import numpy as np

from convexlaw.theory._jit import kernel, leaf

__all__ = ["curvature", "damped_step", "inner", "objective", "project"]


@leaf
def objective(f, z, w, kappa, delta):  # type: ignore[no-untyped-def]
    """``sum w huber(z - kappa log f)``; infinite where f is not positive and finite."""
    total = 0.0
    for i in range(z.size):
        if w[i] == 0.0:
            continue
        if not (f[i] > 0.0 and f[i] < np.inf):
            return np.inf
        r = abs(z[i] - kappa * np.log(f[i]))
        total += w[i] * (0.5 * r * r if r <= delta else delta * (r - 0.5 * delta))
    return total


@kernel
def _solve(H, g, free, p):  # type: ignore[no-untyped-def]
    """Solve H x = -g on the free coordinates by Cholesky; second value False where H is not positive."""
    x = np.zeros(p)
    index = np.empty(p, np.int64)
    m = 0
    for j in range(p):
        if free[j]:
            index[m] = j
            m += 1
    L = np.zeros((m, m))
    y = np.zeros(m)
    for a in range(m):
        for b in range(a + 1):
            s = H[index[a], index[b]]
            for c in range(b):
                s -= L[a, c] * L[b, c]
            if a == b:
                if not s > 1e-13 * H[index[a], index[a]]:
                    return x, False
                L[a, a] = np.sqrt(s)
            else:
                L[a, b] = s / L[b, b]
    for a in range(m):
        s = -g[index[a]]
        for c in range(a):
            s -= L[a, c] * y[c]
        y[a] = s / L[a, a]
    for a in range(m - 1, -1, -1):
        s = y[a]
        for c in range(a + 1, m):
            s -= L[c, a] * x[index[c]]
        x[index[a]] = s / L[a, a]
    return x, True


@kernel
def inner(X, z, w, c, held, kappa, delta, rounds):  # type: ignore[no-untyped-def]
    """Minimise ``sum w huber(z - kappa log(X c))`` over c >= 0 (``held`` entries of c stay).

    Projected Newton: the exact Hessian where it is positive definite, else the reweighted least-squares one
    (a majoriser of the Huber sum), with halving until the sum falls. Returns (c, sum, rounds used).
    """
    n, p = X.shape
    scale = np.ones(p)
    for j in range(p):
        s = 0.0
        for i in range(n):
            s += abs(X[i, j])
        if s > 0.0:
            scale[j] = n / s
    u = c / scale
    f = np.empty(n)
    trial = np.empty(n)
    for i in range(n):
        s = 0.0
        for j in range(p):
            s += X[i, j] * scale[j] * u[j]
        f[i] = s
    best = objective(f, z, w, kappa, delta)
    free = np.ones(p, np.bool_)
    used = rounds
    for k in range(rounds):
        g = np.zeros(p)
        newton = np.zeros((p, p))
        major = np.zeros((p, p))
        for i in range(n):
            if w[i] == 0.0:
                continue
            r = z[i] - kappa * np.log(f[i])
            size = abs(r)
            psi = r if size <= delta else (delta if r > 0 else -delta)
            inside = kappa * kappa if size <= delta else 0.0
            hn = w[i] * (inside + psi * kappa) / (f[i] * f[i])
            hm = w[i] * kappa * kappa * (1.0 if size <= delta else delta / size) / (f[i] * f[i])
            gi = -w[i] * psi * kappa / f[i]
            for a in range(p):
                xa = X[i, a] * scale[a]
                g[a] += gi * xa
                for b in range(a + 1):
                    xx = xa * X[i, b] * scale[b]
                    newton[a, b] += hn * xx
                    major[a, b] += hm * xx
        for a in range(p):
            for b in range(a):
                newton[b, a] = newton[a, b]
                major[b, a] = major[a, b]
            newton[a, a] += 1e-12 * major[a, a] + 1e-300
            major[a, a] += 1e-12 * major[a, a] + 1e-300
            free[a] = (not held[a]) and not (u[a] <= 0.0 and g[a] > 0.0)
        moved = False
        gain = 0.0
        for attempt in range(2):
            step, good = _solve(newton if attempt == 0 else major, g, free, p)
            if not good:
                continue
            t = 1.0
            for _ in range(30 if attempt == 1 else 8):
                for i in range(n):
                    s = 0.0
                    for j in range(p):
                        s += X[i, j] * scale[j] * max(u[j] + t * step[j], 0.0)
                    trial[i] = s
                value = objective(trial, z, w, kappa, delta)
                slope = 0.0
                for j in range(p):
                    slope += g[j] * (max(u[j] + t * step[j], 0.0) - u[j])
                if value <= best + 1e-4 * min(slope, 0.0) and value < best:
                    moved = True
                    gain = best - value
                    best = value
                    for j in range(p):
                        u[j] = max(u[j] + t * step[j], 0.0)
                    for i in range(n):
                        f[i] = trial[i]
                    break
                t *= 0.35
            if moved:
                break
        if not moved or gain <= 1e-15 * best:
            used = k + 1
            break
    return u * scale, best, used


@kernel
def curvature(X, dX, z, w, c, kappa, link, delta, tail):  # type: ignore[no-untyped-def]
    """Gradient and Gauss-Newton Hessian of the Huber sum in (c, theta), rows J (n, p + m), and psi(r).

    ``link``: index in theta of the power kappa, -1 for none. ``tail``: weight given to rows beyond delta
    (0: the derivative of psi, 1: reweighted least squares). Second derivatives of r are left out everywhere:
    with some of them only, the part of H that is left after eliminating c need not be positive.
    """
    n, p = X.shape
    m = dX.shape[2]
    d = p + m
    J = np.zeros((n, d))
    g = np.zeros(d)
    H = np.zeros((d, d))
    psi = np.zeros(n)
    for i in range(n):
        f = 0.0
        for j in range(p):
            f += X[i, j] * c[j]
        log_f = np.log(f)
        r = z[i] - kappa * log_f
        size = abs(r)
        psi[i] = r if size <= delta else (delta if r > 0 else -delta)
        h = 1.0 if size <= delta else tail * delta / size
        for j in range(p):
            J[i, j] = -kappa * X[i, j] / f
        for k in range(m):
            s = 0.0
            for j in range(p):
                s += dX[i, j, k] * c[j]
            J[i, p + k] = -kappa * s / f
            if k == link:
                J[i, p + k] -= log_f
        if w[i] == 0.0:
            continue
        for a in range(d):
            g[a] += w[i] * psi[i] * J[i, a]
            for b in range(a + 1):
                H[a, b] += w[i] * h * J[i, a] * J[i, b]
    for a in range(d):
        for b in range(a):
            H[b, a] = H[a, b]
    return g, H, J, psi


@kernel
def project(g, H, c, held, slope, first, second):  # type: ignore[no-untyped-def]
    """Gradient and Hessian by the search coordinates with c eliminated, and dc/dcoordinates.

    ``slope``: derivative of theta by its coordinate; ``first``, ``second``: of the priors by the coordinates.
    """
    p = c.size
    m = slope.size
    A = np.empty((p, p))
    size = np.ones(p)
    free = np.empty(p, np.bool_)
    for a in range(p):
        free[a] = (not held[a]) and c[a] > 0.0
        size[a] = np.sqrt(max(H[a, a], 1e-300))
    for a in range(p):
        for b in range(p):
            A[a, b] = H[a, b] / (size[a] * size[b])
        A[a, a] += 1e-12
    gradient = np.empty(m)
    reduced = np.empty((m, m))
    dc = np.zeros((p, m))
    B = np.empty((m, p))
    for k in range(m):
        gradient[k] = g[p + k] * slope[k] + first[k]
        for a in range(p):
            B[k, a] = H[p + k, a] * slope[k] / size[a]
    for k in range(m):
        move, good = _solve(A, -B[k], free, p)
        for a in range(p):
            if not good:
                move[a] = 0.0
            dc[a, k] = -move[a] / size[a]
        for i in range(m):
            total = H[p + i, p + k] * slope[i] * slope[k]
            for a in range(p):
                if free[a]:
                    total -= B[i, a] * move[a]
            reduced[i, k] = total
    for k in range(m):
        reduced[k, k] += second[k]
        for i in range(k):
            reduced[i, k] = 0.5 * (reduced[i, k] + reduced[k, i])
            reduced[k, i] = reduced[i, k]
    return gradient, reduced, dc


@kernel
def damped_step(H, gradient, moving, diagonal, damping):  # type: ignore[no-untyped-def]
    """Levenberg-Marquardt step of at most 1 a coordinate; second value False where H is not positive."""
    m = gradient.size
    K = H.copy()
    for k in range(m):
        K[k, k] += damping * diagonal[k]
    step, good = _solve(K, gradient, moving, m)
    for k in range(m):
        step[k] = min(max(step[k], -1.0), 1.0)
    return step, good
