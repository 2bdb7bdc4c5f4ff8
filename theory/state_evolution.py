"""State evolution: the noise level that SLOPE sees at its solution, and everything that follows from it.

Setting: X with independent N(0, 1/n) entries, ``y = X beta + w``, ``w ~ N(0, sigma^2)``, n/p -> delta, and
SLOPE in the AMP scaling, ``1/2 ||y - X b||^2 + J_lambda(b)``. The thresholds are ``tau * alpha`` and
``lambda = alpha * tau * (1 - df/delta)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory._fit_estimates import FitEstimate, estimate_from_fit
from convexlaw.theory._selection_checks import noise_level, positive
from convexlaw.theory._state_solver import (
    COARSE,
    TINY,
    NoFixedPointError,
    NonPositiveLambdaError,
    check_domain,
    crossing,
    fixed_point,
    log_domain_edge,
    polish,
    tolerance,
)
from convexlaw.theory.scalar_limit import (
    RESOLUTION,
    Penalty,
    Prior,
    ScalarLimit,
    check_problem,
    limiting_function,
    null_risk,
    risk_and_df,
    soft_null_risk,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = [
    "FitEstimate",
    "NoFixedPointError",
    "NonPositiveLambdaError",
    "StateEvolution",
    "alpha_min",
    "calibrate",
    "estimate_from_fit",
    "null_risk",
    "solve",
    "trajectory",
]


@dataclass(frozen=True)
class StateEvolution(Result):
    """Fixed point of the state evolution and the limits that follow from it.

    Attributes
    ----------
    prior, penalty, delta, sigma
        The question; the penalty is in units of ``tau``.
    tau : float
        Effective noise level of one coefficient (AMP scaling); 0 means exact recovery.
    mse : float
        Limit of ``||b - beta||^2 / p``, ``delta (tau^2 - sigma^2)``.
    tpp, fdp : float
        Limits of the true positive and false discovery proportions (TPP is NaN without signals).
    df : float
        Limit of (number of distinct nonzero magnitudes) / p.
    threshold : float
        Zero threshold divided by tau.
    flat : float
        Value of the heaviest tied nonzero piece, in the units of the coefficients; 0 without one.
    lambda_factor : float
        ``tau (1 - df/delta)``: ``lambda = penalty * lambda_factor``.
    scale : float
        After `calibrate`: ``penalty = scale * lam``; 1 otherwise.
    """

    _figure: ClassVar[str] = "scalar:plot_state_evolution"

    prior: Prior
    penalty: Penalty
    delta: float
    sigma: float
    tau: float
    mse: float
    tpp: float
    fdp: float
    df: float
    threshold: float
    flat: float
    lambda_factor: float
    scale: float = 1.0

    @property
    def lam(self) -> Penalty:
        """The penalty of the SLOPE problem (AMP scaling), as a function of the rank.

        Raises
        ------
        NonPositiveLambdaError
            lambda_factor is not positive.
        """
        if not self.lambda_factor > 0:
            raise NonPositiveLambdaError(
                f"lambda_factor = {self.lambda_factor:.6g}: no SLOPE problem has it; use larger levels"
            )
        return self.penalty.scaled(self.lambda_factor)

    @property
    def selected(self) -> float:
        """Limit of (number of nonzero coefficients) / p."""
        false = (1.0 - self.prior.epsilon) * math.erfc(self.threshold / math.sqrt(2.0))
        return false + (self.prior.epsilon * self.tpp if self.prior.epsilon > 0 else 0.0)

    @property
    def residual(self) -> float:
        """Limit of ``||y - X b||^2 / n``."""
        return self.lambda_factor**2

    @property
    def limit(self) -> ScalarLimit:
        """The limiting scalar function at the fixed point.

        Raises
        ------
        ConvexlawError
            tau = 0: there is no noise left to shrink.
        """
        return limiting_function(self.prior, self.penalty, self.tau)

    def to_frame(self) -> pd.DataFrame:
        """One row: tau, mse, tpp, fdp, df, threshold, flat, lambda_factor, scale."""
        import pandas as pd

        names = ("tau", "mse", "tpp", "fdp", "df", "threshold", "flat", "lambda_factor", "scale")
        return pd.DataFrame([{name: getattr(self, name) for name in names}])

    def __str__(self) -> str:
        name = str(self.penalty)
        return "\n".join(
            (
                f"State evolution, delta = {self.delta:g}, sigma = {self.sigma:g}",
                f"  {self.prior}",
                f"  penalty {name if len(name) < 90 else name[:87] + '...'} (units of tau)",
                f"  tau {self.tau:.6g}, MSE {self.mse:.6g}",
                f"  TPP {self.tpp:.6g}, FDP {self.fdp:.6g}, selected per feature {self.selected:.6g}",
                f"  threshold {self.threshold:.6g} tau, flat {self.flat:.6g}, df per feature {self.df:.6g}",
                f"  lambda = {self.lambda_factor:.6g} * penalty",
            )
        )


def alpha_min(delta: float) -> float:
    """Smallest Lasso level with a fixed point: the root of ``E soft(Z; a)^2 = delta``, 0 where delta >= 1.

    Parameters
    ----------
    delta : float
        Rows per feature.

    Returns
    -------
    float

    References
    ----------
    Bayati and Montanari, arXiv 1008.2581, Proposition 1.3.

    Examples
    --------
    >>> round(alpha_min(0.5), 6)
    0.405234
    """
    ratio = positive("delta", delta, "delta = n/p, rows per feature")
    if ratio >= 1.0:
        return 0.0
    from scipy.optimize import brentq

    high = 1.0
    while soft_null_risk(high) > ratio:
        high *= 2.0
        if high > 64.0:
            raise ConvexlawError(f"delta = {ratio:g}: too small for double precision; give delta > 1e-300")
    return float(brentq(lambda a: soft_null_risk(a) - ratio, 0.0, high, xtol=1e-15, rtol=1e-14))


def solve(
    prior: Prior, penalty: Penalty, delta: float, sigma: float, *, require_lambda: bool = True
) -> StateEvolution:
    """Solve the state evolution for thresholds ``tau * penalty``.

    Parameters
    ----------
    prior : Prior
        Law of the coefficients.
    penalty : Penalty
        Levels alpha, in units of tau.
    delta : float
        Rows per feature, n/p > 0.
    sigma : float
        Noise standard deviation, >= 0.
    require_lambda : bool
        False: return the fixed point also where its lambda would not be positive.

    Returns
    -------
    StateEvolution
        With sigma = 0 and exact recovery: tau = mse = lambda_factor = 0 and the limits of the rest.

    Raises
    ------
    NoFixedPointError
        ``null_risk(penalty) >= delta``: tau diverges.
    NonPositiveLambdaError
        The fixed point has ``df >= delta``.
    ConvexlawError
        delta not > 0, sigma negative, NaN.

    References
    ----------
    Bu, Klusowski, Rush and Su, arXiv 1907.07502, Theorems 1 and 2.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Lasso, Prior
    >>> state = solve(Prior.bernoulli_gaussian(0.1), Lasso(1.5), 0.5, 0.2)
    >>> round(state.tau, 6), round(state.tpp, 6), round(state.fdp, 6)
    (0.285078, 0.680902, 0.638478)
    """
    ratio, noise = _checked(prior, penalty, delta, sigma)
    check_domain(penalty, ratio)
    tau = fixed_point(prior, penalty, ratio, noise, RESOLUTION)
    return _state(prior, penalty, ratio, noise, tau, require_lambda)


def calibrate(prior: Prior, lam: Penalty, delta: float, sigma: float) -> StateEvolution:
    """State evolution of the SLOPE problem with the penalty ``lam``: finds the scale k with alpha = k lam.

    Parameters
    ----------
    prior : Prior
    lam : Penalty
        The penalty of ``1/2 ||y - X b||^2 + J_lam(b)`` as a function of the rank.
    delta, sigma : float
        As in `solve`.

    Returns
    -------
    StateEvolution
        Its ``scale`` is k, its ``penalty`` is k lam.

    Raises
    ------
    ConvexlawError
        As in `solve`; or no penalty above zero.

    References
    ----------
    Bu, Klusowski, Rush and Su, arXiv 1907.07502, Theorems 1 and 2.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Lasso, Prior
    >>> state = calibrate(Prior.bernoulli_gaussian(0.1), Lasso(0.2), 0.5, 0.2)
    >>> round(state.scale, 5), round(state.tpp, 5)
    (6.67813, 0.71636)
    """
    ratio, noise = _checked(prior, lam, delta, sigma)
    if not float(lam.value(np.array(1e-300))) > 0:
        raise ConvexlawError("lam is 0 at every rank: give a penalty above 0 (alpha = 0 is least squares)")
    spread = math.sqrt(noise**2 + prior.second_moment / ratio)
    if spread == 0.0:
        raise ConvexlawError("signals and noise are both 0: no scale of lam gives lambda = lam")
    found = _scale_of(prior, lam, ratio, noise, spread)
    if found is not None:
        scale, tau = found
        state = _state(prior, lam.scaled(scale), ratio, noise, tau, True, scale)
    if found is None or not abs(scale * state.lambda_factor - 1.0) < 1e-6:
        raise ConvexlawError(
            f"no scale of lam was found with alpha tau (1 - df/delta) = lam: {lam} is beyond the resolution "
            f"against signals and noise of size {spread:.3g}; give lam in their units"
        )
    return state


def _scale_of(
    prior: Prior, lam: Penalty, ratio: float, noise: float, spread: float
) -> tuple[float, float] | None:
    """Scale k with k tau (1 - df/delta) = 1, and tau there; None where tau is too small to be resolved."""
    tau = 0.0

    def shortfall(log_k: float, resolution: int, tol: float) -> float:
        nonlocal tau
        penalty = lam.scaled(math.exp(log_k))
        try:
            tau = fixed_point(prior, penalty, ratio, noise, resolution, tau, tol)
        except NoFixedPointError:
            return -1.0
        if tau == 0:
            return -1.0
        df = risk_and_df(prior, penalty, max(tau, TINY * spread), resolution)[1]
        return math.exp(log_k) * tau * (1.0 - df / ratio) - 1.0

    low = log_domain_edge(lam, ratio)
    high = max(low, -math.log(spread)) + 0.5
    while shortfall(high, COARSE, 1e-2) <= 0:
        low, high = high, high + 1.0
    near = crossing(shortfall, low, high, (COARSE, 1e-2), 0.05)
    if near is None:
        return None
    shortfall(near, COARSE, 1e-2)
    if tau < TINY * spread:
        return None
    found = polish(prior, lam, ratio, noise, near, tau)
    if found is None:
        log_k = crossing(shortfall, low, high, (RESOLUTION, 0.0), tolerance(lam))
        if log_k is None:
            return None
        tau = fixed_point(prior, lam.scaled(math.exp(log_k)), ratio, noise, RESOLUTION, tau)
    else:
        log_k, tau = found
    return math.exp(log_k), tau


def trajectory(prior: Prior, penalty: Penalty, delta: float, sigma: float, steps: int) -> Vector:
    """Noise levels ``tau_0, ..., tau_steps`` of SLOPE-AMP started at zero.

    Parameters
    ----------
    prior, penalty, delta, sigma
        As in `solve`.
    steps : int
        Number of iterations, >= 0.

    Returns
    -------
    ndarray, shape (steps + 1,)
        ``tau_0^2 = sigma^2 + E B^2/delta``, ``tau_{t+1}^2 = sigma^2 + mse(tau_t)/delta``.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Lasso, Prior
    >>> trajectory(Prior.bernoulli_gaussian(0.1), Lasso(1.5), 0.5, 0.2, 3).round(4)
    array([0.4899, 0.3637, 0.3167, 0.298 ])
    """
    ratio, noise = _checked(prior, penalty, delta, sigma)
    taus = [math.sqrt(noise**2 + prior.second_moment / ratio)]
    for _ in range(int(steps)):
        risk = risk_and_df(prior, penalty, taus[-1])[0] if taus[-1] > 0 else 0.0
        taus.append(math.sqrt(noise**2 + max(risk, 0.0) / ratio))
    return np.array(taus)


def _checked(prior: Any, penalty: Any, delta: Any, sigma: Any) -> tuple[float, float]:
    check_problem(prior, penalty)
    ratio = positive("delta", delta, "delta = n/p, rows per feature")
    return ratio, noise_level(sigma)


def _state(
    prior: Prior,
    penalty: Penalty,
    delta: float,
    sigma: float,
    tau: float,
    require_lambda: bool,
    scale: float = 1.0,
) -> StateEvolution:
    recovered = tau == 0.0
    # TPP, FDP and df have limits as tau -> 0: they are read off a little above it
    level = max(tau, TINY * math.sqrt(sigma * sigma + prior.second_moment / delta)) or 1.0
    h = limiting_function(prior, penalty, level)
    df, tpp, fdp = h.df, h.tpp, h.fdp
    mse = delta * (tau * tau - sigma * sigma)
    if mse < 1e-4 * delta * tau * tau:  # cancelled: noise far above the errors, or tau = 0
        mse = max(h.mse, 0.0) * (tau / level) ** 2
    factor = tau * (1.0 - df / delta)
    if require_lambda and not recovered and factor <= 0:
        raise NonPositiveLambdaError(
            f"df = {df:.6g} >= delta = {delta:g} at tau = {tau:.6g}: lambda = tau alpha (1 - df/delta) is "
            "not positive; use larger penalty levels, or require_lambda=False for the fixed point alone"
        )
    return StateEvolution(
        prior=prior,
        penalty=penalty,
        delta=delta,
        sigma=sigma,
        tau=tau,
        mse=mse,
        tpp=tpp,
        fdp=fdp,
        df=df,
        threshold=h.threshold / level,
        flat=h.flat * (tau / level),
        lambda_factor=factor,
        scale=scale,
    )
