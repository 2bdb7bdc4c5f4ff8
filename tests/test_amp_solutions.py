"""SLOPE-AMP: its fixed points are SLOPE solutions, it follows the theory, it says when it fails."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.simulations.linear_model import design_matrix, simulate
from convexlaw.solvers._first_order import proximal_descent
from convexlaw.solvers.amp import amp_slope
from convexlaw.theory.designs import fit_prior
from convexlaw.theory.scalar_limit import BH, Gaussian, KLevel, Lasso, Oscar, Prior, TwoLevel, Weights
from convexlaw.theory.sorted_l1 import (
    amp_weights,
    bh_sequence,
    dual_sorted_l1_norm,
    kkt_violation,
    sorted_l1_norm,
)
from convexlaw.theory.state_evolution import estimate_from_fit, solve, trajectory

BG = Prior.bernoulli_gaussian(0.1)
SHAPES = [
    Lasso(1.5),
    TwoLevel(1.8, 1.0, 0.25),
    TwoLevel(2.0, 0.0, 0.5),
    BH(0.8, 0.2),
    Oscar(0.9, 1.0),
    KLevel([2.0, 1.5, 1.0], [0.05, 0.1]),
    Gaussian(0.8, 0.2, 0.5),
    Weights(tuple(np.linspace(2.4, 1.0, 9))),
]


def gap(X, y, b, lam):
    """Primal minus dual at the scaled residual, from the definitions."""
    r = y - X @ b
    theta = r / max(1.0, dual_sorted_l1_norm(X.T @ r, lam))
    return 0.5 * r @ r + sorted_l1_norm(b, lam) - (y @ theta - 0.5 * theta @ theta)


@pytest.fixture(scope="module")
def model():
    return simulate(BG, 0.5, 0.2, 800, rng=0)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{type(s).__name__}")
def test_every_mode_returns_the_solution_of_its_problem(model, shape):
    X, y = model.X, model.y
    scale = 0.5 * y @ y
    state = solve(BG, shape, 0.5, 0.2)
    by_alpha = amp_slope(X, y, shape)
    by_theory = amp_slope(X, y, shape, prior=BG, sigma=0.2)
    by_lambda = amp_slope(X, y, lam=state.lam)
    for result in (by_alpha, by_theory, by_lambda):
        assert result.converged
        assert gap(X, y, result.coef, result.lam) <= 1e-6 * scale
        assert result.gap == pytest.approx(gap(X, y, result.coef, result.lam), abs=2e-6 * scale)
        assert result.n_clusters == np.unique(np.abs(result.coef[result.coef != 0])).size
        assert (np.diff(result.lam) <= 0).all()
    # the data-driven mode: lam = alpha ||y - X b|| / sqrt(n) exactly (columns of norm 1)
    unit = np.linalg.norm(X) / math.sqrt(800)
    residual = unit * np.linalg.norm(y - X @ by_alpha.coef) / math.sqrt(y.size)
    np.testing.assert_allclose(by_alpha.lam, shape.weights(800) * residual, rtol=1e-3)
    # the theory's thresholds: lam = alpha tau (1 - m/n) with the m of the solution; m jumps by whole numbers,
    # so that a finite problem may have no such point, and the last step's m is taken
    close = 0.02 if by_theory.method != "exact solver" else 0.06
    share = by_theory.n_clusters / y.size
    np.testing.assert_allclose(by_theory.lam, shape.weights(800) * unit * state.tau * (1 - share), rtol=close)
    assert by_alpha.lam[0] == pytest.approx(by_lambda.lam[0], rel=0.3)
    assert ((by_lambda.coef - model.beta) ** 2).mean() == pytest.approx(state.mse, rel=0.4)


def test_matches_the_solver_and_a_general_convex_program():
    import cvxpy as cp

    model = simulate(Prior.parse("2:0.1, -2:0.1"), 0.7, 0.5, 60, rng=1)
    lam = 0.6 * bh_sequence(60, 0.2)
    found = amp_slope(model.X, model.y, lam=lam, tol=1e-10)
    b = cp.Variable(60)
    steps = -np.diff(np.append(lam, 0.0))
    penalty = steps[-1] * cp.norm1(b)
    penalty += sum(d * cp.sum_largest(cp.abs(b), k + 1) for k, d in enumerate(steps[:-1]) if d > 0)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(model.y - model.X @ b) + penalty))
    problem.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(found.coef, b.value, atol=1e-4)
    assert kkt_violation(found.coef, model.X.T @ (model.y - model.X @ found.coef), lam) < 1e-5

    from convexlaw.solvers.path import slope_path

    path = slope_path(model.X, model.y, alphas=[1 / model.y.size], lam=lam, fit_intercept=False, tol=1e-12)
    np.testing.assert_allclose(found.coef, path.coefs[:, 0], atol=1e-5)
    np.testing.assert_allclose(amp_weights(1 / model.y.size, lam, model.y.size), lam, rtol=1e-12)


def test_sparse_and_scaled_designs_give_the_same_problem():
    model = simulate(BG, 0.6, 0.2, 500, design="bernoulli", options={"density": 0.3}, rng=2)
    assert sparse.issparse(model.X)
    dense = model.X.toarray()
    lam = 0.25 * bh_sequence(500, 0.2)
    a, b = (amp_slope(X, model.y, lam=lam, tol=1e-9).coef for X in (model.X, dense))
    np.testing.assert_allclose(a, b, atol=1e-6)
    csr = amp_slope(sparse.csr_array(model.X), model.y, lam=lam, tol=1e-9).coef
    np.testing.assert_allclose(a, csr, atol=1e-6)
    # columns of norm 7: coefficients over 7, penalties times 7; so for the thresholds in units of tau
    seven = amp_slope(7 * dense, model.y, lam=7 * lam, tol=1e-9)
    np.testing.assert_allclose(7 * seven.coef, b, atol=1e-6)
    plain, wide = (amp_slope(k * dense, model.y, BH(0.8, 0.2), tol=1e-9) for k in (1, 7))
    np.testing.assert_allclose(7 * wide.coef, plain.coef, atol=1e-6)
    np.testing.assert_allclose(wide.lam, 7 * plain.lam, rtol=1e-6)
    assert 7 * wide.tau == pytest.approx(plain.tau, rel=1e-3)
    theory = [amp_slope(k * dense, model.y, BH(0.8, 0.2), prior=BG.scaled(1 / k), sigma=0.2) for k in (1, 7)]
    np.testing.assert_allclose(7 * theory[1].coef, theory[0].coef, atol=1e-6)


def test_data_driven_thresholds_follow_the_scale_of_y(model):
    one, ten = (amp_slope(model.X, k * model.y, BH(0.8, 0.2), tol=1e-10) for k in (1.0, 10.0))
    np.testing.assert_allclose(ten.coef, 10 * one.coef, atol=1e-8)
    np.testing.assert_allclose(ten.lam, 10 * one.lam, rtol=1e-8)


def test_noise_level_follows_the_state_evolution():
    """||z_t|| / sqrt(n) tracks tau_t, and the messages are signals plus Gaussian noise of that size."""
    prior, shape, p = Prior.parse("3:0.15"), TwoLevel(1.9, 1.2, 0.1), 3000
    model = simulate(prior, 0.6, 0.4, p, rng=5)
    taus = trajectory(prior, shape, 0.6, 0.4, 12)
    for steps in (1, 3, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = amp_slope(
                model.X,
                model.y,
                shape,
                prior=prior,
                sigma=0.4,
                max_iter=steps,
                polish=False,
                fallback=False,
                tol=0,
            )
        assert result.tau == pytest.approx(taus[steps], rel=0.06)
        noise = result.estimates - model.beta
        assert noise.std() == pytest.approx(result.tau, rel=0.06)
        assert abs((noise**4).mean() / noise.var() ** 2 - 3.0) < 0.35
    done = amp_slope(model.X, model.y, shape, prior=prior, sigma=0.4)
    state = solve(prior, shape, 0.6, 0.4)
    assert done.tau == pytest.approx(state.tau, rel=0.04)
    found = estimate_from_fit(model.X, model.y, done.coef, sigma=0.4, lam=done.lam / model.y.size)
    assert found.tau == pytest.approx(state.tau, rel=0.06)
    assert found.mse == pytest.approx(((done.coef - model.beta) ** 2).mean(), rel=0.15)
    assert found.penalty.values[0] == pytest.approx(shape.alpha1, rel=0.1)
    fitted = fit_prior(done.estimates, done.tau)
    assert fitted.epsilon == pytest.approx(0.15, abs=0.02)
    assert max(fitted.means) == pytest.approx(3.0, abs=0.15)


def test_damping_changes_the_way_not_the_solution(model):
    lam = solve(BG, BH(0.8, 0.2), 0.5, 0.2).lam
    plain = amp_slope(model.X, model.y, lam=lam, tol=1e-9)
    damped = amp_slope(model.X, model.y, lam=lam, tol=1e-9, damping=0.3, polish=False, fallback=False)
    np.testing.assert_allclose(damped.coef, plain.coef, atol=1e-4)
    assert damped.method == "amp"


def test_failures_are_seen_and_finished_by_the_solver():
    rng = np.random.default_rng(0)
    X = design_matrix("equicorrelated", 120, 240, rng, rho=0.7)
    beta = np.zeros(240)
    beta[:10] = 3.0
    y = X @ beta + 0.3 * rng.standard_normal(120)
    lam = 0.1 * bh_sequence(240, 0.1)
    result = amp_slope(X, y, lam=lam, tol=1e-7)
    assert result.converged
    assert result.method == "exact solver"
    assert gap(X, y, result.coef, lam) <= 1e-7 * 0.5 * y @ y
    with pytest.warns(ConvergenceWarning, match="fallback=True"):
        bare = amp_slope(X, y, lam=lam, tol=1e-7, fallback=False, polish=False)
    assert not bare.converged
    assert bare.relative_gap > 1e-7
    # thresholds far too low: message passing grows; its own scaled problem is still solved
    with pytest.warns(ConvergenceWarning):
        low = amp_slope(X, y, Lasso(0.2), fallback=False, polish=False, max_iter=400)
    assert not low.converged
    solved = amp_slope(X, y, BH(1.0, 0.1), tol=1e-7)
    assert solved.converged
    residual = np.linalg.norm(X) / math.sqrt(240) * np.linalg.norm(y - X @ solved.coef) / math.sqrt(120)
    np.testing.assert_allclose(solved.lam, bh_sequence(240, 0.1) * residual, rtol=1e-3)


def test_zero_solutions_and_zero_responses(model):
    top = dual_sorted_l1_norm(model.X.T @ model.y, bh_sequence(800, 0.1))
    none = amp_slope(model.X, model.y, lam=1.01 * top * bh_sequence(800, 0.1))
    assert none.converged
    assert not none.coef.any()
    assert none.n_clusters == 0
    empty = amp_slope(model.X, np.zeros_like(model.y), lam=bh_sequence(800, 0.1))
    assert empty.converged
    assert not empty.coef.any()


@pytest.mark.slow
def test_needs_a_third_of_the_products_of_fista():
    """n = 2000, p = 4000, BH q = .1 at half of alpha_max, 100 signals, SNR 2, relative gap 1e-6."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = design_matrix("gaussian", 2000, 4000, rng)
        beta = np.zeros(4000)
        beta[rng.choice(4000, 100, replace=False)] = rng.choice([-1.0, 1.0], 100)
        signal = X @ beta
        y = signal + math.sqrt(signal.var() / 2) * rng.standard_normal(2000)
        lam = bh_sequence(4000, 0.1)
        lam = 0.5 * dual_sorted_l1_norm(X.T @ y, lam) * lam
        ours = amp_slope(X, y, lam=lam, tol=1e-6)
        theirs = proximal_descent(X, y, lam, tol=1e-6)
        assert ours.converged
        assert ours.method != "exact solver"
        assert theirs.converged
        ratios.append(theirs.n_products / ours.n_products)
    assert np.mean(ratios) >= 3.0


def test_first_order_yardsticks_reach_the_same_solution(model):
    lam = solve(BG, BH(0.8, 0.2), 0.5, 0.2).lam.weights(800)
    exact = amp_slope(model.X, model.y, lam=lam, tol=1e-10).coef
    fast = proximal_descent(model.X, model.y, lam, tol=1e-9)
    slow = proximal_descent(model.X, model.y, lam, accelerated=False, tol=1e-7)
    assert fast.converged
    assert slow.converged
    assert fast.n_products < 0.5 * slow.n_products
    np.testing.assert_allclose(fast.coef, exact, atol=1e-3)
    seen = []
    proximal_descent(model.X, model.y, lam, max_iter=3, callback=lambda k, b: seen.append(k))
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda X, y: amp_slope(X, y), "needs penalty"),
        (lambda X, y: amp_slope(X, y, Lasso(1.0), lam=Lasso(1.0)), "no penalty"),
        (lambda X, y: amp_slope(X, y, Lasso(1.0), mode="newton"), "the modes are"),
        (lambda X, y: amp_slope(X, y, Lasso(1.0), prior=BG), "needs prior and sigma"),
        (lambda X, y: amp_slope(X, y[:-1], Lasso(1.0)), "shape"),
        (lambda X, y: amp_slope(X, y, np.ones(3)), "one weight a rank"),
        (lambda X, y: amp_slope(X, y, lam=np.arange(X.shape[1])), "must not increase"),
        (lambda X, y: amp_slope(X, y, lam=np.zeros(X.shape[1])), "0 at every rank"),
        (lambda X, y: amp_slope(X, y, Lasso(1.0), damping=1.0), "damping"),
        (lambda X, y: amp_slope(np.where(X > 2, np.nan, X) * np.nan, y, Lasso(1.0)), "NaN"),
        (lambda X, y: amp_slope(np.zeros_like(X), y, Lasso(1.0)), "all zeros"),
    ],
)
def test_bad_input_names_the_rule(model, call, rule):
    with pytest.raises(ConvexlawError, match=rule):
        call(model.X, model.y)


def test_result_prints_and_tabulates(model):
    result = amp_slope(model.X, model.y, BH(0.8, 0.2))
    assert len(str(result).splitlines()) <= 12
    assert result.to_frame().shape == (result.n_iter + 1, 2)
    assert result.n_products >= 2 * result.n_iter
