"""Which columns and rows of a table a regression can use, and why not the others."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._slope_input import row_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["Screened", "numeric_columns", "screen"]

_MISSING = 0.5  # a column with a larger share of missing values would cost more rows than it is worth
_LEVELS = 30  # text columns with more levels are names, not categories
_MARKS = {"", "?", "-", "--", ".", "na", "n/a", "nan", "null", "none", "missing", "unknown", "#n/a"}
_ID = re.compile(
    r"(^|[_ .-])(id|ids|uid|uuid|guid|index|idx|row|rownames|row_?number|key|nr|no|num|number)\.?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Screened:
    """A table cleaned for a regression.

    Attributes
    ----------
    frame : DataFrame
        Responses and usable features, numbers as numbers, text as text; the index counts the rows read.
    features : tuple of str
        Usable features, in the order of the file.
    columns : dict
        Column that is not used -> why.
    rows : dict
        Reason -> number of rows that are not used for it.
    notes : tuple of str
        What was changed in columns that are used.
    n_read : int
        Rows of the table.
    """

    frame: pd.DataFrame
    features: tuple[str, ...]
    columns: dict[str, str]
    rows: dict[str, int]
    notes: tuple[str, ...]
    n_read: int = field(default=0)

    @property
    def sentences(self) -> list[str]:
        """What is not used and why, one sentence each."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.columns.items():
            by_reason.setdefault(reason, []).append(name)
        said = []
        for reason, names in by_reason.items():
            shown = ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
            said.append(f"column{'s' if len(names) > 1 else ''} {shown}: {reason}")
        said += [f"{count} of {self.n_read} rows: {reason}" for reason, count in self.rows.items()]
        return said


def screen(
    frame: pd.DataFrame, responses: Sequence[str], *, keep: Sequence[str] = (), na: str = "drop"
) -> Screened:
    """Find the usable columns and rows of a table.

    Not used are columns without values, with one value, with more than half of the values missing, dates,
    identifiers, and text with more than 30 levels. Numbers written as text are read as numbers. Infinite
    values are missing ones.

    Parameters
    ----------
    frame : DataFrame
    responses : sequence of str
        Columns to explain; rows without them are not used.
    keep : sequence of str
        Columns to use whatever they look like (those that a formula names).
    na : {"drop", "raise"}
        Rows with missing values in used columns: left out and counted, or an error.

    Returns
    -------
    Screened

    Raises
    ------
    ConvexlawError
        A column that is not there, a response without two values, nothing left, or missing values to raise.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"id": [1, 2, 3, 4], "y": [1.0, 3.0, 2.0, 5.0], "x": list("12?4"), "c": 1})
    >>> found = screen(table, ["y"])
    >>> found.features, found.columns["c"], len(found.frame)
    (('x',), 'constant', 3)
    """
    import pandas as pd

    if na not in ("drop", "raise"):
        raise ConvexlawError(f"na = {na!r}: use 'drop' or 'raise'")
    frame = frame.rename(columns=str).reset_index(drop=True)
    doubled = frame.columns[frame.columns.duplicated()]
    if len(doubled):
        raise ConvexlawError(f"two columns are called {doubled[0]!r}; rename one")
    for name in (*responses, *keep):
        if name not in frame.columns:
            near = _near(name, list(frame.columns))
            listed = ", ".join(map(str, frame.columns[:12]))
            hint = f"did you mean {near!r}?" if near else f"the columns are {listed}"
            raise ConvexlawError(f"the table has no column {name!r}; {hint}")
    used: dict[str, Any] = {}
    refused: dict[str, str] = {}
    notes: list[str] = []
    for name in frame.columns:
        values, note = _as_numbers(frame[name])
        if note:
            notes.append(f"column {name}: {note}")
        reason = _reason(str(name), values, len(frame))
        if name in responses:
            if values.nunique() < 2:
                raise ConvexlawError(
                    f"response {name!r} has {values.nunique()} distinct values; at least 2 are needed"
                )
            used[name] = values
        elif reason and name not in keep:
            refused[str(name)] = reason
        else:
            used[name] = values
    clean = pd.DataFrame(used, index=frame.index)
    features = tuple(str(c) for c in clean.columns if c not in responses)
    if not features:
        reasons = "; ".join(f"{k} ({v})" for k, v in refused.items())
        raise ConvexlawError(f"no usable feature: {reasons or 'no column is left beside the response'}")
    rows: dict[str, int] = {}
    missing = clean.isna()
    if na == "raise" and missing.to_numpy().any():
        bad = [c for c in clean.columns if missing[c].any()]
        said = "; ".join(f"column {c!r} {row_list(np.flatnonzero(missing[c].to_numpy()))}" for c in bad[:5])
        raise ConvexlawError(f"missing values: {said}; fill them in, or leave these rows out")
    lost = missing[list(responses)].any(axis=1)
    if lost.any():
        rows["the response is missing"] = int(lost.sum())
    gone = missing[list(features)].any(axis=1) & ~lost
    if gone.any():
        counts = missing.loc[gone, list(features)].sum()
        worst = counts[counts > 0].sort_values(ascending=False).head(6)
        each = ", ".join(f"{c} {k}" for c, k in worst.items())
        rows[f"a value is missing ({each})"] = int(gone.sum())
    clean = clean[~(lost | gone)]
    notes += _remarks(clean, responses, features)
    if len(clean) < 3:
        counts = missing.sum().sort_values(ascending=False)
        most = ", ".join(f"{c} {k}" for c, k in counts[counts > 0].head(6).items())
        raise ConvexlawError(
            f"{len(clean)} of {len(frame)} rows are complete (missing values: {most or 'none'}); at least 3 "
            "are needed: leave out columns with missing values"
        )
    late = [c for c in features if clean[c].nunique() < 2 and c not in keep]
    for name in late:
        refused[name] = "constant in the complete rows"
    clean = clean.drop(columns=late)
    features = tuple(c for c in features if c not in late)
    if not features:
        raise ConvexlawError("no usable feature: all are constant in the complete rows")
    return Screened(clean, features, refused, rows, tuple(notes), len(frame))


def numeric_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Read numbers written as text as numbers, in every column that has them, as :func:`screen` does.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    DataFrame
    """
    import pandas as pd

    named = frame.rename(columns=str).reset_index(drop=True)
    return pd.DataFrame({c: _as_numbers(named[c])[0] for c in named.columns}, index=named.index)


def _remarks(clean: pd.DataFrame, responses: Sequence[str], features: Sequence[str]) -> list[str]:
    """Return what a reader should know of columns that are used."""
    from pandas.api import types

    numeric = [c for c in features if types.is_numeric_dtype(clean[c]) and not types.is_bool_dtype(clean[c])]
    said = []
    coded = [
        c for c in numeric if 3 <= clean[c].nunique() <= 10 and bool((clean[c] == clean[c].round()).all())
    ]
    if coded:
        names = ", ".join(coded[:8]) + (", ..." if len(coded) > 8 else "")
        said.append(
            f"whole numbers with few levels are used as numbers: {names} (C(name) in a formula: as levels)"
        )
    counting = [c for c in numeric if len(clean) > 10 and _permuted(clean[c].to_numpy(dtype=np.float64))]
    if counting:
        said.append(
            f"consecutive whole numbers, each once: {', '.join(counting[:8])} "
            "(an identifier? then leave it out)"
        )
    for name in responses:
        if not types.is_numeric_dtype(clean[name]):
            continue
        y = clean[name].to_numpy(dtype=np.float64)
        for c in numeric:
            x = clean[c].to_numpy(dtype=np.float64)
            if x.size > 3 and np.ptp(x) > 0 and np.ptp(y) > 0 and abs(np.corrcoef(x, y)[0, 1]) > 0.9999:
                said.append(
                    f"column {c} is {name} in other units (correlation 1.000): does it leak the response?"
                )
    return said


def _as_numbers(values: pd.Series) -> tuple[pd.Series, str]:
    """Numbers as float64 or nullable, infinite ones missing; text that is numbers is read; else text."""
    import pandas as pd
    from pandas.api import types

    note = ""
    if types.is_bool_dtype(values) or isinstance(values.dtype, pd.CategoricalDtype):
        return values, note
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        return values, note
    if not types.is_numeric_dtype(values):
        text = values.astype("object")
        marked = text.map(lambda v: isinstance(v, str) and v.strip().lower() in _MARKS)
        text = text.mask(marked.astype(bool), None)
        present = text.dropna()
        numbers = pd.to_numeric(present.map(_unspaced), errors="coerce")
        if len(present) and bool(numbers.notna().all()):
            note = "numbers written as text"
            note += f", {int(marked.sum())} marks for missing" if marked.any() else ""
        elif len(present) > 5 and float(numbers.notna().mean()) > 0.9:
            odd = present[numbers.isna()]
            note = f"{len(odd)} values are no numbers, e.g. {odd.iloc[0]!r}: taken as missing"
        else:
            return text, note
        values = numbers.reindex(text.index).astype(np.float64)
    if types.is_float_dtype(values) and not isinstance(values.dtype, pd.api.extensions.ExtensionDtype):
        infinite = np.isinf(values.to_numpy())
        if infinite.any():
            note = f"{int(infinite.sum())} infinite values taken as missing"
            values = values.mask(infinite)
    return values, note


def _unspaced(value: Any) -> Any:
    """Text without blanks, signs of percent and currencies, and thousands' commas."""
    if not isinstance(value, str):
        return value
    text = re.sub(r"^[€$£] ?(?=[-+\d.])|(?<=[\d.]) ?[%€$£]$", "", value.strip())
    return text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text) else text


def _reason(name: str, values: pd.Series, n: int) -> str:
    """Why a column is not used, empty where it is."""
    from pandas.api import types

    present = values.dropna()
    if present.empty:
        return "no values"
    distinct = present.nunique()
    if distinct == 1:
        return "constant"
    if len(present) < (1.0 - _MISSING) * n:
        return f"{1 - len(present) / n:.0%} of the values are missing"
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        return "dates; make numbers of them (days since, month)"
    if types.is_numeric_dtype(values) and not types.is_bool_dtype(values):
        whole = bool((present == present.round()).all())
        steps = present.astype(np.float64).diff().iloc[1:]
        counted = whole and distinct == len(present) and len(present) > 3
        if counted and (bool((steps == 1).all()) or _ID.search(name) or name.startswith("Unnamed:")):
            return "an identifier (counts the rows)" if bool((steps == 1).all()) else "an identifier"
        return ""
    if isinstance(present.iloc[0], str) and _dates(present):
        return "dates; make numbers of them (days since, month)"
    if distinct == len(present) and len(present) > 3:
        return "an identifier (text, no value occurs twice)"
    if distinct > _LEVELS:
        return f"text with {distinct} levels; group them"
    return ""


def _permuted(x: NDArray[np.float64]) -> bool:
    """Whether x is a run of consecutive whole numbers in some order."""
    return bool((np.diff(np.sort(x)) == 1.0).all()) and bool(x[0] == np.round(x[0]))


def _dates(present: pd.Series) -> bool:
    import pandas as pd

    sample = present.astype(str).head(200)
    if not sample.str.contains(r"\d").all() or not sample.str.contains(r"[-/:. ]").all():
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = pd.to_datetime(sample, errors="coerce", format="mixed")
    return float(parsed.notna().mean()) > 0.9


def _near(name: str, names: list[str]) -> str:
    import difflib

    lower = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), list(lower), 1)
    return lower[close[0]] if close else ""
