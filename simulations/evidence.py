"""The training runs behind the evidence page of the documentation.

Each experiment is a tuple of :class:`~convexlaw.simulations.sweep.RunSpec`. :func:`run` trains one
(again, to continue an interrupted one), :func:`collect` thins its logs, :func:`load` reads those that come
with the package; :mod:`~convexlaw.simulations.evidence_batches`,
:mod:`~convexlaw.simulations.evidence_depth` and :mod:`~convexlaw.simulations.evidence_clock` make the tables.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw._files import write_text
from convexlaw.errors import ConvexlawError
from convexlaw.simulations.growth import INITS, Growth
from convexlaw.simulations.models import TransformerConfig
from convexlaw.simulations.sweep import RunSpec, run_sweep
from convexlaw.simulations.train import TrainOptions
from convexlaw.theory import schedules

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

__all__ = ["DEPTH_STEPS", "EVERY", "EXPERIMENTS", "collect", "load", "run", "stages_text"]

_SMALL = TransformerConfig(width=32, depth=2, heads=2, context=32)
_SEEDS = range(3)


def stages_text(batch: ArrayLike, samples: int | None = None) -> str:
    """Batch sizes of every update as ``start:size`` text; fractions are rounded to meet a budget.

    Parameters
    ----------
    batch : array_like, shape (T,)
        Batch sizes, at least 1.
    samples : int, optional
        Budget: sizes are rounded down, those with the largest fractions up until it is met; their rounded sum
        without it.

    Returns
    -------
    str

    Examples
    --------
    >>> stages_text([2.0, 2.4, 2.8, 4.8], samples=12)
    '0:2 4:3 7:5'
    """
    ideal = np.asarray(batch, dtype=float)
    whole = np.floor(ideal).astype(np.int64)
    missing = (round(float(ideal.sum())) if samples is None else samples) - int(whole.sum())
    if not 0 <= missing <= whole.size:
        raise ConvexlawError(f"samples = {samples}: the batch sizes sum to {ideal.sum():g}; scale them first")
    whole[np.argsort(whole - ideal, kind="stable")[:missing]] += 1
    starts = np.concatenate([[0], np.cumsum(whole)[:-1]])
    first = np.concatenate([[True], whole[1:] != whole[:-1]])
    return " ".join(f"{start}:{size}" for start, size in zip(starts[first], whole[first], strict=True))


def _options(**changes: object) -> TrainOptions:
    return TrainOptions(**{"eval_sequences": 1024, **changes})  # type: ignore[arg-type]


SHAPES = {
    "constant": "constant:steps={steps},peak={peak}",
    "WSD 20 %": "wsd:steps={steps},peak={peak},decay=0.2",
    "cosine": "cosine:steps={steps},peak={peak}",
    "linear": "linear:steps={steps},peak={peak}",
}


def _gain() -> tuple[RunSpec, ...]:
    """Optimal against static batch sizes, equal samples and updates, several peaks."""
    steps, samples = 800, 6400
    batches: dict[str, int | str] = {"static": samples // steps, "optimal": f"optimal:samples={samples}"}
    return tuple(
        RunSpec(
            f"{shape.split()[0].lower()}_{label}_{peak}_seed{seed}",
            text.format(steps=steps, peak=peak) + ",warmup=40",
            batch_size=batch,
            model=_SMALL,
            options=_options(seed=seed),
        )
        for seed in range(5)
        for peak in ("4e-3", "8e-3", "1.6e-2") + (("2e-3", "3.2e-2") if seed == 0 else ())
        for shape, text in SHAPES.items()
        # two more seeds for the shape that surprised
        if seed in _SEEDS or shape.startswith("WSD")
        for label, batch in batches.items()
    )


def _ratio() -> tuple[RunSpec, ...]:
    """Decayed rates, or the same eta/B by batch sizes: the published test (arXiv 2607.27731, C.5)."""
    steps, size = 300, 16
    shapes = {
        "wsd": "wsd:steps={steps},peak={peak},decay=0.1,end={end}",
        "cosine": "cosine:steps={steps},peak={peak},end={end}",
        "linear": "linear:steps={steps},peak={peak},end={end}",
    }
    found = []
    for seed in _SEEDS:
        for peak in (1e-3, 3e-3, 1e-2):
            for shape, text in shapes.items():
                rate = text.format(steps=steps, peak=f"{peak:g}", end=f"{peak / 10:g}")
                lr = schedules.parse(rate)
                mean = steps / float(np.sum(1 / lr))
                grown = stages_text(size * mean / lr, samples=steps * size)
                common = {"model": _SMALL, "options": _options(seed=seed)}
                name = f"{shape}_{peak:g}_seed{seed}"
                found.append(RunSpec(f"rate_{name}", rate, size, **common))  # type: ignore[arg-type]
                flat = f"constant:steps={steps},peak={mean!r}"
                found.append(RunSpec(f"batch_{name}", flat, grown, **common))  # type: ignore[arg-type]
    return tuple(found)


def _exchange() -> tuple[RunSpec, ...]:
    """One cut of the rate by 4 after 60 % of the samples, or growth of the batch in its place."""
    early, size = 720, 8
    start, rest = early * size, 480 * size

    def cut(peak: str, rate: float, growth: int) -> tuple[str, int | str]:
        steps = early + rest // (size * growth)
        text = f"step:steps={steps},peak={peak},at={early / steps!r},factor={rate:g},warmup=40"
        return text, size if growth == 1 else f"0:{size} {start}:{size * growth}"

    arms = {"none": (1.0, 1), "rate_4": (0.25, 1), "rate_2_batch_4": (0.5, 4), "batch_4": (1.0, 4),
            "batch_16": (1.0, 16)}  # fmt: skip
    kinds = {
        "adamw": ("8e-3", _options(weight_decay=0.0)),
        "sgd": ("0.5", _options(optimizer="sgd", momentum=0.0, weight_decay=0.0, clip=None)),
    }
    found = []
    for seed in _SEEDS:
        for kind, (peak, options) in kinds.items():
            for arm, (rate, growth) in arms.items():
                text, batch = cut(peak, rate, growth)
                one = TrainOptions(**{**vars(options), "seed": seed})
                found.append(RunSpec(f"{kind}_{arm}_seed{seed}", text, batch, model=_SMALL, options=one))
    return tuple(found)


def _joint() -> tuple[RunSpec, ...]:
    """Fit the joint law on fixed batch sizes, predict changing ones."""
    steps = 1000
    texts = {name.split()[0].lower(): text for name, text in SHAPES.items()}
    ramp = "0:4 1200:8 3600:16 8400:32"
    plan: tuple[tuple[str, str, int | str], ...] = (
        ("fit_constant_4", "constant", 4),
        ("fit_wsd_8", "wsd", 8),
        ("fit_cosine_32", "cosine", 32),
        ("test_linear_16", "linear", 16),
        ("test_constant_optimal", "constant", "optimal:samples=12000"),
        ("test_wsd_optimal", "wsd", "optimal:samples=12000"),
        ("test_cosine_optimal", "cosine", "optimal:samples=12000"),
        ("test_constant_ramp", "constant", ramp),
        ("test_wsd_ramp", "wsd", ramp),
        ("test_cosine_ramp", "cosine", ramp),
        ("test_constant_drop", "constant", "0:32 16000:4"),
        ("test_wsd_drop", "wsd", "0:32 16000:4"),
    )
    return tuple(
        RunSpec(
            f"{name}_seed{seed}",
            texts[shape].format(steps=steps, peak="6e-3") + ",warmup=60",
            batch,
            model=_SMALL,
            options=_options(seed=seed, eval_sequences=512),
        )
        for seed in range(2)
        for name, shape, batch in plan
    )


def _clock() -> tuple[RunSpec, ...]:
    """Weight decay .03, .1, .3 at the same rates, with two spreads of the initial weights."""
    texts = {"constant": SHAPES["constant"], "wsd": SHAPES["WSD 20 %"]}
    return tuple(
        RunSpec(
            f"{shape}_std{spread:g}_decay{decay:g}_seed{seed}",
            text.format(steps=2500, peak="4e-3") + ",warmup=100",
            16,
            model=TransformerConfig(width=32, depth=2, heads=2, context=32, init_std=spread),
            options=_options(seed=seed, weight_decay=decay),
        )
        for seed in range(2)
        for spread in (0.02, 32**-0.5)
        for decay in (0.03, 0.1, 0.3)
        for shape, text in texts.items()
    )


_DEEP = TransformerConfig(width=32, depth=3, heads=2, context=32)
DEPTH_STEPS = 900
"""Updates of a run that grows."""


def _depth() -> tuple[RunSpec, ...]:
    """Grow 0 and 1 blocks to 3 under WSD and cosine, 2 with every initialisation."""
    steps = DEPTH_STEPS
    texts = {
        "wsd": f"wsd:steps={steps},peak=6e-3,decay=0.1,warmup=30",
        "cosine": f"cosine:steps={steps},peak=6e-3,warmup=30",
    }
    short = "constant:steps=400,peak=6e-3,warmup=30"
    found = []
    for seed in _SEEDS:
        common = {"batch_size": 8, "model": _DEEP, "options": _options(seed=seed, eval_sequences=256)}

        def add(name: str, text: str, growth: Growth | None, seed: int = seed, common: Any = common) -> None:
            found.append(RunSpec(f"{name}_seed{seed}", text, growth=growth, **common))

        for shape, text in texts.items():
            add(f"{shape}_whole", text, None)
            for start, init in ((0, "random"), (1, "copy_stack")):
                for share in (0.8, 0.7, 0.5, 0.3):  # the latest first: the others branch from it
                    add(f"{shape}_from{start}_at{share:g}", text, Growth(round(share * steps), start, init))
        for share in (0.3, 0.5, 0.7, 0.8):  # the whole model, with the updates it has in the grown runs
            fewer = round((1 - share) * steps)
            add(f"wsd_whole_{fewer}", texts["wsd"].replace(str(steps), str(fewer), 1), None)
        add("calibrate_whole", short, None)
        add("calibrate_from0", short, Growth(30))
        add("calibrate_from1", short, Growth(30, 1, "copy_stack"))
        for init in INITS if seed < 2 else ():
            add(f"wsd_from2_{init}", texts["wsd"], Growth(steps // 2, 2, init))
    return tuple(found)


EXPERIMENTS: dict[str, tuple[RunSpec, ...]] = {
    "gain": _gain(),
    "ratio": _ratio(),
    "exchange": _exchange(),
    "joint": _joint(),
    "clock": _clock(),
    "depth": _depth(),
}
"""The runs of each experiment."""

EVERY = {"gain": 200, "ratio": 200, "exchange": 200, "joint": 50, "clock": 100, "depth": 30}
"""Spacing of rows and evaluations, in steps."""


def run(name: str, out: str | Path, *, progress: bool | None = None) -> None:
    """Train every run of an experiment; call it again to continue an interrupted one.

    Parameters
    ----------
    name : str
        Key of :data:`EXPERIMENTS`.
    out : path-like
        Folder for the whole logs.
    progress : bool, optional
        Progress bars; on a terminal only without it.
    """
    run_sweep(_known(name), out, every=EVERY[name], checkpoint_every=0, progress=progress)


def _known(name: str) -> tuple[RunSpec, ...]:
    if name not in EXPERIMENTS:
        raise ConvexlawError(f"experiment {name!r} is unknown; there are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def collect(name: str, out: str | Path, target: str | Path) -> None:
    """Write the thinned log of a finished experiment: run, step, val_loss (nats per token).

    A row at step k is measured before update k, the one at step T after the last update. Experiments that
    compare final losses keep the last row alone; ``clock`` has the weight norm besides.

    Parameters
    ----------
    name : str
        Key of :data:`EXPERIMENTS`.
    out : path-like
        Folder that :func:`run` filled.
    target : path-like
        CSV file to write.

    Raises
    ------
    ConvexlawError
        A run is missing or unfinished.
    """
    import pandas as pd

    columns = ["val_loss", "weight_norm"] if name == "clock" else ["val_loss"]
    parts: list[pd.DataFrame] = []
    told: dict[str, str] = {}
    for spec in _known(name):
        path = Path(out) / f"{spec.name}.csv"
        head = _header(path) if path.is_file() else {}
        if "final_val_loss" not in head:
            raise ConvexlawError(f"{path} is not the log of a finished run: call run({name!r}, ...) again")
        told = told or head
        rows = pd.read_csv(path, comment="#", usecols=["step", *columns]).iloc[:-1]
        if name in _FINALS:
            rows = rows.iloc[:0]
        rows.loc[len(rows), ["step", "val_loss"]] = len(spec.lr()), float(head["final_val_loss"])
        parts.append(rows.assign(run=spec.name, step=rows["step"].astype(int)))
    table = pd.concat(parts)[["run", "step", *columns]]
    text = "".join(
        f"# {key}: {told[key]}\n" for key in ("corpus", "corpus_sha256", "torch", "dtype", "threads")
    )
    first = f"# convexlaw-evidence: {name}\n# command: convexlaw.simulations.evidence.run({name!r}, FOLDER)\n"
    write_text(target, first + text + table.to_csv(index=False, float_format="%.6g"))


def load(name: str) -> pd.DataFrame:
    """Thinned log of an experiment as it comes with the package (:func:`collect`).

    Parameters
    ----------
    name : str
        Key of :data:`EXPERIMENTS`.

    Returns
    -------
    DataFrame
        Columns run, step, val_loss, and weight_norm for ``clock``.
    """
    import pandas as pd

    _known(name)
    folder = Path(str(importlib.resources.files("convexlaw.simulations").joinpath("evidence_logs")))
    return pd.read_csv(folder / f"{name}.csv", comment="#")


_FINALS = ("gain", "ratio", "exchange")


def _header(path: Path) -> dict[str, str]:
    lines = []
    with path.open() as file:
        for line in file:
            if not line.startswith("# "):
                break
            lines.append(line[2:].rstrip("\n"))
    return dict(line.split(": ", 1) for line in lines if ": " in line)
