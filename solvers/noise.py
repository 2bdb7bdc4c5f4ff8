"""The noise level of a linear model, estimated together with the SLOPE fit that it calibrates.

The sequences "bh" and "gaussian" are made for the pulls of pure noise on columns of norm 1, which are
N(0, sigma^2). In the objective ``(1/2n) ||y - b0 - X b||^2 + alpha J(b)`` they therefore go with

    alpha = sigma * norm / sqrt(n),    norm^2 = mean over columns of (1/n) ||x_j - mean||^2

(of the scaled columns; with ``scaling="sd"`` the norm is 1). sigma is not known: it is estimated from the
least-squares residual on the columns that were selected, with n - rank - 1 degrees of freedom, and both are
repeated until the set stays the same.

What this does not promise: control of the false discovery rate. See :mod:`convexlaw.simulations.fdr` for what
simulation says.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvergenceWarning, ConvexlawError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from convexlaw.solvers._slope_problem import Problem, Solution

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]

__all__ = ["NoiseEstimate", "solve_for_noise"]

# a residual below this share of the response's energy is rounding
_ZERO = 1e-20
_ROUNDS = 100


@dataclass(frozen=True)
class NoiseEstimate(Result):
    """Noise level found with a SLOPE fit.

    Attributes
    ----------
    sigma : float
        Standard deviation of the noise, in units of y; 0 where the selected columns explain y exactly.
    alpha : float
        The alpha of the fit.
    status : {"repeated", "cycle", "exact"}
        The selected set stayed the same; or several sets followed one another in a circle and the one with
        the largest sigma was taken; or nothing was left of y and the fit that found this was kept.
    sigmas : tuple of float
        Estimates round by round, from that of no columns on.
    sizes : tuple of int
        Number of columns behind each of them.
    df : float
        Degrees of freedom of the residual behind ``sigma``.
    """

    sigma: float
    alpha: float
    status: str
    sigmas: tuple[float, ...]
    sizes: tuple[int, ...]
    df: float

    @property
    def cycled(self) -> bool:
        """Whether the rounds did not settle on one set."""
        return self.status == "cycle"

    @property
    def n_rounds(self) -> int:
        """Number of SLOPE fits."""
        return len(self.sigmas)

    def __str__(self) -> str:
        """Summary in a few lines."""
        shown = ", ".join(f"{s:.4g} ({k})" for s, k in list(zip(self.sigmas, self.sizes, strict=True))[:8])
        return (
            f"Noise level sigma = {self.sigma:.6g}, df {self.df:g}, alpha = {self.alpha:.6g}\n"
            f"  {self.n_rounds} rounds, {self.status}; sigma (columns): {shown}"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a round: sigma and the number of selected columns behind it."""
        import pandas as pd

        return pd.DataFrame({"sigma": self.sigmas, "columns": self.sizes})


def solve_for_noise(problem: Problem) -> tuple[NoiseEstimate, Solution]:
    """Fit SLOPE at the alpha of the noise level, and the noise level on the columns of the fit.

    Parameters
    ----------
    problem : Problem
        Its sample weights count rows: multiplying them by a constant changes the answer.

    Returns
    -------
    noise : NoiseEstimate
    solution : Solution

    Raises
    ------
    ConvexlawError
        So many columns are selected that nothing is left to estimate the noise from.

    Warns
    -----
    ConvergenceWarning
        The selected sets run in a cycle, or explain y exactly.

    References
    ----------
    Bogdan et al., arXiv 1407.3824, Algorithm 5 (the iteration; cycles, the degrees of freedom of the
    intercept and exact fits are settled here).
    """
    from convexlaw.solvers.slope import solve

    unit = _column_norm(problem) / math.sqrt(problem.total)
    engine = problem.engine()
    chosen = np.zeros(0, dtype=np.int64)
    sigma, df = _residual_level(problem, chosen)
    seen = {chosen.tobytes(): 0}
    sigmas, sizes, dfs = [sigma], [0], [df]
    solution = solve(problem, sigma * unit, engine)
    while sigma > 0.0:
        chosen = np.flatnonzero(solution.coef)
        known = seen.get(chosen.tobytes())
        if known == len(sigmas) - 1:
            return _made(sigmas, sizes, dfs, -1, unit, "repeated"), solution
        if known is not None or len(sigmas) >= _ROUNDS:
            first = len(sigmas) // 2 if known is None else known
            k = first + int(np.argmax(sigmas[first:]))
            warnings.warn(
                f"alpha = 'estimate': the selected sets run in a cycle of {len(sigmas) - first} (sigma from "
                f"{min(sigmas[first:]):.4g} to {max(sigmas[first:]):.4g}); the largest sigma was taken",
                ConvergenceWarning,
                stacklevel=5,
            )
            return _made(sigmas, sizes, dfs, k, unit, "cycle"), solve(problem, sigmas[k] * unit, engine)
        sigma, df = _residual_level(problem, chosen)
        seen[chosen.tobytes()] = len(sigmas)
        sigmas.append(sigma)
        sizes.append(chosen.size)
        dfs.append(df)
        if sigma == 0.0:
            warnings.warn(
                f"alpha = 'estimate': the {chosen.size} selected columns explain y exactly, there is no "
                "noise to calibrate to; the fit that selected them was kept",
                ConvergenceWarning,
                stacklevel=5,
            )
            alpha = sigmas[-2] * unit
            return NoiseEstimate(0.0, alpha, "exact", tuple(sigmas), tuple(sizes), df), solution
        solution = solve(problem, sigma * unit, engine)
    # a constant response
    return _made(sigmas, sizes, dfs, -1, unit, "exact"), solution


def _made(
    sigmas: list[float], sizes: list[int], dfs: list[float], k: int, unit: float, status: str
) -> NoiseEstimate:
    return NoiseEstimate(sigmas[k], sigmas[k] * unit, status, tuple(sigmas), tuple(sizes), dfs[k])


def _residual_level(problem: Problem, chosen: Index) -> tuple[float, float]:
    """Sigma from the least-squares residual on some columns, and its degrees of freedom."""
    n, k = problem.total, chosen.size
    if k == 0:
        rss, rank = problem.energy, 0.0
    else:
        table = _table(problem, chosen)
        b, _, full, _ = np.linalg.lstsq(table.T, problem.target)
        rank = float(full)
        r = problem.target - b @ table
        rss = float(r @ r)
    df = n - rank - problem.fit_intercept
    if k and (df < 1.0 or k >= n - 1):
        raise ConvexlawError(
            f"alpha = 'estimate': {k} columns selected with {n:g} rows leave nothing to estimate the noise "
            "from; pass alpha as a number, choose it by SlopeCV, or take a heavier sequence (smaller q)"
        )
    if df <= 0.0 or rss <= _ZERO * problem.energy:
        return 0.0, df
    return math.sqrt(rss * n / df), df


def _table(problem: Problem, chosen: Index) -> Vector:
    """Seen columns as the rows of a dense array, shape (k, n)."""
    from convexlaw.solvers._slope_design import Design

    design = problem.design
    X: Any = design.X[:, chosen]
    part = Design(
        np.asarray(X.toarray() if design.sparse else X),
        design.root**2,
        intercept=design.intercept,
        center=None if design.shift is None or design.intercept else design.shift[chosen],
        scale=None if design.scale is None else design.scale[chosen],
    )
    table = np.empty((chosen.size, design.n))
    part.columns(np.arange(chosen.size), table)
    return table


def _column_norm(problem: Problem) -> float:
    """Root mean square of the norms of the seen columns (weighted means of squares)."""
    from convexlaw.solvers._slope_columns import column_means, column_scales, constant_columns

    design = problem.design
    weights = design.root**2
    spread = column_scales(design.X, "sd", weights)
    squares = np.zeros(problem.p) if spread is None else spread**2
    squares[constant_columns(design.X, weights)] = 0.0
    if not design.intercept:
        away = column_means(design.X, weights, False)[0]
        squares += (away if design.shift is None else away - design.shift) ** 2
    if design.scale is not None:
        squares /= design.scale**2
    return math.sqrt(float(squares.mean()))
