"""The limiting scalar function: golden values, the sorted prox at large p, closed form against cells."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from convexlaw.errors import ConvexlawError
from convexlaw.theory import _limit_kernels as kernels
from convexlaw.theory.scalar_limit import (
    BH,
    Gaussian,
    KLevel,
    Lasso,
    Oscar,
    Prior,
    TwoLevel,
    Weights,
    limiting_function,
    null_risk,
)
from convexlaw.theory.sorted_l1 import prox_sorted_l1

RELAXED = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])

sparsities = st.floats(0.01, 0.95)
priors = st.one_of(
    st.builds(Prior.bernoulli_gaussian, sparsities, st.floats(0.05, 20.0)),
    st.builds(Prior.two_point, sparsities, st.floats(0.3, 8.0)),
    st.builds(
        lambda e, a, b, v: Prior((1 - e, 0.6 * e, 0.4 * e), (0.0, a, -b), (0.0, v, 0.0)),
        sparsities,
        st.floats(0.5, 4.0),
        st.floats(0.5, 4.0),
        st.floats(0.0, 2.0),
    ),
)
two_levels = st.builds(
    lambda low, gap, share: TwoLevel(low + gap, low, share),
    st.floats(0.05, 2.5),
    st.floats(0.01, 2.0),
    st.floats(0.01, 0.9),
)
smooth = st.one_of(
    st.builds(Lasso, st.floats(0.2, 3.0)),
    st.builds(BH, st.floats(0.3, 1.2), st.floats(0.02, 0.9)),
    st.builds(Oscar, st.floats(0.0, 1.5), st.floats(0.1, 3.0)),
    st.builds(
        lambda s, q, d: Gaussian(s, q, d), st.floats(0.4, 1.1), st.floats(0.05, 0.5), st.floats(0.5, 3.0)
    ),
)
penalties = st.one_of(smooth, two_levels)


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


def test_golden_two_level_functions(entries):
    items, laws = entries
    found = [e for e in items if e["kind"] == "h_2level"]
    assert len(found) == 2
    for e in found:
        a = e["args"]
        h = limiting_function(laws[a["prior"]], TwoLevel(a["alpha1"], a["alpha2"], a["s"]), a["tau"])
        assert h.threshold == pytest.approx(e["value"]["zero_threshold"], abs=e["tol"])
        assert h.flat == pytest.approx(e["value"]["flat"], abs=e["tol"])
        q = kernels.upper_quantile(*laws[a["prior"]].arrays, a["tau"], a["s"])
        assert q == pytest.approx(e["value"]["quantile"], abs=e["tol"])


def test_golden_function_values_and_null_risk(entries):
    items, laws = entries
    for e in items:
        a = e["args"]
        if e["kind"] == "h_values":
            h = limiting_function(laws[a["prior"]], penalty(a["penalty"]), a["tau"])
            values = h(a["tau"] * np.array(a["y_over_tau"]))
            np.testing.assert_allclose(values, e["value"], atol=e["tol"])
        elif e["kind"] == "f_alpha":
            assert null_risk(penalty(a["penalty"])) == pytest.approx(e["value"], abs=e["tol"])


@pytest.mark.parametrize(
    "shape",
    [
        Lasso(1.2),
        TwoLevel(2.0, 0.8, 0.2),
        TwoLevel(1.5, 0.0, 0.4),
        KLevel([2.2, 1.6, 0.9], [0.05, 0.2]),
        BH(0.9, 0.2),
        BH(0.6, 0.5),
        Oscar(0.4, 1.5),
        Gaussian(0.9, 0.1, 0.8),
        Weights(tuple(np.linspace(2.5, 0.5, 37))),
    ],
    ids=lambda s: type(s).__name__,
)
def test_agrees_with_the_prox_of_a_long_vector(shape):
    p, tau = 400_000, 0.8
    prior = Prior((0.7, 0.2, 0.1), (0.0, 0.0, 3.0), (0.0, 1.5, 0.0))
    rng = np.random.default_rng(5)
    beta = prior.sample(p, rng)
    y = beta + tau * rng.standard_normal(p)
    found = prox_sorted_l1(y, tau * shape.weights(p))
    h = limiting_function(prior, shape, tau)
    # one draw of p coordinates: deviations of order p^(-1/2)
    errors = (found - beta) ** 2
    assert abs(errors.mean() - h.mse) < 4.0 * errors.std() / math.sqrt(p)
    selected = (found != 0).mean()
    epsilon = prior.epsilon
    false = (1 - epsilon) * math.erfc(h.threshold / tau / math.sqrt(2))
    assert abs(selected - (false + epsilon * h.tpp)) < 4.0 * math.sqrt(0.25 / p)
    assert np.abs(found - h(y)).mean() < 0.01
    distinct = np.unique(np.abs(found[found != 0])).size / p
    assert abs(distinct - h.df) < 0.01


@RELAXED
@given(priors, two_levels, st.floats(0.2, 3.0))
def test_cells_equal_the_closed_two_level_form(prior, shape, tau):
    exact = limiting_function(prior, shape, tau)
    cells = limiting_function(prior, shape, tau, method="cells", resolution=400)
    # the zero threshold jumps where the flat value vanishes; everything else is continuous there
    assume(exact.flat == 0.0 or exact.flat > 1e-3 * tau)
    grid = np.linspace(0.0, exact.knots[-1] + 3.0 * tau, 301)
    # between far-apart masses the function is not determined
    known = np.array([kernels.density(*prior.arrays, tau, z) * tau > 1e-9 for z in grid])
    assert np.abs(cells(grid) - exact(grid))[known].max() < 2e-4 * tau
    assert cells.mse == pytest.approx(exact.mse, abs=1e-8 * (tau**2 + prior.second_moment))
    assert cells.df == pytest.approx(exact.df, abs=3e-7)
    if cells.flat > 0 and exact.flat > 0:
        assert cells.threshold == pytest.approx(exact.threshold, abs=1e-8 * tau)
        assert cells.flat == pytest.approx(exact.flat, abs=1e-5 * tau)


def test_cells_reach_the_closed_form_to_1e_8_in_tau():
    prior = Prior.parse("0:0.8, 4:0.2")
    for shape in (TwoLevel(2.0, 1.0, 0.2), TwoLevel(2.0, 1.0, 0.5), Lasso(1.3), TwoLevel(2.0, 0.7, 0.35)):
        exact = limiting_function(prior, shape, 1.0)
        cells = limiting_function(prior, shape, 1.0, method="cells", resolution=1000)
        assert cells.threshold == pytest.approx(exact.threshold, abs=1e-8)
        assert cells.flat == pytest.approx(exact.flat, abs=1e-7)
        assert cells.mse == pytest.approx(exact.mse, abs=1e-8)


@RELAXED
@given(priors, penalties, st.floats(0.1, 3.0))
def test_is_odd_monotone_and_1_lipschitz(prior, shape, tau):
    h = limiting_function(prior, shape, tau)
    y = np.linspace(-12.0 * tau, 12.0 * tau, 801)
    values = h(y)
    np.testing.assert_allclose(values, -values[::-1], atol=1e-12)
    step = np.diff(values)
    assert step.min() >= -1e-12
    assert (step <= np.diff(y) + 1e-7 * max(tau, 1.0)).all()
    assert np.abs(h(np.array([0.0, 0.999 * h.threshold]))).max() == 0.0


@RELAXED
@given(priors, penalties, st.floats(0.1, 3.0))
def test_stein_and_sure_identities(prior, shape, tau):
    """MSE = E[(h - Y)^2] + 2 tau^2 df - tau^2, with E[(h - Y)^2] by quadrature over the law of Y."""
    h = limiting_function(prior, shape, tau)
    total = 0.0
    slope = 0.0
    nodes = (np.arange(20_000) + 0.5) / 10_000 - 1.0
    for w, m, v in zip(*prior.arrays, strict=True):
        s = math.sqrt(v + tau * tau)
        z = m + 9.0 * s * nodes
        density = np.exp(-0.5 * ((z - m) / s) ** 2) / (s * math.sqrt(2 * math.pi)) * 9.0 * s * 1e-4
        total += w * float(((h(z) - z) ** 2) @ density)
        # E h'(Y) = E[h(Y) (Y - m)/s^2] within a component: Stein's identity by another route
        slope += w * float((h(z) * (z - m) / s**2) @ density)
    assert h.df == pytest.approx(slope, abs=2e-5)
    assert h.mse == pytest.approx(
        total + 2 * tau**2 * h.df - tau**2, abs=2e-5 * (tau**2 + prior.second_moment)
    )


@RELAXED
@given(priors, st.floats(0.05, 0.95), st.floats(0.1, 2.0))
def test_bh_with_scale_one_has_fdp_q_times_null_share(prior, q, tau):
    h = limiting_function(prior, BH(1.0, q), tau)
    assume(h.threshold > 1e-3 * tau)
    # the identity holds where no tied piece touches zero: |Y| - tau A crosses zero upwards at the threshold
    left = h.threshold * (1 - 1e-4)
    d = left - tau * float(BH(1.0, q).value(kernels.tail(*prior.arrays, tau, left)))
    gap = h.threshold - tau * float(BH(1.0, q).value(kernels.tail(*prior.arrays, tau, h.threshold)))
    assume(d < 0 and abs(gap) < 1e-9 * tau)
    assert h.fdp == pytest.approx(q * (1 - prior.epsilon), abs=1e-8)


def test_one_level_is_the_lasso():
    prior = Prior.bernoulli_gaussian(0.2)
    lasso = limiting_function(prior, Lasso(1.1), 0.7)
    for same in (TwoLevel(1.1, 1.1, 0.3), TwoLevel(5.0, 1.1, 0.0), TwoLevel(1.1, 0.2, 1.0)):
        h = limiting_function(prior, same, 0.7)
        assert (h.threshold, h.mse, h.df) == pytest.approx((lasso.threshold, lasso.mse, lasso.df), abs=1e-13)
    for same in (KLevel([1.1], [1.0]), KLevel([1.1, 1.1], [0.4]), Weights([1.1, 1.1, 1.1])):
        h = limiting_function(prior, same, 0.7)
        assert h.threshold == pytest.approx(lasso.threshold, abs=1e-12)
        assert h.mse == pytest.approx(lasso.mse, abs=1e-8)


def test_gaussian_penalty_is_the_limit_of_its_sequence():
    for delta in (0.3, 0.8, 2.0):
        shape = Gaussian(1.0, 0.1, delta)
        errors = []
        for p in (4_000, 40_000):
            r = np.arange(1, p + 1) / p
            errors.append(np.abs(np.cumsum(shape.weights(p)) / p - shape.integral(r)).max())
        assert errors[1] < 0.2 * errors[0]
        assert errors[1] < 4e-3


def test_integrals_are_those_of_the_values():
    from scipy.integrate import quad

    for shape in (
        Lasso(1.3),
        BH(0.7, 0.3),
        Oscar(0.2, 1.1),
        Gaussian(0.8, 0.2, 0.7),
        KLevel([2, 1, 0], [0.2, 0.3]),
    ):
        for left, right in ((0.05, 0.15), (0.15, 0.45), (0.55, 1.0)):
            expected = quad(lambda r, s=shape: float(s.value(r)), left, right, epsabs=1e-12, limit=200)[0]
            assert float(shape.integral(right) - shape.integral(left)) == pytest.approx(expected, abs=1e-9)


def test_tau_far_below_the_signals_keeps_its_digits():
    # F(tau^2)/tau^2 tends to a constant as tau -> 0; cancellation would destroy it
    for prior in (Prior.two_point(0.1, 5.0), Prior((0.5, 0.3, 0.2), (0.0, 3.0, -7.0), (0.0, 0.0, 0.0))):
        for shape in (Lasso(1.4), TwoLevel(1.9, 1.2, 0.05), BH(0.9, 0.2)):
            small = limiting_function(prior, shape, 1e-6)
            smaller = limiting_function(prior, shape, 1e-7)
            assert small.mse / 1e-12 == pytest.approx(smaller.mse / 1e-14, rel=1e-5)


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda: Prior([0.5, 0.4], [0.0, 1.0]), "must sum to 1"),
        (lambda: Prior([1.5, -0.5], [0.0, 1.0]), ">= 0"),
        (lambda: Prior([0.5, 0.5], [0.0, float("nan")]), "finite"),
        (lambda: Prior([0.5, 0.5], [0.0, 1.0], [0.0, -1.0]), ">= 0"),
        (lambda: Prior([0.5, 0.5], [0.0, 1.0, 2.0]), "3 entries for 2"),
        (lambda: Prior.two_point(0.0, 1.0), r"\(0, 1\]"),
        (lambda: Prior.bernoulli_gaussian(0.1, 0.0), "> 0"),
        (lambda: Prior.parse("1=0.2"), "value:weight"),
        (lambda: TwoLevel(1.0, 2.0, 0.3), "must not increase"),
        (lambda: TwoLevel(2.0, 1.0, 1.3), r"\[0, 1\]"),
        (lambda: TwoLevel(2.0, -1.0, 0.3), ">= 0"),
        (lambda: KLevel([1.0, 2.0], [0.5, 0.5]), "must not increase"),
        (lambda: KLevel([2.0, 1.0], [0.5, 0.6]), "their sum 1"),
        (lambda: KLevel([2.0, float("nan")], [0.5, 0.5]), "finite"),
        (lambda: KLevel([2.0, 1.0, 0.5], [0.5]), "K - 1 fractions"),
        (lambda: Weights([1.0, 2.0]), "must not increase"),
        (lambda: Weights([1.0, -2.0]), ">= 0"),
        (lambda: BH(1.0, 0.0), r"\(0, 1\]"),
        (lambda: BH(-1.0, 0.1), "> 0"),
        (lambda: Oscar(0.0, 0.0), "must be > 0"),
        (lambda: Gaussian(1.0, 0.1, 0.0), "> 0"),
        (lambda: limiting_function(Prior.null(), Lasso(1.0), 0.0), "> 0"),
        (lambda: limiting_function(Prior.null(), Lasso(1.0), 1.0, resolution=1), "at least 4"),
    ],
)
def test_bad_input_names_the_rule(build, rule):
    with pytest.raises(ConvexlawError, match=rule):
        build()


def test_priors_read_draw_and_scale():
    prior = Prior.parse("N(0,1):0.1, -2:0.05")
    assert prior.epsilon == pytest.approx(0.15)
    assert prior.second_moment == pytest.approx(0.3)
    beta = prior.sample(2000, 0, exact=True)
    assert np.count_nonzero(beta) == 300
    assert (beta == -2.0).sum() == 100
    assert prior.scaled(2.0).second_moment == pytest.approx(1.2)
    assert Prior.parse("0:0.5, 1:0.5") == Prior.two_point(0.5, 1.0)


def test_results_print_and_tabulate():
    h = limiting_function(Prior.two_point(0.2, 4.0), TwoLevel(2.0, 1.0, 0.2), 1.0)
    assert len(str(h).splitlines()) <= 12
    frame = h.to_frame()
    assert list(frame.columns) == ["y", "h"]
    assert "<pre>" in h._repr_html_()
