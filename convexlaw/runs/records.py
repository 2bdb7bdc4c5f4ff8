"""JSON: one object a line (JSONL), lists of records, columns of equal length, nested histories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from convexlaw.errors import ConvexlawError
from convexlaw.runs._cells import FrameTable
from convexlaw.runs._columns import metric_role
from convexlaw.runs._raw import NotALog, RawRun, plural, printable
from convexlaw.runs._source import Source
from convexlaw.runs._tables import runs_of_table
from convexlaw.runs.huggingface import is_trainer_state, read_trainer_state

__all__ = ["looks_like_lines", "read_json", "read_lines"]

MAX_JSON = 512 << 20  # one document is held whole, several times its size
MAX_LINE = 8 << 20
_DEPTH = 6
_KEYS = 2000  # of one record
_HISTORY = ("_runtime", "_timestamp")


def _loads(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep for a log") from None
    except ValueError as error:
        if "digits" in str(error):
            raise ValueError("a whole number of thousands of digits") from None
        raise


def looks_like_lines(head: bytes) -> bool:
    """Tell JSONL from one JSON document: the first line is a whole object and more follows."""
    first, _, rest = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    if not first.startswith(b"{") or not rest.strip():
        return False
    try:
        return isinstance(_loads(first), dict)
    except ValueError:
        return False


def _flat(record: dict[Any, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a record with keys joined by "/"."""
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            if depth < _DEPTH:
                yield from _flat(value, f"{name}/", depth + 1)
        elif not isinstance(value, list):
            yield name, value


def _table(records: Iterable[tuple[int, dict[str, Any]]], label: str, place: str) -> FrameTable:
    """Collect the columns that play a part (and those that may name runs); the rest is let go."""
    columns: dict[str, list[Any]] = {}
    ignored: set[str] = set()
    lines: list[int] = []
    for line, record in records:
        count = len(lines)
        for number, (name, value) in enumerate(_flat(record)):
            if number > _KEYS:
                raise ConvexlawError(
                    f"{label}: {place} {line} has more than {_KEYS} keys; this is no training log"
                )
            if name in ignored:
                continue
            column = columns.get(name)
            if column is None:
                tail = name.rpartition("/")[2]
                if metric_role(name) is None and metric_role(tail) is None and name not in _HISTORY:
                    if len(ignored) < 100_000:
                        ignored.add(name)
                    continue
                if len(columns) > _KEYS:
                    raise ConvexlawError(
                        f"{label}: more than {_KEYS} different metrics; this is no training log"
                    )
                column = columns[name] = []
            column.extend([None] * (count - len(column)))
            if len(column) == count:
                column.append(value)
        lines.append(line)
    for column in columns.values():
        column.extend([None] * (len(lines) - len(column)))
    frame = pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()})
    if not len(frame.columns):
        raise NotALog(f"{label}: {plural(len(lines), 'JSON record')} without step or loss")
    return FrameTable(frame, label, place, np.array(lines, dtype=np.int64), tells_nan=True)


def read_lines(source: Source) -> list[RawRun]:
    """Read JSONL: one object a line; a last line that is cut is dropped with a note.

    Raises
    ------
    ConvexlawError
        Lines that are no JSON objects.
    """
    cut: list[str] = []

    def records() -> Iterator[tuple[int, dict[str, Any]]]:
        with source.stream() as file:
            number = 0
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise ConvexlawError(
                        f"{source.label}: line {number} is longer than {MAX_LINE >> 20} MiB; this is no "
                        f"training log"
                    )
                if not line.strip():
                    continue
                try:
                    value = _loads(line.removeprefix(b"\xef\xbb\xbf"))
                except ValueError as error:
                    if not line.endswith(b"\n") and number > 1:
                        cut.append(
                            f"the last line ({printable(line.decode(errors='replace'), 40)!r}, line "
                            f"{number}) is cut: dropped"
                        )
                        return
                    raise ConvexlawError(
                        f"{source.label}: line {number} is no JSON ({printable(error)}); mend or remove it"
                    ) from None
                if not isinstance(value, dict):
                    raise ConvexlawError(
                        f"{source.label}: line {number} is {type(value).__name__}, not an object with "
                        f"names; mend or remove it"
                    )
                yield number, value

    table = _table(records(), source.label, "line")
    runs = runs_of_table(table, source.label, source.name, "jsonl")
    for run in runs:
        run.notes[:0] = [("cut", text) for text in cut]
    return runs


def read_json(source: Source) -> list[RawRun]:
    """Read one JSON document: a trainer state, records, columns, or a history of parts.

    Raises
    ------
    ConvexlawError
        Not whole JSON, or JSON of another kind.
    """
    data = source.data()
    if len(data) > MAX_JSON:
        raise ConvexlawError(
            f"{source.label}: {len(data) >> 20} MiB of JSON; the limit is {MAX_JSON >> 20} MiB, write "
            f"one object a line instead"
        )
    try:
        value = _loads(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise ConvexlawError(
            f"{source.label}: not whole JSON ({printable(error)}); if the file was cut, copy it again"
        ) from None
    if is_trainer_state(value):
        return read_trainer_state(value, source.label, source.name)
    return _document(value, source.label, source.name)


def _document(value: Any, label: str, name: str) -> list[RawRun]:
    if isinstance(value, list):
        if value and all(isinstance(v, dict) and "history" in v for v in value):
            runs = []
            for k, part in enumerate(value):
                runs += _document(part, label, f"{name} {k}" if len(value) > 1 else name)
            return runs
        if not value or not all(isinstance(v, dict) for v in value):
            raise NotALog(f"{label}: a JSON list of other things than records with step and loss")
        return runs_of_table(_table(enumerate(value, 1), label, "record"), label, name, "json")
    if not isinstance(value, dict):
        raise NotALog(f"{label}: JSON, but {type(value).__name__} rather than records with step and loss")
    if isinstance(value.get("history"), (dict, list)):
        config = value["config"] if isinstance(value.get("config"), dict) else {}
        meta = {
            str(k): v
            for k, v in config.items()
            if isinstance(v, (int, float, str, bool)) and len(str(v)) < 500
        }
        title = next(
            (
                str(c[k])
                for c in (value, config)
                for k in ("name", "run_name", "exp_name")
                if isinstance(c.get(k), str) and c[k]
            ),
            name,
        )
        runs = (
            _columns(value["history"], label, printable(title))
            if isinstance(value["history"], dict)
            else _document(value["history"], label, title)
        )
        for run in runs:
            run.meta = {**meta, **run.meta}
        return runs
    return _columns(value, label, name)


def _columns(value: dict[str, Any], label: str, name: str) -> list[RawRun]:
    """Read columns of equal length, or groups of them (``{"train": {"iter": [...], ...}, "val": {...}}``)."""
    groups = {
        str(k): v
        for k, v in value.items()
        if isinstance(v, dict) and any(isinstance(c, list) for c in v.values())
    }
    lists = {str(k): v for k, v in value.items() if isinstance(v, list)}
    if lists:
        groups = {"": lists, **groups}
    frames = []
    for prefix, columns in groups.items():
        sizes = {len(c) for c in columns.values() if isinstance(c, list)}
        if len(sizes) > 1:
            raise ConvexlawError(
                f"{label}: the columns of {prefix or 'the document'!r} have different lengths "
                f"{sorted(sizes)[:6]}; nothing is read"
            )
        known: dict[str, Any] = {}
        for key, column in columns.items():
            # a part's own prefix goes first: train/loss, val/loss; its step column is the step
            role = metric_role(f"{prefix}/{key}") or metric_role(key)
            if not isinstance(column, list) or role is None:
                continue
            title = {"loss": "train/loss", "val_loss": "val/loss"}.get(role[0], role[0])
            known.setdefault(title, pd.Series(column, dtype=object))
        frames.append(pd.DataFrame(known))
    frames = [f for f in frames if len(f.columns)]
    if not frames:
        raise NotALog(
            f"{label}: JSON with the keys {printable(', '.join(map(str, list(value)[:8])), 120)} and no "
            f"columns of step and loss"
        )
    titles = list(dict.fromkeys(t for f in frames for t in f.columns))
    joined = {
        t: [cell for f in frames for cell in (f[t].tolist() if t in f else [None] * len(f))] for t in titles
    }
    frame = pd.DataFrame({t: pd.Series(cells, dtype=object) for t, cells in joined.items()})
    return runs_of_table(FrameTable(frame, label, "entry", tells_nan=True), label, name, "json")
