"""Does SLOPE control the false discovery rate? Simulation on orthogonal and Gaussian designs.

The theorem is about one case only: orthogonal columns, known noise, the sequence "bh". There
``FDR <= q (p - k) / p`` with k signals (Bogdan et al., arXiv 1407.3824, Theorem 1.1). On other designs
nothing is proved for fixed n and p. What simulation says (:func:`fdr_table`): with independent Gaussian
columns "bh" does not hold its level once there are signals, since shrunken coefficients leave correlation
with every column; "gaussian" corrects for that, with less power where p is not small against n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._progress import progress_bar
from convexlaw._result import Result
from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DiscoveryRates", "FDRTable", "discovery_rates", "fdr_table"]

DESIGNS = ("orthogonal", "gaussian")


@dataclass(frozen=True)
class DiscoveryRates:
    """False discovery rate and power of one setting, with standard errors.

    Attributes
    ----------
    design, sequence : str
    noise : {"known", "estimate"}
    n, p, signals : int
    q : float
        Level that was asked for.
    fdr, fdr_se : float
        Mean of (false selected) / max(selected, 1), and its standard error.
    power, power_se : float
        Mean share of the signals that is selected; NaN without signals.
    repeats : int
    """

    design: str
    sequence: str
    noise: str
    n: int
    p: int
    signals: int
    q: float
    fdr: float
    fdr_se: float
    power: float
    power_se: float
    repeats: int

    @property
    def verdict(self) -> str:
        """Whether FDR <= q: "yes" or "NO" beyond two standard errors, else "undecided"."""
        if self.fdr + 2.0 * self.fdr_se <= self.q:
            return "yes"
        return "NO" if self.fdr - 2.0 * self.fdr_se > self.q else "undecided"


@dataclass(frozen=True)
class FDRTable(Result):
    """Rates of several settings.

    Attributes
    ----------
    rows : tuple of DiscoveryRates
    """

    rows: tuple[DiscoveryRates, ...]

    _figure: ClassVar[str] = "fdr:plot_fdr"

    def to_frame(self) -> pd.DataFrame:
        """One row a setting, with the verdict."""
        import pandas as pd

        return pd.DataFrame([{**vars(row), "verdict": row.verdict} for row in self.rows])

    def __str__(self) -> str:
        """How many settings hold their level; the worst of those that do not."""
        lines = [f"FDR of SLOPE in {len(self.rows)} settings, {self.rows[0].repeats} repeats each"]
        for verdict, what in (("yes", "controlled"), ("undecided", "undecided"), ("NO", "not controlled")):
            lines.append(f"  {what}: {sum(row.verdict == verdict for row in self.rows)}")
        failed = sorted((r for r in self.rows if r.verdict == "NO"), key=lambda r: r.q - r.fdr)
        for r in failed[:6]:
            lines.append(
                f"  {r.design} {r.n} x {r.p}, {r.sequence}, noise {r.noise}, {r.signals} signals: "
                f"FDR {r.fdr:.3f} (SE {r.fdr_se:.3f}) above q = {r.q:g}"
            )
        return "\n".join(lines)


def discovery_rates(
    design: str,
    sequence: str,
    *,
    n: int,
    p: int,
    signals: int,
    q: float = 0.1,
    strength: float = 1.2,
    noise: str = "known",
    repeats: int = 100,
    rng: np.random.Generator | int = 0,
) -> DiscoveryRates:
    """Simulate the false discovery rate and the power of SLOPE in one setting.

    Columns have norm 1 ("orthogonal") or independent N(0, 1/n) entries, noise is N(0, 1), and every signal
    has the size ``strength * sqrt(2 log p)``. No intercept.

    Parameters
    ----------
    design : {"orthogonal", "gaussian"}
        "orthogonal" needs n >= p.
    sequence : {"bh", "gaussian", "lasso"}
    n, p, signals : int
    q : float
        Level of the sequence.
    strength : float
    noise : {"known", "estimate"}
        ``alpha = 1/n`` at sigma = 1, or ``alpha = "estimate"``.
    repeats : int
        At least 2.
    rng : numpy Generator or seed

    Returns
    -------
    DiscoveryRates

    Raises
    ------
    ConvexlawError
        Numbers or names out of range.

    Examples
    --------
    >>> rates = discovery_rates("orthogonal", "bh", n=50, p=50, signals=5, repeats=20)
    >>> rates.fdr <= 0.3, rates.power > 0.5
    (True, True)
    """
    from convexlaw.solvers.estimators import Slope

    if design not in DESIGNS:
        raise ConvexlawError(f"design = {design!r}: use one of {', '.join(map(repr, DESIGNS))}")
    if design == "orthogonal" and n < p:
        raise ConvexlawError(f"n = {n} < p = {p}: there are no more than n orthogonal columns")
    if not 0 <= signals <= p:
        raise ConvexlawError(f"signals = {signals}: it must lie in 0..p = {p}")
    if noise not in ("known", "estimate"):
        raise ConvexlawError(f"noise = {noise!r}: use 'known' or 'estimate'")
    if repeats < 2:
        raise ConvexlawError(f"repeats = {repeats}: at least 2, for a standard error")
    rng = np.random.default_rng(rng)
    alpha: Any = "1/n" if noise == "known" else "estimate"
    model = Slope(alpha=alpha, lambda_type=sequence, q=q, fit_intercept=False)
    false, hit = np.empty(repeats), np.empty(repeats)
    for i in range(repeats):
        X = np.eye(n, p) if design == "orthogonal" else rng.standard_normal((n, p)) / math.sqrt(n)
        true = np.zeros(p, dtype=bool)
        true[rng.choice(p, signals, replace=False)] = True
        y = X @ (strength * math.sqrt(2.0 * math.log(p)) * true) + rng.standard_normal(n)
        chosen = model.fit(X, y).coef_ != 0
        false[i] = (chosen & ~true).sum() / max(int(chosen.sum()), 1)
        hit[i] = (chosen & true).sum() / signals if signals else np.nan
    root = math.sqrt(repeats)
    return DiscoveryRates(
        design,
        sequence,
        noise,
        n,
        p,
        signals,
        q,
        float(false.mean()),
        float(false.std(ddof=1) / root),
        float(hit.mean()),
        float(hit.std(ddof=1) / root),
        repeats,
    )


def fdr_table(
    settings: Sequence[tuple[str, int, int]] = (
        ("orthogonal", 500, 500),
        ("gaussian", 1000, 500),
        ("gaussian", 500, 500),
    ),
    *,
    sequences: Sequence[str] = ("bh", "gaussian"),
    signals: Sequence[int] = (0, 5, 20, 50),
    noise: Sequence[str] = ("known", "estimate"),
    q: float = 0.1,
    strength: float = 1.2,
    repeats: int = 200,
    rng: int = 0,
    progress: bool | None = None,
) -> FDRTable:
    """Simulate the false discovery rate over designs, sequences and numbers of signals.

    The defaults with 60 repeats (``rng=5``) and q = .1, for 5, 20 and 50 signals; standard errors .01 to .02:

    =======================  ==================  ==================
    columns, weights         noise known         noise estimated
    =======================  ==================  ==================
    orthogonal, bh           .075  .107  .088    .096  .100  .094
    orthogonal, gaussian     .057  .011  .007    .051  .008  .000
    Gaussian n = 2p, bh      .133  .183  .215    .135  .177  .240
    Gaussian n = 2p, gauss.  .059  .096  .083    .085  .091  .067
    Gaussian n = p, bh       .186  .273  .368    .173  .292  .367
    Gaussian n = p, gauss.   .099  .116  .157    .110  .084  .078
    =======================  ==================  ==================

    So "bh" is not controlled on Gaussian columns, nor "gaussian" at n = p with 50 signals and known noise.
    Where hardly a row is left to estimate the noise from it comes out too large, and power falls (from .80 to
    .10 for "gaussian" weights, 500 orthogonal columns and 50 signals).

    Parameters
    ----------
    settings : sequence of (design, n, p)
    sequences, signals, noise : sequence
        Crossed with the settings.
    q, strength, repeats
        As in :func:`discovery_rates`.
    rng : int
        Seed; every setting has its own stream.
    progress : bool, optional

    Returns
    -------
    FDRTable

    Examples
    --------
    >>> table = fdr_table([("orthogonal", 40, 40)], signals=[4], noise=["known"], repeats=10)
    >>> table.to_frame()[["sequence", "signals"]].values.tolist()
    [['bh', 4], ['gaussian', 4]]
    """
    grid = [(*s, kind, k, how) for s in settings for kind in sequences for how in noise for k in signals]
    streams = np.random.SeedSequence(rng).spawn(len(grid))
    rows = []
    with progress_bar("false discovery rates", len(grid), progress) as advance:
        for (design, n, p, kind, k, how), stream in zip(grid, streams, strict=True):
            rows.append(
                discovery_rates(
                    design,
                    kind,
                    n=n,
                    p=p,
                    signals=k,
                    q=q,
                    strength=strength,
                    noise=how,
                    repeats=repeats,
                    rng=np.random.default_rng(stream),
                )
            )
            advance(1)
    return FDRTable(tuple(rows))
