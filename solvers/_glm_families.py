"""The losses of SLOPE beyond one quadratic response: what each asks of y, its derivatives, its dual.

A family works on the linear predictor ``eta`` (n, m): m = 1 for "logistic", "poisson", "huber" and the
quadratic loss of one response, one column a class for "multinomial", one a response for several responses.
All losses are half deviances with weights that sum to one. The dual point of a predictor is its residual
times s in [0, 1]: it stays in the domain of the conjugate, since y - s r lies between y and its prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers import _glm_kernels as kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LOSSES = ("quadratic", "logistic", "multinomial", "poisson", "huber")
_KINDS = {
    "quadratic": kernels.QUADRATIC,
    "logistic": kernels.LOGISTIC,
    "poisson": kernels.POISSON,
    "huber": kernels.HUBER,
}


class Family:
    """A loss of one column.

    Parameters
    ----------
    name : {"quadratic", "logistic", "poisson", "huber"}
    threshold : float
        Residual beyond which "huber" is linear, in units of y.

    Attributes
    ----------
    m : int
        Columns of the predictor.
    invariant : bool
        Whether the loss does not see a common shift of all columns of the predictor.
    """

    def __init__(self, name: str, threshold: float = 1.0) -> None:
        self.name, self.kind, self.threshold = name, _KINDS[name], float(threshold)
        self.m = 1
        self.invariant = self.reference = False

    def check(self, Y: Array) -> None:
        """Refuse a response outside the loss's domain, or one without a finite optimum of the intercept.

        Raises
        ------
        ConvexlawError
        """
        from convexlaw.solvers._slope_input import row_list

        if self.name == "poisson":
            bad = np.flatnonzero(Y[:, 0] < 0.0)
            if bad.size:
                raise ConvexlawError(
                    f"y = {Y[bad[0], 0]:g} in {row_list(bad)}: the Poisson loss needs counts, y >= 0"
                )
            if not Y.any():
                raise ConvexlawError("y is zero in every row: the Poisson mean would be zero, its log -inf")
        elif self.name == "logistic" and np.ptp(Y) == 0.0:
            raise ConvexlawError("y has one class only in the rows of positive weight: both are needed")

    def settle(self, Y: Array, eta: Array, weights: Array, free: bool) -> tuple[Array, float, Array, Array]:
        """Give a predictor the best intercepts, where these are free.

        Returns
        -------
        eta : ndarray, shape (n, m)
        loss : float
        R : ndarray, shape (n, m)
            Weighted residuals, minus the derivatives; they sum to zero with free intercepts.
        h : ndarray, shape (n, m)
            Weighted curvatures, or what :meth:`curvature` makes them from.
        """
        r, h = np.empty(Y.shape[0]), np.empty(Y.shape[0])
        c, value = kernels.settle(
            self.kind, Y.reshape(-1), eta.reshape(-1), weights, self.threshold, free, r, h
        )
        return eta + c if c != 0.0 else eta, float(value), r.reshape(-1, 1), h.reshape(-1, 1)

    def model(self, Y: Array, eta: Array, h: Array, weights: Array, *, safe: bool) -> Array:
        """Curvatures for a quadratic model that is not singular; ``safe``: one that bounds the loss."""
        out = np.empty(h.shape)
        kernels.model(self.kind, Y, eta, h, weights, self.threshold, safe, out)
        return out

    def curvature(self, h: Array, k: int, other: int, weights: Array) -> Array | None:
        """Second derivatives in columns k and other, weighted, shape (n,); None where they vanish."""
        return h[:, 0]

    def energy(self, h: Array, R: Array, weights: Array) -> float:
        """Squared length of the residuals in units of the model: of u in :meth:`factor`."""
        return float(kernels.residual_energy(self.kind, h, R, weights, self.reference))

    def factor(self, h: Array, R: Array, weights: Array) -> tuple[Array, Array]:
        """Roots S (n, k, m) of the second derivatives, S'S per row, and u (n, k) with S'u = R."""
        root = np.sqrt(h)
        return root[:, :, None], R / root

    def divergence(self, Y: Array, eta: Array, weights: Array, s: float) -> float:
        """Gap between loss and dual at the residuals times s: f + f*(-s r) + s r eta, summed; >= 0."""
        return float(
            kernels.divergence(self.kind, Y.reshape(-1), eta.reshape(-1), weights, self.threshold, s)
        )


class Responses(Family):
    """The quadratic loss of several responses: ``1/2 sum_i w_i ||y_i - eta_i||^2``."""

    def __init__(self, m: int) -> None:
        super().__init__("quadratic")
        self.m = m

    def settle(self, Y: Array, eta: Array, weights: Array, free: bool) -> tuple[Array, float, Array, Array]:
        """Give a predictor the best intercepts: loss, residuals and curvatures there."""
        if free:
            eta = eta + weights @ (Y - eta) / weights.sum()
        away = Y - eta
        R = weights[:, None] * away
        return eta, 0.5 * float((R * away).sum()), R, np.broadcast_to(weights[:, None], Y.shape)

    def model(self, Y: Array, eta: Array, h: Array, weights: Array, *, safe: bool) -> Array:
        """Weights, the curvature everywhere."""
        return h

    def curvature(self, h: Array, k: int, other: int, weights: Array) -> Array | None:
        """Second derivatives in columns k and other."""
        return weights if k == other else None

    def energy(self, h: Array, R: Array, weights: Array) -> float:
        """Squared length of the residuals in units of the model."""
        return float((R**2 / h).sum())

    def factor(self, h: Array, R: Array, weights: Array) -> tuple[Array, Array]:
        """Roots of the second derivatives."""
        root = np.sqrt(weights)
        return root[:, None, None] * np.eye(self.m), R / root[:, None]

    def divergence(self, Y: Array, eta: Array, weights: Array, s: float) -> float:
        """Gap between loss and dual."""
        return 0.5 * (1.0 - s) ** 2 * float(weights @ ((Y - eta) ** 2).sum(axis=1))


class Multinomial(Family):
    """Multinomial deviance of m columns: one a class, or all but the last class (``reference``)."""

    def __init__(self, n_classes: int, *, reference: bool = False) -> None:
        self.name, self.kind, self.threshold = "multinomial", kernels.MULTINOMIAL, 1.0
        self.reference, self.invariant = reference, not reference
        self.m = n_classes - reference

    def check(self, Y: Array) -> None:
        """Refuse classes without a row.

        Raises
        ------
        ConvexlawError
        """
        counts = Y.sum(axis=0)
        if not counts.all() or (self.reference and counts.sum() == Y.shape[0]):
            raise ConvexlawError("some class of y has no row of positive weight: drop its rows")

    def settle(self, Y: Array, eta: Array, weights: Array, free: bool) -> tuple[Array, float, Array, Array]:
        """Give a predictor the best intercepts by damped Newton steps: loss, residuals, probabilities there.

        Without a reference class only differences of the intercepts matter.
        """
        eta, R, P = np.array(eta, order="C"), np.empty(Y.shape), np.empty(Y.shape)
        value = kernels.softmax_settle(Y, eta, weights, self.reference, free, R, P)
        return eta, float(value), R, P

    def curvature(self, h: Array, k: int, other: int, weights: Array) -> Array | None:
        """Second derivatives in columns k and other, from the probabilities h."""
        if k == other:
            return weights * h[:, k] * (1.0 - h[:, k])
        return -weights * h[:, k] * h[:, other]

    def factor(self, h: Array, R: Array, weights: Array) -> tuple[Array, Array]:
        """Roots of the second derivatives: diag(sqrt p) (I - 1 p'), whose square is diag(p) - p p'."""
        if self.reference:
            h = np.column_stack([h, 1.0 - h.sum(axis=1)])
            R = np.column_stack([R, -R.sum(axis=1)])
        root = np.sqrt(np.maximum(h, 1e-12))
        S = root[:, :, None] * (np.eye(h.shape[1]) - h[:, None, :])
        S *= np.sqrt(weights)[:, None, None]
        return S[:, :, : self.m], R / (root * np.sqrt(weights)[:, None])

    def divergence(self, Y: Array, eta: Array, weights: Array, s: float) -> float:
        """Gap between loss and dual."""
        return float(kernels.softmax_divergence(Y, np.ascontiguousarray(eta), weights, self.reference, s))


def make_family(loss: Any, m: int = 1, *, threshold: float = 1.345, reference: bool = False) -> Family:
    """Return the family of a loss.

    Parameters
    ----------
    loss : str
    m : int
        Responses, or classes of "multinomial".
    threshold : float
        Of "huber".
    reference : bool
        Leave the last class of "multinomial" without coefficients.

    Raises
    ------
    ConvexlawError
        Unknown loss, bad threshold, or several responses where the loss has one.
    """
    if loss not in LOSSES:
        raise ConvexlawError(f"loss = {loss!r}: use one of {', '.join(map(repr, LOSSES))}")
    if loss == "multinomial":
        return Multinomial(m, reference=reference)
    if loss == "huber" and not 0.0 < threshold < np.inf:
        raise ConvexlawError(f"threshold = {threshold!r}: the Huber threshold must be positive and finite")
    if m > 1:
        if loss != "quadratic":
            raise ConvexlawError(f"y has {m} columns: loss = {loss!r} takes one; several need 'quadratic'")
        return Responses(m)
    return Family(loss, threshold)
