"""The evidence page: runs that compare what they say, logs of those runs, tables with the right sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import ttest_1samp

from convexlaw.errors import ConvexlawError
from convexlaw.simulations import _evidence_data, evidence, evidence_batches, evidence_clock
from convexlaw.simulations._batch_text import parse_batch_sizes
from convexlaw.simulations._evidence_data import interval
from convexlaw.simulations.corpus import load_corpus
from convexlaw.simulations.descent import expected_descent
from convexlaw.simulations.evidence import EXPERIMENTS, collect, load, run, stages_text
from convexlaw.simulations.evidence_clock import _rho
from convexlaw.simulations.evidence_depth import _parameters
from convexlaw.simulations.evidence_quadratics import _best_gaps, quadratic_exchange, quadratic_ratio
from convexlaw.simulations.models import TransformerConfig, build
from convexlaw.simulations.problems import power_law_quadratic
from convexlaw.simulations.sweep import RunSpec
from convexlaw.simulations.train import TrainOptions, train
from convexlaw.theory import schedules
from convexlaw.theory.laws import RC4

TINY = TransformerConfig(width=8, depth=1, heads=2, context=8)


def by_name(experiment: str) -> dict[str, RunSpec]:
    return {spec.name: spec for spec in EXPERIMENTS[experiment]}


def test_stages_text_is_read_back():
    rng = np.random.default_rng(0)
    for _ in range(50):
        batch = rng.uniform(1, 20, size=rng.integers(1, 40))
        total = int(rng.integers(np.floor(batch).sum(), np.floor(batch).sum() + batch.size + 1))
        sizes = parse_batch_sizes(stages_text(batch, total), np.ones(batch.size))
        assert sizes.sum() == total
        assert np.all((sizes >= np.floor(batch)) & (sizes <= np.floor(batch) + 1))
    with pytest.raises(ConvexlawError, match="scale them first"):
        stages_text([2.5, 2.5], samples=9)


def test_compared_runs_use_the_same_samples():
    for name in ("gain", "exchange", "ratio"):
        for spec in EXPERIMENTS[name]:
            assert spec.batches().sum() == {"gain": 6400, "exchange": 9600, "ratio": 4800}[name], spec.name


def test_ratio_runs_have_equal_rate_over_batch():
    specs = by_name("ratio")
    pairs = [(s, specs[name.replace("rate_", "batch_", 1)]) for name, s in specs.items() if "rate" in name]
    assert len(pairs) == 27
    for decayed, grown in pairs:
        lr, flat = decayed.lr(), grown.lr()
        assert np.ptp(flat) == 0
        assert len(lr) == len(flat)
        assert flat[0] == pytest.approx(len(lr) / np.sum(1 / lr))  # harmonic mean
        # whole batch sizes: within one sequence
        assert np.all(np.abs(grown.batches() - flat * decayed.batches() / lr) <= 1)


def test_best_gap_is_that_of_a_search_along_exact_descent():
    problems = [power_law_quadratic(30, sigma=s, curvature=c) for s, c in ((0.2, 1.0), (0.7, 1.6))]
    shape = schedules.wsd(200, 1.0)
    batch = np.linspace(0.5, 1.5, 200)
    for problem, found in zip(problems, _best_gaps(problems, shape, batch), strict=True):
        searched = minimize_scalar(
            lambda x, p=problem: expected_descent(p, 2.0**x * shape, batch).gap[-1],
            bounds=(-9, 0.9), method="bounded",
        )  # fmt: skip
        assert found == pytest.approx(searched.fun, rel=2e-3)


def test_exact_quadratics_show_what_the_page_says():
    exchange = quadratic_exchange(1000)
    assert exchange.loc[0.1, "growth %"].abs().max() < 1
    assert exchange.loc[(0.1, 10.0), "neither %"] > 50
    ratio = quadratic_ratio(300)
    assert ratio.loc[0.01, "cosine"] > ratio.loc[0.01, "linear"] > ratio.loc[0.01, "wsd"] > 0  # bias
    assert (ratio.loc[1.0] < 0).all()  # noise


def test_interval_is_that_of_the_t_test():
    x = np.random.default_rng(1).normal(size=7)
    mean, low, high = interval(x)
    limits = ttest_1samp(x, 0).confidence_interval(0.95)
    assert (mean, low, high) == pytest.approx((x.mean(), limits.low, limits.high))


def test_clock_and_counts_are_those_of_the_definitions():
    spec = by_name("clock")["wsd_std0.02_decay0.3_seed0"]
    lr, square, seen = spec.lr(), 1.0, []
    for eta in lr:
        seen.append(np.sqrt(square))
        square = (1 - eta * 0.3) ** 2 * square + (eta / 0.02) ** 2
    np.testing.assert_allclose(_rho(spec, 0.02), [*seen, np.sqrt(square)], rtol=1e-12)
    grown = by_name("depth")["wsd_from1_at0.5_seed0"]
    model = build(grown.model, seed=0)
    whole = sum(p.numel() for p in model.parameters())
    blocks = sum(p.numel() for block in model.blocks[1:] for p in block.parameters())
    assert _parameters(grown) == (whole - blocks, whole)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_packaged_logs_are_complete(experiment: str):
    log = load(experiment)
    assert list(dict.fromkeys(log.run)) == [spec.name for spec in EXPERIMENTS[experiment]]
    assert np.isfinite(log.val_loss).all()
    for spec in EXPERIMENTS[experiment]:
        steps = log.step[log.run == spec.name].to_numpy()
        assert steps[-1] == len(spec.lr())
        assert np.all(np.diff(steps) > 0)


def test_packaged_logs_are_small():
    folder = Path(evidence.__file__).parent / "evidence_logs"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 400_000


def test_first_rows_of_a_packaged_run_come_back():
    spec = by_name("depth")["calibrate_from1_seed0"]
    corpus = load_corpus()
    log = train(
        spec.schedule, batch_size=spec.batch_size, model=spec.model, options=spec.options, every=30,
        growth=spec.growth, corpus=corpus, stop_at=31,
    )  # fmt: skip
    told = load("depth").set_index(["run", "step"])["val_loss"][spec.name]
    # another Python has another standard library: then the numbers are near, not the same
    rtol = 2e-4 if corpus.python == "3.11.7" else 0.1
    for step in (0, 30):
        assert log.columns["val_loss"][step] == pytest.approx(told[step], rel=rtol)


def test_run_and_collect_write_what_load_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    options = TrainOptions(eval_sequences=8)
    specs = tuple(RunSpec(f"r{b}", "constant:steps=9,peak=1e-2", b, TINY, options) for b in (2, 4))
    for name in ("gain", "clock"):
        monkeypatch.setitem(EXPERIMENTS, name, specs)
        monkeypatch.setitem(evidence.EVERY, name, 4)
        with pytest.raises(ConvexlawError, match="is not the log of a finished run"):
            collect(name, tmp_path / name, tmp_path / "none.csv")
        run(name, tmp_path / name, progress=False)
        collect(name, tmp_path / name, tmp_path / f"{name}.csv")
    whole = pd.read_csv(tmp_path / "clock" / "r2.csv", comment="#")
    thin = pd.read_csv(tmp_path / "clock.csv", comment="#")
    part = thin[thin.run == "r2"]
    assert part.step.tolist() == [0, 4, 9]
    np.testing.assert_allclose(part.weight_norm.iloc[:2], whole.weight_norm.iloc[:2], rtol=1e-5)
    head = (tmp_path / "clock" / "r2.csv").read_text().split("# final_val_loss: ")[1].split("\n")[0]
    assert part.val_loss.iloc[-1] == pytest.approx(float(head), rel=1e-5)
    assert pd.read_csv(tmp_path / "gain.csv", comment="#").step.tolist() == [9, 9]
    with pytest.raises(ConvexlawError, match="experiment 'x' is unknown"):
        run("x", tmp_path)


def test_tables_of_laws_find_a_law_that_holds(monkeypatch: pytest.MonkeyPatch):
    """Logs made by a law are predicted by its fit, and changes of weight decay with them."""

    def made(experiment: str, every: int) -> pd.DataFrame:
        parts = []
        for spec in EXPERIMENTS[experiment]:
            lr, batch = (np.append(x, x[-1]) for x in (spec.lr(), spec.batches()))
            law = RC4(1.2, 0.4, 0.3, 0.5, b_batch=4.0 if experiment == "joint" else 0.0)
            loss = law.predict(
                lr, batch_size=batch, weight_decay=spec.options.weight_decay, init_std=spec.model.init_std
            )
            steps = np.append(np.arange(0, len(lr) - 1, every), len(lr) - 1)
            norm = 3 * evidence_clock._rho(spec, spec.model.init_std)[steps]
            rows = {"run": spec.name, "step": steps, "val_loss": loss[steps], "weight_norm": norm}
            parts.append(pd.DataFrame(rows))
        return pd.concat(parts)

    logs = {"joint": made("joint", 25), "clock": made("clock", 50)}
    for module in (_evidence_data, evidence_clock):
        monkeypatch.setattr(module, "load", logs.__getitem__)
    joint = evidence_batches.joint_table()
    assert joint[["joint", "joint_final"]].abs().to_numpy().max() < 2e-3
    assert joint["blind"].max() > 1e-2
    losses = evidence_clock.clock_losses()
    assert losses[["rc4", "tuned"]].to_numpy().max() < 2e-3
    norms = evidence_clock.clock_norms()
    assert norms[["error", "worst", "error_tuned"]].abs().to_numpy().max() < 1e-5
    np.testing.assert_allclose(losses["change_rc4"], losses["change_seen"], atol=2e-3)
    assert losses["change_seen"].abs().min() > 5e-3
