"""MLflow metric files: one file a metric, lines of ``time value step``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError
from convexlaw.runs._columns import metric_role
from convexlaw.runs._raw import NotALog, RawRun, printable
from convexlaw.runs._source import Source

__all__ = ["is_metric_file", "read_metric_file"]

_LINE = re.compile(rb"\d{12,14} [-+.\w]+ -?\d+\r?")


def is_metric_file(head: bytes) -> bool:
    """Tell a metric file: every line is a time in milliseconds, a value and a step."""
    lines = head.split(b"\n")[:20]
    whole = lines[:-1] if len(lines) > 1 else lines
    return bool(whole) and all(_LINE.fullmatch(line) for line in whole)


def read_metric_file(source: Source) -> list[RawRun]:
    """Read one metric file as a piece of the run whose folder it lies in.

    Raises
    ------
    ConvexlawError
        A metric that plays no part here, or lines of another form.
    """
    metric, folder = _metric_and_folder(source)
    role = metric_role(metric) or metric_role(metric.rpartition("/")[2])
    if role is None or role[0] not in ("loss", "val_loss", "lr", "batch_size", "tokens", "grad_norm"):
        raise NotALog(f"{source.label}: the MLflow metric {printable(metric, 60)!r} plays no part here")
    rows = []
    for number, line in enumerate(source.data().split(b"\n"), 1):
        if not line.strip():
            continue
        parts = line.split()
        try:
            time, value, step = int(parts[0]), float(parts[1]), int(parts[2]) if len(parts) > 2 else 0
            rows.append((float(time), value, float(step), number))
        except (ValueError, IndexError, OverflowError):
            raise ConvexlawError(
                f"{source.label}: line {number} ({printable(line.decode(errors='replace'), 40)!r}) is "
                f"not 'time value step'; mend or remove it"
            ) from None
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    columns: dict[str, NDArray[Any]] = {
        "step": table[:, 2],
        role[0]: table[:, 1],
        "line": table[:, 3].astype(np.int64),
    }
    columns["time"] = table[:, 0]
    if role[0] in ("loss", "val_loss"):
        columns[f"{role[0]}_nan"] = np.isnan(table[:, 1])
    name = source.name
    if folder is not None:
        name = folder.name
        if source.root is not None and source.root != folder and source.root in folder.parents:
            name = folder.relative_to(source.root).as_posix()
    run = RawRun(
        printable(name),
        source.label,
        columns,
        "mlflow",
        group=f"mlflow:{folder or source.label}",
        place=f"line of {metric}",
    )
    if folder is not None:
        _describe(run, folder)
    return [run]


def _metric_and_folder(source: Source) -> tuple[str, Path | None]:
    """Return (metric, run folder): the path below ``metrics/`` is the name of the metric."""
    if source.path is None:
        return source.name, None
    parts = source.path.parts
    if "metrics" in parts[:-1]:
        at = len(parts) - 1 - parts[::-1].index("metrics")
        return "/".join(parts[at + 1 :]), Path(*parts[:at]) if at else Path()
    return source.path.name, source.path.parent


def _describe(run: RawRun, folder: Path) -> None:
    """Take the run's own name and its parameters from beside the metrics."""
    title = _small(folder / "tags" / "mlflow.runName")
    if title:
        run.name, run.named = printable(title), True
    params = folder / "params"
    if params.is_dir():
        for path in sorted(params.iterdir())[:200]:
            text = _small(path)
            if text is not None:
                try:
                    run.meta[path.name] = float(text) if not text.lstrip("-").isdigit() else int(text)
                except ValueError:
                    run.meta[path.name] = printable(text)


def _small(path: Path) -> str | None:
    try:
        if path.is_file() and path.stat().st_size < 10_000:
            return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return None
