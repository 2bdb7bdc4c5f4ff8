"""Every sample log of the shared folder: its table by the standard library alone, its notes word for word."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError

pytestmark = pytest.mark.shared
COLUMNS = ["run", "step", "lr", "batch_size", "tokens", "loss", "split", "grad_norm"]
WARMUP = "no learning rate before step {}: {} is held back to step 0; pass schedule= if the run had a warmup"
FIRST = "first step is 10, not 0 or 1: kept as given, nothing is re-indexed"
MEANS = "each training loss is the mean over the 10 steps up to its step (Hugging Face averages between logs)"
NEXT = "each learning rate is that of the next update, which is lr[step] counted from 0"
GAPS = (
    "learning rate logged at 20 of 201 steps: lines are drawn across 6 gaps in which it changes "
    "(widest 10 steps, 10 to 20)"
)


def table(run: str, rows: list[tuple[int, float, float, str, float]]) -> pd.DataFrame:
    """Build the expected frame from (step, lr, loss, split, grad_norm)."""
    frame = pd.DataFrame(rows, columns=["step", "lr", "loss", "split", "grad_norm"])
    frame["run"], frame["batch_size"], frame["tokens"] = run, math.nan, math.nan
    return frame[COLUMNS]


def plain(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("european.csv", ["read with semicolons between cells, decimal commas, a byte-order mark"]),
        ("european.csv.gz", ["read with semicolons between cells, decimal commas, packed with gzip"]),
        ("european.parquet", []),
    ],
)
def test_european(shared: Path, name: str, notes: list[str]) -> None:
    text = (shared / "fixtures" / "european.csv").read_text(encoding="utf-8-sig").splitlines()[1:]
    rows = [[float(c.replace(",", ".")) for c in line.split(";")] for line in text]
    expected = table("european", [(int(s), lr, loss, "train", math.nan) for s, loss, lr in rows])
    read = read_runs(shared / "fixtures" / name)
    pd.testing.assert_frame_equal(read.frame, expected, check_exact=True)
    assert read.notes_for("european") == notes
    assert len(read.frame) == 21


@pytest.mark.parametrize("name", ["offset", "spikes"])
def test_plain_tables_that_start_at_step_1(shared: Path, name: str) -> None:
    rows = plain(shared / "fixtures" / f"{name}.csv")
    expected = table(
        name, [(int(r["step"]), float(r["lr"]), float(r["loss"]), "train", math.nan) for r in rows]
    )
    read = read_runs(shared / "fixtures" / f"{name}.csv")
    pd.testing.assert_frame_equal(read.frame, expected, check_exact=True)
    assert read.frame["step"].tolist() == list(range(1, 1002, 10))
    np.testing.assert_array_equal(read.dense_lr(name), np.full(1002, 1e-3))
    spikes = "3 spikes in the training loss at step 201 (14.19), 551 (13.6), 801 (13.44): kept"
    assert read.notes == ([f"spikes: {spikes}"] if name == "spikes" else [])
    above = [int(r["step"]) for r in rows if float(r["loss"]) > 5]
    assert read.spikes["step"].tolist() == above
    assert len(read.drop_spikes().frame) == 101 - len(above)


def state(path: Path) -> list[dict[str, float]]:
    history: list[dict[str, float]] = json.loads(path.read_text())["log_history"]
    return history


def test_trainer_state(shared: Path) -> None:
    history = state(shared / "fixtures" / "trainer_state.json")
    lr = {e["step"]: e["learning_rate"] for e in history if "loss" in e}
    train = [
        (int(e["step"]), e["learning_rate"], e["loss"], "train", e["grad_norm"])
        for e in history
        if "loss" in e
    ]
    val = [
        (int(e["step"]), lr[e["step"]], e["eval_loss"], "val", math.nan) for e in history if "eval_loss" in e
    ]
    read = read_runs(shared / "fixtures" / "trainer_state.json")
    pd.testing.assert_frame_equal(read.frame, table("trainer_state", train + val), check_exact=True)
    assert (len(train), len(val)) == (20, 4)
    assert read.notes_for("trainer_state") == [
        "1 summary row left out (train_loss is the mean over the whole run)",
        NEXT,
        FIRST,
        MEANS,
        WARMUP.format(10, "0.0005"),
        GAPS,
    ]
    # the rates fall in a line over the last 50 steps, and the 0 at step 200 belongs to that line
    dense = read.dense_lr("trainer_state")
    np.testing.assert_allclose(dense[150:], 1e-3 * (1 - np.arange(51) / 50), atol=1e-18)
    np.testing.assert_allclose(dense[10:21], 5e-5 * np.arange(10, 21), rtol=1e-13)


def test_trainer_state_with_nan(shared: Path) -> None:
    history = state(shared / "fixtures" / "trainer_state_nan.json")
    good = [e for e in history if "loss" in e and not math.isnan(e["loss"])]
    lr = {e["step"]: e["learning_rate"] for e in history if "loss" in e}
    train = [(int(e["step"]), e["learning_rate"], e["loss"], "train", e["grad_norm"]) for e in good]
    val = [
        (int(e["step"]), lr[e["step"]], e["eval_loss"], "val", math.nan) for e in history if "eval_loss" in e
    ]
    path = shared / "fixtures" / "trainer_state_nan.json"
    read = read_runs(path)
    pd.testing.assert_frame_equal(read.frame, table("trainer_state_nan", train + val), check_exact=True)
    assert (len(train), len(val)) == (19, 4)
    assert read.notes_for("trainer_state_nan") == [
        "1 NaN training loss at step 150: dropped",
        NEXT,
        FIRST,
        MEANS,
        "the loss stands at exactly 2.9312 on 5 rows (steps 100 to 140) before it is lost at step 150: "
        "probably NaN that the "
        "logger hid; kept, consider dropping these rows",
        WARMUP.format(10, "0.0005"),
        GAPS,
    ]
    with pytest.raises(
        ConvexlawError,
        match=r"trainer_state_nan.json: 1 NaN training loss .* step 150 \(log_history entry 17\)",
    ):
        read_runs(path, na="error")


def test_trainer_state_resumed(shared: Path) -> None:
    path = shared / "fixtures" / "trainer_state_resume.json"
    history = state(path)
    lr = {e["step"]: e["learning_rate"] for e in history if "loss" in e}
    latest = {e["step"]: e for e in history if "loss" in e}
    evals = {e["step"]: e for e in history if "eval_loss" in e}
    train = [(s, e["learning_rate"], e["loss"], "train", e["grad_norm"]) for s, e in sorted(latest.items())]
    val = [(s, lr[s], e["eval_loss"], "val", math.nan) for s, e in sorted(evals.items())]
    read = read_runs(path)
    pd.testing.assert_frame_equal(
        read.frame,
        table("trainer_state_resume", [(int(r[0]), *r[1:]) for r in train + val]),
        check_exact=True,
    )
    assert read.notes_for("trainer_state_resume") == [
        "1 summary row left out (train_loss is the mean over the whole run)",
        "resumed once (after step 120 back to step 110): the later segment wins, 2 training rows (steps "
        "110 to 120) and 1 validation "
        "row (step 100) of the earlier dropped",
        NEXT,
        FIRST,
        MEANS,
        WARMUP.format(10, "0.0005"),
        GAPS,
    ]
    with pytest.raises(ConvexlawError, match="logs 2 training steps more than once, first step 110"):
        read_runs(path, duplicates="error")


def test_wandb_chart(shared: Path) -> None:
    rows = plain(shared / "fixtures" / "wandb_chart.csv")
    read = read_runs(shared / "fixtures" / "wandb_chart.csv")
    names = ["llama-60m", "wsd - lr 1e-3"]
    expected = pd.concat(
        [
            table(
                name,
                [
                    (int(r["Step"]), math.nan, float(r[f"{name} - train/loss"]), "train", math.nan)
                    for r in rows
                    if r[f"{name} - train/loss"]
                ],
            )
            for name in names
        ],
        ignore_index=True,
    )
    pd.testing.assert_frame_equal(read.frame, expected, check_exact=True)
    assert read.runs == names
    assert [int((read.frame["run"] == n).sum()) for n in names] == [21, 11]
    for name in names:
        assert read.notes_for(name) == [
            "the columns __MIN and __MAX repeat the losses: left aside",
            "no learning rate in the log: pass schedule= (one learning rate a step) before fitting",
        ]
        with pytest.raises(ConvexlawError, match="pass schedule="):
            read.dense_lr(name)


def test_wandb_history(shared: Path) -> None:
    rows = plain(shared / "fixtures" / "wandb_history.csv")
    logged = [(int(r["trainer/global_step"]), float(r["lr-AdamW"])) for r in rows if r["lr-AdamW"]]
    steps, rates = zip(*logged, strict=True)
    expected = []
    for metric, split in (("train/loss", "train"), ("val/loss", "val")):
        for r in rows:
            if r[metric]:
                step = int(r["trainer/global_step"])
                lr = float(np.interp(step, steps, rates)) if step >= steps[0] else math.nan
                expected.append((step, lr, float(r[metric]), split, math.nan))
    read = read_runs(shared / "fixtures" / "wandb_history.csv")
    pd.testing.assert_frame_equal(read.frame, table("wandb_history", expected), rtol=1e-15)
    assert read.frame["split"].value_counts().to_dict() == {"train": 100, "val": 8}
    assert read.notes_for("wandb_history") == [
        "step is 'trainer/global_step' (0 to 1995); '_step' counts calls of log() (400 rows) and is left "
        "aside",
        "292 of 400 rows carry no loss (other metrics have rows of their own)",
        WARMUP.format(10, "0.00011"),
        "learning rate logged at 100 of 1981 steps: lines are drawn across 5 gaps in which it changes "
        "(widest 20 steps, 10 to 30)",
    ]


def test_a_table_that_is_no_log(shared: Path) -> None:
    with pytest.raises(ConvexlawError, match=r"mixed\.csv: no loss column among y, x, k, flag; name it loss"):
        read_runs(shared / "fixtures" / "mixed.csv")


def test_the_whole_folder(shared: Path) -> None:
    read = read_runs(shared / "fixtures")
    assert read.runs == [
        "european.csv",
        "european.csv.gz",
        "european.parquet",
        "offset",
        "spikes",
        "trainer_state",
        "trainer_state_nan",
        "trainer_state_resume",
        "llama-60m",
        "wsd - lr 1e-3",
        "wandb_history",
    ]
    assert read.notes[0].startswith(
        "mixed.csv is skipped, it is no training log: no loss column among y, x, k, flag"
    )
    assert "the same 21 rows as european.csv: leave one of them out of a fit" in read.notes_for(
        "european.parquet"
    )
    merged = "the same 24 rows as trainer_state: leave one of them out of a fit"
    assert merged in read.notes_for("trainer_state_resume")
    for name in ("offset", "spikes", "wandb_history"):
        alone = read_runs(shared / "fixtures" / f"{name}.csv")
        pd.testing.assert_frame_equal(read.select(name).frame, alone.frame, check_exact=True)
        assert read.notes_for(name) == alone.notes_for(name)
