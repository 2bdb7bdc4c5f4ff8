"""Schedules for the Hugging Face Trainer, by its callback protocol; nothing is imported from transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvexlawError

__all__ = ["FollowSchedule", "follow"]


class FollowSchedule:
    """Callback that sets the learning rate of every update and logs its batch size.

    Parameters
    ----------
    lr : (T,) array
        Learning rate of every update; every parameter group gets it.
    batch : (T,) int array, optional
        Global batch sizes. The trainer's data loader must deliver them (``follow_schedule`` sees to it).
    """

    def __init__(self, lr: NDArray[np.float64], batch: NDArray[np.int64] | None = None) -> None:
        self.lr = np.array(lr, dtype=np.float64)
        self.batch = None if batch is None else np.array(batch, dtype=np.int64)

    def __getattr__(self, name: str) -> Callable[..., None]:
        # events that this callback has nothing to do at, those of later versions of the protocol too
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        lr_scheduler: Any = None,
        train_dataloader: Any = None,
        **_: Any,
    ) -> None:
        """Refuse a trainer of another length, or one that draws other batches."""
        if state.max_steps != self.lr.size:
            raise ConvexlawError(
                f"the trainer makes {state.max_steps} updates, the schedule has {self.lr.size}: "
                f"pass max_steps={self.lr.size} (huggingface_arguments gives all arguments)"
            )
        sizes = getattr(getattr(train_dataloader, "batch_sampler", None), "batch", None)
        if self.batch is not None and (
            args.gradient_accumulation_steps != 1 or not np.array_equal(np.asarray(sizes), self.batch)
        ):
            raise ConvexlawError(
                "the trainer's data loader does not follow the batch schedule: call "
                "follow_schedule(trainer, lr, batch), and leave gradient_accumulation_steps = 1"
            )
        if hasattr(lr_scheduler, "lr_lambdas"):  # what the trainer logs is what its own scheduler says
            lr_scheduler.lr_lambdas = [_ratio(self.lr, float(base) or 1.0) for base in lr_scheduler.base_lrs]

    def on_step_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        optimizer: Any = None,
        lr_scheduler: Any = None,
        **_: Any,
    ) -> None:
        """Set the learning rate of the coming update."""
        now = float(self.lr[state.global_step])
        for group in optimizer.param_groups:
            group["lr"] = now
        if hasattr(lr_scheduler, "_last_lr"):
            lr_scheduler._last_lr = [now for _ in lr_scheduler._last_lr]

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Add the batch size of the last update to the log."""
        if self.batch is None or not state.global_step:
            return
        size = int(self.batch[state.global_step - 1])
        for row in (state.log_history[-1] if state.log_history else {}, logs or {}):
            if "loss" in row:
                row["batch_size"] = size


def _ratio(lr: NDArray[np.float64], base: float) -> Callable[[int], float]:
    """Factor on a base learning rate; a plain function, which torch leaves out of saved states."""

    def factor(done: int) -> float:
        return float(lr[min(done, lr.size - 1)]) / base

    return factor


def _nothing(*_: Any, **__: Any) -> None:
    return None


def follow(
    trainer: Any,
    lr: NDArray[np.float64],
    batch: NDArray[np.int64],
    *,
    seed: int,
    shuffle: bool,
    micro_batch: int | None,
) -> None:
    """Make a trainer follow both arrays (see exporters.follow_schedule)."""
    from torch.utils.data import DataLoader

    from convexlaw.simulations._torch_exporters import ScheduleBatchSampler

    args, own_loader, own_step = trainer.args, trainer.get_train_dataloader, trainer.training_step
    world, rank = int(getattr(args, "world_size", 1)), int(getattr(args, "process_index", 0))
    if args.gradient_accumulation_steps != 1:
        raise ConvexlawError(
            f"gradient_accumulation_steps = {args.gradient_accumulation_steps}: leave it at 1 and give "
            "micro_batch= to follow_schedule, which splits every batch in memory"
        )
    divisor = world * (micro_batch or 1)
    odd = np.flatnonzero(batch % divisor)
    if odd.size:
        raise ConvexlawError(
            f"batch_size[{odd[0]}] = {batch[odd[0]]} is no multiple of {divisor} "
            f"({world} processes x micro_batch {micro_batch or 1}): plan with multiple_of={divisor}"
        )

    def loader() -> Any:
        usual = own_loader()  # its data set and collate function know the trainer's unused columns
        sampler = ScheduleBatchSampler(
            len(usual.dataset), batch, shuffle=shuffle, seed=seed, rank=rank, world=world
        )
        return DataLoader(
            usual.dataset,
            batch_sampler=sampler,
            collate_fn=usual.collate_fn,
            num_workers=usual.num_workers,
            pin_memory=usual.pin_memory,
        )

    def in_pieces(model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
        count = len(next(iter(inputs.values())))
        size = micro_batch or count
        pieces = [{key: value[i : i + size] for key, value in inputs.items()} for i in range(0, count, size)]
        # the trainer divides a mean loss by this number, and a loss by items needs no division
        trainer.current_gradient_accumulation_steps = len(pieces)
        losses = [own_step(model, piece, *rest, **more) for piece in pieces]
        return sum(losses[1:], losses[0])

    trainer.get_train_dataloader = loader
    if micro_batch is not None:
        trainer.training_step = in_pieces
    trainer.add_callback(FollowSchedule(lr, batch))
