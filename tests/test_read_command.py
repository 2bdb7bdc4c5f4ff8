"""``convexlaw read``: one line a run, notes under three headings, whole files, errors in one line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw import read_runs
from convexlaw.cli import main

LOGS = Path(__file__).resolve().parent / "data" / "logs"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(["read", *arguments])
    out = capsys.readouterr()
    return int(done.value.code or 0), out.out, out.err


@pytest.fixture
def log(tmp_path: Path) -> Path:
    steps = np.arange(0, 400, 10)
    frame = pd.DataFrame(
        {"step": steps, "lr": 1e-3, "loss": 3.0 - steps / 1000, "batch_size": 8, "tokens": steps * 4096}
    )
    frame.loc[20, "loss"] = 30.0
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    return path


def test_one_line_a_run_and_its_notes(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    code, out, err = run(capsys, str(log))
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == [
        "run",
        "format",
        "rows",
        "steps",
        "peak",
        "lr",
        "batch",
        "tokens",
        "train",
        "loss",
        "notes",
    ]
    assert lines[1] == ["log", "csv", "40", "0", "to", "390", "0.001", "8", "1.6e+06", "2.61", "1"]
    assert "Look at these before a fit" in out
    assert "log: 1 spike in the training loss at step 200 (30): kept" in out


def test_tables_are_written_whole_and_read_back(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    expected = read_runs(log).frame
    for name in ("tidy.csv", "tidy.csv.gz", "tidy.parquet"):
        code, out, _ = run(capsys, str(log), "--out", str(tmp_path / "out" / name))
        assert code == 0
        assert f"table written to {tmp_path / 'out' / name}" in out
        pd.testing.assert_frame_equal(read_runs(tmp_path / "out" / name).frame, expected, check_exact=True)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["tidy.csv", "tidy.csv.gz", "tidy.parquet"]
    code, _, err = run(capsys, str(log), "--out", str(tmp_path / "tidy.xlsx"))
    assert code == 2
    assert "the table is written as .csv, .csv.gz or .parquet; name it so" in err


def test_json_holds_runs_and_notes(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    code, out, _ = run(capsys, str(log), "--json")
    value = json.loads(out)
    assert code == 0
    assert value["notes"] == []
    assert value["runs"][0] | {"meta": {}, "source": ""} == {
        "run": "log",
        "rows": 40,
        "first_step": 0,
        "last_step": 390,
        "peak_lr": 1e-3,
        "batch_size": 8.0,
        "tokens": 390 * 4096.0,
        "final_loss": 2.61,
        "final_val_loss": None,
        "source": "",
        "format": "csv",
        "meta": {},
        "notes": [{"kind": "spikes", "text": "1 spike in the training loss at step 200 (30): kept"}],
    }


def test_spikes_go_only_when_asked(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    _, out, _ = run(capsys, str(log), "--drop-spikes", "--json")
    row = json.loads(out)["runs"][0]
    assert row["rows"] == 39
    assert row["notes"] == [{"kind": "dropped_spikes", "text": "1 spike dropped, at step 200"}]


def test_schedules_seeds_and_scales(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for seed in range(2):
        frame = pd.DataFrame({"step": range(0, 100, 10), "loss": 6.0 + seed})
        frame.to_csv(tmp_path / f"a_seed{seed}.csv", index=False)
    arguments = [
        str(tmp_path),
        "--schedule",
        "wsd:steps=100,peak=1e-3",
        "--pool-seeds",
        "--loss-scale",
        "2",
        "--json",
    ]
    code, out, _ = run(capsys, *arguments)
    row = json.loads(out)["runs"][0]
    assert code == 0
    assert (row["run"], row["peak_lr"], row["final_loss"]) == ("a", 1e-3, 3.25)


def test_standard_input_and_a_figure(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    code, out, _ = run(capsys, "-", "--plot", str(tmp_path / "a.png"))
    assert code == 0
    assert out.splitlines()[1].split()[0] == "stdin"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_many_notes_are_cut_and_all_notes_are_not(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for k in range(30):
        frame = pd.DataFrame({"step": [10 + k, 20 + k, 30 + k], "lr": 1.0, "loss": 3.0})
        frame.to_csv(tmp_path / f"{k}.csv", index=False)
    _, out, _ = run(capsys, str(tmp_path))
    assert "more (--all-notes prints them)" in out
    _, every, _ = run(capsys, str(tmp_path), "--all-notes")
    assert "more (--all-notes" not in every
    assert every.count("first step is") == 30


def test_notes_that_runs_share_stand_once(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, str(LOGS))
    assert "huggingface: 3 earlier checkpoints of the same run left out" in out
    for name in ("x", "y"):
        assert f"{name}: " not in out


def test_errors_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, words in (
        (["nothing.csv"], "no such file or folder"),
        ([str(tmp_path)], "nothing to read"),
        ([str(LOGS), "--duplicates", "last"], "duplicates = 'last' must be one of"),
        ([str(LOGS), "--loss-scale", "0"], "must be a finite number > 0"),
        ([str(LOGS), "--plot", "a.bmp"], "figures are written as .png, .pdf or .svg"),
        ([str(LOGS), "--schedule", "wsd:steps=3"], "error: "),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert words in err


def test_names_cannot_write_on_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    frame = pd.DataFrame({"run": "\x1b[31m[bold]evil\x07", "step": [0, 1], "loss": [3.0, 2.0]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    _, out, _ = run(capsys, str(tmp_path))
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[bold]evil" in out


def test_a_schedule_in_the_header_lines_is_taken_as_the_fits_take_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lr = np.minimum(1, (100 - np.arange(100)) / 20) * 1e-3
    rows = "".join(f"{t},{float(lr[t])!r},3.0\n" for t in range(0, 100, 25))
    (tmp_path / "log.csv").write_text(f"# schedule: wsd:steps=100,peak=1e-3,decay=0.2\nstep,lr,loss\n{rows}")
    _, out, _ = run(capsys, str(tmp_path), "--json")
    kinds = [note["kind"] for note in json.loads(out)["runs"][0]["notes"]]
    assert "own_schedule" in kinds
    assert "lr_gaps" not in kinds


def test_sentences_name_the_options_of_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    steps = np.arange(0, 100, 10)
    for seed in range(2):
        frame = pd.DataFrame({"step": steps, "loss": 12.0, "val_loss": 3.0})
        frame.to_csv(tmp_path / f"a_seed{seed}.csv", index=False)
    _, out, _ = run(capsys, str(tmp_path))
    assert "pass --schedule (one learning rate a step) before fitting" in out
    assert "--pool-seeds makes one run 'a' of them" in out
    assert "pass --loss-scale 4 to divide it" in out
