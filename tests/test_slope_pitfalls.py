"""Known ways to get SLOPE wrong, each with the case that provokes it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from convexlaw import ConvergenceWarning, Slope, TwoLevelSlope, slope_path, sorted_l1_dual_gap
from convexlaw.solvers import _slope_kernels as kernels
from convexlaw.solvers._slope_problem import Problem
from convexlaw.solvers._slope_split_kernels import split
from convexlaw.solvers._slope_store import DenseStore, WholeStore
from convexlaw.solvers._slope_view import Reduced, solve_ridged
from convexlaw.theory.sorted_l1 import bh_sequence, dual_sorted_l1_norm


def make(seed: int, n: int, p: int, rho: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    y = X[:, : min(5, p)].sum(axis=1) + rng.normal(size=n)
    return X, y


def test_gap_is_never_negative_however_the_dual_norm_rounds() -> None:
    # a candidate set emptied by rounding once made the dual norm 0 and the gap negative: false convergence
    X, y = make(0, 30, 40, 0.5)
    for lam in (np.full(40, 0.1), bh_sequence(40), np.full(40, 1 / 3)):
        path = slope_path(X, y, lam=lam, alphas=np.geomspace(1, 1e-3, 30) * 2.0)
        assert (path.dual_gaps >= -1e-13 * path.null).all()
        for k in (0, 10, 29):
            gap = sorted_l1_dual_gap(X, y, path.coefs[:, k], path.intercepts[k], path.alphas[k], lam)
            assert -1e-13 * path.null <= gap <= 1e-6 * path.null


def test_descent_does_not_stick_at_ties() -> None:
    # equal columns and a steep penalty: the optimum is a tie, from which coordinates cannot move alone
    rng = np.random.default_rng(1)
    z = rng.normal(size=(60, 6))
    X = np.repeat(z, 5, axis=1) + 0.05 * rng.normal(size=(60, 30))
    y = z @ np.array([3.0, -3.0, 2.0, 0, 0, 0]) + rng.normal(size=60)
    lam = np.linspace(2.0, 0.1, 30)
    for form in ("gram", "working_gram", "columns", "residual"):
        model = Slope(lam=lam, alpha=0.05, solver=form, tol=1e-10, max_iter=5000).fit(X, y)
        assert model.converged_
        assert model.n_clusters_ < np.count_nonzero(model.coef_)


def _reduced(seed: int, m: int) -> tuple[Reduced, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m + 5, m)) + rng.normal(size=(m + 5, 1))
    H = A.T @ A / (m + 5)
    problem = Problem(rng.normal(size=(4, m)), rng.normal(size=4), fit_intercept=False)
    part = Problem(np.eye(m), np.zeros(m), fit_intercept=False).engine(form="gram").part
    part.m = m
    part.start[: m + 1] = np.arange(m + 1)
    part.value[:m] = np.sort(rng.uniform(0.1, 1.0, m))[::-1]
    lam = 0.3 * np.sort(rng.uniform(0, 1, m))[::-1]
    cum = np.concatenate([[0.0], np.cumsum(lam)])
    d = rng.normal(size=m)
    reduced = Reduced(part, H.copy(), d - H @ part.value[:m], lam, cum, m + 5)
    del problem
    return reduced, H, d, lam


def _signed(reduced: Reduced, m: int) -> np.ndarray:
    """Every original cluster's value, through the chain of merges."""
    out = np.zeros(m)
    for k in range(m):
        j, factor = k, 1.0
        while reduced.into[j] >= 0:
            factor *= reduced.rel[j]
            j = reduced.into[j]
        out[k] = factor * reduced.c[j] if reduced.into[j] == kernels.ALIVE else 0.0
    return out


@pytest.mark.parametrize("seed", range(12))
def test_merges_keep_hessian_pull_sizes_and_ranks(seed: int) -> None:
    m = 12
    reduced, H, d, lam = _reduced(seed, m)

    def value() -> float:
        c = _signed(reduced, m)
        return float(0.5 * c @ H @ c - d @ c + np.sort(np.abs(c))[::-1] @ lam)

    before = value()
    for step in range(6):
        if step % 2 == 0:
            reduced.descend(2)
        elif reduced.live:
            reduced.newton()
        assert value() <= before + 1e-12
        before = value()
        live = reduced.seq[: reduced.live]
        U = np.zeros((m, reduced.live))
        for k in range(m):
            j, factor = k, 1.0
            while reduced.into[j] >= 0:
                factor *= reduced.rel[j]
                j = reduced.into[j]
            if reduced.into[j] == kernels.ALIVE:
                U[k, reduced.pos[j]] = factor
        np.testing.assert_allclose(reduced.H[np.ix_(live, live)], U.T @ H @ U, atol=1e-10)
        np.testing.assert_allclose(reduced.grad[live], U.T @ (d - H @ _signed(reduced, m)), atol=1e-9)
        np.testing.assert_array_equal(reduced.sizes[live], np.abs(U).sum(axis=0))
        np.testing.assert_array_equal(
            reduced.rank[: reduced.live], np.concatenate([[0], np.cumsum(reduced.sizes[live])])[:-1]
        )
        magnitudes = np.abs(reduced.c[live])
        assert (np.diff(magnitudes) <= 1e-15).all()
        assert (magnitudes > 0).all()


def test_a_split_is_the_derivative_of_the_prox() -> None:
    # the pattern of b + t g under the prox of t lam, for a tiny step t
    from convexlaw.theory.sorted_l1 import prox_sorted_l1, sorted_l1_pattern

    rng = np.random.default_rng(5)
    for _ in range(50):
        p = 14
        b = np.round(rng.normal(size=p) * 1.5) * (rng.random(p) < 0.7)
        g = rng.normal(size=p)
        lam = np.sort(rng.uniform(0, 1.5, p))[::-1].copy()
        order, start, value = np.arange(p), np.zeros(p + 2, dtype=np.int64), np.zeros(p + 2)
        sign = np.ones(p)
        m = kernels.partition_of(b, order, start, value, sign)
        new_start, new_value = np.zeros(p + 2, dtype=np.int64), np.zeros(p + 2)
        origin = np.empty(p + 1, dtype=np.int64)
        m = split(p, order, start, value, m, sign, g, lam, 1e-12, 0.0, new_start, new_value, origin)
        ours = np.zeros(p, dtype=np.int64)
        for k in range(m):
            members = order[new_start[k] : new_start[k + 1]]
            ours[members] = sign[members] * (m - k)
        t = 1e-7
        pattern = sorted_l1_pattern(np.round(prox_sorted_l1(b + t * g, t * lam), 12))
        np.testing.assert_array_equal(ours, pattern)


def test_equicorrelated_columns_keep_the_working_set_small() -> None:
    # a screening rule alone keeps almost every column here, though few are active
    X, y = make(2, 60, 3000, 0.8)
    y = X[:, :6] @ [1.0, -1.0, 1.0, -1.0, 1.0, -1.0] + np.random.default_rng(3).normal(size=60)
    problem = Problem(X, y, fit_intercept=True)
    engine = problem.engine()
    alpha = 0.1 * problem.alpha_max()
    gap = engine.solve(alpha * problem.lam, alpha * problem.cum, 1e-6 * problem.null, 100_000)
    assert gap <= 1e-6 * problem.null
    assert isinstance(engine.store, DenseStore)
    assert engine.store.w <= 400
    assert np.count_nonzero(np.abs(problem.pull) > alpha * problem.lam[-1]) > 2000


@pytest.mark.parametrize(("n", "p"), [(50, 2500), (4000, 150)], ids=["wide", "tall"])
def test_a_giant_cluster_is_taken_in_whole(n: int, p: int) -> None:
    # near alpha_max all columns of an equicorrelated X share one magnitude: no truncated set can find that
    X, y = make(3, n, p, 0.9)
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    lam = bh_sequence(p)
    alpha = 0.7 * dual_sorted_l1_norm(X.T @ (y - y.mean()) / n, lam)
    problem = Problem(X, y, lam=lam)
    engine = problem.engine()
    gap = engine.solve(alpha * lam, alpha * problem.cum, 1e-6 * problem.null, 100_000)
    assert gap <= 1e-6 * problem.null
    assert isinstance(engine.store, WholeStore)  # neither copies of the columns nor their Gram matrix
    model = Slope(lam=lam, alpha=alpha).fit(X, y)
    assert model.converged_
    assert model.n_clusters_ <= 3
    assert np.count_nonzero(model.coef_) > 0.6 * p
    gap = sorted_l1_dual_gap(X, y, model.coef_, model.intercept_, alpha, lam)
    assert gap <= 1e-6 * model.null_objective_


def test_duplicated_columns_and_more_clusters_than_rows(solved: Any) -> None:
    # singular reduced problems: the solution is not unique, its objective is
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(12, 10))
    X = np.hstack([Z, Z, -Z, 2 * Z])
    y = Z @ rng.normal(size=10) + 0.1 * rng.normal(size=12)
    lam = np.linspace(1.0, 0.2, 40)
    b = cp.Variable(40)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(y - X @ b) / 24 + 0.01 * cp.dotsort(cp.abs(b), lam)))
    solved(problem, 1e-12)
    for form in ("auto", "gram", "columns", "residual"):
        model = Slope(lam=lam, alpha=0.01, fit_intercept=False, solver=form, tol=1e-10).fit(X, y)
        value = 0.5 * np.mean((y - X @ model.coef_) ** 2) + 0.01 * np.sort(np.abs(model.coef_))[::-1] @ lam
        assert value == pytest.approx(problem.value, abs=1e-9)
        assert model.n_clusters_ <= 12


def test_newton_directions_match_numpy_and_leave_the_hessian_alone() -> None:
    for seed in range(5):
        reduced, H, d, lam = _reduced(seed, 12)
        right = np.random.default_rng(seed).normal(size=12)
        np.testing.assert_allclose(reduced._solve(right), np.linalg.solve(H, right), rtol=1e-9)
        np.testing.assert_array_equal(reduced.H, H)
        np.testing.assert_allclose(solve_ridged(H, right, 0.1), np.linalg.solve(H + 0.1 * np.eye(12), right))
        singular = np.ones((12, 12))
        reduced.H[:] = singular
        assert reduced._solve(right) is None
        np.testing.assert_array_equal(reduced.H, singular)
        del d, lam


def test_nonzero_clusters_stay_above_clusters_at_zero() -> None:
    # a coordinate that jumps below other pieces at zero would see too small a load, and climb
    lam = np.array([2.0, 1.5, 0.2])
    c, sizes, order = np.array([0.3, 0.0, 0.0]), np.ones(3, dtype=np.int64), np.arange(3)
    cum = np.concatenate([[0.0], np.cumsum(lam)])
    for k, a, best in ((0, 0.5, 0.0), (1, 1.4, 0.0), (1, 1.7, 0.2), (0, 2.3, 0.3), (0, 2.9, 0.9)):
        t, place, merges = kernels.place(a, 1.0, 1, k, c, sizes, order, order, 3, lam, cum)
        grid = np.linspace(0.0, 2.0, 2001)
        others = np.delete(c, k)
        penalty = [np.sort(np.append(others, v))[::-1] @ lam for v in grid]
        exact = grid[np.argmin(0.5 * grid**2 - a * grid + penalty)]
        assert t == pytest.approx(best, abs=1e-12) == pytest.approx(exact, abs=1e-3)
        assert not merges
        assert 0 <= place < 3


def test_one_compiled_version_of_every_kernel() -> None:
    # memory order, dtype, sparsity and read-only memory are settled before compiled code sees them;
    # in a process of its own: other tests call the kernels with arrays of their own
    code = """
import numpy as np
import scipy.sparse as sp
from convexlaw import Slope, slope_path
from convexlaw.solvers import _slope_kernels as kernels
from convexlaw.solvers import _slope_newton_kernels as newton
from convexlaw.solvers import _slope_reduce_kernels as reduction
from convexlaw.solvers._slope_model_kernels import alternate
from convexlaw.solvers._slope_split_kernels import split
from convexlaw.solvers._slope_sweep_kernels import sweep

rng = np.random.default_rng(6)
X = rng.normal(size=(40, 30)) + rng.normal(size=(40, 1))
y = X[:, :3].sum(axis=1) + rng.normal(size=40)
frozen = X.copy()
frozen.setflags(write=False)
for matrix in (X, np.asfortranarray(X), X.astype(np.float32), np.round(X).astype(int), frozen, X > 0):
    Slope(alpha=0.05).fit(matrix, y)
for matrix in (sp.csc_array(X), sp.csr_array(X), sp.csc_matrix(X.astype(np.float32))):
    Slope(alpha=0.05).fit(matrix, y)
for form in ("gram", "working_gram", "columns", "residual"):
    slope_path(X, y, n_alphas=5, solver=form)
used = (
    alternate, sweep, split, newton.advance, reduction.descend, reduction.gram_reduce,
    kernels.certificate, kernels.expand,
)
several = [str(k) for k in used if len(k.signatures) != 1]
assert not several, several
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_small_alpha_is_reached_directly() -> None:
    # continuation from alpha_max would drag thousands of tied columns along
    X, y = make(7, 60, 3000, 0.8)
    y = X[:, :6] @ [1.0, -1.0, 1.0, -1.0, 1.0, -1.0] + np.random.default_rng(3).normal(size=60)
    problem = Problem(X, y)
    engine = problem.engine()
    alpha = 0.02 * problem.alpha_max()
    gap = engine.solve(alpha * problem.lam, alpha * problem.cum, 1e-6 * problem.null, 100_000)
    assert gap <= 1e-6 * problem.null
    assert engine.store.w <= 600


def test_the_certificate_is_over_all_columns() -> None:
    # stopped at once, the working set may be solved while the problem is not: the gap must be the latter
    X, y = make(8, 30, 50)
    top = slope_path(X, y, alphas=[1e9]).alpha_max
    model = Slope(alpha=top / 100, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"duality gap of .* above tol = 1e-06: raise max_iter"):
        model.fit(X, y)
    assert not model.converged_
    gap = sorted_l1_dual_gap(X, y, model.coef_, model.intercept_, top / 100, model.lambda_)
    assert model.dual_gap_ == pytest.approx(gap, rel=1e-6)
    assert model.dual_gap_ > 1e-3 * model.null_objective_


def test_shifted_data_give_the_same_coefficients() -> None:
    X, y = make(9, 80, 30, 0.3)
    base = Slope(alpha=0.1, tol=1e-14)
    moved = Slope(alpha=0.1, tol=1e-14)
    base.fit(X, y)
    moved.fit(X + 1e6, y)
    np.testing.assert_allclose(moved.coef_, base.coef_, atol=1e-6)
    assert moved.n_clusters_ == base.n_clusters_ > 0
    loose = Slope(alpha=0.1).fit(X + 1e6, y)
    assert loose.converged_
    np.testing.assert_allclose(loose.coef_, base.coef_, atol=1e-2)


@pytest.mark.parametrize("form", ["auto", "gram", "working_gram", "columns", "residual"])
@pytest.mark.parametrize("sparse", [False, True])
def test_integer_weights_equal_repeated_rows(form: str, sparse: bool) -> None:
    X, y = make(10, 40, 15, 0.2)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    seen = sp.csc_array(X) if sparse else X
    weighted = Slope(alpha=0.08, solver=form, tol=1e-14).fit(seen, y, sample_weight=weights)
    repeated = Slope(alpha=0.08, solver=form, tol=1e-14).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    assert weighted.intercept_ == pytest.approx(repeated.intercept_, abs=1e-8)
    assert weighted.null_objective_ == pytest.approx(repeated.null_objective_, rel=1e-12)


@pytest.mark.parametrize("scaling", ["sd", "l1", "l2", "max_abs"])
def test_integer_weights_equal_repeated_rows_when_scaled(scaling: str) -> None:
    X, y = make(11, 40, 10)
    weights = np.random.default_rng(1).integers(0, 3, 40)
    weighted = Slope(alpha=0.01, scaling=scaling, tol=1e-14).fit(X, y, sample_weight=weights)
    repeated = Slope(alpha=0.01, scaling=scaling, tol=1e-14).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-10)


def test_tiny_columns_are_not_called_converged_at_zero() -> None:
    # an absolute tolerance once returned zeros for values below .07 and a small alpha
    rng = np.random.default_rng(0)
    X = 0.07 * rng.random((20, 1))
    y = 10.0 * X[:, 0] + 0.01 * rng.normal(size=20)
    model = Slope(lambda_type="lasso", alpha=1e-4).fit(X, y)
    centered = X[:, 0] - X.mean()
    exact = (centered @ (y - y.mean()) / 20 - 1e-4) / (centered @ centered / 20)
    assert model.coef_[0] == pytest.approx(exact, rel=1e-3)


def test_regularisation_that_two_solvers_disagreed_on() -> None:
    # n = 10, p = 20, alpha = .005, no intercept: a gap that blew up elsewhere
    X, y = make(12, 10, 20)
    model = Slope(alpha=0.005, fit_intercept=False, tol=1e-10).fit(X, y)
    gap = sorted_l1_dual_gap(X, y, model.coef_, 0.0, 0.005, model.lambda_, fit_intercept=False)
    assert gap <= 1e-10 * model.null_objective_


def test_no_warning_in_ordinary_use() -> None:
    X, y = make(13, 50, 100, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Slope(alpha=0.05).fit(X, y).predict(X)
        TwoLevelSlope(alpha=0.05, low=0.0, fraction=0.3).fit(X, y)
        slope_path(X, y, n_alphas=10)


def test_weighted_quadratics_are_open_to_other_losses(solved: Any) -> None:
    """The engine takes any weights and target: one proximal Newton step of the logistic loss, by hand."""
    from convexlaw.solvers._slope_design import Design
    from convexlaw.solvers._slope_engine import Engine

    rng = np.random.default_rng(14)
    X, _ = make(14, 60, 12)
    label = (X[:, 0] + rng.logistic(size=60) > 0).astype(float)
    lam = 0.02 * bh_sequence(12)
    coef, b0 = np.zeros(12), 0.0
    for _ in range(12):
        eta = X @ coef + b0
        mean = 1 / (1 + np.exp(-eta))
        weights = mean * (1 - mean) / 60
        response = eta + (label - mean) / (60 * weights)
        design = Design(X, weights, intercept=True, tol=1e-12)
        center = weights @ response / weights.sum()
        engine = Engine(design, design.root * (response - center))
        engine.start_at(coef)
        cum = np.concatenate([[0.0], np.cumsum(lam)])
        engine.solve(lam, cum, 1e-12, 10_000)
        coef = engine.coef()
        b0 = float(center - design.shift @ coef)
    b, c = cp.Variable(12), cp.Variable()
    loss = cp.sum(cp.logistic(X @ b + c) - cp.multiply(label, X @ b + c)) / 60
    problem = cp.Problem(cp.Minimize(loss + cp.dotsort(cp.abs(b), lam)))
    solved(problem, 1e-11)
    np.testing.assert_allclose(coef, b.value, atol=1e-5)
    eta: Any = X @ coef + b0
    value = np.mean(np.logaddexp(0, eta) - label * eta) + np.sort(np.abs(coef))[::-1] @ lam
    assert value <= problem.value + 1e-9
