"""The SLOPE path: alpha_max, certificates at every alpha, order, early ends, interpolation, continuity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from convexlaw import ConvergenceWarning, ConvexlawError, Slope, SlopePath, slope_path, sorted_l1_dual_gap
from convexlaw.theory.sorted_l1 import bh_sequence, dual_sorted_l1_norm


def make(seed: int, n: int, p: int, rho: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    return X, X[:, : min(5, p)].sum(axis=1) + rng.normal(size=n) + 3.0


@pytest.mark.parametrize(("n", "p", "rho"), [(40, 200, 0.0), (40, 200, 0.6), (60, 60, 0.3), (300, 20, 0.5)])
@pytest.mark.parametrize("free", [False, True])
def test_every_alpha_is_certified(n: int, p: int, rho: float, free: bool) -> None:
    X, y = make(0, n, p, rho)
    lam = bh_sequence(p, 0.1)
    path = slope_path(X, y, lam=lam, n_alphas=40, fit_intercept=free, tol_dev_ratio=1.0, tol_dev_change=-1.0)
    center = y.mean() if free else 0.0
    assert path.alpha_max == pytest.approx(dual_sorted_l1_norm(X.T @ (y - center) / n, lam), rel=1e-10)
    assert path.alphas[0] == path.alpha_max
    assert not path.coefs[:, 0].any()
    for k in range(path.alphas.size):
        gap = sorted_l1_dual_gap(
            X, y, path.coefs[:, k], path.intercepts[k], path.alphas[k], lam, fit_intercept=free
        )
        assert -1e-12 * path.null <= gap <= 1e-6 * path.null * (1 + 1e-6)
        magnitudes = np.unique(np.abs(path.coefs[:, k]))
        assert path.n_clusters[k] == np.count_nonzero(magnitudes)
        residual = y - X @ path.coefs[:, k] - path.intercepts[k]
        assert path.deviance_ratios[k] == pytest.approx(1 - np.mean(residual**2) / (2 * path.null), abs=1e-8)
    assert path.converged.all()


@pytest.mark.parametrize("solver", ["auto", "gram", "working_gram", "columns", "residual"])
@pytest.mark.parametrize("sparse", [False, True])
def test_path_equals_single_fits(solver: str, sparse: bool) -> None:
    X, y = make(1, 50, 30, 0.5)
    path = slope_path(
        sp.csc_array(X) if sparse else X, y, n_alphas=15, solver=solver, tol=1e-11, scaling="sd"
    )
    for k in (3, 9, path.alphas.size - 1):
        model = Slope(alpha=path.alphas[k], scaling="sd", tol=1e-11).fit(X, y)
        np.testing.assert_allclose(path.coefs[:, k], model.coef_, atol=1e-5)
        assert path.intercepts[k] == pytest.approx(model.intercept_, abs=1e-5)


def test_alphas_in_any_order() -> None:
    X, y = make(2, 40, 60)
    alphas = np.array([0.05, 0.4, 0.05, 0.01, 100.0, 0.2, 0.0])
    path = slope_path(X[:, :20], y, alphas=alphas, tol=1e-10)
    np.testing.assert_array_equal(path.alphas, alphas)
    np.testing.assert_allclose(path.coefs[:, 0], path.coefs[:, 2], atol=1e-6)
    assert not path.coefs[:, 4].any()
    ordered = slope_path(X[:, :20], y, alphas=np.sort(alphas)[::-1], tol=1e-10)
    np.testing.assert_allclose(path.coefs[:, np.argsort(-alphas, kind="stable")], ordered.coefs, atol=1e-6)
    exact = np.linalg.lstsq(np.c_[X[:, :20], np.ones(40)], y, rcond=None)[0]
    np.testing.assert_allclose(path.coefs[:, 6], exact[:20], atol=1e-8)
    assert path.deviance_ratios[6] == pytest.approx(
        1 - np.mean((y - X[:, :20] @ exact[:20] - exact[20]) ** 2) / (2 * path.null)
    )


def test_early_ends() -> None:
    X, y = make(3, 30, 100)
    saturated = slope_path(X, y, alpha_min_ratio=1e-4)
    assert saturated.alphas.size < 100
    assert saturated.stopped
    assert saturated.n_clusters.max() <= 30
    tall, response = make(4, 200, 10)
    flat = slope_path(tall, response)
    assert "tol_dev_change" in flat.stopped
    exact = slope_path(tall, tall @ np.arange(10.0))
    assert "tol_dev_ratio = 0.999" in exact.stopped
    assert exact.deviance_ratios[-2] <= 0.999 < exact.deviance_ratios[-1]
    limited = slope_path(X, y, max_clusters=3)
    assert limited.stopped.startswith("saturated")
    assert limited.n_clusters[:-1].max() <= 3
    given = slope_path(X, y, alphas=saturated.alpha_max * np.geomspace(1, 1e-4, 100))
    assert given.alphas.size == 100
    assert given.stopped == ""


def test_interpolation_is_exact_between_nearby_alphas() -> None:
    X, y = make(5, 60, 12, 0.2)
    top = slope_path(X, y, n_alphas=1).alpha_max
    fine = top * np.array([0.5, 0.4999])
    path = slope_path(X, y, alphas=fine, tol=1e-14)
    coefs, intercepts = path.interpolate(top * 0.49995)
    model = Slope(alpha=top * 0.49995, tol=1e-14).fit(X, y)
    np.testing.assert_allclose(coefs[:, 0], model.coef_, atol=1e-7)
    assert intercepts[0] == pytest.approx(model.intercept_, abs=1e-7)
    whole = slope_path(X, y, n_alphas=30, tol=1e-10)
    at_grid, _ = whole.interpolate(whole.alphas)
    np.testing.assert_allclose(at_grid, whole.coefs, atol=1e-12)
    beyond, _ = whole.interpolate([2 * top])
    assert not beyond.any()
    with pytest.raises(ConvexlawError, match="lies outside the path"):
        whole.interpolate([1e-9])
    with pytest.raises(ConvexlawError, match="lies outside the path"):
        path.interpolate([0.9 * top])
    single = slope_path(X, y, alphas=[0.1])
    np.testing.assert_array_equal(single.interpolate(0.1)[0], single.coefs)


def test_path_is_continuous() -> None:
    X, y = make(6, 40, 30, 0.5)
    path = slope_path(X, y, alphas=np.linspace(0.5, 0.05, 400), tol=1e-12)
    steps = np.abs(np.diff(path.coefs, axis=1)).max(axis=0)
    assert steps.max() <= 25 * max(np.median(steps), 1e-4)


def test_value_prints_itself_and_gives_frames() -> None:
    X, y = make(7, 50, 6)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    path = slope_path(frame, y, n_alphas=10)
    assert isinstance(path, SlopePath)
    text = str(path)
    assert len(text.splitlines()) <= 12
    assert "largest duality gap" in text
    assert path._repr_html_().startswith("<pre>SLOPE path")
    table = path.to_frame()
    assert list(table.columns[-6:]) == list("abcdef")
    np.testing.assert_array_equal(table["alpha"], path.alphas)
    np.testing.assert_array_equal(table[list("abcdef")].to_numpy().T, path.coefs)
    np.testing.assert_allclose(path.predict(frame)[:, 3], X @ path.coefs[:, 3] + path.intercepts[3])
    with pytest.raises(ConvexlawError, match="X has 5 columns, the path 6"):
        path.predict(X[:, :5])
    plain = slope_path(X, y, n_alphas=4).to_frame()
    assert "x0" in plain.columns


@pytest.mark.parametrize("x", ["alpha", "clusters", "deviance"])
def test_picture_shows_the_coefficients(x: str) -> None:
    import matplotlib.pyplot as plt

    X, y = make(8, 50, 12)
    path = slope_path(X, y, n_alphas=10)
    axes = path.plot(x=x, top=3)
    lines = [np.asarray(line.get_ydata()) for line in axes.get_lines()]
    largest = int(np.argmax(np.abs(path.coefs[:, -1])))
    assert any(line.shape == path.alphas.shape and np.allclose(line, path.coefs[largest]) for line in lines)
    ever = int((path.coefs != 0).any(axis=1).sum())
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[3:] == ([f"{ever - 3} more"] if ever > 3 else [])
    ends = [path.coefs[path.names.index(name), -1] for name in labels[:3]]
    assert ends == sorted(ends, reverse=True)
    assert axes.get_ylabel() == "coefficient"
    scale = np.arange(1.0, 13.0)
    scaled = path.plot(x=x, top=12, scale=scale, chosen=float(path.alphas[4]))
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in scaled.get_lines()}
    for name, coefs, divisor in zip(path.names, path.coefs, scale, strict=True):
        if coefs.any():
            np.testing.assert_allclose(drawn[name], coefs * divisor)
    assert ("chosen" in drawn) == (x == "alpha")
    assert scaled.get_ylabel() == "coefficient of the scaled column"
    with pytest.raises(ConvexlawError, match=r"scale has shape \(3,\): give one divisor a column, \(12,\)"):
        path.plot(scale=np.ones(3))
    with pytest.raises(ConvexlawError, match="x = 'beta'"):
        path.plot(x="beta")
    plt.close("all")


def test_progress_and_bad_grids(capsys: Any) -> None:
    X, y = make(9, 30, 10)
    slope_path(X, y, n_alphas=5, progress=True)
    slope_path(X, y, n_alphas=5)
    assert capsys.readouterr().out == ""
    for bad, message in (
        ({"alphas": [0.1, -0.1]}, "alpha = .*-0.1"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [np.nan]}, "alpha = .*nan"),
        ({"alphas": ["a"]}, "alphas = "),
        ({"n_alphas": 0}, "n_alphas = 0"),
        ({"alpha_min_ratio": 2.0}, "alpha_min_ratio = 2.0"),
    ):
        with pytest.raises(ConvexlawError, match=message):
            slope_path(X, y, **bad)


def test_unfinished_alphas_are_told() -> None:
    X, y = make(10, 40, 80, 0.5)
    with pytest.warns(ConvergenceWarning, match=r"alphas stopped at a duality gap of up to .* above tol"):
        path = slope_path(X, y, n_alphas=20, max_iter=1)
    assert not path.converged.all()
    np.testing.assert_array_equal(path.converged, path.dual_gaps <= 1e-6 * path.null)


def test_gram_differences_are_rechecked_on_the_data() -> None:
    # n >> p with large means and a tight tolerance: the Gram matrix alone cannot certify that
    X, y = make(11, 2000, 8)
    X += 1e3
    path = slope_path(X, y, n_alphas=20, tol=1e-11, solver="gram")
    for k in range(path.alphas.size):
        gap = sorted_l1_dual_gap(
            X - X.mean(axis=0), y, path.coefs[:, k], float(y.mean()), path.alphas[k], path.lambda_
        )
        assert gap <= 2e-11 * path.null
    assert path.converged.all()
