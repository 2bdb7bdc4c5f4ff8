"""Two-level SLOPE from its sharp theory, and what the theory predicts of a two-level estimator.

The theory is about ``1/2 ||y - A u||^2 + J_lambda(u)`` with columns of A of norm about 1; the estimator
minimises ``(1/2n) ||y - X b||^2 + alpha J_w(b)``. With columns of norm c in X (c = 1, or sqrt(n) after
standardising), A = X/c and u = c b, so that ``lambda = n alpha w / c`` for weights on the coefficients b.
Where the estimator scales its columns the weights sit on scaled coefficients, whose columns have the norm nu
of the scaling (1 for "l2", sqrt(n) for "sd"): ``lambda = n alpha w / nu``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory.scalar_limit import Penalty, Prior, TwoLevel
from convexlaw.theory.state_evolution import StateEvolution, calibrate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from convexlaw.solvers.estimators import TwoLevelSlope


@dataclass(frozen=True)
class Asymptotics(Result):
    """Limits that the theory predicts for a two-level estimator.

    They hold for X with independent Gaussian entries of variance ``column_norm^2/n`` (so not for correlated
    columns), coefficients drawn independently of X, independent noise, and n, p large at a fixed ratio.

    Attributes
    ----------
    tpp, fdp : float
        True positive and false discovery proportion.
    mse : float
        ``||coef_ - beta||^2 / p``, in squared units of the coefficients.
    column_norm : float
        Norm c of the columns of X.
    state : StateEvolution
        Of the problem with columns of norm 1, whose coefficients are ``c * beta``.
    """

    tpp: float
    fdp: float
    mse: float
    column_norm: float
    state: StateEvolution

    def __str__(self) -> str:
        """Summary in a few lines, with the conditions."""
        s = self.state
        return "\n".join(
            (
                f"Predicted: TPP {self.tpp:.6g}, FDP {self.fdp:.6g}, MSE {self.mse:.6g} per coefficient",
                f"  delta = {s.delta:g}, sigma = {s.sigma:g}, columns of norm {self.column_norm:g}",
                f"  noise seen by one coefficient tau = {s.tau:.6g} (columns of norm 1)",
                "  holds for columns of X with independent N(0, c^2/n) entries, coefficients independent",
                "  of X, and n, p large; correlated or heavy-tailed columns are outside it",
            )
        )

    def to_frame(self) -> pd.DataFrame:
        """One row: tpp, fdp, mse, column_norm, tau, df."""
        import pandas as pd

        row = {name: getattr(self, name) for name in ("tpp", "fdp", "mse", "column_norm")}
        return pd.DataFrame([{**row, "tau": self.state.tau, "df": self.state.df}])

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the state evolution behind the prediction."""
        return self.state.plot(ax, **options)


@dataclass(frozen=True)
class Origin:
    """The question that an estimator was designed for."""

    prior: Prior
    delta: float
    sigma: float
    column_norm: float


def design(
    delta: float, epsilon: float, prior: Prior | str | None, sigma: float | None, target: float | None
) -> tuple[TwoLevel, Prior, float]:
    """Two-level penalty of the problem with columns of norm 1, the law it is for, and the noise.

    Parameters
    ----------
    delta, epsilon : float
    prior : Prior or str, optional
        Law of all coefficients, or of the nonzero ones alone.
    sigma : float, optional
    target : float, optional
        TPP to reach.

    Returns
    -------
    penalty : TwoLevel
        lambda, not units of tau.
    prior : Prior
    sigma : float

    Raises
    ------
    ConvexlawError
        Neither prior nor target, no sigma for a prior, or a target out of reach.
    """
    from convexlaw.theory.designs import optimal_two_level
    from convexlaw.theory.scalar_limit import limiting_function
    from convexlaw.theory.tradeoff import attaining_design

    if prior is None:
        if target is None:
            raise ConvexlawError("from_theory needs a prior (law of the signals), or a target TPP")
        if sigma:
            raise ConvexlawError(
                f"sigma = {sigma:g} without a prior: a target alone designs for the best law of the signals, "
                "in units of tau and without noise; give the prior too, or leave sigma out"
            )
        best = attaining_design("two_level", target, delta, epsilon)
        if best.branch != "one size":
            raise ConvexlawError(
                f"target = {target:g} at delta = {delta:g}, epsilon = {epsilon:g}: the curve is attained by "
                "signals at infinity alone, which have no penalty of their own; give a prior"
            )
        factor = 1.0 - limiting_function(best.prior, best.penalty, 1.0).df / delta
        if factor <= 0.0:
            raise ConvexlawError(f"target = {target:g}: attained only as lambda falls to 0; ask for less")
        return _levels(best.penalty.scaled(factor)), best.prior, 0.0
    law = _mixed(prior, epsilon)
    if sigma is None:
        raise ConvexlawError("sigma is missing: give the standard deviation of the noise with the prior")
    if target is None:
        return _levels(optimal_two_level(law, delta, sigma).lam), law, float(sigma)
    return _levels(_reach(law, delta, sigma, target).lam), law, float(sigma)


def _levels(penalty: Penalty) -> TwoLevel:
    from convexlaw.theory.scalar_limit import Lasso

    if isinstance(penalty, Lasso):
        return TwoLevel(penalty.alpha, penalty.alpha, 1.0)
    if not isinstance(penalty, TwoLevel):
        raise ConvexlawError(f"{penalty}: no two-level penalty")
    return penalty


def _mixed(prior: Prior | str, epsilon: float) -> Prior:
    """Law of all coefficients with the share ``epsilon`` of signals."""
    law = Prior.parse(prior) if isinstance(prior, str) else prior
    if law.epsilon == 1.0 and epsilon < 1.0:
        return Prior(
            (1.0 - epsilon, *(epsilon * w for w in law.weights)),
            (0.0, *law.means),
            (0.0, *law.variances),
        )
    if abs(law.epsilon - epsilon) > 1e-9:
        raise ConvexlawError(
            f"epsilon = {epsilon:g}, but the prior has signals with probability {law.epsilon:g}: give the "
            "law of the nonzero coefficients alone, or one that agrees"
        )
    return law


def _reach(law: Prior, delta: float, sigma: float, target: float) -> StateEvolution:
    """Two-level state of smallest FDP at the TPP ``target``: among thresholds, the one that meets it."""
    from scipy.optimize import brentq

    from convexlaw.theory.designs import improve_lasso
    from convexlaw.theory.state_evolution import alpha_min

    if not 0.0 < target < 1.0:
        raise ConvexlawError(f"target = {target!r}: a true positive proportion inside (0, 1) is needed")
    low, high = max(alpha_min(delta) * 1.001, 1e-3), 8.0
    short = improve_lasso(law, delta, sigma, low).state
    if short.tpp < target or not short.lambda_factor > 0.0:
        low = _first_genuine(law, delta, sigma, low, high)
        short = improve_lasso(law, delta, sigma, low).state
    if short.tpp < target:
        raise ConvexlawError(
            f"target = {target:g}: two-level penalties reach TPP {short.tpp:.4g} at these signals and this "
            "noise; ask for less, or give more rows (delta)"
        )
    a = brentq(lambda x: improve_lasso(law, delta, sigma, x).state.tpp - target, low, high, xtol=1e-7)
    return improve_lasso(law, delta, sigma, float(a)).state


def _first_genuine(law: Prior, delta: float, sigma: float, low: float, high: float) -> float:
    """Smallest threshold whose penalty belongs to a SLOPE problem (lambda > 0)."""
    from convexlaw.theory.designs import improve_lasso

    for _ in range(40):
        middle = 0.5 * (low + high)
        if improve_lasso(law, delta, sigma, middle).state.lambda_factor > 0.0:
            high = middle
        else:
            low = middle
    return high


def predict(
    model: TwoLevelSlope,
    prior: Prior | str | None,
    sigma: float | None,
    delta: float | None,
    column_norm: float | None,
) -> Asymptotics:
    """Limits of a two-level estimator; see :meth:`convexlaw.TwoLevelSlope.asymptotics`."""
    origin: Origin | None = model.__dict__.get("_origin")
    fitted = hasattr(model, "coef_")
    if prior is None or sigma is None:
        if origin is None:
            raise ConvexlawError(
                "asymptotics needs prior and sigma: only an estimator made by from_theory (and not cloned "
                "since) knows them"
            )
        prior, sigma = origin.prior if prior is None else prior, origin.sigma if sigma is None else sigma
    law = Prior.parse(prior) if isinstance(prior, str) else prior
    if model.loss != "quadratic" or (fitted and model.coef_.ndim > 1):
        raise ConvexlawError("asymptotics: the theory is about one response with the quadratic loss")
    if delta is None:
        if not fitted and origin is None:
            raise ConvexlawError("delta is missing: give n/p, or fit the model first")
        delta = model._total / model.coef_.size if fitted or origin is None else origin.delta
    norm = column_norm if column_norm is not None else (1.0 if origin is None else origin.column_norm)
    # n alpha / nu takes the weights to lambda of the problem with columns of norm 1
    if model.alpha == "1/n":
        times = 1.0
    elif fitted:
        times = model._total * model.alpha_
    else:
        raise ConvexlawError(f"alpha = {model.alpha!r}: its n is not known before the model is fitted")
    factor = times / seen_norm(model.scaling, norm, model._total if fitted else None)
    share = model.fraction
    if fitted:
        share = round(model.fraction * model.coef_.size) / model.coef_.size
    penalty = TwoLevel(model.high * factor, model.low * factor, share)
    state = calibrate(law.scaled(norm), penalty, delta, sigma)
    return Asymptotics(state.tpp, state.fdp, state.mse / norm**2, norm, state)


def seen_norm(scaling: str, column_norm: float, n: float | None) -> float:
    """Norm of the columns that the penalty sees.

    Raises
    ------
    ConvexlawError
        It is not known for this scaling.
    """
    if not 0.0 < column_norm < math.inf:
        raise ConvexlawError(f"column_norm = {column_norm!r}: the norm of the columns of X, > 0, is needed")
    if scaling == "none":
        return column_norm
    if scaling == "l2":
        return 1.0
    if scaling == "sd" and n is not None:
        return math.sqrt(n)
    raise ConvexlawError(
        f"scaling = {scaling!r}: the scale of the penalty is not known "
        + ("before the fit; " if scaling == "sd" else "; ")
        + "use 'l2' (columns of norm 1) or 'none'"
    )
