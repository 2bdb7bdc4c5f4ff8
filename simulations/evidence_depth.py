"""Evidence on growth of depth: tables of the documentation's page, from the thinned logs of the package.

Intervals are 95 % limits by Student's t over the seeds of differences paired by seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.simulations._evidence_data import finals, interval, seeds, spec_of
from convexlaw.simulations.evidence import DEPTH_STEPS, EVERY, load
from convexlaw.theory import depth

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.simulations.sweep import RunSpec

__all__ = ["depth_inits", "depth_same_compute", "depth_table", "mixing_table"]

_SHARES = (0.3, 0.5, 0.7, 0.8)


def depth_table() -> pd.DataFrame:
    """Depth grown from 0 or 1 blocks to 3: final gap to the whole model, mixing time, compute.

    Returns
    -------
    DataFrame
        One row a schedule, source depth and tau/T: ``gap`` (percent of the whole model's final loss) with
        limits, ``early`` (share of the sum of rates before tau), ``mixed`` (seeds whose curve comes within
        .5 % of the whole model's), ``t_mix`` (their mean, steps), compute ratio without and with embeddings.
    """
    import pandas as pd

    final = finals("depth")
    rows = []
    for shape in ("wsd", "cosine"):
        whole = seeds(final, f"{shape}_whole")
        for start in (0, 1):
            for share in _SHARES:
                name = f"{shape}_from{start}_at{share:g}"
                gap = interval(100 * (seeds(final, name) / whole - 1))
                spec = spec_of("depth", f"{name}_seed0")
                assert spec.growth is not None
                lr, at = spec.lr(), spec.growth.at
                times = [_mixing(f"{name}_seed{i}", f"{shape}_whole_seed{i}", at) for i in range(whole.size)]
                met = [x for x in times if x is not None]
                rows.append(
                    {
                        "schedule": shape,
                        "from": start,
                        "tau/T": share,
                        "early": lr[:at].sum() / lr.sum(),
                        "gap": gap[0],
                        "low": gap[1],
                        "high": gap[2],
                        "mixed": f"{len(met)}/{len(times)}",
                        "t_mix": np.mean(met) if met else np.nan,
                        "blocks": depth.compute_ratio(share, start, spec.model.depth),
                        "all": depth.compute_ratio(share, *_parameters(spec)),
                    }
                )
    return pd.DataFrame(rows).set_index(["schedule", "from", "tau/T"])


def depth_same_compute() -> pd.DataFrame:
    """Growth under WSD against the whole model trained from the start with the same compute.

    Returns
    -------
    DataFrame
        One row a source depth and tau/T: mean final loss of the grown run; that of the whole model with the
        same compute, parameters counted with embeddings and output (``all``), interpolated in the logarithm
        of the updates between WSD runs of 180 to 900, and the difference with limits; the same difference
        where embeddings are free (``blocks``).
    """
    import pandas as pd

    final = finals("depth")
    lengths = [*(round((1 - share) * DEPTH_STEPS) for share in reversed(_SHARES)), DEPTH_STEPS]
    short = np.array([seeds(final, f"wsd_whole_{n}") for n in lengths[:-1]] + [seeds(final, "wsd_whole")])
    rows = []
    for start in (0, 1):
        for share in _SHARES:
            name = f"wsd_from{start}_at{share:g}"
            spec = spec_of("depth", f"{name}_seed0")
            grown = seeds(final, name)
            ratios = (
                depth.compute_ratio(share, *_parameters(spec)),
                depth.compute_ratio(share, start, spec.model.depth),
            )
            whole, bare = (
                np.array([np.interp(np.log(r * DEPTH_STEPS), np.log(lengths), losses) for losses in short.T])
                for r in ratios
            )
            difference = interval(grown - whole)
            rows.append((start, share, grown.mean(), whole.mean(), *difference, (grown - bare).mean()))
    names = ["from", "tau/T", "grown", "whole", "difference", "low", "high", "blocks"]
    return pd.DataFrame(rows, columns=names).set_index(["from", "tau/T"])


def mixing_table() -> pd.DataFrame:
    """Calibration recipe: mixing time of a growth at the end of the warmup, and the tau it suggests.

    Returns
    -------
    DataFrame
        One row a source depth: mixing times of the seeds (steps), their mean, and
        tau/T = 1 - (cooldown + mean)/T.
    """
    import pandas as pd

    rows = []
    for start in (0, 1):
        times = [_mixing(f"calibrate_from{start}_seed{i}", f"calibrate_whole_seed{i}", 30) for i in range(3)]
        met = [x for x in times if x is not None]
        tau = (
            depth.expansion_step(DEPTH_STEPS, round(float(np.mean(met))), DEPTH_STEPS // 10) if met else None
        )
        listed = ", ".join("none" if x is None else str(x) for x in times)
        rows.append(
            (start, listed, np.mean(met) if met else np.nan, np.nan if tau is None else tau / DEPTH_STEPS)
        )
    return pd.DataFrame(rows, columns=["from", "t_mix", "mean", "tau/T"]).set_index("from")


def depth_inits() -> pd.DataFrame:
    """Compare initialisations of new blocks, 2 to 3 blocks at .5 T under WSD.

    Returns
    -------
    DataFrame
        One row an initialisation: jump of the loss at the growth (nats: the row at tau minus the one before
        it), final gap to the whole model (percent), by seed and on average.
    """
    import pandas as pd

    final = finals("depth")
    log = load("depth").set_index(["run", "step"])["val_loss"]
    whole, at = seeds(final, "wsd_whole"), DEPTH_STEPS // 2
    rows = []
    for init in ("random", "copy_last", "copy_stack", "copy_interpolate", "zero", "copy_zero"):
        seen = seeds(final, f"wsd_from2_{init}")
        jumps = [
            log[f"wsd_from2_{init}_seed{i}", at] - log[f"wsd_from2_{init}_seed{i}", at - EVERY["depth"]]
            for i in range(seen.size)
        ]
        gaps = 100 * (seen / whole[: seen.size] - 1)
        rows.append((init, np.mean(jumps), *gaps, gaps.mean()))
    names = ["init", "jump", *(f"gap seed {i}" for i in range(len(rows[0]) - 3)), "gap"]
    return pd.DataFrame(rows, columns=names).set_index("init")


def _mixing(grown: str, whole: str, at: int) -> int | None:
    log = load("depth")
    a, b = (log[log.run == run].set_index("step")["val_loss"] for run in (grown, whole))
    steps = a.index.intersection(b.index)
    return depth.mixing_time(a[steps].to_numpy(), b[steps].to_numpy(), at, steps=steps.to_numpy(), window=3)


def _parameters(spec: RunSpec) -> tuple[int, int]:
    """Parameters before and after the growth, embeddings and output included."""
    model, growth = spec.model, spec.growth
    assert growth is not None
    width = model.width
    shared = width * (2 * model.vocabulary + model.context) + width
    block = (4 + 2 * model.expansion) * width**2 + 2 * width
    return shared + growth.start * block, shared + model.depth * block
