"""One recipe for every loss: a penalty, a way to choose alpha, and the fit at the chosen alpha."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers.criteria import NAMES, Criteria, information_criteria

if TYPE_CHECKING:
    from convexlaw.solvers._cv_curve import CVCurve
    from convexlaw.solvers.path import SlopePath

CLASSES = ("logistic", "multinomial")
_PARAMETERS = ("q", "theta1", "theta2")
_TWO_LEVELS = {"low_ratio": 0.5, "fraction": 0.1}  # where nothing is said and nothing is searched


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
    alpha : float or "estimate", optional
        Given, or from the noise level; otherwise chosen.
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
    alpha: float | str | None = None
    criterion: str | None = None
    folds: int = 10
    rule: str = "min"
    fit_intercept: bool = True
    threshold: float = 1.345
    tol: float = 1e-8
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
        curve = None
        if self.alpha is None and self.criterion is None:
            search, penalty = self._search(X, y, notes)
            path, curve = search.path_, search.curve_
            alpha: Any = float(search.alpha_)
            rule = "the largest within one standard error of the best" if self.rule == "1se" else "the best"
            sentence = f"{rule} of {path.alphas.size} in {self.folds}-fold cross-validation"
            if curve.best == path.alphas.size - 1 > 0:
                notes.append("the best alpha is the smallest of the path: less penalty may be better still")
            if curve.best == 0 < path.alphas.size - 1:
                notes.append(
                    "no alpha of the path predicts better than the mean: the features explain nothing"
                )
            criteria = self._criteria(path, X, y)
        else:
            penalty = self._penalty(X, y)
            path = self._path(X, y, penalty, notes)
            criteria = self._criteria(path, X, y)
            if self.alpha is not None:
                alpha, sentence = self.alpha, "as given"
            else:
                if criteria is None:
                    raise ConvexlawError(
                        f"the {self.loss} loss is no likelihood: no {self.criterion}, use cross-validation"
                    )
                name = str(self.criterion)
                at = criteria.best(name)
                alpha = float(path.alphas[at])
                sentence = f"the smallest {name.upper()} of {path.alphas.size} alphas"
                notes += [criteria.note(name)] if criteria.note(name) else []
        model = self._estimator("Slope", alpha=alpha, **penalty)
        _gather(lambda: model.fit(X, y), notes, "the final fit")
        if alpha == "estimate":
            sentence = f"what the weights need at the estimated noise level {model.sigma_:.4g}"
        words = f"alpha = {model.alpha_:.4g}, {sentence}"
        return Choice(model, path, curve, criteria, words, tuple(dict.fromkeys(notes)))

    def _common(self) -> dict[str, Any]:
        threshold = {"threshold": self.threshold} if self.loss == "huber" else {}
        return {
            "loss": self.loss,
            "fit_intercept": self.fit_intercept,
            "scaling": "sd",
            "tol": self.tol,
            **threshold,
        }

    def _estimator(self, kind: str, **options: Any) -> Any:
        """Return an estimator of this loss; ``kind`` "Slope" is a classifier where the loss has classes."""
        from convexlaw.solvers import cross_validation, estimators, glm

        classes = self.loss in CLASSES
        make: Any = {
            "Slope": glm.SlopeClassifier if classes else estimators.Slope,
            "SlopeCV": cross_validation.SlopeClassifierCV if classes else cross_validation.SlopeCV,
            "TwoLevelSlopeCV": cross_validation.TwoLevelSlopeCV,
        }[kind]
        return make(**self._common(), **options)

    def _penalty(self, X: Any, y: Any) -> dict[str, Any]:
        """Keywords of a penalty that is not searched for."""
        if self.penalty != "two-level":
            known: dict[str, Any] = {k: self.options[k] for k in _PARAMETERS if k in self.options}
            return {"lambda_type": self.penalty} | known
        from convexlaw.theory.sorted_l1 import two_level_sequence

        width = 1 if np.ndim(y) == 1 else np.shape(y)[1]
        if self.loss == "multinomial":
            width = np.unique(y).size
        ratio, fraction = (self.options.get(k, default) for k, default in _TWO_LEVELS.items())
        return {"lam": two_level_sequence(np.shape(X)[1] * width, 1.0, ratio, fraction)}

    def _search(self, X: Any, y: Any, notes: list[str]) -> tuple[Any, dict[str, Any]]:
        """Return a fitted cross-validation and the keywords of the penalty that it chose."""
        from sklearn.model_selection import KFold, StratifiedKFold

        splitter = StratifiedKFold if self.loss in CLASSES else KFold
        options = {
            "cv": splitter(self.folds, shuffle=True, random_state=self.seed),
            "selection": self.rule,
            "progress": False,
        }
        if (
            self.penalty == "two-level"
            and self.loss not in CLASSES
            and not _TWO_LEVELS.keys() <= self.options.keys()
        ):
            tried = {f"{k}s": [self.options[k]] for k in _TWO_LEVELS if k in self.options}
            search = self._estimator("TwoLevelSlopeCV", **options, **tried)
            _gather(lambda: search.fit(X, y), notes, "the cross-validation")
            notes.append(
                f"low/high = {search.low_ratio_:g} below the top {search.fraction_:g} of the ranks, "
                "chosen by cross-validation"
            )
            return search, {"lam": search.lambda_}
        penalty = self._penalty(X, y)
        search = self._estimator("SlopeCV", **options, **penalty)
        _gather(lambda: search.fit(X, y), notes, "the cross-validation")
        return search, penalty

    def _path(self, X: Any, y: Any, penalty: dict[str, Any], notes: list[str]) -> SlopePath:
        from convexlaw.solvers.path import slope_path

        options = {**penalty, **self._common(), "progress": False}
        found: SlopePath = _gather(lambda: slope_path(X, y, **options), notes, "the path")
        return found

    def _criteria(self, path: SlopePath, X: Any, y: Any) -> Criteria | None:
        if self.loss == "huber":
            return None
        return information_criteria(path, X, y, fit_intercept=self.fit_intercept)


def _gather(work: Any, notes: list[str], what: str) -> Any:
    """Run ``work``; warnings for the user, of convergence or of small classes, become notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work()
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning) or warning.category is UserWarning:
            notes.append(f"{what}: {warning.message}")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return result
