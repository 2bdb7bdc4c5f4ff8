"""The SLOPE estimators as scikit-learn estimators, and what they say about a fit."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from convexlaw import ConvexlawError, Slope, TwoLevelSlope


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    return X, X[:, 0] * 2 + X[:, 1] * 2 + rng.normal(size=60) + 1.0


@pytest.mark.parametrize("estimator", [Slope(), TwoLevelSlope()], ids=["Slope", "TwoLevelSlope"])
def test_scikit_learns_own_checks(estimator: Any) -> None:
    count = 0
    for instance, check in estimator_checks_generator(estimator):
        name = getattr(check, "func", check).__name__
        if name == "check_array_api_input":
            continue  # skips itself unless SCIPY_ARRAY_API is set
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(instance)
        count += 1
    assert count > 50


@pytest.mark.parametrize("kind", [Slope, TwoLevelSlope])
def test_clone_pickle_pipeline_and_search(kind: Any, data: Any) -> None:
    X, y = data
    model = kind(alpha=0.1, tol=1e-8).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    fresh = clone(model)
    assert not hasattr(fresh, "coef_")
    assert fresh.get_params() == model.get_params()
    pipe = make_pipeline(StandardScaler(), kind(alpha=0.1))
    assert pipe.fit(X, y).score(X, y) > 0.5
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.5
    search = GridSearchCV(kind(), {"alpha": [0.01, 0.1, 10.0]}, cv=3).fit(X, y)
    assert search.best_params_["alpha"] < 10.0


def test_shapes_and_attributes(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.1).fit(X, y)
    assert model.coef_.shape == (8,)
    assert isinstance(model.intercept_, float)
    assert model.lambda_.shape == (8,)
    assert model.n_features_in_ == 8
    assert model.n_iter_ >= 1
    assert model.predict(X).shape == (60,)
    one = Slope(alpha=0.1).fit(X[:, :1], y)
    assert one.coef_.shape == (1,)
    assert one.predict(X[:, :1]).shape == (60,)
    with pytest.warns(Warning, match="column-vector"):
        column = Slope(alpha=0.1).fit(X, y.reshape(-1, 1))
    np.testing.assert_array_equal(column.coef_, model.coef_)


def test_feature_names_and_frames(data: Any) -> None:
    X, y = data
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(8)])
    model = Slope(alpha=0.1).fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_allclose(model.coef_, Slope(alpha=0.1).fit(X, y).coef_, atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), Slope(alpha=0.1)).fit(frame, y)
    assert list(pipe[-1].feature_names_in_) == list(frame.columns)
    boolean = pd.DataFrame({"a": X[:, 0] > 0, "b": X[:, 1], "c": np.arange(60)})
    assert Slope(alpha=0.1).fit(boolean, y).coef_.shape == (3,)


def test_sample_weight_is_routed(data: Any) -> None:
    import sklearn

    X, y = data
    weights = np.linspace(0.1, 2.0, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(
            StandardScaler(with_mean=False), Slope(alpha=0.1).set_fit_request(sample_weight=True)
        )
        pipe[0].set_fit_request(sample_weight=False)
        pipe.fit(X, y, sample_weight=weights)
    scaled = X / X.std(axis=0)
    direct = Slope(alpha=0.1).fit(scaled, y, sample_weight=weights)
    np.testing.assert_allclose(pipe[-1].coef_, direct.coef_, atol=1e-9)
    assert not np.allclose(direct.coef_, Slope(alpha=0.1).fit(scaled, y).coef_, atol=1e-4)


def test_warm_start_continues(data: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 200))
    y = X[:, :5].sum(axis=1) + rng.normal(size=60)
    model = Slope(alpha=0.05, warm_start=True).fit(X, y)
    first = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < max(first / 4, 3)
    model.set_params(alpha=0.04).fit(X, y)
    cold = Slope(alpha=0.04, tol=1e-10).fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(model.predict(X), cold.predict(X), atol=1e-2)
    model.fit(X[:, :50], y)
    assert model.coef_.shape == (50,)


def test_predicting_from_other_forms(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.1).fit(X, y)
    np.testing.assert_allclose(model.predict(sp.csr_array(X)), model.predict(X))
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((1, 8), np.nan))


@pytest.mark.parametrize("kind", [Slope, TwoLevelSlope])
def test_summary(kind: Any, data: Any) -> None:
    import matplotlib.pyplot as plt

    X, y = data
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(8)])
    model = kind(alpha=0.02).fit(frame, y)
    summary = model.summary()
    text = str(summary)
    assert len(text.splitlines()) <= 12
    assert kind.__name__ in text
    assert "duality gap" in text
    assert "f0" in text
    table = summary.to_frame()
    np.testing.assert_array_equal(table["coef"], model.coef_)
    assert table["cluster"].max() == model.n_clusters_
    axes = summary.plot()
    assert len(axes.patches) == np.count_nonzero(model.coef_)
    plt.close(axes.figure)
    assert "x0" in str(kind(alpha=0.02).fit(X, y).summary())


def test_the_objective_opens_every_docstring() -> None:
    for kind in (Slope, TwoLevelSlope):
        head = "\n".join((kind.__doc__ or "").splitlines()[:6])
        assert "(1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)" in head


def test_other_losses_are_refused(data: Any) -> None:
    with pytest.raises(ConvexlawError, match=r"loss = 'logistic'.*SlopeClassifier"):
        Slope(loss="logistic").fit(*data)


def test_nothing_heavy_is_imported_before_the_first_fit() -> None:
    code = (
        "import sys, convexlaw; "
        "heavy = {'numba', 'sklearn', 'pandas', 'matplotlib', 'torch', 'cvxpy', 'scipy'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules); "
        "from convexlaw import Slope; "
        "assert not {'numba', 'matplotlib', 'torch', 'cvxpy'} & set(sys.modules); "
        "Slope(alpha=0.1).fit([[1.0], [2.0]], [1.0, 2.0]); assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
