"""The public loss curves of the Multi-Power Law's repository, with their schedules rebuilt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from convexlaw.theory.schedules import constant, linear, step

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NAMES", "PUBLISHED", "SIZES", "TEST", "TRAIN", "schedule"]

SIZES = (25, 100, 400)
TRAIN = ("cosine_24000", "constant_24000", "wsdcon_9")
TEST = ("constant_72000", "cosine_72000", "wsd_20000_24000", "wsdld_20000_24000", "wsdcon_3", "wsdcon_18")
NAMES = (*TRAIN, *TEST)

_PEAK, _WARMUP, _LEAST = 3e-4, 2160, 3e-5

# as printed in the repository; those of 100M with three decimals only
PUBLISHED = {
    25: (3.04045406, 0.52468604, 363.78751622, 0.50786857, 2.06560812, 0.58279013, 0.64142257),
    100: (2.651, 0.601, 437.946, 0.453, 2.132, 0.598, 0.655),
    400: (2.37474466, 0.65421216, 523.42464371, 0.42878731, 2.02462735, 0.59350493, 0.63472457),
}
"""Linf, a, b, alpha, C, beta, gamma of the Multi-Power law by size in millions."""


def schedule(name: str) -> NDArray[np.float64]:
    """Learning rates of a curve: what its name says, after a warmup that is not logged."""
    kind, *numbers = name.split("_")
    if kind == "wsdcon":
        lr = step(16_000, _PEAK, at=8000, factor=int(numbers[0]) * 1e-5 / _PEAK)
    else:
        steps = int(numbers[-1])
        lr = constant(steps, _PEAK)
        t = np.arange(steps)
        if kind == "cosine":
            phase = (t - _WARMUP) / (steps - _WARMUP)
            lr = _LEAST + 0.5 * (_PEAK - _LEAST) * (1 + np.cos(np.pi * phase))
        elif kind == "wsd":
            start = int(numbers[0])
            lr[start:] = _PEAK * (_LEAST / _PEAK) ** ((t[start:] - start) / (steps - start))
        elif kind == "wsdld":
            start = int(numbers[0])
            lr[start:] = linear(steps - start, _PEAK, end=_LEAST)
    lr[:_WARMUP] = np.linspace(0, _PEAK, _WARMUP)
    return lr
