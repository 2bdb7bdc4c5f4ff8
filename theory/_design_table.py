"""Smallest errors of the three classes of designs along a changing noise level or prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory._priors import Prior

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["DesignComparison", "compare_designs"]


@dataclass(frozen=True)
class DesignComparison(Result):
    """Smallest MSE of the Lasso, of two-level SLOPE and of SLOPE along an axis.

    Attributes
    ----------
    axis : {"sigma", "epsilon"}
    x : ndarray, shape (m,)
        Noise standard deviations, or fractions of signals.
    delta : float
    mse : dict of str to ndarray, shape (m,)
        Keys lasso, two_level, slope.
    tau : dict of str to ndarray, shape (m,)
    """

    _figure: ClassVar[str] = "designs:plot_design_comparison"

    axis: str
    x: Vector = field(repr=False, compare=False)
    delta: float
    mse: dict[str, Vector] = field(repr=False, compare=False)
    tau: dict[str, Vector] = field(repr=False, compare=False)

    def to_frame(self) -> pd.DataFrame:
        """Columns: the axis, lasso, two_level, slope (their MSE)."""
        import pandas as pd

        return pd.DataFrame({self.axis: self.x, **self.mse})

    def __str__(self) -> str:
        lines = [f"Smallest MSE, delta = {self.delta:g}", f"  {self.axis:>8}  Lasso     two-level SLOPE"]
        for i in np.linspace(0, self.x.size - 1, min(10, self.x.size)).round().astype(int):
            row = "  ".join(f"{self.mse[k][i]:.6f}" for k in ("lasso", "two_level", "slope"))
            lines.append(f"  {self.x[i]:8.4g}  {row}")
        return "\n".join(lines)


def compare_designs(
    prior: Prior | Sequence[Prior], delta: float, sigma: float | Sequence[float]
) -> DesignComparison:
    """Compute the smallest MSE of all three classes along noise levels, or along priors.

    Parameters
    ----------
    prior : Prior or sequence of Prior
        A sequence changes along the axis ``epsilon``.
    delta : float
        Rows per feature.
    sigma : float or sequence of float
        A sequence changes along the axis ``sigma``.

    Returns
    -------
    DesignComparison

    Raises
    ------
    ConvexlawError
        Both or neither of ``prior`` and ``sigma`` change.

    Examples
    --------
    >>> print(compare_designs(Prior.bernoulli_gaussian(0.5), 0.5, [0.5, 1.0]))
    Smallest MSE, delta = 0.5
         sigma  Lasso     two-level SLOPE
           0.5  0.351598  0.317808  0.304353
             1  0.447017  0.401734  0.385713
    """
    from convexlaw.theory.designs import optimal_lasso, optimal_slope, optimal_two_level

    many_priors, many_noises = not isinstance(prior, Prior), np.ndim(sigma) > 0
    if many_priors == many_noises:
        raise ConvexlawError(
            "give either a sequence of priors or a sequence of sigmas: one of them is the axis"
        )
    priors: list[Any] = list(prior) if not isinstance(prior, Prior) else [prior] * len(np.atleast_1d(sigma))
    noises = np.broadcast_to(np.asarray(sigma, dtype=np.float64), (len(priors),))
    x = np.array([p.epsilon for p in priors]) if many_priors else np.array(noises)
    classes = {"lasso": optimal_lasso, "two_level": optimal_two_level, "slope": optimal_slope}
    states = {
        name: [find(p, delta, float(s)).state for p, s in zip(priors, noises, strict=True)]
        for name, find in classes.items()
    }
    return DesignComparison(
        axis="epsilon" if many_priors else "sigma",
        x=x,
        delta=float(delta),
        mse={k: np.array([s.mse for s in v]) for k, v in states.items()},
        tau={k: np.array([s.tau for s in v]) for k, v in states.items()},
    )
