"""Priors and penalties that attain points of the trade-off curves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.theory._donoho_tanner import power_limit, sparsity_and_threshold
from convexlaw.theory._penalties import KLevel, Lasso, Penalty, TwoLevel
from convexlaw.theory._priors import Prior
from convexlaw.theory._selection_checks import fraction, ratio_and_sparsity
from convexlaw.theory._tradeoff_points import check_kind, threshold_and_fdp
from convexlaw.theory._two_level_shape import penalty_of_shape

__all__ = ["AttainingDesign", "attaining_design", "moebius_design"]

_FAR = 12.0  # an infinite signal lies this far beyond the last level: the difference is below 1e-30
_SMALL = 1e-7  # a signal at 0+
_ROOM = 8.0  # height of the flat piece that holds a far cluster


@dataclass(frozen=True)
class AttainingDesign:
    """Law of the signals (units of tau) and penalty that attain a point of a curve as sigma -> 0.

    Attributes
    ----------
    kind : str
        Curve.
    tpp, fdp, threshold : float
        The point; the threshold is in units of tau.
    prior : Prior
        Signals "at infinity" stand 12 tau beyond the last level, signals "at 0+" at 1e-7 tau.
    penalty : Penalty
        In units of tau.
    branch : {"far signals", "far cluster", "one size", "flat to zero"}
        Family the point comes from. ``flat to zero`` is reached only in the limit: the exact penalty sits on
        a discontinuity of TPP and FDP, and an arbitrarily small rise of a level loses the small signals.
    """

    kind: str
    tpp: float
    fdp: float
    threshold: float
    prior: Prior
    penalty: Penalty
    branch: str

    @property
    def alpha1(self) -> float:
        """Upper level."""
        return self._two_level().alpha1

    @property
    def alpha2(self) -> float:
        """Lower level."""
        return self._two_level().alpha2

    @property
    def fraction(self) -> float:
        """Share of the ranks with the upper level."""
        return self._two_level().fraction

    def _two_level(self) -> TwoLevel:
        if isinstance(self.penalty, Lasso):
            return TwoLevel(self.penalty.alpha, self.penalty.alpha, 1.0)
        if not isinstance(self.penalty, TwoLevel):
            raise ConvexlawError(
                f"the {self.kind} design at TPP {self.tpp:g} has no two levels; read .penalty"
            )
        return self.penalty

    def __str__(self) -> str:
        shown = self.penalty
        name = f"{len(shown.levels)} levels" if isinstance(shown, KLevel) else str(shown)
        return "\n".join(
            (
                f"{self.kind} at TPP {self.tpp:.6g}: FDP {self.fdp:.6g} ({self.branch})",
                f"  penalty {name} (units of tau), zero threshold {self.threshold:.6g} tau",
                f"  {self.prior} (units of tau), sigma -> 0",
            )
        )


def attaining_design(kind: str, tpp: float, delta: float, epsilon: float) -> AttainingDesign:
    """Law of the signals and penalty that attain the curve ``kind`` at ``tpp``.

    Parameters
    ----------
    kind : {"lasso", "slope_upper", "slope_lower", "two_level"}
    tpp : float
        In (0, 1).
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].

    Returns
    -------
    AttainingDesign
        `convexlaw.theory.state_evolution.solve` with it and sigma = 0 returns the TPP and the FDP (at tau = 1
        for one signal size; with far signals every tau is a fixed point up to exponentially small terms).

    Raises
    ------
    ConvexlawError
        tpp not inside (0, 1) or beyond the power limit of the Lasso, or another number out of range.

    Examples
    --------
    >>> design = attaining_design("two_level", 0.7, 0.3, 0.2)
    >>> [round(x, 5) for x in (design.alpha1, design.alpha2, design.fraction)]
    [1.86424, 0.93254, 0.10726]
    >>> print(design.prior)
    Prior(0: 0.8, 1.43109: 0.2)
    """
    check_kind(kind)
    ratio, share = ratio_and_sparsity(delta, epsilon)
    u = fraction("tpp", tpp, "a true positive proportion inside (0, 1)")
    if u == 1.0:
        raise ConvexlawError("tpp = 1: attained only in the limit; give a tpp below 1")
    a, q = threshold_and_fdp(kind, u, ratio, share)
    if math.isnan(a):
        raise ConvexlawError(
            f"tpp = {u:g}: no Lasso reaches it, the limit is {power_limit(ratio, share):.6g} at delta = "
            f"{ratio:g}, epsilon = {share:g}; ask for two_level or slope_lower"
        )
    if kind == "slope_upper" and u > power_limit(ratio, share):
        return moebius_design(u, ratio, share)
    if kind in ("lasso", "slope_upper"):
        return AttainingDesign(kind, u, q, a, _shared_prior(a, u, share, a + _FAR), Lasso(a), "far signals")
    from convexlaw.theory import _tradeoff_kernels as kernels
    from convexlaw.theory import _two_level_kernels as shapes

    first = kernels.branch_one(u, ratio, share)
    if first >= a:
        size = a + _ROOM + _FAR
        prior = _shared_prior(a, u, share, size)
        penalty = penalty_of_shape(prior, 1.0, a, a + _ROOM, size)
        return AttainingDesign(kind, u, q, a, prior, penalty, "far cluster")
    size = kernels.signal_size(a, u)
    prior = Prior.two_point(share, size)
    if kind == "slope_lower":
        return AttainingDesign(kind, u, q, a, prior, _best_levels(a, size, share), "one size")
    _, top, flat = shapes.two_level_error(a, u, share)
    return AttainingDesign(kind, u, q, a, prior, penalty_of_shape(prior, 1.0, a, top, flat), "one size")


def moebius_design(tpp: float, delta: float, epsilon: float) -> AttainingDesign:
    """Two-level design that attains the Moebius part of `slope_fdp_upper` in the limit.

    ``alpha1 = t_DT``, ``alpha2 = r t_DT`` with ``r = Phi^{-1}((eps(2-u)-eps*)/(2(eps-eps*)))/t_DT``, and the
    share that pools the whole piece between them exactly to zero.

    Parameters
    ----------
    tpp : float
        Above the power limit of the Lasso, at most 1.
    delta : float
        Rows per feature, n/p > 0.
    epsilon : float
        Fraction of nonzero signals, in (0, 1].

    Returns
    -------
    AttainingDesign
        With ``.alpha1``, ``.alpha2``, ``.fraction``.

    Raises
    ------
    ConvexlawError
        tpp within the reach of the Lasso (nothing to add there), or out of range.

    References
    ----------
    Bu, Klusowski, Rush and Su, arXiv 2105.13302, Proposition 2.3.

    Examples
    --------
    >>> design = moebius_design(0.5, 0.3, 0.5)
    >>> round(design.alpha1, 6), round(design.alpha2, 6), round(design.fraction, 6)
    (1.192413, 0.851795, 0.369337)
    """
    ratio, share = ratio_and_sparsity(delta, epsilon)
    u = fraction("tpp", tpp, "a true positive proportion above the power limit of the Lasso")
    limit = power_limit(ratio, share)
    if u <= limit:
        raise ConvexlawError(
            f"tpp = {u:g} <= {limit:.6g}: the Lasso reaches it; the Moebius part starts at its power limit"
        )
    star, high = sparsity_and_threshold(ratio)
    low, q = threshold_and_fdp("slope_upper", u, ratio, share)

    def upper(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2.0))

    def density(x: float) -> float:
        return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)

    r = low / high
    part = upper(high) - r * upper(low) - (density(high) - density(low)) / high
    weight = star + 2.0 * (1.0 - star) / (1.0 - r) * part
    prior = Prior((1.0 - share, share - star, star), (0.0, _SMALL, high + _FAR), (0.0, 0.0, 0.0))
    return AttainingDesign("slope_upper", u, q, low, prior, TwoLevel(high, low, weight), "flat to zero")


def _shared_prior(a: float, u: float, epsilon: float, far: float) -> Prior:
    from convexlaw.theory import _tradeoff_kernels as kernels

    p = float(kernels.shared_part(a, u))
    return Prior((1.0 - epsilon, epsilon * (1.0 - p), epsilon * p), (0.0, _SMALL, far), (0.0, 0.0, 0.0))


def _best_levels(a: float, size: float, epsilon: float, cells: int = 600) -> KLevel:
    """Penalty of the best function for one signal size, on cells of the rank."""
    from convexlaw.theory import _limit_kernels as limits
    from convexlaw.theory import _tradeoff_kernels as kernels

    end, left, right, level = kernels.single_profile(a, size, epsilon)
    prior = Prior.two_point(epsilon, size)
    top = max(right, size) + 9.0
    edges = np.unique(
        np.concatenate(([0.0, end], np.linspace(end, left, cells), np.linspace(right, top, cells)))
    )
    tails = np.array([limits.tail(*prior.arrays, 1.0, z) for z in edges])
    dense = np.array([limits.density(*prior.arrays, 1.0, z) for z in edges])
    mass = np.append(-np.diff(tails), tails[-1])
    drop = np.append(-np.diff(dense), dense[-1])
    levels = np.divide(drop, mass, out=np.full_like(mass, top), where=mass > 1e-300)
    centre = edges + 1e-9
    levels = np.where(centre < end, a, levels)
    if left < right:
        levels = np.where((centre > left) & (centre < right), level, levels)
    levels = np.maximum.accumulate(np.maximum(levels, a))
    keep = mass > 1e-15
    shares = mass[keep][::-1] / mass[keep].sum()
    return KLevel(tuple(levels[keep][::-1].tolist()), tuple(shares.tolist()))
