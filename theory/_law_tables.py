"""Laws of a table of final losses in size N (parameters) and data D (tokens), as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._law_columns import Parameter
from convexlaw.theory._law_inputs import floats

Array = NDArray[np.float64]
Columns = Callable[[Array], tuple[Array, Array]]

FLOPS = 6.0  # of training, per parameter and token


@dataclass(frozen=True)
class TableLaw:
    """What every law of a table has in common; see the subclasses for the formulas."""

    name: ClassVar[str] = ""
    linear: ClassVar[tuple[str, ...]] = ()
    nonlinear: ClassVar[tuple[Parameter, ...]] = ()
    link: ClassVar[int] = -1

    @classmethod
    def columns(cls, N: Array, D: Array) -> Columns:
        """Columns (n, p) and derivatives (n, p, m) as a function of the nonlinear parameters."""
        raise NotImplementedError

    @property
    def params(self) -> dict[str, float]:
        """Parameters by name."""
        return {f.name: float(getattr(self, f.name)) for f in fields(self)}

    def loss(self, N: ArrayLike, D: ArrayLike) -> Array:
        """Loss of models of ``N`` parameters trained on ``D`` tokens (broadcast), in nats.

        Raises
        ------
        ConvexlawError
            A size or a number of tokens that is not positive and finite.
        """
        n, d = np.broadcast_arrays(floats("N", N), floats("D", D))
        for name, values in (("N", n), ("D", d)):
            if not np.all(np.isfinite(values) & (values > 0)):
                raise ConvexlawError(f"{name} must be positive and finite (parameters, tokens)")
        return np.asarray(self._loss(n, d), dtype=np.float64)

    def _loss(self, n: Array, d: Array) -> Array:
        raise NotImplementedError

    def optimal(self, flops: ArrayLike) -> tuple[Array, Array]:
        """Compute-optimal size and tokens for budgets with ``flops = 6 N D``.

        Parameters
        ----------
        flops : float or array
            Training budgets.

        Returns
        -------
        N, D : arrays of the shape of ``flops``

        Raises
        ------
        ConvexlawError
            A budget that is not positive, or a law without an optimum.
        """
        budget = floats("flops", flops)
        if not np.all(np.isfinite(budget) & (budget > 0)):
            raise ConvexlawError("flops must be positive and finite: the training budget 6 N D")
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            n = np.asarray(self._optimal(budget), dtype=np.float64)
        if not np.all(np.isfinite(n) & (n > 0)):
            raise ConvexlawError(
                f"this {self.name} law has no compute-optimal size: one of its terms is 0 or falls with "
                f"the other's cost; "
                f"parameters {self.params}"
            )
        return n, budget / (FLOPS * n)

    def _optimal(self, budget: Array) -> Array:
        raise NotImplementedError

    @property
    def exponent(self) -> float:
        """The a of ``N_opt ~ flops^a``."""
        raise NotImplementedError


@dataclass(frozen=True)
class Chinchilla(TableLaw):
    """``E + A N^-alpha + B D^-beta``.

    References
    ----------
    Hoffmann et al. 2022, arXiv 2203.15556, approach 3; refitted in arXiv 2404.10102.

    Examples
    --------
    >>> law = Chinchilla(E=1.8172, A=477.83, B=2143.4, alpha=0.34731, beta=0.36717)
    >>> N, D = law.optimal(5.76e23)
    >>> round(float(N) / 1e9, 1), round(float(D) / 1e12, 2)
    (73.2, 1.31)
    """

    E: float
    A: float
    B: float
    alpha: float
    beta: float

    name: ClassVar[str] = "chinchilla"
    linear: ClassVar[tuple[str, ...]] = ("E", "A", "B")
    nonlinear: ClassVar[tuple[Parameter, ...]] = (
        Parameter("alpha", 0.01, 3.0, (0.15, 0.3, 0.5, 0.9)),
        Parameter("beta", 0.01, 3.0, (0.15, 0.3, 0.5, 0.9)),
    )

    @classmethod
    def columns(cls, N: Array, D: Array) -> Columns:
        """See TableLaw.columns."""
        return PowerColumns(np.log(N), np.log(D))

    def _loss(self, n: Array, d: Array) -> Array:
        return self.E + self.A * n**-self.alpha + self.B * d**-self.beta

    def _optimal(self, budget: Array) -> Array:
        both = self.alpha + self.beta
        ratio = self.alpha * self.A / (self.beta * self.B) if self.B > 0 else np.inf
        return np.asarray(ratio ** (1 / both) * (budget / FLOPS) ** (self.beta / both))

    @property
    def exponent(self) -> float:
        """The a of ``N_opt ~ flops^a``: beta/(alpha + beta)."""
        return self.beta / (self.alpha + self.beta)


@dataclass(frozen=True)
class Kaplan(TableLaw):
    """``[(Nc/N)^(alphaN/alphaD) + Dc/D]^alphaD``; N counts parameters without embeddings.

    References
    ----------
    Kaplan et al. 2020, arXiv 2001.08361, eq. (1.5).
    """

    Nc: float
    Dc: float
    alphaN: float
    alphaD: float

    name: ClassVar[str] = "kaplan"
    # fitted as log L = alphaD log(k N^-u + Dc/D), u = alphaN/alphaD, k = Nc^u: linear in (k, Dc)
    linear: ClassVar[tuple[str, ...]] = ("k", "Dc")
    nonlinear: ClassVar[tuple[Parameter, ...]] = (
        Parameter("alphaN", 0.005, 2.0, (0.05, 0.1, 0.25)),
        Parameter("alphaD", 0.005, 2.0, (0.05, 0.1, 0.25)),
    )
    link: ClassVar[int] = 1

    @classmethod
    def columns(cls, N: Array, D: Array) -> Columns:
        """See TableLaw.columns."""
        return KaplanColumns(np.log(N), np.log(D))

    def _loss(self, n: Array, d: Array) -> Array:
        u = self.alphaN / self.alphaD
        return np.asarray(((self.Nc / n) ** u + self.Dc / d) ** self.alphaD)

    def _optimal(self, budget: Array) -> Array:
        # derivative of (Nc/N)^u + 6 Dc N/flops by N is 0
        u = self.alphaN / self.alphaD
        return np.asarray((u * self.Nc**u * budget / (FLOPS * self.Dc)) ** (1 / (u + 1)))

    @property
    def exponent(self) -> float:
        """The a of ``N_opt ~ flops^a``: alphaD/(alphaN + alphaD)."""
        return self.alphaD / (self.alphaN + self.alphaD)


@dataclass(frozen=True)
class TwoDimensional(TableLaw):
    """``Linf(N) + C(N)/sqrt(D)`` with ``Linf(N) = E + A N^-a`` and ``C(N) = c0 N^k``: an extension.

    The paper fits Linf and C for each size by itself (``solvers.fit_table.per_size``); the parametric form in
    N is ours.

    References
    ----------
    arXiv 2602.07145, eq. (5.1) and Table 2 (the per-size regressions).
    """

    E: float
    A: float
    c0: float
    a: float
    k: float

    name: ClassVar[str] = "two_dimensional"
    linear: ClassVar[tuple[str, ...]] = ("E", "A", "c0")
    nonlinear: ClassVar[tuple[Parameter, ...]] = (
        Parameter("a", 0.01, 3.0, (0.15, 0.3, 0.6)),
        Parameter("k", -1.0, 1.0, (-0.1, 0.1), "linear"),
    )

    @classmethod
    def columns(cls, N: Array, D: Array) -> Columns:
        """See TableLaw.columns."""
        return SizeColumns(np.log(N), np.log(D))

    def _loss(self, n: Array, d: Array) -> Array:
        return np.asarray(self.E + self.A * n**-self.a + self.c0 * n**self.k / np.sqrt(d))

    def _optimal(self, budget: Array) -> Array:
        # with D = flops/6N the second term is c0 N^(k + 1/2) sqrt(6/flops)
        power = self.k + 0.5
        if power <= 0 or self.c0 <= 0:
            return np.full_like(budget, np.nan)
        return np.asarray(
            (self.a * self.A * np.sqrt(budget / FLOPS) / (power * self.c0)) ** (1 / (self.a + power))
        )

    @property
    def exponent(self) -> float:
        """The a of ``N_opt ~ flops^a``: (1/2)/(a + k + 1/2)."""
        return 0.5 / (self.a + self.k + 0.5)


@dataclass
class PowerColumns:
    """Columns 1, N^-alpha, D^-beta."""

    log_n: Array
    log_d: Array

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Columns (n, 3) and their derivatives by (alpha, beta)."""
        n = self.log_n.size
        X = np.empty((n, 3))
        X[:, 0] = 1.0
        X[:, 1] = np.exp(-theta[0] * self.log_n)
        X[:, 2] = np.exp(-theta[1] * self.log_d)
        dX = np.zeros((n, 3, 2))
        dX[:, 1, 0] = -self.log_n * X[:, 1]
        dX[:, 2, 1] = -self.log_d * X[:, 2]
        return X, dX


@dataclass
class KaplanColumns:
    """Columns N^-u, 1/D with u = alphaN/alphaD."""

    log_n: Array
    log_d: Array

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Columns (n, 2) and their derivatives by (alphaN, alphaD)."""
        one, two = theta
        u = one / two
        X = np.column_stack([np.exp(-u * self.log_n), np.exp(-self.log_d)])
        dX = np.zeros((*X.shape, 2))
        dX[:, 0, 0] = -self.log_n * X[:, 0] / two
        dX[:, 0, 1] = self.log_n * X[:, 0] * one / two**2
        return X, dX


@dataclass
class SizeColumns:
    """Columns 1, N^-a, N^k D^-1/2."""

    log_n: Array
    log_d: Array

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Columns (n, 3) and their derivatives by (a, k)."""
        X = np.column_stack(
            [
                np.ones_like(self.log_n),
                np.exp(-theta[0] * self.log_n),
                np.exp(theta[1] * self.log_n - 0.5 * self.log_d),
            ]
        )
        dX = np.zeros((*X.shape, 2))
        dX[:, 1, 0] = -self.log_n * X[:, 1]
        dX[:, 2, 1] = self.log_n * X[:, 2]
        return X, dX


def kaplan_by_size(N: Array, D: Array) -> tuple[Columns, tuple[Parameter, ...]]:
    """Kaplan's law with Nc itself as a nonlinear parameter (for its profile): columns (Nc/N)^u, 1/D."""
    size = float(np.median(N))
    nonlinear = (Parameter("Nc", 1e-30 * size, 1e60 * size, (1e4 * size,)), *Kaplan.nonlinear)
    return _KaplanBySize(np.log(N), np.log(D)), nonlinear


@dataclass
class _KaplanBySize:
    log_n: Array
    log_d: Array

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        size, one, two = theta
        u = one / two
        ratio = np.log(size) - self.log_n
        X = np.column_stack([np.exp(u * ratio), np.exp(-self.log_d)])
        dX = np.zeros((*X.shape, 3))
        dX[:, 0, 0] = u * X[:, 0] / size
        dX[:, 0, 1] = ratio * X[:, 0] / two
        dX[:, 0, 2] = -ratio * X[:, 0] * one / two**2
        return X, dX
