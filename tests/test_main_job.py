"""The main job from end to end, as a person types it: logs in, a prediction and a page out."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import convexlaw
from convexlaw.simulations import DEMO_TRAIN, demo_logs
from convexlaw.theory import schedules
from convexlaw.theory.laws import CVX4q


def command(*arguments: str, cwd: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-m", "convexlaw", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    done = command("demo", "--out", "there", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "there", done.stdout


def test_demo_predicts_runs_it_did_not_see(demo: tuple[Path, str]) -> None:
    out, said = demo
    scores = pd.read_csv(out / "held_out.csv")
    assert len(scores) >= 8
    assert not set(scores["run"]) & set(DEMO_TRAIN)
    assert len(scores) + len(DEMO_TRAIN) == len(demo_logs())
    mae, base = scores["MAE (nats)"].mean(), scores["MAE of 'last value'"].mean()
    assert mae < base / 3
    assert "report:" in said
    assert str(len(scores)) in said


def test_demo_scores_are_those_of_the_written_predictions(demo: tuple[Path, str]) -> None:
    out, _ = demo
    scores = pd.read_csv(out / "held_out.csv").set_index("run")["MAE (nats)"]
    table = pd.read_csv(out / "predictions.csv")
    error = (table["loss"] - table["predicted"]).abs().groupby(table["run"]).mean()
    np.testing.assert_allclose(error[scores.index], scores, rtol=1e-10)


def test_page_is_whole_and_loads_nothing(demo: tuple[Path, str]) -> None:
    out, _ = demo
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", page)
    names = {p.name for p in out.iterdir()}
    assert {
        "report.html",
        "fit.json",
        "held_out.csv",
        "what_if.csv",
        "parameters.csv",
        "predictions.csv",
    } <= names
    assert {"curves.png", "what_if.png", "residuals.png"} <= names
    assert not [n for n in names if n.startswith(".")]
    for name in ("held_out.csv", "what_if.csv", "parameters.csv"):
        assert len(pd.read_csv(out / name)) > 0


def test_what_if_holds_intervals_around_the_prediction(demo: tuple[Path, str]) -> None:
    out, _ = demo
    table = pd.read_csv(out / "what_if.csv")
    assert (table["low"] <= table["final loss"] + 1e-9).all()
    assert (table["high"] >= table["final loss"] - 1e-9).all()
    twice = table.set_index("schedule").loc["linear, twice as long", "final loss"]
    assert twice < table.set_index("schedule").loc["linear", "final loss"]


def test_predict_agrees_with_the_library(demo: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = demo
    spec, other = "wsd:steps=3000,peak=1e-3,decay=0.3,warmup=50", "constant:steps=3000,peak=1e-3,warmup=50"
    done = command(
        "predict",
        str(out / "fit.json"),
        "--schedule",
        spec,
        "--compare",
        other,
        "--json",
        "--out",
        "f",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["forecasts"]
    fit = convexlaw.load_fit(out / "fit.json")
    for row, text in zip(rows, (spec, other), strict=True):
        lr = schedules.parse(text)
        # the loss after the last update: one more step, whose own size does not act on it in the noise sum
        assert row["final loss"] == pytest.approx(fit.predict(np.append(lr, lr[-1]))[-1], rel=1e-9)
        assert row["low"] <= row["final loss"] <= row["high"]
    assert rows[0]["final loss"] < rows[1]["final loss"]
    written = pd.read_csv(tmp_path / "f" / "forecast.csv")
    assert set(written["schedule"]) == {spec, other}
    assert (tmp_path / "f" / "forecast.png").stat().st_size > 10_000


@pytest.fixture(scope="module")
def user_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of a user whose losses follow CVX4q exactly, but for noise of 1e-3."""
    folder = tmp_path_factory.mktemp("user")
    law = CVX4q(Linf=2.0, a=0.5, b=40.0, alpha=0.5)
    rng = np.random.default_rng(0)
    specs = {
        "cos": "cosine:steps=2000,peak=1e-3,warmup=40",
        "const": "constant:steps=2000,peak=1e-3,warmup=40",
        "wsd20": "wsd:steps=2000,peak=1e-3,decay=0.2,warmup=40",
        "wsd50": "wsd:steps=2000,peak=1e-3,decay=0.5,warmup=40",
    }
    for name, text in specs.items():
        lr = schedules.parse(text)
        at = np.arange(0, 2000, 10)
        loss = law.predict(lr, at=at) * np.exp(1e-3 * rng.standard_normal(len(at)))
        pd.DataFrame({"iter": at, "learning_rate": lr[at], "train_loss": loss}).to_csv(
            folder / f"{name}.csv", index=False
        )
    odd = folder / "odd"
    odd.mkdir()
    (odd / "empty.csv").write_text("lr\n")
    (odd / "nothing.csv").write_text("")
    (odd / "latin.csv").write_bytes("lr;größe\n1;ä\n".encode("latin-1"))
    return folder


def test_fit_curve_on_a_users_files(user_logs: Path, tmp_path: Path) -> None:
    done = command(
        "fit",
        "curve",
        str(user_logs / "*.csv"),
        "--train",
        "co*",
        "--test",
        "wsd*",
        "--law",
        "cvx4q",
        "--out",
        "r",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["params"]["Linf"] == pytest.approx(2.0, abs=0.05)
    scores = {row["run"]: row for row in told["scores"]}
    assert sorted(n for n, row in scores.items() if row["trained"]) == ["const", "cos"]
    assert all(scores[n]["mae"] < 0.01 for n in ("wsd20", "wsd50"))
    assert (tmp_path / "r" / "report.html").exists()


def test_fit_curve_shows_a_readable_summary(user_logs: Path, tmp_path: Path) -> None:
    done = command(
        "fit", "curve", str(user_logs), "--train", "co*", "--law", "cvx4q", "--out", "r", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "held-out runs with a mean absolute error" in done.stdout
    assert "report: r/report.html" in done.stdout.replace("\\", "/")
    assert max(len(line) for line in done.stdout.splitlines()) <= 220


def test_fit_curve_takes_the_options_of_the_library(user_logs: Path, tmp_path: Path) -> None:
    """Comparison, prior, seed and number of resamples: the numbers are those of the same calls in Python."""
    call = ("fit", "curve", str(user_logs / "*.csv"), "--train", "co*", "--train", "wsd20")
    call = (*call, "--law", "cvx4q", "--no-prior")
    done = command(
        *call, "--compare", "--resamples", "40", "--seed", "5", "--json", "--out", "r", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    runs = convexlaw.read_runs(str(user_logs / "*.csv"))
    fit = convexlaw.fit_curves(runs, "cvx4q", train=["co*", "wsd20"], alpha_prior=False)
    assert told["params"] == pytest.approx(fit.params, rel=1e-9)
    limits = pd.read_csv(tmp_path / "r" / "parameters.csv")
    want = fit.interval(resamples=40, seed=5)
    np.testing.assert_allclose(limits.filter(regex="low|high"), want[["low", "high"]], rtol=1e-9)
    assert not np.allclose(want["low"], fit.interval(resamples=40, seed=6)["low"], rtol=1e-9)
    laws = pd.DataFrame(told["comparison"]["laws"]).set_index("law")
    table = fit.compare().set_index("law")
    np.testing.assert_allclose(laws["mae"], table["mae"], rtol=1e-9)
    assert told["comparison"]["sentence"] == table.attrs["sentence"]
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "Other laws" in page
    written = pd.read_csv(tmp_path / "r" / "comparison.csv").set_index("law")
    np.testing.assert_allclose(written["MAE (nats)"], table["mae"], rtol=1e-9)
    shown = command(*call, "--compare", "--resamples", "20", "--out", "s", cwd=tmp_path).stdout
    assert "laws compared on the fitted runs by cross-validation:" in shown
    assert table.attrs["sentence"] in shown


def test_fit_curve_by_the_papers_protocol(user_logs: Path, tmp_path: Path) -> None:
    done = command(
        "fit", "curve", str(user_logs / "*.csv"), "--protocol", "paper", "--out", "r", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    fit = convexlaw.fit_curves(str(user_logs / "*.csv"), protocol="paper")
    assert told["law"] == "cd3"
    assert told["params"] == pytest.approx(fit.params, rel=1e-9)
    scores = {row["run"]: row["points"] for row in told["scores"]}
    assert scores == fit.score().set_index("run")["points"].to_dict()  # of the second half
    wrong = command("fit", "curve", str(user_logs / "*.csv"), "--protocol", "papers", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "choose 'robust' or 'paper'" in wrong.stderr


def test_fit_curve_says_which_scores_are_of_far_runs(tmp_path: Path) -> None:
    law = CVX4q(Linf=2.0, a=0.5, b=40.0, alpha=0.5)
    for name, steps in (("short", 400), ("far", 2000)):
        lr = schedules.parse(f"wsd:steps={steps},peak=1e-3,decay=0.2,warmup=40")
        at = np.arange(0, steps, 10)
        log = pd.DataFrame({"step": at, "lr": lr[at], "loss": law.predict(lr, at=at)})
        log.to_csv(tmp_path / f"{name}.csv", index=False)
    call = ("fit", "curve", "*.csv", "--train", "short", "--law", "cvx4q", "--resamples", "20", "--out", "r")
    done = command(*call, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    words = "scored losses lie beyond 4 times the fitted range (run 'far': 1991 steps against at most 391"
    assert words in done.stdout.split("Beware:")[1]
    assert words in (tmp_path / "r" / "report.html").read_text(encoding="utf-8").replace("&#39;", "'")


def test_a_run_without_rates_is_named_and_can_be_left_out(user_logs: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "old").mkdir(parents=True)
    for name in ("cos", "wsd20"):
        shutil.copy(user_logs / f"{name}.csv", logs)
    for name in ("bare", "bald"):
        pd.DataFrame({"step": [0, 10], "loss": [3.0, 2.0]}).to_csv(logs / "old" / f"{name}.csv", index=False)
    call = ("fit", "curve", "logs", "--train", "cos", "--law", "cvx4q", "--out", "r")
    done = command(*call, "--exclude", "*bald", cwd=tmp_path)
    assert done.returncode == 2
    for words in ("run 'old/bare' has no learning rates (in logs/old/bare.csv)", "--schedule", "--exclude"):
        assert words in done.stderr
    both = command(*call, cwd=tmp_path).stderr
    assert "2 of 4 runs have no learning rates: old/bald, old/bare" in both
    whole = command(*call, "--exclude", "old/*", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert "old/" not in whole.stdout
    nothing = command(*call, "--exclude", "*", cwd=tmp_path)
    assert "--exclude names every run" in nothing.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "curve", "nothing*.csv"], "nothing*.csv"),
        (["fit", "curve", "{logs}", "--train", "zebra"], "zebra"),
        (["fit", "curve", "{logs}/*.csv", "--law", "zebra"], "zebra"),
        (["fit", "curve", "{logs}", "--schedule", "zebra:steps=1"], "zebra"),
        (["fit", "curve", "{logs}", "--train", "*", "--out", "{logs}/cos.csv"], "is a file"),
        (["predict", "missing.json", "--schedule", "constant:steps=10,peak=1"], "missing.json"),
        (["predict", "{logs}/cos.csv", "--schedule", "constant:steps=10,peak=1"], "cos.csv"),
        (["predict", "{fit}", "--schedule", "constant:peak=1"], "steps"),
        (["predict", "{fit}", "--schedule", "none.csv"], "none.csv"),
        (
            ["fit", "curve", "{logs}/w*.csv", "--train", "wsd20", "--test", "wsd*"],
            "run 'wsd20' is named by both --train and --test",
        ),
        (["predict", "{fit}"], "schedule"),
        (["predict", "{fit}", "--schedule", "{logs}/odd/empty.csv"], "no rows"),
        (["predict", "{fit}", "--schedule", "{logs}/odd/nothing.csv"], "nothing.csv"),
        (["predict", "{fit}", "--schedule", "{logs}/odd/latin.csv"], "latin.csv"),
        (["predict", "{fit}", "--schedule", "constant:steps=1e30,peak=1"], "error"),
        (["predict", "{fit}", "--schedule", "constant:steps=10,peak=1", "--level", "2"], "level"),
        (["zebra"], "zebra"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    arguments: list[str], words: str, user_logs: Path, demo: tuple[Path, str], tmp_path: Path
) -> None:
    filled = [a.format(logs=user_logs, fit=demo[0] / "fit.json") for a in arguments]
    done = command(*filled, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = command("fit", "curve", "nothing.csv", "--debug", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_a_second_run_beside_the_logs_does_not_read_its_own_report(user_logs: Path, tmp_path: Path) -> None:
    for path in user_logs.glob("*.csv"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    told = []
    for _ in range(2):
        done = command("fit", "curve", ".", "--train", "co*", "--law", "cvx4q", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout)["scores"])
    assert told[0] == told[1]


def test_two_batch_sizes_are_forecast_with_one_of_them(tmp_path: Path) -> None:
    lr = schedules.parse("cosine:steps=1500,peak=1e-3,warmup=40")
    flat = schedules.parse("constant:steps=1500,peak=1e-3,warmup=40")
    for name, rates, batch in (("a", lr, 32), ("b", lr, 64), ("c", flat, 32), ("d", flat, 64)):
        law = CVX4q(Linf=2.0, a=0.5, b=20.0 + 640.0 / batch, alpha=0.5)
        at = np.arange(0, 1500, 10)
        frame = pd.DataFrame(
            {"step": at, "lr": rates[at], "batch_size": batch, "loss": law.predict(rates, at=at)}
        )
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    done = command("fit", "curve", "*.csv", "--law", "cvx4q", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    spec = ["--schedule", "linear:steps=1500,peak=1e-3"]
    refused = command("predict", "r/fit.json", *spec, cwd=tmp_path)
    assert refused.returncode == 2
    assert "batch" in refused.stderr
    losses = []
    for batch in ("32", "64"):
        done = command("predict", "r/fit.json", *spec, "--batch-size", batch, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        losses.append(json.loads(done.stdout)["forecasts"][0]["final loss"])
    assert losses[1] < losses[0]


def test_interrupts_in_compiled_code_are_interrupts() -> None:
    code = (
        "import signal, os, convexlaw.cli as cli\n"
        "def compiled(**_):\n"
        "    try:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n        pass\n"
        "    raise SystemError('CPUDispatcher returned a result with an exception set')\n"
        "cli.app = compiled\ncli.main([])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr


def test_interruption_leaves_whole_files_or_none(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "convexlaw", "demo", "--out", "there"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # the logs are read: the fit is under way
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode in (0, 130), told
    if process.returncode == 130:
        assert "interrupted" in told
        assert "Traceback" not in told
        assert not (tmp_path / "there" / "report.html").exists()
    for path in tmp_path.glob("there/*"):
        assert not path.name.startswith(".")
        if path.suffix == ".csv":
            pd.read_csv(path)
