"""Small dense problems: compiled Newton steps against the engine of larger ones and the definition."""

from __future__ import annotations

import numpy as np
import pytest

from convexlaw import Slope, SlopeClassifier
from convexlaw.solvers import _glm_newton
from convexlaw.solvers._glm_newton import Newton
from convexlaw.solvers._glm_path import solve_glm
from convexlaw.solvers._glm_problem import GlmProblem
from convexlaw.solvers.slope import sorted_l1_dual_gap

CASES = [
    ("logistic", False, True),
    ("logistic", False, False),
    ("poisson", False, True),
    ("poisson", False, False),
    ("huber", False, True),
    ("multinomial", True, True),
    ("multinomial", True, False),
    ("multinomial", False, True),
    ("multinomial", False, False),
]


def data(loss, seed=0, n=90, p=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.7 * rng.normal(size=(n, 1)) + 0.3
    eta = X[:, 0] - X[:, 1] + 0.5 * X[:, 2]
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * eta)).astype(float)
    if loss == "huber":
        return X, eta + rng.standard_t(2, size=n)
    edges = [0.0] if loss == "logistic" else [-1.0, 0.7]
    return X, np.digitize(eta + 0.7 * rng.normal(size=n), edges)


def problem_of(loss, reference, free, tol=1e-9):
    X, y = data(loss)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 2.0, size=y.size)
    offset = None if loss == "multinomial" else 0.2 * rng.normal(size=y.size)
    problem = GlmProblem(
        X,
        y,
        loss=loss,
        reference=reference,
        fit_intercept=free,
        sample_weight=weights,
        offset=offset,
        scaling="sd",
        tol=tol,
    )
    return problem, weights, offset


@pytest.mark.parametrize(("loss", "reference", "free"), CASES)
@pytest.mark.parametrize("share", [0.5, 0.05, 1e-3])
def test_compiled_steps_equal_the_engine(loss, reference, free, share):
    problem, weights, offset = problem_of(loss, reference, free)
    alpha = share * problem.alpha_max()
    fast, slow = Newton(problem), Newton(problem)
    assert fast.compiled
    slow.compiled = False
    one, other = solve_glm(problem, alpha, fast), solve_glm(problem, alpha, slow)
    # still compiled: the steps got there by themselves
    assert fast.compiled
    assert one.converged
    assert other.converged
    X, y = data(loss)
    lam = problem.lam
    # scaled columns are penalised: the same problem on them, unscaled
    scale = problem.design.scale
    gaps = [
        sorted_l1_dual_gap(
            X / scale,
            y,
            s.coef * (scale if s.coef.ndim == 1 else scale[:, None]),
            s.intercept,
            alpha,
            lam,
            fit_intercept=free,
            sample_weight=weights,
            loss=loss,
            offset=offset,
        )
        for s in (one, other)
    ]
    assert max(gaps) <= 1.1e-9 * problem.null + 1e-13
    assert min(gaps) >= -1e-12
    B = [np.column_stack([s.coef]) @ np.eye(problem.m) for s in (one, other)]
    predictors = [X @ b + s.intercept for b, s in zip(B, (one, other), strict=True)]
    np.testing.assert_allclose(*predictors, atol=2e-3)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "multinomial"])
def test_engine_takes_over_where_the_compiled_steps_give_up(loss, monkeypatch):
    problem, _, _ = problem_of(loss, False, True)
    monkeypatch.setattr(_glm_newton, "solve_small", lambda *args: np.inf)
    newton = Newton(problem)
    solution = solve_glm(problem, 0.05 * problem.alpha_max(), newton)
    assert solution.converged
    assert not newton.compiled


def test_problem_is_not_changed_by_its_solution():
    problem, _, _ = problem_of("poisson", False, True)
    before = [v.copy() for v in (problem.base, problem.pull, problem.residuals, problem.curvatures)]
    first = solve_glm(problem, 0.1 * problem.alpha_max())
    for old, new in zip(
        before, (problem.base, problem.pull, problem.residuals, problem.curvatures), strict=True
    ):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(first.coef, solve_glm(problem, 0.1 * problem.alpha_max()).coef)


@pytest.mark.parametrize("p", [2, 12])
def test_columns_that_repeat(p):
    # singular Hessians: no Newton step on the clusters is possible
    X, y = data("logistic", p=4)
    X = np.hstack([X] * p)
    model = SlopeClassifier(alpha=1e-3, lambda_type="lasso", tol=1e-10).fit(X, y)
    gap = sorted_l1_dual_gap(
        X, y, model.coef_[0], model.intercept_[0], 1e-3, model.lambda_, fit_intercept=True, loss="logistic"
    )
    assert model.converged_
    assert gap <= 1e-10 * model.null_objective_ + 1e-14


def test_arrays_that_need_no_check_equal_those_that_do():
    X, y = data("logistic")
    plain = SlopeClassifier(alpha=0.01).fit(X, y)
    listed = SlopeClassifier(alpha=0.01).fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(plain.coef_, listed.coef_)
    np.testing.assert_array_equal(plain.classes_, listed.classes_)
    assert plain.n_features_in_ == listed.n_features_in_ == X.shape[1]


def test_names_of_an_earlier_fit_go_with_plain_arrays():
    import pandas as pd

    X, y = data("poisson")
    model = Slope(loss="poisson", alpha=0.01).fit(pd.DataFrame(X, columns=list("abcdefgh")), y)
    assert list(model.feature_names_in_) == list("abcdefgh")
    model.fit(X[:, :5], y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 5


def test_labels_that_are_no_classes_are_still_refused():
    X, y = data("huber")
    with pytest.raises(ValueError, match="Unknown label type"):
        SlopeClassifier(loss="multinomial").fit(X, y)
