"""``convexlaw demo``: the main job on the training runs that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder of report.html, CSV and PNG.")] = Path("convexlaw-demo"),
) -> None:
    """Fit a law on some of the packaged training runs, predict the others, write a report."""
    import time

    import convexlaw
    from convexlaw.cli import _tables
    from convexlaw.report.curves import curve_report, scored, verdict
    from convexlaw.simulations import DEMO_TRAIN, demo_logs
    from convexlaw.solvers._fit_data import with_stated_schedules

    start = time.perf_counter()
    logs = demo_logs()
    runs = with_stated_schedules(convexlaw.read_runs(logs))
    typer.echo(f"read {len(runs.runs)} training runs of a small transformer (simulations/logs)")
    fit = convexlaw.fit_curves(runs, train=list(DEMO_TRAIN))
    typer.echo(f"fitted {fit.law} on {', '.join(fit.train)}")
    page = curve_report(
        fit,
        runs,
        out,
        command="convexlaw demo",
        sources=logs,
        title="One law, fitted on some runs, predicts the others",
    )
    scores, _ = scored(fit)  # its warnings are on the page
    _tables.show_table(
        scores[~scores["trained"]][["run", "points", "mae", "r2", "final_error", "last_value_mae"]]
    )
    typer.echo(verdict(fit, scores))
    typer.echo(f"report: {page} ({time.perf_counter() - start:.0f} s)")
