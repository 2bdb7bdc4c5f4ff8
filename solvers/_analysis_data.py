"""From a table to the matrix and the response that a family takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers.screening import Screened, screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def model_inputs(
    table: pd.DataFrame, responses: Sequence[str], formula: str | None, na: str
) -> tuple[Any, Any, list[str], bool, Screened, Any]:
    """Return features, responses, their names, whether there is an intercept, the screening, the encoding."""
    from pandas.api import types

    from convexlaw.solvers.formula import FormulaFeatures, formula_columns, model_data

    given = list(responses)
    if formula is not None and not formula.partition("~")[0].strip():
        formula = formula.partition("~")[2]
    if formula is not None and "~" in formula:
        left, right = formula_columns(formula, table)
        if given and not set(given) <= left:
            raise ConvexlawError(
                f"the formula {formula!r} explains {', '.join(sorted(left))}, the given response is "
                f"{', '.join(given)}: name it once"
            )
        own = sorted(left)
        cleaned = _screened(table, own, formula, right, na)
        found = model_data(formula, cleaned.frame)
        return found.X, found.y, list(found.response), found.intercept, cleaned, found.features
    if not given:
        raise ConvexlawError("no response: name the column to explain, or write a formula 'y ~ a + b'")
    if formula is not None:
        _, right = formula_columns(formula, table)
        cleaned = _screened(table, given, formula, right, na)
        features = FormulaFeatures(formula)
        X: Any = features.fit_transform(cleaned.frame.drop(columns=given))
        intercept = features.intercept_
    else:
        cleaned = screen(table, given, na=na)
        frame = cleaned.frame[list(cleaned.features)]
        intercept, features = True, None
        if all(types.is_numeric_dtype(frame[c]) for c in frame.columns):
            X = frame.astype(np.float64)
        else:
            features = FormulaFeatures(".")
            X = features.fit_transform(frame)
    y = cleaned.frame[given]
    return X, y.to_numpy()[:, 0] if len(given) == 1 else y, given, intercept, cleaned, features


def _screened(table: Any, responses: list[str], formula: str, used: set[str], na: str) -> Screened:
    """Screen the columns that a formula names, or all where it has the dot."""
    if re.search(r"(?<![\w.)])\.(?![\w.])", formula.partition("~")[2] or formula):
        return screen(table, responses, na=na)
    named = [c for c in table.columns if c in used and c not in responses]
    return screen(table[[*responses, *named]], responses, keep=named, na=na)


def family_response(family: str, y: Any, names: list[str], notes: list[str]) -> tuple[str, Any]:
    """Family, and the response in the form that it takes."""
    values = np.asarray(y)
    if values.ndim == 2:
        if family not in ("auto", "gaussian"):
            raise ConvexlawError(
                f"{len(names)} responses with family {family!r}: several need the gaussian family"
            )
        return "gaussian", np.column_stack([_numbers(values[:, k], name) for k, name in enumerate(names)])
    text = values.dtype.kind in "OUSb" and not all(isinstance(v, int | float | np.number) for v in values)
    distinct = np.unique(values.astype(str) if text else values)
    if family == "auto":
        family = "gaussian"
        if distinct.size == 2:
            family = "binomial"
        elif text:
            family = "multinomial"
        notes.append(f"family {family}, for {distinct.size} distinct values of {names[0]}")
    if family in ("binomial", "multinomial"):
        if family == "binomial" and distinct.size != 2:
            raise ConvexlawError(f"response {names[0]!r} has {distinct.size} values; binomial needs 2")
        if distinct.size > 20:
            raise ConvexlawError(f"response {names[0]!r} has {distinct.size} values: too many for classes")
        return family, values.astype(str) if text else values
    return family, _numbers(values, names[0])


def _numbers(values: Any, name: str) -> Any:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConvexlawError(
            f"response {name!r} is text; use the family binomial or multinomial, or make numbers of it"
        ) from None
