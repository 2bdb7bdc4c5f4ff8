"""``convexlaw batch`` and ``convexlaw plan`` as they are typed: tables, files, JSON, one-line errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw import fit_curves, load_fit
from convexlaw.cli import main
from convexlaw.simulations._batch_text import parse_batch_sizes
from convexlaw.simulations.exporters import read_schedule
from convexlaw.solvers.planner import forecast_batches, plan_run
from convexlaw.theory import batch as batches
from convexlaw.theory import schedules
from convexlaw.theory.laws import CVX4q

LAW = CVX4q(2.0, 0.5, 10.0, 0.5, b_batch=640.0)
RUNS = {
    "wsd16": ("wsd:steps=400,peak=1e-3,decay=0.3,warmup=20", 16),
    "wsd128": ("wsd:steps=400,peak=1e-3,decay=0.3,warmup=20", 128),
    "cosine": ("cosine:steps=700,peak=1e-3,warmup=20", 32),
}
SPEC = "wsd:steps=600,peak=1e-3,decay=0.2,warmup=30"
FILES = {"schedule.csv", "megatron.txt", "huggingface.json", "how_to_use.md"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("fits")
    rng = np.random.default_rng(1)
    parts = []
    for name, (text, size) in RUNS.items():
        lr = schedules.parse(text)
        loss = LAW.predict(lr, batch_size=size) * np.exp(5e-4 * rng.standard_normal(lr.size))
        rows = {"run": name, "step": np.arange(lr.size), "lr": lr, "batch_size": size, "loss": loss}
        parts.append(pd.DataFrame(rows))
    frame = pd.concat(parts)
    out = {}
    for name, rows in (("joint", frame), ("one", frame[frame["run"] == "cosine"])):
        fit = fit_curves(rows, "cvx4q")
        fit.interval(resamples=40)
        out[name] = folder / f"{name}.json"
        fit.to_json(out[name])
    return out


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main([str(a) for a in arguments])
    said = capsys.readouterr()
    return int(stopped.value.code or 0), said.out, said.err


def typed(capsys, *arguments: object) -> str:
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    return out


def test_batch_of_a_schedule_writes_what_it_says(capsys, tmp_path):
    limits = ("--min", 32, "--max", 512, "--multiple-of", 8, "--stages", 4)
    out = typed(capsys, "batch", "--schedule", SPEC, "--samples", 600 * 128, *limits, "--out", tmp_path)
    want = batches.stages(schedules.parse(SPEC), 600 * 128, 4, min_batch=32, max_batch=512, multiple_of=8)
    assert f"600 steps, {want.samples:.0f} samples, unused {want.unused:g}" in out
    assert f"gain {want.gain:.4f}: the batch-noise part of the last-iterate bound" in out
    assert "than with a static batch of 128" in out
    assert "no factor of the loss" in out
    for step, size in want.stages:
        assert re.search(rf"^{step}\s+\d+\s+{size}\s*$", out, flags=re.MULTILINE), (step, size)
    assert {p.name for p in tmp_path.iterdir()} == FILES | {"batch.png"}
    lr, sizes = read_schedule(tmp_path / "schedule.csv")
    assert np.array_equal(lr, schedules.parse(SPEC))
    assert np.array_equal(sizes, want.batch)
    words = (tmp_path / "megatron.txt").read_text()
    text = re.search(r'--step-batch-size-schedule "(.*)"', words)[1]
    assert parse_batch_sizes(text, lr).tolist() == sizes.tolist()
    assert (tmp_path / "batch.png").stat().st_size > 10_000


def test_batch_as_json(capsys, saved):
    given = ("--schedule", SPEC, "--samples", 600 * 48, "--multiple-of", 4)
    told = json.loads(typed(capsys, "batch", saved["joint"], *given, "--json"))
    fit, lr = load_fit(saved["joint"]), schedules.parse(SPEC)
    sigma = np.maximum(np.cumsum(lr), 3e-4) ** (-1 / 16)
    want = batches.plan(lr, 600 * 48, sigma=sigma, multiple_of=4)
    assert told["gain"] == pytest.approx(want.gain)
    assert told["static_batch"] == 48
    assert told["gain_of"] == "batch-noise part of the fitted law against a static batch"
    sizes = np.concatenate(
        [
            np.full(end["step"] - start["step"], start["batch_size"])
            for start, end in zip(told["stages"], [*told["stages"][1:], {"step": 600}], strict=True)
        ]
    )
    assert np.array_equal(sizes, want.batch)
    forecast = forecast_batches(fit, lr, want.batch)
    assert told["forecast"]["saved"] == pytest.approx(forecast.saved)
    assert told["forecast"]["scheduled_loss"] == pytest.approx(forecast.scheduled[-1])
    assert told["forecast"]["saved_low"] <= told["forecast"]["saved"] <= told["forecast"]["saved_high"]
    assert told["files"] == []


def test_batch_with_a_fit_of_one_batch_size_gives_a_bracket_or_a_reason(capsys, saved):
    out = typed(capsys, "batch", saved["one"], "--schedule", SPEC, "--samples", 600 * 32)
    assert re.search(r"the schedule saves between 0.0000 and 0\.0\d+ nats", out)
    assert "every fitted step uses the batch size 32" in out
    out = typed(capsys, "batch", saved["one"], "--schedule", SPEC, "--samples", 600 * 64)
    assert "No loss can be predicted for these batch sizes" in out
    out = typed(capsys, "batch", saved["one"], "--schedule", SPEC, "--samples", 600 * 64, "--noise-scale", 64)
    assert "the schedule saves 0.0" in out
    assert "given noise scale 64" in out


def test_batch_with_a_fit_alone_chooses_the_learning_rates(capsys, saved):
    given = ("--samples", 600 * 48, "--steps", 600, "--warmup", 30, "--stages", 5)
    told = json.loads(typed(capsys, "batch", saved["joint"], *given, "--json"))
    want = plan_run(
        load_fit(saved["joint"]), steps=600, samples=600 * 48, warmup=30, stages=5, scheduled=True
    )
    assert told["learning_rates"] == f"{want.shape}, 600 steps"
    assert [s["batch_size"] for s in told["stages"]] == [b for _, b in want.batch.stages]
    assert told["notes"][0].startswith("Learning rates chosen by the fit")


def test_batch_with_rates_that_follow_the_samples(capsys, tmp_path):
    spec = "wsd:steps=300,peak=1e-3,decay=0.3"
    given = ("--in-samples", "--samples", 300 * 64, "--multiple-of", 8, "--seq-length", 128)
    typed(capsys, "batch", "--schedule", spec, *given, "--out", tmp_path)
    lr, sizes = read_schedule(tmp_path / "schedule.csv")
    used = (np.cumsum(sizes) - sizes) / (300 * 64)
    np.testing.assert_allclose(lr, 1e-3 * schedules.shape("wsd", decay=0.3)(used), rtol=1e-12)
    words = (tmp_path / "megatron.txt").read_text()
    assert "--lr-decay-style WSD" in words
    assert f"--lr-wsd-decay-samples {round(0.3 * sizes.sum())}" in words
    assert "thresholds in tokens (samples x 128)" in words


def test_batch_for_a_budget_of_time(capsys):
    given = ("--seconds", 600 * 0.3, "--overhead", 0.1, "--per-sample", 0.002)
    told = json.loads(typed(capsys, "batch", "--schedule", SPEC, *given, "--json"))
    assert told["samples"] == 600 * 100
    assert told["static_batch"] == pytest.approx(100)


def test_plan_writes_what_it_says(capsys, saved, tmp_path):
    given = ("--samples", 30_000, "--steps", 600, "--warmup", 0.05, "--shape", "wsd", "--shape", "cosine")
    told = json.loads(typed(capsys, "plan", saved["joint"], *given, "--out", tmp_path, "--json"))
    want = plan_run(
        load_fit(saved["joint"]), steps=600, samples=30_000, warmup=0.05, shapes=("wsd", "cosine")
    )
    assert (told["shape"], told["steps"]) == (want.shape, 600)
    assert told["loss"] == pytest.approx(want.loss)
    assert told["peak_low"] <= told["peak"] <= told["peak_high"]
    assert len(told["candidates"]) == 4
    assert {r["quantity"] for r in told["scaling_rules"]} == {
        "peak learning rate", "batch size (mean)", "critical batch size",
    }  # fmt: skip
    assert {p.name for p in tmp_path.iterdir()} == FILES | {"plan.png", "candidates.png", "candidates.csv"}
    lr, sizes = read_schedule(tmp_path / "schedule.csv")
    assert np.array_equal(lr, want.lr)
    assert np.array_equal(sizes, want.batch.batch)
    assert len(pd.read_csv(tmp_path / "candidates.csv")) == 4


def test_plan_on_the_screen(capsys, saved):
    out = typed(capsys, "plan", saved["joint"], "--samples", 30_000, "--shape", "wsd", "--shape", "linear")
    for words in (
        "predicted loss",
        "the schedule saves",
        "schedules, each at its own best peak, 95% limits",
        "horizons, each with its best schedule",
        "the paper's scaling rules beside the data",
        "What to trust:",
        "picks the base learning rate well only where that peak is near the best one",
    ):
        assert words in out
    out = typed(capsys, "plan", saved["one"], "--steps", 800, "--peak", 1e-3, "--level", 0.5)
    assert "batch sizes 32 (static), 25600 samples" in out
    assert "schedules, 50% limits" in out
    assert "saves between 0 and" in out


def test_plan_takes_the_peak_from_another_fit(capsys, saved):
    given = ("--steps", 800, "--batch-size", 48, "--static", "--shape", "linear", "--json")
    told = json.loads(typed(capsys, "plan", saved["joint"], "--peak-fit", saved["one"], *given))
    alone = plan_run(load_fit(saved["one"]), steps=800, shapes=("linear",))
    assert told["peak"] == pytest.approx(alone.best.peak)
    assert set(told["batch"]["stages"][0]) == {"step", "sample", "batch_size"}
    assert told["batch"]["stages"][0]["batch_size"] == 48


def test_plan_without_batch_sizes_writes_the_learning_rates(capsys, saved, tmp_path):
    lr = schedules.parse(SPEC)
    loss = CVX4q(2.0, 0.5, 30.0, 0.5).predict(lr)
    fit = fit_curves(pd.DataFrame({"run": "a", "step": np.arange(600), "lr": lr, "loss": loss}), "cvx4q")
    fit.interval(resamples=20)
    fit.to_json(tmp_path / "fit.json")
    typed(capsys, "plan", tmp_path / "fit.json", "--steps", 500, "--out", tmp_path / "out")
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert names == {"schedule.csv", "plan.png", "candidates.png", "candidates.csv"}
    assert list(pd.read_csv(tmp_path / "out" / "schedule.csv").columns) == ["step", "lr"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("batch", "--samples", 5), "give a fit (FIT.json), a --schedule, or both"),
        (("batch", "--schedule", SPEC), "give the budget: --samples, or --seconds"),
        (("batch", "--schedule", SPEC, "--samples", 100), "take 600 to"),
        (("batch", "--schedule", SPEC, "--samples", 1e6, "--max", 100), "take 600 to 60000"),
        (("batch", "--schedule", "wsdd:steps=4", "--samples", 100), "did you mean 'wsd'"),
        (("batch", "--schedule", SPEC, "--samples", 1e5, "--noise-scale", 5), "give FIT.json too"),
        (("batch", "--schedule", SPEC, "--samples", 1e5, "--steps", 5), "write steps= in --schedule"),
        (("batch", "--schedule", SPEC, "--seconds", 1e5), "--seconds needs --per-sample"),
        (
            ("batch", "--schedule", SPEC, "--seconds", 1e5, "--per-sample", 1, "--stages", 2),
            "leave --seconds out",
        ),
        (("batch", "--schedule", SPEC, "--samples", 1e5, "--in-samples", "--stages", 2), "leave --stages"),
        (
            ("batch", "--schedule", "linear:steps=9", "--samples", 1e5, "--in-samples"),
            "write steps=T,peak=P into it",
        ),
        (("batch", "none.json", "--samples", 1e5), "none.json: cannot be read"),
        (("plan", "none.json", "--steps", 10), "none.json: cannot be read"),
    ],
)
def test_errors_are_one_line(capsys, tmp_path, arguments, words):
    code, out, err = run(capsys, *arguments, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert not (tmp_path / "out").exists()


def test_errors_about_a_fit_are_one_line(capsys, saved, tmp_path):
    for arguments, words in (
        (("plan", saved["one"]), "no budget: give --steps, --samples, or --seconds with --per-sample"),
        (("plan", saved["one"], "--steps", 0), "error: --steps 0: give a whole number of steps"),
        (("plan", saved["one"], "--seconds", 5), "--seconds needs --per-sample, the time of a sample"),
        (("plan", saved["one"], "--steps", 9, "--min", 8, "--max", 4), "--max 4 is below --min 8"),
        (("batch", saved["joint"], "--seconds", 5, "--steps", 9), "--seconds needs --per-sample"),
        (("batch", "--schedule", "linear:steps=9,peak=1", "--samples", 1), "samples 1 cannot be met"),
        (("plan", saved["one"], "--steps", 100, "--samples", 9600), "means batch size 96"),
        (("plan", saved["joint"], "--steps", 100, "--samples", 200, "--min", 8), "take 800 to any number"),
        (("batch", saved["joint"], "--samples", 1e4, "--in-samples"), "--in-samples needs a --schedule"),
        (("plan", saved["joint"], "--steps", 10, "--out", saved["joint"]), "is a file; name a folder"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err
    (tmp_path / "bad.json").write_text("{}")
    assert "no saved fit" in run(capsys, "plan", tmp_path / "bad.json", "--steps", 5)[2]


def test_a_fit_of_a_table_is_refused(capsys, tmp_path):
    from convexlaw import fit_table

    rng = np.random.default_rng(0)
    n, d = 10 ** rng.uniform(7, 9, 40), 10 ** rng.uniform(9, 11, 40)
    loss = 1.8 + 480 * n**-0.35 + 2100 * d**-0.37
    fit_table(pd.DataFrame({"N": n, "D": d, "loss": loss})).to_json(tmp_path / "table.json")
    code, _, err = run(capsys, "plan", tmp_path / "table.json", "--steps", 5)
    assert code == 2
    assert "holds a fit of a table" in err
