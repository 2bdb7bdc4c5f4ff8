"""A SLOPE problem with quadratic loss: data, weights and penalty, ready for the engine."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._slope_columns import column_centers, column_scales
from convexlaw.solvers._slope_design import Design
from convexlaw.solvers._slope_engine import Engine
from convexlaw.solvers._slope_forms import FORMS
from convexlaw.solvers._slope_input import as_response, as_weights, column_names, refuse_non_finite
from convexlaw.theory.sorted_l1 import check_sequence, penalty_sequence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


# sums of squares must stay below this
_LARGEST = 1e300


@dataclass(frozen=True)
class Solution:
    """One solved penalty, in the units of the given X.

    Attributes
    ----------
    coef : ndarray, shape (p,), or (p, m) for m responses or classes
    intercept : float, or ndarray, shape (m,)
    gap : float
        Duality gap, in the units of the objective.
    null : float
        Objective of the zero coefficients, P(0).
    n_clusters : int
        Distinct nonzero magnitudes of the (scaled) coefficients.
    n_iter : int
    converged : bool
        ``gap <= tol * null``.
    """

    coef: Vector
    intercept: Any
    gap: float
    null: float
    n_clusters: int
    n_iter: int
    converged: bool


class Problem:
    """Validated data of ``1/2 sum_i w_i (y_i - b0 - x_i b)^2 + alpha J_lam(b)`` with ``sum_i w_i = 1``.

    Parameters
    ----------
    X : ndarray or scipy sparse CSC or CSR, shape (n, p)
    y : array_like, shape (n,)
    lam : array_like, shape (p,), optional
        Explicit penalty sequence; without it ``lambda_type`` and its parameters make one.
    sample_weight : array_like, shape (n,), optional

    Attributes
    ----------
    gram : ndarray, shape (p, p), optional
        Gram matrix of the design where it is known, for the form "gram".
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        lam: Any = None,
        lambda_type: str = "bh",
        q: float = 0.1,
        theta1: float = 1.0,
        theta2: float = 0.5,
        fit_intercept: bool = True,
        centering: str = "none",
        scaling: str = "none",
        sample_weight: Any = None,
        tol: Any = 1e-6,
        max_iter: Any = 100_000,
        solver: str = "auto",
        names: list[Any] | None = None,
    ) -> None:
        self.n, self.p = (int(k) for k in X.shape)
        if self.n == 0 or self.p == 0:
            raise ConvexlawError(f"X has shape {X.shape}: at least one row and one column are needed")
        if not isinstance(tol, int | float | np.floating) or not 0.0 < tol < 1.0:
            raise ConvexlawError(f"tol = {tol!r}: the relative duality gap must lie in (0, 1); 1e-6 is usual")
        if not isinstance(max_iter, Integral) or max_iter < 1:
            raise ConvexlawError(f"max_iter = {max_iter!r}: a whole number >= 1 is needed")
        if solver != "auto" and solver not in FORMS:
            raise ConvexlawError(f"solver = {solver!r}: use 'auto' or one of {', '.join(map(repr, FORMS))}")
        self.names = names if names is not None else column_names(X)
        self.tol, self.max_iter, self.solver = float(tol), int(max_iter), solver
        response = as_response(y, self.n)
        counts = as_weights(sample_weight, self.n)
        self.rows = int(np.count_nonzero(counts))
        self.total = float(counts.sum())
        self.gram: Vector | None = None
        self._penalise(lam, lambda_type, q, theta1, theta2)
        self.fit_intercept = bool(fit_intercept)
        weights = counts / counts.sum()
        with np.errstate(all="ignore"):
            scale = column_scales(X, scaling, counts)
            # with a free intercept a fixed shift changes nothing; its name is checked all the same
            center = column_centers(X, centering, counts, needed=not fit_intercept)
            if fit_intercept:
                column_centers(X[:0], centering, counts[:0]) if centering not in (
                    "none",
                    "mean",
                    "min",
                ) else None
            self.design = Design(
                X, weights, intercept=self.fit_intercept, center=center, scale=scale, tol=self.tol
            )
            self.mean = float(weights @ response) if fit_intercept else 0.0
            if fit_intercept:
                # the second pass takes out the rounding of the first
                self.mean += float(weights @ (response - self.mean))
            target = self.design.root * (response - self.mean)
            top = float(np.abs(target).max())
            if top == 0.0 or top * float(np.linalg.norm(target / top)) <= 3e-15 * abs(self.mean):
                # a constant response, up to the rounding of its mean
                target = np.zeros(self.n)
            pull = self.design.pull(target)
            self.energy = float(target @ target)
        if not self.energy < _LARGEST:
            raise ConvexlawError(
                f"y reaches {np.abs(response).max():.3g}, whose square overflows: rescale it"
            )
        if self.energy < 1.0 / _LARGEST and target.any():
            raise ConvexlawError(
                f"y varies by {np.abs(target / self.design.root.max()).max():.3g} at most, whose square "
                "underflows: rescale it"
            )
        if not _usable(pull) or not _usable(self.design.shift) or not _usable(scale):
            refuse_non_finite(X, self.names)
        self.target = target
        self.pull = pull

    def _penalise(self, lam: Any, lambda_type: str, q: float, theta1: float, theta2: float) -> None:
        if lam is None:
            self.lam = penalty_sequence(lambda_type, self.p, q=q, theta1=theta1, theta2=theta2, n=self.rows)
        else:
            self.lam = check_sequence(lam, self.p)
        self.cum = cumulative(self.lam)

    def with_penalty(
        self,
        *,
        lam: Any = None,
        lambda_type: str = "bh",
        q: float = 0.1,
        theta1: float = 1.0,
        theta2: float = 0.5,
    ) -> Problem:
        """Return the problem with another penalty sequence on the same data, which are shared."""
        new = copy.copy(self)
        new._penalise(lam, lambda_type, q, theta1, theta2)
        return new

    @property
    def null(self) -> float:
        """Objective of the zero coefficients."""
        return 0.5 * self.energy

    def alpha_max(self) -> float:
        """Smallest alpha at which all coefficients are zero."""
        from convexlaw.theory.sorted_l1 import dual_sorted_l1_norm

        return dual_sorted_l1_norm(self.pull, self.lam)

    def engine(self, n_penalties: int = 1, form: str | None = None) -> Engine:
        """Return a solver for this problem."""
        form = self.solver if form is None else form
        return Engine(self.design, self.target, self.pull, form=form, n_penalties=n_penalties, gram=self.gram)

    def intercept(self, coef: Vector) -> float:
        """Intercept that belongs to coefficients of the given X."""
        shift = self.design.shift
        return self.mean - (float(shift @ coef) if shift is not None else 0.0)

    def solution(self, b: Vector, gap: float, n_iter: int, clusters: int | None = None) -> Solution:
        """Bring coefficients of the seen columns back to the units of X."""
        coef = self.design.original(b)
        if clusters is None:
            magnitudes = np.abs(b)
            clusters = np.unique(magnitudes[magnitudes > 0]).size
        converged = gap <= self.tol * self.null
        return Solution(coef, self.intercept(coef), gap, self.null, clusters, n_iter, bool(converged))


def cumulative(lam: Vector) -> Vector:
    """Cumulative sum from 0, in extended precision so that its differences keep their digits."""
    return np.concatenate([[0.0], np.cumsum(lam, dtype=np.longdouble)]).astype(np.float64)


def _usable(values: Vector | None) -> bool:
    """Whether values are finite, and their squares far from overflow."""
    return values is None or bool((np.abs(values) < _LARGEST**0.5).all())
