"""Diagnostics of a fitted SLOPE model: residuals, leverage, collinearity, duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._result import Result

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from convexlaw.solvers._fitted import Fitted

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]

__all__ = ["Diagnostics", "diagnose"]

_CLOSE = 0.95  # correlation worth naming
_MOST = 2000  # columns whose correlations with the selected ones are looked at


@dataclass(frozen=True, eq=False)
class Diagnostics(Result):
    """What to look at before a fit is believed.

    Attributes
    ----------
    fitted : ndarray, shape (n,) or (n, q)
        Prediction, in the units of y; probabilities for classes.
    residual : ndarray, same shape
        y minus prediction.
    standardized : ndarray, same shape
        Residual over its standard deviation, with the leverage of the row; Pearson residuals of counts and
        classes.
    leverage : ndarray, shape (n,)
        Diagonal of the hat matrix of the intercept and the selected features.
    condition : float
        Condition number of the selected features, standardised.
    vif : ndarray, shape (s,)
        Variance inflation of each selected feature by the others.
    selected : ndarray of int, shape (s,)
    close : tuple of (str, str, float)
        A selected feature, another, and their correlation of at least .95 in size.
    duplicate_rows : tuple of tuple of int
        Groups of rows, by position, equal in X and y.
    duplicate_columns : tuple of tuple of str
        Groups of equal columns.
    names : tuple of str
    outputs : tuple of str
    rows : ndarray, shape (n,)
        Labels of the rows: the index of a data frame, else their numbers from 0.
    """

    fitted: Vector
    residual: Vector
    standardized: Vector
    leverage: Vector
    condition: float
    vif: Vector
    selected: Index
    close: tuple[tuple[str, str, float], ...]
    duplicate_rows: tuple[tuple[int, ...], ...]
    duplicate_columns: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    rows: NDArray[Any]

    _figure: ClassVar[str] = "regression:plot_residuals"

    @property
    def sentences(self) -> list[str]:
        """What stands out, one sentence each."""
        said = []
        n, s = self.leverage.size, self.selected.size
        size = np.abs(self.standardized).reshape(n, -1).max(axis=1)
        far = np.flatnonzero(size > 3.0)
        expected = n * np.atleast_2d(self.standardized.T).shape[0] * 0.0027
        if far.size:
            worst = far[np.argsort(-size[far], kind="stable")][:5]
            rows = ", ".join(f"{self.rows[i]} ({size[i]:.1f})" for i in worst)
            lie = "row lies" if far.size == 1 else "rows lie"
            said.append(
                f"{far.size} {lie} more than 3 standard deviations off (about {expected:.1f} expected of "
                f"Gaussian errors), the farthest: {rows}"
            )
        bound = 3.0 * float(self.leverage.sum()) / n
        high = np.flatnonzero(self.leverage > max(bound, 1e-12))
        if high.size and bound < 1.0:
            worst = high[np.argsort(-self.leverage[high], kind="stable")][:5]
            rows = ", ".join(f"{self.rows[i]} ({self.leverage[i]:.2f})" for i in worst)
            have = "row has" if high.size == 1 else "rows have"
            said.append(f"{high.size} {have} more than 3 times the mean leverage, the largest: {rows}")
        if self.condition > 30.0:
            many = int((self.vif > 10.0).sum())
            said.append(
                f"the {s} selected features are collinear: condition number {self.condition:.3g}, "
                f"{many} with a variance inflation above 10; single coefficients are not to be interpreted"
            )
        for a, b, r in self.close[:5]:
            said.append(f"{a} and {b} are correlated by {r:.3f}: either could stand for the other")
        if len(self.close) > 5:
            said.append(f"{len(self.close) - 5} more such pairs (.close)")
        if self.duplicate_columns:
            groups = "; ".join(" = ".join(g) for g in self.duplicate_columns[:5])
            said.append(f"equal columns, whose coefficients are not unique: {groups}")
        if self.duplicate_rows:
            extra = sum(len(g) - 1 for g in self.duplicate_rows)
            first = ", ".join(str(self.rows[i]) for i in self.duplicate_rows[0][:5])
            said.append(f"{extra} rows repeat others in X and y (rows {first}, ...): are they independent?")
        return said

    def __str__(self) -> str:
        """Return what stands out, in a few lines."""
        head = f"diagnostics of {self.leverage.size} rows, {self.selected.size} selected features"
        return "\n".join([head, *(f"  {line}" for line in (self.sentences or ["nothing stands out"])[:11])])

    def to_frame(self) -> pd.DataFrame:
        """Return one row a row of the data (and response): fitted, residual, standardized, leverage."""
        import pandas as pd

        n, q = self.leverage.size, np.atleast_2d(self.fitted.T).shape[0]
        columns: dict[str, Any] = {"row": np.repeat(self.rows, q)}
        if q > 1:
            columns["response"] = list(self.outputs) * n
        for name in ("fitted", "residual", "standardized"):
            columns[name] = np.asarray(getattr(self, name)).ravel()
        columns["leverage"] = np.repeat(self.leverage, q)
        return pd.DataFrame(columns)


def diagnose(view: Fitted) -> Diagnostics:
    """Diagnostics of a fitted model.

    Parameters
    ----------
    view : Fitted

    Returns
    -------
    Diagnostics
    """
    selected = np.flatnonzero((view.coef != 0).any(axis=0))
    S = _dense(view.X, selected)
    mean, target, variance = _moments(view)
    leverage = _leverage(S, view, variance)
    raw = target - mean
    room = np.sqrt(np.maximum(1.0 - leverage, 1e-12))[:, None]
    if view.loss in ("quadratic", "huber"):
        df = min(selected.size + int(view.free), view.n - 1)
        spread = np.sqrt(view.weights @ raw**2 / view.weights.sum() * view.n / (view.n - df))
        if view.loss == "huber":
            # a scale that the outliers do not move
            spread = np.median(np.abs(raw[view.weights > 0]), axis=0) / 0.6745
        standardized = raw / (np.where(spread > 0, spread, 1.0) * room)
    else:
        standardized = raw / np.sqrt(np.maximum(variance, 1e-12)) / room
    flat = view.coef.shape[0] == 1
    condition, vif = _collinearity(S, view.weights)
    return Diagnostics(
        fitted=mean[:, 0] if flat else mean,
        residual=raw[:, 0] if flat else raw,
        standardized=standardized[:, 0] if flat else standardized,
        leverage=leverage,
        condition=condition,
        vif=vif,
        selected=selected,
        close=_close(view, S, selected),
        duplicate_rows=_equal_rows(view),
        duplicate_columns=_equal_columns(view),
        names=view.names,
        outputs=view.outputs,
        rows=view.rows,
    )


def _dense(X: Any, columns: Index) -> Vector:
    part = X[:, columns]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)


def _moments(view: Fitted) -> tuple[Vector, Vector, Vector]:
    """Mean, target and variance by the loss, each (n, q)."""
    from scipy.special import expit, softmax

    eta = view.predictor
    if view.loss == "poisson":
        mean = np.exp(eta)
        return mean, view.y, mean
    if view.loss == "logistic":
        mean = np.asarray(expit(eta))
        return mean, view.y, mean * (1.0 - mean)
    if view.loss == "multinomial":
        mean = np.asarray(softmax(eta, axis=1))
        target = np.eye(eta.shape[1])[view.y[:, 0].astype(np.intp)]
        return mean, target, mean * (1.0 - mean)
    return eta, view.y, np.ones_like(eta)


def _leverage(S: Vector, view: Fitted, variance: Vector) -> Vector:
    """Hat values of the selected features, weighted by the curvature of the loss (its mean over classes)."""
    design = np.column_stack([np.ones(len(S)), S]) if view.free else S
    if design.shape[1] == 0:
        return np.zeros(len(S))
    root = np.sqrt(view.weights * variance.mean(axis=1))
    size = np.linalg.norm(design, axis=0)
    U, d, _ = np.linalg.svd(root[:, None] * design / np.where(size > 0, size, 1.0), full_matrices=False)
    kept: Vector = U[:, d > 1e-10 * max(d.max(initial=0.0), 1e-300)]
    return np.asarray((kept**2).sum(axis=1))


def _standard(S: Vector, weights: Vector) -> Vector:
    share = weights / weights.sum()
    Z = np.sqrt(share)[:, None] * (S - share @ S)
    size = np.linalg.norm(Z, axis=0)
    return np.asarray(np.divide(Z, size, out=np.zeros_like(Z), where=size > 0))


def _collinearity(S: Vector, weights: Vector) -> tuple[float, Vector]:
    if S.shape[1] == 0:
        return 1.0, np.zeros(0)
    Z = _standard(S, weights)
    _, d, Vt = np.linalg.svd(Z, full_matrices=False)
    small = d < 1e-12 * d[0] if d[0] > 0 else np.ones(d.size, dtype=bool)
    if small.any() or S.shape[1] > d.size:
        null = (Vt[small] ** 2).sum(axis=0) > 1e-8 if small.any() else np.ones(S.shape[1], dtype=bool)
        with np.errstate(divide="ignore"):
            vif = (Vt[~small] ** 2 / d[~small, None] ** 2).sum(axis=0)
        return np.inf, np.where(null, np.inf, vif)
    return float(d[0] / d[-1]), np.asarray((Vt**2 / d[:, None] ** 2).sum(axis=0))


def _close(view: Fitted, S: Vector, selected: Index) -> tuple[tuple[str, str, float], ...]:
    p = view.X.shape[1]
    if selected.size == 0 or selected.size > _MOST:
        return ()
    Z = _standard(S, view.weights)
    found = {}
    for a in range(0, p, _MOST):
        columns = np.arange(a, min(p, a + _MOST))
        R = Z.T @ _standard(_dense(view.X, columns), view.weights)
        for i, j in zip(*np.nonzero(np.abs(R) >= _CLOSE), strict=True):
            pair = tuple(sorted((int(selected[i]), int(columns[j]))))
            if pair[0] != pair[1]:
                found[pair] = float(R[i, j])
    ordered = sorted(found.items(), key=lambda item: -abs(item[1]))
    return tuple((view.names[a], view.names[b], r) for (a, b), r in ordered)


def _groups(keys: list[bytes]) -> list[tuple[int, ...]]:
    places: dict[bytes, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    return [tuple(g) for g in places.values() if len(g) > 1]


def _equal_rows(view: Fitted) -> tuple[tuple[int, ...], ...]:
    if hasattr(view.X, "tocsr"):
        X = view.X.tocsr()
        X.sort_indices()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]
    else:
        keys = [np.ascontiguousarray(row).tobytes() for row in view.X]
    return tuple(_groups([key + y.tobytes() for key, y in zip(keys, view.y, strict=True)]))


def _equal_columns(view: Fitted) -> tuple[tuple[str, ...], ...]:
    if hasattr(view.X, "tocsc"):
        X = view.X.tocsc()
        X.sort_indices()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]
    else:
        keys = [np.ascontiguousarray(view.X[:, j]).tobytes() for j in range(view.X.shape[1])]
    return tuple(tuple(view.names[j] for j in group) for group in _groups(keys))
