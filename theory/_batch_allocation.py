"""Splitting a sample budget over steps: least sum c_t/B_t under sum B_t = N, with bounds and whole units."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._noise_sum import check_span
from convexlaw.theory._schedule_checks import learning_rates, number

__all__ = [
    "coefficients",
    "continuous_split",
    "feasible_range",
    "limits",
    "noisy_coefficients",
    "sum_of_noise",
    "whole_split",
]

Array = NDArray[np.float64]


def coefficients(lr: ArrayLike, sigma: ArrayLike | None = None) -> tuple[Array, Array]:
    """Learning rates and c_t = sigma_t^2 eta_t^2/tail_t; sigma^2 eta at the last positive step."""
    rates = check_span(learning_rates(lr))
    if not (rates > 0).any():
        raise ConvexlawError("lr has no positive step: there is nothing to allocate samples to")
    unit = float(rates.max())
    h = rates / unit
    tails = np.cumsum(h[::-1])[::-1]
    after = np.append(tails[1:], 0.0)
    last = int(np.flatnonzero(h > 0)[-1])
    after[last] = h[last]
    with np.errstate(invalid="ignore", divide="ignore"):
        c = np.where(h > 0, unit * (h * (h / after)), 0.0)
    if sigma is not None:
        profile = np.asarray(sigma, dtype=float)
        if profile.shape not in ((), rates.shape):
            raise ConvexlawError(
                f"sigma has shape {profile.shape}: give a number or one a step, {rates.shape}"
            )
        if not (np.isfinite(profile).all() and (profile >= 0).all()):
            raise ConvexlawError("sigma holds a negative or non-finite value; give numbers >= 0")
        c = c * profile**2
    return rates, c


def noisy_coefficients(lr: ArrayLike, sigma: ArrayLike | None) -> tuple[Array, Array]:
    """As :func:`coefficients`, for an allocation: some step must have noise."""
    rates, c = coefficients(lr, sigma)
    if not c.any():
        raise ConvexlawError("sigma is 0 wherever lr is positive: without noise all batch sizes do as well")
    return rates, c


def limits(min_batch: float, max_batch: float | None, multiple_of: int, integer: bool) -> tuple[float, float]:
    """Smallest and largest batch size, rounded inwards to multiples where batches are whole."""
    low = number("min_batch", min_batch, "a batch size >= 0", lambda x: x >= 0)
    high = math.inf
    if max_batch is not None:
        high = number("max_batch", max_batch, "a batch size >= min_batch", lambda x: x >= low and x > 0)
    unit = number("multiple_of", multiple_of, "a whole number >= 1", lambda x: x >= 1 and x == int(x))
    if integer:
        low = max(math.ceil(low / unit), 1) * unit
        high = high if math.isinf(high) else math.floor(high / unit) * unit
        if high < low:
            raise ConvexlawError(
                f"no multiple of {unit:g} lies from min_batch = {min_batch:g} to max_batch = {max_batch:g}"
            )
    elif unit != 1:
        raise ConvexlawError(f"multiple_of = {unit:g} asks for whole batches: leave integer=True")
    return low, high


def feasible_range(active: NDArray[np.bool_], low: float, high: float) -> tuple[float, float]:
    """Smallest and largest number of samples; steps without a learning rate take the smallest batch."""
    moving = int(active.sum())
    return low * active.size, low * (active.size - moving) + (high * moving if moving else 0.0)


def continuous_split(c: Array, active: NDArray[np.bool_], budget: float, low: float, high: float) -> Array:
    """Batch sizes clip(mu sqrt(c_t), low, high) whose sum is ``budget``.

    The sum is piecewise linear and increasing in mu: safeguarded Newton ends at the exact piece.
    """
    out = np.full(c.size, low)
    root = np.sqrt(c)
    used = active & (root > 0)
    s = root[used]
    rest = budget - low * (c.size - s.size)
    idle = active & ~used
    if s.size == 0 or rest >= high * s.size:
        # every step that matters is full: what is left goes to steps whose noise does not count
        out[used] = high
        if idle.any():
            out[idle] += (budget - out.sum()) / idle.sum()
        return out
    if low == 0 and math.isinf(high):
        out[used] = s * (rest / s.sum())
        return out
    below, above = low / s.max(), (rest if math.isinf(high) else high) / s.min()
    mu = rest / s.sum()
    for _ in range(200):
        mu = mu if below < mu < above else 0.5 * (below + above)
        raw = mu * s
        inside = (raw > low) & (raw < high)
        excess = float(np.clip(raw, low, high).sum()) - rest
        if excess > 0:
            above = mu
        else:
            below = mu
        slope = float(s[inside].sum())
        step = excess / slope if slope > 0 else math.nan
        if abs(excess) <= 1e-14 * rest or abs(step) <= 1e-15 * mu or above - below <= 1e-16 * above:
            break
        mu = mu - step if slope > 0 else 0.5 * (below + above)
    out[used] = np.clip(mu * s, low, high)
    return out


def whole_split(c: Array, active: NDArray[np.bool_], units: int, low: int, high: float) -> NDArray[np.int64]:
    """Numbers n_t, low <= n_t <= high, sum <= ``units``, that minimise sum c_t/n_t: the greedy's answer.

    The greedy gives unit after unit to the largest gain c/(n(n+1)), and ends where all gains above some theta
    are taken. Bisection for theta gives all but a few units, and a short greedy among the rest ends it.
    """
    n = np.full(c.size, low, dtype=np.int64)
    used = np.flatnonzero(active & (c > 0))
    weights = c[used]
    budget = units - low * (c.size - used.size)
    top = high if math.isfinite(high) else budget

    def taken(theta: float) -> Array:
        # smallest n with c <= theta n (n + 1)
        wanted = np.ceil(0.5 * (np.sqrt(1 + 4 * weights / theta) - 1))
        return np.asarray(np.clip(wanted, low, top))

    if used.size and budget < top * used.size:
        guess = float((np.sqrt(weights).sum() / max(budget, 1)) ** 2)
        over, under = guess, guess
        while taken(under).sum() > budget:
            under *= 4
        while taken(over).sum() <= budget:
            over /= 4
        # theta = under fits the budget, theta = over does not
        for _ in range(200):
            theta = math.sqrt(over * under)
            if not over < theta < under or taken(over).sum() - taken(under).sum() <= 1:
                break
            if taken(theta).sum() <= budget:
                under = theta
            else:
                over = theta
        counts = taken(under)
        _finish(counts, taken(over) - counts, weights, int(budget - counts.sum()), top)
        n[used] = counts.astype(np.int64)
    else:
        n[used] = int(top)
        idle = np.flatnonzero(active & (c == 0))
        if idle.size:
            rest = int(units - n.sum())
            room = int(min(rest // idle.size, top - low))
            n[idle] += room
            n[idle[: rest - room * idle.size]] += room < top - low
    return n


def _finish(counts: Array, more: Array, weights: Array, rest: int, top: float) -> None:
    """Give ``rest`` units one at a time to the largest gain, first come first, where ``more`` is > 0."""
    open_to = np.flatnonzero(more > 0)
    gain = weights[open_to] / (counts[open_to] * (counts[open_to] + 1))
    if rest <= 0 or open_to.size == 0:
        return
    if more.max() == 1:
        counts[open_to[np.argsort(-gain, kind="stable")[:rest]]] += 1
        return
    heap = [(-float(x), int(i)) for x, i in zip(gain, open_to, strict=True)]
    heapq.heapify(heap)
    while rest and heap:
        i = heapq.heappop(heap)[1]
        counts[i] += 1
        rest -= 1
        if counts[i] < top:
            heapq.heappush(heap, (-float(weights[i] / (counts[i] * (counts[i] + 1))), i))


def sum_of_noise(c: Array, batch: Any) -> float:
    """Sum of c_t/B_t over the steps whose noise counts."""
    b = np.asarray(batch, dtype=float)
    return float((c[c > 0] / np.broadcast_to(b, c.shape)[c > 0]).sum())
