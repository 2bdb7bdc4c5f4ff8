"""SLOPE estimators with scikit-learn's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convexlaw.solvers._parameters import PenaltySequence, store
from convexlaw.solvers._slope_base import SlopeRegressor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from convexlaw.solvers._slope_theory import Asymptotics, Origin
    from convexlaw.theory.scalar_limit import Prior

__all__ = ["Slope", "TwoLevelSlope"]


class Slope(PenaltySequence, SlopeRegressor):
    """SLOPE: linear, Poisson or Huber regression with the sorted L1 penalty, to a certified duality gap.

    Minimises over b and b0

        (1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)

    with lambda non-increasing; with sample weights the average is a weighted one.

    Parameters
    ----------
    alpha : float, "estimate" or "1/n"
        Multiplier of the penalty, >= 0; at 0 the least-squares solution of minimal norm. "estimate": what the
        sequence needs at the noise level, which is estimated with it (see :mod:`convexlaw.solvers.noise`; the
        columns should have one scale, as under ``scaling="sd"``). "1/n": the sequence is in the units of
        ``1/2 ||y - X b||^2 + J(b)``.
    lam : array_like, shape (p,), optional
        Explicit penalty sequence, non-increasing and >= 0.
    lambda_type : {"bh", "gaussian", "oscar", "lasso"}
        Sequence where ``lam`` is None.
    q : float
        False discovery rate of "bh" and "gaussian".
    theta1, theta2 : float
        Parameters of "oscar": ``theta1 + theta2 (p - i)``.
    loss : {"quadratic", "poisson", "huber"}
        Half of its mean deviance stands in place of the quadratic term; "poisson" has a log link. With y of
        shape (n, m) the quadratic loss is summed over responses, the sorted L1 norm runs over all p m
        coefficients.
    threshold : float
        Residual from which "huber" is linear, in units of y.
    fit_intercept : bool
        A free intercept; centring is implicit, sparse X stays sparse.
    centering : {"none", "mean", "min"}
        Fixed shift of the columns; only matters without an intercept. It is then part of ``intercept_``.
    scaling : {"none", "sd", "l1", "l2", "max_abs"}
        Columns are divided by this before they are penalised; ``coef_`` is in the units of X.
    tol : float
        Duality gap to reach, as a share of the objective at zero.
    max_iter : int
        Bound on epochs of coordinate descent and Newton steps.
    solver : {"auto", "gram", "working_gram", "columns", "residual"}
        Form of the inner problem; "auto" chooses by a model of the costs (the only one of other losses).
    warm_start : bool
        Start from the coefficients of the previous fit.

    Attributes
    ----------
    alpha_ : float
        The multiplier as a number.
    sigma_ : float
        With "estimate": the noise level.
    noise_ : NoiseEstimate
        With "estimate": its rounds, and whether they ran in a cycle.
    coef_ : ndarray, shape (p,), or (m, p) for m responses
    intercept_ : float, or ndarray, shape (m,)
    lambda_ : ndarray, shape (p,) or (p m,)
        The penalty sequence that alpha multiplies.
    dual_gap_ : float
        Duality gap over all features, computed from the data at the end, in the units of the objective.
    null_objective_ : float
        Objective of the zero coefficients; ``dual_gap_ <= tol * null_objective_`` where converged.
    n_iter_ : int
    n_clusters_ : int
        Distinct nonzero magnitudes, the degrees of freedom.
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a data frame.

    References
    ----------
    Bogdan et al., arXiv 1407.3824 (SLOPE); Larsson et al., arXiv 2210.14780 (coordinate descent over
    clusters).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 4))
    >>> y = X @ [3.0, 3.0, 0.0, 0.0] + rng.normal(size=100)
    >>> model = Slope(alpha=0.5).fit(X, y)
    >>> model.coef_.round(3), model.n_clusters_, model.converged_
    (array([1.824, 1.824, 0.   , 0.   ]), 1, True)
    """

    _several = True

    def __init__(
        self,
        *,
        alpha: float | str = 1.0,
        lam: ArrayLike | None = None,
        lambda_type: str = "bh",
        q: float = 0.1,
        theta1: float = 1.0,
        theta2: float = 0.5,
        loss: str = "quadratic",
        threshold: float = 1.345,
        fit_intercept: bool = True,
        centering: str = "none",
        scaling: str = "none",
        tol: float = 1e-6,
        max_iter: int = 100_000,
        solver: str = "auto",
        warm_start: bool = False,
    ) -> None:
        store(self, locals())


class TwoLevelSlope(SlopeRegressor):
    """Two-level SLOPE: the weight ``high`` on the largest coefficients and ``low`` on the others.

    Minimises over b and b0

        (1/2n) ||y - b0 - X b||^2 + alpha * sum_i lambda_i |b|_(i)

    with lambda_i = high for the top ``round(fraction p)`` ranks and low below.

    Parameters
    ----------
    alpha : float, "estimate" or "1/n"
        Multiplier of the penalty, >= 0, or as in :class:`Slope`.
    high, low : float
        Weights, ``high >= low >= 0``.
    fraction : float
        Share of the ranks with the high weight, in [0, 1].
    loss, threshold, fit_intercept, centering, scaling, tol, max_iter, solver, warm_start
        As in :class:`Slope`.

    Attributes
    ----------
    coef_, intercept_, lambda_, dual_gap_, null_objective_, n_iter_, n_clusters_, converged_
        As in :class:`Slope`.

    References
    ----------
    Bu et al., arXiv 2507.09110.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 4))
    >>> y = X @ [3.0, 3.0, 0.0, 0.0] + rng.normal(size=100)
    >>> TwoLevelSlope(alpha=0.5, high=2.0, low=1.0, fraction=0.5).fit(X, y).lambda_
    array([2., 2., 1., 1.])
    """

    _several = True
    _origin: Origin

    def __init__(
        self,
        *,
        alpha: float | str = 1.0,
        high: float = 1.0,
        low: float = 0.5,
        fraction: float = 0.1,
        loss: str = "quadratic",
        threshold: float = 1.345,
        fit_intercept: bool = True,
        centering: str = "none",
        scaling: str = "none",
        tol: float = 1e-6,
        max_iter: int = 100_000,
        solver: str = "auto",
        warm_start: bool = False,
    ) -> None:
        store(self, locals())

    def _penalty(self, size: int) -> dict[str, Any]:
        from convexlaw.theory.sorted_l1 import two_level_sequence

        return {"lam": two_level_sequence(size, self.high, self.low, self.fraction)}

    @classmethod
    def from_theory(
        cls,
        delta: float,
        epsilon: float,
        prior: Prior | str | None = None,
        *,
        sigma: float | None = None,
        target: float | None = None,
        column_norm: float = 1.0,
        **params: Any,
    ) -> TwoLevelSlope:
        """Make the two-level SLOPE that the sharp theory calls best.

        Parameters
        ----------
        delta : float
            Rows per feature, n/p.
        epsilon : float
            Share of nonzero coefficients.
        prior : Prior or str, optional
            Law of the nonzero coefficients, or of all of them; e.g. ``"1:0.5, -1:0.5"``. The penalty then
            has the smallest mean squared error, or with ``target`` the smallest FDP at that TPP.
        sigma : float, optional
            Standard deviation of the noise, in units of y; needed with a prior.
        target : float, optional
            TPP to reach. Without a prior: the penalty of the exact two-level trade-off, for the one size of
            signals that attains it, in units in which tau = 1 and without noise.
        column_norm : float
            Norm of the columns of X: 1 where entries have variance 1/n, sqrt(n) after standardising. The
            coefficients of ``prior`` are those of X as given.
        **params
            Of the estimator; ``scaling`` may be "none" or "l2".

        Returns
        -------
        TwoLevelSlope
            Not fitted, with ``alpha="1/n"``.

        Raises
        ------
        ConvexlawError
            Neither prior nor target; a target out of reach; numbers out of range.

        Warnings
        --------
        The theory holds for X with independent Gaussian entries. For correlated columns it is a starting
        point for cross-validation, no more.

        References
        ----------
        Bu, Klusowski, Rush and Su, arXiv 1907.07502 (state evolution); Zhang and Bu, arXiv 2102.07211 (the
        class). The search is that of :func:`convexlaw.theory.designs.optimal_two_level`.

        Examples
        --------
        >>> model = TwoLevelSlope.from_theory(0.5, 0.2, "1:1", sigma=0.3)
        >>> model.alpha, round(model.high, 3), round(model.low, 3), round(model.fraction, 3)
        ('1/n', 0.485, 0.207, 0.028)
        """
        from convexlaw.solvers._slope_theory import Origin, design, seen_norm

        seen = seen_norm(params.get("scaling", "none"), column_norm, None)
        law = prior
        if law is not None and column_norm != 1.0:
            from convexlaw.theory.scalar_limit import Prior as Law

            law = (Law.parse(law) if isinstance(law, str) else law).scaled(column_norm)
        penalty, found, noise = design(delta, epsilon, law, sigma, target)
        model = cls(
            alpha="1/n",
            high=penalty.alpha1 * seen,
            low=penalty.alpha2 * seen,
            fraction=penalty.fraction,
            **params,
        )
        model._origin = Origin(found.scaled(1.0 / column_norm), delta, noise, column_norm)
        return model

    def asymptotics(
        self,
        prior: Prior | str | None = None,
        *,
        sigma: float | None = None,
        delta: float | None = None,
        column_norm: float | None = None,
    ) -> Asymptotics:
        """TPP, FDP and mean squared error that the sharp theory predicts for this estimator.

        Parameters
        ----------
        prior : Prior or str, optional
            Law of all coefficients (zeros included), in the units of ``coef_``; by default that of
            :meth:`from_theory`.
        sigma : float, optional
            Standard deviation of the noise; by default that of :meth:`from_theory`.
        delta : float, optional
            Rows per feature; by default of the fit, before it of :meth:`from_theory`.
        column_norm : float, optional
            Norm of the columns of X: 1 (the default) where entries have variance 1/n, sqrt(n) after
            standardising.

        Returns
        -------
        Asymptotics

        Raises
        ------
        ConvexlawError
            Something is missing, or there is no fixed point.

        Warnings
        --------
        The limits are those of X with independent N(0, column_norm^2/n) entries, independent of the
        coefficients, for n and p large. They say nothing about correlated columns.

        References
        ----------
        Bu, Klusowski, Rush and Su, arXiv 1907.07502, Theorems 1-3.
        """
        from convexlaw.solvers._slope_theory import predict

        return predict(self, prior, sigma, delta, column_norm)
