"""Batch schedules with few stages, or powers of two, by dynamic programming with a certificate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._batch_allocation import (
    continuous_split,
    feasible_range,
    limits,
    noisy_coefficients,
    sum_of_noise,
)
from convexlaw.theory._batch_plan import BatchPlan
from convexlaw.theory._schedule_checks import number, positive

__all__ = ["stages"]

Array = NDArray[np.float64]

_CANDIDATES = 1024


def stages(
    lr: ArrayLike,
    samples: float,
    k: int | None = None,
    *,
    min_batch: float = 1,
    max_batch: float | None = None,
    multiple_of: int = 1,
    powers_of_two: bool = False,
    integer: bool = True,
    sigma: ArrayLike | None = None,
) -> BatchPlan:
    """Batch schedule with at most ``k`` stages of constant batch size, as trainers take them.

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates.
    samples : float
        Budget; at most it is used.
    k : int, optional
        Number of stages; may be missing with ``powers_of_two``.
    min_batch, max_batch, multiple_of, integer, sigma
        As in ``optimal_batch_sizes``.
    powers_of_two : bool
        Batch sizes are ``multiple_of`` times powers of two.

    Returns
    -------
    BatchPlan
        ``.stages`` lists (step, batch size); steps with learning rate 0 count as steps of a stage. Without
        limits and with ``integer=False`` the stages are optimal up to 1024 steps; beyond, change points are
        searched on a grid and refined to single steps. Otherwise the sizes come from a dynamic programme at
        the best price of a sample, with what is left spent by local moves; ``ideal_noise`` is then a lower
        bound over all such schedules (weak duality, up to 1024 steps; the best fractional schedule beyond),
        so that the last line printed is a certificate.

    Raises
    ------
    ConvexlawError
        The budget is outside what the steps can use, or a bad value.

    Examples
    --------
    >>> from convexlaw.theory.schedules import constant
    >>> stages(constant(1000, 1e-3), 256_000, 3, multiple_of=16).stages
    [(0, 176), (812, 464), (983, 1984)]
    """
    rates, c = noisy_coefficients(lr, sigma)
    budget = positive("samples", samples)
    low, high = limits(min_batch, max_batch, multiple_of, integer)
    if k is None:
        if not powers_of_two:
            raise ConvexlawError("k is missing: give the number of stages (only powers of two do without)")
    else:
        rule = "a whole number of stages, at least 1"
        k = min(int(number("stages", k, rule, lambda x: x >= 1 and x == int(x))), c.size)
    unit = multiple_of if integer else None
    if powers_of_two:
        low, high = _power_limits(low, high, float(unit or 1))
    every = np.ones(c.size, dtype=bool)
    least, most = feasible_range(every, low, high)
    if not least <= budget <= most:
        raise ConvexlawError(
            f"samples = {budget:.10g} cannot be met: {rates.size} steps with batch sizes from {low:g} to "
            f"{high:g} take {least:.10g} to {most:.10g}; change the budget, the limits or the number of steps"
        )
    if k is None:
        batch, floor = _powers(c, budget, _sizes(low, high, budget, unit, True))
    else:
        free = None if integer or powers_of_two else _free(c, budget, k)
        if free is not None and _within(free, low, high):
            batch, floor = free, sum_of_noise(c, free)
        else:
            batch, floor = _priced(c, budget, k, _sizes(low, high, budget, unit, powers_of_two), integer)
    one = budget / rates.size
    sized: NDArray[Any] = batch.astype(np.int64) if integer else batch
    noise = sum_of_noise(c, sized)
    # steps without noise may be filled beyond their need: the best split leaves them at the smallest batch
    ideal = max(floor, sum_of_noise(c, continuous_split(c, c > 0, budget, low, high)))
    return BatchPlan(
        rates, sized, budget, float(sized.sum()), noise, sum_of_noise(c, one), min(ideal, noise), one
    )


def _power_limits(low: float, high: float, base: float) -> tuple[float, float]:
    """Smallest and largest power of two times ``base`` within the limits."""
    first = base if low <= 0 else base * 2.0 ** math.ceil(math.log2(low / base) - 1e-12)
    last = high if math.isinf(high) else base * 2.0 ** math.floor(math.log2(high / base) + 1e-12)
    if last < first:
        raise ConvexlawError(f"no power of two times {base:g} lies between {low:g} and {high:g}")
    return first, last


def _within(sized: Array, low: float, high: float) -> bool:
    return bool(sized.min() >= low and sized.max() <= high)


def _free(c: Array, budget: float, count: int) -> Array:
    """Optimal stages with real batch sizes B_i = N sqrt(C_i/len_i)/sum sqrt(C_i len_i)."""
    from convexlaw.theory import _batch_kernels as kernels

    noise = np.concatenate([[0.0], np.cumsum(c)])

    def solve(points: NDArray[np.int64]) -> NDArray[np.int64]:
        chosen = kernels.split_free(noise[points], points.astype(float), count)
        return np.asarray(points[chosen])

    cuts = _refined(solve, c.size, count)
    return _from_cuts(cuts, np.diff(noise[cuts]), budget, c.size)


def _from_cuts(cuts: NDArray[np.int64], noise: Array, budget: float, size: int) -> Array:
    length = np.diff(cuts).astype(float)
    root = np.sqrt(noise * length)
    sizes = budget * np.sqrt(noise / length) / root.sum()
    return np.repeat(sizes, np.diff(cuts))


def _refined(solve: Any, size: int, count: int) -> NDArray[np.int64]:
    """Change points on a grid, then again on ever finer grids around the last ones, down to single steps."""
    gap = 1.0 if size <= _CANDIDATES else 2.0 * size / _CANDIDATES
    points = np.unique(np.round(np.linspace(0, size, round(size / gap) + 1)).astype(np.int64))
    points = points if points.size > count else np.arange(size + 1)
    cuts: NDArray[np.int64] = solve(points)
    while gap > 1:
        around = max(4, _CANDIDATES // (4 * max(count - 1, 1)))
        finer = max(1.0, gap / max(around // 2, 2))
        near = [np.round(cut + finer * np.arange(-around, around + 1)) for cut in cuts[1:-1]]
        points = np.unique(np.clip(np.concatenate([[0, size], cuts, *near]), 0, size).astype(np.int64))
        cuts, gap = solve(points), finer
    return cuts


def _sizes(low: float, high: float, budget: float, unit: float | None, powers: bool) -> Array:
    """Sorted list of allowed batch sizes; a fine geometric list where any real size is allowed."""
    top = min(high, max(budget, low))
    if powers:
        base = float(unit or 1)
        first, last = math.ceil(math.log2(low / base) - 1e-12), math.floor(math.log2(top / base) + 1e-12)
        return np.asarray(base * 2.0 ** np.arange(first, last + 1))
    if unit is not None:
        found = np.arange(low, top + 0.5 * unit, unit)
        if found.size <= 65_536:
            return found
        # too many to list: every one up to 65 536 of them, then steps of 2e-5
        far = np.geomspace(found[65_535], found[-1], int(math.log(found[-1] / found[65_535]) / 2e-5) + 2)
        return np.unique(np.concatenate([found[:65_536], np.round(far / unit) * unit]))
    return np.geomspace(max(low, 1e-9 * top), top, 65_536)


def _priced(c: Array, budget: float, count: int, sizes: Array, integer: bool) -> tuple[Array, float]:
    """Stages with listed sizes: bisect the price of a sample, keep the best that fits, spend what is left."""
    from convexlaw.theory import _batch_kernels as kernels

    noise = np.concatenate([[0.0], np.cumsum(c)])
    gaps = np.diff(sizes)
    step = float(gaps[0]) if gaps.size and np.ptp(gaps) < 1e-9 * gaps[0] else 0.0
    best: tuple[float, NDArray[np.int64], Array] | None = None
    bound = 0.0

    def at(price: float) -> float:
        nonlocal best, bound
        value = math.inf

        def solve(points: NDArray[np.int64]) -> NDArray[np.int64]:
            nonlocal value
            chosen = kernels.split_priced(noise[points], points.astype(float), count, sizes, step, price)
            value = float(chosen[2])
            return np.asarray(points[chosen[0]])

        cuts = _refined(solve, c.size, count)
        length = np.diff(cuts).astype(float)
        chosen = np.array(
            [
                kernels._cheapest(n, m, sizes, step, price)[1]
                for n, m in zip(np.diff(noise[cuts]), length, strict=True)
            ]
        )
        picked = sizes[chosen]
        used = float(length @ picked)
        if c.size <= _CANDIDATES:
            bound = max(bound, value - price * budget)
        if used <= budget * (1 + 1e-12):
            picked, cuts = _spend(noise, cuts, picked, sizes, budget)
            total = float((np.diff(noise[cuts]) / picked).sum())
            if best is None or total < best[0]:
                best = (total, cuts, picked)
        return used

    guess = float((np.sqrt(c).sum() / budget) ** 2)
    high = low = guess
    while at(high) > budget:
        high *= 4
    while at(low) < budget and low > 1e-12 * guess:
        low /= 4
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        if at(middle) > budget:
            low = middle
        else:
            high = middle
    if best is None:
        raise ConvexlawError("no stages fit the budget: change the limits")
    _, cuts, picked = best
    return np.repeat(picked, np.diff(cuts)), bound


def _spend(
    noise: Array, cuts: NDArray[np.int64], picked: Array, sizes: Array, budget: float
) -> tuple[Array, NDArray[np.int64]]:
    """Local moves while they help: shift a change point, or take the next larger size in a stage."""
    cuts, picked = cuts.copy(), picked.copy()
    for _ in range(10_000):
        left = budget - float(np.diff(cuts) @ picked)
        options: list[tuple[float, str, int, int]] = []
        for i in range(picked.size):
            j = int(np.searchsorted(sizes, picked[i]))
            length = int(cuts[i + 1] - cuts[i])
            if length and j + 1 < sizes.size and length * (sizes[j + 1] - sizes[j]) <= left:
                gain = (noise[cuts[i + 1]] - noise[cuts[i]]) * (1 / sizes[j] - 1 / sizes[j + 1])
                options.append((gain, "size", i, j + 1))
            if i == 0:
                continue
            rise = picked[i] - picked[i - 1]
            if rise == 0:
                continue
            reach = int(left / abs(rise) + 1e-9)
            if rise > 0:  # the larger batch starts earlier
                to = max(int(cuts[i]) - reach, int(cuts[i - 1]) + 1)
            else:
                to = min(int(cuts[i]) + reach, int(cuts[i + 1]) - 1)
            moved = abs(noise[to] - noise[cuts[i]])
            gain = moved * abs(1 / picked[i - 1] - 1 / picked[i])
            if to != cuts[i]:
                options.append((gain, "cut", i, to))
        if not options:
            break
        gain, kind, i, value = max(options)
        if gain <= 0:
            break
        if kind == "size":
            picked[i] = sizes[value]
        else:
            cuts[i] = value
    return picked, cuts


def _powers(c: Array, budget: float, sizes: Array) -> tuple[Array, float]:
    """Choose among listed sizes for every step by gain per sample; the sizes and a lower bound."""
    # gain per sample of moving from B to 2B is c/(2 B^2): falling, so a price decides
    threshold = 1 / (sizes[:-1] * sizes[1:])

    def taken(price: float) -> NDArray[np.int64]:
        level = np.searchsorted(-threshold, -price / np.maximum(c, 1e-300), side="left")
        return np.where(c > 0, level, 0)

    low, high = 0.0, float(c.max() * threshold.max()) * 2 if threshold.size else 0.0
    if threshold.size and float(sizes[taken(low)].sum()) > budget:
        for _ in range(200):
            middle = 0.5 * (low + high)
            if float(sizes[taken(middle)].sum()) > budget:
                low = middle
            else:
                high = middle
        level = taken(high)
        bound = float((c / sizes[level]).sum()) + high * (float(sizes[level].sum()) - budget)
    else:
        level = taken(low)
        bound = float((c / sizes[level]).sum())
    left = budget - float(sizes[level].sum())
    while True:
        after = np.minimum(level + 1, sizes.size - 1)
        price = sizes[after] - sizes[level]
        open_to = np.flatnonzero((price > 0) & (price <= left) & (c > 0))
        worth = c[open_to] / (sizes[level[open_to]] * sizes[after[open_to]])
        order = open_to[np.argsort(-worth, kind="stable")]
        moved = order[np.cumsum(price[order]) <= left]
        if moved.size == 0:
            return sizes[level], bound
        level[moved] += 1
        left -= float(price[moved].sum())
