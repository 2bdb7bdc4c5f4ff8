"""A batch schedule as a value: what it spends, and what it gains over one batch size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convexlaw._result import Result

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BatchPlan"]


@dataclass(frozen=True, eq=False)
class BatchPlan(Result):
    """Batch sizes for every step of a run.

    Attributes
    ----------
    lr : (T,) array
        Learning rates.
    batch : (T,) array
        Samples in each step; whole numbers where whole batches were asked for.
    budget : float
        Samples (or cost) given.
    spent : float
        Samples (or cost) used; less than the budget where whole batches do not divide it.
    noise : float
        sum c_t/B_t; the bound contains sigma^2/2 times it.
    static_noise : float
        The same sum for one batch size that spends the budget.
    ideal_noise : float
        The smallest sum that any fractional batch sizes reach within the same limits.
    static_batch : float
        That one batch size.
    """

    _figure = "batch:plot_batch_plan"

    lr: NDArray[np.float64]
    batch: NDArray[Any]
    budget: float
    spent: float
    noise: float
    static_noise: float
    ideal_noise: float
    static_batch: float

    @property
    def unused(self) -> float:
        """Budget that is left."""
        return self.budget - self.spent

    @property
    def gain(self) -> float:
        """Noise of the static batch over the noise of this schedule."""
        return self.static_noise / self.noise

    @property
    def samples(self) -> float:
        """Samples used."""
        return float(self.batch.sum())

    @property
    def stages(self) -> list[tuple[int, float]]:
        """Steps at which the batch size changes, with the batch size from there on."""
        starts = np.concatenate([[0], np.flatnonzero(np.diff(self.batch)) + 1])
        return [(int(t), self.batch[t].item()) for t in starts]

    def __str__(self) -> str:
        return (
            f"batches: {self.batch.size} steps, {self.samples:.10g} samples, {len(self.stages)} stages\n"
            f"batch size {self.batch.min():.6g} to {self.batch.max():.6g} (static {self.static_batch:.6g})\n"
            f"budget {self.budget:.10g}, unused {self.unused:.6g}\n"
            f"noise sum {self.noise:.6g}, static {self.static_noise:.6g}: gain {self.gain:.4f}\n"
            f"{100 * (self.noise / self.ideal_noise - 1):.3g} % above the best fractional schedule"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a step: step, lr, batch_size, samples (used before the step)."""
        import pandas as pd

        before = np.cumsum(self.batch) - self.batch
        steps = np.arange(self.batch.size)
        return pd.DataFrame({"step": steps, "lr": self.lr, "batch_size": self.batch, "samples": before})
