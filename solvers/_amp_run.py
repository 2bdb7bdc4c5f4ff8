"""The iteration of approximate message passing, with a free duality gap at every step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._amp_exact import solve_on_pattern
from convexlaw.solvers._first_order import gap as duality_gap
from convexlaw.solvers._first_order import prox

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["Mode", "Problem", "Run"]

Mode = Literal["alpha", "lambda", "state_evolution"]
_GROWTH = 1e3  # a residual this many times ||y|| has diverged
_PATIENCE = 30  # steps before slow progress counts
_NEAR = 3e-3  # relative gap from which slow progress is left alone
_RATE = 0.2  # share of the way that the scale of the thresholds goes each step


class Problem:
    """The data, scaled so that the columns have mean square norm 1."""

    def __init__(self, X: Any, y: ArrayLike) -> None:
        try:
            target = np.asarray(y, dtype=np.float64)
            if not hasattr(X, "tocsr"):
                X = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            raise ConvexlawError("X or y holds values that are no numbers: give arrays of numbers") from None
        if X.ndim != 2 or target.shape != (X.shape[0],):
            raise ConvexlawError(f"X has shape {X.shape}, y {target.shape}: give (n, p) and (n,)")
        self.n, self.p = X.shape
        data = X.data if hasattr(X, "tocsr") else X
        square = float(np.einsum("i,i->", data, data) if data.ndim == 1 else np.einsum("ij,ij->", data, data))
        if not (math.isfinite(square) and np.isfinite(target).all()):
            raise ConvexlawError("X or y holds NaN or infinite values: remove those rows")
        if square == 0 or self.n == 0:
            raise ConvexlawError("X is all zeros or empty: there is nothing to select")
        self.unit = math.sqrt(square / self.p)
        self.X, self.y = X, target
        self.products = 0

    def forward(self, b: Vector) -> Vector:
        """X b / unit."""
        self.products += 1
        out: Vector = np.asarray(self.X @ b) / self.unit
        return out

    def backward(self, r: Vector) -> Vector:
        """X' r / unit."""
        self.products += 1
        out: Vector = np.asarray(self.X.T @ r) / self.unit
        return out


class Run:
    """Message passing in the scaled problem; keeps the best iterate by its gap.

    Thresholds for a given lam come from the recursion ``c_{t+1} = 1 + c_t m/n``; where that makes no progress
    the run starts again with ``lam kappa ||z|| / sqrt(n)``, kappa going slowly to ``sqrt(n)/||y - X b||``.
    Both have the SLOPE solution as their fixed point; the second is slower at best and steadier.
    """

    def __init__(
        self,
        problem: Problem,
        mode: Mode,
        levels: Vector,
        taus: Vector | None,
        damping: float,
        polish: bool,
    ) -> None:
        self.problem, self.mode, self.levels, self.taus = problem, mode, levels, taus
        self.keep, self.polish = damping, polish
        self.method = "amp"
        self.reference = 0.5 * float(problem.y @ problem.y) or 1.0
        self.gaps: list[float] = []
        self.best = (math.inf, np.zeros(problem.p), levels)
        self.tau = float(np.linalg.norm(problem.y)) / math.sqrt(problem.n)
        self.steady, self.kappa, self.least = False, 0.0, 0.0
        self.diverged = False
        self._reset()

    def _reset(self) -> None:
        self.b = np.zeros(self.problem.p)
        self.r = self.z = self.problem.y
        self.carry = self.estimates = self.last = np.zeros(self.problem.p)
        self.share, self.c, self.mixed = 0.0, 1.0, 0.0
        self.pattern = self.tried = b""
        self.began = len(self.gaps)

    def iterate(self, tol: float, max_iter: int) -> None:
        """Run until the gap is at most tol, message passing fails for good, or the steps are used up."""
        while True:
            message = self.problem.backward(self.z)
            # X'r for free: z = (1 - keep) (r + share * old z) + keep * old z
            correlation = (message - self.mixed * self.carry) / (1.0 - self.mixed) - self.share * self.carry
            self._judge(correlation)
            self.estimates = self.b + message
            if self.gaps[-1] <= tol or len(self.gaps) > max_iter:
                self._finish_pattern()
                return
            grown = self._step(message)
            if self.settled and self._finish_pattern() <= tol:
                return
            if grown or self._stuck():
                if self.mode != "lambda" or self.steady:
                    self.diverged = self.diverged or grown
                    if grown:
                        return
                else:
                    self._start_steady()

    def _step(self, message: Vector) -> bool:
        """Do one iteration; tell whether the residual has grown without bound."""
        problem, keep, n = self.problem, self.keep, self.problem.n
        if self.c == 1.0 and self.mode == "lambda":
            # a first guess of c = 1/(1 - m/n) that costs no product
            for _ in range(3):
                self.c = 1.0 + self.c * self._clusters(prox(self.estimates, self.levels * self.c)) / n
        new = prox(self.estimates, self._thresholds(len(self.gaps) - 1 - self.began))
        self.share = self._clusters(new) / n
        self.last = new
        self.b = (1.0 - keep) * new + keep * self.b if keep else new
        self.r = problem.y - problem.forward(self.b)
        self.z = (1.0 - keep) * (self.r + self.share * self.z) + keep * self.z
        self.carry, self.mixed = message, keep
        self.c = 1.0 + self.c * self.share
        size = float(np.linalg.norm(self.z))
        self.tau = size / math.sqrt(n)
        if self.steady:
            wanted = math.sqrt(n) / max(float(np.linalg.norm(self.r)), 1e-300)
            self.kappa = max(self.kappa ** (1.0 - _RATE) * wanted**_RATE, self.least)
        return not size <= _GROWTH * math.sqrt(2.0 * self.reference)

    def _stuck(self) -> bool:
        k = len(self.gaps) - self.began
        return (
            k >= _PATIENCE and k % 10 == 0 and min(self.gaps[-10:]) > 0.3 * min(self.gaps[self.began : -10])
        )

    def _start_steady(self) -> None:
        """Start again with kappa thresholds, above the edge of the domain null_risk(kappa lam) < delta."""
        from convexlaw.theory._state_solver import log_domain_edge
        from convexlaw.theory.scalar_limit import Weights

        shape = Weights(tuple(self.levels.tolist()))
        edge = math.exp(log_domain_edge(shape, self.problem.n / self.problem.p))
        self.steady = True
        self.least = 1.3 * edge
        start = math.sqrt(self.problem.n / (2.0 * self.reference)) if self.reference else 1.0
        self.kappa = max(start, 8.0 * edge)
        self._reset()

    def _thresholds(self, k: int) -> Vector:
        size = float(np.linalg.norm(self.z)) / math.sqrt(self.problem.n)
        if self.mode == "lambda":
            return self.levels * (self.kappa * size if self.steady else self.c)
        if self.taus is not None:
            return self.levels * float(self.taus[min(k, self.taus.size - 1)])
        return self.levels * size

    def _penalty(self) -> Vector:
        """Return the lam of a fixed point here: theta (1 - m/n), with z (1 - m/n) = r."""
        if self.mode == "lambda":
            return self.levels
        if self.taus is not None:
            return self.levels * (float(self.taus[-1]) * max(1.0 - self.share, 0.0))
        return self.levels * (float(np.linalg.norm(self.r)) / math.sqrt(self.problem.n))

    def _judge(self, correlation: Vector) -> None:
        lam = self._penalty()
        value = duality_gap(self.problem.y, self.r, correlation, self.b, lam) / self.reference
        self.gaps.append(value)
        if value <= self.best[0]:
            self.best = (value, self.b, lam)

    def _clusters(self, b: Vector) -> int:
        """Count distinct nonzero magnitudes; note whether the pattern is that of the step before."""
        support = np.flatnonzero(b)
        sizes, place = np.unique(np.abs(b[support]), return_inverse=True)
        pattern = support.tobytes() + (np.sign(b[support]) * (1 + place)).tobytes()
        self.settled = pattern == self.pattern and pattern != self.tried
        self.pattern = pattern
        return int(sizes.size)

    def _finish_pattern(self) -> float:
        """Solve exactly on the last pattern; return the relative gap (infinite where it breaks).

        One product, for the certificate; the columns of the pattern alone enter the rest.
        """
        if not self.polish or (self.pattern and self.pattern == self.tried):
            return math.inf
        self.tried = self.pattern
        scaled = self.mode == "alpha"
        levels = self.levels if scaled else self._penalty()
        exact = solve_on_pattern(self.problem, self.last, levels, scaled)
        if exact is None:
            return math.inf
        value = exact.gap / self.reference
        if value < self.best[0]:
            self.best, self.method = (value, exact.coef, exact.lam), "amp + exact pattern"
        return value
