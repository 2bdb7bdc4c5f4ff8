"""The same data in any format, encoding and dialect gives the same table."""

from __future__ import annotations

import gzip
import io
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError

COLUMNS = ["run", "step", "lr", "batch_size", "tokens", "loss", "split", "grad_norm"]
STEPS = np.arange(0, 400, 10)
LOSSES = 2.0 + 3.0 / (1 + STEPS) ** 0.4 + 1e-3 * np.sin(STEPS)
RATES = 1e-3 * np.minimum(1, (STEPS + 1) / 100)
NORMS = 1.0 + 0.1 * np.cos(STEPS)


def expected(split: str = "train") -> pd.DataFrame:
    frame = pd.DataFrame(
        {"run": "log", "step": STEPS, "lr": RATES, "batch_size": 8.0, "tokens": STEPS * 4096.0}
    )
    return frame.assign(loss=LOSSES, split=split, grad_norm=NORMS)[COLUMNS]


def rows(names: dict[str, str] | None = None) -> pd.DataFrame:
    given = {
        "step": STEPS,
        "loss": LOSSES,
        "lr": RATES,
        "batch_size": 8,
        "tokens": STEPS * 4096,
        "grad_norm": NORMS,
    }
    frame = pd.DataFrame(given)
    return frame.rename(columns=names or {})


def text(sep: str = ",", decimal: str = ".", end: str = "\n", **names: str) -> str:
    out = io.StringIO()
    rows(names).to_csv(out, index=False, sep=sep, decimal=decimal, lineterminator=end)
    return out.getvalue()


ALIASES = {
    "step": "Global Step",
    "loss": "train/loss",
    "lr": "train/learning_rate",
    "tokens": "train/num_input_tokens_seen",
}
WRITERS: dict[str, Callable[[], bytes]] = {
    "csv": lambda: text().encode(),
    "csv with other names": lambda: text(**ALIASES).encode(),
    "tsv": lambda: text("\t").encode(),
    "bars": lambda: text("|").encode(),
    "blanks": lambda: text(" ").encode(),
    "european": lambda: text(";", ",", "\r\n").encode("utf-8-sig"),
    "decimal commas and tabs": lambda: text("\t", ",").encode(),
    "windows line ends": lambda: text(end="\r\n").encode(),
    "old mac line ends": lambda: text(end="\r").encode(),
    "quoted": lambda: "".join(
        ",".join(f'"{c}"' for c in line.split(",")) + "\n" for line in text().splitlines()
    ).encode(),
    "byte-order mark": lambda: text().encode("utf-8-sig"),
    "utf-16": lambda: text().encode("utf-16"),
    "utf-16 big-endian": lambda: b"\xfe\xff" + text().encode("utf-16-be"),
    "utf-16 without mark": lambda: text().encode("utf-16-le"),
    "windows-1252": lambda: ("größe," + text().replace("\n", "\né,")[:-2]).encode("cp1252"),
    "gzip": lambda: gzip.compress(text().encode()),
    "two gzip members": lambda: gzip.compress(text().encode()[:500]) + gzip.compress(text().encode()[500:]),
    "jsonl": lambda: "".join(json.dumps(r) + "\n" for r in rows().to_dict("records")).encode(),
    "nested jsonl": lambda: "".join(
        json.dumps(
            {
                "step": r["step"],
                "train": {"loss": r["loss"], "learning_rate": r["lr"], "grad_norm": r["grad_norm"]},
                **r,
                "loss": None,
            }
        )
        + "\n"
        for r in rows().to_dict("records")
    ).encode(),
    "gzipped jsonl": lambda: gzip.compress(
        "".join(json.dumps(r) + "\n" for r in rows().to_dict("records")).encode()
    ),
    "json records": lambda: json.dumps(rows().to_dict("records")).encode(),
    "json columns": lambda: json.dumps(rows().to_dict("list")).encode(),
    "json history": lambda: json.dumps(
        {"config": {"x": 1}, "history": {"train": rows({"step": "iter"}).to_dict("list")}}
    ).encode(),
    "parquet": lambda: _parquet(rows()),
    "gzipped parquet": lambda: gzip.compress(_parquet(rows())),
    "header again": lambda: (text() + text().splitlines()[0] + "\n").encode(),
    "comments": lambda: ("# made: by hand\n\n" + text().replace("\n", "\n# more\n", 3)).encode(),
    "blank lines": lambda: text().replace("\n", "\n\n").encode(),
    "trailing delimiters": lambda: text().replace("\n", ",\n").encode(),
    "blanks around cells": lambda: text().replace(",", " , ").encode(),
    "blanks around names": lambda: text().replace("step,loss,lr", " step , loss , lr ", 1).encode(),
}


def _parquet(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.to_parquet(out)
    return out.getvalue()


@pytest.mark.parametrize("kind", list(WRITERS))
def test_any_format_gives_the_same_table(kind: str, tmp_path: Path) -> None:
    # the name says nothing: the content is looked at
    path = tmp_path / "log.txt"
    path.write_bytes(WRITERS[kind]())
    read = read_runs(path)
    pd.testing.assert_frame_equal(read.frame, expected(), check_exact=True)


def test_frames_and_lists_of_frames() -> None:
    read = read_runs(rows().assign(run="log"))
    pd.testing.assert_frame_equal(read.frame, expected(), check_exact=True)
    both = read_runs([rows().assign(run="log"), rows().assign(run="other")])
    assert both.runs == ["log", "other"]
    named = read_runs({"log": rows(), "b": rows()})
    assert named.runs == ["log", "b"]
    pd.testing.assert_frame_equal(named.select("log").frame, expected(), check_exact=True)
    indexed = read_runs(rows().assign(run="log").set_index("step"))
    pd.testing.assert_frame_equal(indexed.frame, expected(), check_exact=True)


@pytest.mark.parametrize("dtype", ["int32", "float32", "object", "string", "category", "Int64"])
def test_steps_of_any_dtype(dtype: str) -> None:
    frame = pd.DataFrame({"step": pd.Series([0, 5, 10]).astype(dtype), "loss": [3.0, 2.0, 1.0]})
    assert read_runs(frame).frame["step"].tolist() == [0, 5, 10]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text().encode()))))
    read = read_runs("-")
    assert read.runs == ["stdin"]
    pd.testing.assert_frame_equal(read.frame.assign(run="log"), expected(), check_exact=True)


def test_a_split_column_parts_training_and_validation(tmp_path: Path) -> None:
    frame = pd.concat([rows().assign(split="train"), rows().iloc[::4].assign(split="Validation", loss=9.0)])
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    read = read_runs(path)
    assert read.curve("log", "val")[0].tolist() == STEPS[::4].tolist()
    assert set(read.curve("log", "val")[1]) == {9.0}
    np.testing.assert_array_equal(read.curve("log")[1], LOSSES)


def test_other_splits_are_left_out_with_a_count() -> None:
    frame = pd.concat([rows().assign(split="train"), rows().assign(split="test")])
    read = read_runs(frame)
    assert len(read.frame) == len(STEPS)
    assert "40 rows of split test left out (train and val are read)" in read.notes_for("run")


def test_several_runs_by_a_column_or_by_a_seed(tmp_path: Path) -> None:
    frame = pd.concat([rows().assign(run="b"), rows().assign(run="a", loss=LOSSES + 1)]).sample(
        frac=1, random_state=0
    )
    read = read_runs(frame)
    assert sorted(read.runs) == ["a", "b"]
    np.testing.assert_array_equal(read.curve("a")[1], LOSSES + 1)
    seeds = pd.concat([rows().assign(seed=k, loss=LOSSES + k) for k in range(3)])
    path = tmp_path / "wide.csv"
    seeds.to_csv(path, index=False)
    read = read_runs(path)
    assert read.runs == ["wide seed=0", "wide seed=1", "wide seed=2"]
    np.testing.assert_array_equal(read.curve("wide seed=2")[1], LOSSES + 2)


def test_a_file_of_several_runs_without_a_run_column(tmp_path: Path) -> None:
    parts = [
        rows().assign(model=m, schedule=s, loss=LOSSES + m) for m in (25, 100) for s in ("cosine", "wsd")
    ]
    path = tmp_path / "curves.csv"
    pd.concat(parts).to_csv(path, index=False)
    read = read_runs(path)
    assert read.runs == ["25 cosine", "25 wsd", "100 cosine", "100 wsd"]
    np.testing.assert_array_equal(read.curve("100 wsd")[1], LOSSES + 100)
    assert "one table, several runs: told apart by model and schedule" in read.notes_for("25 wsd")


def test_a_resumed_run_is_not_taken_for_two(tmp_path: Path) -> None:
    frame = pd.concat([rows().assign(host="a"), rows().iloc[20:].assign(host="b", machine=2)])
    path = tmp_path / "one.csv"
    frame.to_csv(path, index=False)
    read = read_runs(path)
    assert read.runs == ["one"]
    np.testing.assert_array_equal(read.curve("one")[1], LOSSES)


def test_samples_become_tokens_where_the_length_is_known(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("# seq_len: 512\nstep,loss,samples\n0,3,0\n10,2,80\n")
    read = read_runs(path)
    assert read.frame["tokens"].tolist() == [0.0, 80 * 512.0]
    assert read.notes_for("log")[0] == "tokens are samples x 512 (sequence length of the log)"
    path.write_text("step,loss,samples\n0,3,0\n10,2,80\n")
    read = read_runs(path)
    assert read.frame["tokens"].isna().all()
    assert "no sequence length" in read.notes_for("log")[0]


def test_the_best_name_wins_and_the_others_are_told() -> None:
    frame = pd.DataFrame(
        {"_step": [0, 1], "trainer/global_step": [0, 50], "loss": [9.0, 9.0], "train/loss": [3.0, 2.0]}
    )
    read = read_runs(frame)
    assert read.frame[["step", "loss"]].values.tolist() == [[0, 3.0], [50, 2.0]]
    assert "step is read from 'trainer/global_step'; left aside: '_step'" in read.notes_for("run")
    assert "training loss is read from 'train/loss'; left aside: 'loss'" in read.notes_for("run")
    guessed = read_runs(pd.DataFrame({"step": [0, 1], "model_a/train_loss": [3.0, 2.0]}))
    assert "training loss is guessed to be 'model_a/train_loss'" in guessed.notes_for("run")


def test_folders_mix_formats_and_pass_over_what_is_no_log(tmp_path: Path) -> None:
    for name, kind in (
        ("a/metrics.csv", "csv"),
        ("b/metrics.csv", "european"),
        ("c.jsonl", "jsonl"),
        ("d/log.parquet", "parquet"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(WRITERS[kind]())
    (tmp_path / "README.md").write_text("A long text about these runs, and how they were made.\n")
    (tmp_path / "weights.bin").write_bytes(bytes(range(256)) * 50)
    (tmp_path / "config.json").write_text('{"lr": 1e-3}')
    (tmp_path / ".hidden.csv").write_text("no log")
    read = read_runs(tmp_path)
    assert read.runs == ["c", "a", "b", "d"]
    for run in read.runs:
        pd.testing.assert_frame_equal(read.select(run).frame.assign(run="log"), expected(), check_exact=True)
    skipped = [n for n in read.notes if getattr(n, "kind", "") == "skipped"]
    assert len(skipped) == 2
    assert skipped[0].startswith("config.json is skipped, it is no training log: JSON with the keys lr")
    assert skipped[1] == "2 files in no known format skipped: README.md, weights.bin"
    same = "the same 40 rows as c: leave one of them out of a fit"
    assert all(same in read.notes_for(run) for run in ("a", "b", "d"))


def test_globs_lists_and_a_file_named_twice(tmp_path: Path) -> None:
    for name in ("a1.csv", "a2.csv", "b.csv"):
        (tmp_path / name).write_text(text())
    assert read_runs(f"{tmp_path}/a*.csv").runs == ["a1", "a2"]
    assert read_runs([tmp_path / "b.csv", f"{tmp_path}/*.csv", tmp_path]).runs == ["b", "a1", "a2"]
    (tmp_path / "[odd].csv").write_text(text())
    assert read_runs(tmp_path / "[odd].csv").runs == ["[odd]"]


def test_runs_of_the_same_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "big.csv").write_text(text())
    assert read_runs([tmp_path / "x" / "big.csv", tmp_path / "y" / "big.csv"]).runs == [
        "x/big.csv",
        "y/big.csv",
    ]


def test_a_last_line_that_is_cut_is_dropped_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    whole = text()
    path.write_text(whole[: whole.rindex(",") - 3])
    read = read_runs(path)
    pd.testing.assert_frame_equal(read.frame, expected().iloc[:-1], check_exact=True)
    assert read.notes_for("log")[0].startswith("the last line ('390,")
    path.write_text(whole[:-1])
    read = read_runs(path)
    pd.testing.assert_frame_equal(read.frame, expected(), check_exact=True)
    assert read.notes_for("log")[0].startswith("the last line has no line end")
    lines = "".join(json.dumps(r) + "\n" for r in rows().to_dict("records"))
    path.write_text(lines[:-20])
    read = read_runs(path)
    pd.testing.assert_frame_equal(read.frame, expected().iloc[:-1], check_exact=True)
    assert "is cut: dropped" in read.notes_for("log")[0]


def test_header_lines_become_metadata(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "# convexlaw-log: 1\n# every: 4\n# weight_decay: 0.1\n# note: free text, with commas\n# flag: "
        "true\n# nothing: null\n"
        "step,lr,loss,val_loss\n0,0.1,3,3.1\n4,0.1,2,2.1\n"
    )
    read = read_runs(path)
    meta = read.meta["log"]
    assert (meta["weight_decay"], meta["note"], meta["flag"]) == (0.1, "free text, with commas", True)
    assert "nothing" not in meta
    assert read.notes_for("log") == [
        "each training loss is the mean over the 4 steps around its step (thinned when written)"
    ]


def test_numbers_as_text_are_told_from_words() -> None:
    given: list[Any] = ["1e-3", " 2.5 ", "NaN", "", None, "inf", "-Infinity"]
    frame = pd.DataFrame({"step": range(7), "loss": given})
    read = read_runs(frame)
    assert read.frame["loss"].tolist() == [1e-3, 2.5]
    with pytest.raises(ConvexlawError, match="column 'loss' has 1 cell that is no number, first 'abc'"):
        read_runs(pd.DataFrame({"step": [0, 1], "loss": ["abc", "1"]}))
    assert math.isfinite(read.frame["loss"].sum())


def test_a_plot_of_every_kind_of_run(tmp_path: Path) -> None:
    frame = rows().assign(run="a", val_loss=np.where(STEPS % 100 == 0, LOSSES + 0.1, np.nan))
    table = read_runs([frame, frame.assign(run="b", loss=LOSSES + 1)])
    ax = table.plot()
    drawn = {tuple(line.get_ydata()) for line in ax.get_lines()}
    assert tuple(LOSSES) in drawn
    assert tuple(LOSSES[::10] + 0.1) in drawn
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "validation"]
    lines = table.plot(y="lr", log=True).get_lines()
    assert [tuple(line.get_ydata()) for line in lines] == [tuple(RATES), tuple(RATES)]
    plt.close("all")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "frame"])
def test_the_frame_is_the_readers_own(kind: str, tmp_path: Path) -> None:
    given = rows()
    path = tmp_path / "log.txt"
    if kind != "frame":
        path.write_bytes(WRITERS[kind]())
    read = read_runs(given if kind == "frame" else path)
    before = read.dense_lr(read.runs[0])
    for column, value in (
        ("step", 0),
        ("lr", 5.0),
        ("loss", 5.0),
        ("batch_size", 1.0),
        ("tokens", 2.0),
        ("grad_norm", 3.0),
    ):
        read.frame.loc[0, column] = value
    assert read.frame.loc[0, ["lr", "loss"]].tolist() == [5.0, 5.0]
    pd.testing.assert_frame_equal(given, rows())
    np.testing.assert_array_equal(read.dense_lr(read.runs[0]), before)
