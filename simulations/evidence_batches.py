"""Evidence on batch sizes: tables of the documentation's page, from the thinned logs of the package.

Differences are paired by seed (same initial weights, same text in the same order); ``low`` and ``high`` are
95 % limits of the mean difference by Student's t over the seeds, ``n`` their number.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ExtrapolationWarning
from convexlaw.simulations._evidence_data import dense, finals, interval, logged, prolonged, seeds, spec_of
from convexlaw.simulations.evidence import EXPERIMENTS, SHAPES
from convexlaw.theory.batch import noise_sum

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["exchange_table", "gain_table", "joint_table", "ratio_table"]


def gain_table() -> pd.DataFrame:
    """Optimal against static batch sizes, each at its best peak; ``noise_ratio`` is the bound's noise saved.

    Returns
    -------
    DataFrame
        One row a shape: best peaks, mean final losses there (nats), difference optimal - static.
    """
    import pandas as pd

    final = finals("gain")
    rows = []
    for shape in SHAPES:
        short = shape.split()[0].lower()
        best, seen = {}, {}
        for kind in ("static", "optimal"):
            # the peaks that every seed has
            at = {peak: seeds(final, f"{short}_{kind}_{peak}") for peak in ("4e-3", "8e-3", "1.6e-2")}
            best[kind] = min(at, key=lambda peak: float(np.mean(at[peak])))
            seen[kind] = at[best[kind]]
        mean, low, high = interval(seen["optimal"] - seen["static"])
        spec = spec_of("gain", f"{short}_optimal_8e-3_seed0")
        lr, batch = spec.lr(), spec.batches()
        rows.append(
            {
                "shape": shape,
                "peak static": best["static"],
                "peak optimal": best["optimal"],
                "static": seen["static"].mean(),
                "optimal": seen["optimal"].mean(),
                "difference": mean,
                "low": low,
                "high": high,
                "n": seen["static"].size,
                "noise_ratio": noise_sum(lr, batch) / noise_sum(lr, batch.mean()),
            }
        )
    return pd.DataFrame(rows).set_index("shape")


def exchange_table() -> pd.DataFrame:
    """One cut of the rate by 4, or batch growth in its place: final losses against those of the cut.

    Returns
    -------
    DataFrame
        One row an optimizer and arm: updates, mean final loss (nats), difference to the cut run.
    """
    import pandas as pd

    final = finals("exchange")
    arms = {
        "rate_4": "rate / 4",
        "rate_2_batch_4": "rate / 2, batch x 4",
        "batch_4": "batch x 4",
        "batch_16": "batch x 16",
        "none": "neither",
    }
    rows = []
    for kind in ("sgd", "adamw"):
        cut = seeds(final, f"{kind}_rate_4")
        for arm, text in arms.items():
            seen = seeds(final, f"{kind}_{arm}")
            mean, low, high = (0.0, 0.0, 0.0) if arm == "rate_4" else interval(seen - cut)
            steps = len(spec_of("exchange", f"{kind}_{arm}_seed0").lr())
            rows.append((kind, text, steps, seen.mean(), mean, low, high, seen.size))
    names = ["optimizer", "after 60 %", "updates", "loss", "difference", "low", "high", "n"]
    return pd.DataFrame(rows, columns=names).set_index(["optimizer", "after 60 %"])


def ratio_table() -> pd.DataFrame:
    """Show the eta/B test: loss under batch growth minus loss under rate decay, by peak and shape.

    Returns
    -------
    DataFrame
        One row a peak and shape: ``sum_ratio`` (sum of rates of the decay over that of the constant rate),
        mean losses, difference with limits, and the published difference at the rank of the peak.
    """
    import pandas as pd

    # arXiv 2607.27731, C.5: peaks 3e-3, 1e-3, 3e-4 of a 0.6B model
    published = {
        "0.01": {"wsd": 0.019, "cosine": 0.031, "linear": 0.017},
        "0.003": {"wsd": 0.039, "cosine": 0.051, "linear": 0.028},
        "0.001": {"wsd": 0.136, "cosine": 0.743, "linear": 0.416},
    }
    final = finals("ratio")
    rows = []
    for peak, reported in published.items():
        for shape, value in reported.items():
            decayed, grown = (seeds(final, f"{kind}_{shape}_{peak}") for kind in ("rate", "batch"))
            lr = [spec_of("ratio", f"{kind}_{shape}_{peak}_seed0").lr().sum() for kind in ("rate", "batch")]
            means = decayed.mean(), grown.mean()
            rows.append((peak, shape, lr[0] / lr[1], *means, *interval(grown - decayed), decayed.size, value))
    names = ["peak", "shape", "sum_ratio", "decay", "growth", "difference", "low", "high", "n", "published"]
    return pd.DataFrame(rows, columns=names).set_index(["peak", "shape"])


def joint_table(law: str = "rc4") -> pd.DataFrame:
    """Predict runs of changing batch sizes by the joint law fitted on three runs of fixed ones.

    Parameters
    ----------
    law : str
        A law with a batch term.

    Returns
    -------
    DataFrame
        One row a held-out run, means over the seeds: mean absolute errors after the warmup (nats) of the
        joint law, of the same law blind to batch sizes, and of that one on rates times sqrt(batch), which is
        how far a normalised update in pure noise goes; then their errors of the final loss (prediction -
        seen).
    """
    import pandas as pd

    from convexlaw.solvers.fit_curves import fit_curves

    rows: dict[str, list[list[float]]] = {}
    for seed in (0, 1):
        specs = [s for s in EXPERIMENTS["joint"] if s.options.seed == seed]
        given: dict[str, Any] = {"train": [s.name for s in specs if s.name.startswith("fit")], "split": "val"}
        if law == "rc4":
            given |= {"weight_decay": 0.1, "init_std": specs[0].model.init_std}
        frame = dense("joint", specs)
        blind = frame.drop(columns="batch_size")
        scaled = blind.assign(lr=frame["lr"] * _gain_of_batch(frame["batch_size"]))
        fits = [fit_curves(table, law, **given) for table in (frame, blind, scaled)]
        for spec in specs:
            if not spec.name.startswith("test"):
                continue
            steps, seen = logged("joint", spec, after=60)
            lr, batch = prolonged(spec.lr()), prolonged(spec.batches())
            inputs = ((lr, batch), (lr, None), (lr * _gain_of_batch(batch), None))
            with warnings.catch_warnings():
                # batch sizes beyond the fitted ones are part of the test
                warnings.simplefilter("ignore", ExtrapolationWarning)
                errors = [
                    fit.predict(*given_to, at=steps) - seen
                    for fit, given_to in zip(fits, inputs, strict=True)
                ]
            name = spec.name.removeprefix("test_").removesuffix(f"_seed{seed}")
            rows.setdefault(name, []).append(
                [*(float(np.abs(e).mean()) for e in errors), *(float(e[-1]) for e in errors)]
            )
    kinds = ("joint", "blind", "sqrt")
    names = [*kinds, *(f"{kind}_final" for kind in kinds)]
    found = {name: np.mean(values, axis=0) for name, values in rows.items()}
    found["mean size"] = np.mean(np.abs(list(found.values())), axis=0)
    return pd.DataFrame.from_dict(found, orient="index", columns=names).rename_axis("held out")


def _gain_of_batch(batch: Any) -> Any:
    return np.sqrt(batch / 16)
