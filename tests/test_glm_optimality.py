"""Every loss against independent optima: cvxpy, statsmodels, sortedl1, the definition of the duality gap."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from convexlaw import Slope, SlopeClassifier, TwoLevelSlope, slope_path, sorted_l1_dual_gap
from convexlaw.solvers.glm import mean_deviance
from convexlaw.theory.sorted_l1 import kkt_violation, penalty_sequence, sorted_l1_norm

LOSSES = ("logistic", "multinomial", "poisson", "huber", "quadratic")


def make(loss: str, n: int, p: int, seed: int = 0, rho: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    eta = X[:, :3] @ [0.8, -0.8, 0.4]
    if loss == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    if loss == "multinomial":
        return X, np.digitize(eta + rng.logistic(size=n), [-1.0, 1.0])
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.7 * eta)).astype(float)
    if loss == "huber":
        return X, eta + 0.5 * rng.standard_t(1.5, size=n)
    other = X[:, 2:5] @ [1.0, -1.0, 0.3] + 2.0
    return X, np.column_stack([eta, other]) + rng.normal(size=(n, 2))


def model_of(loss: str, **options: Any) -> Any:
    if loss in ("logistic", "multinomial"):
        return SlopeClassifier(loss=loss, **options)
    return Slope(loss=loss, **options)


def coefs_of(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (p, m) and intercepts (m,)."""
    return np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)


def objective(loss: str, X: Any, y: Any, B: Any, b0: Any, alpha: float, lam: Any, **more: Any) -> float:
    offset = more.pop("offset", None)
    eta = np.asarray(X @ B) + b0
    eta = eta if offset is None else eta + np.reshape(offset, (-1, 1))
    return 0.5 * mean_deviance(loss, y, eta, **more) + alpha * sorted_l1_norm(B.ravel(), lam)


def reference(
    solved: Any, loss: str, X: Any, y: Any, alpha: float, lam: Any, w: Any, *, free: bool, offset: Any = 0.0
) -> float:
    """Optimal value by cvxpy, from the textbook form of the loss."""
    n, p = X.shape
    m = {"multinomial": 3, "quadratic": 2}.get(loss, 1)
    B, b0 = cp.Variable((p, m)), cp.Variable((1, m))
    eta = X @ B + np.ones((n, 1)) @ b0 * float(free)
    w = w / w.sum()
    if loss == "logistic":
        fit = w @ (cp.logistic(eta[:, 0] + offset) - cp.multiply(y, eta[:, 0] + offset))
    elif loss == "multinomial":
        fit = w @ (cp.log_sum_exp(eta, axis=1) - cp.sum(cp.multiply(np.eye(3)[y], eta), axis=1))
    elif loss == "poisson":
        saturated = np.where(y > 0, y * np.log(np.maximum(y, 1.0)) - y, 0.0)
        fit = w @ (cp.exp(eta[:, 0] + offset) - cp.multiply(y, eta[:, 0] + offset)) + w @ saturated
    elif loss == "huber":
        fit = 0.5 * (w @ cp.huber(y - eta[:, 0] - offset, 1.345))
    else:
        fit = 0.5 * cp.sum(cp.multiply(np.tile(w[:, None], (1, m)), cp.square(y - eta)))
    penalty = alpha * cp.dotsort(cp.abs(cp.vec(B, order="F")), lam) if alpha > 0 else 0.0
    problem = cp.Problem(cp.Minimize(fit + penalty))
    return float(solved(problem, 1e-10).value)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "p"), [(40, 6), (20, 30)])
@pytest.mark.parametrize("free", [True, False])
def test_objective_is_that_of_cvxpy(solved: Any, loss: str, n: int, p: int, free: bool) -> None:
    X, y = make(loss, n, p)
    w = np.random.default_rng(1).integers(1, 4, n).astype(float)
    width = {"multinomial": 3, "quadratic": 2}.get(loss, 1)
    lam = penalty_sequence("oscar", p * width, theta1=1.0, theta2=0.2)
    alpha = 0.02 if loss != "multinomial" else 0.005
    model = model_of(loss, alpha=alpha, lam=lam, fit_intercept=free, tol=1e-9).fit(X, y, sample_weight=w)
    B, b0 = coefs_of(model)
    assert np.count_nonzero(B)
    ours = objective(loss, X, y, B, b0, alpha, lam, sample_weight=w)
    best = reference(solved, loss, X, y, alpha, lam, w, free=free)
    assert ours == pytest.approx(best, abs=1e-6 * max(1.0, best))
    assert model.converged_


@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber"])
def test_offset_by_cvxpy(solved: Any, loss: str) -> None:
    X, y = make(loss, 40, 5, seed=3)
    offset = np.random.default_rng(4).normal(size=40)
    lam = penalty_sequence("bh", 5, q=0.2)
    model = model_of(loss, alpha=0.05, lam=lam, tol=1e-9).fit(X, y, offset=offset)
    B, b0 = coefs_of(model)
    ours = objective(loss, X, y, B, b0, 0.05, lam, offset=offset)
    best = reference(solved, loss, X, y, 0.05, lam, np.ones(40), free=True, offset=offset)
    assert ours == pytest.approx(best, abs=1e-6 * max(1.0, best))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(300, 12), (60, 150), (40, 900)])
@pytest.mark.parametrize("matrix", [np.asfortranarray, sp.csc_array, sp.csr_array])
def test_gap_by_definition_and_kkt(loss: str, shape: tuple[int, int], matrix: Any) -> None:
    X, y = make(loss, *shape, seed=5)
    X[np.abs(X) < 0.5] = 0.0
    path = slope_path(matrix(X), y, loss=loss, n_alphas=12, alpha_min_ratio=0.05, scaling="sd")
    scale = X.std(axis=0)
    lam = path.lambda_
    for k in range(path.alphas.size):
        B, b0 = path.coefs[..., k], path.intercepts[..., k]
        alpha = path.alphas[k]
        seen = B * (scale if B.ndim == 1 else scale[:, None])
        gap = sorted_l1_dual_gap(
            X / scale, y, seen, b0, alpha, lam, fit_intercept=True, loss=loss, threshold=1.345
        )
        assert -1e-12 <= gap / path.null <= 1.05e-6
        assert gap == pytest.approx(path.dual_gaps[k], abs=1e-9 * path.null)
    assert (path.dual_gaps >= -1e-14 * path.null).all()
    assert path.converged.all()


@pytest.mark.parametrize("loss", LOSSES)
def test_kkt_conditions_hold(loss: str) -> None:
    X, y = make(loss, 80, 30, seed=6)
    model = model_of(loss, alpha=0.01, tol=1e-13).fit(X, y)
    B, b0 = coefs_of(model)
    eta = X @ B + b0
    if loss == "logistic":
        R = y[:, None] - 1 / (1 + np.exp(-eta))
    elif loss == "multinomial":
        R = np.eye(3)[y] - softmax(eta, axis=1)
    elif loss == "poisson":
        R = y[:, None] - np.exp(eta)
    elif loss == "huber":
        R = np.clip(y[:, None] - eta, -1.345, 1.345)
    else:
        R = y - eta
    np.testing.assert_allclose(R.mean(axis=0), 0.0, atol=1e-12)
    pull = (X.T @ R / 80).T.ravel()
    assert kkt_violation(B.T.ravel(), pull, 0.01 * model.lambda_) < 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_alpha_max_is_exact(loss: str) -> None:
    X, y = make(loss, 50, 20, seed=7)
    top = slope_path(X, y, loss=loss, n_alphas=2).alpha_max
    assert not np.any(model_of(loss, alpha=top * (1 + 1e-9)).fit(X, y).coef_)
    assert np.any(model_of(loss, alpha=top * (1 - 1e-4), tol=1e-12).fit(X, y).coef_)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_without_penalty_it_is_the_glm_of_statsmodels(loss: str) -> None:
    import statsmodels.api as sm

    X, y = make(loss, 120, 5, seed=8)
    rng = np.random.default_rng(9)
    w, offset = rng.integers(1, 4, 120).astype(float), 0.3 * rng.normal(size=120)
    family = sm.families.Binomial() if loss == "logistic" else sm.families.Poisson()
    peer = sm.GLM(y, sm.add_constant(X), family=family, freq_weights=w, offset=offset).fit(tol=1e-14)
    model = model_of(loss, alpha=0.0).fit(X, y, sample_weight=w, offset=offset)
    np.testing.assert_allclose(np.ravel(model.coef_), peer.params[1:], atol=1e-6)
    np.testing.assert_allclose(np.ravel(model.intercept_), peer.params[0], atol=1e-6)
    assert model.deviance(X, y, sample_weight=w, offset=offset) * w.sum() == pytest.approx(peer.deviance)


def test_without_penalty_multinomial_and_huber(solved: Any) -> None:
    import statsmodels.api as sm

    X, y = make("multinomial", 150, 4, seed=10)
    peer = sm.MNLogit(y, sm.add_constant(X)).fit(disp=False, method="newton")
    model = SlopeClassifier(loss="multinomial", alpha=0.0).fit(X, y)
    assert -0.5 * 150 * model.deviance(X, y) == pytest.approx(peer.llf, rel=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict(), atol=1e-5)
    X, y = make("huber", 100, 4, seed=11)
    fit = Slope(loss="huber", alpha=0.0).fit(X, y)
    best = reference(solved, "huber", X, y, 0.0, np.ones(4), np.ones(100), free=True)
    assert 0.5 * fit.deviance(X, y) == pytest.approx(best, abs=1e-7)


def test_several_responses_without_penalty_are_least_squares() -> None:
    X, Y = make("quadratic", 60, 5, seed=12)
    model = Slope(alpha=0.0).fit(X, Y)
    design = np.column_stack([np.ones(60), X])
    best = np.linalg.lstsq(design, Y)[0]
    np.testing.assert_allclose(model.coef_, best[1:].T, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, best[0], atol=1e-8)


def test_two_equal_responses_share_their_clusters() -> None:
    X, Y = make("quadratic", 60, 8, seed=13)
    twice = np.column_stack([Y[:, 0], Y[:, 0]])
    model = Slope(alpha=0.1, tol=1e-12).fit(X, twice)
    np.testing.assert_allclose(model.coef_[0], model.coef_[1], atol=1e-8)
    # each pair of equal coefficients takes two ranks: half of both objectives is that of one response
    lam = model.lambda_.reshape(8, 2).sum(axis=1)
    one = Slope(alpha=0.05, lam=lam, tol=1e-12).fit(X, Y[:, 0])
    assert np.count_nonzero(one.coef_)
    np.testing.assert_allclose(model.coef_[0], one.coef_, atol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "poisson"])
def test_objective_is_not_above_that_of_sortedl1(loss: str) -> None:
    sortedl1 = pytest.importorskip("sortedl1")
    X, y = make(loss, 70, 40, seed=14)
    width = 2 if loss == "multinomial" else 1
    lam = penalty_sequence("bh", 40 * width, q=0.1)
    alpha = 0.02
    peer = sortedl1.Slope(lam=lam, alpha=alpha, loss=loss, tol=1e-9).fit(X, y.astype(float))
    path = slope_path(X, y, loss=loss, alphas=[alpha], lam=lam, reference=loss == "multinomial", tol=1e-10)
    B = path.coefs[..., 0].reshape(40, width)
    theirs = np.asarray(peer.coef_, dtype=float).reshape(40, width)
    np.testing.assert_allclose(B, theirs, atol=2e-4)
    if width == 1:
        mine = objective(loss, X, y, B, path.intercepts[0], alpha, lam)
        other = objective(loss, X, y, theirs, peer.intercept_, alpha, lam)
        assert mine == pytest.approx(other, abs=1e-6)
        assert mine <= other + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_integer_weights_are_repeated_rows(loss: str) -> None:
    X, y = make(loss, 40, 60, seed=15)
    w = np.random.default_rng(16).integers(0, 4, 40)
    w[:3] = 1
    path = slope_path(X, y, loss=loss, sample_weight=w, n_alphas=8, alpha_min_ratio=0.1, tol=1e-11)
    again = slope_path(
        np.repeat(X, w, axis=0), np.repeat(y, w, axis=0), loss=loss, alphas=path.alphas, tol=1e-11
    )
    np.testing.assert_allclose(path.coefs, again.coefs, atol=2e-5)
    np.testing.assert_allclose(path.deviance_ratios, again.deviance_ratios, atol=1e-8)


def test_two_level_penalty_of_counts(solved: Any) -> None:
    X, y = make("poisson", 60, 10, seed=17)
    model = TwoLevelSlope(alpha=0.05, high=2.0, low=0.0, fraction=0.3, loss="poisson", tol=1e-9).fit(X, y)
    lam = np.repeat([2.0, 0.0], [3, 7])
    np.testing.assert_array_equal(model.lambda_, lam)
    B, b0 = coefs_of(model)
    best = reference(solved, "poisson", X, y, 0.05, lam, np.ones(60), free=True)
    assert objective("poisson", X, y, B, b0, 0.05, lam) == pytest.approx(best, abs=1e-6)


def test_a_path_is_its_single_solutions() -> None:
    for loss in LOSSES:
        X, y = make(loss, 50, 40, seed=18)
        path = slope_path(X, y, loss=loss, n_alphas=10, alpha_min_ratio=0.1, tol=1e-10)
        k = path.alphas.size // 2
        model = model_of(loss, alpha=path.alphas[k], tol=1e-10).fit(X, y)
        B, _ = coefs_of(model)
        np.testing.assert_allclose(path.coefs[..., k].reshape(B.shape), B, atol=1e-4)
        assert path.deviance(X, y)[k] == pytest.approx(model.deviance(X, y), rel=1e-6)
        ratio = 1.0 - 0.5 * path.deviance(X, y) / path.null
        np.testing.assert_allclose(path.deviance_ratios, ratio, atol=1e-9)


def test_reference_and_symmetric_classes_differ_in_the_penalty_alone() -> None:
    X, y = make("multinomial", 90, 5, seed=19)
    full = SlopeClassifier(loss="multinomial", alpha=1e-9, tol=1e-9).fit(X, y)
    part = SlopeClassifier(loss="multinomial", alpha=1e-9, reference=True, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(full.predict_proba(X), part.predict_proba(X), atol=1e-3)
    np.testing.assert_array_equal(part.coef_[-1], 0.0)
    assert part.lambda_.size == 10
    assert full.lambda_.size == 15
    assert full.intercept_.sum() == pytest.approx(0.0, abs=1e-9)
