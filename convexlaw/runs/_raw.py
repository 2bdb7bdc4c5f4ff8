"""What a reader hands on: one run as it stands in its file, rows in file order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

__all__ = ["Note", "RawRun"]


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
    __slots__ = ("kind", "run", "text")

    def __new__(cls, run: str, kind: str, text: str) -> Note:
        """Make the string ``"run: text"``."""
        note = super().__new__(cls, f"{run}: {text}" if run else text)
        note.run, note.kind, note.text = run, kind, text
        return note

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]
        """Pickle by the three parts."""
        return self.run, self.kind, self.text


@dataclass
class RawRun:
    """One run as read: wide rows in file order, cells absent where the source has none.

    ``frame`` has ``step`` and any of ``loss`` (training), ``val_loss``, ``lr``, ``batch_size``, ``tokens``, ``grad_norm``,
    ``loss_min``, ``loss_max``; boolean ``loss_nan`` and ``val_nan`` mark cells where the source says NaN (an absent
    cell is NaN without the mark); ``line`` is the row's place in the source, for messages.
    """

    name: str
    source: str
    frame: pd.DataFrame
    kind: str = "csv"
    meta: dict[str, Any] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    window: bool = False
    place: str = "line"

    def note(self, kind: str, text: str) -> None:
        """Add a note of this kind."""
        self.notes.append((kind, text))
