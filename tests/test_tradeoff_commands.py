"""The commands tradeoff and design: tables, JSON, files, errors; the figures of the theory of selection."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw.cli import main
from convexlaw.errors import ConvexlawError
from convexlaw.figures.amp import plot_convergence
from convexlaw.figures.designs import plot_designs
from convexlaw.figures.scalar import plot_scalar_limits
from convexlaw.figures.tradeoff import plot_tradeoff
from convexlaw.simulations.monte_carlo import QUANTITIES, Setting, along_scale, monte_carlo
from convexlaw.solvers.amp import amp_slope
from convexlaw.theory.designs import compare_designs, gradient_design, optimal_lasso, optimal_two_level
from convexlaw.theory.scalar_limit import BH, Lasso, Prior, TwoLevel, limiting_function
from convexlaw.theory.state_evolution import solve
from convexlaw.theory.tradeoff import (
    complete_lasso_region,
    donoho_tanner_power,
    lasso_fdp,
    rows_needed,
    slope_fdp_lower,
    tradeoff_curve,
    two_level_fdp,
)


def run(capsys, *args):
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    out = capsys.readouterr()
    return stop.value.code, out.out, out.err


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_tradeoff_command(capsys, tmp_path):
    code, out, _ = run(
        capsys,
        "tradeoff",
        "--delta",
        "0.3",
        "--epsilon",
        "0.2",
        "--tpp",
        "0.7",
        "--fdp",
        "0.4",
        "--out",
        str(tmp_path),
    )
    assert code == 0
    assert f"{two_level_fdp(0.7, 0.3, 0.2):.4f}" in out
    assert f"{slope_fdp_lower(0.7, 0.3, 0.2):.4f}" in out
    assert "0.5676" in out
    assert "1.8642 on the top 0.1073" in out
    assert f"{rows_needed(0.7, 0.4, 0.2):.4f}" in out
    table = pd.read_csv(tmp_path / "tradeoff.csv")
    assert list(table.columns) == ["tpp", "lasso", "slope_upper", "two_level", "slope_lower"]
    assert table.shape[0] == 201
    np.testing.assert_allclose(table.lasso[80], lasso_fdp(0.4, 0.3, 0.2))
    assert (tmp_path / "tradeoff.png").stat().st_size > 10_000


def test_tradeoff_json_from_counts(capsys):
    code, out, _ = run(
        capsys,
        "tradeoff",
        "--rows",
        "300",
        "--features",
        "1000",
        "--signals",
        "200",
        "--tpp",
        "0.5",
        "--tpp",
        "0.9",
        "--json",
    )
    assert code == 0
    value = json.loads(out)
    assert (value["delta"], value["epsilon"]) == (0.3, 0.2)
    assert value["fdp"]["lasso"][1] is None
    assert value["fdp"]["two_level"] == pytest.approx([two_level_fdp(u, 0.3, 0.2) for u in (0.5, 0.9)])
    assert value["lasso_power_limit"] == donoho_tanner_power(0.3, 0.2)
    assert value["two_level_designs"][0]["branch"] == "far cluster"
    assert value["crossings"]["dagger"] == pytest.approx(0.52826, abs=1e-5)


def test_design_command(capsys, tmp_path):
    code, out, _ = run(
        capsys,
        "design",
        "--prior",
        "1:0.5",
        "--delta",
        "0.5",
        "--sigma",
        "0.2",
        "--out",
        str(tmp_path / "w.csv"),
    )
    assert code == 0
    for number in ("0.4029", "0.2816", "0.2613"):
        assert number in out
    state = optimal_two_level(Prior.parse("1:0.5"), 0.5, 0.2)
    assert f"lambda = {state.lam.alpha1:.5g} on the top" in out
    weights = pd.read_csv(tmp_path / "w.csv")
    assert weights.shape == (1000, 4)
    np.testing.assert_allclose(weights.two_level_lambda[10:90], state.lam.alpha1)
    np.testing.assert_allclose(weights.two_level_lambda[110:], state.lam.alpha2)
    code, out, _ = run(
        capsys, "design", "--prior", "N(0,1):0.2", "--rows", "400", "--features", "800", "--sigma", "0.4",
        "--level", "0.05", "--improve", "1.5", "--out", str(tmp_path / "d.png"), "--json",
    )  # fmt: skip
    assert code == 0
    value = json.loads(out)
    assert [d["penalty"]["type"] for d in value["designs"]][:3] == ["lasso", "two_level", "sequence"]
    assert len(value["designs"]) == 5
    assert value["designs"][3]["threshold"] == pytest.approx(1.96, abs=0.01)
    assert (tmp_path / "d.png").exists()


def test_units_of_standardised_columns(capsys):
    """The same problem stated in both units: lambda agrees, MSE differs by n."""
    args = ("--rows", "400", "--features", "800", "--sigma", "1", "--json")
    _, norm, _ = run(capsys, "design", "--prior", "4:0.1", *args)
    _, variance, _ = run(capsys, "design", "--prior", "0.2:0.1", *args, "--standardised")
    a, b = json.loads(norm)["designs"][0], json.loads(variance)["designs"][0]
    assert a["MSE"] == pytest.approx(400 * b["MSE"])
    assert a["use"] == b["use"]
    assert "standardised columns: alpha" in a["use"]


@pytest.mark.parametrize(
    ("args", "rule"),
    [
        (("tradeoff", "--epsilon", "0.2"), "--delta"),
        (("tradeoff", "--delta", "0.3"), "--epsilon"),
        (("tradeoff", "--delta", "0.3", "--epsilon", "0"), "(0, 1]"),
        (("tradeoff", "--delta", "0.3", "--epsilon", "0.2", "--tpp", "1.5"), "[0, 1]"),
        (("tradeoff", "--delta", "0.3", "--epsilon", "0.2", "--out", "x.docx"), ".docx"),
        (("tradeoff", "--rows", "3", "--features", "0", "--epsilon", "0.2"), "at least 1"),
        (("tradeoff", "--delta", "0.3", "--signals", "4"), "--features"),
        (("design", "--prior", "1:0.2:x", "--delta", "0.5", "--sigma", "0.1"), "value:weight"),
        (("design", "--prior", "0:1", "--delta", "0.5", "--sigma", "0.1"), "no signals"),
        (("design", "--prior", "1:0.2", "--delta", "0.5", "--sigma", "-1"), "sigma = -1"),
        (("design", "--prior", "1:0.2", "--delta", "0.5", "--sigma", "1", "--standardised"), "--features"),
    ],
)
def test_errors_are_one_line(capsys, args, rule):
    code, out, err = run(capsys, *args)
    assert code == 2
    assert out == ""
    assert rule in err
    assert err.count("\n") == 1


def test_every_result_draws_itself():
    prior = Prior.parse("4:0.2")
    state = solve(prior, TwoLevel(2.0, 1.0, 0.2), 0.64, 0.5)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 120)) / np.sqrt(60)
    message = amp_slope(X, X[:, :5].sum(axis=1) * 3 + 0.2 * rng.standard_normal(60), lam=BH(0.5, 0.2))
    sweep = monte_carlo(
        along_scale(Setting(Prior.bernoulli_gaussian(0.1), BH(1.0, 0.2), 0.5, 0.2, 60), [0.9, 1.2]), 2
    )
    for result in (
        state,
        state.limit,
        tradeoff_curve("two_level", 0.3, 0.2, n=21),
        complete_lasso_region(0.5, 0.3, n=21),
        optimal_lasso(prior, 0.64, 0.5),
        compare_designs(prior, 0.64, [0.3, 0.6]),
        compare_designs([Prior.two_point(e, 4.0) for e in (0.1, 0.2)], 0.64, 0.5),
        gradient_design(prior, 0.64, 0.5, Lasso(1.0), p=30, max_iter=3, rng=0),
        message,
        sweep,
    ):
        axes = result.plot()
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.lines
        _, given = plt.subplots()
        assert result.plot(given) is given
        axes.figure.canvas.draw()


@pytest.mark.parametrize(("delta", "epsilon"), [(0.3, 0.2), (0.3, 0.5), (0.1, 0.3), (0.7, 0.6)])
def test_words_in_a_small_panel_lie_inside_the_axes(delta, epsilon):
    figure, panels = plt.subplots(1, 3, figsize=(12.0, 4.2))
    axes = plot_tradeoff(delta, epsilon, panels[1], n=41)
    figure.canvas.draw()
    frame = axes.get_window_extent()
    assert len(axes.texts) >= 3
    for label in axes.texts:
        box = label.get_window_extent()
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1, label.get_text()


def test_figures_tell_curves_apart_without_colour():
    for axes in (
        plot_tradeoff(0.3, 0.2, n=61),
        plot_designs([f(Prior.parse("1:0.5"), 0.5, 0.2) for f in (optimal_lasso, optimal_two_level)]),
        plot_scalar_limits(
            {
                k: limiting_function(Prior.parse("4:0.2"), s, 1.0)
                for k, s in (("a", Lasso(1.5)), ("b", BH(0.6, 0.5)))
            }
        ),
        plot_convergence({"a": [1, 0.1, 0.01], "b": [1, 0.5, 0.2]}),
    ):
        named = [line for line in axes.lines if not line.get_label().startswith("_")]
        assert len(named) >= 2
        dashes = {str(line._unscaled_dash_pattern) for line in named}
        assert len(dashes) == len(named)
    zoom = plot_tradeoff(0.3, 0.2, tpp=(0.5, 0.6), n=401)
    texts = [t.get_text() for t in zoom.texts]
    assert any("0.5676" in t for t in texts)
    assert any("0.5283" in t for t in texts)
    assert plot_tradeoff(0.6, 0.25, n=41, kinds=("lasso", "two_level")).lines


def test_figure_errors():
    sweep = monte_carlo(Setting(Prior.bernoulli_gaussian(0.1), Lasso(1.5), 0.5, 0.2, 60), 2)
    with pytest.raises(ConvexlawError, match="quantity"):
        sweep.plot(quantities=("recall",))
    with pytest.raises(ConvexlawError, match="one place a setting"):
        sweep.plot(x=[1.0, 2.0])
    assert sweep.plot(quantities=("mse",)).get_ylabel() == "MSE"
    from convexlaw.figures import monte_carlo as figure

    assert figure.QUANTITIES == QUANTITIES
