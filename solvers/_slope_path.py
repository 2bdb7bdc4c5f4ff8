"""The loop behind a SLOPE path: the grid, warm starts, early stops, and the recheck of every alpha."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from convexlaw._progress import progress_bar
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._slope_certify import gaps
from convexlaw.solvers._slope_problem import Problem, Solution
from convexlaw.solvers.slope import made_good, solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_engine import Engine

    Vector = NDArray[np.float64]

__all__ = ["PathRun", "alpha_grid", "early_end", "solve_path"]


class _Penalised(Protocol):
    n: int
    p: int

    def alpha_max(self) -> float: ...


def alpha_grid(problem: _Penalised, n_alphas: int, alpha_min_ratio: float | None) -> Vector:
    """Geometric grid from alpha_max down.

    Parameters
    ----------
    problem : Problem or GlmProblem
    n_alphas : int
    alpha_min_ratio : float, optional
        Smallest alpha over alpha_max; 1e-2 where p > n and 1e-4 otherwise, by default.

    Returns
    -------
    ndarray, shape (n_alphas,)
        A single 0 where alpha_max is 0 (a constant response): every alpha gives zero coefficients there.
    """
    if isinstance(n_alphas, bool) or not isinstance(n_alphas, int | np.integer) or n_alphas < 1:
        raise ConvexlawError(f"n_alphas = {n_alphas!r}: at least one alpha is needed")
    ratio = (1e-2 if problem.p > problem.n else 1e-4) if alpha_min_ratio is None else alpha_min_ratio
    if not 0.0 < ratio < 1.0:
        raise ConvexlawError(f"alpha_min_ratio = {ratio!r}: it must lie in (0, 1)")
    top = problem.alpha_max()
    if top == 0.0:
        return np.zeros(1)
    if not np.isfinite(top):
        raise ConvexlawError("lam is all zero: no alpha makes the coefficients zero; pass alphas")
    return np.asarray(top * np.geomspace(1.0, ratio, n_alphas)) if n_alphas > 1 else np.array([top])


def solve_path(problem: Problem, alphas: Vector) -> Iterator[tuple[Solution, Vector, Engine]]:
    """Solve for decreasing alphas with warm starts.

    Parameters
    ----------
    problem : Problem
    alphas : ndarray, shape (m,)
        Non-increasing.

    Yields
    ------
    Solution, coefficients on the seen columns, engine
    """
    engine = problem.engine(alphas.size)
    lam = problem.lam
    goal = problem.tol * problem.null
    top = problem.alpha_max()
    previous = top
    for alpha in alphas:
        if not (alpha * lam).any():
            solution = solve(problem, float(alpha), engine)
            b = problem.design.seen(solution.coef)
            r = problem.target - problem.design.product(b)
            engine.rss = float(r @ r)
            yield solution, b, engine
            continue
        before = engine.rounds
        penalty, cum = alpha * lam, alpha * problem.cum
        start = max(previous, alpha) * lam if np.isfinite(previous) else None
        gap = engine.solve(penalty, cum, goal, before + problem.max_iter, start)
        previous = float(alpha)
        b = engine.coef()
        spent = engine.rounds - before
        if engine.form != "gram":
            # a Gram matrix of all columns is checked at the end, for all alphas at once; what stopped
            # another form would stop it at the smaller alphas too, so the exacter one stays
            engine, b, gap, spent = made_good(problem, engine, penalty, cum, b, gap, spent)
        yield problem.solution(b, gap, spent, clusters=engine.part.m), b, engine


def early_end(
    ratios: Vector,
    clusters: NDArray[np.int64],
    k: int,
    limits: tuple[float, float, int | None],
    rows: int,
    size: int,
    fit_intercept: bool,
) -> str:
    """Why an automatic path ends after its alpha number k; empty where it goes on.

    Parameters
    ----------
    ratios, clusters : ndarray
        Deviance ratios and numbers of clusters so far.
    limits : tuple
        ``tol_dev_ratio, tol_dev_change, max_clusters``.
    rows, size : int
        Observations times responses, and coefficients.
    """
    most_ratio, least_change, most_clusters = limits
    if most_clusters is None:
        most_clusters = min(rows, size + 1) - int(fit_intercept and rows <= size)
    if ratios[k] > most_ratio:
        return f"deviance ratio {ratios[k]:.6f} > tol_dev_ratio = {most_ratio:g}"
    if clusters[k] > most_clusters or (clusters[k] == most_clusters and rows <= size):
        return f"saturated: {clusters[k]} clusters, limit {most_clusters}"
    if k and ratios[k] > 0.0 and clusters[k] > 0:
        change = (ratios[k] - ratios[k - 1]) / ratios[k]
        if ratios[k - 1] > 0.0 and change < least_change:
            return f"deviance ratio changed by {change:.2e} < tol_dev_change = {least_change:g}"
    return ""


class PathRun:
    """The arrays of a path while it is solved."""

    def __init__(
        self,
        problem: Problem,
        alphas: Vector,
        limits: tuple[float, float, int | None] | None,
        progress: bool | None,
    ) -> None:
        m = alphas.size
        self.coefs = np.zeros((problem.p, m), order="F")
        self.intercepts, self.gaps, self.ratios = np.zeros(m), np.zeros(m), np.zeros(m)
        self.clusters, self.iterations = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        self.stopped = ""
        self.done = 0
        seen = np.zeros((problem.p, m), order="F") if problem.design.scale is not None else self.coefs
        engine: Engine | None = None
        with progress_bar("SLOPE path", m, progress) as advance:
            for k, (solution, b, engine) in enumerate(solve_path(problem, alphas)):
                self.coefs[:, k] = solution.coef
                if seen is not self.coefs:
                    seen[:, k] = b
                self.intercepts[k], self.gaps[k] = solution.intercept, solution.gap
                self.clusters[k], self.iterations[k] = solution.n_clusters, solution.n_iter
                self.ratios[k] = 1.0 - engine.rss / problem.energy if problem.energy > 0.0 else 0.0
                self.done = k + 1
                advance(1)
                if limits is not None:
                    self.stopped = early_end(
                        self.ratios, self.clusters, k, limits, problem.n, problem.p, problem.fit_intercept
                    )
                    if self.stopped:
                        break
        self._cut()
        if engine is not None and engine.form == "gram":
            self._recheck(problem, alphas[: self.done], seen[:, : self.done])
        self.converged = self.gaps <= problem.tol * problem.null

    def _cut(self) -> None:
        k = self.done
        self.coefs = self.coefs[:, :k]
        for name in ("intercepts", "gaps", "ratios", "clusters", "iterations"):
            setattr(self, name, getattr(self, name)[:k])

    def _recheck(self, problem: Problem, alphas: Vector, seen: Vector) -> None:
        """Certify from the data what was solved on a Gram matrix, all alphas at once; mend what fails."""
        penalised = np.flatnonzero((alphas > 0.0) & bool(problem.lam.any()))
        self.gaps[penalised] = gaps(
            problem.design, problem.target, seen[:, penalised], np.outer(problem.lam, alphas[penalised])
        )
        for k in penalised[self.gaps[penalised] > problem.tol * problem.null]:
            engine = problem.engine(form="working_gram")
            engine.start_at(seen[:, k])
            solution = solve(problem, float(alphas[k]), engine)
            self.coefs[:, k], self.intercepts[k] = solution.coef, solution.intercept
            self.gaps[k], self.clusters[k] = solution.gap, solution.n_clusters
            self.iterations[k] += solution.n_iter
