"""Write the sample logs of this folder with the tools themselves (README.md has versions, the command).

Each part needs its tool: ``python make_samples.py lightning huggingface mlflow tensorboard``
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
STEPS, WARMUP, PEAK = 60, 10, 0.05


def shape(t: int) -> float:
    """Warmup, then linear to zero: what every tool below is asked to follow."""
    return min(1.0, (t + 1) / WARMUP) * min(1.0, (STEPS - t) / 20)


def lightning() -> None:
    """Two-parameter regression under Lightning's CSVLogger, LearningRateMonitor and a validation loop."""
    import torch
    from lightning.pytorch import LightningModule, Trainer, seed_everything
    from lightning.pytorch.callbacks import LearningRateMonitor
    from lightning.pytorch.loggers import CSVLogger
    from torch.utils.data import DataLoader, TensorDataset

    class Line(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):  # type: ignore[no-untyped-def]
            loss = ((self.layer(batch[0]) - batch[1]) ** 2).mean()
            self.log("train_loss", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch, index):  # type: ignore[no-untyped-def]
            self.log("val_loss", ((self.layer(batch[0]) - batch[1]) ** 2).mean())

        def configure_optimizers(self):  # type: ignore[no-untyped-def]
            optimizer = torch.optim.AdamW(self.parameters(), lr=PEAK)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, shape)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    seed_everything(0)
    x = torch.randn(160, 4)
    data = TensorDataset(x, x.sum(1, keepdim=True) + 0.1 * torch.randn(160, 1))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            max_steps=STEPS,
            log_every_n_steps=5,
            logger=CSVLogger(folder, name="line"),
            callbacks=[LearningRateMonitor("step")],
            enable_progress_bar=False,
            accelerator="cpu",
            default_root_dir=folder,
            enable_checkpointing=False,
        )
        trainer.fit(Line(), DataLoader(data, 8), DataLoader(data, 40))
        target = HERE / "lightning" / "version_0"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(folder) / "line" / "version_0" / "metrics.csv", target / "metrics.csv")


def huggingface() -> None:
    """The Hugging Face Trainer on the same regression: stopped, resumed from its checkpoint, ended."""
    import torch
    from transformers import Trainer, TrainingArguments, set_seed

    class Line(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x=None, labels=None):  # type: ignore[no-untyped-def]
            out = self.layer(x)
            return {"loss": ((out - labels) ** 2).mean(), "logits": out}

    set_seed(0)
    x = torch.randn(160, 4)
    y = x.sum(1, keepdim=True) + 0.1 * torch.randn(160, 1)
    rows = [{"x": a, "labels": b} for a, b in zip(x, y, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        for stop in (40, STEPS):
            set_seed(0)
            arguments = TrainingArguments(
                output_dir=folder,
                max_steps=stop,
                per_device_train_batch_size=8,
                logging_steps=5,
                eval_strategy="steps",
                eval_steps=20,
                save_steps=20,
                learning_rate=PEAK,
                lr_scheduler_type="linear",
                warmup_steps=WARMUP,
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
                save_total_limit=None,
            )
            trainer = Trainer(model=Line(), args=arguments, train_dataset=rows, eval_dataset=rows)
            trainer.train(resume_from_checkpoint=stop == STEPS)
            trainer.save_state()
        for state in sorted(Path(folder).rglob("trainer_state.json")):
            target = HERE / "huggingface" / state.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(state, target)


def losses() -> list[tuple[int, float, float, float | None]]:
    """Step, loss, learning rate, validation loss: numbers that the tests can compute again."""
    rows = []
    for t in range(STEPS):
        loss = 2.0 + 4.0 / (1 + t) ** 0.5
        rows.append((t, loss, PEAK * shape(t), loss + 0.1 if t % 20 == 0 else None))
    return rows


def mlflow() -> None:
    """MLflow's file store: one file a metric."""
    import os

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow as tool

    with tempfile.TemporaryDirectory() as folder:
        tool.set_tracking_uri(Path(folder).as_uri())
        tool.set_experiment("line")
        with tool.start_run(run_name="mlflow-line") as run:
            tool.log_params({"weight_decay": 0.1, "batch_size": 8})
            for step, loss, lr, val in losses():
                tool.log_metric("train/loss", loss, step=step)
                tool.log_metric("lr", lr, step=step)
                tool.log_metric("accuracy", 0.5, step=step)
                if val is not None:
                    tool.log_metric("val/loss", val, step=step)
        source = next(Path(folder).glob(f"*/{run.info.run_id}"))
        target = HERE / "mlflow" / "0" / "run"
        shutil.rmtree(target, ignore_errors=True)
        for part in ("metrics", "params", "tags"):
            for path in (source / part).rglob("*"):
                if path.is_file() and not path.name.startswith(("mlflow.user", "mlflow.source")):
                    copy = target / path.relative_to(source)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, copy)


def tensorboard() -> None:
    """torch's SummaryWriter: a run that is resumed from step 30 after it had reached step 39."""
    from torch.utils.tensorboard import SummaryWriter

    target = HERE / "tensorboard" / "resumed"
    shutil.rmtree(target, ignore_errors=True)
    rows = losses()
    start = 1_700_000_000.0
    with tempfile.TemporaryDirectory() as folder:
        for part, steps in ((0, range(40)), (1, range(30, STEPS))):
            with SummaryWriter(folder, filename_suffix=f".{part}") as writer:
                for step in steps:
                    _, loss, lr, val = rows[step]
                    wall = start + 1000 * part + step
                    writer.add_scalar("train/loss", loss + (0.5 if part == 0 else 0.0), step, walltime=wall)
                    writer.add_scalar("lr", lr, step, walltime=wall)
                    if val is not None:
                        writer.add_scalar("val/loss", val, step, walltime=wall)
        target.mkdir(parents=True)
        for k, path in enumerate(sorted(Path(folder).iterdir(), key=lambda p: p.name.split(".")[-1])):
            shutil.copy(path, target / f"events.out.tfevents.{1_700_000_000 + 1000 * k}.host.1.{k}")


if __name__ == "__main__":
    for part in sys.argv[1:]:
        parts = {f.__name__: f for f in (lightning, huggingface, mlflow, tensorboard)}
        parts[part]()
        print(json.dumps({part: "written"}))
