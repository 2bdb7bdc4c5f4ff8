"""What trackers export: one chart or scalar a file, histories in parts, several rows a step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError

STEPS = np.arange(0, 400, 10)
LOSSES = 2.0 + 3.0 / (1 + STEPS) ** 0.4 + 1e-3 * np.sin(STEPS)
RATES = 1e-3 * np.minimum(1, (STEPS + 1) / 100)


def test_charts_of_one_run_are_joined(tmp_path: Path) -> None:
    name = "wsd - lr 1e-3"
    for metric, values in (("train/loss", LOSSES), ("train/learning_rate", RATES), ("eval/loss", LOSSES + 1)):
        frame = pd.DataFrame({"Step": STEPS, f"{name} - {metric}": values, f"{name} - {metric}__MIN": values})
        frame.to_csv(tmp_path / f"wandb_export_{metric.replace('/', '_')}.csv", index=False)
    read = read_runs(tmp_path)
    assert read.runs == [name]
    np.testing.assert_array_equal(read.curve(name)[1], LOSSES)
    np.testing.assert_array_equal(read.curve(name, "val")[1], LOSSES + 1)
    np.testing.assert_array_equal(read.dense_lr(name)[STEPS], RATES)
    assert "joined from 3 files" in read.notes_for(name)[0]
    # the same chart twice is two runs, not one
    twice = read_runs(
        [tmp_path / "wandb_export_train_loss.csv", pd.DataFrame({"Step": STEPS, f"{name} - loss": LOSSES})]
    )
    assert len(twice) == 2


def test_charts_over_tokens_need_a_step(tmp_path: Path) -> None:
    path = tmp_path / "chart.csv"
    path.write_text("tokens,a - loss\n0,3\n4096,2\n")
    with pytest.raises(
        ConvexlawError,
        match=r"the axis of this chart is 'tokens', not a count of updates; export it with Step",
    ):
        read_runs(path)
    path.write_text("tokens,a - loss,a - _step,a - _step__MIN\n0,3,0,0\n4096,2,1,1\n")
    read = read_runs(path)
    assert read.frame[["step", "tokens"]].values.tolist() == [[0, 0.0], [1, 4096.0]]
    path.write_text("Step,a - accuracy\n0,3\n")
    with pytest.raises(ConvexlawError, match="a chart of accuracy; export the chart of a loss"):
        read_runs(path)


def test_scalars_exported_by_tensorboard(tmp_path: Path) -> None:
    for tag, values in (("train_loss", LOSSES), ("lr", RATES), ("val_loss", LOSSES + 1)):
        frame = pd.DataFrame({"Wall time": 1e9 + STEPS, "Step": STEPS, "Value": values})
        frame.to_csv(tmp_path / f"run-big-tag-{tag}.csv", index=False)
    read = read_runs(tmp_path)
    assert read.runs == ["big"]
    np.testing.assert_array_equal(read.curve("big")[1], LOSSES)
    np.testing.assert_array_equal(read.curve("big", "val")[1], LOSSES + 1)
    np.testing.assert_array_equal(read.dense_lr("big")[STEPS], RATES)
    frame.to_csv(tmp_path / "accuracy.csv", index=False)
    with pytest.raises(ConvexlawError, match="the exported scalar 'accuracy' plays no part here"):
        read_runs(tmp_path / "accuracy.csv")


def test_histories_in_parts_of_their_own(tmp_path: Path) -> None:
    history = {
        "train": {"iter": STEPS.tolist(), "train_lr": RATES.tolist(), "train_loss": LOSSES.tolist()},
        "val": {"iter": STEPS[::4].tolist(), "val_loss": (LOSSES[::4] + 1).tolist()},
    }
    value = {
        "config": {"weight_decay": 0.1, "exp_name": "wsd_big"},
        "summary": {"final": 1.0},
        "history": history,
    }
    path = tmp_path / "run.json"
    path.write_text(json.dumps(value))
    read = read_runs(path)
    assert read.runs == ["wsd_big"]
    np.testing.assert_array_equal(read.curve("wsd_big")[1], LOSSES)
    np.testing.assert_array_equal(read.curve("wsd_big", "val")[1], LOSSES[::4] + 1)
    assert read.meta["wsd_big"]["weight_decay"] == 0.1
    path.write_text(json.dumps([value, {**value, "config": {"exp_name": "other"}}]))
    assert read_runs(path).runs == ["wsd_big", "other"]


def test_a_wandb_history_as_jsonl(tmp_path: Path) -> None:
    lines = []
    for k, (step, loss, lr) in enumerate(zip(STEPS.tolist(), LOSSES.tolist(), RATES.tolist(), strict=True)):
        lines.append({"_step": 2 * k, "_runtime": 1.5, "trainer/global_step": step, "train/loss": loss})
        lines.append(
            {
                "_step": 2 * k + 1,
                "_timestamp": 1e9,
                "trainer/global_step": step,
                "lr-AdamW/pg1": lr,
                "gpu": {"0": 3},
            }
        )
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = read_runs(path)
    given = pd.DataFrame({"step": STEPS, "lr": RATES, "loss": LOSSES})
    pd.testing.assert_frame_equal(read.frame[["step", "lr", "loss"]], given, check_exact=True)
    assert read.meta["log"]["format"] == "wandb_history"
    assert read.notes_for("log")[:2] == [
        "step is 'trainer/global_step' (0 to 390); '_step' counts calls of log() (80 rows) and is left aside",
        "40 of 80 rows carry no loss (other metrics have rows of their own)",
    ]
