"""How far predictions are from losses, a curve at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

__all__ = ["curve_metrics"]


def curve_metrics(loss: Array, predicted: Array) -> dict[str, float]:
    """R2, MAE, RMSE, PredE, WorstE and the error at the last row of one curve.

    Parameters
    ----------
    loss, predicted : (n,) arrays
        In nats.

    Returns
    -------
    dict
        ``r2``, ``mae``, ``rmse`` (nats), ``prede`` = mean |e|/L, ``worste`` = max |e|/L, ``final_error`` = e
        at the last row (e = prediction - loss); NaN without rows, R2 also where the loss does not vary.
    """
    if not loss.size:
        return dict.fromkeys(("r2", "mae", "rmse", "prede", "worste", "final_error"), float("nan"))
    error = predicted - loss
    spread = float(np.sum((loss - loss.mean()) ** 2))
    size = np.abs(error)
    return {
        "r2": 1.0 - float(np.sum(error**2)) / spread if spread > 0 else float("nan"),
        "mae": float(size.mean()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "prede": float(np.mean(size / loss)),
        "worste": float(np.max(size / loss)),
        "final_error": float(error[-1]),
    }
