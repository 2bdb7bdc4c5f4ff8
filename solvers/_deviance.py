"""Deviances of the losses, row by row, and of the model without features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp, xlogy

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


def unit_deviance(loss: str, y: Vector, eta: Vector, threshold: float = 0.0) -> Vector:
    """Deviance of every row: twice the loss above that of a perfect fit.

    Parameters
    ----------
    loss : {"quadratic", "huber", "poisson", "logistic", "multinomial"}
    y : ndarray, shape (n, q)
        Class numbers, shape (n, 1), for the last two.
    eta : ndarray, shape (n, q)
        Linear predictor.
    threshold : float
        Of the Huber loss.

    Returns
    -------
    ndarray, shape (n, q), or (n, 1) for the multinomial loss
    """
    if loss == "quadratic":
        return (y - eta) ** 2
    if loss == "huber":
        size = np.abs(y - eta)
        return np.where(size <= threshold, size**2, threshold * (2.0 * size - threshold))
    if loss == "poisson":
        mean = np.exp(eta)
        # xlogy - y eta instead of y log(y / mean): finite where the mean underflows
        return 2.0 * (xlogy(y, y) - y * eta - (y - mean))
    if loss == "logistic":
        return 2.0 * (np.logaddexp(0.0, eta) - y * eta)
    if loss == "multinomial":
        own = np.take_along_axis(eta, y.astype(np.intp), axis=1)
        return 2.0 * (logsumexp(eta, axis=1, keepdims=True) - own)
    raise ConvexlawError(f"loss = {loss!r}: its deviance is not known")


def null_predictor(
    loss: str, y: Vector, weights: Vector, offset: Vector, threshold: float, free: bool
) -> Vector:
    """Linear predictor of the model without features, the best constant where the intercept is free.

    Parameters
    ----------
    loss, y, threshold
        As in :func:`unit_deviance`.
    weights : ndarray, shape (n,)
    offset : ndarray, shape (n, 1)
    free : bool
        Whether there is an intercept.

    Returns
    -------
    ndarray, shape (n, q), or (n, K) for K classes
    """
    share = weights / weights.sum()
    if loss == "multinomial":
        counts = np.bincount(y[:, 0].astype(np.intp), weights=share)
        with np.errstate(divide="ignore"):
            levels = np.log(counts) if free else np.zeros(counts.size)
        return np.tile(levels, (y.shape[0], 1)) + offset
    zero: Vector = np.zeros_like(y) + offset
    if not free:
        return zero
    constant: Vector
    if loss == "quadratic":
        constant = share @ (y - offset)
        return np.asarray(zero + constant)
    if loss == "huber":
        constant = np.array([_huber_centre(c, share, threshold) for c in (y - offset).T])
        return np.asarray(zero + constant)
    mean = share @ y
    with np.errstate(divide="ignore"):
        constant = (
            np.log(mean / (share @ np.exp(offset))) if loss == "poisson" else np.log(mean / (1.0 - mean))
        )
    return np.asarray(zero + constant)


def _huber_centre(values: Vector, share: Vector, threshold: float) -> float:
    """Root of the sum of clipped differences."""
    from scipy.optimize import brentq

    low, high = float(values.min()), float(values.max())
    if low == high:
        return low
    return float(brentq(lambda c: float(share @ np.clip(values - c, -threshold, threshold)), low, high))
