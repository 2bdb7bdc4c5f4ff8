"""Theory of selection at its edges: units, noise far below or above the signals, weights that round."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.monte_carlo import Setting, monte_carlo
from convexlaw.solvers.amp import amp_slope
from convexlaw.theory import tradeoff
from convexlaw.theory.designs import improve_lasso, optimal_lasso, optimal_two_level
from convexlaw.theory.scalar_limit import BH, Lasso, Prior, TwoLevel
from convexlaw.theory.state_evolution import alpha_min, calibrate, solve, trajectory

RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
POINTS = Prior.parse("4:0.2")
GAUSSIAN = Prior.bernoulli_gaussian(0.1)
SETTING = Setting(POINTS, Lasso(1.5), 0.5, 0.2, 100)


@st.composite
def wild_priors(draw):
    count = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.dirichlet(np.full(count + 1, draw(st.sampled_from([0.05, 0.3, 1.0]))))
    unit = 10.0 ** draw(st.sampled_from([-50, -8, 0, 0, 0, 8, 50]))
    means = unit * rng.choice([-1.0, 1.0], count) * 10 ** rng.uniform(-4, 3, count)
    spread = unit * np.where(rng.random(count) < 0.5, 0.0, 10 ** rng.uniform(-4, 3, count))
    prior = Prior(tuple(weights / weights.sum()), (0.0, *means), (0.0, *spread**2))
    return prior, unit * draw(st.sampled_from([0.0, 1e-250, 1e-9, 1e-3, 0.3, 1.0, 1e4]))


@RELAXED
@given(wild_priors(), st.floats(0.03, 30), st.floats(1e-6, 30))
def test_designs_of_any_prior_improve_or_say_why(problem, delta, above):
    prior, sigma = problem
    alpha = alpha_min(delta) + above
    try:
        lasso = solve(prior, Lasso(alpha), delta, sigma, require_lambda=False)
        better = improve_lasso(prior, delta, sigma, alpha).state
    except ConvexlawError as error:
        assert type(error) is not ValueError  # noqa: PT017
        return
    assert better.tau <= lasso.tau * (1 + 1e-7)
    for state in (lasso, better):
        assert 0 <= state.tpp <= 1
        assert 0 <= state.fdp <= 1
        assert state.mse >= 0


@pytest.mark.parametrize("penalty", [Lasso(1.5), TwoLevel(2.0, 1.0, 0.2), BH(1.0, 0.1)], ids=str)
@pytest.mark.parametrize("unit", [1e-55, 1e-20, 1e20, 1e55])
def test_theory_does_not_depend_on_the_unit(penalty, unit):
    one = solve(POINTS, penalty, 0.64, 0.5)
    other = solve(POINTS.scaled(unit), penalty, 0.64, 0.5 * unit)
    assert other.tau == pytest.approx(one.tau * unit, rel=1e-8)
    assert other.mse == pytest.approx(one.mse * unit * unit, rel=1e-7)
    assert (other.tpp, other.fdp, other.df) == pytest.approx((one.tpp, one.fdp, one.df), rel=1e-7)


@pytest.mark.parametrize("design", [optimal_lasso, optimal_two_level])
@pytest.mark.parametrize("unit", [1e-50, 1e50])
def test_designs_do_not_depend_on_the_unit(design, unit):
    one = design(POINTS, 0.64, 0.5).state
    other = design(POINTS.scaled(unit), 0.64, 0.5 * unit).state
    assert other.mse == pytest.approx(one.mse * unit * unit, rel=1e-6)


@pytest.mark.parametrize("size", [1e-70, 1e70, 1e-300, 1e200])
def test_sizes_beyond_the_numbers_are_refused(size):
    with pytest.raises(ConvexlawError, match="squares leave the floating-point range"):
        Prior.two_point(0.5, size)
    if size > 1:
        with pytest.raises(ConvexlawError, match=r"sigma = .* its square leaves"):
            solve(POINTS, Lasso(1.5), 0.5, size)


def test_true_positives_are_a_proportion_whatever_the_weights_round_to():
    rng = np.random.default_rng(0)
    for _ in range(200):
        weights = rng.dirichlet(np.ones(12))
        prior = Prior(tuple(weights), (0.0, *rng.uniform(50, 90, 11)), (0.0,) * 12)
        assert solve(prior, Lasso(1.0), 2.0, 1e-3).tpp <= 1.0


@pytest.mark.parametrize("delta", [1.0, 1.5, 50.0])
@pytest.mark.parametrize("prior", [POINTS, GAUSSIAN], ids=["points", "gaussian"])
def test_vanishing_noise_scales_everything(prior, delta):
    """Below the signals' resolution tau is proportional to sigma: exact recovery at sigma = 0."""
    near, far = (solve(prior, Lasso(1.5), delta, s) for s in (1e-30, 1e-50))
    assert far.tau == pytest.approx(near.tau * 1e-20, rel=1e-9)
    assert far.mse == pytest.approx(near.mse * 1e-40, rel=1e-9)
    assert near.tau >= near.sigma
    design = optimal_lasso(prior, delta, 1e-30)
    assert design.state.tau <= near.tau * (1 + 1e-6)


@pytest.mark.parametrize("delta", [1.0, 1.5, 50.0])
@pytest.mark.parametrize("prior", [POINTS, GAUSSIAN], ids=["points", "gaussian"])
@pytest.mark.parametrize("sigma", [1e-2, 1e-4, 1e-6, 1e-9, 1e-30, 1e-250])
def test_small_penalties_are_calibrated_or_refused(prior, delta, sigma):
    try:
        found = calibrate(prior, Lasso(1.5 * sigma), delta, sigma)
    except ConvexlawError:
        if sigma >= 1e-4:
            raise
        return  # below the resolution against signals of size 1
    assert found.scale * found.lambda_factor == pytest.approx(1.0, rel=1e-6)


def test_points_at_vanishing_noise_by_hand():
    # |B| >> tau: the null is softened, the signal is shifted by alpha tau
    delta, alpha = 1.5, 1.5
    risk = 0.8 * 2 * ((1 + alpha**2) * 0.5 * math.erfc(alpha / math.sqrt(2)))
    risk -= 0.8 * 2 * alpha * math.exp(-0.5 * alpha**2) / math.sqrt(2 * math.pi)
    risk += 0.2 * (1 + alpha**2)
    state = solve(POINTS, Lasso(alpha), delta, 1e-9)
    assert state.tau == pytest.approx(1e-9 / math.sqrt(1 - risk / delta), rel=1e-2)


@pytest.mark.parametrize("delta", [0.5, 1e8])
def test_noise_far_above_the_signals_leaves_their_second_moment(delta):
    state = solve(POINTS, Lasso(60.0), delta, 1e50)
    assert state.mse == pytest.approx(POINTS.second_moment, rel=1e-9)
    assert state.tau == pytest.approx(1e50, rel=1e-12)


def test_a_penalty_beyond_the_resolution_is_refused():
    with pytest.raises(ConvexlawError, match=r"no scale of lam was found|not positive"):
        calibrate(Prior.two_point(0.5, 1e50), Lasso(1e-9), 1.0, 0.0)


def test_trajectories_never_leave_the_numbers():
    for delta in (1.0, 50.0, 1e8):
        taus = trajectory(GAUSSIAN, Lasso(1.0), delta, 0.0, 5)
        assert np.isfinite(taus).all()
        assert (taus >= 0).all()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.2, 1.0])
@pytest.mark.parametrize("delta", [1e-4, 0.3, 1.0, 10.0])
def test_trade_offs_at_both_ends(delta, epsilon):
    tpp = np.array([0, 1e-300, 1e-12, 1e-4, 0.5, 1 - 1e-6, 1 - 1e-12, 1.0])
    low, two, high = (
        f(tpp, delta, epsilon)
        for f in (tradeoff.slope_fdp_lower, tradeoff.two_level_fdp, tradeoff.slope_fdp_upper)
    )
    assert (low >= 0).all()
    assert (low <= two + 1e-7).all()
    assert (two <= high + 1e-7).all()
    assert (high <= 1).all()
    assert (np.diff(two) >= -1e-7).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tradeoff.lasso_fdp(0.5, "x", 0.2), "delta = 'x' is not numeric"),
        (lambda: tradeoff.slope_fdp_lower(0.5, 0.3, ["x"]), "epsilon = .* is not numeric"),
        (lambda: tradeoff.tradeoff_curve("lasso", 0.3, 0.2, n="x"), "n = "),
        (lambda: tradeoff.tradeoff_curve("lasso", 0.3, 0.2, n=2.5), "n = 2.5"),
        (lambda: tradeoff.tradeoff_curve("lasso", 0.3, 0.2, n=1), "n = 1"),
        (lambda: solve("4:0.2", Lasso(1.5), 0.5, 0.2), "prior = '4:0.2': give a Prior"),
        (lambda: solve(POINTS, 1.5, 0.5, 0.2), "penalty = 1.5: give a function of the rank"),
        (lambda: calibrate(POINTS, None, 0.5, 0.2), "penalty = None: give a function"),
        (lambda: trajectory(None, Lasso(1.5), 0.5, 0.2, 3), "prior = None: give a Prior"),
        (lambda: optimal_lasso("4:0.2", 0.5, 0.2), "prior = '4:0.2': give a Prior"),
        (lambda: amp_slope("x", [1.0], Lasso(1.0)), "holds values that are no numbers"),
        (lambda: Setting("4:0.2", Lasso(1.5), 0.5, 0.2, 100), "prior = '4:0.2': give a Prior"),
        (lambda: Setting(POINTS, 3, 0.5, 0.2, 100), "penalty = 3: give a function"),
        (lambda: Setting(POINTS, Lasso(1.5), 0.5, 0.2, 100, options={"zz": 1}), "option 'zz' is unknown"),
        (lambda: Setting(POINTS, Lasso(1.5), 0.5, 0.2, 100, options="x"), "options = 'x'"),
        (lambda: monte_carlo("x"), "settings = 'x': give a Setting"),
        (lambda: monte_carlo(SETTING, "x"), "repetitions = 'x': give a whole number"),
        (lambda: monte_carlo(SETTING, 1.5), "repetitions = 1.5: give a whole number"),
        (lambda: monte_carlo(SETTING, 2, seed="x"), "seed = 'x': give a whole number"),
        (lambda: monte_carlo(SETTING, 2, seed=-1), "seed = -1: give a whole number"),
        (lambda: monte_carlo(SETTING, 2, ledger="."), "is a folder: give the ledger the name of a file"),
    ],
)
def test_arguments_that_are_no_numbers(call, said):
    with pytest.raises(ConvexlawError, match=said):
        call()
