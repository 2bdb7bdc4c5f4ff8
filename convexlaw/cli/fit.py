"""``convexlaw fit curve|table``: fit a law to logs or to a table, score it, write the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, help="Fit a law to training logs (curve) or to a table of final losses (table)."
)


@app.command("curve")
def curve(
    logs: Annotated[list[str], typer.Argument(help="Log files, folders or globs.", metavar="LOGS...")],
    train: Annotated[
        list[str] | None, typer.Option(help="Runs to fit, by name or glob (repeatable). Default: all.")
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(help="Runs to predict, by name or glob (repeatable). Default: all others."),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Runs to leave out, by name or glob (repeatable).")
    ] = None,
    law: Annotated[str, typer.Option(help="Law, or auto: rc4 with weight decay known, else cvx4q.")] = "auto",
    weight_decay: Annotated[
        float | None, typer.Option(help="Decoupled weight decay of the runs (for rc4).")
    ] = None,
    init_std: Annotated[
        float, typer.Option(help="Standard deviation of the initial weights (for rc4).")
    ] = 0.02,
    split: Annotated[str, typer.Option(help="Losses to fit: train, val, or auto.")] = "auto",
    protocol: Annotated[
        str,
        typer.Option(
            help="robust, or paper: least squares of the bound's terms on the first half of the steps, "
            "scored on the second."
        ),
    ] = "robust",
    no_prior: Annotated[bool, typer.Option("--no-prior", help="No prior that alpha lies near 1/2.")] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Compare the laws on the fitted runs too, by cross-validation."),
    ] = False,
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            help="Schedule where the log has none: SPEC or RUN=SPEC (repeatable), "
            "e.g. wsd:steps=4000,peak=1e-3."
        ),
    ] = None,
    what_if: Annotated[
        list[str] | None, typer.Option(help="Schedule to forecast in the report (repeatable).")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of report.html, fit.json, CSV and PNG.")] = Path(
        "convexlaw-fit"
    ),
    level: Annotated[float, typer.Option(help="Level of intervals and bands.", min=0.5, max=0.999)] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap refits of intervals and bands.", min=20)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print parameters and scores as JSON.")] = False,
) -> None:
    """Fit a loss law to some runs, predict the others, and write a report."""
    import warnings

    import convexlaw
    from convexlaw.cli import _tables
    from convexlaw.report.curves import curve_report, scored, verdict
    from convexlaw.report.notes import grouped_notes
    from convexlaw.solvers._fit_data import with_stated_schedules

    runs = with_stated_schedules(
        convexlaw.read_runs(logs, schedule=_tables.schedule_arguments(schedule or []))
    )
    if exclude:
        left_out = set(runs.select(exclude).runs)
        if len(left_out) == len(runs):
            raise convexlaw.ConvexlawError("--exclude names every run: nothing is left to fit")
        runs = runs.select([name for name in runs.runs if name not in left_out])
    if train or test:
        wanted = {
            *(runs.select(train).runs if train else ()),
            *(runs.select(test).runs if test else runs.runs),
        }
        both = [r for r in runs.select(train).runs if r in runs.select(test).runs] if train and test else []
        if both:
            raise convexlaw.ConvexlawError(
                f"run {both[0]!r} is named by both --train and --test: "
                "a run is fitted or predicted; name it in one of them"
            )
        runs = runs.select([name for name in runs.runs if name in wanted])
        trained = (
            list(runs.select(train).runs)
            if train
            else [r for r in runs.runs if r not in set(runs.select(test or []).runs)]
        )
        if not trained:
            raise convexlaw.ConvexlawError(
                "--test names every run: nothing is left to fit; name the runs to fit with --train"
            )
    else:
        trained = None
    _tables.need_rates(runs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = convexlaw.fit_curves(
            runs,
            law,
            train=trained,
            weight_decay=weight_decay,
            init_std=init_std,
            split=split,
            protocol=protocol,
            alpha_prior=not no_prior,
        )
    said = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    found = fit.comparison() if compare else None
    page = curve_report(
        fit,
        runs,
        out,
        command=_tables.command_line(),
        schedules={text: text for text in what_if} if what_if else None,
        sources=_tables.sources(runs),
        level=level,
        resamples=resamples,
        seed=seed,
        comparison=found,
    )
    scores, far = scored(fit)
    if as_json:
        _tables.show_json(
            {
                "law": fit.law,
                "params": fit.params,
                "scores": scores.to_dict("records"),
                "comparison": None
                if found is None
                else {"laws": found.to_frame().to_dict("records"), "sentence": found.sentence},
                "notes": [*runs.notes, *fit.notes],
                "identifiability": fit.identifiability.sentences,
                "warnings": [*said, *far],
                "report": str(page),
            }
        )
        return
    fit.interval(level, resamples=resamples, seed=seed)  # of the report: its profiles were computed after it
    typer.echo(str(fit))
    _tables.show_table(scores[["run", "trained", "points", "mae", "r2", "final_error", "last_value_mae"]])
    if found is not None:
        typer.echo(f"laws compared on the fitted runs by cross-validation:\n{found}")
    for title, lines in grouped_notes(runs, options=True).items():
        _tables.show_lines(lines, f"{title}:")
    _tables.show_lines(fit.identifiability.sentences, "What the data can tell:")
    _tables.show_lines([*said, *far], "Beware:")
    typer.echo(verdict(fit, scores))
    typer.echo(f"report: {page}")


@app.command("table")
def table(
    data: Annotated[
        Path, typer.Argument(help="CSV with columns N, D (or flops = 6 N D) and loss.", metavar="TABLE")
    ],
    law: Annotated[str, typer.Option(help="chinchilla, kaplan or two_dimensional.")] = "chinchilla",
    exclude_largest: Annotated[
        int, typer.Option(help="Leave out this many rows of largest loss.", min=0)
    ] = 0,
    flops: Annotated[
        list[float] | None, typer.Option(help="Compute budget to optimise (repeatable).")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of report.html, fit.json, CSV and PNG.")] = Path(
        "convexlaw-fit"
    ),
    level: Annotated[float, typer.Option(help="Level of the intervals.", min=0.5, max=0.999)] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print parameters and optima as JSON.")] = False,
) -> None:
    """Fit a scaling law to a table of final losses; give compute-optimal sizes with intervals."""
    import warnings

    import pandas as pd

    import convexlaw
    from convexlaw.cli import _tables
    from convexlaw.report.tables import optimal_table, table_report

    if not data.is_file():
        raise convexlaw.ConvexlawError(f"{data} does not exist; give a CSV with columns N, D and loss")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = convexlaw.fit_table(
            pd.read_csv(data, sep=None, engine="python"), law, exclude_largest=exclude_largest
        )
        budgets = [(budget, fit.optimal(flops=budget, level=level)) for budget in flops or ()]
    said = list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))
    page = table_report(
        fit,
        out,
        command=_tables.command_line(),
        budgets=budgets,
        warned=said,
        sources=[data],
        level=level,
    )
    limits = fit.interval(level).reset_index()
    if as_json:
        _tables.show_json(
            {
                "law": fit.law,
                "params": limits.to_dict("records"),
                "optimal": optimal_table(budgets).to_dict("records"),
                "identifiability": fit.identifiability.sentences,
                "warnings": said,
                "report": str(page),
            }
        )
        return
    _tables.show_table(limits.rename(columns={limits.columns[0]: "parameter"}), str(fit).splitlines()[0])
    if budgets:
        _tables.show_table(optimal_table(budgets), f"compute-optimal, {level:.0%} limits")
    _tables.show_lines([*said, *fit.identifiability.sentences], "What the data can tell:")
    typer.echo(f"report: {page}")
