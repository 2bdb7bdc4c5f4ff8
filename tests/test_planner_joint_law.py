"""The joint law in learning rates and batch sizes: recovered, refused with a reason, scaled by both rules."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from convexlaw import CurveFit, fit_curves, load_fit
from convexlaw.errors import ConvexlawError
from convexlaw.solvers.fit_curves import measured_transfer
from convexlaw.solvers.joint_law import fit_joint, joint_law, scaling_rules
from convexlaw.theory import batch as batches
from convexlaw.theory.laws import CD3, CVX4q, Tissue
from convexlaw.theory.schedules import make, parse

LAW = CVX4q(2.0, 0.5, 10.0, 0.5, b_batch=640.0)
RUNS = {
    "wsd16": ("wsd:steps=400,peak=1e-3,decay=0.3,warmup=20", 16),
    "wsd128": ("wsd:steps=400,peak=1e-3,decay=0.3,warmup=20", 128),
    "cosine": ("cosine:steps=700,peak=1e-3,warmup=20", 32),
}


def log(law=LAW, runs=RUNS, *, noise: float = 0.0, every: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    parts = []
    for name, (text, size) in runs.items():
        lr = parse(text)
        loss = law.predict(lr, batch_size=size) * np.exp(noise * rng.standard_normal(lr.size))
        rows = {"run": name, "step": np.arange(lr.size), "lr": lr, "batch_size": size, "loss": loss}
        parts.append(pd.DataFrame(rows).iloc[::every])
    return pd.concat(parts)


@pytest.fixture(scope="module")
def fit() -> CurveFit:
    made = fit_curves(log(noise=5e-4), "cvx4q")
    made.interval(resamples=60)
    return made


@pytest.fixture(scope="module")
def one() -> CurveFit:
    made = fit_curves(log(runs={"cosine": RUNS["cosine"]}), "cvx4q")
    made.interval(resamples=20)
    return made


def test_both_parts_of_the_noise_are_recovered(fit):
    law = joint_law(fit)
    assert law.noise_scale == pytest.approx(64.0, rel=0.1)
    assert law.low < law.noise_scale < law.high
    assert law.low < 64.0 < law.high
    assert law.batches == (16.0, 128.0)
    assert law.sentences == []
    assert law.noise_share(law.noise_scale) == pytest.approx(0.5)
    np.testing.assert_allclose(law.noise_share([1, 1e9]), [1, 0], atol=0.02)
    text = "linear:steps=500,peak=8e-4,warmup=20"
    sizes = np.linspace(20, 100, 500)
    want = LAW.predict(parse(text), batch_size=sizes)[100:]
    np.testing.assert_allclose(law.predict(text, sizes)[100:], want, rtol=3e-3)
    assert "noise scale" in str(law)
    assert len(str(law).splitlines()) <= 12
    assert law.to_frame()["quantity"].tolist()[-2:] == ["alpha", "noise_scale"]


def test_exact_data_gives_the_exact_split_and_the_critical_batches():
    made = fit_curves(log(every=1), "cvx4q")
    made.interval(resamples=20)
    law = joint_law(made)
    assert law.noise_scale == pytest.approx(64.0, rel=1e-3)
    static, scheduled = law.critical_batch_size("wsd:decay=0.2")
    assert (static, scheduled) == batches.critical_batch_size("wsd:decay=0.2", law.noise_scale, 1.0)
    assert scheduled < static


def test_a_saved_fit_gives_the_same_law(fit, tmp_path):
    fit.to_json(tmp_path / "fit.json")
    saved = joint_law(load_fit(tmp_path / "fit.json"))
    law = joint_law(fit)
    assert (saved.noise_scale, saved.low, saved.high) == (law.noise_scale, law.low, law.high)


@pytest.mark.parametrize(
    ("frame", "law", "words"),
    [
        (
            lambda: log(runs={"cosine": RUNS["cosine"]}),
            "cvx4q",
            r"batch size 32, so .* b \+ b_batch/32 .* run with",
        ),
        (lambda: log().drop(columns="batch_size"), "cvx4q", "log no batch size: add a column batch_size"),
        (
            lambda: log().assign(batch_size=lambda f: f["batch_size"].where(f["run"] != "cosine")),
            "cvx4q",
            "some fitted run logs no batch size",
        ),
        (log, "averaged", "law 'averaged' has no part in 1/batch"),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason(frame, law, words):
    with pytest.raises(ConvexlawError, match=f"no joint law: .*{words}"):
        fit_joint(frame(), law)


def test_tissue_has_no_batch_either():
    truth = Tissue(2.0, 0.3, 5.0, alpha=0.5, lam=0.99)
    made = fit_curves(log(law=truth, runs={"cosine": RUNS["cosine"]}), "tissue", fixed={"lam": 0.99})
    with pytest.raises(ConvexlawError, match="law 'tissue' has no part in 1/batch"):
        joint_law(made)


def test_a_part_that_is_not_seen_is_said():
    none = CVX4q(2.0, 0.5, 30.0, 0.5, b_batch=1e-9)
    made = fit_curves(log(law=none, noise=3e-3), "cvx4q")
    made.interval(resamples=60)
    law = joint_law(made)
    assert law.low == 0.0
    assert "not shown by the data: the noise scale may be 0" in " ".join(law.sentences)
    every = CVX4q(2.0, 0.5, 0.0, 0.5, b_batch=640.0)
    made = fit_curves(log(law=every, noise=3e-3), "cvx4q")
    made.interval(resamples=60)
    law = joint_law(made)
    assert math.isinf(law.high)
    assert "the noise scale may be infinite" in " ".join(law.sentences)


def test_few_batch_sizes_and_missing_draws_are_said(tmp_path):
    near = {"a": (RUNS["wsd16"][0], 16), "b": (RUNS["cosine"][0], 24)}
    made = fit_curves(log(runs=near), "cvx4q")
    made.to_json(tmp_path / "fit.json")
    law = joint_law(load_fit(tmp_path / "fit.json"))
    said = " ".join(law.sentences)
    assert math.isnan(law.low)
    assert "differ by a factor of 1.5 only" in said
    assert "no bootstrap draws" in said


def row(rules, quantity: str):
    return next(r for r in rules.rows if r["quantity"] == quantity)


def test_scaling_of_the_literal_bound_is_the_papers():
    # cd3 is the bound itself: its best peak goes as 1/sqrt(steps), whatever the constants
    made = fit_curves(log(law=CD3(2.0, 0.02, 8.0, b_batch=300.0)), "cd3")
    made.interval(resamples=20)
    rules = scaling_rules(made, "linear", 6300, from_steps=700, from_peak=1e-3, weight_decay=0.09)
    peak = row(rules, "peak learning rate")
    assert peak["paper"] == pytest.approx(1e-3 / 3)
    assert peak["data"] == pytest.approx(peak["paper"], rel=5e-3)
    decay = row(rules, "weight decay")
    assert decay["paper"] == pytest.approx(0.03)
    assert math.isnan(decay["data"])
    assert "sufficient for its theorem, not an optimum" in decay["remark"]


def test_scaling_of_a_fitted_law_follows_its_exponents(fit):
    # peak ~ steps^-((alpha - q)/(1 + alpha - q)) with q = 1/8
    rules = scaling_rules(fit, "wsd:decay=0.2", 20_000, from_steps=2000, samples=20_000 * 48)
    alpha = fit.params["alpha"]
    exponent = -(alpha - 0.125) / (1 + alpha - 0.125)
    peak = row(rules, "peak learning rate")
    assert peak["data"] / peak["start"] == pytest.approx(10**exponent, rel=2e-2)
    assert peak["low"] <= peak["data"] <= peak["high"]
    assert peak["paper"] / peak["start"] == pytest.approx(10**-0.5)
    assert row(rules, "batch size (mean)")["paper"] == 48
    critical = row(rules, "critical batch size")
    assert critical["low"] < 64 < critical["high"]
    assert len(str(rules).splitlines()) <= 12
    assert list(rules.to_frame()["quantity"]) == [
        "peak learning rate",
        "batch size (mean)",
        "critical batch size",
    ]


def test_scaling_says_what_the_data_does_not(one):
    rules = scaling_rules(one, "wsd:decay=0.1", 1000)
    mean = row(rules, "batch size (mean)")
    assert (mean["start"], mean["paper"]) == (32, 32)
    gain = batches.critical_batch_size(make("wsd", steps=1000, peak=1.0, decay=0.1), 1.0, 1.0)
    assert f"{gain[0] / gain[1]:.4g} times smaller" in mean["remark"]
    assert "every fitted step uses the batch size 32" in mean["remark"]


def test_a_sweep_has_the_word_on_the_peak(one):
    sweep = [
        (t, p, 3 + 0.1 * math.log(p * t**0.2 / 1e-2) ** 2) for t in (1e3, 4e3) for p in (1e-3, 2e-3, 4e-3)
    ]
    measured = measured_transfer(pd.DataFrame(sweep, columns=["steps", "peak", "loss"]), resamples=50)
    rules = scaling_rules(one, "linear", 7000, from_steps=700, from_peak=1e-3, measured=measured)
    assert row(rules, "peak learning rate")["data"] == pytest.approx(1e-3 * 10**-0.2, rel=1e-6)


def test_weight_decay_of_the_logs_is_told_apart_from_a_saved_fit(tmp_path):
    made = fit_curves(log(), "cvx4q", weight_decay=0.1)
    made.interval(resamples=20)
    assert "every fitted run has 0.1" in row(scaling_rules(made, "linear", 900), "weight decay")["remark"]
    decays = {"wsd16": 0.1, "wsd128": 0.3, "cosine": 0.1}
    made = fit_curves(log(), "cvx4q", weight_decay=decays)
    made.interval(resamples=20)
    assert "from 0.1 to 0.3" in row(scaling_rules(made, "linear", 900), "weight decay")["remark"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: scaling_rules(f, "wsd:steps=10", 100), "fixes steps: the planner chooses"),
        (lambda f: scaling_rules(f, "linear", 0), "steps = 0"),
        (lambda f: scaling_rules(f, "linear", 100, from_peak=-1), "from_peak = -1"),
        (lambda f: joint_law(f, level=2), "level = 2"),
        (lambda f: joint_law(f).noise_share(0), "batch_size = 0"),
    ],
)
def test_bad_values_are_named(fit, call, words):
    with pytest.raises(ConvexlawError, match=words):
        call(fit)
