"""Folds of a cross-validation, from whatever scikit-learn takes for ``cv``."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int64]
    Split = tuple[Index, Index]


def make_splits(
    cv: Any, repeats: Any, random_state: Any, X: Any, y: Any, groups: Any, *, classifier: bool = False
) -> tuple[list[Split], int]:
    """Rows to train and to test on, for every fold of every repeat.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test), or None
        None is 5 folds. A whole number gives contiguous folds (balanced over classes for a classifier), and
        shuffled ones where there are repeats.
    repeats : int
        Repeats with other folds; more than one needs a whole number for ``cv``.
    random_state : int, RandomState or None
        Of the shuffles.
    X, y, groups
        For the splitter.
    classifier : bool

    Returns
    -------
    splits : list of (train, test)
    repeats : int

    Raises
    ------
    ConvexlawError
        Not a splitter, empty or foreign rows, a row on both sides, repeats of a splitter.
    """
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, check_cv

    if isinstance(repeats, bool) or not isinstance(repeats, int | np.integer) or repeats < 1:
        raise ConvexlawError(f"repeats = {repeats!r}: at least one round of folds is needed")
    if repeats > 1:
        if cv is not None and (isinstance(cv, bool) or not isinstance(cv, Integral)):
            raise ConvexlawError(
                f"repeats = {repeats} with cv = {cv!r}: only a whole number of folds can be repeated; "
                "pass a repeated splitter as cv and leave repeats at 1"
            )
        kind = RepeatedStratifiedKFold if classifier else RepeatedKFold
        splitter = kind(n_splits=5 if cv is None else cv, n_repeats=repeats, random_state=random_state)
    else:
        try:
            splitter = check_cv(cv, y, classifier=classifier)
        except ValueError as error:
            raise ConvexlawError(f"cv = {cv!r}: {error}") from None
    try:
        pairs = list(splitter.split(X, y, groups))
    except ValueError as error:
        why = str(error).rstrip(".")
        raise ConvexlawError(
            f"cv cannot split {X.shape[0]} rows: {why}; "
            "take fewer folds, or pass the groups that the splitter asks for"
        ) from None
    found = [(_rows(train, X), _rows(test, X)) for train, test in pairs]
    for k, (train, test) in enumerate(found):
        if train.size == 0 or test.size == 0:
            raise ConvexlawError(
                f"cv: fold {k} has {train.size} rows to train and {test.size} to test on; both need some"
            )
        if np.intersect1d(train, test).size:
            raise ConvexlawError(
                f"cv: fold {k} tests on rows that it was trained on, e.g. {np.intersect1d(train, test)[0]}"
            )
    if not found:
        raise ConvexlawError("cv gave no folds: at least one is needed")
    return found, int(repeats)


def _rows(index: Any, X: Any) -> Index:
    rows = np.asarray(index)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows.size and not (rows.dtype.kind in "iu" and -X.shape[0] <= rows.min() and rows.max() < X.shape[0]):
        raise ConvexlawError(f"cv names rows outside 0..{X.shape[0] - 1}; give indices of rows of X")
    return np.asarray(rows % X.shape[0], dtype=np.int64)
