"""What a reader hands on: one run as it stands in its source, rows in the order they were written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError

__all__ = [
    "Floats",
    "Ints",
    "Mask",
    "NotALog",
    "Note",
    "RawRun",
    "UnknownFormat",
    "listed",
    "places_called",
    "plural",
    "printable",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class NotALog(ConvexlawError):
    """A file that is no training log: an error where it was named, a note where a folder was."""


class UnknownFormat(NotALog):
    """A file in no known format: where a folder was named, not worth a sentence of its own."""


class Note(str):
    """A sentence about a run: a plain string that also knows its run and its kind.

    Parameters
    ----------
    run : str
        Name of the run, or an empty string for a note about the whole source.
    kind : str
        Short fixed word, e.g. ``"resumed"``, ``"nan"``, ``"spikes"``.
    text : str
        The sentence without the name of the run.
    """

    run: str
    kind: str
    text: str

    def __new__(cls, run: str, kind: str, text: str) -> Note:
        """Make the string ``"run: text"``."""
        note = super().__new__(cls, f"{run}: {text}" if run else text)
        note.run, note.kind, note.text = run, kind, text
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, str, str]]:
        """Pickle and copy by the three parts."""
        return Note, (self.run, self.kind, self.text)


@dataclass
class RawRun:
    """One run as read.

    ``columns`` holds arrays of one length, in file order: ``step`` and any of ``loss`` (training),
    ``val_loss``, ``lr``, ``batch_size``, ``tokens``, ``samples``, ``seq_len``, ``grad_norm``, ``loss_min``,
    ``loss_max``, NaN where a row has none. Boolean ``loss_nan``, ``val_loss_nan`` mark cells where the
    source says NaN (an absent cell is NaN without the mark). ``line`` is the row's place in the source, for
    messages; ``group`` joins pieces of one run that lie in several files.
    """

    name: str
    source: str
    columns: dict[str, NDArray[Any]]
    kind: str = "csv"
    meta: dict[str, Any] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    place: str = "line"
    group: str = ""
    named: bool = False  # by the log itself, not by its file
    listed: bool = True
    path: str = ""

    def note(self, kind: str, text: str) -> None:
        """Add a note of this kind."""
        self.notes.append((kind, text))

    def __len__(self) -> int:
        return int(self.columns["step"].size)

    def values(self, column: str) -> Floats:
        """Return a column as floats, all NaN where there is none."""
        found = self.columns.get(column)
        if found is None:
            return np.full(len(self), np.nan)
        return found.astype(np.float64, copy=False)

    def marks(self, column: str) -> Mask:
        """Return a boolean column, all False where there is none."""
        found = self.columns.get(column)
        return np.zeros(len(self), dtype=bool) if found is None else found.astype(bool, copy=False)

    def where(self, rows: Ints | NDArray[np.intp]) -> str:
        """Say where in the source these rows are, five at most."""
        lines = self.columns["line"][rows] if "line" in self.columns else rows + 1
        shown = ", ".join(str(int(x)) for x in lines[:5])
        more = f" and {lines.size - 5} more" if lines.size > 5 else ""
        return f"{places_called(self.place, lines.size)} {shown}{more}"

    def keep(self, rows: Mask) -> None:
        """Keep these rows only."""
        self.columns = {name: values[rows] for name, values in self.columns.items()}


def printable(text: object, limit: int = 200) -> str:
    """Return ``text`` on one line without control characters, cut to ``limit``."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in str(text)[: 4 * limit])
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def listed(values: Iterable[object], most: int = 5) -> str:
    """List values, ``most`` at most, and say how many there are."""
    every = list(values)
    text = ", ".join(str(v) for v in every[:most])
    return text if len(every) <= most else f"{text}, ... ({len(every)} in all, last {every[-1]})"


def places_called(word: str, count: int) -> str:
    """Return what the rows of a source are called: "lines", "entries", "lines of loss"."""
    head, of, rest = word.partition(" of ")
    if count != 1:
        head = f"{head[:-1]}ies" if head.endswith("y") else f"{head}s"
    return head + of + rest


def plural(count: int, word: str, words: str | None = None) -> str:
    """Return "1 row", "2 rows"."""
    return f"{count} {word if count == 1 else words or word + 's'}"
