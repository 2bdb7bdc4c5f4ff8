"""The two arrays of a schedule: checks, and the CSV file that holds them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._files import replacing
from convexlaw.errors import ConvexlawError

__all__ = ["checked_rates", "checked_schedule", "checked_sizes", "read_schedule", "write_schedule"]


def write_schedule(path: str | os.PathLike[str], lr: ArrayLike, batch: ArrayLike) -> None:
    """Write a schedule as CSV: step, lr, batch_size, samples (used before the step).

    Parameters
    ----------
    path : path-like
        ``convexlaw train`` takes the file as ``--schedule`` and as ``--batch-schedule``.
    lr, batch : (T,) array_like
        The schedule; numbers are written so that they are read back to the last bit.

    Raises
    ------
    ConvexlawError
        Arrays that are no schedule.
    """
    import pandas as pd

    rates, sizes = checked_schedule(lr, batch)
    frame = pd.DataFrame(
        {
            "step": np.arange(rates.size),
            "lr": rates,
            "batch_size": sizes,
            "samples": np.cumsum(sizes) - sizes,
        }
    )
    with replacing(path) as tmp:
        frame.to_csv(tmp, index=False)


def read_schedule(path: str | os.PathLike[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Read a CSV of ``write_schedule``.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    lr : (T,) array
    batch : (T,) int array

    Raises
    ------
    ConvexlawError
        No such file, a missing column, a wrong value.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "schedule.csv"
    >>> write_schedule(path, [0.1, 1 / 3], [8, 16])
    >>> read_schedule(path)[0].tolist() == [0.1, 1 / 3]
    True
    """
    import pandas as pd

    place = Path(path)
    if not place.is_file():
        raise ConvexlawError(f"{place}: no such file; give a CSV written by write_schedule")
    frame = pd.read_csv(place, comment="#", dtype=str)  # pandas' own floats may miss the last bit
    missing = [name for name in ("lr", "batch_size") if name not in frame.columns]
    if missing:
        raise ConvexlawError(f"{place} has columns {list(frame.columns)}: it lacks {', '.join(missing)}")
    try:
        lr, sizes = (frame[name].to_numpy(dtype=object).astype(np.float64) for name in ("lr", "batch_size"))
    except ValueError as error:
        raise ConvexlawError(f"{place}: {error}; every row needs a learning rate and a batch size") from None
    return checked_schedule(lr, sizes)


def checked_rates(lr: ArrayLike) -> NDArray[np.float64]:
    """Check one learning rate an update: finite, not negative, not all 0."""
    try:
        rates = np.array(lr, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConvexlawError(f"lr = {lr!r:.60}: give one learning rate an update, an array (T,)") from None
    if rates.ndim != 1 or rates.size == 0:
        raise ConvexlawError(f"lr has shape {rates.shape}: give one learning rate an update, shape (T,)")
    wrong = np.flatnonzero(~(np.isfinite(rates) & (rates >= 0)))
    if wrong.size:
        raise ConvexlawError(f"lr[{wrong[0]}] = {rates[wrong[0]]}: learning rates are finite and at least 0")
    if not rates.max() > 0:
        raise ConvexlawError("lr is 0 at every update: give a schedule that moves")
    return rates


def checked_sizes(batch: ArrayLike) -> NDArray[np.int64]:
    """Check one whole batch size an update, at least 1."""
    sizes = np.asarray(batch)
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iuf":
        raise ConvexlawError(f"batch has shape {sizes.shape}: give the samples of every update, shape (T,)")
    wrong = np.flatnonzero(~(np.isfinite(sizes) & (sizes >= 1) & (sizes == np.round(sizes))))
    if wrong.size:
        raise ConvexlawError(
            f"batch[{wrong[0]}] = {sizes[wrong[0]]}: a trainer needs whole batch sizes, at least 1; "
            "plan with integer=True"
        )
    return sizes.astype(np.int64)


def checked_schedule(lr: ArrayLike, batch: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Check learning rates and batch sizes of the same updates."""
    rates, sizes = checked_rates(lr), checked_sizes(batch)
    if rates.size != sizes.size:
        raise ConvexlawError(
            f"{rates.size} learning rates and {sizes.size} batch sizes: give one of each for every update"
        )
    return rates, sizes
