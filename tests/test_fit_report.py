"""What the pages of fits draw and say: plotted data, axes, limits, and what the pages name."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw import fit_curves, fit_table, read_runs
from convexlaw.figures import fits
from convexlaw.report.curves import curve_report, default_schedules
from convexlaw.report.page import Page, format_column
from convexlaw.report.tables import profile_grid, table_report
from convexlaw.solvers._fit_profile import profiled
from convexlaw.theory.laws import CVX4q, Kaplan
from convexlaw.theory.schedules import parse

TEXTS = {
    "a": "cosine:steps=400,peak=1e-3,warmup=20",
    "b": "wsd:steps=400,peak=1e-3,decay=0.3,warmup=20",
    "c": "constant:steps=400,peak=2e-4,warmup=20",
}


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    parts = []
    for name, text in TEXTS.items():
        at = np.arange(0, 400, 4)
        loss = CVX4q(2.0, 0.5, 20.0, 0.45).predict(parse(text), at) * np.exp(1e-3 * rng.normal(size=at.size))
        if name == "c":
            loss[5:8] *= 1.2  # three residuals of 0.18 among hundreds of 0.001
        parts.append(pd.DataFrame({"run": name, "step": at, "loss": loss}))
    return read_runs(pd.concat(parts), schedule={n: parse(t) for n, t in TEXTS.items()})


@pytest.fixture(scope="module")
def fit(runs):
    return fit_curves(runs, "cvx4q", train=["a", "b"])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_residuals_are_drawn_whole_and_those_beyond_the_axis_are_counted(fit):
    ax = fits.plot_residuals(fit)
    rest = fit.residuals()
    drawn = np.concatenate([line.get_ydata() for line in ax.lines[:-1]])
    assert np.sort(drawn) == pytest.approx(np.sort(1e3 * rest["residual"]))
    low, high = ax.get_ylim()
    beyond = int(np.sum((drawn < low) | (drawn > high)))
    assert beyond == 3
    assert ax.get_title(loc="left").startswith(f"{beyond} of {len(rest)} residuals lie beyond the axis")
    assert f"{drawn.max():.3g}" in ax.get_title(loc="left")
    inside = drawn[(drawn > low) & (drawn < high)]
    assert np.abs(inside).max() > 0.25 * high  # the axis is that of the others


def test_residuals_without_outliers_fill_the_axis(runs):
    fit = fit_curves(runs, "cvx4q", train=["a", "b"])
    few = fits.plot_residuals(fit_curves(runs.select(["a", "b"]), "cvx4q"))
    assert not few.get_title(loc="left")
    drawn = np.concatenate([line.get_ydata() for line in few.lines[:-1]])
    assert few.get_ylim()[0] < drawn.min() < drawn.max() < few.get_ylim()[1]
    assert fit.train == ("a", "b")


def test_a_short_axis_of_steps_has_several_labels(fit):
    ax = fits.plot_residuals(fit)
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    shown = [
        t.get_text()
        for t, at in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True)
        if low <= at <= high and t.get_text()
    ]
    assert len(shown) >= 3
    assert all(re.fullmatch(r"\d+", text) for text in shown)


def test_the_learning_rates_of_all_panels_have_one_scale(fit):
    figure = fits.plot_schedule_panel(fit)
    below = figure.axes[1::2]
    assert all(ax.get_ylim() == pytest.approx((0.0, 1.15)) for ax in below)
    assert below[0].get_ylabel() == "LR (1e-3)"
    peaks = {ax.lines[0].get_ydata().max() for ax in below}
    assert sorted(peaks) == pytest.approx([0.2, 1.0], rel=0.02)
    assert figure.get_size_inches()[0] * 96 <= 62 * 16 - 3 * 16  # as wide as a page: letters keep their size


def test_the_profiles_show_both_limits(fit):
    limits = {m: fit.interval(method=m) for m in ("profile", "bootstrap")}
    figure = profile_grid(fit, 0.95)
    for name, ax in zip(fit.params, figure.axes, strict=False):
        assert ax.get_xlabel() == name
        dotted = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
        assert dotted == pytest.approx(limits["bootstrap"].loc[name, ["low", "high"]].tolist())
        (shade,) = ax.patches
        edges = shade.get_x(), shade.get_x() + shade.get_width()
        assert edges == pytest.approx(limits["profile"].loc[name, ["low", "high"]].tolist())


def test_the_page_of_a_kaplan_fit_is_whole(tmp_path):
    """Kaplan's Nc is no parameter of the engine: the page draws the profiles of the others."""
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 1e10, 4), np.geomspace(1e9, 1e11, 4)))
    noise = np.exp(2e-3 * np.random.default_rng(0).normal(size=N.size))
    fit = fit_table(
        pd.DataFrame({"N": N, "D": D, "loss": Kaplan(8e12, 3e13, 0.09, 0.11).loss(N, D) * noise}), "kaplan"
    )
    page = table_report(fit, tmp_path, command="x").read_text(encoding="utf-8")
    assert "Dotted: the limits of the table" in page
    assert (tmp_path / "profiles.png").stat().st_size > 10_000
    assert profiled(fit) == ["Dc", "alphaN", "alphaD"]


def test_the_page_says_which_limits_are_which_and_each_parameter_once(fit, runs, tmp_path):
    page = curve_report(fit, runs, tmp_path, command="x", schedules={"s": TEXTS["a"]}).read_text(
        encoding="utf-8"
    )
    assert "95% limits: percentiles of refits to resampled losses (bootstrap)." in page
    assert "Shaded: the limits of this profile" in page
    assert "converged" in page
    assert f"{fit.params['alpha']:.6g}" not in page  # the table has it, rounded


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("warmup", [20, 37])
def test_the_warmup_asked_about_is_that_of_the_runs(warmup, first):
    """Also where the log counts from 1: a ramp of peak (t + 1)/warmup is one of ``warmup`` steps."""
    t = np.arange(400)
    lr = 1e-3 * np.minimum((t + first) / warmup, 1.0)
    at = np.arange(0, 400, 4)
    loss = CVX4q(2.0, 0.5, 20.0, 0.45).predict(lr, at)
    table = read_runs(pd.DataFrame({"run": "a", "step": at, "loss": loss}), schedule=lr)
    for text in default_schedules(table, ["a"]).values():
        assert f"warmup={warmup}" in text
        assert (
            np.abs(parse(text)[:400][: warmup + 1] - lr[: warmup + 1]).max()
            <= 1.3e-3 / warmup + 1.3e-3 * warmup / 400
        )


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([-0.035812, 0.0047684, 0.0], ["-0.03581", "0.00477", "0.00000"]),
        ([0.003, 0.001], ["0.003", "0.001"]),
        ([1.5952, 1.4], ["1.595", "1.400"]),
        ([1.8, 2143.5], ["1.8", "2144"]),  # of too different sizes
        ([1, 20, 300], ["1", "20", "300"]),
        ([float("nan"), None, 0.25, "x"], ["–", "–", "0.25", "x"]),
        ([float("inf"), 0.12345, 0.3], ["∞", "0.1235", "0.3000"]),
        ([1.5e9, 2.5e9], ["1500000000", "2500000000"]),
        ([1.23456e-7, 2e-7], ["1.235e-07", "2.000e-07"]),
        ([np.float64(0.5), np.int64(3)], ["0.5", "3"]),
        ([], []),
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(values, texts):
    assert format_column(values) == texts


def test_figures_are_shown_as_wide_as_drawn(tmp_path):
    page = Page(tmp_path, "t")
    for inches in (4.0, 8.0):
        figure, ax = plt.subplots(figsize=(inches, 2.0))
        ax.plot([0, 1])
        page.figure(figure, f"f{inches:g}", "c")
    text = page.write("x").read_text(encoding="utf-8")
    assert [int(w) for w in re.findall(r'<img width="(\d+)"', text)] == [384, 768]
