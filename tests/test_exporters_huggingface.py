"""Schedules in the Hugging Face Trainer: the real one where installed, and a small one with its calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.exporters import (
    follow_schedule,
    huggingface_arguments,
    huggingface_callback,
    torch_batch_sampler,
    torch_scheduler,
)
from convexlaw.theory import batch as batches
from convexlaw.theory import schedules

STEPS = 24
LR = schedules.with_warmup(schedules.wsd(STEPS, 1e-2, decay=0.25), 3)
SIZES = batches.optimal_batch_sizes(LR, 16 * STEPS, min_batch=4, max_batch=64, multiple_of=4)
EVENTS = (
    "on_init_end",
    "on_epoch_begin",
    "on_substep_end",
    "on_pre_optimizer_step",
    "on_save",
    "on_push_begin",
)


def rows() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(150, 5, generator=generator, dtype=torch.float64)
    return {"x": x, "labels": x @ torch.arange(5.0, dtype=torch.float64)}


def collate(items):
    return {"x": torch.stack([a for a, _ in items]), "labels": torch.stack([b for _, b in items])}


def model() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(5, 1, dtype=torch.float64)


class Trainer:
    """The calls of the real one, in its order; ``late`` logs after the scheduler's step, as old versions."""

    def __init__(self, *, late: bool = False, callbacks=(), **arguments) -> None:
        self.args = SimpleNamespace(world_size=1, process_index=0, **arguments)
        self.model, self.late, self.callbacks = model(), late, list(callbacks)
        self.train_dataset = TensorDataset(*rows().values())
        self.state = SimpleNamespace(global_step=0, max_steps=self.args.max_steps, log_history=[])
        self.calls = []
        self.call("on_init_end")

    def add_callback(self, callback) -> None:
        self.callbacks.append(callback)

    def call(self, event, **more) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(
                self.args,
                self.state,
                SimpleNamespace(),
                model=self.model,
                optimizer=getattr(self, "optimizer", None),
                lr_scheduler=getattr(self, "scheduler", None),
                train_dataloader=getattr(self, "loader", None),
                **more,
            )

    def get_train_dataloader(self) -> DataLoader:
        return DataLoader(
            self.train_dataset,
            batch_size=self.args.per_device_train_batch_size,
            shuffle=True,
            collate_fn=collate,
        )

    def training_step(self, net, inputs, num_items_in_batch=None):
        self.calls.append(len(inputs["x"]))
        loss = (net(inputs["x"])[:, 0] - inputs["labels"]).square().mean()
        (loss / self.current_gradient_accumulation_steps).backward()
        return loss.detach() / self.current_gradient_accumulation_steps

    def log(self, logs) -> None:
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self.call("on_log", logs=logs)

    def train(self, saved=None, stop=None) -> dict:
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.args.learning_rate)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda _: 1.0)
        self.loader = self.get_train_dataloader()
        if saved is not None:
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.scheduler.load_state_dict(saved["scheduler"])
            self.state.global_step, self.state.log_history = saved["step"], list(saved["log"])
        self.call("on_train_begin")
        batch = iter(self.loader)
        for _ in range(self.state.global_step):  # the trainer skips the batches it has seen
            next(batch)
        while self.state.global_step < (stop or self.args.max_steps):
            inputs = next(batch)
            self.current_gradient_accumulation_steps = 1
            self.call("on_step_begin")
            loss = self.training_step(self.model, inputs)
            for event in EVENTS[1:]:
                self.call(event)
            self.optimizer.step()
            rate = self.scheduler.get_last_lr()[0]
            self.scheduler.step()
            self.model.zero_grad()
            self.state.global_step += 1
            self.call("on_step_end")
            self.log(
                {"loss": float(loss), "learning_rate": self.scheduler.get_last_lr()[0] if self.late else rate}
            )
        self.log({"train_loss": 1.0})
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "step": self.state.global_step,
            "log": self.state.log_history[:-1],
        }


def trained(micro=None, *, saved=None, stop=None, late=False) -> Trainer:
    trainer = Trainer(late=late, **huggingface_arguments(LR, SIZES, micro_batch=micro))
    follow_schedule(trainer, LR, SIZES, seed=3, micro_batch=micro)
    trainer.saved = trainer.train(saved, stop)
    return trainer


@pytest.fixture(scope="module")
def plain() -> torch.Tensor:
    """Weights of a plain torch loop under the same schedule."""
    net, data = model(), TensorDataset(*rows().values())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.0)
    scheduler = torch_scheduler(optimizer, LR)
    sampler = torch_batch_sampler(len(data), SIZES, seed=3)
    for inputs in DataLoader(data, batch_sampler=sampler, collate_fn=collate):
        (net(inputs["x"])[:, 0] - inputs["labels"]).square().mean().backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return net.weight.detach()


def test_the_trainer_is_the_plain_loop(plain):
    trainer = trained()
    assert torch.equal(trainer.model.weight, plain)
    log = trainer.state.log_history
    assert [row["learning_rate"] for row in log[:-1]] == LR.tolist()
    assert [row["batch_size"] for row in log[:-1]] == SIZES.tolist()
    assert log[-1] == {"train_loss": 1.0, "step": STEPS}
    assert trainer.calls == SIZES.tolist()


def test_pieces_in_memory_add_up_to_the_batch(plain):
    trainer = trained(4)
    assert set(trainer.calls) == {4}
    assert sum(trainer.calls) == SIZES.sum()
    torch.testing.assert_close(trainer.model.weight, plain, rtol=1e-13, atol=1e-13)
    losses = [row["loss"] for row in trained().state.log_history[:-1]]
    assert [row["loss"] for row in trainer.state.log_history[:-1]] == pytest.approx(losses, rel=1e-12)


@pytest.mark.parametrize("stop", [1, 10, STEPS - 1])
def test_a_resumed_training_is_the_uninterrupted_one(plain, stop):
    second = trained(saved=trained(stop=stop).saved)
    assert torch.equal(second.model.weight, plain)
    assert [row["learning_rate"] for row in second.state.log_history[:-1]] == LR.tolist()


def test_earlier_versions_log_the_rate_of_the_next_update():
    log = trained(late=True).state.log_history
    assert [row["learning_rate"] for row in log[:-2]] == pytest.approx(LR[1:].tolist(), rel=1e-15)


def test_the_callback_alone_sets_the_learning_rates():
    callback = huggingface_callback(LR)
    trainer = Trainer(callbacks=[callback], **huggingface_arguments(LR, np.full(STEPS, 4)))
    trainer.train()
    assert [row["learning_rate"] for row in trainer.state.log_history[:-1]] == LR.tolist()
    assert "batch_size" not in trainer.state.log_history[0]


def test_a_trainer_that_would_not_follow_is_refused():
    wrong = Trainer(callbacks=[huggingface_callback(LR, SIZES)], **huggingface_arguments(LR, SIZES))
    with pytest.raises(ConvexlawError, match="does not follow the batch schedule: call follow_schedule"):
        wrong.train()
    arguments = huggingface_arguments(LR, SIZES)
    short = Trainer(**arguments | {"max_steps": 10})
    follow_schedule(short, LR, SIZES)
    with pytest.raises(ConvexlawError, match="10 updates, the schedule has 24: pass max_steps=24"):
        short.train()
    with pytest.raises(ConvexlawError, match="gradient_accumulation_steps = 2"):
        follow_schedule(Trainer(**arguments | {"gradient_accumulation_steps": 2}), LR, SIZES)
    with pytest.raises(ConvexlawError, match=r"multiple of 32 .* plan with multiple_of=32"):
        follow_schedule(Trainer(**arguments), LR, SIZES, micro_batch=32)
    for wrong_size in (0, -2, 1.5, True):
        with pytest.raises(ConvexlawError, match=f"micro_batch = {wrong_size}"):
            follow_schedule(Trainer(**arguments), LR, SIZES, micro_batch=wrong_size)
        with pytest.raises(ConvexlawError, match=f"micro_batch = {wrong_size}"):
            huggingface_arguments(LR, SIZES, micro_batch=wrong_size)


def test_two_processes_get_the_two_halves_of_every_batch():
    halves = []
    for rank in (0, 1):
        trainer = Trainer(**huggingface_arguments(LR, SIZES))
        trainer.args.world_size, trainer.args.process_index = 2, rank
        follow_schedule(trainer, LR, SIZES, seed=3)
        halves.append([batch["labels"] for batch in trainer.get_train_dataloader()])
    whole = Trainer(**huggingface_arguments(LR, SIZES))
    follow_schedule(whole, LR, SIZES, seed=3)
    for a, b, both in zip(*halves, whole.get_train_dataloader(), strict=True):
        assert len(a) == len(b)
        assert torch.equal(torch.cat([a, b]), both["labels"])


def test_every_event_has_a_handler_and_nothing_else_is_invented():
    callback = huggingface_callback(LR, SIZES)
    for event in (*EVENTS, "on_something_of_a_later_version"):
        assert getattr(callback, event)("args", "state", "control", model=None) is None
    with pytest.raises(AttributeError):
        callback.state  # noqa: B018


def test_the_real_trainer_follows(tmp_path):
    folder = Path(__file__).parents[1] / "benchmarks"
    script = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "import check_huggingface as check\n"
        "found = check.measured()\n"
        "assert len(found) == 5 and max(found.values()) < 1e-12, found\n"
    )
    # a process of its own: the warnings of another package are not this suite's
    line = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
