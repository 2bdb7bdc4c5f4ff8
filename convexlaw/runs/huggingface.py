"""Hugging Face ``trainer_state.json``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from convexlaw.errors import ConvexlawError
from convexlaw.runs._raw import RawRun

__all__ = ["is_trainer_state", "read_trainer_state"]

_KEYS = {
    "loss": "loss",
    "eval_loss": "val_loss",
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
    "num_input_tokens_seen": "tokens",
}


def is_trainer_state(value: Any) -> bool:
    """Tell a trainer state from other JSON."""
    return isinstance(value, dict) and isinstance(value.get("log_history"), list)


def number(value: Any) -> float:
    """Return a JSON value as float: None and text that is no number are NaN."""
    if isinstance(value, bool) or value is None:
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return float("nan")


def read_trainer_state(value: dict[str, Any], label: str, name: str) -> list[RawRun]:
    """Read the one run of a trainer state.

    Raises
    ------
    ConvexlawError
        No entries with a step and a loss.
    """
    history = value["log_history"]
    entries = [(k, e) for k, e in enumerate(history, 1) if isinstance(e, dict)]
    summary = [k for k, e in entries if "train_loss" in e or "train_runtime" in e]
    rows = [(k, e) for k, e in entries if "train_loss" not in e and ("loss" in e or "eval_loss" in e)]
    if not rows:
        raise ConvexlawError(
            f"{label}: log_history has {len(history)} entries and none with loss or eval_loss"
        )
    data: dict[str, Any] = {"step": [number(e.get("step")) for _, e in rows], "line": [k for k, _ in rows]}
    for key, column in _KEYS.items():
        if any(key in e for _, e in rows):
            data[column] = [number(e.get(key)) for _, e in rows]
    for key, mark in (("loss", "loss_nan"), ("eval_loss", "val_nan")):
        data[mark] = [key in e and bool(np.isnan(number(e[key]))) for _, e in rows]
    run = RawRun(name, label, pd.DataFrame(data), "huggingface", place="log_history entry", window=True)
    for key in ("logging_steps", "max_steps", "train_batch_size", "global_step", "eval_steps"):
        if isinstance(value.get(key), (int, float)):
            run.meta[key] = value[key]
    if summary:
        run.note(
            "summary",
            f"{len(summary)} summary row{'s' if len(summary) > 1 else ''} (train_loss, train_runtime) left out",
        )
    return [run]
