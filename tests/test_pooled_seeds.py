"""Several seeds of one run: found by name, pooled on request with their spread."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError
from convexlaw.runs._seeds import seed_groups

STEPS = np.arange(0, 100, 10)


def run(name: str, shift: float = 0.0, lr: float = 1e-3, steps: np.ndarray = STEPS) -> pd.DataFrame:
    return pd.DataFrame(
        {"run": name, "step": steps, "lr": lr, "loss": 3.0 - 0.01 * steps + shift, "tokens": steps * 10.0}
    )


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["a_seed0", "a_seed1", "b_seed0"], {"a": ["a_seed0", "a_seed1"]}),
        (["a/seed=1", "a/seed=2"], {"a": ["a/seed=1", "a/seed=2"]}),
        (["big seed=1", "big seed=2"], {"big": ["big seed=1", "big seed=2"]}),
        (["a-s1", "a-s2", "a-s10"], {"a": ["a-s1", "a-s2", "a-s10"]}),
        (["x_seed3_lr1", "x_seed4_lr1", "x_seed3_lr2"], {"x_lr1": ["x_seed3_lr1", "x_seed4_lr1"]}),
        (["run1", "run2"], {}),
        (["wsd", "wsd_seed1", "cosine_seed1"], {"wsd": ["wsd", "wsd_seed1"]}),
        (["wsd", "cosine", "steps100", "steps200"], {}),
        (["reseed1", "reseed2"], {}),
    ],
)
def test_names_that_differ_by_the_seed_alone(names: list[str], groups: dict[str, list[str]]) -> None:
    assert seed_groups(names) == groups


def test_pooling_averages_and_keeps_the_spread() -> None:
    frame = pd.concat([run("other"), *(run(f"a_seed{k}", 0.1 * k) for k in range(3)), run("last")])
    table = read_runs(frame)
    assert (
        "3 runs differ by their seed alone (a_seed0, a_seed1, a_seed2): pool_seeds() makes one run 'a' "
        "of them" in table.notes
    )
    pooled = table.pool_seeds()
    assert pooled.runs == ["other", "a", "last"]
    assert len(table.runs) == 5  # the table itself is as it was
    own = pooled.frame.loc[pooled.frame["run"] == "a"]
    np.testing.assert_allclose(own["loss"], 3.1 - 0.01 * STEPS)
    np.testing.assert_allclose(own["loss_std"], np.std([0, 0.1, 0.2], ddof=1))
    np.testing.assert_allclose(own["loss_max"] - own["loss_min"], 0.2)
    assert set(own["seeds"]) == {3.0}
    np.testing.assert_array_equal(pooled.dense_lr("a"), np.full(91, 1e-3))
    assert pooled.notes_for("a") == [
        "mean of 3 seeds (a_seed0, a_seed1, a_seed2), standard deviation 0.1 nats at the last step"
    ]
    assert pooled.frame.loc[pooled.frame["run"] == "other", "loss_std"].isna().all()
    assert [n for n in pooled.notes if "differ by their seed" in n] == []


def test_only_steps_that_every_seed_logged_are_pooled() -> None:
    frame = pd.concat([run("a_seed0"), run("a_seed1", steps=STEPS[:7])])
    pooled = read_runs(frame).pool_seeds()
    assert pooled.curve("a")[0].tolist() == STEPS[:7].tolist()
    assert pooled.notes_for("a")[0].endswith("; 3 rows that not every seed logged left out")


def test_groups_by_hand_and_what_cannot_be_pooled() -> None:
    frame = pd.concat([run("x1"), run("x2", 0.2), run("y", lr=2e-3)])
    table = read_runs(frame)
    assert table.pool_seeds({"x": "x*"}).runs == ["x", "y"]
    with pytest.raises(ConvexlawError, match="no two runs among x1, x2, y differ by a seed alone"):
        table.pool_seeds()
    with pytest.raises(
        ConvexlawError,
        match=r"runs x1, y differ in learning rate at 10 steps \(first 0\): only seeds of one run",
    ):
        table.pool_seeds({"z": ["x1", "y"]})
    apart = pd.concat([run("x1"), run("x2", steps=STEPS + 1)])
    with pytest.raises(ConvexlawError, match="runs x1, x2 have no step in common"):
        read_runs(apart).pool_seeds({"x": "x*"})
    with pytest.raises(ConvexlawError, match="no run matches 'q"):
        table.pool_seeds({"z": "q*"})


def test_schedules_and_validation_rows_are_pooled_along() -> None:
    frame = pd.concat([run(f"a_seed{k}", 0.1 * k).assign(val_loss=lambda f: f["loss"] + 1) for k in range(2)])
    lr = np.linspace(1e-3, 0, 100)
    pooled = read_runs(frame, schedule=lr).pool_seeds()
    np.testing.assert_array_equal(pooled.dense_lr("a"), lr[:91])
    np.testing.assert_allclose(pooled.curve("a", "val")[1], 4.05 - 0.01 * STEPS)
