"""TensorBoard event files written by tensorboard's own writer: every scalar, restarts, damage."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util import tensor_util

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError
from convexlaw.runs import tensorboard as reader

Scalar = tuple[str, int, float]


def write(folder: Path, scalars: Iterable[Scalar], start: float = 1e9, tensors: bool = False) -> Path:
    """Write one event file and return its path."""
    before = set(folder.glob("*")) if folder.exists() else set()
    writer = EventFileWriter(str(folder), max_queue_size=100_000, flush_secs=600)
    for k, (tag, step, value) in enumerate(scalars):
        if tensors:
            metadata = summary_pb2.SummaryMetadata(
                plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="scalars")
            )
            tensor = tensor_util.make_tensor_proto(np.float32(value))
            content = summary_pb2.Summary.Value(tag=tag, tensor=tensor, metadata=metadata)
        else:
            content = summary_pb2.Summary.Value(tag=tag, simple_value=value)
        writer.add_event(
            event_pb2.Event(wall_time=start + k, step=step, summary=summary_pb2.Summary(value=[content]))
        )
    writer.close()
    path = next(p for p in folder.glob("*") if p not in before)
    named = folder / f"events.out.tfevents.{int(start)}.host.1.0"
    path.rename(named)
    return named


def curve(n: int, every: int = 1) -> list[Scalar]:
    rows: list[Scalar] = []
    for step in range(0, n * every, every):
        rows += [("train/loss", step, 2.0 + 2.0**-10 * step), ("lr", step, 0.125)]
    return rows


def test_every_scalar_is_read_never_a_sample(tmp_path: Path) -> None:
    write(tmp_path / "run", [("train/loss", k, 2.0 + 2.0**-20 * k) for k in range(25_000)])
    read = read_runs(tmp_path)
    steps, losses = read.curve("run")
    assert steps.tolist() == list(range(25_000))
    np.testing.assert_allclose(losses, 2.0 + 2.0**-20 * np.arange(25_000), rtol=1e-6)


def test_restarts_in_one_folder_are_one_resumed_run(tmp_path: Path) -> None:
    write(tmp_path / "run", curve(40))
    second = [(tag, step, 1.0 if tag != "lr" else 0.25) for tag, step, _ in curve(60) if step >= 30]
    write(tmp_path / "run", second, start=1e9 + 10_000)
    read = read_runs(tmp_path)
    assert read.runs == ["run"]
    steps, losses = read.curve("run")
    assert steps.tolist() == list(range(60))
    assert losses.tolist() == [2.0 + 2.0**-10 * k for k in range(30)] + [1.0] * 30
    assert read.frame["lr"].tolist() == [0.125] * 30 + [0.25] * 30
    notes = read.notes_for("run")
    assert (
        notes[0] == "joined from 2 files (events.out.tfevents.1000000000.host.1.0, "
        "events.out.tfevents.1000010000.host.1.0)"
    )
    assert notes[1] == (
        "resumed once (after step 39 back to step 30): the later segment wins, 10 training rows (steps "
        "30 to 39) of the earlier dropped"
    )
    earlier = read_runs(tmp_path, duplicates="earlier").curve("run")[1]
    assert earlier.tolist() == [2.0 + 2.0**-10 * k for k in range(40)] + [1.0] * 20


def test_a_restart_on_a_clock_that_runs_behind_follows_its_file(tmp_path: Path) -> None:
    write(tmp_path / "run", curve(40))
    first = tmp_path / "run" / "events.out.tfevents.1000000000.host.1.0"
    second = write(tmp_path / "other", [(t, s, 1.0) for t, s, _ in curve(60) if s >= 30], start=0.9e9)
    shutil.move(second, tmp_path / "run" / "events.out.tfevents.1000000001.host.1.0")
    assert first.exists()
    (tmp_path / "other").rmdir()
    assert read_runs(tmp_path).curve("run")[1].tolist()[30:] == [1.0] * 30


def test_scalars_written_as_tensors(tmp_path: Path) -> None:
    write(tmp_path / "run", curve(30), tensors=True)
    read = read_runs(tmp_path / "run")
    np.testing.assert_allclose(read.curve("run")[1], 2.0 + 2.0**-10 * np.arange(30))


def test_validation_rates_and_nan(tmp_path: Path) -> None:
    rows = [
        *curve(20),
        ("val/loss", 10, 5.0),
        ("other", 3, 1.0),
        ("train/loss", 20, math.nan),
        ("train/loss", 21, math.inf),
    ]
    write(tmp_path / "run", rows)
    read = read_runs(tmp_path)
    assert [a.tolist() for a in read.curve("run", "val")] == [[10], [5.0]]
    assert read.dense_lr("run").tolist() == [0.125] * 20
    assert "1 NaN and 1 infinite training losses at steps 20, 21: dropped" in read.notes_for("run")


@pytest.mark.parametrize("how", ["renamed", "gzip", "profile"])
def test_event_files_are_known_by_content(tmp_path: Path, how: str) -> None:
    import gzip

    path = write(tmp_path / "run", curve(30))
    data = path.read_bytes()
    path.unlink()
    target = (
        tmp_path / {"renamed": "a.log", "gzip": "a.gz", "profile": "events.out.tfevents.1.profile-empty"}[how]
    )
    target.write_bytes(gzip.compress(data) if how == "gzip" else data)
    assert len(read_runs(target).frame) == 30


def test_a_record_cut_at_the_end_is_dropped_with_a_note(tmp_path: Path) -> None:
    path = write(tmp_path / "run", curve(30))
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    read = read_runs(tmp_path)
    assert len(read.frame) == 30
    assert read.notes_for("run")[0].startswith("the last record is cut (")
    path.write_bytes(data[:-120])
    assert len(read_runs(tmp_path).frame) < 30


def test_damage_in_the_middle_is_an_error_not_half_a_run(tmp_path: Path) -> None:
    path = write(tmp_path / "run", curve(30))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(ConvexlawError, match=r"the file is damaged"):
        read_runs(path)


def test_a_file_without_a_loss_names_its_tags(tmp_path: Path) -> None:
    path = write(tmp_path / "run", [("accuracy", 0, 0.5), ("images/n", 0, 1.0)])
    with pytest.raises(
        ConvexlawError, match="no scalar of a loss among accuracy, images/n; tags such as train/loss"
    ):
        read_runs(path)
    path = write(tmp_path / "rates", [("lr", 0, 0.5)])
    with pytest.raises(ConvexlawError, match="run 'rates' has no loss in its 1 row"):
        read_runs(path)


def test_long_files_show_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    @contextmanager
    def bar(label: str, total: float, show: bool | None = None) -> Iterator[Any]:
        seen.append((label, total, show))
        yield lambda amount: seen.append(amount)

    monkeypatch.setattr(reader, "progress_bar", bar)
    monkeypatch.setattr(reader, "_SHOWN_FROM", 5000)
    write(tmp_path / "run", [("loss", k, 1.0) for k in range(6000)])
    read_runs(tmp_path)
    assert seen[0] == ("reading run", 6001, None)  # None: shown where a person is watching
    assert sum(seen[1:]) == 6000
    seen.clear()
    write(tmp_path / "short", [("loss", k, 1.0) for k in range(60)])
    read_runs(tmp_path / "short")
    assert seen == [("reading short", 61, False)]


@pytest.mark.parametrize(
    ("train", "val", "name"),
    [
        ("train", "validation", "run"),
        ("training", "eval", "run"),
        ("loss_train", "loss_val", "run"),
        ("big_train", "big_valid", "run/big"),
        ("big-training", "big-dev", "run/big"),
    ],
)
def test_folders_of_training_and_validation_are_one_run(
    train: str, val: str, name: str, tmp_path: Path
) -> None:
    write(tmp_path / "run" / train, [("loss", k, 2.0 + k) for k in range(20)])
    write(tmp_path / "run" / val, [("loss", k, 3.0 + k) for k in range(0, 20, 5)])
    write(tmp_path / "other", curve(5))
    read = read_runs(tmp_path)
    assert sorted(read.runs) == sorted([name, "other"])
    assert read.curve(name)[1].tolist() == [2.0 + k for k in range(20)]
    assert read.curve(name, "val")[0].tolist() == [0, 5, 10, 15]
    assert read.curve(name, "val")[1].tolist() == [3.0, 8.0, 13.0, 18.0]
    assert f"'loss' lies in a folder named {val!r}: read as validation loss" in read.notes_for(name)


def test_a_restart_of_both_folders_is_followed_by_both(tmp_path: Path) -> None:
    for start, first, height in ((1e9, 0, 2.0), (1e9 + 1000, 10, 7.0)):
        steps = range(first, 20)
        write(tmp_path / "run" / "train", [("loss", k, height) for k in steps], start=start)
        # evaluations come between the training rows, half a second after every fifth
        rows = [("loss" if k % 5 == 0 else "other", k, height + 1) for k in steps]
        write(tmp_path / "run" / "validation", rows, start=start + 0.5)
    read = read_runs(tmp_path)
    assert read.curve("run")[1].tolist() == [2.0] * 10 + [7.0] * 10
    assert read.curve("run", "val")[1].tolist() == [3.0] * 2 + [8.0] * 2


def test_tags_that_say_train_and_runs_with_rates_stay_training(tmp_path: Path) -> None:
    write(tmp_path / "a" / "val", [("train/loss", k, 2.0) for k in range(3)])
    write(tmp_path / "b" / "eval", [*((("loss", k, 2.0)) for k in range(3)), ("lr", 0, 0.5)])
    read = read_runs(tmp_path)
    assert [read.curve(run)[0].size for run in read.runs] == [3, 3]


def test_scalars_that_torch_adds_together(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch.utils.tensorboard")
    with torch.SummaryWriter(str(tmp_path / "run")) as writer:
        for k in range(12):
            writer.add_scalar("lr", 0.5, k)
            writer.add_scalars("loss", {"train": 2.0 + k, "val": 3.0 + k}, k)
    read = read_runs(tmp_path)
    assert read.runs == ["run"]
    assert read.curve("run")[1].tolist() == [2.0 + k for k in range(12)]
    assert read.curve("run", "val")[1].tolist() == [3.0 + k for k in range(12)]
    assert read.dense_lr("run").tolist() == [0.5] * 12
