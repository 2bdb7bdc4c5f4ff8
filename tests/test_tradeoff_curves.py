"""Trade-off curves: golden values, identities, order, limits, and no design below them (the theorems)."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from convexlaw.errors import ConvexlawError
from convexlaw.theory.scalar_limit import BH, KLevel, Lasso, Oscar, Prior, TwoLevel, null_risk
from convexlaw.theory.state_evolution import solve
from convexlaw.theory.tradeoff import (
    complete_lasso_region,
    crossings,
    dagger,
    donoho_tanner_power,
    donoho_tanner_sparsity,
    donoho_tanner_threshold,
    lasso_fdp,
    moebius_design,
    slope_fdp_lower,
    slope_fdp_upper,
    tradeoff_curve,
    tradeoff_threshold,
    two_level_fdp,
)

RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ratios = st.floats(0.05, 2.5)
sparsities = st.floats(0.01, 0.95)
powers = st.floats(0.005, 0.995)

GOLDEN = {
    "eps_star": lambda a: donoho_tanner_sparsity(a["delta"]),
    "t_DT": lambda a: donoho_tanner_threshold(a["delta"]),
    "u_DT": lambda a: donoho_tanner_power(a["delta"], a["eps"]),
    "q_lasso": lambda a: lasso_fdp(a["u"], a["delta"], a["eps"]),
    "q_upper": lambda a: slope_fdp_upper(a["u"], a["delta"], a["eps"]),
    "q_lower": lambda a: slope_fdp_lower(a["u"], a["delta"], a["eps"]),
    "q_2level": lambda a: two_level_fdp(a["u"], a["delta"], a["eps"]),
    "t_upper": lambda a: tradeoff_threshold("slope_upper", a["u"], a["delta"], a["eps"]),
    "t_lower": lambda a: tradeoff_threshold("slope_lower", a["u"], a["delta"], a["eps"]),
    "u_dagger": lambda a: dagger(a["delta"], a["eps"]),
}


def upper(x):
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def test_golden_curves(golden):
    found = [e for e in golden("slope_and_tradeoffs")["public"] if e["kind"] in GOLDEN]
    assert len(found) == 26
    for e in found:
        value = GOLDEN[e["kind"]](e["args"])
        assert isinstance(value, float)
        assert value == pytest.approx(e["value"], abs=e["tol"]), (e["kind"], e["args"])


def test_golden_moebius_design_and_complete_lasso_region(golden):
    for e in golden("slope_and_tradeoffs")["public"]:
        a = e["args"]
        if e["kind"] == "mobius_design":
            design = moebius_design(a["u"], a["delta"], a["eps"])
            for name, key in (("alpha1", "alpha1"), ("alpha2", "alpha2"), ("fraction", "s")):
                assert getattr(design, name) == pytest.approx(e["value"][key], abs=e["tol"])
        elif e["kind"] == "complete_lasso":
            found = complete_lasso_region(a["delta"], a["eps"]).bounds(a["u"])
            assert found == pytest.approx(e["value"], abs=e["tol"])


def test_numbers_of_the_figures():
    # printed in the specification: u_DT, crossings, and the curves of (.3, .2)
    found = crossings(0.3, 0.2)
    assert (found.general, found.two_level) == pytest.approx((0.54123, 0.54618), abs=1e-5)
    np.testing.assert_allclose(
        slope_fdp_lower([0.5, 0.7, 0.9], 0.3, 0.2), [0.544894, 0.660243, 0.760270], atol=1e-6
    )
    np.testing.assert_allclose(
        two_level_fdp([0.3, 0.5, 0.7, 0.9], 0.3, 0.2), [0.331241, 0.544894, 0.667336, 0.765887], atol=1e-6
    )
    np.testing.assert_allclose(
        slope_fdp_upper([0.3, 0.5, 0.7, 0.9], 0.3, 0.2), [0.331724, 0.549327, 0.727804, 0.785231], atol=1e-6
    )
    assert lasso_fdp(0.1, 0.6, 0.25) == pytest.approx(4.9e-5, abs=1e-6)
    assert donoho_tanner_sparsity(0.6) == pytest.approx(0.26303, abs=1e-5)
    assert donoho_tanner_power(0.5, 0.3) == pytest.approx(0.77874, abs=1e-5)


@RELAXED
@given(st.floats(0.01, 0.999), sparsities)
def test_donoho_tanner_identities(delta, epsilon):
    star, t = donoho_tanner_sparsity(delta), donoho_tanner_threshold(delta)
    assert 2 * upper(t) == pytest.approx((delta - star) / (1 - star), rel=1e-9)
    grid = np.linspace(1e-3, t + 6.0, 20_001)
    risk = 2 * ((1 + grid**2) * ndtr(-grid) - grid * np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi))
    assert star == pytest.approx(((delta - risk) / (1 + grid**2 - risk)).max(), abs=1e-6)
    limit = donoho_tanner_power(delta, epsilon)
    if epsilon <= star:
        assert limit == 1.0
    else:
        assert limit == pytest.approx(
            (epsilon - star) * (delta - star) / (epsilon * (1 - star)) + star / epsilon
        )
        # the Lasso has selected exactly n variables
        assert 1 - lasso_fdp(limit, delta, epsilon) == pytest.approx(epsilon * limit / delta, rel=1e-7)


@RELAXED
@given(powers, ratios, sparsities)
def test_lasso_curve_is_the_largest_root_of_its_equation(u, delta, epsilon):
    a = tradeoff_threshold("lasso", u, delta, epsilon)
    start = -float(ndtri(u / 2))
    grid = np.linspace(start, start + max(12.0, math.sqrt(delta / (epsilon * u)) + 2.0), 200_001)
    risk = 2 * ((1 + grid**2) * ndtr(-grid) - grid * np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi))
    # the published fraction, multiplied out
    left = ((1 - epsilon) * risk + epsilon * (1 + grid**2) - delta) * (1 - 2 * ndtr(-grid))
    right = (1 - u) * epsilon * (1 + grid**2 - risk)
    below = np.flatnonzero(left - right <= 0)
    if math.isnan(a):
        # roots below t_DT belong to df > delta, hence to no lambda > 0
        assert not below.size or grid[below[-1]] < donoho_tanner_threshold(delta)
        assert u > donoho_tanner_power(delta, epsilon)
    else:
        assert u <= donoho_tanner_power(delta, epsilon)
        assert a == pytest.approx(grid[below[-1]], abs=2 * (grid[1] - grid[0]))


@RELAXED
@given(powers, ratios, sparsities)
def test_order_of_the_curves(u, delta, epsilon):
    lower, two, top = (f(u, delta, epsilon) for f in (slope_fdp_lower, two_level_fdp, slope_fdp_upper))
    lasso = lasso_fdp(u, delta, epsilon)
    assert 0 <= lower <= two + 1e-12
    assert two <= top + 1e-9
    assert top <= 1 - epsilon + 1e-12
    if not math.isnan(lasso):
        assert lasso == top
    else:
        assert u > donoho_tanner_power(delta, epsilon)


@RELAXED
@given(ratios, sparsities)
def test_curves_rise_with_tpp_and_fall_with_rows(delta, epsilon):
    u = np.linspace(0.05, 0.95, 10)
    for f in (lasso_fdp, slope_fdp_upper, slope_fdp_lower, two_level_fdp):
        here, more = f(u, delta, epsilon), f(u, 1.1 * delta, epsilon)
        known = ~np.isnan(here)
        assert (np.diff(here[known]) >= -1e-9).all()
        assert not np.isnan(more[known]).any()
        assert (more[known] <= here[known] + 1e-9).all()


@RELAXED
@given(st.floats(0.05, 0.9), sparsities)
def test_upper_curve_is_continuous_at_the_power_limit(delta, epsilon):
    limit = donoho_tanner_power(delta, epsilon)
    assume(limit < 0.999)
    at, above = slope_fdp_upper(limit, delta, epsilon), slope_fdp_upper(limit + 1e-9, delta, epsilon)
    assert above == pytest.approx(at, abs=1e-6)
    assert slope_fdp_upper(1.0, delta, epsilon) == pytest.approx(1 - epsilon, abs=1e-12)
    assert tradeoff_threshold("slope_upper", limit + 1e-9, delta, epsilon) == pytest.approx(
        tradeoff_threshold("lasso", limit, delta, epsilon), abs=1e-4
    )
    assert math.isnan(lasso_fdp(limit + 1e-6, delta, epsilon))


@RELAXED
@given(st.floats(0.1, 0.9), sparsities, st.floats(0.05, 0.95))
def test_moebius_design_pools_exactly_to_zero(delta, epsilon, place):
    """With law eps* at infinity and (1 - eps*) N(0, 1), the matching function at flat value 0 vanishes."""
    limit = donoho_tanner_power(delta, epsilon)
    assume(limit < 0.98)
    u = limit + place * (0.999 - limit)
    design = moebius_design(u, delta, epsilon)
    star = donoho_tanner_sparsity(delta)
    assert design.alpha1 == donoho_tanner_threshold(delta)
    assert 0 < design.alpha2 < design.alpha1
    high, low, share = design.alpha1, design.alpha2, design.fraction
    assert star < share < 1
    from scipy.optimize import brentq

    q = brentq(lambda z: star + (1 - star) * 2 * upper(z) - share, 0.0, 12.0, xtol=1e-14)

    def excess(left, right, level):
        phi = [math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) for x in (left, right)]
        return 2 * (1 - star) * (phi[0] - phi[1] - level * (upper(left) - upper(right)))

    assert excess(low, q, low) + excess(q, high, high) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ConvexlawError, match="the Lasso reaches it"):
        moebius_design(limit * 0.99, delta, epsilon)


laws = st.one_of(
    st.builds(Prior.bernoulli_gaussian, sparsities, st.floats(0.01, 400.0)),
    st.builds(Prior.two_point, sparsities, st.floats(0.05, 40.0)),
    st.builds(
        lambda e, w, a, b: Prior((1 - e, w * e, (1 - w) * e), (0.0, a, b)),
        sparsities,
        st.floats(0.05, 0.95),
        st.floats(0.01, 3.0),
        st.floats(3.0, 60.0),
    ),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(laws, st.floats(0.3, 3.5), st.floats(0.0, 2.5), st.floats(0.01, 0.8), ratios, st.floats(0.0, 1.0))
def test_no_design_lies_below_its_curve(prior, low, gap, share, delta, sigma):
    """Theorem: FDP >= curve(TPP) for every prior, noise level and penalty of the class."""
    cases = [
        (Lasso(low), lasso_fdp),
        (TwoLevel(low + gap + 0.01, low, share), two_level_fdp),
        (BH(0.5 + 0.2 * gap, min(0.9, share)), slope_fdp_lower),
        (Oscar(low, gap + 0.1), slope_fdp_lower),
        (KLevel([low + gap + 1.0, low + 0.5 * gap, low], [0.5 * share, 0.2 * share]), slope_fdp_lower),
    ]
    for shape, curve in cases:
        if null_risk(shape) >= 0.98 * delta:
            continue
        state = solve(prior, shape, delta, sigma, require_lambda=False)
        if state.df >= delta or not 1e-3 < state.tpp < 0.999:
            continue
        best = curve(state.tpp, delta, prior.epsilon)
        assert not math.isnan(best), "a Lasso beyond the power limit"
        assert state.fdp >= best - 1e-7
        if isinstance(shape, Lasso):
            region = complete_lasso_region(delta, prior.epsilon)
            assert state.fdp <= region.bounds(state.tpp)[1] + 1e-7


def test_edges_of_the_unit_interval():
    for f in (lasso_fdp, slope_fdp_upper, slope_fdp_lower, two_level_fdp):
        assert f(0.0, 0.3, 0.2) == 0.0
        assert f(1e-12, 0.3, 0.2) == 0.0
        assert f(0.5, 0.3, 1.0) == 0.0 or math.isnan(f(0.5, 0.3, 1.0))
    # u -> 1: one far cluster of all signals where that is possible, chance level otherwise
    assert slope_fdp_lower(1.0, 0.3, 0.2) == two_level_fdp(1.0, 0.3, 0.2) == pytest.approx(0.8)
    full = slope_fdp_lower(1.0, 0.9, 0.5)
    assert full < 0.5
    assert two_level_fdp(1.0, 0.9, 0.5) == full
    assert slope_fdp_lower(1 - 1e-9, 0.9, 0.5) == pytest.approx(full, abs=1e-6)
    assert slope_fdp_lower(1 - 1e-12, 0.3, 0.2) == pytest.approx(0.8, abs=1e-3)
    # more rows than features: no power limit
    for delta in (1.0, 1.5, 4.0):
        assert donoho_tanner_power(delta, 0.7) == 1.0
        assert not np.isnan(lasso_fdp(np.linspace(0, 1, 21), delta, 0.7)).any()
    # few signals: errors vanish
    assert lasso_fdp(0.9, 0.5, 1e-6) < 1e-6
    assert two_level_fdp(0.9, 0.5, 1e-6) <= lasso_fdp(0.9, 0.5, 1e-6)


def test_shapes_and_broadcasting():
    u = np.linspace(0.1, 0.9, 6).reshape(2, 3)
    found = two_level_fdp(u, 0.3, 0.2)
    assert found.shape == (2, 3)
    assert found[1, 2] == two_level_fdp(0.9, 0.3, 0.2)
    grid = slope_fdp_lower(0.5, np.array([[0.3], [0.5]]), np.array([0.2, 0.3, 0.5]))
    assert grid.shape == (2, 3)
    assert grid[1, 1] == slope_fdp_lower(0.5, 0.5, 0.3)
    assert isinstance(lasso_fdp(0.2, 0.3, 0.2), float)
    np.testing.assert_allclose(
        donoho_tanner_sparsity([0.3, 0.5, 2.0]), [0.08723531, 0.19284483, 1.0], atol=1e-8
    )


def test_curve_objects():
    curve = tradeoff_curve("lasso", 0.3, 0.2, n=41)
    beyond = curve.tpp > donoho_tanner_power(0.3, 0.2)
    assert np.isnan(curve.fdp[beyond]).all()
    assert not np.isnan(curve.fdp[~beyond]).any()
    assert curve.at(0.4) == lasso_fdp(0.4, 0.3, 0.2)
    assert list(curve.to_frame().columns) == ["tpp", "fdp", "threshold"]
    assert len(str(curve).splitlines()) <= 12
    region = complete_lasso_region(0.5, 0.3)
    assert region.lower[-1] == pytest.approx(region.upper[-1], abs=1e-7)
    assert (region.lower <= region.upper + 1e-9).all()
    assert region.to_frame().shape == (201, 3)
    assert all(math.isnan(x) for x in region.bounds(0.9))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: lasso_fdp(1.2, 0.3, 0.2), r"tpp = 1.2: must lie in \[0, 1\]"),
        (lambda: lasso_fdp([0.1, -0.1], 0.3, 0.2), r"tpp = -0.1: must lie in \[0, 1\]"),
        (lambda: slope_fdp_lower(float("nan"), 0.3, 0.2), r"tpp = nan: must lie in \[0, 1\]"),
        (lambda: slope_fdp_upper(0.1, 0.3, 0.0), r"epsilon = 0: must lie in \(0, 1\]"),
        (lambda: two_level_fdp(0.1, 0.3, -0.2), r"epsilon = -0.2: must lie in \(0, 1\]"),
        (lambda: two_level_fdp(0.1, 0.0, 0.2), "delta = 0: must be > 0"),
        (lambda: two_level_fdp(0.1, float("nan"), 0.2), "finite"),
        (lambda: two_level_fdp("a", 0.3, 0.2), "not numeric"),
        (lambda: tradeoff_curve("ridge", 0.3, 0.2), "the curves are lasso"),
        (lambda: tradeoff_curve("lasso", 0.3, 0.2, n=1), "at least 2 points"),
        (lambda: donoho_tanner_power(0.3, 2.0), r"\(0, 1\]"),
        (lambda: dagger(0.3, 0.0), r"\(0, 1\]"),
    ],
)
def test_bad_input_names_the_rule(call, rule):
    with pytest.raises(ConvexlawError, match=rule):
        call()
