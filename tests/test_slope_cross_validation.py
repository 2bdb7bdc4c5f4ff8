"""Cross-validation of SLOPE: the curves of a plain loop over folds, its choices, where the work is done."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LassoCV
from sklearn.metrics import mean_absolute_error, roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from convexlaw import (
    ConvexlawError,
    Slope,
    SlopeClassifier,
    SlopeClassifierCV,
    SlopeCV,
    TwoLevelSlope,
    TwoLevelSlopeCV,
    slope_path,
    sorted_l1_dual_gap,
)
from convexlaw.errors import ConvergenceWarning
from convexlaw.solvers import _cv_gram
from convexlaw.solvers._slope_problem import Problem

TIGHT = 1e-9
GLM = 1e-8


def make(n: int, p: int, seed: int = 0, rho: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    return X, X[:, :4] @ [2.0, -2.0, 1.0, 1.0] + rng.normal(size=n) + 3.0


def plain_loop(make_model: Any, alphas: Any, splits: Any, X: Any, y: Any, weights: Any = None) -> np.ndarray:
    """Cold fits, fold by fold and alpha by alpha; weighted squared errors on the rows left out."""
    scores = np.empty((len(alphas), len(splits)))
    for k, (train, test) in enumerate(splits):
        inside = None if weights is None else weights[train]
        outside = np.ones(len(test)) if weights is None else weights[test]
        for i, alpha in enumerate(alphas):
            model = make_model(alpha).fit(X[train], y[train], sample_weight=inside)
            scores[i, k] = np.average((y[test] - model.predict(X[test])) ** 2, weights=outside)
    return scores


SPLITTERS = [
    4,
    KFold(3, shuffle=True, random_state=1),
    ShuffleSplit(3, test_size=0.3, random_state=0),
    TimeSeriesSplit(3),
    [(np.repeat(np.arange(30), 2), np.arange(40, 50)), (np.arange(10, 50), np.arange(10))],
]


@pytest.mark.parametrize("cv", SPLITTERS, ids=["int", "shuffled", "shuffle-split", "time", "repeated rows"])
@pytest.mark.parametrize(("p", "solver"), [(90, "auto"), (12, "gram"), (12, "working_gram")])
def test_curves_are_those_of_a_plain_loop(cv: Any, p: int, solver: str) -> None:
    X, y = make(60, p)
    model = SlopeCV(cv=cv, n_alphas=6, tol=TIGHT, scaling="sd", solver=solver).fit(X, y)
    splits = list(cv.split(X)) if hasattr(cv, "split") else cv
    splits = list(KFold(cv).split(X)) if isinstance(cv, int) else splits
    loop = plain_loop(lambda a: Slope(alpha=a, tol=TIGHT, scaling="sd"), model.alphas_, splits, X, y)
    np.testing.assert_allclose(model.cv_scores_, loop, rtol=2e-4)
    np.testing.assert_allclose(model.cv_mean_, loop.mean(axis=1), rtol=2e-4)
    np.testing.assert_allclose(
        model.cv_se_, loop.std(axis=1, ddof=1) / np.sqrt(loop.shape[1]), rtol=2e-3, atol=1e-6
    )
    assert model.alpha_ == model.alphas_[np.argmin(model.cv_mean_)]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("centering", ["none", "mean", "min"])
def test_gram_matrices_by_subtraction_serve_every_centring(intercept: bool, centering: str) -> None:
    X, y = make(80, 8, seed=3)
    X += 5.0
    X[:, 3] *= 100.0
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 80)
    weights[::7] = 0.0
    options = {"fit_intercept": intercept, "centering": centering, "tol": 1e-11, "scaling": "l2"}
    model = SlopeCV(cv=4, n_alphas=5, eps=1e-2, solver="gram", **options).fit(X, y, sample_weight=weights)
    loop = plain_loop(
        lambda a: Slope(alpha=a, solver="working_gram", **options),
        model.alphas_,
        list(KFold(4).split(X)),
        X,
        y,
        weights,
    )
    np.testing.assert_allclose(model.cv_scores_, loop, rtol=1e-5)


def test_fold_gram_is_the_gram_of_the_fold() -> None:
    X, y = make(200, 6, seed=5)
    X[:, 0] += 1e4
    counts = np.random.default_rng(1).uniform(0.5, 2.0, 200)
    whole = Problem(X, y, sample_weight=counts)
    sums = _cv_gram.moments(X, counts, whole.design.shift)
    for train in (np.arange(150), np.arange(30), np.repeat(np.arange(90), 2)):
        held = counts * np.bincount(train, minlength=200)
        fold = Problem(X, y, sample_weight=held)
        G = _cv_gram.fold_gram(fold.design, X, counts, held, whole.design.shift, sums)
        w = held / held.sum()
        centred = X - w @ X
        np.testing.assert_allclose(G, (centred * w[:, None]).T @ centred, rtol=1e-9, atol=1e-10)


def test_an_outlier_among_the_rows_left_out_costs_no_digits() -> None:
    X, y = make(60, 5)
    X[0] *= 1e9  # subtraction would leave nothing of the other rows
    counts = np.ones(60)
    whole = Problem(X, y)
    sums = _cv_gram.moments(X, counts, whole.design.shift)
    held = np.append(0.0, np.ones(59))
    fold = Problem(X, y, sample_weight=held)
    G = _cv_gram.fold_gram(fold.design, X, counts, held, whole.design.shift, sums)
    np.testing.assert_allclose(G, np.cov(X[1:].T, bias=True), rtol=1e-6)


def test_the_model_is_the_fit_at_the_chosen_alpha() -> None:
    X, y = make(60, 90)
    model = SlopeCV(cv=5, tol=TIGHT).fit(X, y)
    again = Slope(alpha=model.alpha_, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(model.predict(X), again.predict(X), atol=1e-3)
    gap = sorted_l1_dual_gap(X, y, model.coef_, model.intercept_, model.alpha_, model.lambda_)
    assert gap <= TIGHT * model.null_objective_ * 1.01
    assert gap == pytest.approx(model.dual_gap_, rel=0.05, abs=1e-12)
    path = slope_path(X, y, tol=TIGHT)
    np.testing.assert_array_equal(model.alphas_, path.alphas)
    assert model.converged_
    assert model.n_clusters_ == np.unique(np.abs(model.coef_[model.coef_ != 0])).size
    assert "SlopeCV" in str(model.summary())
    unordered = SlopeCV(alphas=[0.1, 1.0, 0.3], cv=3).fit(X, y)
    np.testing.assert_array_equal(unordered.alphas_, [1.0, 0.3, 0.1])


def test_lasso_curves_are_those_of_scikit_learn() -> None:
    X, y = make(80, 30)
    top = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / 80
    alphas = np.geomspace(top, 1e-3 * top, 20)
    peer = LassoCV(cv=5, alphas=alphas, tol=1e-10, max_iter=100_000).fit(X, y)
    for model in (
        SlopeCV(lambda_type="lasso", alphas=peer.alphas_, cv=5, tol=1e-10),
        TwoLevelSlopeCV(low_ratios=[1.0], alphas=peer.alphas_, cv=5, tol=1e-10),
    ):
        model.fit(X, y)
        np.testing.assert_allclose(model.cv_scores_, peer.mse_path_, rtol=1e-5)
        assert model.alpha_ == peer.alpha_
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)


def test_one_standard_error_rule() -> None:
    X, y = make(60, 40)
    least = SlopeCV(cv=6).fit(X, y)
    one = SlopeCV(cv=6, selection="1se").fit(X, y)
    best = int(np.argmin(least.cv_mean_))
    bound = least.cv_mean_[best] + least.cv_se_[best]
    allowed = [a for a, m in zip(least.alphas_, least.cv_mean_, strict=True) if m <= bound]
    assert one.alpha_ == max(allowed) > least.alpha_
    assert np.count_nonzero(one.coef_) < np.count_nonzero(least.coef_)
    single = SlopeCV(cv=[(np.arange(40), np.arange(40, 60))], selection="1se").fit(X, y)
    assert np.isnan(single.cv_se_).all()
    assert single.alpha_ == single.alphas_[np.argmin(single.cv_mean_)]


def test_repeats_shuffle_and_keep_the_standard_error() -> None:
    X, y = make(60, 10)
    model = SlopeCV(cv=5, repeats=3, random_state=7, n_alphas=8, tol=TIGHT).fit(X, y)
    same = SlopeCV(cv=RepeatedKFold(n_splits=5, n_repeats=3, random_state=7), n_alphas=8, tol=TIGHT)
    np.testing.assert_allclose(model.cv_scores_, same.fit(X, y).cv_scores_, rtol=1e-12)
    by_repeat = model.cv_scores_.reshape(-1, 3, 5)
    expected = np.sqrt((by_repeat.var(axis=2, ddof=1) / 5).mean(axis=1))
    np.testing.assert_allclose(model.cv_se_, expected)
    assert model.curve_.repeats == 3
    assert "5 folds x 3" in str(model.curve_)
    with pytest.raises(ConvexlawError, match="repeats = 2 with cv"):
        SlopeCV(cv=KFold(3), repeats=2).fit(X, y)


def test_two_level_grid() -> None:
    X, y = make(60, 30)
    model = TwoLevelSlopeCV(
        low_ratios=[0.3, 0.7, 1.0], fractions=[0.1, 0.4], n_alphas=10, cv=4, tol=TIGHT
    ).fit(X, y)
    assert len(model.curves_) == 5  # the Lasso once
    best = min(curve.mean.min() for curve in model.curves_)
    assert model.curve_.mean[model.curve_.chosen] == best
    table = model.to_frame()
    chosen = table[table["chosen"]].iloc[0]
    assert (chosen["low_ratio"], chosen["fraction"], chosen["alpha"]) == (
        model.low_ratio_,
        model.fraction_,
        model.alpha_,
    )
    again = TwoLevelSlope(alpha=model.alpha_, low=model.low_ratio_, fraction=model.fraction_, tol=TIGHT)
    np.testing.assert_allclose(again.fit(X, y).predict(X), model.predict(X), atol=1e-3)
    np.testing.assert_array_equal(model.lambda_, again.lambda_)
    loop = plain_loop(
        lambda a: TwoLevelSlope(alpha=a, low=model.low_ratio_, fraction=model.fraction_, tol=TIGHT),
        model.alphas_,
        list(KFold(4).split(X)),
        X,
        y,
    )
    np.testing.assert_allclose(model.cv_scores_, loop, rtol=2e-4)
    for bad in ({"low_ratios": [1.5]}, {"low_ratios": [0.0], "fractions": [0.0]}):
        with pytest.raises(ConvexlawError, match="low_ratios"):
            TwoLevelSlopeCV(**bad).fit(X, y)


@pytest.mark.parametrize("form", ["csr", "csc", "float32", "fortran", "frame"])
def test_other_forms_of_X(form: str) -> None:
    X, y = make(50, 20)
    X[np.abs(X) < 0.5] = 0.0
    other = {
        "csr": sp.csr_array,
        "csc": sp.csc_array,
        "float32": lambda a: a.astype(np.float32),
        "fortran": np.asfortranarray,
        "frame": lambda a: pd.DataFrame(a, columns=[f"f{j}" for j in range(20)]),
    }[form](X)
    base = SlopeCV(cv=3, n_alphas=6, tol=TIGHT).fit(X, y)
    model = SlopeCV(cv=3, n_alphas=6, tol=TIGHT).fit(other, y)
    np.testing.assert_allclose(model.cv_scores_, base.cv_scores_, rtol=1e-4)
    if form == "frame":
        assert model.path_.feature_names[0] == "f0"


def test_poisson_huber_and_several_responses() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    counts = rng.poisson(np.exp(0.3 + X[:, 0] * 0.8)).astype(float)
    exposure = rng.uniform(-0.5, 0.5, 60)
    for loss, y, offset in (("poisson", counts, exposure), ("huber", counts, None)):
        model = SlopeCV(loss=loss, cv=3, alphas=np.geomspace(0.3, 1e-3, 6), tol=GLM)
        model.fit(X, y, offset=offset)
        for k, (train, test) in enumerate(KFold(3).split(X)):
            inside, outside = (None, None) if offset is None else (offset[train], offset[test])
            for i in (0, 3, model.alphas_.size - 1):
                fit = Slope(loss=loss, alpha=model.alphas_[i], tol=GLM)
                fit.fit(X[train], y[train], offset=inside)
                assert model.cv_scores_[i, k] == pytest.approx(
                    fit.deviance(X[test], y[test], offset=outside), rel=1e-3
                )
    Y = X[:, :2] @ [[2.0, 1.0], [0.0, 1.0]] + rng.normal(size=(60, 2))
    model = SlopeCV(cv=3, n_alphas=6, tol=GLM).fit(X, Y)
    assert model.coef_.shape == (2, 8)
    train, test = next(iter(KFold(3).split(X)))
    fit = Slope(alpha=model.alphas_[3], tol=GLM).fit(X[train], Y[train])
    assert model.cv_scores_[3, 0] == pytest.approx(fit.deviance(X[test], Y[test]), rel=1e-3)
    with pytest.raises(ConvexlawError, match="offset"):
        SlopeCV(loss="poisson", scoring="r2").fit(X, counts, offset=exposure)
    with pytest.raises(ConvexlawError, match="SlopeClassifier"):
        SlopeCV(loss="logistic").fit(X, counts)


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "reference"])
def test_classes(loss: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 6))
    score = np.column_stack([X[:, 0], X[:, 1], np.zeros(90)]) + rng.gumbel(size=(90, 3))
    names = np.array(["a", "b", "c"])
    y = names[score.argmax(axis=1)] if loss != "logistic" else names[(score[:, 0] > 0).astype(int)]
    kind = {"loss": "multinomial" if loss == "reference" else loss, "reference": loss == "reference"}
    model = SlopeClassifierCV(cv=3, n_alphas=6, tol=GLM, **kind).fit(X, y)
    for k, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        fit = SlopeClassifier(alpha=model.alphas_[3], tol=GLM, **kind).fit(X[train], y[train])
        own = fit.predict_proba(X[test])[np.arange(test.size), np.searchsorted(fit.classes_, y[test])]
        assert model.cv_scores_[3, k] == pytest.approx(-2.0 * np.log(own).mean(), rel=1e-3)
    again = SlopeClassifier(alpha=model.alpha_, tol=GLM, **kind).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), again.predict_proba(X), atol=1e-3)
    accuracy = SlopeClassifierCV(cv=3, n_alphas=6, scoring="accuracy", **kind).fit(X, y)
    assert accuracy.cv_mean_.max() == accuracy.cv_mean_[accuracy.curve_.chosen] > 0.4
    with pytest.raises(ConvexlawError, match="no row of class"):
        SlopeClassifierCV(cv=[(np.flatnonzero(y != "a"), np.flatnonzero(y == "a"))], **kind).fit(X, y)


def test_scorers_see_what_a_plain_loop_shows_them() -> None:
    X, y = make(60, 10)
    model = SlopeCV(cv=3, n_alphas=5, scoring="neg_mean_absolute_error", tol=TIGHT).fit(X, y)
    train, test = list(KFold(3).split(X))[1]
    fit = Slope(alpha=model.alphas_[2], tol=TIGHT).fit(X[train], y[train])
    assert -model.cv_scores_[2, 1] == pytest.approx(
        mean_absolute_error(y[test], fit.predict(X[test])), rel=1e-4
    )
    assert model.curve_.greater_is_better
    assert model.curve_.chosen == np.argmax(model.cv_mean_)
    labels = np.where(y > y.mean(), "high", "low")
    auc = SlopeClassifierCV(cv=3, n_alphas=5, scoring="roc_auc", tol=GLM).fit(X, labels)
    train, test = list(StratifiedKFold(3).split(X, labels))[1]
    fit = SlopeClassifier(alpha=auc.alphas_[2], tol=GLM).fit(X[train], labels[train])
    assert auc.cv_scores_[2, 1] == pytest.approx(
        roc_auc_score(labels[test], fit.decision_function(X[test])), abs=0.01
    )


def test_groups_stay_together() -> None:
    X, y = make(60, 10)
    groups = np.repeat(np.arange(12), 5)
    model = SlopeCV(cv=GroupKFold(4), n_alphas=5, tol=TIGHT).fit(X, y, groups=groups)
    splits = list(GroupKFold(4).split(X, y, groups))
    loop = plain_loop(lambda a: Slope(alpha=a, tol=TIGHT), model.alphas_, splits, X, y)
    np.testing.assert_allclose(model.cv_scores_, loop, rtol=1e-4)


def test_a_fold_without_weight_is_left_out() -> None:
    X, y = make(60, 10)
    weights = np.append(np.ones(40), np.zeros(20))
    model = SlopeCV(cv=3, n_alphas=5, tol=TIGHT).fit(X, y, sample_weight=weights)
    short = SlopeCV(
        cv=[(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))],
        alphas=model.alphas_,
        tol=TIGHT,
    ).fit(X[:40], y[:40])
    assert np.isnan(model.cv_scores_[:, 2]).all()
    np.testing.assert_allclose(model.cv_mean_, short.cv_mean_, rtol=1e-5)
    np.testing.assert_allclose(model.cv_se_, short.cv_se_, rtol=1e-3)
    with pytest.raises(ConvexlawError, match="no fold has"):
        SlopeCV(cv=[(np.arange(40), np.arange(40, 60))]).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_workers_give_the_same_curves(backend: str) -> None:
    X, y = make(60, 20)
    here = SlopeCV(cv=3, n_alphas=5).fit(X, y)
    there = SlopeCV(cv=3, n_alphas=5, n_jobs=2, backend=backend).fit(X, y)
    # another memory order rounds in another way, within the tolerance
    np.testing.assert_allclose(there.cv_scores_, here.cv_scores_, rtol=1e-4)


@pytest.mark.slow
def test_a_cluster_gives_the_same_curves() -> None:
    distributed = pytest.importorskip("distributed")
    X, y = make(200, 20)
    here = SlopeCV(cv=3, n_alphas=5, solver="gram").fit(X, y)
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
    ):
        warnings.simplefilter("ignore")  # of dask itself, about the size of what it sends
        there = SlopeCV(cv=3, n_alphas=5, solver="gram", backend="dask").fit(X, y)
    np.testing.assert_allclose(there.cv_scores_, here.cv_scores_, rtol=1e-4)


def test_a_missing_cluster_and_a_misspelt_backend_are_told() -> None:
    X, y = make(30, 5)
    with pytest.raises(ConvexlawError, match="none of joblib's"):
        SlopeCV(cv=3, backend="lokyy").fit(X, y)
    pytest.importorskip("distributed")
    with pytest.raises(ConvexlawError, match="no cluster"):
        SlopeCV(cv=3, backend="dask").fit(X, y)


def test_unfinished_folds_are_told() -> None:
    X, y = make(60, 90)
    with (
        pytest.warns(ConvergenceWarning, match="alphas stopped"),
        pytest.warns(ConvergenceWarning, match="solutions on the folds"),
    ):
        SlopeCV(cv=3, n_alphas=5, max_iter=1, tol=1e-12).fit(X, y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"selection": "best"}, "selection = 'best'"),
        ({"repeats": 0}, "repeats = 0"),
        ({"cv": [(np.arange(10), np.arange(5, 12))]}, "rows that it was trained on"),
        ({"cv": [(np.arange(10), np.array([], dtype=int))]}, "0 to test on"),
        ({"cv": [(np.arange(10), np.array([99]))]}, "outside 0..29"),
        ({"cv": []}, "no folds"),
        ({"alphas": []}, "alphas is empty"),
        ({"n_alphas": 0}, "n_alphas = 0"),
        ({"eps": 2.0}, "alpha_min_ratio = 2.0"),
    ],
)
def test_bad_requests(options: dict[str, Any], match: str) -> None:
    X, y = make(30, 5)
    with pytest.raises(ConvexlawError, match=match):
        SlopeCV(**options).fit(X, y)


def test_a_constant_response_has_a_curve() -> None:
    X, _ = make(30, 5)
    model = SlopeCV(cv=3).fit(X, np.full(30, 2.5))
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(2.5)
    np.testing.assert_allclose(model.cv_mean_, 0.0, atol=1e-20)


def test_curve_as_table_text_and_picture(capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    import matplotlib.pyplot as plt

    X, y = make(60, 20)
    monkeypatch.setenv("FORCE_COLOR", "1")
    model = SlopeCV(cv=4, n_alphas=12, selection="1se", progress=True).fit(X, y)
    assert "cross-validation" in capfd.readouterr().err
    curve = model.curve_
    table = curve.to_frame()
    assert table["alpha"][table["chosen"]].tolist() == [model.alpha_]
    np.testing.assert_allclose(table[[f"fold_{k}" for k in range(4)]].mean(axis=1), table["mean"])
    text = str(curve)
    assert len(text.splitlines()) <= 12
    assert f"one SE  alpha {model.alpha_:.6g}" in text
    axes = curve.plot(folds=True)
    assert axes.get_xscale() == "log"
    (band,) = axes.collections
    assert band.get_label() == "one standard error"
    assert len(axes.lines) == 4 + 1 + 2
    plt.close(axes.figure)
    edge = SlopeCV(alphas=[0.5, 0.3], cv=3).fit(X, y).curve_
    assert "smallest of the grid" in str(edge)


def test_when_gram_matrices_by_subtraction_pay() -> None:
    tall, wide = np.zeros((5000, 50)), np.zeros((50, 5000))
    tenth = [500] * 10
    assert _cv_gram.sharing_pays(tall, tenth, "auto", 100)
    assert not _cv_gram.sharing_pays(wide, [5] * 10, "auto", 100)
    assert not _cv_gram.sharing_pays(sp.csc_array(tall), tenth, "auto", 100)
    assert not _cv_gram.sharing_pays(tall, tenth, "residual", 100)
    assert _cv_gram.sharing_pays(wide, [5] * 10, "gram", 100)
