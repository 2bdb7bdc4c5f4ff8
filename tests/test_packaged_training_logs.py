"""The logs that come with the package are real runs of the commands in their headers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw.simulations import DEMO_TRAIN, demo_logs
from convexlaw.simulations.corpus import load_corpus
from convexlaw.simulations.sweep import DEMO_EVERY, DEMO_RUNS
from convexlaw.simulations.train import train
from convexlaw.simulations.training_log import COLUMNS
from convexlaw.theory import schedules

LOGS = {path.stem: path for path in demo_logs()}


def rows_of(path: Path) -> pd.DataFrame:
    # pandas 2 rounds the last digit by default, and pandas 3.1 deprecates the option that does not
    return pd.read_csv(path, comment="#", dtype=str).map(float).astype({"step": int})


def header(path: Path) -> dict[str, str]:
    lines = [line[1:].strip() for line in path.read_text().splitlines() if line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def test_the_set_is_what_the_laws_need():
    assert set(LOGS) == {spec.name for spec in DEMO_RUNS}
    assert len(LOGS) >= 12
    assert sum(path.stat().st_size for path in LOGS.values()) < 3_000_000
    assert (next(iter(LOGS.values())).parent / "README.md").is_file()
    read = [schedules.parse_parameters(spec.schedule) for spec in DEMO_RUNS]
    assert {"constant", "cosine", "linear", "wsd", "step"} <= {name for name, _ in read}
    assert len({values["steps"] for _, values in read}) >= 3
    assert len({values["peak"] for _, values in read}) >= 2
    cooldowns = {(v["decay"], v.get("cooldown", "linear")) for name, v in read if name == "wsd"}
    assert len(cooldowns) >= 4
    assert set(DEMO_TRAIN) < set(LOGS)


@pytest.mark.parametrize("spec", DEMO_RUNS, ids=lambda spec: spec.name)
def test_header_and_rows_agree(spec):
    told, frame = header(LOGS[spec.name]), rows_of(LOGS[spec.name])
    assert told["command"] == spec.command(DEMO_EVERY)
    assert told["schedule"] == spec.schedule
    assert told["status"] == "finished"
    lr = schedules.parse(told["schedule"])
    assert len(lr) == json.loads(told["steps"])
    assert tuple(frame.columns) == COLUMNS
    assert frame["step"].iloc[-1] == len(lr) - 1
    np.testing.assert_array_equal(frame["lr"], lr[frame["step"]])  # to the last bit
    np.testing.assert_array_equal(frame["tokens"], frame["step"] * 32 * 32)
    assert frame.notna().all().all()
    assert np.isfinite(frame.to_numpy()).all()
    assert {told[key] for key in ("optimizer", "weight_decay", "init_std")} == {"adamw", "0.1", "0.125"}
    assert frame["val_loss"].iloc[0] > 4.8
    assert float(told["final_val_loss"]) < 1.7


def test_all_runs_read_the_same_text():
    assert len({header(path)["corpus_sha256"] for path in LOGS.values()}) == 1


def test_runs_of_one_seed_share_their_trunk_and_seeds_share_nothing():
    frames = {name: rows_of(path).set_index("step") for name, path in LOGS.items()}
    trunk, cooled = frames["constant_8000_3e-3"], frames["wsd20_8000_3e-3"]
    np.testing.assert_array_equal(trunk["val_loss"].loc[:6350], cooled["val_loss"].loc[:6350])
    assert cooled["val_loss"].iloc[-1] < trunk["val_loss"].iloc[-1] - 0.05
    for name in (n for n in LOGS if n.endswith("_seed1")):
        one, other = (
            frames[name],
            frames[name.removesuffix("_seed1").replace("constant_4000", "constant_8000")],
        )
        both = one.index.intersection(other.index)
        assert (one["val_loss"].loc[both] != other["val_loss"].loc[both]).all()


def test_the_first_rows_come_back():
    spec = DEMO_RUNS[0]
    told, frame = header(LOGS[spec.name]), rows_of(LOGS[spec.name])
    corpus = load_corpus()
    log = train(
        spec.schedule,
        batch_size=spec.batch_size,
        model=spec.model,
        options=spec.options,
        corpus=corpus,
        stop_at=77,
    )
    rows = log.thin(DEMO_EVERY)
    assert str(log.meta["parameters"]) == told["parameters"]
    # another Python has another standard library: then the numbers are near, not the same
    rtol = 2e-4 if corpus.sha256 == told["corpus_sha256"] else 0.1
    for name in ("loss", "val_loss", "grad_norm", "weight_norm"):
        np.testing.assert_allclose(rows[name][:2], frame[name][:2], rtol=rtol, err_msg=name)
