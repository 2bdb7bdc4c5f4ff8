"""Laws compared by cross-validation, and the transfer of the base learning rate."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from convexlaw import ConvexlawError, ExtrapolationWarning, fit_curves, read_runs
from convexlaw.solvers._fit_compare import make_folds
from convexlaw.solvers.fit_curves import measured_transfer
from convexlaw.theory.laws import CD3, RC4, CVX4q
from convexlaw.theory.schedules import parse

TEXTS = [
    f"{shape}:steps={steps},peak=1e-3,warmup=20{extra}"
    for steps in (400, 700)
    for shape, extra in (("constant", ""), ("cosine", ""), ("wsd", ",decay=0.3"))
]


def table_of(law, noise=1e-3, texts=TEXTS, **constants):
    rng = np.random.default_rng(0)
    parts, schedules = [], {}
    for i, text in enumerate(texts):
        lr = parse(text)
        at = np.arange(20, lr.size, 5)
        loss = law.predict(lr, at, **constants) * np.exp(noise * rng.normal(size=at.size))
        parts.append(pd.DataFrame({"run": f"r{i}", "step": at, "loss": loss}))
        schedules[f"r{i}"] = lr
    return read_runs(pd.concat(parts), schedule=schedules)


def test_the_law_that_made_the_data_wins():
    fit = fit_curves(table_of(RC4(2.0, 0.5, 60.0, 0.5), weight_decay=0.1), weight_decay=0.1)
    found = fit.comparison(["rc4", "cd3", "averaged"])
    assert found.winner == "rc4"
    table = fit.compare(["rc4", "cd3", "averaged"])
    assert list(table["law"][table["winner"]]) == ["rc4"]
    assert table.attrs["sentence"] == found.sentence
    assert "beats every other law" in found.sentence
    frame = found.to_frame().set_index("law")
    assert frame.index[0] == "rc4"
    assert frame.loc["rc4", "ratio"] == 1.0
    assert (frame.loc[["cd3", "averaged"], "ratio_low"] > 1.0).all()
    assert set(found.cells["kind"]) == {"curve", "horizon"}
    assert str(found).count("\n") < 12
    found.plot()


def test_no_winner_among_laws_that_are_the_same():
    # with q = 0 data cvx4 and cb4 are all but one law
    fit = fit_curves(table_of(CVX4q(2.0, 0.5, 20.0, 0.45), noise=4e-3), "cvx4q")
    found = fit.comparison(["cvx4", "cb4"])
    assert found.winner is None
    assert "no winner" in found.sentence
    assert not found.to_frame()["winner"].any()


def test_errors_are_those_of_fits_made_by_hand():
    table = table_of(CVX4q(2.0, 0.5, 20.0, 0.45))
    fit = fit_curves(table, "cvx4q")
    cells = fit.comparison(["cvx4q", "cd3"]).cells
    names = list(table.runs)
    one = fit_curves(table, "cvx4q", train=names[1:]).score("r0").iloc[0]
    row = cells[(cells.law == "cvx4q") & (cells.kind == "curve") & (cells.run == "r0")].iloc[0]
    assert row["mae"] == pytest.approx(one["mae"], rel=1e-6)
    short = fit_curves(table, "cd3", train=["r0", "r1", "r2"]).score("r4").iloc[0]
    row = cells[(cells.law == "cd3") & (cells.kind == "horizon") & (cells.run == "r4")].iloc[0]
    assert row["mae"] == pytest.approx(short["mae"], rel=1e-6)
    # standard error over runs of the mean over runs
    frame = fit.comparison(["cvx4q", "cd3"]).to_frame().set_index("law")
    by_run = cells[cells.law == "cd3"].groupby(["kind", "run"])["mae"].mean().groupby("run").mean()
    assert frame.loc["cd3", "mae"] == pytest.approx(by_run.mean())
    assert frame.loc["cd3", "se"] == pytest.approx(by_run.std(ddof=1) / np.sqrt(6))


def test_held_out_runs_are_never_touched():
    table = table_of(CVX4q(2.0, 0.5, 20.0, 0.45))
    frame = table.frame.copy()
    frame.loc[frame["run"] == "r5", "loss"] += 1.0
    lr = {f"r{i}": parse(t) for i, t in enumerate(TEXTS)}
    spoiled = read_runs(frame[["run", "step", "loss"]], schedule=lr)
    train = [f"r{i}" for i in range(5)]
    one = fit_curves(table, "cvx4q", train=train).comparison(["cvx4q", "cd3"])
    two = fit_curves(spoiled, "cvx4q", train=train).comparison(["cvx4q", "cd3"])
    pd.testing.assert_frame_equal(one.cells, two.cells)
    assert "r5" not in set(one.cells["run"])


def test_folds_of_one_length_cut_the_steps():
    table = table_of(CVX4q(2.0, 0.5, 20.0, 0.45), texts=TEXTS[:2])
    fit = fit_curves(table, "cvx4q")
    folds = make_folds(fit._state.data, "train", 0)
    assert [f.kind for f in folds] == ["horizon"]
    first = folds[0].train[0].losses["train"][0].max()
    assert first < folds[0].test[0].losses["train"][0].min()
    found = fit.comparison(["cvx4q", "cd3"])
    assert found.winner is None
    assert "2 test runs are too few" in found.sentence


def test_a_law_that_cannot_be_fitted_is_counted():
    table = table_of(CD3(2.0, 0.05, 10.0), texts=TEXTS[:3])
    fit = fit_curves(table, "cd3")
    found = fit.comparison(["cd3", "rc4"])  # the weight decay is not known
    frame = found.to_frame().set_index("law")
    assert frame.loc["rc4", "failed"] > 0
    assert np.isnan(frame.loc["rc4", "mae"])
    assert found.laws[0] == "cd3"


def test_bad_comparisons_are_refused():
    fit = fit_curves(table_of(CD3(2.0, 0.05, 10.0), texts=TEXTS[:3]), "cd3")
    with pytest.raises(ConvexlawError, match="at least two laws"):
        fit.comparison(["cd3"])
    with pytest.raises(ConvexlawError, match="cvx9"):
        fit.comparison(["cd3", "cvx9"])


def test_transfer_of_the_literal_bound_is_its_closed_form():
    """For cd3 and a linear decay the best peak is D/(G sqrt T) = sqrt(a/b)/sqrt(T)."""
    fit = fit_curves(table_of(CD3(2.0, 0.05, 10.0), noise=1e-5), "cd3")
    fit.interval(resamples=20)
    with pytest.warns(ExtrapolationWarning, match="at 4000 steps: 4000 steps against at most 696 fitted"):
        found = fit.transfer("linear", [1000, 4000, 16000])
    assert found.peak == pytest.approx(np.sqrt(0.05 / 10.0 / found.steps), rel=2e-2)
    assert found.exponent == pytest.approx(-0.5, abs=5e-3)
    assert found.theory == -0.5
    # linear decay at its best peak: 2 sqrt(D^2 G^2 / T) above Linf
    assert found.loss - fit.params["Linf"] == pytest.approx(4 * np.sqrt(0.5 / found.steps), rel=2e-2)
    assert np.all((found.low <= found.peak * 1.001) & (found.high >= found.peak * 0.999))
    assert any("share one peak" in s for s in found.sentences)


def test_transfer_says_which_law_to_trust():
    fit = fit_curves(table_of(RC4(2.0, 0.5, 60.0, 0.5), weight_decay=0.1, texts=TEXTS[:3]), weight_decay=0.1)
    fit.interval(resamples=20)
    with pytest.warns(ExtrapolationWarning, match="at 800 steps: a sum of learning rates of"):
        said = " ".join(fit.transfer("wsd:decay=0.2", [400, 800]).sentences)
    assert "use cvx4q fitted at one peak" in said
    with pytest.warns(ExtrapolationWarning, match=r"best peaks lie beyond .* a peak learning rate of 2e-07"):
        edge = fit.transfer("wsd:decay=0.2", [400, 800], peaks=(1e-7, 2e-7))
    assert any("lies outside" in s for s in edge.sentences)
    two = [*TEXTS[:2], "wsd:steps=400,peak=3e-3,warmup=20,decay=0.3"]
    mixed = fit_curves(table_of(CVX4q(2.0, 0.5, 20.0, 0.45), texts=two), "cvx4q")
    mixed.interval(resamples=20)
    assert any("fit those near the best peak alone" in s for s in mixed.transfer("wsd", [400, 800]).sentences)
    with pytest.raises(ConvexlawError, match="two horizons"):
        fit.transfer("wsd:decay=0.2", [400])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edge.plot()


def test_measured_transfer_finds_the_exponent_of_a_sweep():
    rng = np.random.default_rng(0)
    rows = [
        (t, p, 3 + 0.1 * np.log(p * t**0.3 / 0.02) ** 2 + 1e-3 * rng.normal())
        for t in (5e3, 2e4, 8e4)
        for p in np.geomspace(3e-4, 4e-3, 7)
    ]
    found = measured_transfer(pd.DataFrame(rows, columns=["steps", "peak", "loss"]))
    low, high = found.exponent_interval
    assert low < -0.3 < high
    assert high - low < 0.1
    assert found.peak == pytest.approx(0.02 * found.steps**-0.3, rel=0.05)
    assert found.sentences == []
    lonely = pd.DataFrame([(1e4, 1e-3, 3.0), (1e4, 2e-3, 3.1)], columns=["steps", "peak", "loss"])
    with pytest.raises(ConvexlawError, match="three peaks"):
        measured_transfer(lonely)
    with pytest.raises(ConvexlawError, match="no 'loss'"):
        measured_transfer(lonely.drop(columns="loss"))
    with pytest.raises(ConvexlawError, match="positive and finite"):
        measured_transfer(lonely.assign(peak=0.0))
    far = pd.DataFrame(rows, columns=["steps", "peak", "loss"])
    far = far[far["peak"] < 1e-3]
    assert any("edge of the peaks tried" in s for s in measured_transfer(far).sentences)


@pytest.mark.parametrize("noise", [0.0, 1e-15, 3e-3])
def test_a_flat_sweep_tells_no_best_peak(noise):
    """The estimate of rounding alone lay outside its own limits, at the end of the range."""
    sweep = [(t, p) for t in (1e3, 4e3, 1.6e4) for p in np.geomspace(2.5e-4, 4e-3, 5)]
    table = pd.DataFrame(sweep, columns=["steps", "peak"])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        found = measured_transfer(table.assign(loss=3 + noise * rng.normal(size=len(table))), resamples=300)
        assert np.all((found.low <= found.peak) & (found.peak <= found.high))
        low, high = found.exponent_interval
        assert low <= found.exponent <= high
        assert high - low > 1
        assert sum("hold every peak tried" in s for s in found.sentences) >= 2


def test_limits_at_the_edge_of_a_sweep_hold_the_estimate():
    sweep = [(t, p) for t in (1e3, 4e3) for p in np.geomspace(2.5e-4, 4e-3, 5)]
    table = pd.DataFrame(sweep, columns=["steps", "peak"])
    found = measured_transfer(table.assign(loss=3 + 0.1 * np.log(table["peak"])), resamples=100)
    assert np.all((found.low <= found.peak) & (found.peak <= found.high))
    assert all("edge of the peaks tried" in s for s in found.sentences)
