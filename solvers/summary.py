"""A fitted SLOPE model as a value: what was fitted, its certificate, its coefficients by cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["SlopeSummary", "summarise"]


@dataclass(frozen=True, eq=False)
class SlopeSummary(Result):
    """Summary of a fitted SLOPE model.

    Attributes
    ----------
    kind : str
        Class of the estimator.
    alpha, intercept : float
    coef : ndarray, shape (p,)
    names : tuple of str
    n_clusters : int
    dual_gap, null, tol : float
    n_iter : int
    converged : bool
    """

    kind: str
    alpha: float
    intercept: float
    coef: Vector
    n_clusters: int
    dual_gap: float
    null: float
    tol: float
    n_iter: int
    converged: bool
    names: tuple[str, ...] = field(repr=False)

    _figure: ClassVar[str] = "slope:plot_coefficients"

    def __str__(self) -> str:
        """Summary in a few lines: the certificate and the largest coefficients."""
        nonzero = int(np.count_nonzero(self.coef))
        relative = self.dual_gap / self.null if self.null > 0 else self.dual_gap
        state = "converged" if self.converged else "NOT converged"
        lines = [
            f"{self.kind}, alpha = {self.alpha:g}",
            f"  {nonzero} of {self.coef.size} coefficients nonzero, {self.n_clusters} clusters",
            f"  duality gap {relative:.2e} P(0), tol {self.tol:g}: {state} in {self.n_iter} iterations",
            f"  intercept {self.intercept:.6g}",
        ]
        order = np.argsort(-np.abs(self.coef), kind="stable")[: min(nonzero, 6)]
        lines += [f"  {self.names[j]:<24} {self.coef[j]:.6g}" for j in order]
        if nonzero > order.size:
            lines.append(f"  ... and {nonzero - order.size} more (.to_frame())")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a feature: name, coefficient, cluster (0 is zero, 1 the smallest magnitude)."""
        import pandas as pd

        from convexlaw.theory.sorted_l1 import sorted_l1_pattern

        return pd.DataFrame(
            {"feature": list(self.names), "coef": self.coef, "cluster": np.abs(sorted_l1_pattern(self.coef))}
        )


def summarise(model: Any) -> SlopeSummary:
    """Summary of a fitted estimator.

    Parameters
    ----------
    model : Slope or TwoLevelSlope
        Fitted.

    Returns
    -------
    SlopeSummary
    """
    given = getattr(model, "feature_names_in_", None)
    names = tuple(map(str, given)) if given is not None else tuple(f"x{j}" for j in range(model.coef_.size))
    return SlopeSummary(
        kind=type(model).__name__,
        alpha=float(model.alpha),
        intercept=float(model.intercept_),
        coef=model.coef_,
        n_clusters=int(model.n_clusters_),
        dual_gap=float(model.dual_gap_),
        null=float(model.null_objective_),
        tol=float(model.tol),
        n_iter=int(model.n_iter_),
        converged=bool(model.converged_),
        names=names,
    )
