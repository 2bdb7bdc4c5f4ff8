"""What looks wrong is kept, counted and said; what is healthy is left in peace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError
from convexlaw.runs.table import RunTable


def healthy(n: int = 200, every: int = 10, noise: float = 0.01, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    steps = every * np.arange(n)
    losses = (2.0 + 8.0 / (1 + steps / 20) ** 0.5) * np.exp(noise * rng.standard_normal(n))
    return pd.DataFrame({"step": steps, "lr": 1e-3, "loss": losses})


def told(table: RunTable, kind: str) -> list[str]:
    return [getattr(n, "text", n) for n in table.notes if getattr(n, "kind", "") == kind]


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.01, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_has_no_notes(noise: float, seed: int) -> None:
    assert read_runs(healthy(noise=noise, seed=seed)).notes == []


def test_nan_and_infinities_are_counted_by_kind() -> None:
    frame = healthy(50)
    frame.loc[[5, 7], "loss"] = math.nan
    frame.loc[20, "loss"] = math.inf
    frame.loc[49, "loss"] = -math.inf
    table = read_runs(frame)
    assert told(table, "nan") == ["2 NaN and 2 infinite training losses at steps 50, 70, 200, 490: dropped"]
    assert len(table.frame) == 46
    with pytest.raises(
        ConvexlawError, match=r"2 NaN and 2 infinite training losses in run 'run' .* \(rows 6, 8, 21, 50\)"
    ):
        read_runs(frame, na="error")
    with pytest.raises(ConvexlawError, match="na = 'keep' must be one of 'drop', 'error'"):
        read_runs(frame, na="keep")


def test_a_run_of_nan_alone_is_refused() -> None:
    with pytest.raises(ConvexlawError, match="has no finite loss: all 3 are NaN or infinite"):
        read_runs(pd.DataFrame({"step": [0, 1, 2], "loss": [math.inf, math.nan, math.inf]}))


def test_validation_losses_on_rows_of_their_own_are_no_nan() -> None:
    frame = healthy(100)
    frame["val_loss"] = np.where(np.arange(100) % 10 == 0, frame["loss"] + 0.1, np.nan)
    table = read_runs(frame)
    assert table.notes == []
    assert len(table.curve("run", "val")[0]) == 10
    interleaved = pd.concat([frame[["step", "loss"]], frame[["step", "val_loss"]].dropna()]).sort_values(
        "step", kind="stable"
    )
    assert read_runs(interleaved).notes_for("run") == [
        "no learning rate in the log: pass schedule= (one learning rate a step) before fitting"
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(5, 194), min_size=1, max_size=6, unique=True), st.floats(1.5, 50), st.integers(0, 3)
)
def test_isolated_spikes_are_found_kept_and_dropped_on_request(
    places: list[int], height: float, seed: int
) -> None:
    places = [p for k, p in enumerate(sorted(places)) if k == 0 or p - sorted(places)[k - 1] > 3]
    frame = healthy(seed=seed)
    frame.loc[places, "loss"] *= height
    table = read_runs(frame)
    assert table.spikes["step"].tolist() == [10 * p for p in places]
    assert table.spikes["loss"].tolist() == frame.loc[places, "loss"].tolist()
    assert len(table.frame) == 200
    count = f"{len(places)} spike{'s' if len(places) > 1 else ''}"
    assert told(table, "spikes")[0].startswith(f"{count} in the training loss at step {10 * places[0]} (")
    rest = table.drop_spikes()
    assert rest.curve("run")[0].tolist() == [10 * k for k in range(200) if k not in places]
    assert told(rest, "spikes") == []
    assert told(rest, "dropped_spikes")[0].startswith(f"{count} dropped, at step {10 * places[0]}")


def test_spikes_far_down_a_long_run_are_found() -> None:
    frame = healthy(20_000, every=1)
    places = [255, 256, 257, 5000, 12_287, 19_990]
    frame.loc[places, "loss"] *= 3
    assert read_runs(frame).spikes["step"].tolist() == places


def test_divergence_is_told_from_a_spike() -> None:
    frame = healthy(200)
    frame.loc[150:, "loss"] = 11.0
    table = read_runs(frame)
    lowest = frame["loss"][:150].min()
    assert told(table, "divergence") == [
        f"diverged at step 1500: to the end 50 of 50 rows are above 1.5 x the lowest loss "
        f"({lowest:.4g}): kept, fit the steps before"
    ]
    assert told(table, "spikes") == []
    assert len(table.frame) == 200
    frame = healthy(200)
    frame.loc[150:179, "loss"] = 11.0
    assert told(read_runs(frame), "divergence")[0].startswith(
        "diverged at step 1500: until step 1790 30 of 50 rows"
    )
    frame = healthy(200)
    frame.loc[150:152, "loss"] = 11.0  # 20 steps: too short to be called divergence
    assert told(read_runs(frame), "divergence") == []


def test_losses_that_end_in_nan_are_called_divergence() -> None:
    frame = healthy(100)
    frame.loc[80:, "loss"] = math.nan
    table = read_runs(frame)
    assert told(table, "nan")[0].startswith(
        "20 NaN training losses at steps 800, 810, 820, 830, 840, ... (20 in all, last 990)"
    )
    assert told(table, "divergence") == [
        "no finite loss after step 790: the last 20 rows are NaN or infinite, the run diverged"
    ]


@pytest.mark.parametrize(("length", "said"), [(2, False), (3, True), (12, True)])
def test_a_flat_plateau_before_a_nan(length: int, said: bool) -> None:
    frame = healthy(100)
    frame.loc[60 - length : 59, "loss"] = 2.5
    frame.loc[60, "loss"] = math.nan
    found = told(read_runs(frame), "plateau")
    assert bool(found) == said
    if said:
        start = 10 * (60 - length)
        assert found[0].startswith(
            f"the loss stands at exactly 2.5 on {length} rows (steps {start} to 590) before it is lost "
            f"at step 600"
        )


def test_a_plateau_without_a_nan_is_no_reason_to_speak() -> None:
    frame = healthy(100)
    frame.loc[40:60, "loss"] = frame.loc[40, "loss"]
    assert told(read_runs(frame), "plateau") == []


@pytest.mark.parametrize("factor", [2, 4, 8, 32])
def test_a_training_loss_summed_over_micro_batches(factor: int) -> None:
    frame = healthy(200)
    frame["val_loss"] = np.where(np.arange(200) % 20 == 10, frame["loss"] * 1.01, np.nan)
    frame["loss"] *= factor
    table = read_runs(frame)
    assert told(table, "loss_multiple")[0].startswith(
        f"the training loss is about {factor} x the evaluation loss (ratio "
    )
    assert f"pass loss_scale={factor}" in told(table, "loss_multiple")[0]
    mended = read_runs(frame, loss_scale=factor)
    np.testing.assert_allclose(mended.curve("run")[1], frame["loss"] / factor)
    np.testing.assert_array_equal(mended.curve("run", "val")[1], frame["val_loss"].dropna())
    assert told(mended, "loss_multiple") == []
    assert told(mended, "loss_scale") == [f"training losses are divided by {factor} (loss_scale)"]


def test_loss_scale_by_run_and_its_errors() -> None:
    frame = pd.concat([healthy().assign(run="a"), healthy().assign(run="b")])
    table = read_runs(frame, loss_scale={"b*": 2.0})
    np.testing.assert_allclose(table.curve("b")[1], table.curve("a")[1] / 2)
    for bad in (0, -1, math.nan, "x"):
        with pytest.raises(ConvexlawError, match="must be a finite number > 0"):
            read_runs(frame, loss_scale=bad)  # type: ignore[arg-type]


def tokens(frame: pd.DataFrame, batch: Any, length: float, after: int = 0) -> pd.DataFrame:
    """Add batch sizes and the tokens used before (or after) every update."""
    steps = np.arange(frame["step"].max() + 1)
    sizes = np.broadcast_to(np.asarray(batch, dtype=float), steps.shape)
    used = np.concatenate(([0.0], np.cumsum(sizes * length)))
    return frame.assign(batch_size=sizes[frame["step"]], tokens=used[frame["step"] + after])


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("stated", [True, False])
def test_right_token_counts_are_left_in_peace(after: int, stated: bool) -> None:
    frame = tokens(healthy(), 8, 512, after)
    assert read_runs(frame.assign(seq_len=512) if stated else frame).notes == []
    # a batch that doubles at the logged step 1000
    steps = np.arange(1991)
    assert (
        read_runs(tokens(healthy(), np.where(steps < 1000, 8, 16), 512, after).assign(seq_len=512)).notes
        == []
    )


def test_token_counts_that_disagree_are_counted() -> None:
    frame = tokens(healthy(), 8, 512).assign(seq_len=512)
    frame.loc[150:, "tokens"] *= 1.02
    found = told(read_runs(frame), "tokens")
    assert found[0].startswith(
        "tokens disagree with step x batch x length by more than 1 % on 50 of 200 rows, first at step 1500: "
    )
    assert "6.26688e+06 logged, 6.144e+06 expected with length 512" in found[0]
    frame = tokens(healthy(), 8, 512).assign(seq_len=1024)
    assert "on 199 of 200 rows" in told(read_runs(frame), "tokens")[0]
    frame = tokens(healthy(), 8, 512)
    frame.loc[150:, "tokens"] *= 1.02
    assert "length 512 (the length that fits most rows)" in told(read_runs(frame), "tokens")[0]
    frame = tokens(healthy(), 8, 512)
    frame.loc[150:, "tokens"] *= 1.005
    assert read_runs(frame).notes == []


def test_a_token_counter_that_starts_again() -> None:
    frame = tokens(healthy(), 8, 512)
    frame.loc[100:, "tokens"] -= frame.loc[100, "tokens"]
    assert told(read_runs(frame), "tokens") == [
        "tokens fall back 1 time while steps go on: a counter reset by a restart? kept"
    ]


def test_tokens_that_grow_unevenly_without_a_batch_size() -> None:
    frame = tokens(healthy(), np.where(np.arange(1991) < 1000, 8, 16), 512).drop(columns="batch_size")
    assert told(read_runs(frame), "tokens")[0].startswith("tokens grow by 4096 to 8192 a step")


@pytest.mark.parametrize("first", [2, 10, 2176])
def test_a_first_step_that_is_not_0_or_1_is_kept(first: int) -> None:
    frame = healthy().assign(step=lambda f: f["step"] + first)
    table = read_runs(frame)
    assert table.curve("run")[0][0] == first
    assert told(table, "first_step") == [
        f"first step is {first}, not 0 or 1: kept as given, nothing is re-indexed"
    ]


def test_irregular_logging_states_its_gaps() -> None:
    frame = healthy(100).drop(index=[40, 41, 42])
    assert told(read_runs(frame), "irregular") == [
        "logged every 10 steps but for 1 gap of another size (40 steps, 390 to 430)"
    ]
    frame = healthy(100).drop(index=[40, 41, 60])
    assert told(read_runs(frame), "irregular") == [
        "logged every 10 steps but for 2 gaps of another size (the widest 30 steps, 390 to 420)"
    ]
    steps = np.cumsum(np.random.default_rng(0).integers(1, 50, 100)) - 1
    frame = healthy(100).assign(step=steps)
    gaps = np.diff(steps)
    text = f"logged at irregular steps, {gaps.min()} to {gaps.max()} apart (median {np.median(gaps):g}; "
    assert told(read_runs(frame), "irregular")[0].startswith(text)


def test_a_row_lost_to_nan_is_no_gap() -> None:
    frame = healthy(100)
    frame.loc[50, "loss"] = math.nan
    assert told(read_runs(frame), "irregular") == []


def test_steps_that_are_tokens() -> None:
    frame = healthy(100).assign(step=lambda f: (f["step"] + 10) * 524_288, tokens=lambda f: f["step"])
    assert told(read_runs(frame), "step_units")[0].startswith("step and tokens are the same numbers")
    found = told(read_runs(frame.drop(columns="tokens")), "step_units")
    assert found[0].startswith("every step is a multiple of 5242880: these look like tokens or samples")
    assert told(read_runs(healthy(300, every=1000)), "step_units") == []


@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        ([0, -1, 2], r"step = -1 is negative in 1 row of run 'run' \(row 2\)"),
        ([0, 0.5, 2], r"step = 0.5 is not a whole number \(an epoch, or a time\?\)"),
        ([0, math.inf, 2], "step = inf is infinite"),
        ([0, 1e300, 2], r"step = 1e\+300 is beyond 2\^53"),
        ([math.nan] * 3, "the step column of run 'run' is empty"),
    ],
)
def test_steps_that_count_nothing_are_refused(steps: list[float], rule: str) -> None:
    with pytest.raises(ConvexlawError, match=rule):
        read_runs(pd.DataFrame({"step": steps, "loss": [3.0, 2.0, 1.0]}))


def test_a_loss_without_a_step_is_dropped_with_a_note() -> None:
    table = read_runs(pd.DataFrame({"step": [0, math.nan, 2], "loss": [3.0, 2.0, 1.0]}))
    assert told(table, "no_step") == ["1 row with a loss but no step (row 2): dropped"]
    assert table.curve("run")[0].tolist() == [0, 2]


def test_grouped_charts_keep_their_range() -> None:
    name = "Group: wsd - train/loss"
    frame = pd.DataFrame(
        {
            "Step": [0, 10, 20],
            name: [3.0, 2.5, 2.0],
            f"{name}__MIN": [2.9, 2.5, 1.9],
            f"{name}__MAX": [3.2, 2.5, 2.1],
        }
    )
    table = read_runs(frame)
    assert table.runs == ["Group: wsd"]
    assert table.frame[["loss_min", "loss_max"]].values.tolist() == [[2.9, 3.2], [2.5, 2.5], [1.9, 2.1]]
    assert told(table, "grouped")[0].startswith("2 of 3 points are means over a range (widest 0.3 nats)")
    halved = read_runs(frame, loss_scale=2)
    assert halved.frame["loss_max"].tolist() == [1.6, 1.25, 1.05]


def test_a_sampled_history_says_where_the_rest_is() -> None:
    rng = np.random.default_rng(0)
    steps = np.sort(rng.choice(100_000, 500, replace=False))
    frame = pd.DataFrame({"Step": steps, "big - train/loss": 3.0 - steps / 1e6})
    assert told(read_runs(frame), "irregular")[0].endswith(
        "W&B samples histories and charts: scan_history() gives every row"
    )


def test_one_row_a_run_is_a_table_of_final_losses() -> None:
    frame = pd.DataFrame({"run": ["a", "b", "c"], "step": [100, 200, 300], "loss": [3.0, 2.9, 2.8]})
    assert "every run has one row" in read_runs(frame).notes[0]


def test_a_mean_over_an_epoch_is_told() -> None:
    frame = pd.DataFrame({"step": [99, 199], "train_loss_epoch": [3.0, 2.5], "val_loss": [3.1, 2.6]})
    assert told(read_runs(frame), "averaged") == [
        "each training loss is the mean over an epoch: no curve within it is known"
    ]


def test_hugging_face_curves_state_their_windows() -> None:
    frame = pd.DataFrame({"train/global_step": [10, 20, 30, 50], "train/loss": [3.0, 2.5, 2.2, 2.0]})
    assert told(read_runs(frame), "averaged") == [
        "each training loss is the mean over the 10 to 20 steps since the row before up to its step "
        "(Hugging Face averages between logs)"
    ]
    every = frame.assign(**{"train/global_step": [1, 2, 3, 4]})
    assert told(read_runs(every), "averaged") == []


def test_infinite_cells_beside_the_loss_are_counted() -> None:
    frame = healthy(50).assign(batch_size=8.0, grad_norm=1.0, tokens=lambda f: 80.0 * f["step"])
    frame.loc[[3, 9], "lr"] = math.inf
    frame.loc[4, "grad_norm"] = math.inf
    frame.loc[5, "grad_norm"] = math.nan  # an absent cell
    frame.loc[6, "tokens"] = -math.inf
    table = read_runs(frame)
    assert told(table, "infinite") == [
        "2 infinite learning rates left out",
        "1 infinite token count left out",
        "1 infinite gradient norm left out",
    ]
    rows = table.frame.set_index("step")
    assert rows["lr"].tolist() == [1e-3] * 50  # lines between the logged points
    assert np.flatnonzero(rows["grad_norm"].isna()).tolist() == [4, 5]
    assert np.flatnonzero(rows["tokens"].isna()).tolist() == [6]
    lost = read_runs(frame.assign(lr=math.inf))
    assert told(lost, "infinite")[0] == "50 infinite learning rates left out"
    assert not lost.has_lr("run")


@pytest.mark.parametrize("wrong", [0.0, -8.0])
def test_batch_sizes_that_are_none_are_left_out_with_a_count(wrong: float) -> None:
    sizes = np.where(np.arange(50) < 40, 8.0, wrong)
    table = read_runs(healthy(50).assign(batch_size=sizes))
    assert told(table, "not_positive") == [
        f"10 batch sizes not positive, first {wrong:g} at step 400: left out"
    ]
    assert set(table.frame["batch_size"]) == {8.0}
    empty = read_runs(healthy(50).assign(batch_size=wrong))
    assert empty.frame["batch_size"].isna().all()


def test_losses_that_are_not_positive_are_told_and_kept() -> None:
    frame = healthy(50)
    frame.loc[[10, 20], "loss"] = [0.0, -1.5]
    table = read_runs(frame)
    assert told(table, "loss_sign") == [
        "2 training losses not positive, first 0 at step 100: kept, fits work on log loss and leave them out"
    ]
    assert len(table.frame) == 50
