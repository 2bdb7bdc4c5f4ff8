"""Proximal gradient methods for SLOPE in the AMP scaling: plain (ISTA) and accelerated with restarts (FISTA).

They are the yardsticks for AMP and its last resort; `convexlaw.solvers.slope` is the solver to use for fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["FirstOrderRun", "gap", "prox", "proximal_descent", "squared_norm"]


def prox(v: Vector, lam: Vector) -> Vector:
    """Prox of J_lam for checked vectors."""
    from convexlaw.theory import _sorted_l1_kernels as kernels

    out = np.zeros_like(v)
    kernels.prox(v, lam, out)
    return out


def gap(y: Vector, residual: Vector, correlation: Vector, coef: Vector, lam: Vector) -> float:
    """Duality gap of ``1/2 ||y - X b||^2 + J_lam(b)`` from the residual and ``correlation = X' residual``.

    The dual point is the residual scaled by s <= 1/J*(X'r); the best such s costs nothing more.
    """
    from convexlaw.theory import _sorted_l1_kernels as kernels

    square = float(residual @ residual)
    if square == 0.0:
        return float(kernels.norm_value(coef, lam))
    largest = float(kernels.dual_norm(correlation, lam))
    scale = max(float(y @ residual) / square, 0.0)
    if largest > 0:
        scale = min(scale, 1.0 / largest)
    primal = 0.5 * square + float(kernels.norm_value(coef, lam))
    return primal - scale * float(y @ residual) + 0.5 * scale * scale * square


def squared_norm(X: Any, rng: np.random.Generator, rounds: int = 15) -> float:
    """Upper estimate of the largest squared singular value: power iterations and 2 % on top."""
    v = rng.standard_normal(X.shape[1])
    for _ in range(rounds):
        v = X.T @ (X @ (v / np.linalg.norm(v)))
    return 1.02 * math.sqrt(float(v @ v))


@dataclass(frozen=True)
class FirstOrderRun:
    """End of a run: coefficients, relative gaps by iteration, products with X or X' (set-up excluded)."""

    coef: Vector
    gaps: Vector
    n_iter: int
    n_products: int
    converged: bool


def proximal_descent(
    X: Any,
    y: Vector,
    lam: Vector,
    *,
    accelerated: bool = True,
    tol: float = 1e-6,
    max_iter: int = 5000,
    start: Vector | None = None,
    lipschitz: float | None = None,
    callback: Callable[[int, Vector], None] | None = None,
) -> FirstOrderRun:
    """Minimise ``1/2 ||y - X b||^2 + J_lam(b)`` by ISTA or FISTA with adaptive restarts.

    Two products an iteration: gradients at extrapolated points are combinations of known ones.
    ``callback(k, coef)`` sees every iterate.
    """
    size = lipschitz or squared_norm(X, np.random.default_rng(0))
    b = np.zeros(X.shape[1]) if start is None else start.copy()
    reference = 0.5 * float(y @ y) or 1.0
    residual = y - X @ b
    g = -(X.T @ residual)
    before, g_before = b, g
    momentum, products = 1.0, 1 if start is None else 2
    gaps = []
    done = False
    k = 0
    for k in range(1, max_iter + 1):
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        weight = (momentum - 1.0) / following if accelerated else 0.0
        point = b + weight * (b - before)
        slope = g + weight * (g - g_before)
        new = prox(point - slope / size, lam / size)
        if float((point - new) @ (new - b)) > 0:
            following = 1.0  # the step turns against the momentum: restart
        before, g_before = b, g
        b, momentum = new, following
        residual = y - X @ b
        g = -(X.T @ residual)
        products += 2
        gaps.append(gap(y, residual, -g, b, lam) / reference)
        if callback is not None:
            callback(k, b)
        if gaps[-1] <= tol:
            done = True
            break
    return FirstOrderRun(b, np.array(gaps), k, products, done)
