"""Progress on standard error, only where a person is watching (or asked for it)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[float], None]


@contextlib.contextmanager
def progress_bar(label: str, total: float, show: bool | None = None) -> Iterator[Advance]:
    """Show a progress bar with the time left while the block runs.

    Parameters
    ----------
    label : str
        What is being done.
    total : float
        Amount of work, in the unit of the calls of the yielded function.
    show : bool, optional
        True or False to force; None shows it only on an interactive standard error.

    Yields
    ------
    callable
        ``advance(amount)``: tell that this much more work is done.
    """
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)
