"""Working sets that keep sparse columns sparse, against dense copies; two classes against one loss."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from convexlaw import SlopeClassifier, slope_path
from convexlaw.solvers import _glm_model
from convexlaw.solvers._glm_model import Columns, Work
from convexlaw.solvers._glm_problem import GlmProblem
from convexlaw.solvers.slope import sorted_l1_dual_gap


def data(classes, seed=0, n=120, p=60):
    rng = np.random.default_rng(seed)
    X = sp.random_array(
        (n, p), density=0.08, format="csc", rng=rng, data_sampler=lambda size: rng.normal(1.0, 2.0, size)
    )
    B = np.zeros((p, classes))
    B[:6] = rng.normal(size=(6, classes))
    eta = X @ B + rng.gumbel(size=(n, classes))
    return X, eta.argmax(axis=1)


@pytest.fixture
def sparse_at_once(monkeypatch):
    monkeypatch.setattr(_glm_model, "_FEW", 0)


@pytest.mark.usefixtures("sparse_at_once")
@pytest.mark.parametrize(("loss", "classes"), [("logistic", 2), ("multinomial", 3)])
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize(("scaling", "centering"), [("none", "none"), ("sd", "mean")])
def test_sparse_model_equals_dense_model(loss, classes, free, scaling, centering):
    X, y = data(classes)
    options = {"loss": loss, "fit_intercept": free, "scaling": scaling, "centering": centering}
    problem = GlmProblem(X, y, **options)
    dense = GlmProblem(X.toarray(), y, **options)
    rng = np.random.default_rng(1)
    index = np.sort(rng.choice(problem.p * problem.m, 40, replace=False))
    works = [Work(q, Columns(q), index) for q in (problem, dense)]
    assert works[0].sparse
    assert not works[1].sparse
    np.testing.assert_array_equal(works[0].index, works[1].index)
    _, _, R, h = problem.settle(0.3 * rng.normal(size=problem.Y.shape))
    h = problem.family.model(problem.Y, R, h, problem.weights, safe=False)
    d = rng.normal(size=40)
    if loss == "logistic":
        R -= R.mean() if free else 0.0
    np.testing.assert_allclose(*(w.pull(R) for w in works), atol=1e-12)
    np.testing.assert_allclose(*(w.product(d) for w in works), atol=1e-12)
    np.testing.assert_allclose(*(w.hessian(h) for w in works), atol=1e-12)


@pytest.mark.usefixtures("sparse_at_once")
@pytest.mark.parametrize(("classes", "reference"), [(2, False), (2, True), (3, False), (3, True)])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_sparse_path_is_certified(classes, reference, far):
    # too large for the compiled steps
    X, y = data(classes, n=200, p=300)
    if far:
        # one full column, far from zero: its centring cancels digits
        X = sp.hstack([X[:, 1:], far + X[:, :1].toarray()], format="csc")
    path = slope_path(
        X, y, loss="multinomial", reference=reference, n_alphas=6, alpha_min_ratio=0.05, scaling="sd"
    )
    assert path.converged.all()
    scale = X.toarray().std(axis=0)
    for k in range(path.alphas.size):
        gap = sorted_l1_dual_gap(
            X.toarray() / scale,
            y,
            path.coefs[..., k].reshape(X.shape[1], -1) * scale[:, None],
            path.intercepts[..., k],
            path.alphas[k],
            path.lambda_,
            fit_intercept=True,
            loss="multinomial",
        )
        assert gap <= 1.01e-6 * path.null


@pytest.mark.parametrize("alpha", [0.0, 0.003, 0.03, 10.0])
@pytest.mark.parametrize("free", [True, False])
def test_two_symmetric_classes_are_one_logistic_loss(alpha, free):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 6)) + 0.5
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=200) > 0).astype(int)
    lam = np.linspace(3.0, 0.5, 12)
    options = {"alpha": alpha, "tol": 1e-10, "fit_intercept": free}
    pair = SlopeClassifier(loss="multinomial", lam=lam, **options).fit(X, y)
    one = SlopeClassifier(lam=0.5 * (lam[::2] + lam[1::2]), **options).fit(X, y)
    np.testing.assert_allclose(pair.coef_[1] - pair.coef_[0], one.coef_[0], atol=1e-7)
    np.testing.assert_allclose(pair.coef_[0], -pair.coef_[1], atol=0.0)
    np.testing.assert_allclose(np.diff(pair.intercept_), one.intercept_, atol=1e-7)
    np.testing.assert_allclose(pair.predict_proba(X), one.predict_proba(X), atol=1e-7)
    assert pair.lambda_.size == 12
    if alpha > 0.0:
        gap = sorted_l1_dual_gap(
            X, y, pair.coef_.T, pair.intercept_, alpha, lam, fit_intercept=free, loss="multinomial"
        )
        assert -1e-14 <= gap <= 1.01e-10 * pair.null_objective_ + 1e-14


def test_two_symmetric_classes_start_warm():
    X, y = data(2)
    model = SlopeClassifier(loss="multinomial", alpha=0.01, warm_start=True).fit(X, y)
    coef = model.coef_.copy()
    model.fit(X, y)
    assert model.n_iter_ == 1
    np.testing.assert_allclose(model.coef_, coef, atol=1e-12)
