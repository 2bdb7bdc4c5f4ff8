"""Summaries: what they state equals what can be computed by hand, for every loss."""

from __future__ import annotations

import pickle
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss, mean_poisson_deviance

from convexlaw import ConvexlawError, Slope, TwoLevelSlope
from convexlaw.figures.regression import plot_clusters, plot_coefficients, plot_stability
from convexlaw.solvers.glm import SlopeClassifier
from convexlaw.solvers.path import slope_path


@pytest.fixture
def data() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 10)) * np.geomspace(0.1, 10, 10) + 3.0
    beta = np.array([2.0, 2.0, -1.5, 0, 0, 0, 0, 0, 0, 0]) / np.geomspace(0.1, 10, 10)
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(10)]), X @ beta + rng.normal(size=80)


@pytest.fixture(autouse=True)
def _close_figures() -> Any:
    yield
    plt.close("all")


def test_numbers_of_the_quadratic_loss(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.3, scaling="sd").fit(X, y)
    s = model.summary()
    residual = y - model.predict(X)
    assert s.n == 80
    assert s.p == 10
    assert s.deviance == pytest.approx(residual @ residual)
    assert s.deviance_ratio == pytest.approx(model.score(X, y))
    assert s.relative_gap == pytest.approx(model.dual_gap_ / model.null_objective_)
    np.testing.assert_allclose(s.scaled, model.coef_ * X.std(ddof=0), rtol=1e-12)
    text = str(s)
    assert len(text.splitlines()) <= 12
    for part in (
        "n = 80",
        "p = 10",
        "BH weights (q = 0.1)",
        "over their sd",
        "alpha = 0.3",
        "converged",
        "ratio",
    ):
        assert part in text
    html = s._repr_html_()
    assert "<table" in html
    assert "f0" in html


def test_clusters_survive_the_scaling(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.3, scaling="sd", lambda_type="oscar", theta1=1.0, theta2=0.5, tol=1e-9).fit(X, y)
    s = model.summary()
    table = s.to_frame()
    assert table["cluster"].max() == model.n_clusters_ < np.count_nonzero(model.coef_)
    for _, group in table[table["cluster"] > 0].groupby("cluster"):
        np.testing.assert_allclose(group["scaled"].abs(), group["scaled"].abs().iloc[0], rtol=1e-12)
    assert (table.loc[table["cluster"] == 0, "coef"] == 0).all()


def test_weighted_rows_count_as_repeated_ones(data: Any) -> None:
    X, y = data
    weights = np.random.default_rng(1).integers(0, 4, 80)
    weighted = Slope(alpha=0.3, scaling="sd").fit(X, y, sample_weight=weights).summary()
    repeated = (
        Slope(alpha=0.3, scaling="sd").fit(X.to_numpy().repeat(weights, axis=0), y.repeat(weights)).summary()
    )
    assert weighted.deviance == pytest.approx(repeated.deviance, rel=1e-6)
    assert weighted.deviance_ratio == pytest.approx(repeated.deviance_ratio, rel=1e-6)
    assert weighted.n == np.count_nonzero(weights)


def test_numbers_of_counts_and_classes(data: Any) -> None:
    X, y = data
    counts = np.random.default_rng(2).poisson(np.exp(y / 6))
    model = Slope(alpha=0.02, loss="poisson", scaling="sd").fit(X, counts)
    s = model.summary()
    assert s.deviance == pytest.approx(80 * mean_poisson_deviance(counts, model.predict(X)))
    assert s.deviance_ratio == pytest.approx(model.score(X, counts))
    labels = np.where(y > np.median(y), "high", "low")
    two = SlopeClassifier(alpha=0.02, scaling="sd").fit(X, labels)
    assert two.summary().deviance == pytest.approx(160 * log_loss(labels, two.predict_proba(X)))
    assert two.summary().deviance_ratio == pytest.approx(
        1 - log_loss(labels, two.predict_proba(X)) / np.log(2)
    )
    three = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    many = SlopeClassifier(alpha=0.01, loss="multinomial", scaling="sd").fit(X, three)
    s = many.summary()
    assert s.deviance == pytest.approx(160 * log_loss(three, many.predict_proba(X)))
    assert s.to_frame()["response"].unique().tolist() == ["0", "1", "2"]
    assert s.to_frame()["cluster"].max() == many.n_clusters_
    assert len(str(s).splitlines()) <= 12
    shares = np.bincount(three) / 80
    null = -2 * 80 * float(shares @ np.log(shares))
    assert s.deviance_ratio == pytest.approx(1 - s.deviance / null)


def test_huber_and_several_responses(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.1, loss="huber", threshold=0.7, scaling="sd").fit(X, y)
    r = np.abs(y - model.predict(X))
    by_hand = np.where(r <= 0.7, r**2, 2 * 0.7 * r - 0.7**2).sum()
    assert model.summary().deviance == pytest.approx(by_hand)
    # the null model is the best constant: no shift of it does better
    null = by_hand / (1 - model.summary().deviance_ratio)
    grid = np.linspace(y.min(), y.max(), 4001)
    away = np.abs(y[:, None] - grid)
    best = np.where(away <= 0.7, away**2, 2 * 0.7 * away - 0.7**2).sum(axis=0).min()
    assert null == pytest.approx(best, rel=1e-5)
    both = pd.DataFrame({"left": y, "right": -2 * y + X["f9"]})
    pair = Slope(alpha=0.2, scaling="sd").fit(X, both)
    s = pair.summary()
    assert s.outputs == ("left", "right")
    assert s.deviance == pytest.approx(((both.to_numpy() - pair.predict(X)) ** 2).sum())
    assert s.coef.shape == (2, 10)


def test_selection_frequency_by_hand() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5))
    y = 2 * X[:, 0] + 0.15 * X[:, 1] + rng.normal(size=60)
    model = Slope(alpha=0.15).fit(X, y)
    s = model.summary(stability=10, rng=5)
    again = model.summary(stability=10, rng=5)
    np.testing.assert_array_equal(s.frequency, again.frequency)
    count = np.zeros(5)
    draws = np.random.default_rng(5)
    for _ in range(5):
        order = draws.permutation(60)
        for half in (order[:30], order[30:]):
            count += Slope(alpha=0.15).fit(X[half], y[half]).coef_ != 0
    np.testing.assert_allclose(s.frequency, count / 10)
    assert s.frequency[0] == 1.0
    assert "half-samples" in str(s)
    assert "frequency" in s.to_frame()
    assert model.summary(stability=3, rng=0).repeats == 3


def test_frequencies_separate_signal_from_noise() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    y = X[:, :3].sum(axis=1) + rng.normal(size=200)
    frequency = Slope(alpha=0.1).fit(X, y).summary(stability=40, rng=0).frequency
    assert frequency is not None
    assert frequency[:3].min() == 1.0
    assert np.median(frequency[3:]) < 0.5


def test_half_samples_of_classes_hold_every_class() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    labels = np.r_[np.zeros(34), np.ones(3), np.full(3, 2)].astype(int)
    model = SlopeClassifier(alpha=0.05, loss="multinomial").fit(X, labels)
    frequency = model.summary(stability=12, rng=0).frequency
    assert frequency is not None
    assert frequency.shape == (3, 3)
    lonely = np.r_[np.zeros(36), np.ones(3), 2].astype(int)
    model = SlopeClassifier(alpha=0.05, loss="multinomial").fit(X, lonely)
    with pytest.raises(ConvexlawError, match="one row"):
        model.summary(stability=2)


def test_a_pickled_model_still_has_its_summary(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.3, scaling="sd").fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded._training is None
    assert str(loaded.summary()) == str(model.summary())
    with pytest.raises(ConvexlawError, match="pass X and y"):
        loaded.summary(stability=2)
    with pytest.raises(ConvexlawError, match="go together"):
        loaded.relax(X)
    given = loaded.summary(stability=4, rng=0, X=X, y=y)
    np.testing.assert_array_equal(given.frequency, model.summary(stability=4, rng=0).frequency)
    # the data are referred to, not copied
    assert model._training.X is X


def test_sparse_and_two_level(data: Any) -> None:
    X, y = data
    dense = TwoLevelSlope(alpha=0.3, high=2.0, low=1.0, fraction=0.2, scaling="sd").fit(X, y)
    sparse = TwoLevelSlope(alpha=0.3, high=2.0, low=1.0, fraction=0.2, scaling="sd").fit(
        sp.csc_array(X.to_numpy()), y
    )
    assert sparse.summary().deviance == pytest.approx(dense.summary().deviance, rel=1e-5)
    assert "weight 2 on the top 0.2 of the ranks, 1 below" in str(dense.summary())
    assert sparse.summary(stability=4, rng=0).frequency is not None


def test_bad_requests(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.3).fit(X, y)
    with pytest.raises(ConvexlawError, match=r"stability = 2\.5"):
        model.summary(stability=2.5)
    with pytest.raises(ConvexlawError, match="at least 4"):
        Slope().fit(X.head(3), y[:3]).summary(stability=2)
    with pytest.raises(ConvexlawError, match="no selection frequencies"):
        plot_stability(model.summary())


def test_figures(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.1, scaling="sd").fit(X, y)
    s = model.summary(stability=6, rng=0)
    bars = plot_coefficients(s)
    np.testing.assert_allclose(s.scaled, s.coef * s.scale)
    heights = sorted(abs(p.get_width()) for c in bars.containers for p in c)
    np.testing.assert_allclose(heights, np.sort(np.abs(s.scaled[s.scaled != 0])))
    assert len({p.get_facecolor() for c in bars.containers for p in c}) == 1
    # a band behind each magnitude that several coefficients share
    bands = [p for p in bars.patches if p not in [q for c in bars.containers for q in c]]
    sizes = np.unique(s.cluster[s.cluster > 0], return_counts=True)[1]
    assert sorted(round(p.get_height() + 0.1) for p in bands) == sorted(sizes[sizes > 1])
    assert bars.get_xlabel() == "coefficient of the scaled column"
    unscaled = plot_coefficients(s, scaled=False)
    assert max(p.get_width() for p in unscaled.patches) == pytest.approx(model.coef_.max())
    dots = plot_stability(s)
    assert dots.get_xlabel() == "share of 6 half-samples"
    path = slope_path(X, y, scaling="sd", n_alphas=20)
    steps = plot_clusters(path, chosen=0.1)
    order = np.argsort(-path.alphas)
    np.testing.assert_array_equal(steps.lines[1].get_ydata(), path.n_clusters[order])
    np.testing.assert_array_equal(steps.lines[0].get_ydata(), np.count_nonzero(path.coefs, axis=0)[order])
