"""Penalties for a finite number of features, improved by projected gradient steps on the fixed point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory._penalties import Penalty, Weights
from convexlaw.theory._priors import Prior
from convexlaw.theory._selection_checks import noise_level, positive
from convexlaw.theory.sorted_l1 import check_sequence

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

__all__ = ["GradientDesign", "finite_tau", "gradient_design"]


class _Sample:
    """Fixed draws (signals and noise) over which expectations are means: the same for every penalty."""

    def __init__(self, signals: Matrix, delta: float, sigma: float, rng: np.random.Generator) -> None:
        self.signals = signals
        self.noise = rng.standard_normal(signals.shape)
        self.delta, self.sigma = delta, sigma
        self.energy = float((signals**2).mean())

    def prox(self, weights: Vector, tau: float) -> Matrix:
        from convexlaw.theory import _sorted_l1_kernels as kernels

        points = self.signals + tau * self.noise
        out = np.zeros_like(points)
        for row, found in zip(points, out, strict=True):
            kernels.prox(row, tau * weights, found)
        return out

    def map(self, weights: Vector, tau: float) -> float:
        """sigma^2 + E ||prox - B||^2 / (delta p)."""
        error = float(((self.prox(weights, tau) - self.signals) ** 2).mean())
        return self.sigma**2 + error / self.delta

    def tau(self, weights: Vector) -> float:
        """Solve map(tau)/tau^2 = 1; infinite where there is no root below 1e4 times the start."""
        from scipy.optimize import brentq

        def excess(log_x: float) -> float:
            return self.map(weights, math.exp(0.5 * log_x)) / math.exp(log_x) - 1.0

        high = math.log(self.sigma**2 + self.energy / self.delta)
        low = high
        while excess(high) > 0:
            low, high = high, high + 1.0
            if high > low + 18.0 or high > 18.0 + math.log(self.sigma**2 + self.energy / self.delta):
                return math.inf
        while excess(low) < 0:
            high, low = low, low - 1.0
            if low < high - 60.0 or low < -60.0:
                return 0.0
        return math.exp(0.5 * float(brentq(excess, low, high, xtol=1e-10)))

    def gradient(self, weights: Vector, tau: float) -> Vector:
        """Differentiate tau^2 by the weights.

        -(2 tau/(delta p)) E[mean over the cluster at rank i of (prox - B) sign(prox)] / (1 - F').
        """
        found = self.prox(weights, tau)
        size = np.abs(found)
        order = np.argsort(-size, axis=1, kind="stable")
        ranked = np.take_along_axis(size, order, axis=1)
        pull = np.take_along_axis((found - self.signals) * np.sign(found), order, axis=1)
        total = np.zeros(weights.size)
        for mags, values in zip(ranked, pull, strict=True):
            count = int(np.count_nonzero(mags))
            if count == 0:
                continue
            starts = np.flatnonzero(np.append(True, mags[1:count] != mags[: count - 1]))
            sums = np.add.reduceat(values[:count], starts)
            lengths = np.diff(np.append(starts, count))
            total[:count] += np.repeat(sums / lengths, lengths)
        partial = -2.0 * tau / (self.delta * weights.size) * total / size.shape[0]
        step = 1e-4 * tau
        ahead, behind = self.map(weights, tau + step), self.map(weights, tau - step)
        slope = (ahead - behind) / (4.0 * tau * step)
        out: Vector = partial / max(1.0 - slope, 1e-6)
        return out


def _sample(
    prior: Prior | ArrayLike,
    p: int,
    delta: Any,
    sigma: Any,
    draws: int,
    rng: np.random.Generator | int | None,
) -> _Sample:
    ratio = positive("delta", delta, "delta = n/p, rows per feature")
    noise = noise_level(sigma)
    if draws < 1:
        raise ConvexlawError(f"draws = {draws!r}: give at least 1 draw")
    source = np.random.default_rng(rng)
    if isinstance(prior, Prior):
        signals = np.stack([prior.sample(p, source) for _ in range(draws)])
    else:
        beta = np.asarray(prior, dtype=np.float64)
        if beta.shape != (p,):
            raise ConvexlawError(f"signals have shape {beta.shape} for p = {p} weights; give one a feature")
        signals = np.tile(beta, (draws, 1))
    if not (signals != 0).any():
        raise ConvexlawError("all signals are 0: there is nothing to design for")
    return _Sample(signals, ratio, noise, source)


def finite_tau(
    weights: ArrayLike,
    signals: Prior | ArrayLike,
    delta: float,
    sigma: float,
    *,
    draws: int = 40,
    rng: np.random.Generator | int | None = None,
) -> float:
    """Solve the state evolution for p features, expectations by fixed random draws.

    Parameters
    ----------
    weights : array_like, shape (p,)
        Penalty in units of tau, non-increasing.
    signals : Prior or array_like, shape (p,)
        Law of the coefficients, or the coefficients themselves.
    delta, sigma : float
        Rows per feature and noise standard deviation.
    draws : int
        Number of draws of the noise (and of the coefficients).
    rng : numpy Generator or seed, optional

    Returns
    -------
    float
        tau; infinite where there is no fixed point.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Prior
    >>> round(finite_tau([1.5] * 400, Prior.bernoulli_gaussian(0.1), 0.5, 0.2, draws=200, rng=0), 2)
    0.28
    """
    levels = check_sequence(weights, np.size(weights))
    return _sample(signals, levels.size, delta, sigma, draws, rng).tau(levels)


@dataclass(frozen=True)
class GradientDesign(Result):
    """Penalty sequence found by projected gradient steps.

    Attributes
    ----------
    weights : ndarray, shape (p,)
        In units of tau.
    tau : float
        Fixed point at them.
    history : ndarray
        tau after every accepted step, the start first; it only falls.
    converged : bool
        The last steps changed tau by less than the tolerance.
    """

    _figure: ClassVar[str] = "designs:plot_gradient_design"

    weights: Vector = field(repr=False, compare=False)
    tau: float
    history: Vector = field(repr=False, compare=False)
    converged: bool

    @property
    def penalty(self) -> Weights:
        """The sequence as a function of the rank."""
        return Weights(tuple(self.weights.tolist()))

    def to_frame(self) -> pd.DataFrame:
        """Columns rank, weight."""
        import pandas as pd

        return pd.DataFrame({"rank": np.arange(1, self.weights.size + 1), "weight": self.weights})

    def __str__(self) -> str:
        return (
            f"Penalty for {self.weights.size} features: tau {self.history[0]:.6g} -> {self.tau:.6g} in "
            f"{self.history.size - 1} steps{'' if self.converged else ' (not converged)'}\n"
            f"  weights from {self.weights[0]:.4g} to {self.weights[-1]:.4g} (units of tau)"
        )


def gradient_design(
    signals: Prior | ArrayLike,
    delta: float,
    sigma: float,
    start: Penalty | ArrayLike,
    *,
    p: int | None = None,
    draws: int = 20,
    max_iter: int = 100,
    tol: float = 1e-6,
    rng: np.random.Generator | int | None = None,
) -> GradientDesign:
    """Lower the fixed point tau by projected gradient steps on the p weights.

    Steps are projected on the non-increasing non-negative sequences and halved while tau grows.

    Parameters
    ----------
    signals : Prior or array_like, shape (p,)
        Law of the coefficients, or the coefficients themselves.
    delta, sigma : float
        Rows per feature and noise standard deviation.
    start : Penalty or array_like, shape (p,)
        First weights, in units of tau.
    p : int, optional
        Number of features; needed where neither ``start`` nor ``signals`` is an array.
    draws : int
        Draws of the noise; the same for every step.
    max_iter : int
        Number of steps.
    tol : float
        Relative change of tau below which it stops.
    rng : numpy Generator or seed, optional

    Returns
    -------
    GradientDesign

    Raises
    ------
    ConvexlawError
        A start without fixed point, or shapes that do not fit.

    References
    ----------
    Zhang and Bu, arXiv 2102.07211, the projected gradient method (gradient derived anew).

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Lasso, Prior
    >>> design = gradient_design(Prior.parse("1:0.5"), 0.5, 0.2, Lasso(0.8), p=60, max_iter=15, rng=0)
    >>> bool(design.tau < design.history[0])
    True
    """
    size = p
    if size is None:
        known = start if not isinstance(start, Penalty) else signals
        if isinstance(known, (Penalty, Prior)):
            raise ConvexlawError("p = None: give the number of features, or weights or signals as an array")
        size = int(np.size(known))
    levels = start.weights(size) if isinstance(start, Penalty) else check_sequence(start, size)
    sample = _sample(signals, size, delta, sigma, draws, rng)
    tau = sample.tau(levels)
    if not math.isfinite(tau):
        raise ConvexlawError(
            "the start has no fixed point: raise its levels until null_risk(penalty) < delta"
        )
    history = [tau]
    converged = False
    step = 0.0
    for _ in range(max_iter):
        gradient = sample.gradient(levels, tau)
        peak = float(np.abs(gradient).max())
        if peak == 0.0 or tau == 0.0:
            converged = True
            break
        step = step or 0.5 / peak
        while True:
            trial = _project(levels - step * gradient)
            new = sample.tau(trial) if trial[0] > 0 else math.inf
            if new < tau or step * peak < 1e-7:
                break
            step *= 0.5
        if not new < tau:
            converged = True
            break
        gain = 1.0 - new / tau
        levels, tau, step = trial, new, 1.5 * step
        history.append(tau)
        if gain < tol:
            converged = True
            break
    return GradientDesign(levels, tau, np.array(history), converged)


def _project(x: Vector) -> Vector:
    from scipy.optimize import isotonic_regression

    out: Vector = np.maximum(isotonic_regression(x, increasing=False).x, 0.0)
    return out
