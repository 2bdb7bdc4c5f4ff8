"""Checks of Theorems 1 to 3, Lemma 4 and Table 2 on batch schedules."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.paper_repro import _batch_simulations as sims
from convexlaw.theory import batch
from convexlaw.theory import last_iterate as li
from convexlaw.theory.schedules import constant, cosine, linear, poly, wsd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.paper_repro._check import Sheet

__all__ = ["STEPS", "check_costs", "check_table_two", "check_theorems", "schedule"]

STEPS = 20_000


def schedule(lr: NDArray[np.float64], samples: float | None = None) -> NDArray[np.float64]:
    """Optimal batch sizes, on average 1 or with a given total."""
    total = float(lr.size) if samples is None else samples
    found = batch.optimal_batch_sizes(lr, total, min_batch=0, integer=False)
    return np.asarray(found, dtype=float)


def check_theorems(sheet: Sheet) -> None:
    rng = np.random.default_rng(4)
    apart = []
    for _ in range(20):
        lr, b = rng.uniform(0.1, 1, 50), rng.uniform(1, 20, 50)
        whole = li.bound(lr, np.sqrt(0.7 + 3 / b), form="tail")
        parts = 1 / (2 * lr.sum()) + 0.35 * batch.noise_sum(lr, 1.0) + 1.5 * batch.noise_sum(lr, b)
        apart.append(abs(whole / parts - 1))
    sheet.judge("C211", max(apart))
    worst, early = 0.0, int(0.99 * STEPS)
    for shape in sims.SHAPES.values():
        lr = shape(STEPS, 1.0)
        # the tail seen from the middle of a step
        tail = np.cumsum(lr[::-1])[::-1] - 0.5 * lr
        formula = 0.5 * STEPS * lr / np.sqrt(lr.sum() * tail)
        worst = max(worst, float(np.abs(schedule(lr) / formula - 1)[:early].max()))
    sheet.judge("C213", worst)
    lr = wsd(200, 1.0)
    best = schedule(lr)
    least = batch.noise_sum(lr, best)
    other = [best * np.exp(rng.normal(0, s, 200)) for s in (0.001, 0.01, 0.1, 1.0) for _ in range(25)]
    sheet.judge("C214", min(batch.noise_sum(lr, b * 200 / b.sum()) / least for b in other))
    sheet.judge("C215", np.abs(schedule(wsd(200, 1e-3)) / best - 1).max())
    noise = []
    for shape in sims.SHAPES.values():
        plan = batch.plan(shape(STEPS, 1.0), STEPS, min_batch=0, integer=False)
        noise.append(0.5 * plan.noise / (2 * plan.lr.sum() / STEPS))
    sheet.judge("C221", noise)
    differences = []
    for samples in (200.0, 400.0):
        plan = batch.plan(lr, samples, min_batch=0, integer=False)
        c = _noise_terms(lr)
        printed = 200**2 / (2 * samples) * (np.mean(np.sqrt(c)) ** 2 - np.mean(c))
        differences.append((0.5 * (plan.noise - plan.static_noise), printed))
    (one, printed), (two, _) = differences
    sheet.judge("C222", one / printed - 1, note=f"{one:.4g} X at K = 200, WSD, 200 steps")
    sheet.judge("C223", one / two)


def _noise_terms(lr: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give Z² of every step: the noise sum with a huge batch everywhere else."""
    terms = [batch.noise_sum(lr, np.where(np.arange(lr.size) == t, 1.0, 1e300)) for t in range(lr.size)]
    return np.array(terms)


def check_table_two(sheet: Sheet) -> None:
    at = np.linspace(0, 0.95, 96)
    steps = (at * STEPS).astype(int)
    u, c = (steps + 0.5) / STEPS, 0.8
    wsd_shape = np.where(
        u <= c, 1 / np.sqrt((1 + c - 2 * np.minimum(u, c)) * (1 + c)), 1 / np.sqrt(1 - c * c)
    )
    printed = {
        "C216": (constant, 0.5 / np.sqrt(1 - u)),
        "C217": (linear, np.ones_like(u)),
        "C218": (wsd, wsd_shape),
        "C219": (cosine, np.cos(np.pi * u / 2) ** 2 / np.sqrt(1 - u - np.sin(np.pi * u) / np.pi)),
    }
    for id, (shape, formula) in printed.items():
        sheet.judge(id, np.abs(schedule(shape(STEPS, 1.0))[steps] / formula - 1).max())
    slopes = []
    for power in (1, 2, 3):
        b = schedule(poly(STEPS, 1.0, power))
        left = 1 - (np.array([0.9, 0.99]) * STEPS) / STEPS
        ends = b[(np.array([0.9, 0.99]) * STEPS).astype(int)]
        slopes.append(np.log(ends[1] / ends[0]) / np.log(left[1] / left[0]))
    sheet.judge("C220", slopes)


def check_costs(sheet: Sheet) -> None:
    lr = cosine(300, 1.0)

    def price(size: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(size, dtype=float) ** 1.5

    costly = batch.optimal_batch_sizes(lr, 300 * 32.0**1.5, min_batch=1e-3, integer=False, cost=price)
    # B² f'(B) is proportional to c
    ratio = (1.5 * np.asarray(costly) ** 2.5 / _noise_terms(lr))[:290]
    sheet.judge("C234", np.log(ratio.max() / ratio.min()))
    sheet.judge("C235", _wall_clock_error())
    gains = [batch.plan(s(STEPS, 1.0), STEPS, min_batch=0, integer=False).gain for s in sims.SHAPES.values()]
    text = ", ".join(f"{name} {g:.3f}" for name, g in zip(sims.SHAPES, gains, strict=True))
    sheet.judge("C242", "noise gains " + text, holds=all(a > b for a, b in pairwise(gains)))


def _wall_clock_error() -> float:
    """Allocation of a wall clock's seconds: largest relative distance from a general-purpose minimiser's."""
    from scipy.optimize import minimize

    lr, clock, budget = cosine(16, 1.0) + 0.02, batch.WallClock(overhead=0.2, per_sample=0.01), 16.0
    found = batch.optimal_batch_sizes(lr, budget, min_batch=1e-3, integer=False, cost=clock)
    after = np.cumsum(lr[::-1])[::-1] - lr
    noise = np.append(lr[:-1] ** 2 / after[:-1], lr[-1])

    def total(x: NDArray[np.float64]) -> float:
        return float(100 * np.sum(noise * np.exp(-x)))

    spent: Any = {"type": "eq", "fun": lambda x: np.sum(0.2 + 0.01 * np.exp(x)) - budget}
    options: Any = {"ftol": 1e-14, "maxiter": 500}
    best = minimize(total, np.full(16, 4.4), method="SLSQP", constraints=spent, options=options)
    return float(np.abs(np.asarray(found) / np.exp(best.x) - 1).max())
