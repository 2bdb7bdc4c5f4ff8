"""Arguments of fits that make no sense are one clear error, of every kind, before anything is computed."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from convexlaw import ConvexlawError, fit_curves, fit_table, load_fit
from convexlaw.theory.laws import CVX4q

RATES = np.concatenate([np.full(60, 1e-3), np.linspace(1e-3, 1e-5, 40)])


@pytest.fixture(scope="module")
def log():
    loss = CVX4q(Linf=2.0, a=0.5, b=20.0, alpha=0.5).predict(RATES)
    return pd.DataFrame({"run": "a", "step": np.arange(100), "lr": RATES, "loss": loss})


@pytest.fixture(scope="module")
def fit(log):
    return fit_curves(log, "cvx4q")


@pytest.fixture(scope="module")
def table():
    N, D = (a.ravel() for a in np.meshgrid([1e8, 3e8, 1e9], [1e9, 3e9, 1e10]))
    return pd.DataFrame({"N": N, "D": D, "loss": 1.8 + 480 * N**-0.35 + 2100 * D**-0.37})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"law": None}, "law None is not known"),
        ({"law": ["cvx4"]}, "law ['cvx4'] is not known"),
        ({"train": 3}, "3 names no run"),
        ({"weight_decay": "x"}, "weight_decay = 'x' is not a number"),
        ({"weight_decay": [0.1]}, "weight_decay = [0.1] is not a number"),
        ({"weight_decay": {"a": "x"}}, "weight_decay = 'x' is not a number"),
        ({"weight_decay": np.inf}, "weight_decay = inf: it must be finite"),
        ({"weight_decay": -0.1}, "weight_decay = -0.1: it must be 0 or positive"),
        ({"weight_decay": np.nan}, "weight_decay = nan: it must be 0 or positive"),
        ({"weight_decay": 0.1, "init_std": "x"}, "init_std = 'x' is not a number"),
        ({"weight_decay": 0.1, "init_std": None}, "init_std = None is not a number"),
        ({"weight_decay": 0.1, "init_std": np.inf}, "init_std = inf: it must be finite"),
        ({"weight_decay": 0.1, "init_std": 0}, "init_std = 0.0"),
        ({"fixed": "x"}, "fixed = 'x': pass {parameter: value}"),
        ({"fixed": [1]}, "fixed = [1]: pass {parameter: value}"),
        ({"fixed": {"alpha": "x"}}, "fixed alpha = 'x' is not a number"),
        ({"fixed": {"alpha": np.nan}}, "fixed alpha = nan is outside its range"),
        ({"fixed": {3: 1, "b2": 1}}, "fixed parameter 3 is not one of"),
        ({"skip": "x"}, "skip = 'x': it must be 0 or a number of steps"),
        ({"skip": None}, "skip = None: it must be 0 or a number of steps"),
        ({"skip": 1.5}, "skip = 1.5: it must be 0 or a number of steps"),
    ],
)
def test_arguments_of_a_fit_of_curves(log, options, said):
    with pytest.raises(ConvexlawError, match=re.escape(said)):
        fit_curves(log, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": [-1]}, "step -1 is asked of a schedule of 100 steps"),
        ({"at": [5, -2, 3]}, "step -2 is asked"),
        ({"at": [100]}, "step 100 is asked of a schedule of 100 steps"),
        ({"at": [1e30]}, "is asked of a schedule of 100 steps"),
        ({"at": [0.5]}, "at = [0.5]: give steps as a list of whole numbers"),
        ({"at": [np.nan]}, "give steps as a list of whole numbers"),
        ({"at": [[1]]}, "give steps as a list of whole numbers"),
        ({"at": "x"}, "at = 'x' holds values that are no numbers"),
        ({"lr": ["x"]}, "lr = ['x'] holds values that are no numbers"),
        ({"lr": object()}, "holds values that are no numbers"),
        ({"batch_size": "x"}, "batch_size = 'x' holds values that are no numbers"),
        ({"batch_size": [1, 2]}, "batch_size has shape (2,): give a number, or one for each of 100 steps"),
        ({"weight_decay": "x"}, "weight_decay = 'x' is not a number"),
        ({"weight_decay": -1}, "weight_decay = -1.0: it must be 0 or positive"),
        ({"init_std": [0.02]}, "init_std = [0.02] is not a number"),
    ],
)
def test_arguments_of_a_prediction(fit, options, said):
    with pytest.raises(ConvexlawError, match=re.escape(said)):
        fit.predict(**{"lr": RATES, **options})


def test_steps_may_be_whole_floats_or_none_at_all(fit):
    every = fit.predict(RATES)
    np.testing.assert_allclose(fit.predict(RATES, at=[3.0, 99.0]), every[[3, 99]], rtol=1e-10)
    np.testing.assert_allclose(fit.predict(RATES, at=3), every[[3]], rtol=1e-10)
    assert fit.predict(RATES, at=[]).size == 0


@pytest.mark.parametrize("level", ["x", None, 2, 0, np.nan, [0.9]])
def test_levels(fit, table, level):
    other = fit_table(table)
    for call in (
        lambda: fit.interval(level),
        lambda: fit.band(RATES, level),
        lambda: other.interval(level),
        lambda: other.optimal(1e20, level=level),
    ):
        with pytest.raises(ConvexlawError, match="level = "):
            call()


@pytest.mark.parametrize("path", [None, 3, "a\0b", ["fit.json"]])
def test_paths_of_saved_fits(fit, table, path, tmp_path):
    for call in (load_fit, fit.to_json, fit_table(table).to_json):
        with pytest.raises(ConvexlawError, match="is no path"):
            call(path)
    for call in (fit.to_json, fit_table(table).to_json):
        with pytest.raises(ConvexlawError, match="is a folder"):
            call(tmp_path)
    with pytest.raises(ConvexlawError, match="cannot be read"):
        load_fit(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"frame": None}, "the table is of type NoneType: pass a frame"),
        ({"frame": "points.csv"}, "the table is of type str: pass a frame"),
        ({"law": ["kaplan"]}, "law ['kaplan'] is not known for a table"),
        ({"exclude_largest": "x"}, "exclude_largest = 'x': it must be 0 or more"),
        ({"exclude_largest": 1.5}, "exclude_largest = 1.5: it must be 0 or more"),
        ({"exclude_largest": 9}, "exclude_largest = 9: it must be 0 or more and leave rows of the 9"),
        ({"fixed": "x"}, "fixed = 'x': pass {parameter: value}"),
        ({"fixed": {"alpha": "x"}}, "fixed alpha = 'x' is not a number"),
    ],
)
def test_arguments_of_a_fit_of_a_table(table, options, said):
    with pytest.raises(ConvexlawError, match=re.escape(said)):
        fit_table(**{"frame": table, **options})


def test_arguments_of_a_fitted_table(table):
    fit = fit_table(table)
    for flops in (None, "x", [1e20]):
        with pytest.raises(ConvexlawError, match=r"flops = .* is not a number"):
            fit.optimal(flops)
    for flops in (-1, 0, np.nan):
        with pytest.raises(ConvexlawError, match="flops must be positive and finite"):
            fit.optimal(flops)
    with pytest.raises(ConvexlawError, match="N = 'x' holds values that are no numbers"):
        fit.predict("x", 1e9)
