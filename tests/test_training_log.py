"""The log says what was measured, when, and with what; errors are one clear line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw.cli import main
from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.simulations.corpus import Corpus, load_corpus
from convexlaw.simulations.models import TransformerConfig
from convexlaw.simulations.sweep import RunSpec
from convexlaw.simulations.train import TrainOptions, train
from convexlaw.simulations.training_log import COLUMNS
from convexlaw.theory import schedules

TINY = TransformerConfig(width=8, depth=1, heads=2, context=8)
WSD = "wsd:steps=25,peak=1e-2,decay=0.4,warmup=4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("text")
    for k in range(30):
        (root / f"f{k}.py").write_text("".join(f"def f{k * i}(x):\n    return x + {i}\n" for i in range(9)))
    return root


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Corpus:
    return load_corpus(folder)


def header(path: Path) -> dict[str, str]:
    lines = [line[1:].strip() for line in path.read_text().splitlines() if line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def test_every_step_is_logged_with_the_promised_columns(tmp_path: Path, corpus: Corpus):
    out = tmp_path / "a.csv"
    log = train(
        WSD, batch_size=3, model=TINY, corpus=corpus, out=out, options=TrainOptions(eval_every=10, seed=7),
        command="convexlaw train ...",
    )  # fmt: skip
    frame = pd.read_csv(out, comment="#")
    assert tuple(frame.columns) == COLUMNS
    np.testing.assert_array_equal(frame["step"], np.arange(25))
    np.testing.assert_array_equal(frame["lr"], schedules.parse(WSD))
    np.testing.assert_array_equal(frame["batch_size"], 3)
    np.testing.assert_array_equal(frame["tokens"], np.arange(25) * 3 * 8)
    np.testing.assert_array_equal(frame["loss"], log.columns["loss"])  # to the last bit
    assert list(np.flatnonzero(frame["val_loss"].notna())) == [0, 10, 20, 24]
    assert (frame["grad_norm"] > 0).all()
    told = header(out)
    assert schedules.parse(told["schedule"]).tolist() == frame["lr"].tolist()
    for key, value in {
        "optimizer": "adamw", "weight_decay": "0.1", "seed": "7", "corpus_sha256": corpus.sha256,
        "parameters": str(log.meta["parameters"]), "python": sys.version.split()[0], "status": "finished",
        "command": "convexlaw train ...", "init_std": str(8**-0.5), "steps": "25",
    }.items():  # fmt: skip
        assert told[key] == value, key
    assert "torch" in told
    assert float(told["final_val_loss"]) == log.final_val_loss
    pd.testing.assert_frame_equal(log.to_frame(), frame)
    assert len(str(log).splitlines()) <= 12


def test_thinned_logs_average_the_training_loss_and_keep_the_rest_exact(tmp_path: Path, corpus: Corpus):
    options = TrainOptions(eval_every=10)
    full = train(WSD, model=TINY, corpus=corpus, options=options).to_frame()
    out = tmp_path / "thin.csv"
    train(WSD, model=TINY, corpus=corpus, out=out, every=10)  # evaluations follow the rows
    thin = pd.read_csv(out, comment="#")
    assert thin["step"].tolist() == [0, 10, 20, 24]
    assert thin["lr"].tolist() == full["lr"].iloc[[0, 10, 20, 24]].tolist()
    np.testing.assert_allclose(thin["val_loss"], full["val_loss"].iloc[[0, 10, 20, 24]], rtol=1e-7)
    for row, (k, half) in enumerate([(0, 0), (10, 5), (20, 3), (24, 0)]):  # windows stay centred
        near = full[(full["step"] - k).abs() <= half]
        assert thin["loss"][row] == pytest.approx(near["loss"].mean(), rel=1e-7)
        assert thin["grad_norm"][row] == pytest.approx(np.sqrt((near["grad_norm"] ** 2).mean()), rel=1e-7)
    often = train(
        WSD,
        model=TINY,
        corpus=corpus,
        options=TrainOptions(eval_every=2),
        out=tmp_path / "often.csv",
        every=10,
    )
    averaged = pd.read_csv(tmp_path / "often.csv", comment="#")["val_loss"]
    val = often.to_frame()["val_loss"]
    expected = [val[0], val[[6, 8, 10, 12, 14]].mean(), val[[18, 20, 22]].mean(), val[24]]
    np.testing.assert_allclose(averaged, expected, rtol=1e-7)
    assert header(out)["every"] == "10"


def test_an_array_of_learning_rates_and_batch_sizes(tmp_path: Path, corpus: Corpus):
    rates = np.random.default_rng(0).uniform(0, 1e-2, size=6)
    log = train(rates, batch_size=[1, 2, 3, 1, 2, 3], model=TINY, corpus=corpus, out=tmp_path / "a.csv")
    np.testing.assert_array_equal(log.columns["lr"], rates)
    np.testing.assert_array_equal(log.columns["tokens"], np.array([0, 1, 3, 6, 7, 9]) * 8)
    told = header(tmp_path / "a.csv")
    assert "schedule" not in told
    assert told["batch_size"] == "varies"


def test_a_run_learns(corpus: Corpus):
    log = train("linear:steps=150,peak=1e-2,warmup=10", model=TINY, corpus=corpus)
    measured = log.columns["val_loss"][np.isfinite(log.columns["val_loss"])]
    assert measured[0] > 4.5  # log 128 = 4.85
    assert log.final_val_loss < 2.5


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_divergence_stops_the_run_and_says_so(tmp_path: Path, corpus: Corpus, optimizer: str):
    rates = np.full(12, 1e-3)
    rates[6] = 1e38
    options = TrainOptions(optimizer=optimizer, weight_decay=1.0)
    out = tmp_path / "a.csv"
    with pytest.warns(ConvergenceWarning, match=r"not finite at step \d+: the run stopped there"):
        log = train(rates, model=TINY, corpus=corpus, options=options, out=out)
    assert log.status.startswith("diverged at step")
    assert 6 <= len(log) < 12
    frame = pd.read_csv(out, comment="#")
    assert len(frame) == len(log)
    assert np.isfinite(frame["loss"]).all()
    assert header(out)["status"] == log.status


def test_bad_schedules_and_batches_are_refused(corpus: Corpus):
    for lr, batch, said in (
        ([], 4, "lr has shape"),
        ([[1e-3]], 4, "lr has shape"),
        ([1e-3, -1.0], 4, r"lr\[1\] = -1.0"),
        ([1e-3, np.nan], 4, r"lr\[1\] = nan"),
        ([1e-3, 1e-3], 0, "batch_size = 0"),
        ([1e-3, 1e-3], 2.5, "batch_size = 2.5"),
        ([1e-3, 1e-3], [1, 2, 3], "one for each of the 2 updates"),
    ):
        with pytest.raises(ConvexlawError, match=said):
            train(lr, batch_size=batch, model=TINY, corpus=corpus)


def test_a_missing_device_is_named(corpus: Corpus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ConvexlawError, match="device = 'cuda': torch sees no CUDA device"):
        train([1e-3], model=TINY, corpus=corpus, options=TrainOptions(device="cuda"))


def test_without_torch_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConvexlawError, match=r"convexlaw\[train\]"):
        train([1e-3], model=TINY)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--schedule", WSD, "--out", str(tmp_path / "a.csv")])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: torch is not installed")
    assert len(said.splitlines()) == 1


def test_importing_the_simulations_does_not_import_torch():
    line = (
        "import sys, convexlaw.simulations, convexlaw.simulations.train, convexlaw.simulations.sweep\n"
        "import convexlaw.simulations.models, convexlaw.simulations.corpus, convexlaw.cli.train\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", line], check=True)


def run_cli(*words: Any) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


def test_command_line(tmp_path: Path, folder: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "run.csv"
    small = ["--width", 8, "--depth", 1, "--heads", 2, "--context", 8, "--corpus", folder, "--batch-size", 3]
    assert (
        run_cli("train", "--schedule", WSD, "--out", out, *small, "--seed", 4, "--stop-at", 11, "--json") == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["steps"], told["final_val_loss"]) == ("stopped at step 11", 11, None)
    assert run_cli("train", "--schedule", WSD, "--out", out, *small, "--seed", 4) == 2
    assert "pass resume to continue it" in capsys.readouterr().err
    assert run_cli("train", "--schedule", WSD, "--out", out, *small, "--seed", 4, "--resume") == 0
    assert "TrainLog: finished, 25 of 25 steps" in capsys.readouterr().out
    same = train(WSD, batch_size=3, model=TINY, corpus=corpus, options=TrainOptions(seed=4))
    np.testing.assert_array_equal(pd.read_csv(out, comment="#")["loss"], same.columns["loss"])


def test_command_line_takes_a_csv_and_reports_divergence(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
):
    pd.DataFrame({"lr": [1e-3, 1e38, 1e38, 1e-3]}).to_csv(tmp_path / "lr.csv", index=False)
    small = ["--width", 8, "--depth", 1, "--heads", 2, "--context", 8, "--corpus", folder]
    code = run_cli("train", "--schedule", tmp_path / "lr.csv", "--out", tmp_path / "run.csv", *small)
    assert code == 1
    assert "diverged at step" in capsys.readouterr().err
    assert run_cli("train", "--schedule", "wsd:peak=1", "--out", tmp_path / "b.csv", *small) == 2
    assert capsys.readouterr().err.startswith("error: schedule wsd lacks steps")


def test_the_command_of_a_run_makes_that_run(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch):
    spec = RunSpec(
        "named", WSD, batch_size=2, model=TINY,
        options=TrainOptions(
            optimizer="sgd", weight_decay=0.2, momentum=0.5, betas=(0.8, 0.9), clip=None, seed=9,
            eval_every=6, eval_sequences=5, dtype="float64",
        ),
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    words = spec.command(every=3).split()[1:]
    assert run_cli(*words, "--corpus", folder) == 0
    alone = train(
        WSD, batch_size=2, model=TINY, options=spec.options, corpus=load_corpus(folder), out="b.csv", every=3
    )
    assert alone.status == "finished"
    rows = [
        [
            line
            for line in Path(name).read_text().splitlines()
            if not line.startswith(("# command", "# corpus:"))
        ]
        for name in ("named.csv", "b.csv")
    ]
    assert rows[0] == rows[1]


def test_a_log_draws_itself(corpus: Corpus):
    log = train(WSD, model=TINY, corpus=corpus, options=TrainOptions(eval_every=5))
    ax = log.plot()
    training, validation = ax.get_lines()
    np.testing.assert_array_equal(training.get_ydata(), log.columns["loss"])
    assert list(validation.get_xdata()) == [0, 5, 10, 15, 20, 24]
    rates = next(other for other in ax.figure.axes if other is not ax)
    np.testing.assert_array_equal(rates.get_lines()[0].get_ydata(), log.columns["lr"])
    plt.close(ax.figure)
