"""What a batch schedule is worth by a fitted law: its losses against one batch size at the same samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._curve_fit import CurveFit
from convexlaw.solvers._fit_intervals import check_level
from convexlaw.solvers._fit_range import EXTRAPOLATION
from convexlaw.solvers._plan_losses import limits_of, no_batch_reason, view_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BatchForecast", "forecast_batches"]

Array = NDArray[np.float64]

POINTS = 160


@dataclass(frozen=True)
class BatchForecast(Result):
    """Predicted losses of a batch schedule and of one batch size, same learning rates and samples.

    Attributes
    ----------
    at : (m,) int array
        Steps; the last is the number of updates (the loss after all of them).
    static : (m,) array
        Loss with one batch size, in nats.
    scheduled : (m,) array
        Loss with the batch schedule; where the fit cannot tell (``known`` False) the largest possible effect.
    static_batch : float
    saved, saved_low, saved_high : float
        Static minus scheduled loss after the last update, and its interval. Not ``known``: NaN, and the ends
        between which the data leaves it (no part, or all, of the noise falls with the batch).
    known : bool
        Whether the fit (or a measured noise scale) splits the noise.
    level : float
    sentences : list of str
    """

    at: NDArray[np.intp]
    static: Array
    scheduled: Array
    static_batch: float
    saved: float
    saved_low: float
    saved_high: float
    known: bool
    level: float
    sentences: list[str]
    _figure: ClassVar[str] = "planner:plot_batch_forecast"

    def to_frame(self) -> pd.DataFrame:
        """Losses along the run: step, static, scheduled."""
        import pandas as pd

        return pd.DataFrame({"step": self.at, "static": self.static, "scheduled": self.scheduled})

    def __str__(self) -> str:
        head = f"predicted loss {self.static[-1]:.4f} nats at a static batch of {self.static_batch:.6g}"
        if not self.known:
            return "\n".join(
                [
                    head,
                    f"the schedule saves between {self.saved_low:.4f} and {self.saved_high:.4f} nats",
                    *(f"- {s}" for s in self.sentences),
                ]
            )
        limits = (
            ""
            if math.isnan(self.saved_low)
            else (f" {self.level:.0%} [{self.saved_low:.4f}, {self.saved_high:.4f}]")
        )
        return "\n".join(
            [head, f"the schedule saves {self.saved:.4f}{limits} nats", *(f"- {s}" for s in self.sentences)]
        )


def forecast_batches(
    fit: CurveFit,
    lr: ArrayLike,
    batch: ArrayLike,
    *,
    noise_scale: float | None = None,
    weight_decay: float | None = None,
    level: float = 0.95,
) -> BatchForecast:
    """Predict what a batch schedule saves against one batch size at the same learning rates and samples.

    Parameters
    ----------
    fit : CurveFit
    lr : (T,) array_like
    batch : (T,) array_like
        Batch sizes, in the unit of the fitted log.
    noise_scale : float, optional
        Measured sigma^2/G^2 in samples, where the fitted runs have one batch size.
    weight_decay : float, optional
        For rc4; default that of the fitted runs.
    level : float

    Returns
    -------
    BatchForecast
        Where the fitted runs have one batch size and no noise scale is given: an interval of the possible.

    Raises
    ------
    ConvexlawError
        The fit can tell nothing of these batch sizes; the message says why.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from convexlaw import fit_curves
    >>> from convexlaw.theory.laws import CVX4q
    >>> law, lr = CVX4q(2.0, 0.5, 20.0, 0.5), np.linspace(1e-3, 1e-5, 400)
    >>> log = pd.DataFrame({"run": "a", "step": range(400), "lr": lr, "batch_size": 32})
    >>> fit = fit_curves(log.assign(loss=law.predict(lr)), "cvx4q")
    >>> limits = fit.interval(resamples=20)
    >>> told = forecast_batches(fit, np.full(400, 1e-3), np.linspace(16, 48, 400))
    >>> told.known, round(told.saved_low, 4), told.saved_high > 0
    (False, 0.0, True)
    """
    check_level(level)
    rates, sizes = np.asarray(lr, dtype=np.float64), np.asarray(batch, dtype=np.float64)
    if rates.ndim != 1 or sizes.shape != rates.shape:
        raise ConvexlawError(f"lr has shape {rates.shape} and batch {sizes.shape}: give one of each a step")
    mean = float(sizes.sum()) / sizes.size
    at = np.unique(np.linspace(0, rates.size, min(POINTS, rates.size + 1)).round().astype(np.intp))
    known = fit._state.ranges.batches
    said = []
    if known is not None and (
        sizes.max() > EXTRAPOLATION * known[1] or sizes.min() < known[0] / EXTRAPOLATION
    ):
        said.append(
            f"Batch sizes of {sizes.min():g} to {sizes.max():g} lie beyond 4 times the fitted "
            f"{known[0]:g} to {known[1]:g}: no interval covers that."
        )
    if not fit._state.batch and noise_scale is None:
        return _bracket(fit, rates, sizes, mean, at, weight_decay, level, said)
    view = view_of(fit, noise_scale=noise_scale, weight_decay=weight_decay)
    static, drawn_static = view.curve(rates, mean, at)
    scheduled, drawn = view.curve(rates, sizes, at)
    limits = (math.nan, math.nan)
    if drawn is not None and drawn_static is not None:
        limits = limits_of(drawn_static[:, -1] - drawn[:, -1], level)
    if noise_scale is not None:
        said.append(f"The noise is split by the given noise scale {noise_scale:g}, not by the fit.")
    saved = float(static[-1] - scheduled[-1])
    return BatchForecast(at, static, scheduled, mean, saved, *limits, True, level, said)


def _bracket(
    fit: CurveFit,
    rates: Array,
    sizes: Array,
    mean: float,
    at: NDArray[np.intp],
    weight_decay: float | None,
    level: float,
    said: list[str],
) -> BatchForecast:
    reason = no_batch_reason(fit)
    known = fit._state.ranges.batches
    if known is None or known[1] > 1.05 * known[0] or abs(mean - known[0]) > 0.05 * known[0]:
        told = "" if known is None else f" (the plan's mean batch size is {mean:.6g})"
        raise ConvexlawError(f"no loss can be predicted for these batch sizes{told}: {reason}")
    try:
        view = view_of(fit, noise_scale=math.inf, weight_decay=weight_decay, draws=False)
    except ConvexlawError:
        raise ConvexlawError(f"no loss can be predicted for these batch sizes: {reason}") from None
    static, scheduled = view.curve(rates, known[0], at)[0], view.curve(rates, sizes, at)[0]
    most = float(static[-1] - scheduled[-1])
    said.append(f"The part of the noise that falls with the batch is not known: {reason}.")
    return BatchForecast(
        at, static, scheduled, known[0], math.nan, min(0.0, most), max(0.0, most), False, level, said
    )
