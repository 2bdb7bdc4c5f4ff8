"""Prediction intervals: reproducible, as defined, and covering what they claim."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw import ConvexlawError, Slope
from convexlaw.solvers.glm import SlopeClassifier


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    return X, X[:, 0] * 2 + rng.normal(size=50) + 1


@pytest.mark.parametrize("method", ["pairs", "residual"])
def test_a_seed_gives_the_same_intervals(method: str, data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.1).fit(X, y)
    first = model.prediction_interval(X[:5], method=method, n_boot=30, rng=1)
    again = model.prediction_interval(X[:5], method=method, n_boot=30, rng=np.random.default_rng(1))
    other = model.prediction_interval(X[:5], method=method, n_boot=30, rng=2)
    np.testing.assert_array_equal(first.low, again.low)
    np.testing.assert_array_equal(first.high, again.high)
    assert (first.low != other.low).all()
    np.testing.assert_allclose(first.prediction, model.predict(X[:5]))
    assert ((first.low < first.prediction) & (first.prediction < first.high)).all()
    assert list(first.to_frame()) == ["row", "prediction", "low", "high"]
    assert "90% prediction intervals of 5 rows" in str(first)
    wide = model.prediction_interval(X[:5], level=0.98, method=method, n_boot=30, rng=1)
    assert (wide.high - wide.low > first.high - first.low).all()


def test_jackknife_plus_after_bootstrap_by_hand(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.1, tol=1e-10).fit(X, y)
    new = np.array([[0.5, -1.0, 0.0, 2.0]])
    found = model.prediction_interval(new, level=0.8, n_boot=40, rng=7)
    rng = np.random.default_rng(7)
    seen, at_new, at_old = [], [], []
    for _ in range(40):
        rows = rng.integers(50, size=50)
        fit = Slope(alpha=0.1, tol=1e-10).fit(X[rows], y[rows])
        seen.append(np.isin(np.arange(50), rows))
        at_new.append(fit.predict(new)[0])
        at_old.append(fit.predict(X))
    seen, at_new, at_old = np.array(seen), np.array(at_new), np.array(at_old)
    low, high = [], []
    for i in range(50):
        without = ~seen[:, i]
        center = at_new[without].mean()
        error = abs(y[i] - at_old[without, i].mean())
        low.append(center - error)
        high.append(center + error)
    # of 51 places: the 10th from below and the 41st (ceiling of .8 x 51)
    assert found.low[0] == pytest.approx(np.sort(low)[int(np.floor(0.2 * 51)) - 1], rel=1e-4)
    assert found.high[0] == pytest.approx(np.sort(high)[int(np.ceil(0.8 * 51)) - 1], rel=1e-4)


def test_a_level_that_the_rows_cannot_give_is_infinite(data: Any) -> None:
    X, y = data
    found = Slope(alpha=0.1).fit(X[:12], y[:12]).prediction_interval(X[:1], level=0.99, n_boot=50, rng=0)
    assert np.isinf(found.low).all()
    assert np.isinf(found.high).all()


def test_counts_have_whole_limits(data: Any) -> None:
    X, _ = data
    counts = np.random.default_rng(1).poisson(np.exp(X[:, 0] + 1))
    model = Slope(alpha=0.05, loss="poisson").fit(X, counts)
    found = model.prediction_interval(X, n_boot=40, rng=0)
    for limit in (found.low, found.high):
        np.testing.assert_array_equal(limit, np.round(limit))
    assert (found.low >= 0).all()
    order = np.argsort(found.prediction)
    width = (found.high - found.low)[order]
    assert width[-10:].mean() > 2 * width[:10].mean()
    with pytest.raises(ConvexlawError, match="no common variance"):
        model.prediction_interval(X, method="residual")


def test_several_responses_formulas_and_weights(data: Any) -> None:
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        left=y, right=y[::-1], type=np.where(X[:, 1] > 0, "u", "v")
    )
    pair = Slope.from_formula("left + right ~ a + type", frame, alpha=0.05)
    found = pair.prediction_interval(frame.head(3), n_boot=30, rng=0)
    assert found.low.shape == (3, 2)
    assert found.to_frame()["response"].tolist() == ["left", "right"] * 3
    residual = pair.prediction_interval(frame.head(3), n_boot=30, rng=0, method="residual")
    assert (residual.high > residual.low).all()
    weights = np.r_[np.ones(40), np.zeros(10)]
    spoiled = np.r_[y[:40], np.full(10, 1e6)]
    weighted = Slope(alpha=0.1).fit(X, spoiled, sample_weight=weights)
    for method in ("pairs", "residual"):
        width = weighted.prediction_interval(X[:5], method=method, n_boot=30, rng=0)
        assert (width.high - width.low).max() < 10


def test_what_has_no_interval_is_refused(data: Any) -> None:
    X, y = data
    with pytest.raises(ConvexlawError, match="predict_proba"):
        SlopeClassifier(alpha=0.1).fit(X, y > 1).prediction_interval(X)
    model = Slope(alpha=0.1).fit(X, y)
    for options, message in (
        ({"level": 90}, "level = 90"),
        ({"method": "bayes"}, "method = 'bayes'"),
        ({"n_boot": 5}, "n_boot = 5"),
    ):
        with pytest.raises(ConvexlawError, match=message):
            model.prediction_interval(X, **options)
    with pytest.raises(ConvexlawError, match="X_new has 3 columns"):
        model.prediction_interval(X[:, :3])
    counts = Slope(alpha=0.1, loss="poisson").fit(X, np.round(np.abs(y)), offset=np.ones(50))
    with pytest.raises(ConvexlawError, match="offset"):
        counts.prediction_interval(X)


def test_figure(data: Any) -> None:
    X, y = data
    axes = Slope(alpha=0.1).fit(X, y).prediction_interval(X, n_boot=20, rng=0).plot(top=10)
    assert len(axes.lines[0].get_xdata()) == 10
    plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "n", "p", "errors"),
    [
        ("pairs", 100, 10, "gaussian"),
        ("residual", 100, 10, "gaussian"),
        ("pairs", 60, 100, "gaussian"),
        ("residual", 60, 100, "gaussian"),
        ("pairs", 100, 10, "heavy"),
        ("pairs", 100, 10, "poisson"),
    ],
)
def test_coverage(method: str, n: int, p: int, errors: str) -> None:
    """Coverage of new responses at 90 %: within three standard errors and two points of it."""
    rng = np.random.default_rng(1)
    loss = "poisson" if errors == "poisson" else "quadratic"
    shares = []
    for rep in range(40):
        X = rng.normal(size=(n + 50, p))
        eta = X[:, :3].sum(axis=1) * (0.3 if loss == "poisson" else 1.0)
        if loss == "poisson":
            y = rng.poisson(np.exp(eta + 1)).astype(float)
        else:
            y = eta + (rng.standard_t(3, size=n + 50) if errors == "heavy" else rng.normal(size=n + 50))
        model = Slope(alpha=0.05 if loss == "poisson" else 0.1, loss=loss, tol=1e-5).fit(X[:n], y[:n])
        found = model.prediction_interval(X[n:], method=method, n_boot=100, rng=rep)
        shares.append(np.mean((found.low <= y[n:]) & (y[n:] <= found.high)))
    se = np.std(shares, ddof=1) / np.sqrt(len(shares))
    # limits that are whole numbers cover more
    slack = 0.04 if loss == "poisson" else 0.02
    assert 0.9 - 0.02 - 3 * se < np.mean(shares) < 0.9 + slack + 3 * se
