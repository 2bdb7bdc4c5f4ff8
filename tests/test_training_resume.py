"""Interrupted, resumed and branched runs are the same runs, bit for bit, and leave whole files."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw.errors import ConvexlawError
from convexlaw.simulations import _engine
from convexlaw.simulations.corpus import Corpus, load_corpus
from convexlaw.simulations.models import TransformerConfig
from convexlaw.simulations.sweep import RunSpec, branches, run_sweep
from convexlaw.simulations.train import TrainOptions, train

TINY = TransformerConfig(width=8, depth=1, heads=2, context=8)
WSD = "wsd:steps=24,peak=1e-2,decay=0.25,warmup=4"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    root = tmp_path_factory.mktemp("text")
    for k in range(40):
        (root / f"f{k}.py").write_text("".join(f"def f{k * i}(x):\n    return x + {i}\n" for i in range(9)))
    return load_corpus(root, validation=0.2)


def options(**changes: object) -> TrainOptions:
    return TrainOptions(**{"eval_every": 5, "eval_sequences": 7, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "dropout"),
    [({}, 0.0), ({"optimizer": "sgd"}, 0.0), ({"dtype": "float64"}, 0.3), ({"micro_batch": 2}, 0.3)],
    ids=["adamw", "sgd", "float64-dropout", "micro-batch-dropout"],
)
def test_resume_is_bit_for_bit(tmp_path: Path, corpus: Corpus, changes: dict[str, object], dropout: float):
    model = TransformerConfig(width=8, depth=2, heads=2, context=8, dropout=dropout)
    batch = np.tile([3, 1, 5], 8)
    whole = train(
        WSD, batch_size=batch, model=model, options=options(**changes), corpus=corpus, out=tmp_path / "a.csv"
    )
    for stop in (1, 10, 11, 23, None):
        log = train(
            WSD, batch_size=batch, model=model, options=options(**changes), corpus=corpus,
            out=tmp_path / "b.csv", resume=True, stop_at=stop, checkpoint_every=3,
        )  # fmt: skip
        assert log.status == ("finished" if stop is None else f"stopped at step {stop}")
        assert len(pd.read_csv(tmp_path / "b.csv", comment="#")) == (stop or 24)
    for name, values in whole.columns.items():
        np.testing.assert_array_equal(log.columns[name], values, err_msg=name)
    assert log.final_val_loss == whole.final_val_loss
    assert (tmp_path / "b.csv").read_text() == (tmp_path / "a.csv").read_text()


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path, corpus: Corpus):
    out = tmp_path / "a.csv"
    train(WSD, model=TINY, options=options(), corpus=corpus, out=out)
    before = out.read_bytes()
    again = train(WSD, model=TINY, options=options(), corpus=corpus, out=out, resume=True)
    assert again.status == "finished"
    assert out.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_between_updates_and_the_rest_is_the_same(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
):
    whole = train(WSD, model=TINY, options=options(), corpus=corpus)
    update = _engine.Engine.update
    calls = []

    def hit(self: _engine.Engine, lr: float) -> None:
        calls.append(lr)
        if len(calls) == 9:
            signal.raise_signal(number)  # in the middle of an update
        update(self, lr)

    monkeypatch.setattr(_engine.Engine, "update", hit)
    out = tmp_path / "a.csv"
    handler = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt, match=r"stopped before step \d+; continue from .*a\.ckpt"):
        train(WSD, model=TINY, options=options(), corpus=corpus, out=out)
    assert signal.getsignal(number) is handler
    rows = pd.read_csv(out, comment="#")
    assert 9 <= len(rows) <= 10
    assert "# status: stopped at step" in out.read_text()
    log = train(WSD, model=TINY, options=options(), corpus=corpus, out=out, resume=True)
    for name, values in whole.columns.items():
        np.testing.assert_array_equal(log.columns[name], values, err_msg=name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.ckpt", "a.csv"]


def test_a_crash_leaves_the_last_checkpoint_and_log_whole(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
):
    whole = train(WSD, model=TINY, options=options(), corpus=corpus)
    update = _engine.Engine.update

    def crash(self: _engine.Engine, lr: float) -> None:
        if self.taken == 32 * 15:
            raise RuntimeError("power cut")
        update(self, lr)

    out = tmp_path / "a.csv"
    with monkeypatch.context() as patched:
        patched.setattr(_engine.Engine, "update", crash)
        with pytest.raises(RuntimeError, match="power cut"):
            train(WSD, model=TINY, options=options(), corpus=corpus, out=out, checkpoint_every=6)
    assert len(pd.read_csv(out, comment="#")) == 12
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.ckpt", "a.csv"]
    log = train(WSD, model=TINY, options=options(), corpus=corpus, out=out, resume=True)
    np.testing.assert_array_equal(log.columns["loss"], whole.columns["loss"])


def test_a_process_that_is_interrupted_leaves_whole_files(tmp_path: Path):
    text = tmp_path / "text"
    text.mkdir()
    for k in range(4):
        (text / f"f{k}.txt").write_text("the cat sat on the mat\n" * 40)
    out = tmp_path / "run.csv"
    line = [
        sys.executable, "-m", "convexlaw", "train", "--schedule", "constant:steps=1000000,peak=1e-3",
        "--out", str(out), "--corpus", str(text), "--width", "8", "--depth", "1", "--heads", "2",
        "--context", "8", "--batch-size", "2", "--eval-every", "100000", "--checkpoint-every", "20",
        "--log-every", "10",
    ]  # fmt: skip
    process = subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        deadline = time.monotonic() + 60
        while not out.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, said
    assert "interrupted: stopped before step" in said
    assert len(said.strip().splitlines()) == 1
    reached = int(said.split("before step ")[1].split(";")[0])
    rows = pd.read_csv(out, comment="#")
    assert rows["step"].iloc[-1] == reached - 1
    assert np.isfinite(rows["loss"]).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.ckpt", "run.csv", "text"]


def test_a_branch_is_the_run_from_the_start(tmp_path: Path, corpus: Corpus):
    trunk = "constant:steps=24,peak=1e-2,warmup=4"
    train(trunk, model=TINY, options=options(), corpus=corpus, out=tmp_path / "trunk.csv", stop_at=18)
    branch = train(WSD, model=TINY, options=options(), corpus=corpus, start_from=tmp_path / "trunk.ckpt")
    alone = train(WSD, model=TINY, options=options(), corpus=corpus)
    for name, values in alone.columns.items():
        np.testing.assert_array_equal(branch.columns[name], values, err_msg=name)


def test_sweep_shares_trunks_without_changing_a_bit(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
):
    specs = [
        RunSpec("const", "constant:steps=24,peak=1e-2,warmup=4", batch_size=2, model=TINY),
        RunSpec("wsd24", WSD, batch_size=2, model=TINY),
        RunSpec("wsd16", "wsd:steps=16,peak=1e-2,decay=0.5,warmup=4", batch_size=2, model=TINY),
        RunSpec("short", "constant:steps=12,peak=1e-2,warmup=4", batch_size=2, model=TINY),
        RunSpec("cosine", "cosine:steps=12,peak=1e-2,warmup=4", batch_size=2, model=TINY),
    ]
    # the value at the start of a cooldown is still the peak, so the runs part one step later
    parents = {"wsd24": ("const", 19), "wsd16": ("const", 9), "short": ("const", 11), "cosine": ("const", 4)}
    found = branches(specs)
    assert {k: v for k, v in found.items() if k != "cosine"} == {
        k: v for k, v in parents.items() if k != "cosine"
    }
    updates = []
    update = _engine.Engine.update
    monkeypatch.setattr(_engine.Engine, "update", lambda self, lr: (updates.append(lr), update(self, lr))[1])
    shared = run_sweep(specs, tmp_path / "a", every=4, corpus=corpus)
    done = len(updates)
    alone = run_sweep(specs, tmp_path / "b", every=4, corpus=corpus, share=False)
    assert done < 24 + 6 + 8 + 2 + 13
    assert len(updates) - done == 24 + 24 + 16 + 12 + 12
    for one, other in zip(shared, alone, strict=True):
        for name, values in other.columns.items():
            np.testing.assert_array_equal(one.columns[name], values, err_msg=name)
    for spec in specs:
        files = [(tmp_path / d / f"{spec.name}.csv").read_text() for d in "ab"]
        assert files[0] == files[1]
    before = len(updates)
    run_sweep(specs, tmp_path / "a", every=4, corpus=corpus)
    assert len(updates) == before  # nothing is trained twice


def test_what_cannot_be_continued_is_refused(tmp_path: Path, corpus: Corpus):
    out = tmp_path / "a.csv"
    same = {"model": TINY, "corpus": corpus, "out": out}
    train(WSD, options=options(), stop_at=12, **same)  # type: ignore[arg-type]
    with pytest.raises(ConvexlawError, match="exists: pass resume to continue it, or overwrite"):
        train(WSD, options=options(), **same)  # type: ignore[arg-type]
    with pytest.raises(ConvexlawError, match="was made with seed = 0, now seed = 1"):
        train(WSD, options=options(seed=1), resume=True, **same)  # type: ignore[arg-type]
    with pytest.raises(ConvexlawError, match="the first 12 steps must agree"):
        train(WSD.replace("1e-2", "2e-2"), options=options(), resume=True, **same)  # type: ignore[arg-type]
    with pytest.raises(ConvexlawError, match="used batch size 32 at step 0"):
        train(WSD, batch_size=8, options=options(), resume=True, **same)  # type: ignore[arg-type]
    with pytest.raises(ConvexlawError, match="past the end of this schedule"):
        train("constant:steps=5,peak=1e-2", options=options(), resume=True, **same)  # type: ignore[arg-type]
    with pytest.raises(ConvexlawError, match="exclude each other"):
        train(WSD, options=options(), resume=True, overwrite=True, **same)  # type: ignore[arg-type]
    with pytest.raises(ConvexlawError, match="resume needs a checkpoint"):
        train(WSD, model=TINY, corpus=corpus, resume=True)
    with pytest.raises(ConvexlawError, match="is not a checkpoint of a training run"):
        train(WSD, options=options(), model=TINY, corpus=corpus, start_from=out)
    with pytest.raises(ConvexlawError, match="no such checkpoint"):
        train(WSD, options=options(), model=TINY, corpus=corpus, start_from=tmp_path / "gone.ckpt")
    (tmp_path / "a.ckpt").unlink()
    with pytest.raises(ConvexlawError, match=r"its checkpoint .* is not: pass overwrite"):
        train(WSD, options=options(), resume=True, **same)  # type: ignore[arg-type]
    assert train(WSD, options=options(), overwrite=True, **same).status == "finished"  # type: ignore[arg-type]
