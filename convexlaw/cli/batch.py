"""``convexlaw batch``: the optimal batch sizes of a run, as files that trainers read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from convexlaw.solvers.fit_curves import CurveFit
    from convexlaw.theory.batch import BatchPlan


def batch(
    fit: Annotated[
        Path | None,
        typer.Argument(
            help="fit.json of convexlaw fit curve: predicts what the schedule saves; without --schedule "
            "it also chooses the learning rates.",
            metavar="[FIT.json]",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="Learning rates, e.g. wsd:steps=8000,peak=3e-3,decay=0.2,warmup=100, "
            "or a CSV with a column lr."
        ),
    ] = None,
    samples: Annotated[float | None, typer.Option(help="Samples of the whole run.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Time of the whole run instead, with --per-sample.")
    ] = None,
    overhead: Annotated[float, typer.Option(help="Seconds of a step whatever its batch.")] = 0.0,
    per_sample: Annotated[float | None, typer.Option(help="Seconds of a sample.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps, where the fit chooses the learning rates.")
    ] = None,
    warmup: Annotated[float, typer.Option(help="Warmup of those: in steps, or as a fraction below 1.")] = 0,
    min_batch: Annotated[float, typer.Option("--min", help="Smallest batch size.")] = 1,
    max_batch: Annotated[float | None, typer.Option("--max", help="Largest batch size.")] = None,
    multiple_of: Annotated[
        int, typer.Option(help="Batch sizes are multiples of it (devices x micro batch).")
    ] = 1,
    stages: Annotated[
        int | None, typer.Option(help="At most so many batch sizes, one after another.")
    ] = None,
    powers_of_two: Annotated[
        bool, typer.Option("--powers-of-two", help="Batch sizes are --multiple-of times powers of two.")
    ] = False,
    in_samples: Annotated[
        bool,
        typer.Option(
            "--in-samples",
            help="The learning rate follows the samples used, not the step (as in Megatron-LM).",
        ),
    ] = False,
    noise_scale: Annotated[
        float | None,
        typer.Option(help="Measured sigma^2/G^2 in samples, for a fit of runs with one batch size."),
    ] = None,
    seq_length: Annotated[
        int | None, typer.Option(help="Tokens of a sample, for Megatron-LM's thresholds.")
    ] = None,
    level: Annotated[float, typer.Option(help="Level of intervals.", min=0.5, max=0.999)] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of schedule.csv, megatron.txt, huggingface.json, how_to_use.md, batch.png."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Find the batch sizes that make the gradient noise smallest, and write them for trainers."""
    from dataclasses import replace

    from convexlaw.cli import _plans, _tables
    from convexlaw.errors import ConvexlawError
    from convexlaw.solvers.planner import forecast_batches, plan_run

    _plans.check_out(out)
    if fit is None and schedule is None:
        raise ConvexlawError("give a fit (FIT.json), a --schedule, or both")
    if (samples is None) == (seconds is None):
        raise ConvexlawError("give the budget: --samples, or --seconds with --per-sample")
    if noise_scale is not None and fit is None:
        raise ConvexlawError("--noise-scale splits the noise of a fit: give FIT.json too")
    fitted = None if fit is None else _plans.load_curves(fit)
    limits: dict[str, Any] = dict(min_batch=min_batch, max_batch=max_batch, multiple_of=multiple_of)
    notes: list[str] = []
    shape = None
    if schedule is None:
        if fitted is None or in_samples:
            raise ConvexlawError("--in-samples needs a --schedule")
        with _plans.options_named():
            made = plan_run(
                fitted, steps=steps, samples=samples, seconds=seconds, overhead=overhead,
                per_sample=per_sample, warmup=warmup, scheduled=True, stages=stages,
                powers_of_two=powers_of_two, noise_scale=noise_scale, level=level, **limits,
            )  # fmt: skip
        if made.batch is None:
            raise ConvexlawError("the fitted runs log no batch size: give a --schedule")
        notes += [
            f"Learning rates chosen by the fit: {made.shape}, peak {made.best.peak:.4g}.",
            *made.sentences,
        ]
        lr, plan, title = made.lr, made.batch, f"{made.shape}, {made.steps} steps"
    else:
        if steps is not None:
            raise ConvexlawError(
                "--steps is for learning rates chosen by the fit: write steps= in --schedule"
            )
        if in_samples:
            shape = schedule
        with _plans.options_named():
            lr, plan = _scheduled(
                schedule, fitted, samples, seconds, overhead, per_sample, stages, powers_of_two, in_samples,
                limits,
            )  # fmt: skip
        title = schedule
    forecast = None
    if fitted is not None:
        try:
            forecast = forecast_batches(fitted, lr, plan.batch, noise_scale=noise_scale, level=level)
            notes += forecast.sentences
        except ConvexlawError as error:
            notes.append(str(error)[:1].upper() + str(error)[1:] + ".")
    notes = [_plans.as_options(text) for text in dict.fromkeys(notes)]
    plan = replace(plan, lr=lr)
    of_law = fitted is not None and not in_samples
    written: list[Path] = []
    if out is not None:
        written = _plans.save_schedule(
            out, lr, plan, forecast, name="batch.png", title=title, seq_length=seq_length, in_samples=shape
        )
    if as_json:
        _tables.show_json(
            {
                "learning_rates": title,
                **_plans.plan_dict(plan, of_law=of_law),
                "forecast": _plans.forecast_dict(forecast),
                "notes": notes,
                "files": written,
            }
        )
        return
    low, high = plan.batch.min(), plan.batch.max()
    typer.echo(f"{title}: {plan.batch.size} steps, {plan.samples:.10g} samples, unused {plan.unused:.6g}")
    typer.echo(f"batch sizes {low:g} to {high:g} in {len(plan.stages)} stages")
    typer.echo(_plans.gain_sentence(plan, of_law=of_law))
    if forecast is not None:
        typer.echo("\n".join(str(forecast).splitlines()[:2]))
    _tables.show_table(_plans.stage_table(plan))
    _tables.show_lines(notes, "Beware:")
    _plans.show_written(written)


def _scheduled(
    schedule: str,
    fitted: CurveFit | None,
    samples: float | None,
    seconds: float | None,
    overhead: float,
    per_sample: float | None,
    stages: int | None,
    powers_of_two: bool,
    in_samples: bool,
    limits: dict[str, Any],
) -> tuple[NDArray[np.float64], BatchPlan]:
    """Batch sizes for given learning rates."""
    from convexlaw.cli import _tables
    from convexlaw.errors import ConvexlawError
    from convexlaw.solvers._plan_losses import view_of
    from convexlaw.theory import batch as batches
    from convexlaw.theory.schedules import parse_parameters

    staged = stages is not None or powers_of_two
    if in_samples:
        if staged or samples is None or schedule.endswith((".csv", ".tsv", ".txt")):
            raise ConvexlawError(
                "--in-samples plans batch sizes step by step for --samples and a schedule text: "
                "leave --stages, --powers-of-two, --seconds and files out"
            )
        _, values = parse_parameters(schedule)
        if "steps" not in values or "peak" not in values:
            raise ConvexlawError(f"--schedule {schedule}: write steps=T,peak=P into it")
        plan = batches.plan_in_samples(schedule, samples, values["steps"], peak=values["peak"], **limits)
        return plan.lr, plan
    lr = _tables.parse_schedule(schedule)
    rates, sigma = (lr, None) if fitted is None else view_of(fitted, draws=False).noise(lr)
    if seconds is not None:
        if staged:
            raise ConvexlawError("--stages and --powers-of-two plan for --samples: leave --seconds out")
        if per_sample is None:
            raise ConvexlawError("--seconds needs --per-sample, the seconds of a sample (and --overhead)")
        cost = batches.WallClock(overhead, per_sample)
        return lr, batches.plan(rates, seconds, cost=cost, sigma=sigma, **limits)
    budget = samples or 0.0
    if staged:
        return lr, batches.stages(rates, budget, stages, powers_of_two=powers_of_two, sigma=sigma, **limits)
    return lr, batches.plan(rates, budget, sigma=sigma, **limits)
