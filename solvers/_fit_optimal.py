"""What a fit of a table predicts, with intervals: losses, and the compute-optimal size for a budget."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError, ExtrapolationWarning
from convexlaw.solvers import _fit_intervals as intervals
from convexlaw.solvers._fit_range import EXTRAPOLATION
from convexlaw.theory._law_inputs import number
from convexlaw.theory.laws import TableLaw, table_law

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers._table_fit import TableFit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Optimal(Result):
    """Compute-optimal size and tokens for a budget, with intervals from the bootstrap refits.

    Attributes
    ----------
    flops : float
        Budget, ``6 N D``.
    N, D : float
        Parameters and tokens.
    loss : float
        Predicted loss there, in nats.
    N_interval, D_interval, loss_interval : (float, float)
    exponent : float
        The a of ``N_opt ~ flops^a``.
    exponent_interval : (float, float)
    level : float
    """

    flops: float
    N: float
    D: float
    loss: float
    N_interval: tuple[float, float]
    D_interval: tuple[float, float]
    loss_interval: tuple[float, float]
    exponent: float
    exponent_interval: tuple[float, float]
    level: float

    def __iter__(self) -> Iterator[float]:
        """Unpack as ``N, D``."""
        return iter((self.N, self.D))

    def __str__(self) -> str:
        def line(name: str, value: float, limits: tuple[float, float]) -> str:
            return f"  {name:<9}{value:.4g}   {self.level:.0%} [{limits[0]:.4g}, {limits[1]:.4g}]"

        return "\n".join(
            [
                f"compute-optimal at {self.flops:.4g} FLOPs",
                line("N", self.N, self.N_interval),
                line("D", self.D, self.D_interval),
                line("loss", self.loss, self.loss_interval),
                line("exponent", self.exponent, self.exponent_interval),
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Return quantity, value, low, high as rows."""
        import pandas as pd

        rows = [
            ("N", self.N, *self.N_interval),
            ("D", self.D, *self.D_interval),
            ("loss", self.loss, *self.loss_interval),
            ("exponent", self.exponent, *self.exponent_interval),
        ]
        return pd.DataFrame(rows, columns=["quantity", "value", "low", "high"])


def _resampled(
    fit: TableFit, resamples: int, seed: int, jobs: int, progress: bool | None
) -> Iterator[TableLaw]:
    """Yield the law of every bootstrap refit."""
    cls = table_law(fit.law)
    for draw in fit._draws(resamples, seed, jobs, progress):
        yield cls(**dict(zip(fit.params, map(float, draw), strict=True)))


def no_optimum(fit: TableFit) -> str:
    """Say why a fit has no compute-optimal size; empty where it has one."""
    state = fit._state
    for q in table_law(fit.law).nonlinear:
        value = state.solution.params[q.name]
        if q.name not in state.fixed and q.at_end(value):
            return (
                f"{q.name} ended at {value:g}, the end of its range: the exponent of N_opt would be that "
                "range's, not the rows'; hold it with fixed=, or add rows that reach further"
            )
    try:
        fit.model.optimal(6e20)
    except ConvexlawError as error:
        return str(error)
    return ""


def optimum(
    fit: TableFit, flops: float, level: float, resamples: int, seed: int, jobs: int, progress: bool | None
) -> Optimal:
    """Compute-optimal size and tokens (see TableFit.optimal)."""
    intervals.check_level(level := number("level", level))
    model = fit.model
    flops = number("flops", flops)
    N, D = model.optimal(flops)
    if said := no_optimum(fit):
        raise ConvexlawError(f"no compute-optimal size: {said}")
    known = 6.0 * fit._state.N * fit._state.D
    far = [
        f"{what} {value:.3g}{unit} against {seen.min():.3g} to {seen.max():.3g} fitted"
        for what, value, unit, seen in (
            ("budget", flops, " FLOPs", known),
            ("best N", float(N), "", fit._state.N),
            ("best D", float(D), "", fit._state.D),
        )
        if value > EXTRAPOLATION * seen.max() or value < seen.min() / EXTRAPOLATION
    ]
    if far:
        warnings.warn(
            f"this optimum lies beyond 4 times the fitted range ({'; '.join(far)}): "
            "no interval covers the failure of a law there",
            ExtrapolationWarning,
            stacklevel=3,
        )
    rows = []
    for one in _resampled(fit, resamples, seed, jobs, progress):
        try:
            n, d = one.optimal(float(flops))
        except ConvexlawError:  # this resample sees no gain in N or in D
            rows.append((np.nan, np.nan, np.nan, np.nan))
            continue
        rows.append((float(n), float(d), float(one.loss(n, d)), one.exponent))
    values = np.array(rows)
    lost = int(np.isnan(values[:, 0]).sum())
    if lost > 0.01 * len(values):
        raise ConvexlawError(
            f"{lost} of {len(values)} refits have no compute-optimal size: the rows do not support "
            f"one; see .identifiability"
        )
    edges = np.nanpercentile(values, intervals.tails(level, fit._state.loss.size), axis=0)
    limits = [(float(edges[0, j]), float(edges[1, j])) for j in range(4)]
    return Optimal(
        flops=float(flops),
        N=float(N),
        D=float(D),
        loss=float(model.loss(N, D)),
        N_interval=limits[0],
        D_interval=limits[1],
        loss_interval=limits[2],
        exponent=model.exponent,
        exponent_interval=limits[3],
        level=level,
    )


def band(
    fit: TableFit,
    N: ArrayLike,
    D: ArrayLike,
    level: float,
    resamples: int,
    seed: int,
    jobs: int,
    progress: bool | None,
) -> tuple[Array, Array]:
    """Percentiles of the losses that the bootstrap refits predict (see TableFit.band)."""
    intervals.check_level(level := number("level", level))
    fit.model.loss(N, D)  # refuses bad values before the refits
    losses = np.array([one.loss(N, D) for one in _resampled(fit, resamples, seed, jobs, progress)])
    low, high = np.percentile(losses, intervals.tails(level, fit._state.loss.size), axis=0)
    return low, high
