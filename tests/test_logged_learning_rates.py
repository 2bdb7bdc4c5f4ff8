"""The learning rate of every step: exact where given, lines between logged points, nothing invented."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError
from convexlaw.runs.table import RunTable

LOGS = Path(__file__).resolve().parent / "data" / "logs"


def told(table: RunTable, kind: str) -> list[str]:
    return [getattr(n, "text", n) for n in table.notes if getattr(n, "kind", "") == kind]


def log(steps: list[int] | NDArray[np.int64], lr: list[float] | NDArray[np.float64]) -> pd.DataFrame:
    return pd.DataFrame({"step": steps, "lr": lr, "loss": 3.0 - 1e-4 * np.asarray(steps)})


def wsd(steps: int, warmup: int = 100, decay: float = 0.2, late: int = 0) -> NDArray[np.float64]:
    """Rates by update from the definition; ``late`` puts that of update t - late at place t."""
    t = np.arange(steps) - late
    return np.clip(np.minimum(np.minimum(1, t / warmup), (steps - t) / (decay * steps)), 0, None) * 1e-3


def test_lines_between_points_and_nothing_outside() -> None:
    table = read_runs(log([2, 4, 10], [1.0, 2.0, 0.5]))
    expected = [1, 1, 1, 1.5, 2, 1.75, 1.5, 1.25, 1, 0.75, 0.5]
    np.testing.assert_allclose(table.dense_lr("run"), expected, rtol=1e-14)
    assert told(table, "lr_start") == [
        "no learning rate before step 2: 1 is held back to step 0; pass schedule= if the run had a warmup"
    ]
    assert told(table, "lr_gaps")[0].startswith(
        "learning rate logged at 3 of 11 steps: lines are drawn across 2 gaps"
    )


def test_rates_that_lie_between_losses_fill_the_table_between_them_alone() -> None:
    frame = pd.DataFrame(
        {
            "step": [0, 5, 10, 15, 20],
            "loss": [3.0, np.nan, 2.0, np.nan, 1.0],
            "lr": [np.nan, 0.1, np.nan, 0.3, np.nan],
        }
    )
    table = read_runs(frame)
    np.testing.assert_allclose(table.frame["lr"], [np.nan, 0.2, np.nan])
    assert told(table, "lr_end") == ["no learning rate after step 15: 0.3 is held to step 20"]


@pytest.mark.parametrize("every", [1, 10, 50])
def test_a_trailing_zero_after_a_constant_rate_is_no_cooldown(every: int) -> None:
    steps = np.arange(0, 1001, every)
    lr = np.full(steps.size, 1e-3)
    lr[-1] = 0
    table = read_runs(log(steps, lr))
    np.testing.assert_array_equal(table.dense_lr("run"), np.full(1001, 1e-3))
    assert told(table, "trailing_zero") == [
        "the last learning rate (step 1000) is logged as 0 after 0.001: no cooldown is read into it, "
        "0.001 is held"
    ]
    assert table.frame["lr"].iloc[-1] == 0  # the table keeps what was logged


def test_a_trailing_zero_at_the_end_of_a_decay_belongs_to_it() -> None:
    steps = np.arange(0, 1001, 10)
    lr = 1e-3 * np.minimum(1, (1000 - steps) / 200)
    table = read_runs(log(steps, lr))
    np.testing.assert_allclose(
        table.dense_lr("run"), 1e-3 * np.minimum(1, (1000 - np.arange(1001)) / 200), atol=1e-18
    )
    assert told(table, "trailing_zero") == []


def test_zeros_in_the_middle_are_steps_down_not_ramps() -> None:
    table = read_runs(log([0, 10, 20, 30, 40], [1e-3, 1e-3, 0, 0, 1e-3]))
    lr = table.dense_lr("run")
    assert lr[:20].tolist() == [1e-3] * 20
    assert lr[20:31].tolist() == [0.0] * 11


def test_a_jump_between_constant_stretches_is_told() -> None:
    table = read_runs(log([0, 10, 20, 30, 40, 50], [3e-4, 3e-4, 3e-4, 9e-5, 9e-5, 9e-5]))
    assert told(table, "lr_jump") == [
        "learning rate jumps from 0.0003 to 9e-05 between the logged steps 20 and 30: read as a line, "
        "pass schedule= for the step itself"
    ]


def test_a_given_schedule_is_exact_everywhere() -> None:
    lr = wsd(1000)
    frame = log(np.arange(0, 1000, 50), lr[::50])
    for schedule in (lr, {"r*": lr}, {"run": lr}, lambda name: lr, lr.tolist()):
        table = read_runs(frame, schedule=schedule)
        np.testing.assert_array_equal(table.dense_lr("run"), lr[:951])
        np.testing.assert_array_equal(table.frame["lr"], lr[::50])
        assert not [n for n in table.notes if getattr(n, "kind", "").startswith("lr_")]
    later = read_runs(frame).with_schedule(lr)
    np.testing.assert_array_equal(later.dense_lr("run"), lr[:951])
    assert later.notes == read_runs(frame, schedule=lr).notes


def test_a_log_that_counts_from_1_ends_one_step_after_its_schedule() -> None:
    lr = wsd(100, warmup=10)
    table = read_runs(pd.DataFrame({"step": np.arange(1, 101), "loss": 3.0}), schedule=lr)
    np.testing.assert_array_equal(table.dense_lr("run"), np.append(lr, lr[-1]))
    assert told(table, "schedule_end") == [
        "the schedule has 100 steps and the log ends at step 100: its last value is held for that row"
    ]


@pytest.mark.parametrize("late", [1, -1])
def test_a_log_one_step_late_or_early_is_told_from_its_schedule(late: int) -> None:
    steps = np.arange(0, 1000)
    lr = wsd(1000)
    lr[:100] = 1e-3 * np.arange(1, 101) / 100  # a warmup from peak / warmup: alone it does not show the shift
    logged = lr[np.clip(steps - late, 0, 999)]
    table = read_runs(log(steps, logged), schedule=lr)
    np.testing.assert_array_equal(table.dense_lr("run"), lr)
    where = "one step late" if late == 1 else "one step early (that of the next update)"
    assert told(table, "late_lr")[0].startswith(f"the log holds each learning rate {where} (")


def test_a_schedule_that_is_not_the_log_is_used_and_told() -> None:
    lr = wsd(1000)
    table = read_runs(log(np.arange(0, 1000, 10), 2 * lr[::10]), schedule=lr)
    assert told(table, "schedule") == [
        "logged and given learning rates differ on 99 of 100 rows: the schedule is used"
    ]
    np.testing.assert_array_equal(table.dense_lr("run"), lr[:991])


@pytest.mark.parametrize("every", [1, 10, 25])
def test_a_warmup_through_zero_at_step_1_is_one_step_late(every: int) -> None:
    steps = np.arange(0, 1000, every)
    table = read_runs(log(steps, wsd(1000, late=1)[steps]))
    count = int(np.sum(steps > 0))
    assert told(table, "late_lr") == [
        f"{count} learning rates are logged one step late (at step k that of update k - 1): dense_lr "
        f"puts them one step earlier, the table "
        "keeps them as logged"
    ]
    dense = table.dense_lr("run")
    assert np.max(np.abs(dense[:900] - wsd(1000)[: dense.size][:900])) < (
        1e-15 if every == 1 else 1e-3 * every / 100
    )
    np.testing.assert_allclose(dense[steps[1:] - 1], wsd(1000)[steps[1:] - 1], rtol=1e-12)
    np.testing.assert_array_equal(table.frame["lr"], wsd(1000, late=1)[steps])


@pytest.mark.parametrize("start", [0, 1])
def test_warmups_that_start_at_update_0_stay_where_they_are(start: int) -> None:
    steps = np.arange(0, 1000, 10)
    lr = np.minimum(1, (steps + start) / 100) * 1e-3
    table = read_runs(log(steps, lr))
    assert told(table, "late_lr") == []
    np.testing.assert_array_equal(table.dense_lr("run")[steps], lr)


def trainer(tmp_path: Path, steps: NDArray[np.int64], lr: NDArray[np.float64], **fields: object) -> RunTable:
    history = [
        {"step": int(s), "loss": 3.0, "learning_rate": float(x)} for s, x in zip(steps, lr, strict=True)
    ]
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"log_history": history, **fields}))
    return read_runs(path)


@pytest.mark.parametrize("late", [0, 1])
def test_trainer_states_of_both_conventions_are_told_by_their_decay(tmp_path: Path, late: int) -> None:
    steps = np.arange(10, 201, 10)
    rates = 1e-3 * (1 - np.arange(201) / 200)  # no warmup: the end has to tell
    table = trainer(tmp_path, steps, rates[steps - late], max_steps=200)
    assert bool(told(table, "late_lr")) == bool(late)
    assert bool(told(table, "next_lr")) == (not late)
    dense = table.dense_lr("state")
    inside = slice(10 - late, 201 - late)
    np.testing.assert_allclose(dense[inside], rates[inside], atol=1e-15)


def test_trainer_states_without_a_line_go_by_their_fields(tmp_path: Path) -> None:
    steps = np.arange(10, 101, 10)
    flat = np.full(10, 1e-3)
    assert told(trainer(tmp_path, steps, flat), "next_lr")[0].endswith(
        "(assumed from the fields of the file)"
    )
    assert (
        "assumed from the fields of the file"
        in told(trainer(tmp_path, steps, flat, best_global_step=None), "late_lr")[0]
    )


def test_a_missing_learning_rate_asks_for_a_schedule() -> None:
    frame = pd.DataFrame({"step": [0, 1, 2], "loss": [3.0, 2.0, 1.0]})
    table = read_runs(frame)
    assert told(table, "no_lr") == [
        "no learning rate in the log: pass schedule= (one learning rate a step) before fitting"
    ]
    assert not table.has_lr("run")
    with pytest.raises(ConvexlawError, match="run 'run' logs no learning rate: pass schedule="):
        table.dense_lr("run")


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("cosine:steps=10,peak=1", r"is text: pass the array .*schedules\.parse"),
        (np.ones((2, 3)), r"has shape \(2, 3\) and must be one finite learning rate"),
        ([1.0, -1.0, 1.0], "must be one finite learning rate >= 0 a step"),
        ([1.0, float("nan"), 1.0], "must be one finite learning rate"),
        ([], r"has shape \(0,\)"),
        ([1.0], "has 1 steps but its log ends at step 2; pass the whole schedule"),
        ({"other": [1.0, 1.0, 1.0]}, "schedule names none of the runs run"),
        (["a", "b", "c"], "is no array of numbers"),
    ],
)
def test_schedules_that_fit_nothing_are_refused(schedule: object, message: str) -> None:
    with pytest.raises(ConvexlawError, match=message):
        read_runs(pd.DataFrame({"step": [0, 1, 2], "loss": [3.0, 2.0, 1.0]}), schedule=schedule)


def test_a_negative_rate_and_a_run_too_long_to_lay_out() -> None:
    with pytest.raises(ConvexlawError, match=r"learning rate = -0\.001 at step 1 of run 'run' is negative"):
        read_runs(log([0, 1, 2], [1e-3, -1e-3, 1e-3]))
    table = read_runs(log([0, 1, 2**52], [1e-3, 1e-3, 1e-3]))
    with pytest.raises(
        ConvexlawError,
        match=r"ends at step 4503599627370496: more than 100000000 steps .* \(are these tokens\?\)",
    ):
        table.dense_lr("run")


def test_selecting_runs_keeps_their_schedules() -> None:
    frame = pd.concat([log([0, 5], [1.0, 1.0]).assign(run=r) for r in "abc"])
    table = read_runs(frame, schedule={"a": np.arange(6.0), "b": np.arange(6.0) * 2})
    part = table.select(["b", "c"])
    np.testing.assert_array_equal(part.dense_lr("b"), np.arange(6.0) * 2)
    np.testing.assert_array_equal(part.dense_lr("c"), np.ones(6))
