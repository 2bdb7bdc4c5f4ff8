"""What to trust of a plan, in sentences."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ExtrapolationWarning
from convexlaw.solvers._curve_fit import CurveFit
from convexlaw.solvers._fit_range import EXTRAPOLATION, warn_beyond
from convexlaw.solvers._fit_transfer import PICKS
from convexlaw.solvers._plan_budget import Horizon

__all__ = ["caveats"]

Array = NDArray[np.float64]


def caveats(
    fit: CurveFit,
    lr: Array,
    peaks: list[tuple[str, float]],
    grid: Array,
    horizon: Horizon,
    looked: list[int],
    *,
    peak: float | None,
    peak_fit: CurveFit | None,
    noise_scale: float | None,
    warmup: float,
    draws: bool,
) -> list[str]:
    """Sentences on the peak, the range of the fit, the batch sizes, the intervals; most important first."""
    out = []
    if peak is None:
        out += _about_peak(fit if peak_fit is None else peak_fit, peaks, grid, peak_fit is not None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_beyond(fit._state, lr, None)
    out += [_sentence(str(w.message)) for w in caught if issubclass(w.category, ExtrapolationWarning)]
    known = fit._state.ranges.batches
    if horizon.batch is not None and known is not None:
        if not known[0] / EXTRAPOLATION <= horizon.batch <= known[1] * EXTRAPOLATION:
            out.append(
                f"Batch size {horizon.batch:.6g} lies beyond 4 times the fitted {known[0]:g} to {known[1]:g}."
            )
        elif len(looked) > 1 and horizon.steps in (looked[0], looked[-1]):
            end = "longest" if horizon.steps == looked[-1] else "shortest"
            out.append(
                f"The best horizon is the {end} looked at (batch size {horizon.batch:.6g}): only fitted "
                "batch sizes and at most 4 times the fitted steps are looked at; give steps to go further."
            )
    if not warmup:
        out.append("No warmup is planned: the laws say little of it, and most runs need one (warmup).")
    if noise_scale is not None:
        out.append(f"The noise is split by the given noise scale {noise_scale:g}, not by the fit.")
    if not draws:
        out.append("The fit holds no bootstrap draws: no intervals (call .interval() before .to_json()).")
    if not fit.converged:
        out.append("The fit did not converge: read no number here as final.")
    return out


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _about_peak(fit: CurveFit, peaks: list[tuple[str, float]], grid: Array, other: bool) -> list[str]:
    out = []
    low, high = fit._state.ranges.peaks
    one = high <= 1.05 * low
    who = f"the {fit.law} of peak_fit" if other else f"this {fit.law}"
    if fit.law == "rc4":
        out.append(
            "rc4 predicts losses well but is not to be trusted with peaks: its horizon exponent near -1/2 "
            f"contradicts measured ones (-0.24, -0.13), and {PICKS}. The search keeps to the fitted peaks "
            "unless peaks= says otherwise; give a cvx4q fitted at one peak near the best as peak_fit."
        )
    elif fit.law == "cvx4q" and one:
        out.append(
            "cvx4q fitted at one peak picks the base learning rate well only where that peak is near the "
            f"best one: {PICKS}. A short sweep of peaks would test it."
        )
    elif fit.law == "cvx4q":
        out.append(
            f"The fitted runs have peaks from {low:.3g} to {high:.3g}: cvx4q was best for the base learning "
            "rate where fitted at one peak near the best; fit those runs alone and give that fit as peak_fit."
        )
    else:
        out.append(
            f"How well {fit.law} picks peaks was not measured; {PICKS}: give a cvx4q fitted at one peak near "
            "the best as peak_fit."
        )
    if grid.size == 1 and len({s for s, _ in peaks}) > 1:
        out.append(
            f"The schedules are compared at one peak, {grid[0]:.4g}, though each has a best one of its own: "
            "decays from the start want a higher one than WSD."
        )
    ends = [] if grid.size == 1 else [s for s, p in peaks if not grid[0] * 1.001 < p < grid[-1] / 1.001]
    if ends:
        out.append(
            f"The best peak of {', '.join(dict.fromkeys(ends))} lies at the edge of the search "
            f"({grid[0]:.3g} to {grid[-1]:.3g}): {who} would go further, where nothing was fitted; "
            "run a peak nearer to it, or give peaks."
        )
    return out
