"""Schedules in a real torch loop: exact learning rates and batches, resumption, several processes' shares."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.exporters import torch_batch_sampler, torch_scheduler
from convexlaw.theory import batch as batches
from convexlaw.theory import schedules

STEPS = 60
LR = schedules.with_warmup(schedules.wsd(STEPS, 3e-3, decay=0.3), 5)
SIZES = batches.optimal_batch_sizes(LR, 16 * STEPS, min_batch=4, max_batch=48, multiple_of=2)


def data(count: int = 100) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    return TensorDataset(torch.arange(count), x, x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))


class Loop:
    """The training loop of a torch user."""

    def __init__(self, lr=LR, sizes=SIZES, *, workers: int = 0, **options) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(3, 1, dtype=torch.float64)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1.0)
        self.scheduler = torch_scheduler(self.optimizer, lr)
        self.sampler = torch_batch_sampler(100, sizes, **options)
        self.workers = workers
        self.rates: list[float] = []
        self.seen: list[list[int]] = []

    def run(self, updates: int | None = None) -> None:
        for index, x, y in DataLoader(data(), batch_sampler=self.sampler, num_workers=self.workers):
            self.seen.append(index.tolist())
            self.rates.append(self.optimizer.param_groups[0]["lr"])
            self.optimizer.zero_grad()
            (self.model(x)[:, 0] - y).square().mean().backward()
            self.optimizer.step()
            self.scheduler.step()
            if updates is not None and len(self.seen) == updates:
                return

    def state(self) -> dict:
        done = self.scheduler.last_epoch
        parts = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "sampler": self.sampler.state_dict(step=done),
        }
        return copy.deepcopy(parts)

    def load(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.sampler.load_state_dict(state["sampler"])


def test_every_update_gets_its_learning_rate_and_its_batch():
    loop = Loop()
    loop.run()
    assert loop.rates == LR.tolist()
    assert [len(b) for b in loop.seen] == SIZES.tolist()


def test_samples_come_in_one_order_whatever_the_batch_sizes():
    one, other = Loop(), Loop(LR[: SIZES.sum() // 16], np.full(SIZES.sum() // 16, 16))
    one.run()
    other.run()
    first, second = (np.concatenate(loop.seen) for loop in (one, other))
    np.testing.assert_array_equal(first[: second.size], second)
    # every pass holds every sample once, in an order of its own
    passes = first[: first.size // 100 * 100].reshape(-1, 100)
    np.testing.assert_array_equal(np.sort(passes, axis=1), np.tile(np.arange(100), (len(passes), 1)))
    assert len({tuple(p) for p in passes}) == len(passes) > 3
    again = Loop(seed=1)
    again.run()
    assert np.concatenate(again.seen).tolist() != first.tolist()


@pytest.mark.parametrize("stop", [1, 17, STEPS - 1])
def test_a_resumed_run_is_the_uninterrupted_one(stop):
    whole = Loop()
    whole.run()
    first = Loop()
    first.run(stop)
    file = pickle.dumps(first.state())
    second = Loop()
    second.load(pickle.loads(file))
    assert second.optimizer.param_groups[0]["lr"] == LR[stop]
    assert second.scheduler.get_last_lr() == [LR[stop]]
    second.run()
    assert first.rates + second.rates == LR.tolist()
    assert first.seen + second.seen == whole.seen
    assert torch.equal(second.model.weight, whole.model.weight)


def test_states_are_files_that_torch_reads_safely(tmp_path):
    loop = Loop()
    loop.run(7)
    torch.save(loop.state(), tmp_path / "state.pt")
    again = Loop()
    again.load(torch.load(tmp_path / "state.pt", weights_only=True))
    assert again.scheduler.last_epoch == again.sampler.step == 7


def test_workers_draw_ahead_and_the_state_says_what_was_done():
    loop = Loop(workers=2)
    loop.run(9)
    assert loop.sampler.step > 9  # drawn, not trained on
    second = Loop(workers=2)
    second.load(loop.state())
    second.run(3)
    whole = Loop()
    whole.run(12)
    assert loop.seen + second.seen == whole.seen


def test_processes_share_every_batch_equally():
    sizes = SIZES // 2 * 2
    shares = [list(torch_batch_sampler(100, sizes, seed=4, rank=r, world=2)) for r in (0, 1)]
    whole = list(torch_batch_sampler(100, sizes, seed=4))
    assert [a + b for a, b in zip(*shares, strict=True)] == whole
    with pytest.raises(ConvexlawError, match="no multiple of world = 7"):
        torch_batch_sampler(100, sizes, world=7)


def test_groups_keep_their_ratio_where_asked():
    a, b = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    for relative, want in ((True, [2.0, 0.5]), (False, [3e-3, 3e-3])):
        optimizer = torch.optim.SGD([{"params": [a], "lr": 2.0}, {"params": [b], "lr": 0.5}])
        scheduler = torch_scheduler(optimizer, [3e-3, 1.5e-3], relative=relative)
        assert scheduler.get_last_lr() == want
        optimizer.step()
        scheduler.step()
        assert scheduler.get_last_lr() == [w / 2 for w in want]


def test_another_past_is_refused_and_another_future_is_not():
    loop = Loop()
    loop.run(20)
    state = loop.state()
    longer = np.concatenate([LR[:20], np.full(100, 1e-3)])
    more = np.concatenate([SIZES[:20], np.full(100, 8)])
    branch = Loop(longer, more)
    branch.load(state)
    branch.run()
    assert branch.rates == longer[20:].tolist()
    assert [len(b) for b in branch.seen] == more[20:].tolist()
    with pytest.raises(ConvexlawError, match="first 20 learning rates are not those"):
        Loop(LR * 2).load(state)
    with pytest.raises(ConvexlawError, match="first 20 batch sizes are not those"):
        Loop(LR, SIZES + 2).load(state)
    with pytest.raises(ConvexlawError, match="another order"):
        Loop(seed=1).load(state)
    with pytest.raises(ConvexlawError, match="first 20 learning rates"):
        Loop(LR[:10], SIZES[:10]).load(state)
    for name in ("scheduler", "sampler"):
        with pytest.raises(ConvexlawError, match=r"the saved state lacks .*prefix"):
            Loop().load(state | {name: {"last_epoch": 20, "step": 20}})
    for wrong in ("x", None, [[1.0], [1.0, 2.0]]):
        with pytest.raises(ConvexlawError, match="give one learning rate an update"):
            torch_scheduler(loop.optimizer, wrong)


def test_nothing_runs_beyond_the_schedule():
    loop = Loop()
    loop.run()
    assert len(loop.sampler) == 0
    assert list(loop.sampler) == []
    with pytest.raises(ConvexlawError, match=f"update {STEPS + 1} is asked of a schedule of {STEPS}"):
        loop.scheduler.step()
    loop.sampler.start_at(STEPS - 2)
    assert [len(b) for b in loop.sampler] == SIZES[-2:].tolist()
    for call in (loop.sampler.start_at, loop.sampler.state_dict):
        with pytest.raises(ConvexlawError, match="outside a schedule of 60"):
            call(STEPS + 1)


def test_a_batch_may_be_larger_than_the_data():
    drawn = list(torch_batch_sampler(3, [7, 2], shuffle=False))
    assert drawn == [[0, 1, 2, 0, 1, 2, 0], [1, 2]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda o: torch_scheduler(o, [1.0, -1.0]), r"lr\[1\] = -1"),
        (lambda o: torch_scheduler(o, [0.0, 0.0]), "lr is 0"),
        (lambda o: torch_scheduler(o, [[1.0]]), "shape"),
        (lambda o: torch_batch_sampler(10, [4, 2.5]), r"batch\[1\] = 2.5"),
        (lambda o: torch_batch_sampler(10, [0]), r"batch\[0\] = 0"),
        (lambda o: torch_batch_sampler(0, [1]), "size = 0"),
        (lambda o: torch_batch_sampler(10, [2], rank=2, world=2), "ranks run from 0 to 1"),
        (lambda o: torch_batch_sampler(10, "abc"), "shape"),
    ],
)
def test_bad_values_are_named(call, words):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    with pytest.raises(ConvexlawError, match=words):
        call(optimizer)
