"""Gradient descent with noise on problems whose constants are known, beside the bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.simulations.problems import Problem, Quadratic
from convexlaw.theory import last_iterate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Descent", "descend", "expected_descent"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Descent(Result):
    """What descent did under one schedule, and what the bounds need to be compared with it.

    Attributes
    ----------
    gap : ndarray, shape (T + 1,)
        E f(x) - f* before update 0, ..., after update T - 1.
    error : ndarray, shape (T + 1,)
        Standard error of ``gap`` over the replicas; 0 where it is exact.
    grad_norm : ndarray, shape (T + 1,)
        Root of E|g|^2 of the batch at the same points; the last batch size also serves the last point.
    lr, batch : ndarray, shape (T,)
        Step sizes and batch sizes.
    distance : float
        Distance of the start from the minimiser.
    """

    gap: Array = field(repr=False)
    error: Array = field(repr=False)
    grad_norm: Array = field(repr=False)
    lr: Array = field(repr=False)
    batch: Array = field(repr=False)
    distance: float

    def __str__(self) -> str:
        return (
            f"Descent: {self.lr.size} updates, {self.batch.sum():.6g} samples\n"
            f"  gap    {self.gap[0]:.6g} -> {self.gap[-1]:.6g} (standard error {self.error[-1]:.1g})\n"
            f"  bound  {self.bound():.6g} (tight {self.bound('tight'):.6g})"
        )

    def bound(self, form: str = "free") -> float:
        """Bound on the last gap from the gradient norms of this run, in a form of ``theory.last_iterate``."""
        return last_iterate.bound(self.lr, self.grad_norm, self.distance, form)

    def to_frame(self) -> pd.DataFrame:
        """One row a point: step, lr and batch_size of the update that follows, gap, error, grad_norm."""
        import pandas as pd

        return pd.DataFrame(
            {
                "step": np.arange(self.gap.size),
                "lr": np.append(self.lr, np.nan),
                "batch_size": np.append(self.batch, np.nan),
                "gap": self.gap,
                "error": self.error,
                "grad_norm": self.grad_norm,
            }
        )


def descend(
    problem: Problem, lr: ArrayLike, batch: ArrayLike = 1, *, replicas: int = 100, seed: int = 0
) -> Descent:
    """Run stochastic gradient descent many times.

    Parameters
    ----------
    problem : Problem
        From :mod:`convexlaw.simulations.problems`.
    lr : array_like, shape (T,)
        Step size of every update.
    batch : int or array_like of int, shape (T,)
        Samples of every update.
    replicas : int
        Independent runs.
    seed : int
        Seed of the noise.

    Returns
    -------
    Descent

    Examples
    --------
    >>> from convexlaw.simulations.problems import random_max_of_affine
    >>> run = descend(random_max_of_affine(9, 4, np.random.default_rng(0)), np.full(50, 0.02), replicas=2)
    >>> bool(run.gap[-1] <= run.bound("tight"))
    True
    """
    rates, sizes = _schedules(lr, batch)
    if np.any(sizes != np.round(sizes)):
        raise ConvexlawError(
            "batch sizes of a simulated run are whole; expected_descent takes any positive numbers"
        )
    if replicas < 1:
        raise ConvexlawError(f"replicas = {replicas}: at least one run is needed")
    rng = np.random.default_rng(seed)
    points = np.tile(np.asarray(problem.start, dtype=float), (replicas, 1))
    gap, error, norm = np.empty((3, rates.size + 1))
    for t in range(rates.size + 1):
        size = int(sizes[min(t, rates.size - 1)])
        values = problem.gap(points)
        gap[t] = values.mean()
        error[t] = values.std(ddof=1) / np.sqrt(replicas) if replicas > 1 else 0.0
        norm[t] = np.sqrt(problem.second_moment(points, size).mean())
        if t < rates.size:
            points = points - rates[t] * problem.gradient(points, size, rng)
    return Descent(gap, error, norm, rates, sizes, problem.distance)


def expected_descent(problem: Quadratic, lr: ArrayLike, batch: ArrayLike = 1.0) -> Descent:
    """Give the exact expectation of :func:`descend` on a quadratic.

    In each direction mean and variance obey m <- (1 - lr h) m and v <- (1 - lr h)^2 v + lr^2 s^2/B.

    Parameters
    ----------
    problem : Quadratic
        From :mod:`convexlaw.simulations.problems`.
    lr : array_like, shape (T,)
        Step size of every update.
    batch : float or array_like, shape (T,)
        Samples of every update, any positive numbers.

    Returns
    -------
    Descent
        With ``error`` 0.

    Examples
    --------
    >>> problem = Quadratic(np.array([1.0]), np.array([1.0]), np.array([0.0]))
    >>> expected_descent(problem, [0.5, 0.5]).gap.tolist()
    [0.5, 0.125, 0.03125]
    """
    rates, sizes = _schedules(lr, batch)
    h, noise = problem.curvature, problem.noise**2
    square = np.asarray(problem.start, dtype=float) ** 2  # m^2 + v: both parts shrink alike
    total = float(noise.sum())
    gap, norm = np.empty((2, rates.size + 1))
    for t in range(rates.size + 1):
        gap[t] = 0.5 * (h @ square)
        norm[t] = np.sqrt(h**2 @ square + total / sizes[min(t, rates.size - 1)])
        if t < rates.size:
            square = (1 - rates[t] * h) ** 2 * square + rates[t] ** 2 / sizes[t] * noise
    return Descent(gap, np.zeros_like(gap), norm, rates, sizes, problem.distance)


def _schedules(lr: ArrayLike, batch: ArrayLike) -> tuple[Array, Array]:
    rates = np.array(lr, dtype=float)
    if rates.ndim != 1 or rates.size == 0 or not np.all(np.isfinite(rates) & (rates >= 0)):
        raise ConvexlawError("lr: give one finite learning rate >= 0 an update, shape (T,), T >= 1")
    sizes = np.asarray(batch, dtype=float)
    if sizes.shape not in ((), rates.shape) or not np.all(np.isfinite(sizes) & (sizes > 0)):
        raise ConvexlawError(
            f"batch has shape {sizes.shape}: give a positive number, or one for each of {rates.size} updates"
        )
    return rates, np.broadcast_to(sizes, rates.shape).astype(float)
