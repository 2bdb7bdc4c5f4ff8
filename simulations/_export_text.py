"""Text that goes with exported schedules: Megatron's learning-rate arguments, the guide beside the files."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from convexlaw.theory.schedules import parse_parameters

__all__ = ["MEGATRON_LR", "guide", "megatron_rates"]

MEGATRON_LR = ("constant", "linear", "cosine", "wsd")
"""Schedules by samples that Megatron-LM has too."""

_COOLDOWN = {"linear": "linear", "cosine": "cosine", "sqrt": "minus_sqrt"}


def megatron_rates(lr: NDArray[np.float64], samples: int, in_samples: str | None) -> list[str]:
    """Learning-rate arguments where Megatron-LM has the schedule, otherwise comments that say why not."""
    if in_samples is None:
        return [
            "# learning rates: with --train-samples Megatron-LM's schedules follow the samples, this one",
            "# follows the update (column lr of schedule.csv): set lr from that column, or plan with",
            "# learning rates that follow the samples (convexlaw batch --in-samples)",
        ]
    name, values = parse_parameters(in_samples)
    peak = float(lr.max())
    end = peak * float(values.get("end", 0.0)) / float(values.get("peak", 1.0))  # relative without a peak
    warmup = values.get("warmup", 0)
    if name not in MEGATRON_LR or (warmup and name in ("linear", "cosine")):
        why = "starts its decay after the warmup" if warmup else f"has no schedule {name}"
        return [f"# learning rates: Megatron-LM {why}: set lr from the column lr of schedule.csv"]
    out = [f"--lr {peak!r}", f"--min-lr {end if name != 'constant' else peak!r}"]
    if warmup:
        total = float(values.get("steps", 1.0)) if warmup >= 1 else 1.0
        out.append(f"--lr-warmup-samples {round(float(warmup) / total * samples)}")
    out.append(f"--lr-decay-style {'WSD' if name == 'wsd' else name}")
    out.append(f"--lr-decay-samples {samples}")
    if name == "wsd":
        out.append(f"--lr-wsd-decay-samples {round(float(values.get('decay', 0.2)) * samples)}")
        out.append(f"--lr-wsd-decay-style {_COOLDOWN[values.get('cooldown', 'linear')]}")
    return out


def guide(steps: int, samples: int) -> str:
    """Markdown beside the exported files: how each trainer takes them."""
    return f"""# A schedule of {steps} updates, {samples} samples

`schedule.csv` holds the learning rate and the batch size of every update.

## torch

```python
from convexlaw.simulations.exporters import read_schedule, torch_batch_sampler, torch_scheduler

lr, batch = read_schedule("schedule.csv")
scheduler = torch_scheduler(optimizer, lr)
sampler = torch_batch_sampler(len(data), batch, seed=0)
for inputs in torch.utils.data.DataLoader(data, batch_sampler=sampler):
    loss_of(model, inputs).backward()
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
```

Save `scheduler.state_dict()` and `sampler.state_dict(step=scheduler.last_epoch)`; `load_state_dict` resumes.

## Hugging Face Trainer

```python
from convexlaw.simulations.exporters import follow_schedule, huggingface_arguments, read_schedule

lr, batch = read_schedule("schedule.csv")
args = TrainingArguments(output_dir="run", **huggingface_arguments(lr, batch))
trainer = Trainer(model, args, train_dataset=data)
follow_schedule(trainer, lr, batch)  # micro_batch=8 keeps 8 samples in memory at once
trainer.train()
```

`huggingface.json` holds the arguments.

## Megatron-LM

`megatron.txt` holds the arguments; lines that start with # explain them.

## convexlaw

    convexlaw train --schedule schedule.csv --batch-schedule schedule.csv --out run.csv
"""
