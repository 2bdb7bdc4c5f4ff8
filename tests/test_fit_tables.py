"""Scaling laws of tables: optima by brute force, columns, intervals, the public points."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

from convexlaw import ConvexlawError, ExtrapolationWarning, fit_table
from convexlaw.solvers.fit_table import per_size, table_columns
from convexlaw.theory.laws import Chinchilla, Kaplan, TwoDimensional, table_law

LAWS = [
    Chinchilla(E=1.8, A=480.0, B=2100.0, alpha=0.35, beta=0.37),
    Kaplan(Nc=8e12, Dc=3e13, alphaN=0.09, alphaD=0.11),
    TwoDimensional(E=1.85, A=380.0, c0=12000.0, a=0.33, k=0.05),
]


def grid_table(law=LAWS[0], noise=3e-3, seed=0, sizes=6):
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 1e10, sizes), np.geomspace(1e9, 1e11, sizes)))
    loss = law.loss(N, D) * np.exp(noise * np.random.default_rng(seed).normal(size=N.size))
    return pd.DataFrame({"N": N, "D": D, "loss": loss})


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_compute_optimum_by_brute_force(law):
    for flops in (1e19, 1e23):
        N, D = law.optimal(flops)
        assert 6 * N * D == pytest.approx(flops)
        best = minimize_scalar(
            lambda x, c=flops: float(law.loss(np.exp(x), c / 6 / np.exp(x))),
            bounds=(10, 40),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert float(law.loss(N, D)) == pytest.approx(best.fun, rel=1e-12)
        assert np.log(float(N)) == pytest.approx(best.x, abs=1e-4)
    one, two = law.optimal(np.array([1e20, 1e22]))[0]
    assert np.log(two / one) / np.log(100) == pytest.approx(law.exponent, rel=1e-9)


def test_laws_by_hand():
    assert LAWS[0].loss(1e9, 1e10) == pytest.approx(1.8 + 480 * 1e9**-0.35 + 2100 * 1e10**-0.37)
    assert LAWS[1].loss(1e9, 1e10) == pytest.approx(((8e12 / 1e9) ** (0.09 / 0.11) + 3e13 / 1e10) ** 0.11)
    assert LAWS[2].loss(1e9, 1e10) == pytest.approx(1.85 + 380 * 1e9**-0.33 + 12000 * 1e9**0.05 / 1e5)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_fit_predicts_its_table(law):
    frame = grid_table(law)
    fit = fit_table(frame, law.name)
    assert fit.converged
    assert fit.score().iloc[0]["r2"] > 0.99
    assert fit.predict(1e9, 1e10) == pytest.approx(law.loss(1e9, 1e10), rel=5e-3)
    limits = fit.interval(method="profile")
    for name, value in law.params.items():
        assert limits.loc[name, "low"] < fit.params[name] < limits.loc[name, "high"]
        # wide enough by half an interval either way in every seed tried: no test of the coverage
        width = np.log(limits.loc[name, "high"] / limits.loc[name, "low"]) if value > 0 else 1.0
        assert abs(np.log(value / fit.params[name])) < width
    best = fit.optimal(1e20, resamples=60)
    assert best.N_interval[0] < best.N < best.N_interval[1]
    assert best.exponent_interval[0] < best.exponent < best.exponent_interval[1]
    assert str(fit).count("\n") < 12
    assert str(best).count("\n") < 12
    N, D = best
    assert (N, D) == (best.N, best.D)
    assert 6 * N * D == pytest.approx(1e20)
    assert fit.plot().get_xlabel() == "D (tokens)"


def test_bootstrap_of_rows_repeats_whatever_the_number_of_processes():
    one = fit_table(grid_table()).interval(resamples=60, seed=2)
    two = fit_table(grid_table()).interval(resamples=60, seed=2, jobs=2)
    pd.testing.assert_frame_equal(one, two)


def test_far_questions_are_warned_about():
    fit = fit_table(grid_table())
    fit.optimal(1e20, resamples=20)
    with pytest.warns(ExtrapolationWarning, match="1e\\+24 FLOPs"):
        fit.optimal(1e24, resamples=20)
    with pytest.warns(ExtrapolationWarning, match="N 1e\\+12"):
        fit.predict(1e12, 1e10)
    fit.predict([1e8, 3e10], [1e9, 3e11])
    far = grid_table().assign(D=lambda t: 1e3 * t["D"])
    with pytest.warns(ExtrapolationWarning, match=r"D 1e\+12 to 1e\+14 against 1e\+09 to 1e\+11") as caught:
        fit.score(far)
    assert caught[0].filename == __file__
    narrow = fit_table(grid_table().query("N < 1e9"))
    with pytest.warns(ExtrapolationWarning, match=r"optimum lies beyond .*\(best N "):
        narrow.optimal(1.4e21, resamples=20)


def test_columns_have_other_names():
    frame = grid_table()
    other = frame.rename(columns={"N": "params", "D": "Tokens", "loss": "final_loss"})
    assert fit_table(other).params == fit_table(frame).params
    flops = frame.assign(flops=6 * frame["N"] * frame["D"]).drop(columns="D")
    assert fit_table(flops).params["alpha"] == pytest.approx(fit_table(frame).params["alpha"], rel=1e-6)
    assert table_columns(flops)[1] == pytest.approx(frame["D"])


def test_largest_losses_can_be_left_out():
    frame = grid_table()
    odd = frame.copy()
    odd.loc[[0, 1], "loss"] = 50.0
    fit = fit_table(odd, exclude_largest=2)
    assert fit.params == fit_table(frame.drop(index=[0, 1])).params
    assert "2 rows of largest loss" in fit.notes[0]


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda f: f.drop(columns="N"), {}, "no N"),
        (lambda f: f.assign(loss=-1.0), {}, "row 0: loss = -1"),
        (lambda f: f.assign(N="big"), {}, "no numbers"),
        (lambda f: f.head(5), {}, "5 losses to fit 5 parameters"),
        (lambda f: f, {"law": "cubic"}, "cubic"),
        (lambda f: f, {"exclude_largest": 36}, "exclude_largest"),
        (lambda f: f, {"law": "kaplan", "fixed": {"Nc": 1e13}}, "Nc cannot be held"),
    ],
)
def test_bad_tables_are_refused(change, options, words):
    with pytest.raises(ConvexlawError, match=words):
        fit_table(change(grid_table()), **options)


def test_questions_without_an_answer():
    with pytest.raises(ConvexlawError, match="no compute-optimal size"):
        Chinchilla(E=1.8, A=0.0, B=2100.0, alpha=0.35, beta=0.37).optimal(1e20)
    with pytest.raises(ConvexlawError, match="no compute-optimal size"):
        TwoDimensional(E=1.8, A=300.0, c0=1e4, a=0.3, k=-0.6).optimal(1e20)
    with pytest.raises(ConvexlawError, match="flops"):
        LAWS[0].optimal(-1.0)
    with pytest.raises(ConvexlawError, match="D must be positive"):
        LAWS[0].loss(1e9, 0.0)
    fit = fit_table(grid_table())
    for options in ({"method": "delta"}, {"level": 2.0}):
        with pytest.raises(ConvexlawError):
            fit.interval(**options)


def test_per_size_is_ordinary_least_squares():
    frame = grid_table(LAWS[2], noise=1e-2)
    found = per_size(frame)
    assert len(found) == 6
    for row, (_, part) in zip(found.to_dict("records"), frame.groupby("N"), strict=True):
        x = np.column_stack([np.ones(len(part)), part["D"] ** -0.5])
        c = np.linalg.lstsq(x, part["loss"], rcond=None)[0]
        assert (row["Linf"], row["C"]) == pytest.approx(tuple(c))
        assert row["r2"] == pytest.approx(np.corrcoef(x @ c, part["loss"])[0, 1] ** 2)
    with pytest.raises(ConvexlawError, match="no size has two"):
        per_size(frame.drop_duplicates("N"))


@pytest.mark.shared
def test_public_points_give_the_reference_optimum(shared, golden):
    value = next(v for v in golden("loss_laws_and_batches")["values"] if v["kind"] == "chinchilla_fit")
    frame = pd.read_csv(shared / "data" / "chinchilla" / "points.csv")
    fit = fit_table(frame, exclude_largest=5)
    want = value["expected"]
    assert fit.objective == pytest.approx(want["objective"], rel=1e-6)
    for name in ("A", "B", "E", "alpha", "beta"):
        assert fit.params[name] == pytest.approx(want[name], rel=1e-4)
    whole = fit_table(frame)
    for name, number in {"A": 495.7, "B": 12845, "E": 1.8913, "alpha": 0.3493, "beta": 0.4530}.items():
        assert whole.params[name] == pytest.approx(number, rel=5e-3)
    assert fit.model.exponent == pytest.approx(0.5139, abs=1e-4)


@pytest.mark.shared
def test_public_points_size_by_size(shared, golden):
    values = [v for v in golden("loss_laws_and_batches")["values"] if v["kind"] == "per_size_inv_sqrt_fit"]
    assert len(values) >= 5
    points = pd.read_csv(shared / "data" / "chinchilla" / "points.csv")
    found = per_size(points)
    for value in values:
        row = found.iloc[(found["N"] / 1e9 - value["inputs"]["N_B"]).abs().argmin()]
        for name in ("Linf", "C", "r2"):
            assert row[name] == pytest.approx(value["expected"][name], rel=1e-6)
    # Table 2 of arXiv 2602.07145, to its three decimals: size, runs, Linf, R2
    table = """0.074 5 2.825 .991|0.140 7 2.670 .991|0.279 8 2.498 .999|0.425 8 2.430 .998|0.632 8 2.367 .998
    1.143 10 2.275 .998|1.429 9 2.253 .996|1.611 9 2.228 .995|2.004 8 2.178 .999
    2.280 7 2.128 1.000|2.979 10 2.016 .990|4.519 6 2.106 .978|6.792 8 2.023 .999
    9.290 4 2.046 .988|12.56 3 2.053 1.000"""
    for line in table.replace("\n", "|").split("|"):
        size, runs, level, r2 = map(float, line.split())
        row = found.iloc[(found["N"] / 1e9 - size).abs().argmin()]
        assert row["points"] == runs
        assert row["Linf"] == pytest.approx(level, abs=5e-4)
        assert row["r2"] == pytest.approx(r2, abs=5e-4)
    # joined as widely as 2 %, the sizes of 1.424B and 1.429B would be one
    wide = per_size(points, rtol=0.02)
    assert wide.iloc[(wide["N"] / 1e9 - 1.429).abs().argmin()]["points"] > 9


def test_sizes_are_joined_by_their_neighbours():
    N = np.repeat([1e8, 1.0005e8, 1.001e8, 1.01e8], 2)
    D = np.tile([1e9, 4e9], 4)
    frame = pd.DataFrame({"N": N, "D": D, "loss": 2 + 1e4 / np.sqrt(D)}).iloc[::-1]
    assert list(per_size(frame)["points"]) == [6, 2]
    assert list(per_size(frame, rtol=0)["points"]) == [2, 2, 2, 2]
    assert list(per_size(frame, rtol=0.02)["points"]) == [8]
    for rtol in (-1e-3, 1.0, np.nan):
        with pytest.raises(ConvexlawError, match="rtol"):
            per_size(frame, rtol=rtol)


@pytest.mark.shared
@pytest.mark.slow
def test_public_points_bootstrap_limits(shared):
    """4000 resamples, against the reference refit's limits: 10 % for E, alpha, beta and for log A, log B."""
    fit = fit_table(pd.read_csv(shared / "data" / "chinchilla" / "points.csv"), exclude_largest=5)
    found = fit.interval(resamples=4000)
    want = {
        "A": (285, 744),
        "B": (1042, 5810),
        "E": (1.769, 1.871),
        "alpha": (0.317, 0.373),
        "beta": (0.331, 0.415),
    }
    for name, limits in want.items():
        for edge, value in zip(("low", "high"), limits, strict=True):
            ours = found.loc[name, edge]
            if name in "AB":
                ours, value = np.log(ours), np.log(value)
            assert ours == pytest.approx(value, rel=0.1)
    assert fit.optimal(1e21, resamples=4000).exponent_interval == pytest.approx((0.483, 0.554), abs=5e-3)


def test_laws_of_tables_are_known_by_name():
    assert table_law("kaplan") is Kaplan
    assert [law.name for law in LAWS] == ["chinchilla", "kaplan", "two_dimensional"]
