"""Errors name file, column, rows and what to do; nothing is half-read; hostile input stays bounded."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError
from convexlaw.runs import _source

GOOD = "step,loss,lr\n0,3,0.1\n10,2.5,0.1\n20,2,0.1\n30,1.5,0.1\n"


def refuse(path: Path, content: bytes | str, message: str, **options: object) -> None:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConvexlawError, match=message):
        read_runs(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            GOOD.replace("2.5", "abc"),
            r"log.csv: column 'loss' has 1 cell that is no number, first 'abc' \(line 3\); mend or remove it",
        ),
        (
            GOOD.replace("2.5", "x").replace("1.5", "y"),
            r"has 2 cells that are no number, first 'x' \(lines 3, 5\); mend or remove them",
        ),
        (
            GOOD.replace("10,2.5,0.1", "10,2.5"),
            r"1 line with other than 3 cells \(line 3; the first has 2\): the header names 3 columns",
        ),
        (
            GOOD.replace("10,2.5,0.1", "10,2.5,0.1,7"),
            r"1 line with other than 3 cells \(line 3; the first has 4\)",
        ),
        (
            GOOD.replace("10,2.5,0.1", "10,2.5").replace("20,2,0.1", "20,2,0.1,7"),
            r"2 lines with other than 3 cells \(lines 3, 4;",
        ),
        (
            GOOD.replace("10,2.5", '10,"2.5'),
            r"lines 3 to 5 cannot be parted into cells \(unexpected end of data: a stray quote\?\)",
        ),
        (GOOD.replace("10,2.5", '10,"2.5"x'), r"line 3 cannot be parted into cells"),
        (GOOD.replace("10,2.5,0.1", "10,2.5,0.1\0"), "zero bytes in what looks like a table; it is damaged"),
        (
            GOOD.replace("10,2.5", '10,"2,5"'),
            r"column 'loss' has 1 cell that is no number, first '2,5' \(line 3\)",
        ),
        (GOOD.replace("0.1", "True"), "column 'lr' has 4 cells that are no number, first 'True'"),
        ("step,loss\n", "a header line and no rows"),
        ("step,accuracy\n0,1\n", "no loss column among step, accuracy; name it loss, train_loss"),
        (
            "epoch,loss\n0,1\n",
            r"no step column among epoch, loss; .* \(epochs are too coarse: add the number of updates\)",
        ),
        (
            "tokens,loss\n0,1\n",
            r"no step column among tokens, loss; .* \(tokens or samples alone do not count updates: add "
            r"a step column\)",
        ),
        (
            "0,3.5,0.1\n1,3.4,0.1\n",
            r"the first line holds numbers \(0, 3.5, 0.1\); put a header line above, e.g. step,lr,loss",
        ),
        ("", "the file is empty"),
        ("\n\n  \n", "the file is empty"),
        ("just some words\n", "no table with a header line"),
        (bytes(range(256)) * 40, "binary content in no format known here"),
        (b"PK\x03\x04rest", r"a zip archive \(or a spreadsheet\); unpack it, or save the sheet as CSV"),
        (b"\x80\x04\x95rest", "pickles are never opened"),
        (b"SQLite format 3\0", "export the metrics as CSV"),
        (b"\x1f\x8bnot gzip at all", "not a whole gzip file"),
        (b"PAR1 not parquet", "not a whole parquet file"),
        ('{"log_history": [', "not whole JSON"),
        ('{"log_history": []}', "log_history has 0 entries, none with loss or eval_loss"),
        (
            '{"log_history": [{"eval_a_loss": 1, "step": 1}]}',
            "it has eval_a_loss; rename one of them to eval_loss",
        ),
        ('{"a": 1}', "JSON with the keys a and no columns of step and loss"),
        ("[1, 2]", "a JSON list of other things than records"),
        ('{"step": [0, 1], "loss": [1]}', r"different lengths \[1, 2\]; nothing is read"),
        ('{"step": 0, "loss": 1}\n{"step": 1, "loss"\n{"step": 2, "loss": 1}\n', "line 2 is no JSON"),
        ('{"step": 0, "loss": 1}\n[1]\n{"step": 2, "loss": 1}\n', "line 2 is list, not an object with names"),
        (
            '{"step": 0, "loss": "abc"}\n{"step": 1, "loss": 1}\n',
            r"column 'loss' has 1 cell .* first 'abc' \(line 1\)",
        ),
        ("1700000000000 2.5 0\n1700000000001 abc 1\n", "line 2 .* is not 'time value step'"),
        ("step,loss,split\n0,1,train\n1,1,valid\n", "ok"),
        (
            "step;loss;lr\n1.000;2,5;0.001\n2.000;2,4;0.001\n3.000;2,3;0.001\n",
            r"points part thousands in '[12]\.000' and decimals in '0\.001'; write numbers in one way",
        ),
        (
            "step;loss;lr\n1.000;2.625;0,001\n2.000;2.5;0,001\n3.000;2.25;0,001\n",
            "points part thousands in '[12].000' and decimals in",
        ),
        ('{"step": 0, "loss": ' + "1" * 5000 + "}\n" * 2, "a whole number of thousands of digits"),
    ],
)
def test_errors_say_where_and_what_to_do(tmp_path: Path, content: bytes | str, message: str) -> None:
    if message == "ok":
        (tmp_path / "log.csv").write_text(str(content))
        assert len(read_runs(tmp_path / "log.csv").frame) == 2
        return
    name = "loss" if "1700000000000" in str(content) else "log.csv"
    refuse(tmp_path / name, content, message)


def test_many_wrong_cells_and_lines_are_counted_in_full(tmp_path: Path) -> None:
    wrong = "step,loss\n" + "".join(f"{k},oops\n" for k in range(1500))
    refuse(
        tmp_path / "a.csv", wrong, r"1500 cells .* \(lines 2, 3, 4, 5, 6, ... \(1500 in all, last 1501\)\)"
    )
    short = "step,loss\n0,1\n" + "7\n" * 1500 + "1,2\n"
    refuse(tmp_path / "b.csv", short, r"1500 lines .* \(lines 3, 4, 5, 6, 7, ... \(1500 in all, last 1502\);")
    entries = [{"step": k, "loss": "oops" if k else 1.0} for k in range(300)]
    refuse(tmp_path / "c.json", json.dumps(entries), r"\(records 2, 3, .* \(299 in all, last 300\)\)")
    columns = {"step": [0, 1, 2], "loss": [1.0, "oops", "oops"]}
    refuse(tmp_path / "d.json", json.dumps(columns), r"first 'oops' \(entries 2, 3\)")


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    content = f"# a: 1\n\n{GOOD}\n# more\n{GOOD.splitlines()[0]}\n40,abc,0.1\n"
    assert content.splitlines()[10] == "40,abc,0.1"
    refuse(path, content, r"first 'abc' \(line 11\)")
    refuse(path, content.replace("abc", "nan"), r"1 NaN training loss .* step 40 \(line 11\)", na="error")


def test_one_broken_log_in_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text(GOOD.replace("2.5", "abc"))
    with pytest.raises(ConvexlawError, match=r"b\.csv: column 'loss'"):
        read_runs(tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nothing/here.csv", "no such file or folder, and nothing matches it as a pattern"),
        ("nothing*.csv", "no such file or folder, and nothing matches it as a pattern"),
        ("", "source = '' is no path"),
        ("a\0b", "is no path"),
        ("https://example.org/log.csv", "logs are read from local files; download it first"),
        ("x" * 5000, "cannot be read"),
        ("**x*", "cannot be read as a pattern|nothing matches"),
        ([], "nothing to read"),
        (3, "source of type int is no path, glob, folder, frame, or list of these"),
        (b"bytes", "source of type bytes"),
        ("/dev/null", "not a regular file"),
    ],
)
def test_sources_that_are_none(
    source: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConvexlawError, match=message):
        read_runs(source)


def test_odd_paths_and_names(tmp_path: Path) -> None:
    for name in ("a\nb.csv", "-.csv", "ä ö.csv", "[x]*?.csv", "\x1b[31mred.csv", "'; rm -rf.csv"):
        path = tmp_path / name
        path.write_text(GOOD)
        table = read_runs(path)
        assert len(table.frame) == 4
        assert table.runs[0].isprintable()
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with pytest.raises(ConvexlawError, match="not a regular file"):
        read_runs(fifo)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ConvexlawError, match=r"no such file|cannot be read"):
        read_runs(loop)
    (tmp_path / "self").symlink_to(tmp_path, target_is_directory=True)
    assert len(read_runs(tmp_path)) == 6
    secret = tmp_path / "shut.csv"
    secret.write_text(GOOD)
    secret.chmod(0)
    if os.geteuid() != 0:
        with pytest.raises(ConvexlawError, match="cannot be read"):
            read_runs(secret)


def test_an_empty_folder_and_one_without_logs(tmp_path: Path) -> None:
    with pytest.raises(ConvexlawError, match="nothing to read"):
        read_runs(tmp_path)
    (tmp_path / "notes.txt").write_text("words")
    with pytest.raises(
        ConvexlawError, match=r"no training log in 1 file; 1 file in no known format skipped: notes\.txt"
    ):
        read_runs(tmp_path)


def test_a_gzip_bomb_is_stopped_early(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    block = gzip.compress(b"step,loss\n" + b"0,1\n" * 1_000_000, 9)
    bomb = gzip.compress(b"step,loss\n" + b"0" * 200_000_000, 9)
    assert len(bomb) < 300_000
    refuse(path, bomb, "no training log packs like this")
    refuse(path, gzip.compress(bomb), "gzip inside gzip")
    refuse(path, block * 200, "no training log packs like this")
    refuse(path, bomb[:-20], "packs like this|is cut")


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_source, "MAX_BYTES", 50)
    refuse(tmp_path / "log.csv", GOOD * 2, "limit is 0 MiB, thin the log first")
    monkeypatch.undo()
    monkeypatch.setattr(_source, "MAX_FILES", 3)
    for k in range(5):
        (tmp_path / f"{k}.csv").write_text(GOOD)
    with pytest.raises(ConvexlawError, match="more than 3 files"):
        read_runs(tmp_path)
    with pytest.raises(ConvexlawError, match="matches more than 3 files"):
        read_runs(f"{tmp_path}/*.csv")


@pytest.mark.parametrize(
    "content",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        '{"log_history": ' + "[" * 100_000 + "]" * 100_000 + "}",
        json.dumps({"step": 0, "loss": 1}) + "\n" + '{"x":' * 100_000 + "\n",
        '{"step": [0], "loss": [' + "9" * 10_000 + "]}",
        json.dumps({f"k{i}/loss": 1 for i in range(5000)}) + "\n{}\n",
    ],
    ids=["lists", "objects", "deep history", "deep line", "long number", "many keys"],
)
def test_deep_and_wide_json_is_refused(tmp_path: Path, content: str) -> None:
    refuse(tmp_path / "log.json", content, "log.json: ")


def test_huge_numbers_stay_numbers(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "step,loss,lr\n0,1e308,1\n1,1e999,1\n2,1e308,1e300\n2,1.7e308,1\n9007199254740992,5e-324,1\n"
    )
    table = read_runs(path)
    assert table.curve("log")[0].tolist() == [0, 2, 9007199254740992]
    assert np.isfinite(table.curve("log")[1]).all()
    assert "1 infinite training loss at step 1: dropped" in table.notes_for("log")
    str(table)
    table.drop_spikes()
    path.write_text('{"log_history": [{"step": 1, "loss": 1' + "0" * 400 + '}, {"step": 2, "loss": 2}]}')
    assert read_runs(path).curve("log")[0].tolist() == [2]


@pytest.mark.parametrize("value", ["1e308", "1.7e308", "5e-324", "0", "1e-300", "9007199254740992"])
@pytest.mark.parametrize("column", ["loss", "lr", "batch_size", "tokens", "grad_norm", "seq_len", "val_loss"])
def test_extreme_cells_pass_without_a_warning(tmp_path: Path, column: str, value: str) -> None:
    names = ["step", "loss", "lr", "batch_size", "tokens", "grad_norm", "seq_len", "val_loss"]
    for rows in ([3], [0, 1, 2], [0, 39], list(range(40)), list(range(0, 40, 2))):
        lines = [",".join(names)]
        for k in range(40):
            cells = {
                "step": f"{10 * k}",
                "loss": "3",
                "lr": f"{k + 1}",
                "batch_size": "8",
                "tokens": f"{80 * k}",
            }
            cells |= {"grad_norm": "1", "seq_len": "1", "val_loss": "3"}
            if k in rows:
                cells[column] = value
            lines.append(",".join(cells[n] for n in names))
        path = tmp_path / "log.csv"
        path.write_text("\n".join(lines) + "\n")
        table = read_runs(path, loss_scale=1e-3 if len(rows) == 3 else 1.0)
        assert len(table.curve("log")[0]) > 0
        str(table)
        table.drop_spikes()
        table.dense_lr("log")


def test_wide_tables_do_not_explode(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    names = [f"c{k}" for k in range(20_000)]
    path.write_text(",".join(["step", "loss", *names]) + "\n" + ",".join(["1"] * 20_002) + "\n")
    assert len(read_runs(path).frame) == 1


def test_reading_a_hostile_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"step,loss\n" * 30_000) + gzip.compress(b"0" * 50_000_000, 1) * 30)
    tracemalloc.start()
    try:
        with pytest.raises(ConvexlawError, match=r"bomb\.gz: .* no training log packs like this"):
            read_runs(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 500e6  # bytes; the bomb holds 1.5 GB


def test_frames_that_are_no_logs() -> None:
    for frame, message in (
        (pd.DataFrame({"step": [0], "x": [1]}), "frame: no loss column among step, x"),
        (
            pd.DataFrame({"step": pd.to_datetime(["2020-01-01"]), "loss": [1.0]}),
            "column 'step' holds times, not numbers",
        ),
        (pd.DataFrame({"step": [True], "loss": [1.0]}), "column 'step' holds True and False"),
        (
            pd.DataFrame({"step": [[1]], "loss": [1.0]}),
            r"column 'step' has 1 cell that is no number, first '\[1\]'",
        ),
        (pd.DataFrame({"step": [1j], "loss": [1.0]}), "column 'step' has 1 cell that is no number"),
        (pd.DataFrame({"step": [], "loss": []}), "a header line and no rows"),
        (pd.DataFrame(), "no loss column"),
    ):
        with pytest.raises(ConvexlawError, match=message):
            read_runs(frame)


def test_missing_readers_name_their_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.parquet"
    pd.DataFrame({"step": [0], "loss": [1.0]}).to_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConvexlawError, match=r"parquet files need pyarrow; install convexlaw\[parquet\]"):
        read_runs(path)
    monkeypatch.setitem(sys.modules, "tensorboard.backend.event_processing", None)
    events = tmp_path / "events.out.tfevents.1"
    events.write_bytes(
        b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2\xec\x96\x7c\xcc"
    )
    with pytest.raises(
        ConvexlawError, match=r"event files need tensorboard; install convexlaw\[tensorboard\]"
    ):
        read_runs(events)
