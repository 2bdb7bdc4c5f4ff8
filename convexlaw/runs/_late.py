"""Learning rates that a log holds one step late: at step k that of update k - 1, the one just done."""

from __future__ import annotations

import math

import numpy as np

from convexlaw.runs._raw import Floats, Ints, RawRun
from convexlaw.runs.clean import Stream

__all__ = ["placed"]


def _rise(own: Ints, given: Floats, least: int) -> float | None:
    """Return the step at which a line through the first rates of a warmup crosses zero; None without one."""
    # a zero at step 0 may be the start of the line or what stands for update -1
    first = int(np.argmax(given > 0))
    own, given = own[first:], given[first:]
    if own.size < least or not 0 < given[0] < given[1]:
        return None
    own, given = own[:least], given[:least]
    slope = (given[1] - given[0]) / (own[1] - own[0])
    line = given[0] + slope * (own - own[0])
    if np.any(np.abs(given - line) > 1e-4 * np.abs(line)):
        return None
    start = float(own[0] - given[0] / slope)
    return start if math.isfinite(start) else None


def _fall(own: Ints, given: Floats) -> float | None:
    """Return the step at which the line through the last rates reaches zero; None without such a line."""
    if own.size < 3 or not given[-2] > given[-1] >= 0:
        return None
    slope = (given[-2] - given[-1]) / (own[-1] - own[-2])
    before = (given[-3] - given[-2]) / (own[-2] - own[-3])
    if abs(before - slope) > 1e-3 * slope:
        return None  # not a line
    end = float(own[-1] + given[-1] / slope)
    return end if math.isfinite(end) else None


@np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")
def placed(raw: RawRun, logged: Stream) -> tuple[Stream, list[tuple[str, str]]]:
    """Put logged learning rates at the updates that they belong to.

    A warmup in a straight line from zero tells where a log stands: torch and Hugging Face start it at update
    0, so a line through zero at step 1 is one step late. Hugging Face logged the rate of the next update up
    to version 4.50 and that of the update just done since; a linear decay that ends at ``max_steps`` tells
    the two apart as well.

    Parameters
    ----------
    raw : RawRun
        Where the rates come from.
    logged : (steps, rates)
        As logged.

    Returns
    -------
    points : (steps, rates)
        Moved by one step where the log is late.
    notes : list of (kind, sentence)
    """
    own, given = logged
    trainer = raw.kind == "huggingface" or raw.meta.get("columns", {}).get("step") == "train/global_step"
    if own.size < 2:
        return logged, []
    start = _rise(own, given, 2 if trainer else 3)
    late: bool | None = None
    if start is not None and abs(start - round(start)) < 0.02:
        late = True if round(start) == 1 else False if round(start) in (0, -1) else None
    if trainer and late is None:
        late = _by_the_end(raw, own, given)
    assumed = ""
    if trainer and late is None:
        late = "best_global_step" in raw.meta
        assumed = " (assumed from the fields of the file)"
    if not late:
        if trainer:
            text = "each learning rate is that of the next update, which is lr[step] counted from 0"
            return logged, [("next_lr", f"{text}{assumed}")]
        return logged, []
    keep = own > 0
    text = (
        f"{int(keep.sum())} learning rates are logged one step late (at step k that of update k - "
        f"1{assumed}): "
        "dense_lr puts them one step earlier, the table keeps them as logged"
    )
    return (own[keep] - 1, given[keep]), [("late_lr", text)]


def _by_the_end(raw: RawRun, own: Ints, given: Floats) -> bool | None:
    last = raw.meta.get("max_steps")
    if not isinstance(last, (int, float)) or not last > 0:
        return None
    end = _fall(own, given)
    if end is not None and abs(end - round(end)) < 0.02:
        return True if round(end) == last + 1 else False if round(end) == last else None
    if own[-1] == last and given[-1] == 0:
        return False
    return None
