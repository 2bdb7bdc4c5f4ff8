"""``convexlaw read``: training logs to one tidy table, and what a reader should know of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.runs.table import RunTable

# what was done to a log, what to look at before a fit, and (all else) how it was read
_CHANGED = (
    "skipped",
    "nan",
    "resumed",
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
_MOST = 12  # lines under one heading


def read(
    sources: Annotated[
        list[str],
        typer.Argument(help="Files, folders, globs, or - for standard input.", metavar="SOURCES..."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write the tidy table here (.csv, .csv.gz or .parquet).")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the losses into this PNG, PDF or SVG.")] = None,
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            help="Schedule where the log has none: SPEC or RUN=SPEC (repeatable), "
            "e.g. cosine:steps=4000,peak=1e-3."
        ),
    ] = None,
    duplicates: Annotated[
        str, typer.Option(help="Which segment of a resumed run wins: later, earlier, mean or error.")
    ] = "later",
    na: Annotated[str, typer.Option(help="Losses that are NaN or infinite: drop or error.")] = "drop",
    loss_scale: Annotated[float, typer.Option(help="Divide training losses by this.")] = 1.0,
    drop_spikes: Annotated[
        bool, typer.Option("--drop-spikes", help="Leave out rows far above their neighbours.")
    ] = False,
    pool_seeds: Annotated[
        bool, typer.Option("--pool-seeds", help="Average runs that differ by their seed alone.")
    ] = False,
    all_notes: Annotated[bool, typer.Option("--all-notes", help="Print every note.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print runs and notes as JSON.")] = False,
) -> None:
    """Read logs of any format, one line a run, and say what was dropped, merged, guessed or looks wrong."""
    import convexlaw
    from convexlaw.cli import _tables

    _check_outputs(out, plot)
    table = convexlaw.read_runs(
        sources[0] if len(sources) == 1 else sources,
        schedule=_tables.schedule_arguments(schedule or []),
        duplicates=duplicates,
        na=na,
        loss_scale=loss_scale,
    )
    table = _with_stated_schedules(table)
    if drop_spikes:
        table = table.drop_spikes()
    if pool_seeds:
        table = table.pool_seeds()
    if out is not None:
        table.to_parquet(out) if out.suffix == ".parquet" else table.to_csv(out)
    if plot is not None:
        _draw(table, plot)
    if as_json:
        _tables.show_json(_as_json(table))
        return
    _tables.show_table(_overview(table))
    for title, notes in _grouped(table).items():
        typer.echo("")
        _tables.show_lines(notes if all_notes else _first(notes), title)
    for path, what in ((out, "table"), (plot, "figure")):
        if path is not None:
            typer.echo(f"\n{what} written to {path}")


def _with_stated_schedules(table: RunTable) -> RunTable:
    """Take the schedules that logs state in their header lines, as the fits do, and say so."""
    from dataclasses import replace

    from convexlaw.runs._raw import Note
    from convexlaw.solvers._fit_data import _with_own_schedules

    stated = _with_own_schedules(table)
    text = "the learning rate of every step comes from the schedule in its header lines"
    own = [
        Note(run, "own_schedule", text)
        for run in stated.runs
        if run in stated._schedules.keys() - table._schedules.keys()
    ]
    return replace(stated, notes=[*stated.notes, *own])


def _check_outputs(out: Path | None, plot: Path | None) -> None:
    """Refuse what cannot be written before anything is read."""
    from convexlaw.errors import ConvexlawError

    if out is not None and not out.name.endswith((".csv", ".csv.gz", ".parquet")):
        raise ConvexlawError(f"--out {out}: the table is written as .csv, .csv.gz or .parquet; name it so")
    if plot is not None and plot.suffix not in (".png", ".pdf", ".svg"):
        raise ConvexlawError(f"--plot {plot}: figures are written as .png, .pdf or .svg; name it so")


def _draw(table: RunTable, path: Path) -> None:
    import matplotlib

    from convexlaw._files import replacing

    matplotlib.use("Agg")
    ax = table.plot()
    with replacing(path) as tmp:
        ax.figure.savefig(tmp, dpi=150, bbox_inches="tight")  # type: ignore[union-attr]


def _overview(table: RunTable) -> pd.DataFrame:
    """One line a run for the screen: columns that no run fills are left out."""
    import pandas as pd

    rows = table.summary()
    shown = pd.DataFrame(
        {
            "run": [_plain(r, 60) for r in rows["run"]],
            "format": [table.meta[r]["format"] for r in rows["run"]],
        }
    )
    shown["rows"] = rows["rows"]
    shown["steps"] = [f"{a} to {b}" for a, b in zip(rows["first_step"], rows["last_step"], strict=True)]
    for column, title in (
        ("peak_lr", "peak lr"),
        ("batch_size", "batch"),
        ("tokens", "tokens"),
        ("final_loss", "train loss"),
        ("final_val_loss", "val loss"),
    ):
        if rows[column].notna().any():
            shown[title] = [_figure(v) for v in rows[column]]
    shown["notes"] = rows["notes"]
    return shown


def _figure(value: float) -> str:
    if value != value:
        return "-"
    if value >= 1e6:
        return f"{value:.3g}"
    return f"{value:.0f}" if value == round(value) and value >= 1 else f"{value:.4g}"


def _plain(text: object, limit: int = 400) -> str:
    """Escape what rich would read as markup, and control characters."""
    from rich.markup import escape

    from convexlaw.runs._raw import printable

    return escape(printable(text, limit))


def _grouped(table: RunTable) -> dict[str, list[str]]:
    """Sort notes under three headings; a sentence that several runs share stands once."""
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
        t: [_sentence(text, runs) for text, runs in found.items()] for t, found in groups.items() if found
    }


def _sentence(text: str, runs: list[str]) -> str:
    from convexlaw.runs._raw import printable

    # the sentences speak to a program; here the same things are options
    for name, option in (
        (r"schedule=", "--schedule"),
        (r"pool_seeds\(\)", "--pool-seeds"),
        (r"loss_scale=", "--loss-scale "),
    ):
        text = re.sub(rf"\b{name}", option, text)
    named = [printable(r, 60) for r in dict.fromkeys(runs) if r]
    if not named:
        return printable(text, 600)
    who = ", ".join(named) if len(named) <= 4 else f"{', '.join(named[:3])} and {len(named) - 3} more runs"
    return f"{who}: {printable(text, 600)}"


def _first(notes: list[str]) -> list[str]:
    if len(notes) <= _MOST + 2:
        return notes
    return [*notes[:_MOST], f"... and {len(notes) - _MOST} more (--all-notes prints them)"]


def _as_json(table: RunTable) -> dict[str, Any]:
    rows = table.summary().drop(columns="notes").to_dict("records")
    for row in rows:
        run = str(row["run"])
        row["source"], row["format"] = table.meta[run]["source"], table.meta[run]["format"]
        row["meta"] = {k: v for k, v in table.meta[run].items() if k not in ("source", "format")}
        row["notes"] = [
            {"kind": getattr(n, "kind", ""), "text": getattr(n, "text", n)}
            for n in table.notes
            if getattr(n, "run", "") == run
        ]
    every = [
        {"kind": getattr(n, "kind", ""), "text": str(n)} for n in table.notes if not getattr(n, "run", "")
    ]
    return {"runs": rows, "notes": every}
