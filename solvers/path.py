"""The SLOPE path: solutions for a decreasing sequence of alphas, each to its own certificate."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._glm_path import GlmRun
from convexlaw.solvers._glm_problem import GlmProblem, make_problem
from convexlaw.solvers._slope_input import as_matrix, column_names
from convexlaw.solvers._slope_path import PathRun, alpha_grid
from convexlaw.solvers._slope_path_result import SlopePath
from convexlaw.solvers.slope import check_alpha

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from convexlaw.solvers._slope_problem import Problem

    Vector = NDArray[np.float64]

__all__ = ["SlopePath", "slope_path"]


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
