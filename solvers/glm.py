"""Generalised linear models with the sorted L1 penalty: classifier, deviances, an independent certificate.

The objective, here and everywhere in the package, is

    (1/2n) sum_i deviance(y_i, o_i + b0 + x_i B) + alpha * sum_i lambda_i |vec B|_(i)

with lambda non-increasing; the deviance of the quadratic loss is ``(y - eta)^2``. With K classes or responses
B has K columns and the sorted L1 norm runs over all p K coefficients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._glm_scores import explained_deviance, mean_deviance, mean_of
from convexlaw.solvers._parameters import PenaltySequence, store
from convexlaw.solvers._slope_base import SlopeCore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["SlopeClassifier", "explained_deviance", "mean_deviance", "mean_of"]


class SlopeClassifier(PenaltySequence, ClassifierMixin, SlopeCore):
    """SLOPE for classes: logistic or multinomial regression with the sorted L1 penalty, certified.

    Minimises over B and b0

        -(1/n) sum_i log P(y_i | b0 + x_i B) + alpha * sum_i lambda_i |vec B|_(i)

    with lambda non-increasing; with sample or class weights the average is a weighted one.

    Parameters
    ----------
    alpha : float
        Multiplier of the penalty, >= 0.
    lam : array_like, shape (p,) or (p K,), optional
        Explicit penalty sequence, non-increasing and >= 0, over all coefficients.
    lambda_type, q, theta1, theta2
        See :class:`convexlaw.Slope`.
    loss : {"logistic", "multinomial"}
        Two classes and one coefficient a feature; or any number of classes, each with its coefficients.
    reference : bool
        "multinomial" without coefficients for the last class (p (K - 1) in all). The penalty then depends on
        which class that is; the symmetric form does not.
    class_weight : dict or "balanced", optional
        Weight of each class, times the sample weights; "balanced" makes them inverse to the class's mass.
    fit_intercept, centering, scaling, tol, max_iter, warm_start
        As in :class:`convexlaw.Slope`.

    Attributes
    ----------
    classes_ : ndarray, shape (K,)
    coef_ : ndarray, shape (1, p) or (K, p)
        One row for "logistic", that of the second class; one row a class for "multinomial".
    intercept_ : ndarray, shape (1,) or (K,)
    lambda_, dual_gap_, null_objective_, n_iter_, n_clusters_, converged_
        As in :class:`convexlaw.Slope`.

    References
    ----------
    Bogdan et al., arXiv 1407.3824 (SLOPE).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 4))
    >>> y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=100) > 0, "yes", "no")
    >>> model = SlopeClassifier(alpha=0.02).fit(X, y)
    >>> model.classes_, model.coef_.shape, model.score(X, y) > 0.8, model.converged_
    (array(['no', 'yes'], dtype='<U3'), (1, 4), True, True)
    """

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        lam: ArrayLike | None = None,
        lambda_type: str = "bh",
        q: float = 0.1,
        theta1: float = 1.0,
        theta2: float = 0.5,
        loss: str = "logistic",
        reference: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        centering: str = "none",
        scaling: str = "none",
        tol: float = 1e-6,
        max_iter: int = 100_000,
        warm_start: bool = False,
    ) -> None:
        store(self, locals())

    def __sklearn_tags__(self) -> Any:
        """Tags; the logistic loss knows two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.loss == "multinomial"
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> SlopeClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        y : array_like, shape (n,)
            Labels.
        sample_weight : array_like, shape (n,), optional
        offset : array_like, shape (n,), optional
            Known part of the linear predictor of "logistic".

        Returns
        -------
        self

        Raises
        ------
        ConvexlawError
            Bad data or parameters; the message names the value, the column and the rows.

        Warns
        -----
        ConvergenceWarning
            The duality gap is above ``tol`` after ``max_iter`` iterations, or alpha = 0 and the classes are
            separated.
        """
        from convexlaw.solvers.slope import check_alpha

        alpha = check_alpha(self.alpha)
        matrix, codes, names, weights = self._coded(X, y, sample_weight, offset)
        width = 1 if self.loss == "logistic" else self.classes_.size - self.reference
        problem = self._problem_of(
            matrix, codes, names, width, weights, offset, loss=self.loss, reference=bool(self.reference)
        )
        self._solve(problem, alpha)
        self.coef_: Vector = np.atleast_2d(self.coef_)
        self.intercept_: Vector = np.atleast_1d(self.intercept_)
        if self.loss == "multinomial" and self.reference:
            self.coef_ = np.vstack([self.coef_, np.zeros(matrix.shape[1])])
            self.intercept_ = np.append(self.intercept_, 0.0)
        self._keep(X, y, weights, offset)
        return self

    def _coded(
        self, X: Any, y: Any, sample_weight: Any, offset: Any
    ) -> tuple[Any, NDArray[np.int64], list[Any] | None, Vector | None]:
        """Check the data; matrix, numbers of the classes, names, weights times class weights."""
        from convexlaw.solvers._glm_problem import encode

        if self.loss not in ("logistic", "multinomial"):
            raise ConvexlawError(f"loss = {self.loss!r}: use 'logistic' or 'multinomial'")
        if offset is not None and self.loss != "logistic":
            raise ConvexlawError("offset: only loss = 'logistic' takes one")
        matrix, y, names = self._data(X, y, labels=True)
        self.classes_, codes = encode(y, matrix.shape[0], self.loss)
        return matrix, codes, names, self._class_weights(codes, sample_weight)

    def _class_weights(self, codes: NDArray[np.int64], sample_weight: Any) -> Vector | None:
        """Sample weights times class weights."""
        from convexlaw.solvers._slope_input import as_weights

        if self.class_weight is None:
            return None if sample_weight is None else as_weights(sample_weight, codes.size)
        given = as_weights(sample_weight, codes.size)
        labels = self.classes_.tolist()
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ConvexlawError(f"class_weight = {self.class_weight!r}: use 'balanced' or a dict")
            mass = np.bincount(codes, weights=given, minlength=len(labels))
            factor = np.divide(given.sum() / len(labels), mass, out=np.zeros(len(labels)), where=mass > 0.0)
        else:
            unknown = [label for label in self.class_weight if label not in labels]
            if unknown:
                raise ConvexlawError(f"class_weight names {unknown[0]!r}; the classes are {labels}")
            factor = as_weights([self.class_weight.get(label, 1.0) for label in labels], len(labels))
        weights: Vector = given * factor[codes]
        return weights

    def decision_function(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """Linear predictor.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n,) for two classes (positive: the second one), else (n, K)
        """
        eta = self._predictor(X, offset)
        if self.classes_.size > 2:
            return eta
        return eta[:, 0] if eta.shape[1] == 1 else eta[:, 1] - eta[:, 0]

    def predict_proba(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n, K)
        """
        return np.exp(self.predict_log_proba(X, offset))

    def predict_log_proba(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n, K)
        """
        from scipy.special import log_softmax

        eta = self._predictor(X, offset)
        if eta.shape[1] == 1:
            eta = np.column_stack([np.zeros(eta.shape[0]), eta])
        return np.asarray(log_softmax(eta, axis=1))

    def predict(self, X: Any, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Most probable class.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n,)
        """
        score = self.decision_function(X, offset)
        at = (score > 0.0).astype(np.int64) if score.ndim == 1 else score.argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[at]
        return chosen

    def deviance(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Mean deviance, minus twice the mean log-likelihood of y, in nats.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        y : array_like, shape (n,)
        sample_weight, offset : array_like, shape (n,), optional

        Returns
        -------
        float
        """
        return mean_deviance(
            self.loss, y, self._predictor(X, offset), sample_weight, classes=self.classes_.tolist()
        )
