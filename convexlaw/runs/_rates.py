"""The learning rate of every step, from what a log holds or a schedule that was given."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.runs._raw import Floats, Ints, plural, printable
from convexlaw.runs.clean import Stream

__all__ = ["dense", "rate_notes", "schedule_for"]

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
            f"schedule = {printable(schedule)!r} is text: pass the array of learning rates, one a step, e.g. "
            "convexlaw.theory.schedules.parse(text)"
        )
    try:
        lr = np.asarray(schedule, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConvexlawError(
            f"schedule of run {run!r} is no array of numbers ({printable(error)}); pass one learning "
            f"rate a step"
        ) from None
    if lr.ndim != 1 or lr.size == 0 or not np.all(np.isfinite(lr)) or np.any(lr < 0):
        raise ConvexlawError(
            f"schedule of run {run!r} has shape {lr.shape} and must be one finite learning rate >= 0 a "
            f"step, in one dimension"
        )
    return lr


@np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")
def dense(run: str, last_step: int, points: Stream, schedule: Floats | None) -> Floats:
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
        The learning rates themselves; exact where given. One step short of ``last_step + 1`` is enough (a
        log that counts from 1 ends at step T): the last value is held.

    Returns
    -------
    (last_step + 1,) array
    """
    if last_step >= MAX_DENSE:
        raise ConvexlawError(
            f"run {run!r} ends at step {last_step}: more than {MAX_DENSE} steps are not laid out one by "
            f"one (are these tokens?)"
        )
    count = last_step + 1
    if schedule is not None:
        if schedule.size < last_step:
            raise ConvexlawError(
                f"the schedule given for run {run!r} has {schedule.size} steps but its log ends at step "
                f"{last_step}; pass the whole schedule"
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
    """Choose the points to draw lines between: a fall to 0 out of a steady rate is a step, not a cooldown.

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


@np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")
def rate_notes(last_step: int, points: Stream, schedule: Floats | None = None) -> list[tuple[str, str]]:
    """Say what the learning rate of every step has to guess, or how a given schedule differs from the log.

    Parameters
    ----------
    last_step : int
        Last step with a loss.
    points : (steps, rates)
        As logged.
    schedule : (T,) array, optional
        As given.

    Returns
    -------
    list of (kind, sentence)
    """
    own, given = points
    if schedule is not None:
        notes = _against(schedule, own, given)
        if schedule.size == last_step:
            notes.append(
                (
                    "schedule_end",
                    f"the schedule has {schedule.size} steps and the log ends at step {last_step}: its "
                    f"last value is held for that row",
                )
            )
        return notes
    if own.size == 0:
        return [
            ("no_lr", "no learning rate in the log: pass schedule= (one learning rate a step) before fitting")
        ]
    notes = []
    if own.size == last_step + 1 and own[0] == 0 and own[-1] == last_step and given[-1] > 0:
        return notes  # every step is logged
    steps, rates = _anchors(own, given)
    if given[-1] == 0 and own.size > 1 and steps[-1] != own[-1]:
        notes.append(
            (
                "trailing_zero",
                f"the last learning rate (step {own[-1]}) is logged as 0 after {given[-2]:g}: no "
                f"cooldown is read into it, "
                f"{given[-2]:g} is held",
            )
        )
    if own[0] > 1:
        notes.append(
            (
                "lr_start",
                f"no learning rate before step {own[0]}: {given[0]:g} is held back to step 0; pass "
                f"schedule= if the run had a warmup",
            )
        )
    gaps = np.diff(steps)
    changes = np.diff(rates) != 0
    changing = (gaps > 1) & changes
    if changing.any():
        widest = int(np.argmax(np.where(changing, gaps, 0)))
        notes.append(
            (
                "lr_gaps",
                f"learning rate logged at {own.size} of {last_step + 1} steps: lines are drawn across "
                f"{plural(int(changing.sum()), 'gap')} in which it "
                f"changes (widest {gaps[widest]} steps, {steps[widest]} to {steps[widest + 1]})",
            )
        )
    # alone between two constant stretches, and by more than a decay would: a step somewhere inside the gap
    alone = changing.copy()
    alone[1:] &= ~changes[:-1]
    alone[:-1] &= ~changes[1:]
    alone &= np.abs(np.diff(rates)) > 0.05 * np.maximum(rates[1:], rates[:-1])
    if steps.size > 3 and alone[1:].any():
        k = int(np.flatnonzero(alone[1:])[0]) + 1
        notes.append(
            (
                "lr_jump",
                f"learning rate jumps from {rates[k]:g} to {rates[k + 1]:g} between the logged steps "
                f"{steps[k]} and {steps[k + 1]}: "
                "read as a line, pass schedule= for the step itself",
            )
        )
    if last_step > own[-1] + 1:  # the rate of the last row itself no longer acts on any loss
        notes.append(
            ("lr_end", f"no learning rate after step {own[-1]}: {rates[-1]:g} is held to step {last_step}")
        )
    return notes


def _against(schedule: Floats, own: Ints, given: Floats) -> list[tuple[str, str]]:
    """Compare a schedule with the log, also one step later and one step earlier."""
    misses: dict[int, int] = {}
    for shift in (0, -1, 1):
        place = own + shift
        inside = (place >= 0) & (place < schedule.size)
        close = np.isclose(schedule[place[inside]], given[inside], rtol=1e-4, atol=1e-12)
        misses[shift] = int(np.sum(~close)) + int(np.sum(~inside & (own < schedule.size)))
    rows = int(np.sum(own < schedule.size))
    if not rows or not misses[0]:
        return []
    best = min(misses, key=lambda s: misses[s])
    if best != 0 and misses[best] <= min(0.1 * rows, 0.5 * misses[0]):
        late = "one step late" if best == -1 else "one step early (that of the next update)"
        return [
            (
                "late_lr",
                f"the log holds each learning rate {late} ({rows - misses[best]} of {rows} rows agree "
                f"with the schedule so shifted): the schedule is used",
            )
        ]
    return [
        (
            "schedule",
            f"logged and given learning rates differ on {misses[0]} of {rows} rows: the schedule is used",
        )
    ]
