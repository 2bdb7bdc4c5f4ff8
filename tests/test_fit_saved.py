"""Saved fits: what comes back, and what is said of files that are not ours, damaged, or newer."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from convexlaw import ConvexlawError, fit_curves, fit_table, load_fit, read_runs
from convexlaw.theory.laws import CVX4q, Kaplan
from convexlaw.theory.schedules import parse

TEXTS = {
    "a": "cosine:steps=400,peak=1e-3,warmup=20",
    "b": "wsd:steps=400,peak=1e-3,decay=0.3,warmup=20",
    "c": "linear:steps=400,peak=1e-3,warmup=20",
}


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    parts = []
    for name, text in TEXTS.items():
        at = np.arange(0, 400, 5)
        loss = CVX4q(2.0, 0.5, 20.0, 0.45).predict(parse(text), at) * np.exp(1e-3 * rng.normal(size=at.size))
        parts.append(pd.DataFrame({"run": name, "step": at, "loss": loss, "batch_size": 32}))
    table = read_runs(pd.concat(parts), schedule={n: parse(t) for n, t in TEXTS.items()})
    return fit_curves(table, "cvx4q", train=["a", "b"])


@pytest.fixture
def saved(fit, tmp_path):
    path = tmp_path / "fit.json"
    fit.interval(resamples=30)
    fit.to_json(path)
    return path


def test_a_fit_of_curves_comes_back(fit, saved):
    back = load_fit(saved)
    assert back.params == fit.params
    assert (back.law, back.train, back.runs, back.split, back.protocol) == (
        fit.law,
        fit.train,
        fit.runs,
        fit.split,
        fit.protocol,
    )
    assert back.notes == fit.notes
    assert str(back) == str(fit)
    lr = parse("wsd:steps=600,peak=1e-3,decay=0.2,warmup=20")
    assert back.predict(lr) == pytest.approx(fit.predict(lr), rel=1e-15)
    assert back.predict(lr, 32) == pytest.approx(fit.predict(lr), rel=1e-15)
    pd.testing.assert_frame_equal(back.score(), fit.score())
    pd.testing.assert_frame_equal(back.score(["a", "c"]), fit.score(["a", "c"]))
    pd.testing.assert_frame_equal(back.residuals(), fit.residuals())
    pd.testing.assert_frame_equal(back.to_frame(), fit.to_frame())
    pd.testing.assert_frame_equal(back.interval(resamples=30), fit.interval(resamples=30))
    assert back.identifiability.sentences == fit.identifiability.sentences
    assert back.band(lr, at=[500])[0] == pytest.approx(fit.band(lr, at=[500])[0])


def test_what_needs_the_logs_says_so(saved):
    back = load_fit(saved)
    for call in (
        lambda: back.interval(resamples=31),
        lambda: back.interval(method="profile"),
        back.compare,
        back.comparison,
    ):
        with pytest.raises(ConvexlawError, match="loaded from a file"):
            call()


def test_a_loaded_fit_draws(saved):
    import matplotlib.pyplot as plt

    from convexlaw.figures import fits

    back = load_fit(saved)
    assert len(fits.plot_schedule_panel(back).axes) == 6
    assert back.plot().lines
    plt.close("all")


@pytest.mark.parametrize("protocol", ["robust", "paper"])
def test_infinite_limits_and_both_protocols_survive(tmp_path, protocol):
    lr = parse(TEXTS["a"])
    frame = pd.DataFrame({"run": "a", "step": np.arange(20, 400, 5)})
    frame["loss"] = CVX4q(2.0, 0.5, -5.0, 0.45).predict(lr, frame["step"])
    fit = fit_curves(read_runs(frame, schedule=lr), "auto", protocol=protocol)
    fit._state.intervals["x"] = {
        "level": 0.5,
        "method": "profile",
        "limits": {n: (0.0, np.inf) for n in fit.params},
    }
    fit.to_json(tmp_path / "f.json")
    back = load_fit(tmp_path / "f.json")
    assert back._state.intervals["x"]["limits"]["b"] == (0.0, np.inf)
    assert back.protocol == protocol


@pytest.mark.parametrize("law", ["chinchilla", "kaplan", "two_dimensional"])
def test_a_fit_of_a_table_comes_back(tmp_path, law):
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 1e10, 5), np.geomspace(1e9, 1e11, 5)))
    loss = Kaplan(8e12, 3e13, 0.09, 0.11).loss(N, D) * np.exp(
        2e-3 * np.random.default_rng(0).normal(size=N.size)
    )
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": loss}), law)
    fit.interval(resamples=30)
    fit.to_json(tmp_path / "t.json")
    back = load_fit(tmp_path / "t.json")
    assert back.params == fit.params
    assert str(back) == str(fit)
    assert back.predict(1e9, 1e10) == pytest.approx(fit.predict(1e9, 1e10))
    pd.testing.assert_frame_equal(back.interval(resamples=30), fit.interval(resamples=30))
    pd.testing.assert_frame_equal(back.interval(method="profile"), fit.interval(method="profile"))
    assert back.optimal(1e20, resamples=30).N == pytest.approx(fit.optimal(1e20, resamples=30).N)


def change(path, **values):
    stored = json.loads(path.read_text())
    for key, value in values.items():
        if value is None:
            del stored[key]
        else:
            stored[key] = value
    path.write_text(json.dumps(stored))
    return path


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"schema": 2}, "schema 2 is newer than the 1 that this version reads; update"),
        ({"schema": "1"}, "schema '1' is no version"),
        ({"schema": 0}, "schema 0 is no version"),
        ({"format": "other"}, "no saved fit"),
        ({"kind": "surface"}, "kind 'surface'"),
        ({"law": "cvx9"}, "cvx9"),
        ({"params": {"Linf": 2.0}}, "missing"),
        ({"ranges": None}, "damaged"),
        ({"ranges": 3}, "damaged"),
        ({"solution": {}}, "damaged"),
    ],
)
def test_files_of_another_kind_are_named(saved, values, words):
    with pytest.raises(ConvexlawError, match=words) as caught:
        load_fit(change(saved, **values))
    assert str(saved) in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"not json", b"[1, 2]", b"\xff\xfe\x00", b'{"format": "convexlaw-fit"']
)
def test_files_that_are_no_fit_are_named(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ConvexlawError, match=r"x\.json"):
        load_fit(path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ConvexlawError, match=r"gone\.json"):
        load_fit(tmp_path / "gone.json")
    with pytest.raises(ConvexlawError, match="cannot be read"):
        load_fit(tmp_path)


def test_an_interrupted_write_leaves_the_old_file(fit, saved, monkeypatch):
    before = saved.read_text()
    monkeypatch.setattr("pathlib.Path.write_text", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fit.to_json(saved)
    monkeypatch.undo()
    assert saved.read_text() == before
    assert [p.name for p in saved.parent.iterdir()] == ["fit.json"]
