"""What a fit of a table predicts with limits: in Python, from a file, and by ``convexlaw predict``."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw import ConvexlawError, ExtrapolationWarning, fit_table, load_fit
from convexlaw.cli import main
from convexlaw.figures.what_if import plot_table_forecast
from convexlaw.theory.laws import Chinchilla

LAW = Chinchilla(E=1.8, A=480.0, B=2100.0, alpha=0.35, beta=0.37)
N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 1e10, 5), np.geomspace(1e9, 1e11, 5)))


def simulated(seed: int) -> pd.DataFrame:
    noise = np.exp(2e-3 * np.random.default_rng(seed).normal(size=N.size))
    return pd.DataFrame({"N": N, "D": D, "loss": LAW.loss(N, D) * noise})


@pytest.fixture(scope="module")
def fit():
    return fit_table(simulated(0))


@pytest.fixture(scope="module")
def saved(fit, tmp_path_factory):
    fit.interval(resamples=1000)  # as the command fit table does
    path = tmp_path_factory.mktemp("fit") / "fit.json"
    fit.to_json(path)
    return str(path)


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["predict", *arguments])
    told = capsys.readouterr()
    return int(stopped.value.code or 0), told.out, told.err


def test_the_band_is_as_wide_as_predictions_scatter_over_new_tables():
    """Half widths against the standard deviation over 50 simulated tables, inside the rows and outside."""
    n, d = np.array([1e9, 3e10]), np.array([1e10, 3e11])
    fits = [fit_table(simulated(seed)) for seed in range(1, 51)]
    scatter = np.std([f.model.loss(n, d) for f in fits], axis=0)
    halves = [np.subtract(*f.band(n, d, resamples=80)[::-1]) / 2 for f in fits[:3]]
    ratio = np.mean(halves, axis=0) / (2.06 * scatter)  # t quantile of 24 degrees of freedom
    print(ratio)
    assert np.all((ratio > 0.7) & (ratio < 1.4)), ratio  # standard error of the scatter 10 %


def test_the_band_broadcasts_and_holds_the_prediction(fit):
    low, high = fit.band([[1e9], [3e9]], [1e10, 2e10, 4e10], resamples=60)
    middle = fit.predict([[1e9], [3e9]], [1e10, 2e10, 4e10])
    assert low.shape == high.shape == (2, 3)
    assert np.all((low < middle) & (middle < high))
    wide = fit.band(1e9, 1e10, 0.99, resamples=60)
    narrow = fit.band(1e9, 1e10, 0.5, resamples=60)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_band_at_the_optimum_is_narrower_than_the_interval_of_its_size(fit):
    """The loss is flat around the optimum: limits of the loss there come from the same refits."""
    best = fit.optimal(1e21, resamples=60)
    low, high = fit.band(best.N, best.D, resamples=60)
    # each refit's own optimum is at least as good for it as the common one
    assert best.loss_interval[0] <= low + 1e-12
    assert best.loss_interval[1] <= high + 1e-12
    assert high - low == pytest.approx(best.loss_interval[1] - best.loss_interval[0], rel=0.05)


def test_the_band_warns_where_the_prediction_does(fit):
    with pytest.warns(ExtrapolationWarning, match="beyond 4 times"):
        fit.band(1e13, 1e15, resamples=60)


@pytest.mark.parametrize("sizes", [4, 2])
def test_tables_of_few_rows_have_limits(sizes):
    """Rows drawn with replacement would hold fewer different ones than parameters: residuals are drawn."""
    n, d = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 1e10, sizes), np.geomspace(1e9, 1e11, 3)))
    hits = []
    for seed in range(8):
        noise = np.exp(5e-3 * np.random.default_rng(seed).normal(size=n.size))
        few = fit_table(pd.DataFrame({"N": n, "D": d, "loss": LAW.loss(n, d) * noise}))
        limits = few.interval(resamples=60)
        assert np.all(limits["low"] < limits["high"])
        truth = np.array(list(LAW.params.values()))
        hits.append((limits["low"] <= truth) & (truth <= limits["high"]))
    if sizes == 4:
        assert np.mean(hits) > 0.8  # 95 % of 60 sets in benchmarks/sections/fit.md


@pytest.mark.parametrize("bad", [(0.0, 1e9, 0.95), (1e9, np.nan, 0.95), (1e9, 1e9, 1.0)])
def test_bad_arguments_of_the_band(fit, bad):
    with pytest.raises(ConvexlawError, match=r"must be positive and finite|between 0 and 1"):
        fit.band(*bad, resamples=60)


def test_the_command_gives_what_the_library_gives(saved, capsys, tmp_path):
    asked = ["--size", "7e9", "--tokens", "1.4e11", "--size", "2e9", "--tokens", "2e10", "--flops", "1e21"]
    out = tmp_path / "out"
    code, text, _ = run(capsys, saved, *asked, "--level", "0.9", "--json", "--out", str(out))
    assert code == 0
    told = json.loads(text)
    back = load_fit(saved)
    n, d = np.array([7e9, 2e9]), np.array([1.4e11, 2e10])
    frame = pd.DataFrame(told["forecasts"])
    low, high = back.band(n, d, 0.9)
    assert frame["loss"].to_numpy() == pytest.approx(back.predict(n, d), rel=1e-12)
    assert frame["low"].to_numpy() == pytest.approx(low, rel=1e-12)
    assert frame["high"].to_numpy() == pytest.approx(high, rel=1e-12)
    assert frame["FLOPs"].tolist() == pytest.approx([5.88e21, 2.4e20])
    assert frame["against the first"].tolist() == pytest.approx([0.0, frame["loss"][1] - frame["loss"][0]])
    best = back.optimal(1e21, level=0.9)
    row = told["optimal"][0]
    assert (row["N"], row["D"]) == pytest.approx(tuple(best))
    assert (row["loss low"], row["loss high"]) == pytest.approx(best.loss_interval)
    assert told["warnings"] == []
    written = pd.read_csv(out / "forecast.csv")
    pd.testing.assert_frame_equal(written, frame, check_dtype=False)
    assert len(pd.read_csv(out / "optimal.csv")) == 1
    assert (out / "forecast.png").stat().st_size > 10_000


def test_the_command_on_screen(saved, capsys):
    code, text, _ = run(capsys, saved, "--size", "1e9", "--size", "7e9", "--tokens", "1e13")
    assert code == 0
    assert "final loss in nats, 95% limits" in text
    assert "compute-optimal" not in text
    assert "Beware:" in text  # 100 times the tokens of the fitted rows
    assert "1e+13" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "holds a fit of a table: give --size N and --tokens D, or a budget --flops C"),
        (["--schedule", "constant:steps=9,peak=1"], "--schedule is for a fit of curves"),
        (["--compare", "x", "--batch-size", "2"], "--compare, --batch-size are for a fit of curves"),
        (["--size", "1e9"], "--size is given alone"),
        (["--tokens", "1e9"], "--tokens is given alone"),
        (["--size", "1", "--size", "2", "--size", "3", "--tokens", "1", "--tokens", "2"], "3 --size and 2"),
        (["--size", "0", "--tokens", "1e9"], "N must be positive"),
        (["--size", "1e9", "--tokens", "nan"], "D must be positive"),
        (["--flops", "-1"], "flops must be positive"),
        (["--size", "big", "--tokens", "1e9"], "'--size'"),
    ],
)
def test_mistakes_are_one_line(saved, capsys, tmp_path, arguments, words):
    out = tmp_path / "out"
    code, text, error = run(capsys, saved, *arguments, "--out", str(out))
    assert code == 2
    assert not text
    assert words in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_the_figure_shows_predictions_bands_and_rows(fit):
    n, d = np.array([7e9, 2e9, 7e9]), np.array([1.4e11, 2e10, 1e9])
    fit.interval(resamples=1000)
    ax = plot_table_forecast(fit, n, d, level=0.9)
    rows, *curves = ax.lines
    assert rows.get_ydata() == pytest.approx(simulated(0)["loss"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "fitted rows",
        "N = 2e+09",
        "N = 7e+09",
    ]
    for size, line, marks, shade in zip((2e9, 7e9), curves[::2], curves[1::2], ax.collections, strict=True):
        assert line.get_ydata() == pytest.approx(fit.model.loss(size, line.get_xdata()))
        assert sorted(marks.get_xdata()) == sorted(d[n == size])
        low, high = fit.band(size, line.get_xdata(), 0.9)
        edge = shade.get_paths()[0].vertices[:, 1]
        assert (edge.min(), edge.max()) == pytest.approx((low.min(), high.max()))
    plt.close("all")
