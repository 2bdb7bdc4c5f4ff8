"""Penalty sequences against their formulas, reference values and a peer package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from convexlaw.errors import ConvexlawError
from convexlaw.theory import sorted_l1 as s


def test_reference_sequences(golden: Any) -> None:
    for item in golden("slope_and_tradeoffs")["public"]:
        if item["kind"] == "sequence":
            args = dict(item["args"]["lam"])
            lam = s.penalty_sequence(args.pop("type"), item["args"]["p"], **args)
            np.testing.assert_allclose(lam[item["args"]["idx"]], item["value"], atol=item["tol"])


def test_bh_is_the_normal_quantile() -> None:
    lam = s.bh_sequence(30, 0.2)
    np.testing.assert_allclose(lam, norm.ppf(1 - np.arange(1, 31) * 0.2 / 60), rtol=1e-12)
    assert s.bh_sequence(10, 1.0)[-1] == 0.0


@pytest.mark.parametrize(("n", "p"), [(200, 20), (50, 60), (8, 10)])
def test_gaussian_equals_its_recursion_and_sortedl1(n: int, p: int) -> None:
    import sortedl1

    base = s.bh_sequence(p, 0.2)
    raw = base.copy()
    for i in range(1, p):
        raw[i] = base[i] * np.sqrt(1.0 + np.sum(raw[:i] ** 2) / max(1, n - i - 1))
    expected = np.minimum.accumulate(raw)
    np.testing.assert_allclose(s.gaussian_sequence(p, 0.2, n=n), expected, rtol=1e-12)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    peer = sortedl1.Slope(lambda_type="gaussian", q=0.2).fit(X, X[:, 0] + rng.normal(size=n))
    np.testing.assert_allclose(expected, np.ravel(peer.lambda_), rtol=1e-7)


def test_levels() -> None:
    assert s.two_level_sequence(10, 2.0, 0.5, 0.25).tolist() == [2.0] * 2 + [0.5] * 8
    assert s.k_level_sequence(6, [3.0, 2.0, 1.0], [1 / 3, 1 / 3, 1 / 3]).tolist() == [3, 3, 2, 2, 1, 1]
    assert s.k_level_sequence(3, [1.0], []).tolist() == [1.0, 1.0, 1.0]
    assert s.lasso_sequence(2).tolist() == [1.0, 1.0]
    assert s.oscar_sequence(3, 1.0, 0.0).tolist() == [1.0, 1.0, 1.0]


def test_scalings_are_inverse() -> None:
    lam = s.bh_sequence(5)
    np.testing.assert_allclose(s.averaged_weights(s.amp_weights(0.3, lam, 40), 40), 0.3 * lam)


def test_pattern() -> None:
    assert s.sorted_l1_pattern([0.0, -2.0, 1.0, 2.0, 0.5]).tolist() == [0, -3, 2, 3, 1]
    assert s.sorted_l1_pattern([3.0, 3.0]).tolist() == [1, 1]
    assert s.sorted_l1_pattern([]).tolist() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: s.bh_sequence(3, 0.0), "q = 0"),
        (lambda: s.bh_sequence(3, 1.5), "q = 1.5"),
        (lambda: s.bh_sequence(-1), "p = -1"),
        (lambda: s.gaussian_sequence(3, n=0), "n = 0"),
        (lambda: s.oscar_sequence(3, -1.0, 0.5), "theta1 = -1"),
        (lambda: s.two_level_sequence(3, 1.0, 2.0, 0.5), "high = 1.0, low = 2.0"),
        (lambda: s.two_level_sequence(3, 1.0, 0.5, 1.5), "fraction = 1.5"),
        (lambda: s.k_level_sequence(3, [1.0, 2.0], [0.5]), "must not increase"),
        (lambda: s.k_level_sequence(3, [2.0, 1.0], [0.7, 0.7]), "sum to 1.4"),
        (lambda: s.k_level_sequence(3, [2.0, 1.0], [0.2, 0.2, 0.6]), "2 levels"),
        (lambda: s.penalty_sequence("ridge", 3), "lambda_type = 'ridge'"),
        (lambda: s.penalty_sequence("gaussian", 3), "number of rows"),
        (lambda: s.check_sequence([1.0, np.inf], 2), "finite"),
    ],
)
def test_bad_parameters_name_the_rule(call: Any, message: str) -> None:
    with pytest.raises(ConvexlawError, match=message):
        call()
