"""Train a small model under any learning-rate schedule, and log what the loss laws need."""

from __future__ import annotations

import platform
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import convexlaw
from convexlaw._progress import progress_bar
from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.simulations._batch_text import parse_batch_sizes
from convexlaw.simulations._loop import Run, interrupts
from convexlaw.simulations.corpus import Corpus, load_corpus
from convexlaw.simulations.growth import Growth
from convexlaw.simulations.models import ModelConfig, TransformerConfig, require_torch
from convexlaw.simulations.training_log import TrainLog
from convexlaw.theory import schedules

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["TrainOptions", "train"]


@dataclass(frozen=True)
class TrainOptions:
    """How a run trains, apart from its schedules and its model.

    Attributes
    ----------
    optimizer : {"adamw", "sgd"}
        Update rule.
    weight_decay : float
        Decoupled weight decay lambda of the matrices: each update first multiplies them by 1 - lr * lambda
        (for both optimizers).
    momentum : float
        Heavy-ball momentum of ``sgd``.
    betas, eps : (float, float), float
        Averaging rates and denominator floor of ``adamw``.
    clip : float or None
        Largest gradient norm; None for no clipping.
    seed : int
        Seed of the initial weights, the order of the text and the dropout.
    eval_every : int or None
        Steps between evaluations (besides the last step); None for the spacing of the rows written, or a
        hundredth of the run where every row is written.
    eval_sequences : int
        Held-out sequences of an evaluation.
    micro_batch : int or None
        Largest number of sequences in memory at once; None for the whole batch.
    dtype : {"float32", "float64"}
        Precision.
    device : str
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` and so on.
    threads : int
        CPU threads; the last bits of the losses depend on them.
    """

    optimizer: str = "adamw"
    weight_decay: float = 0.1
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    clip: float | None = 1.0
    seed: int = 0
    eval_every: int | None = None
    eval_sequences: int = 256
    micro_batch: int | None = None
    dtype: str = "float32"
    device: str = "cpu"
    threads: int = 1

    def __post_init__(self) -> None:
        for name, known in (("optimizer", ("adamw", "sgd")), ("dtype", ("float32", "float64"))):
            if getattr(self, name) not in known:
                raise ConvexlawError(f"{name} = {getattr(self, name)!r}: it is one of {', '.join(known)}")
        if not (self.device == "cpu" or self.device.split(":")[0] == "cuda"):
            raise ConvexlawError(f"device = {self.device!r}: it is cpu, cuda or cuda:<number>")
        for name in ("weight_decay", "momentum", "eps"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConvexlawError(f"{name} = {getattr(self, name)}: give a finite number, at least 0")
        for name in ("eval_every", "eval_sequences", "micro_batch", "threads"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConvexlawError(f"{name} = {value!r}: give a whole number, at least 1")
        if self.clip is not None and not self.clip > 0:
            raise ConvexlawError(
                f"clip = {self.clip}: give a positive gradient norm, or None for no clipping"
            )
        if not all(0 <= beta < 1 for beta in self.betas) or len(self.betas) != 2:
            raise ConvexlawError(f"betas = {self.betas}: give two numbers in [0, 1)")
        if not 0 <= self.seed < 2**63:
            raise ConvexlawError(f"seed = {self.seed}: give a whole number, at least 0")


def train(
    lr: str | ArrayLike,
    *,
    batch_size: int | str | ArrayLike = 32,
    model: ModelConfig | None = None,
    options: TrainOptions | None = None,
    growth: Growth | None = None,
    corpus: Corpus | None = None,
    out: str | Path | None = None,
    every: int = 1,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1000,
    resume: bool = False,
    overwrite: bool = False,
    start_from: str | Path | None = None,
    stop_at: int | None = None,
    command: str | None = None,
    progress: bool | None = None,
) -> TrainLog:
    """Train one model under one schedule.

    Parameters
    ----------
    lr : str or array_like, shape (T,)
        Schedule text (:func:`convexlaw.theory.schedules.parse`) or the learning rate of every update.
    batch_size : int, str or array_like of int, shape (T,)
        Sequences of every update; as text ``"0:32 100000:64"`` (from that many sequences on),
        ``"optimal:samples=64000,min=8"`` (the best for the bound) or a CSV file
        with a column ``batch_size``. Runs of one seed read the same sequences in the same order whatever the
        batch sizes.
    model : TransformerConfig or MlpConfig, optional
        Sizes of the model.
    options : TrainOptions, optional
        Optimizer, seed, evaluation, precision, device.
    growth : Growth, optional
        Train a shallower model first, ``model`` from some step on.
    corpus : Corpus, optional
        Text; the standard library's sources without it.
    out : path-like, optional
        CSV file for the log, written at every checkpoint and at the end.
    every : int
        Spacing of the rows written to ``out`` (:meth:`TrainLog.thin`).
    checkpoint : path-like, optional
        Checkpoint file; ``out`` with the ending ``.ckpt`` without it, none where ``out`` is not given either.
    checkpoint_every : int
        Steps between checkpoints; 0 for one at the end (or at an interruption) alone.
    resume : bool
        Continue from the checkpoint where there is one. On one machine with the same number of threads a CPU
        run continues bit for bit.
    overwrite : bool
        Start again although ``out`` or the checkpoint exists.
    start_from : path-like, optional
        Checkpoint of another run with the same settings whose schedules agree up to its step: train from
        there (the cooldowns of one stable run, for instance).
    stop_at : int, optional
        Stop before this update, with a checkpoint, as if interrupted.
    command : str, optional
        Command line to record in the log.
    progress : bool, optional
        Progress bar on standard error; on a terminal only without it.

    Returns
    -------
    TrainLog
        One row for every step reached.

    Raises
    ------
    ConvexlawError
        Bad values, an existing file without ``resume`` or ``overwrite``, a checkpoint of another run, torch
        missing.
    KeyboardInterrupt
        After an interruption (Ctrl-C or SIGTERM), once the checkpoint and the log are whole on disk.

    Warns
    -----
    ConvergenceWarning
        The loss became infinite or NaN: the run stops there and the log holds what was reached.

    Examples
    --------
    >>> from convexlaw.simulations.models import TransformerConfig
    >>> tiny = TransformerConfig(width=8, depth=1, heads=2, context=16)
    >>> log = train("linear:steps=3,peak=1e-3", model=tiny, batch_size=2)
    >>> log.status, len(log)
    ('finished', 3)
    """
    require_torch()
    text = lr if isinstance(lr, str) else None
    rates = _rates(schedules.parse(lr) if isinstance(lr, str) else lr)
    stages = batch_size if isinstance(batch_size, str) else None
    batch = _batch_sizes(
        parse_batch_sizes(batch_size, rates) if isinstance(batch_size, str) else batch_size, len(rates)
    )
    model, options = model or TransformerConfig(), options or TrainOptions()
    if every < 1 or checkpoint_every < 0:
        raise ConvexlawError(
            f"every = {every}, checkpoint_every = {checkpoint_every}: give at least 1 and 0 steps"
        )
    if options.eval_every is None:
        options = replace(options, eval_every=every if every > 1 else max(1, len(rates) // 100))
    if growth is not None:
        growth.check(model.depth, len(rates))
    target = Path(out) if out is not None else None
    store = Path(checkpoint) if checkpoint is not None else target.with_suffix(".ckpt") if target else None
    begin = _starting_point(target, store, resume, overwrite, start_from)
    corpus = corpus if corpus is not None else load_corpus()

    from convexlaw.simulations import _checkpoint, _engine

    with _engine.session(options):
        engine = _engine.Engine(model, options, corpus, growth)
        run = Run(engine, rates, batch, _settings(model, options, corpus, growth))
        if begin is not None:
            content = _checkpoint.load(begin)
            _checkpoint.verify(begin, content, run.settings, rates, batch)
            run.restore(content)
        meta = _meta(text, stages, batch, run, options, corpus, command)
        end = len(rates) if stop_at is None else min(max(int(stop_at), 0), len(rates))

        def keep() -> TrainLog:
            log = run.log(meta)
            if engine.rank == 0:
                if store is not None and not run.diverged:
                    _checkpoint.save(
                        store, step=run.step, engine=engine.state(), columns=run.columns,
                        settings=run.settings, final_val_loss=run.final,
                    )  # fmt: skip
                if target is not None:
                    log.to_csv(target, every=every)
            return log

        label = target.stem if target else "training"
        show = progress if engine.rank == 0 else False
        with interrupts() as asked, progress_bar(label, len(rates) - run.step, show) as advance:
            interrupted = run.advance(end, asked, checkpoint_every, keep, advance)
            log = keep()
    if interrupted:
        where = f"; continue from {store} with resume" if store else ""
        raise KeyboardInterrupt(f"stopped before step {run.step}{where}")
    if run.diverged:
        warnings.warn(
            f"the loss was not finite at step {run.step}: the run stopped there, the log holds the steps "
            "before; lower the peak learning rate or lengthen the warmup",
            ConvergenceWarning,
            stacklevel=2,
        )
    return log


def _starting_point(
    target: Path | None, store: Path | None, resume: bool, overwrite: bool, start_from: str | Path | None
) -> Path | None:
    if resume and overwrite:
        raise ConvexlawError("resume and overwrite exclude each other; give one of them")
    if target is not None and store is not None and target == store:
        raise ConvexlawError(f"log and checkpoint are both {target}; give the checkpoint another name")
    there = store is not None and store.exists()
    if resume and store is None:
        raise ConvexlawError("resume needs a checkpoint to continue from; give out or checkpoint")
    if resume and there:
        return store
    if resume and target is not None and target.exists():
        raise ConvexlawError(
            f"{target} is there but its checkpoint {store} is not: pass overwrite to start again"
        )
    if not overwrite:
        for path in (target, store):
            if path is not None and path.exists():
                raise ConvexlawError(
                    f"{path} exists: pass resume to continue it, or overwrite to start again"
                )
    return Path(start_from) if start_from is not None else None


def _settings(
    model: ModelConfig, options: TrainOptions, corpus: Corpus, growth: Growth | None
) -> dict[str, Any]:
    """Everything, schedules apart, that a run may not change halfway."""
    free = {"device", "threads", "micro_batch"}
    chosen = {key: value for key, value in asdict(options).items() if key not in free}
    grow = {"grow_at": growth.at, "grow_from": growth.start, "grow_init": growth.init} if growth else {}
    return {"model": model.kind, **asdict(model), **chosen, **grow, "corpus_sha256": corpus.sha256}


def _meta(
    text: str | None,
    stages: str | None,
    batch: NDArray[np.int64],
    run: Run,
    options: TrainOptions,
    corpus: Corpus,
    command: str | None,
) -> dict[str, Any]:
    settings = dict(run.settings)
    for key in ("betas", "eps") if options.optimizer == "sgd" else ("momentum",):
        settings.pop(key)
    first = {
        "command": command,
        "schedule": text,
        "steps": len(run.lr),
        "batch_size": int(batch[0]) if np.all(batch == batch[0]) else "varies",
        "batch_schedule": stages,
        **{key: settings.pop(key) for key in ("optimizer", "weight_decay", "init_std", "seed")},
    }
    return {
        **first,
        **settings,
        **run.engine.facts(),
        "corpus": corpus.source,
        "device": options.device,
        "threads": options.threads,
        "python": platform.python_version(),
        "convexlaw": convexlaw.__version__,
        "unit": "nats per token; a token is a byte of text",
        "convention": "row k (0-based) is measured at the weights before update k, whose step size is lr[k]",
    }


def _rates(lr: ArrayLike) -> NDArray[np.float64]:
    rates = np.array(lr, dtype=float)
    if rates.ndim != 1 or rates.size == 0:
        raise ConvexlawError(
            f"lr has shape {rates.shape}: give one learning rate an update, shape (T,), T >= 1"
        )
    wrong = np.flatnonzero(~(np.isfinite(rates) & (rates >= 0)))
    if wrong.size:
        raise ConvexlawError(f"lr[{wrong[0]}] = {rates[wrong[0]]}: learning rates are finite and at least 0")
    return rates


def _batch_sizes(batch_size: int | ArrayLike, steps: int) -> NDArray[np.int64]:
    sizes = np.asarray(batch_size)
    if sizes.ndim > 1 or (sizes.ndim == 1 and sizes.size != steps):
        raise ConvexlawError(
            f"batch_size has shape {sizes.shape}: give a number, or one for each of the {steps} updates"
        )
    wrong = [
        value for value in sizes.ravel() if not (np.isfinite(value) and value == int(value) and value >= 1)
    ]
    if wrong:
        raise ConvexlawError(
            f"batch_size = {wrong[0]}: batch sizes are whole numbers of sequences, at least 1"
        )
    return np.broadcast_to(sizes, (steps,)).astype(np.int64)
