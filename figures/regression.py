"""Pictures of one regression: coefficients, clusters, frequencies, intervals, criteria, residuals."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from convexlaw.errors import ConvexlawError
from convexlaw.figures.style import COLORS, CYCLE, axes_or_new, styled

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers.criteria import Criteria
    from convexlaw.solvers.diagnostics import Diagnostics
    from convexlaw.solvers.intervals import PredictionInterval
    from convexlaw.solvers.path import SlopePath
    from convexlaw.solvers.refit import RelaxedFit
    from convexlaw.solvers.summary import SlopeSummary

__all__ = [
    "plot_clusters",
    "plot_coefficients",
    "plot_criteria",
    "plot_intervals",
    "plot_prediction_intervals",
    "plot_residuals",
    "plot_stability",
]


def _largest(summary: SlopeSummary, top: int) -> pd.DataFrame:
    """Rows of the nonzero coefficients, largest first, with a label each."""
    table = summary.to_frame()
    table = table[table["coef"] != 0]
    table = table.sort_values("scaled", key=np.abs, ascending=False, kind="stable").head(top)
    several = "response" in table.columns
    label = [f"{r.response}: {r.feature}" if several else str(r.feature) for r in table.itertuples()]
    return table.assign(label=[_short(name) for name in label])


def _short(name: str, most: int = 40) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _named_rows(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks(np.arange(len(labels)), labels, fontsize="small")
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def _grow(axes: Axes, rows: int, new: bool) -> None:
    """Give a figure of its own a height for its rows."""
    if new:
        figure = axes.figure
        figure.set_figheight(max(2.2, 0.8 + 0.24 * rows))  # type: ignore[union-attr]


@styled
def plot_coefficients(
    summary: SlopeSummary, ax: Axes | None = None, *, top: int = 30, scaled: bool | None = None
) -> Axes:
    """Nonzero coefficients of one model, largest first; those of one magnitude stand on one grey band.

    Parameters
    ----------
    summary : SlopeSummary
    ax : matplotlib Axes, optional
    top : int
        At most this many coefficients.
    scaled : bool, optional
        Draw the coefficients of the scaled columns, which compare; by default where columns are scaled.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    rows = _largest(summary, top)
    use = bool((summary.scaled != summary.coef).any()) if scaled is None else scaled
    axes.barh(np.arange(len(rows)), rows["scaled" if use else "coef"], color=COLORS["fit"])
    number = rows["cluster"].to_numpy()
    starts = np.flatnonzero(np.append(True, np.diff(number) != 0))
    for first, after in pairwise([*starts, number.size]):
        if after - first > 1:
            axes.axhspan(first - 0.46, after - 0.54, color=COLORS["muted"], alpha=0.2, linewidth=0, zorder=0)
    _named_rows(axes, rows["label"].tolist())
    _grow(axes, len(rows), ax is None)
    axes.axvline(0.0, color=COLORS["data"], linewidth=0.6)
    axes.set_xlabel("coefficient of the scaled column" if use else "coefficient")
    return axes


@styled
def plot_stability(summary: SlopeSummary, ax: Axes | None = None, *, top: int = 30) -> Axes:
    """Share of the half-samples that select each coefficient; filled where the model itself selects it.

    Parameters
    ----------
    summary : SlopeSummary
        Of ``.summary(stability=...)``.
    ax : matplotlib Axes, optional
    top : int
        At most this many coefficients.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ConvexlawError
        A summary without frequencies.
    """
    if summary.frequency is None:
        raise ConvexlawError(
            "this summary has no selection frequencies; make it with .summary(stability=100)"
        )
    axes = axes_or_new(ax)
    table = summary.to_frame()
    table = table[(table["frequency"] > 0) | (table["coef"] != 0)]
    table = table.sort_values("frequency", ascending=False, kind="stable").head(top)
    several = "response" in table.columns
    labels = [_short(f"{r.response}: {r.feature}" if several else str(r.feature)) for r in table.itertuples()]
    place = np.arange(len(table))
    inside = (table["coef"] != 0).to_numpy()
    axes.hlines(place, 0.0, table["frequency"], color=COLORS["muted"], linewidth=1.0)
    for chosen, face, what in ((inside, COLORS["fit"], "in the model"), (~inside, "white", "not in it")):
        if chosen.any():
            axes.plot(
                table["frequency"].to_numpy()[chosen],
                place[chosen],
                "o",
                color=COLORS["fit"],
                markerfacecolor=face,
                label=what,
            )
    _named_rows(axes, labels)
    _grow(axes, len(table), ax is None)
    axes.set_xlim(0.0, 1.04)
    axes.set_xlabel(f"share of {summary.repeats} half-samples")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2)
    return axes


@styled
def plot_clusters(path: SlopePath, ax: Axes | None = None, *, chosen: float | None = None) -> Axes:
    """Numbers of nonzero coefficients and of clusters along a path.

    Parameters
    ----------
    path : SlopePath
    ax : matplotlib Axes, optional
    chosen : float, optional
        Alpha to mark.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    order = np.argsort(-path.alphas, kind="stable")
    flat = path.coefs.reshape(-1, path.alphas.size)
    nonzero = np.count_nonzero(flat, axis=0)[order]
    axes.step(path.alphas[order], nonzero, where="mid", color=COLORS["fit"], label="nonzero coefficients")
    axes.step(
        path.alphas[order],
        path.n_clusters[order],
        where="mid",
        color=COLORS["prediction"],
        label="clusters (degrees of freedom)",
    )
    _alpha_axis(axes, path.alphas, chosen)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("number")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    return axes


@styled
def plot_criteria(
    criteria: Criteria, ax: Axes | None = None, *, names: tuple[str, ...] = ("aic", "bic", "ebic")
) -> Axes:
    """Information criteria along a path, each above its own minimum, which is marked.

    Parameters
    ----------
    criteria : Criteria
    ax : matplotlib Axes, optional
    names : tuple of str
        Of "aic", "bic", "ebic", "gcv".

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    order = np.argsort(-criteria.alphas, kind="stable")
    for name, color in zip(names, CYCLE, strict=False):
        at = criteria.best(name)
        values = getattr(criteria, name) - getattr(criteria, name)[at]
        values = np.where(np.isfinite(values), values, np.nan)
        axes.plot(criteria.alphas[order], values[order], color=color, label=name.upper())
        axes.plot(criteria.alphas[at], 0.0, "o", color=color)
    _alpha_axis(axes, criteria.alphas, None)
    axes.set_ylabel("above the minimum")
    axes.legend(loc="best")
    return axes


@styled
def plot_intervals(relaxed: RelaxedFit, ax: Axes | None = None, *, top: int = 30) -> Axes:
    """Estimates of a refit with their intervals, in units of their standard errors.

    Parameters
    ----------
    relaxed : RelaxedFit
    ax : matplotlib Axes, optional
    top : int
        At most this many terms, the largest statistics.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    rows = relaxed.table[relaxed.table["term"] != "(intercept)"]
    rows = rows.sort_values("statistic", key=np.abs, ascending=False, kind="stable").head(top)
    several = "response" in rows.columns
    labels = [_short(f"{r.response}: {r.term}" if several else str(r.term)) for r in rows.itertuples()]
    place = np.arange(len(rows))
    scale = rows["se"].to_numpy()
    color = COLORS["muted"] if relaxed.descriptive else COLORS["fit"]
    axes.hlines(place, rows["low"] / scale, rows["high"] / scale, color=color)
    axes.plot(
        rows["estimate"] / scale,
        place,
        "o",
        color=color,
        markerfacecolor="white" if relaxed.descriptive else color,
    )
    axes.axvline(0.0, color=COLORS["data"], linewidth=0.6)
    _named_rows(axes, labels)
    _grow(axes, len(rows), ax is None)
    what = "descriptive" if relaxed.descriptive else "rows kept aside"
    axes.set_xlabel(f"estimate over its standard error, {relaxed.level:.0%} interval ({what})")
    return axes


@styled
def plot_residuals(found: Diagnostics, ax: Axes | None = None, *, names: int = 5) -> Axes:
    """Standardised residuals against predictions; rows of high leverage are larger.

    Parameters
    ----------
    found : Diagnostics
    ax : matplotlib Axes, optional
    names : int
        How many of the rows more than two standard deviations off get their label.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    n = found.leverage.size
    mean = found.fitted.reshape(n, -1)
    away = found.standardized.reshape(n, -1)
    typical = max(float(found.leverage.mean()), 1e-12)
    size = np.clip(12.0 * found.leverage / typical, 6.0, 80.0)
    for k in range(mean.shape[1]):
        label = found.outputs[k] if mean.shape[1] > 1 else None
        axes.scatter(
            mean[:, k], away[:, k], s=size, color=CYCLE[k % len(CYCLE)], alpha=0.5, linewidths=0, label=label
        )
    far = np.abs(away).max(axis=1)
    worst = [i for i in np.argsort(-far, kind="stable")[:names] if far[i] > 2.0]
    for i in worst:
        k = int(np.argmax(np.abs(away[i])))
        axes.annotate(
            str(found.rows[i]),
            (mean[i, k], away[i, k]),
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=8,
        )
    axes.axhline(0.0, color=COLORS["data"], linewidth=0.6)
    for level in (-3.0, 3.0):
        axes.axhline(level, color=COLORS["muted"], linewidth=0.8, linestyle=":")
    axes.set_xlabel("prediction")
    axes.set_ylabel("standardised residual")
    if mean.shape[1] > 1:
        axes.legend(loc="best")
    return axes


@styled
def plot_prediction_intervals(
    found: PredictionInterval, ax: Axes | None = None, *, output: int = 0, top: int = 60
) -> Axes:
    """Prediction intervals of new rows, ordered by prediction.

    Parameters
    ----------
    found : PredictionInterval
    ax : matplotlib Axes, optional
    output : int
        Which response.
    top : int
        At most this many rows, evenly taken.

    Returns
    -------
    matplotlib Axes
    """
    axes = axes_or_new(ax)
    n = len(found.prediction)
    center, low, high = (v.reshape(n, -1)[:, output] for v in (found.prediction, found.low, found.high))
    order = np.argsort(center, kind="stable")
    order = order[np.unique(np.linspace(0, n - 1, min(n, top)).round().astype(np.intp))]
    place = np.arange(order.size)
    axes.vlines(place, low[order], high[order], color=COLORS["schedule"], linewidth=2.0)
    axes.plot(place, center[order], "o", color=COLORS["fit"], markersize=3)
    axes.set_xlabel("new rows, by prediction")
    axes.set_ylabel(f"{found.outputs[output]}, {found.level:.0%} interval")
    return axes


def _alpha_axis(axes: Axes, alphas: np.ndarray, chosen: float | None) -> None:
    if (alphas > 0).all() and alphas.size > 1:
        axes.set_xscale("log")
    axes.invert_xaxis()
    axes.set_xlabel(r"penalty $\alpha$")
    if chosen is not None:
        axes.axvline(chosen, color=COLORS["highlight"], linewidth=1.2, label="chosen")
