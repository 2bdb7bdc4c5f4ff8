"""The public sweep of learning rates, cooldowns and horizons (124M parameters), its schedules rebuilt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.theory.schedules import constant, linear, one_minus_sqrt

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["best_peak", "finals", "schedule"]

_PARAMS = 123_587_328


def finals(folder: Path) -> pd.DataFrame:
    """Read the 152 runs with a final validation loss: run_id, peak, steps, loss and what shapes them."""
    import pandas as pd

    runs = pd.read_csv(folder / "runs.csv")
    keep = (runs.params == _PARAMS) & (runs.dataset == "slimpajama") & (runs.base_lr < 4e-3)
    runs = runs[keep & runs.final_val_loss.notna()].reset_index(drop=True)
    return runs.rename(columns={"iterations": "steps", "base_lr": "peak", "final_val_loss": "loss"})


def schedule(run: Any) -> NDArray[np.float64]:
    """Learning rates of a run, one step longer than its updates: the loss is the one after the last."""
    steps, warmup, peak = int(run.steps), int(run.warmup), float(run.peak)
    t = np.arange(steps + 1.0)
    if run.schedule == "cos":
        last = run.cos_final_lr
        end = 0.1 * peak if not np.isfinite(last) or last < 0 else float(last)
        up = 0.01 * peak + 0.99 * peak * (1 - np.cos(np.pi * t / (warmup - 1))) / 2
        part = np.clip((t - warmup + 1) / (steps - warmup), 0, 1)
        return np.where(t < warmup, up, end + (peak - end) * (1 + np.cos(np.pi * part)) / 2)
    lr = constant(steps + 1, peak)
    lr[:warmup] = peak * (0.01 + 0.99 * t[:warmup] / warmup)
    cooled = round(run.cooldown_fraction * steps)
    if cooled:
        shape = one_minus_sqrt if run.decay_type == "sqrt" else linear
        down = np.append(shape(cooled, peak), 0.0)
        lr[steps - cooled :] = np.minimum(lr[steps - cooled :], down)
    return lr


def best_peak(runs: pd.DataFrame) -> float:
    """Vertex of the parabola in log peak through the best learning rate and its neighbours."""
    table = runs.groupby("peak")["loss"].mean()
    x, y = np.log(table.index.to_numpy(dtype=float)), table.to_numpy()
    i = int(np.clip(np.argmin(y), 1, y.size - 2))
    a, b, _ = np.polyfit(x[i - 1 : i + 2], y[i - 1 : i + 2], 2)
    return float(np.exp(-b / (2 * a)))
