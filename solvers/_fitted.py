"""A fitted SLOPE model with data, in one form for every loss: what summaries and refits work on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._deviance import null_predictor, unit_deviance
from convexlaw.solvers._slope_columns import column_scales
from convexlaw.solvers._slope_input import as_matrix, as_weights, column_names
from convexlaw.theory.sorted_l1 import sorted_l1_pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]


@dataclass(frozen=True)
class Training:
    """Data that a model was fitted on, as they were given; no copies."""

    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model and data.

    Attributes
    ----------
    loss : {"quadratic", "huber", "poisson", "logistic", "multinomial"}
    X : ndarray or sparse, shape (n, p)
    y : ndarray, shape (n, q)
        Responses; class numbers (n, 1) for the logistic and the multinomial loss.
    weights : ndarray, shape (n,)
    offset : ndarray, shape (n, 1)
    coef : ndarray, shape (q, p)
        One row a response or class, in the units of X; one row for two classes.
    intercept : ndarray, shape (q,)
    scale : ndarray, shape (p,)
        What the columns were divided by before they were penalised.
    names : tuple of str, length p
    outputs : tuple of str, length q
        Names of the responses or classes.
    classes : ndarray
        Labels of a classifier, empty for the other losses.
    threshold : float
        Of the Huber loss.
    free : bool
        Whether there is a free intercept.
    rows : ndarray, shape (n,)
        Labels of the rows: the index of a data frame, else their numbers from 0.
    """

    loss: str
    X: Any
    y: Vector
    weights: Vector
    offset: Vector
    coef: Vector
    intercept: Vector
    scale: Vector
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    classes: NDArray[Any]
    threshold: float
    free: bool
    rows: NDArray[Any]

    @property
    def n(self) -> int:
        """Number of rows with positive weight."""
        return int(np.count_nonzero(self.weights))

    @cached_property
    def predictor(self) -> Vector:
        """Linear predictor, shape (n, q)."""
        return np.asarray(self.X @ self.coef.T) + self.intercept + self.offset

    @cached_property
    def deviance(self) -> float:
        """Weighted sum of the deviances of the rows."""
        return self._total(self.predictor)

    @cached_property
    def null_deviance(self) -> float:
        """Deviance of the model without features."""
        return self._total(
            null_predictor(self.loss, self.y, self.weights, self.offset, self.threshold, self.free)
        )

    def _total(self, eta: Vector) -> float:
        return float(self.weights @ unit_deviance(self.loss, self.y, eta, self.threshold).sum(axis=1))

    @property
    def scaled(self) -> Vector:
        """Coefficients of the scaled columns, the ones that are penalised, shape (q, p)."""
        return self.coef * self.scale

    @property
    def clusters(self) -> Index:
        """Cluster of every coefficient, shape (q, p): 0 is zero, 1 the smallest magnitude."""
        return cluster_numbers(self.scaled)


def cluster_numbers(scaled: Vector) -> Index:
    """Return ranks of the nonzero magnitudes from the smallest; equal up to rounding is equal."""
    size = np.abs(scaled).ravel()
    order = np.argsort(size, kind="stable")
    level = size[order]
    # coefficients went through a division by the scale and back
    merged = np.maximum.accumulate(np.where(np.diff(level, prepend=0.0) > 1e-12 * level, level, 0.0))
    rounded = np.empty_like(level)
    rounded[order] = merged
    return np.abs(sorted_l1_pattern(rounded)).reshape(scaled.shape)


def loss_of(model: Any) -> str:
    """Name of the loss of an estimator."""
    return str(getattr(model, "loss", "quadratic"))


def fitted(model: Any, training: Training) -> Fitted:
    """Bring a fitted model and data into the common form.

    Parameters
    ----------
    model : estimator
        Fitted.
    training : Training

    Returns
    -------
    Fitted

    Raises
    ------
    ConvexlawError
        Data that do not fit the model.
    """
    X = as_matrix(training.X)
    n, p = X.shape
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    if p != coef.shape[1]:
        raise ConvexlawError(
            f"X has {p} columns, the model {coef.shape[1]} features; pass the features it knows"
        )
    y = np.asarray(training.y)
    y = y.reshape(-1, 1) if y.ndim == 1 else y
    if y.shape[0] != n:
        raise ConvexlawError(f"X has {n} rows, y {y.shape[0]}; they must agree")
    loss = loss_of(model)
    classes = np.asarray(getattr(model, "classes_", []))
    if classes.size:
        codes = np.searchsorted(classes, y[:, 0])
        known = classes[np.minimum(codes, classes.size - 1)] == y[:, 0]
        if not known.all():
            raise ConvexlawError(f"y has the class {y[~known, 0][0]!r}; the model knows {classes.tolist()}")
        if coef.shape[0] == 1:
            loss = "logistic"
        y = codes.reshape(-1, 1)
    offset = np.zeros((n, 1)) if training.offset is None else np.asarray(training.offset).reshape(n, 1)
    weights = as_weights(training.sample_weight, n)
    return Fitted(
        loss=loss,
        X=X,
        y=y.astype(np.float64),
        weights=weights,
        offset=offset.astype(np.float64),
        coef=coef,
        intercept=np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), coef.shape[:1]),
        scale=scale_of(model, X, weights),
        names=feature_names(model, training.X),
        outputs=output_names(model, training.y, coef.shape[0]),
        classes=classes,
        threshold=float(getattr(model, "threshold", 0.0)),
        free=bool(model.fit_intercept),
        rows=np.asarray(training.X.index) if column_names(training.X) is not None else np.arange(n),
    )


def scale_of(model: Any, X: Any, weights: Vector) -> Vector:
    """Return what the columns are divided by, shape (p,); ones without scaling."""
    scale = column_scales(X, model.scaling, weights)
    return np.ones(X.shape[1]) if scale is None else np.asarray(scale, dtype=np.float64)


def feature_names(model: Any, X: Any = None) -> tuple[str, ...]:
    """Names of the features, x0, x1, ... without any."""
    given = getattr(model, "feature_names_in_", None)
    if given is None and X is not None:
        given = column_names(X)
    p = np.atleast_2d(model.coef_).shape[1]
    return tuple(map(str, given)) if given is not None else tuple(f"x{j}" for j in range(p))


def output_names(model: Any, y: Any, q: int) -> tuple[str, ...]:
    """Names of the rows of the coefficients: classes, columns of y, or y0, y1, ..."""
    classes = getattr(model, "classes_", None)
    if classes is not None:
        return tuple(map(str, classes[-1:] if q == 1 else classes))
    given = getattr(model, "response_names_", None) or list(getattr(y, "columns", []))
    if len(given) == q:
        return tuple(map(str, given))
    name = getattr(y, "name", None)
    if q == 1:
        return (str(name) if name is not None else "y",)
    return tuple(f"y{k}" for k in range(q))
