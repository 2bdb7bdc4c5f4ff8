"""Which columns and rows of a table are used, and why not the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from convexlaw import ConvexlawError
from convexlaw.solvers.analysis import analyse
from convexlaw.solvers.screening import numeric_columns, screen

N = 60


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"y": rng.normal(size=N), "x": rng.normal(size=N)})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.arange(N), "an identifier (counts the rows)"),
        (np.arange(N) + 5001, "an identifier (counts the rows)"),
        ([f"name {i}" for i in range(N)], "an identifier (text, no value occurs twice)"),
        (pd.date_range("2020-01-01", periods=N), "dates"),
        (pd.date_range("2020-01-01", periods=N).astype(str), "dates"),
        ([f"{d:02d}/03/2021 12:00" for d in range(1, 29)] * 2 + ["01/04/2021 12:00"] * 4, "dates"),
        (np.full(N, 7), "constant"),
        (["same"] * N, "constant"),
        (np.full(N, np.nan), "no values"),
        (np.r_[np.full(40, np.nan), np.arange(20) ** 2], "67% of the values are missing"),
        ([f"w{i % 40}" for i in range(N)], "text with 40 levels"),
    ],
)
def test_what_is_not_used(table: pd.DataFrame, values: object, reason: str) -> None:
    found = screen(table.assign(extra=values), ["y"])
    assert found.features == ("x",)
    assert reason in found.columns["extra"]
    assert any("extra" in line and reason in line for line in found.sentences)
    assert len(found.frame) == N


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).permutation(N),
        np.random.default_rng(1).integers(1900, 2020, N),
        [("a", "b", "c")[i % 3] for i in range(N)],
        np.arange(N) % 2 == 0,
        pd.array([i % 7 for i in range(N)], dtype="Int64"),
        pd.Categorical([("a", "b")[i % 2] for i in range(N)]),
        [f"{i}-{i}" for i in range(20)] * 3,
    ],
    ids=["whole", "years", "text", "boolean", "nullable", "categorical", "codes"],
)
def test_what_is_used(table: pd.DataFrame, values: object) -> None:
    found = screen(table.assign(extra=values), ["y"])
    assert found.features == ("x", "extra")
    assert not found.columns


def test_identifiers_by_name(table: pd.DataFrame) -> None:
    shuffled = np.random.default_rng(1).permutation(10_000)[:N]
    found = screen(table.assign(patient_id=shuffled, paid=shuffled), ["y"])
    assert found.columns == {"patient_id": "an identifier"}
    # a formula that names it wants it
    assert screen(table.assign(patient_id=shuffled), ["y"], keep=["patient_id"]).features == (
        "x",
        "patient_id",
    )


def test_numbers_written_as_text(table: pd.DataFrame) -> None:
    text = [f" {v:.3f}" for v in table["x"]]
    money = [f"{1000 * (i + 1):,}.50" for i in range(N)]
    marks = [("?" if i % 20 == 0 else str(i**2)) for i in range(N)]
    typo = [("abc" if i == 7 else str(i**2)) for i in range(N)]
    found = screen(table.assign(text=text, money=money, marks=marks, typo=typo), ["y"])
    assert [d.kind for d in found.frame.dtypes] == ["f"] * 6
    assert found.frame["money"].iloc[0] == 2000.5
    assert found.rows == {"a value is missing (marks 3, typo 1)": 4}
    assert any("typo" in note and "'abc'" in note for note in found.notes)
    assert any("marks" in note and "3 marks for missing" in note for note in found.notes)
    assert set(found.frame.index) == set(range(N)) - {0, 7, 20, 40}
    np.testing.assert_allclose(numeric_columns(table.assign(t=text))["t"], table["x"].round(3))


def test_rows_without_values(table: pd.DataFrame) -> None:
    table.loc[3, "y"] = np.nan
    table.loc[[3, 4, 5], "x"] = [np.nan, np.inf, np.nan]
    found = screen(table, ["y"])
    assert found.rows == {"the response is missing": 1, "a value is missing (x 2)": 2}
    assert len(found.frame) == N - 3
    with pytest.raises(ConvexlawError, match=r"column 'y' row 3; column 'x' rows 3, 4, 5"):
        screen(table, ["y"], na="raise")


def test_constant_once_rows_are_dropped(table: pd.DataFrame) -> None:
    table["c"] = 1.0
    table.loc[0, "c"] = 2.0
    table.loc[0, "x"] = np.nan
    assert screen(table, ["y"]).columns == {"c": "constant in the complete rows"}


def test_remarks(table: pd.DataFrame) -> None:
    found = screen(table.assign(leak=3 - 2 * table["y"], code=np.arange(N) % 4), ["y"])
    assert any("leak is y in other units" in note for note in found.notes)
    assert any("code" in note and "C(name)" in note for note in found.notes)


def test_errors(table: pd.DataFrame) -> None:
    for responses, message in (
        (["z"], "no column 'z'"),
        (["Y"], "did you mean 'y'"),
    ):
        with pytest.raises(ConvexlawError, match=message):
            screen(table, responses)
    with pytest.raises(ConvexlawError, match="has 1 distinct"):
        screen(table.assign(k=1), ["k"])
    with pytest.raises(ConvexlawError, match="no usable feature"):
        screen(table.assign(x=1), ["y"])
    with pytest.raises(ConvexlawError, match="two columns are called"):
        screen(pd.concat([table, table[["x"]]], axis=1), ["y"])
    with pytest.raises(ConvexlawError, match="2 of 60 rows are complete"):
        screen(table.assign(x=np.where(np.arange(N) % 30 == 0, 1.0, np.nan), z=table["x"]), ["y"], keep=["x"])
    with pytest.raises(ConvexlawError, match="na = 'fill'"):
        screen(table, ["y"], na="fill")


@pytest.fixture
def mixed() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    frame["kind"] = rng.choice(["u", "v", "w"], 80)
    frame["y"] = 2 * frame["a"] + (frame["kind"] == "v") * 3.0 + rng.normal(size=80)
    return frame.assign(
        label=np.where(frame["y"] > 1, "yes", "no"),
        grade=np.select([frame["y"] < 0, frame["y"] < 2], ["low", "mid"], "high"),
        count=rng.poisson(np.exp(frame["a"] / 2 + 1)),
    )


QUICK = {"stability": 4, "folds": 3}


def test_analysis_of_mixed_columns(mixed: pd.DataFrame) -> None:
    found = analyse(mixed[[*"abcd", "kind", "y"]], ["y"], **QUICK)
    assert found.family == "gaussian"
    assert "kind[T.v]" in found.summary.names
    assert found.refit is not None
    assert found.refit.descriptive
    assert found.honest is not None
    assert not found.honest.descriptive
    new = found.predict(mixed.head(3), n_boot=30)
    np.testing.assert_allclose(new["prediction"], found.model.predict(mixed.head(3)))
    assert 0.3 < found.validated_ratio < found.summary.deviance_ratio
    assert "cross-validated" in found.verdict
    # the same seed, the same analysis
    again = analyse(mixed[[*"abcd", "kind", "y"]], ["y"], **QUICK)
    assert again.verdict == found.verdict
    np.testing.assert_array_equal(again.honest.coef, found.honest.coef)


def test_formula_and_families(mixed: pd.DataFrame) -> None:
    found = analyse(mixed, formula="np.exp(y / 9) ~ a:b + C(kind)", **QUICK)
    assert found.responses == ("np.exp(y / 9)",)
    assert found.summary.names == ("C(kind)[T.v]", "C(kind)[T.w]", "a:b")
    one = analyse(mixed, ["y"], formula="a + b", **QUICK)
    assert one.summary.names == ("a", "b")
    # rows that only unused columns miss are used
    assert analyse(mixed.assign(d=np.nan), ["y"], formula="a + b", **QUICK).summary.n == 80
    features = mixed[[*"abcd", "kind"]]
    for column, family, auto in (
        ("label", "binomial", "auto"),
        ("grade", "multinomial", "auto"),
        ("count", "poisson", "poisson"),
        ("y", "huber", "huber"),
    ):
        found = analyse(features.assign(r=mixed[column]), ["r"], family=auto, criterion=None, **QUICK)
        assert found.family == family
        assert found.summary.converged
        assert found.predict(mixed.head(4), n_boot=30).shape[0] == 4
    assert any("Huber threshold" in note for note in found.notes)
    both = analyse(features.assign(r=mixed["y"], s=mixed["count"]), ["r", "s"], **QUICK)
    assert both.summary.coef.shape[0] == 2


@pytest.mark.parametrize("penalty", ["bh", "gaussian", "oscar", "lasso", "two-level"])
def test_penalties(mixed: pd.DataFrame, penalty: str) -> None:
    found = analyse(mixed[[*"abcd", "y"]], ["y"], penalty=penalty, **QUICK)
    assert found.summary.converged
    assert abs(found.summary.coef[0]) > 1.0


def test_alpha_by_criterion_given_and_one_se(mixed: pd.DataFrame) -> None:
    table = mixed[[*"abcd", "y"]]
    for criterion in ("aic", "bic", "ebic", "gcv"):
        found = analyse(table, ["y"], criterion=criterion, **QUICK)
        at = found.choice.criteria.best(criterion)
        assert found.summary.alpha == found.choice.path.alphas[at]
    assert analyse(table, ["y"], alpha=0.25, **QUICK).summary.alpha == 0.25
    best, simple = (analyse(table, ["y"], rule=rule, **QUICK) for rule in ("min", "1se"))
    assert simple.summary.alpha >= best.summary.alpha
    assert simple.summary.alpha == simple.choice.curve.alphas[simple.choice.curve.one_se]


def test_bad_requests(mixed: pd.DataFrame) -> None:
    table = mixed[[*"abcd", "y", "label"]]
    for options, message in (
        ({"responses": []}, "no response"),
        ({"responses": ["y"], "family": "gamma"}, "family 'gamma'"),
        ({"responses": ["y"], "family": "binomial"}, "binomial needs 2"),
        ({"responses": ["label"], "family": "gaussian"}, "is text"),
        ({"responses": ["y", "a"], "family": "poisson"}, "several need the gaussian"),
        ({"responses": ["y"], "family": "multinomial"}, "too many for classes"),
        ({"responses": ["y"], "criterion": "cp"}, "criterion 'cp'"),
        ({"responses": ["y"], "rule": "2se"}, "'2se'"),
        ({"responses": ["y"], "penalty": "ridge"}, "'ridge'"),
        ({"responses": ["y"], "family": "poisson"}, "counts"),
    ):
        with pytest.raises(ConvexlawError, match=message):
            analyse(table, **options)
    found = analyse(mixed[[*"abcd", "y"]], ["y"], **QUICK)
    for new, message in (
        (mixed.drop(columns="c"), "no column 'c'"),
        (mixed.assign(c=np.nan), "column 'c' rows"),
        (mixed.assign(c="text"), "is not numeric"),
    ):
        with pytest.raises(ConvexlawError, match=message):
            found.predict(new)


def test_separated_classes_have_no_table_but_the_reason(mixed: pd.DataFrame) -> None:
    table = mixed[list("abcd")].assign(r=np.where(mixed["a"] > 0, "yes", "no"))
    found = analyse(table, ["r"], alpha=0.01, **QUICK)
    assert found.refit is None
    assert any("separate the classes" in line for line in found.lacking)
