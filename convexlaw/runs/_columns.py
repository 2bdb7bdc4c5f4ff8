"""Which column plays which part: the names that trainers and loggers use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from convexlaw.runs._raw import printable

__all__ = ["ALIASES", "assign", "metric_role", "normal"]

# Earlier names win where a file has several. Compared without case, spaces or hyphens (see ``normal``).
ALIASES: dict[str, tuple[str, ...]] = {
    "step": (
        "trainer/global_step",
        "train/global_step",
        "global_step",
        "step",
        "steps",
        "train/step",
        "train_step",
        "training_step",
        "iter",
        "iters",
        "iteration",
        "iterations",
        "train/iter",
        "train_iter",
        "num_updates",
        "update",
        "updates",
        "optimizer_step",
        "n_iter",
        "it",
        "_step",
    ),
    "loss": (
        "train/loss",
        "train_loss",
        "train/loss_step",
        "train_loss_step",
        "training_loss",
        "training/loss",
        "loss/train",
        "loss_train",
        "trainloss",
        "loss",
        "loss_step",
        "train/train_loss",
        "train/lm_loss",
        "lm_loss",
        "train/ce_loss",
        "ce_loss",
        "train/crossentropyloss",
        "train/cross_entropy",
        "cross_entropy",
        "train/nll",
        "train_nll",
        "nll",
        "train_loss_epoch",
        "train/loss_epoch",
    ),
    "val_loss": (
        "val/loss",
        "val_loss",
        "eval/loss",
        "eval_loss",
        "valid/loss",
        "valid_loss",
        "validation/loss",
        "validation_loss",
        "loss/val",
        "loss/eval",
        "loss/valid",
        "loss/validation",
        "final_val/loss",
        "val/loss_epoch",
        "val_loss_epoch",
        "val/lm_loss",
        "eval/lm_loss",
        "val_nll",
    ),
    "lr": (
        "lr",
        "learning_rate",
        "train/learning_rate",
        "train/lr",
        "train_lr",
        "optim/lr",
        "optimizer/lr",
        "optim/learning_rate",
        "optim/learning_rate_group0",
        "lr/group_0",
        "lr_group0",
        "lr_0",
        "learningrate",
    ),
    "batch_size": (
        "batch_size",
        "global_batch_size",
        "train/batch_size",
        "train/global_batch_size",
        "batchsize",
        "batch",
    ),
    "tokens": (
        "tokens",
        "tokens_seen",
        "num_tokens",
        "n_tokens",
        "total_tokens",
        "consumed_tokens",
        "train/tokens",
        "train/tokens_seen",
        "train/total_tokens",
        "train/num_input_tokens_seen",
        "num_input_tokens_seen",
        "throughput/total_tokens",
    ),
    "samples": (
        "samples",
        "samples_seen",
        "num_samples",
        "consumed_samples",
        "train/samples",
        "train/samples_seen",
    ),
    "grad_norm": (
        "grad_norm",
        "train/grad_norm",
        "gradient_norm",
        "train/gradient_norm",
        "gnorm",
        "total_norm",
        "grad_2.0_norm_total",
        "optim/total_grad_norm",
        "train/total_grad_norm",
    ),
    "run": ("run", "run_id", "run_name", "experiment", "exp", "trial", "name"),
    "split": ("split", "phase", "mode", "subset"),
    "seed": ("seed", "random_seed", "train/seed"),
    "seq_len": ("seq_len", "sequence_length", "seq_length", "block_size", "context_length", "max_length"),
}

_TOLD = {"step": "step", "loss": "training loss", "val_loss": "validation loss", "lr": "learning rate"}
_RANK = {name: (role, rank) for role, names in ALIASES.items() for rank, name in enumerate(names)}
_LR_MONITOR = re.compile(r"^(train/)?lr_[a-z0-9]+(/pg1)?(/[a-z_]*)?$")


def normal(name: object) -> str:
    """Return ``name`` without case, quotes, byte-order mark; spaces and hyphens are underscores."""
    text = str(name).strip().strip("\ufeff\"'").strip().lower()
    return re.sub(r"[\s\-]+", "_", text)


def metric_role(name: object) -> tuple[str, int] | None:
    """Return (role, rank) of a column name, or None; a smaller rank is a better name."""
    key = normal(name)
    found = _RANK.get(key)
    if found is None and _LR_MONITOR.match(key):
        found = ("lr", 100)  # Lightning's LearningRateMonitor: lr-AdamW, lr-AdamW/pg1
    return found


def assign(columns: Sequence[object], wanted: Iterable[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Choose a column for every role.

    Parameters
    ----------
    columns : sequence
        Header names.
    wanted : iterable of str
        Roles to look for.

    Returns
    -------
    chosen : dict of str to int
        Role to column position.
    remarks : list of (kind, sentence)
        What was chosen among several, or guessed.
    """
    wanted = set(wanted)
    found: dict[str, list[tuple[int, int]]] = {}
    for place, column in enumerate(columns):
        known = metric_role(column)
        if known is not None and known[0] in wanted:
            found.setdefault(known[0], []).append((known[1], place))
    chosen = {role: min(places)[1] for role, places in found.items()}
    remarks = []
    for role, places in found.items():
        if role in _TOLD and len(places) > 1:
            others = ", ".join(repr(printable(columns[p], 40)) for _, p in sorted(places)[1:4])
            more = f" and {len(places) - 4} more" if len(places) > 4 else ""
            best = printable(columns[chosen[role]], 40)
            remarks.append(("columns", f"{_TOLD[role]} is read from {best!r}; left aside: {others}{more}"))
    taken = set(chosen.values())
    for role in _TOLD:
        if role in wanted and role not in chosen:
            # last resort: a prefix nobody knows, e.g. "model_a/train_loss"
            tails = [p for p, c in enumerate(columns) if p not in taken and _tail_role(c) == role]
            if len(tails) == 1:
                chosen[role] = tails[0]
                taken.add(tails[0])
                remarks.append(
                    ("columns", f"{_TOLD[role]} is guessed to be {printable(columns[tails[0]], 40)!r}")
                )
    return chosen, remarks


def _tail_role(column: object) -> str | None:
    head, found, tail = normal(column).rpartition("/")
    if not found:
        return None
    role = metric_role(tail)
    if role is None:
        return None
    if (
        role[0] == "loss"
        and tail in ("loss", "lm_loss", "ce_loss", "nll")
        and re.search(r"val|eval|test", head)
    ):
        return "val_loss" if re.search(r"val|eval", head) else None
    return role[0]
