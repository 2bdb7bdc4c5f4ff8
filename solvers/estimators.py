"""SLOPE estimators with scikit-learn's interface."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._explained import Explained

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from convexlaw.solvers._glm_problem import GlmProblem
    from convexlaw.solvers._slope_problem import Problem

    Vector = NDArray[np.float64]

__all__ = ["Slope", "TwoLevelSlope"]


class _SlopeCore(Explained, BaseEstimator):
    """What the SLOPE estimators share; a subclass says which penalty sequence it means."""

    alpha: float
    fit_intercept: bool
    centering: str
    scaling: str
    tol: float
    max_iter: int
    solver: str
    warm_start: bool

    #: whether y may have several columns
    _several = False

    def _penalty(self, size: int) -> dict[str, Any]:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._several and getattr(self, "loss", "quadratic") == "quadratic"
        return tags

    def _data(self, X: Any, y: Any, *, labels: bool = False) -> tuple[Any, Any, list[Any] | None]:
        """Check X and y as scikit-learn asks: matrix, response, names of the columns."""
        from sklearn.utils.validation import column_or_1d, validate_data

        from convexlaw.solvers._slope_input import as_matrix, column_names

        names = column_names(X)
        if names is not None or np.asarray(X).dtype.kind in "OUS":
            as_matrix(X)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=("csc", "csr"),
            dtype="numeric",
            ensure_all_finite=False,
            y_numeric=not labels,
            multi_output=self._several,
        )
        if self._several and y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if labels:
            from sklearn.utils.multiclass import check_classification_targets

            check_classification_targets(y)
        return as_matrix(X), y, names

    def _options(self) -> dict[str, Any]:
        """Keywords of a problem that do not depend on the penalty."""
        if not isinstance(self.max_iter, Integral) or isinstance(self.max_iter, bool):
            raise ConvexlawError(f"max_iter = {self.max_iter!r}: a whole number is needed")
        if not isinstance(self.tol, Real):
            raise ConvexlawError(f"tol = {self.tol!r}: a number is needed")
        return {
            "fit_intercept": self.fit_intercept,
            "centering": self.centering,
            "scaling": self.scaling,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "solver": getattr(self, "solver", "auto"),
        }

    def _problem_of(
        self, matrix: Any, y: Any, names: list[Any] | None, width: int, weights: Any, offset: Any, **loss: Any
    ) -> Problem | GlmProblem:
        """Return the problem of checked data with ``width`` columns of coefficients."""
        from convexlaw.solvers._glm_problem import make_problem

        options = self._options() | self._penalty(matrix.shape[1] * width)
        return make_problem(matrix, y, sample_weight=weights, offset=offset, names=names, **loss, **options)

    def _solve(self, problem: Problem | GlmProblem) -> None:
        """Solve for alpha and set the fitted attributes."""
        from convexlaw.solvers._glm_path import solve_any
        from convexlaw.solvers.slope import check_alpha, warn_if_short

        start = getattr(self, "coef_", None) if self.warm_start else None
        solution = solve_any(problem, check_alpha(self.alpha), start)
        warn_if_short(solution, problem.tol, type(self).__name__)
        self.coef_: Vector = solution.coef.T
        self.intercept_ = solution.intercept
        self.lambda_: Vector = problem.lam
        self.dual_gap_ = solution.gap
        self.null_objective_ = solution.null
        self.n_iter_ = max(1, solution.n_iter)
        self.n_clusters_ = solution.n_clusters
        self.converged_ = solution.converged

    def _predictor(self, X: Any, offset: Any) -> Vector:
        """Linear predictor, with as many columns as the coefficients have rows."""
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self)
        X = self._encoded(X)
        X = validate_data(self, X, accept_sparse=("csc", "csr"), dtype="numeric", reset=False)
        eta = np.asarray(X @ self.coef_.T + self.intercept_)
        if offset is not None:
            eta = eta + np.asarray(offset, dtype=np.float64).reshape(-1, *(1,) * (eta.ndim - 1))
        return np.asarray(eta)


class _SlopeBase(RegressorMixin, _SlopeCore):
    """What the SLOPE regressors share."""

    loss: str = "quadratic"
    threshold: float = 1.345

    def __sklearn_tags__(self) -> Any:
        """Tags; counts are not negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _check_loss(self) -> None:
        if self.loss not in ("quadratic", "poisson", "huber"):
            classes = "; SlopeClassifier has losses for classes" if isinstance(self.loss, str) else ""
            raise ConvexlawError(f"loss = {self.loss!r}: use 'quadratic', 'poisson' or 'huber'{classes}")

    def _problem(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> Problem | GlmProblem:
        matrix, y, names = self._data(X, y)
        self._check_loss()
        width = y.shape[1] if y.ndim == 2 else 1
        return self._problem_of(
            matrix, y, names, width, sample_weight, offset, loss=self.loss, threshold=self.threshold
        )

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
            Dense of any order and real dtype, CSC or CSR; neither copied nor densified.
        y : array_like, shape (n,), or (n, m) for several responses of the quadratic loss
        sample_weight : array_like, shape (n,), optional
            Weights >= 0; the loss is their weighted average, so an integer weight is a repeated row.
        offset : array_like, shape (n,), optional
            Known part of the linear predictor: the log of the exposure, for the Poisson loss.

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
            The duality gap is above ``tol`` after ``max_iter`` iterations.
        """
        from convexlaw.solvers.slope import check_alpha

        check_alpha(self.alpha)
        self._solve(self._problem(X, y, sample_weight, offset))
        self._keep(X, y, sample_weight, offset)
        return self

    def predict(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """Predict the mean response.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n,) or (n, m)
        """
        from convexlaw.solvers.glm import mean_of

        return mean_of(self.loss, self._predictor(X, offset))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """R^2 of the prediction, or D^2 for the Poisson loss: the share of the deviance that is explained.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        y : array_like, shape (n,) or (n, m)
        sample_weight, offset : array_like, shape (n,), optional

        Returns
        -------
        float
            At most 1; 0 for a model that knows the mean of y (and the offset) alone.
        """
        from convexlaw.solvers.glm import explained_deviance

        if self.loss == "poisson":
            return explained_deviance("poisson", y, self._predictor(X, offset), sample_weight, offset)
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, offset), sample_weight=sample_weight))

    def deviance(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Mean deviance: the squared error, or what the loss has in its place.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        y : array_like, shape (n,) or (n, m)
        sample_weight, offset : array_like, shape (n,), optional

        Returns
        -------
        float
        """
        from convexlaw.solvers.glm import mean_deviance

        return mean_deviance(self.loss, y, self._predictor(X, offset), sample_weight, self.threshold)


class Slope(_SlopeBase):
    """SLOPE: linear, Poisson or Huber regression with the sorted L1 penalty, to a certified duality gap.

    Minimises over b and b0

        (1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)

    with lambda non-increasing; with sample weights the average is a weighted one.

    Parameters
    ----------
    alpha : float
        Multiplier of the penalty, >= 0; at 0 the least-squares solution of minimal norm.
    lam : array_like, shape (p,), optional
        Explicit penalty sequence, non-increasing and >= 0.
    lambda_type : {"bh", "gaussian", "oscar", "lasso"}
        Sequence where ``lam`` is None.
    q : float
        False discovery rate of "bh" and "gaussian".
    theta1, theta2 : float
        Parameters of "oscar": ``theta1 + theta2 (p - i)``.
    loss : {"quadratic", "poisson", "huber"}
        Half of its mean deviance stands in place of the quadratic term; "poisson" has a log link. With y of
        shape (n, m) the quadratic loss is summed over responses, the sorted L1 norm runs over all p m
        coefficients.
    threshold : float
        Residual from which "huber" is linear, in units of y.
    fit_intercept : bool
        A free intercept; centring is implicit, sparse X stays sparse.
    centering : {"none", "mean", "min"}
        Fixed shift of the columns; only matters without an intercept. It is then part of ``intercept_``.
    scaling : {"none", "sd", "l1", "l2", "max_abs"}
        Columns are divided by this before they are penalised; ``coef_`` is in the units of X.
    tol : float
        Duality gap to reach, as a share of the objective at zero.
    max_iter : int
        Bound on epochs of coordinate descent and Newton steps.
    solver : {"auto", "gram", "working_gram", "columns", "residual"}
        Form of the inner problem; "auto" chooses by a model of the costs (the only one of other losses).
    warm_start : bool
        Start from the coefficients of the previous fit.

    Attributes
    ----------
    coef_ : ndarray, shape (p,), or (m, p) for m responses
    intercept_ : float, or ndarray, shape (m,)
    lambda_ : ndarray, shape (p,) or (p m,)
        The penalty sequence that alpha multiplies.
    dual_gap_ : float
        Duality gap over all features, computed from the data at the end, in the units of the objective.
    null_objective_ : float
        Objective of the zero coefficients; ``dual_gap_ <= tol * null_objective_`` where converged.
    n_iter_ : int
    n_clusters_ : int
        Distinct nonzero magnitudes, the degrees of freedom.
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a data frame.

    References
    ----------
    Bogdan et al., arXiv 1407.3824 (SLOPE); Larsson et al., arXiv 2210.14780 (coordinate descent over
    clusters).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 4))
    >>> y = X @ [3.0, 3.0, 0.0, 0.0] + rng.normal(size=100)
    >>> model = Slope(alpha=0.5).fit(X, y)
    >>> model.coef_.round(3), model.n_clusters_, model.converged_
    (array([1.824, 1.824, 0.   , 0.   ]), 1, True)
    """

    _several = True

    def __init__(
        self,
        *,
        alpha: float = 1.0,
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
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
        self.lam = lam
        self.lambda_type = lambda_type
        self.q = q
        self.theta1 = theta1
        self.theta2 = theta2
        self.loss = loss
        self.threshold = threshold
        self.fit_intercept = fit_intercept
        self.centering = centering
        self.scaling = scaling
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start

    def _penalty(self, size: int) -> dict[str, Any]:
        return {
            "lam": self.lam,
            "lambda_type": self.lambda_type,
            "q": self.q,
            "theta1": self.theta1,
            "theta2": self.theta2,
        }


class TwoLevelSlope(_SlopeBase):
    """Two-level SLOPE: the weight ``high`` on the largest coefficients and ``low`` on the others.

    Minimises over b and b0

        (1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)

    with lambda_i = high for the top ``round(fraction p)`` ranks and low below.

    Parameters
    ----------
    alpha : float
        Multiplier of the penalty, >= 0.
    high, low : float
        Weights, ``high >= low >= 0``.
    fraction : float
        Share of the ranks with the high weight, in [0, 1].
    loss, threshold, fit_intercept, centering, scaling, tol, max_iter, solver, warm_start
        As in :class:`Slope`.

    Attributes
    ----------
    coef_, intercept_, lambda_, dual_gap_, null_objective_, n_iter_, n_clusters_, converged_
        As in :class:`Slope`.

    References
    ----------
    Bu et al., arXiv 2507.09110.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 4))
    >>> y = X @ [3.0, 3.0, 0.0, 0.0] + rng.normal(size=100)
    >>> TwoLevelSlope(alpha=0.5, high=2.0, low=1.0, fraction=0.5).fit(X, y).lambda_
    array([2., 2., 1., 1.])
    """

    _several = True

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        high: float = 1.0,
        low: float = 0.5,
        fraction: float = 0.1,
        loss: str = "quadratic",
        threshold: float = 1.345,
        fit_intercept: bool = True,
        centering: str = "none",
        scaling: str = "none",
        tol: float = 1e-6,
        max_iter: int = 100_000,
        solver: str = "auto",
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
        self.high = high
        self.low = low
        self.fraction = fraction
        self.loss = loss
        self.threshold = threshold
        self.fit_intercept = fit_intercept
        self.centering = centering
        self.scaling = scaling
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start

    def _penalty(self, size: int) -> dict[str, Any]:
        from convexlaw.theory.sorted_l1 import two_level_sequence

        return {"lam": two_level_sequence(size, self.high, self.low, self.fraction)}
