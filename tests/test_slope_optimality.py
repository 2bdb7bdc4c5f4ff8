"""SLOPE solutions against the definition: gap by numpy, KKT, cvxpy, a peer, and the rules of the problem."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from convexlaw import Slope, TwoLevelSlope, slope_path, sorted_l1_dual_gap
from convexlaw.solvers.prox import prox_sorted_l1
from convexlaw.theory.sorted_l1 import (
    amp_weights,
    bh_sequence,
    kkt_violation,
    oscar_sequence,
    sorted_l1_norm,
    sorted_l1_pattern,
)

FORMS = ("auto", "gram", "working_gram", "columns", "residual")


def make(seed: int, n: int, p: int, rho: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    y = X[:, : min(4, p)].sum(axis=1) + rng.normal(size=n) + 1.0
    return X, y


def objective(X: Any, y: np.ndarray, coef: np.ndarray, intercept: float, penalty: np.ndarray) -> float:
    r = y - X @ coef - intercept
    return float(0.5 * np.mean(r**2) + np.sort(np.abs(coef))[::-1] @ penalty)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Small problems with everything that can go wrong: duplicates, constants, ties, p > n, n = 1."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(1, 25)), draw(st.integers(1, 30))
    X, y = make(int(rng.integers(2**31)), n, p, draw(st.sampled_from([0.0, 0.5, 0.9])))
    trouble = draw(st.sampled_from(["none", "duplicates", "constant", "zero", "integers", "offset"]))
    if trouble == "duplicates":
        X[:, rng.integers(p)] = -2.0 * X[:, rng.integers(p)]
        X[:, rng.integers(p)] = X[:, rng.integers(p)]
    elif trouble == "constant":
        X[:, rng.integers(p)] = 0.1
    elif trouble == "zero":
        X[:, rng.integers(p)] = 0.0
    elif trouble == "integers":
        X = np.round(X)
    elif trouble == "offset":
        X += 100.0
    kind = draw(st.sampled_from(["random", "lasso", "oscar", "tail of zeros", "first only", "levels"]))
    lam = np.sort(rng.uniform(0.1, 1.5, p))[::-1].copy()
    if kind == "lasso":
        lam[:] = 1.0
    elif kind == "oscar":
        lam = oscar_sequence(p, 0.2, 1.0 / p)
    elif kind == "tail of zeros":
        lam[p // 2 :] = 0.0
        lam[0] = 1.5
    elif kind == "first only":
        lam[:] = 0.0
        lam[0] = 1.0
    elif kind == "levels":
        lam = np.round(lam * 2) / 2 + 0.5
    matrix = draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray, sp.csc_array, sp.csr_array]))
    return {
        "X": X,
        "seen": matrix(X),
        "y": y,
        "lam": lam,
        "alpha": float(10 ** draw(st.floats(-3, 0.3))),
        "fit_intercept": draw(st.booleans()),
        "solver": draw(st.sampled_from(FORMS)),
        "tol": draw(st.sampled_from([1e-6, 1e-9])),
    }


@given(problems())
@settings(deadline=None, max_examples=150)
def test_every_solution_is_certified(problem: dict[str, Any]) -> None:
    certify(problem)


@pytest.mark.slow
@given(problems())
@settings(deadline=None, max_examples=5000)
def test_every_solution_is_certified_at_length(problem: dict[str, Any]) -> None:
    certify(problem)


def certify(problem: dict[str, Any]) -> None:
    X, y, lam, alpha = problem["X"], problem["y"], problem["lam"], problem["alpha"]
    free = problem["fit_intercept"]
    model = Slope(lam=lam, alpha=alpha, fit_intercept=free, solver=problem["solver"], tol=problem["tol"])
    model.fit(problem["seen"], y)
    center = y.mean() if free else 0.0
    null = 0.5 * np.mean((y - center) ** 2)
    gap = sorted_l1_dual_gap(X, y, model.coef_, model.intercept_, alpha, lam, fit_intercept=free)
    rounding = 1e-13 * 0.5 * np.mean(y**2) * (1.0 + np.abs(X).max())
    # columns far from zero without an intercept, alpha tiny: the gap itself is no better than its sums are
    orders = [np.random.default_rng(k) for k in range(6)]
    shuffled = [(k.permutation(y.size), k.permutation(lam.size)) for k in orders]
    gaps = [
        sorted_l1_dual_gap(
            X[rows][:, columns],
            y[rows],
            model.coef_[columns],
            model.intercept_,
            alpha,
            lam,
            fit_intercept=free,
        )
        for rows, columns in shuffled
    ]
    rounding += 4.0 * (max(gap, *gaps) - min(gap, *gaps))
    assert -rounding <= gap <= problem["tol"] * null + rounding
    assert model.dual_gap_ >= -1e-12 * max(null, 1e-300)
    assert model.converged_
    # the optimality conditions, with the accuracy that the gap implies: 1/2 ||grad error||^2 / L <= gap
    r = y - X @ model.coef_ - model.intercept_
    if free:
        assert abs(r.mean()) <= 1e-10 * (1 + np.abs(y).max() + np.abs(X).max() * np.abs(model.coef_).max())
    scale = np.linalg.norm(X - (X.mean(axis=0) if free else 0.0), 2) ** 2 / y.size
    violation = kkt_violation(model.coef_, X.T @ (r - (r.mean() if free else 0.0)) / y.size, alpha * lam)
    slack = np.sqrt(2 * max(scale, 1e-12) * (max(gap, 0.0) + rounding)) * np.sqrt(X.shape[1])
    assert violation <= 2 * slack + 1e-9 * alpha * max(lam[0], 1e-12) * X.shape[1] + rounding


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_cvxpy(solved: Any, seed: int, free: bool) -> None:
    n, p = 40, 12
    X, y = make(seed, n, p, 0.3)
    lam, alpha = bh_sequence(p, 0.2), 0.05
    b, b0 = cp.Variable(p), cp.Variable()
    fit = y - X @ b - (b0 if free else 0.0)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(fit) / (2 * n) + alpha * cp.dotsort(cp.abs(b), lam)))
    solved(problem, 1e-13)
    model = Slope(lam=lam, alpha=alpha, fit_intercept=free, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, b.value, atol=1e-6)
    assert objective(X, y, model.coef_, model.intercept_, alpha * lam) <= problem.value + 1e-10


@pytest.mark.parametrize(("n", "p", "rho"), [(30, 200, 0.5), (60, 60, 0.0), (200, 30, 0.5), (40, 400, 0.9)])
@pytest.mark.parametrize("ratio", [0.5, 0.05])
def test_all_forms_find_the_same_optimum(n: int, p: int, rho: float, ratio: float) -> None:
    X, y = make(5, n, p, rho)
    lam = bh_sequence(p, 0.1)
    top = slope_path(X, y, lam=lam, alphas=[1e6]).alpha_max
    fits = [
        Slope(lam=lam, alpha=ratio * top, solver=form, tol=1e-12).fit(matrix, y)
        for form in FORMS
        for matrix in (X, sp.csc_array(X))
    ]
    values = [objective(X, y, m.coef_, m.intercept_, ratio * top * lam) for m in fits]
    assert max(values) - min(values) <= 2e-12 * fits[0].null_objective_
    for model in fits[1:]:
        np.testing.assert_allclose(model.coef_, fits[0].coef_, atol=1e-5)
        np.testing.assert_array_equal(sorted_l1_pattern(model.coef_), sorted_l1_pattern(fits[0].coef_))


def test_identity_design_is_the_prox() -> None:
    # a case in which a peer once returned zeros: X = I, weights (4, 3, 2, 1) / n
    y, lam = np.array([8.0, 6.0, 4.0, 2.0]), np.array([4.0, 3.0, 2.0, 1.0])
    model = Slope(lam=lam / 4, alpha=1.0, fit_intercept=False, tol=1e-14).fit(np.eye(4), y)
    np.testing.assert_allclose(model.coef_, [4.0, 3.0, 2.0, 1.0], atol=1e-12)
    rng = np.random.default_rng(0)
    y = np.round(rng.normal(size=50) * 2, 1)
    lam = oscar_sequence(50, 0.1, 0.02)
    model = Slope(lam=lam / 50, alpha=1.0, fit_intercept=False, tol=1e-14).fit(np.eye(50), y)
    expected = prox_sorted_l1(y, lam)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-12)
    np.testing.assert_array_equal(sorted_l1_pattern(model.coef_), sorted_l1_pattern(np.round(expected, 12)))


def test_members_of_a_cluster_are_equal_floats() -> None:
    X, y = make(3, 60, 40, 0.7)
    model = Slope(alpha=0.2, lambda_type="oscar", theta1=0.1, theta2=0.05, tol=1e-10).fit(X, y)
    magnitudes = np.unique(np.abs(model.coef_[model.coef_ != 0]))
    assert magnitudes.size == model.n_clusters_ < np.count_nonzero(model.coef_)
    assert magnitudes.size == 1 or np.diff(magnitudes).min() > 1e-9 * magnitudes.max()


def test_permutation_sign_and_scale_rules() -> None:
    X, y = make(7, 50, 20, 0.3)
    rng = np.random.default_rng(1)
    order, signs = rng.permutation(20), rng.choice([-1.0, 1.0], 20)
    base = Slope(alpha=0.1, tol=1e-13).fit(X, y)
    moved = Slope(alpha=0.1, tol=1e-13).fit(X[:, order] * signs, y)
    np.testing.assert_allclose(moved.coef_, signs * base.coef_[order], atol=1e-7)
    doubled = Slope(alpha=0.2, tol=1e-13).fit(X, 2 * y)
    np.testing.assert_allclose(doubled.coef_, 2 * base.coef_, atol=1e-7)
    stretched = Slope(alpha=0.3, tol=1e-13).fit(3 * X, y)
    np.testing.assert_allclose(stretched.coef_, base.coef_ / 3, atol=1e-7)
    shifted = Slope(alpha=0.1, tol=1e-13).fit(X + rng.normal(size=20), y + 5)
    np.testing.assert_allclose(shifted.coef_, base.coef_, atol=1e-7)


def test_rotated_rows_give_the_same_coefficients() -> None:
    # without an intercept the problem depends on X'X and X'y alone; centring does not commute with a rotation
    X, y = make(5, 30, 45, 0.4)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(30, 30)))[0]
    plain = Slope(alpha=0.1, fit_intercept=False, tol=1e-13).fit(X, y)
    turned = Slope(alpha=0.1, fit_intercept=False, tol=1e-13).fit(turn @ X, turn @ y)
    np.testing.assert_allclose(turned.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_array_equal(sorted_l1_pattern(turned.coef_), sorted_l1_pattern(plain.coef_))
    assert plain.coef_.any()


def test_plain_lists_will_do() -> None:
    X, y = make(5, 12, 3)
    listed = Slope(lam=[3.0, 2.0, 1.0], alpha=0.1).fit(X.tolist(), y.tolist())
    array = Slope(lam=np.array([3.0, 2.0, 1.0]), alpha=0.1).fit(X, y)
    np.testing.assert_array_equal(listed.coef_, array.coef_)


def test_two_scalings_of_the_objective(solved: Any) -> None:
    # 1/2 ||y - Xb||^2 + J_mu(b) with mu = n alpha lam has the same minimiser
    X, y = make(2, 40, 15)
    lam, alpha = bh_sequence(15), 0.08
    mu = amp_weights(alpha, lam, 40)
    b = cp.Variable(15)
    solved(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(y - X @ b) + cp.dotsort(cp.abs(b), mu))), 1e-12)
    model = Slope(lam=lam, alpha=alpha, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, b.value, atol=1e-6)


def test_constant_sequence_is_the_lasso() -> None:
    from sklearn.linear_model import Lasso

    X, y = make(4, 60, 80, 0.2)
    ours = Slope(lambda_type="lasso", alpha=0.1, tol=1e-12).fit(X, y)
    theirs = Lasso(alpha=0.1, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)


def test_two_levels_equal_their_sequence() -> None:
    X, y = make(6, 50, 20, 0.4)
    two = TwoLevelSlope(alpha=0.1, high=2.0, low=0.5, fraction=0.2, tol=1e-12).fit(X, y)
    lam = np.array([2.0] * 4 + [0.5] * 16)
    one = Slope(alpha=0.1, lam=lam, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-10)
    np.testing.assert_array_equal(two.lambda_, lam)


@pytest.mark.parametrize("scaling", ["none", "sd", "l1", "l2", "max_abs"])
@pytest.mark.parametrize("sparse", [False, True])
def test_scaling_equals_scaled_columns(scaling: str, sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = make(8, 50, 12)
    X = (X + 2.0) * rng.uniform(0.1, 10, 12) * (rng.random((50, 12)) < 0.7)
    scale = {
        "none": np.ones(12),
        "sd": X.std(axis=0),
        "l1": np.abs(X).sum(axis=0),
        "l2": np.sqrt((X**2).sum(axis=0)),
        "max_abs": np.abs(X).max(axis=0),
    }[scaling]
    alpha = 0.1 * slope_path(X / scale, y, alphas=[1e9]).alpha_max
    plain = Slope(alpha=alpha, tol=1e-13).fit(X / scale, y)
    ours = Slope(alpha=alpha, scaling=scaling, tol=1e-13).fit(sp.csr_array(X) if sparse else X, y)
    np.testing.assert_allclose(ours.coef_, plain.coef_ / scale, rtol=1e-6, atol=1e-9)
    assert ours.intercept_ == pytest.approx(plain.intercept_, rel=1e-7)


@pytest.mark.parametrize("centering", ["none", "mean", "min"])
@pytest.mark.parametrize("sparse", [False, True])
def test_centering_without_intercept_is_a_fixed_shift(centering: str, sparse: bool) -> None:
    X, y = make(9, 40, 10)
    X = np.round(X, 1) * (np.random.default_rng(0).random(X.shape) < 0.8)
    shift = {"none": np.zeros(10), "mean": X.mean(axis=0), "min": X.min(axis=0)}[centering]
    plain = Slope(alpha=0.1, fit_intercept=False, tol=1e-13).fit(X - shift, y)
    ours = Slope(alpha=0.1, fit_intercept=False, centering=centering, tol=1e-13)
    ours.fit(sp.csc_array(X) if sparse else X, y)
    np.testing.assert_allclose(ours.coef_, plain.coef_, atol=1e-8)
    np.testing.assert_allclose(ours.predict(X), plain.predict(X - shift), atol=1e-8)


def test_gap_function_by_its_definition() -> None:
    # the gap with a free intercept, from the dual problem solved by cvxpy: P - D* = P - P* at any point
    X, y = make(1, 30, 8)
    lam, alpha = bh_sequence(8), 0.2
    best = Slope(lam=lam, alpha=alpha, tol=1e-13).fit(X, y)
    smallest = objective(X, y, best.coef_, best.intercept_, alpha * lam)
    for shrink in (0.0, 0.5, 0.9, 1.0):
        coef = shrink * best.coef_
        intercept = float(np.mean(y - X @ coef))
        gap = sorted_l1_dual_gap(X, y, coef, intercept, alpha, lam)
        assert gap >= objective(X, y, coef, intercept, alpha * lam) - smallest - 1e-12
    assert gap == pytest.approx(0.0, abs=1e-12)
    value = objective(X, y, coef, 0.0, alpha * lam)
    assert value == pytest.approx(0.5 * np.mean((y - X @ coef) ** 2) + alpha * sorted_l1_norm(coef, lam))


@pytest.mark.shared
@pytest.mark.parametrize("table", ["abalone", "bodyfat", "glioma", "student", "wine"])
def test_real_tables_at_least_as_good_as_sortedl1(table: str, shared: Path) -> None:
    import sortedl1

    frame = pd.read_csv(shared / "data" / "regression" / f"{table}.csv")
    # classes as numbers, as good as any response here
    y = frame.iloc[:, 0].rank(method="dense").to_numpy(dtype=float)
    X = frame.iloc[:, 2 if table == "student" else 1 :].to_numpy(dtype=float)
    _compare_with_sortedl1(X, y, sortedl1)


@pytest.mark.parametrize("table", ["diabetes", "breast_cancer"])
def test_scikit_learns_tables_at_least_as_good_as_sortedl1(table: str) -> None:
    import sortedl1
    from sklearn import datasets

    _compare_with_sortedl1(*getattr(datasets, f"load_{table}")(return_X_y=True), sortedl1)


def _compare_with_sortedl1(X: np.ndarray, y: np.ndarray, sortedl1: Any) -> None:
    lam = bh_sequence(X.shape[1], 0.1)
    scale = X.std(axis=0)
    top = slope_path(X, y, lam=lam, scaling="sd", alphas=[1e9]).alpha_max
    for ratio in (0.5, 0.1, 0.01):
        ours = Slope(lam=lam, alpha=ratio * top, scaling="sd", tol=1e-9).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = sortedl1.Slope(lam=lam, alpha=ratio * top, scaling="sd", centering="mean", tol=1e-9).fit(
                X, y
            )
        theirs = np.ravel(peer.coef_)
        best = objective(X / scale, y, ours.coef_ * scale, ours.intercept_, ratio * top * lam)
        other = objective(
            X / scale, y, theirs * scale, float(np.ravel(peer.intercept_)[0]), ratio * top * lam
        )
        assert best <= other + 1e-9 * ours.null_objective_
        assert other - best <= 1e-6 * ours.null_objective_
