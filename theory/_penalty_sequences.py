"""Penalty sequences of the sorted L1 norm; the public home of these names is ``theory.sorted_l1``."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]


def check_vector(v: ArrayLike, name: str) -> NDArray[Any]:
    """Return ``v`` as a finite contiguous vector, float32 kept, anything else as float64."""
    array = np.asarray(v)
    if array.dtype != np.float32:
        try:
            array = np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ConvexlawError(f"{name} is not numeric ({error}); pass an array of numbers") from None
    if array.ndim != 1:
        raise ConvexlawError(f"{name} has shape {array.shape}: a vector is needed; pass shape (p,)")
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ConvexlawError(f"{name}[{where}] = {array[where]}: entries must be finite; remove it")
    return np.ascontiguousarray(array)


def check_sequence(lam: ArrayLike, p: int) -> Vector:
    """Validate an explicit penalty sequence.

    Parameters
    ----------
    lam : array_like, shape (p,)
        Weights by rank, largest first.
    p : int
        Number of features.

    Returns
    -------
    ndarray of float64, shape (p,)

    Raises
    ------
    ConvexlawError
        Wrong length, not finite, negative, or increasing somewhere.

    Examples
    --------
    >>> check_sequence([3, 2, 2], 3)
    array([3., 2., 2.])
    """
    array = np.asarray(check_vector(lam, "lam"), dtype=np.float64)
    if array.size != p:
        raise ConvexlawError(f"lam has {array.size} weights for p = {p} features; pass one weight a rank")
    if p and array[-1] < 0:
        raise ConvexlawError(f"lam[{p - 1}] = {array[-1]:g}: weights must be >= 0; clip them at 0")
    rises = array[1:] > array[:-1]
    if rises.any():
        i = int(np.argmax(rises))
        raise ConvexlawError(
            f"lam[{i}] = {array[i]:g} < lam[{i + 1}] = {array[i + 1]:g}: weights must not increase with the "
            "rank; pass np.sort(lam)[::-1] if the order carries no meaning"
        )
    return array


def _check_p(p: int) -> None:
    if isinstance(p, bool) or not isinstance(p, int | np.integer) or p < 0:
        raise ConvexlawError(f"p = {p!r}: the number of features must be a non-negative integer")


def bh_sequence(p: int, q: float = 0.1) -> Vector:
    """Benjamini-Hochberg sequence ``lam_i = Phi^{-1}(1 - i q / (2 p))``.

    Parameters
    ----------
    p : int
        Number of features.
    q : float
        Nominal false discovery rate, in (0, 1].

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    ConvexlawError
        q outside (0, 1].

    References
    ----------
    Bogdan et al., arXiv 1407.3824, section 1.1.

    Examples
    --------
    >>> bh_sequence(100, 0.1)[[0, 99]].round(6)
    array([3.290527, 1.644854])
    """
    from scipy.special import ndtri

    _check_p(p)
    share: Any = q
    if not isinstance(share, Real) or not 0 < q <= 1:
        raise ConvexlawError(f"q = {q!r}: the false discovery rate must lie in (0, 1]; 0.1 is usual")
    # the lower tail keeps full precision where 1 - iq/2p would round; max() turns -0.0 at q = 1 into 0
    sequence: Vector = np.maximum(-ndtri(np.arange(1, p + 1) * (q / (2.0 * p))) if p else np.zeros(0), 0.0)
    return sequence


def gaussian_sequence(p: int, q: float = 0.1, *, n: int) -> Vector:
    """BH sequence corrected for the noise that shrinkage adds in a Gaussian design with n rows.

    ``l_1 = BH_1``, ``l_i = BH_i sqrt(1 + sum_{j<i} l_j^2 / max(1, n - i))``, then the running minimum.

    Parameters
    ----------
    p : int
        Number of features.
    q : float
        Nominal false discovery rate, in (0, 1].
    n : int
        Number of rows. Where n is not much larger than p the sequence becomes constant early.

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    ConvexlawError
        q outside (0, 1] or n < 1.

    References
    ----------
    Bogdan et al., arXiv 1407.3824, section 3.2.2.

    Examples
    --------
    >>> gaussian_sequence(4, 0.1, n=100).round(4)
    array([2.2414, 2.0096, 1.8618, 1.7489])
    """
    from convexlaw.theory import _sorted_l1_kernels as kernels

    base = bh_sequence(p, q)
    if n < 1:
        raise ConvexlawError(f"n = {n!r}: the number of rows must be at least 1")
    kernels.correct_for_shrinkage(base, float(n))
    return base


def lasso_sequence(p: int) -> Vector:
    """Constant sequence of ones: the sorted L1 norm is then the L1 norm.

    Parameters
    ----------
    p : int

    Returns
    -------
    ndarray, shape (p,)

    Examples
    --------
    >>> lasso_sequence(3)
    array([1., 1., 1.])
    """
    _check_p(p)
    return np.ones(p)


def oscar_sequence(p: int, theta1: float = 1.0, theta2: float = 0.5) -> Vector:
    """Linear sequence ``lam_i = theta1 + theta2 (p - i)``.

    Parameters
    ----------
    p : int
    theta1, theta2 : float
        Both >= 0, not both zero.

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    ConvexlawError
        A negative theta.

    References
    ----------
    Bondell and Reich, Biometrics 64 (2008), 115-123.

    Examples
    --------
    >>> oscar_sequence(5)
    array([3. , 2.5, 2. , 1.5, 1. ])
    """
    _check_p(p)
    if not (0 <= theta1 < np.inf and 0 <= theta2 < np.inf):
        raise ConvexlawError(f"theta1 = {theta1!r}, theta2 = {theta2!r}: both must be finite and >= 0")
    sequence: Vector = theta1 + theta2 * np.arange(p - 1.0, -1.0, -1.0)
    return sequence


def k_level_sequence(p: int, levels: Sequence[float], fractions: Sequence[float]) -> Vector:
    """Sequence with K values on consecutive fractions of the ranks.

    Parameters
    ----------
    p : int
    levels : sequence of K floats
        Non-increasing, >= 0.
    fractions : sequence of K - 1 or K floats
        Shares of the ranks from the top; the last one may be left out (it is the rest). Level k ends at rank
        ``round((s_1 + ... + s_k) p)``.

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    ConvexlawError
        Levels that increase or are negative, fractions outside [0, 1] or that do not sum to 1.

    References
    ----------
    Zhang and Bu, arXiv 2102.07211.

    Examples
    --------
    >>> k_level_sequence(4, [3.0, 2.0, 0.0], [0.25, 0.25])
    array([3., 2., 0., 0.])
    """
    _check_p(p)
    values = check_sequence(levels, len(levels))
    shares = np.asarray(check_vector(fractions, "fractions"), dtype=np.float64)
    if shares.size == values.size:
        if abs(shares.sum() - 1.0) > 1e-9:
            raise ConvexlawError(
                f"fractions sum to {shares.sum():g}, not to 1; correct them or leave the last one out"
            )
        shares = shares[:-1]
    if values.size == 0 or shares.size != values.size - 1:
        raise ConvexlawError(
            f"{values.size} levels, {shares.size} fractions: K levels need K - 1 fractions (or K with sum 1)"
        )
    if (shares < 0).any() or shares.sum() > 1.0 + 1e-9:
        raise ConvexlawError(f"fractions = {list(shares)}: each must be >= 0 and their sum at most 1")
    ends = np.array([round(s * p) for s in np.cumsum(shares)], dtype=np.int64)
    return values[np.searchsorted(ends, np.arange(p), side="right")]


def two_level_sequence(p: int, high: float = 1.0, low: float = 0.5, fraction: float = 0.1) -> Vector:
    """Sequence with ``high`` on the top ``round(fraction p)`` ranks and ``low`` below.

    Parameters
    ----------
    p : int
    high, low : float
        ``high >= low >= 0``.
    fraction : float
        Share of the ranks with the high weight, in [0, 1].

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    ConvexlawError
        ``low > high``, a negative weight, or a fraction outside [0, 1].

    References
    ----------
    Bu et al., arXiv 2507.09110.

    Examples
    --------
    >>> two_level_sequence(5, high=2.0, low=1.0, fraction=0.4)
    array([2., 2., 1., 1., 1.])
    """
    if not 0 <= fraction <= 1:
        raise ConvexlawError(
            f"fraction = {fraction!r}: the share of ranks at the high weight must be in [0, 1]"
        )
    if not 0 <= low <= high < np.inf:
        raise ConvexlawError(f"high = {high!r}, low = {low!r}: two levels need high >= low >= 0, both finite")
    return k_level_sequence(p, [high, low], [fraction])


def penalty_sequence(
    kind: str,
    p: int,
    *,
    q: float = 0.1,
    theta1: float = 1.0,
    theta2: float = 0.5,
    n: int | None = None,
) -> Vector:
    """Penalty sequence by name: ``bh``, ``gaussian``, ``oscar`` or ``lasso``.

    Parameters
    ----------
    kind : {"bh", "gaussian", "oscar", "lasso"}
    p : int
        Number of features.
    q : float
        For bh and gaussian.
    theta1, theta2 : float
        For oscar.
    n : int, optional
        Number of rows, for gaussian.

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    ConvexlawError
        Unknown name, or gaussian without n.

    Examples
    --------
    >>> penalty_sequence("oscar", 3, theta1=1.0, theta2=1.0)
    array([3., 2., 1.])
    """
    if kind == "bh":
        return bh_sequence(p, q)
    if kind == "gaussian":
        if n is None:
            raise ConvexlawError("lambda_type 'gaussian' needs the number of rows; pass n")
        return gaussian_sequence(p, q, n=n)
    if kind == "oscar":
        return oscar_sequence(p, theta1, theta2)
    if kind == "lasso":
        return lasso_sequence(p)
    raise ConvexlawError(
        f"lambda_type = {kind!r}: use 'bh', 'gaussian', 'oscar', 'lasso', or pass lam itself"
    )


def amp_weights(alpha: float, lam: ArrayLike, n: int) -> Vector:
    """Weights of ``1/2 ||y - X b||^2 + J(b)`` with the minimiser of the averaged objective (same X).

    Parameters
    ----------
    alpha : float
    lam : array_like, shape (p,)
        ``alpha`` and ``lam`` of ``(1/2n) ||y - X b||^2 + alpha sum_i lam_i |b|_(i)``.
    n : int
        Number of rows.

    Returns
    -------
    ndarray, shape (p,)
        ``n alpha lam``.

    Examples
    --------
    >>> amp_weights(0.5, [2.0, 1.0], 10)
    array([10.,  5.])
    """
    return n * alpha * np.asarray(check_vector(lam, "lam"), dtype=np.float64)


def averaged_weights(lam: ArrayLike, n: int) -> Vector:
    """Inverse of :func:`amp_weights` at ``alpha = 1``.

    Parameters
    ----------
    lam : array_like, shape (p,)
        Weights of ``1/2 ||y - X b||^2 + J_lam(b)``.
    n : int
        Number of rows.

    Returns
    -------
    ndarray, shape (p,)
        ``lam / n``, to be used with ``alpha = 1``.

    Examples
    --------
    >>> averaged_weights([10.0, 5.0], 10)
    array([1. , 0.5])
    """
    return np.asarray(check_vector(lam, "lam"), dtype=np.float64) / n
