"""Weights & Biases: chart exports (``run - metric`` columns)."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from convexlaw.errors import ConvexlawError
from convexlaw.runs._columns import metric_role, normal
from convexlaw.runs._raw import RawRun
from convexlaw.runs._source import printable

__all__ = ["is_chart", "read_chart"]

_BOUND = re.compile(r"__(MIN|MAX)$")


def is_chart(header: list[str]) -> bool:
    """Tell a chart export: a step column, and every other column named ``run - metric``."""
    others = [h for h in header[1:] if h]
    return len(header) > 1 and bool(others) and all(" - " in h for h in others)


def _parts(column: str) -> tuple[str, str, str]:
    """Return (run, metric, bound) of a column; a run may hold " - " itself, so the last one parts."""
    bound = _BOUND.search(column)
    base = column[: bound.start()] if bound else column
    run, _, metric = base.rpartition(" - ")
    return run, metric, bound[1] if bound else ""


def read_chart(table: pd.DataFrame, header: list[str], label: str) -> list[RawRun]:
    """Read a chart export whose columns stand in the order of ``header``.

    Raises
    ------
    ConvexlawError
        No column of a loss.
    """
    axis = normal(header[0])
    step = table.iloc[:, 0].to_numpy(np.float64)
    found: dict[str, dict[str, np.ndarray]] = {}
    unknown: set[str] = set()
    for place, column in enumerate(header[1:], 1):
        run, metric, bound = _parts(column)
        role = metric_role(metric)
        if role is None:
            unknown.add(metric)
            continue
        key = role[0] + (f"_{bound.lower()}" if bound else "")
        found.setdefault(run, {})[key] = table.iloc[:, place].to_numpy(np.float64)
    runs = []
    for name, columns in found.items():
        if "loss" not in columns and "val_loss" not in columns and "lr" not in columns:
            continue
        data = {
            "step": step,
            **{
                k: v
                for k, v in columns.items()
                if k in ("loss", "val_loss", "lr", "tokens", "grad_norm", "batch_size")
            },
        }
        frame = pd.DataFrame(data)
        frame["line"] = np.arange(len(frame)) + 2
        own = frame.drop(columns=["step", "line"]).notna().any(axis=1).to_numpy()
        run = RawRun(name, label, frame.loc[own].reset_index(drop=True), "wandb_chart")
        _bounds(run, columns, own)
        if axis not in ("step", "_step", "global_step", "trainer/global_step", "train/global_step"):
            run.meta["axis"] = header[0]
        runs.append(run)
    if not runs:
        metrics = ", ".join(sorted(printable(m, 40) for m in unknown)[:8])
        raise ConvexlawError(
            f"{label}: a chart export of {metrics or 'nothing'}; export the chart of a loss (train/loss, val/loss)"
        )
    return runs


def _bounds(run: RawRun, columns: dict[str, np.ndarray], own: np.ndarray) -> None:
    """Drop __MIN and __MAX that repeat the value; keep and flag those that are a real range (a grouped chart)."""
    if "loss" not in columns or "loss_min" not in columns or "loss_max" not in columns:
        return
    value, low, high = (columns[k][own] for k in ("loss", "loss_min", "loss_max"))
    apart = np.isfinite(value) & ((low != value) | (high != value)) & ~(np.isnan(low) & np.isnan(high))
    if not apart.any():
        return
    run.frame = run.frame.assign(loss_min=low, loss_max=high)
    with np.errstate(invalid="ignore", over="ignore"):
        width = float(np.nanmax(high[apart] - low[apart]))
    run.note(
        "grouped",
        f"{int(apart.sum())} of {int(np.isfinite(value).sum())} points are means with a range (widest {width:.3g}): a grouped or binned "
        "chart; the range is kept in loss_min, loss_max; export single runs for a fit",
    )
