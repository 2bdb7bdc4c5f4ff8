"""What a training run measured: one row a step, with the conventions written into the file."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._files import write_text
from convexlaw._result import Result
from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["COLUMNS", "TrainLog"]

COLUMNS = ("step", "lr", "batch_size", "tokens", "loss", "grad_norm", "val_loss", "weight_norm")
"""Columns of a log, in order; those of measurements that a row lacks are empty."""
_WHOLE = frozenset({"step", "batch_size", "tokens"})
_SPARSE = frozenset({"val_loss", "weight_norm"})
_THIN_DIGITS = 8


@dataclass(frozen=True)
class TrainLog(Result):
    """The log of one training run.

    Row k holds the learning rate ``lr[k]`` and the batch size of update k (k is 0-based), and the losses at
    the weights *before* that update, so that row k belongs to the updates ``lr[:k]``.

    Attributes
    ----------
    columns : dict of str to ndarray, each of shape (steps reached,)
        ``step``; ``lr``; ``batch_size`` (sequences); ``tokens`` (consumed before update k); ``loss`` (nats
        per token, on the batch of update k); ``grad_norm`` (of the mean loss of that batch, before clipping);
        ``val_loss`` (nats per token, on a fixed held-out set) and ``weight_norm`` (Frobenius norm of all
        matrices), both NaN between evaluations.
    meta : dict
        Everything that decided the numbers: schedule, optimizer, seed, model, corpus hash, versions.
    status : str
        ``"finished"``, ``"stopped at step k"`` or ``"diverged at step k"``.
    final_val_loss : float
        Validation loss after the last update (nats per token); NaN unless finished.
    """

    columns: Mapping[str, NDArray[Any]] = field(repr=False)
    meta: Mapping[str, Any] = field(repr=False)
    status: str
    final_val_loss: float = float("nan")

    _figure: ClassVar[str] = "training:plot_training"

    def __str__(self) -> str:
        meta, rows = self.meta, len(self)
        lines = [
            f"TrainLog: {self.status}, {rows} of {meta.get('steps', rows)} steps",
            f"  schedule    {meta.get('schedule') or 'from an array'}",
            f"  optimizer   {meta.get('optimizer')}, weight decay {meta.get('weight_decay')}",
            f"  parameters  {meta.get('parameters')}, seed {meta.get('seed')}",
        ]
        loss = self.columns["loss"]
        if rows:
            lines.append(f"  loss        {loss[0]:.4f} -> {loss[-1]:.4f} nats per token")
        measured = self.columns["val_loss"][np.isfinite(self.columns["val_loss"])]
        if measured.size:
            last = self.final_val_loss if np.isfinite(self.final_val_loss) else measured[-1]
            lines.append(f"  validation  {measured[0]:.4f} -> {last:.4f} nats per token")
        return "\n".join(lines)

    def __len__(self) -> int:
        """Rows: steps reached."""
        return len(self.columns["step"])

    def to_frame(self) -> pd.DataFrame:
        """Columns as a pandas frame, one row a step."""
        import pandas as pd

        return pd.DataFrame({name: self.columns[name] for name in COLUMNS})

    def thin(self, every: int) -> dict[str, NDArray[Any]]:
        """Every ``every``-th row and the last, with windowed means where the noise is.

        Parameters
        ----------
        every : int
            Spacing of the rows kept, in steps; 1 keeps all.

        Returns
        -------
        dict of str to ndarray
            ``loss``, ``val_loss`` (means) and ``grad_norm`` (root mean square) of row k are taken over the
            steps j with ``|j - k| <= every // 2``, and over fewer near the ends so that k stays their middle:
            the first and the last row are single steps. The other columns are the exact values of step k.
        """
        if every < 1:
            raise ConvexlawError(f"every = {every}: give the spacing of the rows in steps, at least 1")
        if every == 1 or len(self) == 0:
            return dict(self.columns)
        count = len(self)
        steps = np.arange(count)
        keep = np.flatnonzero((steps % every == 0) | (steps == count - 1))
        # the last step has an evaluation off the grid: it enters no other row
        half = np.maximum(0, np.minimum(every // 2, np.minimum(keep, count - 2 - keep)))
        out = {name: values[keep] for name, values in self.columns.items()}
        for name, power in (("loss", 1), ("grad_norm", 2), ("val_loss", 1)):
            known = np.isfinite(self.columns[name])
            sums = np.concatenate([[0.0], np.cumsum(np.where(known, self.columns[name], 0.0) ** power)])
            counts = np.concatenate([[0], np.cumsum(known)])
            total = sums[keep + half + 1] - sums[keep - half]
            number = counts[keep + half + 1] - counts[keep - half]
            out[name] = np.where(number > 0, total / np.maximum(number, 1), np.nan) ** (1 / power)
        return out

    def to_csv(self, path: str | os.PathLike[str], *, every: int = 1) -> None:
        """Write ``# key: value`` lines, a header and the rows; whole or not at all.

        Parameters
        ----------
        path : path-like
            File to write.
        every : int
            Spacing of the rows (:meth:`thin`). With 1 the numbers are written to the last bit, thinned ones
            to 8 digits (learning rates always to the last bit).
        """
        rows = self.thin(every)
        meta = {**self.meta, "every": every, "status": self.status}
        if np.isfinite(self.final_val_loss):
            meta["final_val_loss"] = self.final_val_loss
        out = io.StringIO()
        out.write("# convexlaw-log: 1\n")
        for key, value in meta.items():
            if value is not None:
                text = value if isinstance(value, str) else json.dumps(value)
                out.write(f"# {key}: {' '.join(text.split())}\n")
        out.write(",".join(COLUMNS) + "\n")
        written = [_column(name, rows[name], exact=every == 1 or name == "lr") for name in COLUMNS]
        out.writelines(",".join(row) + "\n" for row in zip(*written, strict=True))
        write_text(path, out.getvalue())


def _column(name: str, values: NDArray[Any], exact: bool) -> list[str]:
    if name in _WHOLE:
        return [str(int(v)) for v in values]
    if exact:
        return ["" if np.isnan(v) and name in _SPARSE else repr(float(v)) for v in values]
    return ["" if np.isnan(v) and name in _SPARSE else f"{v:.{_THIN_DIGITS}g}" for v in values]
