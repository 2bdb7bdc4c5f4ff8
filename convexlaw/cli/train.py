"""``convexlaw train``: a real run of a small transformer under any learning-rate schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def train(
    schedule: Annotated[
        str,
        typer.Option(
            help="Schedule, e.g. wsd:steps=4000,peak=3e-3,decay=0.2,warmup=300, or a CSV with a column lr."
        ),
    ],
    out: Annotated[Path, typer.Option(help="CSV file of the log; its checkpoint is beside it (.ckpt).")],
    optimizer: Annotated[str, typer.Option(help="adamw or sgd.")] = "adamw",
    weight_decay: Annotated[float, typer.Option(help="Decoupled weight decay.")] = 0.1,
    momentum: Annotated[float, typer.Option(help="Momentum of sgd.")] = 0.9,
    betas: Annotated[tuple[float, float], typer.Option(help="Averaging rates of adamw: two numbers.")] = (
        0.9,
        0.95,
    ),
    eps: Annotated[float, typer.Option(help="Denominator floor of adamw.")] = 1e-8,
    clip: Annotated[float, typer.Option(help="Largest gradient norm; 0 for no clipping.")] = 1.0,
    batch_size: Annotated[int, typer.Option(help="Sequences an update.")] = 32,
    batch_schedule: Annotated[
        str | None,
        typer.Option(
            help="Batch sizes: '0:32 9000:64' (from that many sequences on), "
            "optimal:samples=64000,min=8,max=128,multiple=4, or a CSV with a column batch_size."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="transformer or mlp.")] = "transformer",
    width: Annotated[int, typer.Option(help="Width of the model.")] = 64,
    depth: Annotated[int, typer.Option(help="Blocks of the model.")] = 2,
    heads: Annotated[int, typer.Option(help="Attention heads.")] = 2,
    window: Annotated[int, typer.Option(help="Tokens that a position of the mlp sees.")] = 8,
    context: Annotated[int, typer.Option(help="Tokens of a sequence.")] = 32,
    expansion: Annotated[int, typer.Option(help="Hidden width of an MLP in widths.")] = 4,
    init_std: Annotated[
        float | None, typer.Option(help="Standard deviation of the initial matrices; default width^-1/2.")
    ] = None,
    dropout: Annotated[float, typer.Option(help="Drop probability.")] = 0.0,
    grow_at: Annotated[
        int | None, typer.Option(help="Updates of a shallower model before the whole one is trained.")
    ] = None,
    grow_from: Annotated[int | None, typer.Option(help="Blocks of that shallower model; default 0.")] = None,
    grow_init: Annotated[
        str | None,
        typer.Option(
            help="New blocks: random (default), copy_last, copy_stack, copy_interpolate, zero or copy_zero."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights, text order and dropout.")] = 0,
    corpus: Annotated[
        Path | None, typer.Option(help="Folder or file of text; Python's standard library without it.")
    ] = None,
    log_every: Annotated[
        int,
        typer.Option(
            help="Steps between rows of the log; above 1 the training loss is a mean over that window."
        ),
    ] = 1,
    eval_every: Annotated[
        int | None, typer.Option(help="Steps between evaluations; default as --log-every, or steps/100.")
    ] = None,
    eval_sequences: Annotated[int, typer.Option(help="Held-out sequences of an evaluation.")] = 256,
    micro_batch: Annotated[
        int | None, typer.Option(help="Sequences in memory at once; default the whole batch.")
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(help="Steps between checkpoints; 0: at the end only.")
    ] = 1000,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint, if any.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again over existing files.")] = False,
    start_from: Annotated[
        Path | None, typer.Option(help="Checkpoint of a run with the same beginning, to branch from.")
    ] = None,
    stop_at: Annotated[
        int | None, typer.Option(help="Stop before this update, with a checkpoint to branch from.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:<number>.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    threads: Annotated[int, typer.Option(help="CPU threads.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train a small language model on the Python standard library and log what the laws need."""
    import os
    import warnings

    from convexlaw.cli import _tables
    from convexlaw.errors import ConvergenceWarning, ConvexlawError
    from convexlaw.simulations.corpus import load_corpus
    from convexlaw.simulations.growth import Growth
    from convexlaw.simulations.models import MlpConfig, TransformerConfig, require_torch
    from convexlaw.simulations.train import TrainOptions
    from convexlaw.simulations.train import train as run

    require_torch()
    if grow_at is None and (grow_from is not None or grow_init is not None):
        raise ConvexlawError("--grow-from and --grow-init are of a growth: give --grow-at, its update, too")
    growth = None if grow_at is None else Growth(grow_at, grow_from or 0, grow_init or "random")
    lr = _tables.parse_schedule(schedule)
    kinds: dict[str, type[TransformerConfig | MlpConfig]] = {
        "transformer": TransformerConfig,
        "mlp": MlpConfig,
    }
    if model not in kinds:
        raise ConvexlawError(f"model = {model!r}: it is one of {', '.join(kinds)}")
    sizes: dict[str, Any] = {
        "width": width,
        "depth": depth,
        "context": context,
        "expansion": expansion,
        "init_std": init_std,
        "dropout": dropout,
        **({"heads": heads} if model == "transformer" else {"window": window}),
    }
    options = TrainOptions(
        optimizer=optimizer,
        weight_decay=weight_decay,
        momentum=momentum,
        betas=betas,
        eps=eps,
        clip=clip or None,
        seed=seed,
        eval_every=eval_every,
        eval_sequences=eval_sequences,
        micro_batch=micro_batch,
        dtype=dtype,
        device=device,
        threads=threads,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said below, in one line
            log = run(
                lr if schedule.endswith((".csv", ".tsv", ".txt")) else schedule,
                batch_size=batch_schedule or batch_size,
                model=kinds[model](**sizes),
                options=options,
                growth=growth,
                corpus=load_corpus(corpus) if corpus else None,
                out=out,
                every=log_every,
                checkpoint_every=checkpoint_every,
                resume=resume,
                overwrite=overwrite,
                start_from=start_from,
                stop_at=stop_at,
                command=_tables.command_line(),
            )
    except KeyboardInterrupt as stopped:
        typer.echo(f"interrupted: {stopped or 'nothing was written'}", err=True)
        raise SystemExit(130) from None  # said already
    if os.environ.get("RANK", "0") != "0":
        return  # one process of a group speaks for all
    if as_json:
        _tables.show_json(
            {
                "status": log.status,
                "steps": len(log),
                "final_val_loss": log.final_val_loss,
                "parameters": log.meta["parameters"],
                "log": out,
                "checkpoint": out.with_suffix(".ckpt"),
            }
        )
    else:
        typer.echo(str(log))
        typer.echo(f"written: {out} (read it with convexlaw read, fit it with convexlaw fit curve)")
    if log.status.startswith("diverged"):
        typer.echo(
            f"{log.status}: the loss was not finite; the log holds the steps before. "
            "Lower the peak learning rate or lengthen the warmup.",
            err=True,
        )
        raise typer.Exit(1)
