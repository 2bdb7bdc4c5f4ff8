"""No run on a problem with known minimum ever lies above its bound."""

from __future__ import annotations

import numpy as np
import pytest

from convexlaw.theory import schedules
from convexlaw.theory.last_iterate import curve


def max_of_affine(rng):
    """Slopes and offsets of f(x) = max_i(a_i x + b_i) with minimum 0 at 0."""
    dim, active, idle = rng.integers(1, 6), rng.integers(1, 5), rng.integers(0, 6)
    a = rng.standard_normal((active, dim))
    balance = -(rng.uniform(0.2, 1, active) @ a)  # 0 lies in the hull of the active slopes
    rest = rng.standard_normal((idle, dim))
    slopes = np.vstack([a, balance, rest])
    offsets = np.concatenate([np.zeros(active + 1), -rng.exponential(1.0, idle)])
    return slopes, offsets


def random_schedule(rng, steps):
    kind = rng.integers(7)
    if kind == 0:
        return 10 ** rng.uniform(-2, 0.5, steps)
    if kind == 1:
        return rng.uniform(0, 1, steps) * (rng.uniform(size=steps) > 0.3)
    name = ("constant", "linear", "cosine", "wsd", "one_minus_sqrt")[kind - 2]
    return schedules.make(name, steps=steps, peak=10 ** rng.uniform(-2, 0.7), warmup=rng.uniform(0, 0.3))


def descend(slopes, offsets, start, lr):
    """Values f(x_1)..f(x_{T+1}), points and the norms of the subgradients met."""
    x, points, values, norms = start.copy(), [], [], []
    for eta in [*lr, 0.0]:
        heights = slopes @ x + offsets
        i = int(np.argmax(heights))
        points.append(x.copy())
        values.append(heights[i])
        norms.append(np.linalg.norm(slopes[i]))
        x = x - eta * slopes[i]
    return np.array(values), np.array(points), np.array(norms)


@pytest.mark.parametrize("block", range(4))
def test_random_max_of_affine_problems(block):
    ratios = {"free": 0.0, "tight": 0.0, "tail": 0.0, "averaged": 0.0}
    for seed in range(60 * block, 60 * (block + 1)):
        rng = np.random.default_rng(seed)
        slopes, offsets = max_of_affine(rng)
        start = rng.standard_normal(slopes.shape[1]) * 10 ** rng.uniform(-1, 1)
        lr = random_schedule(rng, int(rng.integers(1, 60)))
        gaps, points, norms = descend(slopes, offsets, start, lr)
        far = float(np.linalg.norm(start))
        for g in (norms, float(np.linalg.norm(slopes, axis=1).max())):
            for form in ("free", "tight"):
                ratios[form] = max(ratios[form], (gaps[1:] / curve(lr, g, far, form)).max())
            # the last step of the literal formula is only a weight: it bounds the point before it
            moved = lr > 0
            tail = curve(lr, g if np.ndim(g) == 0 else g[:-1], far, "tail")
            ratios["tail"] = max(ratios["tail"], (gaps[:-1] / tail)[moved].max(initial=0))
        average = np.cumsum(lr[:, None] * points[:-1], axis=0) / np.maximum(np.cumsum(lr), 1e-300)[:, None]
        at_average = (average @ slopes.T + offsets).max(axis=1)
        ratios["averaged"] = max(
            ratios["averaged"], (at_average / curve(lr, norms, far, "averaged")).max(initial=0)
        )
    assert max(ratios.values()) <= 1 + 1e-12, ratios
    assert ratios["tight"] > 0.3  # the problems are not trivial


def test_noisy_gradients_in_expectation():
    # f(x) = |x|, gradient sign(x) + noise: G^2 = 1 + sigma^2; 4000 runs, the mean plus four standard errors
    rng = np.random.default_rng(11)
    sigma, steps, count = 2.0, 200, 4000
    lr = schedules.wsd(steps, 0.05, decay=0.3)
    x = np.full(count, 1.5)
    gaps = []
    for eta in lr:
        x = x - eta * (np.sign(x) + sigma * rng.standard_normal(count))
        gaps.append((np.abs(x).mean(), np.abs(x).std() / np.sqrt(count)))
    mean, error = np.array(gaps).T
    for form in ("free", "tight"):
        assert (mean - 4 * error <= curve(lr, np.sqrt(1 + sigma**2), 1.5, form)).all()
