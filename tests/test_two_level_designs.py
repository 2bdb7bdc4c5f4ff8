"""Optimal designs: golden values, printed table, brute force, better than a Lasso, most power, finite p."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from convexlaw.errors import ConvexlawError
from convexlaw.theory.designs import (
    finite_tau,
    fit_prior,
    gradient_design,
    improve_lasso,
    most_powerful_slope,
    optimal_lasso,
    optimal_slope,
    optimal_two_level,
)
from convexlaw.theory.scalar_limit import BH, KLevel, Lasso, Oscar, Prior, TwoLevel, null_risk
from convexlaw.theory.state_evolution import NoFixedPointError, solve

RELAXED = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CLASSES = {"lasso": optimal_lasso, "twolevel": optimal_two_level, "slope": optimal_slope}

sparsities = st.floats(0.01, 0.9)
priors = st.one_of(
    st.builds(Prior.bernoulli_gaussian, sparsities, st.floats(0.05, 20.0)),
    st.builds(Prior.two_point, sparsities, st.floats(0.3, 8.0)),
    st.builds(
        lambda e, w, a, b: Prior((1 - e, w * e, (1 - w) * e), (0.0, a, b)),
        sparsities,
        st.floats(0.05, 0.95),
        st.floats(0.3, 3.0),
        st.floats(-6.0, -0.5),
    ),
)
ratios = st.floats(0.15, 2.0)
noises = st.floats(0.02, 2.0)


@pytest.fixture(scope="module")
def entries(golden):
    data = golden("slope_and_tradeoffs")
    laws = {
        name: Prior([c["weight"] for c in parts], [c["mean"] for c in parts], [c["var"] for c in parts])
        for name, parts in data["priors"].items()
    }
    return data["public"], laws


def test_golden_optima(entries):
    items, laws = entries
    found = [e for e in items if e["kind"] == "opt_tau"]
    assert len(found) == 6
    for e in found:
        a = e["args"]
        state = CLASSES[a["cls"]](laws[a["prior"]], a["delta"], a["sigma"]).state
        assert (state.tau, state.mse) == pytest.approx((e["value"]["tau"], e["value"]["mse"]), abs=e["tol"])


def test_golden_improvement(entries):
    items, laws = entries
    for e in items:
        if e["kind"] == "improve":
            a = e["args"]
            state = improve_lasso(laws[a["prior"]], a["delta"], a["sigma"], a["alpha"]).state
            for key, value in e["value"].items():
                assert getattr(state, key) == pytest.approx(value, abs=e["tol"])


@pytest.mark.parametrize(
    ("prior", "delta", "sigma", "lasso", "two_level", "slope"),
    [
        ("N(0,1):0.5", 0.5, 0.2, 0.26795, 0.24418, 0.23480),
        ("N(0,1):0.5", 0.5, 0.5, 0.35160, 0.31781, 0.30435),
        ("N(0,1):0.5", 0.5, 1.0, 0.44702, 0.40173, 0.38571),
        ("N(0,1):0.5", 0.5, 2.0, 0.49739, 0.46306, 0.45329),
        ("N(0,1):0.05", 0.5, 0.5, 0.03073, 0.03041, 0.03028),
        ("N(0,1):0.2", 0.5, 0.5, 0.12361, 0.11945, 0.11802),
        ("N(0,1):0.35", 0.5, 0.5, 0.23167, 0.21707, 0.21150),
        ("N(0,1):0.7", 0.5, 0.5, 0.52279, 0.44869, 0.42292),
        ("N(0,1):0.9", 0.5, 0.5, 0.70126, 0.57109, 0.53451),
        ("N(0,1):0.1", 0.5, 0.2, 0.019955, 0.019873, 0.019851),
        ("1:0.5", 0.5, 0.2, 0.40288, 0.28159, 0.26132),
        ("4:0.2", 0.64, 0.5, 0.62594, 0.51958, 0.51957),
    ],
)
def test_the_printed_table_of_smallest_errors(prior, delta, sigma, lasso, two_level, slope):
    law = Prior.parse(prior)
    found = [f(law, delta, sigma).state.mse for f in CLASSES.values()]
    np.testing.assert_allclose(found, [lasso, two_level, slope], atol=6e-6)


@RELAXED
@given(priors, ratios, noises)
def test_larger_classes_do_better(prior, delta, sigma):
    lasso, two, slope = (f(prior, delta, sigma).state for f in CLASSES.values())
    assert slope.tau <= two.tau * (1 + 1e-6)
    assert two.tau <= lasso.tau * (1 + 1e-9)
    # the optimum of the theory is a problem with lambda > 0
    assert lasso.df < delta
    assert two.df < delta
    assert slope.df < delta


@RELAXED
@given(priors, ratios, noises, st.floats(0.3, 3.0), st.floats(0.0, 2.0), st.floats(0.02, 0.8))
def test_no_member_beats_the_optimum_of_its_class(prior, delta, sigma, low, gap, share):
    best = {name: f(prior, delta, sigma).state.tau for name, f in CLASSES.items()}
    for name, shape in (
        ("lasso", Lasso(low)),
        ("twolevel", TwoLevel(low + gap, low, share)),
        ("slope", BH(0.4 + 0.2 * gap, share)),
        ("slope", Oscar(low, gap + 0.1)),
        ("slope", KLevel([low + gap + 0.5, low + gap, low], [0.3 * share, 0.3])),
    ):
        if null_risk(shape) < 0.95 * delta:
            tau = solve(prior, shape, delta, sigma, require_lambda=False).tau
            assert tau >= best[name] * (1 - 1e-6)


def test_optima_by_brute_force_over_the_fixed_point():
    """Nelder-Mead on tau(alpha1, alpha2, s) through the state evolution alone."""
    prior, delta, sigma = Prior.parse("1:0.35"), 0.6, 0.3

    def tau(x):
        low, high, share = abs(x[0]), abs(x[0]) + abs(x[1]), 1 / (1 + math.exp(-x[2]))
        shape = TwoLevel(high, low, share)
        if null_risk(shape) >= 0.99 * delta:
            return 50.0
        return solve(prior, shape, delta, sigma, require_lambda=False).tau

    best = min(
        minimize(tau, start, method="Nelder-Mead", options={"maxfev": 400}).fun
        for start in ([0.5, 0.5, -1.0], [1.0, 1.0, -2.0], [0.8, 3.0, -4.0])
    )
    found = optimal_two_level(prior, delta, sigma).state.tau
    assert found <= best + 1e-9
    assert found == pytest.approx(best, abs=2e-4)


@RELAXED
@given(priors, ratios, noises, st.floats(0.6, 3.0))
def test_two_levels_improve_every_lasso_at_once(prior, delta, sigma, alpha):
    assume(null_risk(Lasso(alpha)) < 0.95 * delta)
    lasso = solve(prior, Lasso(alpha), delta, sigma, require_lambda=False)
    better = improve_lasso(prior, delta, sigma, alpha).state
    assert better.threshold == pytest.approx(alpha, rel=1e-9)
    assert better.tau <= lasso.tau * (1 + 1e-12)
    assert better.tpp >= lasso.tpp - 1e-9
    assert better.fdp <= lasso.fdp + 1e-9
    assert better.mse <= lasso.mse + 1e-9


@RELAXED
@given(priors, ratios, noises, st.floats(0.01, 0.3))
def test_most_powerful_slope_keeps_its_level(prior, delta, sigma, level):
    design = most_powerful_slope(prior, delta, sigma, level)
    a = design.state.threshold
    # selection may begin above the wanted threshold where a tied piece follows it
    assert math.erfc(a / math.sqrt(2)) <= level * (1 + 1e-3)
    better = improve_lasso(prior, delta, sigma, a) if null_risk(Lasso(a)) < 0.9 * delta else None
    if better is not None:
        assert design.state.tau <= better.state.tau * (1 + 1e-4)


def test_exact_recovery_without_noise():
    prior = Prior.two_point(0.05, 4.0)
    for f in CLASSES.values():
        state = f(prior, 0.64, 0.0).state
        assert state.tau == 0.0
        assert state.mse == 0.0
    assert optimal_lasso(Prior.two_point(0.6, 1.0), 0.64, 0.0).state.tau > 0


def test_errors_name_the_rule():
    prior = Prior.two_point(0.2, 4.0)
    for call, rule in (
        (lambda: optimal_lasso(Prior.null(), 0.5, 0.5), "no signals"),
        (lambda: optimal_two_level(prior, -0.5, 0.5), "delta = -0.5"),
        (lambda: optimal_slope(prior, 0.5, float("nan")), "finite"),
        (lambda: most_powerful_slope(prior, 0.5, 0.5, 1.0), "inside"),
        (lambda: improve_lasso(prior, 0.5, 0.5, 0.0), "must be > 0"),
        (lambda: gradient_design(prior, 0.5, 0.5, Lasso(1.0)), "p = None"),
        (lambda: gradient_design(prior, 0.5, 0.5, Lasso(0.05), p=50, rng=0), "no fixed point"),
        (lambda: finite_tau([1.0, 2.0], prior, 0.5, 0.5), "must not increase"),
        (lambda: finite_tau([2.0, 1.0], [1.0], 0.5, 0.5), "one a feature"),
        (lambda: fit_prior([1.0, 2.0], 1.0), "at least 10"),
        (lambda: fit_prior(np.zeros(20), 0.0), "must be > 0"),
    ):
        with pytest.raises(ConvexlawError, match=rule):
            call()
    with pytest.raises(NoFixedPointError):
        improve_lasso(prior, 0.3, 0.5, 0.2)


def test_finite_fixed_point_tends_to_the_limit():
    prior = Prior.bernoulli_gaussian(0.2)
    for shape in (Lasso(1.3), TwoLevel(1.8, 1.0, 0.2), BH(0.8, 0.3)):
        limit = solve(prior, shape, 0.8, 0.3).tau
        found = [finite_tau(shape.weights(2000), prior, 0.8, 0.3, draws=20, rng=s) for s in range(4)]
        assert np.mean(found) == pytest.approx(limit, abs=4 * np.std(found) / 2 + 0.003)


def test_gradient_is_the_derivative_of_the_fixed_point():
    from convexlaw.theory._finite_designs import _sample

    sample = _sample(Prior.bernoulli_gaussian(0.4), 30, 0.8, 0.4, 200, 1)
    weights = np.linspace(1.6, 0.6, 30)
    tau = sample.tau(weights)
    gradient = sample.gradient(weights, tau)
    for i in (0, 7, 18, 29):
        step = np.zeros(30)
        step[i] = 0.015  # below the spacing: the order stays
        slope = (sample.tau(weights + step) ** 2 - sample.tau(weights - step) ** 2) / 0.03
        assert gradient[i] == pytest.approx(slope, abs=0.05 * np.abs(gradient).max() + 1e-4)


def test_projected_gradient_approaches_the_optimum():
    prior = Prior.parse("1:0.5")
    found = gradient_design(prior, 0.5, 0.2, Lasso(0.8), p=200, draws=40, max_iter=40, rng=0)
    assert (np.diff(found.history) < 0).all()
    assert (np.diff(found.weights) <= 0).all()
    assert found.weights[-1] >= 0
    limit = optimal_slope(prior, 0.5, 0.2).state.tau
    assert found.tau == pytest.approx(limit, abs=0.03)
    assert found.tau < optimal_lasso(prior, 0.5, 0.2).state.tau - 0.1
    assert found.penalty.values[0] == found.weights[0]
    assert len(str(found).splitlines()) <= 12
    assert list(found.to_frame().columns) == ["rank", "weight"]


def test_prior_from_noisy_estimates():
    rng = np.random.default_rng(0)
    for prior, tau in (
        (Prior.parse("0:0.8, 3:0.15, -5:0.05"), 0.6),
        (Prior.bernoulli_gaussian(0.3, 4.0), 0.5),
    ):
        beta = prior.sample(20_000, rng)
        fitted = fit_prior(beta + tau * rng.standard_normal(beta.size), tau)
        assert fitted.second_moment == pytest.approx(prior.second_moment, rel=0.05)
        # the designs it leads to are as good as those for the true law
        for f in (optimal_lasso, optimal_two_level):
            planned = f(fitted, 0.6, 0.3).penalty
            reached = solve(prior, planned, 0.6, 0.3, require_lambda=False).mse
            assert reached <= 1.02 * f(prior, 0.6, 0.3).state.mse
    assert fit_prior(rng.standard_normal(5000), 1.0).epsilon < 0.02


def test_designs_print_and_give_weights():
    design = optimal_two_level(Prior.parse("1:0.5"), 0.5, 0.2)
    assert len(str(design).splitlines()) <= 12
    weights = design.weights(100)
    assert weights.shape == (100,)
    assert weights[0] == pytest.approx(design.penalty.alpha1 * design.state.lambda_factor)
    assert weights.mean() == pytest.approx(float(design.lam.integral(1.0)))
    # a level on less than one rank: its weight keeps the sum
    thin = optimal_two_level(Prior.parse("4:0.1"), 0.5, 1.0)
    assert thin.penalty.fraction * 800 < 1
    assert thin.weights(800).mean() == pytest.approx(float(thin.lam.integral(1.0)))
    assert thin.weights(800)[0] > 2 * thin.weights(800)[1]
    assert design.to_frame().loc[0, "name"] == design.name
