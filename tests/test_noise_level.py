"""The noise level estimated with a SLOPE fit: a fixed point, on every input, and cycles that are told."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from convexlaw import ConvexlawError, Slope, TwoLevelSlope
from convexlaw.errors import ConvergenceWarning
from convexlaw.solvers import noise as module


def make(n: int, p: int, k: int, seed: int, size: float = 1.0, sigma: float = 1.0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, :k] @ np.full(k, size) + sigma * rng.normal(size=n) + 5.0


def level_of(X: np.ndarray, y: np.ndarray, coef: np.ndarray) -> float:
    """Residual standard deviation of ordinary least squares on the support, intercept included."""
    table = np.column_stack([np.ones(y.size), X[:, coef != 0]])
    b, _, rank, _ = np.linalg.lstsq(table, y)
    return float(np.sqrt(np.sum((y - table @ b) ** 2) / (y.size - rank)))


@pytest.mark.parametrize(("n", "p", "k"), [(200, 30, 3), (100, 300, 5), (100, 300, 0)])
@pytest.mark.parametrize("scaling", ["sd", "none", "l2"])
def test_alpha_sigma_and_the_set_belong_together(n: int, p: int, k: int, scaling: str) -> None:
    X, y = make(n, p, k, 0, sigma=2.0)
    model = Slope(alpha="estimate", scaling=scaling).fit(X, y)
    assert not model.noise_.cycled
    assert model.sigma_ == pytest.approx(level_of(X, y, model.coef_), rel=1e-9)
    scale = {"sd": X.std(axis=0), "none": 1.0, "l2": np.sqrt((X**2).sum(axis=0))}[scaling]
    norm = np.sqrt((((X - X.mean(axis=0)) / scale) ** 2).mean())
    assert model.alpha_ == pytest.approx(model.sigma_ * norm / np.sqrt(n), rel=1e-9)
    again = Slope(alpha=model.alpha_, scaling=scaling).fit(X, y)
    np.testing.assert_array_equal(again.coef_ != 0, model.coef_ != 0)
    assert "alpha" in str(model.summary())
    assert model.noise_.to_frame()["columns"].iloc[-1] == np.count_nonzero(model.coef_)
    assert len(str(model.noise_).splitlines()) <= 12


def test_the_level_is_near_the_truth() -> None:
    found = [Slope(alpha="estimate").fit(*make(200, 100, 5, s, 1.5, 0.7)).sigma_ for s in range(20)]
    se = np.std(found, ddof=1) / np.sqrt(20)
    # selection favours columns that explain noise: a little below, never far
    assert -0.05 < np.mean(found) - 0.7 < 4 * se


def test_scale_of_y_and_form_of_X_do_not_matter() -> None:
    X, y = make(80, 20, 3, 1)
    X[np.abs(X) < 0.7] = 0.0
    base = Slope(alpha="estimate").fit(X, y)
    for factor in (1e-8, 1e8):
        other = Slope(alpha="estimate").fit(X, factor * y)
        assert other.sigma_ == pytest.approx(factor * base.sigma_, rel=1e-6)
    for form in (sp.csc_array, sp.csr_array, np.asfortranarray):
        assert Slope(alpha="estimate").fit(form(X), y).sigma_ == pytest.approx(base.sigma_, rel=1e-9)
    without = Slope(alpha="estimate", fit_intercept=False, centering="mean").fit(X, y - y.mean())
    assert without.noise_.df == base.noise_.df + 1
    weights = np.random.default_rng(0).integers(0, 3, 80)
    many = np.repeat(np.arange(80), weights)
    one = Slope(alpha="estimate").fit(X, y, sample_weight=weights)
    two = Slope(alpha="estimate").fit(X[many], y[many])
    assert one.sigma_ == pytest.approx(two.sigma_, rel=1e-6)
    assert one.alpha_ == pytest.approx(two.alpha_, rel=1e-6)
    assert TwoLevelSlope(alpha="estimate", high=4.0, low=2.0).fit(X, y).sigma_ > 0


def test_constant_response_and_constant_columns() -> None:
    X, y = make(50, 5, 2, 2)
    X[:, 4] = 7.0
    with_flat = Slope(alpha="estimate").fit(X, y)
    assert with_flat.coef_[4] == 0.0
    model = Slope(alpha="estimate").fit(X, np.full(50, 3.0))
    assert model.sigma_ == 0.0
    assert not model.coef_.any()


def test_exact_responses_are_told() -> None:
    X, _ = make(60, 100, 0, 3)
    y = X[:, :2] @ [3.0, -2.0]
    with pytest.warns(ConvergenceWarning, match="explain y exactly"):
        model = Slope(alpha="estimate").fit(X, y)
    assert model.sigma_ == 0.0
    assert model.noise_.status == "exact"
    assert model.alpha_ > 0.0
    assert model.converged_
    assert set(np.flatnonzero(model.coef_)) >= {0, 1}


def test_nothing_left_to_estimate_from_is_an_error() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 100))
    y = X @ rng.normal(size=100)
    with pytest.raises(ConvexlawError, match="leave nothing to estimate the noise"):
        Slope(alpha="estimate", lambda_type="lasso").fit(X, y)


def test_cycles_end_with_the_larger_level(monkeypatch: pytest.MonkeyPatch) -> None:
    # sets that alternate: the level of the first column alone is worse than that of none, by decree
    X, y = make(40, 3, 1, 5, size=3.0)
    real = module._residual_level

    def alternating(problem: Any, chosen: Any) -> tuple[float, float]:
        sigma, df = real(problem, chosen)
        return (sigma, df) if chosen.size == 0 else (100.0 * sigma, df)

    monkeypatch.setattr(module, "_residual_level", alternating)
    with pytest.warns(ConvergenceWarning, match="cycle of 2"):
        model = Slope(alpha="estimate").fit(X, y)
    assert model.noise_.cycled
    assert model.sigma_ == max(model.noise_.sigmas)
    assert not model.coef_.any()


def test_it_ends_on_many_random_inputs() -> None:
    ends = {"repeated": 0, "cycle": 0, "exact": 0, "error": 0}
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(5, 30)), int(rng.integers(2, 80))
        X = rng.normal(size=(n, p)) + rng.uniform(0, 2) * rng.normal(size=(n, 1))
        y = X @ (rng.normal(size=p) * (rng.random(p) < 0.2)) + rng.uniform(0.1, 2) * rng.normal(size=n)
        kind = ("bh", "gaussian", "lasso")[seed % 3]
        model = Slope(alpha="estimate", lambda_type=kind, q=0.3)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)
        except ConvexlawError:
            ends["error"] += 1
            continue
        ends[model.noise_.status] += 1
        if model.noise_.status == "cycle":
            assert model.sigma_ in model.noise_.sigmas
    assert sum(ends.values()) == 150
    assert ends["repeated"] > 50


def test_other_losses_have_no_level() -> None:
    X, y = make(30, 4, 1, 6)
    with pytest.raises(ConvexlawError, match="'estimate'"):
        Slope(alpha="estimate", loss="huber").fit(X, y)
    with pytest.raises(ConvexlawError, match="a number >= 0"):
        Slope(alpha="guess").fit(X, y)


def test_alpha_one_over_n_is_the_plain_sum_of_squares() -> None:
    # X = I_4: the prox of (8, 6, 4, 2) under (4, 3, 2, 1) is (4, 3, 2, 1)
    model = Slope(alpha="1/n", lam=[4.0, 3.0, 2.0, 1.0], fit_intercept=False, tol=1e-12)
    model.fit(np.eye(4), [8.0, 6.0, 4.0, 2.0])
    np.testing.assert_allclose(model.coef_, [4.0, 3.0, 2.0, 1.0], atol=1e-6)
    assert model.alpha_ == 0.25
