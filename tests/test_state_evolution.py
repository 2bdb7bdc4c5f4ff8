"""State evolution: golden values, fixed point and identities, both failures, calibration, exact recovery."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from convexlaw.errors import ConvexlawError
from convexlaw.theory.scalar_limit import (
    BH,
    Gaussian,
    KLevel,
    Lasso,
    Oscar,
    Prior,
    TwoLevel,
    limiting_function,
)
from convexlaw.theory.state_evolution import (
    NoFixedPointError,
    NonPositiveLambdaError,
    alpha_min,
    calibrate,
    estimate_from_fit,
    null_risk,
    solve,
    trajectory,
)

RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

sparsities = st.floats(0.005, 0.9)
priors = st.one_of(
    st.builds(Prior.bernoulli_gaussian, sparsities, st.floats(0.05, 20.0)),
    st.builds(Prior.two_point, sparsities, st.floats(0.3, 8.0)),
)
penalties = st.one_of(
    st.builds(Lasso, st.floats(0.3, 3.0)),
    st.builds(
        lambda low, gap, s: TwoLevel(low + gap, low, s),
        st.floats(0.1, 2.5),
        st.floats(0.01, 2.0),
        st.floats(0.01, 0.9),
    ),
    st.builds(BH, st.floats(0.3, 1.2), st.floats(0.02, 0.9)),
    st.builds(Oscar, st.floats(0.1, 1.5), st.floats(0.1, 3.0)),
)
ratios = st.floats(0.1, 3.0)
noises = st.floats(0.01, 3.0)


def penalty(spec):
    if spec["type"] == "lasso":
        return Lasso(spec["alpha"])
    if spec["type"] == "2level":
        return TwoLevel(spec["alpha1"], spec["alpha2"], spec["s"])
    return BH(spec["kappa"], spec["q"])


@pytest.fixture(scope="module")
def entries(golden):
    data = golden("slope_and_tradeoffs")
    laws = {
        name: Prior([c["weight"] for c in parts], [c["mean"] for c in parts], [c["var"] for c in parts])
        for name, parts in data["priors"].items()
    }
    return data["public"], laws


def test_golden_fixed_points(entries):
    items, laws = entries
    names = {"thr": "threshold", "factor": "lambda_factor"}
    found = [e for e in items if e["kind"] == "se"]
    assert len(found) == 6
    for e in found:
        a = e["args"]
        state = solve(laws[a["prior"]], penalty(a["penalty"]), a["delta"], a["sigma"])
        for key, value in e["value"].items():
            assert getattr(state, names.get(key, key)) == pytest.approx(value, abs=e["tol"], rel=e["tol"]), (
                key
            )


def test_golden_calibrations(entries):
    items, laws = entries
    found = [e for e in items if e["kind"] == "lambda_to_alpha"]
    assert len(found) == 3
    for e in found:
        a = e["args"]
        state = calibrate(laws[a["prior"]], penalty(a["penalty"]), a["delta"], a["sigma"])
        for key, value in e["value"].items():
            assert getattr(state, key) == pytest.approx(value, abs=e["tol"], rel=e["tol"]), key


def test_golden_alpha_min(entries):
    for e in entries[0]:
        if e["kind"] == "alpha_min_lasso":
            assert alpha_min(e["args"]["delta"]) == pytest.approx(e["value"], abs=e["tol"])
    assert alpha_min(1.0) == alpha_min(2.5) == 0.0


@RELAXED
@given(priors, penalties, ratios, noises)
def test_fixed_point_and_its_identities(prior, shape, delta, sigma):
    if null_risk(shape) >= delta * (1 - 1e-3):
        with pytest.raises(NoFixedPointError, match=r"no fixed point|edge of the domain"):
            solve(prior, shape, min(delta, null_risk(shape)), sigma)
        return
    state = solve(prior, shape, delta, sigma, require_lambda=False)
    h = limiting_function(prior, shape, state.tau)
    if h.mse > 1e-3 * delta * state.tau**2:  # else the difference cancels
        assert state.mse == pytest.approx(delta * (state.tau**2 - sigma**2), rel=1e-12)
    assert state.mse == pytest.approx(h.mse, rel=1e-5)
    assert sigma**2 + h.mse / delta == pytest.approx(state.tau**2, rel=1e-7)
    assert state.lambda_factor == pytest.approx(state.tau * (1 - state.df / delta), abs=1e-12)
    assert state.residual == pytest.approx(state.lambda_factor**2, abs=1e-15)
    assert 0 <= state.df <= state.selected + 1e-7
    assert state.tau >= sigma
    # sigma = 0 bounds it from below, no signals left from above
    assert state.tau**2 <= sigma**2 + (prior.second_moment + null_risk(shape) * state.tau**2) / delta + 1e-9
    if state.df >= delta:
        with pytest.raises(NonPositiveLambdaError, match="not positive"):
            solve(prior, shape, delta, sigma)
    else:
        assert solve(prior, shape, delta, sigma).lambda_factor > 0


@RELAXED
@given(priors, penalties, ratios, noises)
def test_iteration_converges_to_the_fixed_point(prior, shape, delta, sigma):
    assume(null_risk(shape) < 0.7 * delta)
    taus = trajectory(prior, shape, delta, sigma, 2000)  # contractions up to .97 a step occur
    state = solve(prior, shape, delta, sigma, require_lambda=False)
    assert taus[-1] == pytest.approx(state.tau, rel=1e-5)
    assert (np.diff(taus) <= 1e-8 * taus[0]).all() or (np.diff(taus) >= -1e-8 * taus[0]).all()


@RELAXED
@given(
    priors,
    st.one_of(penalties, st.builds(Gaussian, st.floats(0.5, 1.0), st.floats(0.1, 0.4), st.just(0.7))),
    ratios,
    noises,
    st.floats(0.05, 2.0),
)
def test_calibration_round_trips_both_ways(prior, shape, delta, sigma, size):
    state = calibrate(prior, shape.scaled(size), delta, sigma)
    again = solve(prior, state.penalty, delta, sigma)
    assert state.penalty == shape.scaled(size).scaled(state.scale)
    assert again.lambda_factor * state.scale == pytest.approx(1.0, abs=2e-6)
    assert again.tau == pytest.approx(state.tau, rel=1e-7)


def test_lambda_grows_with_the_scale():
    prior = Prior.two_point(0.2, 4.0)
    for shape in (Lasso(1.0), TwoLevel(1.0, 0.5, 0.2), BH(0.5, 0.3)):
        factors = [
            solve(prior, shape.scaled(k), 0.64, 0.5, require_lambda=False).lambda_factor * k
            for k in np.linspace(1.1, 4.0, 12)
        ]
        assert (np.diff(factors) > 0).all()


def test_the_two_failures_are_different_errors():
    prior = Prior.two_point(0.3, 4.0)
    with pytest.raises(NoFixedPointError, match=r"null_risk\(penalty\) = 0.604"):
        solve(prior, Lasso(0.3), 0.5, 0.1)
    with pytest.raises(NonPositiveLambdaError, match=r"df = 0.654"):
        solve(prior, Lasso(0.5), 0.5, 0.1)
    fixed = solve(prior, Lasso(0.5), 0.5, 0.1, require_lambda=False)
    assert fixed.lambda_factor < 0
    with pytest.raises(NonPositiveLambdaError, match="larger levels"):
        _ = fixed.lam
    assert issubclass(NoFixedPointError, ConvexlawError)
    assert not issubclass(NoFixedPointError, NonPositiveLambdaError)


def test_exact_recovery_and_its_border():
    # sigma = 0: tau = 0 iff F'(0) < 1, which for the Lasso is (1-eps) E_0(a) + eps (1 + a^2) < delta
    a, delta = 1.4, 0.5
    soft = null_risk(Lasso(a))
    border = (delta - soft) / (1 + a * a - soft)
    below = solve(Prior.bernoulli_gaussian(border * 0.98), Lasso(a), delta, 0.0)
    assert (below.tau, below.mse, below.lambda_factor) == (0.0, 0.0, 0.0)
    assert below.tpp == pytest.approx(1.0, abs=1e-5)
    epsilon = border * 0.98
    false = (1 - epsilon) * math.erfc(a / math.sqrt(2))
    assert below.fdp == pytest.approx(false / (false + epsilon), abs=1e-5)
    above = solve(Prior.bernoulli_gaussian(border * 1.02), Lasso(a), delta, 0.0)
    assert above.tau > 1e-3
    for shape in (TwoLevel(2.0, 1.5, 0.05), BH(0.9, 0.2)):
        state = solve(Prior.two_point(0.02, 5.0), shape, 0.6, 0.0)
        assert state.tau == 0.0
        assert state.tpp == 1.0


def test_small_noise_tends_to_the_noiseless_limit():
    prior = Prior.two_point(0.05, 4.0)
    exact = solve(prior, BH(0.9, 0.2), 0.5, 0.0)
    near = solve(prior, BH(0.9, 0.2), 0.5, 1e-5)
    assert near.tau < 1e-4
    assert (near.fdp, near.tpp, near.df) == pytest.approx((exact.fdp, exact.tpp, exact.df), abs=1e-4)
    # far below every resolution tau is proportional to sigma
    tiny = solve(prior, BH(0.9, 0.2), 0.5, 1e-250)
    assert tiny.tau / 1e-250 == pytest.approx(near.tau / 1e-5, rel=1e-3)
    assert tiny.fdp == pytest.approx(exact.fdp, abs=1e-6)


def test_no_signals_and_few_signals():
    state = solve(Prior.null(), Lasso(1.5), 0.5, 0.3)
    assert math.isnan(state.tpp)
    assert state.fdp == 1.0
    assert state.tau == pytest.approx(0.3 / math.sqrt(1 - null_risk(Lasso(1.5)) / 0.5), rel=1e-12)
    rare = solve(Prior.two_point(1e-9, 3.0), Lasso(1.5), 0.5, 0.3)
    assert rare.tau == pytest.approx(state.tau, rel=1e-6)
    assert rare.fdp == pytest.approx(1.0, abs=1e-6)
    assert solve(Prior.null(), Lasso(1.5), 0.5, 0.0).tau == 0.0


def test_least_squares_above_one_row_a_feature():
    # alpha = 0 with delta > 1 is ordinary least squares: tau^2 = sigma^2 delta/(delta - 1)
    state = solve(Prior.bernoulli_gaussian(0.3), Lasso(0.0), 2.0, 0.5)
    assert state.tau**2 == pytest.approx(0.25 * 2.0, rel=1e-12)
    assert (state.tpp, state.df) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda p: solve(p, Lasso(1.0), 0.0, 0.1), "delta = 0: must be > 0"),
        (lambda p: solve(p, Lasso(1.0), 0.5, -0.1), "sigma = -0.1: must be >= 0"),
        (lambda p: solve(p, Lasso(1.0), float("nan"), 0.1), "finite"),
        (lambda p: solve(p, Lasso(1.0), 0.5, float("nan")), "finite"),
        (lambda p: calibrate(p, Lasso(0.0), 0.5, 0.1), "0 at every rank"),
        (lambda p: calibrate(Prior.null(), Lasso(1.0), 0.5, 0.0), "both 0"),
        (lambda p: alpha_min(-1.0), "must be > 0"),
    ],
)
def test_bad_input_names_the_rule(call, rule):
    with pytest.raises(ConvexlawError, match=rule):
        call(Prior.bernoulli_gaussian(0.1))


def test_estimates_from_a_fit_recover_the_noise_level():
    """An orthogonal design: soft thresholding, so that everything is known."""
    n = 4000
    rng = np.random.default_rng(3)
    X = np.eye(n)
    beta = Prior.two_point(0.1, 4.0).sample(n, rng, exact=True)
    y = beta + rng.standard_normal(n)
    coef = np.sign(y) * np.maximum(np.abs(y) - 2.0, 0.0)
    found = estimate_from_fit(X, y, coef, sigma=1.0, lam=np.full(n, 2.0 / n))
    m = np.unique(np.abs(coef[coef != 0])).size
    expected = np.linalg.norm(y - coef) / math.sqrt(n) / (1 - m / n)
    assert found.tau == pytest.approx(expected, rel=1e-12)
    assert found.mse == pytest.approx(expected**2 - 1.0, rel=1e-9)
    assert found.penalty is not None
    assert found.penalty.values[0] == pytest.approx(2.0 / (expected * (1 - m / n)), rel=1e-12)
    # the same fit with X times 3 and coefficients over 3: tau and mse follow the units of the coefficients
    scaled = estimate_from_fit(3.0 * X, y, coef / 3.0, sigma=1.0)
    assert (3.0 * scaled.tau, 9.0 * scaled.mse) == pytest.approx((found.tau, found.mse))
    with pytest.raises(ConvexlawError, match="fit together"):
        estimate_from_fit(X, y[:-1], coef, sigma=1.0)
    with pytest.raises(ConvexlawError, match="distinct magnitudes"):
        estimate_from_fit(X, y, y, sigma=1.0)


def test_k_levels_solve_and_print():
    state = solve(Prior.bernoulli_gaussian(0.2), KLevel([2.0, 1.4, 0.9], [0.05, 0.2]), 0.8, 0.3)
    assert len(str(state).splitlines()) <= 12
    assert state.to_frame().loc[0, "tau"] == state.tau
    assert state.lam.levels[0] == pytest.approx(2.0 * state.lambda_factor)
