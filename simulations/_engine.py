"""The part of a training run that torch does: gradients, updates, evaluations, on one process or several."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import math
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.corpus import Corpus, SequenceOrder
from convexlaw.simulations.growth import Growth
from convexlaw.simulations.models import ModelConfig, build

if TYPE_CHECKING:
    from convexlaw.simulations._networks import Network
    from convexlaw.simulations.train import TrainOptions

__all__ = ["Engine", "session"]

_DTYPES = {"float32": torch.float32, "float64": torch.float64}
_EVALUATION_BATCH = 64


@contextlib.contextmanager
def session(options: TrainOptions) -> Iterator[None]:
    """Hold torch's global state (threads, generators) for one run and give it back."""
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConvexlawError(f"device = {options.device!r}: torch sees no CUDA device here; use device='cpu'")
    threads = torch.get_num_threads()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        # torch's optimizers import this module; imported after the group is made, it keeps the group as a
        # default argument, and threads that outlive destroy_process_group abort a process that ends
        importlib.import_module("torch.distributed.nn.functional")
        dist.init_process_group("nccl" if options.device.startswith("cuda") else "gloo")
        # kept for the next run of this process: a closed group cannot be opened again under one launcher
        atexit.register(_close_group)
    try:
        torch.set_num_threads(options.threads)
        devices = [torch.cuda.current_device()] if options.device.startswith("cuda") else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(options.seed)
            yield
    finally:
        torch.set_num_threads(threads)


def _close_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


class Engine:
    """Model, optimizer and position in the text; every method moves all processes of a group together."""

    def __init__(
        self, model: ModelConfig, options: TrainOptions, corpus: Corpus, growth: Growth | None = None
    ) -> None:
        self.options, self.growth = options, growth
        self.config, self.context = model, model.context
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.world = dist.get_world_size() if dist.is_initialized() else 1
        self.device = options.device
        if self.device == "cuda" and self.world > 1:
            self.device = f"cuda:{int(os.environ.get('LOCAL_RANK', self.rank))}"
            torch.cuda.set_device(self.device)
        self.model = self._full()
        self._counts = _counts(self.model, "")
        if growth is not None:
            self.model.blocks = self.model.blocks[: growth.start]
            self._counts |= _counts(self.model, "_before_growth")
        self.optimizer = self._start()
        self.order = SequenceOrder(corpus.train, model.context, options.seed)
        self.taken = 0
        held_out = corpus.validation_windows(options.eval_sequences, model.context)
        self.held_out = torch.from_numpy(held_out)

    def _full(self) -> Network:
        options = self.options
        return build(self.config, seed=options.seed, device=self.device, dtype=_DTYPES[options.dtype])

    def _start(self) -> torch.optim.Optimizer:
        """Take stock of the model's parameters, for an optimizer without state."""
        self.parameters = list(self.model.parameters())
        self.matrices = [p for p in self.parameters if p.ndim >= 2]
        gains = [p for p in self.parameters if p.ndim < 2]
        groups = [{"params": self.matrices, "decay": True}, {"params": gains, "decay": False}]
        return _optimizer(groups, self.options)

    @property
    def due(self) -> int | None:
        """Step of a growth that has not happened yet."""
        growth = self.growth
        waits = growth is not None and len(self.model.blocks) < self.config.depth
        return growth.at if growth is not None and waits else None

    @torch.no_grad()
    def grow(self) -> None:
        """Make the model whole; blocks there were keep their weights and the state of the optimizer."""
        growth = self.growth
        assert growth is not None
        blocks: list[Any] = list(self._full().blocks)
        old = self.model.blocks
        for i, (source, same) in enumerate(growth.origins(self.config.depth)):
            if source is not None and same:
                blocks[i] = old[source]
            elif source is not None:
                blocks[i].load_state_dict(old[source].state_dict())
            if not same and growth.init == "zero":
                for parameter in blocks[i].parameters():
                    if parameter.ndim >= 2:
                        parameter.zero_()
            if not same and growth.init == "copy_zero":
                for writer in blocks[i].writers():
                    writer.weight.zero_()
        self.model.blocks = torch.nn.ModuleList(blocks)
        before = self.optimizer.state
        self.optimizer = self._start()
        for parameter in self.parameters:
            if parameter in before:
                self.optimizer.state[parameter] = before[parameter]

    def gradient(self, batch_size: int, stop: bool = False) -> tuple[float, float, bool]:
        """Gradient of the mean loss of the next ``batch_size`` sequences, left in the parameters.

        Returns the mean loss (nats per token), the gradient's norm before clipping, and whether any process
        asked to stop.
        """
        tokens = self.order.take(self.taken, batch_size)
        mine = np.array_split(tokens, self.world)[self.rank]
        self.optimizer.zero_grad(set_to_none=self.world == 1)
        total = torch.zeros((), dtype=self.parameters[0].dtype, device=self.device)
        size = self.options.micro_batch or max(len(mine), 1)
        for start in range(0, len(mine), size):
            # sum over this piece / tokens of the whole batch: pieces and processes add up to the mean
            loss = self._loss(mine[start : start + size]) / (batch_size * self.context)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        asked = stop
        if self.world > 1:
            total, asked = self._sum_over_processes(total, stop)
        self.taken += batch_size
        limit = self.options.clip if self.options.clip is not None else float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, limit, foreach=True)
        return float(total), float(norm), asked

    def update(self, lr: float) -> None:
        """Apply one update with step size ``lr`` to the gradient left by :meth:`gradient`."""
        options = self.options
        if options.optimizer == "sgd" and options.weight_decay and lr:
            # decoupled, as AdamW does it; torch's own SGD decay would enter the momentum
            with torch.no_grad():
                for matrix in self.matrices:
                    matrix.mul_(1 - lr * options.weight_decay)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self) -> float:
        """Mean loss on the held-out set, nats per token."""
        self.model.eval()
        mine = np.array_split(np.arange(len(self.held_out)), self.world)[self.rank]
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        size = self.options.micro_batch or _EVALUATION_BATCH
        for start in range(0, len(mine), size):
            total += self._loss(self.held_out[mine[start : start + size]])
        if self.world > 1:
            dist.all_reduce(total)
        self.model.train()
        return float(total) / (len(self.held_out) * self.context)

    @torch.no_grad()
    def weight_norm(self) -> float:
        """Frobenius norm of all matrices together."""
        return math.sqrt(sum(float(matrix.square().sum()) for matrix in self.matrices))

    def state(self) -> dict[str, Any]:
        """Everything that the next steps depend on."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "taken": self.taken,
            "depth": len(self.model.blocks),
            "rng": torch.get_rng_state(),
        }
        if self.device.startswith("cuda"):
            state["cuda_rng"] = torch.cuda.get_rng_state(self.device)
        return state

    def load(self, state: dict[str, Any]) -> None:
        """Inverse of :meth:`state`."""
        if state.get("depth", 0) > len(self.model.blocks):
            self.grow()
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.taken = int(state["taken"])
        torch.set_rng_state(state["rng"])
        if self.device.startswith("cuda") and "cuda_rng" in state:
            torch.cuda.set_rng_state(state["cuda_rng"], self.device)

    def facts(self) -> dict[str, Any]:
        """Numbers for the log's header."""
        return {
            **asdict(self.config),
            **self._counts,
            "torch": torch.__version__,
            "processes": self.world,
        }

    def _loss(self, tokens: Any) -> torch.Tensor:
        """Sum of the loss over the tokens of some sequences."""
        batch = torch.as_tensor(tokens).to(self.device)
        logits = self.model(batch[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), reduction="sum")

    def _sum_over_processes(self, total: torch.Tensor, stop: bool) -> tuple[torch.Tensor, bool]:
        for parameter in self.parameters:  # a process without sequences has no gradients yet
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        grads = [p.grad for p in self.parameters if p.grad is not None]
        extra = torch.stack([total, torch.full_like(total, float(stop))])
        flat = torch.cat([extra, *(g.flatten() for g in grads)])
        dist.all_reduce(flat)
        position = 2
        for grad in grads:
            grad.copy_(flat[position : position + grad.numel()].view_as(grad))
            position += grad.numel()
        return flat[0], bool(flat[1] > 0)


def _counts(model: Network, suffix: str) -> dict[str, int]:
    count = sum(p.numel() for p in model.parameters())
    outside = sum(
        p.numel()
        for name, p in model.named_parameters()
        if name.split(".")[0] in ("token", "position", "head")
    )
    return {f"parameters{suffix}": count, f"parameters_in_blocks{suffix}": count - outside}


def _optimizer(groups: list[dict[str, Any]], options: TrainOptions) -> torch.optim.Optimizer:
    if options.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=1.0, momentum=options.momentum)
    for group in groups:
        group["weight_decay"] = options.weight_decay if group["decay"] else 0.0
    return torch.optim.AdamW(groups, lr=1.0, betas=options.betas, eps=options.eps, fused=True)
