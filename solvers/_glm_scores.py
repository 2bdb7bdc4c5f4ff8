"""Means and deviances of the losses, as functions of a linear predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["explained_deviance", "mean_deviance", "mean_of"]


def mean_of(loss: str, eta: Vector, n_classes: int = 0) -> Vector:
    """Mean response of a linear predictor.

    Parameters
    ----------
    loss : {"quadratic", "logistic", "multinomial", "poisson", "huber"}
    eta : ndarray, shape (n, ...)
        "multinomial": classes along the second axis, all of them or all but the last.
    n_classes : int
        Of "multinomial".

    Returns
    -------
    ndarray, shape (n, ...)
        Probabilities for the losses with classes.
    """
    from scipy.special import expit, softmax

    if loss == "logistic":
        return np.asarray(expit(eta))
    if loss == "multinomial":
        if eta.shape[1] < n_classes:
            eta = np.concatenate([eta, np.zeros_like(eta[:, :1])], axis=1)
        return np.asarray(softmax(eta, axis=1))
    if loss == "poisson":
        with np.errstate(over="ignore"):
            return np.exp(eta)
    return eta


def mean_deviance(
    loss: str,
    y: ArrayLike,
    eta: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float = 1.345,
    classes: Sequence[Any] = (),
) -> float:
    """Weighted mean of the deviances of all rows, summed over responses.

    Parameters
    ----------
    loss : {"quadratic", "logistic", "multinomial", "poisson", "huber"}
    y : array_like, shape (n,) or (n, K)
        Labels for the losses with classes.
    eta : array_like, shape (n,) or (n, K)
        Linear predictor, offset included.
    sample_weight : array_like, shape (n,), optional
    threshold : float
        Of "huber".
    classes : sequence, optional
        Labels in the order of the classes; those of y, sorted, by default.

    Returns
    -------
    float
        Squared error for "quadratic", minus twice the log-likelihood for the losses with classes, in nats.

    Raises
    ------
    ConvexlawError
        Labels that are no class, shapes that do not fit.

    Examples
    --------
    >>> round(mean_deviance("logistic", [0, 1], [0.0, 0.0]), 4)
    1.3863
    """
    from convexlaw.solvers._deviance import unit_deviance
    from convexlaw.solvers._slope_input import as_weights

    given = np.asarray(y)
    table = given.reshape(given.shape[0], -1)
    linear = np.asarray(eta, dtype=np.float64)
    linear = linear.reshape(linear.shape[0], -1)
    if table.shape[0] != linear.shape[0]:
        raise ConvexlawError(f"y has {table.shape[0]} rows, eta {linear.shape[0]}; they must agree")
    if loss in ("logistic", "multinomial"):
        labels = np.unique(table) if len(classes) == 0 else np.asarray(classes)
        order = np.argsort(labels, kind="stable")
        at = np.minimum(np.searchsorted(labels, table[:, 0], sorter=order), labels.size - 1)
        codes = order[at]
        unknown = labels[codes] != table[:, 0]
        if unknown.any():
            raise ConvexlawError(
                f"y has the class {table[unknown, 0].tolist()[0]!r}; known are {labels.tolist()}"
            )
        table = codes[:, None]
        if loss == "multinomial" and linear.shape[1] == labels.size - 1:
            linear = np.column_stack([linear, np.zeros(linear.shape[0])])
    with np.errstate(over="ignore"):
        units = unit_deviance(loss, table.astype(np.float64), linear, threshold).sum(axis=1)
    weights = as_weights(sample_weight, units.size)
    return float(weights @ units / weights.sum())


def explained_deviance(
    loss: str,
    y: ArrayLike,
    eta: ArrayLike,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> float:
    """D^2: the share of the deviance of the best constant, next to the offset, that a predictor explains.

    Parameters
    ----------
    loss : {"quadratic", "poisson"}
    y : array_like, shape (n,)
    eta : array_like, shape (n,)
        Linear predictor, offset included.
    sample_weight, offset : array_like, shape (n,), optional

    Returns
    -------
    float
        1 for a perfect fit, 0 for the constant; where y is constant, 1 or 0.

    Raises
    ------
    ConvexlawError
        Negative counts.
    """
    from convexlaw.solvers._deviance import null_predictor
    from convexlaw.solvers._slope_input import as_response, as_weights, row_list

    response = as_response(y, np.shape(y)[0])[:, None]
    bad = np.flatnonzero(response < 0.0)
    if loss == "poisson" and bad.size:
        raise ConvexlawError(f"y = {response[bad[0], 0]:g} in {row_list(bad)}: counts must be >= 0")
    weights = as_weights(sample_weight, response.size)
    known = np.zeros_like(response) if offset is None else np.asarray(offset, dtype=np.float64)[:, None]
    constant = null_predictor(loss, response, weights, known, 0.0, True)
    null = mean_deviance(loss, response, constant, weights)
    own = mean_deviance(loss, response, eta, weights)
    if null <= 0.0:
        return 1.0 if own <= 0.0 else 0.0
    return 1.0 - own / null
