"""Penalties that are optimal for a prior: smallest error, or most power at a type I level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory._design_table import DesignComparison, compare_designs
from convexlaw.theory._finite_designs import GradientDesign, finite_tau, gradient_design
from convexlaw.theory._fit_prior import fit_prior
from convexlaw.theory._penalties import KLevel, Lasso, Penalty
from convexlaw.theory._priors import Prior
from convexlaw.theory._selection_checks import noise_level, positive, real
from convexlaw.theory._shape_search import best_two_level, level_of, smallest_tau
from convexlaw.theory.scalar_limit import RESOLUTION, check_problem, mesh
from convexlaw.theory.state_evolution import StateEvolution, solve

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = [
    "Design",
    "DesignComparison",
    "GradientDesign",
    "compare_designs",
    "finite_tau",
    "fit_prior",
    "gradient_design",
    "improve_lasso",
    "most_powerful_slope",
    "optimal_lasso",
    "optimal_slope",
    "optimal_two_level",
]

_DENSE = 2 * RESOLUTION


@dataclass(frozen=True)
class Design(Result):
    """Penalty that is optimal in a class, with the state evolution at it.

    Attributes
    ----------
    name : str
        Class and aim.
    penalty : Penalty
        In units of tau. It may be very flat around its optimum: compare errors, not levels.
    state : StateEvolution
        ``state.lam`` is the penalty of the SLOPE problem (AMP scaling).
    """

    _figure: ClassVar[str] = "designs:plot_design"

    name: str
    penalty: Penalty
    state: StateEvolution

    @property
    def lam(self) -> Penalty:
        """The penalty of ``1/2 ||y - X b||^2 + J_lam(b)`` as a function of the rank."""
        return self.state.lam

    def weights(self, p: int) -> Vector:
        """Penalty sequence of the SLOPE problem for p features (AMP scaling), shape (p,).

        Each weight is the mean of the penalty over its rank: a level on less than one rank is not lost.
        """
        weights: Vector = p * np.diff(self.state.lam.integral(np.arange(p + 1) / p))
        return np.minimum.accumulate(np.maximum(weights, 0.0))

    def to_frame(self) -> pd.DataFrame:
        """One row: name, tau, mse, tpp, fdp, df, threshold, flat, lambda_factor, scale."""
        frame = self.state.to_frame()
        frame.insert(0, "name", self.name)
        return frame

    def __str__(self) -> str:
        s = self.state
        shown = self.penalty
        name = f"{len(shown.levels)} levels" if isinstance(shown, KLevel) else str(shown)
        return "\n".join(
            (
                f"{self.name}, delta = {s.delta:g}, sigma = {s.sigma:g}",
                f"  {s.prior}",
                f"  penalty {name} (units of tau)",
                f"  tau {s.tau:.6g}, MSE {s.mse:.6g}, TPP {s.tpp:.6g}, FDP {s.fdp:.6g}",
                f"  lambda = {s.lambda_factor:.6g} * penalty (AMP scaling)",
            )
        )


def _numbers(prior: Prior, delta: Any, sigma: Any) -> tuple[float, float]:
    check_problem(prior, Lasso(1.0))
    ratio = positive("delta", delta, "delta = n/p, rows per feature")
    noise = noise_level(sigma)
    if prior.second_moment == 0:
        raise ConvexlawError("the prior has no signals: there is nothing to design for; give epsilon > 0")
    return ratio, noise


def optimal_lasso(prior: Prior, delta: float, sigma: float) -> Design:
    """Lasso with the smallest asymptotic mean squared error.

    Parameters
    ----------
    prior : Prior
        Law of the coefficients, with signals.
    delta : float
        Rows per feature, n/p > 0.
    sigma : float
        Noise standard deviation, >= 0.

    Returns
    -------
    Design

    Raises
    ------
    ConvexlawError
        A prior without signals, delta not > 0, sigma negative, NaN.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Prior
    >>> round(optimal_lasso(Prior.bernoulli_gaussian(0.5), 0.5, 0.5).state.mse, 5)
    0.3516
    """
    ratio, noise = _numbers(prior, delta, sigma)
    tau = smallest_tau(prior, ratio, noise, lambda t: _best_soft(prior, t)[0])
    alpha = _best_soft(prior, level_of(prior, ratio, tau))[1] / level_of(prior, ratio, tau)
    return _design("Lasso of smallest MSE", prior, Lasso(alpha), ratio, noise)


def optimal_two_level(prior: Prior, delta: float, sigma: float) -> Design:
    """Two-level SLOPE with the smallest asymptotic mean squared error.

    Parameters
    ----------
    prior, delta, sigma
        As in `optimal_lasso`.

    Returns
    -------
    Design

    Raises
    ------
    ConvexlawError
        As in `optimal_lasso`.

    References
    ----------
    Zhang and Bu, arXiv 2102.07211 and 2507.09110 (the class); the exact search is ours.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Prior
    >>> round(optimal_two_level(Prior.parse("1:0.5"), 0.5, 0.2).state.mse, 5)
    0.28159
    """
    ratio, noise = _numbers(prior, delta, sigma)
    penalty = best_two_level(prior, ratio, noise, None)
    return _design("two-level SLOPE of smallest MSE", prior, penalty, ratio, noise)


def optimal_slope(prior: Prior, delta: float, sigma: float) -> Design:
    """SLOPE with the smallest asymptotic mean squared error over all non-increasing penalties.

    The effective penalty is the isotonic regression of ``z - E[B sgn Y | |Y| = z]``; its sequence is returned
    as levels on about 1000 small rank fractions.

    Parameters
    ----------
    prior, delta, sigma
        As in `optimal_lasso`.

    Returns
    -------
    Design

    Raises
    ------
    ConvexlawError
        As in `optimal_lasso`.

    References
    ----------
    Hu and Lu, arXiv 1903.11582, section 4.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Prior
    >>> round(optimal_slope(Prior.parse("1:0.5"), 0.5, 0.2).state.mse, 5)
    0.26132
    """
    ratio, noise = _numbers(prior, delta, sigma)
    return _best_slope("SLOPE of smallest MSE", prior, ratio, noise, 0.0)


def most_powerful_slope(prior: Prior, delta: float, sigma: float, level: float) -> Design:
    """SLOPE with the most power among those that select a null with probability ``level``.

    The zero threshold is fixed at ``Phi^{-1}(1 - level/2) tau``; the smallest tau then gives the largest TPP,
    and the smallest FDP and MSE.

    Parameters
    ----------
    prior, delta, sigma
        As in `optimal_lasso`.
    level : float
        Type I level, in (0, 1).

    Returns
    -------
    Design

    Raises
    ------
    ConvexlawError
        level outside (0, 1); and as in `optimal_lasso`.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Prior
    >>> design = most_powerful_slope(Prior.parse("4:0.2"), 0.64, 0.5, 0.1336)
    >>> round(design.state.threshold, 3), round(design.state.tpp, 3)
    (1.5, 0.834)
    """
    from scipy.special import ndtri

    ratio, noise = _numbers(prior, delta, sigma)
    size = real("level", level, "a type I level in (0, 1)")
    if not 0 < size < 1:
        raise ConvexlawError(f"level = {size:g}: must lie inside (0, 1); give a type I level, e.g. 0.05")
    return _best_slope(
        f"most powerful SLOPE at level {size:g}", prior, ratio, noise, -float(ndtri(0.5 * size))
    )


def improve_lasso(prior: Prior, delta: float, sigma: float, alpha: float) -> Design:
    """Two-level SLOPE with the zero threshold of a Lasso and smaller tau: better TPP, FDP and MSE at once.

    Parameters
    ----------
    prior, delta, sigma
        As in `optimal_lasso`.
    alpha : float
        Level of the Lasso, in units of tau.

    Returns
    -------
    Design
        The Lasso itself where no two-level penalty improves on it.

    Raises
    ------
    NoFixedPointError
        The Lasso has no fixed point at this level.
    ConvexlawError
        As in `optimal_lasso`.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Prior
    >>> state = improve_lasso(Prior.parse("4:0.2"), 0.64, 0.5, 1.5).state
    >>> round(state.tpp, 4), round(state.fdp, 4), round(state.mse, 4)
    (0.8344, 0.3905, 1.5166)
    """
    ratio, noise = _numbers(prior, delta, sigma)
    a = positive("alpha", alpha, "a Lasso level > 0, in units of tau")
    solve(prior, Lasso(a), ratio, noise, require_lambda=False)
    penalty = best_two_level(prior, ratio, noise, a)
    return _design(f"two-level SLOPE that improves the Lasso({a:g})", prior, penalty, ratio, noise)


def _design(name: str, prior: Prior, penalty: Penalty, delta: float, sigma: float) -> Design:
    return Design(name, penalty, solve(prior, penalty, delta, sigma, require_lambda=False))


def _best_soft(prior: Prior, tau: float) -> tuple[float, float]:
    """Smallest risk of soft thresholding and where: a scan, then a bounded search."""
    from scipy.optimize import minimize_scalar

    from convexlaw.theory import _design_kernels as kernels

    law = (*prior.arrays, tau)
    scan = np.linspace(0.0, 8.0 * tau, 33)
    risks = np.array([kernels.soft_threshold_risk(*law, a) for a in scan])
    i = int(np.argmin(risks))
    found = minimize_scalar(
        lambda a: kernels.soft_threshold_risk(*law, a),
        bounds=(scan[max(i - 1, 0)], scan[min(i + 1, 32)]),
        method="bounded",
        options={"xatol": 1e-9 * tau},
    )
    return (float(found.fun), float(found.x)) if found.fun < risks[i] else (float(risks[i]), float(scan[i]))


def _best_slope(name: str, prior: Prior, delta: float, sigma: float, a: float) -> Design:
    tau = smallest_tau(prior, delta, sigma, lambda t: _best_function(prior, t, a)[0])
    level = level_of(prior, delta, tau)
    _, levels, mass = _best_function(prior, level, a)
    keep = mass > 1e-15
    shares = mass[keep][::-1] / mass[keep].sum()
    heights = levels[keep][::-1] / level
    first = np.append(True, np.diff(heights) != 0)
    merged = np.add.reduceat(shares, np.flatnonzero(first))
    penalty = KLevel(tuple(heights[first].tolist()), tuple((merged / merged.sum()).tolist()))
    return _design(name, prior, penalty, delta, sigma)


def _best_function(prior: Prior, tau: float, a: float) -> tuple[float, Vector, Vector]:
    """Smallest risk with zero threshold at least a tau, the levels on the cells, the mass of the cells."""
    from convexlaw.theory import _design_kernels as kernels
    from convexlaw.theory import _limit_kernels as limits

    edges = mesh(prior, tau, _DENSE, np.array([a * tau]))
    moments = limits.cells(*prior.arrays, tau, edges)
    levels, risk = kernels.best_function(moments, edges, a * tau)
    return float(risk), levels, moments[0]
