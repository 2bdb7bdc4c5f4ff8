"""What the SLOPE estimators share: checking data, solving for alpha, predicting."""

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
    from convexlaw.solvers._slope_problem import Problem, Solution
    from convexlaw.solvers.noise import NoiseEstimate

    Vector = NDArray[np.float64]


class SlopeCore(Explained, BaseEstimator):
    """What the SLOPE estimators share; a subclass says which penalty sequence it means."""

    alpha: Any
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

        from convexlaw.solvers._slope_input import as_matrix, column_names, refuse_response

        if _is_plain(X, y, labels=labels):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return X, y, None
        names = column_names(X)
        if names is not None or np.asarray(X).dtype.kind in "OUS":
            as_matrix(X)
        refuse_response(y, labels=labels)
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

    def _solve(self, problem: Problem | GlmProblem, alpha: float) -> None:
        """Solve for alpha and set the fitted attributes."""
        from convexlaw.solvers._glm_path import solve_any
        from convexlaw.solvers.slope import warn_if_short

        start = getattr(self, "coef_", None) if self.warm_start else None
        solution = solve_any(problem, alpha, start)
        warn_if_short(solution, problem.tol, type(self).__name__)
        self._take_solution(problem, solution, alpha)

    def _take_solution(self, problem: Problem | GlmProblem, solution: Solution, alpha: float) -> None:
        self.alpha_ = alpha
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

        from convexlaw.solvers._slope_columns import is_sparse
        from convexlaw.solvers._slope_input import as_matrix, as_offset, column_names, refuse_non_finite

        check_is_fitted(self)
        X = self._encoded(X)
        names = column_names(X)
        if names is not None:
            as_matrix(X)
        X = validate_data(
            self,
            X,
            accept_sparse=("csc", "csr"),
            dtype="numeric",
            ensure_all_finite=False,
            reset=False,
        )
        if not np.isfinite(X.data if is_sparse(X) else X).all():
            refuse_non_finite(X, names)
        eta = np.asarray(X @ self.coef_.T + self.intercept_)
        if offset is not None:
            eta = eta + as_offset(offset, X.shape[0]).reshape(-1, *(1,) * (eta.ndim - 1))
        return np.asarray(eta)


def _is_plain(X: Any, y: Any, *, labels: bool) -> bool:
    """Whether scikit-learn's checks, which take as long as a small fit, have nothing to say on X and y."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2:
        return False
    if X.size == 0 or y.shape != (X.shape[0],) or y.dtype.kind not in "biuf":
        return False
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        return False
    if labels and y.dtype.kind != "b":
        # whole numbers, and fewer of them than would make scikit-learn ask whether they are classes
        few = float(y.max()) - float(y.min()) < 0.5 * y.size - 1.0
        return few and bool(y.dtype.kind != "f" or (np.trunc(y) == y).all())
    return True


class SlopeRegressor(RegressorMixin, SlopeCore):
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

        named = isinstance(self.alpha, str) and self.alpha in ("estimate", "1/n")
        alpha = 0.0 if named else check_alpha(self.alpha)
        problem = self._problem(X, y, sample_weight, offset)
        self.__dict__.pop("noise_", None)
        self.__dict__.pop("sigma_", None)
        if named and self.alpha == "estimate":
            self._estimate(problem)
        else:
            self._solve(problem, 1.0 / problem.total if named else alpha)
        self._total = problem.total
        self._keep(X, y, sample_weight, offset)
        return self

    def _estimate(self, problem: Problem | GlmProblem) -> None:
        """Solve for the alpha that belongs to the noise level, which is estimated on the way."""
        from convexlaw.solvers._slope_problem import Problem
        from convexlaw.solvers.noise import solve_for_noise
        from convexlaw.solvers.slope import warn_if_short

        if not isinstance(problem, Problem):
            raise ConvexlawError(
                "alpha = 'estimate': a noise level belongs to one response with the quadratic loss and "
                "without an offset; pass a number, or choose alpha by SlopeCV"
            )
        noise, solution = solve_for_noise(problem)
        warn_if_short(solution, problem.tol, type(self).__name__)
        self._take_solution(problem, solution, noise.alpha)
        self.noise_: NoiseEstimate = noise
        self.sigma_ = noise.sigma

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
