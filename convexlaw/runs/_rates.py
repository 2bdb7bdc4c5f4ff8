"""The learning rate of every step, from what a log holds or a schedule that was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw.errors import ConvexlawError

__all__ = ["Schedule", "dense", "rate_note", "schedule_for"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Schedule = ArrayLike | Mapping[str, ArrayLike] | Callable[[str], ArrayLike]

# 800 MB of float64: a longer run needs a schedule in closed form, not an array
MAX_DENSE = 100_000_000


def schedule_for(schedule: Any, run: str) -> Floats | None:
    """Return the learning rates given for ``run`` as a (T,) array, None where nothing was given.

    Raises
    ------
    ConvexlawError
        Text (it is parsed a layer above), not one-dimensional, negative, or not finite.
    """
    if isinstance(schedule, Mapping):
        key = run if run in schedule else next((k for k in schedule if fnmatchcase(run, str(k))), None)
        schedule = None if key is None else schedule[key]
    if callable(schedule):
        schedule = schedule(run)
    if schedule is None:
        return None
    if isinstance(schedule, (str, bytes)):
        raise ConvexlawError(
            f"schedule = {schedule!r} is text: pass the array of learning rates, one a step, e.g. "
            "convexlaw.theory.schedules.parse(text)"
        )
    try:
        lr = np.asarray(schedule, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConvexlawError(f"schedule of run {run!r} is no array of numbers: {error}") from None
    if lr.ndim != 1 or lr.size == 0 or not np.all(np.isfinite(lr)) or np.any(lr < 0):
        raise ConvexlawError(
            f"schedule of run {run!r} has shape {lr.shape} and must be one finite learning rate >= 0 a step, in one dimension"
        )
    return lr


def dense(run: str, last_step: int, points: tuple[Ints, Floats], schedule: Floats | None) -> Floats:
    """Learning rate of the steps 0 .. last_step.

    Parameters
    ----------
    run : str
        Name, for messages.
    last_step : int
        Last step wanted.
    points : (steps, rates)
        Logged learning rates by step.
    schedule : (T,) array or None
        The learning rates themselves; exact where given. One step short of ``last_step + 1`` is enough (a log that counts
        from 1 ends at step T): the last value is held.

    Returns
    -------
    (last_step + 1,) array
    """
    if last_step >= MAX_DENSE:
        raise ConvexlawError(
            f"run {run!r} ends at step {last_step}: more than {MAX_DENSE} steps are not laid out one by one (are these tokens?)"
        )
    count = last_step + 1
    if schedule is not None:
        if schedule.size < last_step:
            raise ConvexlawError(
                f"the schedule given for run {run!r} has {schedule.size} steps but its log ends at step {last_step}; pass the whole schedule"
            )
        return schedule[:count].copy() if schedule.size >= count else np.append(schedule, schedule[-1])
    own, given = points
    if own.size == 0:
        raise ConvexlawError(
            f"run {run!r} logs no learning rate: pass schedule= (an array with one learning rate a step)"
        )
    own, given = _anchors(own, given)
    return np.interp(np.arange(count), own, given)


def _anchors(own: Ints, given: Floats) -> tuple[Ints, Floats]:
    """Points to draw lines between: a fall to 0 out of a rate that was not declining is a step, not a cooldown.

    A single 0 in the last row is what trainers log for the update after the last: the rate before it is held.
    """
    zeros = np.flatnonzero((given[1:] == 0) & (given[:-1] > 0)) + 1
    extra: list[tuple[int, float]] = []
    drop_last = False
    for z in zeros:
        declining = z >= 2 and given[z - 1] < given[z - 2] * (1 - 1e-6)
        if declining:
            continue
        if z == own.size - 1:
            drop_last = True
        elif own[z] - 1 > own[z - 1]:
            extra.append((int(own[z]) - 1, float(given[z - 1])))
    if drop_last:
        own, given = own[:-1], given[:-1]
    if extra:
        own = np.concatenate((own, np.array([e[0] for e in extra], dtype=np.int64)))
        given = np.concatenate((given, np.array([e[1] for e in extra])))
        order = np.argsort(own, kind="stable")
        own, given = own[order], given[order]
    return own, given


def rate_note(last_step: int, points: tuple[Ints, Floats]) -> list[tuple[str, str]]:
    """Say what a dense learning rate would have to guess."""
    own, given = points
    if own.size == 0:
        return [("no_lr", "no learning rate in the log: pass schedule= before fitting")]
    notes = []
    held, _ = _anchors(own, given)
    if given[-1] == 0 and held.size and held[-1] != own[-1]:
        notes.append(
            (
                "trailing_zero",
                f"the last learning rate (step {own[-1]}) is logged as 0 after {given[-2]:g}: "
                f"no cooldown is read into it, {given[-2]:g} is held",
            )
        )
    if own[0] > 0:
        notes.append(
            (
                "lr_start",
                f"no learning rate before step {own[0]}: {given[0]:g} is held back to step 0 (pass schedule= if there was a warmup)",
            )
        )
    steps, rates = _anchors(own, given)
    gaps = np.diff(steps)
    changing = (gaps > 1) & (np.diff(rates) != 0)
    if changing.any():
        widest = int(np.argmax(np.where(changing, gaps, 0)))
        notes.append(
            (
                "lr_gaps",
                f"learning rate logged at {own.size} steps; lines are drawn across {int(changing.sum())} gaps in which it changes "
                f"(widest {gaps[widest]} steps, {steps[widest]} to {steps[widest + 1]})",
            )
        )
    if last_step > own[-1]:
        notes.append(
            ("lr_end", f"no learning rate after step {own[-1]}: {rates[-1]:g} is held to step {last_step}")
        )
    return notes
