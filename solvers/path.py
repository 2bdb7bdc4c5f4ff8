"""The SLOPE path: solutions for a decreasing sequence of alphas, each to its own certificate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._glm_path import GlmRun
from convexlaw.solvers._glm_problem import GlmProblem, make_problem
from convexlaw.solvers._slope_input import as_matrix, column_names
from convexlaw.solvers._slope_path import PathRun, alpha_grid
from convexlaw.solvers.slope import check_alpha

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from convexlaw.solvers._slope_problem import Problem

    Vector = NDArray[np.float64]

__all__ = ["SlopePath", "slope_path"]


@dataclass(frozen=True, eq=False)
class SlopePath(Result):
    """Solutions along a path, one column an alpha, in the order in which the alphas were given.

    Attributes
    ----------
    alphas : ndarray, shape (m,)
    coefs : ndarray, shape (p, m)
        In the units of X; (p, K, m) for K responses or classes.
    intercepts : ndarray, shape (m,), or (K, m)
    dual_gaps : ndarray, shape (m,)
        Duality gaps over all features, in the units of the objective.
    n_clusters : ndarray of int, shape (m,)
        Distinct nonzero magnitudes, the degrees of freedom.
    n_iter : ndarray of int, shape (m,)
    converged : ndarray of bool, shape (m,)
    deviance_ratios : ndarray, shape (m,)
        Share of the deviance of the null model that is explained.
    lambda_ : ndarray, shape (p,)
        The penalty sequence that alpha multiplies.
    alpha_max : float
        Smallest alpha at which all coefficients are zero.
    null : float
        Objective of the zero coefficients, P(0).
    tol : float
    stopped : str
        Why the path ended before its last alpha; empty where it did not.
    feature_names : tuple of str
        Names of the columns of X, x0, x1, ... without any.
    loss : str
    threshold : float
        Of the Huber loss.
    classes : tuple
        Labels of the losses with classes, empty for the others.
    """

    alphas: Vector
    coefs: Vector
    intercepts: Vector
    dual_gaps: Vector
    n_clusters: NDArray[np.int64]
    n_iter: NDArray[np.int64]
    converged: NDArray[np.bool_]
    deviance_ratios: Vector
    lambda_: Vector
    alpha_max: float
    null: float
    tol: float
    stopped: str = ""
    feature_names: tuple[str, ...] = field(default=(), repr=False)
    loss: str = "quadratic"
    threshold: float = 0.0
    classes: tuple[Any, ...] = ()

    _figure: ClassVar[str] = "slope:plot_slope_path"

    def __str__(self) -> str:
        """Summary in a few lines."""
        p, m = self.coefs.shape[0], self.alphas.size
        worst = float((self.dual_gaps / self.null).max(initial=0.0)) if self.null > 0 else 0.0
        last = int(np.argmin(self.alphas))
        ratio = self.alphas[last] / self.alpha_max if self.alpha_max > 0 else 0.0
        lines = [
            f"SLOPE path ({self.loss}): {m} alphas, {p} features",
            f"  alpha from {self.alphas.max():.6g} to {self.alphas[last]:.6g} ({ratio:.3g} alpha_max)",
            f"  at the end {np.count_nonzero(self.coefs[..., last])} nonzero coefficients, "
            f"{self.n_clusters[last]} clusters, deviance ratio {self.deviance_ratios[last]:.4f}",
            f"  largest duality gap {worst:.2e} P(0) (tol {self.tol:g}), "
            f"{int(self.converged.sum())} of {m} converged, {int(self.n_iter.sum())} iterations",
        ]
        if self.stopped:
            lines.append(f"  ended early: {self.stopped}")
        return "\n".join(lines)

    def interpolate(self, alphas: ArrayLike) -> tuple[Vector, Vector]:
        """Coefficients and intercepts between the alphas of the path.

        For a fixed penalty sequence the exact path of the quadratic loss is piecewise linear in alpha, so
        linear interpolation is exact where no cluster forms or breaks in between; elsewhere it is close.

        Parameters
        ----------
        alphas : float or array_like, shape (k,)
            Not below the smallest alpha of the path; above alpha_max the coefficients are zero.

        Returns
        -------
        coefs : ndarray, shape (p, k) or (p, K, k)
        intercepts : ndarray, shape (k,) or (K, k)

        Raises
        ------
        ConvexlawError
            An alpha below the path, or above it where the path does not reach alpha_max.
        """
        wanted = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        order = np.argsort(self.alphas, kind="stable")
        grid, coefs, intercepts = self.alphas[order], self.coefs[..., order], self.intercepts[..., order]
        low, high = grid[0], grid[-1]
        for a in wanted:
            check_alpha(a)
            if a < low * (1.0 - 1e-12) or (
                a > high * (1.0 + 1e-12) and high < self.alpha_max * (1.0 - 1e-12)
            ):
                raise ConvexlawError(
                    f"alpha = {a:g} lies outside the path [{low:g}, {high:g}]: extend the path"
                )
        inside = np.clip(wanted, low, high)
        right = np.clip(np.searchsorted(grid, inside), 1, max(1, grid.size - 1))
        if grid.size == 1:
            return np.repeat(coefs, wanted.size, axis=-1), np.repeat(intercepts, wanted.size, axis=-1)
        width = grid[right] - grid[right - 1]
        share = np.where(width > 0.0, (inside - grid[right - 1]) / np.where(width > 0.0, width, 1.0), 1.0)
        return (
            coefs[..., right - 1] * (1.0 - share) + coefs[..., right] * share,
            intercepts[..., right - 1] * (1.0 - share) + intercepts[..., right] * share,
        )

    def predictor(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """Linear predictors at every alpha.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n, m) or (n, K, m)
        """
        matrix = as_matrix(X)
        p = self.coefs.shape[0]
        if matrix.shape[1] != p:
            raise ConvexlawError(f"X has {matrix.shape[1]} columns, the path {p} features")
        eta = np.asarray(matrix @ self.coefs.reshape(p, -1)).reshape(-1, *self.coefs.shape[1:])
        eta = eta + self.intercepts
        if offset is not None:
            known = np.asarray(offset, dtype=np.float64)
            eta = eta + known.reshape(-1, *(1,) * (eta.ndim - 1))
        return np.asarray(eta)

    def predict(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """Predicted means at every alpha: of y, for two classes the probability of the second one.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n, m), or (n, K, m) for K responses or classes
        """
        from convexlaw.solvers.glm import mean_of

        return mean_of(self.loss, self.predictor(X, offset), len(self.classes))

    def deviance(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> Vector:
        """Mean deviance of data at every alpha, as of :func:`convexlaw.solvers.glm.mean_deviance`.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        y : array_like, shape (n,) or (n, K)
        sample_weight, offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (m,)
        """
        from convexlaw.solvers.glm import mean_deviance

        eta = self.predictor(X, offset)
        return np.array(
            [
                mean_deviance(self.loss, y, eta[..., k], sample_weight, self.threshold, self.classes)
                for k in range(self.alphas.size)
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row an alpha: gap, clusters, deviance ratio, intercept and all coefficients by name."""
        import pandas as pd

        head = pd.DataFrame(
            {
                "alpha": self.alphas,
                "dual_gap": self.dual_gaps,
                "n_nonzero": np.count_nonzero(self.coefs.reshape(-1, self.alphas.size), axis=0),
                "n_clusters": self.n_clusters,
                "deviance_ratio": self.deviance_ratios,
                "converged": self.converged,
            }
        )
        table = np.vstack([self.intercepts, self.coefs.reshape(-1, self.alphas.size)]).T
        outputs = self.outputs
        names = [f"intercept{out}" for out in outputs]
        names += [f"{name}{out}" for name in self.names for out in outputs]
        return pd.concat([head, pd.DataFrame(table, columns=names)], axis=1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.feature_names or tuple(f"x{j}" for j in range(self.coefs.shape[0]))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What tells the coefficients of a feature apart: one empty text, or "[class]", "[0]", "[1]", ..."""
        if self.coefs.ndim == 2:
            return ("",)
        labels = self.classes or range(self.coefs.shape[1])
        return tuple(f"[{label}]" for label in labels)[: self.coefs.shape[1]]


def slope_path(
    X: Any,
    y: ArrayLike,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    alpha_min_ratio: float | None = None,
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
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    reference: bool = False,
    tol: float = 1e-6,
    max_iter: int = 100_000,
    solver: str = "auto",
    tol_dev_ratio: float = 0.999,
    tol_dev_change: float = 1e-5,
    max_clusters: int | None = None,
    progress: bool | None = None,
) -> SlopePath:
    """Solve ``(1/2n) ||y - b0 - X b||^2 + alpha sum_i lambda_i |b|_(i)`` for many alphas with warm starts.

    Another ``loss`` takes the place of the quadratic one as half of its mean deviance; with K classes or
    responses the sorted L1 norm runs over all p K coefficients.

    Parameters
    ----------
    X : array_like or scipy sparse, shape (n, p)
        Dense of any order and real dtype, memory-mapped, CSC or CSR; neither copied nor densified.
    y : array_like, shape (n,)
        Labels for the losses with classes; shape (n, K) for several responses of the quadratic loss.
    alphas : array_like, shape (m,), optional
        In any order; all of them are solved. By default a geometric grid from alpha_max, which ends early.
    n_alphas : int
    alpha_min_ratio : float, optional
        Smallest over largest alpha of the grid; 1e-2 where p > n and 1e-4 otherwise, by default.
    lam : array_like, shape (p,), optional
        Penalty sequence; without it ``lambda_type`` ("bh", "gaussian", "oscar", "lasso") makes one from q,
        theta1, theta2.
    lambda_type, q, theta1, theta2
        See :func:`convexlaw.theory.sorted_l1.penalty_sequence`.
    loss : {"quadratic", "logistic", "multinomial", "poisson", "huber"}
    threshold : float
        Residual from which "huber" is linear, in units of y.
    fit_intercept : bool
    centering : {"none", "mean", "min"}
        Fixed shift of the columns; only matters without an intercept.
    scaling : {"none", "sd", "l1", "l2", "max_abs"}
        Columns are divided by this before they are penalised; coefficients come back in the units of X.
    sample_weight : array_like, shape (n,), optional
    offset : array_like, shape (n,), optional
        Known part of the linear predictor: the log of the exposure, for "poisson".
    reference : bool
        "multinomial" without coefficients for the last class, instead of one set for every class.
    tol : float
        Duality gap to reach at every alpha, as a share of the objective at zero.
    max_iter : int
        Bound on epochs and Newton steps for each alpha.
    solver : {"auto", "gram", "working_gram", "columns", "residual"}
        Form of the inner problem; "auto" chooses by a model of the costs (the only one of other losses).
    tol_dev_ratio, tol_dev_change, max_clusters
        The automatic grid ends when the deviance ratio exceeds the first, its relative change falls below the
        second, or there are more clusters than the third (default: when there are as many as centred rows).
    progress : bool, optional
        Progress bar; by default only on an interactive terminal.

    Returns
    -------
    SlopePath

    Raises
    ------
    ConvexlawError
        Bad data or parameters; the message names them.

    Warns
    -----
    ConvergenceWarning
        Some alpha did not reach ``tol`` within ``max_iter``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 5))
    >>> path = slope_path(X, X @ [2.0, 2.0, 0.0, 0.0, 0.0] + rng.normal(size=50), n_alphas=20)
    >>> bool((path.dual_gaps <= 1e-6 * path.null).all()), path.coefs.shape[0]
    (True, 5)
    """
    names = column_names(X)
    problem = make_problem(
        as_matrix(X),
        y,
        loss=loss,
        threshold=threshold,
        offset=offset,
        reference=reference,
        lam=lam,
        lambda_type=lambda_type,
        q=q,
        theta1=theta1,
        theta2=theta2,
        fit_intercept=fit_intercept,
        centering=centering,
        scaling=scaling,
        sample_weight=sample_weight,
        tol=tol,
        max_iter=max_iter,
        solver=solver,
        names=names,
    )
    limits = (tol_dev_ratio, tol_dev_change, max_clusters)
    return path_of(problem, alphas, n_alphas, alpha_min_ratio, limits, progress)


def path_of(
    problem: Problem | GlmProblem,
    alphas: ArrayLike | None,
    n_alphas: int,
    alpha_min_ratio: float | None,
    limits: tuple[float, float, int | None] = (0.999, 1e-5, None),
    progress: bool | None = None,
) -> SlopePath:
    """Solve the path of a problem that is set up.

    Parameters
    ----------
    problem : Problem or GlmProblem
    alphas, n_alphas, alpha_min_ratio, progress
        As in :func:`slope_path`.
    limits : tuple
        ``tol_dev_ratio, tol_dev_change, max_clusters``, for the automatic grid.

    Returns
    -------
    SlopePath
    """
    automatic = alphas is None
    grid = alpha_grid(problem, n_alphas, alpha_min_ratio) if alphas is None else check_alphas(alphas)
    order = np.argsort(-grid, kind="stable")
    stops = limits if automatic else None
    run: PathRun | GlmRun
    if isinstance(problem, GlmProblem):
        run = GlmRun(problem, grid[order], stops, progress)
    else:
        run = PathRun(problem, grid[order], stops, progress)
    back = np.argsort(order, kind="stable")[: grid.size] if not automatic else np.arange(run.done)
    short = np.flatnonzero(~run.converged)
    if short.size:
        worst = float((run.gaps[short] / problem.null).max()) if problem.null > 0.0 else np.inf
        warnings.warn(
            f"{short.size} of {run.done} alphas stopped at a duality gap of up to {worst:.2e} P(0), "
            f"above tol = {problem.tol:g}: raise max_iter, or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    return SlopePath(
        alphas=grid[order][: run.done][back],
        coefs=run.coefs[..., back],
        intercepts=run.intercepts[..., back],
        dual_gaps=run.gaps[back],
        n_clusters=run.clusters[back],
        n_iter=run.iterations[back],
        converged=run.converged[back],
        deviance_ratios=run.ratios[back],
        lambda_=problem.lam,
        alpha_max=problem.alpha_max(),
        null=problem.null,
        tol=problem.tol,
        stopped=run.stopped,
        feature_names=tuple(map(str, problem.names)) if problem.names is not None else (),
        **(problem.facts() if isinstance(problem, GlmProblem) else {}),
    )


def check_alphas(alphas: ArrayLike) -> Vector:
    """Validate a sequence of alphas.

    Raises
    ------
    ConvexlawError
        Empty, or not numbers >= 0.
    """
    try:
        grid = np.asarray(alphas, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise ConvexlawError(f"alphas = {alphas!r}: numbers >= 0 are needed") from None
    if grid.size == 0:
        raise ConvexlawError("alphas is empty: pass at least one alpha, or leave it out")
    for a in grid:
        check_alpha(a)
    return grid
