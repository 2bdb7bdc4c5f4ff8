"""Candidates of a planned run: every shape at its best peak, by the estimate or with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw._progress import Advance
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._plan_budget import Horizon
from convexlaw.solvers._plan_losses import View, limits_of
from convexlaw.solvers._scaling_rules import unit_schedule
from convexlaw.theory.batch import plan as plan_batches

__all__ = ["Candidate", "Search", "horizon_row"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A schedule that was considered, at its own best peak.

    Attributes
    ----------
    shape : str
    batches : {"static", "scheduled"}
    peak, peak_low, peak_high : float
        Best peak and its interval.
    loss, low, high : float
        Loss after the last update in nats, and its interval at that peak.
    behind, behind_low, behind_high : float
        Loss above the best candidate's, and the interval of that difference (draw by draw).
    """

    shape: str
    batches: str
    peak: float
    peak_low: float
    peak_high: float
    loss: float
    low: float
    high: float
    behind: float = 0.0
    behind_low: float = math.nan
    behind_high: float = math.nan


def horizon_row(horizon: Horizon, shape: str, peak: float, loss: float) -> dict[str, Any]:
    """One row of the table of horizons."""
    size = math.nan if horizon.batch is None else horizon.batch
    return {"steps": horizon.steps, "batch": size, "shape": shape, "peak": peak, "loss": loss}


@dataclass(frozen=True)
class Search:
    """What is looked at: shapes, peaks and limits, by a view (another one may choose the peaks)."""

    view: View
    chooser: View
    grid: Array
    shapes: tuple[str, ...]
    warmup: float
    min_batch: float
    max_batch: float | None
    level: float

    def quick(self, horizon: Horizon, kinds: list[str], advance: Advance) -> dict[str, Any]:
        """Best candidate of a horizon, by the estimate alone."""
        found = []
        for shape, _, unit, sizes in self._settings(horizon, kinds):
            found.append((self._peak(unit, sizes, drawn=False), shape))
            advance(1)
        (peak, loss, _), shape = min(found, key=lambda pair: pair[0][1])
        return horizon_row(horizon, shape, peak, loss)

    def full(self, horizon: Horizon, kinds: list[str], advance: Advance) -> list[Candidate]:
        """All candidates of a horizon by predicted loss, with intervals."""
        settings = list(self._settings(horizon, kinds))
        peaks = []
        for _, _, unit, sizes in settings:
            peaks.append(self._peak(unit, sizes, drawn=True))
            advance(1)
        runs = [(p[0] * unit, sizes) for p, (_, _, unit, sizes) in zip(peaks, settings, strict=True)]
        losses, drawn = self.view.losses(runs)
        order = np.argsort(losses, kind="stable")
        first = int(order[0])
        out = []
        for i in map(int, order):
            shape, kind, _, _ = settings[i]
            each = peaks[i][2]
            span = (math.nan, math.nan) if each is None else limits_of(each, self.level)
            limits, apart = (math.nan, math.nan), (math.nan, math.nan)
            if drawn is not None:
                limits = limits_of(drawn[:, i], self.level)
                apart = limits_of(drawn[:, i] - drawn[:, first], self.level)
            behind = float(losses[i] - losses[first])
            out.append(Candidate(shape, kind, peaks[i][0], *span, float(losses[i]), *limits, behind, *apart))
        return out

    def _settings(self, horizon: Horizon, kinds: list[str]) -> Iterator[tuple[str, str, Array, Any]]:
        middle = math.sqrt(self.grid[0] * self.grid[-1])
        for shape in self.shapes:
            unit = unit_schedule(shape, horizon.steps, self.warmup)
            for kind in kinds:
                sizes: Any = horizon.batch
                if kind == "scheduled":
                    rates, sigma = self.view.noise(middle * unit)
                    sizes = plan_batches(
                        rates, horizon.samples or 0.0, sigma=sigma, min_batch=self.min_batch,
                        max_batch=self.max_batch, integer=False,
                    ).batch  # fmt: skip
                yield shape, kind, unit, sizes

    def _peak(self, unit: Array, sizes: Any, *, drawn: bool) -> tuple[float, float, Array | None]:
        if self.grid.size == 1:
            peak = float(self.grid[0])
            loss = math.nan if drawn else float(self.view.bare().losses([(peak * unit, sizes)])[0][0])
            return peak, loss, None
        chooser = self.chooser if drawn else self.chooser.bare()
        if chooser.batch and sizes is None:
            raise ConvexlawError("peak_fit= tells batch sizes apart: give batch_size= or samples= too")
        peak, loss, each = chooser.best_peak(unit, sizes if chooser.batch else None, self.grid)
        if self.chooser is not self.view and not drawn:
            loss = float(self.view.bare().losses([(peak * unit, sizes)])[0][0])
        return peak, loss, each
