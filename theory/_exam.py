"""The qualifying exam of a schedule shape: whether its bound falls like 1/sqrt(T)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory._noise_sum import noise_sum
from convexlaw.theory._schedule_checks import learning_rates
from convexlaw.theory._shape_constants import Ends, evaluate, integrals
from convexlaw.theory.schedules import shape as named_shape

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Exam", "qualify"]

Array = NDArray[np.float64]

_SHARE = 0.2  # a floor below this share of the last step cannot be told from a decay to zero in an array
_HORIZONS = (1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Exam(Result):
    """Verdict of :func:`qualify`, with its diagnosis.

    Attributes
    ----------
    shape : str
        What was examined.
    qualified : bool
        The bound at eta_ref/sqrt(T) is O(1/sqrt T): mean > 0 and I finite.
    s : float
        Mean of h.
    I : float
        Integral of h^2/tail over [0, 1]; infinite where not qualified (for an array: its sum at T steps).
    floor : float
        Limit of h at the end, relative to the peak; a decay to zero has 0.
    growth : float
        Increase of bound * sqrt(T) per e-fold of T, in units of G^2 eta_ref: h(1)/2 (0 when qualified).
    reason : str
        Why.
    horizons : tuple of int
        Numbers of steps T at which the bound was evaluated.
    scaled : tuple of float
        bound * sqrt(T) there, tail form at peak 1/sqrt(T), D = G = 1.
    optimal : tuple of float
        bound * sqrt(T) there at the best peak.
    """

    _figure = "exam:plot_exam"

    shape: str
    qualified: bool
    s: float
    I: float  # noqa: E741
    floor: float
    growth: float
    reason: str
    horizons: tuple[int, ...]
    scaled: tuple[float, ...]
    optimal: tuple[float, ...]

    def __bool__(self) -> bool:
        return self.qualified

    @property
    def slope(self) -> float:
        """Slope of log(bound at the best peak) against log T: a picture, not the verdict."""
        if len(self.horizons) < 2:
            return math.nan
        return float(np.polyfit(np.log(self.horizons), np.log(self.optimal), 1)[0]) - 0.5

    def __str__(self) -> str:
        verdict = "qualified" if self.qualified else "not qualified"
        lines = [
            f"shape {self.shape}: {verdict}",
            self.reason,
            f"s = {self.s:.6g}, I = {self.I:.6g}, floor h(1) = {self.floor:.6g}",
            f"growth of bound*sqrt(T) = {self.growth:.6g} G^2 eta_ref per e-fold of T",
        ]
        rows = zip(self.horizons, self.scaled, strict=True)
        lines += [f"T = {t}: bound*sqrt(T) = {v:.4f} at peak 1/sqrt(T)" for t, v in rows]
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """One row a horizon: steps, scaled, optimal."""
        import pandas as pd

        return pd.DataFrame({"steps": self.horizons, "scaled": self.scaled, "optimal": self.optimal})


def qualify(shape: str | Callable[[Any], Any] | ArrayLike) -> Exam:
    """Qualifying exam: whether the last-iterate bound of a schedule falls like 1/sqrt(T).

    The criterion is the integral one: with h(t/T) the shape, qualified if and only if mean h > 0 and
    I = integral of h^2/tail is finite. Any positive last learning rate h(1) fails by a logarithm:
    bound * sqrt(T) grows by h(1)/2 per e-fold of T, which may still be small; floor and growth are reported
    beside the verdict.

    Parameters
    ----------
    shape : str, callable or (T,) array_like
        Schedule name or text (``"wsd:decay=0.1"``); a function h(u) on [0, 1]; or learning rates, taken
        relative to their peak, whose floor is extrapolated from the last steps to the step after the last.

    Returns
    -------
    Exam

    Raises
    ------
    ConvexlawError
        Unknown name; negative or non-finite values; an array of fewer than 16 positive steps.

    References
    ----------
    arXiv 2602.07145, Condition 2.5 (the integral criterion for h(t/T) is derived from it).

    Examples
    --------
    >>> exam = qualify("linear:end=0.1")
    >>> exam.qualified, round(exam.floor, 6), round(exam.growth, 6)
    (False, 0.1, 0.05)
    >>> bool(qualify("cosine"))
    True
    """
    if isinstance(shape, str) or callable(shape):
        h = named_shape(shape) if isinstance(shape, str) else shape
        name = shape if isinstance(shape, str) else getattr(shape, "__name__", "function")
        ends = integrals(h)
        # nothing to evaluate where the shape has no mean
        horizons = _HORIZONS if 0 < ends.mean < math.inf else ()
        rows = [_evaluate(_sampled(h, t)) for t in horizons]
        return _exam(name, ends, horizons, rows)
    lr = learning_rates(shape)
    positive = np.flatnonzero(lr > 0)
    if positive.size == 0:
        return _exam("array", Ends(0.0, math.inf, 0.0, 0.0), (), [])
    if positive.size < 16:
        raise ConvexlawError(f"{positive.size} positive steps are too few for an exam; give 16, or a shape")
    h = lr / lr.max()
    floor = _extrapolated(h[: positive[-1] + 1])
    s, noise = _sums(h)
    ends = Ends(s, noise, floor if floor > _SHARE * h[positive[-1]] else 0.0, 0.0)
    return _exam(f"array of {lr.size} steps", ends, (lr.size,), [_evaluate(h)])


def _exam(name: str, ends: Ends, horizons: tuple[int, ...], rows: list[tuple[float, float]]) -> Exam:
    growth = 0.5 * (ends.floor + ends.start)
    if ends.mean == 0:
        reason, growth = "the mean of h is 0: there is no step", math.inf
    elif math.isinf(ends.mean):
        reason = "the mean of h is infinite: h is not integrable at 0"
    elif ends.floor > 0:
        reason = f"h ends at {ends.floor:.6g}, not at 0: h^2/tail ~ h(1)/(1-u), so the bound grows with log T"
    elif ends.start > 0:
        reason = "h^2 is not integrable at 0, so the bound grows with T"
    else:
        reason = "mean h > 0 and the integral of h^2/tail is finite: the bound is O(1/sqrt T)"
    ok = 0 < ends.mean < math.inf and ends.floor == 0 and ends.start == 0
    scaled, optimal = tuple(r[0] for r in rows), tuple(r[1] for r in rows)
    return Exam(name, ok, ends.mean, ends.noise, ends.floor, growth, reason, horizons, scaled, optimal)


def _sampled(h: Callable[[Any], Any], steps: int) -> Array:
    u = np.arange(steps) / steps
    with np.errstate(divide="ignore", invalid="ignore"):
        try:
            first = float(evaluate(h, u[:1])[0])
        except ZeroDivisionError:
            first = math.inf
    # a shape that is infinite at 0 starts at the first step
    return evaluate(h, u if math.isfinite(first) else np.arange(1, steps + 1) / steps)


def _sums(h: Array) -> tuple[float, float]:
    return float(h.mean()), float(noise_sum(h, h**2, at=[h.size - 1], form="tail")[0])


def _evaluate(h: Array) -> tuple[float, float]:
    s, noise = _sums(h)
    return 0.5 / s + 0.5 * noise, math.sqrt(noise / s)


def _extrapolated(h: Array) -> float:
    """Limit of h one step after its end, from the values 1, 2 and 4 steps before it: exact for f + k x^p."""
    near, middle, far = h[-1], h[-2], h[-4]
    bend = near + far - 2 * middle
    if abs(bend) <= 1e-9 * near:
        return float(near)
    return float(np.clip((near * far - middle * middle) / bend, 0.0, near))
