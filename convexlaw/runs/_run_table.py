"""One tidy table of any number of training runs, and the notes on how it came to be."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from convexlaw._files import replacing
from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.runs import _rates, _seeds
from convexlaw.runs._raw import Floats, Ints, Note, listed, plural
from convexlaw.runs.clean import Stream
from convexlaw.runs.suspects import find_spikes

__all__ = ["RunTable", "check_choice", "with_rate_notes"]


@dataclass(frozen=True, eq=False)
class RunTable(Result):
    """Training runs as one tidy table.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row a logged loss: ``run``, ``step`` (int, as logged), ``lr``, ``batch_size``, ``tokens``,
        ``loss`` (nats), ``split`` ("train" or "val"), ``grad_norm``; NaN where a log has none. ``loss_min``,
        ``loss_max``, ``loss_std``, ``seeds`` follow only where a source has ranges. Runs in the order they
        were read, in each the training rows by step, then the validation rows by step.
    notes : list of str
        What was dropped, merged, guessed or looks wrong, as "run: sentence".
    meta : dict of str to dict
        Per run: source, format, the columns that were read, and what the log says of itself (weight_decay,
        ...).

    Examples
    --------
    >>> import pandas as pd
    >>> from convexlaw import read_runs
    >>> log = pd.DataFrame({"run": "a", "step": [0, 1, 2], "lr": 1e-3, "loss": [3.0, 2.5, float("nan")]})
    >>> table = read_runs(log)
    >>> table.frame["loss"].tolist()
    [3.0, 2.5]
    >>> table.notes
    ['a: 1 NaN training loss at step 2: dropped']
    """

    frame: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    meta: dict[str, dict[str, Any]] = field(default_factory=dict)
    _points: dict[str, Stream] = field(default_factory=dict, repr=False)
    _schedules: dict[str, Floats] = field(default_factory=dict, repr=False)
    _guards: list[pd.Series[Any]] = field(default_factory=list, repr=False)

    _figure: ClassVar[str] = "runs:plot_runs"

    @property
    def runs(self) -> list[str]:
        """Names of the runs, in order."""
        return list(self.meta)

    def __len__(self) -> int:
        return len(self.meta)

    def __str__(self) -> str:
        lines = [
            f"{plural(len(self), 'run')}, {plural(len(self.frame), 'row')}, {plural(len(self.notes), 'note')}"
        ]
        for row in self.summary().head(8).itertuples(index=False):
            lines.append(
                f"  {row.run}: steps {row.first_step} to {row.last_step}, final loss {row.final_loss:.4g}"
            )
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

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy frame as parquet (needs pyarrow), whole or not at all."""
        try:
            with replacing(path) as tmp:
                self.frame.to_parquet(tmp, index=False)
        except ImportError:
            raise ConvexlawError(
                "writing parquet needs pyarrow; install convexlaw[parquet], or write CSV"
            ) from None

    def summary(self) -> pd.DataFrame:
        """Describe every run in one row.

        Returns
        -------
        pandas.DataFrame
            ``run, rows, first_step, last_step, peak_lr, batch_size`` (the largest), ``tokens`` (the last),
            ``final_loss`` (training), ``final_val_loss``, ``notes`` (how many).
        """
        counts: dict[str, int] = {}
        for note in self.notes:
            counts[getattr(note, "run", "")] = counts.get(getattr(note, "run", ""), 0) + 1
        rows = []
        for run, own in self.frame.groupby("run", sort=False):
            train, val = (
                own["loss"].to_numpy()[(own["split"] == split).to_numpy()] for split in ("train", "val")
            )
            rates = self._schedules.get(str(run), self._points[str(run)][1])
            rows.append(
                {
                    "run": run,
                    "rows": len(own),
                    "first_step": int(own["step"].min()),
                    "last_step": int(own["step"].max()),
                    "peak_lr": float(rates.max()) if rates.size else np.nan,
                    "batch_size": own["batch_size"].max(),
                    "tokens": own["tokens"].max(),
                    "final_loss": train[-1] if train.size else np.nan,
                    "final_val_loss": val[-1] if val.size else np.nan,
                    "notes": counts.get(str(run), 0),
                }
            )
        return pd.DataFrame(rows)

    def _known(self, run: str) -> str:
        if run not in self.meta:
            raise ConvexlawError(
                f"run {run!r} is not in this table; it holds {listed(self.runs, 10) or 'no runs'}"
            )
        return run

    def _names(self, runs: str | Iterable[str]) -> list[str]:
        if not isinstance(runs, Iterable):
            raise ConvexlawError(f"runs = {runs!r}: pass a name, a pattern, or a list of them")
        names: dict[str, None] = {}
        for pattern in [runs] if isinstance(runs, str) else list(runs):
            hits = (
                [pattern] if pattern in self.meta else [n for n in self.runs if fnmatchcase(n, str(pattern))]
            )
            if not hits:
                raise ConvexlawError(
                    f"no run matches {pattern!r}; there are {listed(self.runs, 10) or 'none'}"
                )
            names.update(dict.fromkeys(hits))
        return [n for n in self.runs if n in names]

    def select(self, runs: str | Iterable[str]) -> RunTable:
        """Keep the runs with these names or globs.

        Parameters
        ----------
        runs : str or iterable of str
            Names, or patterns with ``*``, ``?`` and ``[...]`` (a name that matches exactly wins).

        Returns
        -------
        RunTable

        Raises
        ------
        ConvexlawError
            A name or pattern that matches nothing.
        """
        keep = self._names(runs)
        return replace(
            self,
            frame=self.frame.loc[self.frame["run"].isin(keep)].reset_index(drop=True),
            notes=[n for n in self.notes if getattr(n, "run", "") in keep],
            meta={n: self.meta[n] for n in keep},
            _points={n: self._points[n] for n in keep},
            _schedules={n: s for n, s in self._schedules.items() if n in keep},
        )

    def notes_for(self, run: str) -> list[str]:
        """Return the notes of one run, without its name."""
        self._known(run)
        return [getattr(n, "text", n) for n in self.notes if getattr(n, "run", None) == run]

    def curve(self, run: str, split: str = "train") -> tuple[Ints, Floats]:
        """Return (steps, losses) of one run and split ("train", "val"), by step; empty where it has none."""
        check_choice("split", split, ("train", "val"))
        place = self._place(run)
        place = place[(self.frame["split"].iloc[place] == split).to_numpy()]
        return self.frame["step"].to_numpy(np.int64)[place], self.frame["loss"].to_numpy(np.float64)[place]

    def _rows(self, run: str) -> pd.DataFrame:
        return self.frame.iloc[self._place(run)]

    def _place(self, run: str) -> Ints:
        self._known(run)
        return np.arange(len(self.frame)) if len(self) == 1 else self._places[run]

    @cached_property
    def _places(self) -> dict[str, Ints]:
        return {
            str(run): np.asarray(rows) for run, rows in self.frame.groupby("run", sort=False).indices.items()
        }

    def last_step(self, run: str) -> int:
        """Return the last step of a run with a loss."""
        return int(self.frame["step"].to_numpy()[self._place(run)].max())

    def has_lr(self, run: str) -> bool:
        """Tell whether :meth:`dense_lr` has anything to go by."""
        return self._known(run) in self._schedules or self._points[run][0].size > 0

    def dense_lr(self, run: str) -> Floats:
        """Learning rate of every step from 0 to the last step of a run that has a loss.

        Exact where ``schedule=`` was given. Otherwise lines between logged points only: before the first and
        after the last logged point the nearest value is held, and a fall to 0 out of a rate that was not
        declining is no cooldown (``notes`` says where any of this happened).

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
        """Return the same table with learning rates given.

        Parameters
        ----------
        schedule : array, mapping of run or glob to array, or function of the run's name
            Learning rate of every step, 0-based.

        Returns
        -------
        RunTable
        """
        found = {run: lr for run in self.runs if (lr := _rates.schedule_for(schedule, run)) is not None}
        if not found:
            raise ConvexlawError(f"schedule names none of the runs {listed(self.runs, 10)}")
        frame = self.frame.copy()
        rates = frame["lr"].to_numpy(np.float64, copy=True)
        for run, lr in found.items():
            rows = self._places[run]
            dense = _rates.dense(run, self.last_step(run), self._points[run], lr)
            rates[rows] = dense[frame["step"].to_numpy()[rows]]
        frame["lr"] = rates
        kept = [
            n
            for n in self.notes
            if getattr(n, "run", "") not in found or getattr(n, "kind", "") not in _RATE_KINDS
        ]
        table = replace(self, frame=frame, notes=kept, _schedules={**self._schedules, **found})
        return with_rate_notes(table, list(found))

    @property
    def spikes(self) -> pd.DataFrame:
        """Training rows far above the rows on both sides: ``run, step, loss``."""
        parts = []
        for run in self.runs:
            steps, losses = self.curve(run)
            at = find_spikes(steps, losses)
            parts.append(pd.DataFrame({"run": [run] * at.size, "step": steps[at], "loss": losses[at]}))
        return pd.concat(parts, ignore_index=True)

    def drop_spikes(self) -> RunTable:
        """Return the same table without the rows of :attr:`spikes`, with a note that counts them."""
        spikes = self.spikes
        gone = pd.MultiIndex.from_frame(spikes[["run", "step"]])
        rows = (
            pd.MultiIndex.from_frame(self.frame[["run", "step"]]).isin(gone)
            & (self.frame["split"] == "train").to_numpy()
        )
        notes = [n for n in self.notes if getattr(n, "kind", "") != "spikes"]
        for run, own in spikes.groupby("run", sort=False):
            notes.append(
                Note(
                    str(run),
                    "dropped_spikes",
                    f"{plural(len(own), 'spike')} dropped, at step {listed(own['step'])}",
                )
            )
        return replace(self, frame=self.frame.loc[~rows].reset_index(drop=True), notes=notes)

    def pool_seeds(self, groups: Mapping[str, str | Sequence[str]] | None = None) -> RunTable:
        """Average the seeds of each run; ``loss_min``, ``loss_max``, ``loss_std``, ``seeds`` hold the spread.

        Parameters
        ----------
        groups : mapping of new name to names or globs, optional
            Without it, runs whose names differ by a seed alone (``a_seed1``, ``a_seed2``; ``a/s1``,
            ``a/s2``).

        Returns
        -------
        RunTable
            Pooled runs in the place of the first of their seeds, over the steps that all of them logged.

        Raises
        ------
        ConvexlawError
            Nothing to pool, seeds without a common step, or runs whose learning rates differ.
        """
        if groups is not None and not (isinstance(groups, Mapping) and groups):
            raise ConvexlawError(f"groups = {groups!r}: pass {{new name: names or globs of its seeds}}")
        if groups is None:
            chosen = _seeds.seed_groups(self.runs)
            if not chosen:
                raise ConvexlawError(
                    f"no two runs among {listed(self.runs, 10)} differ by a seed alone; pass "
                    f"groups={{name: glob}}"
                )
        else:
            chosen = {name: self._names(patterns) for name, patterns in groups.items()}
        frame, metas, notes = _seeds.pool(self, chosen)
        first = {members[0]: base for base, members in chosen.items()}
        gone = {m for members in chosen.values() for m in members}
        order = [first.get(run, run) for run in self.runs if run in first or run not in gone]
        rest = self.frame.loc[~self.frame["run"].isin(gone)]
        every = {run: rows for part in (rest, frame) for run, rows in part.groupby("run", sort=False)}
        origin = {base: members[0] for base, members in chosen.items()}
        return RunTable(
            pd.concat([every[run] for run in order], ignore_index=True),
            [n for n in self.notes if getattr(n, "run", "") not in gone and getattr(n, "kind", "") != "seeds"]
            + notes,
            {run: metas.get(run, self.meta.get(run, {})) for run in order},
            {run: self._points[origin.get(run, run)] for run in order},
            {
                run: self._schedules[origin.get(run, run)]
                for run in order
                if origin.get(run, run) in self._schedules
            },
        )


_RATE_KINDS = (
    "no_lr",
    "trailing_zero",
    "lr_start",
    "lr_gaps",
    "lr_jump",
    "lr_end",
    "schedule",
    "schedule_end",
)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of a few words."""
    if value not in allowed:
        raise ConvexlawError(f"{name} = {value!r} must be one of {', '.join(map(repr, allowed))}")


def with_rate_notes(table: RunTable, runs: Sequence[str]) -> RunTable:
    """Add what the learning rates of these runs have to guess."""
    more = {}
    for run in runs:
        found = _rates.rate_notes(table.last_step(run), table._points[run], table._schedules.get(run))
        more[run] = [Note(run, kind, text) for kind, text in found]
    notes: list[str] = [n for n in table.notes if not getattr(n, "run", "")]
    for run in table.runs:
        notes += [n for n in table.notes if getattr(n, "run", "") == run] + list(more.get(run, []))
    return replace(table, notes=notes)
