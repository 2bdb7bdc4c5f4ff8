"""Checkpoints of training runs: one file that holds all the next steps depend on, and the log so far."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from convexlaw._files import replacing
from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["load", "save", "verify"]

_FORMAT = 1


def save(
    path: Path, *, step: int, engine: dict[str, Any], columns: dict[str, NDArray[Any]], settings: dict[str,
    Any], final_val_loss: float,
) -> None:  # fmt: skip
    """Write a checkpoint, whole or not at all."""
    content = {
        "format": _FORMAT,
        "step": step,
        "engine": engine,
        "columns": {name: torch.from_numpy(values[:step].copy()) for name, values in columns.items()},
        "settings": settings,
        "final_val_loss": final_val_loss,
    }
    with replacing(path) as temporary:
        torch.save(content, temporary)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint; its columns come back as arrays."""
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        known = content["format"]
    except FileNotFoundError:
        raise ConvexlawError(
            f"{path}: no such checkpoint; give the path of one, or train from the start"
        ) from None
    except (RuntimeError, pickle.UnpicklingError, KeyError, EOFError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConvexlawError(
            f"{path} is not a checkpoint of a training run ({reason}); give another file"
        ) from None
    if known != _FORMAT:
        raise ConvexlawError(
            f"{path} has checkpoint format {known}, this version reads {_FORMAT}; train again"
        )
    content["columns"] = {name: values.numpy() for name, values in content["columns"].items()}
    return content


def verify(
    path: Path, content: dict[str, Any], settings: dict[str, Any], lr: NDArray[Any], batch: NDArray[Any]
) -> None:
    """Refuse a checkpoint whose past is not the past of the run that is asked for."""
    before = content["settings"]
    step = int(content["step"])
    # runs that have not grown yet are one run, whenever and however they will
    small = step <= min(before.get("grow_at", 0), settings.get("grow_at", 0))
    for key in sorted({*before, *settings} - ({"grow_at", "grow_init"} if small else set())):
        if before.get(key) != settings.get(key):
            raise ConvexlawError(
                f"{path} was made with {key} = {before.get(key)!r}, now {key} = {settings.get(key)!r}: a "
                "run continues only with the settings it began with; set it back, or pass overwrite"
            )
    if step > len(lr):
        raise ConvexlawError(f"{path} is at step {step}, past the end of this schedule ({len(lr)} steps)")
    for label, column, now in (("learning rate", "lr", lr), ("batch size", "batch_size", batch)):
        differs = np.flatnonzero(content["columns"][column] != now[:step])
        if differs.size:
            k = int(differs[0])
            raise ConvexlawError(
                f"{path} used {label} {content['columns'][column][k]} at step {k}, this schedule has "
                f"{now[k]}: the first {step} steps must agree; give its own schedule, or pass overwrite"
            )
