"""Delimited text: CSV, TSV, semicolons and decimal commas, any encoding, header lines with ``# key: value``."""

from __future__ import annotations

import csv
import io
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from convexlaw.errors import ConvexlawError
from convexlaw.runs._columns import assign, metric_role
from convexlaw.runs._raw import RawRun
from convexlaw.runs._source import printable

__all__ = ["Dialect", "read_delimited", "sniff"]

_ROLES = (
    "run",
    "step",
    "lr",
    "batch_size",
    "tokens",
    "samples",
    "loss",
    "val_loss",
    "split",
    "grad_norm",
    "seed",
    "seq_len",
)
_NUMERIC = ("step", "lr", "batch_size", "tokens", "samples", "loss", "val_loss", "grad_norm", "seq_len")
_NAN_WORDS = ("nan", "-nan", "+nan", "na", "n/a", "null", "none", "#n/a", "#na", "<na>", "nil", "undefined")
_META_LINE = re.compile(r"^#\s*([A-Za-z_][\w .\-/]*?)\s*[:=]\s*(.*?)\s*$")


@dataclass
class Dialect:
    """How a delimited text is written."""

    encoding: str
    delimiter: str
    decimal: str
    thousands: str | None
    header: list[str]
    skip: int
    meta: dict[str, Any]


def _encoding(head: bytes) -> str:
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if head.startswith(mark):
            return name
    return "utf-8"


def sniff(data: bytes) -> Dialect | None:
    """Find delimiter, decimal sign and header of a delimited text; None where there is no table.

    Parameters
    ----------
    data : bytes
        The content, or its beginning.
    """
    encoding = _encoding(data)
    head = data[:262144]
    text = head[: len(head) // 2 * 2].decode(encoding, errors="replace")
    if "\0" in text:
        return None
    lines = text.splitlines()
    skip, meta = 0, {}
    for line in lines:
        if line.startswith("#"):
            found = _META_LINE.match(line)
            if found:
                meta[found[1].strip().replace(" ", "_")] = _parse_value(found[2])
        elif line.strip():
            break
        skip += 1
    body = [line for line in lines[skip : skip + 200] if line.strip()]
    if not body or len(body[0]) > 200_000:
        return None
    best: tuple[int, int, str, list[str]] | None = None
    for delimiter in (",", ";", "\t", "|"):
        try:
            header = [h.strip() for h in next(csv.reader([body[0]], delimiter=delimiter))]
        except (csv.Error, StopIteration):
            continue
        known = sum(metric_role(h) is not None or bool(re.search(r" - |__M(IN|AX)$", h)) for h in header)
        score = (known, len(header), delimiter, header)
        if len(header) > 1 and (best is None or score[:2] > best[:2]):
            best = score
    if best is None:
        return None
    _, _, delimiter, header = best
    decimal, thousands = ".", None
    if delimiter != ",":
        cells = [c.strip().strip('"') for line in body[1:] for c in line.split(delimiter)]
        if any(re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", c) for c in cells):
            decimal = ","
            if any(re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?", c) for c in cells):
                thousands = "."
    return Dialect(encoding, delimiter, decimal, thousands, header, skip, meta)


def _parse_value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_delimited(data: bytes, label: str, name: str, dialect: Dialect | None = None) -> list[RawRun]:
    """Read the runs of a delimited text.

    Parameters
    ----------
    data : bytes
        The whole content.
    label, name : str
        The source in messages, and the run's name where the file names none.
    dialect : Dialect, optional
        From :func:`sniff`.

    Raises
    ------
    ConvexlawError
        No table, no step, no loss, cells that are not numbers.
    """
    dialect = dialect or sniff(data)
    if dialect is None:
        raise ConvexlawError(f"{label}: no table with a header line (names separated by , ; tab or |)")
    chosen, remarks = assign(dialect.header, _ROLES)
    require(dialect.header, chosen, label)
    frame = _parse(data, dialect, label, chosen)
    meta = dict(dialect.meta)
    runs = split_runs(frame, label, name, "csv", meta)
    for run in runs:
        for remark in remarks:
            run.note("columns", remark)
    return runs


def require(header: list[str], chosen: dict[str, int], label: str) -> None:
    """Refuse a table without step or loss, and say what is there."""
    there = ", ".join(printable(h, 40) for h in header[:20]) + (", ..." if len(header) > 20 else "")
    if "loss" not in chosen and "val_loss" not in chosen:
        raise ConvexlawError(
            f"{label}: no loss column among {there}; name it loss, train_loss, train/loss, val_loss or eval_loss"
        )
    if "step" not in chosen:
        raise ConvexlawError(
            f"{label}: no step column among {there}; name it step, iter, global_step or _step"
        )


def _parse(data: bytes, dialect: Dialect, label: str, chosen: dict[str, int]) -> pd.DataFrame:
    places = sorted(chosen.values())
    roles = {place: role for role, place in chosen.items()}
    options: dict[str, Any] = {
        "sep": dialect.delimiter,
        "decimal": dialect.decimal,
        "thousands": dialect.thousands,
        "encoding": dialect.encoding,
        "encoding_errors": "replace",
        "skiprows": dialect.skip,
        "header": 0,
        "names": list(range(len(dialect.header))),
        "usecols": places,
        "index_col": False,
        "float_precision": "round_trip",
        "low_memory": False,
        "skip_blank_lines": True,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = pd.read_csv(io.BytesIO(data), **options)
    except (ValueError, OverflowError) as error:
        raise ConvexlawError(f"{label}: cannot be read as a table ({printable(error)})") from None
    table = table.rename(columns=roles)
    for column in list(table.columns):
        if column in _NUMERIC:
            table[column] = _numbers(table[column], column, label, dialect)
    return table


def _numbers(cells: pd.Series, column: str, label: str, dialect: Dialect) -> pd.Series:
    """Turn a column into floats, or say which cells are not numbers."""
    if cells.dtype == bool or not pd.api.types.is_numeric_dtype(cells):
        text = cells.astype("string").str.strip()
        given = pd.to_numeric(text, errors="coerce").astype("float64")
        wrong = given.isna() & text.notna() & ~text.str.lower().isin(["", *_NAN_WORDS])
        if wrong.any():
            rows = np.flatnonzero(wrong.to_numpy())
            raise ConvexlawError(
                f"{label}: column {column!r} ({dialect.header[0] and ''}{int(wrong.sum())} cells) is not numeric, first "
                f"{printable(cells.iloc[rows[0]], 40)!r} in line {rows[0] + 2 + dialect.skip}; mend or remove these cells"
            )
        return given
    return cells.astype("float64")


def split_runs(frame: pd.DataFrame, label: str, name: str, kind: str, meta: dict[str, Any]) -> list[RawRun]:
    """Part a table by its run column; turn a split column into loss and val_loss."""
    if "split" in frame:
        frame = _by_split(frame, label)
    if "run" not in frame:
        return [RawRun(name, label, frame, kind, dict(meta))]
    runs = []
    names = frame["run"].astype("string").fillna(name)
    for run, rows in frame.groupby(names, sort=False):
        runs.append(
            RawRun(str(run), label, rows.drop(columns="run").reset_index(drop=True), kind, dict(meta))
        )
    return runs


_SPLITS = {
    **dict.fromkeys(("train", "training", "fit"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "eval", "evaluation", "dev"), "val"),
}


def _by_split(frame: pd.DataFrame, label: str) -> pd.DataFrame:
    words = frame["split"].astype("string").str.strip().str.lower().fillna("train")
    split = words.map(_SPLITS)
    if split.isna().any():
        wrong = printable(words[split.isna()].iloc[0], 40)
        raise ConvexlawError(
            f"{label}: split = {wrong!r} in {int(split.isna().sum())} rows; it must be train or val"
        )
    frame = frame.drop(columns="split")
    val = (split == "val").to_numpy()
    if "loss" in frame and val.any():
        loss = frame["loss"].to_numpy(np.float64)
        already = (
            frame["val_loss"].to_numpy(np.float64) if "val_loss" in frame else np.full(len(frame), np.nan)
        )
        frame = frame.assign(loss=np.where(val, np.nan, loss), val_loss=np.where(val, loss, already))
    return frame
