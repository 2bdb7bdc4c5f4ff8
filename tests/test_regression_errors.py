"""Data and options that no regression can use: one error that names the rows, the column, and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

from convexlaw import Slope, SlopeClassifier, SlopeClassifierCV, SlopeCV, TwoLevelSlope, TwoLevelSlopeCV
from convexlaw.cli._regression_data import read_table
from convexlaw.errors import ConvexlawError
from convexlaw.solvers.analysis import analyse
from convexlaw.solvers.formula import model_data
from convexlaw.solvers.screening import screen

REGRESSORS = [Slope(), TwoLevelSlope(), Slope(loss="huber"), SlopeCV(cv=3), TwoLevelSlopeCV(cv=3)]
CLASSIFIERS = [SlopeClassifier(), SlopeClassifierCV(cv=3)]


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    table["y"] = table["a"] + 0.1 * rng.normal(size=40)
    table["kind"] = np.where(table["b"] + 0.3 * rng.normal(size=40) > 0, "yes", "no")
    return table


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
@pytest.mark.parametrize(
    ("bad", "what"),
    [(np.nan, "NaN"), (np.inf, "infinity"), (None, "NaN"), (pd.NA, "NaN"), ("much", "not numeric: 'much'")],
    ids=str,
)
def test_a_response_without_a_number_is_named_by_its_rows(model, frame, bad, what):
    y = frame["y"].astype(object)
    y.iloc[[3, 7]] = bad
    with pytest.raises(ConvexlawError, match=f"y .*{what}.*rows 3, 7"):
        model.fit(frame[["a", "b"]], y)
    with pytest.raises(ConvexlawError, match="rows 3, 7"):
        model.fit(frame[["a", "b"]].to_numpy(), y.to_numpy())


@pytest.mark.parametrize("dtype", ["object", "string", "category", "str"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_a_label_that_is_missing_is_named_by_its_rows(model, frame, dtype):
    y = frame["kind"].astype(dtype)
    y.iloc[[3, 7]] = None
    with pytest.raises(ConvexlawError, match="y contains NaN: rows 3, 7"):
        model.fit(frame[["a", "b"]], y)


def test_a_missing_value_of_several_responses_is_named_by_its_column(frame):
    Y = frame[["y", "c"]].copy()
    Y.loc[5, "c"] = np.nan
    with pytest.raises(ConvexlawError, match="column 'c', row 5"):
        Slope().fit(frame[["a", "b"]], Y)


@pytest.mark.parametrize("dtype", ["float64", "Float64"])
@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=str)
def test_missing_values_of_new_rows_are_named_also_where_the_coefficient_is_zero(model, frame, dtype):
    X = frame[["a", "b"]].assign(zero=0.0).astype(dtype)
    model.fit(X, frame["kind"] if model in CLASSIFIERS else frame["y"])
    new = X.head(5).copy()
    new.loc[4, "zero"] = np.nan
    with pytest.raises(ConvexlawError, match="column 'zero', row 4"):
        model.predict(new)


@pytest.mark.parametrize(
    ("offset", "what"),
    [(np.zeros(3), "shape"), (np.full(40, np.nan), "nan in rows 0"), (["x"] * 40, "numeric")],
)
def test_offsets_of_new_rows_are_checked_as_those_of_the_fit(frame, offset, what):
    X = frame[["a", "b"]]
    model = Slope(loss="poisson").fit(X, np.arange(40) % 4)
    for use in (model.predict, lambda X, o: model.fit(X, np.arange(40) % 4, offset=o)):
        with pytest.raises(ConvexlawError, match=f"offset.*{what}"):
            use(X, offset)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"cv": 41}, "cannot split 40 rows"),
        ({"cv": 1}, "cv = 1"),
        ({"cv": "five"}, "cv = 'five'"),
        ({"cv": GroupKFold(3)}, "groups"),
        ({"cv": 41, "repeats": 2}, "cannot split 40 rows"),
        ({"scoring": "beauty"}, "scoring = 'beauty'"),
    ],
    ids=str,
)
def test_folds_and_scores_that_cannot_be_made(frame, options, what):
    with pytest.raises(ConvexlawError, match=what):
        SlopeCV(**options).fit(frame[["a", "b"]], frame["y"])


@pytest.mark.parametrize("written", ["y ~ a + kind", "y ~ a + C(kind)", "y ~ ."])
def test_text_of_every_dtype_is_encoded_the_same(frame, written):
    frame["kind"] = frame["kind"].astype(object)
    expected = model_data(written, frame).X.set_axis(range(2 if "." not in written else 4), axis=1)
    for dtype in ("string", "string[python]", "str", "category"):
        found = model_data(written, frame.astype({"kind": dtype}))
        assert found.features.transform(frame.astype({"kind": dtype})).equals(found.X)
        pd.testing.assert_frame_equal(found.X.set_axis(expected.columns, axis=1), expected)


@pytest.mark.parametrize(
    ("responses", "options", "what"),
    [
        (["y", "kind"], {}, "'kind' is text"),
        (["y"], {"formula": "kind ~ a"}, "explains kind, the given response is y"),
        (["y"], {"split": 1.5}, "split = 1.5"),
        (["y"], {"split": -1.0}, "split = -1"),
        (["y"], {"folds": 41}, "cannot split 40 rows"),
        (["kind"], {"alpha": "estimate"}, "quadratic loss alone"),
        ([], {"formula": "y ~ 1"}, "no column is left"),
    ],
    ids=str,
)
def test_an_analysis_that_cannot_be_made(frame, responses, options, what):
    with pytest.raises(ConvexlawError, match=what):
        analyse(frame, responses, **({"stability": 0, "split": 0.0} | options))


def test_a_right_side_alone_may_begin_with_a_tilde(frame):
    plain, tilde = (analyse(frame, ["y"], formula=f, stability=0, split=0.0) for f in ("a + b", "~ a + b"))
    assert np.array_equal(plain.summary.coef, tilde.summary.coef)


def test_a_summary_says_which_class_and_which_levels(frame):
    X = frame[["a", "b"]]
    model = SlopeClassifier(alpha=0.01).fit(X, frame["kind"])
    assert "logistic loss of yes against no" in str(model.summary())
    # the coefficient of b is positive, and b makes "yes" more likely
    assert model.coef_[0, 1] > 0
    assert model.predict(pd.DataFrame({"a": [0.0], "b": [9.0]}))[0] == "yes"
    assert "weight 2 on the top 1 of 2 ranks, 0.5 below" in str(
        Slope(lam=[2.0, 0.5]).fit(X, frame["y"]).summary()
    )


@pytest.mark.parametrize("written", ["y ~ np.log(pos) + b", "np.log(pos) ~ b"])
def test_rows_that_a_formula_cannot_take_are_those_of_the_table(frame, written):
    """Rows 2 and 4 are dropped for missing values; they must not shift the numbers of the others."""
    frame["pos"] = 1.0
    frame.loc[[2, 4], "b"] = np.nan
    frame.loc[[10, 20], "pos"] = 0.0
    for use in (
        lambda: Slope.from_formula(written, frame, na="drop"),
        lambda: analyse(frame, formula=written, stability=0, split=0.0),
    ):
        with pytest.raises(ConvexlawError, match=r"'np.log\(pos\)' is not finite in rows 10, 20"):
            use()


def test_a_formula_refuses_new_rows_outside_its_domain(frame):
    frame["pos"] = np.exp(frame["c"])
    model = Slope.from_formula("y ~ np.log(pos) + b", frame)
    with pytest.raises(ConvexlawError, match=r"'np.log\(pos\)' is not finite in row 3"):
        model.predict(frame.head(5).assign(pos=[1.0, 1.0, 1.0, -1.0, 1.0]))


def test_a_refit_says_which_class(frame):
    X = frame[["a", "b"]]
    assert SlopeClassifier(alpha=0.05).fit(X, frame["kind"]).relax().method.endswith("of yes against no")
    kinds = np.where(frame["b"] > 0.2, "u", np.where(frame["a"] > 0.1, "v", "w"))
    rng = np.random.default_rng(1)
    kinds[rng.integers(0, 40, 12)] = "v"
    several = SlopeClassifier(loss="multinomial", alpha=0.05).fit(X, kinds).relax()
    assert several.method.endswith("against u")
    assert set(several.table["response"]) == {"v", "w"}


def test_small_classes_are_a_note_not_a_warning(frame):
    few = frame.assign(kind=["rare"] * 4 + ["usual"] * 36)
    found = analyse(few, ["kind"], stability=0, split=0.0)
    assert any("least populated class" in note for note in found.notes)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_tables_of_every_usual_encoding_are_read(tmp_path, encoding):
    table = pd.DataFrame({"Fläche": [80.5, 70.25, 91.0], "Ort": ["Köln", "Bonn", "Köln"]})
    table.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False, encoding=encoding)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), table, check_dtype=False)


def test_numbers_with_signs_are_numbers(frame):
    share = np.round(np.abs(frame["a"]) * 10, 1)
    for text in ("{}%", "{} %", "€{}", "$ {}", "{} €", "{}"):
        found = screen(frame.assign(share=[text.format(v) for v in share]), ["y"])
        assert np.array_equal(found.frame["share"], share), text
    labels = screen(frame.assign(share=["a%", "b%"] * 20), ["y"])
    assert set(labels.frame["share"]) == {"a%", "b%"}


@pytest.mark.parametrize(("name", "used"), [("Kunde Nr.", False), ("customer_no", False), ("place", True)])
def test_shuffled_identifiers_are_left_out_by_name_or_told(frame, name, used):
    numbers = np.random.default_rng(2).permutation(40) + 1000
    found = screen(frame.assign(**{name: numbers}), ["y"])
    assert (name in found.features) == used
    assert used == any("each once: place " in note for note in found.notes)


def test_too_few_complete_rows_name_the_columns(frame):
    frame.loc[::2, "a"] = np.nan
    frame.loc[1::2, "b"] = np.nan
    with pytest.raises(ConvexlawError, match=r"0 of 40 rows are complete \(missing values: a 20, b 20\)"):
        screen(frame, ["y"])
