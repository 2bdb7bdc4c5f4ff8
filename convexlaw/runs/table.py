"""One tidy table of any number of runs, and the notes on how it came to be."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from convexlaw._files import replacing
from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.runs import _rates
from convexlaw.runs._columns import assign
from convexlaw.runs._raw import Note, RawRun
from convexlaw.runs._source import Source, expand
from convexlaw.runs.clean import COLUMNS, EXTRA, TidyRun, tidy
from convexlaw.runs.csv import _ROLES, _numbers, _parse, read_delimited, require, sniff, split_runs
from convexlaw.runs.huggingface import is_trainer_state, read_trainer_state
from convexlaw.runs.wandb import is_chart, read_chart

__all__ = ["RunTable", "read_runs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RunTable(Result):
    """Training runs as one tidy table.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row a logged loss: ``run``, ``step`` (int, as logged), ``lr``, ``batch_size``, ``tokens``, ``loss`` (nats),
        ``split`` ("train" or "val"), ``grad_norm``; NaN where a log has none. Runs in the order they were read, in each
        the training rows by step, then the validation rows by step.
    notes : list of str
        What was dropped, merged, guessed or looks wrong, as "run: sentence".
    meta : dict of str to dict
        Per run: source, format, and what the log says of itself (weight_decay, init_std, schedule, ...).

    Examples
    --------
    >>> import pandas as pd
    >>> from convexlaw import read_runs
    >>> log = pd.DataFrame({"run": "a", "step": [0, 1, 2], "lr": [1e-3, 1e-3, 5e-4], "loss": [3.0, 2.5, float("nan")]})
    >>> table = read_runs(log)
    >>> table.frame[["step", "loss"]].values.tolist()
    [[0.0, 3.0], [1.0, 2.5]]
    >>> table.notes
    ['a: 1 NaN training loss at step 2: dropped']
    """

    frame: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    meta: dict[str, dict[str, Any]] = field(default_factory=dict)
    _points: dict[str, tuple[Ints, Floats]] = field(default_factory=dict, repr=False)
    _schedules: dict[str, Floats] = field(default_factory=dict, repr=False)

    _figure: ClassVar[str] = "runs:plot_runs"

    @property
    def runs(self) -> list[str]:
        """Names of the runs, in order."""
        return list(self.meta)

    def __len__(self) -> int:
        return len(self.meta)

    def __str__(self) -> str:
        lines = [
            f"{len(self)} run{'s' if len(self) != 1 else ''}, {len(self.frame)} rows, {len(self.notes)} notes"
        ]
        lines += [
            f"  {name}: {len(self.frame.loc[self.frame['run'] == name])} rows" for name in self.runs[:8]
        ]
        if len(self) > 8:
            lines.append(f"  ... and {len(self) - 8} more")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the tidy frame."""
        return self.frame.copy()

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy frame as CSV, whole or not at all; :func:`read_runs` reads it back."""
        with replacing(path) as tmp:
            self.frame.to_csv(tmp, index=False)

    def _checked(self, run: str) -> str:
        if run not in self.meta:
            raise ConvexlawError(
                f"run {run!r} is not in this table; it holds {', '.join(self.runs[:10]) or 'no runs'}"
            )
        return run

    def select(self, runs: str | Iterable[str]) -> RunTable:
        """Keep the runs with these names or globs.

        Parameters
        ----------
        runs : str or iterable of str
            Names, or patterns with ``*``, ``?`` and ``[...]`` (a name that matches exactly wins).

        Raises
        ------
        ConvexlawError
            A name or pattern that matches nothing.
        """
        wanted = [runs] if isinstance(runs, str) else list(runs)
        names: dict[str, None] = {}
        for pattern in wanted:
            hits = (
                [pattern] if pattern in self.meta else [n for n in self.runs if fnmatchcase(n, str(pattern))]
            )
            if not hits:
                raise ConvexlawError(
                    f"no run matches {pattern!r}; there are {', '.join(self.runs[:10]) or 'none'}"
                )
            names.update(dict.fromkeys(hits))
        keep = [n for n in self.runs if n in names]
        return replace(
            self,
            frame=self.frame.loc[self.frame["run"].isin(keep)].reset_index(drop=True),
            notes=[n for n in self.notes if getattr(n, "run", "") in names],
            meta={n: self.meta[n] for n in keep},
            _points={n: self._points[n] for n in keep},
            _schedules={n: s for n, s in self._schedules.items() if n in names},
        )

    def notes_for(self, run: str) -> list[str]:
        """Return the notes of one run, without its name."""
        self._checked(run)
        return [getattr(n, "text", n) for n in self.notes if getattr(n, "run", None) == run]

    def curve(self, run: str, split: str = "train") -> tuple[Ints, Floats]:
        """Return the (steps, losses) of one run and split ("train" or "val"), by step; empty where it has none."""
        self._checked(run)
        if split not in ("train", "val"):
            raise ConvexlawError(f"split = {split!r} must be 'train' or 'val'")
        rows = self.frame.loc[(self.frame["run"] == run) & (self.frame["split"] == split)]
        return rows["step"].to_numpy(np.int64), rows["loss"].to_numpy(np.float64)

    def last_step(self, run: str) -> int:
        """Return the last step of a run with a loss."""
        return int(self.frame.loc[self.frame["run"] == self._checked(run), "step"].max())

    def has_lr(self, run: str) -> bool:
        """Tell whether :meth:`dense_lr` has anything to go by."""
        return self._checked(run) in self._schedules or self._points[run][0].size > 0

    def dense_lr(self, run: str) -> Floats:
        """Learning rate of every step from 0 to the last step of a run that has a loss.

        Exact where ``schedule=`` was given. Otherwise lines between logged points only: before the first and after the last
        logged point the nearest value is held, and a fall to 0 out of a rate that was not declining is no cooldown
        (``notes`` says where any of this happened).

        Parameters
        ----------
        run : str
            Name of the run.

        Returns
        -------
        (last_step + 1,) array

        Raises
        ------
        ConvexlawError
            No learning rate in the log and no schedule given.
        """
        return _rates.dense(run, self.last_step(run), self._points[run], self._schedules.get(run))

    def with_schedule(self, schedule: Any) -> RunTable:
        """Return the same table with learning rates given: an array for all runs, run -> array (names or globs), or a function of the run's name."""
        return _scheduled(self, schedule)


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
    source : path, glob, folder, "-", frame, or a list of these
        Files are recognised by content. A frame needs ``step`` and ``loss`` (or ``val_loss``), and may have ``run``, ``lr``,
        ``batch_size``, ``tokens``, ``split``, ``grad_norm``.
    schedule : array, mapping of run to array, or function of the run's name, optional
        Learning rate of every step, 0-based, where a log has none or only a thinned one.
    duplicates : {"later", "earlier", "mean", "error"}
        Which segment of a resumed run wins where both logged a step.
    na : {"drop", "error"}
        What to do with losses that are NaN or infinite.
    loss_scale : float, or mapping of run to float
        Training losses are divided by it, e.g. the number of micro-batches a log has summed over.

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
    >>> read_runs(pd.DataFrame({"iter": [0, 10], "train/loss": [4.0, 3.0], "learning_rate": 1e-3})).frame["lr"].tolist()
    [0.001, 0.001]
    """
    _check_choice("duplicates", duplicates, ("later", "earlier", "mean", "error"))
    _check_choice("na", na, ("drop", "error"))
    raws, notes = _raw_runs(source)
    _unique_names(raws)
    done = []
    for raw in raws:
        scale = _scale_for(loss_scale, raw.name)
        done.append(tidy(raw, duplicates, na, scale))
    table = _table(raws, done, notes)
    if schedule is not None:
        table = _scheduled(table, schedule)
    return _with_rate_notes(table)


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConvexlawError(f"{name} = {value!r} must be one of {', '.join(map(repr, allowed))}")


def _scale_for(scale: Any, run: str) -> float:
    if isinstance(scale, Mapping):
        scale = scale.get(run, next((v for k, v in scale.items() if fnmatchcase(run, str(k))), 1.0))
    try:
        value = float(scale)
    except (TypeError, ValueError):
        value = float("nan")
    if not (np.isfinite(value) and value > 0):
        raise ConvexlawError(
            f"loss_scale = {scale!r} for run {run!r} must be a finite number > 0 (losses are divided by it)"
        )
    return value


def _raw_runs(source: Any) -> tuple[list[RawRun], list[Note]]:
    if isinstance(source, pd.DataFrame):
        return _from_frame(source), []
    if isinstance(source, (str, os.PathLike)):
        sources = list(expand(source))
        raws: list[RawRun] = []
        notes: list[Note] = []
        for one in sources:
            try:
                raws += _from_file(one)
            except ConvexlawError as error:
                if one.listed:
                    raise
                notes.append(Note("", "skipped", f"skipped: {error}"))
            finally:
                one.forget()
        if not raws:
            raise ConvexlawError(
                f"{source}: no training log among {len(sources)} files"
                + (f"; first: {notes[0]}" if notes else "")
            )
        return raws, notes
    if isinstance(source, Iterable):
        raws, notes = [], []
        for part in source:
            more, said = _raw_runs(part)
            raws += more
            notes += said
        if raws:
            return raws, notes
        raise ConvexlawError("source is an empty list; pass at least one file, folder, glob or frame")
    raise ConvexlawError(f"source of type {type(source).__name__} is no path, glob, frame, or list of these")


def _from_frame(frame: pd.DataFrame) -> list[RawRun]:
    header = [str(c) for c in frame.columns]
    chosen, remarks = assign(header, _ROLES)
    require(header, chosen, "frame")
    table = pd.DataFrame({role: frame.iloc[:, place].to_numpy() for role, place in chosen.items()})
    for column in table.columns:
        if column not in ("run", "split", "seed"):
            table[column] = _numbers(table[column], column, "frame", sniff(b"a,b\n1,2\n"))  # type: ignore[arg-type]
    runs = split_runs(table, "frame", "run", "frame", {})
    for run in runs:
        run.place = "row"
        for remark in remarks:
            run.note("columns", remark)
    return runs


def _from_file(source: Source) -> list[RawRun]:
    data = source.read()
    start = data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"{":
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ConvexlawError(f"{source.label}: not whole JSON ({error})") from None
        if is_trainer_state(value):
            return read_trainer_state(value, source.label, source.name)
        raise ConvexlawError(f"{source.label}: JSON without log_history")
    dialect = sniff(data)
    if dialect is None:
        raise ConvexlawError(f"{source.label}: neither a table nor a trainer_state.json")
    if is_chart(dialect.header):
        places = {str(k): k for k in range(len(dialect.header))}
        table = _parse(data, dialect, source.label, places)
        for column in list(table.columns):
            table[column] = _numbers(table[column], dialect.header[int(column)], source.label, dialect)
        return read_chart(table, dialect.header, source.label)
    return read_delimited(data, source.label, source.name, dialect)


def _unique_names(raws: list[RawRun]) -> None:
    count: dict[str, int] = {}
    for raw in raws:
        count[raw.name] = count.get(raw.name, 0) + 1
    used = {n for n, c in count.items() if c == 1}
    for raw in raws:
        if count[raw.name] > 1:
            base = os.path.basename(raw.source) if raw.name != os.path.basename(raw.source) else raw.source  # noqa: PTH119
            name, k = base, 2
            while name in used:
                name, k = f"{base} ({k})", k + 1
            raw.name = name
            used.add(name)


def _table(raws: list[RawRun], done: list[TidyRun], notes: list[Note]) -> RunTable:
    extra = [c for c in EXTRA if any(c in d.columns for d in done)]
    sizes = [d.columns["step"].size for d in done]
    data: dict[str, Any] = {"run": np.repeat(np.array([d.name for d in done], dtype=object), sizes)}
    for column in (*COLUMNS[1:], *extra):
        parts = [
            d.columns[column] if column in d.columns else np.full(n, np.nan)
            for d, n in zip(done, sizes, strict=True)
        ]
        data[column] = np.concatenate(parts)
    every: list[str] = [*notes]
    for d in done:
        every += d.notes
    return RunTable(
        pd.DataFrame(data),
        every,
        {d.name: {"source": r.source, "format": r.kind, **d.meta} for r, d in zip(raws, done, strict=True)},
        {d.name: d.lr_points for d in done},
    )


def _scheduled(table: RunTable, schedule: Any) -> RunTable:
    given = {run: _rates.schedule_for(schedule, run) for run in table.runs}
    found = {run: lr for run, lr in given.items() if lr is not None}
    if not found:
        raise ConvexlawError(f"schedule names none of the runs {', '.join(table.runs[:10])}")
    frame = table.frame.copy()
    for run, lr in found.items():
        dense = _rates.dense(run, table.last_step(run), table._points[run], lr)
        rows = frame["run"] == run
        frame.loc[rows, "lr"] = dense[frame.loc[rows, "step"].to_numpy()]
    return replace(table, frame=frame, _schedules={**table._schedules, **found})


def _with_rate_notes(table: RunTable) -> RunTable:
    notes = list(table.notes)
    for run in table.runs:
        if run not in table._schedules:
            notes += [
                Note(run, kind, text)
                for kind, text in _rates.rate_note(table.last_step(run), table._points[run])
            ]
    return replace(table, notes=notes)
