"""The sorted L1 norm: value, dual norm, prox, optimality, and the penalty sequences.

``J_lam(b) = sum_i lam_i |b|_(i)`` with ``|b|_(1) >= |b|_(2) >= ...`` and ``lam`` non-increasing and >= 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory._penalty_sequences import (
    amp_weights,
    averaged_weights,
    bh_sequence,
    check_sequence,
    check_vector,
    gaussian_sequence,
    k_level_sequence,
    lasso_sequence,
    oscar_sequence,
    penalty_sequence,
    two_level_sequence,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


__all__ = [
    "amp_weights",
    "averaged_weights",
    "bh_sequence",
    "check_sequence",
    "dual_sorted_l1_norm",
    "gaussian_sequence",
    "k_level_sequence",
    "kkt_violation",
    "lasso_sequence",
    "oscar_sequence",
    "penalty_sequence",
    "prox_sorted_l1",
    "sorted_l1_norm",
    "sorted_l1_pattern",
    "strong_set",
    "two_level_sequence",
]


def _check_lam(v: NDArray[Any], lam: ArrayLike) -> NDArray[np.float64]:
    return check_sequence(lam, v.size)


def prox_sorted_l1(v: ArrayLike, lam: ArrayLike) -> NDArray[Any]:
    """Prox of the sorted L1 norm: minimise ``1/2 ||b - v||^2 + sum_i lam_i |b|_(i)`` over b.

    Entries that cannot survive are filtered out first, the survivors are sorted and pooled. All members of a
    cluster get exactly the same magnitude, so clusters can be found by equality.

    Parameters
    ----------
    v : array_like, shape (p,)
        float32 stays float32, everything else becomes float64.
    lam : array_like, shape (p,)
        Non-increasing weights >= 0 (multiply by t for the prox of t J).

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    ConvexlawError
        ``v`` not a finite vector, or ``lam`` not a penalty sequence.

    References
    ----------
    Bogdan et al., arXiv 1407.3824, Algorithm 4 (FastProxSL1).

    Examples
    --------
    >>> prox_sorted_l1([5.0, -3.0, 2.5, 1.0, 0.2], [3.0, 2.0, 1.5, 0.5, 0.1])
    array([ 2. , -1. ,  1. ,  0.5,  0.1])
    """
    from convexlaw.theory import _sorted_l1_kernels as kernels

    vector = check_vector(v, "v")
    out = np.zeros(vector.size, dtype=vector.dtype)
    kernels.prox(vector, _check_lam(vector, lam), out)
    return out


def sorted_l1_norm(v: ArrayLike, lam: ArrayLike) -> float:
    """Value of the sorted L1 norm, ``sum_i lam_i |v|_(i)``.

    Parameters
    ----------
    v, lam : array_like, shape (p,)

    Returns
    -------
    float

    Examples
    --------
    >>> sorted_l1_norm([1.0, -5.0], [2.0, 1.0])
    11.0
    """
    from convexlaw.theory import _sorted_l1_kernels as kernels

    vector = check_vector(v, "v")
    return float(kernels.norm_value(vector, _check_lam(vector, lam)))


def dual_sorted_l1_norm(v: ArrayLike, lam: ArrayLike) -> float:
    """Dual norm of the sorted L1 norm, ``max_k (|v|_(1) + ... + |v|_(k)) / (lam_1 + ... + lam_k)``.

    Parameters
    ----------
    v, lam : array_like, shape (p,)

    Returns
    -------
    float
        Infinite where ``lam`` is all zero and ``v`` is not.

    Examples
    --------
    >>> round(dual_sorted_l1_norm([5.0, -3.0, 2.5, 1.0, 0.2], [3.0, 2.0, 1.5, 0.5, 0.1]), 6)
    1.666667
    """
    from convexlaw.theory import _sorted_l1_kernels as kernels

    vector = check_vector(v, "v")
    return float(kernels.dual_norm(vector, _check_lam(vector, lam)))


def kkt_violation(coef: ArrayLike, correlation: ArrayLike, lam: ArrayLike) -> float:
    """Largest violation of the optimality conditions of ``loss(b) + sum_i lam_i |b|_(i)`` at ``coef``.

    A nonzero cluster C on the ranks a..c needs ``sum_{j in C} sign(b_j) g_j = lam_a + ... + lam_c``
    and leading partial sums (largest ``sign(b_j) g_j`` first) at most those of lam; the zero cluster
    needs the same of the ``|g_j|`` without the equality.

    Parameters
    ----------
    coef : array_like, shape (p,)
        Magnitudes that belong to one cluster must be equal floats.
    correlation : array_like, shape (p,)
        ``g = -(gradient of the loss)``, e.g. ``X'(y - X b) / n`` for the averaged quadratic loss.
    lam : array_like, shape (p,)

    Returns
    -------
    float
        0 at an exact optimum; in the units of ``correlation``.

    Examples
    --------
    >>> kkt_violation([2.0, 0.0], [1.0, 0.3], [1.0, 0.5])
    0.0
    """
    from convexlaw.theory import _sorted_l1_kernels as kernels

    b, g = (
        np.asarray(check_vector(x, n), dtype=np.float64)
        for x, n in ((coef, "coef"), (correlation, "correlation"))
    )
    if b.size != g.size:
        raise ConvexlawError(f"coef has {b.size} entries, correlation {g.size}; they must agree")
    return float(kernels.kkt_violation(b, g, _check_lam(b, lam)))


def strong_set(correlation: ArrayLike, lam_new: ArrayLike, lam_previous: ArrayLike) -> NDArray[np.int64]:
    """Features that the strong screening rule keeps when the penalty falls from one sequence to another.

    It is the support of the prox of the correlations under ``2 lam_new - lam_previous`` (up to ties).

    Parameters
    ----------
    correlation : array_like, shape (p,)
        ``-(gradient of the loss)`` at the solution for ``lam_previous``.
    lam_new, lam_previous : array_like, shape (p,)

    Returns
    -------
    ndarray of int64
        Increasing indices. A heuristic: check the optimality conditions afterwards.

    References
    ----------
    Larsson, Bogdan and Wallin, arXiv 2005.03730, the strong rule for SLOPE.

    Examples
    --------
    >>> strong_set([1.0, 0.1, -0.9], [0.8, 0.7, 0.6], [1.0, 0.9, 0.8])
    array([0, 2])
    """
    g = check_vector(correlation, "correlation")
    bound = 2.0 * _check_lam(g, lam_new) - _check_lam(g, lam_previous)
    # where the difference is no penalty sequence, a smaller one that is keeps more features
    bound = np.maximum(np.minimum.accumulate(bound), 0.0)
    return np.flatnonzero(prox_sorted_l1(g, bound)).astype(np.int64)


def sorted_l1_pattern(coef: ArrayLike) -> NDArray[np.int64]:
    """Pattern of a vector: sign times the rank of the magnitude among the distinct nonzero ones.

    Parameters
    ----------
    coef : array_like, shape (p,)

    Returns
    -------
    ndarray of int64, shape (p,)
        The smallest nonzero magnitude has rank 1; the largest rank is the number of clusters, the degrees of
        freedom of SLOPE.

    Examples
    --------
    >>> sorted_l1_pattern([0.0, -2.0, 1.0, 2.0])
    array([ 0, -2,  1,  2])
    """
    b = check_vector(coef, "coef")
    size, place = np.unique(np.abs(b), return_inverse=True)
    rank = place.reshape(-1).astype(np.int64)
    if size.size and size[0] != 0:
        rank += 1
    pattern: NDArray[np.int64] = np.sign(b).astype(np.int64) * rank
    return pattern
