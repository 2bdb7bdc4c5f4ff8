"""Designs near singularity: rounding in sums and products of columns is met, made good, or reported."""

from __future__ import annotations

import numpy as np
import pytest

from convexlaw import Slope, slope_path, sorted_l1_dual_gap
from convexlaw.solvers import _slope_forms as forms


def make(seed: int, n: int, p: int, rho: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    return X, X[:, :4].sum(axis=1) + rng.normal(size=n) + 1.0


@pytest.mark.parametrize("spread", [1e-5, 1e-6, 1e-8, 0.0])
@pytest.mark.parametrize(("n", "p"), [(40, 60), (60, 40)])
def test_near_copies_of_columns_at_tiny_penalties(n: int, p: int, spread: float) -> None:
    # the directions that tell copies apart have curvatures of spread^2; they are no null space for that
    for seed in range(5):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=(n, p // 8))
        X = base[:, rng.integers(0, p // 8, p)] + spread * rng.normal(size=(n, p))
        y = X[:, :5] @ [1.0, 2.0, 3.0, -1.0, 1.0] + rng.normal(size=n)
        top = slope_path(X, y, n_alphas=1).alpha_max
        for ratio in (1e-2, 1e-4, 1e-6, 1e-7):
            model = Slope(alpha=ratio * top, max_iter=20_000).fit(X, y)
            assert model.converged_, (seed, ratio)
            gap = sorted_l1_dual_gap(X, y, model.coef_, model.intercept_, ratio * top, model.lambda_)
            assert gap <= 2e-6 * model.null_objective_


@pytest.mark.parametrize("solver", ["working_gram", "residual", "columns"])
def test_ill_conditioned_steps_do_not_climb(solver: str) -> None:
    # means of 1000 left in, equal columns, rows without weight: condition numbers beyond 1e16
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n, p = 33, 32
        X = rng.normal(size=(n, p)) + 1e3
        X[:, :4] = X[:, 4:8] * np.array([1.0, -1.0, 2.0, 1.0])
        y = X[:, :3].sum(axis=1) + rng.normal(size=n)
        weights = rng.integers(0, 3, n).astype(float)
        weights[0] = 1.0
        lam = np.linspace(2.0, 1.0, p)
        model = Slope(lam=lam, alpha=0.1, fit_intercept=False, solver=solver).fit(X, y, sample_weight=weights)
        assert model.converged_
        gap = sorted_l1_dual_gap(X, y, model.coef_, 0.0, 0.1, lam, fit_intercept=False, sample_weight=weights)
        assert gap <= 1.1e-6 * model.null_objective_


@pytest.mark.parametrize("solver", ["auto", "gram", "working_gram"])
def test_rounding_of_gram_matrices_is_made_good(solver: str) -> None:
    # means of 100 left in, and all of the penalty on the largest coefficient: X'X has lost what decides
    lam = np.eye(8)[0]
    for seed in (27, 102, 115):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8, 8))
        rng.normal(size=(8, 1))
        y = X[:, :4].sum(axis=1) + rng.normal(size=8) + 1.0
        X = X + 100.0
        model = Slope(lam=lam, alpha=0.01, fit_intercept=False, solver=solver, tol=1e-9).fit(X, y)
        assert model.converged_
        gap = sorted_l1_dual_gap(X, y, model.coef_, 0.0, 0.01, lam, fit_intercept=False)
        # in extended precision, every form is up to 8e-9 P(0) off here: double products with X are no better
        assert gap <= 1e-8 * model.null_objective_


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_failed_steps_on_X_itself_leave_it_to_the_residual(
    rho: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # coordinate descent once read columns that the form "columns" does not hold
    X, y = make(16, 40, 60, rho)
    exact = Slope(alpha=0.05, tol=1e-10).fit(X, y)
    monkeypatch.setattr(forms, "pursue", lambda *args, **kwargs: False)
    model = Slope(alpha=0.05, tol=1e-10, solver="columns").fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-4)
    path = slope_path(X, y, alphas=[0.2, 0.05], tol=1e-10, solver="columns")
    assert path.converged.all()
    np.testing.assert_allclose(path.coefs[:, 1], exact.coef_, atol=1e-4)


@pytest.mark.parametrize("solver", ["auto", "working_gram"])
def test_rounding_is_made_good_along_a_path(solver: str) -> None:
    # the same means of 100 and lam = (1, 0, ...) as above, reached by warm starts
    lam = np.eye(8)[0]
    for seed in (27, 102, 115):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8, 8))
        rng.normal(size=(8, 1))
        y = X[:, :4].sum(axis=1) + rng.normal(size=8) + 1.0
        X = X + 100.0
        path = slope_path(X, y, lam=lam, alphas=[0.02, 0.01], fit_intercept=False, solver=solver, tol=1e-9)
        assert path.converged.all()
