"""Losses at the edge: impossible responses, separation, constants, extreme offsets, bad arguments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from convexlaw import (
    ConvergenceWarning,
    ConvexlawError,
    Slope,
    SlopeClassifier,
    TwoLevelSlope,
    slope_path,
    sorted_l1_dual_gap,
)
from convexlaw.theory.sorted_l1 import sorted_l1_norm


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    return X, rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)


def test_negative_counts_are_named_by_row(data: Any) -> None:
    X, y = data
    y[[3, 7]] = -1.0
    with pytest.raises(ConvexlawError, match=r"y = -1 in rows 3, 7.*y >= 0"):
        Slope(loss="poisson").fit(X, y)
    with pytest.raises(ConvexlawError, match="rows 3, 7"):
        slope_path(X, y, loss="poisson")


def test_counts_that_are_all_zero(data: Any) -> None:
    X, y = data
    with pytest.raises(ConvexlawError, match="zero in every row"):
        Slope(loss="poisson").fit(X, 0.0 * y)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_one_class_is_an_error(data: Any, loss: str) -> None:
    X, _ = data
    with pytest.raises(ConvexlawError, match="one class"):
        SlopeClassifier(loss=loss).fit(X, np.ones(40))
    y = np.repeat([0, 1], [39, 1])
    w = np.append(np.ones(39), 0.0)
    with pytest.raises(ConvexlawError, match="class"):
        SlopeClassifier(loss=loss).fit(X, y, sample_weight=w)


def test_logistic_refuses_three_classes(data: Any) -> None:
    X, _ = data
    with pytest.raises(ConvexlawError, match=r"3 classes.*multinomial"):
        SlopeClassifier().fit(X, np.arange(40) % 3)
    with pytest.raises(ConvexlawError, match="3 classes"):
        slope_path(X, np.arange(40) % 3, loss="logistic")


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_separation_without_penalty_is_reported(loss: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="no finite solution.*separated.*alpha > 0"):
        model = SlopeClassifier(loss=loss, alpha=0.0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SlopeClassifier(loss=loss, alpha=1e-3).fit(X, y).converged_


def test_partial_separation_is_reported() -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=60), np.repeat([0.0, 1.0], [50, 10])])
    y = np.append(rng.integers(0, 2, 50), np.ones(10, dtype=int))
    with pytest.warns(ConvergenceWarning, match="separated"):
        SlopeClassifier(alpha=0.0).fit(X, y)
    counts = np.append(rng.poisson(2.0, 50), np.zeros(10))
    with pytest.warns(ConvergenceWarning, match="means of zero"):
        Slope(loss="poisson", alpha=0.0).fit(X, counts)


def test_no_separation_no_warning(data: Any) -> None:
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Slope(loss="poisson", alpha=0.0).fit(X, y)
        SlopeClassifier(alpha=0.0).fit(X, y > 1)


def test_separable_classes_at_a_small_penalty() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 60))
    y = X[:, 0] > 0
    path = slope_path(X, y, loss="logistic", alpha_min_ratio=1e-3)
    assert path.converged.all()
    assert path.deviance_ratios[-1] > 0.9


@pytest.mark.parametrize("loss", ["poisson", "huber"])
def test_constant_response(data: Any, loss: str) -> None:
    X, _ = data
    model = Slope(loss=loss, alpha=0.1).fit(X, np.full(40, 3.0))
    np.testing.assert_array_equal(model.coef_, 0.0)
    np.testing.assert_allclose(model.predict(X), 3.0)
    assert model.converged_
    path = slope_path(X, np.full(40, 3.0), loss=loss)
    assert path.alpha_max == 0.0
    assert not path.coefs.any()


def test_constant_responses(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.1).fit(X, np.column_stack([np.full(40, 2.0), np.full(40, -1.0)]))
    np.testing.assert_array_equal(model.coef_, 0.0)
    one = Slope(alpha=0.1).fit(X, np.column_stack([np.full(40, 2.0), y]))
    np.testing.assert_array_equal(one.coef_[0], 0.0)
    assert one.coef_[1].any()


@pytest.mark.parametrize("size", [1e-3, 30.0, 300.0])
def test_offsets_of_any_size(data: Any, size: float) -> None:
    X, y = data
    offset = size * np.linspace(-1.0, 1.0, 40)
    model = Slope(loss="poisson", alpha=1e-2, tol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, offset=offset)
    gap = sorted_l1_dual_gap(
        X,
        y,
        model.coef_,
        model.intercept_,
        1e-2,
        model.lambda_,
        fit_intercept=True,
        loss="poisson",
        offset=offset,
    )
    # what it says of itself is true
    assert gap == pytest.approx(model.dual_gap_, abs=1e-9 * model.null_objective_)
    assert model.converged_ == (model.dual_gap_ <= 1e-7 * model.null_objective_)
    assert model.converged_ or size > 100.0


def test_a_common_offset_moves_the_intercept_alone(data: Any) -> None:
    X, y = data
    base = Slope(loss="poisson", alpha=0.02, tol=1e-12).fit(X, y)
    moved = Slope(loss="poisson", alpha=0.02, tol=1e-12).fit(X, y, offset=np.full(40, 500.0))
    np.testing.assert_allclose(moved.coef_, base.coef_, atol=1e-8)
    assert moved.intercept_ == pytest.approx(base.intercept_ - 500.0)
    np.testing.assert_allclose(moved.predict(X, offset=np.full(40, 500.0)), base.predict(X), rtol=1e-7)


def test_an_offset_that_cannot_be_used(data: Any) -> None:
    X, y = data
    with pytest.raises(ConvexlawError, match=r"offset has shape \(3,\)"):
        Slope(loss="poisson").fit(X, y, offset=np.zeros(3))
    with pytest.raises(ConvexlawError, match="offset is -inf in row 5"):
        Slope(loss="poisson").fit(X, y, offset=np.where(np.arange(40) == 5, -np.inf, 0.0))
    with pytest.raises(ConvexlawError, match="rescale y, or the offset"):
        Slope(loss="poisson", fit_intercept=False).fit(X, y, offset=np.full(40, 800.0))
    with pytest.raises(ConvexlawError, match="only loss = 'logistic'"):
        SlopeClassifier(loss="multinomial").fit(X, np.arange(40) % 3, offset=np.zeros(40))


def test_an_offset_of_the_quadratic_loss_is_taken_off(data: Any) -> None:
    X, y = data
    offset = np.linspace(0.0, 5.0, 40)
    model = Slope(alpha=0.05, tol=1e-10).fit(X, y, offset=offset)
    other = Slope(alpha=0.05, tol=1e-10).fit(X, y - offset)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-7)
    np.testing.assert_allclose(model.predict(X, offset), other.predict(X) + offset, atol=1e-7)


def test_arguments_that_cannot_be_used(data: Any) -> None:
    X, y = data
    with pytest.raises(ConvexlawError, match="loss = 'gamma'"):
        slope_path(X, y, loss="gamma")
    with pytest.raises(ConvexlawError, match="loss = 'gamma'"):
        Slope(loss="gamma").fit(X, y)
    with pytest.raises(ConvexlawError, match="loss = 'poisson'"):
        SlopeClassifier(loss="poisson").fit(X, y > 1)
    with pytest.raises(ConvexlawError, match="threshold = 0"):
        Slope(loss="huber", threshold=0.0).fit(X, y)
    with pytest.raises(ConvexlawError, match="solver = 'gram'"):
        Slope(loss="poisson", solver="gram").fit(X, y)
    with pytest.raises(ConvexlawError, match="2 columns"):
        Slope(loss="poisson").fit(X, np.column_stack([y, y]))
    with pytest.raises(ConvexlawError, match="lam has 6 weights"):
        SlopeClassifier(loss="multinomial", lam=np.ones(6)).fit(X, np.arange(40) % 3)
    with pytest.raises(ConvexlawError, match="class_weight names 7"):
        SlopeClassifier(class_weight={7: 2.0}).fit(X, y > 1)
    with pytest.raises(ConvexlawError, match="class_weight = 'equal'"):
        SlopeClassifier(class_weight="equal").fit(X, y > 1)


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "poisson", "huber"])
def test_values_of_x_that_are_not_finite(data: Any, loss: str) -> None:
    X, y = data
    X[4, 2] = np.nan
    model = SlopeClassifier(loss=loss) if "i" in loss and loss != "poisson" else Slope(loss=loss)
    with pytest.raises(ConvexlawError, match="NaN: column 2, row 4"):
        model.fit(X, y > 1 if isinstance(model, SlopeClassifier) else y)


def test_too_few_iterations_are_reported(data: Any) -> None:
    X, y = data
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = Slope(loss="poisson", alpha=1e-4, max_iter=1, tol=1e-12).fit(X, y)
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="alphas stopped"):
        path = slope_path(X, y, loss="poisson", max_iter=1, tol=1e-12)
    assert not path.converged.all()


@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber", "multinomial"])
def test_duplicated_and_constant_columns(data: Any, loss: str) -> None:
    X, y = data
    wide = np.column_stack([X, X, np.ones(40), np.zeros(40)])
    target = np.minimum(y, 2.0 if loss == "multinomial" else 1.0) if loss[0] in "lm" else y
    path = slope_path(wide, target, loss=loss, n_alphas=15)
    width = 3 if loss == "multinomial" else 1
    again = slope_path(X, target, loss=loss, alphas=path.alphas, lam=path.lambda_[: 6 * width])
    assert path.converged.all()
    assert not path.coefs[-2:].any()
    for k in range(path.alphas.size):
        # coefficients of X alone are a choice in the wide problem, with the same objective
        wider, narrow = (
            (1.0 - run.deviance_ratios[k]) * run.null
            + path.alphas[k] * sorted_l1_norm(run.coefs[..., k].ravel(), run.lambda_)
            for run in (path, again)
        )
        assert wider <= narrow + 1e-6 * path.null


@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber"])
def test_columns_far_from_zero(data: Any, loss: str) -> None:
    X, y = data
    target = (y > 0).astype(float) if loss == "logistic" else y
    base = slope_path(X, target, loss=loss, n_alphas=8, alpha_min_ratio=0.01, tol=1e-9)
    far = slope_path(X + 1e6, target, loss=loss, alphas=base.alphas, tol=1e-7)
    assert far.converged.all()
    np.testing.assert_allclose(far.coefs, base.coefs, atol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "multinomial"])
def test_sparse_designs_of_some_size(loss: str) -> None:
    rng = np.random.default_rng(4)
    n = 400 if loss == "multinomial" else 3000
    X = sp.random(n, 4 * n // 3, density=9.0 / n, format="csr", random_state=rng)
    eta = 3.0 * np.asarray(X[:, :5].sum(axis=1)).reshape(-1)
    y = rng.poisson(np.exp(eta)) if loss == "poisson" else np.digitize(eta + rng.logistic(size=n), [0.5])
    path = slope_path(X, y, loss=loss, n_alphas=6, alpha_min_ratio=0.1)
    k = path.alphas.size - 1
    gap = sorted_l1_dual_gap(
        X, y, path.coefs[..., k], path.intercepts[..., k], path.alphas[k], path.lambda_, loss=loss
    )
    assert np.count_nonzero(path.coefs[..., k]) > 0
    assert gap <= 1.05e-6 * path.null


def test_two_level_huber_is_the_path_of_its_weights(data: Any) -> None:
    X, y = data
    model = TwoLevelSlope(loss="huber", threshold=0.5, alpha=0.05, tol=1e-9).fit(X, y)
    plain = slope_path(X, y, loss="huber", threshold=0.5, alphas=[0.05], lam=model.lambda_, tol=1e-9)
    np.testing.assert_allclose(model.coef_, plain.coefs[:, 0], atol=1e-6)
