"""Duality gaps of any loss by the definition: numpy and scipy alone, none of the solver's code.

From the mean residual R at the best intercept the dual point is theta = s R, s the largest number in [0, 1]
that keeps the dual norm of X'theta / n at alpha or below; the dual value is ``-sum_i w_i f*(-theta_i)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, log_softmax, softmax, xlogy

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def loss_gap(
    loss: str,
    Y: Array,
    X: Any,
    B: Array,
    b0: Array,
    penalty: Array,
    weights: Array,
    offset: Array,
    threshold: float,
    free: bool,
) -> float:
    """Objective less the best dual value at the residuals.

    Parameters
    ----------
    loss : {"quadratic", "logistic", "multinomial", "poisson", "huber"}
    Y : ndarray, shape (n, m)
        0 and 1 for the losses with classes; a missing last column of "multinomial" is the reference class.
    X : ndarray or sparse, shape (n, p)
    B, b0 : ndarray, shapes (p, m), (m,)
    penalty : ndarray, shape (p m,)
        alpha times lambda.
    weights : ndarray, shape (n,)
        Sum to one.
    offset : ndarray, shape (n, 1)
    threshold : float
    free : bool
        Whether the intercepts are free variables.

    Returns
    -------
    float
    """
    product = np.asarray(X @ B)
    eta = product + b0 + offset
    primal = float(weights @ _losses(loss, Y, eta, threshold))
    primal += float(penalty @ np.sort(np.abs(B).reshape(-1))[::-1])
    base = _recentred(loss, Y, product + offset, b0, weights, threshold) if free else eta
    R = _residuals(loss, Y, base, threshold)
    if free:
        # what the root finder left over: as small as rounding, and gone for the losses on a whole line
        R = R - weights @ R if loss == "quadratic" else R
    pull = np.asarray(X.T @ (weights[:, None] * R)).reshape(-1)
    total, allowed = np.cumsum(np.sort(np.abs(pull))[::-1]), np.cumsum(penalty)
    with np.errstate(divide="ignore", invalid="ignore"):
        norm = float(np.where(total > 0.0, total / allowed, 0.0).max())
    s = 1.0 / norm if norm > 1.0 else 1.0
    dual = -float(weights @ (_conjugates(loss, Y, s * R, threshold) + s * (R * offset).sum(axis=1)))
    return primal - dual


def _residuals(loss: str, Y: Array, eta: Array, threshold: float) -> Array:
    if loss == "logistic":
        return np.asarray(Y - expit(eta))
    if loss == "multinomial":
        return Y - _probabilities(Y, eta)
    if loss == "poisson":
        return Y - np.exp(eta)
    return np.clip(Y - eta, -threshold, threshold) if loss == "huber" else Y - eta


def _probabilities(Y: Array, eta: Array) -> Array:
    if (Y.sum(axis=1) == 0.0).any():
        eta = np.column_stack([eta, np.zeros(eta.shape[0])])
    return np.asarray(softmax(eta, axis=1))[:, : Y.shape[1]]


def _losses(loss: str, Y: Array, eta: Array, threshold: float) -> Array:
    """Half deviances, shape (n,)."""
    if loss == "logistic":
        return np.asarray(np.logaddexp(0.0, eta) - Y * eta)[:, 0]
    if loss == "multinomial":
        full, left = eta, Y
        if (Y.sum(axis=1) == 0.0).any():
            full = np.column_stack([eta, np.zeros(eta.shape[0])])
            left = np.column_stack([Y, 1.0 - Y.sum(axis=1)])
        return np.asarray(-(left * log_softmax(full, axis=1)).sum(axis=1))
    if loss == "poisson":
        return np.asarray(np.exp(eta) - Y * eta + xlogy(Y, Y) - Y)[:, 0]
    size = np.abs(Y - eta)
    if loss == "huber":
        return np.where(size <= threshold, 0.5 * size**2, threshold * (size - 0.5 * threshold))[:, 0]
    return np.asarray(0.5 * (size**2).sum(axis=1))


def _conjugates(loss: str, Y: Array, theta: Array, threshold: float) -> Array:
    """f*(-theta), shape (n,)."""
    q = Y - theta
    if loss == "logistic":
        return np.asarray(xlogy(q, q) + xlogy(1.0 - q, 1.0 - q))[:, 0]
    if loss == "multinomial":
        # the reference class takes what is left; without one nothing is
        rest = np.maximum(1.0 - q.sum(axis=1), 0.0)
        return np.asarray(xlogy(q, q).sum(axis=1) + xlogy(rest, rest))
    if loss == "poisson":
        return np.asarray(xlogy(q, q) - q - xlogy(Y, Y) + Y)[:, 0]
    return np.asarray((0.5 * theta**2 - Y * theta).sum(axis=1))


def _recentred(loss: str, Y: Array, eta: Array, b0: Array, weights: Array, threshold: float) -> Array:
    """Predictor with the intercepts at which the mean residuals vanish."""
    from scipy.optimize import root, root_scalar

    def slope(c: Any) -> Array:
        return np.asarray(weights @ _residuals(loss, Y, eta + c, threshold))

    if loss == "multinomial":
        # differences of the intercepts alone matter: the last one, if there is no reference, is fixed
        fixed = 0 if (Y.sum(axis=1) == 0.0).any() else 1
        free = Y.shape[1] - fixed
        tail = np.zeros(fixed)
        start = (b0 - b0[-1])[:free] if fixed else b0
        found = root(lambda c: slope(np.append(c, tail))[:free], start, tol=1e-15)
        if np.abs(found.fun).max() > 1e-9:
            raise ConvexlawError("the intercepts of the dual point were not found; rescale X")
        return eta + np.append(found.x, tail)
    if loss == "quadratic":
        return eta + slope(0.0)
    if loss == "poisson":
        top = float(eta.max())
        return eta + (np.log(weights @ Y[:, 0] / (weights @ np.exp(eta[:, 0] - top))) - top)
    low, high = float(b0[0]) - 1.0, float(b0[0]) + 1.0
    width = 1.0
    while slope(low)[0] < 0.0 and width < 1e18:
        low, width = low - width, 2.0 * width
    width = 1.0
    while slope(high)[0] > 0.0 and width < 1e18:
        high, width = high + width, 2.0 * width
    return eta + root_scalar(lambda c: slope(c)[0], bracket=(low, high), xtol=1e-15, rtol=1e-14).root
