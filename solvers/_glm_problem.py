"""A SLOPE problem with any loss: data, weights, offset and penalty, ready for the Newton solver."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._glm_families import Family, make_family
from convexlaw.solvers._slope_columns import CENTERINGS, column_centers, column_scales, is_sparse
from convexlaw.solvers._slope_design import Design
from convexlaw.solvers._slope_input import (
    as_offset,
    as_response,
    as_weights,
    column_names,
    refuse_non_finite,
)
from convexlaw.solvers._slope_problem import Problem, cumulative
from convexlaw.theory._sorted_l1_kernels import dual_norm
from convexlaw.theory.sorted_l1 import check_sequence, penalty_sequence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# predictors beyond this have lost the digits of the response
_LARGEST = 1e150


class GlmProblem:
    """Validated data of ``sum_i w_i f(y_i, o_i + b0 + x_i B) + alpha J_lam(vec B)`` with ``sum_i w_i = 1``.

    f is half the deviance of one observation. B has shape (p, m); the sorted L1 norm runs over all p m of its
    entries, in which entry (j, k) has the index ``k p + j``.

    Parameters
    ----------
    X : ndarray or scipy sparse CSC or CSR, shape (n, p)
    y : array_like, shape (n,) or (n, m)
        Labels of any kind for "logistic" and "multinomial"; the second of two labels is the event.
    loss : {"quadratic", "logistic", "multinomial", "poisson", "huber"}
    threshold : float
        Of "huber", in units of y.
    offset : array_like, shape (n,), optional
        Known part of the linear predictor.
    reference : bool
        "multinomial" without coefficients for the last class.
    lam, lambda_type, q, theta1, theta2, fit_intercept, centering, scaling, sample_weight, tol, max_iter
        As in :class:`Problem`; the penalty sequence has length p m.

    Raises
    ------
    ConvexlawError

    Attributes
    ----------
    classes : ndarray, shape (K,), or None
        Sorted labels, where the loss has classes.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        loss: str,
        threshold: float = 1.345,
        offset: Any = None,
        reference: bool = False,
        lam: Any = None,
        lambda_type: str = "bh",
        q: float = 0.1,
        theta1: float = 1.0,
        theta2: float = 0.5,
        fit_intercept: bool = True,
        centering: str = "none",
        scaling: str = "none",
        sample_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100_000,
        solver: str = "auto",
        names: list[Any] | None = None,
    ) -> None:
        self.n, self.p = (int(k) for k in X.shape)
        if self.n == 0 or self.p == 0:
            raise ConvexlawError(f"X has shape {X.shape}: at least one row and one column are needed")
        if not 0.0 < tol < 1.0:
            raise ConvexlawError(f"tol = {tol!r}: the relative duality gap must lie in (0, 1); 1e-6 is usual")
        if max_iter < 1:
            raise ConvexlawError(f"max_iter = {max_iter!r}: at least 1 iteration is needed")
        if solver != "auto":
            raise ConvexlawError(f"solver = {solver!r}: loss = {loss!r} is solved by 'auto' alone")
        if centering not in CENTERINGS:
            raise ConvexlawError(f"centering = {centering!r}: use one of {', '.join(map(repr, CENTERINGS))}")
        self.names = names if names is not None else column_names(X)
        self.tol, self.max_iter = float(tol), int(max_iter)
        counts = as_weights(sample_weight, self.n)
        self.loss, self.classes = loss, None
        if loss in ("logistic", "multinomial"):
            self.classes, y = encode(y, self.n, loss)
        self.family, Y = _response(y, self.n, loss, threshold, reference)
        self.m = self.family.m
        known = np.zeros(self.n) if offset is None else as_offset(offset, self.n)
        keep = counts > 0.0
        if not keep.all():
            X, Y, known, counts = X[keep], Y[keep], known[keep], counts[keep]
        self.rows = counts.size
        self.total = float(counts.sum())
        self.family.check(Y)
        self.Y = np.require(Y, requirements=["C", "W"])
        self.offset: Array = np.array(np.broadcast_to(known[:, None], Y.shape), order="C")
        self.weights = counts / counts.sum()
        self.fit_intercept = bool(fit_intercept)
        self._penalise(lam, lambda_type, q, theta1, theta2)
        with np.errstate(all="ignore"):
            scale = column_scales(X, scaling, counts)
            center = column_centers(X, centering, counts, needed=not fit_intercept)
            self.design = Design(
                X, np.ones(self.rows), intercept=self.fit_intercept, center=center, scale=scale, tol=tol
            )
            self.X = X
            self.base, self.null, self.residuals, self.curvatures = self.settle(self.offset)
            self.pull = self.pulls(self.residuals)
        if not self.null < _LARGEST or not np.abs(self.Y).max() < _LARGEST:
            raise ConvexlawError(
                f"the loss of the zero coefficients is {self.null:g} (y up to {np.abs(self.Y).max():.3g}, "
                f"offset up to {np.abs(known).max():.3g}): rescale y, or the offset"
            )
        parts = [part for part in (self.pull, self.design.shift, scale) if part is not None]
        if not all((np.abs(part) < _LARGEST).all() for part in parts):
            refuse_non_finite(X, self.names)
        size = float(np.abs(self.Y).max())
        if self.null <= 1e-29 * (size if loss == "poisson" else size**2):
            # a constant response, up to rounding
            self.null, self.pull = 0.0, np.zeros_like(self.pull)

    def _penalise(self, lam: Any, lambda_type: str, q: float, theta1: float, theta2: float) -> None:
        size = self.p * self.m
        if lam is None:
            self.lam = penalty_sequence(lambda_type, size, q=q, theta1=theta1, theta2=theta2, n=self.rows)
        else:
            self.lam = check_sequence(lam, size)
        self.cum = cumulative(self.lam)

    def with_penalty(
        self,
        *,
        lam: Any = None,
        lambda_type: str = "bh",
        q: float = 0.1,
        theta1: float = 1.0,
        theta2: float = 0.5,
    ) -> GlmProblem:
        """Return the problem with another penalty sequence on the same data, which are shared."""
        new = copy.copy(self)
        new._penalise(lam, lambda_type, q, theta1, theta2)
        return new

    def folded(self) -> GlmProblem:
        """Return two classes with coefficients each as one logistic loss; any other problem as it is.

        The loss sees the difference of the two sets alone and the penalty neither signs nor order, so by
        convexity some optimum has opposite sets: half the difference each, every magnitude on two ranks. The
        dual norms agree too: as lam decreases, the largest ratio of sums is at an even rank.
        """
        if not self.family.invariant or self.m != 2:
            return self
        new = copy.copy(self)
        new.family, new.m = make_family("logistic"), 1
        new.Y, new.offset = self.Y[:, 1:].copy(), self.offset[:, 1:].copy()
        new.lam = 0.5 * (self.lam[::2] + self.lam[1::2])
        new.cum = cumulative(new.lam)
        new.base, new.null, new.residuals, new.curvatures = new.settle(new.offset)
        new.pull = new.pulls(new.residuals)
        return new

    def facts(self) -> dict[str, Any]:
        """Return what a path keeps of the loss."""
        labels = () if self.classes is None else tuple(self.classes.tolist())
        return {"loss": self.loss, "threshold": self.family.threshold, "classes": labels}

    def alpha_max(self) -> float:
        """Smallest alpha at which all coefficients are zero."""
        return float(dual_norm(self.pull, self.lam))

    def settle(self, eta: Array) -> tuple[Array, float, Array, Array]:
        """Predictor with the best intercepts where these are free: loss, residuals, curvatures there."""
        return self.family.settle(self.Y, eta, self.weights, self.fit_intercept)

    def pulls(self, R: Array) -> Array:
        """Correlations of all columns with weighted residuals R (n, m): shape (p m,)."""
        design = self.design
        if self.m == 1:
            return design.pull(R[:, 0])
        if not design.plain:
            return np.concatenate([design.pull(np.ascontiguousarray(R[:, k])) for k in range(self.m)])
        G = np.asarray(self.X.T @ R)
        if design.shift is not None:
            G -= np.outer(design.shift, R.sum(axis=0))
        if design.scale is not None:
            G /= design.scale[:, None]
        G[design.flat] = 0.0
        return np.ascontiguousarray(G.T).reshape(-1)

    def predictor(self, b: Array) -> Array:
        """Return offset + X B on the seen columns, without intercepts: shape (n, m)."""
        B = b.reshape(self.m, self.p)
        eta = self.offset.copy()
        for k in range(self.m):
            if B[k].any():
                eta[:, k] += self.design.product(np.ascontiguousarray(B[k]))
        return eta

    def columns(self, features: NDArray[np.int64]) -> Array:
        """Seen columns of X as the rows of a dense array, shape (k, n)."""
        out = np.empty((features.size, self.rows))
        design = self.design
        if not is_sparse(self.X):
            design.columns(features, out)
            return out
        out[:] = self.X[:, features].toarray().T
        if design.shift is not None:
            out -= design.shift[features, None]
        if design.scale is not None:
            out /= design.scale[features, None]
        out[np.isin(features, design.flat)] = 0.0
        return out

    def original(self, b: Array, eta: Array) -> tuple[Array, Array]:
        """Coefficients (p, m) on the given X and intercepts (m,), from seen ones and their predictor."""
        parts = [self.design.original(part) for part in b.reshape(self.m, self.p)]
        B = np.stack(parts, axis=1) if self.m > 1 else parts[0][:, None]
        shift = self.design.shift
        moved = np.zeros(self.m) if shift is None else shift @ B
        if not self.fit_intercept:
            return B, -moved
        # the seen columns have mean zero over the rows
        constants = (eta - self.offset).sum(axis=0) / self.rows - moved
        if self.family.invariant:
            # the loss does not see a common intercept: none
            constants -= constants.mean()
        return B, constants


def make_problem(
    X: Any,
    y: Any,
    *,
    loss: str = "quadratic",
    threshold: float = 1.345,
    offset: Any = None,
    reference: bool = False,
    **options: Any,
) -> Problem | GlmProblem:
    """Return the problem of a loss: a :class:`Problem` for one quadratic response without offset.

    Parameters
    ----------
    X, y, loss, threshold, offset, reference
        As in :class:`GlmProblem`.
    **options
        Of the problem: penalty, intercept, scaling, weights, tolerance.

    Returns
    -------
    Problem or GlmProblem
    """
    if loss == "quadratic" and offset is None and (np.ndim(y) < 2 or np.shape(y)[1] == 1):
        return Problem(X, y, **options)
    return GlmProblem(X, y, loss=loss, threshold=threshold, offset=offset, reference=reference, **options)


def encode(y: Any, n: int, loss: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sorted labels of a response, and the index of each row's label.

    Raises
    ------
    ConvexlawError
        One label, or more than two for "logistic"; missing labels; wrong shape.
    """
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise ConvexlawError(
            f"y has shape {labels.shape}, X has {n} rows; pass one label a row, shape ({n},)"
        )
    if labels.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(labels))
    elif labels.dtype.kind == "O":
        missing = np.array([i for i, v in enumerate(labels) if v is None or v != v], dtype=np.int64)
    else:
        missing = np.zeros(0, dtype=np.int64)
    if missing.size:
        from convexlaw.solvers._slope_input import row_list

        raise ConvexlawError(f"Input y contains {labels[missing[0]]} in {row_list(missing)}; drop these rows")
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ConvexlawError(f"y has one class only, {str(classes[0])!r}: two or more classes are needed")
    if loss == "logistic" and classes.size > 2:
        raise ConvexlawError(
            f"y has {classes.size} classes. Only binary classification is supported by loss = 'logistic'; "
            "use 'multinomial'"
        )
    return classes, codes.reshape(-1)


def _response(y: Any, n: int, loss: str, threshold: float, reference: bool) -> tuple[Family, Array]:
    """Family of a loss, and the response as it wants it: shape (n, m)."""
    if loss == "multinomial":
        codes = np.asarray(y)
        family = make_family(loss, int(codes.max()) + 1, reference=reference)
        Y = np.zeros((n, int(codes.max()) + 1))
        Y[np.arange(n), codes] = 1.0
        return family, Y[:, : family.m]
    table = np.asarray(y)
    if table.ndim == 2 and table.shape[1] > 1:
        if table.shape[0] != n:
            raise ConvexlawError(f"y has {table.shape[0]} rows, X has {n}; pass one response a row")
        Y = np.stack([as_response(table[:, k], n) for k in range(table.shape[1])], axis=1)
    else:
        Y = as_response(y, n)[:, None]
    return make_family(loss, Y.shape[1], threshold=threshold), Y
