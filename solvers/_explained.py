"""What every fitted SLOPE estimator says of itself: formulas, summary, refit, diagnostics, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fitted import Fitted, Training, fitted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from convexlaw.solvers.diagnostics import Diagnostics
    from convexlaw.solvers.intervals import PredictionInterval
    from convexlaw.solvers.refit import RelaxedFit
    from convexlaw.solvers.summary import SlopeSummary

    Vector = NDArray[np.float64]
    Seed = int | np.random.Generator | None


@dataclass(frozen=True)
class Facts:
    """What a summary needs of the training data, kept when a model is pickled without them."""

    n: int
    deviance: float
    null_deviance: float
    scale: Vector
    outputs: tuple[str, ...]


class Explained:
    """Mixin of the estimators: ``fit`` ends with :meth:`_keep`, ``predict`` reads through :meth:`_encoded`.

    A fitted model refers to the X and y it was given (no copy) so that it can answer without being handed
    them again; a pickled one leaves them out and takes them as arguments.
    """

    _training: Training | None
    _facts: Facts | None

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: pd.DataFrame,
        *,
        na: str = "raise",
        sample_weight: str | ArrayLike | None = None,
        offset: str | ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit a formula to a data frame; the model predicts from frames with the same columns.

        Categorical, text, boolean and nullable columns are encoded by formulaic. A formula without intercept
        ("0 + ...") sets ``fit_intercept=False``. Levels are coded against the first one; the penalty sees
        these columns, so the choice of reference matters (``C(type, contr.sum)`` and ``0 + C(type)`` are
        others).

        Parameters
        ----------
        formula : str
            "y ~ C(type) + size", "np.log(y) ~ .".
        data : DataFrame
        na : {"raise", "drop"}
            Rows with missing values: an error that names columns and rows, or dropped; ``notes_`` and the
            summary say how many.
        sample_weight, offset : str or array_like, shape (n,), optional
            Passed to ``fit``; a str names a column of ``data``.
        **params
            Parameters of the estimator.

        Returns
        -------
        estimator
            Fitted, with ``formula_``, ``features_`` (the encoding), ``response_names_`` and ``notes_``.

        Raises
        ------
        ConvexlawError
            The formula cannot be read, a column is absent, values are missing.

        Examples
        --------
        >>> import pandas as pd
        >>> from convexlaw import Slope
        >>> data = pd.DataFrame({"y": [1.0, 2.0, 4.0, 5.0], "type": list("abab"), "size": [1, 2, 5, 5]})
        >>> model = Slope.from_formula("y ~ C(type) + size", data, alpha=0.1, scaling="sd")
        >>> list(model.feature_names_in_), model.predict(data.head(1)).shape
        (['C(type)[T.b]', 'size'], (1,))
        """
        from convexlaw.solvers.formula import model_data

        found = model_data(formula, data, na=na)
        if not found.intercept:
            params = {"fit_intercept": False} | params
        model: Any = cls(**params)
        given = {}
        for name, value in (("sample_weight", sample_weight), ("offset", offset)):
            if value is not None:
                given[name] = _column(data, value, name)[found.rows]
        model.fit(found.X, found.y, **given)
        model.formula_ = formula
        model.features_ = found.features
        model.response_names_ = list(found.response)
        model.notes_ = list(found.notes)
        return model  # type: ignore[no-any-return]

    def summary(
        self,
        *,
        stability: int = 0,
        rng: Seed = None,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> SlopeSummary:
        """Return the fitted model as a value that prints itself, with ``.to_frame()`` and ``.plot()``.

        Parameters
        ----------
        stability : int
            Number of half-samples on which the model is fitted again with the same penalty; the share of them
            in which a coefficient is nonzero is its selection frequency.
        rng : Generator or int, optional
            Of the half-samples.
        X, y, sample_weight : optional
            Training data, for a model that came without them out of a pickle.

        Returns
        -------
        SlopeSummary
        """
        from convexlaw.solvers._stability import selection_frequency
        from convexlaw.solvers.summary import summarise

        self._check_fitted()
        if X is not None:
            self._keep_data(X, y, sample_weight=sample_weight)
        frequency: Vector | None = None
        notes: list[str] = []
        if stability:
            frequency, notes = selection_frequency(self, self._data_or_error(), stability, rng)
        return summarise(self, self._known_facts(), frequency=frequency, repeats=stability, notes=notes)

    def relax(
        self,
        X: Any = None,
        y: Any = None,
        *,
        by: str = "features",
        split: float | None = None,
        robust: bool | None = None,
        level: float = 0.95,
        rng: Seed = None,
        sample_weight: ArrayLike | None = None,
    ) -> RelaxedFit:
        """Fit the selected features again without a penalty, with a table of estimates by statsmodels.

        On the rows that selected the features the table is descriptive: its intervals ignore the selection.
        With ``split`` the features are selected on one part of the rows and the table is made from the other,
        so that its intervals hold.

        Parameters
        ----------
        X, y : optional
            By default the data of the fit.
        by : {"features", "clusters"}
            One coefficient a selected feature, or one a cluster: the sum of its features with their signs.
        split : float, optional
            Share of the rows, in (0, 1), that selects; the estimator (with its choice of alpha, if it makes
            one) is fitted on these rows alone.
        robust : bool, optional
            Sandwich standard errors (HC3, HC0 for GLMs), which do not need the linear model to be true; by
            default with ``split``.
        level : float
            Level of the intervals.
        rng : Generator or int, optional
            Of the split.
        sample_weight : array_like, shape (n,), optional

        Returns
        -------
        RelaxedFit

        Raises
        ------
        ConvexlawError
            More selected features than rows can carry, or no maximum of the likelihood.
        """
        from convexlaw.solvers.refit import relaxed

        self._check_fitted()
        training = self._data_or_error(X, y, sample_weight)
        return relaxed(self, training, by=by, split=split, robust=robust, level=level, rng=rng)

    def diagnostics(
        self, X: Any = None, y: Any = None, *, sample_weight: ArrayLike | None = None
    ) -> Diagnostics:
        """Residuals, leverage on the selected features, collinearity and duplicates.

        Parameters
        ----------
        X, y, sample_weight : optional
            By default the data of the fit.

        Returns
        -------
        Diagnostics
        """
        from convexlaw.solvers.diagnostics import diagnose

        self._check_fitted()
        training = self._data_or_error(X, y, sample_weight)
        return diagnose(fitted(self, training))

    def prediction_interval(
        self,
        X_new: Any,
        *,
        level: float = 0.9,
        method: str = "pairs",
        n_boot: int = 200,
        rng: Seed = None,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> PredictionInterval:
        """Bootstrap intervals for new responses, at the penalty of this fit.

        Parameters
        ----------
        X_new : array_like, DataFrame or sparse, shape (m, p)
        level : float
        method : {"pairs", "residual"}
            Resample rows, with the errors of rows left out; or residuals, scaled for the degrees of freedom
            (needs errors of one variance).
        n_boot : int
        rng : Generator or int, optional
            The same seed gives the same intervals.
        X, y, sample_weight : optional
            Training data; by default those of the fit.

        Returns
        -------
        PredictionInterval

        Raises
        ------
        ConvexlawError
            A classifier, whose labels have no interval; bad options.
        """
        from convexlaw.solvers.intervals import prediction_interval

        self._check_fitted()
        training = self._data_or_error(X, y, sample_weight)
        return prediction_interval(
            self, training, self._encoded(X_new), level=level, method=method, n_boot=n_boot, rng=rng
        )

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)

    def _keep(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> None:
        """Refer to the data of a fit; what belonged to an earlier fit goes."""
        for name in ("formula_", "features_", "response_names_", "notes_"):
            self.__dict__.pop(name, None)
        self._keep_data(X, y, sample_weight, offset)

    def _keep_data(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> None:
        self._training = Training(X, y, sample_weight, offset)
        self._facts = None

    def _encoded(self, X: Any) -> Any:
        """Features of new data: a formula is applied to a frame that does not have its columns yet."""
        features = getattr(self, "features_", None)
        if features is None or not hasattr(X, "columns") or list(X.columns) == features.names_:
            return X
        return features.transform(X)

    def _data_or_error(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Training:
        if (X is None) != (y is None):
            raise ConvexlawError("X and y go together: pass both, or neither for the data of the fit")
        if X is not None:
            return Training(self._encoded(X), y, sample_weight)
        if self._training is None:
            raise ConvexlawError("this model was loaded without its data; pass X and y")
        return self._training

    def _view(self) -> Fitted:
        return fitted(self, self._data_or_error())

    def _known_facts(self) -> Facts:
        if self._facts is None:
            view = self._view()
            self._facts = Facts(view.n, view.deviance, view.null_deviance, view.scale, view.outputs)
        return self._facts

    def __getstate__(self) -> dict[str, Any]:
        if getattr(self, "_training", None) is not None:
            self._known_facts()
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "_training": None} if "_training" in state else state


def _column(data: pd.DataFrame, value: Any, name: str) -> Vector:
    if isinstance(value, str):
        if value not in data.columns:
            raise ConvexlawError(f"{name} = {value!r}: the data have no such column")
        value = data[value]
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (len(data),):
        raise ConvexlawError(
            f"{name} has shape {array.shape}, the data {len(data)} rows; pass one value a row"
        )
    return array
