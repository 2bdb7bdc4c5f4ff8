"""From the rows of a file to tidy rows: restarts, equal steps, NaN, and a note that counts for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.runs._raw import Floats, Ints, Mask, Note, RawRun, listed, plural
from convexlaw.runs._segments import Segments, find_segments, kept_rows, merge_equal_steps

__all__ = ["COLUMNS", "EXTRA", "TidyRun", "tidy"]

COLUMNS = ("run", "step", "lr", "batch_size", "tokens", "loss", "split", "grad_norm")
"""Columns of the tidy table, in order."""
EXTRA = ("loss_min", "loss_max", "loss_std", "seeds")
"""Columns that pooled seeds add: what the mean over seeds leaves out."""
MAX_STEP = 2**53
_KIND = {"train": "training", "val": "validation"}
_SIDE = {
    "lr": "learning rate",
    "batch_size": "batch size",
    "tokens": "token count",
    "grad_norm": "gradient norm",
}

Stream = tuple[Ints, Floats]


@dataclass
class TidyRun:
    """One run made tidy.

    ``columns`` has equal-length arrays: training rows by step, then validation rows by step. ``train`` and
    ``val`` are its (steps, losses); ``side`` holds the (steps, values) of what was logged beside, on
    whatever rows.
    """

    name: str
    columns: dict[str, NDArray[Any]]
    train: Stream
    val: Stream
    side: dict[str, Stream]
    lost: Ints  # steps of training losses that were NaN or infinite
    meta: dict[str, Any] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


@np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")
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
        Steps that are no counts, no finite loss at all, or what ``duplicates="error"`` and ``na="error"``
        refuse.
    """
    steps = _steps(raw)
    values: dict[str, Floats] = {}
    rows: dict[str, Mask] = {}
    for split, column in (("train", "loss"), ("val", "val_loss")):
        if column in raw.columns:
            values[split] = raw.values(column)
            rows[split] = ~np.isnan(values[split])
            if f"{column}_nan" in raw.columns:
                rows[split] |= raw.marks(f"{column}_nan")
        else:
            values[split], rows[split] = np.empty(0), np.zeros(steps.size, dtype=bool)
    bounds = [raw.values(c) for c in ("loss_min", "loss_max") if c in raw.columns]
    if loss_scale != 1.0 and values["train"].size:
        values["train"] = values["train"] / loss_scale
        bounds = [b / loss_scale for b in bounds]
        raw.note("loss_scale", f"training losses are divided by {loss_scale:g} (loss_scale)")
    lead = rows["train"] if rows["train"].any() else rows["val"]
    if not lead.any():
        raise ConvexlawError(
            f"{raw.source}: run {raw.name!r} has no loss at any step; a log needs loss, train_loss, "
            f"val_loss or eval_loss"
        )
    segments = find_segments(steps, lead)
    if segments.unsorted:
        back = int(np.sum(np.diff(steps[lead]) < 0))
        raw.note(
            "unsorted",
            f"{int(lead.sum())} rows out of order (a smaller step follows {plural(back, 'time')}): "
            f"sorted by step",
        )

    tidied: dict[str, tuple[Ints, Floats]] = {}
    replaced: dict[str, Ints] = {}
    lost = np.empty(0, np.int64)
    for split in ("train", "val"):
        if split == "train" and not bounds and not segments.drops and rows[split].all():
            # the plain case, without copies: every row has a finite loss, step after step
            if np.isfinite(values[split]).all() and np.all(steps[1:] > steps[:-1]):
                tidied[split] = steps, values[split][:, None]
                continue
        place = np.flatnonzero(rows[split])
        if segments.drops:
            keep = kept_rows(steps[place], segments, duplicates, place)
            if not keep.all():
                replaced[split] = steps[place][~keep]
                place = place[keep]
        finite = _finite(raw, steps, values[split], place, split, na)
        if split == "train":
            lost = steps[place[~finite]]
        place = place[finite]
        if duplicates == "error":
            _refuse_duplicates(raw, steps, place, split)
        wanted = [values[split], *(bounds if split == "train" else [])]
        restarts = duplicates == "mean" and bool(segments.drops)
        tidied[split] = _merged(raw, steps, wanted, place, split, restarts)
    if segments.drops:
        _note_restarts(raw, segments, replaced, duplicates)
    if not tidied["train"][0].size and not tidied["val"][0].size:
        raise ConvexlawError(
            f"{raw.source}: run {raw.name!r} has no finite loss: all {int(lead.sum())} are NaN or infinite"
        )
    _note_signs(raw, *tidied["train"])
    side: dict[str, Stream] = {
        c: _stream(raw, c, steps, segments, duplicates) for c in _SIDE if c in raw.columns
    }
    if "lr" in side and side["lr"][0].size and side["lr"][1].min() < 0:
        k = int(np.argmin(side["lr"][1]))
        raise ConvexlawError(
            f"{raw.source}: learning rate = {side['lr'][1][k]:g} at step {side['lr'][0][k]} of run "
            f"{raw.name!r} is negative; mend the log"
        )
    columns = _assemble(raw, tidied, side)
    return TidyRun(
        raw.name,
        columns,
        (tidied["train"][0], tidied["train"][1][:, 0]),
        (tidied["val"][0], tidied["val"][1][:, 0]),
        side,
        lost,
        raw.meta,
        [Note(raw.name, kind, text) for kind, text in raw.notes],
    )


def _steps(raw: RawRun) -> Ints:
    """Check that ``step`` counts updates; drop rows without one."""
    given = raw.columns["step"].astype(np.float64, copy=False)
    absent = np.isnan(given)
    if absent.any():
        if absent.all():
            raise ConvexlawError(
                f"{raw.source}: the step column of run {raw.name!r} is empty; every row needs its step"
            )
        losing = absent & (~np.isnan(raw.values("loss")) | ~np.isnan(raw.values("val_loss")))
        if losing.any():
            where = raw.where(np.flatnonzero(losing))
            raw.note(
                "no_step", f"{plural(int(losing.sum()), 'row')} with a loss but no step ({where}): dropped"
            )
        raw.keep(~absent)
        given = given[~absent]
    steps = given.astype(np.int64)
    if np.array_equal(steps, given) and steps.min() >= 0 and steps.max() <= MAX_STEP:
        return steps
    for wrong, rule in (
        (~np.isfinite(given), "is infinite"),
        (given < 0, "is negative"),
        (given > MAX_STEP, f"is beyond 2^53 = {MAX_STEP}"),
        (given != np.floor(given), "is not a whole number (an epoch, or a time?)"),
    ):
        if wrong.any():
            raise ConvexlawError(
                f"{raw.source}: step = {given[np.argmax(wrong)]:g} {rule} in "
                f"{plural(int(wrong.sum()), 'row')} of run {raw.name!r} "
                f"({raw.where(np.flatnonzero(wrong))}); steps count updates: 0, 1, 2, ..."
            )
    raise ConvexlawError(f"{raw.source}: the steps of run {raw.name!r} are no counts of updates")


def _finite(raw: RawRun, steps: Ints, values: Floats, place: NDArray[np.intp], split: str, na: str) -> Mask:
    """Tell which of these rows have a finite loss; note or refuse the others."""
    finite: Mask = np.isfinite(values[place])
    if finite.all():
        return finite
    rows = place[~finite]
    nans = int(np.isnan(values[rows]).sum())
    what = " and ".join(f"{n} {word}" for n, word in ((nans, "NaN"), (rows.size - nans, "infinite")) if n)
    what = f"{what} {_KIND[split]} loss{'es' if rows.size > 1 else ''}"
    where = f"step{'s' if rows.size > 1 else ''} {listed(steps[rows])}"
    if na == "error":
        raise ConvexlawError(
            f"{raw.source}: {what} in run {raw.name!r} at {where} ({raw.where(rows)}); pass na='drop' to "
            f"leave them out"
        )
    raw.note("nan", f"{what} at {where}: dropped")
    return finite


def _refuse_duplicates(raw: RawRun, steps: Ints, place: NDArray[np.intp], split: str) -> None:
    own = steps[place]
    if np.all(own[1:] > own[:-1]):
        return
    unique, counts = np.unique(own, return_counts=True)
    twice = unique[counts > 1]
    if twice.size:
        rows = place[np.isin(own, twice)]
        raise ConvexlawError(
            f"{raw.source}: run {raw.name!r} logs {plural(twice.size, f'{_KIND[split]} step')} more than "
            f"once, first step {twice[0]} "
            f"({raw.where(rows)}); pass duplicates='later', 'earlier' or 'mean'"
        )


def _merged(
    raw: RawRun, steps: Ints, values: list[Floats], place: NDArray[np.intp], split: str, restarts: bool
) -> tuple[Ints, Floats]:
    if not place.size:
        return np.empty(0, np.int64), np.empty((0, len(values)))
    own, means, merged = merge_equal_steps(steps[place], np.column_stack([v[place] for v in values]))
    if merged:
        why = "in both segments of a restart or " if restarts else ""
        raw.note(
            "equal_steps", f"{plural(merged, f'{_KIND[split]} row')} {why}at a step already logged: averaged"
        )
    return own, means


def _note_restarts(raw: RawRun, segments: Segments, replaced: dict[str, Ints], duplicates: str) -> None:
    count = len(segments.drops)
    if np.all(segments.starts[1:] <= segments.starts[0]):
        times = "once" if count == 1 else f"{count} times"
        raw.note(
            "starts_over",
            f"the steps start over at {segments.starts[-1]} {times}: several runs in one file, or steps "
            f"counted within an epoch? add a run column, or count updates through the whole run",
        )
    back = "; ".join(f"after step {a} back to step {b}" for a, b in segments.drops[:3]) + (
        "; ..." if count > 3 else ""
    )
    times = "once" if count == 1 else f"{count} times"
    if duplicates == "mean":
        raw.note("resumed", f"resumed {times} ({back}): steps logged twice are averaged")
        return
    winner, loser = ("later", "earlier") if duplicates == "later" else ("earlier", "later")
    gone = [
        f"{plural(s.size, f'{_KIND[split]} row')} "
        f"(step{f's {s.min()} to {s.max()}' if s.size > 1 else f' {s[0]}'})"
        for split, s in replaced.items()
    ]
    outcome = (
        f"the {winner} segment wins, {' and '.join(gone)} of the {loser} dropped"
        if gone
        else "no step is logged twice"
    )
    raw.note("resumed", f"resumed {times} ({back}): {outcome}")


def _note_signs(raw: RawRun, steps: Ints, values: Floats) -> None:
    if not steps.size or values[:, 0].min() > 0:
        return
    wrong = np.flatnonzero(values[:, 0] <= 0)
    raw.note(
        "loss_sign",
        f"{plural(wrong.size, 'training loss', 'training losses')} not positive, first "
        f"{values[wrong[0], 0]:g} at step {steps[wrong[0]]}: kept, fits work on log loss and leave them out",
    )


def _stream(raw: RawRun, column: str, steps: Ints, segments: Segments, duplicates: str) -> Stream:
    """Return the (steps, values) of a side column, finite cells only, the last logged value of every step."""
    values = raw.values(column)
    there = np.isfinite(values)
    if not there.all() and (endless := int(np.isinf(values).sum())):
        raw.note("infinite", f"{plural(endless, f'infinite {_SIDE[column]}')} left out")
    if column == "batch_size" and (wrong := there & (values <= 0)).any():
        k = int(np.argmax(wrong))
        raw.note(
            "not_positive",
            f"{plural(int(wrong.sum()), 'batch size')} not positive, first {values[k]:g} at step {steps[k]}: "
            f"left out",
        )
        there &= ~wrong
    if there.all() and not segments.drops:
        own, given = steps, values
    else:
        place = np.flatnonzero(there)
        if segments.drops:
            place = place[kept_rows(steps[place], segments, duplicates, place)]
        own, given = steps[place], values[place]
    if own.size < 2 or np.all(own[1:] > own[:-1]):
        return own, given
    order = np.argsort(own, kind="stable")
    own, given = own[order], given[order]
    last = np.concatenate((np.diff(own) > 0, [True]))
    return own[last], given[last]


def _lookup(at: Ints, stream: Stream) -> Floats:
    """Values of a stream at these steps, NaN where it has none."""
    own, values = stream
    if own is at or (own.size == at.size and np.array_equal(own, at)):
        return values
    out = np.full(at.size, np.nan)
    if own.size:
        spot = np.minimum(np.searchsorted(own, at), own.size - 1)
        hit = own[spot] == at
        out[hit] = values[spot[hit]]
    return out


def _assemble(
    raw: RawRun, tidied: dict[str, tuple[Ints, Floats]], side: dict[str, Stream]
) -> dict[str, NDArray[Any]]:
    train, val = tidied["train"], tidied["val"]
    columns: dict[str, NDArray[Any]] = {"step": _both(train[0], val[0])}
    for name, stream in side.items():
        parts = [_lookup(train[0], stream), _lookup(val[0], stream)]
        if name == "lr" and stream[0].size:
            parts = [_between(s, v, stream) for s, v in zip((train[0], val[0]), parts, strict=True)]
        elif name == "batch_size" and stream[0].size and stream[1].min() == stream[1].max():
            parts = [np.full(p.size, stream[1][0]) for p in parts]
        elif name == "grad_norm" and train[0].size:
            parts[1] = np.full(val[0].size, np.nan)  # the gradient of the training batch
        columns[name] = _both(*parts)
    stated = raw.meta.get("batch_size")
    if "batch_size" not in columns and isinstance(stated, (int, float)) and 0 < stated < 1e12:
        columns["batch_size"] = np.full(columns["step"].size, float(stated))
    columns["loss"] = _both(train[1][:, 0], val[1][:, 0])
    for k, name in enumerate([c for c in ("loss_min", "loss_max") if c in raw.columns], 1):
        columns[name] = _both(train[1][:, k], np.full(val[0].size, np.nan))
    return columns


def _both(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    if not second.size:
        return first
    return np.concatenate((first, second)) if first.size else second


def _between(steps: Ints, values: Floats, stream: Stream) -> Floats:
    """Fill absent learning rates by lines between logged points, never outside them."""
    absent = np.isnan(values)
    if not absent.any():
        return values
    own, given = stream
    inside = absent & (steps >= own[0]) & (steps <= own[-1])
    values = values.copy()
    values[inside] = np.interp(steps[inside], own, given)
    return values
