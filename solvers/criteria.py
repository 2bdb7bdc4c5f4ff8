"""Information criteria along a path: AIC, BIC, EBIC and generalised cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import gammaln

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._slope_input import as_matrix, as_weights

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from convexlaw.solvers.path import SlopePath

    Vector = NDArray[np.float64]

__all__ = ["NAMES", "Criteria", "information_criteria"]

NAMES = ("aic", "bic", "ebic", "gcv")
"""Names of the criteria."""


@dataclass(frozen=True, eq=False)
class Criteria(Result):
    """Criteria at every alpha of a path; smaller is better, inf where there are as many degrees as rows.

    Attributes
    ----------
    alphas : ndarray, shape (m,)
    df : ndarray, shape (m,)
        Distinct nonzero magnitudes, and one for the intercept.
    deviance : ndarray, shape (m,)
        Residual sum of squares for the quadratic loss.
    aic, bic, ebic, gcv : ndarray, shape (m,)
    n, p : int
        Values of y (all responses), coefficients.
    gamma : float
        Of EBIC.
    """

    alphas: Vector
    df: Vector
    deviance: Vector
    aic: Vector
    bic: Vector
    ebic: Vector
    gcv: Vector
    n: int
    p: int
    gamma: float

    _figure: ClassVar[str] = "regression:plot_criteria"

    def best(self, name: str = "ebic") -> int:
        """Position of the smallest value, the largest alpha among equals.

        Parameters
        ----------
        name : {"aic", "bic", "ebic", "gcv"}

        Returns
        -------
        int

        Raises
        ------
        ConvexlawError
            Unknown criterion, or none is finite.
        """
        if name not in NAMES:
            raise ConvexlawError(f"criterion {name!r}: use one of {', '.join(map(repr, NAMES))}")
        values: Vector = getattr(self, name)
        if not (values < np.inf).any():
            raise ConvexlawError(f"{name} is infinite everywhere: too few rows ({self.n}) for this path")
        order = np.lexsort((-self.alphas, values))
        return int(order[0])

    def note(self, name: str) -> str:
        """Return what speaks against the choice; empty where nothing does."""
        at = self.best(name)
        if self.alphas[at] == self.alphas.min() and self.alphas.size > 1:
            return f"{name.upper()} is smallest at the end of the path: it has no minimum inside; prefer --cv"
        if self.df[at] > self.n / 2:
            return f"{name.upper()} chose {self.df[at]:.0f} degrees of freedom for {self.n} rows"
        return ""

    def __str__(self) -> str:
        """One line a criterion."""
        lines = [f"criteria along {self.alphas.size} alphas, n = {self.n}, p = {self.p}"]
        for name in NAMES:
            at = self.best(name)
            lines.append(
                f"  {name.upper():<5} smallest at alpha = {self.alphas[at]:.6g}, df = {self.df[at]:.0f}"
            )
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return one row an alpha."""
        import pandas as pd

        columns = ("alphas", "df", "deviance", *NAMES)
        return pd.DataFrame({c.removesuffix("s") if c == "alphas" else c: getattr(self, c) for c in columns})


def information_criteria(
    path: SlopePath,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    fit_intercept: bool = True,
    gamma: float = 1.0,
) -> Criteria:
    """AIC, BIC, EBIC and GCV along a path, with df = number of distinct nonzero magnitudes (+ 1).

    For the quadratic loss, with the variance unknown, -2 log likelihood is n log(RSS/n); for the others it is
    the deviance. EBIC adds 2 gamma log C(p, k) for k distinct magnitudes; GCV is (deviance/n)/(1 - df/n)^2.

    Parameters
    ----------
    path : SlopePath
    X : array_like or sparse, shape (n, p)
        The data of the path.
    y : array_like, shape (n,) or (n, q)
    sample_weight : array_like, shape (n,), optional
        Counts of the rows; n is their sum.
    fit_intercept : bool
        Whether the path had one.
    gamma : float
        0 makes EBIC the BIC.

    Returns
    -------
    Criteria

    Raises
    ------
    ConvexlawError
        The Huber loss, which is no likelihood.

    References
    ----------
    Tibshirani and Taylor, arXiv 1111.0653 (degrees of freedom of the Lasso); Chen and Chen 2008 (EBIC). The
    count of magnitudes is the degrees of freedom of SLOPE on orthogonal designs (arXiv 1407.3824).

    Examples
    --------
    >>> from convexlaw import slope_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> y = X @ [2.0, 2.0, 0.0, 0.0, 0.0, 0.0] + rng.normal(size=80)
    >>> path = slope_path(X, y)
    >>> np.flatnonzero(path.coefs[:, information_criteria(path, X, y).best("ebic")])
    array([0, 1])
    """
    loss = path.loss
    if loss == "huber":
        raise ConvexlawError(
            "the Huber loss is no likelihood, it has no AIC, BIC or EBIC: use cross-validation"
        )
    matrix = as_matrix(X)
    weights = as_weights(sample_weight, matrix.shape[0])
    n = float(weights.sum())
    deviance = n * path.deviance(matrix, y, weights)
    p = path.coefs[..., 0].size
    columns = p // path.coefs.shape[0]
    if loss == "multinomial":
        columns -= 1  # intercepts have a common shift that nothing depends on
    k = path.n_clusters.astype(np.float64)
    df = k + columns * float(fit_intercept)
    rows = n * columns if loss == "quadratic" else n
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = rows * np.log(deviance / rows) if loss == "quadratic" else deviance
        ways = gammaln(p + 1.0) - gammaln(k + 1.0) - gammaln(p - k + 1.0)
        gcv = deviance / rows / (1.0 - df / rows) ** 2
    usable = df < rows
    aic, bic = fit + 2.0 * df, fit + np.log(rows) * df
    ebic = bic + 2.0 * gamma * ways
    aic, bic, ebic, gcv = (np.where(usable, v, np.inf) for v in (aic, bic, ebic, gcv))
    return Criteria(path.alphas, df, deviance, aic, bic, ebic, gcv, round(rows), p, float(gamma))
