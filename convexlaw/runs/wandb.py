"""Weights & Biases: chart exports (``run - metric`` columns) and histories (``_step``, mostly empty)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.runs._columns import metric_role, normal
from convexlaw.runs._raw import Floats, NotALog, RawRun, listed, plural, printable

__all__ = ["is_chart", "note_history", "read_chart"]

_BOUND = re.compile(r"__(MIN|MAX)$")
_KEPT = ("step", "loss", "val_loss", "lr", "tokens", "grad_norm", "batch_size")


def is_chart(header: Sequence[str]) -> bool:
    """Tell a chart export: an axis, and every other column named ``run - metric``."""
    others = header[1:]
    return bool(others) and " - " not in header[0] and all(" - " in h for h in others)


def _parts(column: str) -> tuple[str, str, str]:
    """Return (run, metric, bound) of a column; a run may hold " - " itself, so the last one parts."""
    bound = _BOUND.search(column)
    run, _, metric = (column[: bound.start()] if bound else column).rpartition(" - ")
    return run, metric, bound[1].lower() if bound else ""


def read_chart(
    header: Sequence[str],
    numbers: Callable[[int], Floats],
    label: str,
    place: str,
    lines: NDArray[np.int64] | None,
) -> list[RawRun]:
    """Read a chart export.

    Parameters
    ----------
    header : sequence of str
        The axis, then ``run - metric``, ``run - metric__MIN``, ``run - metric__MAX``.
    numbers : callable
        A column's values by its place.
    label, place : str
        The source and its rows in messages.
    lines : (n,) int array or None
        Places of the rows.

    Raises
    ------
    NotALog
        No column of a loss or a learning rate, or an axis that does not count updates.
    """
    found: dict[str, dict[str, Floats]] = {}
    metrics: dict[str, None] = {}
    for column, name in enumerate(header[1:], 1):
        owner, metric, bound = _parts(name)
        metrics[printable(metric, 40)] = None
        role = metric_role(metric)
        if role is None or role[0] not in _KEPT:
            continue
        key = f"{role[0]}_{bound}" if bound else role[0]
        found.setdefault(printable(owner), {}).setdefault(key, numbers(column))
    if not any(c in columns for columns in found.values() for c in ("loss", "val_loss", "lr")):
        raise NotALog(f"{label}: a chart of {listed(metrics)}; export the chart of a loss or a learning rate")
    axis = metric_role(header[0])
    first = numbers(0)
    runs = []
    for name, columns in found.items():
        own = dict(columns)
        if axis is not None and axis[0] == "tokens":
            own.setdefault("tokens", first)
        elif axis is not None and axis[0] == "step":
            own["step"] = first
        if "step" not in own:
            raise NotALog(
                f"{label}: the axis of this chart is {printable(header[0], 40)!r}, not a count of "
                f"updates; export it with Step (or "
                "trainer/global_step) as the x axis"
            )
        data: dict[str, NDArray[Any]] = {c: own[c] for c in _KEPT if c in own}
        data["line"] = lines if lines is not None else np.arange(1, first.size + 1)
        run = RawRun(name, label, data, "wandb_chart", place=place, group=f"chart:{name}", named=True)
        _bounds(run, own)
        logged = [c for c in data if c not in ("step", "line", "tokens")]
        run.keep(np.logical_or.reduce([~np.isnan(run.columns[c]) for c in logged]))
        runs.append(run)
    return runs


def _bounds(run: RawRun, columns: dict[str, Floats]) -> None:
    """Drop ``__MIN`` and ``__MAX`` that repeat the value; keep and flag a real range (a grouped chart)."""
    if not {"loss", "loss_min", "loss_max"} <= columns.keys():
        return
    value, low, high = (columns[k] for k in ("loss", "loss_min", "loss_max"))
    apart = np.isfinite(value) & ((low < value) | (high > value))
    if not apart.any():
        run.note("bounds", "the columns __MIN and __MAX repeat the losses: left aside")
        return
    run.columns["loss_min"], run.columns["loss_max"] = low, high
    with np.errstate(invalid="ignore", over="ignore"):
        width = float(np.max(high[apart] - low[apart]))
    run.note(
        "grouped",
        f"{int(apart.sum())} of {plural(int(np.isfinite(value).sum()), 'point')} are means over a range "
        f"(widest {width:.3g} nats): a "
        "grouped, smoothed or binned chart; the range is kept in loss_min and loss_max, export single "
        "runs to fit them",
    )


def note_history(
    header: Sequence[str], chosen: dict[str, int], columns: dict[str, NDArray[Any]]
) -> list[tuple[str, str]] | None:
    """Say how the step of a history export was read; None where the table is no history."""
    names = [normal(h) for h in header]
    if "_step" not in names or not {"_runtime", "_timestamp"} & set(names):
        return None
    step = columns["step"]
    used = header[chosen["step"]]
    if normal(used) == "_step":
        text = "step is '_step', which counts calls of log(): right only if each update logs once"
    else:
        span = f"{np.nanmin(step):.0f} to {np.nanmax(step):.0f}" if np.isfinite(step).any() else "empty"
        text = (
            f"step is {printable(used, 40)!r} ({span}); '_step' counts calls of log() ({step.size} rows) and "
            "is left aside"
        )
    return [("step_column", text)]
