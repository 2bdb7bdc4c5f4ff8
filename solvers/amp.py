"""Approximate message passing for SLOPE, with the duality gap of what it returns.

Scaling of this module: ``1/2 ||y - X b||^2 + sum_i lam_i |b|_(i)`` (no 1/n), X with independent entries and
columns of norm about 1. `convexlaw.theory.sorted_l1.amp_weights` converts from the averaged objective. AMP
needs few products with X on such designs and can fail on others: it is an experiment and a tool of the
theory, not the solver behind the estimators.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._amp_exact import exact_solution, scaled_solution
from convexlaw.solvers._amp_run import Mode, Problem, Run
from convexlaw.theory.scalar_limit import Penalty, Prior, Weights
from convexlaw.theory.sorted_l1 import check_sequence

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["AMPResult", "amp_slope"]


@dataclass(frozen=True)
class AMPResult(Result):
    """Solution of SLOPE in the AMP scaling, found by message passing, with its certificate.

    Attributes
    ----------
    coef : ndarray, shape (p,)
    lam : ndarray, shape (p,)
        The penalty (AMP scaling) that ``coef`` belongs to.
    gap, relative_gap : float
        Duality gap of ``coef`` for ``lam``, and its ratio to ``||y||^2 / 2``.
    converged : bool
        ``relative_gap <= tol``.
    diverged : bool
        Message passing itself grew without bound or lost its fixed point.
    mode : {"alpha", "lambda", "state_evolution"}
    method : {"amp", "amp + exact pattern", "exact solver"}
        Where ``coef`` comes from.
    n_iter, n_products : int
        Iterations of message passing, and products with all of X or X' (the exact solver not counted).
    tau : float
        Noise level of ``estimates``, ``||z|| / sqrt(n)`` in the units of the coefficients.
    estimates : ndarray, shape (p,)
        ``b + X'z``: about ``beta + tau N(0, 1)`` (see `convexlaw.theory.designs.fit_prior`).
    n_clusters : int
        Distinct nonzero magnitudes of ``coef``.
    gaps : ndarray
        Relative duality gap at every iteration.
    """

    _figure: ClassVar[str] = "amp:plot_amp"

    coef: Vector = field(repr=False, compare=False)
    lam: Vector = field(repr=False, compare=False)
    gap: float
    relative_gap: float
    converged: bool
    diverged: bool
    mode: Mode
    method: str
    n_iter: int
    n_products: int
    tau: float
    estimates: Vector = field(repr=False, compare=False)
    n_clusters: int
    gaps: Vector = field(repr=False, compare=False)

    def to_frame(self) -> pd.DataFrame:
        """Columns iteration, relative_gap."""
        import pandas as pd

        return pd.DataFrame({"iteration": np.arange(self.gaps.size), "relative_gap": self.gaps})

    def __str__(self) -> str:
        selected = int(np.count_nonzero(self.coef))
        state = "converged" if self.converged else "NOT converged"
        return "\n".join(
            (
                f"SLOPE-AMP ({self.mode} mode), n x p with p = {self.coef.size}: {state}"
                f"{', message passing diverged' if self.diverged else ''}",
                f"  {self.method}: relative duality gap {self.relative_gap:.3g}",
                f"  {self.n_iter} iterations, {self.n_products} products with X",
                f"  {selected} selected in {self.n_clusters} clusters, tau {self.tau:.5g}",
            )
        )


def amp_slope(
    X: Any,
    y: ArrayLike,
    penalty: Penalty | ArrayLike | None = None,
    *,
    lam: Penalty | ArrayLike | None = None,
    mode: Mode | None = None,
    prior: Prior | None = None,
    sigma: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
    damping: float = 0.0,
    polish: bool = True,
    fallback: bool = True,
) -> AMPResult:
    """Solve SLOPE, ``min 1/2 ||y - X b||^2 + sum_i lam_i |b|_(i)``, by approximate message passing.

    Modes: ``lambda`` solves for the given ``lam`` (thresholds ``lam c_t``, ``c_{t+1} = 1 + c_t m/n``);
    ``alpha`` uses thresholds ``penalty ||z|| / sqrt(n)`` and returns the solution of the problem whose lam
    goes with them; ``state_evolution`` uses ``penalty tau_t`` with tau_t from the theory for ``prior`` and
    ``sigma``, and lam = penalty tau (1 - m/n) (with the m of the last step where m keeps jumping).

    Parameters
    ----------
    X : ndarray or scipy sparse, shape (n, p)
        Rescaled internally where its columns do not have mean square norm 1.
    y : array_like, shape (n,)
        Centre y and the columns of X first where there is an intercept.
    penalty : Penalty or array_like, shape (p,)
        Levels alpha in units of tau, for the modes alpha and state_evolution. The problem solved in mode
        alpha has ``lam = alpha ||y - X b|| / sqrt(n)`` times the root mean square norm of the columns.
    lam : Penalty or array_like, shape (p,)
        The penalty itself, for the mode lambda.
    mode : {"lambda", "alpha", "state_evolution"}, optional
        From the arguments without it: lambda with ``lam``, state_evolution with ``prior``, else alpha.
    prior, sigma : Prior, float
        For the mode state_evolution: law of the coefficients, noise standard deviation of y.
    tol : float
        Goal for the duality gap, relative to ``||y||^2 / 2``.
    max_iter : int
        Iterations of message passing.
    damping : float
        In [0, 1): share of the previous iterate that is kept.
    polish : bool
        Solve exactly on the pattern (clusters and signs) that was reached.
    fallback : bool
        Where message passing fails, finish with the exact solver; False returns what there is, and warns.

    Returns
    -------
    AMPResult

    Raises
    ------
    ConvexlawError
        Missing or contradictory arguments, shapes that do not fit, values that are not finite.

    Warns
    -----
    ConvergenceWarning
        The gap that was reached is above ``tol``.

    References
    ----------
    Bu, Klusowski, Rush and Su, arXiv 1907.07502, Algorithm 1; the fixed points are exact SLOPE solutions for
    ``lam = theta (1 - m/n)`` at every finite size.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((250, 500)) / np.sqrt(250)
    >>> y = X[:, :20].sum(axis=1) * 2.0 + 0.2 * rng.standard_normal(250)
    >>> from convexlaw.theory.scalar_limit import BH
    >>> result = amp_slope(X, y, lam=BH(0.2, 0.1))
    >>> result.converged, bool(result.relative_gap < 1e-6)
    (True, True)
    """
    problem = Problem(X, y)
    kind = _mode(mode, penalty, lam, prior, sigma)
    if not 0 <= damping < 1:
        raise ConvexlawError(f"damping = {damping!r}: the share kept must lie in [0, 1)")
    if kind == "lambda":
        levels = _levels(lam, problem.p, "lam") / problem.unit
    else:
        levels = _levels(penalty, problem.p, "penalty")
    taus = None
    if kind == "state_evolution":
        from convexlaw.theory.state_evolution import trajectory

        shape = penalty if isinstance(penalty, Penalty) else Weights(tuple(levels.tolist()))
        law = cast(Prior, prior).scaled(problem.unit)
        taus = trajectory(law, shape, problem.n / problem.p, cast(float, sigma), max_iter)
    run = Run(problem, kind, levels, taus, damping, polish)
    run.iterate(tol, max_iter)
    return _finish(run, tol, fallback)


def _mode(mode: Any, penalty: Any, lam: Any, prior: Any, sigma: Any) -> Mode:
    known = ("lambda", "alpha", "state_evolution")
    if mode is None:
        mode = "lambda" if lam is not None else "state_evolution" if prior is not None else "alpha"
    if mode not in known:
        raise ConvexlawError(f"mode = {mode!r}: the modes are {', '.join(known)}")
    if mode == "lambda" and (lam is None or penalty is not None):
        raise ConvexlawError("mode lambda needs lam and no penalty: lam is the penalty of the SLOPE problem")
    if mode != "lambda" and (penalty is None or lam is not None):
        raise ConvexlawError(f"mode {mode} needs penalty (levels in units of tau) and no lam")
    if mode == "state_evolution" and (prior is None or sigma is None):
        raise ConvexlawError("mode state_evolution needs prior and sigma; without them use mode alpha")
    return mode  # type: ignore[no-any-return]


def _levels(value: Any, p: int, name: str) -> Vector:
    levels = value.weights(p) if isinstance(value, Penalty) else check_sequence(value, p)
    if not levels.size or levels[0] <= 0:
        raise ConvexlawError(f"{name} is 0 at every rank: give a penalty above 0")
    return levels


def _finish(run: Run, tol: float, fallback: bool) -> AMPResult:
    problem = run.problem
    value, b, lam = run.best
    method, scaled = run.method, run.mode == "alpha"
    if fallback and not value <= tol:
        found = scaled_solution(problem, run.levels, tol) if scaled else exact_solution(problem, lam, tol)
        if found is not None and found.gap / run.reference <= value:
            value, b, lam, method = found.gap / run.reference, found.coef, found.lam, "exact solver"
    converged = bool(value <= tol)
    if not converged:
        warnings.warn(
            f"SLOPE-AMP stopped at a relative duality gap of {value:.3g} > tol = {tol:g}"
            f"{' (message passing diverged)' if run.diverged else ''}: "
            "use convexlaw.Slope, or fallback=True, or more iterations",
            ConvergenceWarning,
            stacklevel=3,
        )
    return AMPResult(
        coef=b / problem.unit,
        lam=lam * problem.unit,
        gap=float(value * run.reference),
        relative_gap=float(value),
        converged=converged,
        diverged=run.diverged,
        mode=run.mode,
        method=method,
        n_iter=len(run.gaps) - 1,
        n_products=problem.products,
        tau=run.tau / problem.unit,
        estimates=run.estimates / problem.unit,
        n_clusters=int(np.unique(np.abs(b[b != 0])).size),
        gaps=np.array(run.gaps),
    )
