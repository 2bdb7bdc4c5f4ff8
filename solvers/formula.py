"""Model formulas: frames with categorical, boolean and nullable columns to matrices with named columns.

The parsing and the encoding are formulaic's (``pip install convexlaw[formula]``). What is added here: missing
values are an error that names columns and rows, or dropped and counted; a level that was not there at the fit
is an error, not a row of zeros; names in a formula are those of the data, never of the caller's scope.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._slope_input import row_list

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["FormulaFeatures", "ModelData", "formula_columns", "model_data"]


@dataclass(frozen=True)
class ModelData:
    """A formula applied to a frame.

    Attributes
    ----------
    X : DataFrame, shape (n, p)
        Encoded features as float64, one column a coefficient.
    y : ndarray, shape (n,) or (n, q)
        Response; labels where it is one column that is not numeric.
    response : tuple of str
        Names of the responses.
    intercept : bool
        Whether the formula has one.
    rows : ndarray of int, shape (n,)
        Positions of the used rows in the data.
    notes : tuple of str
        What was dropped.
    features : FormulaFeatures
        The fitted encoding, for new data.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    response: tuple[str, ...]
    intercept: bool
    rows: NDArray[np.int64]
    notes: tuple[str, ...]
    features: FormulaFeatures


class FormulaFeatures(TransformerMixin, BaseEstimator):
    """Right-hand side of a formula as a scikit-learn transformer, for pipelines and searches.

    Parameters
    ----------
    formula : str
        "C(type) + size", or "y ~ C(type) + size" of which the right side is used; "." stands for all columns.
        The column of ones is left out: the estimator has its own intercept.

    Attributes
    ----------
    intercept_ : bool
        Whether the formula asks for an intercept (no "0 +" or "- 1").
    spec_ : formulaic.ModelSpec
        Levels and the state of transforms as seen at the fit.

    Examples
    --------
    >>> import pandas as pd
    >>> data = pd.DataFrame({"type": ["a", "b", "b"], "size": [1.0, 2.0, 4.0]})
    >>> FormulaFeatures("C(type) + np.log2(size)").fit_transform(data)
       C(type)[T.b]  np.log2(size)
    0           0.0            0.0
    1           1.0            1.0
    2           1.0            2.0
    """

    def __init__(self, formula: str) -> None:
        self.formula = formula

    def fit(self, X: pd.DataFrame, y: Any = None) -> FormulaFeatures:
        """Learn levels and the state of transforms.

        Parameters
        ----------
        X : DataFrame
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ConvexlawError
            The formula cannot be read, names a column that is not there, or a used column has missing values.
        """
        self._learn(_frame(X), _right(_parse(self.formula, X)))
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Encode new data as at the fit.

        Parameters
        ----------
        X : DataFrame

        Returns
        -------
        DataFrame, shape (n, p)

        Raises
        ------
        ConvexlawError
            A column is not there, a value is missing, or a level was not there at the fit.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        data = _frame(X)
        used = sorted(set(map(str, self.spec_.required_variables)) & set(self.columns_))
        absent = [name for name in used if name not in data.columns]
        if absent:
            raise ConvexlawError(
                f"the data have no column {absent[0]!r}, which the formula {self.formula!r} uses; "
                f"their columns are {_listed(data.columns)}"
            )
        refuse_missing(data, used)
        self._check_levels(data)
        out: pd.DataFrame = _numbers(_evaluate(self.formula, self.spec_, data))
        _refuse_non_finite(self.formula, out)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the encoded columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str, shape (p,)
        """
        return np.asarray(self.names_, dtype=object)

    def _learn(self, data: pd.DataFrame, right: Any) -> pd.DataFrame:
        self.columns_ = [str(c) for c in data.columns]
        used = sorted(set(map(str, right.required_variables)) & set(self.columns_))
        refuse_missing(data, used)
        matrix = _evaluate(self.formula, right, data)
        self.spec_ = matrix.model_spec
        self.intercept_ = "Intercept" in matrix.columns
        out: pd.DataFrame = _numbers(matrix)
        _refuse_non_finite(self.formula, out)
        if out.shape[1] == 0:
            raise ConvexlawError(f"formula {self.formula!r} has no feature; name at least one column")
        self.names_ = [str(c) for c in out.columns]
        self.n_features_in_ = len(self.columns_)
        self.feature_names_in_ = np.asarray(self.columns_, dtype=object)
        return out

    def _check_levels(self, data: pd.DataFrame) -> None:
        """Refuse levels unseen at the fit: they would become rows of zeros, as the reference level."""
        variables = {str(f): {str(v) for v in names} for f, names in self.spec_.factor_variables.items()}
        for factor, (kind, state) in self.spec_.encoder_state.items():
            names = sorted(variables.get(factor, set()) & set(self.columns_))
            if getattr(kind, "value", kind) != "categorical" or len(names) != 1:
                continue
            known = set(state["categories"])
            values = data[names[0]]
            bad = np.flatnonzero([v not in known for v in values])
            if bad.size:
                raise ConvexlawError(
                    f"column {names[0]!r} has the level {values.iloc[bad[0]]!r} in {row_list(bad)}, "
                    f"which was not there at the fit (levels: {_listed(state['categories'])}); "
                    "drop these rows, or fit with data that have it"
                )


def model_data(formula: str, data: pd.DataFrame, *, na: str = "raise") -> ModelData:
    """Apply a formula with a response to a frame.

    Parameters
    ----------
    formula : str
        "y ~ C(type) + size", "np.log(y) ~ .", "y1 + y2 ~ size".
    data : DataFrame
    na : {"raise", "drop"}
        Rows with a missing value in a column that the formula uses: an error, or dropped and counted.

    Returns
    -------
    ModelData

    Raises
    ------
    ConvexlawError
        As :meth:`FormulaFeatures.fit`; also without a response.

    Examples
    --------
    >>> import pandas as pd
    >>> data = pd.DataFrame({"y": [1.0, 2.0, 3.0], "size": pd.array([1, None, 4], dtype="Int64")})
    >>> found = model_data("y ~ size", data, na="drop")
    >>> found.notes
    ("1 of 3 rows dropped for missing values ('size' 1)",)
    """
    if na not in ("raise", "drop"):
        raise ConvexlawError(f"na = {na!r}: use 'raise' or 'drop'")
    data = _frame(data)
    parsed = _parse(formula, data)
    left = getattr(parsed, "lhs", None)
    if left is None:
        raise ConvexlawError(f"formula {formula!r} has no response: write it as 'y ~ a + b'")
    right = _right(parsed)
    columns = set(map(str, data.columns))
    used = sorted(set(map(str, {*left.required_variables, *right.required_variables})) & columns)
    rows = np.arange(len(data))
    notes: tuple[str, ...] = ()
    if na == "drop":
        missing = data[used].isna().to_numpy()
        rows = np.flatnonzero(~missing.any(axis=1))
        if rows.size < len(data):
            counts = missing.sum(axis=0)
            each = ", ".join(f"{used[j]!r} {counts[j]}" for j in np.flatnonzero(counts))
            notes = (f"{len(data) - rows.size} of {len(data)} rows dropped for missing values ({each})",)
        if not rows.size:
            raise ConvexlawError(f"every row has a missing value in {_listed(used)}; leave a column out")
        data = data.iloc[rows]
    else:
        refuse_missing(data, used)
    features = FormulaFeatures(formula)
    X = features._learn(data, right)
    y, names = _response(formula, left, data)
    return ModelData(X, y, names, features.intercept_, rows, notes, features)


def formula_columns(formula: str, data: pd.DataFrame) -> tuple[set[str], set[str]]:
    """Columns that the two sides of a formula use.

    Parameters
    ----------
    formula : str
    data : DataFrame

    Returns
    -------
    response, features : set of str
        The first is empty for a right side alone.

    Raises
    ------
    ConvexlawError
        The formula cannot be read, or names what is no column.
    """
    parsed = _parse(formula, _frame(data))
    left = getattr(parsed, "lhs", None)
    columns = set(map(str, data.columns))
    response = set() if left is None else set(map(str, left.required_variables))
    features = set(map(str, _right(parsed).required_variables))
    absent = sorted((response | features) - columns)
    if absent:
        raise ConvexlawError(
            f"formula {formula!r} uses {absent[0]!r}, which is no column; they are {_listed(data.columns)}"
        )
    return response, features


def refuse_missing(data: pd.DataFrame, columns: list[str]) -> None:
    """Raise the error for missing values, naming every column with its rows.

    Parameters
    ----------
    data : DataFrame
    columns : list of str

    Raises
    ------
    ConvexlawError
    """
    found = [(name, np.flatnonzero(data[name].isna().to_numpy())) for name in columns]
    bad = [f"column {name!r} {row_list(rows)}" for name, rows in found if rows.size]
    if bad:
        more = f"; and {len(bad) - 5} more columns" if len(bad) > 5 else ""
        raise ConvexlawError(
            f"missing values: {'; '.join(bad[:5])}{more}; fill them in, or drop the rows "
            "(na='drop' where a model is fitted)"
        )


def _response(formula: str, left: Any, data: pd.DataFrame) -> tuple[NDArray[Any], tuple[str, ...]]:
    terms = [str(t) for t in left]
    if len(terms) == 1 and terms[0] in data.columns:
        column = data[terms[0]]
        if column.dtype.kind not in "iufb":
            return np.asarray(column.astype(object)), (terms[0],)
        return column.to_numpy(dtype=bool if column.dtype.kind == "b" else np.float64), (terms[0],)
    frame = _numbers(_evaluate(formula, left, data))
    _refuse_non_finite(formula, frame)
    names = tuple(map(str, frame.columns))
    values = frame.to_numpy(dtype=np.float64)
    return values[:, 0] if len(names) == 1 else values, names


def _frame(data: Any) -> Any:
    if not hasattr(data, "columns") or not hasattr(data, "isna"):
        raise ConvexlawError(
            f"a formula needs a data frame with named columns, not {type(data).__name__}; "
            "pass a pandas DataFrame"
        )
    # formulaic takes the "string" dtype for numbers where no C() is around it
    text = [i for i, dtype in enumerate(data.dtypes) if str(dtype).startswith("string")]
    if text:
        data = data.copy(deep=False)
        for i in text:
            data.isetitem(i, data.iloc[:, i].astype(object))
    return data


def _parse(formula: str, data: pd.DataFrame) -> Any:
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
    except ImportError:
        raise ImportError("formulas need formulaic: pip install 'convexlaw[formula]'") from None

    names = [str(c) for c in data.columns]
    try:
        return Formula(formula, _context={"__formulaic_variables_available__": names})
    except (FormulaicError, TypeError) as error:
        raise ConvexlawError(
            f"formula {formula!r} cannot be read ({_plain(error)}); write it as 'y ~ a + C(b)'"
        ) from None


def _right(parsed: Any) -> Any:
    return getattr(parsed, "rhs", parsed)


def _evaluate(formula: str, what: Any, data: pd.DataFrame) -> Any:
    """Model matrix of a formula or of a specification that was fitted before."""
    from formulaic.errors import DataMismatchWarning, FormulaicError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", DataMismatchWarning)
            return what.get_model_matrix(data, context={"np": np}, na_action="ignore")
    except (FormulaicError, DataMismatchWarning, ValueError) as error:
        raise ConvexlawError(
            f"formula {formula!r} cannot be applied to the data ({_plain(error)}); "
            f"their columns are {_listed(data.columns)}"
        ) from None


def _numbers(matrix: Any) -> Any:
    """Return the encoded columns without the ones, as float64."""
    frame = matrix.drop(columns="Intercept") if "Intercept" in matrix.columns else matrix
    return frame.__wrapped__.astype(np.float64) if hasattr(frame, "__wrapped__") else frame.astype(np.float64)


def _refuse_non_finite(formula: str, frame: pd.DataFrame) -> None:
    """Raise the error for values that the formula makes of numbers outside a domain, as log(0).

    The rows are those of the index: rows with missing values may have been dropped before.
    """
    bad = ~np.isfinite(frame.to_numpy())
    if bad.any():
        j = int(np.flatnonzero(bad.any(axis=0))[0])
        raise ConvexlawError(
            f"formula {formula!r}: {frame.columns[j]!r} is not finite in {row_list(frame.index[bad[:, j]])}; "
            "write it otherwise, or drop these rows first"
        )


def _plain(error: BaseException) -> str:
    """Message without the marks that formulaic makes for terminals."""
    import re

    return " ".join(re.sub(r"\x1b\[[0-9;]*m|⧛\[[0-9;]*m?|\[0m⧚|⧚", "", str(error)).split())


def _listed(names: Any, most: int = 12) -> str:
    shown = [repr(n) for n in list(names)[:most]]
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(shown) + more
