"""What ``convexlaw batch`` and ``convexlaw plan`` share: the fit, tables, figures and exported files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from convexlaw.solvers.fit_curves import CurveFit
    from convexlaw.solvers.planner import BatchForecast
    from convexlaw.theory.batch import BatchPlan

MOST = 12  # stages on the screen

# arguments of the planning functions -> options of the commands
_OPTIONS = {
    "min_batch": "--min",
    "max_batch": "--max",
    "peaks": "--peak",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            "batch_size", "level", "multiple_of", "noise_scale", "overhead", "peak", "peak_fit", "per_sample",
            "powers_of_two", "samples", "seconds", "seq_length", "stages", "steps", "warmup", "weight_decay",
        )
    },
}  # fmt: skip


def as_options(text: str) -> str:
    """Name the options of the commands where a sentence names arguments of functions.

    Words such as ``steps`` are arguments only before an equals sign.

    Examples
    --------
    >>> as_options("steps = 0: give steps=, or samples= beside min_batch; wsd:steps=9")
    '--steps 0: give --steps, or --samples beside --min; wsd:steps=9'
    """
    for name, option in _OPTIONS.items():
        equals = r"(?: =(?= )|=(?![\w.]))"
        text = re.sub(rf"(?<![\w:,'\"-]){name}\b(?!\[){equals}{'?' if '_' in name else ''}", option, text)
    return text


@contextmanager
def options_named() -> Iterator[None]:
    """Let errors of the functions behind a command name its options."""
    try:
        yield
    except ConvexlawError as error:
        raise ConvexlawError(as_options(str(error))) from None


def load_curves(path: Path) -> CurveFit:
    """Load a saved fit of curves."""
    from convexlaw import load_fit
    from convexlaw.solvers.fit_curves import CurveFit

    fitted = load_fit(path)
    if not isinstance(fitted, CurveFit):
        raise ConvexlawError(f"{path} holds a fit of a table: give a fit of curves (convexlaw fit curve)")
    return fitted


def gain_sentence(plan: BatchPlan, *, of_law: bool) -> str:
    """Say what the gain is a gain of."""
    what = "the fitted law" if of_law else "the last-iterate bound"
    return (
        f"gain {plan.gain:.4f}: the batch-noise part of {what}, sum of c/B, is that many times smaller than "
        f"with a static batch of {plan.static_batch:.6g} at the same learning rates and budget; "
        "it is no factor of the loss"
    )


def stage_table(plan: BatchPlan) -> pd.DataFrame:
    """Stages: from step, from sample, batch size; the middle is left out where there are many."""
    import numpy as np
    import pandas as pd

    before = np.cumsum(plan.batch) - plan.batch
    rows = [(str(t), f"{before[t]:.10g}", f"{size:.10g}") for t, size in plan.stages]
    if len(rows) > MOST:
        rows = [*rows[: MOST - 3], ("...", "...", f"({len(rows) - MOST + 1} more)"), *rows[-2:]]
    return pd.DataFrame(rows, columns=["from step", "from sample", "batch size"])


def forecast_dict(forecast: BatchForecast | None) -> dict[str, Any] | None:
    """Forecast as plain values."""
    if forecast is None:
        return None
    return {
        "static_loss": forecast.static[-1],
        "scheduled_loss": forecast.scheduled[-1] if forecast.known else None,
        "saved": forecast.saved,
        "saved_low": forecast.saved_low,
        "saved_high": forecast.saved_high,
        "known": forecast.known,
        "level": forecast.level,
    }


def plan_dict(plan: BatchPlan, *, of_law: bool) -> dict[str, Any]:
    """Batch schedule as plain values."""
    import numpy as np

    before = np.cumsum(plan.batch) - plan.batch
    what = "the fitted law" if of_law else "the last-iterate bound"
    return {
        "steps": plan.batch.size,
        "samples": plan.samples,
        "budget": plan.budget,
        "unused": plan.unused,
        "static_batch": plan.static_batch,
        "gain": plan.gain,
        "gain_of": f"batch-noise part of {what} against a static batch",
        "above_ideal": plan.noise / plan.ideal_noise - 1,
        "stages": [{"step": t, "sample": before[t], "batch_size": size} for t, size in plan.stages],
    }


def check_out(out: Path | None) -> None:
    """Refuse a folder that is a file before anything is computed."""
    if out is not None and out.exists() and not out.is_dir():
        raise ConvexlawError(f"--out {out} is a file; name a folder")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG and close it."""
    import matplotlib.pyplot as plt

    from convexlaw._files import replacing

    with replacing(path) as tmp:
        figure.savefig(tmp, dpi=150)
    plt.close(figure)
    return path


def save_schedule(
    out: Path,
    lr: NDArray[np.float64],
    plan: BatchPlan | None,
    forecast: BatchForecast | None,
    *,
    name: str,
    title: str,
    seq_length: int | None,
    in_samples: str | None = None,
) -> list[Path]:
    """Write the schedule for every trainer, and its figure."""
    import matplotlib

    matplotlib.use("Agg")
    from convexlaw.figures.planner import plot_schedule
    from convexlaw.simulations.exporters import export

    written: list[Path] = []
    if plan is not None:
        written += export(out, lr, plan.batch, seq_length=seq_length, in_samples=in_samples)
    batch, static = (None, None) if plan is None else (plan.batch, plan.static_batch)
    figure = plot_schedule(lr, batch, static, forecast, title=title)
    return [*written, save_figure(figure, out / name)]


def show_written(paths: list[Path]) -> None:
    """Name the files written."""
    if paths:
        typer.echo("written: " + ", ".join(str(p) for p in paths))
