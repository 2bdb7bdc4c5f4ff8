"""The transformer is causal and differentiable, and its updates are the ones the log says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from convexlaw.errors import ConvexlawError
from convexlaw.simulations import _engine
from convexlaw.simulations.corpus import Corpus, SequenceOrder, load_corpus
from convexlaw.simulations.models import MlpConfig, TransformerConfig, build
from convexlaw.simulations.sweep import RunSpec
from convexlaw.simulations.train import TrainOptions, train
from convexlaw.theory import schedules

SMALL = TransformerConfig(width=8, depth=2, heads=2, context=12, init_std=0.3)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    root = tmp_path_factory.mktemp("text")
    for k in range(30):
        (root / f"f{k}.py").write_text("".join(f"def f{k * i}(x):\n    return x + {i}\n" for i in range(9)))
    return load_corpus(root, validation=0.2)


def test_a_future_token_changes_no_earlier_logit():
    model = build(SMALL, seed=0, dtype=torch.float64).eval()
    tokens = torch.randint(0, 128, (3, 12), generator=torch.Generator().manual_seed(1))
    base = model(tokens)
    for position in range(12):
        changed = tokens.clone()
        changed[:, position] = (changed[:, position] + 1) % 128
        moved = (model(changed) - base).abs().amax(dim=(0, 2))
        assert (moved[:position] == 0).all()
        assert (moved[position:] > 0).all()  # it reaches its own position and all later ones


def test_a_position_of_the_mlp_sees_exactly_its_window():
    config = MlpConfig(width=6, depth=1, window=3, context=12)
    model = build(config, seed=0, dtype=torch.float64).eval()
    tokens = torch.randint(0, 128, (3, 12), generator=torch.Generator().manual_seed(1))
    base = model(tokens)
    for position in range(12):
        changed = tokens.clone()
        changed[:, position] = (changed[:, position] + 1) % 128
        moved = (model(changed) - base).abs().amax(dim=(0, 2)) > 0
        assert moved.tolist() == [position <= k < position + 3 for k in range(12)]


def test_the_mlp_trains_under_changing_batches_and_resumes(corpus: Corpus, tmp_path: Path):
    config = MlpConfig(width=8, depth=1, window=4, context=8)
    common = {"model": config, "corpus": corpus, "batch_size": "0:2 20:6"}
    whole = train("linear:steps=40,peak=1e-2", **common)  # type: ignore[arg-type]
    out = tmp_path / "a.csv"
    train("linear:steps=40,peak=1e-2", out=out, stop_at=13, **common)  # type: ignore[arg-type]
    again = train("linear:steps=40,peak=1e-2", out=out, resume=True, **common)  # type: ignore[arg-type]
    assert again.columns["batch_size"].tolist() == [2] * 10 + [6] * 30
    np.testing.assert_array_equal(again.columns["loss"], whole.columns["loss"])
    assert again.final_val_loss == whole.final_val_loss < whole.columns["val_loss"][0] - 1
    spec = RunSpec("m", "linear:steps=40,peak=1e-2", batch_size=2, model=config)
    assert "--model mlp --width 8 --depth 1 --window 4 --context 8" in spec.command()


def test_shorter_inputs_give_the_same_logits():
    model = build(SMALL, seed=0, dtype=torch.float64).eval()
    tokens = torch.randint(0, 128, (2, 12), generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(model(tokens)[:, :5], model(tokens[:, :5]), rtol=1e-12, atol=1e-12)


def test_gradient_is_that_of_the_loss(corpus: Corpus):
    with _engine.session(TrainOptions()):
        engine = _engine.Engine(SMALL, TrainOptions(dtype="float64", clip=None), corpus)
        loss, norm, _ = engine.gradient(4)
        tokens = torch.from_numpy(engine.order.take(0, 4))

        def value() -> float:
            with torch.no_grad():
                logits = engine.model(tokens[:, :-1])
                return float(F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()))

        assert loss == pytest.approx(value(), rel=1e-12)
        total = 0.0
        rng = np.random.default_rng(0)
        for parameter in engine.parameters:
            gradient = parameter.grad.flatten()
            total += float(gradient.square().sum())
            flat = parameter.data.view(-1)
            for i in rng.integers(0, flat.numel(), size=3):
                h = 1e-5
                kept = float(flat[i])
                flat[i] = kept + h
                up = value()
                flat[i] = kept - h
                down = value()
                flat[i] = kept
                assert float(gradient[i]) == pytest.approx((up - down) / (2 * h), abs=1e-8, rel=1e-6)
        assert norm == pytest.approx(np.sqrt(total), rel=1e-12)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_updates_follow_the_learning_rates_exactly(corpus: Corpus, optimizer: str):
    """Against the update rules written out in numpy, with zeros in the schedule and changing batch sizes."""
    lr = schedules.parse("cosine:steps=12,peak=3e-2,warmup=3")
    lr[5] = lr[11] = 0.0
    batch = np.array([1, 4, 2, 3, 5, 2, 2, 1, 7, 2, 3, 4])
    decay, clip = 0.3, 0.7
    options = TrainOptions(
        optimizer=optimizer, weight_decay=decay, momentum=0.8, betas=(0.7, 0.9), eps=1e-7, clip=clip, seed=5,
        eval_every=1, eval_sequences=9, dtype="float64",
    )  # fmt: skip
    log = train(lr, batch_size=batch, model=SMALL, options=options, corpus=corpus)

    model = build(SMALL, seed=5, dtype=torch.float64)
    weights = {name: p.detach().numpy().copy() for name, p in model.named_parameters()}
    first = {name: np.zeros_like(w) for name, w in weights.items()}
    second = {name: np.zeros_like(w) for name, w in weights.items()}
    order = SequenceOrder(corpus.train, SMALL.context, 5)
    held_out = torch.from_numpy(corpus.validation_windows(9, SMALL.context))
    taken = 0
    for t in range(12):
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(torch.from_numpy(weights[name]))
        model.zero_grad()
        tokens = torch.from_numpy(order.take(taken, int(batch[t])))
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        with torch.no_grad():
            val = F.cross_entropy(model(held_out[:, :-1]).flatten(0, 1), held_out[:, 1:].flatten())
        grads = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
        norm = np.sqrt(sum((g**2).sum() for g in grads.values()))
        size = np.sqrt(sum((w**2).sum() for w in weights.values() if w.ndim >= 2))
        row = {name: log.columns[name][t] for name in log.columns}
        assert row["loss"] == pytest.approx(loss.item(), rel=1e-11)
        assert row["val_loss"] == pytest.approx(val.item(), rel=1e-11)
        assert row["grad_norm"] == pytest.approx(norm, rel=1e-9)
        assert row["weight_norm"] == pytest.approx(size, rel=1e-11)
        assert (row["lr"], row["batch_size"]) == (lr[t], batch[t])
        assert row["tokens"] == taken * SMALL.context
        taken += int(batch[t])
        scale = min(1.0, clip / (norm + 1e-6))
        for name, w in weights.items():
            g = grads[name] * scale
            if w.ndim >= 2:
                w *= 1 - lr[t] * decay
            if optimizer == "sgd":
                first[name] = 0.8 * first[name] + g if t else g
                w -= lr[t] * first[name]
            else:
                first[name] = 0.7 * first[name] + 0.3 * g
                second[name] = 0.9 * second[name] + 0.1 * g**2
                m, v = first[name] / (1 - 0.7 ** (t + 1)), second[name] / (1 - 0.9 ** (t + 1))
                w -= lr[t] * m / (np.sqrt(v) + 1e-7)


def test_micro_batches_add_up(corpus: Corpus):
    whole, pieces = (
        train(
            [1e-2] * 6, batch_size=5, model=SMALL, corpus=corpus,
            options=TrainOptions(dtype="float64", micro_batch=size),
        )
        for size in (None, 2)
    )  # fmt: skip
    np.testing.assert_allclose(pieces.columns["loss"], whole.columns["loss"], rtol=1e-12)
    np.testing.assert_allclose(pieces.columns["val_loss"], whole.columns["val_loss"], rtol=1e-12)


def test_seeds_reproduce_and_differ_and_leave_global_state_alone(corpus: Corpus):
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    runs = [
        train([1e-2] * 5, model=SMALL, corpus=corpus, batch_size=2, options=TrainOptions(seed=seed))
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(runs[0].columns["loss"], runs[1].columns["loss"])
    assert (runs[0].columns["loss"] != runs[2].columns["loss"]).all()
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_weights_start_as_stated():
    config = TransformerConfig(width=64, depth=2, heads=4, context=64, init_std=0.05)
    model = build(config, seed=1)
    for name, p in model.named_parameters():
        if p.ndim < 2:
            assert (p == 1).all()
        else:
            assert float(p.detach().std()) == pytest.approx(0.05, rel=0.05), name
    # 128 tokens and 64 positions, two blocks of 12 width^2 and two gains, the last gain, the output
    assert sum(p.numel() for p in model.parameters()) == (2 * 128 + 64) * 64 + 2 * (12 * 64**2 + 2 * 64) + 64
    same = build(config, seed=1, dtype=torch.float64)
    for p, q in zip(model.parameters(), same.parameters(), strict=True):
        assert torch.equal(p.double(), q.float().double())


def test_bad_sizes_are_refused():
    for changes, said in (
        ({"width": 6, "heads": 4}, "width = 6 is not a multiple of heads = 4"),
        ({"depth": -1}, "depth = -1: give a whole number, at least 0"),
        ({"init_std": 0.0}, "init_std = 0.0: give a positive"),
        ({"dropout": 1.0}, "dropout = 1.0: give a probability"),
    ):
        with pytest.raises(ConvexlawError, match=said):
            TransformerConfig(**changes)
    for changes, said in (
        ({"optimizer": "adam"}, "optimizer = 'adam': it is one of adamw, sgd"),
        ({"dtype": "half"}, "dtype = 'half'"),
        ({"device": "tpu"}, "device = 'tpu': it is cpu, cuda"),
        ({"weight_decay": -1.0}, "weight_decay = -1.0"),
        ({"eval_every": 0}, "eval_every = 0: give a whole number"),
        ({"clip": 0.0}, "clip = 0.0"),
        ({"betas": (0.9, 1.0)}, r"betas = \(0.9, 1.0\)"),
        ({"seed": -1}, "seed = -1"),
    ):
        with pytest.raises(ConvexlawError, match=said):
            TrainOptions(**changes)


def test_depth_zero_trains(corpus: Corpus):
    log = train([1e-2] * 3, model=TransformerConfig(width=8, depth=0, heads=2, context=8), corpus=corpus)
    assert log.meta["parameters_in_blocks"] == 8  # the last gain
    assert log.status == "finished"


def test_the_folder_of_the_log_is_made(tmp_path: Path, corpus: Corpus):
    log = train([1e-2] * 3, model=SMALL, corpus=corpus, out=tmp_path / "deep" / "run.csv")
    assert (tmp_path / "deep" / "run.csv").exists()
    assert log.meta["corpus_sha256"] == corpus.sha256
