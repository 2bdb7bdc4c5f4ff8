"""Columns of the loss laws: every law is ``Linf + a x1 + b x2``, x depending on few nonlinear parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._law_inputs import floats, number, per_step, steps_asked
from convexlaw.theory._noise_sum import check_span
from convexlaw.theory._warmup import warmup_end

__all__ = ["Parameter", "RunPath"]

Array = NDArray[np.float64]
Steps = NDArray[np.int64]

S_FLOOR = 3e-4  # of the S in S^-q (spec: avoids the first steps)
Q_GRID = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)
V_TOL = 1e-5  # relative step in v at which the value is exact to 1e-10
PEAKS = (1e-30, 1e30)  # peaks whose squares and powers are far from under- and overflow


@dataclass(frozen=True)
class Parameter:
    """A nonlinear parameter of a law: its box, where a fit starts, and the scale it is searched on.

    Attributes
    ----------
    name : str
    low, high : float
        Bounds of a fit.
    starts : tuple of float
    scale : {"linear", "log", "log1m"}
        Search on x, log x or log(1 - x).
    """

    name: str
    low: float
    high: float
    starts: tuple[float, ...]
    scale: str = "log"

    def inside(self, value: float) -> float:
        """Search coordinate of ``value``."""
        if self.scale == "log":
            return float(np.log(value))
        if self.scale == "log1m":
            return float(-np.log1p(-value))
        return float(value)

    def outside(self, coordinate: float) -> float:
        """Value at a search coordinate, inside the box."""
        value = coordinate
        if self.scale == "log":
            value = float(np.exp(coordinate))
        elif self.scale == "log1m":
            value = float(-np.expm1(-coordinate))
        return float(min(max(value, self.low), self.high))

    def at_end(self, value: float) -> bool:
        """Tell whether ``value`` lies at an end of the box (to a millionth of it on the search scale)."""
        low, high, here = self.inside(self.low), self.inside(self.high), self.inside(value)
        return not low + 1e-6 * (high - low) < here < high - 1e-6 * (high - low)

    def slope(self, value: float) -> float:
        """Differentiate the value by the search coordinate."""
        return value if self.scale == "log" else 1.0 - value if self.scale == "log1m" else 1.0


@dataclass(frozen=True)
class RunPath:
    """What a law needs to know of one run.

    Attributes
    ----------
    lr : (T,) array
        Learning rate of every update.
    at : (n,) int array, increasing
        Steps at which the loss is wanted (0-based, below T).
    batch : (T,) array or None
        Samples (or tokens) of every update.
    weight_decay : float
        Decoupled weight decay, per unit of lr (used by rc4 only).
    init_std : float
        Standard deviation of the weights at the start (used by rc4 only).
    """

    lr: Array
    at: Steps
    batch: Array | None = None
    weight_decay: float = 0.0
    init_std: float = 0.02

    @staticmethod
    def make(
        lr: object,
        at: object = None,
        batch: object = None,
        weight_decay: float = 0.0,
        init_std: float = 0.02,
    ) -> RunPath:
        """Check the arrays and build a path (``at=None``: every step; scalar ``batch``: throughout)."""
        rates = np.ascontiguousarray(floats("lr", lr))
        if rates.ndim != 1 or rates.size == 0:
            raise ConvexlawError(
                f"lr has shape {rates.shape}: a law needs one learning rate per step; pass a 1-D array"
            )
        bad = np.flatnonzero(~np.isfinite(rates) | (rates < 0))
        if bad.size:
            raise ConvexlawError(
                f"lr[{bad[0]}] = {rates[bad[0]]}: learning rates must be finite and not negative; "
                "correct the schedule"
            )
        peak = float(rates.max())
        if peak > 0 and not PEAKS[0] <= peak <= PEAKS[1]:
            raise ConvexlawError(
                f"the largest learning rate is {peak:.3g}: laws take peaks from {PEAKS[0]:g} to "
                f"{PEAKS[1]:g}; give the learning rates that the optimizer used"
            )
        check_span(rates)
        steps = steps_asked(at, rates.size)
        sizes: Array | None = None
        if batch is not None:
            sizes = np.ascontiguousarray(per_step("batch_size", batch, rates.size))
            if not np.all(np.isfinite(sizes) & (sizes > 0)):
                raise ConvexlawError(
                    "batch_size must be finite and positive at every step; correct the column"
                )
        decay, std = number("weight_decay", weight_decay), number("init_std", init_std)
        if not std > 0:
            raise ConvexlawError(f"init_std = {std}: the standard deviation of the weights must be positive")
        if not decay >= 0:
            raise ConvexlawError(f"weight_decay = {decay}: it must be 0 or positive")
        return RunPath(rates, steps, sizes, decay, std)


def effective_lr(path: RunPath) -> Array:
    """Learning rates on the rotational clock: steps relative to the norm of the weights."""
    from convexlaw.theory._law_kernels import clock

    shrink = path.weight_decay * float(path.lr.max())
    if shrink >= 1:
        raise ConvexlawError(
            f"weight_decay = {path.weight_decay:g} times the largest learning rate {path.lr.max():.3g} is "
            f"{shrink:.3g}: one step would turn the weights round; give the decoupled weight decay of AdamW "
            "(weights shrink by lr * weight_decay a step), or use another law"
        )
    return np.asarray(clock(path.lr, path.weight_decay, path.init_std))


def noise_columns(
    lr: Array, at: Steps, qs: Sequence[float], *, free: bool = True, batch: Array | None = None
) -> Array:
    """Noise sums (len(qs), n, 1 or 2) at steps ``at``: the whole, and its part in 1/batch (at the same v)."""
    from convexlaw.theory._noise_sum import noise_sum

    S = np.cumsum(lr)
    last = np.stack([np.maximum(S, S_FLOOR) ** -q for q in qs])
    weight = lr**2 * last
    form = "free" if free else "tail"
    if batch is None:
        return np.asarray(noise_sum(lr, weight, last, at, form=form))[:, :, None]
    if not free:
        both = noise_sum(
            lr, np.concatenate([weight, weight / batch]), np.concatenate([last, last / batch]), at, form=form
        )
        return np.stack([both[: len(qs)], both[len(qs) :]], axis=2)
    from convexlaw.theory import _law_kernels as kernels

    out = np.empty((len(qs), at.size, 2))
    for i in range(len(qs)):
        out[i, :, 0], v = kernels.free_noise(lr, weight[i], last[i], at, V_TOL)
        out[i, :, 1] = kernels.noise_at(lr, weight[i] / batch, last[i] / batch, at, np.maximum(v, 1e-300))
    return out


def powers(S: Array, alpha: float) -> tuple[Array, Array]:
    """``S^-alpha`` and its derivative in alpha; infinite where nothing has moved yet (S = 0)."""
    moved = S > 0
    log_s = np.log(np.where(moved, S, 1.0))
    value = np.exp(-alpha * log_s)
    return np.where(moved, value, np.inf), -log_s * value


@dataclass
class ConvexColumns:
    """Columns 1, S^-alpha, noise sum (and its 1/batch part) of the convex family, for runs laid end to end.

    ``alpha``, ``q``: a number where the law fixes them, None where they are parameters; ``peak``: whether r
    scales the noise with the peak learning rate. ``exact`` evaluates the noise sum at the q asked, not a
    spline.
    """

    paths: Sequence[RunPath]
    alpha: float | None
    q: float | None
    free: bool = True
    on_clock: bool = False
    peak: bool = False
    batch: bool = False
    exact: bool = False
    tick: Callable[[], None] | None = None
    S: Array = field(init=False)

    def __post_init__(self) -> None:
        self._lr = [effective_lr(path) if self.on_clock else path.lr for path in self.paths]
        self.S = np.concatenate([np.cumsum(lr)[p.at] for lr, p in zip(self._lr, self.paths, strict=True)])
        self._log_peak = np.concatenate(
            [np.full(p.at.size, np.log(max(float(p.lr.max()), 1e-300) / 1e-3)) for p in self.paths]
        )
        self._noise = None if self.q is None else self._sums((self.q,))[0]
        self._spline = None
        if self.q is None and not self.exact:
            from scipy.interpolate import CubicSpline

            # log N is nearly linear in q, N itself is not where S is small
            table = self._sums(Q_GRID)
            self._some = np.all(table > 0, axis=0)
            self._spline = CubicSpline(Q_GRID, np.log(np.where(self._some, table, 1.0)))
            self._dspline = self._spline.derivative()
        self.tick = None  # the sums are done; a bar is not to be pickled

    def _sums(self, qs: Sequence[float]) -> Array:
        parts = []
        for lr, p in zip(self._lr, self.paths, strict=True):
            parts.append(noise_columns(lr, p.at, qs, free=self.free, batch=p.batch if self.batch else None))
            if self.tick is not None:
                self.tick()
        return np.concatenate(parts, axis=1)

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Columns (n, p) and their derivatives (n, p, m) at the nonlinear parameters."""
        n = self.S.size
        values = list(map(float, theta))
        slopes: list[tuple[int, int, Array]] = []  # column, parameter, derivative
        index = 0
        alpha = self.alpha
        if alpha is None:
            alpha = values[index]
            power, dpower = powers(self.S, alpha)
            slopes.append((1, index, dpower))
            index += 1
        else:
            power, _ = powers(self.S, alpha)
        if self._noise is not None:
            noise = self._noise
        elif self._spline is None:
            noise = self._sums((values[index],))[0]
            index += 1
        else:
            noise = np.where(self._some, np.exp(self._spline(values[index])), 0.0)
            dnoise = noise * np.asarray(self._dspline(values[index]))
            for j in range(dnoise.shape[1]):
                slopes.append((2 + j, index, dnoise[:, j]))
            index += 1
        if self.peak:
            scale = np.exp(-values[index] * self._log_peak)[:, None]
            noise = noise * scale
            slopes = [(c, k, s * scale[:, 0] if c >= 2 else s) for c, k, s in slopes]
            for j in range(noise.shape[1]):
                slopes.append((2 + j, index, -self._log_peak * noise[:, j]))
        X = np.column_stack([np.ones(n), power, noise])
        dX = np.zeros((n, X.shape[1], len(values)))
        for column, k, slope in slopes:
            dX[:, column, k] = slope
        return X, dX


@dataclass
class AveragedColumns:
    """Columns 1, 1/S, sum(lr^2)/S: the bound of the averaged iterate."""

    paths: Sequence[RunPath]

    def __post_init__(self) -> None:
        first, second = [], []
        for p in self.paths:
            S = np.cumsum(p.lr)[p.at]
            with np.errstate(divide="ignore", invalid="ignore"):
                first.append(np.where(S > 0, 1.0 / S, np.inf))
                second.append(np.where(S > 0, np.cumsum(p.lr**2)[p.at] / S, 0.0))
        one = np.concatenate(first)
        self._X = np.column_stack([np.ones(one.size), one, np.concatenate(second)])

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Columns (n, 3) and their (empty) derivatives."""
        return self._X, np.zeros((*self._X.shape, 0))


@dataclass
class TissueColumns:
    """Columns 1, S1^-alpha, -S2(lambda); the warmup is left out of S2."""

    paths: Sequence[RunPath]

    def __post_init__(self) -> None:
        self.S = np.concatenate([np.cumsum(p.lr)[p.at] for p in self.paths])
        self._start = [max(warmup_end(p.lr) - 1, 0) for p in self.paths]

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Columns (n, 3) and their derivatives by (alpha, lambda)."""
        from convexlaw.theory._law_kernels import tissue_sum

        alpha, lam = map(float, theta)
        power, dpower = powers(self.S, alpha)
        pairs = [tissue_sum(p.lr, start, lam) for p, start in zip(self.paths, self._start, strict=True)]
        total = np.concatenate([pair[0][p.at] for pair, p in zip(pairs, self.paths, strict=True)])
        slope = np.concatenate([pair[1][p.at] for pair, p in zip(pairs, self.paths, strict=True)])
        X = np.column_stack([np.ones(total.size), power, -total])
        dX = np.zeros((*X.shape, 2))
        dX[:, 1, 0] = dpower
        dX[:, 2, 1] = -slope
        return X, dX


@dataclass
class MultiPowerColumns:
    """Columns 1, S^-alpha, LD(C, beta, gamma) of the Multi-Power law."""

    paths: Sequence[RunPath]

    def __post_init__(self) -> None:
        self._cumulative = [np.cumsum(p.lr) for p in self.paths]
        self.S = np.concatenate([S[p.at] for S, p in zip(self._cumulative, self.paths, strict=True)])
        self._memory: tuple[tuple[float, ...], Array, Array] | None = None

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Columns (n, 3) and their derivatives by (alpha, C, beta, gamma)."""
        from convexlaw.theory._law_kernels import multipower_sum

        alpha, *rest = map(float, theta)
        power, dpower = powers(self.S, alpha)
        key = tuple(rest)
        if self._memory is None or self._memory[0] != key:
            pairs = [
                multipower_sum(p.lr, S, p.at, *key) for p, S in zip(self.paths, self._cumulative, strict=True)
            ]
            self._memory = (
                key,
                np.concatenate([pair[0] for pair in pairs]),
                np.concatenate([pair[1] for pair in pairs]),
            )
        _, total, slope = self._memory
        X = np.column_stack([np.ones(total.size), power, total])
        dX = np.zeros((*X.shape, 4))
        dX[:, 1, 0] = dpower
        dX[:, 2, 1:] = slope
        return X, dX
