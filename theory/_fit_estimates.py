"""Noise level and error of a fitted model from its residual alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory._penalties import Weights
from convexlaw.theory._selection_checks import noise_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["FitEstimate", "estimate_from_fit"]


@dataclass(frozen=True)
class FitEstimate:
    """Noise level and error of a fitted model, without knowing the prior.

    Attributes
    ----------
    tau : float
        Effective noise level of one coefficient, in its units.
    mse : float
        Estimate of ``||b - beta||^2 / p``, in squared units of the coefficients.
    df : float
        Number of distinct nonzero magnitudes per feature.
    delta : float
        Rows per feature.
    penalty : Weights or None
        The penalty in units of tau, where ``lam`` was given.
    """

    tau: float
    mse: float
    df: float
    delta: float
    penalty: Weights | None

    def __str__(self) -> str:
        return (
            f"tau {self.tau:.6g} (units of the coefficients), MSE {self.mse:.6g}, "
            f"df per feature {self.df:.6g}, delta {self.delta:g}"
        )


def estimate_from_fit(
    X: Any,
    y: ArrayLike,
    coef: ArrayLike,
    intercept: float = 0.0,
    *,
    sigma: float,
    lam: ArrayLike | None = None,
) -> FitEstimate:
    """Estimate tau and the mean squared error of a SLOPE fit from its residual.

    ``tau = ||y - X b|| / (sqrt(n) (1 - m/n))`` with m distinct nonzero magnitudes, ``mse = delta (tau^2 -
    sigma^2)``, both converted to the units of the coefficients by the mean column variance of X.

    Parameters
    ----------
    X : array or scipy sparse, shape (n, p)
        Columns of about equal variance.
    y : array_like, shape (n,)
    coef : array_like, shape (p,)
        Fitted coefficients; magnitudes that agree to 1e-8 relative count as one.
    intercept : float
    sigma : float
        Noise standard deviation, in the units of y.
    lam : array_like, shape (p,), optional
        Weights ``alpha * lam`` of the averaged objective ``(1/2n)||y - b0 - X b||^2 + ...``.

    Returns
    -------
    FitEstimate

    Raises
    ------
    ConvexlawError
        Shapes that do not fit, or at least as many distinct magnitudes as rows.

    Examples
    --------
    >>> X = np.eye(4)
    >>> print(estimate_from_fit(X, [3.0, 0.1, -0.2, 0.1], [2.0, 0, 0, 0], sigma=0.1))
    tau 0.686375 (units of the coefficients), MSE 0.461111, df per feature 0.25, delta 1
    """
    b = np.asarray(coef, dtype=np.float64)
    target = np.asarray(y, dtype=np.float64)
    n, p = X.shape
    if b.shape != (p,) or target.shape != (n,):
        raise ConvexlawError(f"X is {X.shape}, y {target.shape}, coef {b.shape}: they must fit together")
    noise = noise_level(sigma)
    sizes = np.sort(np.abs(b[b != 0]))
    clusters = int(sizes.size > 0) + int((np.diff(sizes) > 1e-8 * sizes[1:]).sum())
    if clusters >= n:
        raise ConvexlawError(f"{clusters} distinct magnitudes for n = {n} rows: the residual says nothing")
    shrink = 1.0 - clusters / n
    residual = float(np.linalg.norm(target - intercept - X @ b))
    squares = X.multiply(X).sum() if hasattr(X, "multiply") else float(np.einsum("ij,ij->", X, X))
    mean_square = float(squares) / (n * p)
    centre = np.asarray(X.mean(axis=0)).reshape(-1) if intercept else np.zeros(p)
    unit = math.sqrt(n * (mean_square - float((centre**2).mean())))
    tau = residual / (math.sqrt(n) * shrink)
    penalty = None
    if lam is not None:
        penalty = Weights(np.asarray(lam, dtype=np.float64) * (n / (unit * tau * shrink)))
    mse = n / p * (tau * tau - noise * noise) / unit**2
    return FitEstimate(tau / unit, mse, clusters / p, n / p, penalty)
