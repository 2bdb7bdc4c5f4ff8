"""Evidence on batch sizes where the expected loss is exact: tables on random and on chosen quadratics."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.simulations._evidence_data import interval
from convexlaw.simulations.descent import expected_descent
from convexlaw.simulations.evidence import SHAPES
from convexlaw.simulations.problems import Quadratic, noise_dominated_quadratic, power_law_quadratic
from convexlaw.theory import schedules
from convexlaw.theory.batch import optimal_batch_sizes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["quadratic_exchange", "quadratic_gain", "quadratic_ratio"]


def quadratic_gain(problems: int = 20, steps: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Optimal against static batch sizes on random power-law quadratics, each at its best peak.

    Parameters
    ----------
    problems : int
        Random problems: exponents of spectrum, start and noise, and the noise level.
    steps : int
        Updates, and samples.
    seed : int
        Seed of the problems.

    Returns
    -------
    DataFrame
        One row a shape: percent less loss by optimal batch sizes (mean over the problems with its 95 %
        limits, smallest, largest).
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    drawn = [
        power_law_quadratic(
            200, curvature=rng.uniform(0.8, 2), start=rng.uniform(0, 1.5), noise=rng.uniform(0, 1.5),
            sigma=10 ** rng.uniform(-1, 0),
        )
        for _ in range(problems)
    ]  # fmt: skip
    rows = []
    for shape, text in SHAPES.items():
        lr = schedules.parse(text.format(steps=steps, peak=1))
        optimal = np.asarray(optimal_batch_sizes(lr, steps, min_batch=1e-3, integer=False), dtype=float)
        static, scheduled = (_best_gaps(drawn, lr, batch) for batch in (np.ones(steps), optimal))
        percent = 100 * (1 - scheduled / static)
        rows.append((shape, *interval(percent), percent.min(), percent.max()))
    names = ["shape", "percent", "low", "high", "smallest", "largest"]
    return pd.DataFrame(rows, columns=names).set_index("shape")


def quadratic_exchange(steps: int = 4000, cut: int = 4) -> pd.DataFrame:
    """Rate cut after 60 % of the samples against batch growth in its place, from no noise to noise alone.

    Parameters
    ----------
    steps : int
        Updates of the reference, one sample each.
    cut : int
        Factor of the cut, and of the growth.

    Returns
    -------
    DataFrame
        One row a rate and noise level: share of the noise in E|g|^2 at the cut, final loss of the cut run,
        and by how many percent batch growth and no change differ from it.
    """
    import pandas as pd

    early = round(0.6 * steps)
    cut_lr = np.where(np.arange(steps) < early, 1.0, 1.0 / cut)
    late = (steps - early) // cut
    grown_batch = np.concatenate([np.ones(early), np.full(late, float(cut))])
    rows = []
    for rate, sigma in itertools.product((0.1, 1.0), (0.0, 1e-3, 0.1, 10.0)):
        problem = noise_dominated_quadratic(200, condition=1e4, sigma=sigma)
        decayed = expected_descent(problem, rate * cut_lr, 1.0)
        grown = expected_descent(problem, np.full(early + late, rate), grown_batch)
        kept = expected_descent(problem, np.full(steps, rate), 1.0)
        share = sigma**2 / decayed.grad_norm[early] ** 2
        last = decayed.gap[-1]
        rows.append(
            (rate, sigma, share, last, 100 * (grown.gap[-1] / last - 1), 100 * (kept.gap[-1] / last - 1))
        )
    names = ["rate", "sigma", "noise share", "loss", "growth %", "neither %"]
    return pd.DataFrame(rows, columns=names).set_index(["rate", "sigma"])


def quadratic_ratio(steps: int = 1000) -> pd.DataFrame:
    """Show the eta/B test on a quadratic: batch growth against rate decay at equal eta/B, steps and samples.

    Parameters
    ----------
    steps : int
        Updates.

    Returns
    -------
    DataFrame
        One row a peak, one column a shape: loss under batch growth relative to that under decay (percent).
    """
    import pandas as pd

    problem = power_law_quadratic(200, sigma=0.3)
    texts = {"wsd": "wsd:steps={},peak=1,decay=0.1,end=0.1", "cosine": "cosine:steps={},peak=1,end=0.1",
             "linear": "linear:steps={},peak=1,end=0.1"}  # fmt: skip
    rows = {}
    for peak in (0.01, 0.1, 1.0):
        found = {}
        for shape, text in texts.items():
            lr = peak * schedules.parse(text.format(steps))
            mean = steps / np.sum(1 / lr)
            decayed = expected_descent(problem, lr, 1.0).gap[-1]
            found[shape] = 100 * (
                expected_descent(problem, np.full(steps, mean), mean / lr).gap[-1] / decayed - 1
            )
        rows[peak] = found
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("peak")


def _best_gaps(
    problems: list[Quadratic], shape: NDArray[np.float64], batch: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Find the final gap of each problem at its best peak: a grid of quarter octaves, then a parabola."""
    peaks = 2.0 ** np.arange(-9, 0.95, 0.25)
    h, start, noise = (
        np.array([getattr(p, name) for p in problems])[:, None, :] for name in ("curvature", "start", "noise")
    )
    square = np.broadcast_to(start**2, (len(problems), peaks.size, h.shape[-1])).copy()
    steps = peaks[:, None] * h
    kick = peaks[:, None] ** 2 * noise**2
    for eta, size in zip(shape, batch, strict=True):
        square *= (1 - eta * steps) ** 2
        square += (eta**2 / size) * kick
    gaps = 0.5 * (square * h).sum(axis=-1)
    best = np.clip(gaps.argmin(axis=1), 1, peaks.size - 2)
    rows = np.arange(len(problems))
    a, b, c = gaps[rows, best - 1], gaps[rows, best], gaps[rows, best + 1]
    # the vertex of the parabola through three equally spaced points
    return np.asarray(b - (c - a) ** 2 / np.maximum(8 * (a - 2 * b + c), 1e-300))
