"""Experiments that test the theory; torch is imported only inside the functions that train."""

from __future__ import annotations

import importlib.resources
from pathlib import Path

__all__ = ["DEMO_TRAIN", "demo_logs"]

DEMO_TRAIN: tuple[str, ...] = (
    "constant_4000_3e-3_seed1",
    "cosine_4000_3e-3_seed1",
    "wsd20_2000_3e-3_seed1",
)
"""Names of the packaged runs that the demo fits on; it predicts all the others."""


def demo_logs() -> list[Path]:
    """Give the packaged logs of real training runs, one CSV a run, sorted by name.

    ``logs/README.md`` in the same folder says how they were made; the command of each is in its header.

    Returns
    -------
    list of pathlib.Path

    Examples
    --------
    >>> all(path.suffix == ".csv" for path in demo_logs())
    True
    """
    folder = Path(str(importlib.resources.files("convexlaw.simulations").joinpath("logs")))
    return sorted(folder.glob("*.csv"))
