"""q* of the Lasso from the paper's equation alone: a scan and a bracketed root, no curve of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

__all__ = ["equation", "largest_root_fdp"]

_SCAN = 2000


def equation(a: ArrayLike, u: float, delta: float, epsilon: float) -> Vector:
    """Left minus right side of the equation of t*, both denominators multiplied out (Theorem 2.1)."""
    from scipy.special import ndtr

    t = np.asarray(a, dtype=float)
    tail = ndtr(-t)
    e0 = 2.0 * ((1.0 + t * t) * tail - t * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi))
    left = (1.0 - epsilon) * e0 + epsilon * (1.0 + t * t) - delta
    out: Vector = left * (1.0 - 2.0 * tail) - (1.0 - u) * epsilon * (1.0 + t * t - e0)
    return out


def largest_root_fdp(tpp: ArrayLike, delta: float, epsilon: float) -> Vector:
    """FDP at the largest root for every TPP in [0, 1]; 0 at TPP 0, NaN where it would select more than n."""
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    found = np.zeros(np.shape(tpp))
    for i, u in np.ndenumerate(np.asarray(tpp, dtype=float)):
        if u == 0:
            continue
        # signals too small to see are selected with probability 2 Phi(-a) already, at most u
        scan = np.linspace(max(12.0, np.sqrt(delta / (epsilon * u)) + 2.0), -ndtri(0.5 * u), _SCAN)
        below = np.flatnonzero(equation(scan, u, delta, epsilon) < 0)
        if not below.size:
            found[i] = np.nan
            continue
        root = brentq(
            lambda a, u=u: float(equation(a, u, delta, epsilon)),
            scan[below[0]],
            scan[below[0] - 1],
            xtol=1e-14,
        )
        false = 2.0 * (1.0 - epsilon) * float(ndtr(-root))
        # lambda = alpha tau (1 - df/delta) is negative where more than n variables are selected
        found[i] = false / (false + epsilon * u) if false + epsilon * u <= delta * (1 + 1e-9) else np.nan
    return found
