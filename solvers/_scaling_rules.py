"""From a small run to a long one: the paper's joint scaling rules beside what a fit supports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._curve_fit import CurveFit
from convexlaw.solvers._fit_intervals import check_level
from convexlaw.solvers._plan_losses import limits_of, no_batch_reason, view_of
from convexlaw.theory._schedule_checks import positive, whole_steps
from convexlaw.theory.batch import critical_batch_size
from convexlaw.theory.schedules import make, parse_parameters

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers._fit_transfer import Transfer

__all__ = ["ScalingRules", "scaling_rules", "unit_schedule"]

PAPER = -0.5  # exponent in the number of steps of peak and weight decay, eq. (4.1)
_GRID = 41


@dataclass(frozen=True)
class ScalingRules(Result):
    """Transfer of peak, weight decay and batch from one horizon to another.

    Attributes
    ----------
    steps : (int, int)
        From, to.
    rows : list of dict
        quantity, start (value at the first horizon), paper (value by the paper's rule), data (value that the
        fit supports), low, high, remark.
    level : float
    """

    steps: tuple[int, int]
    rows: list[dict[str, Any]]
    level: float

    def to_frame(self) -> pd.DataFrame:
        """One row a quantity: quantity, start, paper, data, low, high, remark."""
        import pandas as pd

        return pd.DataFrame(
            self.rows, columns=["quantity", "start", "paper", "data", "low", "high", "remark"]
        )

    def __str__(self) -> str:
        lines = [f"from {self.steps[0]} to {self.steps[1]} steps (paper: arXiv 2607.27731, eq. 4.1)"]
        for row in self.rows:
            start, paper, data = (
                "-" if math.isnan(row[key]) else f"{row[key]:.4g}" for key in ("start", "paper", "data")
            )
            limits = "" if math.isnan(row["low"]) else f" [{row['low']:.4g}, {row['high']:.4g}]"
            lines.append(f"  {row['quantity']}: {start} -> paper {paper}, data {data}{limits}")
        return "\n".join([*lines, *(f"- {row['remark']}" for row in self.rows)])


def unit_schedule(shape: str, steps: int, warmup: float = 0) -> Any:
    """Schedule of peak 1 of a shape text that leaves steps and peak open; warmup in steps, or a fraction."""
    name, values = parse_parameters(shape)
    given = [key for key in ("steps", "peak") if key in values]
    if given:
        raise ConvexlawError(f"shape {shape!r} fixes {' and '.join(given)}: the planner chooses those")
    ramp = values.pop("warmup", warmup)
    if not 0 <= ramp < steps or (ramp >= 1 and ramp != int(ramp)):
        raise ConvexlawError(f"warmup = {ramp}: give whole steps below {steps}, or a fraction below 1")
    return make(name, **values, steps=steps, peak=1.0, warmup=round(ramp * steps) if ramp < 1 else int(ramp))


def scaling_rules(
    fit: CurveFit,
    shape: str,
    steps: int,
    *,
    samples: float | None = None,
    from_steps: int | None = None,
    from_peak: float | None = None,
    batch_size: float | None = None,
    weight_decay: float | None = None,
    measured: Transfer | None = None,
    level: float = 0.95,
) -> ScalingRules:
    """Peak, weight decay and batch at another horizon: the paper's rules beside what the data supports.

    Parameters
    ----------
    fit : CurveFit
    shape : str
        Schedule text without steps and peak, e.g. ``"wsd:decay=0.2"``.
    steps : int
        Horizon to transfer to.
    samples : float, optional
        Total samples there; default the same batch size.
    from_steps, from_peak : optional
        Horizon and good peak to transfer from; default the longest fitted run and the (geometric) middle of
        the fitted peaks.
    batch_size : float, optional
        Batch size at the first horizon; default the middle of the fitted ones.
    weight_decay : float, optional
        Good weight decay at the first horizon; default that of the fitted runs.
    measured : Transfer, optional
        Outcome of ``measured_transfer`` on a sweep: its exponent is then the data's word on the peak.
    level : float

    Returns
    -------
    ScalingRules

    Raises
    ------
    ConvexlawError
        Values outside their range.

    References
    ----------
    arXiv 2607.27731, eq. (4.1): peak and weight decay fall as 1/sqrt(steps), batch sizes by Theorem 3 with
    the total data. Theorem 5: for the weight decay that rate is sufficient, no more.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from convexlaw import fit_curves
    >>> from convexlaw.theory.laws import CVX4q
    >>> law, lr = CVX4q(2.0, 0.5, 20.0, 0.5), np.linspace(1e-3, 1e-5, 400)
    >>> log = pd.DataFrame({"run": "a", "step": range(400), "lr": lr, "batch_size": 32})
    >>> fit = fit_curves(log.assign(loss=law.predict(lr)), "cvx4q")
    >>> limits = fit.interval(resamples=20)
    >>> peak = scaling_rules(fit, "linear", 1600, from_steps=400).rows[0]
    >>> round(peak["paper"] / peak["start"], 3), round(peak["data"] / peak["start"], 2)
    (0.5, 0.69)
    """
    check_level(level)
    state = fit._state
    first = state.ranges.steps if from_steps is None else whole_steps(from_steps)
    last = whole_steps(steps)
    low_peak, high_peak = state.ranges.peaks
    start = math.sqrt(low_peak * high_peak) if from_peak is None else positive("from_peak", from_peak)
    factor = (last / first) ** PAPER
    rows = [_peak(fit, shape, first, last, start, factor, batch_size, weight_decay, measured, level)]
    decay = state.weight_decay if weight_decay is None else weight_decay
    if decay is not None:
        rows.append(_decay(fit, float(decay), factor))
    rows += _batch(fit, shape, last, samples, batch_size, level)
    return ScalingRules((first, last), rows, level)


def _row(quantity: str, start: float, paper: float, data: float, limits: Any, remark: str) -> dict[str, Any]:
    low, high = limits
    return dict(quantity=quantity, start=start, paper=paper, data=data, low=low, high=high, remark=remark)


def _middle(fit: CurveFit, batch_size: float | None) -> float | None:
    known = fit._state.ranges.batches
    if batch_size is not None:
        return positive("batch_size", batch_size)
    return None if known is None else math.sqrt(known[0] * known[1])


def _peak(
    fit: CurveFit,
    shape: str,
    first: int,
    last: int,
    start: float,
    factor: float,
    batch_size: float | None,
    weight_decay: float | None,
    measured: Transfer | None,
    level: float,
) -> dict[str, Any]:
    ratio = last / first
    if measured is not None:
        low, high = sorted(ratio**e for e in measured.exponent_interval)
        return _row(
            "peak learning rate",
            start,
            start * factor,
            start * ratio**measured.exponent,
            (start * low, start * high),
            f"Data: the exponent {measured.exponent:.3f} of the sweep in the number of steps; paper: -1/2.",
        )
    ranges = fit._state.ranges
    grid = np.geomspace(ranges.peaks[0] / 64, ranges.peaks[1] * 64, _GRID)
    view, size = view_of(fit, weight_decay=weight_decay), _middle(fit, batch_size)
    best = [view.best_peak(unit_schedule(shape, t), size, grid) for t in (first, last)]
    if first == last:
        moved, drawn = 1.0, None
    else:
        moved = best[1][0] / best[0][0]
        a, b = best[0][2], best[1][2]
        drawn = None if a is None or b is None else b / a
    limits = (math.nan, math.nan) if drawn is None else limits_of(start * drawn, level)
    exponent = math.log(moved) / math.log(ratio) if ratio != 1 else math.nan
    remark = (
        f"Data: the optimum of the fitted {fit.law} moves as steps^{exponent:.3f}, paper -1/2; "
        "exponents measured on public sweeps of 124M AdamW runs were -0.24 to -0.08. "
        "A sweep of peaks at two horizons tells (solvers.fit_curves.measured_transfer)."
    )
    return _row("peak learning rate", start, start * factor, start * moved, limits, remark)


def _decay(fit: CurveFit, decay: float, factor: float) -> dict[str, Any]:
    state = fit._state
    values = {state.constants.of(run)[0] for run in state.data or () if run.name in fit.train}
    said = (
        f"the fitted runs have weight decays from {min(v or 0 for v in values):g} to "
        f"{max(v or 0 for v in values):g}, which no law here turns into a best value"
        if len(values) > 1
        else f"every fitted run has {decay:g}, so they say nothing of another"
        if values
        else "a saved fit does not know how the weight decay of its runs varied"
    )
    return _row(
        "weight decay",
        decay,
        decay * factor,
        math.nan,
        (math.nan, math.nan),
        f"Data: {said}. The paper's rate is sufficient for its theorem, not an optimum (0 qualifies too).",
    )


def _batch(
    fit: CurveFit, shape: str, last: int, samples: float | None, batch_size: float | None, level: float
) -> list[dict[str, Any]]:
    size = _middle(fit, batch_size)
    start = math.nan if size is None else size
    paper = start if samples is None else positive("samples", samples) / last
    unit = unit_schedule(shape, last)
    static, scheduled = critical_batch_size(unit, 1.0, 1.0)
    gain = static / scheduled
    worth = (
        "for this shape it is one batch size all along"
        if gain < 1.005
        else f"its noise is {gain:.4g} times smaller than that of one batch size"
    )
    none = (math.nan, math.nan)
    rows = [_row("batch size (mean)", start, paper, math.nan, none, f"Batch sizes by Theorem 3: {worth}.")]
    reason = no_batch_reason(fit)
    if reason:
        rows[0]["remark"] += f" Data: {reason}."
        return rows
    from convexlaw.solvers.joint_law import joint_law

    law = joint_law(fit, level=level)
    static, scheduled = law.critical_batch_size(unit)
    remark = (
        f"Data: the critical batch sigma^2/G^2 of the fitted law, {static:.4g} for one batch size and "
        f"{scheduled:.4g} for the schedule: well below it samples count, well above it steps do."
    )
    return [*rows, _row("critical batch size", math.nan, math.nan, static, (law.low, law.high), remark)]
