"""The noise sum of the last-iterate bounds at many horizons, for any weights."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_checks import learning_rates

__all__ = ["check_span", "horizons", "noise_sum"]

Array = NDArray[np.float64]

_START = 2.0  # first node times the largest argument; below it a Gauss rule
_GAUSS = 6
_SPAN = 1e-140  # ratio of learning rates whose squares still are numbers


def noise_sum(
    eta: ArrayLike,
    weights: ArrayLike,
    next_weight: ArrayLike = 1.0,
    at: ArrayLike | None = None,
    *,
    form: str = "free",
    bias: float = 0.0,
    method: str = "auto",
) -> Array:
    """Noise sum N(k) of the last-iterate bounds at horizons k, for any non-negative weights.

    ``N(k) = min_{v>0} bias/(S_{k-1} + v) + sum_{s<k} W_s/(S_{k-1} - S_s + v) + v w_k``, S = cumsum(eta);
    ``form="tail"`` fixes v = eta_k and leaves the bias out.

    Parameters
    ----------
    eta : (T,) array_like
        Learning rates; a step with rate 0 is no step and its weight is ignored.
    weights : (T,) or (Q, T) array_like
        W_s >= 0.
    next_weight : float, (T,), (T+1,), (Q, T) or (Q, T+1) array_like
        w_k >= 0 of the virtual next step; with T values, k = T takes the last.
    at : (n,) array_like of int, optional
        Numbers k of applied updates, in 0..T (tail: 0..T-1); default 0..T-1.
    form : {"free", "tail"}
        Minimum over v, or v = eta_k. Where eta_k = 0 the tail form stands at the last positive step before k;
        where there is none it is 0.
    bias : float
        Coefficient >= 0 of the term that competes with v (free form).
    method : {"auto", "fast", "direct"}
        Sums of exponentials in O(T J), the definition in O(T n), or the cheaper of the two.

    Returns
    -------
    (n,) or (Q, n) array
        Relative error below 2e-11 (fast) or about 1e-12 (direct).

    Raises
    ------
    ConvexlawError
        Shapes that do not match, negative or non-finite values, horizons outside the run.

    References
    ----------
    arXiv 2607.27731, Theorem 1 (the sum); x^-1 as an integral of exponentials by the trapezoidal rule.

    Examples
    --------
    >>> lr = np.array([1.0, 1.0, 0.5])
    >>> noise_sum(lr, lr**2, at=[2], form="tail").tolist()  # 1/1.5 + 1/0.5 + 0.5
    [3.1666666666666665]
    """
    rates = check_span(learning_rates(eta))
    rows, next_rows = _rows(rates.size, weights, next_weight)
    if form not in ("free", "tail"):
        raise ConvexlawError(f"form = {form!r} of a noise sum: give 'free' or 'tail'")
    if not (np.isfinite(bias) and bias >= 0):
        raise ConvexlawError(f"bias = {bias}: give a number >= 0")
    steps = horizons(at, rates.size if form == "free" else rates.size - 1, default=rates.size)
    out = np.empty((len(rows), steps.size))
    for i, (row, following) in enumerate(zip(rows, next_rows, strict=True)):
        out[i] = _one_row(rates, row, following, steps, form == "free", float(bias), method)
    return out[0] if np.ndim(weights) == 1 and np.ndim(next_weight) < 2 else out


def check_span(rates: Array) -> Array:
    """Refuse rates that differ by more than 140 orders of magnitude: their squares would vanish."""
    least = float(rates.min(where=rates > 0, initial=np.inf))
    if least < _SPAN * float(rates.max()):
        raise ConvexlawError(f"lr spans from {least} to {rates.max()}: set rates that small to 0")
    return rates


def horizons(at: ArrayLike | None, largest: int, default: int) -> NDArray[np.int64]:
    """Check 0-based horizons, 0..largest; ``default`` of them from 0 where ``at`` is None."""
    if at is None:
        return np.arange(default)
    found = np.atleast_1d(np.asarray(at))
    if found.ndim != 1 or (found.size and not np.issubdtype(found.dtype, np.integer)):
        raise ConvexlawError(f"at = {at!r}: give horizons as a list of whole numbers")
    bad = found[(found < 0) | (found > largest)] if found.size else found
    if bad.size:
        raise ConvexlawError(f"at contains {bad[0]}: horizons of this run are 0 to {largest}")
    return found.astype(np.int64)


def _rows(size: int, weights: ArrayLike, next_weight: ArrayLike) -> tuple[Array, Array]:
    w = np.asarray(weights, dtype=float)
    if w.ndim not in (1, 2) or w.shape[-1] != size:
        raise ConvexlawError(f"weights have shape {w.shape}: give (T,) or (Q, T) with T = {size}")
    v = np.asarray(next_weight, dtype=float)
    if v.ndim == 0:
        v = np.full(size + 1, float(v))
    if v.ndim > 2 or v.shape[-1] not in (size, size + 1):
        raise ConvexlawError(
            f"next_weight has shape {v.shape}: give a number or T or T + 1 values, T = {size}"
        )
    if v.shape[-1] == size:
        v = np.concatenate([v, v[..., -1:]], axis=-1)
    for name, x in (("weights", w), ("next_weight", v)):
        if not (np.isfinite(x).all() and (x >= 0).all()):
            raise ConvexlawError(f"{name} hold a negative or non-finite value; give numbers >= 0")
    w, v = np.atleast_2d(w), np.atleast_2d(v)
    q = max(len(w), len(v))
    if len(w) not in (1, q) or len(v) not in (1, q):
        raise ConvexlawError(f"{len(w)} rows of weights and {len(v)} of next_weight: give one or as many")
    return np.broadcast_to(w, (q, size)), np.broadcast_to(v, (q, size + 1))


def _one_row(
    eta: Array, weights: Array, following: Array, at: NDArray[np.int64], free: bool, bias: float, method: str
) -> Array:
    out = np.zeros(at.size)
    positive = np.flatnonzero(eta > 0)
    # number of positive steps before k (free), or position of the last one at or before k (tail)
    place = np.searchsorted(positive, at, side="left" if free else "right") - (0 if free else 1)
    known = place >= 0
    if not known.any():
        return out
    reads, w = place[known], following[at[known]] if free else following[positive[place[known]]]
    order = np.argsort(reads, kind="stable")
    needed = int(reads.max()) + (0 if free else 1)
    steps, load = eta[positive[:needed]], weights[positive[:needed]]
    x_unit = float(steps.sum()) if needed else 1.0
    w_unit = float(load.max()) if needed and load.max() > 0 else 1.0
    scale = w_unit / x_unit
    args = (steps / x_unit, load / w_unit)
    sums = _sums(*args, reads[order], w[order] * x_unit / scale, bias / w_unit, free, method)
    out[np.flatnonzero(known)[order]] = sums * scale
    return out


def _sums(
    eta: Array, weights: Array, reads: NDArray[np.int64], w: Array, bias: float, free: bool, method: str
) -> Array:
    from convexlaw.theory import _last_iterate_kernels as kernels

    if method not in ("auto", "fast", "direct"):
        raise ConvexlawError(f"method = {method!r}: give 'auto', 'fast' or 'direct'")
    smallest = float(eta.min()) if eta.size else 1.0
    work = float(reads.sum()) * (4 if free else 1)
    direct = method == "direct" or (method == "auto" and work < 60 * eta.size * (3 if free else 1))
    if direct:
        return np.asarray(kernels.direct_sums(eta, weights, reads, w, bias, free))
    largest = 1.0
    if free:
        # at the optimum w = sum W/(d+v)^2 + bias/(S+v)^2 <= (sum W + bias)/v^2 bounds the arguments d + v
        totals = np.concatenate([[0.0], np.cumsum(weights)])[reads] + bias
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.sqrt(totals / w)[(w > 0) & (totals > 0)]
        largest += float(reach.max()) if reach.size else 0.0
    lam, omega = _nodes(smallest, largest, kernels.LANES, kernels.CUT)
    return np.asarray(kernels.fast_sums(eta, weights, lam, omega, reads, w, bias, free))


def _nodes(smallest: float, largest: float, lanes: int, cut: float) -> tuple[Array, Array]:
    """Nodes and weights with sum_j omega_j exp(-lam_j x) = 1/x (1 + 1e-11) for smallest <= x <= largest.

    1/x = int exp(u - x e^u) du by the trapezoidal rule with spacing h = ln2/2: its relative error is
    2|Gamma(1 + 2 pi i/h)| = 9e-12, and the nodes double every second one. The infinite tail of small nodes is
    replaced by a Gauss rule.
    """
    h = np.log(2) / 2
    first = _START / largest
    ends = int(np.ceil(2 * np.log2(cut / (smallest * first)))) + 1
    chain = 2 + lanes * max(1, -(-(ends - 2) // lanes))
    lam = first * 2.0 ** (np.arange(chain) / 2)
    gauss, gauss_weights = _left_rule()
    nodes = np.concatenate([gauss * first, lam])
    omega = np.concatenate([gauss_weights * first, h * lam])
    return nodes, omega


@lru_cache(maxsize=1)
def _left_rule() -> tuple[Array, Array]:
    """Gauss rule for the measure of the nodes below the first one, in units of it (Lanczos on its nodes)."""
    h = np.log(2) / 2
    x = 2.0 ** (-np.arange(1, 121) / 2)
    mass = h * x
    q = np.sqrt(mass / mass.sum())
    basis = [q]
    diagonal, off = [], []
    for k in range(_GAUSS):
        z = x * basis[-1]
        diagonal.append(float(basis[-1] @ z))
        for _ in range(2):
            for b in basis:
                z = z - (b @ z) * b
        off.append(float(np.linalg.norm(z)))
        basis.append(z / off[k])
    matrix = np.diag(diagonal) + np.diag(off[:-1], 1) + np.diag(off[:-1], -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes, mass.sum() * vectors[0] ** 2
