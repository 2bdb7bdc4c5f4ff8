"""What the commands share on screen: tables, notes, JSON, schedule arguments."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from convexlaw.runs.table import RunTable


def show_table(frame: pd.DataFrame, title: str = "", digits: int = 4) -> None:
    """Print a frame as a table; piped output keeps every column."""
    from rich.console import Console
    from rich.table import Table

    from convexlaw.report.page import format_number

    table = Table(title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for name, kind in zip(frame.columns, frame.dtypes, strict=True):
        numeric = kind.kind in "fiu"
        table.add_column(str(name), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(format_number(v, digits) for v in row))
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False, soft_wrap=False)
    with console.capture() as shown:
        console.print(table)
    # rich fills every line with blanks
    typer.echo("\n".join(line.rstrip() for line in shown.get().splitlines()))


def show_lines(lines: Iterable[str], title: str = "") -> None:
    """Print sentences as a bulleted list under a title; nothing for none."""
    kept = list(lines)
    if not kept:
        return
    if title:
        typer.echo(title)
    for line in kept:
        typer.echo(f"  - {line}")


def show_json(value: Any) -> None:
    """Print a value as JSON on standard output; NaN becomes null."""
    typer.echo(json.dumps(_clean(value), indent=2, allow_nan=False))


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return str(value) if isinstance(value, Path) else value


def command_line() -> str:
    """Return this command as it could be typed again."""
    return shlex.join(["convexlaw", *sys.argv[1:]])


def parse_schedule(text: str) -> NDArray[np.float64]:
    """Read a schedule: text such as ``wsd:steps=4000,peak=1e-3``, or a CSV file with a column ``lr``."""
    from convexlaw.theory import schedules

    if text.endswith((".csv", ".tsv", ".txt")):
        return _lr_column(Path(text))
    return schedules.parse(text)


def _lr_column(path: Path) -> NDArray[np.float64]:
    import pandas as pd

    if not path.is_file():
        raise ConvexlawError(
            f"schedule file {path} does not exist; give a CSV with a column lr, one row a step"
        )
    try:
        frame = pd.read_csv(path, comment="#")
        if "lr" not in frame.columns:  # another separator; a guess would cut a single column lr in two
            frame = pd.read_csv(path, sep=None, engine="python", comment="#")
    except (ValueError, pd.errors.ParserError) as error:
        raise ConvexlawError(
            f"{path} cannot be read as a schedule ({error}); give a CSV with a column lr, one row a step"
        ) from None
    if "lr" not in frame.columns:
        raise ConvexlawError(
            f"{path} has columns {list(frame.columns)}: a schedule needs a column lr, one row a step"
        )
    if frame.empty:
        raise ConvexlawError(f"{path} has the column lr but no rows: a schedule needs one row a step")
    lr = pd.to_numeric(frame["lr"], errors="coerce").to_numpy(dtype=float)
    bad = (~(lr >= 0)).nonzero()[0]
    if len(bad):
        raise ConvexlawError(f"{path}, column lr, data row {bad[0] + 1}: learning rates are numbers >= 0")
    return lr


def schedule_arguments(given: Sequence[str]) -> dict[str, NDArray[np.float64]] | NDArray[np.float64] | None:
    """Read ``--schedule`` options: one ``SPEC`` for every run, or ``RUN=SPEC`` for each."""
    if not given:
        return None
    from convexlaw.theory import schedules

    spec = rf"(?:(?:{'|'.join(schedules.NAMES)}):.*|.*\.(?:csv|tsv|txt))"
    named: dict[str, NDArray[np.float64]] = {}
    for text in given:
        pair = re.fullmatch(rf"(?P<run>.+?)=(?P<spec>{spec})", text, flags=re.IGNORECASE)
        if pair and not re.fullmatch(rf"(?:{'|'.join(schedules.NAMES)}):.*", text, flags=re.IGNORECASE):
            named[pair["run"]] = parse_schedule(pair["spec"])
        elif len(given) == 1:
            return parse_schedule(text)
        else:
            raise ConvexlawError(
                f"--schedule {text}: where several are given each is RUN=SPEC; "
                "one alone may be a SPEC for every run"
            )
    return named


def need_rates(runs: RunTable) -> None:
    """Refuse runs without learning rates: name them and their files, say how to give or to leave them."""
    from convexlaw.runs._raw import listed

    bare = [name for name in runs.runs if not runs.has_lr(name)]
    if not bare:
        return
    files = dict.fromkeys(str(runs.meta[n]["source"]) for n in bare if "source" in runs.meta[n])
    who = f"run {bare[0]!r} has" if len(bare) == 1 else f"{len(bare)} of {len(runs)} runs have"
    which = "" if len(bare) == 1 else f": {listed(bare, 3)}"
    where = f" (in {listed(files, 3)})" if files else ""
    raise ConvexlawError(
        f"{who} no learning rates{which}{where}; every law needs them: give --schedule 'RUN=SPEC' for each, "
        "add a column lr to the log, or leave out what is no run to fit with --exclude 'NAME*'"
    )


def sources(runs: RunTable) -> list[str]:
    """Files that the runs were read from, each once."""
    return list(dict.fromkeys(str(meta["source"]) for meta in runs.meta.values() if "source" in meta))
