"""Solutions of a SLOPE problem with any loss: for one alpha, and along a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw._progress import progress_bar
from convexlaw.solvers._glm_newton import Newton
from convexlaw.solvers._glm_problem import GlmProblem
from convexlaw.solvers._glm_unpenalised import unpenalised
from convexlaw.solvers._slope_path import early_end
from convexlaw.solvers._slope_problem import Solution
from convexlaw.solvers.slope import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_problem import Problem

    Array = NDArray[np.float64]

__all__ = ["GlmRun", "solve_any", "solve_glm"]


def solve_glm(
    problem: GlmProblem, alpha: float, newton: Newton | None = None, previous: float | None = None
) -> Solution:
    """Solve for one alpha.

    Parameters
    ----------
    problem : GlmProblem
    alpha : float
    newton : Newton, optional
        A solver of this problem to continue with; its coefficients are the start.
    previous : float, optional
        The alpha that these coefficients belong to.

    Returns
    -------
    Solution
        ``coef`` (p,) and a float ``intercept`` where the loss has one column, else (p, m) and (m,).
    """
    newton = Newton(problem) if newton is None else newton
    inner = newton.problem
    lam = alpha * inner.lam
    before = newton.rounds
    goal = problem.tol * problem.null
    if not lam.any():
        gap = unpenalised(newton)
    else:
        start = None if previous is None else previous * inner.lam
        gap = newton.solve(lam, alpha * inner.cum, goal, before + problem.max_iter, start)
    coef, constants = newton.original()
    one = problem.m == 1
    return Solution(
        coef[:, 0] if one else coef,
        float(constants[0]) if one else constants,
        gap,
        problem.null,
        newton.clusters,
        newton.rounds - before,
        bool(gap <= goal),
    )


def solve_any(problem: Problem | GlmProblem, alpha: float, start: Array | None = None) -> Solution:
    """Solve a problem of any loss for one alpha.

    Parameters
    ----------
    problem : Problem or GlmProblem
    alpha : float
    start : ndarray, shape (p,) or (m, p), optional
        Coefficients to start from; ignored where they do not fit.

    Returns
    -------
    Solution
    """
    m = problem.m if isinstance(problem, GlmProblem) else 1
    seen: Array | None = None
    if start is not None and start.size == problem.p * m and np.isfinite(start).all():
        parts = np.asarray(start, dtype=np.float64).reshape(m, problem.p)
        seen = np.concatenate([problem.design.seen(part) for part in parts])
    if isinstance(problem, GlmProblem):
        newton = Newton(problem)
        if seen is not None:
            newton.start_at(seen)
        return solve_glm(problem, alpha, newton)
    engine = problem.engine()
    if seen is not None:
        engine.start_at(seen)
    return solve(problem, alpha, engine)


class GlmRun:
    """The arrays of a path while it is solved, for decreasing alphas with warm starts."""

    def __init__(
        self,
        problem: GlmProblem,
        alphas: Array,
        limits: tuple[float, float, int | None] | None,
        progress: bool | None,
    ) -> None:
        m = alphas.size
        one = problem.m == 1
        coefs = np.zeros((problem.p, m) if one else (problem.p, problem.m, m), order="F")
        intercepts = np.zeros(m if one else (problem.m, m))
        gaps, ratios = np.zeros(m), np.zeros(m)
        clusters, iterations = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        converged = np.zeros(m, dtype=np.bool_)
        self.stopped = ""
        done = 0
        newton = Newton(problem)
        previous = problem.alpha_max()
        size = problem.p * problem.m
        with progress_bar("SLOPE path", m, progress) as advance:
            for k, alpha in enumerate(alphas):
                last = max(previous, alpha) if np.isfinite(previous) else None
                solution = solve_glm(problem, float(alpha), newton, last)
                previous = float(alpha)
                coefs[..., k], intercepts[..., k] = solution.coef, solution.intercept
                gaps[k], converged[k] = solution.gap, solution.converged
                clusters[k], iterations[k] = solution.n_clusters, solution.n_iter
                ratios[k] = 1.0 - newton.loss / problem.null if problem.null > 0.0 else 0.0
                done = k + 1
                advance(1)
                if limits is not None:
                    self.stopped = early_end(
                        ratios, clusters, k, limits, problem.rows * problem.m, size, problem.fit_intercept
                    )
                    if self.stopped:
                        break
        self.done = done
        self.coefs, self.intercepts = coefs[..., :done], intercepts[..., :done]
        self.gaps, self.ratios, self.converged = gaps[:done], ratios[:done], converged[:done]
        self.clusters, self.iterations = clusters[:done], iterations[:done]
