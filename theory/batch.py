"""Optimal batch sizes: gradient noise sigma^2/B in the last-iterate bound, spread over the steps of a run.

With c_t = sigma_t^2 eta_t^2/tail_t (c = sigma^2 eta at the last positive step; a step with rate 0 has none
and takes the smallest batch) the noise part of the bound is half of ``sum_t c_t/B_t``. Under a budget of N
samples the best batch sizes are N sqrt(c_t)/sum sqrt(c), in continuous form N eta(t)/(2 sqrt(S tail(t))),
whatever peak, weight decay or model size; the best noise is then 2 sigma^2 S/N for every shape of the
learning rate. For a run on a clock of effective rates e_t = eta_t/rho_t pass e_t as ``lr``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._batch_allocation import (
    coefficients,
    continuous_split,
    feasible_range,
    limits,
    noisy_coefficients,
    sum_of_noise,
    whole_split,
)
from convexlaw.theory._batch_cost import Cost, Roofline, WallClock, cost_split, fill_up, static_batch
from convexlaw.theory._batch_plan import BatchPlan
from convexlaw.theory._batch_presets import PRESETS, Preset, preset
from convexlaw.theory._batch_rules import (
    JointOptimum,
    Seesaw,
    critical_batch_size,
    joint_optimum,
    next_batch,
    noise_scale,
    noise_scale_series,
    seesaw,
)
from convexlaw.theory._batch_samples import plan_in_samples
from convexlaw.theory._batch_stages import stages
from convexlaw.theory._schedule_checks import positive

__all__ = [
    "PRESETS",
    "BatchPlan",
    "Cost",
    "JointOptimum",
    "Preset",
    "Roofline",
    "Seesaw",
    "WallClock",
    "critical_batch_size",
    "joint_optimum",
    "next_batch",
    "noise_scale",
    "noise_scale_series",
    "noise_sum",
    "optimal_batch_sizes",
    "plan",
    "plan_in_samples",
    "preset",
    "seesaw",
    "stages",
]

Array = NDArray[np.float64]


def optimal_batch_sizes(
    lr: ArrayLike,
    samples: float,
    *,
    min_batch: float = 1,
    max_batch: float | None = None,
    multiple_of: int = 1,
    integer: bool = True,
    cost: Cost | None = None,
    sigma: ArrayLike | None = None,
) -> NDArray[np.int64] | Array:
    """Batch sizes that minimise the noise part of the last-iterate bound under a budget.

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates of the steps.
    samples : float
        Budget: samples of the whole run, or with ``cost`` the sum of cost(B_t) (seconds, say).
    min_batch, max_batch : float, optional
        Limits of a step; steps with learning rate 0 take ``min_batch``.
    multiple_of : int
        Batch sizes are multiples of it (limits are rounded inwards).
    integer : bool
        Whole batch sizes, exactly optimal; at most the budget is used. False: real numbers.
    cost : callable, optional
        f(B) of a step, increasing, for arrays; :class:`WallClock` and :class:`Roofline` are ready. Whole
        batches are exactly optimal for samples and WallClock; otherwise units are added by gain per cost.
    sigma : float or (T,) array_like, optional
        Profile of the gradient noise.

    Returns
    -------
    (T,) array
        Integers with ``integer=True``. :func:`plan` gives the same with budget, noise and gain.

    Raises
    ------
    ConvexlawError
        The budget is outside what the steps can use (the message gives the range), or a bad value.

    References
    ----------
    arXiv 2607.27731, Theorem 3 (samples) and Lemma 4 (any cost).

    Examples
    --------
    >>> optimal_batch_sizes([1.0, 1.0, 1.0, 1.0], 40)
    array([ 7,  9, 12, 12])
    """
    found: NDArray[np.int64] | Array = plan(
        lr,
        samples,
        min_batch=min_batch,
        max_batch=max_batch,
        multiple_of=multiple_of,
        integer=integer,
        cost=cost,
        sigma=sigma,
    ).batch
    return found


def plan(
    lr: ArrayLike,
    samples: float,
    *,
    min_batch: float = 1,
    max_batch: float | None = None,
    multiple_of: int = 1,
    integer: bool = True,
    cost: Cost | None = None,
    sigma: ArrayLike | None = None,
) -> BatchPlan:
    """Optimal batch sizes with what they spend and gain; parameters as in :func:`optimal_batch_sizes`.

    Parameters
    ----------
    lr, samples, min_batch, max_batch, multiple_of, integer, cost, sigma
        As in :func:`optimal_batch_sizes`.

    Returns
    -------
    BatchPlan

    Raises
    ------
    ConvexlawError
        As :func:`optimal_batch_sizes`.

    Examples
    --------
    >>> from convexlaw.theory.schedules import wsd
    >>> print(plan(wsd(1000, 1e-3), 256_000, min_batch=64, max_batch=1024, multiple_of=8))
    batches: 1000 steps, 256000 samples, 46 stages
    batch size 144 to 600 (static 256)
    budget 256000, unused 0
    noise sum 1.41807e-05, static 1.66053e-05: gain 1.1710
    0.00958 % above the best fractional schedule
    """
    rates, c = noisy_coefficients(lr, sigma)
    budget = positive("samples", samples)
    low, high = limits(min_batch, max_batch, multiple_of, integer)
    active, steps, unit = rates > 0, rates.size, int(multiple_of)
    _check_budget(steps, active, budget, low, high, cost)
    batch: NDArray[np.int64] | Array
    if cost is None or isinstance(cost, WallClock):
        # an affine cost is a smaller budget of samples
        count = budget if cost is None else (budget - steps * cost.overhead) / cost.per_sample
        ideal = continuous_split(c, active, count, low, high)
        batch = ideal
        if integer:
            whole_units = math.floor(count / unit * (1 + 1e-15))
            batch = unit * whole_split(c, active, whole_units, int(low) // unit, high / unit)
    else:
        ideal = _costly(c, active, budget, low, high, cost)
        batch = ideal
        if integer:
            whole = np.maximum(np.floor(ideal / unit) * unit, low)
            fill_up(whole, c, budget - float(np.sum(cost(whole))), high, unit, cost)
            batch = whole.astype(np.int64)
    spent = float(batch.sum()) if cost is None else float(np.sum(cost(batch.astype(float))))
    one = static_batch(steps, budget, cost)
    return BatchPlan(
        rates, batch, budget, spent, sum_of_noise(c, batch), sum_of_noise(c, one), sum_of_noise(c, ideal), one
    )


def noise_sum(lr: ArrayLike, batch: ArrayLike, sigma: ArrayLike | None = None) -> float:
    """Noise part of the last-iterate bound in units of sigma^2/2: sum_t c_t/B_t.

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates.
    batch : float or (T,) array_like
        Batch sizes, positive where the learning rate is.
    sigma : float or (T,) array_like, optional
        Profile of the gradient noise.

    Returns
    -------
    float

    Raises
    ------
    ConvexlawError
        Shapes that do not match, batch sizes that are not positive.

    Examples
    --------
    >>> noise_sum([1.0, 1.0, 0.0], [2, 4, 4])
    0.75
    """
    rates, c = coefficients(lr, sigma)
    b = np.asarray(batch, dtype=float)
    if b.shape not in ((), rates.shape):
        raise ConvexlawError(f"batch has shape {b.shape}: give a number or one a step, {rates.shape}")
    if not (np.isfinite(b).all() and (np.broadcast_to(b, c.shape)[c > 0] > 0).all()):
        raise ConvexlawError("batch holds a size that is not positive at a step with learning rate > 0")
    return sum_of_noise(c, b)


def _costly(c: Array, active: NDArray[np.bool_], budget: float, low: float, high: float, cost: Cost) -> Array:
    out = np.full(c.size, low)
    idle = float(np.sum(cost(out[~active])))
    if isinstance(cost, Roofline):
        # batches up to the ridge are free of charge: the rest is a budget of samples
        ridge = min(max(low, cost.overhead / cost.per_sample), high)
        moving = c[active]
        room = (budget - idle) / cost.per_sample
        out[active] = ridge
        if room > ridge * moving.size:
            out[active] = continuous_split(moving, np.ones(moving.size, dtype=bool), room, ridge, high)
        return out
    out[active] = cost_split(c[active], budget - idle, low, high, cost)
    return out


def _check_budget(
    steps: int, active: NDArray[np.bool_], budget: float, low: float, high: float, cost: Cost | None
) -> None:
    if cost is None:
        least, most = feasible_range(active, low, high)
        named, verb = "samples =", "take"
    else:
        smallest = float(np.sum(cost(np.array([low]))))
        moving = int(active.sum())
        least = steps * smallest
        most = math.inf
        if math.isfinite(high):
            most = (steps - moving) * smallest + moving * float(np.sum(cost(np.array([high]))))
        named, verb = "the budget", "cost"
    slack = 1e-12 * budget
    if budget < least - slack or budget > most + slack:
        raise ConvexlawError(
            f"{named} {budget:.10g} cannot be met: {steps} steps with batch sizes from {low:g} to {high:g} "
            f"{verb} {least:.10g} to {most:.10g}; change the budget, the limits or the number of steps"
        )
