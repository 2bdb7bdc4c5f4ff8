"""X in every form: same answer, never copied, densified or written to, and bounded memory beyond it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from convexlaw import Slope, slope_path
from convexlaw.solvers._slope_columns import blocks
from convexlaw.solvers._slope_problem import Problem


def make(seed: int, n: int, p: int, rho: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    return X, X[:, :5] @ [2.0, -2.0, 1.0, 1.0, -1.0] + rng.normal(size=n)


def strided(X: np.ndarray) -> np.ndarray:
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]))
    wide[::2, ::2] = X
    return wide[::2, ::2]


@pytest.mark.parametrize(("n", "p"), [(40, 150), (150, 40)])
@pytest.mark.parametrize("solver", ["auto", "gram", "working_gram", "columns", "residual"])
def test_memory_order_does_not_matter(n: int, p: int, solver: str, tmp_path: Path) -> None:
    X, y = make(0, n, p, 0.3)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    frozen = np.asfortranarray(X)
    frozen.setflags(write=False)
    base = Slope(alpha=0.05, tol=1e-11, solver=solver).fit(X, y)
    for seen in (
        np.asfortranarray(X),
        mapped,
        frozen,
        strided(X),
        X[::-1][::-1],
        sp.csc_array(X),
        sp.csr_matrix(X),
    ):
        model = Slope(alpha=0.05, tol=1e-11, solver=solver).fit(seen, y)
        np.testing.assert_allclose(model.coef_, base.coef_, atol=1e-6)
        assert model.intercept_ == pytest.approx(base.intercept_, abs=1e-6)


def test_float32_is_certified_in_float64() -> None:
    X, y = make(1, 60, 200, 0.5)
    model = Slope(alpha=0.02, tol=1e-10).fit(X.astype(np.float32), y)
    wide = Slope(alpha=0.02, tol=1e-10).fit(X.astype(np.float32).astype(np.float64), y)
    assert model.converged_
    np.testing.assert_allclose(model.coef_, wide.coef_, atol=1e-6)


@pytest.mark.parametrize("matrix", [np.ascontiguousarray, np.asfortranarray, sp.csc_array, sp.csr_array])
def test_input_is_left_alone(matrix: Any) -> None:
    X, y = make(2, 50, 80, 0.2)
    seen = matrix(X)
    kept, response = seen.copy(), y.copy()
    weights = np.linspace(0.5, 1.5, 50)
    Slope(alpha=0.05, scaling="sd").fit(seen, y, sample_weight=weights)
    slope_path(seen, y, n_alphas=10, sample_weight=weights)
    difference = abs(seen - kept)
    assert difference.max() == 0
    np.testing.assert_array_equal(y, response)
    np.testing.assert_array_equal(weights, np.linspace(0.5, 1.5, 50))


def peak(work: Any) -> int:
    """Bytes allocated at the same time by numpy and Python during ``work``."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "p", "ratio"), [(100, 20000, 0.3), (20000, 100, 0.1)])
def test_memory_beyond_X_is_that_of_the_working_set(
    order: Any, dtype: Any, n: int, p: int, ratio: float
) -> None:
    X, y = make(3, n, p)
    X = np.asarray(X, dtype=dtype, order=order)
    Slope(alpha=1.0).fit(X[:, :5], y)
    problem = Problem(X, y)
    alpha = ratio * problem.alpha_max()
    engine = problem.engine()

    def work() -> None:
        fresh = Problem(X, y)
        solver = fresh.engine()
        gap = solver.solve(alpha * fresh.lam, alpha * fresh.cum, 1e-6 * fresh.null, 100_000)
        assert gap <= 1e-6 * fresh.null
        nonlocal engine
        engine = solver

    used = peak(work)
    w = engine.store.w
    # growth room and a block of X in float64 are what O(n + p) stands for here
    assert used <= 8 * (n + w) * w * 1.6 + 8 * 30 * (n + p) + 8 * 2**19
    assert used < 0.6 * 8 * n * p


def test_sparse_is_never_densified() -> None:
    rng = np.random.default_rng(4)
    X = sp.random_array((3000, 20000), density=2e-4, format="csc", rng=rng, data_sampler=rng.standard_normal)
    y = X[:, :50].sum(axis=1) + 0.1 * rng.normal(size=3000)
    Slope(alpha=1.0).fit(X[:, :5], y)
    alpha = 0.3 * Problem(X, y).alpha_max()
    used = peak(lambda: Slope(alpha=alpha, scaling="sd").fit(X, y))
    assert used < 0.1 * 8 * 3000 * 20000
    model = Slope(alpha=alpha, tol=1e-9).fit(X, y)
    by_rows = Slope(alpha=alpha, tol=1e-9).fit(X.tocsr(), y)
    np.testing.assert_allclose(by_rows.coef_, model.coef_, atol=1e-6)
    assert model.converged_


@pytest.mark.parametrize("matrix", [np.ascontiguousarray, np.asfortranarray, sp.csc_array, sp.csr_array])
def test_blocks_cover_the_matrix(matrix: Any) -> None:
    X = np.arange(600 * 1500, dtype=np.float32).reshape(600, 1500) % 7
    seen = np.zeros(X.shape)
    count = 0
    for rows, columns, block in blocks(matrix(X)):
        seen[rows, columns] += block.toarray() if sp.issparse(block) else block
        count += 1
    np.testing.assert_array_equal(seen, X)
    assert count > 1


@pytest.mark.parametrize("scaling", ["none", "sd", "l1", "l2", "max_abs"])
@pytest.mark.parametrize("form", ["csc", "csr"])
def test_sparse_entries_stored_in_parts_count_once(scaling: str, form: str) -> None:
    X, y = make(5, 30, 8)
    X[np.random.default_rng(0).random(X.shape) < 0.4] = 0.0
    rows, columns = np.nonzero(X)
    order = np.random.default_rng(1).permutation(2 * rows.size)
    value = np.concatenate([0.3 * X[rows, columns], 0.7 * X[rows, columns]])[order]
    rows, columns = np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    line, place = (columns, rows) if form == "csc" else (rows, columns)
    by_line = np.argsort(line, kind="stable")
    start = np.searchsorted(line[by_line], np.arange(X.shape[form == "csc"] + 1))
    kind: Any = sp.csc_array if form == "csc" else sp.csr_array
    parts = kind((value[by_line], place[by_line], start), shape=X.shape)
    stored = parts.nnz
    base = Slope(alpha=0.03, tol=1e-11, scaling=scaling).fit(X, y)
    model = Slope(alpha=0.03, tol=1e-11, scaling=scaling).fit(parts, y)
    np.testing.assert_allclose(model.coef_, base.coef_, atol=1e-5)
    path = slope_path(parts, y, alphas=[0.1, 0.03], tol=1e-11, scaling=scaling)
    np.testing.assert_allclose(path.coefs[:, 1], base.coef_, atol=1e-5)
    assert parts.nnz == stored
