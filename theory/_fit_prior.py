"""A mixture prior from noisy estimates of the coefficients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory._priors import Prior
from convexlaw.theory._selection_checks import positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["fit_prior"]


def fit_prior(
    estimates: ArrayLike,
    tau: float,
    *,
    max_components: int = 3,
    max_iter: int = 2000,
    tol: float = 1e-8,
) -> Prior:
    """Fit a point mass at zero and up to ``max_components`` normals to ``estimates = B + tau Z``.

    Maximum likelihood by EM; the number of normals by BIC. Small signals and nulls look alike when tau is
    large: the weight of the null component is then only loosely determined.

    Parameters
    ----------
    estimates : array_like, shape (p,)
        Unbiased noisy coefficients, e.g. ``AMPResult.estimates``.
    tau : float
        Their noise standard deviation, > 0.
    max_components : int
        Largest number of normal components, >= 1.
    max_iter : int
        EM steps for each number of components.
    tol : float
        Stop when the log-likelihood per estimate rises by less.

    Returns
    -------
    Prior
        Null component first; a variance below ``1e-4 tau^2`` is set to 0.

    Raises
    ------
    ConvexlawError
        Fewer than 10 estimates, NaN, tau not > 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> beta = Prior.two_point(0.2, 4.0).sample(4000, rng)
    >>> fitted = fit_prior(beta + rng.standard_normal(4000), 1.0)
    >>> round(fitted.epsilon, 2), round(fitted.means[1], 1)
    (0.2, 4.0)
    """
    y = np.asarray(estimates, dtype=np.float64).reshape(-1)
    noise = positive("tau", tau, "the noise standard deviation of the estimates")
    if y.size < 10 or not np.isfinite(y).all():
        raise ConvexlawError(
            f"{y.size} estimates, finite: {np.isfinite(y).all()}; give at least 10 finite ones"
        )
    if max_components < 1:
        raise ConvexlawError(f"max_components = {max_components!r}: give at least 1")
    # cells of a fiftieth of tau: their means stand for their members, the EM then costs the same for every p
    cell = np.round(y / (0.02 * noise))
    _, place, count = np.unique(cell, return_inverse=True, return_counts=True)
    centre = np.bincount(place.reshape(-1), weights=y) / count
    best = Prior.null()
    score = -2.0 * float(count @ _log_normal(centre, 0.0, noise**2))
    for k in range(1, max_components + 1):
        parameters, likelihood = _em(y, centre, count, noise, k, max_iter, tol)
        bic = -2.0 * likelihood + 3 * k * math.log(y.size)
        if bic < score:
            best, score = _to_prior(*parameters, noise), bic
    return best


def _log_normal(y: Vector, mean: float, variance: float) -> Vector:
    out: Vector = -0.5 * ((y - mean) ** 2 / variance + math.log(2.0 * math.pi * variance))
    return out


def _em(
    y: Vector, centre: Vector, count: NDArray[np.int64], tau: float, k: int, max_iter: int, tol: float
) -> tuple[tuple[Vector, Vector, Vector], float]:
    beyond = y[np.abs(y) > 1.5 * tau]
    spread = beyond if beyond.size >= 2 * k else y
    means = np.quantile(spread, (np.arange(k) + 0.5) / k)
    variances = np.full(k, max(float(spread.var()) / k**2, 0.01 * tau**2))
    weights = np.append(max(1.0 - spread.size / y.size, 0.2), np.full(k, 0.0))
    weights[1:] = (1.0 - weights[0]) / k
    last = total = -math.inf
    for _ in range(max_iter):
        logs = np.stack(
            [
                _log_normal(centre, m, v + tau**2) + math.log(max(w, 1e-300))
                for w, m, v in zip(weights, np.append(0.0, means), np.append(0.0, variances), strict=True)
            ]
        )
        top = logs.max(axis=0)
        share = np.exp(logs - top)
        norm = share.sum(axis=0)
        total = float(count @ (top + np.log(norm)))
        share *= count / norm
        weights = share.sum(axis=1) / y.size
        for j in range(k):
            r = share[j + 1]
            mass = max(float(r.sum()), 1e-300)
            kappa = variances[j] / (variances[j] + tau**2)
            posterior = means[j] + kappa * (centre - means[j])
            means[j] = float(r @ posterior) / mass
            variances[j] = float(r @ (posterior - means[j]) ** 2) / mass + kappa * tau**2
        if total - last < tol * y.size:
            break
        last = total
    return (weights, means, variances), total


def _to_prior(weights: Vector, means: Vector, variances: Vector, tau: float) -> Prior:
    spread = np.where(variances < 1e-4 * tau**2, 0.0, variances)
    keep = weights[1:] > 1e-6
    signal = weights[1:][keep]
    w = (1.0 - float(signal.sum()), *signal.tolist())
    return Prior(w, (0.0, *means[keep].tolist()), (0.0, *spread[keep].tolist()))
