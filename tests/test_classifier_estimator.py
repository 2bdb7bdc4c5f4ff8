"""The classifier and the regressors of other losses as scikit-learn estimators."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import d2_tweedie_score, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from convexlaw import Slope, SlopeClassifier, TwoLevelSlope, slope_path
from convexlaw.solvers.glm import explained_deviance, mean_deviance


@pytest.fixture
def classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    return X, np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + 0.5 * rng.normal(size=90), [-0.5, 0.5])]


_OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)


@pytest.mark.parametrize(
    "estimator",
    [
        SlopeClassifier(),
        SlopeClassifier(loss="multinomial"),
        SlopeClassifier(loss="multinomial", reference=True),
        Slope(loss="poisson"),
        Slope(loss="huber"),
        TwoLevelSlope(loss="poisson"),
    ],
    ids=["logistic", "multinomial", "reference", "poisson", "huber", "two-level"],
)
def test_scikit_learns_own_checks(estimator: Any) -> None:
    count = 0
    for instance, check in estimator_checks_generator(estimator):
        name = getattr(check, "func", check).__name__
        if name == "check_array_api_input":
            continue  # skips itself unless SCIPY_ARRAY_API is set
        if _OLD and name.startswith("check_sample_weight_equivalence") and instance.loss == "logistic":
            continue  # scikit-learn 1.6 gives the repeated and the weighted rows different labels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(instance)
        count += 1
    assert count > 50


def test_shapes_of_two_and_three_classes(classes: Any) -> None:
    X, y = classes
    two = SlopeClassifier(alpha=0.01).fit(X, y == "top")
    assert two.coef_.shape == (1, 5)
    assert two.intercept_.shape == (1,)
    assert two.decision_function(X).shape == (90,)
    assert two.predict_proba(X).shape == (90, 2)
    three = SlopeClassifier(loss="multinomial", alpha=0.01).fit(X, y)
    assert three.classes_.tolist() == ["low", "mid", "top"]
    assert three.coef_.shape == (3, 5)
    assert three.decision_function(X).shape == (90, 3)
    np.testing.assert_allclose(three.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(three.predict_log_proba(X)), three.predict_proba(X))
    assert set(three.predict(X)) <= set(three.classes_)
    assert three.lambda_.shape == (15,)
    pair = SlopeClassifier(loss="multinomial", alpha=0.01).fit(X, y == "top")
    assert pair.decision_function(X).shape == (90,)
    np.testing.assert_array_equal(pair.predict(X), pair.decision_function(X) > 0)


def test_without_penalty_it_is_logistic_regression(classes: Any) -> None:
    X, y = classes
    peer = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
    ours = SlopeClassifier(loss="multinomial", alpha=0.0)
    np.testing.assert_allclose(ours.fit(X, y).predict_proba(X), peer.fit(X, y).predict_proba(X), atol=1e-4)


def test_deviance_is_twice_the_log_loss(classes: Any) -> None:
    X, y = classes
    w = np.linspace(0.5, 2.0, 90)
    model = SlopeClassifier(loss="multinomial", alpha=0.02).fit(X, y, sample_weight=w)
    expected = 2.0 * log_loss(y, model.predict_proba(X), sample_weight=w)
    assert model.deviance(X, y, sample_weight=w) == pytest.approx(expected)


def test_balanced_weights_are_explicit_ones(classes: Any) -> None:
    X, y = classes
    flag = y == "top"
    counts = np.bincount(flag)
    weight = {False: 90 / (2 * counts[0]), True: 90 / (2 * counts[1])}
    balanced = SlopeClassifier(alpha=0.02, class_weight="balanced", tol=1e-10).fit(X, flag)
    named = SlopeClassifier(alpha=0.02, class_weight=weight, tol=1e-10).fit(X, flag)
    rows = SlopeClassifier(alpha=0.02, tol=1e-10).fit(X, flag, np.where(flag, weight[True], weight[False]))
    np.testing.assert_allclose(balanced.coef_, named.coef_, atol=1e-7)
    np.testing.assert_allclose(balanced.coef_, rows.coef_, atol=1e-7)
    plain = SlopeClassifier(alpha=0.02).fit(X, flag)
    assert balanced.predict(X).sum() > plain.predict(X).sum()


def test_clone_pickle_pipeline_search_and_names(classes: Any) -> None:
    X, y = classes
    model = SlopeClassifier(loss="multinomial", alpha=0.02).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == model.get_params()
    pipe = make_pipeline(StandardScaler(), SlopeClassifier(loss="multinomial"))
    search = GridSearchCV(pipe, {"slopeclassifier__alpha": [0.01, 0.5]}, cv=3).fit(X, y)
    assert search.best_params_["slopeclassifier__alpha"] == 0.01
    assert cross_val_score(pipe, X, y, cv=3, scoring="neg_log_loss").mean() > -1.0
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = SlopeClassifier(loss="multinomial", alpha=0.02).fit(frame, pd.Series(y))
    assert named.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_allclose(named.coef_, model.coef_, atol=1e-10)


def test_warm_start_begins_where_it_was(classes: Any) -> None:
    X, y = classes
    model = SlopeClassifier(loss="multinomial", alpha=0.02, warm_start=True, tol=1e-8).fit(X, y)
    first, rounds = model.coef_.copy(), model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < rounds
    np.testing.assert_allclose(model.coef_, first, atol=1e-6)
    counts = Slope(loss="poisson", alpha=0.02, warm_start=True).fit(X, np.abs(X[:, 0]).round())
    assert counts.fit(X, np.abs(X[:, 0]).round()).n_iter_ <= 2


def test_counts_predict_their_mean_and_score_d2() -> None:
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(80, 4)), np.linspace(0.5, 2.0, 80)
    exposure = rng.uniform(0.5, 4.0, 80)
    y = rng.poisson(exposure * np.exp(0.7 * X[:, 0]))
    model = Slope(loss="poisson", alpha=0.01).fit(X, y, sample_weight=w, offset=np.log(exposure))
    mean = model.predict(X, offset=np.log(exposure))
    # the intercept is at its optimum: totals agree
    assert w @ mean == pytest.approx(w @ y)
    np.testing.assert_allclose(mean, exposure * model.predict(X))
    plain = Slope(loss="poisson", alpha=0.01).fit(X, y, sample_weight=w)
    expected = d2_tweedie_score(y, plain.predict(X), power=1, sample_weight=w)
    assert plain.score(X, y, sample_weight=w) == pytest.approx(expected)
    with_offset = model.score(X, y, sample_weight=w, offset=np.log(exposure))
    null = Slope(loss="poisson", alpha=1e3).fit(X, y, sample_weight=w, offset=np.log(exposure))
    assert null.score(X, y, sample_weight=w, offset=np.log(exposure)) == pytest.approx(0.0, abs=1e-12)
    assert 0.0 < with_offset < 1.0
    assert explained_deviance("poisson", [2.0, 2.0], np.log([2.0, 2.0])) == 1.0


def test_huber_resists_an_outlier() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 0.0, 0.0] + 0.1 * rng.normal(size=60)
    y[0] += 1e4
    robust = Slope(loss="huber", threshold=0.5, alpha=1e-4).fit(X, y)
    assert robust.coef_[0] == pytest.approx(1.0, abs=0.1)
    plain = Slope(alpha=1e-4).fit(X, y)
    assert abs(plain.coef_[0] - 1.0) > 1.0
    wide = Slope(loss="huber", threshold=1e6, alpha=0.1, tol=1e-10).fit(X, y)
    square = Slope(alpha=0.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(wide.coef_, square.coef_, atol=1e-5)


def test_several_responses_in_shape_and_score() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70, 6))
    Y = np.column_stack([X[:, 0], X[:, 1] - 1.0, X[:, 2]]) + 0.1 * rng.normal(size=(70, 3))
    model = Slope(alpha=0.01).fit(X, Y)
    assert model.coef_.shape == (3, 6)
    assert model.intercept_.shape == (3,)
    assert model.lambda_.shape == (18,)
    assert model.predict(X).shape == (70, 3)
    assert model.score(X, Y) > 0.9
    assert model.deviance(X, Y) == pytest.approx(((Y - model.predict(X)) ** 2).sum(axis=1).mean())


def test_paths_of_classes_know_their_labels(classes: Any) -> None:
    X, y = classes
    path = slope_path(pd.DataFrame(X, columns=list("abcde")), y, loss="multinomial", n_alphas=6)
    assert path.classes == ("low", "mid", "top")
    assert path.coefs.shape == (5, 3, path.alphas.size)
    assert path.predict(X).shape == (90, 3, path.alphas.size)
    np.testing.assert_allclose(path.predict(X).sum(axis=1), 1.0)
    frame = path.to_frame()
    assert "b[mid]" in frame.columns
    assert "intercept[top]" in frame.columns
    assert "multinomial" in str(path)
    coefs, constants = path.interpolate(path.alphas[2])
    np.testing.assert_allclose(coefs[..., 0], path.coefs[..., 2])
    np.testing.assert_allclose(constants[..., 0], path.intercepts[..., 2])
    assert path.plot().lines
    two = slope_path(X, y == "top", loss="logistic", n_alphas=6)
    assert two.predict(X).shape == (90, two.alphas.size)
    model = SlopeClassifier(alpha=two.alphas[3]).fit(X, y == "top")
    np.testing.assert_allclose(two.predict(X)[:, 3], model.predict_proba(X)[:, 1], atol=1e-3)


def test_mean_deviance_refuses_strange_labels() -> None:
    from convexlaw import ConvexlawError

    with pytest.raises(ConvexlawError, match=r"class 'c'.*'a', 'b'"):
        mean_deviance("logistic", ["a", "c"], [0.0, 0.0], classes=["a", "b"])
    with pytest.raises(ConvexlawError, match="must agree"):
        mean_deviance("poisson", [1.0], [0.0, 0.0])
    assert mean_deviance("multinomial", ["a", "b"], np.zeros((2, 1)), classes=["a", "b"]) == pytest.approx(
        2.0 * np.log(2.0)
    )
