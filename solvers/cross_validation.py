"""SLOPE with the penalty chosen by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._cv_classifier import SlopeClassifierCV
from convexlaw.solvers._cv_curve import CVCurve
from convexlaw.solvers._cv_estimator import CrossValidated
from convexlaw.solvers._parameters import PenaltySequence, store
from convexlaw.solvers._slope_base import SlopeRegressor
from convexlaw.solvers.estimators import Slope, TwoLevelSlope

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from convexlaw.solvers.path import SlopePath

    Vector = NDArray[np.float64]

__all__ = ["CVCurve", "SlopeCV", "SlopeClassifierCV", "TwoLevelSlopeCV"]


class _SlopeRegressorCV(CrossValidated, SlopeRegressor):
    """What the cross-validated regressors share."""

    _several = True

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Choose the penalty by cross-validation and fit it to all rows.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        y : array_like, shape (n,), or (n, m) for several responses of the quadratic loss
        sample_weight : array_like, shape (n,), optional
            Weights >= 0, in the fits and in the scores of the folds.
        offset : array_like, shape (n,), optional
            Known part of the linear predictor: the log of the exposure, for the Poisson loss.
        groups : array_like, shape (n,), optional
            For splitters that keep groups together.

        Returns
        -------
        self

        Raises
        ------
        ConvexlawError
            Bad data or parameters; the message names them.

        Warns
        -----
        ConvergenceWarning
            A path, of all rows or of a fold, has duality gaps above ``tol``.
        """
        data = self._data(X, y)
        self._check_loss()
        self._choose(data, sample_weight, sample_weight, offset, groups)
        self._keep(X, y, sample_weight, offset)
        return self


class SlopeCV(PenaltySequence, _SlopeRegressorCV):
    """SLOPE with alpha chosen by cross-validation.

    Minimises over b and b0

        (1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)

    with lambda non-increasing, for the alphas of one grid on all rows and on the training rows of every fold.

    Parameters
    ----------
    alphas : array_like, shape (m,), optional
        Alphas to try; by default a geometric grid from alpha_max of all rows, which ends early as that of
        :func:`convexlaw.slope_path`.
    n_alphas : int
        Length of the grid.
    eps : float, optional
        Smallest over largest alpha of the grid; 1e-2 where p > n and 1e-4 otherwise, by default.
    cv : int, splitter, iterable of (train, test), or None
        As in scikit-learn; a whole number means contiguous folds.
    repeats : int
        Rounds of folds; with more than one they are shuffled.
    selection : {"min", "1se"}
        The alpha of the best mean score, or the largest whose mean is within one standard error of it.
    scoring : str or callable, optional
        A scorer of scikit-learn (greater is better); by default the mean deviance, which is the
        squared error for the quadratic loss (less is better).
    lam, lambda_type, q, theta1, theta2, loss, threshold
        As in :class:`convexlaw.Slope`.
    fit_intercept, centering, scaling, tol, max_iter, solver
        As in :class:`convexlaw.Slope`. "gaussian" depends on the number of rows: a fold has its own sequence.
    n_jobs : int, optional
        Folds solved at a time, as in joblib.
    backend : str, optional
        A joblib backend, "loky", "threading", or "dask" with a running ``distributed.Client``.
    random_state : int, RandomState or None
        Of the shuffles.
    progress : bool, optional
        Progress bar over the folds; by default only on an interactive terminal.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    alphas_ : ndarray, shape (m,)
        Decreasing.
    cv_scores_ : ndarray, shape (m, k)
        Scores by alpha and fold; the folds of all repeats one after the other.
    cv_mean_, cv_se_ : ndarray, shape (m,)
        Mean over folds (each counts the same) and its standard error.
    curve_ : CVCurve
        All of this as a value, with ``.to_frame()`` and ``.plot()``.
    curves_ : list of CVCurve
        One for each penalty sequence that was tried; here one.
    path_ : SlopePath
        The path on all rows.
    best_index_ : int
        Position of ``curve_`` in ``curves_``.
    coef_, intercept_, lambda_, dual_gap_, null_objective_, n_iter_, n_clusters_, converged_
        Of the fit at ``alpha_`` on all rows, as in :class:`convexlaw.Slope`.

    Notes
    -----
    All folds share the alphas. For n much larger than p they share one Gram matrix too, from which each takes
    away that of the rows it leaves out; a model of the costs decides. Every solution is certified on the data
    of its fold.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> y = X[:, :3] @ [2.0, 2.0, 1.0] + rng.normal(size=100)
    >>> model = SlopeCV(cv=5, selection="1se").fit(X, y)
    >>> bool(model.alpha_ > model.alphas_[model.curve_.best]), np.flatnonzero(model.coef_)
    (True, array([ 0,  1,  2, 15]))
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
        loss: str = "quadratic",
        threshold: float = 1.345,
        fit_intercept: bool = True,
        centering: str = "none",
        scaling: str = "none",
        tol: float = 1e-6,
        max_iter: int = 100_000,
        solver: str = "auto",
        n_jobs: int | None = None,
        backend: str | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        store(self, locals())

    def _point(self) -> Slope:
        return Slope(loss=self.loss, threshold=self.threshold)


class TwoLevelSlopeCV(_SlopeRegressorCV):
    """Two-level SLOPE with alpha, the ratio of the levels and their share chosen by cross-validation.

    Minimises over b and b0

        (1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)

    with lambda_i = 1 for the top ``round(fraction p)`` ranks and ``low_ratio`` below, for every pair of a
    ratio and a fraction and the alphas of its own grid. Ratio 1 is the Lasso.

    Parameters
    ----------
    low_ratios : sequence of float
        Ratios low/high to try, in [0, 1].
    fractions : sequence of float
        Shares of the ranks with the high weight to try, in [0, 1].
    alphas, n_alphas, eps, cv, repeats, selection, scoring, n_jobs, backend, random_state, progress
        As in :class:`SlopeCV`. "1se" takes the largest alpha within one standard error on the best pair.
    loss, threshold, fit_intercept, centering, scaling, tol, max_iter, solver
        As in :class:`convexlaw.Slope`.

    Attributes
    ----------
    low_ratio_, fraction_ : float
        The best pair; of pairs with the same sequence the first.
    alpha_, alphas_, cv_scores_, cv_mean_, cv_se_, curve_, path_
        On the best pair, as in :class:`SlopeCV`.
    curves_ : list of CVCurve
        One a pair, those with the same sequence once.
    best_index_ : int
        Position of ``curve_`` in ``curves_``.
    coef_, intercept_, lambda_, dual_gap_, null_objective_, n_iter_, n_clusters_, converged_
        Of the fit on all rows, as in :class:`convexlaw.Slope`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> y = X[:, :3] @ [2.0, 2.0, 1.0] + rng.normal(size=100)
    >>> model = TwoLevelSlopeCV(low_ratios=[0.3, 1.0], fractions=[0.1, 0.3], cv=5, n_alphas=30).fit(X, y)
    >>> len(model.curves_), sorted(set(model.to_frame().columns) - set(model.curve_.to_frame().columns))
    (3, ['fraction', 'low_ratio'])
    """

    def __init__(
        self,
        *,
        low_ratios: ArrayLike = (0.3, 0.6, 1.0),
        fractions: ArrayLike = (0.1, 0.3),
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
        eps: float | None = None,
        cv: Any = 5,
        repeats: int = 1,
        selection: str = "min",
        scoring: Any = None,
        loss: str = "quadratic",
        threshold: float = 1.345,
        fit_intercept: bool = True,
        centering: str = "none",
        scaling: str = "none",
        tol: float = 1e-6,
        max_iter: int = 100_000,
        solver: str = "auto",
        n_jobs: int | None = None,
        backend: str | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        store(self, locals())

    def _pairs(self, p: int) -> list[tuple[float, float, Vector]]:
        """Ratio, fraction and sequence of the pairs, those with a new sequence only."""
        from convexlaw.theory.sorted_l1 import two_level_sequence

        found: dict[bytes, tuple[float, float, Vector]] = {}
        for ratio in np.atleast_1d(np.asarray(self.low_ratios, dtype=np.float64)):
            for fraction in np.atleast_1d(np.asarray(self.fractions, dtype=np.float64)):
                if not 0.0 <= ratio <= 1.0:
                    raise ConvexlawError(f"low_ratios: {ratio:g}: low/high must lie in [0, 1]")
                lam = two_level_sequence(p, 1.0, float(ratio), float(fraction))
                if lam[0] > 0.0:
                    # a sequence and a multiple of it share their path
                    found.setdefault((lam / lam[0]).tobytes(), (float(ratio), float(fraction), lam))
        if not found:
            raise ConvexlawError(
                f"low_ratios = {self.low_ratios!r}, fractions = {self.fractions!r}: no pair with a penalty; "
                "give ratios or fractions above 0"
            )
        return list(found.values())

    def _sequences(self, size: int) -> list[tuple[str, dict[str, Any]]]:
        return [
            (f"low/high {ratio:g}, fraction {fraction:g}", {"lam": lam})
            for ratio, fraction, lam in self._pairs(size)
        ]

    def _point(self) -> TwoLevelSlope:
        return TwoLevelSlope(loss=self.loss, threshold=self.threshold)

    def _take(self, paths: list[SlopePath], best: int) -> None:
        super()._take(paths, best)
        self._tried = [(ratio, fraction) for ratio, fraction, _ in self._pairs(self.lambda_.size)]
        self.low_ratio_, self.fraction_ = self._tried[best]

    def to_frame(self) -> pd.DataFrame:
        """One row for each pair and alpha: low_ratio, fraction, and the columns of :class:`CVCurve`."""
        import pandas as pd
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        parts = []
        for i, ((ratio, fraction), curve) in enumerate(zip(self._tried, self.curves_, strict=True)):
            part = curve.to_frame()
            part["chosen"] &= i == self.best_index_
            part.insert(0, "low_ratio", ratio)
            part.insert(1, "fraction", fraction)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)
