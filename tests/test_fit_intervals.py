"""Intervals: profiles against brute force, bootstraps that repeat, saved draws, bands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from convexlaw import ConvexlawError, ExtrapolationWarning, fit_curves, read_runs
from convexlaw.solvers._fit_profile import profile_value, spread
from convexlaw.theory.laws import CVX4q
from convexlaw.theory.schedules import parse

SHAPES = (
    "constant:steps=400,peak=1e-3,warmup=20",
    "cosine:steps=400,peak=1e-3,warmup=20",
    "wsd:steps=400,peak=1e-3,decay=0.3,warmup=20",
    "linear:steps=400,peak=1e-3,warmup=20",
)


def table_of(runs=3, noise=1e-3, seed=0, law=None, every=5):
    law = law or CVX4q(2.0, 0.5, 20.0, 0.45)
    rng = np.random.default_rng(seed)
    parts, schedules = [], {}
    for i in range(runs):
        lr = parse(SHAPES[i % len(SHAPES)])
        at = np.arange(20, 400, every)
        loss = law.predict(lr, at) * np.exp(noise * rng.normal(size=at.size))
        parts.append(pd.DataFrame({"run": f"r{i}", "step": at, "loss": loss}))
        schedules[f"r{i}"] = lr
    return read_runs(pd.concat(parts), schedule=schedules)


@pytest.fixture(scope="module")
def fit():
    return fit_curves(table_of(), "cvx4q", alpha_prior=False)


def test_profile_limits_lie_where_the_objective_has_risen(fit):
    frame = fit.interval(method="profile")
    problem, prepared = fit._state.problem, fit._state.prepared
    table = spread(problem, fit._state.solution, prepared.groups)
    rows = prepared.y.size
    from scipy.stats import f

    for name in fit.params:
        rise = 0.5 * f.ppf(0.95, 1, rows - 4) * table.scale(name)
        for edge in ("low", "high"):
            value, _ = profile_value(problem, name, frame.loc[name, edge], fit.params)
            assert value - fit.objective == pytest.approx(rise, rel=5e-3)
    assert (frame["low"] < frame["estimate"]).all()
    assert (frame["high"] > frame["estimate"]).all()


def test_the_prior_counts_in_profiles_of_its_own_parameter():
    """The profile of alpha is that of data and prior: 0 at the estimate, and as wide as without a prior."""
    fit = fit_curves(table_of(), "cvx4q")
    for name in fit.params:
        value, _ = profile_value(fit._state.problem, name, fit.params[name], fit.params)
        assert value == pytest.approx(fit.objective, rel=1e-9)
    width = {}
    for prior in (True, False):
        limits = fit_curves(table_of(), "cvx4q", alpha_prior=prior).interval(method="profile")
        width[prior] = (limits["high"] - limits["low"]).to_numpy()
    assert width[True] == pytest.approx(width[False], rel=0.15)


def test_spread_is_the_covariance_of_many_fits():
    """With independent noise the standard errors are those of a Monte Carlo over data sets."""
    found, errors = [], []
    for seed in range(60):
        one = fit_curves(table_of(seed=100 + seed), "cvx4q", alpha_prior=False)
        found.append(list(one.params.values()))
        state = one._state
        errors.append(np.sqrt(np.diag(spread(state.problem, state.solution, state.prepared.groups).robust)))
    sd = np.std(found, axis=0, ddof=1)
    # standard error of a standard deviation from 60 draws: 9 %; the estimate errs on the wide side
    assert np.all(np.mean(errors, axis=0) / sd > 0.75)
    assert np.all(np.mean(errors, axis=0) / sd < 1.5)


def test_autocorrelated_residuals_widen_the_limits():
    table = table_of(noise=0.0, every=2)
    frame = table.frame.copy()
    rng = np.random.default_rng(1)
    clean = frame["loss"].to_numpy()
    e = rng.normal(size=len(frame)) * 1e-3
    ar = np.zeros_like(e)
    for i in range(1, e.size):
        ar[i] = 0.9 * ar[i - 1] + np.sqrt(1 - 0.81) * e[i]
    lr = {f"r{i}": parse(SHAPES[i]) for i in range(3)}
    widths = []
    for noise in (e, ar):
        frame["loss"] = clean * np.exp(noise)
        fit = fit_curves(read_runs(frame[["run", "step", "loss"]], schedule=lr), "cvx4q", alpha_prior=False)
        limits = fit.interval(method="profile")
        widths.append((limits["high"] - limits["low"]).to_numpy())
    assert np.all(widths[1] > 1.3 * widths[0])


def test_bootstrap_repeats_whatever_the_number_of_processes(fit):
    one = fit.interval(resamples=60, seed=3)
    again = fit_curves(table_of(), "cvx4q", alpha_prior=False)
    two = again.interval(resamples=60, seed=3, jobs=2)
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(fit.interval(resamples=60, seed=4))


def test_bootstrap_and_profile_agree_on_independent_noise(fit):
    boot = fit.interval(resamples=300)
    prof = fit.interval(method="profile")
    ratio = (boot["high"] - boot["low"]) / (prof["high"] - prof["low"])
    assert ((ratio > 0.6) & (ratio < 1.5)).all()


def test_levels_nest(fit):
    for method in ("bootstrap", "profile"):
        narrow = fit.interval(0.5, method, **({"resamples": 200} if method == "bootstrap" else {}))
        wide = fit.interval(0.99, method, **({"resamples": 200} if method == "bootstrap" else {}))
        assert (wide["low"] < narrow["low"]).all()
        assert (wide["high"] > narrow["high"]).all()


def test_whole_curves_are_resampled_where_there_are_enough():
    few = fit_curves(table_of(2), "cvx4q")
    with pytest.raises(ConvexlawError, match="only 2 were fitted"):
        few.interval(over="curves", resamples=20)
    many = fit_curves(table_of(8), "cvx4q")
    auto = many.interval(resamples=40)
    pd.testing.assert_frame_equal(auto, many.interval(resamples=40, over="curves"))
    assert not auto.equals(many.interval(resamples=40, over="within"))


def test_a_parameter_at_its_bound_has_a_one_sided_interval():
    fit = fit_curves(table_of(law=CVX4q(2.0, 0.5, -5.0, 0.45)), "cvx4q", alpha_prior=False)
    assert fit.params["b"] == 0.0
    limits = fit.interval(method="profile").loc["b"]
    assert limits["low"] == 0.0
    assert limits["high"] > 0.0


def test_fixed_parameters_have_no_width():
    fit = fit_curves(table_of(), "cvx5", fixed={"q": 0.125})
    for method in ("profile", "bootstrap"):
        limits = fit.interval(method=method, **({"resamples": 30} if method == "bootstrap" else {})).loc["q"]
        assert (limits["low"], limits["high"]) == (0.125, 0.125)


def test_band_holds_the_prediction_and_widens_outside_the_data(fit):
    fit.interval(resamples=100)
    lr = parse("wsd:steps=1200,peak=1e-3,decay=0.2,warmup=20")
    at = [100, 399, 1199]
    low, high = fit.band(lr, at=at)
    middle = fit.predict(lr, at=at)
    assert np.all((low < middle) & (middle < high))
    assert high[2] - low[2] > 1.5 * (high[0] - low[0])
    every = fit.band(lr)[0]
    assert every.shape == (1200,)
    assert every[at] == pytest.approx(low)


def test_band_of_a_long_schedule_is_computed_in_parts(fit, monkeypatch):
    from convexlaw.solvers import _fit_intervals

    fit.interval(resamples=40)
    whole = fit.band("wsd:steps=1000,peak=1e-3,decay=0.2,warmup=20")
    monkeypatch.setattr(_fit_intervals, "BAND_ROWS", 300)
    parts = fit.band("wsd:steps=1000,peak=1e-3,decay=0.2,warmup=20")
    for one, two in zip(whole, parts, strict=True):
        assert one == pytest.approx(two, rel=1e-11)
    assert fit.band("constant:steps=50,peak=1e-3", at=[])[0].size == 0


def test_what_carries_over_is_measured_and_put_back():
    """The resampled residuals have the variance and the neighbours' correlation of the residuals."""
    from convexlaw.solvers._fit_intervals import _resample_within
    from convexlaw.solvers._fit_profile import lag_one, whiten

    rng = np.random.default_rng(0)
    groups = [slice(0, 2000), slice(2000, 4000)]
    for carry in (0.0, 0.7):
        e = rng.normal(size=4000)
        ar = np.zeros(4000)
        for i in range(4000):
            ar[i] = e[i] if i % 2000 == 0 else carry * ar[i - 1] + np.sqrt(1 - carry**2) * e[i]
        assert lag_one(ar, groups, 0) == pytest.approx(carry, abs=0.04)
        assert np.std(whiten(ar[:2000], carry)) == pytest.approx(np.sqrt(1 - carry**2), rel=0.05)
        problem = fit_curves(table_of(), "cvx4q", alpha_prior=False)._state.problem
        fitted = np.full(4000, 2.0)
        problem = replace(problem, y=2.0 * np.exp(1e-3 * ar), weights=np.ones(4000))
        drawn = 1e3 * np.log(_resample_within(problem, fitted, groups, 10, rng) / 2.0)
        assert np.std(drawn) == pytest.approx(np.std(ar), rel=0.08)
        first = drawn[:2000]
        assert np.corrcoef(first[1:], first[:-1])[0, 1] == pytest.approx(carry, abs=0.08)


def test_papers_protocol_has_bootstrap_intervals_only():
    fit = fit_curves(table_of(), protocol="paper")
    assert (fit.interval(resamples=30)["high"] > 0).all()
    with pytest.raises(ConvexlawError, match="bootstrap"):
        fit.interval(method="profile")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 95}, "level"),
        ({"method": "delta"}, "profile"),
        ({"over": "rows"}, "within"),
        ({"resamples": 5}, "at least 20"),
        ({"block": 0}, "block"),
    ],
)
def test_bad_options_are_refused(fit, options, words):
    with pytest.raises(ConvexlawError, match=words):
        fit.interval(**options)


@pytest.mark.parametrize("rows", [1, 2])
def test_runs_of_few_losses_pool_their_residuals(rows):
    """Centred by itself a run of one loss keeps no residual: its limits would have no width."""
    shapes = ("cosine", "linear", "constant")
    texts = [f"{shapes[i % 3]}:steps={300 + 150 * i},peak=1e-3,warmup=20" for i in range(8)]
    law = CVX4q(2.0, 0.5, 20.0, 0.45)
    rng = np.random.default_rng(1)
    parts, schedules = [], {}
    for i, text in enumerate(texts):
        lr = parse(text)
        at = lr.size - 1 - 60 * np.arange(rows)
        loss = law.predict(lr, at) * np.exp(3e-3 * rng.normal(size=rows))
        parts.append(pd.DataFrame({"run": f"r{i}", "step": at, "loss": loss}))
        schedules[f"r{i}"] = lr
    fit = fit_curves(read_runs(pd.concat(parts), schedule=schedules), "cvx4q", alpha_prior=False)
    limits = fit.interval(resamples=60)
    assert np.all(limits["low"] < limits["high"])
    assert np.all((limits["low"] <= limits["estimate"]) & (limits["estimate"] <= limits["high"]))
    if rows == 1:
        with pytest.raises(ConvexlawError, match="over='curves' needs 16 losses for 4 parameters and 8 were"):
            fit.interval(over="curves", resamples=60)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resamples": 50.5}, "resamples = 50.5 is no whole number"),
        ({"resamples": 60, "jobs": 0}, "jobs = 0"),
        ({"resamples": 60, "jobs": "a"}, "jobs = 'a' is no whole number"),
        ({"resamples": 60, "seed": -1}, "seed = -1"),
        ({"resamples": 60, "block": 2.5}, "block = 2.5 is no whole number"),
    ],
)
def test_arguments_of_the_bootstrap(options, words):
    lr = parse("cosine:steps=200,peak=1e-3,warmup=20")
    at = np.arange(20, 200, 4)
    loss = CVX4q(2.0, 0.5, 20.0, 0.45).predict(lr, at)
    fit = fit_curves(read_runs(pd.DataFrame({"run": "a", "step": at, "loss": loss}), schedule=lr), "cvx4q")
    with pytest.raises(ConvexlawError, match=words):
        fit.interval(**options)


def test_the_band_of_curves_warns_where_the_prediction_does():
    lr = parse("cosine:steps=200,peak=1e-3,warmup=20")
    at = np.arange(20, 200, 4)
    loss = CVX4q(2.0, 0.5, 20.0, 0.45).predict(lr, at) * np.exp(1e-3 * np.sin(7.0 * at))
    fit = fit_curves(read_runs(pd.DataFrame({"run": "a", "step": at, "loss": loss}), schedule=lr), "cvx4q")
    fit.interval(resamples=40)
    with pytest.warns(ExtrapolationWarning, match="beyond 4 times"):
        fit.band("cosine:steps=2000,peak=1e-3,warmup=20", at=[1999])


@pytest.mark.parametrize("first", [0, 1, 10])
@pytest.mark.parametrize("every", [1, 10])
def test_the_warmup_is_found_wherever_the_log_begins(first, every):
    """Losses of the warmup follow no law: fitted they would move every parameter."""
    lr = parse("wsd:steps=2000,peak=1e-3,decay=0.2,warmup=100")
    t = np.arange(2000)
    loss = CVX4q(2.0, 0.5, 20.0, 0.5).predict(lr, t[1:])
    loss = np.append(11.0, loss) * np.exp(3e-3 * np.random.default_rng(0).normal(size=2000))
    loss[:100] = 11 - (11 - loss[100]) * t[:100] / 100
    log = pd.DataFrame({"run": "w", "step": t, "lr": lr, "loss": loss})[first::every]
    fit = fit_curves(log, "cvx4q")
    assert "in the LR warmup are left out" in " ".join(map(str, fit.notes))
    assert fit.params["Linf"] == pytest.approx(2.0, abs=0.01)
    assert fit.params["alpha"] == pytest.approx(0.5, abs=0.02)
