"""From the rows of a file to tidy rows: restarts, equal steps, NaN, and a note that counts for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.runs._raw import Note, RawRun
from convexlaw.runs._segments import Segments, find_segments, kept_rows, merge_equal_steps

__all__ = ["COLUMNS", "EXTRA", "TidyRun", "tidy"]

COLUMNS = ("run", "step", "lr", "batch_size", "tokens", "loss", "split", "grad_norm")
EXTRA = ("loss_min", "loss_max", "loss_std", "seeds")
MAX_STEP = 2**53

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class TidyRun:
    """One run made tidy: ``columns`` has equal-length arrays (training rows, then validation rows, each by step)."""

    name: str
    columns: dict[str, NDArray[Any]]
    lr_points: tuple[Ints, Floats]
    meta: dict[str, Any] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def tidy(raw: RawRun, duplicates: str = "later", na: str = "drop", loss_scale: float = 1.0) -> TidyRun:
    """Make one run tidy and say what was done.

    Parameters
    ----------
    raw : RawRun
        Rows in file order.
    duplicates : {"later", "earlier", "mean", "error"}
        What wins where a resumed run logged a step twice.
    na : {"drop", "error"}
        What to do with a loss that is NaN or infinite.
    loss_scale : float
        The training loss is divided by this (a log that holds the sum over k micro-batches has loss_scale k).

    Returns
    -------
    TidyRun

    Raises
    ------
    ConvexlawError
        Steps that are no counts, no loss at all, or what ``duplicates="error"`` and ``na="error"`` refuse.
    """
    frame = _with_steps(raw)
    steps = frame["step"].to_numpy(np.int64)
    loss = _values(frame, "loss")
    val = _values(frame, "val_loss")
    if loss_scale != 1.0:
        with np.errstate(over="ignore"):
            loss = loss / loss_scale
        raw.note("loss_scale", f"training losses divided by {loss_scale:g} (loss_scale)")
    train_rows = ~np.isnan(loss) | _marks(frame, "loss_nan")
    val_rows = ~np.isnan(val) | _marks(frame, "val_nan")
    if not train_rows.any() and not val_rows.any():
        raise ConvexlawError(
            f"{raw.source}: run {raw.name!r} has no loss in any of its {steps.size} rows; "
            "a log needs a column loss (or train_loss, train/loss, val_loss, ...)"
        )
    segments = find_segments(steps, train_rows)
    lead = train_rows if train_rows.any() else val_rows
    starts, ends = _bounds(steps, segments, lead)
    streams = {
        "train": (
            train_rows,
            np.column_stack([loss, *(_values(frame, c) for c in ("loss_min", "loss_max"))]),
        ),
        "val": (val_rows, val[:, None]),
    }
    if segments.unsorted:
        count = int(np.sum(np.diff(steps[lead]) < 0))
        raw.note(
            "unsorted",
            f"{lead.sum()} rows were not in order of step ({count} times a smaller step follows): sorted",
        )

    replaced: dict[str, tuple[int, int, int]] = {}
    tidied: dict[str, tuple[Ints, Floats]] = {}
    for split, (rows, values) in streams.items():
        place = np.flatnonzero(rows)
        keep = kept_rows(steps[place], segments.ids[place], starts, ends, duplicates)
        gone = steps[place][~keep]
        if gone.size:
            replaced[split] = (int(gone.size), int(gone.min()), int(gone.max()))
        place = place[keep]
        place = _finite_rows(raw, frame, steps, values[:, 0], place, split, na)
        if duplicates == "error":
            _refuse_duplicates(raw, frame, steps, place, split)
        own, means, merged = merge_equal_steps(steps[place], values[place])
        if merged:
            where = "" if duplicates != "mean" or not segments.drops else " (restarts included)"
            raw.note("equal_steps", f"{merged} {_kind(split)} rows repeat a step{where}: averaged")
        tidied[split] = (own, means)
    _note_restarts(raw, segments, replaced, duplicates)
    if not any(t[0].size for t in tidied.values()):
        raise ConvexlawError(
            f"{raw.source}: run {raw.name!r} has no finite loss in any of its {steps.size} rows"
        )

    side = {
        c: _stream(frame, c, steps, segments, starts, ends, duplicates)
        for c in ("lr", "batch_size", "tokens", "grad_norm")
    }
    columns = _assemble(raw, tidied, side)
    return TidyRun(
        raw.name, columns, side["lr"], dict(raw.meta), [Note(raw.name, k, t) for k, t in raw.notes]
    )


def _kind(split: str) -> str:
    return {"train": "training", "val": "validation"}[split]


def _values(frame: pd.DataFrame, column: str) -> Floats:
    if column not in frame:
        return np.full(len(frame), np.nan)
    return frame[column].to_numpy(np.float64)


def _marks(frame: pd.DataFrame, column: str) -> Mask:
    return frame[column].to_numpy(bool) if column in frame else np.zeros(len(frame), dtype=bool)


def _rows(raw: RawRun, frame: pd.DataFrame, place: Sequence[int] | Ints | NDArray[np.intp]) -> str:
    """Say where in the source these rows are, five at most."""
    lines = frame["line"].to_numpy()[place] if "line" in frame else np.asarray(place) + 1
    shown = ", ".join(str(int(x)) for x in lines[:5])
    more = f" and {len(lines) - 5} more" if len(lines) > 5 else ""
    return f"{raw.place}{'s' if len(lines) > 1 else ''} {shown}{more}"


def _with_steps(raw: RawRun) -> pd.DataFrame:
    """Check that ``step`` counts updates; drop rows without one."""
    frame = raw.frame
    given = frame["step"].to_numpy(np.float64)
    absent = np.isnan(given)
    if absent.any():
        losing = absent & (~np.isnan(_values(frame, "loss")) | ~np.isnan(_values(frame, "val_loss")))
        if absent.all():
            raise ConvexlawError(
                f"{raw.source}: the step column of run {raw.name!r} is empty; every row needs its step"
            )
        if losing.any():
            raw.note(
                "no_step",
                f"{losing.sum()} rows have a loss but no step ({_rows(raw, frame, np.flatnonzero(losing))}): dropped",
            )
        frame = frame.loc[~absent].reset_index(drop=True)
        given = given[~absent]
    for wrong, rule in (
        (~np.isfinite(given), "is infinite"),
        (given < 0, "is negative"),
        (given > MAX_STEP, f"is beyond 2^53 = {MAX_STEP}"),
        (given != np.floor(given), "is not a whole number (an epoch, or a time?)"),
    ):
        if wrong.any():
            first = given[np.argmax(wrong)]
            raise ConvexlawError(
                f"{raw.source}: step = {first:g} {rule} in {wrong.sum()} rows of run {raw.name!r} "
                f"({_rows(raw, frame, np.flatnonzero(wrong))}); steps are counts of updates, 0, 1, 2, ..."
            )
    return frame


def _bounds(steps: Ints, segments: Segments, lead: Mask) -> tuple[Ints, Ints]:
    count = int(segments.ids.max()) + 1 if steps.size else 1
    if count == 1:
        own = steps[lead]
        return np.array([own.min()]), np.array([own.max()])
    starts = np.full(count, np.iinfo(np.int64).max)
    ends = np.full(count, -1)
    np.minimum.at(starts, segments.ids[lead], steps[lead])
    np.maximum.at(ends, segments.ids[lead], steps[lead])
    return starts, ends


def _finite_rows(
    raw: RawRun,
    frame: pd.DataFrame,
    steps: Ints,
    values: Floats,
    place: NDArray[np.intp],
    split: str,
    na: str,
) -> NDArray[np.intp]:
    bad = ~np.isfinite(values[place])
    if not bad.any():
        return place
    rows = place[bad]
    nans = int(np.isnan(values[rows]).sum())
    what = " and ".join(f"{n} {word}" for n, word in ((nans, "NaN"), (rows.size - nans, "infinite")) if n)
    where = f"step{'s' if rows.size > 1 else ''} {_listed(steps[rows])}"
    if na == "error":
        raise ConvexlawError(
            f"{raw.source}: {what} {_kind(split)} loss{'es' if rows.size > 1 else ''} in run {raw.name!r} at {where} "
            f"({_rows(raw, frame, rows)}); pass na='drop' to leave these rows out"
        )
    raw.note("nan", f"{what} {_kind(split)} loss{'es' if rows.size > 1 else ''} at {where}: dropped")
    return place[~bad]


def _listed(steps: Ints, most: int = 5) -> str:
    """List steps, five at most."""
    text = ", ".join(str(int(s)) for s in steps[:most])
    return text if steps.size <= most else f"{text}, ... ({steps.size} in all, last {int(steps[-1])})"


def _refuse_duplicates(
    raw: RawRun, frame: pd.DataFrame, steps: Ints, place: NDArray[np.intp], split: str
) -> None:
    own = steps[place]
    unique, counts = np.unique(own, return_counts=True)
    twice = unique[counts > 1]
    if twice.size:
        rows = place[np.isin(own, twice)]
        raise ConvexlawError(
            f"{raw.source}: run {raw.name!r} logs {twice.size} {_kind(split)} steps more than once, e.g. step {twice[0]} "
            f"({_rows(raw, frame, rows)}); pass duplicates='later', 'earlier' or 'mean'"
        )


def _note_restarts(
    raw: RawRun, segments: Segments, replaced: dict[str, tuple[int, int, int]], duplicates: str
) -> None:
    if not segments.drops:
        return
    count = len(segments.drops)
    back = "; ".join(f"after step {a} back to step {b}" for a, b in segments.drops[:3]) + (
        "; ..." if count > 3 else ""
    )
    times = "once" if count == 1 else f"{count} times"
    if duplicates == "mean":
        outcome = "steps logged twice are averaged"
    else:
        gone = [
            f"{n} {_kind(s)} rows (steps {a} to {b})" if n > 1 else f"1 {_kind(s)} row (step {a})"
            for s, (n, a, b) in replaced.items()
        ]
        winner = "later" if duplicates == "later" else "earlier"
        loser = "earlier" if duplicates == "later" else "later"
        outcome = (
            f"the {winner} segment wins, {' and '.join(gone)} of the {loser} dropped"
            if gone
            else "no step is logged twice"
        )
    raw.note("resumed", f"resumed {times} ({back}): {outcome}")


def _stream(
    frame: pd.DataFrame,
    column: str,
    steps: Ints,
    segments: Segments,
    starts: Ints,
    ends: Ints,
    duplicates: str,
) -> tuple[Ints, Floats]:
    """Return the (steps, values) of a side column, finite cells only, the last logged value of every step."""
    values = _values(frame, column)
    place = np.flatnonzero(np.isfinite(values))
    if place.size == 0:
        return np.empty(0, np.int64), np.empty(0)
    place = place[kept_rows(steps[place], segments.ids[place], starts, ends, duplicates)]
    own, given = steps[place], values[place]
    if np.all(np.diff(own) > 0):
        return own, given
    order = np.argsort(own, kind="stable")
    own, given = own[order], given[order]
    last = np.concatenate((np.diff(own) > 0, [True]))
    return own[last], given[last]


def _lookup(at: Ints, stream: tuple[Ints, Floats]) -> Floats:
    """Values of a stream at these steps, NaN where it has none."""
    own, values = stream
    if own.size == at.size and np.array_equal(own, at):
        return values
    out = np.full(at.size, np.nan)
    if own.size:
        spot = np.minimum(np.searchsorted(own, at), own.size - 1)
        hit = own[spot] == at
        out[hit] = values[spot[hit]]
    return out


def _assemble(
    raw: RawRun, tidied: dict[str, tuple[Ints, Floats]], side: dict[str, tuple[Ints, Floats]]
) -> dict[str, NDArray[Any]]:
    train, val = tidied["train"], tidied["val"]
    columns: dict[str, NDArray[Any]] = {"step": np.concatenate((train[0], val[0]))}
    for name, stream in side.items():
        parts = [_lookup(train[0], stream), _lookup(val[0], stream)]
        if name == "lr" and stream[0].size:
            parts = [_between(s, v, stream) for s, v in zip((train[0], val[0]), parts, strict=True)]
        if name == "batch_size" and stream[0].size and stream[1].min() == stream[1].max():
            parts = [np.full(p.size, stream[1][0]) for p in parts]
        if name == "grad_norm" and train[0].size:
            parts[1] = np.full(val[0].size, np.nan)
        columns[name] = np.concatenate(parts)
    if "batch_size" in raw.meta and not side["batch_size"][0].size:
        columns["batch_size"] = np.full(columns["step"].size, float(raw.meta["batch_size"]))
    columns["loss"] = np.concatenate((train[1][:, 0], val[1][:, 0]))
    for k, name in ((1, "loss_min"), (2, "loss_max")):
        if name in raw.frame:
            columns[name] = np.concatenate((train[1][:, k], np.full(val[0].size, np.nan)))
    columns["split"] = np.repeat(np.array(["train", "val"], dtype=object), [train[0].size, val[0].size])
    return columns


def _between(steps: Ints, values: Floats, stream: tuple[Ints, Floats]) -> Floats:
    """Fill absent learning rates by lines between logged points, never outside them."""
    absent = np.isnan(values)
    if not absent.any():
        return values
    own, given = stream
    inside = absent & (steps >= own[0]) & (steps <= own[-1])
    values = values.copy()
    values[inside] = np.interp(steps[inside], own, given)
    return values
