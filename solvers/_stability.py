"""Refits with the penalty of a fitted model: on half-samples, bootstrap samples and parts."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._fitted import Training, loss_of
from convexlaw.solvers._slope_input import as_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]


def alpha_of(model: Any) -> float:
    """Alpha of a fitted model: the chosen one where it chooses."""
    return float(getattr(model, "alpha_", getattr(model, "alpha", np.nan)))


def same_penalty(model: Any) -> Any:
    """Unfitted estimator with the alpha and the penalty sequence of a fitted one, whatever chose them."""
    from convexlaw.solvers import estimators

    kind: Any = estimators.Slope
    if getattr(model, "classes_", None) is not None:
        from convexlaw.solvers.glm import SlopeClassifier

        kind = SlopeClassifier
    known = kind().get_params()
    given = {k: v for k, v in model.get_params(deep=False).items() if k in known}
    if "class_weight" in given:
        given["class_weight"] = None  # already in the weights of the training data
    return kind(**{**given, "alpha": alpha_of(model), "lam": np.asarray(model.lambda_)})


def part(training: Training, rows: Index) -> Training:
    """Return some rows of the data, as matrix and array."""

    def take(values: Any) -> Any:
        return None if values is None else np.asarray(values)[rows]

    X = as_matrix(training.X)
    X = X.tocsr()[rows] if hasattr(X, "tocsr") else X[rows]
    return Training(X, take(training.y), take(training.sample_weight), take(training.offset))


def refit(estimator: Any, training: Training, notes: list[str] | None = None) -> Any:
    """Fit an estimator; what it warned of convergence goes into ``notes``."""
    given = {
        name: value
        for name, value in (("sample_weight", training.sample_weight), ("offset", training.offset))
        if value is not None
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(training.X, training.y, **given)
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            if notes is not None:
                notes.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return estimator


def halves(
    labels: NDArray[Any] | None, n: int, share: float, rng: np.random.Generator
) -> tuple[Index, Index]:
    """Split n rows at random into a share and the rest; within every class where there are labels."""
    if labels is None:
        order = rng.permutation(n)
        cut = round(share * n)
        return np.sort(order[:cut]), np.sort(order[cut:])
    first, second = [], []
    for value in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == value))
        if own.size < 2:
            raise ConvexlawError(f"class {value!r} has one row: it cannot be in both parts; drop or merge it")
        # a random rounding, so that small classes do not always lose their odd row
        cut = int(share * own.size + rng.uniform())
        first.append(own[:cut])
        second.append(own[cut:])
    return np.sort(np.concatenate(first)), np.sort(np.concatenate(second))


def class_labels(model: Any, training: Training) -> NDArray[Any] | None:
    """Labels of a classifier's rows, None for a regression."""
    return np.asarray(training.y).reshape(-1) if loss_of(model) in ("logistic", "multinomial") else None


def selection_frequency(model: Any, training: Training, repeats: int, rng: Any) -> tuple[Vector, list[str]]:
    """Share of half-samples in which each coefficient is nonzero, the penalty held.

    Half-samples come in complementary pairs: a random half of the rows and the other half.

    Parameters
    ----------
    model : estimator
        Fitted.
    training : Training
    repeats : int
    rng : Generator or int, optional

    Returns
    -------
    frequency : ndarray, shape (q, p)
    notes : list of str

    Raises
    ------
    ConvexlawError
        Not a whole number of repeats, or too few rows.

    References
    ----------
    Meinshausen and Buehlmann, arXiv 0809.2932; Shah and Samworth, arXiv 1105.5578 (complementary pairs).
    """
    if repeats != int(repeats) or repeats < 0:
        raise ConvexlawError(f"stability = {repeats!r}: a number of half-samples is needed, 100 is usual")
    generator = np.random.default_rng(rng)
    estimator = same_penalty(model)
    labels = class_labels(model, training)
    n = as_matrix(training.X).shape[0]
    if n < 4:
        raise ConvexlawError(
            f"stability = {repeats}: {n} rows have no halves worth fitting; at least 4 are needed"
        )
    said: list[str] = []
    count = np.zeros(np.atleast_2d(model.coef_).shape)
    done = 0
    while done < repeats:
        for rows in halves(labels, n, 0.5, generator)[: repeats - done]:
            half = refit(estimator, part(training, rows), said)
            count += np.atleast_2d(half.coef_) != 0
            done += 1
    notes = [f"{len(said)} of {repeats} half-sample fits did not converge"] if said else []
    return count / repeats, notes
