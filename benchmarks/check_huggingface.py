"""Two dozen steps of the real Hugging Face Trainer under a schedule, against a plain torch loop.

``python benchmarks/check_huggingface.py`` (transformers and accelerate come with the extra ``test``). Without
transformers it says so and ends. ``tests/test_exporters_huggingface.py`` asserts the figures.
"""

from __future__ import annotations

import importlib.util
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from convexlaw.simulations.exporters import (
    follow_schedule,
    huggingface_arguments,
    torch_batch_sampler,
    torch_scheduler,
)
from convexlaw.theory import batch as batches
from convexlaw.theory import schedules

STEPS = 24
LR = schedules.with_warmup(schedules.wsd(STEPS, 1e-2, decay=0.25), 3)
SIZES = batches.optimal_batch_sizes(LR, 16 * STEPS, min_batch=4, max_batch=64, multiple_of=4)


class Rows(Dataset):
    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(150, 5, generator=generator, dtype=torch.float64)
        self.y = self.x @ torch.arange(5.0, dtype=torch.float64)

    def __len__(self) -> int:
        return 150

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"x": self.x[i], "labels": self.y[i]}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(5, 1, dtype=torch.float64)

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        out = self.linear(x)[:, 0]
        return {"loss": (out - labels).square().mean(), "out": out}


def trainer(folder: str, micro_batch: int | None = None):
    from transformers import Trainer, TrainingArguments

    args = TrainingArguments(
        output_dir=folder,
        **huggingface_arguments(LR, SIZES, micro_batch=micro_batch),
        logging_steps=1,
        save_strategy="steps",
        save_steps=10,
        report_to=[],
        use_cpu=True,
        max_grad_norm=0,
        disable_tqdm=True,
    )
    made = Trainer(Net(), args, train_dataset=Rows())
    follow_schedule(made, LR, SIZES, seed=3, micro_batch=micro_batch)
    return made


def measured() -> dict[str, float]:
    """Differences between the schedule and the trainer, all 0 but for rounding."""
    with tempfile.TemporaryDirectory() as folder:
        whole = trainer(folder)
        whole.train()
        log = [row for row in whole.state.log_history if "loss" in row]
        weights = whole.model.linear.weight.detach().clone()
        resumed = trainer(folder)
        resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-10")
    with tempfile.TemporaryDirectory() as folder:
        pieces = trainer(folder, micro_batch=4)
        pieces.train()

    net, data = Net(), Rows()
    adam = {"betas": (whole.args.adam_beta1, whole.args.adam_beta2), "eps": whole.args.adam_epsilon}
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.0, weight_decay=0.0, **adam)
    scheduler = torch_scheduler(optimizer, LR)
    for inputs in DataLoader(data, batch_sampler=torch_batch_sampler(len(data), SIZES, seed=3)):
        net(**inputs)["loss"].backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()

    def off(other: torch.nn.Module) -> float:
        return float((other.linear.weight.detach() - weights).abs().max())

    rates = np.array([row["learning_rate"] for row in log])
    sizes = np.array([row["batch_size"] for row in log])
    return {
        "logged learning rates": float(np.abs(rates - LR).max()),
        "logged batch sizes": float(np.abs(sizes - SIZES).max()),
        "weights against a plain torch loop": off(net),
        "weights in pieces of 4 samples": off(pieces.model),
        "weights after resuming at update 10": off(resumed.model),
    }


def main() -> None:
    if importlib.util.find_spec("transformers") is None:
        print("transformers is not installed: nothing to check (pip install transformers accelerate)")
        return
    import transformers

    found = measured()
    print(f"| transformers {transformers.__version__}, torch {torch.__version__}, {STEPS} updates | error |")
    print("|---|---|")
    for what, error in found.items():
        print(f"| {what} | {error:.1e} |")


if __name__ == "__main__":
    main()
