"""Any loss without a penalty: SLOPE at alpha = 0, by damped Newton steps over all columns."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._glm_model import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._glm_newton import Newton

    Array = NDArray[np.float64]

# a Hessian of more rows than this is not factored
_MOST = 5000


def unpenalised(newton: Newton) -> float:
    """Minimise the loss from the present coefficients.

    Each step is the shortest one that minimises the quadratic model, so that where the optimum is not unique
    the coefficients stay small.

    Returns
    -------
    float
        The loss less its infimum, as far as the last model can tell: half the Newton decrement, or the loss
        itself where that is less (every loss is >= 0).

    Raises
    ------
    ConvexlawError
        More than 5000 coefficients.

    Warns
    -----
    ConvergenceWarning
        No finite optimum: the classes are separated, or means of zero are fitted exactly.
    """
    problem = newton.problem
    size = problem.p * problem.m
    if size > _MOST:
        raise ConvexlawError(
            f"alpha = 0 with {size} coefficients: at most {_MOST} are solved without a penalty; use alpha > 0"
        )
    work = Work(problem, newton.columns, np.arange(size), whole=True)
    zero = np.zeros(size)
    goal = problem.tol * problem.null
    b = newton.b[work.index]
    gap, drift, safe, near = np.inf, 0.0, False, False
    for _ in range(min(problem.max_iter, 200)):
        newton.rounds += 1
        h = newton.h
        if problem.family.name == "huber":
            h = problem.family.model(problem.Y, newton.eta, h, problem.weights, safe=safe)
        g = work.pull(newton.R)
        step, fall = _shortest(work.hessian(h), g)
        gap = min(0.5 * fall, newton.loss)
        before = newton.eta
        if near and (drift <= 1e-3 or gap <= 1e-12 * problem.null):
            break
        near = gap <= 1e-3 * goal
        t = newton._search(work, b, b + step, g, zero)
        if t == 0.0:
            if safe:
                break
            safe = True
            continue
        safe = t < 0.3
        b = b + t * step
        if near:
            # Newton is at its end: only predictors on their way to infinity still move
            drift = max(drift, float(np.abs(newton.eta - before).max()))
    newton.b[work.index] = b
    newton.g = problem.pulls(newton.R)
    if gap <= goal and drift > 0.3 and problem.family.name in ("logistic", "multinomial", "poisson"):
        what = (
            "some means of zero are fitted exactly"
            if problem.family.name == "poisson"
            else "the classes are separated by a hyperplane, wholly or in part"
        )
        warnings.warn(
            f"alpha = 0 has no finite solution: {what}, and the coefficients grow without bound (stopped "
            f"at a linear predictor of {np.abs(newton.eta).max():.3g}); use alpha > 0",
            ConvergenceWarning,
            stacklevel=4,
        )
    return gap


def _shortest(G: Array, g: Array) -> tuple[Array, float]:
    """Minimal-norm step G^+ g, and the decrement g' G^+ g."""
    values, vectors = np.linalg.eigh(G)
    kept = values > max(values[-1], 0.0) * 1e-13 * values.size
    along = vectors[:, kept].T @ g
    return vectors[:, kept] @ (along / values[kept]), float(along @ (along / values[kept]))
