"""The prox, norm and dual norm of the sorted L1 norm against definitions, cvxpy and reference values."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from convexlaw.errors import ConvexlawError
from convexlaw.solvers.prox import prox_sorted_l1
from convexlaw.theory.sorted_l1 import (
    bh_sequence,
    dual_sorted_l1_norm,
    kkt_violation,
    oscar_sequence,
    sorted_l1_norm,
    sorted_l1_pattern,
    strong_set,
)

sizes = st.integers(1, 12)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A vector and a penalty sequence, with ties and zeros in both."""
    p = draw(sizes)
    values = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 2.0, -2.5]), st.floats(-5, 5, allow_subnormal=False))
    v = draw(hnp.arrays(np.float64, p, elements=values))
    weights = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 3, allow_subnormal=False))
    lam = np.sort(draw(hnp.arrays(np.float64, p, elements=weights)))[::-1].copy()
    return v, lam


def plain_prox(v: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Sort, pool in the simplest way, clip, undo."""
    order = np.argsort(-np.abs(v), kind="stable")
    blocks: list[list[float]] = []
    for d in np.abs(v)[order] - lam:
        blocks.append([d, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] <= blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + last[0], blocks[-1][1] + last[1]]
    fitted = np.concatenate([[max(total / count, 0.0)] * int(count) for total, count in blocks])
    out = np.empty(v.size)
    out[order] = fitted
    return out * np.sign(v)


def objective(b: np.ndarray, v: np.ndarray, lam: np.ndarray) -> float:
    return float(0.5 * np.sum((b - v) ** 2) + np.sort(np.abs(b))[::-1] @ lam)


@given(cases())
@settings(deadline=None, max_examples=200)
def test_prox_equals_plain_pooling(case: tuple[np.ndarray, np.ndarray]) -> None:
    v, lam = case
    np.testing.assert_allclose(prox_sorted_l1(v, lam), plain_prox(v, lam), atol=1e-12)


@given(cases())
@settings(deadline=None, max_examples=100)
def test_prox_is_optimal_and_moreau_holds(case: tuple[np.ndarray, np.ndarray]) -> None:
    v, lam = case
    b = prox_sorted_l1(v, lam)
    rest = v - b
    # v - prox(v) is the projection on the dual ball: inside it, and b' rest = J(b)
    sums = np.cumsum(np.sort(np.abs(rest))[::-1])
    assert (sums <= np.cumsum(lam) + 1e-9).all()
    assert b @ rest == pytest.approx(sorted_l1_norm(b, lam), abs=1e-9)
    assert kkt_violation(b, rest, lam) <= 1e-9


@given(cases(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=100)
def test_prox_rules(case: tuple[np.ndarray, np.ndarray], random: Any) -> None:
    v, lam = case
    b = prox_sorted_l1(v, lam)
    order = np.array(random.sample(range(v.size), v.size))
    signs = np.array([random.choice([-1.0, 1.0]) for _ in range(v.size)])
    np.testing.assert_allclose(prox_sorted_l1(signs * v[order], lam), signs * b[order], atol=1e-12)
    np.testing.assert_allclose(prox_sorted_l1(4.0 * v, 4.0 * lam), 4.0 * b, atol=1e-12)
    other = v + np.array([random.uniform(-1, 1) for _ in range(v.size)])
    gap = np.linalg.norm(prox_sorted_l1(other, lam) - b)
    assert gap <= np.linalg.norm(other - v) + 1e-12


@given(cases())
@settings(deadline=None, max_examples=200)
def test_dual_norm_is_the_largest_ratio(case: tuple[np.ndarray, np.ndarray]) -> None:
    v, lam = case
    if lam[0] == 0.0:
        assert dual_sorted_l1_norm(v, lam) == (0.0 if not v.any() else np.inf)
        return
    ratios = np.cumsum(np.sort(np.abs(v))[::-1]) / np.cumsum(lam)
    assert dual_sorted_l1_norm(v, lam) == pytest.approx(ratios.max(), rel=1e-12)


def test_dual_norm_filter_survives_rounding() -> None:
    # |v| / lam_0 rounded up must not empty the set of candidates: the dual norm of one entry is its ratio
    rng = np.random.default_rng(0)
    for _ in range(2000):
        lam = np.array([rng.uniform(0.1, 3.0)])
        v = rng.normal(size=1)
        assert dual_sorted_l1_norm(v, lam) == pytest.approx(abs(v[0]) / lam[0], rel=1e-14)


def test_norm_is_the_largest_weighted_sum() -> None:
    v, lam = np.array([1.0, -5.0, 0.5, 2.0]), np.array([2.0, 1.0, 0.5, 0.0])
    brute = max(np.abs(v)[list(order)] @ lam for order in itertools.permutations(range(4)))
    assert sorted_l1_norm(v, lam) == pytest.approx(brute)


@pytest.mark.parametrize("seed", range(4))
def test_prox_agrees_with_cvxpy(solved: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = 15
    v = np.round(rng.normal(size=p) * 2, 1)
    lam = np.sort(rng.uniform(0, 1.5, p))[::-1].copy()
    b = cp.Variable(p)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(b - v) + cp.dotsort(cp.abs(b), lam)))
    solved(problem, 1e-12)
    ours = prox_sorted_l1(v, lam)
    np.testing.assert_allclose(ours, b.value, atol=1e-5)
    assert objective(ours, v, lam) <= problem.value + 1e-9


def test_reference_values(golden: Any) -> None:
    seen = 0
    for item in golden("slope_and_tradeoffs")["public"]:
        args, value, tol = item["args"], item["value"], item["tol"]
        if item["kind"] == "prox":
            np.testing.assert_allclose(prox_sorted_l1(args["v"], args["lam"]), value, atol=tol)
        elif item["kind"] == "dual_norm":
            assert dual_sorted_l1_norm(args["v"], args["lam"]) == pytest.approx(value, abs=tol)
        elif item["kind"] == "prox_norm":
            p, seed, law = args["p"], args["seed"], args["lam"]
            i = np.arange(1, p + 1)
            v = 3 * np.sin(i * (seed + 1.37) + 0.5 * seed) + 0.8 * np.cos(2.1 * i * seed)
            if law["type"] == "bh":
                lam = law["scale"] * bh_sequence(p, law["q"])
            else:
                lam = oscar_sequence(p, law["theta1"], law["theta2"])
            b = prox_sorted_l1(v, lam)
            assert np.abs(b).sum() == pytest.approx(value["l1"], abs=tol)
            assert b @ b == pytest.approx(value["l2sq"], abs=tol)
            assert np.count_nonzero(b) == value["nnz"]
            assert np.unique(np.abs(b[b != 0])).size == value["unique"]
        else:
            continue
        seen += 1
    assert seen == 6


@pytest.mark.parametrize("size", [70, 1000, 40000])
def test_every_way_of_sorting(size: int) -> None:
    # nearly sorted, random, equal, and values that differ in their last bits alone
    rng = np.random.default_rng(size)
    lam = np.linspace(2.0, 0.0, size)
    for v in (
        rng.normal(size=size),
        np.sort(rng.normal(size=size))[::-1] + 1e-3 * rng.normal(size=size),
        np.full(size, 1.5),
        1.0 + 1e-15 * rng.integers(0, 50, size),
        rng.normal(size=size) * 10.0 ** rng.integers(-200, 3, size),
    ):
        b = prox_sorted_l1(v, lam)
        np.testing.assert_allclose(b, plain_prox(v, lam), atol=1e-10)


def test_float32_stays_and_clusters_are_exact() -> None:
    rng = np.random.default_rng(1)
    v = rng.normal(size=500).astype(np.float32)
    b = prox_sorted_l1(v, np.linspace(1.0, 0.1, 500))
    assert b.dtype == np.float32
    np.testing.assert_allclose(b, plain_prox(v.astype(np.float64), np.linspace(1.0, 0.1, 500)), atol=1e-6)
    wide = prox_sorted_l1(v.astype(np.float64), np.linspace(1.0, 0.1, 500))
    pattern = sorted_l1_pattern(wide)
    # clusters can be read off by equality: far fewer magnitudes than coefficients, none apart by rounding
    magnitudes = np.unique(np.abs(wide[wide != 0]))
    assert np.abs(pattern).max() == magnitudes.size < np.count_nonzero(wide)
    assert np.diff(magnitudes).min() > 1e-9


def test_degenerate_vectors() -> None:
    assert prox_sorted_l1([], []).shape == (0,)
    assert prox_sorted_l1([3.0], [1.0]).tolist() == [2.0]
    assert prox_sorted_l1([-0.5], [1.0]).tolist() == [0.0]
    assert prox_sorted_l1([3.0, -4.0], [0.0, 0.0]).tolist() == [3.0, -4.0]
    assert sorted_l1_norm([], []) == 0.0
    assert dual_sorted_l1_norm([0.0, 0.0], [1.0, 0.5]) == 0.0


@pytest.mark.parametrize(
    ("v", "lam", "message"),
    [
        ([1.0, np.nan], [1.0, 1.0], r"v\[1\] = nan"),
        ([1.0, 2.0], [1.0], "1 weights for p = 2"),
        ([1.0, 2.0], [1.0, 2.0], r"lam\[0\] = 1 < lam\[1\] = 2"),
        ([1.0, 2.0], [1.0, -1.0], r"lam\[1\] = -1"),
        ([[1.0]], [1.0], "shape"),
        (["a"], [1.0], "not numeric"),
    ],
)
def test_bad_input_names_the_rule(v: Any, lam: Any, message: str) -> None:
    with pytest.raises(ConvexlawError, match=message):
        prox_sorted_l1(v, lam)


def test_kkt_violation_measures() -> None:
    lam = [1.0, 0.5, 0.25]
    assert kkt_violation([2.0, 0.0, 0.0], [1.0, 0.5, 0.25], lam) == pytest.approx(0.0, abs=1e-15)
    assert kkt_violation([2.0, 0.0, 0.0], [1.2, 0.0, 0.0], lam) == pytest.approx(0.2)
    assert kkt_violation([2.0, 0.0, 0.0], [1.0, 0.9, 0.0], lam) == pytest.approx(0.4)
    # inside a cluster: the sum fits, the leading partial sum does not
    assert kkt_violation([2.0, -2.0, 0.0], [1.4, -0.1, 0.0], lam) == pytest.approx(0.4)


def test_strong_set_is_the_support_of_a_prox() -> None:
    rng = np.random.default_rng(3)
    g = rng.normal(size=60)
    lam = bh_sequence(60, 0.2)
    kept = strong_set(g, 0.9 * lam, lam)
    assert set(kept) == set(np.flatnonzero(prox_sorted_l1(g, 0.8 * lam)))
