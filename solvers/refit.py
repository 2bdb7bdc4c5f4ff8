"""The selected features again, without a penalty: estimates with standard errors by statsmodels.

On the rows that selected the features such a table is descriptive. With a split, one part of the rows selects
and the other makes the table: its intervals are then those of a model that was chosen beforehand.
"""

from __future__ import annotations

import textwrap
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fitted import Fitted, Training, fitted
from convexlaw.solvers._stability import class_labels, halves, part, refit
from convexlaw.solvers.summary import contrast

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["RelaxedFit", "relaxed"]

_METHODS = {
    "quadratic": "least squares",
    "huber": "Huber's M-estimator (t = 1.345, scale from the MAD)",
    "poisson": "Poisson regression",
    "logistic": "logistic regression",
    "multinomial": "multinomial regression",
}


@dataclass(frozen=True, eq=False)
class RelaxedFit(Result):
    """Unpenalised fit of the selected features.

    Attributes
    ----------
    method : str
        In words.
    by : {"features", "clusters"}
    table : DataFrame
        One row a term: response (where there are several), term, features, estimate, se, statistic, p_value,
        low, high.
    coef : ndarray, shape (p,) or (q, p)
        In the units of X; zero for what was not selected.
    intercept : float or ndarray, shape (q,)
    n : int
        Rows that made the table.
    n_selection : int
        Rows that selected; 0 where they are the same.
    level : float
    robust : bool
        Sandwich standard errors.
    notes : tuple of str
    features : tuple of str
        Names of all features.
    """

    method: str
    by: str
    table: pd.DataFrame
    coef: Vector
    intercept: Any
    n: int
    n_selection: int
    level: float
    robust: bool
    notes: tuple[str, ...]
    features: tuple[str, ...] = field(repr=False)

    _figure: ClassVar[str] = "regression:plot_intervals"

    @property
    def descriptive(self) -> bool:
        """Whether the same rows selected and estimated, so that the intervals do not hold."""
        return self.n_selection == 0

    @property
    def statement(self) -> str:
        """What may be concluded from the table."""
        if self.descriptive:
            return (
                "Descriptive only: the rows that chose the features also made these numbers. Standard errors,"
                " p-values and intervals ignore the choice and look better than they are; those of rows "
                "kept aside hold (split)."
            )
        if not (self.table["term"] != "(intercept)").any():
            return (
                f"The {self.n_selection} rows that choose selected no feature: nothing to estimate on "
                f"the {self.n} others. Fewer rows show less; another split may differ."
            )
        return (
            f"{self.n_selection} rows chose the features, {self.n} others made the table: the intervals hold "
            "for the best fit with these features. Another split may choose others."
        )

    def __str__(self) -> str:
        """Table of the largest statistics, and what may be concluded from it."""
        errors = "robust" if self.robust else "model-based"
        lines = [
            f"{self.method} of the selected {self.by}, n = {self.n}, {errors} standard errors",
            *textwrap.wrap(self.statement, 100, initial_indent="  ", subsequent_indent="  "),
            *(f"  {note}" for note in self.notes[:2]),
        ]
        rows = self.table[self.table["term"] != "(intercept)"]
        rows = rows.sort_values("statistic", key=np.abs, ascending=False, kind="stable")
        lines.append(f"  {'':<24} {'estimate':>11} {'se':>10}   {self.level:.0%} interval")
        room = 12 - len(lines)
        shown = rows.head(room - (len(rows) > room))
        for row in shown.itertuples():
            name = f"{row.response}: {row.term}" if "response" in rows else str(row.term)
            lines.append(
                f"  {name:<24} {row.estimate:>11.5g} {row.se:>10.3g}   [{row.low:.5g}, {row.high:.5g}]"
            )
        if len(rows) > len(shown):
            lines.append(f"  ... and {len(rows) - len(shown)} more (.to_frame())")
        return "\n".join(lines)

    def predict(self, X: Any) -> Vector:
        """Linear predictor of the refit.

        Parameters
        ----------
        X : array_like or sparse, shape (m, p)

        Returns
        -------
        ndarray, shape (m,) or (m, q)
        """
        from convexlaw.solvers._slope_input import as_matrix

        eta: Vector = np.asarray(as_matrix(X) @ self.coef.T) + self.intercept
        return eta

    def to_frame(self) -> pd.DataFrame:
        """Return the table."""
        return self.table.copy()


def relaxed(
    model: Any,
    training: Training,
    *,
    by: str,
    split: float | None,
    robust: bool | None,
    level: float,
    rng: Any,
    select: Callable[[Training], Any] | None = None,
) -> RelaxedFit:
    """Refit of a fitted estimator; see :meth:`Slope.relax <convexlaw.Slope.relax>` for the parameters.

    Parameters
    ----------
    model : estimator
    training : Training
    by, split, robust, level, rng
    select : callable, optional
        Fits a model to the rows that select; by default a clone of ``model``.

    Returns
    -------
    RelaxedFit
    """
    if by not in ("features", "clusters"):
        raise ConvexlawError(f"by = {by!r}: use 'features' or 'clusters'")
    if not 0.0 < level < 1.0:
        raise ConvexlawError(f"level = {level!r}: it lies between 0 and 1; 0.95 is usual")
    notes: list[str] = []
    selected = view = fitted(model, training)
    if split is not None:
        if not 0.0 < split < 1.0:
            raise ConvexlawError(f"split = {split!r}: the share of the rows that selects lies in (0, 1)")
        generator = np.random.default_rng(rng)
        labels = class_labels(model, training)
        chosen, others = halves(labels, view.X.shape[0], split, generator)
        if min(chosen.size, others.size) < 2:
            raise ConvexlawError(f"split = {split!r} of {view.X.shape[0]} rows leaves a part without rows")
        first = part(training, chosen)
        fresh = refit(_unfitted(model), first, notes) if select is None else select(first)
        selected = fitted(fresh, first)
        second = fitted(model, part(training, others))
        view = second
    terms = _terms(selected, by, view.names)
    use_robust = split is not None if robust is None else bool(robust)
    table, coef, intercept = _estimate(view, terms, use_robust, level, notes)
    return RelaxedFit(
        method=_METHODS[view.loss] + _contrast(model, view.loss),
        by=by,
        table=table,
        coef=coef[0] if coef.shape[0] == 1 else coef,
        intercept=float(intercept[0]) if coef.shape[0] == 1 else intercept,
        n=view.n,
        n_selection=selected.n if split is not None else 0,
        level=level,
        robust=use_robust and view.loss != "huber",
        notes=tuple(dict.fromkeys(notes)),
        features=view.names,
    )


def _contrast(model: Any, loss: str) -> str:
    """Which class the estimates of a regression of classes are for, and against which one."""
    if loss == "multinomial":
        return f" against {model.classes_[0]}"
    return contrast(model)


def _unfitted(model: Any) -> Any:
    """Return a clone; class weights are already in the weights of the training data."""
    from sklearn.base import clone

    fresh = clone(model)
    return fresh.set_params(class_weight=None) if hasattr(fresh, "class_weight") else fresh


@dataclass(frozen=True)
class Term:
    """A column of the refit: ``sum_j direction_j x_j`` over the members."""

    name: str
    members: NDArray[np.int64]
    direction: Vector


def _terms(view: Fitted, by: str, names: tuple[str, ...]) -> list[list[Term]]:
    """Terms of every response; classes share those that any of them selected."""
    rows = view.coef[None] if view.loss == "multinomial" else view.coef[:, None]
    clusters = view.clusters[None] if view.loss == "multinomial" else view.clusters[:, None]
    out = []
    for coef, number in zip(rows, clusters, strict=True):
        if by == "features" or coef.shape[0] > 1:
            chosen = np.flatnonzero((coef != 0).any(axis=0))
            out.append([Term(names[j], np.array([j]), np.ones(1)) for j in chosen])
            continue
        own: list[Term] = []
        for k in sorted(set(number[0][number[0] > 0].tolist()), reverse=True):
            members = np.flatnonzero(number[0] == k)
            signs = np.sign(coef[0, members])
            if members.size == 1:
                own.append(Term(names[members[0]], members, np.ones(1)))
                continue
            label = " ".join(
                f"{'+' if s > 0 else '-'} {names[j]}" for s, j in zip(signs, members, strict=True)
            )
            own.append(Term(label.removeprefix("+ "), members, signs / view.scale[members]))
        out.append(own)
    return out


def _estimate(
    view: Fitted, terms: list[list[Term]], robust: bool, level: float, notes: list[str]
) -> tuple[pd.DataFrame, Vector, Vector]:
    import pandas as pd

    frames = []
    coef = np.zeros(view.coef.shape)
    intercept = np.zeros(view.coef.shape[0])
    for k, own in enumerate(terms):
        _check_size(view, own)
        Z = np.column_stack([_column(view.X, t) for t in own]) if own else np.zeros((view.X.shape[0], 0))
        result = _fit(view, Z, k, robust, notes)
        estimates = np.asarray(result.params, dtype=np.float64)
        limits = np.asarray(result.conf_int(1.0 - level), dtype=np.float64)
        parts = zip(
            _by_class(estimates),
            _by_class(np.asarray(result.bse)),
            _by_class(np.asarray(result.tvalues)),
            _by_class(np.asarray(result.pvalues)),
            limits.reshape(-1, limits.shape[-2], 2),
            strict=True,
        )
        labels = ["(intercept)"] * view.free + [t.name for t in own]
        sizes = [0] * view.free + [t.members.size for t in own]
        for at, (b, se, statistic, p_value, limit) in enumerate(parts):
            row = at + 1 if view.loss == "multinomial" else k
            columns: dict[str, Any] = {"term": labels, "features": sizes, "estimate": b, "se": se}
            columns |= {"statistic": statistic, "p_value": p_value, "low": limit[:, 0], "high": limit[:, 1]}
            frame = pd.DataFrame(columns)
            if len(view.outputs) > 1:
                frame.insert(0, "response", view.outputs[row])
            frames.append(frame)
            if view.free:
                intercept[row] = b[0]
            for term, value in zip(own, b[int(view.free) :], strict=True):
                coef[row, term.members] = value * term.direction
    return pd.concat(frames, ignore_index=True), coef, intercept


def _by_class(values: Vector) -> Vector:
    """One row a class; statsmodels has them in columns."""
    return values[None] if values.ndim == 1 else values.T


def _column(X: Any, term: Term) -> Vector:
    return np.asarray(X[:, term.members] @ term.direction, dtype=np.float64).reshape(-1)


def _check_size(view: Fitted, own: list[Term]) -> None:
    k = len(own) + int(view.free)
    if view.loss == "multinomial":
        k *= view.classes.size - 1
    if k >= view.n:
        raise ConvexlawError(
            f"{len(own)} selected features need {k} estimates, {view.n} rows cannot carry them; "
            "use a larger alpha, or by='clusters'"
        )
    if k == 0:
        raise ConvexlawError("no feature is selected and there is no intercept: nothing to fit again")


def _fit(view: Fitted, Z: Vector, k: int, robust: bool, notes: list[str]) -> Any:
    import statsmodels.api as sm
    from statsmodels.tools.sm_exceptions import ConvergenceWarning as NotConverged
    from statsmodels.tools.sm_exceptions import PerfectSeparationError, PerfectSeparationWarning

    rows = np.flatnonzero(view.weights > 0)
    weights, offset = view.weights[rows], view.offset[rows, 0]
    y = view.y[rows, 0 if view.loss == "multinomial" else k]
    design = Z[rows]
    if view.free:
        design = np.column_stack([np.ones(rows.size), design])
    rank = int(np.linalg.matrix_rank(design))
    if rank < design.shape[1]:
        notes.append(
            f"the selected features are collinear (rank {rank} of {design.shape[1]}): "
            "single estimates mean nothing, sums of them may"
        )
    weighted = not np.all(weights == weights[0])
    repeated = weighted and bool((weights == np.round(weights)).all())
    if repeated:
        times = weights.astype(np.int64)
        design, y, offset = (np.repeat(a, times, axis=0) for a in (design, y, offset))
    elif weighted:
        notes.append("weights that are not whole numbers are taken as inverse variances (GLM: as counts)")
    counts = weights if weighted and not repeated else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", PerfectSeparationWarning)
        warnings.simplefilter("error", NotConverged)
        try:
            if view.loss == "quadratic":
                fit = (sm.OLS(y, design) if counts is None else sm.WLS(y, design, weights=counts)).fit()
                return fit.get_robustcov_results("HC3", use_t=True) if robust else fit
            if view.loss == "huber":
                return sm.RLM(y, design, M=sm.robust.norms.HuberT()).fit()
            cov: dict[str, Any] = {"cov_type": "HC0"} if robust else {}
            if view.loss == "multinomial":
                fit = sm.MNLogit(y.astype(np.int64), design).fit(disp=0, maxiter=200, **cov)
                if not np.isfinite(np.asarray(fit.bse)).all():
                    raise PerfectSeparationError
                return fit
            family = sm.families.Poisson() if view.loss == "poisson" else sm.families.Binomial()
            return sm.GLM(y, design, family=family, offset=offset, freq_weights=counts).fit(**cov)
        except (PerfectSeparationError, PerfectSeparationWarning, NotConverged, np.linalg.LinAlgError):
            raise ConvexlawError(
                f"{_METHODS[view.loss]} of {Z.shape[1]} selected terms has no finite maximum of the "
                "likelihood (they separate the classes, or are collinear): only the penalised fit exists; "
                "use a larger alpha for a refit"
            ) from None
