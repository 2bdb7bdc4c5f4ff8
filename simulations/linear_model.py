"""Random linear models ``y = X beta + w`` in the scaling of the theory, and what a fit finds in them.

Every design has columns of mean square norm 1 (entries of variance 1/n), as in the state evolution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory.scalar_limit import Prior

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["DESIGNS", "LinearModel", "Selection", "design_matrix", "selection", "simulate"]

DESIGNS = ("gaussian", "rademacher", "ar", "equicorrelated", "arma", "bernoulli")
"""Kinds of designs that can be drawn."""
_BURN = 200  # steps after which an ARMA row has forgotten its start


def design_matrix(
    kind: str,
    n: int,
    p: int,
    rng: np.random.Generator | int | None = None,
    *,
    rho: float = 0.5,
    ma: float = 0.0,
    density: float = 0.1,
) -> Any:
    """Draw a design with columns of mean square norm 1.

    Parameters
    ----------
    kind : {"gaussian", "rademacher", "ar", "equicorrelated", "arma", "bernoulli"}
        Independent N(0, 1/n) entries; independent signs over sqrt(n); Gaussian rows with correlations
        ``rho^|i-j|``; Gaussian rows with all correlations ``rho``; rows of a stationary ARMA(1, 1) process
        with coefficients ``rho`` and ``ma``; sparse, an entry being nonzero with probability ``density``,
        then a sign over sqrt(n density).
    n, p : int
        Rows and columns.
    rng : numpy Generator or seed, optional
    rho : float
        In (-1, 1); in [0, 1) for equicorrelated.
    ma : float
        Moving-average coefficient.
    density : float
        Share of nonzero entries, in (0, 1].

    Returns
    -------
    ndarray (Fortran order) or scipy sparse CSC array, shape (n, p)

    Raises
    ------
    ConvexlawError
        Unknown kind, or a number out of range.

    Examples
    --------
    >>> X = design_matrix("ar", 2000, 3, 0, rho=0.8)
    >>> round(float(X[:, 0] @ X[:, 1]), 1)
    0.8
    """
    if kind not in DESIGNS:
        raise ConvexlawError(f"design {kind!r} is unknown; the designs are {', '.join(DESIGNS)}")
    if n < 1 or p < 1:
        raise ConvexlawError(f"n = {n!r}, p = {p!r}: both must be at least 1")
    low = 0.0 if kind == "equicorrelated" else -1.0
    if not low <= rho < 1.0 or rho == -1.0:
        raise ConvexlawError(f"rho = {rho!r}: must lie in {'[0' if low == 0 else '(-1'}, 1) for {kind}")
    if not 0 < density <= 1:
        raise ConvexlawError(f"density = {density!r}: the share of nonzero entries must lie in (0, 1]")
    source = np.random.default_rng(rng)
    if kind == "bernoulli":
        return _sparse(n, p, density, source)
    if kind == "rademacher":
        X = 2.0 * source.integers(0, 2, size=(p, n)) - 1.0
    elif kind == "equicorrelated":
        X = math.sqrt(rho) * source.standard_normal(n) + math.sqrt(1 - rho) * source.standard_normal((p, n))
    elif kind in ("ar", "arma"):
        X = _arma(n, p, rho, ma if kind == "arma" else 0.0, source)
    else:
        X = source.standard_normal((p, n))
    X /= math.sqrt(n)
    return X.T


def _arma(n: int, p: int, ar: float, ma: float, rng: np.random.Generator) -> Vector:
    """Columns of stationary ARMA(1, 1) rows with unit variance, shape (p, n)."""
    from scipy.signal import lfilter

    noise = rng.standard_normal((p + _BURN, n))
    out: Vector = lfilter([1.0, ma], [1.0, -ar], noise, axis=0)[_BURN:]
    return out / math.sqrt((1.0 + ma * ma + 2.0 * ar * ma) / (1.0 - ar * ar))


def _sparse(n: int, p: int, density: float, rng: np.random.Generator) -> Any:
    from scipy import sparse

    counts = rng.binomial(n, density, size=p)
    rows = np.concatenate([np.sort(rng.choice(n, size=c, replace=False)) for c in counts])
    data = (2.0 * rng.integers(0, 2, size=rows.size) - 1.0) / math.sqrt(n * density)
    starts = np.concatenate(([0], np.cumsum(counts)))
    return sparse.csc_array((data, rows.astype(np.int32), starts.astype(np.int32)), shape=(n, p))


@dataclass(frozen=True)
class LinearModel:
    """One draw of ``y = X beta + w``.

    Attributes
    ----------
    X : ndarray or scipy sparse, shape (n, p)
    y : ndarray, shape (n,)
    beta : ndarray, shape (p,)
    sigma : float
        Standard deviation of the noise w.
    """

    X: Any = field(repr=False)
    y: Vector = field(repr=False)
    beta: Vector = field(repr=False)
    sigma: float


def simulate(
    prior: Prior,
    delta: float,
    sigma: float,
    p: int,
    *,
    design: str = "gaussian",
    rng: np.random.Generator | int | None = None,
    exact: bool = True,
    options: Mapping[str, float] | None = None,
) -> LinearModel:
    """Draw a linear model with ``n = round(delta p)`` rows.

    Parameters
    ----------
    prior : Prior
        Law of the coefficients.
    delta : float
        Rows per feature.
    sigma : float
        Noise standard deviation.
    p : int
        Number of features.
    design : str
        See `design_matrix`.
    rng : numpy Generator or seed, optional
    exact : bool
        Every component of the prior has its rounded share of the coefficients.
    options : mapping, optional
        Options of `design_matrix`: rho, ma, density.

    Returns
    -------
    LinearModel

    Examples
    --------
    >>> model = simulate(Prior.two_point(0.1, 2.0), 0.5, 0.2, 100, rng=0)
    >>> model.X.shape, int((model.beta != 0).sum())
    ((50, 100), 10)
    """
    n = round(delta * p)
    if n < 1:
        raise ConvexlawError(f"delta = {delta!r} with p = {p!r} gives no rows; raise delta or p")
    source = np.random.default_rng(rng)
    beta = prior.sample(p, source, exact=exact)
    X = design_matrix(design, n, p, source, **(options or {}))
    y = np.asarray(X @ beta) + sigma * source.standard_normal(n)
    return LinearModel(X, y, beta, float(sigma))


@dataclass(frozen=True)
class Selection:
    """What a fit found: proportions at finite p.

    Attributes
    ----------
    tpp : float
        True selected signals over max(1, signals).
    fdp : float
        Selected nulls over max(1, selected).
    mse : float
        ``||b - beta||^2 / p``.
    df : float
        Distinct nonzero magnitudes over p.
    selected : float
        Nonzero coefficients over p.
    """

    tpp: float
    fdp: float
    mse: float
    df: float
    selected: float


def selection(coef: ArrayLike, beta: ArrayLike) -> Selection:
    """Compare estimated with true coefficients.

    Parameters
    ----------
    coef, beta : array_like, shape (p,)
        Magnitudes of ``coef`` that agree to 1e-8 relative count as one.

    Returns
    -------
    Selection

    Examples
    --------
    >>> selection([1.0, 0.0, -1.0, 0.2], [2.0, 1.0, 0.0, 0.0])
    Selection(tpp=0.5, fdp=0.6666666666666666, mse=0.76, df=0.5, selected=0.75)
    """
    b, truth = np.asarray(coef, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    if b.shape != truth.shape or b.ndim != 1 or not b.size:
        raise ConvexlawError(f"coef has shape {b.shape}, beta {truth.shape}: give two vectors of one length")
    found, signal = b != 0, truth != 0
    hits, chosen = int((found & signal).sum()), int(found.sum())
    sizes = np.sort(np.abs(b[found]))
    distinct = int(sizes.size > 0) + int((np.diff(sizes) > 1e-8 * sizes[1:]).sum())
    return Selection(
        tpp=hits / max(1, int(signal.sum())),
        fdp=(chosen - hits) / max(1, chosen),
        mse=float(np.square(b - truth).mean()),
        df=distinct / b.size,
        selected=chosen / b.size,
    )
