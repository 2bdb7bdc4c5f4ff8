"""Degenerate input to SLOPE: solved where there is a solution, refused with a reason where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from convexlaw import ConvexlawError, Slope, TwoLevelSlope, slope_path, sorted_l1_dual_gap


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    return X, X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=30) + 2.0


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("value", [0.0, 0.1, -7e5])
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.05])
def test_constant_and_zero_columns(data: Any, free: bool, value: float, alpha: float) -> None:
    X, y = data
    X = X.copy()
    X[:, 2] = value
    model = Slope(alpha=alpha, fit_intercept=free).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.converged_
    if free or value == 0.0:
        assert model.coef_[2] == 0.0
    sparse = Slope(alpha=alpha, fit_intercept=free).fit(sp.csc_array(X), y)
    np.testing.assert_allclose(sparse.predict(X), model.predict(X), atol=1e-2)


@pytest.mark.parametrize("kind", ["all constant", "all zero"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_nothing_to_fit_with(data: Any, kind: str, alpha: float) -> None:
    _, y = data
    X = np.full((30, 4), 3.3 if kind == "all constant" else 0.0)
    model = Slope(alpha=alpha).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(y.mean())
    assert model.n_clusters_ == 0
    path = slope_path(X, y)
    assert not path.coefs.any()


@pytest.mark.parametrize("level", [0.0, 0.1, 1e9])
def test_constant_response(data: Any, level: float) -> None:
    X, _ = data
    y = np.full(30, level)
    model = Slope(alpha=0.1).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(level)
    assert model.dual_gap_ == 0.0
    assert model.converged_
    path = slope_path(X, y)
    assert not path.coefs.any()
    assert path.converged.all()
    assert ": 1 alphas, 6 features" in str(path)


def test_alpha_zero_is_least_squares(data: Any) -> None:
    X, y = data
    model = Slope(alpha=0.0).fit(X, y)
    exact = np.linalg.lstsq(np.c_[X, np.ones(30)], y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, exact[:6], atol=1e-10)
    assert model.intercept_ == pytest.approx(exact[6])
    weights = np.random.default_rng(1).integers(0, 3, 30)
    weighted = Slope(alpha=0.0).fit(X, y, sample_weight=weights)
    repeated = Slope(alpha=0.0).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-10)
    for form in ("gram", "working_gram", "columns", "residual"):
        np.testing.assert_allclose(
            Slope(alpha=0.0, solver=form).fit(sp.csr_array(X), y).coef_, exact[:6], atol=1e-8
        )


@pytest.mark.parametrize("sparse", [False, True])
def test_alpha_zero_with_more_columns_than_rows_is_minimal_norm(sparse: bool) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(8, 20)), rng.normal(size=8)
    model = Slope(alpha=0.0, fit_intercept=False).fit(sp.csc_array(X) if sparse else X, y)
    np.testing.assert_allclose(X @ model.coef_, y, atol=1e-9)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(X) @ y, atol=1e-9)
    assert 0.0 <= model.dual_gap_ <= 1e-12


def test_all_weights_of_the_penalty_zero(data: Any) -> None:
    X, y = data
    model = Slope(lam=np.zeros(6), alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, Slope(alpha=0.0).fit(X, y).coef_)
    with pytest.raises(
        ConvexlawError, match="lam is all zero: no alpha makes the coefficients zero; pass alphas"
    ):
        slope_path(X, y, lam=np.zeros(6))
    path = slope_path(X, y, lam=np.zeros(6), alphas=[1.0, 0.5])
    np.testing.assert_allclose(path.coefs[:, 0], model.coef_)


def test_alpha_from_alpha_max_on(data: Any) -> None:
    X, y = data
    top = slope_path(X, y, n_alphas=2).alpha_max
    for factor in (1.0, 1.5, 1e8):
        model = Slope(alpha=factor * top * (1 + 1e-12)).fit(X, y)
        assert not model.coef_.any()
        assert model.converged_
    assert Slope(alpha=0.99 * top).fit(X, y).coef_.any()


@pytest.mark.parametrize("free", [False, True])
def test_one_row_one_column(free: bool) -> None:
    model = Slope(alpha=0.1, fit_intercept=free).fit([[2.0]], [3.0])
    assert model.coef_.shape == (1,)
    expected = 0.0 if free else (3.0 * 2.0 - 0.1 * model.lambda_[0]) / 4.0
    assert model.coef_[0] == pytest.approx(expected, rel=1e-6)
    assert np.isfinite(model.predict([[1.0]])).all()
    many = Slope(alpha=0.1, fit_intercept=free).fit(np.ones((1, 5)), [3.0])
    assert many.coef_.shape == (5,)
    assert many.converged_


def test_one_column() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    y = 2 * x + rng.normal(size=50)
    model = Slope(alpha=0.3, lambda_type="lasso").fit(x.reshape(-1, 1), y)
    assert model.coef_.shape == (1,)
    centered = x - x.mean()
    exact = (centered @ (y - y.mean()) / 50 - 0.3) / (centered @ centered / 50)
    assert model.coef_[0] == pytest.approx(exact, rel=1e-4)
    path = slope_path(x.reshape(-1, 1), y, n_alphas=5)
    assert path.coefs.shape[0] == 1


@pytest.mark.parametrize("matrix", [np.asarray, sp.csc_array, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_, np.float32, np.float16, np.uint8])
def test_any_real_dtype(matrix: Any, dtype: Any) -> None:
    if dtype is np.float16 and matrix is not np.asarray:
        dtype = np.float32
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2 if dtype is np.bool_ else 4, (40, 8)).astype(dtype)
    y = X[:, 0] * 2.0 + rng.normal(size=40)
    for free in (False, True):
        model = Slope(alpha=0.02, fit_intercept=free, tol=1e-8).fit(matrix(X), y)
        plain = Slope(alpha=0.02, fit_intercept=free, tol=1e-8).fit(X.astype(np.float64), y)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)
        assert model.coef_.dtype == np.float64


def test_integer_response_without_intercept() -> None:
    model = Slope(alpha=0.01, fit_intercept=False).fit(
        np.array([[0, 1], [2, 3], [4, 4]]), np.array([0, 1, 2])
    )
    assert model.converged_


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_entries_are_named(data: Any, bad: float) -> None:
    X, y = data
    X = X.copy()
    X[[3, 17], 4] = bad
    word = "NaN" if np.isnan(bad) else "inf"
    with pytest.raises(
        ConvexlawError, match=rf"contains .*{word}.*: column 4, rows 3, 17; drop these rows or fill"
    ):
        Slope(alpha=0.1).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    with pytest.raises(ConvexlawError, match="column 'e', rows 3, 17"):
        Slope(alpha=0.1).fit(frame, y)
    with pytest.raises(ConvexlawError, match="column 4, rows 3, 17"):
        slope_path(sp.csr_array(X), y)
    many = X.copy()
    many[:20, 1] = bad
    with pytest.raises(ConvexlawError, match=r"column 1, rows 0, 1, 2, 3, 4, ... \(20 in all\)"):
        slope_path(many, y)
    y = y.copy()
    y[5] = bad
    with pytest.raises(ConvexlawError, match="row 5"):
        slope_path(data[0], y)


def test_strings_are_named() -> None:
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "sex": ["f", "m", "2"]})
    with pytest.raises(ConvexlawError, match="column 'sex' is not numeric: 'f' in rows 0, 1"):
        Slope().fit(frame, [1.0, 2.0, 3.0])
    with pytest.raises(ConvexlawError, match="column 1 is not numeric: 'x' in row 1"):
        slope_path(np.array([[1, 2], [3, "x"]], dtype=object), [1.0, 2.0])
    numbers_as_text = np.array([["1", "2"], ["3", "5"], ["0", "1"]])
    assert np.isfinite(slope_path(numbers_as_text, [1.0, 2.0, 3.0], n_alphas=2).coefs).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-1.0, r"sample_weight = -1 in rows? 0, 1"),
        ([1.0] * 29 + [-0.5], "sample_weight = -0.5 in row 29"),
        ([1.0] * 29 + [np.nan], "sample_weight = nan in row 29"),
        ([0.0] * 30, "sample_weight is zero in every row"),
        (["one"] * 30, "sample_weight is not numeric"),
        ([1e308] * 30, r"sample_weight reaches 1e\+308, whose sum overflows"),
        ([1.0] * 29, r"sample_weight has shape \(29,\), X has 30 rows"),
    ],
)
def test_bad_weights(data: Any, weights: Any, message: str) -> None:
    with pytest.raises(ConvexlawError, match=message):
        Slope().fit(*data, sample_weight=weights)


def test_rows_of_weight_zero_do_not_count(data: Any) -> None:
    X, y = data
    weights = np.r_[np.ones(20), np.zeros(10)]
    model = Slope(alpha=0.05, tol=1e-12).fit(X, np.r_[y[:20], np.full(10, 1e5)], sample_weight=weights)
    plain = Slope(alpha=0.05, tol=1e-12).fit(X[:20], y[:20])
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-8)
    single = Slope(alpha=0.05).fit(X, y, sample_weight=np.eye(30)[4])
    assert not single.coef_.any()
    assert single.intercept_ == pytest.approx(y[4])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "alpha = -1.0: the penalty must be finite and >= 0"),
        ({"alpha": np.nan}, "alpha = nan"),
        ({"alpha": "much"}, "alpha = 'much'"),
        ({"lam": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}, "weights must not increase with the rank"),
        ({"lam": [1.0, 1.0, 1.0, 1.0, 1.0, -0.1]}, "weights must be >= 0"),
        ({"lam": [1.0, 0.5]}, "lam has 2 weights for p = 6 features"),
        ({"lambda_type": "ridge"}, "lambda_type = 'ridge'"),
        ({"q": 0.0}, "q = 0.0"),
        ({"q": "a tenth"}, "q = 'a tenth'"),
        ({"loss": "hinge"}, "loss = 'hinge'"),
        ({"tol": 0.0}, "tol = 0.0"),
        ({"tol": "small"}, "tol = 'small'"),
        ({"max_iter": 0}, "max_iter = 0"),
        ({"max_iter": 1.5}, "max_iter = 1.5"),
        ({"solver": "magic"}, "solver = 'magic': use 'auto' or one of 'gram'"),
        ({"centering": "median"}, "centering = 'median'"),
        ({"scaling": "iqr"}, "scaling = 'iqr'"),
    ],
)
def test_bad_parameters(data: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ConvexlawError, match=message):
        Slope(**parameters).fit(*data)


def test_bad_shapes(data: Any) -> None:
    X, y = data
    with pytest.raises(ConvexlawError, match=r"y has shape \(29,\), X has 30 rows"):
        slope_path(X, y[:29])
    with pytest.raises(ConvexlawError, match=r"X has shape \(30,\): two dimensions"):
        slope_path(X[:, 0], y)
    with pytest.raises(ConvexlawError, match="at least one row and one column"):
        slope_path(np.empty((0, 3)), np.empty(0))
    with pytest.raises(ConvexlawError, match="they must agree"):
        sorted_l1_dual_gap(X, y, np.zeros(3), 0.0, 1.0, np.ones(3))
    with pytest.raises(ConvexlawError, match="low"):
        TwoLevelSlope(high=1.0, low=2.0).fit(X, y)


def test_huge_values_are_refused_or_solved(data: Any) -> None:
    X, y = data
    with pytest.raises(ConvexlawError, match="overflow"):
        Slope().fit(X * 5e307, y)
    with pytest.raises(ConvexlawError, match="y reaches"):
        Slope().fit(X, y * 1e200)
    with pytest.raises(ConvexlawError, match=r"y varies by .* square underflows"):
        Slope().fit(X, y * 1e-200)
    big = Slope(alpha=0.05 * 1e100, tol=1e-8).fit(X * 1e100, y)
    plain = Slope(alpha=0.05, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(big.coef_ * 1e100, plain.coef_, rtol=1e-3)
    small = Slope(alpha=0.05 * 1e-100, tol=1e-8).fit(X * 1e-100, y)
    np.testing.assert_allclose(small.coef_ * 1e-100, plain.coef_, rtol=1e-3)


def test_complex_numbers_are_refused(data: Any) -> None:
    X, y = data
    for seen in (X * 1j, sp.csc_array(X * 1j)):
        with pytest.raises(ConvexlawError, match="Complex data not supported"):
            slope_path(seen, y)
    with pytest.raises(ConvexlawError, match="y has complex numbers"):
        slope_path(X, y * 1j)


@pytest.mark.parametrize(("name", "bad"), [("tol", "small"), ("max_iter", "many"), ("max_iter", np.nan)])
def test_bad_limits_of_a_path(data: Any, name: str, bad: Any) -> None:
    with pytest.raises(ConvexlawError, match=f"{name} = "):
        slope_path(*data, **{name: bad})
