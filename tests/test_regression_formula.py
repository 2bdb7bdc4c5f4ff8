"""Formulas: what is encoded, what is refused, and models that predict from new frames."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from convexlaw import ConvexlawError, Slope, TwoLevelSlope
from convexlaw.solvers.formula import FormulaFeatures, formula_columns, model_data
from convexlaw.solvers.glm import SlopeClassifier


@pytest.fixture
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "place": rng.choice(["north", "south"], n),
            "size": pd.array(rng.integers(1, 9, n), dtype="Int64"),
            "flag": rng.random(n) < 0.5,
            "maybe": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "two words": pd.array(rng.normal(size=n), dtype="Float64"),
        }
    )
    shift = frame["type"].map({"a": 0.0, "b": 2.0, "c": -1.0}).astype(float)
    return frame.assign(
        y=shift + 0.5 * frame["size"].astype(float) + 1.5 * frame["flag"] + 0.1 * rng.normal(size=n)
    )


def test_columns_equal_those_made_by_hand(data: pd.DataFrame) -> None:
    found = model_data("y ~ .", data)
    by_hand = np.column_stack(
        [
            data["type"] == "b",
            data["type"] == "c",
            data["place"] == "south",
            data["size"],
            data["flag"],
            data["maybe"],
            data["two words"],
        ]
    ).astype(float)
    np.testing.assert_array_equal(found.X.to_numpy(), by_hand)
    assert list(found.X.columns) == [
        "type[T.b]", "type[T.c]", "place[T.south]", "size", "flag", "maybe", "two words",
    ]  # fmt: skip
    np.testing.assert_array_equal(found.y, data["y"])
    assert found.response == ("y",)
    assert found.intercept


def test_transforms_interactions_and_no_intercept(data: pd.DataFrame) -> None:
    found = model_data("np.log(y + 10) ~ 0 + flag:size + `two words`", data)
    assert not found.intercept
    assert found.response == ("np.log(y + 10)",)
    np.testing.assert_allclose(found.y, np.log(data["y"] + 10))
    np.testing.assert_allclose(found.X["flag:size"], data["flag"] * data["size"].astype(float))
    assert model_data("y + size ~ flag", data).y.shape == (90, 2)


def test_formula_model_is_the_model_of_the_matrix(data: pd.DataFrame) -> None:
    model = Slope.from_formula("y ~ C(type) + size + flag", data, alpha=0.05, scaling="sd")
    by_hand = np.column_stack([data["type"] == "b", data["type"] == "c", data["size"], data["flag"]]).astype(
        float
    )
    direct = Slope(alpha=0.05, scaling="sd").fit(by_hand, data["y"])
    np.testing.assert_allclose(model.coef_, direct.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.predict(data.head(7)), direct.predict(by_hand[:7]))
    # rows and columns in another order, columns that are not used
    mixed = data.sample(frac=1.0, random_state=1)[["flag", "size", "type"]]
    np.testing.assert_allclose(model.predict(mixed), direct.predict(by_hand)[mixed.index])
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).predict(mixed), model.predict(mixed))
    assert list(model.feature_names_in_) == ["C(type)[T.b]", "C(type)[T.c]", "size", "flag"]
    assert "C(type)[T.b]" in str(model.summary())
    assert not hasattr(model.fit(by_hand, data["y"]), "formula_")


@pytest.mark.parametrize("kind", [Slope, TwoLevelSlope])
def test_intercept_weights_and_offset_follow(kind: Any, data: pd.DataFrame) -> None:
    assert kind.from_formula("y ~ size - 1", data, alpha=0.1).intercept_ == 0.0
    weights = np.linspace(0.1, 2.0, len(data))
    frame = data.assign(w=weights)
    frame.loc[3, "size"] = pd.NA
    named = kind.from_formula("y ~ size + flag", frame, na="drop", sample_weight="w", alpha=0.1)
    kept = frame.drop(index=3)
    X = np.column_stack([kept["size"], kept["flag"]]).astype(float)
    direct = kind(alpha=0.1).fit(X, kept["y"], sample_weight=kept["w"])
    np.testing.assert_allclose(named.coef_, direct.coef_)
    with pytest.raises(ConvexlawError, match="no such column"):
        kind.from_formula("y ~ size", data, sample_weight="v")


def test_counts_with_an_offset(data: pd.DataFrame) -> None:
    rng = np.random.default_rng(1)
    exposure = rng.uniform(1, 5, len(data))
    frame = data.assign(n=rng.poisson(exposure), log_e=np.log(exposure))
    model = Slope.from_formula("n ~ size", frame, offset="log_e", loss="poisson", alpha=0.01)
    direct = Slope(loss="poisson", alpha=0.01).fit(
        frame[["size"]].astype(float), frame["n"], offset=frame["log_e"]
    )
    np.testing.assert_allclose(model.coef_, direct.coef_)
    assert model.summary().deviance == pytest.approx(
        len(data) * model.deviance(frame[["size"]].astype(float), frame["n"], offset=frame["log_e"])
    )


def test_labels_on_the_left(data: pd.DataFrame) -> None:
    model = SlopeClassifier.from_formula("place ~ size + C(type)", data, alpha=0.001)
    assert list(model.classes_) == ["north", "south"]
    assert set(model.predict(data)) <= {"north", "south"}
    assert model.predict_proba(data.head(3)).shape == (3, 2)


def test_missing_values_name_columns_and_rows(data: pd.DataFrame) -> None:
    data.loc[[2, 5], "size"] = pd.NA
    data["place"] = data["place"].astype(object)
    data.loc[7, "place"] = None
    with pytest.raises(ConvexlawError, match=r"column 'place' row 7; column 'size' rows 2, 5"):
        Slope.from_formula("y ~ size + place", data)
    model = Slope.from_formula("y ~ size + place", data, na="drop", alpha=0.1)
    assert model.notes_ == ["3 of 90 rows dropped for missing values ('place' 1, 'size' 2)"]
    assert "3 of 90 rows dropped" in str(model.summary())
    assert model.summary().n == 87
    # unused columns do not cost rows
    assert Slope.from_formula("y ~ flag", data, alpha=0.1).summary().n == 90
    with pytest.raises(ConvexlawError, match=r"column 'size' rows 2, 5"):
        model.predict(data)
    with pytest.raises(ConvexlawError, match="every row"):
        Slope.from_formula("y ~ size", data.assign(size=np.nan), na="drop")
    with pytest.raises(ConvexlawError, match="na = 'ignore'"):
        Slope.from_formula("y ~ size", data, na="ignore")


def test_unseen_levels_are_refused(data: pd.DataFrame) -> None:
    model = Slope.from_formula("y ~ C(type) + place", data, alpha=0.1)
    new = data.head(3).astype({"type": object})
    new.loc[1, "type"] = "z"
    with pytest.raises(ConvexlawError, match=r"'type' has the level 'z' in row 1.*'a', 'b', 'c'"):
        model.predict(new)
    with pytest.raises(ConvexlawError, match="no column 'place'"):
        model.predict(data.drop(columns="place"))
    # fewer levels than at the fit are fine, and encode the same
    one = data[data["type"] == "b"]
    np.testing.assert_allclose(model.predict(one), model.predict(data)[(data["type"] == "b").to_numpy()])


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ nope", "nope"),
        ("y ~ log(size", "cannot be read"),
        ("y ~~ size", "cannot be read"),
        ("size + flag", "no response"),
        ("y ~ 1", "no feature"),
        ("y ~ os.getcwd()", "cannot be applied"),
    ],
)
def test_bad_formulas(data: pd.DataFrame, formula: str, message: str) -> None:
    with pytest.raises(ConvexlawError, match=message):
        Slope.from_formula(formula, data)
    assert "\x1b" not in formula


def test_frames_only() -> None:
    with pytest.raises(ConvexlawError, match="data frame"):
        Slope.from_formula("y ~ x", {"y": [1, 2], "x": [1, 2]})  # type: ignore[arg-type]


def test_names_of_the_caller_are_not_seen(data: pd.DataFrame) -> None:
    secret = np.ones(len(data))
    assert secret.size
    with pytest.raises(ConvexlawError, match="secret"):
        Slope.from_formula("y ~ secret", data)


def test_infinite_after_a_transform_is_an_error(data: pd.DataFrame) -> None:
    with pytest.raises(ConvexlawError, match=r"np\.log\(size - 1\)"):
        Slope.from_formula("y ~ np.log(size - 1)", data.assign(size=data["size"].astype(float)))


def test_in_a_pipeline_and_a_search(data: pd.DataFrame) -> None:
    pipe = make_pipeline(FormulaFeatures("C(type) + size + flag"), Slope(scaling="sd"))
    search = GridSearchCV(pipe, {"slope__alpha": [0.01, 10.0]}, cv=3).fit(data, data["y"])
    assert search.best_params_ == {"slope__alpha": 0.01}
    assert search.best_score_ > 0.9
    names = search.best_estimator_[0].get_feature_names_out()
    assert list(names) == list(search.best_estimator_[-1].feature_names_in_)


def test_columns_of_a_formula(data: pd.DataFrame) -> None:
    assert formula_columns("np.log(y) ~ C(type):size", data) == ({"y"}, {"type", "size"})
    assert formula_columns("flag", data) == (set(), {"flag"})


def test_plain_fits_say_what_to_do_with_text_and_missing_values(data: pd.DataFrame) -> None:
    with pytest.raises(ConvexlawError, match="from_formula"):
        Slope().fit(data[["type", "size"]], data["y"])
    data.loc[4, "size"] = pd.NA
    with pytest.raises(ConvexlawError, match=r"NaN: column 'size', row 4"):
        Slope().fit(data[["size", "flag"]], data["y"])


def test_without_formulaic_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['formulaic'] = None\n"
        "import pandas as pd; from convexlaw import Slope\n"
        "try:\n    Slope.from_formula('y ~ x', pd.DataFrame({'y': [1.0], 'x': [1.0]}))\n"
        "except ImportError as error:\n    assert 'convexlaw[formula]' in str(error)\n"
        "else:\n    raise SystemExit('no error')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
