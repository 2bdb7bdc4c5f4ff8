"""Two-level SLOPE made by theory: its scale, its predictions against simulation, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from convexlaw import ConvexlawError, TwoLevelSlope
from convexlaw.theory.designs import optimal_two_level
from convexlaw.theory.scalar_limit import Prior
from convexlaw.theory.tradeoff import two_level_fdp


def simulate(model: Any, n: int, p: int, prior: Prior, sigma: float, norm: float, reps: int) -> np.ndarray:
    """TPP, FDP and MSE of fits to X with N(0, norm^2/n) entries, shape (reps, 3)."""
    rng = np.random.default_rng(0)
    out = np.empty((reps, 3))
    for i in range(reps):
        X = norm / np.sqrt(n) * rng.standard_normal((n, p))
        beta = prior.sample(p, rng, exact=True)
        coef = clone(model).fit(X, X @ beta + sigma * rng.standard_normal(n)).coef_
        hit, true = coef != 0, beta != 0
        out[i] = (hit & true).sum() / true.sum(), (hit & ~true).sum() / hit.sum(), ((coef - beta) ** 2).mean()
    return out


@pytest.mark.parametrize(("scaling", "norm"), [("none", 1.0), ("l2", 3.0)], ids=["none", "l2 in other units"])
def test_predictions_agree_with_simulation(scaling: str, norm: float) -> None:
    n, p, sigma = 180, 300, 0.3
    law = Prior.parse("1:0.1, -1:0.1").scaled(1.0 / norm)
    model = TwoLevelSlope.from_theory(
        n / p, 0.2, law, sigma=sigma, column_norm=norm, scaling=scaling, fit_intercept=False
    )
    predicted = model.asymptotics()
    found = simulate(model, n, p, law, sigma, norm, 20)
    mean, se = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(20)
    expected = np.array([predicted.tpp, predicted.fdp, predicted.mse])
    # the limits themselves are off by about 1/sqrt(p)
    slack = np.array([1.0, 1.0, predicted.mse]) * 0.5 / np.sqrt(p)
    assert (np.abs(mean - expected) < 4 * se + slack).all(), (mean, se, expected)


@pytest.mark.slow
def test_predictions_agree_with_large_simulation() -> None:
    n, p, sigma = 1500, 2500, 0.3
    law = Prior.parse("1:0.1, -1:0.1")
    model = TwoLevelSlope.from_theory(n / p, 0.2, law, sigma=sigma)
    predicted = model.asymptotics()
    found = simulate(model, n, p, law, sigma, 1.0, 30)
    mean, se = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(30)
    expected = np.array([predicted.tpp, predicted.fdp, predicted.mse])
    slack = np.array([1.0, 1.0, predicted.mse]) * 0.3 / np.sqrt(p)
    assert (np.abs(mean - expected) < 3 * se + slack).all(), (mean, se, expected)


def test_the_design_is_that_of_the_theory() -> None:
    law = Prior.parse("0:0.8, 1:0.2")
    best = optimal_two_level(law, 0.5, 0.3)
    for given in (law, "0:0.8, 1:0.2", "1:1"):
        model = TwoLevelSlope.from_theory(0.5, 0.2, given, sigma=0.3)
        predicted = model.asymptotics()
        assert predicted.mse == pytest.approx(best.state.mse, rel=1e-5)
        assert predicted.tpp == pytest.approx(best.state.tpp, abs=1e-4)
    assert model.high >= model.low >= 0.0
    assert model.high == pytest.approx(best.lam.value(np.array(1e-9)), rel=1e-9)


def test_units_of_X_change_the_numbers_and_not_the_answer() -> None:
    base = TwoLevelSlope.from_theory(0.5, 0.2, "1:1", sigma=0.3).asymptotics()
    model = TwoLevelSlope.from_theory(0.5, 0.2, "0.1:1", sigma=0.3, column_norm=10.0)
    other = model.asymptotics()
    assert other.tpp == pytest.approx(base.tpp, abs=1e-6)
    assert other.mse == pytest.approx(base.mse / 100.0, rel=1e-6)
    # the same estimator stated in the other ways
    rng = np.random.default_rng(0)
    X = 10.0 / np.sqrt(100) * rng.standard_normal((100, 200))
    y = X[:, :40] @ np.full(40, 0.1) + 0.3 * rng.standard_normal(100)
    fitted = model.fit(X, y)
    asked = {"sigma": 0.3, "delta": 0.5, "column_norm": 10.0}
    plain = TwoLevelSlope(
        alpha=fitted.alpha_ * fitted.high, high=1.0, low=fitted.low / fitted.high, fraction=fitted.fraction
    ).fit(X, y)
    np.testing.assert_allclose(plain.coef_, fitted.coef_, atol=1e-5)
    again = plain.asymptotics("0:0.8, 0.1:0.2", **asked)
    direct = fitted.asymptotics(delta=0.5)
    assert again.tpp == pytest.approx(direct.tpp, abs=1e-8)
    scaled = TwoLevelSlope(alpha=0.02, high=1.0, low=0.5, scaling="sd").fit(X, y)
    assert 0 < scaled.asymptotics("0:0.8, 0.1:0.2", **asked).tpp < 1


def test_targets() -> None:
    law = Prior.parse("0:0.8, 2:0.2")
    free = TwoLevelSlope.from_theory(0.6, 0.2, law, sigma=0.3).asymptotics()
    aimed = TwoLevelSlope.from_theory(0.6, 0.2, law, sigma=0.3, target=0.9)
    assert aimed.asymptotics().tpp == pytest.approx(0.9, abs=1e-5)
    assert 0.0 < aimed.asymptotics().fdp < free.fdp or free.tpp < 0.9
    bound = float(two_level_fdp(0.7, 0.3, 0.2))
    best = TwoLevelSlope.from_theory(0.3, 0.2, target=0.7).asymptotics()
    assert best.tpp == pytest.approx(0.7, abs=1e-6)
    assert best.fdp == pytest.approx(bound, abs=1e-6)
    with pytest.raises(ConvexlawError, match="signals at infinity"):
        TwoLevelSlope.from_theory(0.5, 0.1, target=0.5)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "a prior .* or a target"),
        ({"prior": "1:1"}, "sigma is missing"),
        ({"prior": "0:0.5, 1:0.5", "sigma": 0.3}, "signals with probability 0.5"),
        ({"target": 0.7, "sigma": 0.3}, "without a prior"),
        ({"prior": "1:1", "sigma": 0.3, "target": 1.5}, "target = 1.5"),
        ({"prior": "1:1", "sigma": 0.3, "scaling": "sd"}, "scaling = 'sd'"),
        ({"prior": "1:1", "sigma": 0.3, "scaling": "max_abs"}, "scaling = 'max_abs'"),
        ({"prior": "1:1", "sigma": 0.3, "column_norm": 0.0}, "column_norm = 0"),
    ],
)
def test_bad_questions(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ConvexlawError, match=match):
        TwoLevelSlope.from_theory(0.3, 0.2, **options)


def test_what_a_plain_estimator_must_be_told() -> None:
    with pytest.raises(ConvexlawError, match="prior and sigma"):
        TwoLevelSlope().asymptotics()
    with pytest.raises(ConvexlawError, match="delta is missing"):
        TwoLevelSlope().asymptotics("1:0.2", sigma=0.3)
    with pytest.raises(ConvexlawError, match="before the model is fitted"):
        TwoLevelSlope().asymptotics("1:0.2", sigma=0.3, delta=0.5)
    model = TwoLevelSlope.from_theory(0.5, 0.2, "1:1", sigma=0.3)
    with pytest.raises(ConvexlawError, match="not cloned"):
        clone(model).asymptotics()
    text = str(model.asymptotics())
    assert "independent N(0, c^2/n)" in text
    assert len(text.splitlines()) <= 12
    assert model.asymptotics().to_frame()["tpp"].item() == model.asymptotics().tpp
