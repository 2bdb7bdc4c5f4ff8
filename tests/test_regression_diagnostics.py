"""Diagnostics by their definitions, and what they find where something was planted."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from statsmodels.stats.outliers_influence import OLSInfluence, variance_inflation_factor

from convexlaw import Slope
from convexlaw.solvers.glm import SlopeClassifier


@pytest.fixture
def data() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 5)), columns=list("abcde"))
    X["b"] += X["a"]
    return X, X["a"] * 2 + X["b"] + rng.normal(size=90)


def test_leverage_and_inflation_are_those_of_statsmodels(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.02).fit(X, y)
    found = model.diagnostics()
    chosen = X.columns[model.coef_ != 0]
    D = sm.add_constant(X[chosen].to_numpy())
    influence = OLSInfluence(sm.OLS(y, D).fit())
    np.testing.assert_allclose(found.leverage, influence.hat_matrix_diag)
    np.testing.assert_allclose(found.vif, [variance_inflation_factor(D, k + 1) for k in range(chosen.size)])
    Z = (X[chosen] - X[chosen].mean()) / X[chosen].std()
    assert found.condition == pytest.approx(np.linalg.cond(Z))
    np.testing.assert_allclose(found.residual, y - model.predict(X))
    s2 = (found.residual**2).sum() / (90 - chosen.size - 1)
    np.testing.assert_allclose(found.standardized, found.residual / np.sqrt(s2 * (1 - found.leverage)))


def test_without_a_penalty_the_residuals_are_studentised(data: Any) -> None:
    X, y = data
    found = Slope(alpha=0.0, tol=1e-12).fit(X, y).diagnostics()
    influence = OLSInfluence(sm.OLS(y, sm.add_constant(X.to_numpy())).fit())
    np.testing.assert_allclose(found.standardized, influence.resid_studentized_internal, rtol=1e-6)


def test_residuals_of_counts_and_classes(data: Any) -> None:
    X, y = data
    counts = np.random.default_rng(1).poisson(np.exp(y / 4))
    found = Slope(alpha=0.0, loss="poisson", tol=1e-12).fit(X, counts).diagnostics()
    fit = sm.GLM(counts, sm.add_constant(X.to_numpy()), family=sm.families.Poisson()).fit()
    np.testing.assert_allclose(found.leverage, fit.get_hat_matrix_diag(), rtol=1e-4)
    pearson = fit.resid_pearson / np.sqrt(1 - fit.get_hat_matrix_diag())
    np.testing.assert_allclose(found.standardized, pearson, rtol=1e-3, atol=1e-5)
    two = SlopeClassifier(alpha=0.01).fit(X, y > 0)
    p = two.predict_proba(X)[:, 1]
    np.testing.assert_allclose(two.diagnostics().residual, (y > 0) - p)
    three = SlopeClassifier(alpha=0.01, loss="multinomial").fit(X, np.digitize(y, [-1, 1]))
    many = three.diagnostics()
    assert many.residual.shape == (90, 3)
    np.testing.assert_allclose(many.residual.sum(axis=1), 0.0, atol=1e-12)
    assert many.to_frame().shape == (270, 6)


def test_planted_problems_are_named(data: Any) -> None:
    X, y = data
    even = np.linspace(-1.0, 1.0, 90)
    plain = pd.DataFrame({"c": even, "d": even[::-1] ** 2})
    assert "nothing stands out" in str(
        Slope(alpha=0.01).fit(plain, even + np.tile([0.1, -0.1], 45)).diagnostics()
    )
    X = X.assign(twin=X["a"] + 1e-3 * np.random.default_rng(2).normal(size=90), same=X["c"])
    X = pd.concat([X, X.iloc[[4, 4]]], ignore_index=True)
    y = np.append(y.to_numpy(), [y[4], y[4]])
    y[10] += 30.0
    X.loc[20, "d"] = 50.0
    found = Slope(alpha=1e-3, lambda_type="oscar", theta2=0.1).fit(X, y).diagnostics()
    text = " ".join(found.sentences)
    assert ("c", "same") in found.duplicate_columns
    assert found.duplicate_rows == ((4, 90, 91),)
    assert "2 rows repeat others" in text
    assert "equal columns" in text
    assert any({a, b} == {"a", "twin"} and r > 0.99 for a, b, r in found.close)
    assert "10 (" in text
    assert "20 (" in text
    assert found.condition > 30


def test_rows_are_called_by_the_index(data: Any) -> None:
    X, y = data
    X = X.set_axis([f"r{i}" for i in range(90)])
    y = y.to_numpy().copy()
    y[7] += 40.0
    found = Slope(alpha=0.1).fit(X, y).diagnostics()
    assert "r7 (" in str(found)
    assert found.to_frame()["row"].tolist() == list(X.index)


def test_degenerate_cases(data: Any) -> None:
    X, y = data
    empty = Slope(alpha=1e4).fit(X, y).diagnostics()
    np.testing.assert_allclose(empty.leverage, 1 / 90)
    assert empty.vif.size == 0
    bare = Slope(alpha=1e4, fit_intercept=False).fit(X, y).diagnostics()
    assert not bare.leverage.any()
    twice = X.assign(f=X["a"])
    singular = Slope(alpha=1e-6, lambda_type="oscar", theta2=0.5).fit(twice, y).diagnostics()
    assert np.isinf(singular.condition)
    assert np.isinf(singular.vif[[0, 5]]).all()
    assert np.isfinite(singular.vif[1:5]).all()
    exact = Slope(alpha=0.0).fit(X, X["a"]).diagnostics()
    assert np.isfinite(exact.standardized).all()


def test_sparse_is_as_dense(data: Any) -> None:
    X, y = data
    X = X.to_numpy() * (np.random.default_rng(3).random((90, 5)) < 0.4)
    X[5] = X[6] = 0.0
    y = y.to_numpy().copy()
    y[5] = y[6] = 0.0
    dense = Slope(alpha=0.05, tol=1e-9).fit(X, y).diagnostics()
    sparse = Slope(alpha=0.05, tol=1e-9).fit(sp.csr_array(X), y).diagnostics()
    np.testing.assert_allclose(sparse.leverage, dense.leverage, rtol=1e-8)
    assert sparse.duplicate_rows == dense.duplicate_rows == ((5, 6),)


def test_figure(data: Any) -> None:
    X, y = data
    found = Slope(alpha=0.1).fit(X, y).diagnostics()
    axes = found.plot(names=3)
    far = np.flatnonzero(np.abs(found.standardized) > 2)
    assert len(axes.texts) == min(3, far.size) > 0
    assert {text.get_text() for text in axes.texts} <= set(map(str, far))
    assert len(axes.collections[0].get_offsets()) == 90
    plt.close("all")
