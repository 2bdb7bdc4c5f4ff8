"""Schedules for a torch training loop: learning rates and batches that follow two arrays exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import Sampler

from convexlaw.errors import ConvexlawError

__all__ = ["ScheduleBatchSampler", "ScheduleLR"]


def _prefix(values: NDArray[Any], count: int) -> str:
    """Digest of the part of a schedule that is already behind a run."""
    return hashlib.sha256(np.ascontiguousarray(values[:count]).astype(values.dtype).tobytes()).hexdigest()


def _check_state(state: dict[str, Any], *names: str) -> None:
    missing = [name for name in names if name not in state]
    if missing:
        raise ConvexlawError(
            f"the saved state lacks {', '.join(missing)}: it comes from another kind of scheduler or sampler"
        )


class ScheduleLR(LRScheduler):
    """Learning rates from an array: update t (0-based) runs with ``lr[t]``, to the last bit.

    Call ``step()`` after every ``optimizer.step()``, as with torch's own schedulers.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
    lr : (T,) array
        Learning rate of every update.
    relative : bool
        False: every parameter group gets ``lr[t]``. True: each group gets its own initial learning rate times
        ``lr[t]/max(lr)``.
    last_epoch : int
        Updates already done, minus one (as in torch); -1 for a new run.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        lr: NDArray[np.float64],
        *,
        relative: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.lr = np.array(lr, dtype=np.float64)
        self.relative = relative
        self.top = float(self.lr.max())
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | torch.Tensor]:
        """Learning rate of every parameter group for the coming update."""
        done = self.last_epoch
        if done > self.lr.size:
            raise ConvexlawError(
                f"update {done} is asked of a schedule of {self.lr.size} updates: "
                "stop there, or give a longer schedule"
            )
        now = float(self.lr[min(done, self.lr.size - 1)])  # after the last update there is none to serve
        if self.relative:
            return [float(base) * (now / self.top) for base in self.base_lrs]
        return [now for _ in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """State to save beside the optimizer's."""
        return {
            "last_epoch": self.last_epoch,
            "base_lrs": list(self.base_lrs),
            "prefix": _prefix(self.lr, self.last_epoch),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was saved; what lies behind must be the same schedule."""
        _check_state(state_dict, "last_epoch", "base_lrs", "prefix")
        done = int(state_dict["last_epoch"])
        if done > self.lr.size or state_dict["prefix"] != _prefix(self.lr, done):
            raise ConvexlawError(
                f"the first {done} learning rates are not those of the saved run: "
                "give the schedule it ran with (later updates may differ)"
            )
        self.last_epoch = done
        self.base_lrs = list(state_dict["base_lrs"])
        rates = self.get_lr()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self._last_lr = [float(rate) for rate in rates]


class ScheduleBatchSampler(Sampler[list[int]]):
    """Batches of a map-style data set whose sizes follow an array: batch t holds ``batch[t]`` samples.

    The data set is read in one endless order, reshuffled after every pass, so that runs with other batch
    sizes and the same seed read the same samples in the same order; a batch may reach over the end of a pass.
    Where the run stands follows from the number of updates alone.

    Parameters
    ----------
    size : int
        Samples of the data set.
    batch : (T,) int array
        Global batch size of every update.
    shuffle : bool
        A new order for every pass; False: 0, 1, 2, ... again and again.
    seed : int
        Of the orders.
    rank, world : int
        This process and the number of processes: each gets an equal share of every batch.
    """

    def __init__(
        self,
        size: int,
        batch: NDArray[np.int64],
        *,
        shuffle: bool = True,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.size, self.shuffle, self.seed, self.rank, self.world = int(size), shuffle, int(seed), rank, world
        self.batch = np.array(batch, dtype=np.int64)
        self.step = 0
        self._consumed = np.concatenate([[0], np.cumsum(self.batch)])
        self._orders: dict[int, NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return int(self.batch.size) - self.step

    def __iter__(self) -> Iterator[list[int]]:
        while self.step < self.batch.size:
            t = self.step
            self.step = t + 1
            share = int(self.batch[t]) // self.world
            yield self._samples(int(self._consumed[t]) + self.rank * share, share)

    def start_at(self, step: int) -> None:
        """Set the update that the next batch is for."""
        if not 0 <= step <= self.batch.size:
            raise ConvexlawError(
                f"step = {step} lies outside a schedule of {self.batch.size} updates: give 0 to that number"
            )
        self.step = int(step)

    def state_dict(self, step: int | None = None) -> dict[str, Any]:
        """State to save.

        Parameters
        ----------
        step : int, optional
            Updates done so far. A loader with workers draws batches ahead of the updates, so give it there
            (``scheduler.last_epoch``, say); without it, the batches drawn.
        """
        done = self.step if step is None else int(step)
        if not 0 <= done <= self.batch.size:
            raise ConvexlawError(
                f"step = {done} lies outside a schedule of {self.batch.size} updates: give the updates done"
            )
        return {
            "step": done,
            "consumed": int(self._consumed[done]),
            "order": [self.size, self.seed, self.shuffle],
            "prefix": _prefix(self.batch, done),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was saved; what lies behind must be the same schedule and data."""
        _check_state(state_dict, "step", "order", "prefix")
        done = int(state_dict["step"])
        if list(state_dict["order"]) != [self.size, self.seed, self.shuffle]:
            raise ConvexlawError(
                f"data of size, seed, shuffle {[self.size, self.seed, self.shuffle]} against "
                f"{list(state_dict['order'])} in the saved state: the samples would come in another order"
            )
        if done > self.batch.size or state_dict["prefix"] != _prefix(self.batch, done):
            raise ConvexlawError(
                f"the first {done} batch sizes are not those of the saved run: "
                "give the schedule it ran with (later updates may differ)"
            )
        self.step = done

    def _samples(self, start: int, count: int) -> list[int]:
        out: list[int] = []
        while count:
            epoch, offset = divmod(start, self.size)
            taken = min(count, self.size - offset)
            out += self._order(epoch)[offset : offset + taken].tolist()
            start, count = start + taken, count - taken
        return out

    def _order(self, epoch: int) -> NDArray[np.int64]:
        if epoch not in self._orders:
            if self.shuffle:
                order = np.random.default_rng([self.seed, epoch]).permutation(self.size)
            else:
                order = np.arange(self.size)
            self._orders = {k: v for k, v in self._orders.items() if k == epoch - 1}
            self._orders[epoch] = order.astype(np.int64)
        return self._orders[epoch]
