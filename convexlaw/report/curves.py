"""The main job's page: what was read and fitted, how it predicts unseen runs, what else could be run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from convexlaw._files import replacing
from convexlaw.errors import ConvexlawError, ExtrapolationWarning
from convexlaw.report.notes import grouped_notes
from convexlaw.report.page import Page, format_number
from convexlaw.report.tables import profile_caption, profile_grid

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.figures.what_if import Forecast
    from convexlaw.runs.table import RunTable
    from convexlaw.solvers._fit_compare import Comparison
    from convexlaw.solvers.fit_curves import CurveFit

__all__ = [
    "curve_report",
    "default_schedules",
    "forecast",
    "forecast_table",
    "scored",
    "usual_batch",
    "verdict",
]

Array = NDArray[np.float64]

_PANELS = 24  # runs drawn in one figure

_SCORE_NAMES = {
    "run": "run",
    "points": "points",
    "mae": "MAE (nats)",
    "r2": "R²",
    "final_error": "final error (nats)",
    "last_value_mae": "MAE of 'last value'",
}

_COMPARISON_NAMES = {
    "mae": "MAE (nats)",
    "se": "standard error",
    "curve_mae": "on other curves",
    "horizon_mae": "on later steps",
    "ratio": "ratio to best",
    "ratio_low": "low (95%)",
    "ratio_high": "high (95%)",
    "failed": "failed fits",
}


def default_schedules(runs: RunTable, trained: Iterable[str]) -> dict[str, str]:
    """Schedules worth asking about, at the peak, warmup and horizon of the longest fitted run.

    Parameters
    ----------
    runs : RunTable
        The runs read.
    trained : iterable of str
        Names of the fitted runs.

    Returns
    -------
    dict
        Label -> schedule text.
    """
    longest = max((runs.dense_lr(name) for name in trained), key=len)
    steps, peak = len(longest), float(longest.max())
    warmup = int(np.argmax(longest >= peak * (1 - 1e-12)))
    if warmup and abs(longest[0] * (warmup + 1) / peak - 1) < 0.01:
        warmup += 1  # logged as peak (t + 1)/warmup, which is the peak one step before t = warmup
    tail = f"peak={peak:.12g},warmup={warmup}" if warmup else f"peak={peak:.12g}"
    at, twice = f"steps={steps}", f"steps={2 * steps}"
    return {
        "constant": f"constant:{at},{tail}",
        "cosine": f"cosine:{at},{tail}",
        "linear": f"linear:{at},{tail}",
        "WSD, 10 % cooldown": f"wsd:{at},decay=0.1,{tail}",
        "WSD, 20 % cooldown": f"wsd:{at},decay=0.2,{tail}",
        "WSD, 40 % cooldown": f"wsd:{at},decay=0.4,{tail}",
        "linear, twice as long": f"linear:{twice},{tail}",
        "WSD 20 %, twice as long": f"wsd:{twice},decay=0.2,{tail}",
    }


def usual_batch(fit: CurveFit, runs: RunTable) -> float | None:
    """Batch size to forecast with, where the fit has a batch term: the last one of the longest fitted run."""
    if "b_batch" not in fit.params:
        return None
    longest = max(fit.train, key=runs.last_step)
    return float(runs.select([longest]).frame["batch_size"].dropna().iloc[-1])


def forecast(
    fit: CurveFit,
    name: str,
    lr: Array,
    *,
    batch_size: float | None = None,
    level: float = 0.95,
    points: int = 240,
) -> tuple[Forecast, list[str]]:
    """Predict the loss along ``lr`` and after its last update, with a band.

    Parameters
    ----------
    fit : CurveFit
        A fitted law.
    name : str
        Label of the schedule.
    lr : (T,) array
        Learning rate of each update.
    batch_size : float, optional
        Samples an update; needed where the fit has a batch term.
    level : float
        Level of the band.
    points : int
        Number of steps at which the loss is predicted.

    Returns
    -------
    Forecast
        Its last entry (at step T) is the loss after all T updates.
    list of str
        Warnings of the fit about extrapolation.
    """
    from convexlaw.figures.what_if import Forecast

    # the loss after the last update is the value at step T of the schedule continued by one step
    longer = np.append(lr, lr[-1])
    at = np.unique(np.linspace(0, len(lr), min(points, len(lr) + 1)).round().astype(np.intp))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loss = np.asarray(fit.predict(longer, batch_size, at=at))
        low, high = fit.band(longer, level, at=at, batch_size=batch_size)
    said = [str(w.message) for w in caught if issubclass(w.category, ExtrapolationWarning)]
    return Forecast(name, lr, at, loss, np.asarray(low), np.asarray(high)), list(dict.fromkeys(said))


def scored(fit: CurveFit) -> tuple[pd.DataFrame, list[str]]:
    """Errors on all runs of a fit, and what it warns about: runs far beyond the fitted ones."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = fit.score(list(fit.runs))
    return scores, [str(w.message) for w in caught]


def forecast_table(forecasts: Iterable[Forecast]) -> pd.DataFrame:
    """One row a schedule: steps, peak, final loss with its band, and the difference to the first."""
    import pandas as pd

    rows = []
    for f in forecasts:
        low = float("nan") if f.low is None else float(f.low[-1])
        high = float("nan") if f.high is None else float(f.high[-1])
        rows.append(
            {
                "schedule": f.name,
                "steps": len(f.lr),
                "peak LR": float(f.lr.max()),
                "final loss": float(f.loss[-1]),
                "low": low,
                "high": high,
            }
        )
    frame = pd.DataFrame(rows)
    frame["against the first"] = frame["final loss"] - frame["final loss"].iloc[0]
    return frame


def verdict(fit: CurveFit, scores: pd.DataFrame) -> str:
    """Say in one sentence how the fitted law predicted the runs that it did not see."""
    held = scores[~scores["trained"]]
    fitted = f"{fit.law}, fitted on {len(fit.train)} run{'s' if len(fit.train) != 1 else ''}"
    if held.empty:
        own = format_number(float(scores["mae"].mean()), 3)
        return (
            f"{fitted}, describes them with a mean absolute error of {own} nats. "
            "No run was held out: this is no test."
        )
    mae, base = float(held["mae"].mean()), float(held["last_value_mae"].mean())
    words = (
        f"{fitted}, predicts {len(held)} held-out run{'s' if len(held) != 1 else ''} "
        f"with a mean absolute error of "
        f"{format_number(mae, 3)} nats; the constant 'last value' errs by {format_number(base, 3)} nats"
    )
    if mae >= base:
        return f"{words}. The law is NOT better than that constant here: do not use it for these runs."
    return f"{words}, {format_number(base / mae, 2)} times as much."


def _final_errors(scores: pd.DataFrame) -> str:
    """Say how far the last losses of the held-out runs were from their predictions."""
    errors = scores.loc[~scores["trained"], "final_error"].to_numpy()
    if not errors.size:
        return "No run was held out: the law's own error is not in these limits."
    rms, worst = float(np.sqrt(np.mean(errors**2))), float(np.abs(errors).max())
    runs = f"the {errors.size} held-out runs" if errors.size > 1 else "the held-out run"
    return (
        f"The law's own error is not in them: at the end of {runs} it was {format_number(rms, 2)} nats "
        f"(root mean square; worst {format_number(worst, 2)})."
    )


def curve_report(
    fit: CurveFit,
    runs: RunTable,
    out: str | os.PathLike[str],
    *,
    command: str,
    schedules: Mapping[str, str] | None = None,
    sources: Iterable[str | os.PathLike[str]] = (),
    title: str = "What another schedule would have given",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    comparison: Comparison | None = None,
) -> Path:
    """Write the page of a fit with its PNG and CSV files.

    Parameters
    ----------
    fit : CurveFit
        A fit of ``runs``.
    runs : RunTable
        All runs read; those not fitted are the test.
    out : path-like
        Folder to write to.
    command : str
        The command that made the page.
    schedules : mapping, optional
        Label -> schedule text of the what-if part; by default those of :func:`default_schedules`.
    sources : iterable of path-like
        Input files, listed with their digests.
    title : str
        Heading.
    level : float
        Level of intervals and bands.
    resamples, seed : int
        Of their bootstrap.
    comparison : Comparison, optional
        Laws compared on the fitted runs, shown beside the fit.

    Returns
    -------
    pathlib.Path
        ``report.html``.

    Raises
    ------
    ConvexlawError
        ``out`` is a file, or a schedule text is wrong; nothing has been written then.
    """
    from convexlaw.figures.fits import plot_predicted_actual, plot_residuals, plot_schedule_panel
    from convexlaw.figures.style import figure_of
    from convexlaw.figures.what_if import plot_forecasts
    from convexlaw.theory.schedules import parse

    if Path(out).exists() and not Path(out).is_dir():
        raise ConvexlawError(f"--out {out} is a file; name a folder")
    asked = dict(default_schedules(runs, fit.train) if schedules is None else schedules)
    arrays = {name: parse(text) for name, text in asked.items()}
    held = [name for name in fit.runs if name not in fit.train]
    scores, far = scored(fit)
    limits = fit.interval(level, resamples=resamples, seed=seed).reset_index()
    batch = usual_batch(fit, runs)
    told = [forecast(fit, name, lr, batch_size=batch, level=level) for name, lr in arrays.items()]
    forecasts = [f for f, _ in told]

    page = Page(
        out,
        title,
        f"{len(fit.runs)} runs, {len(fit.train)} fitted, {len(held)} held out; "
        f"loss in nats ({fit.split} split)",
    )
    page.add("verdict", verdict(fit, scores))
    if not fit.converged:
        page.add("warning", "The fit did not converge: read no number below as final.")

    for line in far:
        page.add("warning", line)

    page.add("heading", "Held-out runs" if held else "Fitted runs")
    shown = scores if not held else scores[~scores["trained"]]
    page.table(shown[list(_SCORE_NAMES)].rename(columns=_SCORE_NAMES), "held_out")
    page.add(
        "note",
        "MAE: mean of |loss - prediction| over the logged steps. 'Last value' is the last loss "
        "of the longest fitted run, used as a constant prediction.",
    )
    drawn = [*held, *fit.train][:_PANELS]
    rest = len(fit.runs) - len(drawn)
    page.figure(
        plot_schedule_panel(fit, drawn),
        "curves",
        "Loss (thin: logged, bold: predicted) above the learning rate of each run"
        + (f"; {rest} more in predictions.csv." if rest else "."),
    )

    page.add("heading", "What another schedule would give")
    table = forecast_table(forecasts)
    page.table(table, "what_if", digits=5, best=int(np.argmin(table["final loss"].to_numpy())))
    page.add(
        "note",
        f"Loss after the last update, with {level:.0%} limits from the resampled fits: what the fitted runs "
        f"leave open if the law is right. {_final_errors(scores)}",
    )
    if batch is not None:
        page.add(
            "note",
            f"Forecast with {format_number(batch)} samples an update, as the longest fitted run ended.",
        )
    for line in dict.fromkeys(line for _, lines in told for line in lines):
        page.add("warning", line)
    page.figure(
        plot_forecasts(forecasts),
        "what_if",
        "Predicted loss of each schedule, with its band, above the schedule.",
    )
    with_text = "\n".join(f"{name}: {text}" for name, text in asked.items())
    page.add("code", with_text)

    page.add("heading", "The fitted law")
    head = str(fit).splitlines()
    page.add("code", "\n".join(line for line in head if line.split()[0] not in fit.params))
    limits = limits.rename(
        columns={limits.columns[0]: "parameter", "low": f"low ({level:.0%})", "high": f"high ({level:.0%})"}
    )
    page.table(limits, "parameters")
    page.add("note", f"{level:.0%} limits: percentiles of refits to resampled losses (bootstrap).")
    page.bullets(fit.identifiability.sentences)
    page.figure(
        figure_of(plot_residuals(fit)), "residuals", "Residuals of every run: log loss minus log prediction."
    )

    page.figure(
        figure_of(plot_predicted_actual(fit)),
        "predicted_actual",
        "Predicted against logged losses, every run.",
    )
    if fit.protocol == "robust":
        page.figure(
            profile_grid(fit, level),
            "profiles",
            profile_caption(level),
        )

    if comparison is not None:
        page.add("heading", "Other laws")
        page.table(comparison.to_frame().rename(columns=_COMPARISON_NAMES), "comparison")
        page.add("note", comparison.sentence)
        page.figure(
            figure_of(comparison.plot()),
            "laws",
            "Mean absolute error of each law on runs and horizons it was not fitted on (cross-validation "
            "over the fitted runs), with its standard error.",
        )

    page.add("heading", "What was read, and what was decided")
    for title, lines in grouped_notes(runs).items():
        page.add("text", f"{title}:")
        page.bullets(lines)
    page.add("text", "Decided for the fit:")
    page.bullets(fit.notes)
    with replacing(page.out / "predictions.csv") as tmp:
        fit.residuals().to_csv(tmp, index=False)
    with replacing(page.out / "fit.json") as tmp:
        fit.to_json(tmp)
    page.add(
        "note",
        "Files beside this page: fit.json (load with convexlaw.load_fit), predictions.csv "
        "(every logged and predicted loss), and a CSV and PNG of each table and figure.",
    )
    return page.write(command, sources)
