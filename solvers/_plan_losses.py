"""Losses of schedules that were not run, by a fitted law and by its bootstrap draws, batch sizes included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._curve_fit import CurveFit
from convexlaw.solvers._fit_intervals import _over, curve_draws, thinned
from convexlaw.theory._law_columns import S_FLOOR, effective_lr
from convexlaw.theory.laws import CurveLaw, RunPath, curve_law

__all__ = ["View", "draws_of", "limits_of", "lowest", "no_batch_reason", "view_of"]

Array = NDArray[np.float64]
Runs = Sequence[tuple[Array, "Array | float | None"]]


def no_batch_reason(fit: CurveFit) -> str:
    """Say why a fit cannot tell what another batch size does; empty where it can."""
    if fit._state.batch:
        return ""
    known = fit._state.ranges.batches
    if "b_batch" not in curve_law(fit.law).__dataclass_fields__:
        return f"law {fit.law!r} has no part in 1/batch: fit a law of the convex family (cvx4q, rc4, ...)"
    if known is None:
        return "the fitted runs log no batch size: add a column batch_size, with at least two sizes in it"
    if known[1] > 1.05 * known[0]:
        return "some fitted run logs no batch size: add the column batch_size to every run"
    return (
        f"every fitted step uses the batch size {known[0]:g}, so of the noise only the sum "
        f"b + b_batch/{known[0]:g} can be told (G^2 + sigma^2/B of the bound): fit at least one run with "
        "another batch size"
    )


def draws_of(fit: CurveFit) -> Array | None:
    """Bootstrap draws of the parameters: those of the fit, or new ones where its logs are here; else None."""
    state = fit._state
    if not state.draws:
        if state.problem is None:
            return None
        curve_draws(fit, _over(fit, "auto"), 1000, 10, 0, 1, None)
    return thinned(fit.law, next(reversed(state.draws.values())))


def limits_of(values: Array, level: float) -> tuple[float, float]:
    """Central limits of draws; order statistics, since draws may be infinite."""
    ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(ends[0]), float(ends[1])


def lowest(x: Array, loss: Array) -> float:
    """Place of the minimum of a curve on a grid, by a parabola through three points."""
    i = int(np.argmin(loss))
    if i in (0, loss.size - 1):
        return float(x[i])
    near, y = x[i - 1 : i + 2] - x[i], loss[i - 1 : i + 2]
    a, b, _ = np.polyfit(near, y, 2)
    return float(x[i] - b / (2 * a)) if a > 0 else float(x[i])


@dataclass(frozen=True)
class View:
    """A fitted law as the planner uses it.

    Attributes
    ----------
    law : type
        Class of the law.
    values : (p,) array
        Parameters, linear ones first.
    draws : (n, p) array or None
        The same of the bootstrap draws.
    batch : bool
        Whether a part of the noise falls as 1/batch.
    weight_decay, init_std : float
        Constants of the clock.
    q : float
        Exponent of the noise's decay in the sum of learning rates.
    """

    law: type[CurveLaw]
    values: Array
    draws: Array | None
    batch: bool
    weight_decay: float
    init_std: float
    q: float

    def losses(self, runs: Runs) -> tuple[Array, Array | None]:
        """Loss after the last update of each run, (n,), and of every draw, (draws, n)."""
        paths = []
        for lr, batch in runs:
            # the value at step T of the schedule continued by one step
            sizes = None
            if self.batch:
                sizes = np.broadcast_to(np.asarray(batch, dtype=np.float64), lr.shape)
                sizes = np.append(sizes, sizes[-1])
            paths.append(self._path(np.append(lr, lr[-1]), [lr.size], sizes))
        return self._evaluate(paths)

    def curve(
        self, lr: Array, batch: Array | float | None, at: NDArray[np.intp]
    ) -> tuple[Array, Array | None]:
        """Losses of one run at steps ``at`` (T: after the last update), and of every draw."""
        sizes = None
        if self.batch:
            sizes = np.broadcast_to(np.asarray(batch, dtype=np.float64), lr.shape)
            sizes = np.append(sizes, sizes[-1])
        return self._evaluate([self._path(np.append(lr, lr[-1]), at, sizes)])

    def best_peak(
        self, unit: Array, batch: Array | float | None, grid: Array
    ) -> tuple[float, float, Array | None]:
        """Best peak of a schedule ``unit`` of peak 1 on a grid, its loss, and the best peak of every draw."""
        x = np.log(grid)
        step = x[1] - x[0]
        wider = np.concatenate(
            [[x[0] - step], x, [x[-1] + step]]
        )  # a parabola at an end needs a point beyond
        losses, drawn = self.losses([(math.exp(y) * unit, batch) for y in wider])

        def inside(row: Array) -> float:
            return float(np.exp(np.clip(lowest(wider, row), x[0], x[-1])))

        peak = inside(losses)
        each = None if drawn is None else np.array([inside(row) for row in drawn])
        return peak, float(self.bare().losses([(peak * unit, batch)])[0][0]), each

    def bare(self) -> View:
        """Give the same without its draws."""
        return replace(self, draws=None)

    def noise(self, lr: Array) -> tuple[Array, Array | None]:
        """Learning rates and noise profile whose bound the law is: what its batch sizes are planned for."""
        if self.law.needs_clock:
            return effective_lr(self._path(lr, [0], None)), None
        if self.q:
            return lr, np.maximum(np.cumsum(lr), S_FLOOR) ** (-self.q / 2)
        return lr, None

    def _path(self, lr: Array, at: Any, batch: Array | None) -> RunPath:
        return RunPath.make(lr, at, batch, self.weight_decay, self.init_std)

    def _evaluate(self, paths: list[RunPath]) -> tuple[Array, Array | None]:
        columns = self.law.columns(paths, batch=self.batch)
        p = len(self.law.linear(self.batch))

        def at(values: Array) -> Array:
            with np.errstate(invalid="ignore"):
                found = columns(values[p:])[0] @ values[:p]
            return np.where(np.isnan(found), np.inf, found)

        drawn = None if self.draws is None else np.array([at(draw) for draw in self.draws])
        return at(self.values), drawn


def view_of(
    fit: CurveFit,
    *,
    noise_scale: float | None = None,
    weight_decay: float | None = None,
    draws: bool = True,
) -> View:
    """View of a fit; ``noise_scale`` splits the noise of a fit that saw one batch size alone.

    With sigma^2/G^2 = noise_scale (samples) and all runs at batch B0, the fitted b is
    b1 (1 + noise_scale/B0): b1 is the part that stays, b1 noise_scale the part that falls as 1/batch.
    0 and infinity are the ends.
    """
    state, cls = fit._state, curve_law(fit.law)
    values = np.array(list(fit.params.values()))
    drawn = draws_of(fit) if draws else None
    batch = state.batch
    if noise_scale is not None:
        if batch:
            raise ConvexlawError(
                "noise_scale is given but this fit has its own (b_batch/b): leave noise_scale out"
            )
        known = state.ranges.batches
        if known is None or known[1] > 1.05 * known[0] or "b_batch" not in cls.__dataclass_fields__:
            raise ConvexlawError(
                f"noise_scale splits the noise of runs at one batch size, but {no_batch_reason(fit)}"
            )
        if not noise_scale >= 0:
            raise ConvexlawError(f"noise_scale = {noise_scale}: give sigma^2/G^2 in samples, at least 0")
        values = _split(values, noise_scale, known[0])
        drawn = None if drawn is None else _split(drawn, noise_scale, known[0])
        batch = True
    q = fit.params.get("q", cls.kind.get("q") or 0.0)
    decay = state.weight_decay if weight_decay is None else weight_decay
    return View(cls, values, drawn, batch, float(decay or 0.0), state.init_std, float(q))


def _split(values: Array, noise_scale: float, batch: float) -> Array:
    total = values[..., 2]
    share = 1.0 if np.isinf(noise_scale) else noise_scale / (noise_scale + batch)
    return np.concatenate(
        [
            values[..., :2],
            (total * (1 - share))[..., None],
            (total * share * batch)[..., None],
            values[..., 3:],
        ],
        axis=-1,
    )
