"""Exact finishes for message passing: on the pattern that was reached, or by the solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.solvers._first_order import gap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["Exact", "exact_solution", "scaled_solution", "solve_on_pattern"]


@dataclass(frozen=True)
class Exact:
    """Coefficients, the penalty they belong to, and their duality gap (scaled problem)."""

    coef: Vector
    lam: Vector
    gap: float


def solve_on_pattern(problem: Any, coef: Vector, levels: Vector, scaled: bool) -> Exact | None:
    """Minimise over the magnitudes of the clusters of ``coef``, order and signs kept; None if they break.

    With ``scaled`` the penalty is ``levels * ||y - X b|| / sqrt(n)``: the residual is r0 + s q, q in the span
    of the cluster columns and r0 orthogonal to it, so that s^2 = ||r0||^2 / (n - ||q||^2).
    """
    support = np.flatnonzero(coef)
    if not support.size:
        return _certified(problem, coef, levels, scaled, problem.y)
    order = support[np.argsort(-np.abs(coef[support]), kind="stable")]
    sizes = np.abs(coef[order])
    starts = np.flatnonzero(np.append(True, sizes[1:] != sizes[:-1]))
    if starts.size >= problem.n:
        return None
    columns = problem.X.tocsc()[:, order].toarray() if hasattr(problem.X, "tocsr") else problem.X[:, order]
    signed = columns * (np.sign(coef[order]) / problem.unit)
    reduced = np.add.reduceat(signed, starts, axis=1)
    loads = np.add.reduceat(levels[: order.size], starts)
    try:
        factor = np.linalg.cholesky(reduced.T @ reduced)
    except np.linalg.LinAlgError:
        return None
    both = np.column_stack([reduced.T @ problem.y, loads])
    free, pull = np.linalg.solve(factor.T, np.linalg.solve(factor, both)).T
    step = 1.0
    if scaled:
        rest = problem.y - reduced @ free
        room = problem.n - float(np.square(reduced @ pull).sum())
        if room <= 0:
            return None
        step = math.sqrt(float(rest @ rest) / room)
    values = free - step * pull
    if not (values[-1] > 0 and (np.diff(values) < 0).all()):
        return None
    lengths = np.diff(np.append(starts, order.size))
    new = np.zeros_like(coef)
    new[order] = np.sign(coef[order]) * np.repeat(values, lengths)
    return _certified(problem, new, levels, scaled, problem.y - reduced @ values)


def _certified(problem: Any, coef: Vector, levels: Vector, scaled: bool, residual: Vector) -> Exact:
    lam = levels * (float(np.linalg.norm(residual)) / math.sqrt(problem.n)) if scaled else levels
    return Exact(coef, lam, gap(problem.y, residual, problem.backward(residual), coef, lam))


def exact_solution(problem: Any, lam: Vector, tol: float) -> Exact:
    """SLOPE solution for ``lam`` by the solver of the estimators."""
    from convexlaw.solvers.path import slope_path

    n = problem.n
    path = slope_path(
        problem.X, problem.y, alphas=[1.0 / n], lam=lam * problem.unit, fit_intercept=False, tol=0.3 * tol
    )
    coef = path.coefs[:, 0] * problem.unit
    return _certified(problem, coef, lam, False, problem.y - problem.forward(coef))


def scaled_solution(problem: Any, levels: Vector, tol: float) -> Exact | None:
    """Solution for ``lam = levels ||y - X b|| / sqrt(n)``: alternate between the problem and its scale.

    This is the fixed point of the data-driven thresholds ``levels ||z|| / sqrt(n)``, since there
    ``z (1 - m/n) = y - X b`` and ``lam = theta (1 - m/n)``.
    """
    size = float(np.linalg.norm(problem.y)) / math.sqrt(problem.n)
    floor = 1e-10 * size
    coef = np.zeros(problem.p)
    for _ in range(60):
        found = exact_solution(problem, levels * size, tol)
        coef = found.coef
        residual = problem.y - problem.forward(coef)
        new = float(np.linalg.norm(residual)) / math.sqrt(problem.n)
        if new <= floor:
            return None
        done = abs(new - size) <= 1e-9 * size
        size = new
        pattern = solve_on_pattern(problem, coef, levels, True)
        reference = 0.5 * float(problem.y @ problem.y)
        if pattern is not None and pattern.gap <= tol * reference:
            return pattern
        if done:
            break
    return _certified(problem, coef, levels, True, problem.y - problem.forward(coef))
