"""Progressive depth expansion: a small model until step tau, a deeper one after it (arXiv 2511.04981).

``lr[t]`` is the step size of update t; updates 0..tau-1 train the small model, updates tau..T-1 the large
one. S_t is the sum of the first t rates.

Two statements are told apart. :func:`average_gap` is the published one: the difference of two *upper bounds*
on averages weighted by the rates. It bounds no loss gap, and says nothing about the last iterate.
:func:`final_bound` is the last-iterate bound of the large model from step tau on, with its distance at that
step; :func:`mixing_steps` and :func:`latest_step` solve its bias for time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory import last_iterate
from convexlaw.theory._schedule_checks import learning_rates, nonnegative, number, positive, whole_steps

__all__ = [
    "average_gap",
    "compute_ratio",
    "expansion_step",
    "final_bound",
    "flops",
    "latest_step",
    "mixing_steps",
    "mixing_time",
]

Array = NDArray[np.float64]


def average_gap(
    lr: ArrayLike,
    at: int,
    loss_gap: float,
    *,
    distance_at: float | None = None,
    distance: float | None = None,
) -> float:
    """Bound of a grown run minus the bound of the large model trained throughout.

    R = S_tau/S_T (L_small* - L_large*) + (|x_tau - x*|^2 - |x_0 - x*|^2)/(2 S_T), for the losses averaged
    with the rates as weights.

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates of the whole run.
    at : int
        tau, updates of the small model, 0 to T.
    loss_gap : float
        L_small* - L_large* >= 0: what the small model can never learn (nats).
    distance_at, distance : float, optional
        |x_tau - x*| and |x_0 - x*| of the new layers, both or neither. New layers drawn at random are as far
        at tau as they were at the start (the term is 0, the default); copies may be nearer.

    Returns
    -------
    float
        In the unit of the loss; negative where copies come near enough.

    Raises
    ------
    ConvexlawError
        Values outside their range, no positive learning rate.

    Notes
    -----
    It assumes convexity, |grad| <= G, the same shared parameters at the start and the same shared part of
    both optima. The terms with G^2 cancel. Being a difference of upper bounds it may lie above or below the
    difference of the losses. Little learning-rate mass before tau (a late decay) makes the
    first term small.

    References
    ----------
    arXiv 2511.04981; assumptions and caveat as in arXiv 2604.19835, appendix A.

    Examples
    --------
    >>> average_gap([1.0, 1.0, 1.0, 1.0], at=3, loss_gap=1.0)
    0.75
    """
    rates, tau = _split(lr, at)
    if (distance_at is None) != (distance is None):
        raise ConvexlawError("give both distance_at and distance, or neither")
    total = float(rates.sum())
    gap = nonnegative("loss_gap", loss_gap) * float(rates[:tau].sum()) / total
    if distance_at is not None and distance is not None:
        far, start = nonnegative("distance_at", distance_at), nonnegative("distance", distance)
        gap += (far**2 - start**2) / (2 * total)
    return gap


def final_bound(
    lr: ArrayLike, at: int, grad_norm: ArrayLike = 1.0, distance_at: float = 1.0, form: str = "free"
) -> float:
    """Last-iterate bound on the final loss gap of a run whose model is whole from step ``at`` on.

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates of the whole run.
    at : int
        tau, 0 to T - 1.
    grad_norm : float or array_like
        G_t of the updates from ``at`` on, as in :func:`convexlaw.theory.last_iterate.bound`.
    distance_at : float
        D_tau, distance of all parameters from the large model's minimiser at step ``at``.
    form : str
        Form of the bound.

    Returns
    -------
    float
        Its bias is about D_tau^2/(2 (S_T - S_tau)).

    Raises
    ------
    ConvexlawError
        As :func:`convexlaw.theory.last_iterate.bound`; ``at`` outside the run.

    References
    ----------
    arXiv 2607.27731, Theorem 1, applied from step tau on (derived here).

    Examples
    --------
    >>> import numpy as np
    >>> final_bound(np.full(100, 0.1), at=0) == last_iterate.bound(np.full(100, 0.1))
    True
    """
    rates, tau = _split(lr, at, last=1)
    return last_iterate.bound(rates[tau:], grad_norm, distance_at, form)


def mixing_steps(lr: ArrayLike, at: int, distance_at: float, tolerance: float) -> int | None:
    """Count the updates after which the bias of the expansion is below a tolerance.

    The smallest m with S_{tau+m} - S_tau >= D_tau^2/(2 tolerance).

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates of the whole run.
    at : int
        tau, 0 to T.
    distance_at : float
        D_tau.
    tolerance : float
        Largest bias allowed, in the unit of the loss.

    Returns
    -------
    int or None
        None where the run ends before.

    Raises
    ------
    ConvexlawError
        Values outside their range.

    Examples
    --------
    >>> mixing_steps([0.5] * 10, at=4, distance_at=1.0, tolerance=0.5)
    2
    >>> mixing_steps([0.5] * 10, at=9, distance_at=1.0, tolerance=0.5) is None
    True
    """
    rates, tau = _split(lr, at)
    need = nonnegative("distance_at", distance_at) ** 2 / (2 * positive("tolerance", tolerance))
    if need == 0:
        return 0
    reached = np.flatnonzero(np.cumsum(rates[tau:]) >= need * (1 - 1e-12))
    return int(reached[0]) + 1 if reached.size else None


def latest_step(lr: ArrayLike, distance_at: float, tolerance: float) -> int | None:
    """Latest expansion whose bias is below a tolerance at the end: S_T - S_tau >= D_tau^2/(2 tolerance).

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates of the whole run.
    distance_at, tolerance : float
        As in :func:`mixing_steps`.

    Returns
    -------
    int or None
        tau; None where even expansion at step 0 is too late.

    Raises
    ------
    ConvexlawError
        Values outside their range.

    Examples
    --------
    >>> latest_step([0.5] * 10, distance_at=1.0, tolerance=0.5)
    8
    """
    rates = _split(lr, 0)[0]
    need = nonnegative("distance_at", distance_at) ** 2 / (2 * positive("tolerance", tolerance))
    left = np.append(np.cumsum(rates[::-1])[::-1], 0.0)  # S_T - S_tau, summed from the end
    late = np.flatnonzero(left >= need * (1 - 1e-12))
    return int(late[-1]) if late.size else None


def mixing_time(
    grown: ArrayLike, fixed: ArrayLike, at: int, *, steps: ArrayLike | None = None, tolerance: float = 0.005,
    window: int = 1,
) -> int | None:  # fmt: skip
    """Read the mixing time off two loss curves: the first time they meet after the expansion.

    Parameters
    ----------
    grown, fixed : (n,) array_like
        Losses of the grown run and of the large model trained throughout, at the same steps.
    at : int
        tau, the step of the expansion.
    steps : (n,) array_like of int, optional
        Step of each loss, increasing; 0, 1, 2, ... without it.
    tolerance : float
        They meet where |L_grown - L_fixed| < tolerance * L_fixed.
    window : int
        Losses in the trailing mean that smooths both curves (only losses from ``at`` on enter it).

    Returns
    -------
    int or None
        Steps from ``at``; None where the curves do not meet.

    Raises
    ------
    ConvexlawError
        Curves of different length, values outside their range.

    Examples
    --------
    >>> mixing_time([3.0, 3.0, 2.2, 2.001], [3.0, 2.5, 2.1, 2.0], at=1)
    2
    """
    curves = [np.asarray(c, dtype=float) for c in (grown, fixed)]
    at = int(number("at", at, "the step of the expansion, at least 0", lambda x: x >= 0 and x == int(x)))
    where = np.arange(curves[0].size) if steps is None else np.asarray(steps)
    if not curves[0].shape == curves[1].shape == where.shape or where.ndim != 1:
        shapes = ", ".join(str(np.shape(c)) for c in (*curves, where))
        raise ConvexlawError(f"grown, fixed and steps have shapes {shapes}: give three series of one length")
    if np.any(np.diff(where) <= 0):
        raise ConvexlawError("steps do not increase: sort the curves by step")
    size = whole_steps(window)
    after = where >= at
    a, b = (_trailing_mean(c[after], size) for c in curves)
    met = np.flatnonzero(np.abs(a - b) < positive("tolerance", tolerance) * b)
    return int(where[after][met[0]]) - at if met.size else None


def expansion_step(steps: int, mixing: int, cooldown: int = 0) -> int:
    """Step of the expansion by the calibration recipe: tau = T - cooldown - t_mix.

    Calibrate on two short runs, one of the large model and one that grows at the end of its warmup, both
    stopped where their curves meet (:func:`mixing_time`); then grow the long run so that it mixes before its
    cooldown, at an unchanged learning rate.

    Parameters
    ----------
    steps : int
        T.
    mixing : int
        t_mix, updates.
    cooldown : int
        Updates of the cooldown; 0 lets the run mix in its cooldown too, as the notes on the paper have it.

    Returns
    -------
    int

    Raises
    ------
    ConvexlawError
        The run is too short for it.

    References
    ----------
    arXiv 2511.04981, as reported in notes on it.

    Examples
    --------
    >>> expansion_step(10_000, mixing=1000, cooldown=1000)
    8000
    """
    total = whole_steps(steps)
    spent = [number(n, v, "a whole number of updates, at least 0", lambda x: x >= 0 and x == int(x))
             for n, v in (("mixing", mixing), ("cooldown", cooldown))]  # fmt: skip
    found = total - int(sum(spent))
    if found < 0:
        raise ConvexlawError(
            f"steps = {total} is less than mixing + cooldown = {int(sum(spent))}: train longer, or the large "
            "model throughout"
        )
    return found


def compute_ratio(at: float, small: float, large: float) -> float:
    """Compute of a grown run over that of the large model trained throughout: 1 - tau/T (1 - N_s/N_l).

    Parameters
    ----------
    at : float
        tau/T, the fraction of the samples that the small model sees, in [0, 1].
    small, large : float
        N_s <= N_l, parameters. Which ones are counted decides the answer: with embeddings a model without
        blocks has many, without them none.

    Returns
    -------
    float

    Raises
    ------
    ConvexlawError
        Values outside their range.

    Examples
    --------
    >>> round(compute_ratio(0.8, 39e6, 124e6), 3), round(compute_ratio(0.8, 0, 124e6), 3)
    (0.452, 0.2)
    """
    share = number("at", at, "a fraction of the samples in [0, 1]", lambda x: 0 <= x <= 1)
    few, many = _counts(small, large)
    return 1 - share * (1 - few / many)


def flops(tokens: ArrayLike, at: int, small: float, large: float, *, steps: int | None = None) -> float:
    """FLOPs of training, 6 per parameter and token: 6 B (tau N_s + (T - tau) N_l).

    Parameters
    ----------
    tokens : float or (T,) array_like
        B, tokens of an update.
    at : int
        tau, 0 to T.
    small, large : float
        N_s <= N_l, parameters.
    steps : int, optional
        T, where ``tokens`` is one number.

    Returns
    -------
    float

    Raises
    ------
    ConvexlawError
        Values outside their range.

    Examples
    --------
    >>> flops(512, 480_000, 39e6, 124e6, steps=600_000)
    1.032192e+17
    """
    size = np.asarray(tokens, dtype=float)
    if size.ndim == 0:
        if steps is None:
            raise ConvexlawError("one number of tokens an update needs steps, the number of updates")
        size = np.broadcast_to(size, (whole_steps(steps),))
    elif steps is not None and steps != size.size:
        raise ConvexlawError(f"tokens has {size.size} values, steps = {steps}: give one of them")
    if size.ndim != 1 or not bool(np.all(np.isfinite(size) & (size >= 0))):
        raise ConvexlawError("tokens: give finite numbers >= 0, one an update")
    few, many = _counts(small, large)
    tau = _whole_at(at, size.size)
    return 6.0 * (few * float(size[:tau].sum()) + many * float(size[tau:].sum()))


def _counts(small: float, large: float) -> tuple[float, float]:
    few, many = nonnegative("small", small), positive("large", large)
    if few > many:
        raise ConvexlawError(f"small = {few:g} parameters are more than large = {many:g}: swap them")
    return few, many


def _split(lr: Any, at: int, last: int = 0) -> tuple[Array, int]:
    rates = learning_rates(lr)
    if not rates.any():
        raise ConvexlawError("lr has no positive step: nothing is trained")
    return rates, _whole_at(at, rates.size - last)


def _whole_at(at: int, largest: int) -> int:
    rule = f"a whole step from 0 to {largest}"
    return int(number("at", at, rule, lambda x: 0 <= x <= largest and x == int(x)))


def _trailing_mean(values: Array, window: int) -> Array:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, values.size + 1)
    begins = np.maximum(0, ends - window)
    return np.asarray((sums[ends] - sums[begins]) / (ends - begins))
