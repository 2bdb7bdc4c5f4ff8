"""A regression from a table to what may be said of it: one call for command line, report and notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._analysis_data import family_response, model_inputs
from convexlaw.solvers._choose import Choice, Recipe
from convexlaw.solvers._fitted import Training
from convexlaw.solvers.formula import refuse_missing
from convexlaw.solvers.refit import RelaxedFit, relaxed
from convexlaw.solvers.screening import Screened, numeric_columns

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers.diagnostics import Diagnostics
    from convexlaw.solvers.intervals import PredictionInterval
    from convexlaw.solvers.summary import SlopeSummary

__all__ = ["FAMILIES", "Analysis", "analyse"]

FAMILIES = {
    "gaussian": "quadratic",
    "binomial": "logistic",
    "multinomial": "multinomial",
    "poisson": "poisson",
    "huber": "huber",
}
"""Families of responses and the loss of each."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """A regression and what may be said of it.

    Attributes
    ----------
    responses : tuple of str
    family : str
    screened : Screened
        What of the table was used.
    choice : Choice
        The model, its path, and how alpha was chosen.
    summary : SlopeSummary
    refit : RelaxedFit or None
        Table of the selected features on the same rows: descriptive.
    honest : RelaxedFit or None
        Table on rows kept aside.
    diagnostics : Diagnostics
    notes : tuple of str
        What a reader must know.
    lacking : tuple of str
        Tables that could not be made, and why.
    features : FormulaFeatures or None
        Encoding of new tables, where there is one.
    """

    responses: tuple[str, ...]
    family: str
    screened: Screened
    choice: Choice
    summary: SlopeSummary
    refit: RelaxedFit | None
    honest: RelaxedFit | None
    diagnostics: Diagnostics
    notes: tuple[str, ...]
    lacking: tuple[str, ...]
    features: Any

    @property
    def model(self) -> Any:
        """The fitted estimator; its ``predict`` takes new tables."""
        return self.choice.model

    @property
    def validated_ratio(self) -> float:
        """Share of the deviance explained on rows that the fit did not see; NaN without cross-validation."""
        curve = self.choice.curve
        if curve is None:
            return float("nan")
        null = self.summary.deviance / (1.0 - self.summary.deviance_ratio) / self.summary.n
        return 1.0 - float(curve.mean[curve.chosen]) / null

    @property
    def verdict(self) -> str:
        """What came out, in two or three sentences."""
        s = self.summary
        chosen = int(np.count_nonzero(np.atleast_2d(s.coef).any(axis=0)))
        text = (
            f"{chosen} of {s.p} features are selected, with {s.n_clusters} distinct magnitudes "
            f"({self.choice.sentence}). They explain {s.deviance_ratio:.1%} of the deviance"
        )
        if self.choice.curve is not None:
            ratio = self.validated_ratio
            text += f", {ratio:.1%} cross-validated" if ratio > 0 else ", cross-validated nothing"
        text += "."
        if s.frequency is not None:
            often = np.atleast_2d(s.frequency).max(axis=0) >= 0.9
            verb = "is" if often.sum() == 1 else "are"
            text += f" {int(often.sum())} {verb} selected in at least 90 % of {s.repeats} half-samples."
        gap = "within" if s.converged else "NOT within"
        return f"{text} The optimum is certified: relative duality gap {s.relative_gap:.1e}, {gap} {s.tol:g}."

    def predict(
        self, table: pd.DataFrame, *, level: float = 0.9, n_boot: int = 200, seed: int = 0
    ) -> pd.DataFrame:
        """Predict new rows, with bootstrap intervals or with the probabilities of the classes.

        Parameters
        ----------
        table : DataFrame, shape (m, ...)
            Has the columns of the used features.
        level : float
            Of the prediction intervals.
        n_boot : int
            Resamples for the intervals.
        seed : int

        Returns
        -------
        DataFrame
            Columns row, prediction, low, high (response, where there are several), or class, probabilities.

        Raises
        ------
        ConvexlawError
            A column is not there, values are missing, or a level was not there at the fit.
        """
        X = self._features_of(table)
        if self.family not in ("binomial", "multinomial"):
            found: PredictionInterval = self.model.prediction_interval(
                X, level=level, n_boot=n_boot, rng=seed
            )
            return found.to_frame()
        import pandas as pd

        shares = self.model.predict_proba(X)
        columns = {f"P({c})": shares[:, k] for k, c in enumerate(self.model.classes_)}
        return pd.DataFrame({"row": np.arange(len(shares)), "class": self.model.predict(X), **columns})

    def _features_of(self, table: pd.DataFrame) -> Any:
        clean = numeric_columns(table)
        if self.features is not None:
            return self.features.transform(clean)
        names = list(self.screened.features)
        absent = [c for c in names if c not in clean.columns]
        if absent:
            raise ConvexlawError(f"the new table has no column {absent[0]!r}, which the model uses")
        refuse_missing(clean, names)
        text = [c for c in names if clean[c].dtype.kind not in "iufb"]
        if text:
            raise ConvexlawError(
                f"column {text[0]!r} of the new table is not numeric, in the data of the fit it is"
            )
        return clean[names].astype(np.float64)


def analyse(
    table: pd.DataFrame,
    responses: Sequence[str] = (),
    *,
    formula: str | None = None,
    family: str = "auto",
    penalty: str = "bh",
    options: dict[str, Any] | None = None,
    alpha: float | str | None = None,
    criterion: str | None = None,
    folds: int = 10,
    rule: str = "min",
    threshold: float | None = None,
    stability: int = 100,
    split: float = 0.5,
    na: str = "drop",
    level: float = 0.95,
    tol: float = 1e-8,
    seed: int = 0,
) -> Analysis:
    """Regress columns of a table on the others, with all that is needed to defend the result.

    Columns are divided by their standard deviations before they are penalised.

    Parameters
    ----------
    table : DataFrame
    responses : sequence of str
        Columns to explain; several only with the Gaussian family. May be left out where ``formula`` has them.
    formula : str, optional
        "a + C(b)" or "y ~ a + C(b)"; by default all usable columns.
    family : {"auto", "gaussian", "binomial", "multinomial", "poisson", "huber"}
        "auto": binomial for two values, multinomial for text with more, else Gaussian.
    penalty : {"bh", "gaussian", "oscar", "lasso", "two-level"}
    options : dict, optional
        q, theta1, theta2, low_ratio, fraction.
    alpha : float or "estimate", optional
        Given, or from the noise level (Gaussian family).
    criterion : {"aic", "bic", "ebic", "gcv"}, optional
        Chooses alpha instead of cross-validation.
    folds : int
    rule : {"min", "1se"}
    threshold : float, optional
        Of the Huber family, in units of y; by default 1.345 robust standard deviations of the residuals of a
        quadratic fit.
    stability : int
        Half-samples for the selection frequencies, 0 for none.
    split : float
        Share of the rows that selects for the honest table; 0 for none.
    na : {"drop", "raise"}
    level : float
        Of the intervals in the tables.
    tol : float
        Relative duality gap.
    seed : int
        Of the folds, the half-samples and the split.

    Returns
    -------
    Analysis

    Raises
    ------
    ConvexlawError
        Columns that are not there, data that the family cannot take, nothing usable.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    >>> table["y"] = 2 * table.a + 2 * table.b + rng.normal(size=80)
    >>> found = analyse(table, ["y"], rule="1se", stability=20)
    >>> found.family, sorted(map(str, np.array(found.summary.names)[np.abs(found.summary.coef) > 0.5]))
    ('gaussian', ['a', 'b'])
    """
    if family != "auto" and family not in FAMILIES:
        raise ConvexlawError(f"family {family!r}: use auto, {', '.join(FAMILIES)}")
    if not 0.0 <= split < 1.0:
        raise ConvexlawError(
            f"split = {split:g}: the share of the rows that selects lies in [0, 1), 0 for none"
        )
    X, y, names, intercept, screened, features = model_inputs(table, responses, formula, na)
    notes: list[str] = []
    family, y = family_response(family, y, names, notes)
    loss = FAMILIES[family]
    recipe = Recipe(
        loss=loss,
        penalty=penalty,
        options=options or {},
        alpha=alpha,
        criterion=criterion,
        folds=folds,
        rule=rule,
        fit_intercept=intercept,
        tol=tol,
        seed=seed,
    )
    if loss == "huber":
        recipe = replace(
            recipe, threshold=_threshold(recipe, X, y, notes) if threshold is None else threshold
        )
    choice = recipe.fit(X, y)
    model = choice.model
    model.response_names_ = list(names)
    if features is not None:
        model.features_ = features
    notes += choice.notes
    summary = model.summary(stability=stability, rng=seed)
    lacking: list[str] = []
    refit = _table(lambda by: model.relax(by=by, level=level), "the table of the selected features", lacking)
    honest = None
    if split:
        training = Training(X, y)

        def honestly(by: str) -> RelaxedFit:
            return relaxed(
                model,
                training,
                by=by,
                split=split,
                robust=None,
                level=level,
                rng=seed,
                select=lambda part: recipe.fit(part.X, part.y).model,
            )

        honest = _table(honestly, "the table on rows kept aside", lacking)
    return Analysis(
        responses=tuple(names),
        family=family,
        screened=screened,
        choice=choice,
        summary=summary,
        refit=refit,
        honest=honest,
        diagnostics=model.diagnostics(),
        notes=tuple(dict.fromkeys([*notes, *summary.notes])),
        lacking=tuple(lacking),
        features=features,
    )


def _threshold(recipe: Recipe, X: Any, y: Any, notes: list[str]) -> float:
    """1.345 robust standard deviations of the residuals of a quadratic fit."""
    pilot = replace(recipe, loss="quadratic", alpha=None, criterion="bic").fit(X, y).model
    residual = y - pilot.predict(X)
    spread = float(np.median(np.abs(residual - np.median(residual)))) / 0.6745
    if not spread > 0.0:
        raise ConvexlawError("more than half of the residuals are equal: give a Huber threshold")
    notes.append(
        f"Huber threshold {1.345 * spread:.4g}: 1.345 robust standard deviations of the residuals "
        "of a quadratic fit"
    )
    return 1.345 * spread


def _table(make: Any, what: str, notes: list[str]) -> RelaxedFit | None:
    """Refit by features, by clusters where there are too many features, or the reason why there is none."""
    try:
        found: RelaxedFit = make("features")
        return found
    except ConvexlawError as error:
        reason = str(error)
    try:
        found = make("clusters")
        notes.append(f"{what} has a term for each cluster, since by features {reason}")
        return found
    except ConvexlawError as error:
        notes.append(f"{what} cannot be made: {error}")
        return None
