"""What a cross-validation found: scores by alpha and fold, the choice, and the rule that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

SELECTIONS = ("min", "1se")


@dataclass(frozen=True, eq=False)
class CVCurve(Result):
    """Cross-validated scores along a path.

    Attributes
    ----------
    alphas : ndarray, shape (m,)
        Decreasing.
    scores : ndarray, shape (m, k)
        Score of each alpha in each of the k folds (all repeats, one after the other).
    mean : ndarray, shape (m,)
        Mean over the folds.
    se : ndarray, shape (m,)
        Its standard error: from the spread of the folds within a repeat, averaged over the repeats. More
        repeats do not shrink it, since they use the same rows again; NaN with a single fold.
    n_nonzero, n_clusters : ndarray of int, shape (m,)
        Of the path on all rows.
    best : int
        Position of the best mean; at ties the largest alpha.
    one_se : int
        Position of the largest alpha whose mean is within one standard error of the best.
    selection : {"min", "1se"}
        Which of the two was chosen.
    criterion : str
        What the scores are, e.g. "mean squared error".
    greater_is_better : bool
    repeats : int
    penalty : str
        The penalty sequence.
    """

    alphas: Vector
    scores: Vector
    mean: Vector
    se: Vector
    n_nonzero: NDArray[np.int64]
    n_clusters: NDArray[np.int64]
    best: int
    one_se: int
    selection: str
    criterion: str
    greater_is_better: bool
    repeats: int
    penalty: str

    _figure: ClassVar[str] = "cross_validation:plot_cv_curve"

    @property
    def chosen(self) -> int:
        """Position of the chosen alpha."""
        return self.one_se if self.selection == "1se" else self.best

    def __str__(self) -> str:
        """Summary in a few lines."""
        folds = self.scores.shape[1]
        rounds = f"{folds} folds" if self.repeats == 1 else f"{folds // self.repeats} folds x {self.repeats}"
        lines = [f"Cross-validation, {rounds}, {self.alphas.size} alphas, {self.penalty}"]
        for name, k in (("best", self.best), ("one SE", self.one_se)):
            mark = "  <- chosen" if k == self.chosen and (name == "best") == (self.selection == "min") else ""
            lines.append(
                f"  {name:<7} alpha {self.alphas[k]:.6g}: {self.criterion} {self.mean[k]:.6g} "
                f"(SE {self.se[k]:.2g}), {self.n_nonzero[k]} nonzero, {self.n_clusters[k]} clusters{mark}"
            )
        if self.best in (0, self.alphas.size - 1) and self.alphas.size > 1:
            end = "largest" if self.best == 0 else "smallest"
            lines.append(f"  the best alpha is the {end} of the grid: the optimum may lie beyond it")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """One row an alpha: mean, se, sizes of the model, whether it was chosen, and every fold."""
        import pandas as pd

        head = pd.DataFrame(
            {
                "alpha": self.alphas,
                "mean": self.mean,
                "se": self.se,
                "n_nonzero": self.n_nonzero,
                "n_clusters": self.n_clusters,
                "chosen": np.arange(self.alphas.size) == self.chosen,
            }
        )
        folds = [f"fold_{k}" for k in range(self.scores.shape[1])]
        return pd.concat([head, pd.DataFrame(self.scores, columns=folds)], axis=1)


def make_curve(
    alphas: Vector,
    scores: Vector,
    *,
    n_nonzero: NDArray[np.int64],
    n_clusters: NDArray[np.int64],
    selection: str,
    criterion: str,
    greater_is_better: bool,
    repeats: int,
    penalty: str,
) -> CVCurve:
    """Summarise the scores of the folds and choose.

    Parameters
    ----------
    alphas : ndarray, shape (m,)
        Decreasing.
    scores : ndarray, shape (m, k)
        NaN for a fold that cannot be scored.

    Returns
    -------
    CVCurve

    Raises
    ------
    ConvexlawError
        No fold could be scored.
    """
    usable = np.asarray(~np.isnan(scores).any(axis=0))
    if not usable.any():
        raise ConvexlawError(
            f"no fold has a {criterion} that is a number: too few rows to test on (or no weight on them); "
            "use fewer folds, or another scoring"
        )
    mean = scores[:, usable].mean(axis=1)
    # folds of one repeat test on different rows, those of several on the same
    variances, size = [], scores.shape[1] // repeats
    for r in range(repeats):
        inside = np.arange(r * size, (r + 1) * size)
        inside = inside[usable[inside]]
        if inside.size > 1:
            variances.append(scores[:, inside].var(axis=1, ddof=1) / inside.size)
    se = np.sqrt(np.mean(variances, axis=0)) if variances else np.full(alphas.size, np.nan)
    loss: Vector = np.asarray(-mean if greater_is_better else mean)
    best = int(np.argmin(loss))
    room = float(se[best]) if np.isfinite(se[best]) else 0.0
    return CVCurve(
        alphas=alphas,
        scores=scores,
        mean=mean,
        se=se,
        n_nonzero=n_nonzero,
        n_clusters=n_clusters,
        best=best,
        one_se=int(np.flatnonzero(loss <= loss[best] + room)[0]),
        selection=selection,
        criterion=criterion,
        greater_is_better=greater_is_better,
        repeats=repeats,
        penalty=penalty,
    )
