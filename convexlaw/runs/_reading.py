"""From whatever ``read_runs`` is given to raw runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from convexlaw.errors import ConvexlawError
from convexlaw.runs._cells import FrameTable
from convexlaw.runs._gather import gather
from convexlaw.runs._raw import NotALog, Note, RawRun, UnknownFormat, listed, plural, printable
from convexlaw.runs._source import Source, expand
from convexlaw.runs._tables import runs_of_table
from convexlaw.runs.sniff import read_source

__all__ = ["raw_runs"]


def raw_runs(source: Any) -> tuple[list[RawRun], list[Note]]:
    """Read a path, glob, folder, "-", frame, mapping of run to one of these, or an iterable of them.

    Returns
    -------
    runs : list of RawRun
        With names of their own.
    notes : list of Note
        About files that were passed over.

    Raises
    ------
    ConvexlawError
        Nothing there, or a log that cannot be read whole.
    """
    pieces: list[RawRun] = []
    skipped: list[tuple[Source, NotALog]] = []
    _collect(source, pieces, skipped, set())
    notes = _skipped_notes(skipped)
    if not pieces:
        seen = printable(source) if isinstance(source, (str, os.PathLike)) else "source"
        if not skipped:
            raise ConvexlawError(f"{seen}: nothing to read (an empty folder or list); pass at least one log")
        raise ConvexlawError(
            f"{seen}: no training log in {plural(len(skipped), 'file')}; "
            f"{'; '.join(str(n) for n in notes[:3])}"
        )
    runs, more = gather(pieces)
    if not runs:
        raise ConvexlawError("; ".join(str(n) for n in [*more, *notes][:3]))
    return runs, [*notes, *more]


def _collect(
    source: Any, pieces: list[RawRun], skipped: list[tuple[Source, NotALog]], seen: set[str]
) -> None:
    """Read every part of ``source``; a file named twice (a folder and a glob into it) is read once."""
    if isinstance(source, pd.DataFrame):
        frame = source.reset_index() if source.index.name is not None else source
        pieces += runs_of_table(FrameTable(frame, "frame"), "frame", "run", "frame")
    elif isinstance(source, (str, os.PathLike)):
        for one in expand(source):
            if one.path is not None:
                place = os.path.realpath(one.path)
                if place in seen:
                    continue
                seen.add(place)
            try:
                pieces += read_source(one)
            except NotALog as error:
                if one.listed:
                    raise
                skipped.append((one, error))
            except MemoryError:
                raise ConvexlawError(f"{one.label}: does not fit into memory; thin the log first") from None
            finally:
                one.forget()
    elif isinstance(source, Mapping):
        for name, part in source.items():
            start = len(pieces)
            _collect(part, pieces, skipped, seen)
            own = pieces[start:]
            for piece in own:
                if len(own) == 1:
                    piece.name, piece.named = printable(name), True
                elif not piece.group.startswith(("events:", "mlflow:")):
                    piece.name = f"{printable(name)}/{piece.name}"
    elif isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray)):
        for part in source:
            _collect(part, pieces, skipped, seen)
    else:
        raise ConvexlawError(
            f"source of type {type(source).__name__} is no path, glob, folder, frame, or list of these"
        )


def _skipped_notes(skipped: list[tuple[Source, NotALog]]) -> list[Note]:
    """Say which files of a folder were passed over: tables with a reason each, other files by name."""
    notes = []
    others: list[Source] = []
    for source, reason in skipped:
        if source.path is not None and source.path.parent.name in ("params", "tags"):
            if (source.path.parent.parent / "metrics").is_dir():
                continue  # read with the metrics of the MLflow run
        if not isinstance(reason, UnknownFormat):
            short = str(reason).removeprefix(f"{source.label}: ")
            name = source.path.name if source.path is not None else source.label
            notes.append(Note("", "skipped", f"{printable(name)} is skipped, it is no training log: {short}"))
        else:
            others.append(source)
    if len(notes) > 8:
        rest = len(notes) - 6
        notes = [*notes[:6], Note("", "skipped", f"{rest} more files are skipped in the same way")]
    if others:
        names = listed([printable(s.path.name if s.path else s.label) for s in others], 4)
        notes.append(
            Note("", "skipped", f"{plural(len(others), 'file')} in no known format skipped: {names}")
        )
    return notes
