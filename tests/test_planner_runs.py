"""A planned run against brute force over the fitted law, budgets against enumeration, what is said of it."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

from convexlaw import CurveFit, fit_curves, load_fit
from convexlaw.errors import ConvexlawError, ExtrapolationWarning
from convexlaw.solvers.planner import forecast_batches, plan_run
from convexlaw.theory import batch as batches
from convexlaw.theory.laws import CD3, CVX4q
from convexlaw.theory.schedules import make, parse, parse_parameters

LAW = CVX4q(2.0, 0.5, 10.0, 0.5, b_batch=640.0)
RUNS = {
    "wsd16": ("wsd:steps=400,peak=1e-3,decay=0.3,warmup=20", 16),
    "wsd128": ("wsd:steps=400,peak=1e-3,decay=0.3,warmup=20", 128),
    "cosine": ("cosine:steps=700,peak=1e-3,warmup=20", 32),
}
ONE = {name: (text, 32) for name, (text, _) in RUNS.items() if name != "wsd128"}


def log(law=LAW, runs=RUNS, *, noise: float = 0.0, every: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    parts = []
    for name, (text, size) in runs.items():
        lr = parse(text)
        loss = law.predict(lr, batch_size=size) * np.exp(noise * rng.standard_normal(lr.size))
        rows = {"run": name, "step": np.arange(lr.size), "lr": lr, "batch_size": size, "loss": loss}
        parts.append(pd.DataFrame(rows).iloc[::every])
    return pd.concat(parts)


def fitted(frame: pd.DataFrame, law: str = "cvx4q", resamples: int = 40, **options) -> CurveFit:
    fit = fit_curves(frame, law, **options)
    fit.interval(resamples=resamples)
    return fit


@pytest.fixture(scope="module")
def fit() -> CurveFit:
    return fitted(log(noise=5e-4))


@pytest.fixture(scope="module")
def one() -> CurveFit:
    return fitted(log(runs=ONE, noise=5e-4))


def final(fit: CurveFit, lr: np.ndarray, sizes=None) -> float:
    """Loss after the last update, by the fit's own prediction."""
    longer = np.append(lr, lr[-1])
    if sizes is not None:
        sizes = np.append(np.broadcast_to(sizes, lr.shape), np.ravel(sizes)[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(fit.predict(longer, sizes, at=[lr.size])[0])


def unit(text: str, steps: int, warmup: int = 0) -> np.ndarray:
    name, values = parse_parameters(text)
    return make(name, steps=steps, peak=1.0, warmup=warmup, **values)


def test_shape_and_peak_are_those_of_brute_force(one):
    shapes = ("linear", "cosine", "wsd:decay=0.2", "constant")
    plan = plan_run(one, steps=900, shapes=shapes, warmup=30)
    best = {}
    for text in shapes:
        h = unit(text, 900, 30)
        found = minimize_scalar(
            lambda x, h=h: final(one, math.exp(x) * h), bounds=np.log([2.5e-4, 4e-3]), method="bounded",
            options={"xatol": 1e-6},
        )  # fmt: skip
        best[text] = (math.exp(found.x), found.fun)
    assert [c.shape for c in plan.candidates] == sorted(shapes, key=lambda s: best[s][1])
    for c in plan.candidates:
        peak, loss = best[c.shape]
        assert c.peak == pytest.approx(peak, rel=5e-3)
        assert c.loss == pytest.approx(loss, rel=1e-6)
        assert c.behind == pytest.approx(loss - best[plan.shape][1], abs=3e-6)
        assert c.peak_low <= c.peak <= c.peak_high
        assert c.low < c.loss < c.high
        assert c.behind_low <= c.behind <= c.behind_high
    np.testing.assert_array_equal(plan.lr, plan.best.peak * unit(plan.shape, 900, 30))
    assert plan.loss == pytest.approx(final(one, plan.lr), rel=1e-12)


def test_limits_are_those_of_the_draws(fit):
    plan = plan_run(fit, steps=800, batch_size=64, shapes=("wsd:decay=0.2",), scheduled=False)
    longer, sizes = np.append(plan.lr, plan.lr[-1]), np.append(plan.batch.batch, 64)
    with pytest.warns(ExtrapolationWarning, match="sum of learning rates"):
        low, high = fit.band(longer, at=[800], batch_size=sizes)
    assert low[0] - 1e-4 < plan.low < plan.loss < plan.high < high[0] + 1e-4
    assert plan.high - plan.low == pytest.approx(high[0] - low[0], rel=0.25)  # other percentiles of 40 draws


def test_batch_schedule_beats_every_other_of_the_same_samples(fit):
    plan = plan_run(fit, steps=500, samples=500 * 48, shapes=("wsd:decay=0.2",), scheduled=True)
    assert plan.batch.batch.sum() == 500 * 48
    best = final(fit, plan.lr, plan.batch.batch)
    assert plan.loss == pytest.approx(best, rel=1e-12)
    noise = best - final(fit, plan.lr, 1e12)
    rng = np.random.default_rng(0)
    steps = np.arange(500)
    for _ in range(60):
        bend = 1 + rng.uniform(0.02, 0.5) * np.sin(steps / 500 * rng.uniform(1, 25) + rng.uniform(0, 7))
        other = plan.batch.batch * bend
        other *= plan.batch.batch.sum() / other.sum()
        # the bound's last step is weighed a little otherwise than the law's free one
        assert final(fit, plan.lr, other) > best - 2e-3 * noise
    static = final(fit, plan.lr, 48.0)
    assert static > best
    forecast = plan.forecast
    assert forecast.saved == pytest.approx(static - best, rel=1e-9)
    assert forecast.saved_low <= forecast.saved <= forecast.saved_high
    assert forecast.scheduled[-1] == pytest.approx(best, rel=1e-12)
    assert forecast.static[-1] == pytest.approx(static, rel=1e-12)


def test_every_shape_is_equal_under_its_optimal_batch_schedule():
    # no G: L - Linf = a/S + 4 b_batch S/N at the optimal batches, so 4 sqrt(a b_batch/N) for every shape
    truth = CD3(2.0, 0.02, 0.0, b_batch=300.0)
    made = fitted(log(truth), "cd3", resamples=20)
    assert made.params["b"] < 1e-3
    samples, steps = 8000 * 400, 8000
    want = 4 * math.sqrt(truth.a * truth.b_batch / samples)
    shapes = ("constant", "linear", "cosine", "wsd:decay=0.2", "one_minus_sqrt", "poly:power=2")
    plan = plan_run(
        made, steps=steps, samples=samples, shapes=shapes, peaks=(1e-5, 1e-1), min_batch=1, scheduled=True
    )
    for c in plan.candidates:
        assert c.loss - 2.0 == pytest.approx(want, rel=0.015), c.shape
        total = c.peak * unit(c.shape, steps).sum()
        assert total == pytest.approx(math.sqrt(truth.a * samples / (4 * truth.b_batch)), rel=0.03)
    static = plan_run(made, steps=steps, samples=samples, shapes=shapes, peaks=(1e-5, 1e-1), scheduled=False)
    apart = {c.shape: (c.loss - 2.0) / want for c in static.candidates}
    assert apart["linear"] == pytest.approx(1.0, rel=0.015)
    assert apart["wsd:decay=0.2"] == pytest.approx(math.sqrt(1.1659), rel=0.015)
    assert apart["poly:power=2"] == pytest.approx(math.sqrt(9 / 8), rel=0.015)
    assert apart["constant"] > 1.5


def test_degenerate_joint_optimum_on_arrays():
    # the same in closed form, on arrays alone: error falls as the steps grow
    sigma2, d2, per_step = 7.0, 3.0, 50.0
    errors = {}
    for steps in (1000, 100_000):
        samples = per_step * steps
        want = 2 * math.sqrt(d2 * sigma2 / samples)
        for text in ("constant", "linear", "cosine", "wsd:decay=0.1", "one_minus_sqrt", "poly:power=3"):
            h = unit(text, steps)
            sizes = batches.optimal_batch_sizes(h, samples, min_batch=0, integer=False)
            a, b = d2 / (2 * h.sum()), sigma2 / 2 * batches.noise_sum(h, sizes)
            errors[text, steps] = abs(2 * math.sqrt(a * b) / want - 1)
    for (text, steps), error in errors.items():
        assert error < (0.03 if steps == 1000 else 0.003), (text, steps)
        assert errors[text, 100_000] < 0.2 * errors[text, 1000]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_what_one_batch_size_leaves_open_is_a_bracket_that_holds_the_truth(share):
    truth = CVX4q(2.0, 0.5, 30.0 * (1 - share), 0.5, b_batch=30.0 * share * 32 + 1e-12)
    made = fitted(log(truth, ONE), resamples=20)
    lr = parse("wsd:steps=800,peak=1e-3,decay=0.2,warmup=20")
    sizes = batches.optimal_batch_sizes(lr, 800 * 32)
    told = forecast_batches(made, lr, sizes)
    longer, at = np.append(lr, lr[-1]), [800]
    saved = truth.predict(longer, at, 32.0)[0] - truth.predict(longer, at, np.append(sizes, sizes[-1]))[0]
    assert not told.known
    assert math.isnan(told.saved)
    assert told.saved_low - 1e-5 <= saved <= told.saved_high * 1.02 + 1e-5
    assert saved == pytest.approx(share * told.saved_high, abs=0.02 * told.saved_high)
    assert "fit at least one run with another batch size" in told.sentences[-1]
    # with the noise scale measured it is a prediction
    if 0 < share < 1:
        scale = 32 * share / (1 - share)
        known = forecast_batches(made, lr, sizes, noise_scale=scale)
        assert known.known
        assert known.saved == pytest.approx(saved, rel=0.03)
        moved = plan_run(made, steps=800, batch_size=100, noise_scale=scale, shapes=("linear",), peak=1e-3)
        want = truth.predict(np.append(moved.lr, moved.lr[-1]), at, moved.batch.batch[0])[0]
        static = plan_run(
            made, steps=800, batch_size=100, noise_scale=scale, shapes=("linear",), peak=1e-3, scheduled=False
        )
        assert static.loss == pytest.approx(want, rel=1e-3)


def test_samples_leave_the_horizon_open_within_the_fitted_batches(fit):
    plan = plan_run(fit, samples=40_000, shapes=("linear", "wsd"), scheduled=False)
    steps = [h["steps"] for h in plan.horizons]
    assert steps == sorted(steps)
    assert steps[0] == 40_000 // 128
    assert steps[-1] <= min(40_000 / 16, 4 * 700)
    for h in plan.horizons:
        assert h["steps"] * h["batch"] == pytest.approx(40_000)
        one_of = plan_run(fit, steps=h["steps"], samples=40_000, shapes=("linear", "wsd"), scheduled=False)
        assert one_of.best.loss == pytest.approx(h["loss"], rel=1e-6)
    assert plan.steps == min(plan.horizons, key=lambda h: h["loss"])["steps"]
    assert "longest looked at" in " ".join(plan.sentences)


def test_a_budget_of_time_has_its_best_horizon_inside(fit):
    budget = dict(seconds=100.0, overhead=0.05, per_sample=0.002, shapes=("linear",), scheduled=False)
    plan = plan_run(fit, **budget)
    assert plan.horizons[0]["steps"] < plan.steps < plan.horizons[-1]["steps"]
    for h in plan.horizons:
        assert h["steps"] * (0.05 + 0.002 * h["batch"]) == pytest.approx(100.0)
    around = [
        plan_run(fit, steps=t, **budget).best.loss for t in (plan.steps // 2, plan.steps, plan.steps * 3 // 2)
    ]
    assert around[1] < min(around[0], around[2])


def test_one_batch_size_fixes_the_horizon(one):
    plan = plan_run(one, samples=32 * 850, shapes=("linear",))
    assert (plan.steps, plan.samples) == (850, 32 * 850)
    assert set(plan.batch.batch.tolist()) == {32}
    assert plan.forecast is None
    said = " ".join(plan.sentences)
    assert "The optimal batch schedule at the same samples saves between 0 and" in said
    staged = plan_run(one, samples=32 * 850, shapes=("wsd",), scheduled=True, stages=3, multiple_of=4)
    assert len(staged.batch.stages) == 3
    assert not staged.batch.batch.astype(int).tolist()[0] % 4
    assert not staged.forecast.known


def test_without_batch_sizes_the_learning_rates_are_planned_alone():
    made = fitted(log(runs=ONE).drop(columns="batch_size"), resamples=20)
    plan = plan_run(made, steps=500, shapes=("linear",))
    assert plan.batch is None
    assert plan.samples is None
    assert len(str(plan).splitlines()) <= 12
    for options, words in [
        (dict(samples=1000.0), "give batch_size"),
        (dict(steps=500, scheduled=True), "needs samples= or batch_size="),
    ]:
        with pytest.raises(ConvexlawError, match=words):
            plan_run(made, shapes=("linear",), **options)


def feasible(message: str) -> tuple[float, float]:
    found = re.search(r"take ([\d.e+]+) to ([\d.e+]+)", message)
    return float(found[1]), float(found[2])


def test_an_infeasible_budget_gives_the_feasible_range(fit):
    limits = dict(min_batch=16, max_batch=100, shapes=("linear",), peak=1e-3)
    for samples in (100 * 15.9, 100 * 100.1):
        with pytest.raises(ConvexlawError, match="cannot be met") as error:
            plan_run(fit, steps=100, samples=samples, **limits)
        assert feasible(str(error.value)) == (1600, 10_000)
    for samples in (1600, 10_000):
        assert plan_run(fit, steps=100, samples=samples, **limits).samples == samples
    time = dict(overhead=0.1, per_sample=0.01)
    with pytest.raises(ConvexlawError, match="seconds = 1 cannot be met") as error:
        plan_run(fit, steps=100, seconds=1, **time, **limits)
    assert feasible(str(error.value)) == (pytest.approx(26.0), pytest.approx(110.0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(), "no budget: give steps=, samples=, or seconds="),
        (dict(steps=0), "steps = 0"),
        (dict(steps=100), r"give batch_size= or samples= beside the steps \(fitted: 16 to 128\)"),
        (dict(samples=10), "0 steps at batch size 16|steps at batch size"),
        (dict(seconds=10), "seconds= needs per_sample="),
        (dict(seconds=10, per_sample=1, samples=5), "samples= and seconds= are both given"),
        (dict(steps=10, samples=400, batch_size=99), "leave one of the three out"),
        (dict(steps=10, batch_size=8, min_batch=16), "batch_size = 8 lies outside 16 to inf"),
        (dict(samples=1e5, min_batch=300), "lie outside the fitted 16 to 128"),
        (dict(steps=10, batch_size=32, max_batch=8, min_batch=16), "max_batch = 8 is below min_batch = 16"),
        (dict(steps=10, batch_size=32, shapes=()), "shapes is empty"),
        (dict(steps=10, batch_size=32, shapes=("wsd:peak=1",)), "fixes peak: the planner chooses"),
        (dict(steps=10, batch_size=32, shapes=("wsdd",)), "did you mean 'wsd'"),
        (dict(steps=10, batch_size=32, warmup=10), "warmup = 10: give whole steps below 10"),
        (dict(steps=10, batch_size=32, peak=-1.0), "peak = -1.0"),
        (dict(steps=10, batch_size=32, peaks=(2.0, 1.0)), "peaks = "),
        (dict(steps=10, batch_size=32, noise_scale=5.0), "this fit has its own"),
        (dict(steps=10, batch_size=32, level=1.5), "level = 1.5"),
        (dict(steps=10, batch_size=3, multiple_of=8, scheduled=False), "less than one batch of 8"),
    ],
)
def test_bad_budgets_are_named(fit, options, words):
    with pytest.raises(ConvexlawError, match=words):
        plan_run(fit, **options)


def test_another_batch_size_is_refused_where_one_was_fitted(one):
    with pytest.raises(ConvexlawError, match=r"means batch size 64, .* at 32 it is 200 steps .* noise_scale"):
        plan_run(one, steps=100, samples=6400)
    with pytest.raises(ConvexlawError, match=r"no loss can be predicted for these batch sizes .*64"):
        forecast_batches(one, np.full(10, 1e-3), np.full(10, 64))
    with pytest.raises(ConvexlawError, match=r"lr has shape \(10,\) and batch \(9,\)"):
        forecast_batches(one, np.full(10, 1e-3), np.full(9, 64))


def test_what_to_trust_of_the_peak_is_said(fit, one):
    said = plan_run(one, steps=700, shapes=("linear",)).sentences
    assert "cvx4q fitted at one peak picks the base learning rate well only" in said[0]
    two = fitted(log(runs=ONE | {"high": ("cosine:steps=500,peak=2e-3,warmup=20", 32)}), resamples=20)
    said = plan_run(two, steps=700, shapes=("linear",)).sentences
    assert "peaks from 0.001 to 0.002: cvx4q was best" in said[0]
    clocked = fitted(log(runs=ONE), "rc4", resamples=20, weight_decay=0.1)
    plan = plan_run(clocked, steps=700, shapes=("linear", "wsd"))
    assert {c.peak for c in plan.candidates} == {1e-3}
    assert "rc4 predicts losses well but is not to be trusted with peaks" in plan.sentences[0]
    assert "compared at one peak, 0.001" in plan.sentences[1]
    # with another fit for the peaks: its optimum, losses by rc4
    mixed = plan_run(clocked, steps=700, shapes=("linear", "wsd"), peak_fit=one)
    chosen = {c.shape: c.peak for c in plan_run(one, steps=700, shapes=("linear", "wsd")).candidates}
    assert {c.shape: c.peak for c in mixed.candidates} == pytest.approx(chosen)
    assert mixed.loss == pytest.approx(final(clocked, mixed.lr), rel=1e-12)
    assert "rc4 predicts losses well" not in " ".join(mixed.sentences)
    more = plan_run(clocked, steps=700, shapes=("wsd",), weight_decay=1.0, scheduled=True)
    longer = np.append(more.lr, more.lr[-1])
    assert more.loss == pytest.approx(clocked.predict(longer, at=[700], weight_decay=1.0)[0], rel=1e-12)
    assert more.forecast.static[-1] == pytest.approx(more.loss, rel=1e-12)
    other = fitted(log(runs=ONE), "cvx4", resamples=20)
    assert "How well cvx4 picks peaks was not measured" in plan_run(other, steps=700).sentences[0]
    held = plan_run(fit, steps=700, batch_size=32, peak=1e-3)
    assert not [s for s in held.sentences if "cvx4q" in s]


def test_edges_extrapolation_and_missing_draws_are_said(one, tmp_path):
    edge = plan_run(one, steps=700, shapes=("linear",), peaks=(1e-4, 2e-4))
    assert "The best peak of linear lies at the edge of the search (0.0001 to 0.0002)" in edge.sentences[1]
    far = plan_run(one, steps=4000, shapes=("linear",), peak=1e-3)
    assert any("beyond 4 times the fitted range (4000 steps" in s for s in far.sentences)
    assert any("No warmup is planned" in s for s in far.sentences)
    assert not any("warmup" in s for s in plan_run(one, steps=700, peak=1e-3, warmup=0.1).sentences)
    bare = fit_curves(log(runs=ONE, every=10), "cvx4q")
    bare.to_json(tmp_path / "bare.json")
    plan = plan_run(load_fit(tmp_path / "bare.json"), steps=700, shapes=("linear",))
    assert math.isnan(plan.low)
    assert math.isnan(plan.best.peak_low)
    assert any("no bootstrap draws" in s for s in plan.sentences)


def test_a_saved_fit_plans_the_same(fit, tmp_path):
    fit.to_json(tmp_path / "fit.json")
    here = plan_run(fit, steps=600, samples=30_000, shapes=("cosine", "wsd"))
    there = plan_run(load_fit(tmp_path / "fit.json"), steps=600, samples=30_000, shapes=("cosine", "wsd"))
    assert str(here) == str(there)
    np.testing.assert_array_equal(here.batch.batch, there.batch.batch)
    assert len(str(here).splitlines()) <= 12
    assert len(here.to_frame()) == 4


def test_pictures(fit, one):
    import matplotlib.pyplot as plt

    from convexlaw.figures.planner import plot_schedule
    from convexlaw.solvers.joint_law import joint_law

    plan = plan_run(fit, steps=600, samples=30_000, shapes=("cosine", "wsd"), scheduled=True)
    assert len(plan.plot().get_yticks()) == 2
    assert plan.forecast.plot().get_ylabel() == "predicted loss (nats)"
    assert joint_law(fit).plot().get_xscale() == "log"
    figure = plot_schedule(plan.lr, plan.batch.batch, plan.batch.static_batch, plan.forecast)
    assert len(figure.axes) == 4
    assert len(plot_schedule(plan.lr, None).axes) == 1
    open_one = plan_run(one, steps=600, shapes=("wsd",), scheduled=True)
    assert "saves 0 to" in open_one.forecast.plot().get_legend().get_texts()[1].get_text()
    assert plan.forecast.to_frame().shape[1] == 3
    plt.close("all")
