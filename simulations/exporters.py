"""Schedules as trainers take them: torch, the Hugging Face Trainer, Megatron-LM, CSV.

A schedule is two arrays: the learning rate and the number of samples of every update. Every output here
follows them exactly, also after a resumption. torch is imported only by the functions that need it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from convexlaw._files import write_json, write_text
from convexlaw.errors import ConvexlawError
from convexlaw.simulations._export_arrays import (
    checked_rates,
    checked_schedule,
    checked_sizes,
    read_schedule,
    write_schedule,
)
from convexlaw.simulations._export_text import MEGATRON_LR, guide, megatron_rates
from convexlaw.simulations.models import require_torch
from convexlaw.theory.batch import BatchPlan

if TYPE_CHECKING:
    import torch

    from convexlaw.simulations._huggingface import FollowSchedule
    from convexlaw.simulations._torch_exporters import ScheduleBatchSampler, ScheduleLR

__all__ = [
    "MEGATRON_LR",
    "export",
    "follow_schedule",
    "huggingface_arguments",
    "huggingface_callback",
    "megatron_arguments",
    "megatron_schedule",
    "read_schedule",
    "torch_batch_sampler",
    "torch_scheduler",
    "write_schedule",
]


def torch_scheduler(optimizer: torch.optim.Optimizer, lr: ArrayLike, *, relative: bool = False) -> ScheduleLR:
    """Scheduler of a torch optimizer whose update t runs with ``lr[t]``, to the last bit.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
    lr : (T,) array_like
        Learning rate of every update.
    relative : bool
        False: every parameter group gets ``lr[t]``. True: each group gets its own initial learning rate times
        ``lr[t]/max(lr)``.

    Returns
    -------
    ScheduleLR
        A ``torch.optim.lr_scheduler.LRScheduler``: ``step()`` after every update; ``state_dict`` and
        ``load_state_dict`` to resume (a state of other learning rates is refused). Beyond update T it raises.

    Raises
    ------
    ConvexlawError
        Learning rates that are negative or not finite; torch is missing.

    Examples
    --------
    >>> import torch
    >>> weight = torch.nn.Parameter(torch.zeros(1))
    >>> scheduler = torch_scheduler(torch.optim.SGD([weight], lr=1.0), [0.5, 0.25])
    >>> scheduler.get_last_lr()
    [0.5]
    """
    require_torch()
    from convexlaw.simulations._torch_exporters import ScheduleLR

    return ScheduleLR(optimizer, checked_rates(lr), relative=relative)


def torch_batch_sampler(
    size: int, batch: ArrayLike, *, shuffle: bool = True, seed: int = 0, rank: int = 0, world: int = 1
) -> ScheduleBatchSampler:
    """Batch sampler for a torch DataLoader whose batch t holds ``batch[t]`` samples.

    Parameters
    ----------
    size : int
        Samples of the (map-style) data set; it is read again and again, in a new order each time.
    batch : (T,) array_like of int
        Samples of every update, over all processes together.
    shuffle : bool
        False: in the order of the data set.
    seed : int
        Of the orders. Runs with one seed read the same samples in the same order whatever the batch sizes.
    rank, world : int
        This process and the number of processes; every batch size must be a multiple of ``world``.

    Returns
    -------
    ScheduleBatchSampler
        For ``DataLoader(data, batch_sampler=...)``. ``state_dict(step=updates_done)``, ``load_state_dict``
        and ``start_at(step)`` resume; a state of other batch sizes or other data is refused.

    Raises
    ------
    ConvexlawError
        Batch sizes that are not whole and positive or not multiples of ``world``; torch is missing.

    Examples
    --------
    >>> list(torch_batch_sampler(5, [2, 3, 3], shuffle=False))
    [[0, 1], [2, 3, 4], [0, 1, 2]]
    """
    require_torch()
    from convexlaw.simulations._torch_exporters import ScheduleBatchSampler

    sizes = checked_sizes(batch)
    for name, value, least in (("size", size, 1), ("world", world, 1), ("rank", rank, 0), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ConvexlawError(f"{name} = {value!r}: give a whole number, at least {least}")
    if rank >= world:
        raise ConvexlawError(f"rank = {rank} of world = {world}: ranks run from 0 to {world - 1}")
    odd = np.flatnonzero(sizes % world)
    if odd.size:
        raise ConvexlawError(
            f"batch_size[{odd[0]}] = {sizes[odd[0]]} is no multiple of world = {world}: "
            f"plan with multiple_of={world}"
        )
    return ScheduleBatchSampler(size, sizes, shuffle=shuffle, seed=seed, rank=rank, world=world)


def huggingface_arguments(
    lr: ArrayLike, batch: ArrayLike, *, micro_batch: int | None = None
) -> dict[str, Any]:
    """Arguments for ``transformers.TrainingArguments`` that go with the callback.

    Parameters
    ----------
    lr, batch : (T,) array_like
        The schedule.
    micro_batch : int, optional
        Samples in memory at once; default the largest batch.

    Returns
    -------
    dict
        max_steps, learning_rate (the peak; the callback sets each update's), lr_scheduler_type, ...

    Raises
    ------
    ConvexlawError
        Arrays that are no schedule.

    Examples
    --------
    >>> huggingface_arguments([1e-3, 5e-4], [8, 16])["max_steps"]
    2
    """
    rates, sizes = checked_schedule(lr, batch)
    _check_micro_batch(micro_batch)
    return {
        "max_steps": int(rates.size),
        "learning_rate": float(rates.max()),
        "lr_scheduler_type": "constant",
        "warmup_steps": 0,
        "per_device_train_batch_size": int(sizes.max() if micro_batch is None else micro_batch),
        "gradient_accumulation_steps": 1,
        "dataloader_drop_last": False,
    }


def _check_micro_batch(value: int | None) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if value is not None and not (whole and value >= 1):
        raise ConvexlawError(f"micro_batch = {value!r}: give a whole number of samples, at least 1")


def huggingface_callback(lr: ArrayLike, batch: ArrayLike | None = None) -> FollowSchedule:
    """Trainer callback that sets the learning rate of every update (and logs its batch size).

    Parameters
    ----------
    lr : (T,) array_like
    batch : (T,) array_like of int, optional
        With it, training is refused unless the data loader delivers these batches: see
        :func:`follow_schedule`, which adds this callback itself.

    Returns
    -------
    FollowSchedule
        For ``Trainer(callbacks=[...])``; it needs nothing at a resumption.

    Raises
    ------
    ConvexlawError
        Arrays that are no schedule; at the start of a training of another length.

    Examples
    --------
    >>> callback = huggingface_callback([1e-3, 5e-4])
    >>> callback.lr.tolist()
    [0.001, 0.0005]
    """
    from convexlaw.simulations._huggingface import FollowSchedule

    if batch is None:
        return FollowSchedule(checked_rates(lr))
    return FollowSchedule(*checked_schedule(lr, batch))


def follow_schedule(
    trainer: Any,
    lr: ArrayLike,
    batch: ArrayLike,
    *,
    seed: int = 0,
    shuffle: bool = True,
    micro_batch: int | None = None,
) -> None:
    """Make a Hugging Face ``Trainer`` follow both arrays: callback, data loader, and pieces in memory.

    Call it once, before ``trainer.train()``, also before one that resumes from a checkpoint.

    Parameters
    ----------
    trainer : transformers.Trainer
        Made with :func:`huggingface_arguments`.
    lr, batch : (T,) array_like
        The schedule; batch sizes count all processes together.
    seed, shuffle
        As in :func:`torch_batch_sampler`.
    micro_batch : int, optional
        Samples of one process in memory at once: every batch is split into pieces of it, whose gradients
        add up to that of the whole batch.

    Raises
    ------
    ConvexlawError
        A batch size that is no multiple of processes x micro_batch, gradient accumulation in the arguments.

    Notes
    -----
    ``benchmarks/check_huggingface.py`` runs the real Trainer so, resumption and pieces included.
    """
    require_torch()
    from convexlaw.simulations import _huggingface

    _check_micro_batch(micro_batch)
    rates, sizes = checked_schedule(lr, batch)
    _huggingface.follow(trainer, rates, sizes, seed=seed, shuffle=shuffle, micro_batch=micro_batch)


def megatron_schedule(batch: ArrayLike, *, seq_length: int | None = None) -> str:
    """Batch sizes as Megatron-LM's ``--step-batch-size-schedule`` takes them.

    Parameters
    ----------
    batch : (T,) array_like of int
        Samples of every update.
    seq_length : int, optional
        Tokens of a sample. Megatron-LM reads the thresholds as tokens where it knows its sequence length
        (as its command line does) and as samples otherwise; give it for thresholds in tokens.

    Returns
    -------
    str
        ``"0:256 1000000:512"``: from that many samples (tokens) on, that batch size.

    Raises
    ------
    ConvexlawError
        Batch sizes that are not whole and positive.

    Examples
    --------
    >>> megatron_schedule([2, 2, 4, 4, 4])
    '0:2 4:4'
    """
    sizes = checked_sizes(batch)
    unit = 1
    if seq_length is not None:
        if isinstance(seq_length, bool) or not seq_length >= 1:
            raise ConvexlawError(f"seq_length = {seq_length!r}: give the tokens of a sample, at least 1")
        unit = int(seq_length)
    before = np.cumsum(sizes) - sizes
    starts = np.concatenate([[0], np.flatnonzero(np.diff(sizes)) + 1])
    if int(before[-1]) * unit >= 2**53:
        raise ConvexlawError(
            f"{before[-1] * unit:.3g} tokens: Megatron-LM reads thresholds below 2^53 exactly"
        )
    return " ".join(f"{int(before[t]) * unit}:{int(sizes[t])}" for t in starts)


def megatron_arguments(
    lr: ArrayLike, batch: ArrayLike, *, seq_length: int | None = None, in_samples: str | None = None
) -> list[str]:
    """Megatron-LM arguments of a schedule, one a line; lines that start with # explain.

    Parameters
    ----------
    lr, batch : (T,) array_like
        The schedule.
    seq_length : int, optional
        As in :func:`megatron_schedule`.
    in_samples : str, optional
        Schedule text of learning rates that follow the samples used (``plan_in_samples``): Megatron-LM's own
        schedules do, so these are written as arguments where it has the shape. Learning rates by update
        cannot be written; the lines say so.

    Returns
    -------
    list of str

    Raises
    ------
    ConvexlawError
        Arrays that are no schedule.

    Examples
    --------
    >>> for line in megatron_arguments([1.0, 1.0, 0.5], [2, 2, 4]):
    ...     if not line.startswith("#"):
    ...         print(line)
    --train-samples 8
    --step-batch-size-schedule "0:2 4:4"
    """
    rates, sizes = checked_schedule(lr, batch)
    unit = "samples" if seq_length is None else f"tokens (samples x {seq_length})"
    out = [
        f"# thresholds in {unit}",
        f"--train-samples {int(sizes.sum())}",
        f'--step-batch-size-schedule "{megatron_schedule(sizes, seq_length=seq_length)}"',
    ]
    if seq_length is None:
        out.insert(1, "# Megatron-LM's command line reads them as tokens: give the sequence length for those")
    return out + megatron_rates(rates, int(sizes.sum()), in_samples)


def export(
    folder: str | os.PathLike[str],
    lr: ArrayLike | BatchPlan,
    batch: ArrayLike | None = None,
    *,
    seq_length: int | None = None,
    in_samples: str | None = None,
) -> list[Path]:
    """Write a schedule for every trainer: schedule.csv, megatron.txt, huggingface.json, how_to_use.md.

    Parameters
    ----------
    folder : path-like
        Made where it is missing.
    lr : (T,) array_like or BatchPlan
        Learning rates; a plan brings its batch sizes with it.
    batch : (T,) array_like of int
        Batch sizes.
    seq_length, in_samples
        As in :func:`megatron_arguments`.

    Returns
    -------
    list of pathlib.Path

    Raises
    ------
    ConvexlawError
        Arrays that are no schedule (nothing is written then), a folder that is a file.

    Examples
    --------
    >>> import tempfile
    >>> [path.name for path in export(tempfile.mkdtemp(), [1e-3, 5e-4], [8, 16])]
    ['schedule.csv', 'megatron.txt', 'huggingface.json', 'how_to_use.md']
    """
    if isinstance(lr, BatchPlan):
        batch = lr.batch if batch is None else batch
        lr = lr.lr
    if batch is None:
        raise ConvexlawError("batch is missing: give the samples of every update, or a BatchPlan")
    rates, sizes = checked_schedule(lr, batch)
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise ConvexlawError(f"{out} is a file: give a folder to write to")
    lines = megatron_arguments(rates, sizes, seq_length=seq_length, in_samples=in_samples)
    paths = [out / n for n in ("schedule.csv", "megatron.txt", "huggingface.json", "how_to_use.md")]
    write_schedule(paths[0], rates, sizes)
    write_text(paths[1], "\n".join(lines) + "\n")
    write_json(paths[2], huggingface_arguments(rates, sizes))
    write_text(paths[3], guide(rates.size, int(sizes.sum())))
    return paths
