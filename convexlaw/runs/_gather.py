"""From pieces in many files to runs with names of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from convexlaw.runs._raw import NotALog, Note, RawRun, listed, plural, printable

__all__ = ["gather"]

_LOSSES = ("loss", "val_loss")
_CHECKPOINT = re.compile(r"^checkpoint-\d+$")


def gather(pieces: list[RawRun]) -> tuple[list[RawRun], list[Note]]:
    """Join pieces of one run, drop checkpoints that a later one contains, name every run once.

    Parameters
    ----------
    pieces : list of RawRun

    Returns
    -------
    runs : list of RawRun
    notes : list of Note
        About pieces that became no run.

    Raises
    ------
    ConvexlawError
        A named file without any loss.
    """
    runs, notes = [], []
    for run in _newest_checkpoints(_join(pieces)):
        if any((~np.isnan(run.values(c))).any() or run.marks(f"{c}_nan").any() for c in _LOSSES):
            runs.append(run)
            continue
        what = f"{run.source}: run {printable(run.name)!r} has no loss in its {plural(len(run), 'row')}"
        if run.listed:
            raise NotALog(f"{what}; a log needs loss, train_loss, train/loss, val_loss or eval_loss")
        notes.append(Note("", "skipped", f"skipped {what}"))
    _name(runs)
    return runs, notes


def _join(pieces: Sequence[RawRun]) -> list[RawRun]:
    """Join pieces of one run: event files of one folder, metrics of one MLflow run, charts of one W&B run."""
    groups: dict[str, list[RawRun]] = {}
    for k, piece in enumerate(pieces):
        groups.setdefault(piece.group or f"alone:{k}", []).append(piece)
    joined = []
    for key, members in groups.items():
        if key.startswith("chart:") and not _complementary(members):
            joined += members
        elif len(members) == 1:
            joined.append(_in_time(members[0]))
        else:
            joined.append(_concatenated(members))
    return joined


def _complementary(members: Sequence[RawRun]) -> bool:
    seen: set[str] = set()
    for member in members:
        own = {c for c in member.columns if c in ("loss", "val_loss", "lr", "grad_norm", "batch_size")}
        if own & seen:
            return False
        seen |= own
    return True


def _concatenated(members: Sequence[RawRun]) -> RawRun:
    first = members[0]
    run = RawRun(
        first.name,
        first.source,
        {},
        first.kind,
        place="row",
        named=first.named,
        listed=first.listed,
        path=first.path,
    )
    sizes = [len(m) for m in members]
    for name in dict.fromkeys(c for m in members for c in m.columns):
        blank: float | bool = False if name.endswith("_nan") else np.nan
        run.columns[name] = np.concatenate(
            [m.columns.get(name, np.full(n, blank)) for m, n in zip(members, sizes, strict=True)]
        )
    run.columns.pop("line", None)
    for member in members:
        run.meta |= member.meta
        run.notes += [n for n in member.notes if n not in run.notes]
    files = list(dict.fromkeys(m.source for m in members))
    if len(files) > 1:
        shown = listed([PurePath(f).name for f in files], 4)
        run.note("joined", f"joined from {len(files)} files ({shown})")
        run.source = f"{files[0]} and {plural(len(files) - 1, 'more file')}"
    return _in_time(run)


def _in_time(run: RawRun) -> RawRun:
    """Order rows by their wall time where a log has one for every row (metrics in files of their own)."""
    time = run.columns.pop("time", None)
    if time is not None and np.isfinite(time).all() and np.any(np.diff(time) < 0):
        order = np.argsort(time, kind="stable")
        run.columns = {c: v[order] for c, v in run.columns.items()}
    return run


def _newest_checkpoints(runs: list[RawRun]) -> list[RawRun]:
    """Drop trainer states that a later state of the same run begins with."""
    homes: dict[str, list[RawRun]] = {}
    for run in runs:
        path = PurePath(run.path)
        if run.kind != "huggingface" or path.name not in ("trainer_state.json", "trainer_state.json.gz"):
            continue
        home = path.parent.parent if _CHECKPOINT.match(path.parent.name) else path.parent
        homes.setdefault(str(home), []).append(run)
    dropped: set[int] = set()
    for states in homes.values():
        states.sort(key=len, reverse=True)
        kept: list[RawRun] = []
        for state in states:
            whole = next((k for k in kept if _begins(k, state)), None)
            if whole is None:
                kept.append(state)
            else:
                dropped.add(id(state))
                whole.meta["checkpoints"] = whole.meta.get("checkpoints", 0) + 1
        for state in kept:
            count = state.meta.pop("checkpoints", 0)
            if count:
                state.note(
                    "checkpoints",
                    f"{plural(count, 'earlier checkpoint')} of the same run left out (their rows are the "
                    f"first rows of this one)",
                )
                parts = state.name.split("/")
                if len(kept) == 1 and len(parts) > 1 and _CHECKPOINT.match(parts[-1]):
                    state.name = "/".join(parts[:-1])
                elif len(kept) == 1 and _CHECKPOINT.match(parts[-1]):
                    state.name = PurePath(state.path).parent.parent.name or state.name
    return [r for r in runs if id(r) not in dropped]


def _begins(whole: RawRun, part: RawRun) -> bool:
    n = len(part)
    return all(
        np.array_equal(whole.values(c)[:n], part.values(c), equal_nan=True)
        for c in ("step", "loss", "val_loss", "lr")
    )


def _name(runs: list[RawRun]) -> None:
    """Give every run a name of its own: by file, then by as much of the path as it takes, then by number."""
    base = {id(run): printable(run.name) or "run" for run in runs}
    for run in runs:
        run.name = base[id(run)]
    for depth in (1, 2, 3, 4, 0):
        counts: dict[str, int] = {}
        for run in runs:
            counts[run.name] = counts.get(run.name, 0) + 1
        twice = [r for r in runs if counts[r.name] > 1]
        if not twice:
            return
        for run in twice:
            parts = PurePath(run.path).parts
            if depth and parts:
                tail = "/".join(parts[-depth:])
                run.name = f"{base[id(run)]} ({printable(tail)})" if run.named else printable(tail)
    used: set[str] = set()
    for run in runs:
        name, k = run.name, 2
        while run.name in used:
            run.name, k = f"{name} ({k})", k + 1
        used.add(run.name)
