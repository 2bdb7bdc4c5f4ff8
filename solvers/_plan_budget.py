"""Budgets of a planned run: which numbers of steps and which batch sizes they allow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._curve_fit import CurveFit
from convexlaw.solvers._fit_range import EXTRAPOLATION
from convexlaw.solvers._plan_losses import no_batch_reason
from convexlaw.theory._schedule_checks import nonnegative, positive, whole_steps

__all__ = ["Budget", "Horizon", "horizons"]

POINTS = 9  # horizons looked at where the budget leaves them open


@dataclass(frozen=True)
class Budget:
    """What a run may spend, as it was given (None: not given)."""

    steps: int | None = None
    samples: float | None = None
    seconds: float | None = None
    overhead: float = 0.0
    per_sample: float | None = None
    batch_size: float | None = None
    min_batch: float = 1
    max_batch: float | None = None

    def checked(self) -> Budget:
        """Refuse values outside their range."""
        if self.steps is not None:
            whole_steps(self.steps)
        for name in ("samples", "seconds", "per_sample", "batch_size", "min_batch", "max_batch"):
            value = getattr(self, name)
            if value is not None:
                positive(name, value)
        nonnegative("overhead", self.overhead)
        if self.seconds is not None and self.per_sample is None:
            raise ConvexlawError(
                "seconds= needs per_sample=, the time of a sample (and overhead=, that of a step)"
            )
        if self.seconds is not None and self.samples is not None:
            raise ConvexlawError("samples= and seconds= are both given: give one of them")
        if self.max_batch is not None and self.max_batch < self.min_batch:
            raise ConvexlawError(f"max_batch = {self.max_batch:g} is below min_batch = {self.min_batch:g}")
        return self

    def steps_at(self, batch: float) -> float:
        """Count the steps that the budget of samples or seconds allows at one batch size."""
        if self.samples is not None:
            return self.samples / batch
        return (self.seconds or 0.0) / (self.overhead + (self.per_sample or 0.0) * batch)

    def batch_at(self, steps: int) -> float:
        """Batch size that spends the budget of samples or seconds in this many steps."""
        if self.samples is not None:
            return self.samples / steps
        return ((self.seconds or 0.0) / steps - self.overhead) / (self.per_sample or 1.0)


@dataclass(frozen=True)
class Horizon:
    """A number of steps and the (mean) batch size; None where nothing is known of batch sizes."""

    steps: int
    batch: float | None

    @property
    def samples(self) -> float | None:
        """Samples of the run."""
        return None if self.batch is None else round(self.steps * self.batch, 6)


def horizons(fit: CurveFit, budget: Budget, splits: bool) -> list[Horizon]:
    """Horizons within a budget; ``splits``: the law knows what another batch size does."""
    known = fit._state.ranges.batches
    low, high = budget.min_batch, math.inf if budget.max_batch is None else budget.max_batch
    spends = budget.samples is not None or budget.seconds is not None
    if budget.steps is None and not spends:
        raise ConvexlawError("no budget: give steps=, samples=, or seconds= with per_sample=")
    size = budget.batch_size
    if size is not None and not low <= size <= high:
        raise ConvexlawError(f"batch_size = {size:g} lies outside {low:g} to {high:g}")
    if budget.steps is not None and spends:
        size = budget.batch_at(budget.steps)
        if budget.batch_size is not None and abs(size - budget.batch_size) > 0.05 * size:
            raise ConvexlawError(
                f"{budget.steps} steps spend the budget at batch size {size:.6g}, and batch_size = "
                f"{budget.batch_size:g} is given: leave one of the three out"
            )
        if not low <= size <= high or size <= 0:
            _infeasible(budget, size, low, high)
    if size is None and known is not None and known[1] <= 1.05 * known[0]:
        size = known[0]
    if budget.steps is not None:
        if splits and size is None:
            fitted = "" if known is None else f" (fitted: {known[0]:g} to {known[1]:g})"
            raise ConvexlawError(
                f"this fit tells batch sizes apart: give batch_size= or samples= beside the steps{fitted}"
            )
        return [_known(fit, Horizon(budget.steps, size), splits)]
    if size is not None and (not splits or budget.batch_size is not None):
        return [_known(fit, Horizon(_whole(budget, size), size), splits)]
    if known is None:
        raise ConvexlawError(
            "the fitted runs log no batch size: give batch_size= (or steps=) with this budget"
        )
    if not splits:
        raise ConvexlawError(
            f"steps are open and the fit cannot choose them: {no_batch_reason(fit)}; give steps="
        )
    first, last = max(known[0], low), min(known[1], high)
    if (
        known[1] <= 1.05 * known[0]
    ):  # split by a noise scale: a factor of 4 either way, as far as predictions go
        first, last = max(known[0] / 4, low), min(known[0] * 4, high)
    if first > last:
        raise ConvexlawError(
            f"batch sizes from {low:g} to {high:g} lie outside the fitted {known[0]:g} to {known[1]:g}: "
            "widen the limits, or give steps="
        )
    counts = sorted({_whole(budget, b) for b in np.geomspace(first, last, POINTS)})
    within = [t for t in counts if t <= EXTRAPOLATION * fit._state.ranges.steps]
    counts = within or counts[:1]
    return [Horizon(t, budget.batch_at(t)) for t in counts]


def _whole(budget: Budget, batch: float) -> int:
    steps = math.floor(budget.steps_at(batch) * (1 + 1e-12))
    if steps < 2:
        what = f"{budget.samples:g} samples" if budget.samples is not None else f"{budget.seconds:g} seconds"
        raise ConvexlawError(
            f"{what} allow {steps} steps at batch size {batch:g}: at least 2 are needed; give a larger budget"
        )
    return steps


def _infeasible(budget: Budget, size: float, low: float, high: float) -> None:
    steps = budget.steps or 1
    if budget.samples is not None:
        most = "any number" if math.isinf(high) else f"{steps * high:.10g}"
        raise ConvexlawError(
            f"samples = {budget.samples:.10g} cannot be met: {steps} steps with batch sizes from {low:g} to "
            f"{high:g} take {steps * low:.10g} to {most}; change the budget, the limits or the steps"
        )
    per = budget.per_sample or 0.0
    least = steps * (budget.overhead + per * low)
    most = "any time" if math.isinf(high) else f"{steps * (budget.overhead + per * high):.6g}"
    raise ConvexlawError(
        f"seconds = {budget.seconds:.10g} cannot be met: {steps} steps with batch sizes from {low:g} to "
        f"{high:g} take {least:.6g} to {most}; change the budget, the limits or the steps"
    )


def _known(fit: CurveFit, horizon: Horizon, splits: bool) -> Horizon:
    """Refuse a batch size that the law knows nothing of."""
    known = fit._state.ranges.batches
    if splits or horizon.batch is None or known is None:
        return horizon
    if abs(horizon.batch - known[0]) <= 0.05 * known[0]:
        return horizon
    raise ConvexlawError(
        f"this budget means batch size {horizon.batch:.6g}, but {no_batch_reason(fit)}; "
        f"at {known[0]:g} it is {horizon.steps * horizon.batch / known[0]:.0f} steps of the same samples; "
        "or give noise_scale= (sigma^2/G^2 in samples), measured from gradient norms at two batch sizes"
    )
