"""Budgets other than samples: least sum c_t/B_t under sum f(B_t) = K for any increasing cost f (Lemma 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_checks import nonnegative, positive

__all__ = ["Cost", "Roofline", "WallClock", "cost_split", "fill_up", "static_batch"]

Array = NDArray[np.float64]
Cost = Callable[[Array], Array]
"""Cost of a step by its batch size, arrays to arrays: non-decreasing, with B^2 times its slope increasing."""

_NODES = 4096


@dataclass(frozen=True)
class WallClock:
    """Time of a step with a fixed overhead: f(B) = overhead + per_sample B.

    Attributes
    ----------
    overhead : float
        Time of a step whatever its batch, >= 0 (seconds, or any unit of the budget).
    per_sample : float
        Time of a sample, positive.
    """

    overhead: float
    per_sample: float

    def __post_init__(self) -> None:
        nonnegative("overhead", self.overhead)
        positive("per_sample", self.per_sample)

    def __call__(self, batch: Array) -> Array:
        """Time of a step with ``batch`` samples."""
        return self.overhead + self.per_sample * np.asarray(batch, dtype=float)


@dataclass(frozen=True)
class Roofline:
    """Time of a step that is free of charge up to a full device: f(B) = max(overhead, per_sample B).

    Attributes
    ----------
    overhead : float
        Smallest time of a step, positive; batches up to overhead/per_sample cost no more.
    per_sample : float
        Time of a sample on a full device, positive.
    """

    overhead: float
    per_sample: float

    def __post_init__(self) -> None:
        positive("overhead", self.overhead)
        positive("per_sample", self.per_sample)

    def __call__(self, batch: Array) -> Array:
        """Time of a step with ``batch`` samples."""
        return np.maximum(self.overhead, self.per_sample * np.asarray(batch, dtype=float))


def cost_split(c: Array, budget: float, low: float, high: float, cost: Cost) -> Array:
    """Batch sizes B_t = g(c_t/lambda), g the inverse of x^2 f'(x), clipped, with sum f(B_t) = ``budget``."""
    largest = high if math.isfinite(high) else _largest(cost, low, budget)
    x, y = _table(cost, max(low, 1e-6 * min(largest, 1.0)), largest)
    used = c > 0
    out = np.full(c.size, low)
    if not used.any():
        return out
    weights = np.log(c[used])
    fixed = float(np.sum(cost(out[~used])))

    def batches(log_lam: float) -> Array:
        return np.asarray(np.clip(np.exp(np.interp(weights - log_lam, y, x)), low, largest))

    def excess(log_lam: float) -> float:
        return float(np.sum(cost(batches(log_lam)))) + fixed - budget

    few, many = float(weights.max() - y[0]) + 1, float(weights.min() - y[-1]) - 1
    if excess(many) <= 0:
        out[used] = batches(many)
    elif excess(few) >= 0:
        out[used] = batches(few)
    else:
        out[used] = batches(float(brentq(excess, many, few, xtol=1e-13, rtol=1e-14)))
    return out


def fill_up(batch: Array, c: Array, rest: float, high: float, unit: float, cost: Cost) -> float:
    """Add whole units where they gain most for their cost while ``rest`` lasts; return what stays unspent."""
    while True:
        price = cost(batch + unit) - cost(batch)
        gain = np.where((batch + unit <= high) & (price <= rest), c / batch - c / (batch + unit), 0.0)
        worth = np.divide(gain, price, out=np.full(c.size, np.inf), where=price > 0)
        worth[gain <= 0] = -np.inf
        order = np.argsort(-worth, kind="stable")
        order = order[worth[order] > -np.inf]
        taken = order[np.cumsum(price[order]) <= rest]
        if taken.size == 0:
            return rest
        batch[taken] += unit
        rest -= float(price[taken].sum())


def static_batch(steps: int, budget: float, cost: Cost | None) -> float:
    """One batch size whose ``steps`` steps spend the budget (the largest one)."""
    if cost is None:
        return budget / steps
    each = budget / steps
    top = _largest(cost, 1.0, each)

    def over(b: float) -> float:
        return float(cost(np.array([b]))[0]) - each * (1 + 1e-15)

    return float(brentq(over, 1e-9, 2 * top, xtol=1e-12)) if over(1e-9) < 0 < over(2 * top) else top


def _largest(cost: Cost, low: float, budget: float) -> float:
    """Upper end of any batch size: one step alone would spend the budget."""
    b = max(low, 1.0)
    for _ in range(200):
        if float(cost(np.array([b]))[0]) > budget:
            return b
        b *= 2
    raise ConvexlawError("the cost does not grow with the batch size: no budget limits it; give max_batch")


def _table(cost: Cost, low: float, high: float) -> tuple[Array, Array]:
    """Logarithms of B and of B^2 f'(B), which must increase, on a grid that closes in on jumps of f'."""
    x = np.linspace(math.log(low), math.log(high) if high > low else math.log(low) + 1e-9, _NODES)
    y = _marginal(cost, x)
    for _ in range(40):
        steep = np.flatnonzero((np.diff(y) > 0.1) & (np.diff(x) > 1e-11))
        if steep.size == 0 or steep.size > _NODES // 4:
            break
        middle = 0.5 * (x[steep] + x[steep + 1])
        x = np.insert(x, steep + 1, middle)
        y = np.insert(y, steep + 1, _marginal(cost, middle))
    falls = np.diff(y) < -1e-6
    if falls.any():
        where = math.exp(x[int(np.flatnonzero(falls)[0])])
        raise ConvexlawError(
            f"the cost bends down too fast at batch size {where:.4g}: B^2 f'(B) must increase for an optimum"
        )
    return x, np.maximum.accumulate(y)


def _marginal(cost: Cost, x: Array) -> Array:
    step = 1e-5
    rise = np.asarray(cost(np.exp(x + step)), dtype=float) - np.asarray(cost(np.exp(x - step)), dtype=float)
    if not np.isfinite(rise).all() or (rise < 0).any():
        raise ConvexlawError("cost(B) must be finite and must not fall as the batch size grows")
    # B^2 f' = B df/dlog B; a flat piece costs nothing: its batches are passed over
    return np.asarray(x + np.log(np.maximum(rise / (2 * step), 1e-300)))
