"""The Donoho-Tanner curve and the power limit of the Lasso, in closed parametric form."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.theory._selection_checks import fraction, positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "donoho_tanner_power",
    "donoho_tanner_sparsity",
    "donoho_tanner_threshold",
    "power_limit",
    "sparsity_and_threshold",
]


@lru_cache(maxsize=4096)
def sparsity_and_threshold(delta: float) -> tuple[float, float]:
    """epsilon* and t_DT for one delta.

    delta(a) = 2 phi / (a + 2 (phi - a Phi(-a))) falls from 1 at a = 0; epsilon* = delta (1 - a R) with Mills'
    ratio R.
    """
    if delta >= 1.0:
        return 1.0, 0.0
    from scipy.optimize import brentq
    from scipy.special import erfcx

    def mills(a: float) -> float:
        return math.sqrt(0.5 * math.pi) * float(erfcx(a / math.sqrt(2.0)))

    def log_delta(a: float) -> float:
        inverse_density = math.sqrt(2.0 * math.pi) * math.exp(0.5 * a * a)
        return math.log(2.0 / (a * inverse_density + 2.0 * (1.0 - a * mills(a)))) - math.log(delta)

    high = 37.0
    root = high if log_delta(high) > 0 else float(brentq(log_delta, 0.0, high, xtol=1e-16, rtol=1e-15))
    return delta * (1.0 - root * mills(root)), root


def power_limit(delta: float, epsilon: float) -> float:
    """u_DT for checked numbers."""
    sparsity, _ = sparsity_and_threshold(delta)
    if delta >= 1.0 or epsilon <= sparsity:
        return 1.0
    return 1.0 - (1.0 - delta) * (epsilon - sparsity) / (epsilon * (1.0 - sparsity))


def _each(delta: ArrayLike, place: int) -> float | NDArray[np.float64]:
    array = np.asarray(delta, dtype=np.float64)
    ratios = [positive("delta", d, "delta = n/p, rows per feature") for d in array.reshape(-1)]
    found = np.array([sparsity_and_threshold(d)[place] for d in ratios]).reshape(array.shape)
    return float(found) if array.ndim == 0 else found


def donoho_tanner_sparsity(delta: ArrayLike) -> float | NDArray[np.float64]:
    """Largest fraction of signals that noiseless L1 minimisation recovers, ``epsilon*(delta)``.

    Parameters
    ----------
    delta : float or array
        Rows per feature, n/p > 0.

    Returns
    -------
    float or ndarray
        1 where delta >= 1.

    References
    ----------
    Donoho and Tanner, PNAS 102 (2005), 9446-9451; arXiv 1511.01957 (Su, Bogdan and Candes), Lemma C.1.

    Examples
    --------
    >>> round(donoho_tanner_sparsity(0.3), 8)
    0.08723531
    """
    return _each(delta, 0)


def donoho_tanner_threshold(delta: ArrayLike) -> float | NDArray[np.float64]:
    """Zero threshold at the power limit of the Lasso, ``t_DT(delta)``, in units of tau.

    Parameters
    ----------
    delta : float or array
        Rows per feature, n/p > 0.

    Returns
    -------
    float or ndarray
        0 where delta >= 1. It satisfies ``2 Phi(-t_DT) = (delta - epsilon*)/(1 - epsilon*)``.

    References
    ----------
    Donoho and Tanner, PNAS 102 (2005), 9446-9451; arXiv 1511.01957 (Su, Bogdan and Candes), Lemma C.1.

    Examples
    --------
    >>> round(donoho_tanner_threshold(0.3), 7)
    1.1924135
    """
    return _each(delta, 1)


def donoho_tanner_power(delta: float, epsilon: float) -> float:
    """Largest TPP of the Lasso, ``u_DT(delta, epsilon)``.

    Parameters
    ----------
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].

    Returns
    -------
    float
        1 where delta >= 1 or epsilon <= epsilon*(delta).

    References
    ----------
    arXiv 2105.13302 (Bu, Klusowski, Rush and Su), section 1.

    Examples
    --------
    >>> round(donoho_tanner_power(0.3, 0.2), 7)
    0.5676033
    """
    ratio = positive("delta", delta, "delta = n/p, rows per feature")
    return power_limit(ratio, fraction("epsilon", epsilon, "epsilon = k/p, the fraction of nonzero signals"))
