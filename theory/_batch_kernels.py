"""Dynamic programme over the change points of a batch schedule with few stages."""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import numpy as np

from convexlaw.theory._jit import kernel, leaf


@kernel
def split_free(noise, length, stages):
    """Change points that minimise sum_i sqrt(C_i len_i), C_i and len_i from prefix sums at candidate points.

    With batch sizes free in each stage the best noise under a sample budget N is (that sum)^2/N.
    Returns indices into the candidates, (stages + 1,).
    """
    n = noise.size - 1
    best = np.empty(n + 1)
    origin = np.zeros((stages + 1, n + 1), np.int64)
    for j in range(n + 1):
        best[j] = np.sqrt(noise[j] * length[j])
    for k in range(2, stages + 1):
        # from the back: best[i] still belongs to k - 1 stages
        for j in range(n, k - 1, -1):
            low = np.inf
            where = k - 1
            for i in range(k - 1, j):
                value = best[i] + np.sqrt((noise[j] - noise[i]) * (length[j] - length[i]))
                if value < low:
                    low = value
                    where = i
            best[j] = low
            origin[k, j] = where
    return _walk(origin, n, stages)


@kernel
def split_priced(noise, length, stages, sizes, unit, price):
    """Change points and sizes that minimise sum_i C_i/B_i + price len_i B_i, sizes from a sorted list.

    ``unit``: step of the list where it is uniform, else 0. Returns indices into the candidates,
    (stages + 1,), and into sizes, (stages,), and the minimum.
    """
    n = noise.size - 1
    best = np.empty(n + 1)
    origin = np.zeros((stages + 1, n + 1), np.int64)
    best[0] = 0.0
    for j in range(1, n + 1):
        best[j] = _cheapest(noise[j], length[j], sizes, unit, price)[0]
    for k in range(2, stages + 1):
        for j in range(n, k - 1, -1):
            low = np.inf
            where = k - 1
            for i in range(k - 1, j):
                value = best[i] + _cheapest(noise[j] - noise[i], length[j] - length[i], sizes, unit, price)[0]
                if value < low:
                    low = value
                    where = i
            best[j] = low
            origin[k, j] = where
    points = _walk(origin, n, stages)
    chosen = np.empty(stages, np.int64)
    for s in range(stages):
        i, j = points[s], points[s + 1]
        chosen[s] = _cheapest(noise[j] - noise[i], length[j] - length[i], sizes, unit, price)[1]
    return points, chosen, best[n]


@kernel
def _walk(origin, n, stages):
    points = np.empty(stages + 1, np.int64)
    points[stages] = n
    for k in range(stages, 1, -1):
        points[k - 1] = origin[k, points[k]]
    points[0] = 0
    return points


@leaf
def _cheapest(noise, length, sizes, unit, price):
    """Smallest noise/B + price length B over the sorted sizes, a neighbour of the real minimum."""
    target = np.sqrt(noise / (price * length))
    if target >= sizes[-1]:
        i = sizes.size - 1
    elif unit > 0:
        i = max(int(np.ceil((target - sizes[0]) / unit)), 0)
    else:
        i = np.searchsorted(sizes, target)
    value = noise / sizes[i] + price * length * sizes[i]
    if i > 0:
        other = noise / sizes[i - 1] + price * length * sizes[i - 1]
        if other <= value:
            return other, i - 1
    return value, i
