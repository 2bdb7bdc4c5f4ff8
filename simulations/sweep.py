"""Many training runs that share what they have in common, and the runs whose logs come with the package."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw._files import replacing
from convexlaw.errors import ConvexlawError
from convexlaw.simulations._batch_text import parse_batch_sizes
from convexlaw.simulations.corpus import Corpus, load_corpus
from convexlaw.simulations.growth import Growth
from convexlaw.simulations.models import MlpConfig, ModelConfig, TransformerConfig
from convexlaw.simulations.train import TrainOptions, train
from convexlaw.theory import schedules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from convexlaw.simulations.training_log import TrainLog

__all__ = ["DEMO_EVERY", "DEMO_RUNS", "RunSpec", "branches", "run_sweep"]


@dataclass(frozen=True)
class RunSpec:
    """One run of a sweep.

    Attributes
    ----------
    name : str
        Stem of its files.
    schedule : str
        Schedule text.
    batch_size : int or str
        Sequences of an update, or a batch schedule as text (:func:`convexlaw.simulations.train.train`).
    model, options : TransformerConfig or MlpConfig, TrainOptions
        As in :func:`convexlaw.simulations.train.train`.
    growth : Growth, optional
        Growth of the model's depth.
    """

    name: str
    schedule: str
    batch_size: int | str = 32
    model: ModelConfig = field(default_factory=TransformerConfig)
    options: TrainOptions = field(default_factory=TrainOptions)
    growth: Growth | None = None

    def lr(self) -> NDArray[np.float64]:
        """Learning rate of every update, shape (T,)."""
        return schedules.parse(self.schedule)

    def batches(self) -> NDArray[np.int64]:
        """Sequences of every update, shape (T,)."""
        return parse_batch_sizes(str(self.batch_size), self.lr())

    def command(self, every: int = 1) -> str:
        """Give the command that makes this run alone.

        Examples
        --------
        >>> RunSpec("a", "linear:steps=9,peak=1e-3", options=TrainOptions(seed=3)).command(every=2)
        'convexlaw train --schedule linear:steps=9,peak=1e-3 --seed 3 --log-every 2 --out a.csv'
        """
        words = ["convexlaw", "train", "--schedule", self.schedule]
        if isinstance(self.batch_size, str):
            words += ["--batch-schedule", self.batch_size]
        elif self.batch_size != 32:
            words += ["--batch-size", str(self.batch_size)]
        if isinstance(self.model, MlpConfig):
            words += ["--model", "mlp"]
        plain = type(self.model)(init_std=self.model.width**-0.5)
        for value, default in ((self.model, plain), (self.options, TrainOptions())):
            for item in fields(value):
                given: Any = getattr(value, item.name)
                if given == getattr(default, item.name) or (item.name == "eval_every" and given == every > 1):
                    continue
                if item.name == "vocabulary":
                    raise ConvexlawError(
                        f"{self.name}: vocabulary = {given} is not an option of convexlaw train"
                    )
                given = 0 if item.name == "clip" and given is None else given
                values = given if isinstance(given, tuple) else (given,)
                words += [f"--{item.name.replace('_', '-')}", *map(str, values)]
        if self.growth is not None:
            words += ["--grow-at", str(self.growth.at), "--grow-from", str(self.growth.start)]
            words += ["--grow-init", self.growth.init]
        if every > 1:
            words += ["--log-every", str(every)]
        return shlex.join([*words, "--out", f"{self.name}.csv"])


def _demo_runs() -> tuple[RunSpec, ...]:
    shapes: dict[int, dict[str, tuple[tuple[str, str], ...]]] = {
        0: {
            "3e-3": (
                ("constant_8000", "constant:steps=8000"),
                ("cosine_2000", "cosine:steps=2000"),
                ("cosine_4000", "cosine:steps=4000"),
                ("cosine_8000", "cosine:steps=8000"),
                ("linear_4000", "linear:steps=4000"),
                ("step_4000", "step:steps=4000,at=0.5,factor=0.3"),
                ("wsd20_2000", "wsd:steps=2000,decay=0.2"),
                ("wsd10_4000", "wsd:steps=4000,decay=0.1"),
                ("wsd20_4000", "wsd:steps=4000,decay=0.2"),
                ("wsd20sqrt_4000", "wsd:steps=4000,decay=0.2,cooldown=sqrt"),
                ("wsd50_4000", "wsd:steps=4000,decay=0.5"),
                ("wsd20_8000", "wsd:steps=8000,decay=0.2"),
            ),
            "1e-3": (
                ("constant_4000", "constant:steps=4000"),
                ("cosine_4000", "cosine:steps=4000"),
                ("wsd20_4000", "wsd:steps=4000,decay=0.2"),
            ),
        },
        # other weights and text order: what a seed changes
        1: {
            "3e-3": (
                ("constant_4000", "constant:steps=4000"),
                ("cosine_4000", "cosine:steps=4000"),
                ("wsd20_2000", "wsd:steps=2000,decay=0.2"),
            )
        },
    }
    return tuple(
        RunSpec(
            f"{name}_{peak}" + ("" if seed == 0 else f"_seed{seed}"),
            f"{text},peak={peak},warmup=300",
            options=TrainOptions(seed=seed, eval_every=10),
        )
        for seed, peaks in shapes.items()
        for peak, runs in peaks.items()
        for name, text in runs
    )


DEMO_EVERY = 50
"""Spacing of the rows of the packaged logs, in steps."""

DEMO_RUNS = _demo_runs()
"""The runs whose logs come with the package: ``run_sweep(DEMO_RUNS, folder, every=DEMO_EVERY)``."""


def branches(specs: Sequence[RunSpec]) -> dict[str, tuple[str, int]]:
    """Find what the runs share: for each run the earlier one it can branch from, and the step.

    Runs of the same model and options whose learning rates and batch sizes agree up to some step are the same
    run up to there, bit for bit.

    Parameters
    ----------
    specs : sequence of RunSpec
        Runs in the order they are to be trained; names are unique.

    Returns
    -------
    dict
        ``{name: (name of the run to branch from, step)}``; runs that share nothing are missing.

    Examples
    --------
    >>> long = RunSpec("long", "constant:steps=10,peak=1")
    >>> branches([long, RunSpec("cooled", "wsd:steps=8,peak=1,decay=0.25")])
    {'cooled': ('long', 7)}
    """
    names = [spec.name for spec in specs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConvexlawError(f"run name {twice[0]!r} is given twice: names of a sweep are unique")
    rates, batches = [spec.lr() for spec in specs], [spec.batches() for spec in specs]
    found = {}
    for i, spec in enumerate(specs):
        best = (0, "")
        for j in range(i):
            other = specs[j]
            if (other.model, other.options) != (spec.model, spec.options) or not _alike(spec, other):
                continue
            length = min(len(rates[i]) - 1, len(rates[j]))  # the last step has an evaluation of its own
            differs = np.flatnonzero(
                (rates[i][:length] != rates[j][:length]) | (batches[i][:length] != batches[j][:length])
            )
            shared = int(differs[0]) if differs.size else length
            if spec.growth is not None and other.growth is not None and spec.growth != other.growth:
                shared = min(shared, spec.growth.at, other.growth.at)
            if shared > best[0]:
                best = (shared, other.name)
        if best[0]:
            found[spec.name] = (best[1], best[0])
    return found


def _alike(one: RunSpec, other: RunSpec) -> bool:
    """Whether two runs begin with the same number of blocks."""
    a, b = one.growth, other.growth
    return a is b if a is None or b is None else a.start == b.start


def run_sweep(
    specs: Sequence[RunSpec],
    out: str | Path,
    *,
    every: int = 1,
    corpus: Corpus | None = None,
    share: bool = True,
    checkpoint_every: int = 1000,
    progress: bool | None = None,
) -> list[TrainLog]:
    """Train every run of a sweep; call it again to continue an interrupted one.

    Parameters
    ----------
    specs : sequence of RunSpec
        Runs; one that another branches from comes first.
    out : path-like
        Folder: ``<name>.csv`` for each run, checkpoints in its folder ``checkpoints``.
    every : int
        Spacing of the rows written.
    corpus : Corpus, optional
        Text; the standard library's sources without it.
    share : bool
        Train what runs have in common once (:func:`branches`); the logs are the same to the last bit.
    checkpoint_every : int
        Steps between checkpoints.
    progress : bool, optional
        Progress bar of each run; on a terminal only without it.

    Returns
    -------
    list of TrainLog
        One a run, in the order of ``specs``.
    """
    out = Path(out)
    store = out / "checkpoints"
    corpus = corpus if corpus is not None else load_corpus()
    specs = _evaluated_alike(specs, every)
    parents = branches(specs) if share else {}
    logs = []
    for spec in specs:
        waiting = sorted({step for parent, step in parents.values() if parent == spec.name})
        for stop in [*(s for s in waiting if not _branch(store, spec.name, s).exists()), None]:
            own = store / f"{spec.name}.ckpt"
            log = train(
                spec.schedule,
                batch_size=spec.batch_size,
                model=spec.model,
                options=spec.options,
                growth=spec.growth,
                corpus=corpus,
                out=out / f"{spec.name}.csv",
                every=every,
                checkpoint=own,
                checkpoint_every=checkpoint_every,
                resume=True,
                start_from=_origin(store, parents.get(spec.name)),
                stop_at=stop,
                command=spec.command(every),
                progress=progress,
            )
            if stop is not None and len(log) == stop:
                with replacing(_branch(store, spec.name, stop)) as temporary:
                    shutil.copyfile(own, temporary)
        logs.append(log)
    return logs


def _evaluated_alike(specs: Sequence[RunSpec], every: int) -> list[RunSpec]:
    """Give every run the same evaluation steps, so that runs can branch from each other."""
    common = every if every > 1 else max(1, min((len(spec.lr()) for spec in specs), default=1) // 100)
    return [
        spec
        if spec.options.eval_every is not None
        else replace(spec, options=replace(spec.options, eval_every=common))
        for spec in specs
    ]


def _branch(store: Path, name: str, step: int) -> Path:
    return store / f"{name}_at_{step}.ckpt"


def _origin(store: Path, parent: tuple[str, int] | None) -> Path | None:
    """Checkpoint to start from; None (train from the start) where it was never written."""
    if parent is None:
        return None
    path = _branch(store, *parent)
    return path if path.exists() else None
