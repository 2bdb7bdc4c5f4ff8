"""Where a prediction leaves the data of its fit, and whether a text names runs or files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError, ExtrapolationWarning
from convexlaw.solvers._fit_data import pick
from convexlaw.solvers._fit_state import FitState, Ranges
from convexlaw.theory._law_inputs import per_step, steps_asked

Array = NDArray[np.float64]

EXTRAPOLATION = 4.0  # predictions beyond this many times the fitted range are warned about
SHOWN = 3  # of several predictions beyond it, those named


def beyond(ranges: Ranges, rates: Array, last: int) -> list[str]:
    """Say in what the first ``last`` steps of a schedule leave 4 times the range of the fitted runs."""
    used = rates[:last]
    peak, total = float(used.max()), float(used.sum())
    said = []
    if used.size > EXTRAPOLATION * ranges.steps:
        said.append(f"{used.size} steps against at most {ranges.steps} fitted")
    elif total > EXTRAPOLATION * ranges.total:
        said.append(f"a sum of learning rates of {total:.4g} against at most {ranges.total:.4g} fitted")
    if peak > EXTRAPOLATION * ranges.peaks[1] or 0 < peak < ranges.peaks[0] / EXTRAPOLATION:
        said.append(
            f"a peak learning rate of {peak:.4g} against {ranges.peaks[0]:.4g} to "
            f"{ranges.peaks[1]:.4g} fitted"
        )
    return said


def warn_beyond(state: FitState, rates: Array, at: ArrayLike | None) -> None:
    """Warn about a prediction beyond 4 times the steps, the sum of rates or the peaks of the fitted runs."""
    if rates.ndim != 1 or not rates.size:
        return  # the law says what is wrong
    asked = steps_asked(at, rates.size)
    last = rates.size if not asked.size else int(asked.max()) + 1
    said = beyond(state.ranges, rates, last)
    if said:
        warnings.warn(
            f"this prediction lies beyond 4 times the fitted range ({'; '.join(said)}): "
            "no interval covers the failure of a law there; fit a run nearer to it",
            ExtrapolationWarning,
            stacklevel=4,
        )


def warn_all(what: str, found: Iterable[tuple[str, list[str]]], advice: str) -> None:
    """Warn once about several predictions, of which those beyond the range are named."""
    named = [f"{name}: {', '.join(said)}" for name, said in found if said]
    if named:
        more = f"; {len(named) - SHOWN} more" if len(named) > SHOWN else ""
        warnings.warn(
            f"{what} lie beyond 4 times the fitted range ({'; '.join(named[:SHOWN])}{more}): {advice}",
            ExtrapolationWarning,
            stacklevel=4,
        )


def check_batch(state: FitState, rates: Array, batch_size: ArrayLike | None) -> Array | None:
    """Batch size of every step where the fit has a batch term; an error where it knows nothing of it."""
    known = state.ranges.batches
    if state.batch:
        if batch_size is None:
            raise ConvexlawError("this fit has a batch term (b_batch): pass batch_size")
        sizes = per_step("batch_size", batch_size, rates.size)
        if known is not None and (
            sizes.max() > EXTRAPOLATION * known[1] or sizes.min() < known[0] / EXTRAPOLATION
        ):
            warnings.warn(
                f"batch sizes of {sizes.min():g} to {sizes.max():g} lie beyond 4 times the fitted "
                f"{known[0]:g} to {known[1]:g}",
                ExtrapolationWarning,
                stacklevel=4,
            )
        return np.asarray(sizes, dtype=np.float64)
    if batch_size is not None:
        sizes = per_step("batch_size", batch_size, rates.size)
        if known is None or not np.allclose(sizes, known[0], rtol=1e-6) or known[0] != known[1]:
            seen = "no batch size" if known is None else f"the batch size {known[0]:g} alone"
            raise ConvexlawError(
                f"batch_size is given but the fitted runs log {seen}: the fit cannot tell what "
                f"another batch size does; "
                "leave batch_size out, or fit runs with at least two batch sizes"
            )
    return None


def are_names(runs: Any, known: Sequence[str]) -> bool:
    """Whether ``runs`` are names or globs of runs of the fit rather than other logs."""
    if isinstance(runs, str):
        try:
            pick(known, runs)
        except ConvexlawError:
            from pathlib import Path

            return not (
                Path(runs).exists() or os.sep in runs or runs.endswith((".csv", ".json", ".gz", ".parquet"))
            )
        return True
    if isinstance(runs, (list, tuple)) and runs and all(isinstance(r, str) for r in runs):
        return all(are_names(r, known) for r in runs)
    return False
