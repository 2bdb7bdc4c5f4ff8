"""The loop of a training run, and how it is interrupted between two updates."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.simulations.training_log import COLUMNS, TrainLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from convexlaw.simulations._engine import Engine

__all__ = ["Run", "interrupts"]


class Run:
    """The loop: where a run is, and what it has measured."""

    def __init__(
        self, engine: Engine, lr: NDArray[np.float64], batch: NDArray[np.int64], settings: dict[str, Any]
    ) -> None:
        self.engine, self.lr, self.batch, self.settings = engine, lr, batch, settings
        self.eval_every: int = settings["eval_every"]
        self.step, self.final, self.diverged = 0, float("nan"), False
        consumed = np.concatenate([[0], np.cumsum(batch)[:-1]]) * engine.context
        empty = np.full(len(lr), np.nan)
        self.columns: dict[str, NDArray[Any]] = {
            "step": np.arange(len(lr)), "lr": lr, "batch_size": batch, "tokens": consumed,
            **{name: empty.copy() for name in COLUMNS[4:]},
        }  # fmt: skip

    def restore(self, content: dict[str, Any]) -> None:
        self.engine.load(content["engine"])
        self.step, self.final = int(content["step"]), float(content["final_val_loss"])
        if self.step < len(self.lr):
            self.final = float("nan")  # a finished run that is prolonged
        for name in COLUMNS[4:]:
            self.columns[name][: self.step] = content["columns"][name]

    def advance(
        self, end: int, asked: Callable[[], bool], checkpoint_every: int, keep: Callable[[], TrainLog],
        tick: Callable[[float], None],
    ) -> bool:  # fmt: skip
        """Train up to (not including) update ``end``; True where an interruption was asked for."""
        engine, columns = self.engine, self.columns
        last = len(self.lr) - 1
        while self.step < end:
            k = self.step
            if k == engine.due:
                engine.grow()
            val_loss = weight_norm = float("nan")
            if k % self.eval_every == 0 or k == last:
                val_loss, weight_norm = engine.evaluate(), engine.weight_norm()
            loss, norm, stop = engine.gradient(int(self.batch[k]), asked())
            if not np.isfinite(loss) or not np.isfinite(norm):
                self.diverged = True
                return False
            engine.update(float(self.lr[k]))
            columns["loss"][k], columns["grad_norm"][k] = loss, norm
            columns["val_loss"][k], columns["weight_norm"][k] = val_loss, weight_norm
            self.step = k + 1
            tick(1)
            if stop:
                return True
            if checkpoint_every and self.step % checkpoint_every == 0 and self.step < end:
                keep()
        if self.step > last and not np.isfinite(self.final):
            self.final = engine.evaluate()
            self.diverged = not np.isfinite(self.final)
        return False

    def log(self, meta: dict[str, Any]) -> TrainLog:
        done = self.step == len(self.lr)
        state = "diverged" if self.diverged else "stopped"
        return TrainLog(
            columns={name: self.columns[name][: self.step].copy() for name in COLUMNS},
            meta=meta,
            status="finished" if done and not self.diverged else f"{state} at step {self.step}",
            final_val_loss=self.final,
        )


@contextlib.contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM into a question that the loop asks between two updates."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        seen.append(number)
        restore()  # a second one acts at once; the files on disk stay whole all the same

    for number in signals:
        signal.signal(number, note)
    try:
        yield lambda: bool(seen)
    finally:
        restore()
