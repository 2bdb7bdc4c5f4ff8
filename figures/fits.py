"""Figures of fits: losses with their predictions, residuals, predicted against actual, schedules below."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.figures.style import COLORS, STYLE, axes_or_new, styled

if TYPE_CHECKING:
    from convexlaw.solvers._fit_compare import Comparison
    from convexlaw.solvers._fit_transfer import Transfer
    from convexlaw.solvers.fit_curves import CurveFit
    from convexlaw.solvers.fit_table import TableFit

__all__ = [
    "plot_comparison",
    "plot_correlations",
    "plot_curve_fit",
    "plot_predicted_actual",
    "plot_profile",
    "plot_residuals",
    "plot_schedule_panel",
    "plot_table_fit",
    "plot_transfer",
]

Array = NDArray[np.float64]
MOST = 8  # runs in one panel


def _rows(fit: CurveFit, runs: str | Sequence[str] | None) -> list[tuple[str, Array, Array, Array, bool]]:
    wanted = list(fit.runs) if runs is None else [runs] if isinstance(runs, str) else list(runs)
    return [row for row in fit._predictions(wanted, every=True) if row[2].size]


def _lr(fit: CurveFit, name: str, steps: Array) -> tuple[Array, Array]:
    """Return the steps and learning rates to draw: all of them, or those of the saved rows."""
    for run in fit._state.data or ():
        if run.name == name:
            every = np.arange(run.lr.size, dtype=np.float64)
            thin = max(1, run.lr.size // 4000)
            return every[::thin], run.lr[::thin]
    return steps, fit._state.observed[name]["lr"]


@styled
def plot_curve_fit(
    fit: CurveFit,
    ax: Axes | None = None,
    run: str | Sequence[str] | None = None,
    level: float = 0.95,
    band: bool | None = None,
) -> Axes:
    """Losses and predictions against the step, fitted runs in one colour and held-out runs in another.

    Parameters
    ----------
    fit : CurveFit
    ax : matplotlib Axes, optional
    run : str or list of str, optional
        Names or globs of the runs to draw; default all, eight at most.
    level : float, default 0.95
        Level of the band.
    band : bool, optional
        Draw the band of the bootstrap refits; None: where refits have been computed (``fit.interval()``).

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    rows = _rows(fit, run)
    shown = rows[:MOST] if run is None else rows
    labelled: set[str] = set()
    lowest, highest = np.inf, -np.inf
    for name, steps, loss, predicted, trained in shown:
        kind = "fit" if trained else "prediction"
        ax.plot(
            steps,
            loss,
            color=COLORS["data"],
            lw=0.6,
            alpha=0.5,
            label="loss" if "loss" not in labelled else None,
        )
        label = ("fitted run" if trained else "held-out run") if kind not in labelled else None
        ax.plot(steps, predicted, color=COLORS[kind], lw=1.2, label=label)
        labelled |= {"loss", kind}
        data = next((r for r in fit._state.data or () if r.name == name), None)
        if data is not None and (bool(fit._state.draws) if band is None else band):
            low, high = fit.band(
                data.lr, level, at=steps, batch_size=data.batch if fit._state.batch else None
            )
            ax.fill_between(steps, low, high, color=COLORS[kind], alpha=0.25, lw=0)
        late = loss[steps >= 0.1 * steps[-1]]
        lowest = min(lowest, float(loss.min()), float(predicted.min()))
        highest = max(highest, float(late.max()) if late.size else float(loss.max()))
    if np.isfinite(lowest) and highest > lowest:
        margin = 0.06 * (highest - lowest)
        ax.set_ylim(lowest - margin, highest + margin)
    ax.set_xlabel("step")
    ax.set_ylabel("loss (nats)")
    more = f", {len(shown)} of {len(rows)} runs shown" if len(shown) < len(rows) else ""
    ax.set_title(f"{fit.law}, {fit.split} loss{more}")
    ax.legend()
    return ax


def _log_steps(ax: Axes) -> None:
    """Log axis of steps with labels also where it spans less than two decades."""
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    if high < 100 * low:
        ax.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 3, 5)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


@styled
def plot_residuals(fit: CurveFit, ax: Axes | None = None) -> Axes:
    """Draw log loss minus log prediction of every run against the step (log scale).

    The axis is that of most residuals where a few are far larger; the title counts those beyond it.

    Parameters
    ----------
    fit : CurveFit
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    labelled: set[bool] = set()
    parts = []
    for _, steps, loss, predicted, trained in sorted(_rows(fit, None), key=lambda row: not row[4]):
        label = ("fitted run" if trained else "held-out run") if trained not in labelled else None
        labelled.add(trained)
        color = COLORS["fit" if trained else "prediction"]
        parts.append(1e3 * np.log(loss / predicted))
        ax.plot(np.maximum(steps, 1), parts[-1], color=color, lw=0.8, alpha=0.8, label=label)
    ax.axhline(0.0, color=COLORS["muted"], lw=0.8)
    rest = np.concatenate(parts)
    usual = float(np.quantile(np.abs(rest), 0.97))
    if usual > 0 and np.abs(rest).max() > 3 * usual:
        ax.set_ylim(-1.5 * usual, 1.5 * usual)
        beyond = int(np.count_nonzero(np.abs(rest) > 1.5 * usual))
        ax.set_title(
            f"{beyond} of {rest.size} residuals lie beyond the axis ({rest.min():.3g} to {rest.max():.3g})",
            fontsize="medium",
        )
    _log_steps(ax)
    ax.set_xlabel("step")
    ax.set_ylabel("log loss - log prediction (1e-3)")
    ax.legend()
    return ax


@styled
def plot_predicted_actual(fit: CurveFit | TableFit, ax: Axes | None = None) -> Axes:
    """Draw predicted against actual loss, a point a row.

    Parameters
    ----------
    fit : CurveFit or TableFit
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    rest = fit.residuals()
    trained = rest["trained"] if "trained" in rest else np.ones(len(rest), dtype=bool)
    what = "runs" if "run" in rest else "rows"
    low, high = np.inf, -np.inf
    for kind, part in (("fit", rest[trained]), ("prediction", rest[~trained])):
        if part.empty:
            continue
        loss, predicted = part["loss"].to_numpy(), part["predicted"].to_numpy()
        label = f"fitted {what}" if kind == "fit" else f"held-out {what}"
        ax.plot(loss, predicted, ".", ms=3, color=COLORS[kind], alpha=0.6, label=label)
        low, high = min(low, float(loss.min())), max(high, float(loss.max()))
    ax.plot([low, high], [low, high], color=COLORS["muted"], lw=0.8)
    ax.set_xlabel("loss (nats)")
    ax.set_ylabel("predicted loss (nats)")
    ax.legend()
    return ax


@styled
def plot_correlations(found: Any, ax: Axes | None = None) -> Axes:
    """Draw the correlations of the estimates of a fit (its ``.identifiability``).

    Parameters
    ----------
    found : Identifiability
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    ax.imshow(found.matrix, cmap="RdBu_r", vmin=-1, vmax=1)
    ticks = np.arange(len(found.names))
    ax.set_xticks(ticks, found.names)
    ax.set_yticks(ticks, found.names)
    for i in range(len(found.names)):
        for j in range(len(found.names)):
            dark = abs(found.matrix[i, j]) > 0.6
            ax.text(
                j,
                i,
                f"{found.matrix[i, j]:.2f}",
                ha="center",
                va="center",
                color="white" if dark else "black",
            )
    ax.grid(False)
    ax.set_title(f"correlations of the estimates, condition number {found.condition_number:.2g}")
    return ax


def plot_schedule_panel(fit: CurveFit, run: str | Sequence[str] | None = None) -> Figure:
    """Loss and prediction above, learning rate below: one column a run.

    Parameters
    ----------
    fit : CurveFit
    run : str or list of str, optional
        Names or globs; default all runs, eight at most (held-out ones first).

    Returns
    -------
    matplotlib Figure
    """
    rows = _rows(fit, run)
    if not rows:
        raise ConvexlawError("no run with losses to draw: name runs of this fit")
    if run is None:
        rows = sorted(rows, key=lambda row: row[4])[:MOST]
    with plt.style.context(STYLE):
        across = min(len(rows), 3)
        down = -(-len(rows) // across)
        figure = plt.figure(figsize=(3.2 * across, 2.9 * down), layout="constrained")
        rates = [_lr(fit, name, steps) for name, steps, *_ in rows]
        highest = max(float(lr.max()) for _, lr in rates)
        power = int(np.floor(np.log10(highest))) if highest > 0 else 0  # of ten, of every schedule
        outer = figure.add_gridspec(down, across)
        for i, (name, steps, loss, predicted, trained) in enumerate(rows):
            inner = outer[i // across, i % across].subgridspec(2, 1, height_ratios=(3, 1), hspace=0.1 / down)
            top = figure.add_subplot(inner[0])
            below = figure.add_subplot(inner[1], sharex=top)
            color = COLORS["fit" if trained else "prediction"]
            top.plot(steps, loss, color=COLORS["data"], lw=0.6, alpha=0.5)
            top.plot(steps, predicted, color=color, lw=1.2)
            late = loss[steps >= 0.1 * steps[-1]]
            high = float(late.max()) if late.size else float(loss.max())
            low = float(min(loss.min(), predicted.min()))
            if high > low:
                top.set_ylim(low - 0.05 * (high - low), high + 0.1 * (high - low))
            top.set_title(f"{fill(name, 32)}\n({'fitted' if trained else 'held out'})", fontsize="medium")
            top.tick_params(labelbottom=False)
            at, lr = rates[i]
            below.plot(at, lr / 10.0**power, color=COLORS["schedule"], lw=1.2)
            below.set_ylim(0, 1.15 * highest / 10.0**power)
            below.set_xlabel("step")
            if i % across == 0:
                top.set_ylabel("loss (nats)")
                below.set_ylabel(f"LR (1e{power})")
        return figure


@styled
def plot_table_fit(fit: TableFit, ax: Axes | None = None) -> Axes:
    """Draw losses against tokens, one colour a size, with the fitted law as lines.

    Parameters
    ----------
    fit : TableFit
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    state = fit._state
    group = np.round(50 * np.log(state.N)).astype(np.int64)
    keys = np.unique(group)
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.92, keys.size))
    names = np.linspace(0, keys.size - 1, min(keys.size, 6)).round()
    for i, key in enumerate(keys):
        part = group == key
        size = float(np.exp(np.mean(np.log(state.N[part]))))
        low, high = float(state.D[part].min()), float(state.D[part].max())
        d = np.geomspace(low / 1.2, high * 1.2, 50)
        label = f"N = {size:.2g}" if i in names else None
        ax.plot(d, fit.model.loss(size, d), color=colors[i], lw=1.0, label=label)
        ax.plot(state.D[part], state.loss[part], ".", ms=4, color=colors[i])
    ax.set_xscale("log")
    ax.set_xlabel("D (tokens)")
    ax.set_ylabel("loss (nats)")
    ax.set_title(f"{fit.law}, {state.loss.size} rows")
    ax.legend(fontsize="small")
    return ax


@styled
def plot_comparison(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated error of each law with its standard error.

    Parameters
    ----------
    found : Comparison
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    table = found.to_frame().iloc[::-1]
    at = np.arange(len(table))
    colors = [COLORS["fit"] if law == found.winner else COLORS["muted"] for law in table["law"]]
    ax.barh(at, table["mae"], xerr=table["se"].fillna(0.0), color=colors, height=0.6)
    ax.set_yticks(at, list(table["law"]))
    ax.set_xlabel("cross-validated mean absolute error (nats)")
    ax.set_title(f"winner: {found.winner}" if found.winner else "no winner beyond the scatter over runs")
    return ax


@styled
def plot_transfer(found: Transfer, ax: Axes | None = None) -> Axes:
    """Draw the best peak against the horizon, with the slope found and the theory's -1/2.

    Parameters
    ----------
    found : Transfer
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    below = np.maximum(found.peak - found.low, 0.0)
    above = np.maximum(found.high - found.peak, 0.0)
    ax.errorbar(found.steps, found.peak, yerr=(below, above), fmt="o", color=COLORS["fit"], label="best peak")
    middle = np.exp(np.mean(np.log(found.steps)))
    level = np.exp(np.mean(np.log(found.peak)))
    for slope, color, name in (
        (found.exponent, COLORS["fit"], "found"),
        (found.theory, COLORS["muted"], "convex bound"),
    ):
        line = level * (found.steps / middle) ** slope
        ax.plot(found.steps, line, color=color, lw=1.0, label=f"{name}: {slope:.2f}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("steps")
    ax.set_ylabel("peak learning rate")
    ax.legend()
    return ax


@styled
def plot_profile(
    fit: CurveFit | TableFit, parameter: str, ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Draw the profile of one parameter: how much the best objective rises when it is held elsewhere.

    Parameters
    ----------
    fit : CurveFit or TableFit
        A robust fit with its data (not a loaded fit of curves).
    parameter : str
    ax : matplotlib Axes, optional
    level : float, default 0.95
        Level of the interval marked.

    Returns
    -------
    matplotlib Axes
    """
    from convexlaw.solvers._fit_profile import profile_curve

    ax = axes_or_new(ax)
    limits = fit.interval(level, "profile", progress=False)
    low, high = (float(limits[edge].to_dict()[parameter]) for edge in ("low", "high"))
    values, rise = profile_curve(fit, parameter, low, high, level)
    ax.plot(values, rise, color=COLORS["fit"])
    ax.axhline(1.0, color=COLORS["muted"], lw=0.8, ls="--")
    ax.axvline(fit.params[parameter], color=COLORS["data"], lw=0.8)
    ax.axvspan(max(low, values[0]), min(high, values[-1]), color=COLORS["fit"], alpha=0.12, lw=0)
    ax.set_xlabel(parameter)
    ax.set_ylabel(f"rise of objective\n({level:.0%} limit = 1)")
    return ax
