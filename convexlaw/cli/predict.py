"""``convexlaw predict``: the loss of a schedule, or of a model size and tokens, from a saved fit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from convexlaw.figures.what_if import Forecast
    from convexlaw.solvers.fit_curves import CurveFit
    from convexlaw.solvers.fit_table import TableFit


def predict(
    fit: Annotated[
        Path, typer.Argument(help="fit.json of convexlaw fit curve, fit table or demo.", metavar="FIT.json")
    ],
    schedule: Annotated[
        str | None,
        typer.Option(
            help="Fit of curves: schedule, e.g. wsd:steps=8000,peak=3e-3,decay=0.2,warmup=100, or a CSV with "
            "a column lr."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None, typer.Option(help="Another schedule to compare with (repeatable).")
    ] = None,
    batch_size: Annotated[
        float | None, typer.Option(help="Samples an update, where the fit has a batch term.", min=1)
    ] = None,
    size: Annotated[
        list[float] | None,
        typer.Option(help="Fit of a table: parameters N of a model (repeatable, each with its --tokens)."),
    ] = None,
    tokens: Annotated[
        list[float] | None,
        typer.Option(help="Training tokens D (repeatable; one alone is for every --size)."),
    ] = None,
    flops: Annotated[
        list[float] | None,
        typer.Option(help="Fit of a table: compute budget 6 N D to optimise (repeatable)."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the band.", min=0.5, max=0.999)] = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="Folder for forecast.csv, forecast.png and, of budgets, optimal.csv.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """Predict the loss along schedules, or of model sizes and tokens, and compare them."""
    import convexlaw
    from convexlaw.solvers.fit_curves import CurveFit

    fitted = convexlaw.load_fit(fit)
    of_curves = {"--schedule": schedule, "--compare": compare, "--batch-size": batch_size}
    of_table = {"--size": size, "--tokens": tokens, "--flops": flops}
    other = of_table if isinstance(fitted, CurveFit) else of_curves
    foreign = [name for name, given in other.items() if given]
    if isinstance(fitted, CurveFit):
        need = "give --schedule SPEC, e.g. wsd:steps=8000,peak=3e-3,decay=0.2"
        if foreign or not schedule:
            raise convexlaw.ConvexlawError(_unfit(fit, "curves", foreign, "a table", need))
        _curves(fitted, [schedule, *(compare or ())], batch_size, level, out, as_json)
        return
    need = "give --size N and --tokens D, or a budget --flops C"
    if foreign or not (size or tokens or flops):
        raise convexlaw.ConvexlawError(_unfit(fit, "a table", foreign, "curves", need))
    many = len(size or ()), len(tokens or ())
    if many[0] != many[1] and 1 not in many:
        raise convexlaw.ConvexlawError(
            f"{many[0]} --size and {many[1]} --tokens: give as many of each, or one of them once"
        )
    if bool(size) != bool(tokens):
        raise convexlaw.ConvexlawError(f"{'--size' if size else '--tokens'} is given alone: {need}")
    _table(fitted, size or [], tokens or [], flops or [], level, out, as_json)


def _unfit(path: Path, kind: str, foreign: list[str], other: str, need: str) -> str:
    verb = "is" if len(foreign) == 1 else "are"
    wrong = f"{', '.join(foreign)} {verb} for a fit of {other}; " if foreign else ""
    return f"{path} holds a fit of {kind}: {wrong}{need}"


def _curves(
    fitted: CurveFit,
    asked: list[str],
    batch_size: float | None,
    level: float,
    out: Path | None,
    as_json: bool,
) -> None:
    from convexlaw.cli import _tables
    from convexlaw.report.curves import forecast, forecast_table

    told = [
        forecast(fitted, text, _tables.parse_schedule(text), batch_size=batch_size, level=level)
        for text in asked
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


def _save(out: Path, forecasts: list[Forecast]) -> None:
    import pandas as pd

    from convexlaw._files import replacing
    from convexlaw.figures.what_if import plot_forecasts

    parts = [
        pd.DataFrame({"schedule": f.name, "step": f.at, "loss": f.loss, "low": f.low, "high": f.high})
        for f in forecasts
    ]
    with replacing(out / "forecast.csv") as tmp:
        pd.concat(parts).to_csv(tmp, index=False)
    _save_figure(plot_forecasts(forecasts), out / "forecast.png")


def _save_figure(figure: Figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    from convexlaw._files import replacing

    with replacing(path) as tmp:
        figure.savefig(tmp, format="png")
    plt.close(figure)


def _table(
    fitted: TableFit,
    size: list[float],
    tokens: list[float],
    flops: list[float],
    level: float,
    out: Path | None,
    as_json: bool,
) -> None:
    import numpy as np

    from convexlaw.cli import _tables
    from convexlaw.report.tables import optimal_table, point_table

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        points = point_table(fitted, size, tokens, level) if size else None
        optima = [(budget, fitted.optimal(budget, level=level)) for budget in flops]
    said = list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))
    best = optimal_table(optima)
    written: list[Path] = []
    if out is not None:
        from convexlaw._files import replacing
        from convexlaw.figures.style import figure_of
        from convexlaw.figures.what_if import plot_table_forecast

        for name, frame in (("forecast.csv", points), ("optimal.csv", best if optima else None)):
            if frame is not None:
                with replacing(out / name) as tmp:
                    frame.to_csv(tmp, index=False)
                written.append(out / name)
        drawn = np.array([*np.broadcast(size, tokens), *(tuple(found) for _, found in optima)])
        ax = plot_table_forecast(fitted, drawn[:, 0], drawn[:, 1], level=level)
        _save_figure(figure_of(ax), out / "forecast.png")
        written.append(out / "forecast.png")
    if as_json:
        _tables.show_json(
            {
                "law": fitted.law,
                "level": level,
                "forecasts": [] if points is None else points.to_dict("records"),
                "optimal": best.to_dict("records"),
                "warnings": said,
            }
        )
        return
    if points is not None:
        shown = points.assign(**{n: points[n].map("{:.4g}".format) for n in ("N", "D", "FLOPs")})
        _tables.show_table(shown, f"final loss in nats, {level:.0%} limits", digits=5)
    if optima:
        _tables.show_table(best, f"compute-optimal, {level:.0%} limits", digits=4)
    _tables.show_lines(said, "Beware:")
    if written:
        typer.echo(f"written: {', '.join(map(str, written))}")
