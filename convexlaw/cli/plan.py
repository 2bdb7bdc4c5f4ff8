"""``convexlaw plan``: shape, peak, horizon and batch sizes of a run under a budget, from a saved fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers.planner import RunPlan


def plan(
    fit: Annotated[
        Path, typer.Argument(help="fit.json of convexlaw fit curve or convexlaw demo.", metavar="FIT.json")
    ],
    steps: Annotated[int | None, typer.Option(help="Budget of updates.")] = None,
    samples: Annotated[
        float | None, typer.Option(help="Budget of samples (unit of the logged batch size).")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Budget of time, with --per-sample.")] = None,
    overhead: Annotated[float, typer.Option(help="Seconds of a step whatever its batch.")] = 0.0,
    per_sample: Annotated[float | None, typer.Option(help="Seconds of a sample.")] = None,
    batch_size: Annotated[
        float | None, typer.Option(help="Batch size (mean); default that of the fitted runs.")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="Schedule without steps and peak, e.g. wsd:decay=0.2 (repeatable)."),
    ] = None,
    warmup: Annotated[float, typer.Option(help="Warmup in steps, or as a fraction below 1.")] = 0,
    peak: Annotated[float | None, typer.Option(help="Peak learning rate to hold.")] = None,
    peak_fit: Annotated[
        Path | None,
        typer.Option(help="Another fit.json that chooses the peak (cvx4q fitted at one peak is best)."),
    ] = None,
    scheduled: Annotated[
        bool | None,
        typer.Option("--scheduled/--static", help="Batch schedule or one batch size; default the better."),
    ] = None,
    min_batch: Annotated[float, typer.Option("--min", help="Smallest batch size.")] = 1,
    max_batch: Annotated[float | None, typer.Option("--max", help="Largest batch size.")] = None,
    multiple_of: Annotated[int, typer.Option(help="Batch sizes are multiples of it.")] = 1,
    stages: Annotated[
        int | None, typer.Option(help="At most so many batch sizes, one after another.")
    ] = None,
    powers_of_two: Annotated[
        bool, typer.Option("--powers-of-two", help="Batch sizes are --multiple-of times powers of two.")
    ] = False,
    noise_scale: Annotated[
        float | None,
        typer.Option(help="Measured sigma^2/G^2 in samples, for a fit of runs with one batch size."),
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Weight decay of the run (for rc4).")] = None,
    seq_length: Annotated[
        int | None, typer.Option(help="Tokens of a sample, for Megatron-LM's thresholds.")
    ] = None,
    level: Annotated[float, typer.Option(help="Level of intervals.", min=0.5, max=0.999)] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of schedule.csv, megatron.txt, huggingface.json, how_to_use.md, candidates.csv, "
            "plan.png, candidates.png."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Choose shape, peak, horizon and batch sizes of a run under a budget, and say what to trust of it."""
    from convexlaw.cli import _plans, _tables
    from convexlaw.solvers.joint_law import scaling_rules
    from convexlaw.solvers.planner import SHAPES, plan_run

    _plans.check_out(out)
    fitted = _plans.load_curves(fit)
    with _plans.options_named():
        made = plan_run(
            fitted, steps=steps, samples=samples, seconds=seconds, overhead=overhead, per_sample=per_sample,
            batch_size=batch_size, shapes=tuple(shape) if shape else SHAPES, warmup=warmup, peak=peak,
            peak_fit=None if peak_fit is None else _plans.load_curves(peak_fit), scheduled=scheduled,
            min_batch=min_batch, max_batch=max_batch, multiple_of=multiple_of, stages=stages,
            powers_of_two=powers_of_two, noise_scale=noise_scale, weight_decay=weight_decay, level=level,
        )  # fmt: skip
        rules = scaling_rules(
            fitted, made.shape, made.steps, samples=made.samples, weight_decay=weight_decay, level=level
        )
    written: list[Path] = [] if out is None else _save(out, made, seq_length)
    said = [*made.sentences, *(made.forecast.sentences if made.forecast else ())]
    notes = [_plans.as_options(text) for text in dict.fromkeys(said)]
    if as_json:
        _tables.show_json(
            {
                "law": fitted.law,
                "shape": made.shape,
                "steps": made.steps,
                "peak": made.best.peak,
                "peak_low": made.best.peak_low,
                "peak_high": made.best.peak_high,
                "loss": made.loss,
                "low": made.low,
                "high": made.high,
                "level": made.level,
                "batch": None if made.batch is None else _plans.plan_dict(made.batch, of_law=True),
                "forecast": _plans.forecast_dict(made.forecast),
                "candidates": made.to_frame().to_dict("records"),
                "horizons": made.horizons,
                "scaling_rules": rules.rows,
                "notes": notes,
                "files": written,
            }
        )
        return
    typer.echo("\n".join(str(made).splitlines()[: 2 + (made.batch is not None)]))
    if made.forecast is not None and made.batch is not None:
        typer.echo("\n".join(str(made.forecast).splitlines()[:2]))
        typer.echo(_plans.gain_sentence(made.batch, of_law=True))
        _tables.show_table(_plans.stage_table(made.batch))
    own = ", each at its own best peak" if len({c.peak for c in made.candidates}) > 1 else ""
    _tables.show_table(_shown(made), f"schedules{own}, {level:.0%} limits", digits=5)
    if len(made.horizons) > 1:
        import pandas as pd

        _tables.show_table(pd.DataFrame(made.horizons), "horizons, each with its best schedule", digits=5)
    _tables.show_table(
        rules.to_frame().drop(columns="remark"),
        f"from {rules.steps[0]} to {rules.steps[1]} steps: the paper's scaling rules beside the data",
    )
    _tables.show_lines([row["remark"] for row in rules.rows])
    _tables.show_lines(notes, "What to trust:")
    _plans.show_written(written)


def _shown(made: RunPlan) -> pd.DataFrame:
    frame = made.to_frame()
    kept = ["shape", "batches", "peak", "peak_low", "peak_high", "loss", "low", "high", "behind"]
    frame = frame[[*kept, "behind_low", "behind_high"]]
    return frame.dropna(axis="columns", how="all")


def _save(out: Path, made: RunPlan, seq_length: int | None) -> list[Path]:
    import matplotlib

    matplotlib.use("Agg")
    from convexlaw._files import replacing
    from convexlaw.cli import _plans
    from convexlaw.figures.planner import plot_run_plan
    from convexlaw.figures.style import figure_of

    title = f"{made.shape}, {made.steps} steps, peak {made.best.peak:.3g}"
    written = _plans.save_schedule(
        out, made.lr, made.batch, made.forecast, name="plan.png", title=title, seq_length=seq_length
    )
    if made.batch is None:  # learning rates alone: nothing is known of batch sizes
        import pandas as pd

        with replacing(out / "schedule.csv") as tmp:
            pd.DataFrame({"step": range(made.steps), "lr": made.lr}).to_csv(tmp, index=False)
        written.insert(0, out / "schedule.csv")
    with replacing(out / "candidates.csv") as tmp:
        made.to_frame().to_csv(tmp, index=False)
    figure = _plans.save_figure(figure_of(plot_run_plan(made)), out / "candidates.png")
    return [*written, out / "candidates.csv", figure]
