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

    from convexlaw.solvers._slope_problem import Problem

    Vector = NDArray[np.float64]

__all__ = ["Slope", "TwoLevelSlope"]


class _SlopeBase(Explained, RegressorMixin, BaseEstimator):
    """What the SLOPE regressors share; a subclass says which penalty sequence it means."""

    alpha: float
    fit_intercept: bool
    centering: str
    scaling: str
    tol: float
    max_iter: int
    solver: str
    warm_start: bool

    def _penalty(self, p: int) -> dict[str, Any]:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _data(self, X: Any, y: Any) -> tuple[Any, Any, list[Any] | None]:
        """Check X and y as scikit-learn asks: matrix, response, names of the columns."""
        from sklearn.utils.validation import validate_data

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
            y_numeric=True,
            multi_output=False,
        )
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
            "solver": self.solver,
        }

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        from convexlaw.solvers._slope_problem import Problem

        matrix, y, names = self._data(X, y)
        options = self._options() | self._penalty(matrix.shape[1])
        return Problem(matrix, y, sample_weight=sample_weight, names=names, **options)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
            Dense of any order and real dtype, CSC or CSR; neither copied nor densified.
        y : array_like, shape (n,)
        sample_weight : array_like, shape (n,), optional
            Weights >= 0; the loss is their weighted average, so an integer weight is a repeated row.

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
        from convexlaw.solvers.slope import check_alpha, solve, warn_if_short

        alpha = check_alpha(self.alpha)
        problem = self._problem(X, y, sample_weight)
        engine = problem.engine()
        start = getattr(self, "coef_", None) if self.warm_start else None
        if start is not None and start.shape == (problem.p,) and np.isfinite(start).all():
            engine.start_at(problem.design.seen(np.asarray(start, dtype=np.float64)))
        solution = solve(problem, alpha, engine)
        warn_if_short(solution, problem.tol, type(self).__name__)
        self.coef_: Vector = solution.coef
        self.intercept_ = solution.intercept
        self.lambda_: Vector = problem.lam
        self.dual_gap_ = solution.gap
        self.null_objective_ = solution.null
        self.n_iter_ = max(1, solution.n_iter)
        self.n_clusters_ = solution.n_clusters
        self.converged_ = solution.converged
        self._keep(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> Vector:
        """Predict the response.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)

        Returns
        -------
        ndarray, shape (n,)
        """
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self)
        X = self._encoded(X)
        X = validate_data(self, X, accept_sparse=("csc", "csr"), dtype="numeric", reset=False)
        prediction: Vector = np.asarray(X @ self.coef_ + self.intercept_)
        return prediction


class Slope(_SlopeBase):
    """SLOPE: linear regression with the sorted L1 penalty, solved to a certified duality gap.

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
    loss : {"quadratic"}
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
        Form of the inner problem; "auto" chooses by a model of the costs.
    warm_start : bool
        Start from the coefficients of the previous fit.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
    intercept_ : float
    lambda_ : ndarray, shape (p,)
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
        self.fit_intercept = fit_intercept
        self.centering = centering
        self.scaling = scaling
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start

    def _penalty(self, p: int) -> dict[str, Any]:
        if self.loss != "quadratic":
            raise ConvexlawError(f"loss = {self.loss!r}: use 'quadratic'")
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
    fit_intercept, centering, scaling, tol, max_iter, solver, warm_start
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

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        high: float = 1.0,
        low: float = 0.5,
        fraction: float = 0.1,
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
        self.fit_intercept = fit_intercept
        self.centering = centering
        self.scaling = scaling
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start

    def _penalty(self, p: int) -> dict[str, Any]:
        from convexlaw.theory.sorted_l1 import two_level_sequence

        return {"lam": two_level_sequence(p, self.high, self.low, self.fraction)}
