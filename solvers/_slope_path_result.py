"""Solutions of SLOPE along a path, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._slope_input import as_matrix
from convexlaw.solvers.slope import check_alpha

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["SlopePath"]


@dataclass(frozen=True, eq=False)
class SlopePath(Result):
    """Solutions along a path, one column an alpha, in the order in which the alphas were given.

    Attributes
    ----------
    alphas : ndarray, shape (m,)
    coefs : ndarray, shape (p, m)
        In the units of X; (p, K, m) for K responses or classes.
    intercepts : ndarray, shape (m,), or (K, m)
    dual_gaps : ndarray, shape (m,)
        Duality gaps over all features, in the units of the objective.
    n_clusters : ndarray of int, shape (m,)
        Distinct nonzero magnitudes, the degrees of freedom.
    n_iter : ndarray of int, shape (m,)
    converged : ndarray of bool, shape (m,)
    deviance_ratios : ndarray, shape (m,)
        Share of the deviance of the null model that is explained.
    lambda_ : ndarray, shape (p,)
        The penalty sequence that alpha multiplies.
    alpha_max : float
        Smallest alpha at which all coefficients are zero.
    null : float
        Objective of the zero coefficients, P(0).
    tol : float
    stopped : str
        Why the path ended before its last alpha; empty where it did not.
    feature_names : tuple of str
        Names of the columns of X, x0, x1, ... without any.
    loss : str
    threshold : float
        Of the Huber loss.
    classes : tuple
        Labels of the losses with classes, empty for the others.
    """

    alphas: Vector
    coefs: Vector
    intercepts: Vector
    dual_gaps: Vector
    n_clusters: NDArray[np.int64]
    n_iter: NDArray[np.int64]
    converged: NDArray[np.bool_]
    deviance_ratios: Vector
    lambda_: Vector
    alpha_max: float
    null: float
    tol: float
    stopped: str = ""
    feature_names: tuple[str, ...] = field(default=(), repr=False)
    loss: str = "quadratic"
    threshold: float = 0.0
    classes: tuple[Any, ...] = ()

    _figure: ClassVar[str] = "slope:plot_slope_path"

    def __str__(self) -> str:
        """Summary in a few lines."""
        p, m = self.coefs.shape[0], self.alphas.size
        worst = float((self.dual_gaps / self.null).max(initial=0.0)) if self.null > 0 else 0.0
        last = int(np.argmin(self.alphas))
        ratio = self.alphas[last] / self.alpha_max if self.alpha_max > 0 else 0.0
        lines = [
            f"SLOPE path ({self.loss}): {m} alphas, {p} features",
            f"  alpha from {self.alphas.max():.6g} to {self.alphas[last]:.6g} ({ratio:.3g} alpha_max)",
            f"  at the end {np.count_nonzero(self.coefs[..., last])} nonzero coefficients, "
            f"{self.n_clusters[last]} clusters, deviance ratio {self.deviance_ratios[last]:.4f}",
            f"  largest duality gap {worst:.2e} P(0) (tol {self.tol:g}), "
            f"{int(self.converged.sum())} of {m} converged, {int(self.n_iter.sum())} iterations",
        ]
        if self.stopped:
            lines.append(f"  ended early: {self.stopped}")
        return "\n".join(lines)

    def interpolate(self, alphas: ArrayLike) -> tuple[Vector, Vector]:
        """Coefficients and intercepts between the alphas of the path.

        For a fixed penalty sequence the exact path of the quadratic loss is piecewise linear in alpha, so
        linear interpolation is exact where no cluster forms or breaks in between; elsewhere it is close.

        Parameters
        ----------
        alphas : float or array_like, shape (k,)
            Not below the smallest alpha of the path; above alpha_max the coefficients are zero.

        Returns
        -------
        coefs : ndarray, shape (p, k) or (p, K, k)
        intercepts : ndarray, shape (k,) or (K, k)

        Raises
        ------
        ConvexlawError
            An alpha below the path, or above it where the path does not reach alpha_max.
        """
        wanted = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        order = np.argsort(self.alphas, kind="stable")
        grid, coefs, intercepts = self.alphas[order], self.coefs[..., order], self.intercepts[..., order]
        low, high = grid[0], grid[-1]
        for a in wanted:
            check_alpha(a)
            if a < low * (1.0 - 1e-12) or (
                a > high * (1.0 + 1e-12) and high < self.alpha_max * (1.0 - 1e-12)
            ):
                raise ConvexlawError(
                    f"alpha = {a:g} lies outside the path [{low:g}, {high:g}]: extend the path"
                )
        inside = np.clip(wanted, low, high)
        right = np.clip(np.searchsorted(grid, inside), 1, max(1, grid.size - 1))
        if grid.size == 1:
            return np.repeat(coefs, wanted.size, axis=-1), np.repeat(intercepts, wanted.size, axis=-1)
        width = grid[right] - grid[right - 1]
        share = np.where(width > 0.0, (inside - grid[right - 1]) / np.where(width > 0.0, width, 1.0), 1.0)
        return (
            coefs[..., right - 1] * (1.0 - share) + coefs[..., right] * share,
            intercepts[..., right - 1] * (1.0 - share) + intercepts[..., right] * share,
        )

    def predictor(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """Linear predictors at every alpha.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n, m) or (n, K, m)
        """
        matrix = as_matrix(X)
        p = self.coefs.shape[0]
        if matrix.shape[1] != p:
            raise ConvexlawError(f"X has {matrix.shape[1]} columns, the path {p} features")
        eta = np.asarray(matrix @ self.coefs.reshape(p, -1)).reshape(-1, *self.coefs.shape[1:])
        eta = eta + self.intercepts
        if offset is not None:
            known = np.asarray(offset, dtype=np.float64)
            eta = eta + known.reshape(-1, *(1,) * (eta.ndim - 1))
        return np.asarray(eta)

    def predict(self, X: Any, offset: ArrayLike | None = None) -> Vector:
        """Predicted means at every alpha: of y, for two classes the probability of the second one.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (n, m), or (n, K, m) for K responses or classes
        """
        from convexlaw.solvers.glm import mean_of

        return mean_of(self.loss, self.predictor(X, offset), len(self.classes))

    def deviance(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> Vector:
        """Mean deviance of data at every alpha, as of :func:`convexlaw.solvers.glm.mean_deviance`.

        Parameters
        ----------
        X : array_like or scipy sparse, shape (n, p)
        y : array_like, shape (n,) or (n, K)
        sample_weight, offset : array_like, shape (n,), optional

        Returns
        -------
        ndarray, shape (m,)
        """
        from convexlaw.solvers.glm import mean_deviance

        eta = self.predictor(X, offset)
        return np.array(
            [
                mean_deviance(self.loss, y, eta[..., k], sample_weight, self.threshold, self.classes)
                for k in range(self.alphas.size)
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row an alpha: gap, clusters, deviance ratio, intercept and all coefficients by name."""
        import pandas as pd

        head = pd.DataFrame(
            {
                "alpha": self.alphas,
                "dual_gap": self.dual_gaps,
                "n_nonzero": np.count_nonzero(self.coefs.reshape(-1, self.alphas.size), axis=0),
                "n_clusters": self.n_clusters,
                "deviance_ratio": self.deviance_ratios,
                "converged": self.converged,
            }
        )
        table = np.vstack([self.intercepts, self.coefs.reshape(-1, self.alphas.size)]).T
        outputs = self.outputs
        names = [f"intercept{out}" for out in outputs]
        names += [f"{name}{out}" for name in self.names for out in outputs]
        return pd.concat([head, pd.DataFrame(table, columns=names)], axis=1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.feature_names or tuple(f"x{j}" for j in range(self.coefs.shape[0]))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What tells the coefficients of a feature apart: one empty text, or "[class]", "[0]", "[1]", ..."""
        if self.coefs.ndim == 2:
            return ("",)
        labels = self.classes or range(self.coefs.shape[1])
        return tuple(f"[{label}]" for label in labels)[: self.coefs.shape[1]]
