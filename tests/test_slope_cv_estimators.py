"""The cross-validated estimators as scikit-learn estimators."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from convexlaw import SlopeClassifierCV, SlopeCV, TwoLevelSlopeCV

SMALL = {"n_alphas": 8, "cv": 3}
KINDS = [
    SlopeCV(**SMALL),
    TwoLevelSlopeCV(low_ratios=[0.5, 1.0], fractions=[0.2], **SMALL),
    SlopeClassifierCV(**SMALL),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        SlopeCV(),
        TwoLevelSlopeCV(n_alphas=10),
        SlopeClassifierCV(n_alphas=20),
        SlopeClassifierCV(cv=3, n_alphas=5, eps=0.1, loss="multinomial", tol=1e-9),
    ],
    ids=lambda e: type(e).__name__ + getattr(e, "loss", ""),
)
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


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    return X, X[:, 0] * 2 + X[:, 1] * 2 + rng.normal(size=60) + 1.0


@pytest.mark.parametrize("estimator", KINDS, ids=lambda e: type(e).__name__)
def test_clone_pickle_pipeline_and_search(estimator: Any, data: Any) -> None:
    X, y = data
    if isinstance(estimator, SlopeClassifierCV):
        y = np.where(y > 1.0, "more", "less")
    model = clone(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()
    pipe = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y)
    assert pipe.score(X, y) > 0.5
    search = GridSearchCV(clone(estimator), {"selection": ["min", "1se"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5


def test_weights_and_groups_are_routed(data: Any) -> None:
    X, y = data
    groups, weights = np.repeat(np.arange(12), 5), np.linspace(0.1, 2.0, 60)
    model = SlopeCV(n_alphas=8, cv=GroupKFold(3))
    with sklearn.config_context(enable_metadata_routing=True):
        request = model.set_fit_request(groups=True, sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), request)
        pipe.fit(X, y, groups=groups, sample_weight=weights)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    direct = SlopeCV(n_alphas=8, cv=GroupKFold(3)).fit(scaled, y, sample_weight=weights, groups=groups)
    np.testing.assert_allclose(pipe[-1].cv_scores_, direct.cv_scores_, rtol=1e-6)


def test_an_integer_weight_is_a_repeated_row(data: Any) -> None:
    X, y = data
    weights = np.random.default_rng(1).integers(0, 3, 60)
    many = np.repeat(np.arange(60), weights)
    fold = np.arange(60) % 3
    by_weight = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    by_row = [(np.flatnonzero(fold[many] != k), np.flatnonzero(fold[many] == k)) for k in range(3)]
    one = SlopeCV(cv=by_weight, n_alphas=10, tol=1e-10).fit(X, y, sample_weight=weights)
    two = SlopeCV(cv=by_row, n_alphas=10, tol=1e-10).fit(X[many], y[many])
    np.testing.assert_allclose(one.cv_scores_, two.cv_scores_, rtol=1e-4)
    assert one.alpha_ == pytest.approx(two.alpha_)


def test_the_objective_opens_every_docstring() -> None:
    for kind in (SlopeCV, TwoLevelSlopeCV):
        head = "\n".join((kind.__doc__ or "").splitlines()[:6])
        assert "(1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)" in head


def test_formulas_and_summaries(data: Any) -> None:
    import pandas as pd

    X, y = data
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(y=y)
    model = SlopeCV.from_formula("y ~ a + b + c", table, **SMALL)
    np.testing.assert_allclose(model.predict(table), SlopeCV(**SMALL).fit(X[:, :3], y).predict(X[:, :3]))
    assert f"alpha = {model.alpha_:g}" in str(model.summary())
