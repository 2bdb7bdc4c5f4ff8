"""``convexlaw read``: training logs to one tidy table, and what a reader should know of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.runs.table import RunTable

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
    from convexlaw.report.notes import grouped_notes
    from convexlaw.solvers._fit_data import with_stated_schedules

    _check_outputs(out, plot)
    table = convexlaw.read_runs(
        sources[0] if len(sources) == 1 else sources,
        schedule=_tables.schedule_arguments(schedule or []),
        duplicates=duplicates,
        na=na,
        loss_scale=loss_scale,
    )
    table = with_stated_schedules(table)
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
    for title, notes in grouped_notes(table, options=True).items():
        typer.echo("")
        _tables.show_lines(notes if all_notes else _first(notes), title)
    for path, what in ((out, "table"), (plot, "figure")):
        if path is not None:
            typer.echo(f"\n{what} written to {path}")


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
