"""Convex last-iterate bounds on the loss gap f(x) - f* of SGD with learning rates eta_t = ``lr[t]``.

With D the distance from start to minimiser, G_t^2 = E|g_t|^2, S the sum of rates, tail_t what follows step t:

- ``tail``: D^2/(2S) + 1/2 sum_{t<T} eta_t^2 G_t^2/tail_t + 1/2 eta_T G_T^2, whose last step is only a weight.
- ``free``: all steps are applied and the weight of a virtual next step is the best one, min over v > 0 of
  D^2/(2(S+v)) + 1/2 sum_t eta_t^2 G_t^2/(tail_t + v) + 1/2 v G_{T+1}^2.
- ``tight``: the same with the optimal weights of the online-to-last-iterate identity; about half of ``free``.
- ``averaged``: (D^2 + sum_t eta_t^2 G_t^2)/(2S), for the average of the iterates weighted by eta.

A step with rate 0 is no step: ``tail`` and ``averaged`` stand at the last positive step and are infinite
where there is none; ``free`` and ``tight`` are D G there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._exact_bounds import constant_bound, linear_bound, wsd_upper_bound
from convexlaw.theory._exam import Exam, qualify
from convexlaw.theory._noise_sum import check_span, horizons, noise_sum
from convexlaw.theory._schedule_checks import learning_rates, nonnegative, unknown
from convexlaw.theory._shape_constants import ShapeConstants, shape_constants, shape_table

__all__ = [
    "FORMS",
    "Exam",
    "ShapeConstants",
    "bound",
    "constant_bound",
    "curve",
    "linear_bound",
    "noise_sum",
    "optimal_peak",
    "qualify",
    "shape_constants",
    "shape_table",
    "wsd_upper_bound",
]

Array = NDArray[np.float64]

FORMS = ("free", "tail", "tight", "averaged")
"""Forms of the bound, as above."""
_TIGHT_LIMIT = 20_000
# where D/(max lr max G) is larger, steps change the bound of staying by less than 1 in 1e16 up to T = 1e24
_STILL = 1e40


def bound(lr: ArrayLike, grad_norm: ArrayLike = 1.0, distance: float = 1.0, form: str = "free") -> float:
    """Bound on the expected loss gap at the end of ``lr``.

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates eta_t >= 0.
    grad_norm : float, (T,) or (T+1,) array_like
        G_t, root mean square of the gradient norm, noise included; the last of T + 1 values belongs to the
        point whose loss is bounded (with T values it takes the last).
    distance : float
        D, distance from start to minimiser.
    form : {"free", "tail", "tight", "averaged"}
        See the module's first lines.

    Returns
    -------
    float
        Upper bound on E f - f*, in units of grad_norm * distance.

    Raises
    ------
    ConvexlawError
        Negative or non-finite values, shapes that do not match, an unknown form.

    References
    ----------
    arXiv 2310.07831, Theorem 10 (three-term form); arXiv 2607.27731, Theorem 1 (one sum: ``tail``);
    arXiv 2307.11134 (weights behind ``tight``).

    Examples
    --------
    >>> from convexlaw.theory.schedules import linear
    >>> lr = linear(100, peak=0.1)
    >>> [round(bound(lr, form=form), 4) for form in ("tail", "free", "tight", "averaged")]
    [0.2037, 0.2001, 0.0995, 0.1325]
    """
    size = np.size(lr)
    return float(curve(lr, grad_norm, distance, form, at=[size - 1] if size else None)[0])


def curve(
    lr: ArrayLike,
    grad_norm: ArrayLike = 1.0,
    distance: float = 1.0,
    form: str = "free",
    at: ArrayLike | None = None,
    *,
    method: str = "auto",
) -> Array:
    """Bounds along a run: entry k is about the loss after the updates 0..k, ``bound(lr[:k+1], ...)``.

    Parameters
    ----------
    lr : (T,) array_like
        Learning rates eta_t >= 0.
    grad_norm : float, (T,) or (T+1,) array_like
        G_t, as in :func:`bound`. The virtual next step of horizon k takes ``grad_norm[k+1]``, the gradient at
        the point that is bounded: ``curve(lr, g)[k] == bound(lr[:k+1], g[:k+2])``.
    distance : float
        D, distance from start to minimiser.
    form : {"free", "tail", "tight", "averaged"}
        As in :func:`bound`. ``tight`` has no fast form: above 20 000 steps it needs ``at``.
    at : (n,) array_like of int, optional
        0-based horizons k; default every step.
    method : {"auto", "fast", "direct"}
        Sums of exponentials in O(T) time and memory with a relative error below 2e-11, the definition in
        O(T n), or the cheaper one (forms ``tail`` and ``free``).

    Returns
    -------
    (n,) array
        Upper bounds, in units of grad_norm * distance.

    Raises
    ------
    ConvexlawError
        As :func:`bound`; horizons outside 0..T-1; ``tight`` at every one of more than 20 000 steps.

    References
    ----------
    As :func:`bound`, at every horizon; the sum of exponentials is ours.

    Examples
    --------
    >>> from convexlaw.theory.schedules import wsd
    >>> curve(wsd(1000, peak=0.02), at=[499, 799, 999]).round(4).tolist()
    [0.1266, 0.1127, 0.0699]
    """
    if form not in FORMS:
        raise ConvexlawError(unknown("form of the bound", form, FORMS))
    rates = check_span(learning_rates(lr))
    norms = _grad_norms(grad_norm, rates.size)
    far = nonnegative("distance", distance)
    steps = horizons(at, rates.size - 1, default=rates.size)
    if form == "tight" and at is None and rates.size > _TIGHT_LIMIT:
        raise ConvexlawError(
            f"form='tight' at every one of {rates.size} steps costs O(T^2): give the horizons as at=[...] "
            f"(every step only up to {_TIGHT_LIMIT}), or use form='free'"
        )
    return _bounds(rates, norms, far, form, steps, method)


def optimal_peak(shape: ArrayLike, grad_norm: ArrayLike = 1.0, distance: float = 1.0) -> tuple[float, float]:
    """Best factor gamma for lr = gamma * shape, and the ``tail`` bound there.

    Parameters
    ----------
    shape : (T,) array_like
        Learning rates up to a factor; with max(shape) = 1 the factor is the peak learning rate.
    grad_norm : float, (T,) or (T+1,) array_like
        G_t, as in :func:`bound`.
    distance : float
        D, distance from start to minimiser.

    Returns
    -------
    peak : float
        gamma* = sqrt(T1/T2) where the bound is T1/gamma + T2 gamma.
    bound : float
        2 sqrt(T1 T2); at r gamma* it is larger by (r + 1/r)/2.

    Raises
    ------
    ConvexlawError
        No positive step, or every gradient norm is 0 (then no peak is best).

    References
    ----------
    arXiv 2602.07145, equation (2.5).

    Examples
    --------
    >>> from convexlaw.theory.schedules import linear
    >>> peak, value = optimal_peak(linear(1000, 1.0))
    >>> round(peak * 1000**0.5, 3), round(value * 1000**0.5, 3)
    (0.996, 2.006)
    """
    h = learning_rates(shape)
    norms = _grad_norms(grad_norm, h.size)
    far = nonnegative("distance", distance)
    top, largest = float(h.max()), float(norms[:-1].max())
    if top == 0:
        raise ConvexlawError("shape has no positive step: there is no peak to choose; give a positive shape")
    if largest == 0:
        raise ConvexlawError(
            "grad_norm is 0 everywhere: every larger peak is better; give gradient norms > 0"
        )
    h, g2 = h / top, (norms / largest) ** 2
    noise = float(noise_sum(h, h**2 * g2[:-1], g2, at=[h.size - 1], form="tail")[0])
    total = math.fsum(h)
    if noise == 0:
        raise ConvexlawError("grad_norm is 0 at every positive step: every larger peak is better")
    return far / (top * largest * math.sqrt(total * noise)), far * largest * math.sqrt(noise / total)


def _bounds(rates: Array, norms: Array, far: float, form: str, at: NDArray[np.int64], method: str) -> Array:
    """Bounds in scaled units: h = lr/max, g = G/max, kappa = D/(max lr max G), unit D max G/2.

    unit * [kappa/(S+v) + (sum h^2 g^2/(tail+v) + v g^2)/kappa] keeps squares of tiny or huge numbers away.
    """
    from convexlaw.theory import _last_iterate_kernels as kernels

    top, largest = float(rates.max()), float(norms.max())
    applied = at + 1
    none = np.cumsum(rates > 0)[at] == 0
    if top == 0:
        return np.where(form in ("tail", "averaged"), np.inf, far * norms[applied])
    h = rates / top
    totals = np.asarray(kernels.running_sum(h))[at]
    if largest == 0:
        with np.errstate(divide="ignore"):
            return (0.5 * far * far / top) / totals if form in ("tail", "averaged") else np.zeros(at.size)
    kappa, unit = far / top / largest, 0.5 * far * largest
    if form in ("free", "tight") and kappa > _STILL:
        least = norms[applied]
        if form == "tight":  # its weights may also stand on the last step: D min(G_T, G_{T+1})
            last = np.maximum.accumulate(np.where(rates > 0, np.arange(rates.size), -1))[at]
            least = np.where(last >= 0, np.minimum(least, norms[last]), least)
        return _finite(far * least, far, top, largest)
    if far == 0:
        kappa, unit = 0.0, 0.5 * top * largest * largest
    if not (math.isfinite(kappa) and math.isfinite(unit)) or (far > 0 and (kappa == 0 or unit == 0)):
        raise _overflow(far, top, largest)
    g2 = (norms / largest) ** 2 / (kappa if far > 0 else 1.0)
    costs = h**2 * g2[:-1]
    if form == "free":
        return unit * noise_sum(h, costs, g2, at=applied, form="free", bias=kappa, method=method)
    if form == "tight":
        positive = np.flatnonzero(h > 0)
        counts = np.searchsorted(positive, applied)
        values = kernels.tight_sums(h[positive], costs[positive], counts, g2[applied], kappa)
        return unit * np.asarray(values)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if form == "tail":
            noise = noise_sum(h, costs, g2, at=at, form="tail", method=method)
            values = kappa / totals + noise
        else:
            values = (kappa + np.asarray(kernels.running_sum(costs))[at]) / totals
        values = unit * values
    _finite(values[~none], far, top, largest)
    return np.where(none, np.inf, values)


def _overflow(far: float, top: float, largest: float) -> ConvexlawError:
    return ConvexlawError(
        f"distance = {far}, largest rate {top}, gradient norm {largest} overflow together; rescale them"
    )


def _finite(values: Array, far: float, top: float, largest: float) -> Array:
    if not np.isfinite(values).all():
        raise _overflow(far, top, largest)
    return values


def _grad_norms(grad_norm: ArrayLike, size: int) -> Array:
    """G as (T+1,) values."""
    try:
        g = np.asarray(grad_norm, dtype=float)
    except (TypeError, ValueError):
        raise ConvexlawError(f"grad_norm = {grad_norm!r}: give a number, or one a step") from None
    if g.ndim == 0:
        g = np.full(size + 1, float(g))
    if g.shape not in ((size,), (size + 1,)):
        raise ConvexlawError(f"grad_norm has shape {g.shape}: give a number, {size} or {size + 1} values")
    if g.size == size:
        g = np.append(g, g[-1])
    bad = np.flatnonzero(~(np.isfinite(g) & (g >= 0)))
    if bad.size:
        raise ConvexlawError(f"grad_norm[{bad[0]}] = {g[bad[0]]}: gradient norms are finite and >= 0")
    return g
