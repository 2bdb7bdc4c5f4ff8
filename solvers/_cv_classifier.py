"""SLOPE for classes with alpha chosen by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from convexlaw.solvers._cv_estimator import CrossValidated
from convexlaw.solvers._parameters import store
from convexlaw.solvers.glm import SlopeClassifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

__all__ = ["SlopeClassifierCV"]


class SlopeClassifierCV(CrossValidated, SlopeClassifier):
    """SLOPE for classes with alpha chosen by cross-validation.

    Minimises over B and b0

        -(1/n) sum_i log P(y_i | b0 + x_i B) + alpha * sum_i lambda_i |vec B|_(i)

    with lambda non-increasing, for the alphas of one grid on all rows and on the training rows of every fold.

    Parameters
    ----------
    alphas, n_alphas, eps, repeats, selection, n_jobs, backend, random_state, progress
        As in :class:`convexlaw.SlopeCV`.
    cv : int, splitter, iterable of (train, test), or None
        As in scikit-learn; a whole number means folds balanced over the classes.
    scoring : str or callable, optional
        A scorer of scikit-learn (greater is better); by default the mean deviance, minus twice the
        log-likelihood in nats (less is better).
    class_weight : dict or "balanced", optional
        As in :class:`convexlaw.SlopeClassifier`, from the classes of all rows; in the fits
        alone, not in the scores.
    lam, lambda_type, q, theta1, theta2, loss, reference, fit_intercept, centering, scaling, tol, max_iter
        As in :class:`convexlaw.SlopeClassifier`.

    Attributes
    ----------
    alpha_, alphas_, cv_scores_, cv_mean_, cv_se_, curve_, curves_, path_, best_index_
        As in :class:`convexlaw.SlopeCV`.
    classes_, coef_, intercept_, lambda_, dual_gap_, null_objective_, n_iter_, n_clusters_, converged_
        Of the fit at ``alpha_`` on all rows, as in :class:`convexlaw.SlopeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 4))
    >>> y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=100) > 0, "yes", "no")
    >>> model = SlopeClassifierCV(cv=5, n_alphas=20).fit(X, y)
    >>> model.cv_scores_.shape[1], bool(model.score(X, y) > 0.8)
    (5, True)
    """

    def __init__(
        self,
        *,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
        eps: float | None = None,
        cv: Any = 5,
        repeats: int = 1,
        selection: str = "min",
        scoring: Any = None,
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
        n_jobs: int | None = None,
        backend: str | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        store(self, locals())

    def _point(self) -> SlopeClassifier:
        return SlopeClassifier(loss=self.loss, reference=self.reference)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> SlopeClassifierCV:
        """Choose alpha by cross-validation and fit it to all rows.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        y : array_like, shape (n,)
            Labels.
        sample_weight : array_like, shape (n,), optional
            Weights >= 0, in the fits and in the scores of the folds.
        offset : array_like, shape (n,), optional
            Known part of the linear predictor of "logistic".
        groups : array_like, shape (n,), optional
            For splitters that keep groups together.

        Returns
        -------
        self

        Raises
        ------
        ConvexlawError
            Bad data or parameters, or a fold without a class.

        Warns
        -----
        ConvergenceWarning
            A path, of all rows or of a fold, has duality gaps above ``tol``.
        """
        matrix, codes, names, weights = self._coded(X, y, sample_weight, offset)
        self._choose((matrix, codes, names), weights, sample_weight, offset, groups, self.classes_)
        # the path was solved for the numbers of the classes
        self.path_ = replace(self.path_, classes=tuple(self.classes_.tolist()))
        self._keep(X, y, weights, offset)
        return self
