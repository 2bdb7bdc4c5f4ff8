"""Restarts: which segment wins, what is averaged, what the notes count, against a row-by-row reference."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError

Row = tuple[int, float]


def reference(segments: list[list[Row]], duplicates: str) -> list[Row]:
    """Go through the rows one at a time, as a person with two sheets of paper would."""
    kept: dict[int, list[float]] = {}
    reach = -1
    for segment in segments:
        start, end = segment[0][0], max(step for step, _ in segment)
        if duplicates == "later":
            kept = {s: v for s, v in kept.items() if s < start}
        for step, value in segment:
            if duplicates == "earlier" and step <= reach:
                continue
            kept.setdefault(step, []).append(value)
        reach = max(reach, end)
    return [(s, math.fsum(v) / len(v)) for s, v in sorted(kept.items())]


def read(segments: list[list[Row]], duplicates: str) -> Any:
    rows = [row for segment in segments for row in segment]
    return read_runs(pd.DataFrame(rows, columns=["step", "loss"]), duplicates=duplicates)


@st.composite
def resumed(draw: st.DrawFn) -> list[list[Row]]:
    """Segments at one cadence: each later one starts at a step that an earlier one logged, below its last."""
    cadence = draw(st.sampled_from([1, 5, 10]))
    value = st.floats(0.5, 10, allow_nan=False)
    size = draw(st.integers(2, 12))
    segments = [[(k * cadence, draw(value)) for k in range(size)]]
    for _ in range(draw(st.integers(1, 3))):
        last = segments[-1][-1][0] // cadence
        first = draw(st.integers(0, max(last - 1, 0)))
        if first * cadence >= segments[-1][-1][0]:
            break
        length = draw(st.integers(1, 12))
        segments.append([((first + k) * cadence, draw(value)) for k in range(length)])
    return segments


@settings(max_examples=150, deadline=None)
@given(resumed(), st.sampled_from(["later", "earlier", "mean"]))
def test_any_restart_gives_the_table_of_the_reference(segments: list[list[Row]], duplicates: str) -> None:
    table = read(segments, duplicates)
    steps, losses = table.curve("run")
    expected = reference(segments, duplicates)
    assert steps.tolist() == [s for s, _ in expected]
    np.testing.assert_allclose(losses, [v for _, v in expected], rtol=1e-14)
    drops = sum(1 for a, b in pairwise(segments) if b[0][0] < a[-1][0])
    told = [n for n in table.notes if getattr(n, "kind", "") == "resumed"]
    assert len(told) == (drops > 0)
    if drops > 1:
        assert f"resumed {drops} times" in told[0]
    if duplicates == "later" and drops:
        gone = sum(len(s) for s in segments) - len(expected)
        merged = sum(
            int(n.split(":")[1].split()[0]) for n in table.notes if getattr(n, "kind", "") == "equal_steps"
        )
        assert (f"{gone - merged} training row" in told[0]) == (gone > merged)


def test_the_four_ways() -> None:
    segments = [[(0, 4.0), (10, 3.0), (20, 2.0)], [(10, 3.5), (20, 2.5), (30, 1.5)]]
    later = read(segments, "later")
    assert later.curve("run")[1].tolist() == [4.0, 3.5, 2.5, 1.5]
    note = (
        "resumed once (after step 20 back to step 10): the {} segment wins, "
        "2 training rows (steps 10 to 20) of the {} dropped"
    )
    assert note.format("later", "earlier") in later.notes_for("run")
    earlier = read(segments, "earlier")
    assert earlier.curve("run")[1].tolist() == [4.0, 3.0, 2.0, 1.5]
    assert note.format("earlier", "later") in earlier.notes_for("run")
    mean = read(segments, "mean")
    assert mean.curve("run")[1].tolist() == [4.0, 3.25, 2.25, 1.5]
    assert "resumed once (after step 20 back to step 10): steps logged twice are averaged" in mean.notes_for(
        "run"
    )
    assert (
        "2 training rows in both segments of a restart or at a step already logged: averaged"
        in mean.notes_for("run")
    )
    with pytest.raises(
        ConvexlawError, match=r"logs 2 training steps more than once, first step 10 \(rows 2, 3, 4, 5\)"
    ):
        read(segments, "error")
    with pytest.raises(
        ConvexlawError, match="duplicates = 'last' must be one of 'later', 'earlier', 'mean', 'error'"
    ):
        read(segments, "last")


def test_a_restart_at_another_cadence_still_wins_from_its_first_step() -> None:
    segments = [[(0, 4.0), (10, 3.0), (20, 2.0), (30, 1.0)], [(15, 2.6), (25, 2.1)]]
    steps, losses = read(segments, "later").curve("run")
    assert (steps.tolist(), losses.tolist()) == ([0, 10, 15, 25], [4.0, 3.0, 2.6, 2.1])


def test_a_run_that_died_early_after_its_restart_ends_where_it_died() -> None:
    segments = [[(k, 5.0 - k) for k in range(5)], [(1, 9.0)]]
    assert read(segments, "later").curve("run")[0].tolist() == [0, 1]
    assert read(segments, "earlier").curve("run")[0].tolist() == [0, 1, 2, 3, 4]


def test_equal_steps_inside_one_segment_are_averaged_with_a_count() -> None:
    table = read([[(0, 4.0), (10, 3.0), (10, 3.5), (10, 4.0), (20, 2.0)]], "later")
    assert table.curve("run")[1].tolist() == [4.0, 3.5, 2.0]
    assert table.notes_for("run")[0] == "2 training rows at a step already logged: averaged"


@pytest.mark.parametrize("value", [0.1, 1.7e308, 5e-324])
def test_the_mean_of_equal_losses_is_that_loss(value: float) -> None:
    table = read([[(0, value), (0, value), (0, value), (1, value)]], "later")
    assert table.curve("run")[1].tolist() == [value, value]


def test_evaluation_rows_follow_their_segment() -> None:
    history: list[dict[str, float]] = []
    for part, steps in ((0.0, range(10, 130, 10)), (0.25, range(110, 210, 10))):
        if part:
            history.append(
                {"step": 100, "eval_loss": 5.25}
            )  # the checkpoint is evaluated again before training goes on
        for step in steps:
            history.append({"step": step, "loss": 3.0 + part})
            if step % 50 == 0:
                history.append({"step": step, "eval_loss": 5.0 + part})
    table = read_runs(pd.DataFrame(history).rename(columns={"eval_loss": "val_loss"}))
    steps, losses = table.curve("run")
    assert steps.tolist() == list(range(10, 210, 10))
    assert losses.tolist() == [3.0] * 10 + [3.25] * 10
    assert [a.tolist() for a in table.curve("run", "val")] == [[50, 100, 150, 200], [5.0, 5.25, 5.25, 5.25]]
    assert table.notes_for("run")[0] == (
        "resumed once (after step 120 back to step 110): the later segment wins, 2 training rows (steps "
        "110 to 120) and 1 validation "
        "row (step 100) of the earlier dropped"
    )


def test_learning_rates_on_rows_of_their_own_follow_their_segment(tmp_path: Path) -> None:
    lines = []
    for rate, steps in ((0.1, range(0, 50, 5)), (0.2, range(25, 80, 5))):
        for step in steps:
            lines += [{"step": step, "lr": rate}, {"step": step, "loss": 3.0}]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    lr = read_runs(path).dense_lr("log")
    assert lr[:21].tolist() == [0.1] * 21
    assert lr[25:].tolist() == [0.2] * 51


def test_rows_of_a_dead_segment_do_not_count_as_nan() -> None:
    segments = [[(0, 4.0), (10, 3.0), (20, math.nan), (30, math.nan)], [(10, 3.2), (20, 2.8), (30, 2.5)]]
    table = read(segments, "later")
    assert table.curve("run")[1].tolist() == [4.0, 3.2, 2.8, 2.5]
    assert not [n for n in table.notes if getattr(n, "kind", "") == "nan"]


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 60).flatmap(lambda n: st.permutations(range(n))), st.sampled_from([1, 7, 50]))
def test_rows_out_of_order_are_sorted_not_taken_for_restarts(order: list[int], cadence: int) -> None:
    frame = pd.DataFrame({"step": np.array(order) * cadence, "loss": [1.0 + k for k in order]})
    table = read_runs(frame)
    steps, losses = table.curve("run")
    assert steps.tolist() == [k * cadence for k in range(len(order))]
    assert losses.tolist() == [1.0 + k for k in range(len(order))]
    if order != sorted(order):
        back = sum(b < a for a, b in pairwise(order))
        assert (
            f"{len(order)} rows out of order (a smaller step follows {back} time" in table.notes_for("run")[0]
        )


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_rows_at_uneven_steps_are_sorted_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 40, size=50))
    frame = pd.DataFrame({"step": steps, "loss": 3.0 - 0.01 * np.arange(50)})
    shuffled = frame.sample(frac=1, random_state=seed)
    pd.testing.assert_frame_equal(read_runs(shuffled).frame, read_runs(frame).frame)


def test_runs_newest_row_first_are_turned_round() -> None:
    frame = pd.DataFrame({"step": range(90, -10, -10), "loss": np.arange(10.0) + 1})
    assert read_runs(frame).curve("run")[1].tolist() == list(np.arange(10.0, 0, -1))


@pytest.mark.parametrize(("epochs", "times"), [(2, "once"), (5, "4 times")])
def test_steps_that_start_over_are_told(epochs: int, times: str) -> None:
    steps = np.tile(np.arange(0, 100, 10), epochs)
    table = read_runs(pd.DataFrame({"step": steps, "loss": 3.0 - 1e-3 * np.arange(steps.size), "lr": 1e-3}))
    told = [n.text for n in table.notes if n.kind == "starts_over"]  # type: ignore[attr-defined]
    assert len(told) == 1
    assert told[0].startswith(
        f"the steps start over at 0 {times}: several runs in one file, or steps counted"
    )


def test_a_restart_from_a_checkpoint_does_not_start_over() -> None:
    steps = np.concatenate((np.arange(0, 100, 10), np.arange(50, 150, 10)))
    table = read_runs(pd.DataFrame({"step": steps, "loss": 3.0, "lr": 1e-3}))
    assert "starts_over" not in {getattr(n, "kind", "") for n in table.notes}
