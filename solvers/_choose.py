"""One recipe for every loss: a penalty, a way to choose alpha, and the fit at the chosen alpha."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._cv_curve import CVCurve, make_curve
from convexlaw.solvers._cv_splits import make_splits
from convexlaw.solvers.criteria import NAMES, Criteria, information_criteria

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers.path import SlopePath

    Vector = NDArray[np.float64]

CLASSES = ("logistic", "multinomial")


@dataclass(frozen=True, eq=False)
class Choice:
    """A fitted model and how its alpha was chosen.

    Attributes
    ----------
    model : Slope or SlopeClassifier
        Fitted on all rows at the chosen alpha.
    path : SlopePath
    curve : CVCurve or None
    criteria : Criteria or None
    sentence : str
        How alpha was chosen.
    notes : tuple of str
    """

    model: Any
    path: SlopePath
    curve: CVCurve | None
    criteria: Criteria | None
    sentence: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """Loss, penalty and rule for alpha.

    Parameters
    ----------
    loss : {"quadratic", "huber", "poisson", "logistic", "multinomial"}
    penalty : {"bh", "gaussian", "oscar", "lasso", "two-level"}
    options : dict
        q, theta1, theta2, or low_ratio and fraction of "two-level".
    alpha : float, optional
        Given; otherwise chosen.
    criterion : {"aic", "bic", "ebic", "gcv"}, optional
        What chooses alpha; otherwise cross-validation.
    folds : int
    rule : {"min", "1se"}
    fit_intercept : bool
    threshold : float
        Of the Huber loss.
    tol : float
    seed : int
        Of the folds.
    """

    loss: str = "quadratic"
    penalty: str = "bh"
    options: dict[str, Any] = field(default_factory=dict)
    alpha: float | None = None
    criterion: str | None = None
    folds: int = 10
    rule: str = "min"
    fit_intercept: bool = True
    threshold: float = 1.345
    tol: float = 1e-6
    seed: int = 0

    def fit(self, X: Any, y: Any) -> Choice:
        """Choose alpha and fit.

        Parameters
        ----------
        X : DataFrame or array_like, shape (n, p)
        y : array_like, shape (n,) or (n, q)

        Returns
        -------
        Choice

        Raises
        ------
        ConvexlawError
            Unknown names, or data that the loss cannot take.
        """
        if self.criterion is not None and self.criterion not in NAMES:
            raise ConvexlawError(f"criterion {self.criterion!r}: use one of {', '.join(map(repr, NAMES))}")
        notes: list[str] = []
        penalty, words = self._penalty(X, y, notes)
        path = self._path(X, y, penalty, None, notes)
        curve = criteria = None
        if self.alpha is not None:
            alpha, sentence = self.alpha, f"alpha = {self.alpha:g} as given"
        elif self.criterion is not None:
            criteria = information_criteria(path, X, y, fit_intercept=self.fit_intercept)
            at = criteria.best(self.criterion)
            alpha = float(path.alphas[at])
            sentence = (
                f"alpha = {alpha:.4g}, the smallest {self.criterion.upper()} of {path.alphas.size} alphas"
            )
            notes += [criteria.note(self.criterion)] if criteria.note(self.criterion) else []
        else:
            curve = self._curve(X, y, path, penalty, words, notes)
            alpha = float(path.alphas[curve.chosen])
            rule = "the largest within one standard error of the best" if self.rule == "1se" else "the best"
            sentence = (
                f"alpha = {alpha:.4g}, {rule} of {path.alphas.size} in {self.folds}-fold cross-validation"
            )
            if curve.best == path.alphas.size - 1 and path.alphas.size > 1:
                notes.append("the best alpha is the smallest of the path: less penalty may be better still")
            if curve.best == 0 and path.alphas.size > 1:
                notes.append(
                    "no alpha of the path predicts better than the mean: the features explain nothing"
                )
        if criteria is None and self.loss != "huber":
            criteria = information_criteria(path, X, y, fit_intercept=self.fit_intercept)
        model = self._model(alpha, penalty)
        _gather(lambda: model.fit(X, y), notes, "the final fit")
        return Choice(model, path, curve, criteria, sentence, tuple(dict.fromkeys(notes)))

    def _common(self) -> dict[str, Any]:
        return {"fit_intercept": self.fit_intercept, "scaling": "sd", "tol": self.tol}

    def _loss(self) -> dict[str, Any]:
        return {"loss": self.loss} | ({"threshold": self.threshold} if self.loss == "huber" else {})

    def _model(self, alpha: float, penalty: dict[str, Any]) -> Any:
        from convexlaw.solvers.estimators import Slope
        from convexlaw.solvers.glm import SlopeClassifier

        kind: Any = SlopeClassifier if self.loss in CLASSES else Slope
        return kind(alpha=alpha, **penalty, **self._loss(), **self._common())

    def _penalty(self, X: Any, y: Any, notes: list[str]) -> tuple[dict[str, Any], str]:
        """Keywords of the penalty and its name."""
        if self.penalty != "two-level":
            known: dict[str, Any] = {
                k: self.options[k] for k in ("q", "theta1", "theta2") if k in self.options
            }
            return {"lambda_type": self.penalty} | known, f"lambda {self.penalty!r}"
        from convexlaw.theory.sorted_l1 import two_level_sequence

        ratio, fraction = self.options.get("low_ratio"), self.options.get("fraction")
        if ratio is None or fraction is None:
            if self.loss == "quadratic" and np.ndim(y) == 1 and self.alpha is None and not self.criterion:
                ratio, fraction = self._two_levels(X, y, ratio, fraction, notes)
            else:
                ratio, fraction = 0.5 if ratio is None else ratio, 0.1 if fraction is None else fraction
        width = 1 if np.ndim(y) == 1 else np.shape(y)[1]
        if self.loss == "multinomial":
            width = np.unique(y).size
        lam = two_level_sequence(np.shape(X)[1] * width, 1.0, float(ratio), float(fraction))
        return {"lam": lam}, f"weight 1 on the top {fraction:g} of the ranks, {ratio:g} below"

    def _two_levels(
        self, X: Any, y: Any, ratio: float | None, fraction: float | None, notes: list[str]
    ) -> tuple[float, float]:
        """Ratio and fraction by cross-validation."""
        from convexlaw.solvers.cross_validation import TwoLevelSlopeCV

        tried: dict[str, Any] = {} if ratio is None else {"low_ratios": [ratio]}
        tried |= {} if fraction is None else {"fractions": [fraction]}
        search = TwoLevelSlopeCV(cv=self._splits(X, y), progress=False, **tried, **self._common())
        _gather(lambda: search.fit(X, y), notes, "the search over two levels")
        notes.append(
            f"low/high = {search.low_ratio_:g} on all but the top {search.fraction_:g} of the ranks, "
            "chosen by cross-validation"
        )
        return search.low_ratio_, search.fraction_

    def _path(self, X: Any, y: Any, penalty: dict[str, Any], alphas: Any, notes: list[str]) -> SlopePath:
        from convexlaw.solvers.path import slope_path

        options = {**penalty, **self._loss(), **self._common(), "progress": False}
        found: SlopePath = _gather(lambda: slope_path(X, y, alphas=alphas, **options), notes, "the path")
        return found

    def _splits(self, X: Any, y: Any) -> Any:
        from sklearn.model_selection import KFold, StratifiedKFold

        kind = StratifiedKFold if self.loss in CLASSES else KFold
        splitter = kind(self.folds, shuffle=True, random_state=self.seed)
        return make_splits(splitter, 1, None, X, y, None, classifier=self.loss in CLASSES)[0]

    def _curve(
        self, X: Any, y: Any, path: SlopePath, penalty: dict[str, Any], words: str, notes: list[str]
    ) -> CVCurve:
        splits = self._splits(X, y)
        if self.loss == "quadratic" and np.ndim(y) == 1:
            from convexlaw.solvers.cross_validation import SlopeCV

            search = SlopeCV(
                alphas=path.alphas,
                cv=splits,
                selection=self.rule,
                progress=False,
                **penalty,
                **self._common(),
            )
            _gather(lambda: search.fit(X, y), notes, "the cross-validation")
            return search.curve_
        scores = np.empty((path.alphas.size, len(splits)))
        short: list[str] = []
        response = np.asarray(y)
        for k, (train, test) in enumerate(splits):
            inside = self._path(_rows(X, train), response[train], penalty, path.alphas, short)
            scores[:, k] = inside.deviance(_rows(X, test), response[test])
        if short:
            notes.append(
                f"{len(short)} of {len(splits)} folds have fits above the tolerance, e.g. {short[0]}"
            )
        return make_curve(
            path.alphas,
            scores,
            n_nonzero=np.count_nonzero(path.coefs.reshape(-1, path.alphas.size), axis=0),
            n_clusters=path.n_clusters,
            selection=self.rule,
            criterion="mean squared error" if self.loss == "quadratic" else "mean deviance",
            greater_is_better=False,
            repeats=1,
            penalty=words,
        )


def _rows(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _gather(work: Any, notes: list[str], what: str) -> Any:
    """Run ``work``; warnings of convergence become notes, others are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work()
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            notes.append(f"{what}: {warning.message}")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return result
