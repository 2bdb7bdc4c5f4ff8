"""SLOPE with quadratic loss: one problem, one penalty, one certificate.

The objective, here and everywhere in the package, is

    (1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)

with lambda non-increasing; with sample weights w the average becomes ``sum_i w_i (...)^2 / (2 sum_i w_i)``.

How it is solved. A working set holds the support and the strongest violators; on it the coefficients are
kept as a partition into clusters. Clusters descend by coordinates, merge exactly where they meet, split as
an infinitesimal prox-gradient step would split them, and are solved for together by Newton steps on the
reduced problem. The pull ``X'(y - b0 - X b)`` of all p columns ends every round: it certifies, and it finds
the next violators. See ``_slope_forms`` for the four forms of the inner problem and the model of their
costs.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._slope_problem import Problem, Solution
from convexlaw.theory.sorted_l1 import check_sequence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from convexlaw.solvers._slope_engine import Engine

    Vector = NDArray[np.float64]

__all__ = ["check_alpha", "made_good", "solve", "sorted_l1_dual_gap", "warn_if_short"]

# what takes the differences of large numbers that a form does not get right
_EXACTER = {"gram": ("working_gram", "residual"), "working_gram": ("residual",), "columns": ("residual",)}


def check_alpha(alpha: Any) -> float:
    """Validate one value of alpha.

    Parameters
    ----------
    alpha : float

    Returns
    -------
    float

    Raises
    ------
    ConvexlawError
        Not a number, negative, NaN or infinite.

    Examples
    --------
    >>> check_alpha(1)
    1.0
    """
    try:
        value = float(alpha)
    except (TypeError, ValueError):
        hint = (
            ": a noise level belongs to the quadratic loss alone"
            if isinstance(alpha, str) and alpha == "estimate"
            else ""
        )
        raise ConvexlawError(f"alpha = {alpha!r}: a number >= 0 is needed{hint}") from None
    if not 0.0 <= value < np.inf:
        raise ConvexlawError(f"alpha = {value}: the penalty must be finite and >= 0")
    return value


def solve(
    problem: Problem, alpha: float, engine: Engine | None = None, previous: float | None = None
) -> Solution:
    """Solve for one alpha.

    Parameters
    ----------
    problem : Problem
    alpha : float
    engine : Engine, optional
        A solver of this problem to continue with; its coefficients are the start.
    previous : float, optional
        The alpha that these coefficients belong to.

    Returns
    -------
    Solution
        Its ``gap`` was computed from X, y and the coefficients at the end, over all columns.
    """
    from convexlaw.solvers._slope_certify import gaps
    from convexlaw.solvers._slope_unpenalised import least_squares

    engine = problem.engine() if engine is None else engine
    lam = alpha * problem.lam
    before = engine.rounds
    if not lam.any():
        b, gap = least_squares(problem.design, problem.target)
        return problem.solution(b, gap, 1)
    cum = alpha * problem.cum
    goal = problem.tol * problem.null
    limit = before + problem.max_iter
    start = None if previous is None else previous * problem.lam
    gap = engine.solve(lam, cum, goal, limit, start)
    b = engine.coef()
    if engine.form == "gram":
        gap = float(gaps(problem.design, problem.target, b[:, None], lam[:, None])[0])
    _, b, gap, spent = made_good(problem, engine, lam, cum, b, gap, engine.rounds - before)
    return problem.solution(b, gap, spent)


def made_good(
    problem: Problem, engine: Engine, lam: Vector, cum: Vector, b: Vector, gap: float, spent: int
) -> tuple[Engine, Vector, float, int]:
    """Continue with ever less use of a Gram matrix where rounding has stopped a form above the tolerance.

    Parameters
    ----------
    problem : Problem
    engine : Engine
        What has solved so far.
    lam, cum : ndarray, shapes (p,) and (p + 1,)
        Penalty by rank and its cumulative sum from 0.
    b : ndarray, shape (p,)
        Coefficients on the seen columns, with the duality gap ``gap`` after ``spent`` iterations.

    Returns
    -------
    engine, b, gap, spent
        As given where the tolerance is met or no iterations are left.
    """
    goal = problem.tol * problem.null
    for form in _EXACTER.get(engine.form, ()):
        if gap <= goal or spent >= problem.max_iter:
            break
        engine = problem.engine(form=form)
        engine.start_at(b)
        gap = engine.solve(lam, cum, goal, problem.max_iter - spent)
        b = engine.coef()
        spent += engine.rounds
    return engine, b, gap, spent


def warn_if_short(solution: Solution, tol: float, what: str = "SLOPE") -> None:
    """Warn where a solution did not reach its tolerance.

    Parameters
    ----------
    solution : Solution
    tol : float
    what : str
        Name for the message.
    """
    if solution.converged:
        return
    reached = solution.gap / solution.null if solution.null > 0 else solution.gap
    warnings.warn(
        f"{what} stopped after {solution.n_iter} iterations at a duality gap of {reached:.2e} P(0), "
        f"above tol = {tol:g}: raise max_iter, or tol",
        ConvergenceWarning,
        stacklevel=3,
    )


def sorted_l1_dual_gap(
    X: Any,
    y: ArrayLike,
    coef: ArrayLike,
    intercept: float,
    alpha: float,
    lam: ArrayLike,
    *,
    fit_intercept: bool | None = None,
    sample_weight: ArrayLike | None = None,
    loss: str = "quadratic",
    threshold: float = 1.345,
    offset: ArrayLike | None = None,
) -> float:
    """Duality gap of any coefficients, by the definition and with numpy alone: a check on every solver.

    From the residual r = y - b0 - X b of the quadratic loss the dual point is theta = s r (r centred first if
    the intercept is free), with the best s that keeps the dual norm of X'theta / n at alpha or below. Other
    losses have the residual at their best intercept for r, and their conjugate in the dual.

    Parameters
    ----------
    X : array_like or scipy sparse, shape (n, p)
    y : array_like, shape (n,), or (n, m) for several responses
        Labels for the losses with classes.
    coef : array_like, shape (p,), or (p, m) for m responses or classes, or all classes but the last
    intercept : float, or array_like, shape (m,)
    alpha : float
    lam : array_like, shape (p,), or (p m,)
        Penalty sequence.
    fit_intercept : bool, optional
        Whether the intercept is a free variable of the problem; by default it is unless it is exactly 0.
    sample_weight : array_like, shape (n,), optional
    loss : {"quadratic", "logistic", "multinomial", "poisson", "huber"}
    threshold : float
        Of "huber".
    offset : array_like, shape (n,), optional

    Returns
    -------
    float
        P(b) - D(theta), >= 0 up to rounding, in the units of the objective; 0 only at an optimum.

    Raises
    ------
    ConvexlawError
        Shapes that do not fit, or ``lam`` not a penalty sequence.

    References
    ----------
    Bogdan et al., arXiv 1407.3824, section 1.3 (the dual of SLOPE).

    Examples
    --------
    >>> X = np.eye(4)
    >>> b = np.array([4.0, 3.0, 2.0, 1.0])
    >>> float(sorted_l1_dual_gap(X, [8.0, 6.0, 4.0, 2.0], b, 0.0, 1 / 4, [4.0, 3.0, 2.0, 1.0]))
    0.0
    """
    matrix = X if hasattr(X, "tocsc") else np.asarray(X, dtype=np.float64)
    n, p = matrix.shape
    if loss != "quadratic" or offset is not None or np.ndim(coef) == 2:
        return _other_gap(
            matrix, y, coef, intercept, alpha, lam, fit_intercept, sample_weight, loss, threshold, offset
        )
    response = np.asarray(y, dtype=np.float64).reshape(-1)
    b = np.asarray(coef, dtype=np.float64).reshape(-1)
    if response.size != n or b.size != p:
        raise ConvexlawError(
            f"X has shape {matrix.shape}, y {response.size} entries, coef {b.size}; they must agree"
        )
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weights = weights / weights.sum()
    penalty = check_alpha(alpha) * check_sequence(lam, p)
    b0 = float(np.asarray(intercept).reshape(-1)[0])
    free = b0 != 0.0 if fit_intercept is None else fit_intercept
    r = response - matrix @ b - b0
    primal = 0.5 * float(weights @ r**2) + float(penalty @ np.sort(np.abs(b))[::-1])
    if free:
        r = r - weights @ r
        response = response - weights @ response
    pull = np.sort(np.abs(matrix.T @ (weights * r)))[::-1]
    total, allowed = np.cumsum(pull), np.cumsum(penalty)
    energy = float(weights @ r**2)
    if energy == 0.0:
        return primal
    with np.errstate(divide="ignore", invalid="ignore"):
        norm = float(np.where(total > 0.0, total / allowed, 0.0).max())
    along = float(weights @ (response * r))
    s = min(max(along / energy, 0.0), 1.0 / norm if norm > 0.0 else np.inf)
    return primal - (s * along - 0.5 * s**2 * energy)


def _other_gap(
    X: Any,
    y: Any,
    coef: Any,
    intercept: Any,
    alpha: float,
    lam: Any,
    fit_intercept: bool | None,
    sample_weight: Any,
    loss: str,
    threshold: float,
    offset: Any,
) -> float:
    """Gap of a loss that is not the quadratic one of one response."""
    from convexlaw.solvers._glm_certificate import loss_gap

    n, p = X.shape
    B = np.asarray(coef, dtype=np.float64)
    B = B.reshape(B.shape[0], -1)
    b0 = np.broadcast_to(np.asarray(intercept, dtype=np.float64).reshape(-1), B.shape[1:])
    given = np.asarray(y)
    if given.shape[0] != n or B.shape[0] != p:
        raise ConvexlawError(
            f"X has shape {X.shape}, y {given.shape[0]} rows, coef {B.shape[0]}; they must agree"
        )
    if loss in ("logistic", "multinomial"):
        Y = (given.reshape(n, 1) == np.unique(given)).astype(np.float64)
        Y = Y[:, 1:] if loss == "logistic" else Y[:, : B.shape[1]]
    else:
        Y = given.astype(np.float64).reshape(n, -1)
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    known = np.zeros(n) if offset is None else np.asarray(offset, dtype=np.float64)
    return loss_gap(
        loss,
        Y,
        X,
        B,
        b0,
        check_alpha(alpha) * check_sequence(lam, B.size),
        weights / weights.sum(),
        known.reshape(-1, 1),
        threshold,
        bool(b0.any()) if fit_intercept is None else fit_intercept,
    )
