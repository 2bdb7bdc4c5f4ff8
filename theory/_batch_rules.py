"""Rules about batch sizes: critical batch, noise scale, the joint optimum, Seesaw, the online rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._batch_allocation import coefficients
from convexlaw.theory._schedule_checks import learning_rates, nonnegative, positive, unknown, whole_steps
from convexlaw.theory._shape_constants import ShapeConstants, integrals, shape_constants

__all__ = [
    "JointOptimum",
    "Seesaw",
    "critical_batch_size",
    "joint_optimum",
    "next_batch",
    "noise_scale",
    "noise_scale_series",
    "seesaw",
]

Array = NDArray[np.float64]


def critical_batch_size(lr: Any, sigma2: float, G2: float) -> tuple[float, float]:
    """Critical batch size with a static batch and with the optimal batch schedule.

    With the best peak, (T/Tmin - 1)(N/Nmin - 1) = 1. The critical batch is Nmin/Tmin: sigma^2/G^2 with a
    static batch and (4 s/I) sigma^2/G^2, smaller because fewer samples are needed, with the optimal
    schedule.

    Parameters
    ----------
    lr : str, callable or (T,) array_like
        Schedule name or text, shape on [0, 1], or learning rates (then the sums of these T steps are used).
    sigma2 : float
        Variance of the gradient of one sample (trace), sigma^2.
    G2 : float
        Squared norm of the mean gradient, positive.

    Returns
    -------
    static, scheduled : float
        In samples.

    Raises
    ------
    ConvexlawError
        Values that are not positive; a shape without a mean.

    References
    ----------
    arXiv 2607.27731, section 3; the scheduled value is derived from Theorem 3 there.

    Examples
    --------
    >>> critical_batch_size("linear", 400.0, 1.0)
    (400.0, 400.0)
    """
    ratio = nonnegative("sigma2", sigma2) / positive("G2", G2)
    if isinstance(lr, str):
        gain = shape_constants(lr).batch_gain
    elif isinstance(lr, ShapeConstants):
        gain = lr.batch_gain
    elif callable(lr):
        ends = integrals(lr)
        gain = ShapeConstants("function", ends.mean, ends.noise).batch_gain
    else:
        c = coefficients(lr)[1]
        gain = c.size * float(c.sum()) / float(np.sqrt(c).sum()) ** 2
    return ratio, ratio / gain


@dataclass(frozen=True)
class JointOptimum:
    """Best sum of learning rates under the optimal or a static batch schedule.

    Attributes
    ----------
    total_rate : float
        S*, sum of the learning rates over the run.
    loss : float
        Bound on the loss gap there.
    """

    total_rate: float
    loss: float


def joint_optimum(
    samples: float,
    sigma: float,
    distance: float = 1.0,
    grad_norm: float = 0.0,
    *,
    steps: int | None = None,
    shape: str = "linear",
    scheduled: bool = True,
) -> JointOptimum:
    """Best sum of learning rates when the batch schedule is optimal too, and the loss gap there.

    L - L* = D^2/(2S) + G^2 S I/(2 s T) + 2 sigma^2 S/N, with I/(2 s) instead of 2 for a static batch. At G
    = 0 and with the optimal batch schedule S* = D sqrt(N)/(2 sigma) and L - L* = 2 D sigma/sqrt(N): the
    same for every shape of the learning rate.

    Parameters
    ----------
    samples : float
        N, positive.
    sigma : float
        Standard deviation of the gradient of one sample, >= 0.
    distance : float
        D, positive.
    grad_norm : float
        G, norm of the mean gradient, >= 0; needs ``steps`` where positive.
    steps : int, optional
        T.
    shape : str
        Schedule name or text.
    scheduled : bool
        Optimal batch schedule; False: static batch.

    Returns
    -------
    JointOptimum

    Raises
    ------
    ConvexlawError
        Nothing opposes a large learning rate (sigma = G = 0), ``steps`` missing, values outside their range.

    References
    ----------
    arXiv 2607.27731, Corollary 3.2 and Table 3.

    Examples
    --------
    >>> joint_optimum(1e6, sigma=3.0, distance=2.0)
    JointOptimum(total_rate=333.3333333333333, loss=0.012)
    """
    n, d = positive("samples", samples), positive("distance", distance)
    s2, g2 = nonnegative("sigma", sigma) ** 2, nonnegative("grad_norm", grad_norm) ** 2
    slope = 0.0
    if g2 > 0 or not scheduled:
        c = shape_constants(shape)
        ratio = c.I / c.s
        if not math.isfinite(ratio):
            raise ConvexlawError(
                f"shape {shape!r} ends above 0: its noise grows with log T; give one that decays"
            )
        if g2 > 0:
            if steps is None:
                raise ConvexlawError(
                    "grad_norm > 0 needs steps: the number of steps limits the learning rate too"
                )
            slope += g2 * ratio / (2 * whole_steps(steps))
        slope += 0.0 if scheduled else s2 * ratio / (2 * n)
    slope += 2 * s2 / n if scheduled else 0.0
    if slope == 0:
        raise ConvexlawError("sigma and grad_norm are 0: every larger learning rate is better")
    return JointOptimum(d / math.sqrt(2 * slope), d * math.sqrt(2 * slope))


def noise_scale(B_small: float, B_big: float, g2_small: ArrayLike, g2_big: ArrayLike) -> tuple[Any, Any]:
    """Estimate |mean gradient|^2 and the noise tr(Sigma) from squared gradient norms at two batch sizes.

    E|g_B|^2 = G^2 + S/B at both sizes. Single estimates are noisy and may be negative; for B_simple = S/G^2
    take the ratio of averages (:func:`noise_scale_series`).

    Parameters
    ----------
    B_small, B_big : float
        Two different batch sizes.
    g2_small, g2_big : float or array_like
        Squared norms of the gradients averaged over those batches.

    Returns
    -------
    G2, S : float or array
        Unbiased.

    Raises
    ------
    ConvexlawError
        Batch sizes that are equal or not positive.

    References
    ----------
    McCandlish, Kaplan and Amodei, arXiv 1812.06162, Appendix A.1.

    Examples
    --------
    >>> noise_scale(32, 256, 5.0, 1.5)
    (1.0, 128.0)
    """
    small, big = positive("B_small", B_small), positive("B_big", B_big)
    if small >= big:
        raise ConvexlawError(
            f"B_small = {small:g} and B_big = {big:g}: give a smaller and a larger batch size"
        )
    a, b = np.asarray(g2_small, dtype=float), np.asarray(g2_big, dtype=float)
    g2 = (big * b - small * a) / (big - small)
    s = (a - b) / (1 / small - 1 / big)
    return (float(g2), float(s)) if g2.ndim == 0 else (g2, s)


def noise_scale_series(
    B_small: float, B_big: float, g2_small: ArrayLike, g2_big: ArrayLike, *, memory: float = 100.0
) -> Array:
    """Take the running noise scale B_simple: average of S over average of G^2, exponential averages.

    Parameters
    ----------
    B_small, B_big : float
        Two different batch sizes.
    g2_small, g2_big : (T,) array_like
        Squared gradient norms of every measurement.
    memory : float
        Measurements that the average remembers, >= 1.

    Returns
    -------
    (T,) array
        NaN where the averaged G^2 is not positive yet.

    Raises
    ------
    ConvexlawError
        As :func:`noise_scale`; series of different length.

    Examples
    --------
    >>> noise_scale_series(32, 256, [5.0, 5.0], [1.5, 1.5]).tolist()
    [128.0, 128.0]
    """
    from scipy.signal import lfilter

    g2, s = (np.atleast_1d(x) for x in noise_scale(B_small, B_big, g2_small, g2_big))
    if g2.ndim != 1 or np.size(g2_small) != np.size(g2_big):
        raise ConvexlawError("g2_small and g2_big must be series of the same length")
    if positive("memory", memory) < 1:
        raise ConvexlawError(f"memory = {memory}: give a number of measurements >= 1")
    keep = 1 - 1 / memory
    # the bias of the start cancels in the ratio
    top, bottom = (lfilter([1.0], [1.0, -keep], x) for x in (s, g2))
    out = np.full(g2.size, np.nan)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


@dataclass(frozen=True, eq=False)
class Seesaw:
    """Learning rates and batch sizes that replace a decay of the learning rate.

    Attributes
    ----------
    lr : (T',) array
        Learning rates.
    batch : (T',) array
        Samples of each step.
    steps_saved : float
        1 - T'/T.
    """

    lr: Array
    batch: Array
    steps_saved: float


def seesaw(
    lr: ArrayLike, batch: float, *, factor: float = 2.0, rule: str = "adam", max_batch: float | None = None
) -> Seesaw:
    """Seesaw: where the learning rate would be cut by ``factor``, multiply the batch by it instead.

    With Adam or normalised SGD the rate is cut by sqrt(factor), with SGD not at all. Cuts are counted from
    the peak along the samples of the reference run; as factor -> 1 the share of steps saved tends to 1 -
    mean(lr)/peak: 1 - 2/pi = 36.3 % for the quarter cosine cos(pi u/2). Valid below the critical batch
    size.

    Parameters
    ----------
    lr : (T,) array_like
        Reference learning rates at batch size ``batch``.
    batch : float
        Reference batch size, positive.
    factor : float
        Cut of the learning rate that makes a stage, above 1.
    rule : {"adam", "sgd"}
        Which equivalence holds.
    max_batch : float, optional
        No batch beyond it (the critical batch size, say); further cuts are made in the learning rate.

    Returns
    -------
    Seesaw
        It uses the samples of the reference run: the last step takes what is left.

    Raises
    ------
    ConvexlawError
        Values outside their range, an unknown rule.

    References
    ----------
    arXiv 2510.14717.

    Examples
    --------
    >>> from convexlaw.theory.schedules import step
    >>> result = seesaw(step(8, 1.0, at=0.5, factor=0.25), 10, factor=4)
    >>> result.lr.tolist(), result.batch.tolist()
    ([1.0, 1.0, 1.0, 1.0, 0.5], [10.0, 10.0, 10.0, 10.0, 40.0])
    """
    rates, b0 = learning_rates(lr), positive("batch", batch)
    cut = positive("factor", factor)
    if cut <= 1:
        raise ConvexlawError(
            f"factor = {factor}: give the cut of the learning rate that makes a stage, above 1"
        )
    if rule not in ("adam", "sgd"):
        raise ConvexlawError(unknown("rule", rule, ("adam", "sgd")))
    top = math.inf if max_batch is None else positive("max_batch", max_batch)
    if top < b0:
        raise ConvexlawError(f"max_batch = {max_batch} is below batch = {batch}")
    peak = float(rates.max())
    if peak == 0:
        raise ConvexlawError("lr has no positive step: there is no decay to replace")
    after = int(np.flatnonzero(rates == peak)[-1])
    with np.errstate(divide="ignore"):
        fall = np.maximum.accumulate(np.log(peak / rates[after:]) / math.log(cut))
    # stages of the reference run, one sample clock: cut k is made once the rate has fallen to peak/factor^k
    stage = np.floor(np.minimum(fall, 1e6) + 1e-9)
    largest = np.floor(math.log(top / b0) / math.log(cut) + 1e-9) if math.isfinite(top) else np.inf
    out_lr, out_batch = [rates[:after]], [np.full(after, b0)]
    left = 0.0  # samples of the reference that no whole step has taken yet
    for k, count in zip(*np.unique(stage[rates[after:] > 0], return_counts=True), strict=True):
        samples = left + b0 * float(count)
        raised = min(k, largest)
        size = b0 * cut**raised
        whole = int(samples / size + 1e-9)
        rate = peak * cut ** -(k - raised) * (cut ** (-raised / 2) if rule == "adam" else 1.0)
        out_lr.append(np.full(whole, rate))
        out_batch.append(np.full(whole, size))
        left = max(samples - whole * size, 0.0)
    if left > 1e-9 * b0:
        out_lr.append(np.array([rate]))
        out_batch.append(np.array([left]))
    new_lr, new_batch = np.concatenate(out_lr), np.concatenate(out_batch)
    return Seesaw(new_lr, new_batch, 1 - new_lr.size / rates.size)


def next_batch(lr: float, total_rate: float, samples: float, used: float) -> float:
    """Online rule: the optimal batch of the next step from what has been used, eta N^2/(2 S (N - n)).

    Parameters
    ----------
    lr : float
        Learning rate of the step.
    total_rate : float
        S, the sum of all learning rates of the run.
    samples : float
        N, samples of the run.
    used : float
        n, samples used before the step.

    Returns
    -------
    float
        Capped at what is left. The rule uses about 97 % of N in steps; spend the rest in the last one.

    Raises
    ------
    ConvexlawError
        Values outside their range.

    Examples
    --------
    >>> next_batch(1.0, 100.0, 1000.0, 500.0)
    10.0
    """
    n, left = positive("samples", samples), positive("samples", samples) - nonnegative("used", used)
    if left <= 0:
        return 0.0
    return min(nonnegative("lr", lr) * n * n / (2 * positive("total_rate", total_rate) * left), left)
