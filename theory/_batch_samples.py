"""Batch sizes where the learning rate is a function of the samples used, not of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._batch_allocation import (
    coefficients,
    continuous_split,
    feasible_range,
    limits,
    sum_of_noise,
    whole_split,
)
from convexlaw.theory._batch_plan import BatchPlan
from convexlaw.theory._schedule_checks import learning_rates, positive, whole_steps
from convexlaw.theory._shape_constants import evaluate
from convexlaw.theory.schedules import shape as named_shape

__all__ = ["plan_in_samples"]

Array = NDArray[np.float64]


def plan_in_samples(
    lr_at: str | Callable[[Any], Any] | ArrayLike,
    samples: float,
    steps: int,
    *,
    peak: float = 1.0,
    min_batch: float = 1,
    max_batch: float | None = None,
    multiple_of: int = 1,
    integer: bool = True,
    rounds: int = 20,
) -> BatchPlan:
    """Batch sizes for a learning rate that follows the samples used: eta_t = lr_at(n_t/N).

    In sample time the noise depends on eta/B alone and is least where eta/B falls linearly. With a fixed
    number of steps that is a fixed point (rates from samples, batches from rates); it is iterated with
    damping 1/2 from a static batch and the best iterate is kept: a heuristic, whose objective never is
    above the static one.

    Parameters
    ----------
    lr_at : str, callable or (m,) array_like
        Schedule name or text, function of the fraction of samples used, or values on a uniform grid of it.
    samples : float
        N, samples of the run.
    steps : int
        T, number of steps.
    peak : float
        Factor of a named shape or function.
    min_batch, max_batch, multiple_of, integer
        As in ``optimal_batch_sizes``.
    rounds : int
        Iterations.

    Returns
    -------
    BatchPlan
        ``.lr`` holds the rates read at the samples used before each step. The objective is noise over sum of
        rates, to which the bound at its best peak is monotone; ``static_noise`` is scaled to this plan's sum.

    Raises
    ------
    ConvexlawError
        The budget is outside what the steps can use, or a bad value.

    References
    ----------
    arXiv 2607.27731, appendix C.5 (eta/B alone does not determine the dynamics where G > 0).

    Examples
    --------
    >>> result = plan_in_samples("constant", 25_600, 100)
    >>> result.batch[[0, 50, 99]].tolist(), round(result.gain, 2)
    ([132, 188, 1313], 1.63)
    """
    n, count = positive("samples", samples), whole_steps(steps)
    low, high = limits(min_batch, max_batch, multiple_of, integer)
    least, most = feasible_range(np.ones(count, dtype=bool), low, high)
    if not least <= n <= most:
        raise ConvexlawError(
            f"samples = {n:.10g} cannot be met: {count} steps with batch sizes from {low:g} to {high:g} take "
            f"{least:.10g} to {most:.10g}; change the budget, the limits or the number of steps"
        )
    h = _reader(lr_at, peak)

    def rates_of(batch: Array) -> Array:
        used = np.cumsum(batch) - batch
        return learning_rates(h(np.minimum(used / n, 1.0)))

    def judged(batch: Array) -> tuple[float, Array, Array]:
        rates, c = coefficients(rates_of(batch))
        return sum_of_noise(c, batch) / float(rates.sum()), rates, c

    batch = np.full(count, n / count)
    start, rates, c = judged(batch)
    best = (start, rates, c, batch)
    for _ in range(rounds):
        batch = 0.5 * (batch + continuous_split(c, rates > 0, n, low, high))
        value, rates, c = judged(batch)
        if value < best[0]:
            best = (value, rates, c, batch)
    value, rates, c, batch = best
    ideal = sum_of_noise(c, batch)
    final: NDArray[Any] = batch
    if integer:
        unit = int(multiple_of)
        for _ in range(3):
            whole = whole_split(c, rates > 0, int(n // unit), int(low) // unit, high / unit) * unit
            seen, new_rates, new_c = judged(whole.astype(float))
            if final is batch or seen < value:
                value, rates, final, c = seen, new_rates, whole, new_c
    noise = value * float(rates.sum())
    return BatchPlan(
        rates,
        final,
        n,
        float(final.sum()),
        noise,
        start * float(rates.sum()),
        min(ideal, noise),
        n / count,
    )


def _reader(lr_at: str | Callable[[Any], Any] | ArrayLike, peak: float) -> Callable[[Array], Array]:
    if isinstance(lr_at, str):
        h = named_shape(lr_at)
        return lambda x: positive("peak", peak) * h(x)
    if callable(lr_at):
        return lambda x: positive("peak", peak) * evaluate(lr_at, x)
    table = learning_rates(lr_at)
    grid = np.linspace(0, 1, table.size)
    return lambda x: np.asarray(np.interp(x, grid, table))
