"""Information criteria by their definitions, and whether they find the model that made the data."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import comb

from convexlaw import ConvexlawError, slope_path
from convexlaw.solvers.criteria import information_criteria


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))
    return X, X[:, :3] @ [2.0, 2.0, -1.0] + rng.normal(size=150)


def test_definitions(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    path = slope_path(X, y, n_alphas=30)
    found = information_criteria(path, X, y)
    n = 150
    for k in range(path.alphas.size):
        rss = ((y - path.intercepts[k] - X @ path.coefs[:, k]) ** 2).sum()
        magnitudes = np.abs(path.coefs[:, k])
        distinct = np.unique(magnitudes[magnitudes > 0]).size
        df = distinct + 1
        assert found.deviance[k] == pytest.approx(rss)
        assert found.df[k] == df
        assert found.aic[k] == pytest.approx(n * np.log(rss / n) + 2 * df)
        assert found.bic[k] == pytest.approx(n * np.log(rss / n) + np.log(n) * df)
        assert found.ebic[k] == pytest.approx(found.bic[k] + 2 * np.log(comb(12, distinct)))
        assert found.gcv[k] == pytest.approx(rss / n / (1 - df / n) ** 2)
    assert found.best("bic") == int(np.argmin(found.bic))
    np.testing.assert_allclose(information_criteria(path, X, y, gamma=0.0).ebic, found.bic)


def test_differences_are_those_of_statsmodels(data: tuple[np.ndarray, np.ndarray]) -> None:
    """Near alpha = 0 all magnitudes differ, and AIC and BIC are those of least squares up to a constant."""
    X, y = data
    small = slope_path(X[:, :4], y, alphas=[1e-9], tol=1e-12)
    large = slope_path(X, y, alphas=[1e-9], tol=1e-12)
    fits = [sm.OLS(y, sm.add_constant(Z)).fit() for Z in (X[:, :4], X)]
    ours = [information_criteria(p, Z, y) for p, Z in ((small, X[:, :4]), (large, X))]
    for name in ("aic", "bic"):
        theirs = getattr(fits[1], name) - getattr(fits[0], name)
        assert getattr(ours[1], name)[0] - getattr(ours[0], name)[0] == pytest.approx(theirs, abs=1e-5)


def test_other_losses(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    counts = np.random.default_rng(1).poisson(np.exp(y / 5))
    path = slope_path(X, counts, loss="poisson", alphas=[1e-9], tol=1e-12)
    fit = sm.GLM(counts, sm.add_constant(X), family=sm.families.Poisson()).fit()
    found = information_criteria(path, X, counts)
    assert found.aic[0] == pytest.approx(fit.deviance + 2 * 13, rel=1e-6)
    labels = np.digitize(y, [-1, 1])
    many = slope_path(X, labels, loss="multinomial", n_alphas=10)
    found = information_criteria(many, X, labels)
    # two free intercepts of three classes, all coefficients in the choice
    np.testing.assert_array_equal(found.df, many.n_clusters + 2)
    assert found.p == 36
    both = np.column_stack([y, -y])
    pair = slope_path(X, both, n_alphas=10)
    found = information_criteria(pair, X, both)
    rss = ((both[:, :, None] - pair.predictor(X)) ** 2).sum(axis=(0, 1))
    np.testing.assert_allclose(found.aic, 300 * np.log(rss / 300) + 2 * (pair.n_clusters + 2))
    with pytest.raises(ConvexlawError, match="no likelihood"):
        information_criteria(slope_path(X, y, loss="huber", n_alphas=5), X, y)


def test_weights_are_counts(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    counts = np.random.default_rng(2).integers(1, 4, 150)
    path = slope_path(X, y, sample_weight=counts, n_alphas=8)
    weighted = information_criteria(path, X, y, sample_weight=counts)
    repeated = information_criteria(path, X.repeat(counts, axis=0), y.repeat(counts))
    np.testing.assert_allclose(weighted.bic, repeated.bic)
    np.testing.assert_allclose(weighted.gcv, repeated.gcv)


def test_as_many_degrees_as_rows_are_no_choice() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 60))
    y = rng.normal(size=12)
    path = slope_path(X, y, lambda_type="lasso", alphas=np.geomspace(1, 1e-6, 30))
    found = information_criteria(path, X, y)
    full = found.df >= 12
    assert full.any()
    assert np.isinf(found.aic[full]).all()
    assert found.df[found.best("aic")] < 12
    # more features than rows: AIC runs to the end of what is allowed, and that is said
    assert "degrees of freedom for 12 rows" in found.note("aic")
    assert found.to_frame().shape == (30, 7)
    with pytest.raises(ConvexlawError, match="criterion 'cp'"):
        found.best("cp")


def test_ebic_finds_the_three_signals(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    path = slope_path(X, y)
    found = information_criteria(path, X, y)
    assert set(np.flatnonzero(path.coefs[:, found.best("ebic")])) == {0, 1, 2}
    assert found.note("ebic") == ""
    assert "EBIC" in str(found)
    axes = found.plot()
    assert len([line for line in axes.lines if line.get_marker() == "o"]) == 3
    plt.close("all")
