"""``convexlaw slope``: a regression of a table, chosen, certified, explained, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from convexlaw.solvers.analysis import Analysis


def slope(
    data: Annotated[
        Path, typer.Argument(help="Table: CSV, TSV (also .gz, .bz2, .xz, .zip) or parquet.", metavar="DATA")
    ],
    y: Annotated[
        list[str] | None,
        typer.Option("--y", help="Column to explain (repeatable with the gaussian family).", metavar="NAME"),
    ] = None,
    formula: Annotated[
        str | None, typer.Option(help="'a + C(b)' or 'y ~ a + C(b)'. Default: all usable columns.")
    ] = None,
    without: Annotated[list[str] | None, typer.Option(help="Column to leave out (repeatable).")] = None,
    family: Annotated[
        str, typer.Option(help="gaussian, binomial, multinomial, poisson, huber, or auto (by the response).")
    ] = "auto",
    penalty: Annotated[str, typer.Option(help="bh, gaussian, oscar, lasso or two-level.")] = "bh",
    q: Annotated[float, typer.Option(help="False discovery rate of bh and gaussian.")] = 0.1,
    theta1: Annotated[float, typer.Option(help="Of oscar: theta1 + theta2 (p - rank).")] = 1.0,
    theta2: Annotated[float, typer.Option(help="Of oscar.")] = 0.5,
    low_ratio: Annotated[
        float | None, typer.Option(help="Of two-level: low over high weight. Default: cross-validated.")
    ] = None,
    fraction: Annotated[
        float | None, typer.Option(help="Of two-level: share of the ranks with the high weight.")
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(help="Multiplier of the penalty, or estimate (from the noise). Default: chosen."),
    ] = None,
    cv: Annotated[int, typer.Option(help="Folds of the cross-validation that chooses alpha.", min=2)] = 10,
    rule: Annotated[str, typer.Option(help="min: best mean; 1se: largest alpha within one SE.")] = "min",
    criterion: Annotated[
        str | None, typer.Option(help="aic, bic, ebic or gcv instead of cross-validation.")
    ] = None,
    stability: Annotated[
        int, typer.Option(help="Half-samples for the selection frequencies, 0 for none.", min=0)
    ] = 100,
    split: Annotated[
        float, typer.Option(help="Share of the rows that selects for the honest table, 0 for none.")
    ] = 0.5,
    na: Annotated[str, typer.Option(help="Rows with missing values: drop or raise.")] = "drop",
    predict: Annotated[
        Path | None, typer.Option(help="Table of new rows to predict, with 90 % intervals (needs --out).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of report.html, JSON, CSV and PNG.")] = None,
    seed: Annotated[int, typer.Option(help="Of folds, half-samples, split and bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the analysis as JSON.")] = False,
) -> None:
    """Regress columns of a table on the others by SLOPE, and write what is needed to defend the result."""
    from convexlaw.cli import _regression_data, _tables
    from convexlaw.errors import ConvexlawError
    from convexlaw.solvers.analysis import analyse

    if predict is not None and out is None:
        raise ConvexlawError("--predict writes predictions.csv: name a folder with --out")
    if out is not None and out.exists() and not out.is_dir():
        raise ConvexlawError(f"--out {out} is a file; name a folder")
    if alpha is not None and criterion is not None:
        raise ConvexlawError(f"--alpha {alpha} and --criterion {criterion}: give one of them")
    table = _regression_data.read_table(data)
    for name in without or []:
        if name not in table.columns:
            raise ConvexlawError(f"--without {name}: the table has no such column")
    options: dict[str, Any] = {"q": q, "theta1": theta1, "theta2": theta2}
    options |= {"low_ratio": low_ratio, "fraction": fraction}
    found = analyse(
        table.drop(columns=without or []),
        y or [],
        formula=formula,
        family=family,
        penalty=penalty,
        options={k: v for k, v in options.items() if v is not None},
        alpha=_alpha(alpha),
        criterion=criterion,
        folds=cv,
        rule=rule,
        stability=stability,
        split=split,
        na=na,
        seed=seed,
    )
    coming = None if predict is None else found.predict(_regression_data.read_table(predict), seed=seed)
    page = None
    if out is not None:
        from convexlaw.report.regression import as_dict, regression_report

        page = regression_report(
            found,
            out,
            command=_tables.command_line(),
            source=data.name,
            sources=[data, *([] if predict is None else [predict])],
            predictions=coming,
        )
    if as_json:
        from convexlaw.report.regression import as_dict

        _tables.show_json(as_dict(found) | ({} if page is None else {"report": str(page)}))
        return
    _show(found)
    if page is not None:
        typer.echo(f"report: {page}")


def _alpha(text: str | None) -> float | str | None:
    from convexlaw.errors import ConvexlawError

    if text is None or text == "estimate":
        return text
    try:
        return float(text)
    except ValueError:
        raise ConvexlawError(f"--alpha {text}: give a number >= 0, or estimate") from None


def _show(found: Analysis) -> None:
    from convexlaw.cli import _tables
    from convexlaw.report.regression import coefficient_table

    typer.echo(str(found.summary).partition("\n  intercept")[0])
    _tables.show_table(coefficient_table(found, most=25))
    _tables.show_lines(found.screened.sentences, "Not used:")
    _tables.show_lines([*found.screened.notes, *found.notes, *found.lacking], "To know:")
    _tables.show_lines(found.diagnostics.sentences, "To look at:")
    if found.honest is not None:
        typer.echo(f"Estimates without a penalty: {found.honest.statement}")
        _tables.show_table(found.honest.to_frame().head(25))
    elif found.refit is not None:
        typer.echo(f"Estimates without a penalty: {found.refit.statement}")
        _tables.show_table(found.refit.to_frame().head(25))
    typer.echo(found.verdict)
