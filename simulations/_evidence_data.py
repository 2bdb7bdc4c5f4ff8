"""What the tables of the evidence page share: paired differences, final losses, whole schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.simulations.evidence import EXPERIMENTS, load

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from convexlaw.simulations.sweep import RunSpec

__all__ = ["dense", "finals", "interval", "logged", "prolonged", "seeds", "spec_of"]


def interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """Mean and its limits by Student's t.

    Parameters
    ----------
    values : array_like, shape (n,)
        Independent values, n >= 2.
    level : float
        Confidence.

    Returns
    -------
    mean, low, high : float

    Examples
    --------
    >>> [round(x, 3) for x in interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    from scipy.stats import t

    x = np.asarray(values, dtype=float)
    mean = float(x.mean())
    half = float(t.ppf(0.5 + level / 2, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size))
    return mean, mean - half, mean + half


def finals(name: str) -> dict[str, float]:
    log = load(name)
    steps = {spec.name: len(spec.lr()) for spec in EXPERIMENTS[name]}
    last = log[log.step == log.run.map(steps)]
    return dict(zip(last.run, last.val_loss, strict=True))


def seeds(final: dict[str, float], stem: str) -> NDArray[np.float64]:
    found = [final[f"{stem}_seed{i}"] for i in range(5) if f"{stem}_seed{i}" in final]
    return np.array(found)


def spec_of(name: str, run: str) -> RunSpec:
    return next(spec for spec in EXPERIMENTS[name] if spec.name == run)


def prolonged(values: NDArray[Any]) -> NDArray[Any]:
    """One more step, so that the loss after the last update has a place."""
    return np.append(values, values[-1])


def logged(name: str, spec: RunSpec, after: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    log = load(name)
    part = log[(log.run == spec.name) & (log.step >= after)]
    return part.step.to_numpy(), part.val_loss.to_numpy()


def dense(name: str, specs: list[RunSpec]) -> pd.DataFrame:
    """Rates and batch sizes of every step, losses where they were logged."""
    import pandas as pd

    parts = []
    for spec in specs:
        lr = prolonged(spec.lr())
        steps, losses = logged(name, spec)
        column = np.full(lr.size, np.nan)
        column[steps] = losses
        rows = {"run": spec.name, "step": np.arange(lr.size), "lr": lr, "val_loss": column}
        parts.append(pd.DataFrame({**rows, "batch_size": prolonged(spec.batches())}))
    return pd.concat(parts, ignore_index=True)
