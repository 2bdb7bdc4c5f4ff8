"""Reading training logs: one tidy table of any number of runs, and the notes on how it came to be."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd

from convexlaw.errors import ConvexlawError
from convexlaw.runs import _seeds
from convexlaw.runs._late import placed
from convexlaw.runs._raw import Note, RawRun, listed, plural
from convexlaw.runs._reading import raw_runs
from convexlaw.runs._run_table import RunTable, check_choice, with_rate_notes
from convexlaw.runs.clean import COLUMNS, EXTRA, TidyRun, tidy
from convexlaw.runs.suspects import examine

__all__ = ["RunTable", "read_runs"]

# pandas 3 copies a shared column when it is written to, as long as its other holder lives
_COPIES_ON_WRITE = int(pd.__version__.split(".")[0]) >= 3


def read_runs(
    source: Any,
    *,
    schedule: Any = None,
    duplicates: str = "later",
    na: str = "drop",
    loss_scale: float | Mapping[str, float] = 1.0,
) -> RunTable:
    """Read training logs into one tidy table, with notes on everything dropped, merged, guessed or suspect.

    Parameters
    ----------
    source : path, glob, folder, "-", frame, or a list of these (or a mapping of run to one of these)
        Files are recognised by content: CSV in any dialect, JSON and JSONL, parquet, TensorBoard event
        files, W&B chart and history exports, Hugging Face trainer states, Lightning metrics, MLflow metric
        files, each also gzipped. A frame needs ``step`` and ``loss`` (or ``val_loss``), and may have
        ``run``, ``lr``, ``batch_size``, ``tokens``, ``split``, ``grad_norm``.
    schedule : array, mapping of run or glob to array, or function of the run's name, optional
        Learning rate of every step, 0-based, where a log has none or only some of them.
    duplicates : {"later", "earlier", "mean", "error"}
        Which segment of a resumed run wins where both logged a step.
    na : {"drop", "error"}
        What to do with losses that are NaN or infinite.
    loss_scale : float, or mapping of run or glob to float
        Training losses are divided by it, e.g. by the number of micro-batches a log has summed over.

    Returns
    -------
    RunTable

    Raises
    ------
    ConvexlawError
        A source that is no log, or one that cannot be read whole: the message names file, column and rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from convexlaw import read_runs
    >>> log = pd.DataFrame({"iter": [0, 10], "train/loss": [4.0, 3.0], "learning_rate": 1e-3})
    >>> read_runs(log).frame["lr"].tolist()
    [0.001, 0.001]
    """
    check_choice("duplicates", duplicates, ("later", "earlier", "mean", "error"))
    check_choice("na", na, ("drop", "error"))
    raws, notes = raw_runs(source)
    done = []
    for raw in raws:
        run = tidy(raw, duplicates, na, _scale_for(loss_scale, raw.name))
        if "lr" in run.side:
            run.side["lr"], said = placed(raw, run.side["lr"])
            run.notes += [Note(run.name, kind, text) for kind, text in said]
        run.notes += [Note(run.name, kind, text) for kind, text in examine(run, raw.kind)]
        done.append(run)
    for run, earlier in _same_rows(done):
        rows = plural(run.columns["step"].size, "row")
        text = f"the same {rows} as {earlier.name}: leave one of them out of a fit"
        notes.append(Note(run.name, "same_rows", text))
    if len(done) > 1 and all(d.columns["step"].size == 1 for d in done):
        notes.append(
            Note(
                "",
                "single_rows",
                "every run has one row: final losses rather than curves (fit_table takes tables of N, D, "
                "loss)",
            )
        )
    table = _table(raws, done, notes)
    for base, members in _seeds.seed_groups(table.runs).items():
        table.notes.append(
            Note(
                "",
                "seeds",
                f"{len(members)} runs differ by their seed alone ({listed(members, 3)}): pool_seeds() "
                f"makes one run {base!r} of them",
            )
        )
    return table.with_schedule(schedule) if schedule is not None else with_rate_notes(table, table.runs)


def _scale_for(scale: Any, run: str) -> float:
    if isinstance(scale, Mapping):
        scale = scale.get(run, next((v for k, v in scale.items() if fnmatchcase(run, str(k))), 1.0))
    try:
        value = float(scale)
    except (TypeError, ValueError):
        value = np.nan
    if not (np.isfinite(value) and value > 0):
        raise ConvexlawError(
            f"loss_scale = {scale!r} for run {run!r} must be a finite number > 0 (losses are divided by it)"
        )
    return value


def _same_rows(runs: list[TidyRun]) -> list[tuple[TidyRun, TidyRun]]:
    """Find runs that hold the same rows as an earlier one: (run, the earlier one)."""
    seen: dict[bytes, TidyRun] = {}
    found = []
    for run in runs if len(runs) > 1 else ():
        digest = hashlib.blake2b(digest_size=16)
        rates = run.columns.get("lr", np.empty(0))
        for values in (run.columns["step"], run.columns["loss"], rates, np.array([run.val[0].size])):
            digest.update(np.ascontiguousarray(values).tobytes())
        earlier = seen.setdefault(digest.digest(), run)
        if earlier is not run:
            found.append((run, earlier))
    return found


def _table(raws: list[RawRun], done: list[TidyRun], notes: list[Note]) -> RunTable:
    sizes = [d.columns["step"].size for d in done]
    extra = [c for c in EXTRA if any(c in d.columns for d in done)]
    data: dict[str, Any] = {"run": _repeated([d.name for d in done], sizes)}
    for column in (*COLUMNS[1:], *extra):
        if column == "split":
            vals = [d.val[0].size for d in done]
            counts = [n for size, val in zip(sizes, vals, strict=True) for n in (size - val, val)]
            data[column] = _repeated(["train", "val"] * len(done), counts)
            continue
        parts = [
            d.columns[column] if column in d.columns else np.full(n, np.nan)
            for d, n in zip(done, sizes, strict=True)
        ]
        data[column] = parts[0] if len(parts) == 1 and parts[0].flags.writeable else np.concatenate(parts)
    # logged rates and their steps may be the columns themselves: an edit of the frame must leave them as
    # logged
    guards = []
    for column in ("step", "lr"):
        if _COPIES_ON_WRITE:
            data[column] = pd.Series(data[column], copy=False)
            guards.append(data[column])
        else:
            data[column] = data[column].copy()
    every: list[str] = [*(n for n in notes if not n.run)]
    for d in done:
        every += [*d.notes, *(n for n in notes if n.run == d.name)]
    return RunTable(
        pd.DataFrame(data, copy=False),
        every,
        {d.name: {**d.meta, "source": r.source, "format": r.kind} for r, d in zip(raws, done, strict=True)},
        {d.name: d.side.get("lr", (np.empty(0, np.int64), np.empty(0))) for d in done},
        _guards=guards,
    )


def _repeated(words: list[str], counts: list[int]) -> Any:
    """Repeat each word as often as its count says, as a column of text."""
    once = pd.array(words, dtype="str")
    if sum(counts) < 100_000 or getattr(once.dtype, "storage", "") != "pyarrow":
        return once.repeat(counts)
    import pyarrow

    # the same column from its two buffers: repeat() takes rows one by one, a fifth of the time of a long log
    sizes = [len(w.encode()) for w in words]
    if sum(n > 0 for n in counts) == 1:
        size = sizes[int(np.argmax(counts))]
        ends = size * np.arange(sum(counts) + 1, dtype=np.int64)
    else:
        ends = np.concatenate(([0], np.cumsum(np.repeat(sizes, counts))))
    data = b"".join(w.encode() * n for w, n in zip(words, counts, strict=True))
    column = pyarrow.LargeStringArray.from_buffers(
        len(ends) - 1, pyarrow.py_buffer(ends), pyarrow.py_buffer(data)
    )
    return pd.array(column, dtype="str")
