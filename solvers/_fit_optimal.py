"""The compute-optimal size and tokens that a fit of a table gives for a budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from convexlaw._result import Result

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Optimal(Result):
    """Compute-optimal size and tokens for a budget, with intervals from the bootstrap refits.

    Attributes
    ----------
    flops : float
        Budget, ``6 N D``.
    N, D : float
        Parameters and tokens.
    loss : float
        Predicted loss there, in nats.
    N_interval, D_interval, loss_interval : (float, float)
    exponent : float
        The a of ``N_opt ~ flops^a``.
    exponent_interval : (float, float)
    level : float
    """

    flops: float
    N: float
    D: float
    loss: float
    N_interval: tuple[float, float]
    D_interval: tuple[float, float]
    loss_interval: tuple[float, float]
    exponent: float
    exponent_interval: tuple[float, float]
    level: float

    def __iter__(self) -> Iterator[float]:
        """Unpack as ``N, D``."""
        return iter((self.N, self.D))

    def __str__(self) -> str:
        def line(name: str, value: float, limits: tuple[float, float]) -> str:
            return f"  {name:<9}{value:.4g}   {self.level:.0%} [{limits[0]:.4g}, {limits[1]:.4g}]"

        return "\n".join(
            [
                f"compute-optimal at {self.flops:.4g} FLOPs",
                line("N", self.N, self.N_interval),
                line("D", self.D, self.D_interval),
                line("loss", self.loss, self.loss_interval),
                line("exponent", self.exponent, self.exponent_interval),
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Return quantity, value, low, high as rows."""
        import pandas as pd

        rows = [
            ("N", self.N, *self.N_interval),
            ("D", self.D, *self.D_interval),
            ("loss", self.loss, *self.loss_interval),
            ("exponent", self.exponent, *self.exponent_interval),
        ]
        return pd.DataFrame(rows, columns=["quantity", "value", "low", "high"])
