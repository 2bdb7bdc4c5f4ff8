"""Constants of continuous schedule shapes: mean, noise integral, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_shapes import Shape
from convexlaw.theory.schedules import parse_parameters, shape

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ends", "ShapeConstants", "evaluate", "integrals", "shape_constants", "shape_table"]

Array = NDArray[np.float64]

_POINTS = 16
_OCTAVES = 36  # graded panels reach 2^-36 from either end; beyond, the local power law is integrated exactly
_COSINE_I = 2.122143353532141  # int cos^4(pi u/2) / int_u^1 cos^2
_SQRT_I = 3 - 1.5 * math.log(3)


@dataclass(frozen=True)
class Ends:
    """Behaviour of a shape h at the two ends of its support.

    Attributes
    ----------
    mean : float
        s, the integral of h over [0, 1].
    noise : float
        I, the integral of h^2/tail; infinite where the bound grows faster than 1/sqrt(T).
    floor : float
        Limit of h at the end of its support (0 for a decay to zero).
    start : float
        Limit of u h(u)^2/s at u = 0 (0 for bounded shapes).
    """

    mean: float
    noise: float
    floor: float
    start: float


@dataclass(frozen=True)
class ShapeConstants(Result):
    """Closed-form constants of a schedule shape h (tail form, constant gradient norm G, distance D).

    Attributes
    ----------
    shape : str
        Schedule text.
    s : float
        Mean of h.
    I : float
        Integral of h^2/tail, tail(u) = integral of h from u to 1.
    peak_factor : float
        Optimal peak learning rate times sqrt(T) G/D: 1/sqrt(s I).
    bound_factor : float
        Bound at that peak times sqrt(T)/(D G): sqrt(I/s).
    batch_gain : float
        Noise at a static batch over noise at the optimal batch schedule: I/(4 s).
    """

    shape: str
    s: float
    I: float  # noqa: E741

    @property
    def peak_factor(self) -> float:
        """Optimal peak times sqrt(T) G/D."""
        return 1 / math.sqrt(self.s * self.I)

    @property
    def bound_factor(self) -> float:
        """Bound at the optimal peak times sqrt(T)/(D G)."""
        return math.sqrt(self.I / self.s)

    @property
    def batch_gain(self) -> float:
        """Static over scheduled batch noise."""
        return self.I / (4 * self.s)

    def __str__(self) -> str:
        return (
            f"shape {self.shape}: s = {self.s:.6g}, I = {self.I:.6g}\n"
            f"best peak = {self.peak_factor:.6g} D/(G sqrt T), bound = {self.bound_factor:.6g} D G/sqrt T\n"
            f"static over scheduled batch noise = {self.batch_gain:.6g}"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row with every constant."""
        return shape_table([self])


def shape_constants(name: str, **parameters: Any) -> ShapeConstants:
    """Constants of a schedule shape: closed forms where they exist, otherwise quadrature.

    Parameters
    ----------
    name : str
        Schedule name or text (``steps`` and ``peak`` may be missing), as in :func:`schedules.shape`.
    **parameters
        Further parameters of the schedule.

    Returns
    -------
    ShapeConstants
        ``I`` is infinite for a shape with a positive last learning rate; its bound then grows with log T, and
        the factors are 0 and infinite.

    Raises
    ------
    ConvexlawError
        Unknown schedule or parameter.

    References
    ----------
    arXiv 2602.07145, Table 1; arXiv 2607.27731, Table 3.

    Examples
    --------
    >>> print(shape_constants("wsd", decay=0.2))
    shape wsd:decay=0.2: s = 0.9, I = 4.19722
    best peak = 0.514515 D/(G sqrt T), bound = 2.15953 D G/sqrt T
    static over scheduled batch noise = 1.1659
    """
    kind, written = parse_parameters(name)
    values = {**written, **parameters}
    h = shape(kind, **values)  # checks every value
    text = kind + (":" if values else "") + ",".join(f"{k}={v}" for k, v in values.items())
    known = None
    if values.get("end", 0) == 0 and values.get("warmup", 0) == 0:
        known = _closed(kind, values)
    s, noise = known if known is not None else (lambda e: (e.mean, e.noise))(integrals(h))
    return ShapeConstants(text, s, noise)


def shape_table(shapes: Any = None) -> pd.DataFrame:
    """Table of constants: s, I, optimal peak factor, bound factor, batch gain.

    Parameters
    ----------
    shapes : list of str or ShapeConstants, optional
        Default: the shapes of the papers.

    Returns
    -------
    DataFrame
        One row a shape.

    Examples
    --------
    >>> shape_table(["linear", "cosine"]).round(4)
        shape    s       I  peak_factor  bound_factor  batch_gain
    0  linear  0.5  2.0000       1.0000        2.0000      1.0000
    1  cosine  0.5  2.1221       0.9708        2.0602      1.0611
    """
    import pandas as pd

    if shapes is None:
        shapes = ["constant", "linear", "cosine", "one_minus_sqrt", "poly:power=2", "poly:power=3"]
        shapes += [f"wsd:decay={c}" for c in (0.1, 0.2, 0.5)] + ["wsd:decay=0.2,cooldown=sqrt"]
    rows = [c if isinstance(c, ShapeConstants) else shape_constants(c) for c in shapes]
    columns = ("shape", "s", "I", "peak_factor", "bound_factor", "batch_gain")
    return pd.DataFrame([{name: getattr(c, name) for name in columns} for c in rows])


def _closed(kind: str, values: dict[str, Any]) -> tuple[float, float] | None:
    """Mean and noise integral of a shape that ends at 0, where they are known."""
    if kind == "constant":
        return 1.0, math.inf
    if kind == "poly":
        k = float(values["power"])
        return 1 / (k + 1), (k + 1) / k
    cooled = {"linear": (0.5, 2.0), "cosine": (0.5, _COSINE_I), "sqrt": (1 / 3, _SQRT_I)}
    if kind in ("linear", "cosine", "one_minus_sqrt"):
        return cooled["sqrt" if kind == "one_minus_sqrt" else kind]
    if kind == "wsd":
        c = float(values.get("decay", 0.2))
        mean, noise = cooled[values.get("cooldown", "linear")]
        if c == 0:
            return 1.0, math.inf
        s = 1 - c + c * mean
        return s, noise + math.log(s / (c * mean))
    return None


def integrals(h: Shape) -> Ends:
    """Mean, noise integral and end behaviour of a shape on [0, 1] by graded, adaptive Gauss panels."""
    end = _support_end(h)
    if end == 0:
        return Ends(0.0, math.inf, 0.0, 0.0)

    def g(x: Array) -> Array:
        return _values(h, end * x)

    probes = 2.0 ** -np.array([18.0, 27.0, 36.0])
    floor, power = _right_end(g(1 - probes), g)
    start = g(probes)
    rise = float(np.log2(start[2] / start[1]) / 9) if start[1] > 0 and start[2] > 0 else 0.0
    rise = 0.0 if rise < 1e-2 else rise
    if rise >= 1:
        return Ends(math.inf, math.inf, floor, math.inf)
    edges, heights = _panels(g)
    widths = np.diff(edges)
    w = leggauss(_POINTS)[1]
    parts = heights @ w * widths / 2
    # beyond the panels h is constant or h_cut (x/cut)^power, integrated exactly
    cut = 2.0**-_OCTAVES
    h_cut = float(g(np.array([1 - cut]))[0])
    beyond = h_cut * cut / (1 + (power or 0.0))
    ahead = float(start[2]) * cut / (1 - rise)
    tails = np.concatenate([np.cumsum(parts[::-1])[::-1], [0.0]]) + beyond
    mean = float(tails[0] + ahead) * end
    growth_left = float(cut * start[2] ** 2 / (mean / end)) if rise >= 0.49 else 0.0
    if rise >= 0.51:
        growth_left = math.inf
    if floor > 0 or growth_left > 0:
        return Ends(mean, math.inf, floor, growth_left)
    inside = (_integration_matrix() @ heights[..., None])[..., 0] * widths[:, None] / 2
    tail = tails[1:, None] + inside
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(heights > 0, heights**2 / tail, 0.0)
    noise = float((ratio @ w * widths / 2).sum())
    if power is not None:
        noise += h_cut * (power + 1) / power
    noise += float(start[2] ** 2 * cut / (1 - 2 * rise) / (mean / end))
    return Ends(mean, noise, 0.0, 0.0)


def _right_end(values: Array, g: Shape) -> tuple[float, float | None]:
    """Floor at the end, and the power of the decay where the shape reaches 0 like one (else None)."""
    a, b, c = (float(v) for v in values)
    top = float(g(np.linspace(0.001, 0.999, 999)).max())
    if c <= 1e-12 * top:
        return 0.0, None
    if c > b > a and c / b > 1.01:
        return math.inf, None
    # a, b, c = f + k x^p at x = 2^-18, 2^-27, 2^-36: Aitken gives f exactly
    bend = a + c - 2 * b
    f = (a * c - b * b) / bend if bend > 1e-9 * c else c
    if f > 1e-3 * c:
        return (c if f > c else f), None
    return 0.0, float(np.log2(b / c) / 9)


def evaluate(h: Callable[[Any], Any], u: Array) -> Array:
    """Values of h at ``u``, also where h takes one number at a time."""
    try:
        out = np.asarray(h(u), dtype=float)
    except (TypeError, ValueError):
        out = np.empty(0)
    return out if out.shape == u.shape else np.array([float(h(x)) for x in u.ravel()]).reshape(u.shape)


def _values(h: Callable[[Any], Any], u: Array) -> Array:
    out = evaluate(h, u)
    bad = ~(np.isfinite(out) & (out >= 0))
    if bad.any():
        i = np.flatnonzero(bad.ravel())[0]
        raise ConvexlawError(
            f"shape({u.ravel()[i]:.6g}) = {out.ravel()[i]}: a shape is finite and >= 0 inside (0, 1)"
        )
    return out


def _support_end(h: Shape) -> float:
    grid = np.linspace(0, 1, 4097)[1:-1]
    positive = np.flatnonzero(_values(h, grid) > 0)
    if _values(h, np.array([1 - 2.0**-_OCTAVES]))[0] > 0:
        return 1.0
    if positive.size == 0:
        return 0.0
    low, high = grid[positive[-1]], 1.0 if positive[-1] + 1 == grid.size else grid[positive[-1] + 1]
    if high == 1.0:
        return 1.0  # a decay whose last values round to zero
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _values(h, np.array([middle]))[0] > 0 else (low, middle)
    return float(low)


def _panels(g: Shape) -> tuple[Array, Array]:
    """Edges of panels on [2^-K, 1 - 2^-K] and values at their nodes; split where 16 points do not do."""
    x, w = leggauss(_POINTS)
    graded = 2.0 ** -np.arange(_OCTAVES, 0, -1.0)
    edges = np.concatenate([graded, 1 - graded[::-1][1:]])

    def sample(e: Array) -> Array:
        return g(0.5 * (e[1:] + e[:-1])[:, None] + 0.5 * np.diff(e)[:, None] * x)

    for _ in range(50):
        heights = sample(edges)
        widths = np.diff(edges)
        middles = 0.5 * (edges[1:] + edges[:-1])
        halves = np.insert(edges, np.arange(1, edges.size), middles)
        finer = sample(halves)
        whole = heights @ w * widths / 2
        split = (finer @ w).reshape(-1, 2).sum(axis=1) * widths / 4
        tails = np.cumsum(whole[::-1])[::-1]
        allowed = 1e-13 * tails + 1e-15 * widths * heights.max()
        coarse = (np.abs(whole - split) > allowed) & (widths > 1e-14)
        if not coarse.any():
            break
        edges = np.insert(edges, np.flatnonzero(coarse) + 1, middles[coarse])
    return edges, sample(edges)


def _integration_matrix() -> Array:
    """Matrix A with (A f)_i = integral of the interpolant of f from node i to 1, on [-1, 1]."""
    x, w = leggauss(_POINTS)
    v = legvander(x, _POINTS)
    k = np.arange(_POINTS)
    coefficients = (k + 0.5)[:, None] * v[:, :_POINTS].T * w  # values -> Legendre coefficients
    # int_x^1 P_k = (P_{k-1}(x) - P_{k+1}(x))/(2k+1), and 1 - x for k = 0
    upper = np.empty((_POINTS, _POINTS))
    upper[:, 0] = 1 - x
    for n in range(1, _POINTS):
        upper[:, n] = (v[:, n - 1] - v[:, n + 1]) / (2 * n + 1)
    return np.asarray(upper @ coefficients)
