"""Refits without a penalty: estimates by hand, what they claim, and whether the honest intervals hold."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from convexlaw import ConvexlawError, Slope
from convexlaw.solvers.glm import SlopeClassifier


@pytest.fixture
def data() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 8)), columns=[f"f{j}" for j in range(8)])
    y = X.to_numpy() @ [2.0, -2.0, 1.0, 0, 0, 0, 0, 0] + rng.normal(size=120) + 5
    return X, y


def ols(Z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and standard errors from the normal equations."""
    D = np.column_stack([np.ones(len(y)), Z])
    b = np.linalg.solve(D.T @ D, D.T @ y)
    r = y - D @ b
    return b, np.sqrt(np.diag(np.linalg.inv(D.T @ D)) * (r @ r) / (len(y) - D.shape[1]))


def test_least_squares_of_the_selected_features(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.3).fit(X, y)
    chosen = np.flatnonzero(model.coef_)
    found = model.relax()
    b, se = ols(X.to_numpy()[:, chosen], y)
    np.testing.assert_allclose(found.table["estimate"], b)
    np.testing.assert_allclose(found.table["se"], se)
    assert found.table["term"].tolist() == ["(intercept)", *X.columns[chosen]]
    np.testing.assert_allclose(found.coef[chosen], b[1:])
    assert found.intercept == pytest.approx(b[0])
    assert not found.coef[np.setdiff1d(np.arange(8), chosen)].any()
    np.testing.assert_allclose(found.predict(X), b[0] + X.to_numpy()[:, chosen] @ b[1:])
    assert found.descriptive
    assert "Descriptive only" in str(found)
    assert len(str(found).splitlines()) <= 12
    # the penalty's shrinkage is gone
    assert np.abs(found.coef[:2]).min() > np.abs(model.coef_[:2]).max()


def test_one_coefficient_a_cluster(data: Any) -> None:
    X, y = data
    X = X.assign(f1=5 * (0.3 * X["f1"] - X["f0"]))
    y = 2 * X["f0"] - 0.4 * X["f1"] + X["f2"] + np.random.default_rng(1).normal(size=120)
    model = Slope(alpha=0.1, lambda_type="oscar", theta1=1.0, theta2=0.6, scaling="sd").fit(X, y)
    number = model.summary().cluster
    top = number == model.n_clusters_
    assert top.sum() == 2, "the case needs a cluster of two"
    scale = X.to_numpy().std(axis=0)
    signed = X.to_numpy() * np.sign(model.coef_) / scale
    Z = np.column_stack([signed[:, number == k].sum(axis=1) for k in range(model.n_clusters_, 0, -1)])
    b, _ = ols(Z, y)
    found = model.relax(by="clusters")
    assert len(found.table) == 1 + model.n_clusters_
    assert found.table["features"].max() == 2
    assert found.table.loc[found.table["features"] == 2, "term"].tolist() == ["f0 - f1"]
    np.testing.assert_allclose(found.predict(X), b[0] + Z @ b[1:])
    # one magnitude of the scaled columns
    np.testing.assert_allclose(np.abs(found.coef * scale)[top], abs(b[1]))


def test_weights(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.3).fit(X, y)
    counts = np.random.default_rng(0).integers(0, 4, 120)
    weighted = model.relax(X, y, sample_weight=counts)
    repeated = model.relax(X.to_numpy().repeat(counts, axis=0), y.repeat(counts))
    for column in ("estimate", "se", "low", "high"):
        np.testing.assert_allclose(weighted.table[column], repeated.table[column])
    uneven = model.relax(X, y, sample_weight=counts + 0.5)
    chosen = np.flatnonzero(model.coef_)
    D = sm.add_constant(X.to_numpy()[:, chosen])
    np.testing.assert_allclose(uneven.table["estimate"], sm.WLS(y, D, weights=counts + 0.5).fit().params)
    assert any("inverse variances" in note for note in uneven.notes)


def test_robust_errors_by_hand(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.3).fit(X, y)
    found = model.relax(robust=True)
    D = np.column_stack([np.ones(120), X.to_numpy()[:, np.flatnonzero(model.coef_)]])
    inverse = np.linalg.inv(D.T @ D)
    leverage = np.einsum("ij,jk,ik->i", D, inverse, D)
    r = (y - D @ inverse @ D.T @ y) / (1 - leverage)
    cov = inverse @ (D.T * r**2) @ D @ inverse
    np.testing.assert_allclose(found.table["se"], np.sqrt(np.diag(cov)))


def test_split_selects_and_estimates_on_different_rows(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.3).fit(X, y)
    found = model.relax(split=0.5, rng=3)
    order = np.random.default_rng(3).permutation(120)
    first, second = np.sort(order[:60]), np.sort(order[60:])
    half = Slope(alpha=0.3).fit(X.to_numpy()[first], y[first])
    chosen = np.flatnonzero(half.coef_)
    b, _ = ols(X.to_numpy()[second][:, chosen], y[second])
    np.testing.assert_allclose(found.table["estimate"], b)
    assert (found.n_selection, found.n) == (60, 60)
    assert not found.descriptive
    assert found.robust
    assert "60 rows chose" in found.statement
    np.testing.assert_array_equal(found.coef, model.relax(split=0.5, rng=3).coef)


def test_a_half_that_selects_nothing_says_so(data: Any) -> None:
    X, y = data
    found = Slope(alpha=100.0).fit(X, y).relax(split=0.5, rng=0)
    assert "selected no feature" in found.statement
    assert found.table["term"].tolist() == ["(intercept)"]


def test_losses_agree_with_their_own_likelihood(data: Any) -> None:
    X, y = data
    counts = np.random.default_rng(1).poisson(np.exp(y / 8))
    model = Slope(alpha=0.05, loss="poisson").fit(X, counts)
    found = model.relax()
    free = Slope(alpha=0.0, loss="poisson", tol=1e-12).fit(X.iloc[:, np.flatnonzero(model.coef_)], counts)
    np.testing.assert_allclose(found.coef[model.coef_ != 0], free.coef_, rtol=1e-4)
    labels = np.where(y + np.random.default_rng(2).normal(size=120) * 4 > 5, "yes", "no")
    two = SlopeClassifier(alpha=0.05).fit(X, labels)
    found = two.relax()
    chosen = np.flatnonzero(two.coef_[0])
    free2 = SlopeClassifier(alpha=0.0, tol=1e-12).fit(X.iloc[:, chosen], labels)
    np.testing.assert_allclose(found.coef[chosen], free2.coef_[0], rtol=1e-4)
    three = np.digitize(y + np.random.default_rng(3).normal(size=120) * 4, [3.0, 7.0])
    many = SlopeClassifier(alpha=0.03, loss="multinomial").fit(X, three)
    found = many.relax()
    chosen = np.flatnonzero(many.coef_.any(axis=0))
    eta = found.predict(X)
    P = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    # the score of the multinomial likelihood vanishes
    score = X.to_numpy()[:, chosen].T @ (np.eye(3)[three] - P)
    np.testing.assert_allclose(score, 0.0, atol=1e-4)
    assert set(found.table["response"]) == {"1", "2"}


def test_offset_and_huber(data: Any) -> None:
    X, y = data
    rng = np.random.default_rng(1)
    offset = rng.uniform(0, 1, 120)
    counts = rng.poisson(np.exp(X["f0"] * 0.5 + offset))
    model = Slope(alpha=0.05, loss="poisson").fit(X, counts, offset=offset)
    fit = sm.GLM(
        counts,
        sm.add_constant(X.to_numpy()[:, np.flatnonzero(model.coef_)]),
        family=sm.families.Poisson(),
        offset=offset,
    ).fit()
    np.testing.assert_allclose(model.relax().table["estimate"], fit.params)
    y = y.copy()
    y[:6] += 200.0
    robust = Slope(alpha=0.3, loss="huber", threshold=1.0).fit(X, y).relax()
    assert "Huber" in robust.method
    assert abs(robust.intercept - 5.0) < 0.5


def test_several_responses(data: Any) -> None:
    X, y = data
    both = pd.DataFrame({"left": y, "right": X["f3"] * 3 + y[::-1]})
    model = Slope(alpha=0.5).fit(X, both)
    found = model.relax()
    for k, name in enumerate(both):
        chosen = np.flatnonzero(model.coef_[k])
        b, se = ols(X.to_numpy()[:, chosen], both[name].to_numpy())
        own = found.table[found.table["response"] == name]
        np.testing.assert_allclose(own["estimate"], b)
        np.testing.assert_allclose(own["se"], se)
        np.testing.assert_allclose(found.predict(X)[:, k], b[0] + X.to_numpy()[:, chosen] @ b[1:])


def test_what_cannot_be_refitted_is_refused(data: Any) -> None:
    X, y = data
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(20, 60))
    model = Slope(alpha=1e-4, lambda_type="oscar", theta2=0.0, tol=1e-9).fit(wide, wide @ rng.normal(size=60))
    assert np.count_nonzero(model.coef_) >= 19
    with pytest.raises(ConvexlawError, match="20 rows cannot carry"):
        model.relax()
    labels = np.where(X["f0"] > 0, 1, 0)
    apart = SlopeClassifier(alpha=0.01).fit(X[["f0"]], labels)
    with pytest.raises(ConvexlawError, match="separate the classes"):
        apart.relax()
    apart3 = SlopeClassifier(alpha=0.01, loss="multinomial").fit(X[["f0"]], np.digitize(X["f0"], [-0.3, 0.3]))
    with pytest.raises(ConvexlawError, match="separate the classes"):
        apart3.relax()
    empty = Slope(alpha=100.0, fit_intercept=False).fit(X, y)
    with pytest.raises(ConvexlawError, match="nothing to fit"):
        empty.relax()
    assert Slope(alpha=100.0).fit(X, y).relax().table["estimate"].tolist() == pytest.approx([y.mean()])
    fine = Slope(alpha=0.3).fit(X, y)
    for options, message in (
        ({"by": "rows"}, "by = 'rows'"),
        ({"split": 1.0}, "split = 1.0"),
        ({"level": 95}, "level = 95"),
    ):
        with pytest.raises(ConvexlawError, match=message):
            fine.relax(**options)


def test_collinear_features_are_named(data: Any) -> None:
    X, y = data
    twin = X.assign(f8=X["f0"])
    found = Slope(alpha=0.2, lambda_type="oscar", theta2=0.2).fit(twin, y).relax()
    assert any("collinear (rank" in note for note in found.notes)


def test_class_weights_are_used_once(data: Any) -> None:
    X, y = data
    labels = np.where(y + np.random.default_rng(2).normal(size=120) * 4 > 7, "yes", "no")
    weighted = SlopeClassifier(alpha=0.05, class_weight={"yes": 3.0, "no": 1.0}).fit(X, labels)
    direct = SlopeClassifier(alpha=0.05).fit(X, labels, sample_weight=np.where(labels == "yes", 3.0, 1.0))
    for by in ({}, {"split": 0.5, "rng": 0}):
        np.testing.assert_allclose(weighted.relax(**by).coef, direct.relax(**by).coef)
    np.testing.assert_array_equal(
        weighted.summary(stability=4, rng=0).frequency, direct.summary(stability=4, rng=0).frequency
    )


def test_figure(data: Any) -> None:
    X, y = data
    axes = Slope(alpha=0.3).fit(X, y).relax(split=0.5, rng=0).plot()
    assert "rows kept aside" in axes.get_xlabel()
    plt.close("all")


@pytest.mark.slow
def test_honest_intervals_cover_and_descriptive_ones_do_not() -> None:
    """Pure noise: the selected features have effect 0, which 95 % intervals must contain."""
    rng = np.random.default_rng(0)
    inside: dict[str, list[float]] = {"model": [], "robust": [], "same": []}
    for rep in range(300):
        X, y = rng.normal(size=(100, 40)), rng.normal(size=100)
        model = Slope(alpha=0.11, lambda_type="lasso").fit(X, y)
        tables = {
            "model": model.relax(split=0.5, rng=rep, robust=False),
            "robust": model.relax(split=0.5, rng=rep),
            "same": model.relax(),
        }
        for name, found in tables.items():
            rows = found.table[found.table["term"] != "(intercept)"]
            inside[name] += ((rows["low"] <= 0) & (rows["high"] >= 0)).tolist()
    share = {name: np.mean(values) for name, values in inside.items()}
    # intervals of one table are nearly independent here: three binomial standard errors
    se = np.sqrt(0.95 * 0.05 / len(inside["model"]))
    assert abs(share["model"] - 0.95) < 3 * se
    # HC3 errs on the side of wide intervals in small samples
    assert 0.95 - 3 * se < share["robust"] < 0.98
    assert share["same"] < 0.85
