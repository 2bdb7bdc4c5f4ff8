"""Exported files: read back to the last bit, and as Megatron-LM reads them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from convexlaw.errors import ConvexlawError
from convexlaw.simulations import exporters
from convexlaw.simulations._batch_text import parse_batch_sizes
from convexlaw.theory import batch as batches
from convexlaw.theory import schedules

LR = schedules.with_warmup(schedules.cosine(300, 1 / 3), 7)
PLAN = batches.stages(LR, 300 * 96, 5, min_batch=32, multiple_of=16)


def as_megatron_reads(text: str, samples: int, seq_length: int | None = None) -> list[int]:
    """Batch sizes by Megatron-LM's rule: the last entry whose threshold is not above the samples consumed."""
    pairs = [tuple(int(n) for n in entry.split(":")) for entry in text.split()]
    pairs = [(t // (seq_length or 1), b) for t, b in pairs]
    out: list[int] = []
    while sum(out) < samples:
        consumed = sum(out)
        out.append([b for t, b in pairs if consumed >= t][-1])
    return out


@pytest.mark.parametrize("seq_length", [None, 1, 4096])
def test_megatron_takes_the_very_same_batches(seq_length):
    text = exporters.megatron_schedule(PLAN.batch, seq_length=seq_length)
    assert as_megatron_reads(text, PLAN.batch.sum(), seq_length) == PLAN.batch.tolist()
    assert len(text.split()) == len(PLAN.stages) == 5


def test_megatron_text_of_any_schedule_is_read_back():
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.choice([2, 4, 6], rng.integers(1, 40))
        text = exporters.megatron_schedule(sizes)
        assert as_megatron_reads(text, sizes.sum()) == sizes.tolist()
        assert parse_batch_sizes(text, np.ones(sizes.size)).tolist() == sizes.tolist()
        assert text.startswith("0:")


def test_megatron_example():
    sizes = np.repeat([256, 512], [3906, 10])
    assert exporters.megatron_schedule(sizes) == "0:256 999936:512"


def megatron_lr(arguments: list[str], consumed: np.ndarray) -> np.ndarray:
    """Learning rate after some samples by the formulas of Megatron-LM's scheduler."""
    given = dict(line.split(maxsplit=1) for line in arguments if line.startswith("--"))
    top, low = float(given["--lr"]), float(given["--min-lr"])
    total, warm = int(given["--lr-decay-samples"]), int(given.get("--lr-warmup-samples", 0))
    style = given["--lr-decay-style"]
    if style == "constant":
        fall = np.ones(consumed.size)
    elif style == "WSD":
        length = int(given["--lr-wsd-decay-samples"])
        ratio = np.clip((consumed - (total - length)) / length, 0, 1)
        kind = given["--lr-wsd-decay-style"]
        fall = {"linear": 1 - ratio, "cosine": 0.5 * (np.cos(np.pi * ratio) + 1)}.get(kind)
        fall = 1 - np.sqrt(ratio) if kind == "minus_sqrt" else fall
    else:
        ratio = (consumed - warm) / (total - warm)
        fall = 1 - ratio if style == "linear" else 0.5 * (np.cos(np.pi * ratio) + 1)
    out = low + fall * (top - low)
    return np.where(consumed < warm, top * consumed / max(warm, 1), out)


@pytest.mark.parametrize(
    "text",
    [
        "constant",
        "linear",
        "cosine",
        "cosine:end=0.1",
        "wsd:decay=0.2",
        "wsd:decay=0.3,cooldown=sqrt",
        "wsd:decay=0.3,cooldown=cosine,end=0.05",
        "wsd:decay=0.2,warmup=0.1",
    ],
)
def test_megatron_learning_rates_in_samples_are_those_of_the_plan(text):
    plan = batches.plan_in_samples(text, 40_000, 400, peak=2e-3, min_batch=4, multiple_of=4)
    lines = exporters.megatron_arguments(plan.lr, plan.batch, in_samples=text)
    used = np.cumsum(plan.batch) - plan.batch
    lr = megatron_lr(lines, used)
    np.testing.assert_allclose(lr, plan.lr, rtol=1e-9, atol=1e-12)
    assert f"--train-samples {plan.batch.sum()}" in lines


@pytest.mark.parametrize(
    ("in_samples", "words"),
    [
        (None, "follow the samples"),
        ("one_minus_sqrt", "has no schedule one_minus_sqrt"),
        ("linear:warmup=0.1", "starts its decay after the warmup"),
    ],
)
def test_learning_rates_that_megatron_cannot_follow_are_said(in_samples, words):
    lines = exporters.megatron_arguments(PLAN.lr, PLAN.batch, in_samples=in_samples)
    assert not [line for line in lines if line.startswith("--lr")]
    said = " ".join(line for line in lines if line.startswith("#"))
    assert words in said
    assert "schedule.csv" in said


def test_csv_is_read_back_to_the_last_bit(tmp_path):
    exporters.write_schedule(tmp_path / "s.csv", PLAN.lr, PLAN.batch)
    lr, sizes = exporters.read_schedule(tmp_path / "s.csv")
    assert np.array_equal(lr, PLAN.lr)
    assert np.array_equal(sizes, PLAN.batch)
    frame = pd.read_csv(tmp_path / "s.csv")
    assert list(frame.columns) == ["step", "lr", "batch_size", "samples"]
    assert frame["samples"].iloc[-1] + sizes[-1] == sizes.sum()
    assert parse_batch_sizes(str(tmp_path / "s.csv"), lr).tolist() == sizes.tolist()


def test_export_writes_whole_files(tmp_path):
    paths = exporters.export(tmp_path / "there", PLAN, seq_length=128)
    assert [p.name for p in paths] == ["schedule.csv", "megatron.txt", "huggingface.json", "how_to_use.md"]
    lines = (tmp_path / "there" / "megatron.txt").read_text().splitlines()
    words = shlex.split("\n".join(line for line in lines if not line.startswith("#")))
    schedule = words[words.index("--step-batch-size-schedule") + 1]
    assert as_megatron_reads(schedule, PLAN.batch.sum(), 128) == PLAN.batch.tolist()
    told = json.loads((tmp_path / "there" / "huggingface.json").read_text())
    assert told["max_steps"] == 300
    assert told["learning_rate"] == LR.max()
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == sorted(p.name for p in paths)


def test_the_guide_is_about_functions_that_exist(tmp_path):
    exporters.export(tmp_path, PLAN)
    text = (tmp_path / "how_to_use.md").read_text()
    names = re.findall(r"from convexlaw\.simulations\.exporters import (.*)", text)
    assert len(names) == 2
    for name in ", ".join(names).split(", "):
        assert callable(getattr(exporters, name))


def test_real_batches_and_wrong_places_are_refused(tmp_path):
    real = batches.plan(LR, 300 * 96, min_batch=8, integer=False)
    with pytest.raises(ConvexlawError, match="integer=True"):
        exporters.export(tmp_path / "a", real)
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConvexlawError, match="is a file"):
        exporters.export(tmp_path / "file", PLAN)
    with pytest.raises(ConvexlawError, match="batch is missing"):
        exporters.export(tmp_path / "b", LR)
    with pytest.raises(ConvexlawError, match="300 learning rates and 2 batch sizes"):
        exporters.export(tmp_path / "b", LR, [1, 2])
    with pytest.raises(ConvexlawError, match="no such file"):
        exporters.read_schedule(tmp_path / "none.csv")
    (tmp_path / "bad.csv").write_text("step,lr\n0,1\n")
    with pytest.raises(ConvexlawError, match="lacks batch_size"):
        exporters.read_schedule(tmp_path / "bad.csv")
    (tmp_path / "bad.csv").write_text("step,lr,batch_size\n0,1,2\n1,x,2\n")
    with pytest.raises(ConvexlawError, match="could not convert string to float: 'x'"):
        exporters.read_schedule(tmp_path / "bad.csv")
    with pytest.raises(ConvexlawError, match="seq_length = 0"):
        exporters.megatron_schedule([1], seq_length=0)
    with pytest.raises(ConvexlawError, match="exactly"):
        exporters.megatron_schedule([2**40, 2**40], seq_length=2**20)


def test_exporters_do_not_load_torch_before_it_is_needed():
    code = "import sys; import convexlaw.simulations.exporters; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
