"""Permuted rows, renamed columns, cut files, mixed encodings: the same data, the same table, or an error."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError
from convexlaw.runs._columns import ALIASES
from convexlaw.runs.table import RunTable

FUZZER = Path(__file__).resolve().parent / "fuzz" / "fuzz_readers.py"


def write_and_read(content: bytes, name: str = "log.txt", **options: Any) -> RunTable:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return read_runs(path, **options)


numbers = st.floats(1e-6, 1e6, allow_nan=False).filter(lambda x: x > 0)


@st.composite
def logs(draw: st.DrawFn) -> pd.DataFrame:
    """A clean log: 8 to 40 rows at even steps, some columns, some of them with absent cells."""
    size = draw(st.integers(8, 40))
    every = draw(st.sampled_from([1, 5, 100]))
    frame = pd.DataFrame(
        {"step": np.arange(size) * every, "loss": draw(st.lists(numbers, min_size=size, max_size=size))}
    )
    for column in ("lr", "grad_norm", "tokens", "batch_size"):
        if draw(st.booleans()):
            frame[column] = draw(st.lists(numbers, min_size=size, max_size=size))
    if draw(st.booleans()):
        frame["val_loss"] = [draw(numbers) if k % 3 == 0 else math.nan for k in range(size)]
    return frame


def written(frame: pd.DataFrame, kind: str) -> bytes:
    """Write a frame; absent cells stay absent."""
    records = [
        {k: v for k, v in r.items() if not (isinstance(v, float) and math.isnan(v))}
        for r in frame.to_dict("records")
    ]
    if kind == "jsonl":
        return "".join(json.dumps(r) + "\n" for r in records).encode()
    if kind == "json":
        return json.dumps(records).encode()
    if kind == "parquet":
        out = io.BytesIO()
        frame.to_parquet(out)
        return out.getvalue()
    if kind == "european":
        return frame.to_csv(index=False, sep=";", decimal=",").encode("utf-8-sig")
    if kind == "tsv":
        return frame.to_csv(index=False, sep="\t").encode()
    text = frame.to_csv(index=False)
    return {
        "utf-16": text.encode("utf-16"),
        "gzip": gzip.compress(text.encode()),
        "crlf": text.replace("\n", "\r\n").encode(),
    }.get(kind, text.encode())


def same(a: RunTable, b: RunTable) -> None:
    pd.testing.assert_frame_equal(a.frame, b.frame, check_exact=True)
    for run in a.runs:
        if a.has_lr(run):
            np.testing.assert_array_equal(a.dense_lr(run), b.dense_lr(run))


@settings(max_examples=80, deadline=None)
@given(logs(), st.sampled_from(["jsonl", "json", "parquet", "european", "tsv", "utf-16", "gzip", "crlf"]))
def test_the_same_data_in_any_format(frame: pd.DataFrame, kind: str) -> None:
    plain, other = write_and_read(written(frame, "csv")), write_and_read(written(frame, kind))
    same(plain, other)
    read = plain.frame.loc[plain.frame["split"] == "train"]
    assert read["step"].tolist() == frame["step"].tolist()
    assert read["loss"].tolist() == frame["loss"].tolist()


@settings(max_examples=60, deadline=None)
@given(logs(), st.randoms(use_true_random=False))
def test_permuted_rows_and_columns(frame: pd.DataFrame, random: Any) -> None:
    order = list(range(len(frame)))
    random.shuffle(order)
    names = list(frame.columns)
    random.shuffle(names)
    same(write_and_read(written(frame, "csv")), write_and_read(written(frame.iloc[order][names], "csv")))


@settings(max_examples=80, deadline=None)
@given(logs(), st.data())
def test_renamed_columns(frame: pd.DataFrame, data: st.DataObject) -> None:
    names = {}
    for column in frame.columns:
        name = data.draw(
            st.sampled_from([n for n in ALIASES[column] if not n.startswith("train_loss_epoch")]),
            label=column,
        )
        names[column] = data.draw(
            st.sampled_from([name, name.upper(), name.replace("_", " "), f" {name} ", f"\ufeff{name}"])
        )
    assert len(set(names.values())) == len(names)
    same(write_and_read(written(frame, "csv")), write_and_read(written(frame.rename(columns=names), "csv")))


@settings(max_examples=150, deadline=None)
@given(
    logs(),
    st.sampled_from(["csv", "jsonl", "json", "parquet", "european", "utf-16", "gzip"]),
    st.floats(0, 1),
)
def test_cut_files_end_in_the_first_rows_or_in_an_error(frame: pd.DataFrame, kind: str, share: float) -> None:
    content = written(frame, kind)
    whole = write_and_read(content)
    try:
        part = write_and_read(content[: int(share * len(content))])
    except ConvexlawError:
        return
    assert kind not in ("json", "parquet", "gzip") or part.frame.equals(whole.frame)
    for split in ("train", "val"):
        steps, losses = part.curve("log", split)
        every_step, every_loss = whole.curve("log", split)
        # the last number may be cut, and then a note says so
        told = [n for n in part.notes if getattr(n, "kind", "") in ("no_line_end", "cut")]
        certain = len(steps) - (1 if told and len(steps) else 0)
        assert steps[:certain].tolist() == every_step[:certain].tolist()
        assert losses[:certain].tolist() == every_loss[:certain].tolist()


@settings(max_examples=60, deadline=None)
@given(
    logs(),
    st.lists(st.integers(0, 39), max_size=5),
    st.sampled_from(["nan", "NaN", "inf", "-Infinity", "", "null", "N/A"]),
)
def test_words_for_nothing_and_infinity_are_dropped_and_counted(
    frame: pd.DataFrame, rows: list[int], word: str
) -> None:
    frame = frame[["step", "loss"]].astype({"loss": object})
    rows = sorted({r for r in rows if r < len(frame)})[: len(frame) // 4]
    frame.loc[rows, "loss"] = word
    read = write_and_read(frame.to_csv(index=False).encode())
    left = frame.drop(index=rows)
    assert read.curve("log")[0].tolist() == left["step"].tolist()
    told = [getattr(n, "text", "") for n in read.notes if getattr(n, "kind", "") == "nan"]
    what = "infinite" if "inf" in word.lower() else "NaN"
    assert bool(told) == bool(rows)
    if rows:
        assert told[0].startswith(f"{len(rows)} {what} training loss")
        with pytest.raises(ConvexlawError, match=f"{len(rows)} {what} training loss"):
            write_and_read(frame.to_csv(index=False).encode(), na="error")


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(["log.csv", "trainer_state.json", "events.out.tfevents.1", "x.parquet", "a.gz"]),
)
def test_any_bytes_end_in_a_table_or_an_error(content: bytes, name: str) -> None:
    told = ""
    try:
        write_and_read(content, name)
    except ConvexlawError as error:
        told = str(error)
    assert not told or name in told


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["step", "loss", "log_history", "history", "lr", "a"]), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(json_values)
def test_any_json_ends_in_a_table_or_an_error(value: Any) -> None:
    try:
        read = write_and_read(json.dumps(value).encode(), "log.json")
    except ConvexlawError:
        return
    assert len(read.frame) > 0


@pytest.fixture(scope="module")
def fuzzer() -> Any:
    spec = importlib.util.spec_from_file_location("fuzz_readers", FUZZER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_short_fuzz(fuzzer: Any) -> None:
    counts, crashes, slowest = fuzzer.fuzz(seconds=60, seed=0, most=600)
    assert crashes == []
    assert counts["table"] > 20
    assert counts["error"] > 100
    assert slowest < 60


@pytest.mark.slow
def test_a_longer_fuzz(fuzzer: Any) -> None:
    counts, crashes, _ = fuzzer.fuzz(seconds=180, seed=1)
    assert crashes == []
    assert sum(counts.values()) > 500
