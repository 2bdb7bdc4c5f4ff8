"""``convexlaw predict``: the loss of a schedule, from a saved fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def predict(
    fit: Annotated[
        Path, typer.Argument(help="fit.json of convexlaw fit curve or convexlaw demo.", metavar="FIT.json")
    ],
    schedule: Annotated[
        str,
        typer.Option(
            help="Schedule, e.g. wsd:steps=8000,peak=3e-3,decay=0.2,warmup=100, or a CSV with a column lr."
        ),
    ],
    compare: Annotated[
        list[str] | None, typer.Option(help="Another schedule to compare with (repeatable).")
    ] = None,
    batch_size: Annotated[
        float | None, typer.Option(help="Samples an update, where the fit has a batch term.", min=1)
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the band.", min=0.5, max=0.999)] = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="Folder for forecast.csv (every step shown) and forecast.png.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Predict the loss along a schedule, and compare schedules."""
    import convexlaw
    from convexlaw.cli import _tables
    from convexlaw.report.curves import forecast, forecast_table
    from convexlaw.solvers.fit_curves import CurveFit

    fitted = convexlaw.load_fit(fit)
    if not isinstance(fitted, CurveFit):
        raise convexlaw.ConvexlawError(
            f"{fit} holds a fit of a table: predict needs a fit of curves (convexlaw fit curve)"
        )
    told = [
        forecast(fitted, text, _tables.parse_schedule(text), batch_size=batch_size, level=level)
        for text in (schedule, *(compare or ()))
    ]
    forecasts = [f for f, _ in told]
    said = list(dict.fromkeys(line for _, lines in told for line in lines))
    table = forecast_table(forecasts)
    if out is not None:
        _save(out, forecasts)
    if as_json:
        _tables.show_json(
            {"law": fitted.law, "level": level, "forecasts": table.to_dict("records"), "warnings": said}
        )
        return
    _tables.show_table(table, f"loss after the last update in nats, {level:.0%} limits", digits=5)
    _tables.show_lines(said, "Beware:")
    if out is not None:
        typer.echo(f"written: {out / 'forecast.csv'}, {out / 'forecast.png'}")


def _save(out: Path, forecasts: list) -> None:  # type: ignore[type-arg]
    import matplotlib.pyplot as plt
    import pandas as pd

    from convexlaw._files import replacing
    from convexlaw.figures.what_if import plot_forecasts

    parts = [
        pd.DataFrame({"schedule": f.name, "step": f.at, "loss": f.loss, "low": f.low, "high": f.high})
        for f in forecasts
    ]
    with replacing(out / "forecast.csv") as tmp:
        pd.concat(parts).to_csv(tmp, index=False)
    figure = plot_forecasts(forecasts)
    with replacing(out / "forecast.png") as tmp:
        figure.savefig(tmp, format="png")
    plt.close(figure)
