"""The notes of a table of runs, sorted by what a reader does with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convexlaw.runs.table import RunTable

__all__ = ["grouped_notes"]

# what was done to a log, what to look at before a fit, and (all else) how it was read
_CHANGED = (
    "skipped",
    "nan",
    "resumed",
    "infinite",
    "not_positive",
    "equal_steps",
    "summary",
    "other_rows",
    "cut",
    "no_step",
    "header_again",
    "unsorted",
    "split",
    "checkpoints",
    "loss_scale",
    "pooled",
    "dropped_spikes",
)
_WRONG = (
    "no_lr",
    "starts_over",
    "loss_sign",
    "spikes",
    "divergence",
    "plateau",
    "loss_multiple",
    "tokens",
    "step_units",
    "same_rows",
    "grouped",
    "trailing_zero",
    "late_lr",
    "lr_jump",
    "seeds",
    "schedule",
    "no_line_end",
    "single_rows",
)

_OPTIONS = (
    (r"schedule=", "--schedule"),
    (r"pool_seeds\(\)", "convexlaw read --pool-seeds"),  # of that command alone
    (r"loss_scale=", "--loss-scale "),
)


def grouped_notes(table: RunTable, *, options: bool = False) -> dict[str, list[str]]:
    """Sort notes under three headings; a sentence that several runs share stands once.

    Parameters
    ----------
    table : RunTable
        The runs read.
    options : bool
        Name the command's options instead of the arguments of the functions.

    Returns
    -------
    dict
        Heading -> sentences; headings without any are left out.
    """
    groups: dict[str, dict[str, list[str]]] = {
        "Left out or merged": {},
        "Look at these before a fit": {},
        "How it was read": {},
    }
    titles = list(groups)
    for note in table.notes:
        kind, run, text = (getattr(note, k, "") for k in ("kind", "run", "text"))
        title = titles[0] if kind in _CHANGED else titles[1] if kind in _WRONG else titles[2]
        groups[title].setdefault(text or note, []).append(run)
    return {
        t: [_sentence(s, runs, options) for s, runs in found.items()] for t, found in groups.items() if found
    }


def _sentence(text: str, runs: list[str], options: bool) -> str:
    from convexlaw.runs._raw import printable

    if options:
        for name, option in _OPTIONS:
            text = re.sub(rf"\b{name}", option, text)
    named = [printable(r, 60) for r in dict.fromkeys(runs) if r]
    if not named:
        return printable(text, 600)
    who = ", ".join(named) if len(named) <= 4 else f"{', '.join(named[:3])} and {len(named) - 3} more runs"
    return f"{who}: {printable(text, 600)}"
