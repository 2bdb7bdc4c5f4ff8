"""The page of a regression: what was used, what came out, its certificate, and what may be concluded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw._files import replacing, write_json
from convexlaw.errors import ConvexlawError
from convexlaw.report.page import Page, format_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from convexlaw.solvers.analysis import Analysis
    from convexlaw.solvers.refit import RelaxedFit

__all__ = ["as_dict", "coefficient_table", "regression_report"]

_ROWS = 40  # rows of a table on the page; the CSV has all
_DRAWN = 30  # names in a figure


def coefficient_table(found: Analysis, most: int = _ROWS) -> pd.DataFrame:
    """Nonzero coefficients, largest first, with cluster and selection frequency.

    Parameters
    ----------
    found : Analysis
    most : int
        At most this many rows.

    Returns
    -------
    DataFrame
    """
    table = found.summary.to_frame()
    table = table[table["coef"] != 0].sort_values("scaled", key=np.abs, ascending=False, kind="stable")
    names = {
        "coef": "coefficient",
        "scaled": "per standard deviation",
        "frequency": "selected in half-samples",
    }
    if found.family == "multinomial":
        names["response"] = "class"
    return table.head(most).rename(columns=names)


def as_dict(found: Analysis) -> dict[str, Any]:
    """Return the analysis for programs: numbers unrounded, names of columns as they were.

    Parameters
    ----------
    found : Analysis

    Returns
    -------
    dict
    """
    s = found.summary

    def table(refit: RelaxedFit | None) -> Any:
        if refit is None:
            return None
        return {
            "method": refit.method,
            "by": refit.by,
            "descriptive": refit.descriptive,
            "statement": refit.statement,
            "n": refit.n,
            "n_selection": refit.n_selection,
            "robust": refit.robust,
            "level": refit.level,
            "terms": refit.table.to_dict("records"),
        }

    curve = found.choice.curve
    return {
        "responses": list(found.responses),
        "family": found.family,
        "n": s.n,
        "p": s.p,
        "penalty": s.penalty,
        "alpha": s.alpha,
        "alpha_choice": found.choice.sentence,
        "dual_gap": s.dual_gap,
        "relative_gap": s.relative_gap,
        "tol": s.tol,
        "converged": s.converged,
        "deviance": s.deviance,
        "deviance_ratio": s.deviance_ratio,
        "cross_validated_ratio": found.validated_ratio,
        "n_clusters": s.n_clusters,
        "intercept": np.atleast_1d(s.intercept).tolist(),
        "coefficients": s.to_frame().to_dict("records"),
        "cross_validation": None if curve is None else curve.to_frame().to_dict("list"),
        "criteria": None
        if found.choice.criteria is None
        else found.choice.criteria.to_frame().to_dict("list"),
        "estimates": table(found.refit),
        "estimates_on_rows_kept_aside": table(found.honest),
        "columns_not_used": found.screened.columns,
        "rows_not_used": found.screened.rows,
        "notes": [*found.screened.notes, *found.notes, *found.lacking],
        "diagnostics": found.diagnostics.sentences,
        "verdict": found.verdict,
    }


def regression_report(
    found: Analysis,
    out: str | os.PathLike[str],
    *,
    command: str,
    source: str = "",
    sources: Iterable[str | os.PathLike[str]] = (),
    predictions: pd.DataFrame | None = None,
) -> Path:
    """Write the page of an analysis with its PNG, CSV and JSON files.

    Parameters
    ----------
    found : Analysis
    out : path-like
        Folder to write to.
    command : str
        The command that made the page.
    source : str
        Name of the data for the subtitle.
    sources : iterable of path-like
        Input files, listed with their digests.
    predictions : DataFrame, optional
        Of new rows.

    Returns
    -------
    pathlib.Path
        ``report.html``.

    Raises
    ------
    ConvexlawError
        ``out`` is a file; nothing has been written then.
    """
    import matplotlib

    matplotlib.use("Agg")
    if Path(out).exists() and not Path(out).is_dir():
        raise ConvexlawError(f"--out {out} is a file; name a folder")
    s = found.summary
    page = Page(
        out,
        f"What explains {' and '.join(found.responses)}",
        f"{f'{source}: ' if source else ''}{s.n} rows, {s.p} features; {found.family} SLOPE, {s.penalty}",
    )
    page.add("verdict", found.verdict)
    if not s.converged:
        page.add("warning", "The fit did not reach its tolerance: read no number below as final.")
    for note in found.choice.notes:
        page.add("warning", f"{note[:1].upper()}{note[1:]}.")
    _data_part(found, page)
    _model_part(found, page)
    _choice_part(found, page)
    _refit_part(found, page)
    _diagnostics_part(found, page)
    if predictions is not None:
        _predictions_part(predictions, page)
    page.add("heading", "What may be concluded")
    page.bullets(_conclusions(found))
    write_json(page.out / "analysis.json", _plain(as_dict(found)))
    return page.write(command, sources)


def _plain(value: Any) -> Any:
    """Return what JSON can hold; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _csv(page: Page, frame: pd.DataFrame, name: str) -> None:
    with replacing(page.out / f"{name}.csv") as tmp:
        frame.to_csv(tmp, index=False)


def _data_part(found: Analysis, page: Page) -> None:
    screened = found.screened
    page.add("heading", "Data")
    lines = [f"{len(screened.frame)} of {screened.n_read} rows and {len(screened.features)} columns are used"]
    if found.features is not None:
        lines.append(
            f"text and categories are coded into {found.summary.p} columns, against their first level"
        )
    page.bullets(
        [
            *lines,
            *screened.sentences,
            *screened.notes,
            *(n for n in found.notes if n not in found.choice.notes),
        ]
    )


def _model_part(found: Analysis, page: Page) -> None:
    from convexlaw.figures.regression import plot_coefficients, plot_stability

    s = found.summary
    page.add("heading", "The model")
    intercepts = ", ".join(format_number(v) for v in np.atleast_1d(s.intercept))
    page.bullets(
        [
            f"{s.loss}, {s.penalty}; {found.choice.sentence}",
            f"{np.count_nonzero(s.coef)} of {s.coef.size} coefficients are nonzero, with {s.n_clusters} "
            f"distinct magnitudes (the degrees of freedom); intercept {intercepts}",
            f"deviance {format_number(s.deviance, 6)}: {s.deviance_ratio:.1%} of that without features is "
            "explained",
            f"relative duality gap {s.relative_gap:.2e} (absolute {s.dual_gap:.2e}): no coefficients have an "
            "objective smaller by more than this share of the objective at zero",
        ]
    )
    _csv(page, s.to_frame(), "coefficients")
    table = coefficient_table(found, most=s.coef.size)
    if table.empty:
        page.add("text", "No feature is selected.")
        return
    page.table(table, "selected", most=_ROWS)
    rows = min(len(table), _DRAWN)
    if s.frequency is None:
        figure, axes = _wide(1, rows)
    else:
        shown = max(rows, min(int((np.atleast_2d(s.frequency) > 0).sum()), _DRAWN))
        figure, axes = _wide(2, shown)
        plot_stability(s, axes[1], top=_DRAWN)
    plot_coefficients(s, axes[0], top=_DRAWN)
    scaled = "Coefficients of the scaled columns, which compare" if (s.scale != 1).any() else "Coefficients"
    many = np.unique(s.cluster[s.cluster > 0]).size < np.count_nonzero(s.cluster)
    caption = f"{scaled}; {'those on one grey band share' if many else 'no two share'} a magnitude."
    if s.frequency is not None:
        caption += " Right: how often half of the rows select a feature, with the same penalty."
    page.figure(figure, "model", caption)


def _wide(across: int, rows: int) -> tuple[Figure, Any]:
    """Axes beside each other, as wide as the page and high enough for rows of names."""
    import matplotlib.pyplot as plt

    from convexlaw.figures.style import STYLE

    with plt.style.context(STYLE):
        figure, axes = plt.subplots(1, across, figsize=(9.6, max(2.4, 0.9 + 0.23 * rows)), squeeze=False)
    return figure, axes[0]


def _choice_part(found: Analysis, page: Page) -> None:
    from convexlaw.figures.regression import plot_clusters, plot_criteria
    from convexlaw.figures.slope import plot_slope_path

    choice, alpha = found.choice, found.summary.alpha
    page.add("heading", "How strong a penalty")
    if choice.curve is not None:
        from convexlaw.figures.cross_validation import plot_cv_curve

        figure, axes = _wide(1, 13)
        plot_cv_curve(choice.curve, axes[0])
        page.figure(figure, "cross_validation", "Cross-validated error by penalty.")
        _csv(page, choice.curve.to_frame(), "cross_validation")
    elif choice.criteria is not None:
        figure, axes = _wide(1, 13)
        plot_criteria(choice.criteria, axes[0])
        page.figure(figure, "criteria", "Information criteria, each above its minimum.")
    if choice.criteria is not None:
        _csv(page, choice.criteria.to_frame(), "criteria")
    figure, axes = _wide(2, 13)
    scale = found.summary.scale
    scaled = bool((scale != 1).any())
    plot_slope_path(choice.path, axes[0], top=10, scale=scale if scaled else None, chosen=alpha)
    plot_clusters(choice.path, axes[1], chosen=alpha)
    caption = "Coefficients along the path, and how many of them differ; the chosen penalty is marked."
    if scaled:
        caption += " Those of the scaled columns are drawn, which compare; path.csv has those of the data."
    page.figure(figure, "path", caption)
    _csv(page, choice.path.to_frame(), "path")


def _refit_part(found: Analysis, page: Page) -> None:
    from convexlaw.figures.regression import plot_intervals

    names = {"p_value": "p", "statistic": "estimate/se"}
    if found.family == "multinomial":
        names["response"] = "class"
    if found.lacking:
        page.add("heading", "No estimates without a penalty" if found.refit is None else "On the estimates")
        page.bullets(found.lacking)
    parts = (
        (found.honest, "aside", "Estimates on rows kept aside"),
        (found.refit, "descriptive", "Descriptive estimates"),
    )
    for refit, name, title in parts:
        if refit is None:
            continue
        page.add("heading", title)
        page.add("text", refit.statement)
        kind = "robust" if refit.robust else "model-based"
        page.add(
            "note", f"{refit.method}, n = {refit.n}, {kind} standard errors, {refit.level:.0%} intervals."
        )
        table = refit.to_frame()
        if not (table["features"] > 1).any():
            table = table.drop(columns="features")
        page.table(table.rename(columns=names), f"estimates_{name}", digits=3, most=_ROWS)
        page.bullets(refit.notes)
        terms = int((table["term"] != "(intercept)").sum())
        if terms:
            figure, axes = _wide(1, min(terms, _DRAWN))
            plot_intervals(refit, axes[0], top=_DRAWN)
            caption = (
                "Intervals in units of the standard error; those that leave out 0 do not touch the line."
            )
            page.figure(figure, f"estimates_{name}", caption)


def _diagnostics_part(found: Analysis, page: Page) -> None:
    from convexlaw.figures.regression import plot_residuals

    page.add("heading", "Diagnostics")
    page.bullets(found.diagnostics.sentences or ["Nothing stands out."])
    figure, axes = _wide(1, 15)
    plot_residuals(found.diagnostics, axes[0])
    caption = "Standardised residuals; larger points have more leverage, numbers are rows of the data from 0."
    page.figure(figure, "residuals", caption)
    _csv(page, found.diagnostics.to_frame(), "residuals")


def _predictions_part(predictions: pd.DataFrame, page: Page) -> None:
    page.add("heading", "New rows")
    page.table(predictions, "predictions", most=_ROWS)


def _conclusions(found: Analysis) -> list[str]:
    """Return what the numbers support and what they do not."""
    tested = found.choice.curve is not None
    said = [
        "The optimum: yes, up to the duality gap, for this penalty and these (standardised) columns.",
        "Prediction: by the cross-validated error, not by the share explained on the same rows."
        if tested
        else "Prediction: not tested on other rows here; --cv does.",
        "Which features: those that most half-samples select; the others depend on the rows seen. "
        "Features of one magnitude, or closely correlated, can stand for each other.",
        "False discoveries: the BH weights bound their rate on orthogonal columns with known noise only; "
        "with an alpha chosen by prediction, and with correlated columns, no rate is promised.",
    ]
    if found.honest is not None:
        said.append(
            "Effects: intervals on rows kept aside hold for the best fit with the selected features; "
            "they are no causal effects."
        )
    if found.refit is not None:
        said.append(
            "The descriptive table repeats the selection's optimism: do not report its p-values as tests."
        )
    return said
