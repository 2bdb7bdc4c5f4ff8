"""The rotational clock of RC4 where it can be solved by hand, and the updates that drive it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.simulations.evidence_clock import clock_norms
from convexlaw.theory._law_columns import effective_lr
from convexlaw.theory.laws import RunPath
from convexlaw.theory.schedules import constant

if TYPE_CHECKING:
    from convexlaw.paper_repro._check import Sheet

__all__ = ["adam_diffusion", "check_clock"]

_STD = 0.02


def check_clock(sheet: Sheet, weights: int) -> None:
    """Judge closed forms, equilibrium, diffusion of Adam and the norm of real runs."""
    pairs = ((1e-3, 0.1), (1e-4, 1.0))  # above and below the level of the norm
    sheet.judge("C455", [v for lr, decay in pairs for v in _closed_form(lr, decay)])
    ends = []
    for lr, decay in pairs:
        rates = constant(int(8 / (lr * decay)), lr)
        path = RunPath.make(rates, weight_decay=decay, init_std=_STD)
        ends.append(float(effective_lr(path)[-1]) / (_STD * np.sqrt(2 * lr * decay)))
    sheet.judge("C456", ends)
    found = [adam_diffusion(0.9, second, weights) for second in (0.95, 0.999)]
    note = "; ".join(f"{rate:.3f} +- {error:.3f}" for rate, error in found) + " (beta2 = .95, .999)"
    sheet.judge("C457", [rate for rate, _ in found], error=max(error for _, error in found), note=note)
    errors = clock_norms()["error"]
    text = ", ".join(f"{100 * e:.0f}" for e in errors)
    sheet.judge(
        "C427", np.abs(errors), note=f"final norm, percent: {text}; spreads .02, .177, decays .03, .1, .3"
    )


def _closed_form(lr: float, decay: float) -> tuple[float, float]:
    """Largest relative distance of rho² and of S from their closed forms."""
    rates = constant(int(6 / (lr * decay)), lr)
    effective = effective_lr(RunPath.make(rates, weight_decay=decay, init_std=_STD))
    level = lr / (2 * decay * _STD**2)
    t = np.arange(rates.size + 1)
    square = level + (1 - level) * np.exp(-2 * decay * lr * t)
    x = np.sqrt(square / level)
    inverse = np.arctanh(np.where(x < 1, x, 1 / x))  # artanh below the level, arcoth above it
    total = (inverse - inverse[0]) / (decay * np.sqrt(level))
    seen = (lr / effective) ** 2
    late = rates.size // 100
    return (
        float(np.abs(seen / square[:-1] - 1).max()),
        float(np.abs(np.cumsum(effective) / total[1:] - 1)[late:].max()),
    )


def adam_diffusion(first: float, second: float, weights: int, seed: int = 0) -> tuple[float, float]:
    """Mean square of a sum of Adam's updates on pure noise, a step: value and standard error."""
    rng = np.random.default_rng(seed)
    burn, steps = (1500 if second > 0.99 else 200), 1000
    mean, square, total = np.zeros(weights), np.ones(weights), np.zeros(weights)
    for t in range(burn + steps):
        g = rng.standard_normal(weights)
        mean = first * mean + (1 - first) * g
        square = second * square + (1 - second) * g * g
        if t >= burn:
            total += mean / np.sqrt(square)
    rate = total**2 / steps
    return float(rate.mean()), float(rate.std(ddof=1) / np.sqrt(weights))
