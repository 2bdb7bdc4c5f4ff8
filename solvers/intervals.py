"""Prediction intervals by the bootstrap: resampled rows, or resampled residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fitted import Fitted, Training, fitted
from convexlaw.solvers._slope_input import as_matrix
from convexlaw.solvers._stability import refit, same_penalty

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["PredictionInterval", "prediction_interval"]

# entries of the table (rows of the fit, new rows) that is sorted at a time
_CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class PredictionInterval(Result):
    """Predictions of new responses with limits.

    Attributes
    ----------
    prediction, low, high : ndarray, shape (m,) or (m, q)
        In the units of y.
    level : float
        Nominal coverage of each interval.
    method : {"pairs", "residual"}
    n_boot : int
    outputs : tuple of str
        Names of the responses.
    notes : tuple of str
    """

    prediction: Vector
    low: Vector
    high: Vector
    level: float
    method: str
    n_boot: int
    outputs: tuple[str, ...]
    notes: tuple[str, ...]

    _figure: ClassVar[str] = "regression:plot_prediction_intervals"

    def __str__(self) -> str:
        """Widths in a few lines."""
        width = np.atleast_2d((self.high - self.low).T)
        lines = [
            f"{self.level:.0%} prediction intervals of {len(self.prediction)} rows, {self.method} bootstrap, "
            f"{self.n_boot} resamples"
        ]
        for name, own in zip(self.outputs[:8], width[:8], strict=True):
            lines.append(f"  {name}: median width {np.median(own):.5g} ({own.min():.5g} to {own.max():.5g})")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes[:2])])

    def to_frame(self) -> pd.DataFrame:
        """Return one row a new row (and response): prediction, low, high."""
        import pandas as pd

        q = len(self.outputs)
        rows = np.repeat(np.arange(len(self.prediction)), q)
        columns: dict[str, Any] = {"row": rows}
        if q > 1:
            columns["response"] = list(self.outputs) * len(self.prediction)
        for name in ("prediction", "low", "high"):
            columns[name] = np.asarray(getattr(self, name)).ravel()
        return pd.DataFrame(columns)


def prediction_interval(
    model: Any, training: Training, X_new: Any, *, level: float, method: str, n_boot: int, rng: Any
) -> PredictionInterval:
    """Bootstrap prediction intervals of a fitted regression, the penalty held.

    "pairs" is the jackknife+ after the bootstrap: rows are resampled, each row's error is that of the fits
    that did not see it, and the limits are quantiles of prediction plus error over the rows. Exchangeable
    rows are enough for a coverage of at least 1 - 2 (1 - level); it is usually near ``level``. Poisson errors
    are taken in units of the square root of the mean, and limits are whole numbers. "residual" adds
    resampled residuals, over sqrt(1 - df/n), to the fit and needs errors of one variance.

    Parameters
    ----------
    model : estimator
        Fitted.
    training : Training
    X_new : array_like or sparse, shape (m, p)
    level : float
    method : {"pairs", "residual"}
    n_boot : int
    rng : Generator or int, optional

    Returns
    -------
    PredictionInterval

    Raises
    ------
    ConvexlawError
        A classifier, an offset, or bad options.

    References
    ----------
    Kim, Xu and Barber, arXiv 2002.09025 (jackknife+ after bootstrap); Davison and Hinkley 1997, section
    6.3.3.
    """
    if not 0.0 < level < 1.0:
        raise ConvexlawError(f"level = {level!r}: it lies between 0 and 1; 0.9 is usual")
    if method not in ("pairs", "residual"):
        raise ConvexlawError(f"method = {method!r}: use 'pairs' or 'residual'")
    if n_boot != int(n_boot) or n_boot < 20:
        raise ConvexlawError(f"n_boot = {n_boot!r}: at least 20 resamples are needed, 200 is usual")
    view = fitted(model, training)
    if view.classes.size:
        raise ConvexlawError("a class label has no prediction interval; use predict_proba")
    if training.offset is not None:
        raise ConvexlawError("prediction intervals of models with an offset are not offered")
    if method == "residual" and view.loss == "poisson":
        raise ConvexlawError("residuals of counts have no common variance: use method='pairs'")
    new = as_matrix(X_new)
    if new.shape[1] != view.X.shape[1]:
        raise ConvexlawError(f"X_new has {new.shape[1]} columns, the model {view.X.shape[1]} features")
    generator = np.random.default_rng(rng)
    notes: list[str] = []
    center = _mean(view.loss, np.asarray(new @ view.coef.T) + view.intercept)
    if method == "pairs":
        low, high = _pairs(model, training, view, new, level, int(n_boot), generator, notes)
    else:
        low, high = _residual(model, training, view, new, level, int(n_boot), generator, notes)
    if view.loss == "poisson":
        low, high = np.maximum(np.ceil(low), 0.0), np.floor(high)
        low, high = np.minimum(low, np.floor(center)), np.maximum(high, np.ceil(center))
    if notes:
        notes = [f"{len(notes)} of {n_boot} refits did not converge"]
    if view.coef.shape[0] == 1:
        center, low, high = center[:, 0], low[:, 0], high[:, 0]
    return PredictionInterval(center, low, high, level, method, int(n_boot), view.outputs, tuple(notes))


def _mean(loss: str, eta: Vector) -> Vector:
    return np.exp(eta) if loss == "poisson" else eta


def _predictions(model: Any, loss: str, X: Any) -> Vector:
    coef = np.atleast_2d(model.coef_)
    return _mean(loss, np.asarray(X @ coef.T) + np.asarray(model.intercept_))


def _pairs(
    model: Any,
    training: Training,
    view: Fitted,
    new: Any,
    level: float,
    n_boot: int,
    rng: np.random.Generator,
    notes: list[str],
) -> tuple[Vector, Vector]:
    n, m, q = view.X.shape[0], new.shape[0], view.coef.shape[0]
    estimator = same_penalty(model)
    known, coming = np.zeros((n_boot, n, q)), np.zeros((n_boot, m, q))
    away = np.zeros((n_boot, n))
    for b in range(n_boot):
        counts = np.bincount(rng.integers(n, size=n), minlength=n)
        # an integer weight is a repeated row: X is not copied
        refit(estimator, Training(view.X, training.y, counts * view.weights), notes)
        known[b] = _predictions(estimator, view.loss, view.X)
        coming[b] = _predictions(estimator, view.loss, new)
        away[b] = counts == 0
    rows = np.flatnonzero((view.weights > 0) & (away.sum(axis=0) > 0))
    share = (away / np.maximum(away.sum(axis=0), 1.0))[:, rows]
    low, high = np.empty((m, q)), np.empty((m, q))
    # ranks of the jackknife+: floor of alpha (n+1) from below, ceiling of (1 - alpha)(n+1) from above
    down = int(np.floor((1.0 - level) * (rows.size + 1)))
    up = int(np.ceil(level * (rows.size + 1)))
    step = max(1, _CHUNK // max(1, rows.size))
    for k in range(q):
        own = np.einsum("bi,bi->i", share, known[:, rows, k])
        unit = np.sqrt(own) if view.loss == "poisson" else np.ones(rows.size)
        error = np.abs(view.y[rows, k] - own) / unit
        for a in range(0, m, step):
            center = share.T @ coming[:, a : a + step, k]
            width = error[:, None] * (np.sqrt(center) if view.loss == "poisson" else 1.0)
            lower, upper = np.sort(center - width, axis=0), np.sort(center + width, axis=0)
            low[a : a + step, k] = lower[down - 1] if down >= 1 else -np.inf
            high[a : a + step, k] = upper[up - 1] if up <= rows.size else np.inf
    return low, high


def _residual(
    model: Any,
    training: Training,
    view: Fitted,
    new: Any,
    level: float,
    n_boot: int,
    rng: np.random.Generator,
    notes: list[str],
) -> tuple[Vector, Vector]:
    n = view.n
    df = int(model.n_clusters_) / view.coef.shape[0] + view.free
    if df >= n:
        raise ConvexlawError(f"{df:g} degrees of freedom for {n} rows leave no residuals; use a larger alpha")
    rows = np.flatnonzero(view.weights > 0)
    residual = (view.y - view.predictor)[rows]
    residual = (residual - residual.mean(axis=0)) / np.sqrt(1.0 - df / n)
    estimator = same_penalty(model)
    center = np.asarray(new @ view.coef.T) + view.intercept
    drawn = np.empty((n_boot, *center.shape))
    for b in range(n_boot):
        sample = view.predictor + residual[rng.integers(rows.size, size=view.X.shape[0])]
        response = sample[:, 0] if sample.shape[1] == 1 else sample
        refit(estimator, Training(view.X, response, training.sample_weight), notes)
        error = residual[rng.integers(rows.size, size=center.shape[0])]
        drawn[b] = center - _predictions(estimator, view.loss, new) + error
    low, high = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return center + low, center + high
