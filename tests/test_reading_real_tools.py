"""Logs that the tools wrote themselves (tests/data/logs), against what they were asked to do."""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from convexlaw import read_runs

LOGS = Path(__file__).resolve().parent / "data" / "logs"
STEPS, WARMUP, PEAK = 60, 10, 0.05
T = np.arange(STEPS)
LOSSES = 2.0 + 4.0 / (1 + T) ** 0.5
RATES = PEAK * np.minimum(1, (T + 1) / WARMUP) * np.minimum(1, (STEPS - T) / 20)


def test_lightning() -> None:
    with (LOGS / "lightning" / "version_0" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    read = read_runs(LOGS / "lightning")
    assert read.runs == ["version_0"]
    steps, losses = read.curve("version_0")
    assert list(zip(steps, losses, strict=True)) == [
        (int(r["step"]), float(r["train_loss_step"])) for r in rows if r["train_loss_step"]
    ]
    steps, losses = read.curve("version_0", "val")
    assert list(zip(steps, losses, strict=True)) == [
        (int(r["step"]), float(r["val_loss"])) for r in rows if r["val_loss"]
    ]
    # the monitor logs the rate of update t at step t
    at = read.curve("version_0")[0]
    np.testing.assert_allclose(read.dense_lr("version_0")[at], RATES[at], rtol=1e-12)
    assert read.notes_for("version_0") == [
        "training loss is read from 'train_loss_step'; left aside: 'train_loss_epoch'",
        "15 of 30 rows carry no loss (other metrics have rows of their own)",
        "first step is 4, not 0 or 1: kept as given, nothing is re-indexed",
        "no learning rate before step 4: 0.025 is held back to step 0; pass schedule= if the run had a "
        "warmup",
        "learning rate logged at 12 of 60 steps: lines are drawn across 5 gaps in which it changes "
        "(widest 5 steps, 4 to 9)",
    ]


def test_hugging_face_with_its_checkpoints() -> None:
    state = json.loads((LOGS / "huggingface" / "trainer_state.json").read_text())
    read = read_runs(LOGS / "huggingface")
    assert read.runs == ["trainer_state"]
    steps, losses = read.curve("trainer_state")
    history = [e for e in state["log_history"] if "loss" in e]
    assert steps.tolist() == [e["step"] for e in history] == list(range(5, 65, 5))
    assert losses.tolist() == [e["loss"] for e in history]
    assert read.curve("trainer_state", "val")[0].tolist() == [20, 40, 60]
    assert read.meta["trainer_state"]["max_steps"] == 60
    notes = read.notes_for("trainer_state")
    assert notes[:2] == [
        "1 summary row left out (train_loss is the mean over the whole run)",
        "3 earlier checkpoints of the same run left out (their rows are the first rows of this one)",
    ]
    assert notes[2].startswith("12 learning rates are logged one step late (at step k that of update k - 1)")
    # up to the checkpoint at 40 the schedule was that of a run of 40 steps, then that of one of 60
    t = np.arange(STEPS)
    warmup = t / WARMUP
    rates = PEAK * np.minimum(warmup, np.where(t < 40, (40 - t) / 30, (60 - t) / 50))
    np.testing.assert_allclose(read.dense_lr("trainer_state")[steps - 1], rates[steps - 1], rtol=1e-12)


def test_a_checkpoint_alone_is_named_by_its_run(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "huggingface" / "checkpoint-20", tmp_path / "big" / "checkpoint-20")
    shutil.copytree(LOGS / "huggingface" / "checkpoint-40", tmp_path / "big" / "checkpoint-40")
    read = read_runs(tmp_path)
    assert read.runs == ["big"]
    assert read.last_step("big") == 40
    assert (
        "1 earlier checkpoint of the same run left out (their rows are the first rows of this one)"
        in read.notes_for("big")
    )


def test_mlflow() -> None:
    read = read_runs(LOGS / "mlflow")
    assert read.runs == ["mlflow-line"]
    np.testing.assert_array_equal(read.curve("mlflow-line")[1], LOSSES)
    np.testing.assert_array_equal(read.curve("mlflow-line", "val")[1], LOSSES[::20] + 0.1)
    np.testing.assert_array_equal(read.dense_lr("mlflow-line"), RATES)
    assert (read.meta["mlflow-line"]["weight_decay"], set(read.frame["batch_size"])) == (0.1, {8.0})
    assert [getattr(n, "kind", "") for n in read.notes] == ["skipped", "joined"]
    alone = read_runs(LOGS / "mlflow" / "0" / "run" / "metrics" / "train" / "loss")
    np.testing.assert_array_equal(alone.curve("mlflow-line")[1], LOSSES)


def test_tensorboard_with_a_restart() -> None:
    read = read_runs(LOGS / "tensorboard")
    assert read.runs == ["resumed"]
    np.testing.assert_allclose(read.curve("resumed")[1], LOSSES + np.where(T < 30, 0.5, 0.0), rtol=1e-7)
    np.testing.assert_allclose(read.dense_lr("resumed"), RATES, rtol=1e-7)
    assert read.curve("resumed", "val")[0].tolist() == [0, 20, 40]
    earlier = read_runs(LOGS / "tensorboard", duplicates="earlier")
    np.testing.assert_allclose(earlier.curve("resumed")[1], LOSSES + np.where(T < 40, 0.5, 0.0), rtol=1e-7)
    mean = read_runs(LOGS / "tensorboard", duplicates="mean")
    middle = (T >= 30) & (T < 40)
    np.testing.assert_allclose(
        mean.curve("resumed")[1], LOSSES + np.where(T < 30, 0.5, np.where(middle, 0.25, 0)), rtol=1e-7
    )


def test_the_whole_folder_mixes_them() -> None:
    read = read_runs(LOGS)
    assert read.runs == ["huggingface", "lightning/version_0", "mlflow-line", "tensorboard/resumed"]
    formats = [read.meta[run]["format"] for run in read.runs]
    assert formats == ["huggingface", "csv", "mlflow", "tensorboard"]
    assert all(math.isfinite(v) for v in read.summary()["final_loss"])


@pytest.mark.parametrize("cut", [150, 400, 700])
def test_a_lightning_file_still_being_written(tmp_path: Path, cut: int) -> None:
    content = (LOGS / "lightning" / "version_0" / "metrics.csv").read_bytes()
    (tmp_path / "metrics.csv").write_bytes(content[:cut])
    whole = read_runs(LOGS / "lightning").frame
    part = read_runs(tmp_path / "metrics.csv").frame
    train = part.loc[part["split"] == "train", ["step", "loss"]].values.tolist()
    assert train == whole.loc[whole["split"] == "train", ["step", "loss"]].values.tolist()[: len(train)]
