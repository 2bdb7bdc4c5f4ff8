"""From a table with a header to runs: the same for CSV, parquet, JSON records and frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from convexlaw.runs._cells import Table
from convexlaw.runs._columns import assign, normal
from convexlaw.runs._raw import Mask, NotALog, RawRun, listed, plural, printable
from convexlaw.runs.wandb import is_chart, note_history, read_chart

__all__ = ["runs_of_table", "sequence_length"]

ROLES = (
    "run",
    "step",
    "lr",
    "batch_size",
    "tokens",
    "samples",
    "loss",
    "val_loss",
    "split",
    "grad_norm",
    "seed",
    "seq_len",
)
NUMBERS = ("step", "loss", "val_loss", "lr", "batch_size", "tokens", "samples", "grad_norm", "seq_len")


def runs_of_table(
    table: Table, label: str, name: str, kind: str, meta: dict[str, Any] | None = None
) -> list[RawRun]:
    """Read the runs of a table.

    Parameters
    ----------
    table : Table
    label, name : str
        The source in messages, and the run's name where the table names none.
    kind : str
        The format, for ``meta``.
    meta : dict, optional
        What the source says of itself.

    Raises
    ------
    ConvexlawError
        No step, no loss, no rows, cells that are no numbers.
    """
    meta = dict(meta or {})
    if is_chart(table.header):
        table.prepare(range(len(table.header)))
        return read_chart(table.header, table.numbers, label, table.place, table.lines())
    chosen, remarks = assign(table.header, ROLES)
    _require(table.header, chosen, label)
    table.prepare(sorted(chosen.values()))
    columns: dict[str, NDArray[Any]] = {
        role: table.numbers(chosen[role]) for role in NUMBERS if role in chosen
    }
    rows = columns["step"].size
    if rows == 0:
        raise NotALog(f"{label}: a header line and no rows; there is nothing to read")
    for role in ("loss", "val_loss"):
        if role in chosen and np.isnan(columns[role]).any():
            said = table.nan_marks(chosen[role])
            if said is not None:
                columns[f"{role}_nan"] = said
    lines = table.lines()
    if lines is not None:
        columns["line"] = lines
    meta["columns"] = {role: printable(table.header[p], 80) for role, p in chosen.items()}
    whole = RawRun(name, label, columns, kind, meta, place=table.place)
    history = note_history(table.header, chosen, columns)
    if history is not None:
        whole.kind = "wandb_history"
        remarks = [*(r for r in remarks if not r[1].startswith("step ")), *history]
    whole.notes += remarks
    if "loss" in chosen and normal(table.header[chosen["loss"]]).endswith("loss_epoch"):
        whole.note("averaged", "each training loss is the mean over an epoch: no curve within it is known")
    keys = _keys(whole, table, chosen)
    if "split" in chosen:
        keep = _part_by_split(whole, table.words(chosen["split"]))
        keys = keys[keep] if keys is not None else None
    runs = [whole] if keys is None else _part_by_run(whole, keys)
    for run in runs:
        _mark_plain_nan(run, sparse=history is not None)
        _samples(run)
    return runs


def _require(header: list[str], chosen: dict[str, int], label: str) -> None:
    there = listed([printable(h, 40) for h in header], 12) or "none at all"
    if header and all(_is_number(h) for h in header):
        raise NotALog(
            f"{label}: the first line holds numbers ({there}); put a header line above, e.g. step,lr,loss"
        )
    if "loss" not in chosen and "val_loss" not in chosen:
        raise NotALog(
            f"{label}: no loss column among {there}; name it loss, train_loss, train/loss, val_loss or "
            f"eval_loss"
        )
    if "step" not in chosen:
        hint = ""
        if "tokens" in chosen or "samples" in chosen:
            hint = " (tokens or samples alone do not count updates: add a step column)"
        elif any(normal(h) == "epoch" for h in header):
            hint = " (epochs are too coarse: add the number of updates)"
        raise NotALog(
            f"{label}: no step column among {there}; name it step, iter, global_step or _step{hint}"
        )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


_SPLITS = {
    **dict.fromkeys(("train", "training", "fit"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "eval", "evaluation", "dev"), "val"),
}


def _part_by_split(run: RawRun, words: NDArray[np.object_]) -> Mask:
    """Turn a split column into the columns loss and val_loss; return the rows that are kept."""
    split = [_SPLITS.get(str(w).lower(), "") if w is not None else "train" for w in words]
    val = np.array([s == "val" for s in split], dtype=bool)
    other = np.array([s == "" for s in split], dtype=bool)
    if other.any():
        names = sorted({printable(words[k], 30) for k in np.flatnonzero(other)[:1000]})
        run.note(
            "split",
            f"{plural(int(other.sum()), 'row')} of split {listed(names)} left out (train and val are read)",
        )
    if "loss" in run.columns and val.any():
        for name in ("loss", "loss_nan"):
            if name in run.columns:
                values = run.columns[name]
                blank = np.nan if name == "loss" else False
                old = run.columns.get(name.replace("loss", "val_loss"), np.full(values.size, blank))
                run.columns[name.replace("loss", "val_loss")] = np.where(val, values, old)
                run.columns[name] = np.where(val, blank, values)
        run.columns["val_row"] = val
    run.keep(~other)
    return ~other


def _mark_plain_nan(run: RawRun, sparse: bool) -> None:
    """Mark losses that a source left empty where a number belongs; count the other rows without a loss.

    A table that logs each metric on rows of its own leaves most cells empty: they are absent. In a table
    that writes one row a step, an empty loss (that is how NaN is saved in many formats) is a NaN. The two
    differ in how many rows are empty, in how often empty and filled rows take turns, and in whether another
    row of the same step has the loss.
    """
    lead = "loss" if "loss" in run.columns and not np.isnan(run.columns["loss"]).all() else "val_loss"
    val_row = run.columns.pop("val_row", None)
    values = run.columns.get(lead)
    if values is None:
        return
    empty = np.isnan(values)
    if not empty.any() or empty.all():
        return
    steps, filled = run.columns["step"], int(np.sum(~empty))
    empty &= np.isnan(run.values("val_loss" if lead == "loss" else "loss")) & ~np.isnan(steps)
    empty &= ~run.marks("loss_nan") & ~run.marks("val_loss_nan")
    if val_row is not None:
        empty &= ~val_row
    group = np.concatenate(([0], np.cumsum(np.diff(steps) != 0)))  # rows in a row at one step
    alone = empty & ~np.isin(group, group[~np.isnan(values)])
    blocks = int(np.sum(alone[1:] & ~alone[:-1]) + alone[:1].sum())
    if not sparse and (blocks <= max(1, 0.2 * filled) or 3 * alone.sum() <= filled):
        run.columns[f"{lead}_nan"] = run.marks(f"{lead}_nan") | alone
        empty &= ~alone
    if empty.any():
        run.note(
            "no_loss",
            f"{int(empty.sum())} of {plural(len(run), 'row')} carry no loss (other metrics have rows of "
            f"their own)",
        )


def _keys(run: RawRun, table: Table, chosen: dict[str, int]) -> NDArray[np.object_] | None:
    """Name the run of every row; None where the table holds one run that it does not name."""
    seeds = table.words(chosen["seed"]) if "seed" in chosen else None
    if "run" in chosen:
        names = table.words(chosen["run"])
        names = np.array([run.name if n is None else printable(n) for n in names], dtype=object)
        if seeds is not None and len(set(zip(names, seeds, strict=True))) > len(set(names)):
            names = np.array([f"{n} seed={s}" for n, s in zip(names, seeds, strict=True)], dtype=object)
        run.named = True
        return names
    if seeds is not None:
        different = set(seeds)
        if len(different) > 1:
            return np.array([f"{run.name} seed={s}" for s in seeds], dtype=object)
        run.meta.setdefault("seed", different.pop())
    found = _unnamed_keys(run, table, set(chosen.values()))
    if not found:
        return None
    run.note(
        "split_by", f"one table, several runs: told apart by {' and '.join(title for _, title in found)}"
    )
    run.named = True
    return np.array(
        [" ".join(printable(w) for w in row) for row in zip(*(words for words, _ in found), strict=True)],
        dtype=object,
    )


def _part_by_run(whole: RawRun, names: NDArray[np.object_]) -> list[RawRun]:
    codes, uniques = pd.factorize(names)
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(uniques) + 1))
    whole.columns.setdefault("line", np.arange(1, len(whole) + 1))
    runs = []
    for k, unique in enumerate(uniques):
        rows = order[edges[k] : edges[k + 1]]
        columns = {c: v[rows] for c, v in whole.columns.items()}
        part = RawRun(
            str(unique), whole.source, columns, whole.kind, dict(whole.meta), list(whole.notes), whole.place
        )
        part.named = whole.named
        runs.append(part)
    return runs


def _unnamed_keys(run: RawRun, table: Table, taken: set[int]) -> list[tuple[NDArray[np.object_], str]]:
    """Find columns that tell runs apart in one file that starts over and over, e.g. model and schedule.

    Such a column changes only where ``step`` falls back to the beginning; a resumed run falls back into the
    middle.
    """
    steps = run.columns["step"]
    with np.errstate(invalid="ignore"):
        falls = np.flatnonzero(np.diff(steps) < 0) + 1
    others = [p for p in range(len(table.header)) if p not in taken]
    if not falls.size or not others or falls.size > 5000 or len(others) > 50:
        return []
    starts = np.concatenate(([0], falls))
    reach = np.maximum.reduceat(steps, starts)[:-1]
    fresh = steps[falls] <= steps[starts[:-1]] + 0.1 * (reach - steps[starts[:-1]])
    table.prepare([*sorted(taken), *others])
    found = []
    for place in others:
        if normal(table.header[place]) in (
            "epoch",
            "time",
            "host",
            "hostname",
            "pid",
            "session",
            "date",
            "timestamp",
            "wall_time",
        ):
            continue
        words = table.words(place)
        codes = pd.factorize(words)[0]
        turns = np.flatnonzero(np.diff(codes) != 0) + 1
        if turns.size and np.isin(turns, falls[fresh]).all():
            found.append((words, normal(table.header[place])))
    return found


def _samples(run: RawRun) -> None:
    """Turn samples into tokens where the length of a sequence is known; keep a constant length as meta."""
    lengths = run.columns.pop("seq_len", None)
    samples = run.columns.pop("samples", None)
    if lengths is not None:
        known = lengths[np.isfinite(lengths)]
        if known.size and known.min() == known.max():
            run.meta.setdefault("seq_len", float(known[0]))
    if samples is None or "tokens" in run.columns:
        return
    length = sequence_length(run.meta)
    if length:
        with np.errstate(over="ignore"):
            run.columns["tokens"] = samples * length
        run.note("tokens", f"tokens are samples x {length:g} (sequence length of the log)")
    else:
        run.note(
            "tokens", "samples are logged but no sequence length: tokens stay empty (add a column seq_len)"
        )


def sequence_length(meta: dict[str, Any]) -> float | None:
    """Return the sequence length that a log states, if any."""
    for key in (
        "seq_len",
        "sequence_length",
        "seq_length",
        "block_size",
        "context_length",
        "context",
        "max_length",
        "n_ctx",
    ):
        value = meta.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9:
            return float(value)
    return None
