"""Laws of a whole loss curve as values: parameters in, losses out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._law_columns import (
    AveragedColumns,
    ConvexColumns,
    MultiPowerColumns,
    Parameter,
    RunPath,
    TissueColumns,
)

Array = NDArray[np.float64]
Columns = Callable[[Array], tuple[Array, Array]]

_ALPHA = Parameter("alpha", 0.02, 3.0, (0.35, 0.5, 0.8))
_Q = Parameter("q", 0.0, 0.6, (0.03, 0.1, 0.2, 0.35), "linear")
_R = Parameter("r", -0.5, 0.8, (0.0, 0.15), "linear")
_LAM = Parameter("lam", 0.99, 0.999, (0.992, 0.996, 0.9985), "log1m")  # the range of its authors
_C = Parameter("C", 0.01, 1e3, (0.5, 3.0))
_BETA = Parameter("beta", 0.02, 3.0, (0.4, 0.8))
_GAMMA = Parameter("gamma", 0.02, 2.0, (0.4, 0.7))


@dataclass(frozen=True)
class CurveLaw:
    """What every law of a loss curve has in common; see the subclasses for the formulas.

    Attributes
    ----------
    Linf : float
        Loss that no schedule gets below, in nats.
    a : float
        Size of the bias term, in nats times the unit of S to the alpha.
    b : float
        Size of the noise term, in nats per unit of the noise sum.
    """

    Linf: float
    a: float
    b: float

    name: ClassVar[str] = ""
    convex: ClassVar[bool] = True
    nonlinear: ClassVar[tuple[Parameter, ...]] = ()
    kind: ClassVar[dict[str, Any]] = {}
    needs_clock: ClassVar[bool] = False

    @classmethod
    def columns(
        cls,
        paths: Sequence[RunPath],
        *,
        batch: bool = False,
        exact: bool = False,
        tick: Callable[[], None] | None = None,
    ) -> Columns:
        """Columns of the law along runs, as a function of its nonlinear parameters (what a fit works on).

        Parameters
        ----------
        paths : sequence of RunPath
        batch : bool, default False
            Add the part of the noise sum that falls as 1/batch as a last column.
        exact : bool, default False
            Evaluate a noise sum with free q directly, where a fit would use a spline in q.
        tick : callable, optional
            Called after the sums of each run (for a progress bar).

        Returns
        -------
        callable
            ``columns(theta) -> (X, dX)`` with shapes (n, p) and (n, p, m).
        """
        return ConvexColumns(paths, batch=batch, exact=exact, tick=tick, **cls.kind)

    @classmethod
    def names(cls, batch: bool = False) -> tuple[str, ...]:
        """Names of the fitted parameters, linear ones first."""
        return cls.linear(batch) + tuple(p.name for p in cls.nonlinear)

    @classmethod
    def linear(cls, batch: bool = False) -> tuple[str, ...]:
        """Names of the parameters in which the law is linear."""
        return ("Linf", "a", "b", "b_batch") if batch else ("Linf", "a", "b")

    @property
    def params(self) -> dict[str, float]:
        """Fitted parameters by name."""
        return {name: float(getattr(self, name)) for name in self.names(self._batch_term > 0)}

    @property
    def _batch_term(self) -> float:
        return float(getattr(self, "b_batch", 0.0))

    def predict(
        self,
        lr: ArrayLike,
        at: ArrayLike | None = None,
        batch_size: ArrayLike | None = None,
        *,
        weight_decay: float = 0.0,
        init_std: float = 0.02,
    ) -> Array:
        """Losses along a schedule.

        Parameters
        ----------
        lr : (T,) array
            Learning rate of every update.
        at : (n,) int array, optional
            Steps wanted, 0-based; default every step. Value k is the loss after the updates 0..k-1.
        batch_size : float or (T,) array, optional
            Needed where the law has a batch term, ignored otherwise.
        weight_decay, init_std : float
            Constants of the clock (rc4 only).

        Returns
        -------
        (n,) array
            In nats; infinite before the first positive learning rate.

        Raises
        ------
        ConvexlawError
            Negative or non-finite learning rates, a step outside the schedule, a missing batch size.
        """
        batch = self._batch_term > 0
        if batch and batch_size is None:
            raise ConvexlawError(
                f"this {self.name} law has a batch term (b_batch = {self._batch_term:.4g}): pass batch_size"
            )
        steps = None if at is None else np.atleast_1d(np.asarray(at))
        order = None
        if steps is not None and np.any(np.diff(steps) < 0):
            order = np.argsort(steps, kind="stable")
            steps = steps[order]
        path = RunPath.make(lr, steps, batch_size if batch else None, weight_decay, init_std)
        theta = np.array([getattr(self, p.name) for p in self.nonlinear], dtype=np.float64)
        X, _ = self.columns([path], batch=batch, exact=True)(theta)
        c = np.array([getattr(self, name) for name in self.linear(batch)])
        with np.errstate(invalid="ignore"):
            loss = X @ c
        loss = np.where(np.isnan(loss), np.inf, loss)
        if order is not None:
            back = np.empty_like(loss)
            back[order] = loss
            loss = back
        return np.asarray(loss, dtype=np.float64)

    @classmethod
    def from_params(cls, params: dict[str, float]) -> CurveLaw:
        """Build the law from a dict of its parameters (as in a saved fit)."""
        known = {f.name for f in fields(cls)}
        missing = [n for n in cls.names() if n not in params]
        unknown = sorted(set(params) - known)
        if missing or unknown:
            raise ConvexlawError(
                f"parameters {sorted(params)} do not fit law {cls.name!r}: "
                f"missing {missing}, unknown {unknown}; "
                f"it takes {list(cls.names())}"
            )
        return cls(**{k: float(v) for k, v in params.items()})


@dataclass(frozen=True)
class CD3(CurveLaw):
    """The convex bound read literally: ``Linf + a/S + b N`` with the plain noise sum (3 parameters).

    References
    ----------
    arXiv 2602.07145, eq. (2.4); arXiv 2607.27731, Theorem 1 (one-sum form).
    """

    b_batch: float = 0.0
    name: ClassVar[str] = "cd3"
    kind: ClassVar[dict[str, Any]] = dict(alpha=1.0, q=0.0, free=False)


@dataclass(frozen=True)
class CB4(CurveLaw):
    """``Linf + a S^-alpha + b N``, plain noise sum (4 parameters)."""

    alpha: float = 0.5
    b_batch: float = 0.0
    name: ClassVar[str] = "cb4"
    nonlinear: ClassVar[tuple[Parameter, ...]] = (_ALPHA,)
    kind: ClassVar[dict[str, Any]] = dict(alpha=None, q=0.0, free=False)


@dataclass(frozen=True)
class CVX3(CurveLaw):
    """``Linf + a S^-1/2 + b N_q``, free virtual step, q = 0.2 (3 parameters)."""

    b_batch: float = 0.0
    name: ClassVar[str] = "cvx3"
    kind: ClassVar[dict[str, Any]] = dict(alpha=0.5, q=0.2)


@dataclass(frozen=True)
class CVX4(CurveLaw):
    """``Linf + a S^-alpha + b N_0``, free virtual step (4 parameters)."""

    alpha: float = 0.5
    b_batch: float = 0.0
    name: ClassVar[str] = "cvx4"
    nonlinear: ClassVar[tuple[Parameter, ...]] = (_ALPHA,)
    kind: ClassVar[dict[str, Any]] = dict(alpha=None, q=0.0)


@dataclass(frozen=True)
class CVX4q(CurveLaw):
    """``Linf + a S^-alpha + b N_q`` with q = 1/8, free virtual step: the default (4 parameters).

    ``S_t`` is the sum of learning rates,
    ``N_q(t) = min_v sum_{s<t} lr_s^2 S_s^-q/(S_{t-1} - S_s + v) + v S_t^-q``.

    Examples
    --------
    >>> import numpy as np
    >>> law = CVX4q(Linf=3.0, a=0.5, b=52.0, alpha=0.53)
    >>> law.predict(np.full(1000, 3e-4), at=[500, 999]).round(3)
    array([4.521, 4.102])
    """

    alpha: float = 0.5
    b_batch: float = 0.0
    name: ClassVar[str] = "cvx4q"
    nonlinear: ClassVar[tuple[Parameter, ...]] = (_ALPHA,)
    kind: ClassVar[dict[str, Any]] = dict(alpha=None, q=0.125)


@dataclass(frozen=True)
class CVX5(CurveLaw):
    """``Linf + a S^-alpha + b N_q`` with q fitted (5 parameters; needs three curves of different shapes)."""

    alpha: float = 0.5
    q: float = 0.125
    b_batch: float = 0.0
    name: ClassVar[str] = "cvx5"
    nonlinear: ClassVar[tuple[Parameter, ...]] = (_ALPHA, _Q)
    kind: ClassVar[dict[str, Any]] = dict(alpha=None, q=None)


@dataclass(frozen=True)
class CVX6(CurveLaw):
    """cvx5 across peak learning rates: ``b (peak/1e-3)^-r N_q`` (6 parameters)."""

    alpha: float = 0.5
    q: float = 0.125
    r: float = 0.0
    b_batch: float = 0.0
    name: ClassVar[str] = "cvx6"
    nonlinear: ClassVar[tuple[Parameter, ...]] = (_ALPHA, _Q, _R)
    kind: ClassVar[dict[str, Any]] = dict(alpha=None, q=None, peak=True)


@dataclass(frozen=True)
class RC4(CurveLaw):
    """The rotational clock: cvx4 on the effective learning rates ``e_t = lr_t/rho_t`` (4 parameters).

    ``rho_{t+1}^2 = (1 - lr_t weight_decay)^2 rho_t^2 + (lr_t/init_std)^2``, rho_0 = 1: the growth and decay
    of the norm of scale-invariant weights, in the noise regime of Adam.

    References
    ----------
    arXiv 2305.17212 (rotational equilibrium).
    """

    alpha: float = 0.5
    b_batch: float = 0.0
    name: ClassVar[str] = "rc4"
    needs_clock: ClassVar[bool] = True
    nonlinear: ClassVar[tuple[Parameter, ...]] = (_ALPHA,)
    kind: ClassVar[dict[str, Any]] = dict(alpha=None, q=0.0, on_clock=True)


@dataclass(frozen=True)
class Averaged(CurveLaw):
    """The bound of the averaged iterate: ``Linf + a/S + b sum(lr^2)/S`` (3 parameters; blind to decay)."""

    name: ClassVar[str] = "averaged"

    @classmethod
    def columns(
        cls,
        paths: Sequence[RunPath],
        *,
        batch: bool = False,
        exact: bool = False,
        tick: Callable[[], None] | None = None,
    ) -> Columns:
        """See CurveLaw.columns."""
        return AveragedColumns(paths)


@dataclass(frozen=True)
class Tissue(CurveLaw):
    """``Linf + a S^-alpha - b S2``, S2 = sum of a momentum (factor lam) of the LR drops (4 + 1)."""

    alpha: float = 0.5
    lam: float = 0.999
    name: ClassVar[str] = "tissue"
    convex: ClassVar[bool] = False
    nonlinear: ClassVar[tuple[Parameter, ...]] = (_ALPHA, _LAM)

    @classmethod
    def columns(
        cls,
        paths: Sequence[RunPath],
        *,
        batch: bool = False,
        exact: bool = False,
        tick: Callable[[], None] | None = None,
    ) -> Columns:
        """See CurveLaw.columns."""
        return TissueColumns(paths)


@dataclass(frozen=True)
class MultiPower(CurveLaw):
    """``Linf + a S^-alpha + b LD`` (7 parameters).

    ``LD_t = sum_k (lr_k - lr_{k-1}) G(lr_k^-gamma (S_t - S_{k-1}))``,
    ``G(x) = 1 - (1 + C x)^-beta``. The papers' names L0, A, B are Linf, a, b here.
    """

    alpha: float = 0.5
    C: float = 2.0
    beta: float = 0.6
    gamma: float = 0.6
    name: ClassVar[str] = "multipower"
    convex: ClassVar[bool] = False
    nonlinear: ClassVar[tuple[Parameter, ...]] = (_ALPHA, _C, _BETA, _GAMMA)

    @classmethod
    def columns(
        cls,
        paths: Sequence[RunPath],
        *,
        batch: bool = False,
        exact: bool = False,
        tick: Callable[[], None] | None = None,
    ) -> Columns:
        """See CurveLaw.columns."""
        return MultiPowerColumns(paths)
