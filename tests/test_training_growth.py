"""Growth of depth in training: what is kept, what is new, resume, against weights and sums made by hand."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from convexlaw.cli import main
from convexlaw.errors import ConvexlawError
from convexlaw.simulations import _engine
from convexlaw.simulations.corpus import Corpus, load_corpus
from convexlaw.simulations.growth import INITS, Growth
from convexlaw.simulations.models import MlpConfig, ModelConfig, TransformerConfig, build
from convexlaw.simulations.sweep import RunSpec, branches, run_sweep
from convexlaw.simulations.train import TrainOptions, train

DEEP = TransformerConfig(width=8, depth=4, heads=2, context=8)
MODELS = {"transformer": DEEP, "mlp": MlpConfig(width=8, depth=4, window=3, context=8)}
WSD = "wsd:steps=24,peak=1e-2,decay=0.25,warmup=4"
OPTIONS = TrainOptions(eval_every=4, eval_sequences=7, dtype="float64")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    root = tmp_path_factory.mktemp("text")
    for k in range(40):
        (root / f"f{k}.py").write_text("".join(f"def f{k * i}(x):\n    return x + {i}\n" for i in range(9)))
    return load_corpus(root, validation=0.2)


def trained(model: ModelConfig, corpus: Corpus, growth: Growth, steps: int = 5) -> _engine.Engine:
    """Engine just before its growth."""
    engine = _engine.Engine(model, OPTIONS, corpus, growth)
    for _ in range(steps):
        engine.gradient(3)
        engine.update(1e-2)
    return engine


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("init", INITS)
def test_only_zero_inits_preserve_the_loss(model: ModelConfig, init: str, corpus: Corpus):
    engine = trained(model, corpus, Growth(at=5, start=2, init=init))
    before = engine.evaluate()
    engine.grow()
    if init in ("zero", "copy_zero"):
        assert engine.evaluate() == before  # to the last bit
    else:
        assert abs(engine.evaluate() - before) > 1e-4
    assert len(engine.model.blocks) == 4
    assert engine.due is None


@pytest.mark.parametrize(
    ("init", "expected"),
    [("copy_last", [0, 1, 1, 1]), ("copy_stack", [0, 1, 0, 1]), ("copy_interpolate", [0, 0, 1, 1])],
)
def test_copies_are_those_of_the_named_blocks(init: str, expected: list[int], corpus: Corpus):
    engine = trained(DEEP, corpus, Growth(at=5, start=2, init=init))
    old = [copy.deepcopy(block.state_dict()) for block in engine.model.blocks]
    shared = {n: p.clone() for n, p in engine.model.named_parameters() if "blocks" not in n}
    engine.grow()
    for block, source in zip(engine.model.blocks, expected, strict=True):
        for name, value in block.state_dict().items():
            assert torch.equal(value, old[source][name])
    for name, value in engine.model.named_parameters():
        if "blocks" not in name:
            assert torch.equal(value, shared[name])
    # copies are weights of their own
    assert len({p.data_ptr() for p in engine.model.parameters()}) == len(list(engine.model.parameters()))


def test_the_small_model_is_the_full_one_without_its_last_blocks(corpus: Corpus):
    engine = _engine.Engine(DEEP, OPTIONS, corpus, Growth(at=5, start=1))
    full = build(DEEP, seed=0, dtype=torch.float64)
    tokens = engine.held_out
    x = full.token(tokens[:, :-1]) + full.position
    logits = full.head(full.norm(full.blocks[0](x)))
    by_hand = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()
    assert engine.evaluate() == pytest.approx(by_hand, rel=1e-13)
    engine.grow()  # untrained, with the blocks of step 0: the full model
    for a, b in zip(engine.model.parameters(), full.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_the_optimizer_remembers_old_blocks_alone(optimizer: str, corpus: Corpus):
    options = TrainOptions(eval_every=4, eval_sequences=7, optimizer=optimizer)
    engine = _engine.Engine(DEEP, options, corpus, Growth(at=5, start=2, init="copy_interpolate"))
    for _ in range(5):
        engine.gradient(3)
        engine.update(1e-2)
    key = "exp_avg" if optimizer == "adamw" else "momentum_buffer"
    old = {id(p): engine.optimizer.state[p][key].clone() for p in engine.parameters}
    engine.grow()
    kept = [p for p in engine.parameters if id(p) in old]
    assert len(kept) == len(old)
    for p in engine.parameters:
        if id(p) in old:
            assert torch.equal(engine.optimizer.state[p][key], old[id(p)])
        else:
            assert p not in engine.optimizer.state
    engine.gradient(3)
    engine.update(1e-2)
    if optimizer == "adamw":
        steps = {id(p): float(engine.optimizer.state[p]["step"]) for p in engine.parameters}
        assert {steps[id(p)] for p in kept} == {6.0}
        assert {s for i, s in steps.items() if i not in old} == {1.0}


def test_zero_blocks_get_no_gradient_and_copied_zeros_do(corpus: Corpus):
    ends = {}
    for init in ("zero", "copy_zero"):
        engine = trained(DEEP, corpus, Growth(at=5, start=2, init=init))
        engine.grow()
        for _ in range(5):
            engine.gradient(3)
            engine.update(1e-2)
        new = [p for block in engine.model.blocks[2:] for p in block.parameters() if p.ndim >= 2]
        ends[init] = max(float(p.detach().abs().max()) for p in new)
        writers = [float(w.weight.detach().abs().max()) for b in engine.model.blocks[2:] for w in b.writers()]
        assert (max(writers) > 0) == (init == "copy_zero")
    assert ends["zero"] == 0


@pytest.mark.parametrize("growth", [Growth(10), Growth(8, 2, "copy_interpolate"), Growth(23, 3, "copy_zero")])
def test_resume_is_bit_for_bit(growth: Growth, tmp_path: Path, corpus: Corpus):
    given = {"batch_size": 3, "model": DEEP, "options": OPTIONS, "growth": growth, "corpus": corpus}
    whole = train(WSD, out=tmp_path / "a.csv", **given)  # type: ignore[arg-type]
    for stop in (growth.at - 1, growth.at, growth.at + 1, None):
        log = train(WSD, out=tmp_path / "b.csv", resume=True, stop_at=stop, **given)  # type: ignore[arg-type]
    for name, values in whole.columns.items():
        np.testing.assert_array_equal(log.columns[name], values, err_msg=name)
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert log.final_val_loss == whole.final_val_loss
    with pytest.raises(ConvexlawError, match="was made with grow_at"):
        train(WSD, out=tmp_path / "b.csv", resume=True, **{**given, "growth": None})  # type: ignore[arg-type]


def test_log_holds_the_counts_of_both_models(corpus: Corpus):
    log = train(WSD, batch_size=2, model=DEEP, options=OPTIONS, growth=Growth(10, 1), corpus=corpus)
    shared = 8 * (2 * 128 + 8) + 8
    block = 12 * 8 * 8 + 2 * 8
    counts = {
        "parameters": shared + 4 * block, "parameters_in_blocks": 8 + 4 * block,
        "parameters_before_growth": shared + block, "parameters_in_blocks_before_growth": 8 + block,
    }  # fmt: skip
    assert {key: log.meta[key] for key in counts} == counts
    assert (log.meta["grow_at"], log.meta["grow_from"], log.meta["grow_init"]) == (10, 1, "random")
    rows = log.columns["weight_norm"]
    assert rows[12] > 1.2 * rows[8]  # three blocks more


def test_sweep_trains_the_small_model_once(tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch):
    specs = [
        RunSpec("late", WSD, 2, DEEP, OPTIONS, Growth(16)),
        RunSpec("early", WSD, 2, DEEP, OPTIONS, Growth(8)),
        RunSpec("zero", WSD, 2, DEEP, OPTIONS, Growth(8, 0, "zero")),
        RunSpec("one", WSD, 2, DEEP, OPTIONS, Growth(8, 1)),
        RunSpec("whole", WSD, 2, DEEP, OPTIONS),
    ]
    assert branches(specs) == {"early": ("late", 8), "zero": ("late", 8)}
    updates = []
    update = _engine.Engine.update
    monkeypatch.setattr(_engine.Engine, "update", lambda self, lr: (updates.append(lr), update(self, lr))[1])
    run_sweep(specs, tmp_path / "a", corpus=corpus)
    assert len(updates) == 5 * 24 - 2 * 8
    run_sweep(specs, tmp_path / "b", corpus=corpus, share=False)
    for spec in specs:
        files = [(tmp_path / d / f"{spec.name}.csv").read_text() for d in "ab"]
        assert files[0] == files[1]


def test_command_grows_as_the_function_does(tmp_path: Path, corpus: Corpus):
    text = tmp_path / "text"
    text.mkdir()
    (text / "a.txt").write_text("the cat sat on the mat\n" * 400)
    spec = RunSpec("run", WSD, 2, DEEP, OPTIONS, Growth(10, 2, "copy_stack"))
    words = spec.command().split()[1:]
    line = [sys.executable, "-m", "convexlaw", *words, "--corpus", str(text), "--json"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    log = train(WSD, batch_size=2, model=DEEP, options=OPTIONS, growth=spec.growth, corpus=load_corpus(text))
    assert json.loads(done.stdout)["final_val_loss"] == log.final_val_loss


@pytest.mark.parametrize("words", [["--grow-from", "1"], ["--grow-init", "zero"]])
def test_a_growth_without_its_update_is_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--schedule", WSD, "--out", str(tmp_path / "a.csv"), *words])
    assert stopped.value.code == 2
    assert "give --grow-at" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_growth_that_cannot_be_is_refused(corpus: Corpus):
    with pytest.raises(ConvexlawError, match="there is no block to copy"):
        Growth(5, 0, "copy_last")
    with pytest.raises(ConvexlawError, match="did you mean 'copy_stack'"):
        Growth(5, 1, "copy_stac")
    with pytest.raises(ConvexlawError, match="at = 0: give a whole number, at least 1"):
        Growth(0)
    for growth, said in ((Growth(24), "the run has 24 updates"), (Growth(5, 4), "larger than start")):
        with pytest.raises(ConvexlawError, match=said):
            train(WSD, model=DEEP, options=OPTIONS, growth=growth, corpus=corpus)
