"""A fitted SLOPE model as a value: what was fitted, its certificate, its coefficients by cluster."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.solvers._fitted import cluster_numbers, feature_names, loss_of
from convexlaw.solvers._stability import alpha_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from convexlaw.solvers._explained import Facts

    Vector = NDArray[np.float64]

__all__ = ["SlopeSummary", "summarise"]

_LINES = 12


@dataclass(frozen=True, eq=False)
class SlopeSummary(Result):
    """Summary of a fitted SLOPE model.

    Attributes
    ----------
    kind : str
        Class of the estimator.
    loss, penalty : str
        In words.
    alpha : float
    intercept : float or ndarray, shape (q,)
        One a response or class, where there are several.
    coef : ndarray, shape (p,) or (q, p)
        In the units of X.
    n, p : int
        Rows with positive weight, features.
    n_clusters : int
        Distinct nonzero magnitudes of the scaled coefficients.
    cluster : ndarray of int, same shape as coef
        0 is zero, 1 the smallest magnitude.
    scaled : ndarray, same shape as coef
        Coefficients of the scaled columns, which the penalty sees: ``coef * scale``.
    scale : ndarray, shape (p,)
        Divisor of each column; ones without scaling.
    dual_gap : float
        In the units of the objective.
    null : float
        Objective of the zero coefficients.
    tol : float
    n_iter : int
    converged : bool
    deviance, deviance_ratio : float
        Sum over the rows, and the share of that of the model without features which is explained.
    frequency : ndarray, same shape as coef, or None
        Share of the half-samples in which the coefficient is nonzero.
    repeats : int
        Number of half-samples.
    outputs : tuple of str
        Names of the responses or classes.
    notes : tuple of str
    names : tuple of str
        Of the features.
    """

    kind: str
    loss: str
    penalty: str
    alpha: float
    intercept: Any
    coef: Vector
    n: int
    p: int
    n_clusters: int
    cluster: NDArray[np.int64]
    scaled: Vector
    scale: Vector
    dual_gap: float
    null: float
    tol: float
    n_iter: int
    converged: bool
    deviance: float
    deviance_ratio: float
    frequency: Vector | None
    repeats: int
    outputs: tuple[str, ...]
    notes: tuple[str, ...]
    names: tuple[str, ...] = field(repr=False)

    _figure: ClassVar[str] = "regression:plot_coefficients"

    @property
    def relative_gap(self) -> float:
        """Duality gap as a share of the objective at zero."""
        return self.dual_gap / self.null if self.null > 0 else self.dual_gap

    def _head(self) -> list[str]:
        nonzero = int(np.count_nonzero(self.coef))
        of = self.coef.size
        state = "converged" if self.converged else "NOT converged"
        lines = [
            f"{self.kind}: {self.loss}, {self.penalty}, alpha = {self.alpha:.6g}",
            f"  n = {self.n}, p = {self.p}; {nonzero} of {of} coefficients nonzero, "
            f"{self.n_clusters} clusters",
            f"  deviance {self.deviance:.6g}, ratio {self.deviance_ratio:.4f}",
            f"  duality gap {self.relative_gap:.2e} P(0) (absolute {self.dual_gap:.2e}), "
            f"tol {self.tol:g}: {state} in {self.n_iter} iterations",
        ]
        return lines + [f"  {note}" for note in self.notes[:2]]

    def __str__(self) -> str:
        """Summary in a few lines: the certificate and the largest coefficients."""
        lines = self._head()
        several = self.coef.ndim == 2
        intercepts = np.atleast_1d(self.intercept)
        if several:
            values = ", ".join(f"{o} {v:.6g}" for o, v in zip(self.outputs[:6], intercepts[:6], strict=True))
            lines.append(f"  intercepts {values}{', ...' if intercepts.size > 6 else ''}")
        else:
            lines.append(f"  intercept {intercepts[0]:.6g}")
        table = self.to_frame()
        rows = table[table["coef"] != 0].sort_values("scaled", key=np.abs, ascending=False, kind="stable")
        shown = rows.head(_LINES - len(lines) - (len(rows) > _LINES - len(lines)))
        for row in shown.itertuples():
            name = f"{row.response}: {row.feature}" if several else str(row.feature)
            often = f"   in {row.frequency:.0%} of {self.repeats} half-samples" if self.repeats else ""
            lines.append(f"  {name:<24} {row.coef:.6g}{often}")
        if len(rows) > len(shown):
            lines.append(f"  ... and {len(rows) - len(shown)} more (.to_frame())")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Table of the nonzero coefficients under the certificate."""
        head = "".join(f"<div>{html.escape(line.strip())}</div>" for line in self._head())
        table = self.to_frame()
        rows = table[table["coef"] != 0].sort_values("scaled", key=np.abs, ascending=False, kind="stable")
        intercepts = ", ".join(f"{v:.6g}" for v in np.atleast_1d(self.intercept))
        body = rows.head(50).to_html(index=False, float_format=lambda v: f"{v:.5g}", border=0)
        more = f"<div>... and {len(rows) - 50} more (.to_frame())</div>" if len(rows) > 50 else ""
        return f"<div>{head}<div>intercept {intercepts}</div>{body}{more}</div>"

    def to_frame(self) -> pd.DataFrame:
        """Return one row a coefficient.

        Returns
        -------
        DataFrame
            Columns response (where there are several), feature, coef, scaled, cluster (0 is zero, 1 the
            smallest magnitude), and frequency where it was asked for.
        """
        import pandas as pd

        q = 1 if self.coef.ndim == 1 else self.coef.shape[0]
        columns: dict[str, Any] = {}
        if self.coef.ndim == 2:
            columns["response"] = np.repeat(self.outputs, self.p)
        columns |= {
            "feature": list(self.names) * q,
            "coef": self.coef.ravel(),
            "scaled": self.scaled.ravel(),
            "cluster": self.cluster.ravel(),
        }
        if self.frequency is not None:
            columns["frequency"] = self.frequency.ravel()
        return pd.DataFrame(columns)


def penalty_in_words(model: Any) -> str:
    """Name of the penalty sequence of an estimator with its parameters.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    str
    """
    if hasattr(model, "low_ratio_"):
        words = f"weight 1 on the top {model.fraction_:.3g} of the ranks, {model.low_ratio_:g} below"
    elif hasattr(model, "fraction") or hasattr(model, "fraction_"):
        high, low, fraction = (
            getattr(model, f"{k}_", getattr(model, k, None)) for k in ("high", "low", "fraction")
        )
        words = f"weight {high:g} on the top {fraction:.3g} of the ranks, {low:g} below"
    elif model.lam is not None:
        words = _weights_in_words(np.asarray(model.lambda_))
    else:
        kind = model.lambda_type
        words = {
            "bh": f"BH weights (q = {model.q:g})",
            "gaussian": f"Gaussian weights (q = {model.q:g})",
            "oscar": f"OSCAR weights ({model.theta1:g} + {model.theta2:g} (p - i))",
            "lasso": "Lasso",
        }[kind]
    return words if model.scaling == "none" else f"{words}, columns over their {model.scaling}"


def contrast(model: Any) -> str:
    """Which of two classes a single row of coefficients is for, in words; empty for other losses.

    Parameters
    ----------
    model : estimator
        Fitted.

    Returns
    -------
    str
    """
    if loss_of(model) != "logistic":
        return ""
    other, modelled = model.classes_.tolist()
    return f" of {modelled} against {other}"


def _weights_in_words(lam: Vector) -> str:
    values = np.unique(lam)
    if values.size != 2:
        return "given weights"
    top = int(np.count_nonzero(lam == values[1]))
    return f"weight {values[1]:g} on the top {top} of {lam.size} ranks, {values[0]:g} below"


def summarise(
    model: Any,
    facts: Facts,
    *,
    frequency: Vector | None = None,
    repeats: int = 0,
    notes: list[str] | None = None,
) -> SlopeSummary:
    """Summary of a fitted estimator.

    Parameters
    ----------
    model : estimator
        Fitted.
    facts : Facts
        What is known of its training data.
    frequency : ndarray, shape (q, p), optional
        Selection frequencies.
    repeats : int
        Number of half-samples they come from.
    notes : list of str, optional
        Put after those of the model.

    Returns
    -------
    SlopeSummary
    """
    coef = np.asarray(model.coef_, dtype=np.float64)
    if coef.ndim == 2 and coef.shape[0] == 1:
        coef = coef[0]
    intercept = np.asarray(model.intercept_, dtype=np.float64).reshape(-1)
    scaled = coef * facts.scale
    ratio = 1.0 - facts.deviance / facts.null_deviance if facts.null_deviance > 0 else 0.0
    return SlopeSummary(
        kind=type(model).__name__,
        loss=f"{loss_of(model)} loss{contrast(model)}",
        penalty=penalty_in_words(model),
        alpha=alpha_of(model),
        intercept=float(intercept[0]) if coef.ndim == 1 else intercept,
        coef=coef,
        n=facts.n,
        p=coef.shape[-1],
        n_clusters=int(model.n_clusters_),
        cluster=cluster_numbers(scaled),
        scaled=scaled,
        scale=np.broadcast_to(facts.scale, coef.shape[-1:]).astype(np.float64),
        dual_gap=float(model.dual_gap_),
        null=float(model.null_objective_),
        tol=float(model.tol),
        n_iter=int(model.n_iter_),
        converged=bool(model.converged_),
        deviance=facts.deviance,
        deviance_ratio=ratio,
        frequency=None if frequency is None else frequency.reshape(coef.shape),
        repeats=repeats if frequency is not None else 0,
        outputs=facts.outputs,
        notes=(*getattr(model, "notes_", ()), *(notes or ())),
        names=feature_names(model),
    )
