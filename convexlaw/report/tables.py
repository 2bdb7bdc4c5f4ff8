"""The page of a scaling law fitted to a table: parameters with intervals, optimal sizes, profiles."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from convexlaw._files import replacing
from convexlaw.errors import ConvexlawError
from convexlaw.report.page import Page, format_number
from convexlaw.solvers._fit_profile import profiled
from convexlaw.theory._law_tables import FLOPS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from convexlaw.solvers._curve_fit import CurveFit
    from convexlaw.solvers._fit_optimal import Optimal
    from convexlaw.solvers._table_fit import TableFit

__all__ = ["optimal_table", "point_table", "profile_caption", "profile_grid", "table_report"]


def optimal_table(found: Iterable[tuple[float, Optimal]]) -> pd.DataFrame:
    """One row a budget: parameters, tokens and loss at the compute optimum with their limits."""
    import pandas as pd

    rows = []
    for flops, best in found:
        rows.append(
            {
                "FLOPs": flops,
                "N": best.N,
                "N low": best.N_interval[0],
                "N high": best.N_interval[1],
                "D": best.D,
                "D low": best.D_interval[0],
                "D high": best.D_interval[1],
                "loss": best.loss,
                "loss low": best.loss_interval[0],
                "loss high": best.loss_interval[1],
            }
        )
    return pd.DataFrame(rows)


def point_table(fit: TableFit, N: ArrayLike, D: ArrayLike, level: float = 0.95) -> pd.DataFrame:
    """One row a model of ``N`` parameters on ``D`` tokens: its predicted loss with limits."""
    import numpy as np
    import pandas as pd

    sizes, tokens = np.broadcast_arrays(np.asarray(N, dtype=np.float64), np.asarray(D, dtype=np.float64))
    loss = fit.predict(sizes, tokens)
    low, high = fit.band(sizes, tokens, level)
    return pd.DataFrame(
        {
            "N": sizes,
            "D": tokens,
            "FLOPs": FLOPS * sizes * tokens,
            "loss": loss,
            "low": low,
            "high": high,
            "against the first": loss - loss[:1],
        }
    )


def profile_grid(fit: CurveFit | TableFit, level: float) -> Figure:
    """Draw the profile of every parameter that has one, a panel each, with the bootstrap limits as lines."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    from convexlaw.figures.fits import plot_profile
    from convexlaw.figures.style import COLORS, STYLE

    names = profiled(fit)
    limits = fit.interval(level)
    across = min(len(names), 3)
    down = -(-len(names) // across)
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(down, across, figsize=(3.2 * across, 2.6 * down), squeeze=False)
        for name, ax in zip(names, axes.flat, strict=False):
            plot_profile(fit, name, ax=ax, level=level)
            left, right = ax.get_xlim()
            for edge in ("low", "high"):
                ax.axvline(limits[edge].to_dict()[name], color=COLORS["prediction"], lw=1.0, ls=":")
            ax.set_xlim(left, right)
            ax.xaxis.set_major_locator(MaxNLocator(4))
            if ax is not axes[ax.get_subplotspec().rowspan.start, 0]:
                ax.set_ylabel("")
        for ax in axes.flat[len(names) :]:
            ax.set_axis_off()
    return figure


def profile_caption(level: float) -> str:
    """Say what the figure of the profiles shows, and why its two limits differ."""
    return (
        f"How much the best objective rises when one parameter is held, in units of its {level:.0%} limit. "
        "Shaded: the limits of this profile, from the curvature of the objective and the scatter of the "
        "residuals. Dotted: the limits of the table, from refits to resampled losses. Both approximate the "
        "same thing; where they differ the wider one is the safer."
    )


def table_report(
    fit: TableFit,
    out: str | os.PathLike[str],
    *,
    command: str,
    budgets: Sequence[tuple[float, Optimal]] = (),
    warned: Iterable[str] = (),
    sources: Iterable[str | os.PathLike[str]] = (),
    level: float = 0.95,
) -> Path:
    """Write the page of a table fit with its PNG and CSV files.

    Parameters
    ----------
    fit : TableFit
        A fit of ``convexlaw.fit_table``.
    out : path-like
        Folder to write to.
    command : str
        The command that made the page.
    budgets : sequence of (flops, Optimal)
        Compute budgets and their optima.
    warned : iterable of str
        Warnings to show.
    sources : iterable of path-like
        Input files, listed with their digests.
    level : float
        Level of the intervals.

    Returns
    -------
    pathlib.Path
        ``report.html``.

    Raises
    ------
    ConvexlawError
        ``out`` is a file; nothing has been written then.
    """
    from convexlaw.figures.fits import plot_predicted_actual, plot_table_fit
    from convexlaw.figures.style import figure_of

    if Path(out).exists() and not Path(out).is_dir():
        raise ConvexlawError(f"--out {out} is a file; name a folder")
    limits = fit.interval(level)
    page = Page(out, f"{fit.law}: loss from model size and data", str(fit).splitlines()[0])
    score = fit.score().iloc[0]
    page.add(
        "verdict",
        f"{fit.law} describes its {score['points']:.0f} rows with a mean absolute error of "
        f"{format_number(score['mae'], 3)} nats (R2 {score['r2']:.4f}). "
        "No row was held out: this is no test.",
    )
    for line in warned:
        page.add("warning", line)
    if not fit.converged:
        page.add("warning", "The fit did not converge: read no number below as final.")
    page.add("heading", "Parameters")
    shown = limits.reset_index()
    page.table(shown.rename(columns={shown.columns[0]: "parameter"}), "parameters")
    page.add("note", f"{level:.0%} limits: percentiles of refits to resampled rows (bootstrap).")
    page.bullets(fit.identifiability.sentences)
    page.figure(figure_of(plot_table_fit(fit)), "fit", "Logged losses and the fitted law, one colour a size.")
    page.figure(
        figure_of(plot_predicted_actual(fit)),
        "predicted_actual",
        "Predicted against logged losses, every row.",
    )
    if budgets:
        page.add("heading", "Compute-optimal sizes")
        page.table(optimal_table(budgets), "optimal")
        page.add("note", f"C = 6 N D; {level:.0%} limits from resampled rows.")
    page.add("heading", "Profiles")
    page.figure(
        profile_grid(fit, level),
        "profiles",
        profile_caption(level),
    )
    page.add("heading", "Decided for the fit")
    page.bullets(fit.notes)
    with replacing(page.out / "residuals.csv") as tmp:
        fit.residuals().to_csv(tmp, index=False)
    with replacing(page.out / "fit.json") as tmp:
        fit.to_json(tmp)
    return page.write(command, sources)
