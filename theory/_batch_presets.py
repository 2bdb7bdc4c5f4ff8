"""Batch-size schedules of public language models, as reported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_checks import unknown

__all__ = ["PRESETS", "Preset", "preset"]


@dataclass(frozen=True)
class Preset:
    """Batch sizes of a public training run.

    Attributes
    ----------
    name : str
        Model.
    unit : {"tokens", "sequences"}
        What a batch is counted in.
    clock : {"tokens", "steps", "fraction"}
        What positions are counted in (fraction: of the run).
    points : tuple of (position, batch size)
        Where the batch size changes.
    ramp : bool
        Linear between the points; otherwise constant up to the next point.
    lr : str
        Learning-rate schedule, where reported.
    """

    name: str
    unit: str
    clock: str
    points: tuple[tuple[float, float], ...]
    ramp: bool = False
    lr: str = ""

    def batch_at(self, position: ArrayLike) -> NDArray[np.float64]:
        """Batch size at positions >= 0 of this preset's clock."""
        where = np.asarray(position, dtype=float)
        if not (np.isfinite(where).all() and (where >= 0).all()):
            raise ConvexlawError(f"position = {position!r}: give positions >= 0 in {self.clock}")
        at, size = (np.array(column, dtype=float) for column in zip(*self.points, strict=True))
        if self.ramp:
            return np.asarray(np.interp(where, at, size))
        return np.asarray(size[np.searchsorted(at, where, side="right") - 1])

    def __str__(self) -> str:
        pairs = (" -> " if self.ramp else ", ").join(f"{b:g} from {x:g}" for x, b in self.points)
        return f"{self.name}: batch in {self.unit}, by {self.clock}: {pairs}" + (
            f"; lr {self.lr}" * bool(self.lr)
        )


PRESETS: dict[str, Preset] = {
    p.name: p
    for p in (
        Preset(
            "llama3-405b",
            "tokens",
            "tokens",
            ((0, 4e6), (252e6, 8e6), (2.87e12, 16e6)),
            lr="8e-5, cosine to 8e-7 over 1.2M steps, 8k warmup",
        ),
        Preset("gpt-3", "tokens", "tokens", ((0, 32e3), (12e9, 3.2e6)), True),  # 4 to 12 billion by size
        Preset("mt-nlg", "tokens", "tokens", ((0, 65_536), (12e9, 3.93e6)), True),
        Preset("palm", "sequences", "steps", ((0, 512), (50e3, 1024), (115e3, 2048))),  # ends at 255k
        Preset("chinchilla", "tokens", "fraction", ((0, 1.5e6), (0.5, 3e6))),
        Preset("gopher", "tokens", "fraction", ((0, 3e6), (0.5, 6e6))),
        Preset("glm-130b", "sequences", "fraction", ((0, 192), (0.025, 4224)), True),
        Preset(
            "kimi-k2",
            "tokens",
            "tokens",
            ((0, 67e6),),
            lr="2e-4 constant to 10T tokens, then cosine to 2e-5 over 5.5T",
        ),
        Preset("deepseek-v4-flash", "tokens", "tokens", ((0, 75.5e6),)),  # reported: up to
        Preset("deepseek-v4-pro", "tokens", "tokens", ((0, 94.4e6),)),  # reported: up to
    )
}
"""Batch schedules of published runs, by name."""


def preset(name: str) -> Preset:
    """Batch-size schedule of a public model.

    Parameters
    ----------
    name : str
        One of ``PRESETS``. For the two DeepSeek entries only the largest batch is reported.

    Returns
    -------
    Preset

    Raises
    ------
    ConvexlawError
        Unknown name; the message lists the known ones.

    References
    ----------
    arXiv 2607.27731, Table 7.

    Examples
    --------
    >>> preset("palm").batch_at([0, 60_000, 200_000]).tolist()
    [512.0, 1024.0, 2048.0]
    """
    key = str(name).strip().lower()
    if key not in PRESETS:
        raise ConvexlawError(unknown("preset", name, tuple(PRESETS)))
    return PRESETS[key]
