"""Sweeps that are killed, resumed, extended, run in parallel and on a cluster: always the same numbers."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from convexlaw.errors import ConvexlawError
from convexlaw.simulations import monte_carlo as module
from convexlaw.simulations.linear_model import DESIGNS, design_matrix, selection, simulate
from convexlaw.simulations.monte_carlo import Setting, along_scale, monte_carlo
from convexlaw.theory.scalar_limit import BH, Gaussian, KLevel, Lasso, Prior, TwoLevel

BG = Prior.bernoulli_gaussian(0.1)
SMALL = [Setting(BG, Lasso(1.5), 0.5, 0.2, 80), Setting(BG, TwoLevel(1.8, 1.0, 0.25), 0.5, 0.2, 80)]

SWEEP = """
import sys
from convexlaw.simulations.monte_carlo import Setting, monte_carlo
from convexlaw.theory.scalar_limit import Lasso, Prior, TwoLevel
BG = Prior.bernoulli_gaussian(0.1)
settings = [Setting(BG, Lasso(1.5), 0.5, 0.2, 80), Setting(BG, TwoLevel(1.8, 1.0, 0.25), 0.5, 0.2, 80)]
monte_carlo(settings, repetitions=3000, seed=3, ledger=sys.argv[1])
"""


def records(path: Path) -> int:
    return max(path.read_bytes().count(b"\n") - 1, 0) if path.exists() else 0


def test_a_killed_sweep_continues_where_it_stopped(tmp_path, monkeypatch):
    ledger = tmp_path / "sweep.jsonl"
    process = subprocess.Popen([sys.executable, "-c", SWEEP, str(ledger)])
    try:
        deadline = time.monotonic() + 300
        while records(ledger) < 12 and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = records(ledger)
    assert done >= 12
    with ledger.open("ab") as handle:
        handle.write(b'{"key": "cut in the mid')  # what a crash in the middle of a write leaves
    worked = []
    original = module._one
    monkeypatch.setattr(module, "_one", lambda key, job: worked.append(key) or original(key, job))
    resumed = monte_carlo(SMALL, repetitions=10, seed=3, ledger=ledger)
    kept = [json.loads(line)["key"] for line in ledger.read_text().splitlines()[1:]]
    assert len(set(kept)) == len(kept)
    assert not set(worked) & set(kept[:done])
    assert 0 < len(worked) < 20
    fresh = monte_carlo(SMALL, repetitions=10, seed=3)
    np.testing.assert_array_equal(resumed.values, fresh.values)


def test_more_repetitions_only_add_fits(tmp_path, monkeypatch):
    ledger = tmp_path / "l.jsonl"
    first = monte_carlo(SMALL[0], repetitions=3, ledger=ledger)
    worked = []
    original = module._one
    monkeypatch.setattr(module, "_one", lambda key, job: worked.append(key) or original(key, job))
    more = monte_carlo(SMALL[0], repetitions=5, ledger=ledger)
    assert len(worked) == 2
    np.testing.assert_array_equal(more.values[:, :3], first.values)
    monte_carlo(SMALL[0], repetitions=5, ledger=ledger)
    assert len(worked) == 2
    # another seed, another size, another penalty: nothing of it is reused
    monte_carlo(SMALL[0], repetitions=1, seed=9, ledger=ledger)
    monte_carlo(SMALL[1], repetitions=1, ledger=ledger)
    assert len(worked) == 4


def test_processes_and_order_do_not_change_the_numbers(tmp_path):
    one = monte_carlo(SMALL, repetitions=3, seed=1)
    two = monte_carlo(
        SMALL[::-1], repetitions=3, seed=1, n_jobs=2, ledger=tmp_path / "p.jsonl", progress=False
    )
    np.testing.assert_array_equal(one.values, two.values[::-1])


def test_dask_on_a_real_local_cluster(tmp_path):
    from dask.distributed import Client, LocalCluster

    with pytest.raises(ConvexlawError, match="found no client"):
        monte_carlo(SMALL, repetitions=1, backend="dask")
    local = {"host": "127.0.0.1", "dashboard_address": None, "processes": True}
    with LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster, Client(cluster) as client:
        found = monte_carlo(
            SMALL, repetitions=3, seed=1, backend="dask", client=client, ledger=tmp_path / "d.jsonl"
        )
        address = cluster.scheduler_address
        assert address.startswith("tcp://127.0.0.1")
        again = monte_carlo(SMALL, repetitions=2, seed=2, backend="dask", client=address)
        default = monte_carlo(SMALL, repetitions=2, seed=2, backend="dask")
    here = monte_carlo(SMALL, repetitions=3, seed=1)
    np.testing.assert_array_equal(found.values, here.values)
    np.testing.assert_array_equal(again.values, default.values)
    assert records(tmp_path / "d.jsonl") == 6


def test_ledgers_of_other_things_are_refused(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("dear diary\n")
    with pytest.raises(ConvexlawError, match="not a ledger"):
        monte_carlo(SMALL[0], repetitions=1, ledger=other)
    assert other.read_text() == "dear diary\n"
    edited = tmp_path / "edited.jsonl"
    monte_carlo(SMALL[0], repetitions=1, ledger=edited)
    edited.write_text(edited.read_text() + "oops\n")
    with pytest.raises(ConvexlawError, match="line 3"):
        monte_carlo(SMALL[0], repetitions=1, ledger=edited)
    assert edited.stat().st_size > 0


def test_errors_name_the_rule():
    for call, rule in (
        (lambda: Setting(BG, Lasso(1.0), 0.5, 0.2, 80, design="toeplitz"), "the designs are"),
        (lambda: Setting(BG, Lasso(1.0), 0.5, 0.2, 1), "at least 2"),
        (lambda: monte_carlo([], 1), "at least one"),
        (lambda: monte_carlo(SMALL[0], 0), "at least one"),
        (lambda: monte_carlo(SMALL[0], 1, backend="spark"), "joblib and dask"),
        (lambda: monte_carlo(Setting(BG, Lasso(0.2), 0.5, 0.2, 80), 1), "no fixed point"),
        (lambda: design_matrix("gaussian", 0, 3), "at least 1"),
        (lambda: design_matrix("equicorrelated", 5, 3, rho=-0.1), "rho"),
        (lambda: design_matrix("ar", 5, 3, rho=1.0), "rho"),
        (lambda: design_matrix("bernoulli", 5, 3, density=0.0), "density"),
        (lambda: design_matrix("toeplitz", 5, 3), "the designs are"),
        (lambda: simulate(BG, 0.001, 0.1, 20), "no rows"),
        (lambda: selection([1.0], [1.0, 2.0]), "one length"),
    ):
        with pytest.raises(ConvexlawError, match=rule):
            call()


@pytest.mark.parametrize("kind", DESIGNS)
def test_designs_have_unit_columns_and_their_correlations(kind):
    n, p = 4000, 12
    X = design_matrix(kind, n, p, 0, rho=0.6, ma=0.4, density=0.3)
    dense = X.toarray() if hasattr(X, "toarray") else X
    assert dense.shape == (n, p)
    squares = np.square(dense).sum(axis=0)
    assert np.abs(squares - 1).max() < 0.12
    gram = dense.T @ dense
    expected = np.eye(p)
    lag = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    if kind == "ar":
        expected = 0.6**lag
    elif kind == "equicorrelated":
        expected = np.where(lag == 0, 1.0, 0.6)
    elif kind == "arma":
        ar, ma = 0.6, 0.4
        first = (1 + ar * ma) * (ar + ma) / (1 + 2 * ar * ma + ma * ma)
        expected = np.where(lag == 0, 1.0, first * ar ** np.maximum(lag - 1, 0))
    assert np.abs(gram - expected).max() < 0.12
    assert np.abs(dense.mean(axis=0)).max() < 5 / n


def test_correlated_designs_run_and_show_their_distance_to_the_limit():
    """Beside correlated rows the limits are a reference only; the fits themselves are exact."""
    result = monte_carlo(
        [
            Setting(BG, BH(1.0, 0.2), 0.5, 0.2, 150, design="ar", options={"rho": 0.7}, label="ar"),
            Setting(BG, BH(1.0, 0.2), 0.5, 0.2, 150, design="equicorrelated", options={"rho": 0.5}),
            Setting(BG, BH(1.0, 0.2), 0.5, 0.2, 150, design="arma", options={"rho": 0.5, "ma": 0.3}),
        ],
        repetitions=4,
    )
    assert np.isfinite(result.mean).all()
    assert (result.mean[:, 0] > 0).all()
    assert len(str(result).splitlines()) <= 12


def test_sweeps_along_a_scale_and_tables():
    settings = along_scale(SMALL[0], [0.9, 1.2])
    assert [s.label for s in settings] == ["0.9", "1.2"]
    assert settings[1].penalty == Lasso(1.5 * 1.2)
    result = monte_carlo(settings, repetitions=2)
    frame = result.to_frame()
    assert frame.shape == (10, 8)
    assert frame.loc[0, "theory"] == settings[0].state.tpp
    assert np.isnan(monte_carlo(SMALL[0], 1).standard_error).all()


def test_every_penalty_has_its_own_key():
    shapes = [
        Lasso(1.0),
        Lasso(1.1),
        TwoLevel(1.2, 1.0, 0.1),
        BH(1.0, 0.1),
        Gaussian(1.0, 0.1, 0.5),
        KLevel([1.0], [1.0]),
    ]
    keys = {Setting(BG, shape, 0.5, 0.2, 80).key for shape in shapes}
    assert len(keys) == len(shapes)
    assert Setting(BG, Lasso(1.0), 0.5, 0.2, 80, label="x").key == Setting(BG, Lasso(1.0), 0.5, 0.2, 80).key
    import pickle

    for shape in shapes:
        shape.integral(np.array([0.5]))
        assert pickle.loads(pickle.dumps(shape)) == shape
