"""Plain CSV, frames, W&B chart exports and trainer states become one tidy table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError

COLUMNS = ["run", "step", "lr", "batch_size", "tokens", "loss", "split", "grad_norm"]


def test_a_csv_with_other_names_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    path.write_text("iter,train/loss,learning_rate,val/loss\n0,4.0,0.1,\n10,3.5,0.1,3.6\n20,3.25,0.05,\n")
    table = read_runs(path)
    assert list(table.frame.columns) == COLUMNS
    assert table.runs == ["small"]
    steps, losses = table.curve("small")
    assert steps.tolist() == [0, 10, 20]
    assert losses.tolist() == [4.0, 3.5, 3.25]
    assert [a.tolist() for a in table.curve("small", "val")] == [[10], [3.6]]
    # 0.1 is held to step 10, then a line to 0.05 at step 20
    expected = np.concatenate([np.full(10, 0.1), 0.1 - 0.005 * np.arange(11)])
    np.testing.assert_allclose(table.dense_lr("small"), expected, rtol=1e-13)


def test_header_comments_become_metadata(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(
        "# weight_decay: 0.1\n# schedule: wsd:steps=100,peak=1e-3\nstep,lr,loss\n0,0.001,3\n1,0.001,2\n"
    )
    meta = read_runs(path).meta["r"]
    assert meta["weight_decay"] == 0.1
    assert meta["schedule"] == "wsd:steps=100,peak=1e-3"


def test_a_frame_with_several_runs_and_selection() -> None:
    frame = pd.DataFrame({"run": ["a", "b-1", "b-2"], "step": [0, 0, 0], "lr": 1e-3, "loss": [1.0, 2.0, 3.0]})
    table = read_runs(frame)
    assert table.select("b-*").frame["loss"].tolist() == [2.0, 3.0]
    assert table.select(["a"]).runs == ["a"]
    with pytest.raises(ConvexlawError, match="no run matches 'c'"):
        table.select("c")


def test_a_schedule_is_exact_and_text_is_refused() -> None:
    frame = pd.DataFrame({"step": [0, 5, 9], "loss": [3.0, 2.0, 1.0]})
    lr = np.linspace(1, 0.1, 10)
    table = read_runs(frame, schedule=lr)
    np.testing.assert_array_equal(table.dense_lr("run"), lr)
    assert table.frame["lr"].tolist() == lr[[0, 5, 9]].tolist()
    with pytest.raises(ConvexlawError, match=r"schedules\.parse"):
        read_runs(frame, schedule="cosine:steps=10,peak=1")
    with pytest.raises(ConvexlawError, match="has 4 steps but its log ends at step 9"):
        read_runs(frame, schedule=lr[:4])
    with pytest.raises(ConvexlawError, match="pass schedule="):
        read_runs(frame).dense_lr("run")


def test_written_tables_are_read_back_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "run": np.repeat(["a", "b"], 50),
            "step": np.tile(np.arange(50), 2),
            "lr": 1e-3,
            "loss": rng.random(100),
        }
    )
    table = read_runs(frame)
    table.to_csv(tmp_path / "tidy.csv")
    pd.testing.assert_frame_equal(read_runs(tmp_path / "tidy.csv").frame, table.frame)


def test_a_trainer_state_interleaves_and_ends_with_a_summary(tmp_path: Path) -> None:
    history = [
        {"step": 10, "loss": 3.0, "learning_rate": 0.1},
        {"step": 10, "eval_loss": 3.1},
        {"step": 20, "loss": 2.5, "learning_rate": 0.1},
        {"step": 20, "train_loss": 2.75, "train_runtime": 1.0},
    ]
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": history}))
    table = read_runs(path)
    assert table.frame[["step", "loss", "split"]].values.tolist() == [
        [10, 3.0, "train"],
        [20, 2.5, "train"],
        [10, 3.1, "val"],
    ]


@pytest.mark.parametrize("size", ["batch_size", "global_batch_size", "train/batch_size"])
@pytest.mark.parametrize("rate", ["learning_rate", "lr", "train_lr"])
@pytest.mark.parametrize("tokens", ["num_input_tokens_seen", "tokens_seen"])
def test_what_callbacks_add_to_a_trainer_state_is_read(
    size: str, rate: str, tokens: str, tmp_path: Path
) -> None:
    history: list[dict[str, float]] = [
        {"step": k, "loss": 3.0, rate: 0.1, size: 8.0 * k, tokens: 1024.0 * k, "train/grad_norm": 0.5}
        for k in range(1, 5)
    ]
    history.insert(2, {"step": 2, "eval_loss": 3.5})
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": history, "train_batch_size": 2}))
    rows = read_runs(path).frame
    train = rows[rows["split"] == "train"]
    assert train["batch_size"].tolist() == [8.0, 16.0, 24.0, 32.0]
    assert train["lr"].tolist() == [0.1] * 4
    assert train["tokens"].tolist() == [1024.0 * k for k in range(1, 5)]
    assert train["grad_norm"].tolist() == [0.5] * 4
    assert rows.loc[rows["split"] == "val", "batch_size"].tolist() == [16.0]


def test_tables_are_written_to_files_alone(tmp_path: Path) -> None:
    table = read_runs(pd.DataFrame({"step": [0, 1], "loss": [2.0, 1.0]}))
    (tmp_path / "file").write_text("")
    for write in (table.to_csv, table.to_parquet):
        with pytest.raises(ConvexlawError, match="is a folder: pass the name of a file"):
            write(tmp_path)
        for wrong in (None, 3, b"\0", "a\0b"):
            with pytest.raises(ConvexlawError, match="is no path: pass the name of a file"):
                write(wrong)  # type: ignore[arg-type]
        for name in ("x" * 300 + ".csv", "file/tidy.csv"):
            with pytest.raises(ConvexlawError, match="cannot be written"):
                write(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_runs_and_groups_are_named_by_text() -> None:
    table = read_runs(pd.DataFrame({"step": [0, 1], "loss": [2.0, 1.0]}))
    for wrong in (None, 5):
        with pytest.raises(ConvexlawError, match=f"runs = {wrong}: pass a name, a pattern, or a list"):
            table.select(wrong)  # type: ignore[arg-type]
    for groups in (3, {}, ["a"]):
        with pytest.raises(ConvexlawError, match="groups = "):
            table.pool_seeds(groups)  # type: ignore[arg-type]
    with pytest.raises(ConvexlawError, match="runs = 3"):
        table.pool_seeds({"a": 3})  # type: ignore[dict-item]
