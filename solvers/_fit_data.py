"""From a table of runs to what a fit needs of each run: dense learning rates and the losses of one split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._law_inputs import number
from convexlaw.theory.laws import RunPath, warmup_end

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.runs.table import RunTable

Array = NDArray[np.float64]
Steps = NDArray[np.int64]

MIN_VAL_ROWS = (
    30  # validation rows after the warmup with which split="auto" prefers the quieter validation loss
)


@dataclass(frozen=True)
class RunData:
    """One run: learning rate (T,), batch size (T,) or None, and (steps, losses) of each split."""

    name: str
    lr: Array
    batch: Array | None
    losses: dict[str, tuple[Steps, Array]]
    weight_decay: float | None = None
    init_std: float | None = None
    optimizer: str | None = None

    def rows(self, split: str, skip: int) -> tuple[Steps, Array]:
        """Return usable steps and losses: after warmup and ``skip`` further steps, finite and positive."""
        steps, loss = self.losses.get(split, (np.empty(0, np.int64), np.empty(0)))
        moved = np.cumsum(self.lr) > 0
        good = (steps >= warmup_end(self.lr) + skip) & np.isfinite(loss) & (loss > 0)
        good &= moved[np.minimum(steps, self.lr.size - 1)]
        return steps[good], loss[good]


@dataclass(frozen=True)
class Constants:
    """What the rotational clock needs besides the learning rates: values given, or those of the logs."""

    weight_decay: float | Mapping[str, float] | None
    init_std: float

    def of(self, run: RunData) -> tuple[float | None, float]:
        """Weight decay (None where unknown) and initial standard deviation of one run."""
        given = self.weight_decay
        decay = given.get(run.name, run.weight_decay) if isinstance(given, Mapping) else given
        decay = run.weight_decay if decay is None else decay
        std = self.init_std
        if (
            std == 0.02 and run.init_std is not None
        ):  # 0.02 is the default of the argument: the log knows better
            std = run.init_std
        return (None if decay is None else number("weight_decay", decay)), number("init_std", std)


@dataclass
class Prepared:
    """Rows of a set of runs, laid end to end in the order of the runs."""

    names: tuple[str, ...]
    paths: list[RunPath]
    y: Array
    bounds: list[int] = field(default_factory=list)  # ends of the runs in y

    @property
    def groups(self) -> list[slice]:
        """Rows of each run."""
        return [slice(a, b) for a, b in zip([0, *self.bounds[:-1]], self.bounds, strict=True)]


def prepare(runs: Sequence[RunData], split: str, skip: int, constants: Constants, *, batch: bool) -> Prepared:
    """Lay out the usable rows of ``runs``; a run without any is left out."""
    names, paths, losses, bounds = [], [], [], []
    total = 0
    for run in runs:
        steps, loss = run.rows(split, skip)
        if not steps.size:
            continue
        decay, std = constants.of(run)
        if batch and run.batch is None:
            raise ConvexlawError(
                f"run {run.name!r} has no batch size but the law has a batch term: add the column batch_size"
            )
        try:
            path = RunPath.make(run.lr, steps, run.batch if batch else None, decay or 0.0, std)
        except ConvexlawError as error:
            raise ConvexlawError(f"run {run.name!r}: {error}") from None
        paths.append(path)
        names.append(run.name)
        losses.append(loss)
        total += steps.size
        bounds.append(total)
    return Prepared(tuple(names), paths, np.concatenate(losses) if losses else np.empty(0), bounds)


def choose_split(runs: Sequence[RunData], split: str, skip: int) -> tuple[str, str]:
    """Resolve split="auto" to "train" or "val", with the sentence that says why."""
    if split in ("train", "val"):
        missing = [run.name for run in runs if not run.rows(split, skip)[0].size]
        if missing:
            other = "val" if split == "train" else "train"
            raise ConvexlawError(
                f"run {missing[0]!r} has no {split} loss after its warmup; "
                f"pass split={other!r} or leave the run out with train="
            )
        return split, ""
    if split != "auto":
        raise ConvexlawError(f"split = {split!r}: choose 'auto', 'train' or 'val'")
    counts = {s: [run.rows(s, skip)[0].size for run in runs] for s in ("train", "val")}
    if all(n >= MIN_VAL_ROWS for n in counts["val"]):
        many = f"at least {MIN_VAL_ROWS} of them after its warmup"
        sentence = f"Validation losses are fitted: every fitted run has {many}."
        return "val", sentence if any(counts["train"]) else ""
    if all(counts["train"]):
        few = min(counts["val"])
        sentence = f"Training losses are fitted: one run has only {few} validation losses after its warmup."
        return "train", sentence if any(counts["val"]) else ""
    if all(counts["val"]):
        return "val", ""
    empty = [
        run.name for run, a, b in zip(runs, counts["train"], counts["val"], strict=True) if not a and not b
    ]
    if empty:
        still = [run.name for run in runs if run.name in empty and not run.lr.any()]
        if still:
            raise ConvexlawError(
                f"run {still[0]!r} has the learning rate 0 at every step, and no law describes that: "
                "leave it out with train=, or pass its schedule"
            )
        raise ConvexlawError(
            f"run {empty[0]!r} has no finite positive loss after its LR warmup: leave it out with train="
        )
    raise ConvexlawError(
        "some runs have only training and some only validation losses: pass split= and train="
    )


def pick(names: Sequence[str], wanted: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names chosen by names and globs, in the order of the runs."""
    if wanted is None:
        return tuple(names)
    if not isinstance(wanted, Iterable):
        raise ConvexlawError(f"{wanted!r} names no run: pass a name, a glob, or a list of them")
    patterns = [wanted] if isinstance(wanted, str) else [str(w) for w in wanted]
    chosen = set()
    for pattern in patterns:
        hit = [n for n in names if n == pattern] or [n for n in names if fnmatchcase(n, pattern)]
        if not hit:
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise ConvexlawError(f"{pattern!r} names no run: the runs are {shown}")
        chosen.update(hit)
    if not chosen:
        raise ConvexlawError("no run is named: pass at least one name or glob")
    return tuple(n for n in names if n in chosen)


def as_runs(source: Any) -> tuple[list[RunData], Any]:
    """Return the runs of a RunTable, or of anything that ``read_runs`` takes; also the table itself."""
    from convexlaw.runs.table import RunTable, read_runs

    table = source if isinstance(source, RunTable) else read_runs(source)
    table = with_stated_schedules(table)
    return [_run(table, name) for name in table.runs], table


def with_stated_schedules(table: RunTable) -> RunTable:
    """Take the schedule a log states in its header where it agrees with the rates logged; note it."""
    from convexlaw.runs._raw import Note
    from convexlaw.theory.schedules import parse

    found: dict[str, Array] = {}
    for name in table.runs:
        text = table.meta[name].get("schedule")
        if not isinstance(text, str) or name in table._schedules:
            continue
        try:
            lr = np.asarray(parse(text), dtype=np.float64)
        except ConvexlawError:
            continue
        rows = table.frame.loc[(table.frame["run"] == name) & table.frame["lr"].notna()]
        steps = rows["step"].to_numpy(dtype=np.int64)
        if table.last_step(name) >= lr.size or (steps.size and steps.max() >= lr.size):
            continue
        if np.allclose(lr[steps], rows["lr"].to_numpy(dtype=np.float64), rtol=1e-4, atol=1e-12):
            found[name] = lr
    if not found:
        return table
    stated = table.with_schedule(found)
    text = "the learning rate of every step comes from the schedule in its header lines"
    return replace(stated, notes=[*stated.notes, *(Note(run, "own_schedule", text) for run in found)])


def _run(table: RunTable, name: str) -> RunData:
    if not table.has_lr(name):
        source = table.meta.get(name, {}).get("source")
        where = f" ({source})" if source else ""
        raise ConvexlawError(
            f"run {name!r}{where} has no learning rates, and every law needs them: "
            f"give read_runs schedule={{{name!r}: lr}} with one learning rate a step, add a column lr "
            f"to the log, or leave the run out with select() of the others"
        )
    lr = table.dense_lr(name)
    rows = table._rows(name)
    meta = table.meta.get(name, {})
    losses = {split: table.curve(name, split) for split in ("train", "val")}
    return RunData(
        name=name,
        lr=lr,
        batch=_dense_batch(rows, lr.size),
        losses=losses,
        weight_decay=_number(meta.get("weight_decay")),
        init_std=_number(meta.get("init_std")),
        optimizer=None if meta.get("optimizer") is None else str(meta["optimizer"]).lower(),
    )


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    return None


def _dense_batch(rows: pd.DataFrame, length: int) -> Array | None:
    """Batch size of every step: a logged value holds until the next one."""
    sizes = rows["batch_size"].to_numpy(dtype=np.float64)
    known = np.flatnonzero(~np.isnan(sizes))
    if not known.size or not np.all(sizes[known] > 0):
        return None
    steps = rows["step"].to_numpy(dtype=np.int64)
    known = known[np.argsort(steps[known], kind="stable")]
    steps, sizes = steps[known], sizes[known]
    place = np.searchsorted(steps, np.arange(length), side="right") - 1
    return np.asarray(sizes[np.maximum(place, 0)])
