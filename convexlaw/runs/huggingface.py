"""Hugging Face ``trainer_state.json``: ``log_history`` with training, evaluation and summary rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.runs._columns import assign
from convexlaw.runs._raw import Floats, NotALog, RawRun, plural, printable

__all__ = ["is_trainer_state", "read_trainer_state"]

_KEYS = {"step": "step", "loss": "loss", "eval_loss": "val_loss"}
_SIDE = ("lr", "batch_size", "tokens", "grad_norm")  # by any of their names: callbacks log some of them
_META = ("logging_steps", "max_steps", "train_batch_size", "global_step", "eval_steps", "num_train_epochs")


def is_trainer_state(value: Any) -> bool:
    """Tell a trainer state from other JSON."""
    return isinstance(value, dict) and isinstance(value.get("log_history"), list)


def _number(value: Any) -> tuple[float, bool]:
    """Return (value, says NaN) of a cell; text that is no number counts as NaN."""
    if value is None or isinstance(value, (bool, list, dict)):
        return np.nan, False
    try:
        number = float(value)
    except OverflowError:
        return np.inf, False
    except (TypeError, ValueError):
        return np.nan, True
    return number, number != number


def read_trainer_state(value: dict[str, Any], label: str, name: str) -> list[RawRun]:
    """Read the one run of a trainer state.

    Parameters
    ----------
    value : dict
        The parsed document.
    label, name : str
        The source in messages, and the name of the run.

    Raises
    ------
    NotALog
        No entries with a step and a loss.
    """
    history = value["log_history"]
    rows = [
        (k, e) for k, e in enumerate(history, 1) if isinstance(e, dict) and ("loss" in e or "eval_loss" in e)
    ]
    # the summary that ends a run repeats train_loss, the mean over the whole run: no point of the curve
    summaries = sum(1 for e in history if isinstance(e, dict) and "train_loss" in e and "loss" not in e)
    others = len(history) - len(rows) - summaries
    evals = sorted(
        {
            k
            for e in history
            if isinstance(e, dict)
            for k in e
            if str(k).startswith("eval_") and str(k).endswith("_loss") and k != "eval_loss"
        }
    )
    if not rows:
        hint = f" (it has {printable(evals[0], 60)}; rename one of them to eval_loss)" if evals else ""
        raise NotALog(
            f"{label}: log_history has {plural(len(history), 'entry', 'entries')}, none with loss or "
            f"eval_loss{hint}"
        )
    columns: dict[str, NDArray[Any]] = {"line": np.array([k for k, _ in rows], dtype=np.int64)}
    keys = [k for k in dict.fromkeys(str(k) for _, e in rows for k in e) if k not in _KEYS]
    chosen, remarks = assign(keys, _SIDE)
    for key, column in {**_KEYS, **{keys[place]: role for role, place in chosen.items()}}.items():
        cells = [_number(e.get(key)) for _, e in rows]
        values: Floats = np.array([c[0] for c in cells])
        if column == "step" or not np.all(np.isnan(values)) or any(c[1] for c in cells):
            columns[column] = values
            if column in ("loss", "val_loss"):
                columns[f"{column}_nan"] = np.array([c[1] for c in cells], dtype=bool)
    if "tokens" in columns and not np.nanmax(columns["tokens"]) > 0:
        del columns["tokens"]
    run = RawRun(name, label, columns, "huggingface", notes=remarks, place="log_history entry")
    run.meta |= {
        k: value[k]
        for k in _META
        if isinstance(value.get(k), (int, float)) and not isinstance(value[k], bool)
    }
    if "best_global_step" in value:
        run.meta["best_global_step"] = value["best_global_step"]
    if summaries:
        run.note(
            "summary",
            f"{plural(summaries, 'summary row')} left out (train_loss is the mean over the whole run)",
        )
    if others:
        run.note(
            "other_rows",
            f"{plural(others, 'log_history entry', 'log_history entries')} without loss or eval_loss "
            f"left out",
        )
    if evals:
        run.note(
            "columns",
            f"further evaluation losses left aside: {printable(', '.join(map(str, evals[:4])), 120)}",
        )
    return [run]
