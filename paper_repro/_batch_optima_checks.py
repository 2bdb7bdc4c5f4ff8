"""Checks of Table 3, the optima and the rules that follow from them, against numerical minimisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.paper_repro import _batch_simulations as sims
from convexlaw.paper_repro._batch_theory_checks import STEPS, schedule
from convexlaw.theory import batch
from convexlaw.theory import last_iterate as li
from convexlaw.theory.schedules import constant, cosine, linear, with_warmup, wsd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.paper_repro._check import Sheet

__all__ = ["check_kernel", "check_optima", "check_peaks", "check_rules", "check_table_three"]

_SHAPES: dict[str, Callable[[int, float], Any]] = {
    "linear": linear,
    "cosine": cosine,
    "wsd:decay=0.1": lambda steps, peak: wsd(steps, peak, decay=0.1),
    "constant": constant,
}
_D, _G, _X, _B = 2.0, 0.7, 9.0, 16.0


def _minimise(shape: Any, norms: Any, distance: float = _D) -> tuple[float, float]:
    """Peak and smallest value of the last-iterate bound, by search over the peak alone."""
    from scipy.optimize import minimize_scalar

    def loss(log_peak: float) -> float:
        return li.bound(np.exp(log_peak) * shape, norms, distance, form="tail")

    found = minimize_scalar(loss, bracket=(-9.0, -3.0), options={"xtol": 1e-6})
    return float(np.exp(found.x)), float(found.fun)


def _norms(unit: Any, mean_batch: float, grad_norm: float = _G, *, scheduled: bool) -> NDArray[np.float64]:
    """Root of G² + X/B_t at a static batch, or at the optimal batches of the same mean."""
    sizes = mean_batch * schedule(unit) if scheduled else np.full(len(unit), mean_batch)
    # a step whose rate is 0 has batch 0: its norm does not count
    return np.asarray(np.sqrt(grad_norm**2 + _X / np.maximum(sizes, 1e-9)))


def check_table_three(sheet: Sheet) -> None:
    """Noise and bias of Table 3."""
    for id, name, steps in (
        ("C226", "cosine", STEPS),
        ("C227", "wsd:decay=0.1", STEPS),
        ("C228", "linear", STEPS),
    ):
        plan = batch.plan(_SHAPES[name](steps, 1.0), steps, min_batch=0, integer=False)
        sheet.judge(id, [0.5 * plan.static_noise, 0.5 * plan.noise])
    plans = [batch.plan(constant(t, 1.0), t, min_batch=0, integer=False) for t in (1000, 10_000, 100_000)]
    sheet.judge("C225", 0.5 * plans[1].static_noise)
    sheet.judge("C380", 0.5 * plans[1].noise)
    sheet.judge("C381", 0.5 * (plans[2].static_noise - plans[1].static_noise) / np.log(10))
    sheet.judge("C233", [plan.gain for plan in plans])
    bias = [
        li.bound(_SHAPES[n](STEPS, 1.0), 0.0, _D, form="tail")
        for n in ("constant", "cosine", "wsd:decay=0.1")
    ]
    sheet.judge("C385", np.array(bias) * STEPS / _D**2)


def check_optima(sheet: Sheet) -> None:
    """Best bounds of Table 3."""
    steps = 5000

    def loss(shape: str, grad_norm: float = _G, *, scheduled: bool = True) -> float:
        found = batch.joint_optimum(
            _B * steps, _X**0.5, _D, grad_norm, steps=steps, shape=shape, scheduled=scheduled
        )
        return found.loss

    sheet.judge("C229", loss("cosine") / (2 * _D * np.sqrt((1.061 * _G**2 + _X / _B) / steps)) - 1)
    printed = 2 * _D * np.sqrt(1.061 * (_G**2 + _X / _B) / steps)
    sheet.judge("C384", loss("cosine", scheduled=False) / printed - 1)
    c = 0.9
    bracket = 1 + 0.5 * np.log((1 + c) / (1 - c))
    for id, scheduled, inside in (
        ("C230", True, bracket * _G**2 + (1 + c) * _X / _B),
        ("C231", False, bracket * (_G**2 + _X / _B)),
    ):
        printed = 2 * _D * np.sqrt(inside / ((1 + c) * steps))
        sheet.judge(id, loss("wsd:decay=0.1", scheduled=scheduled) / printed - 1)
    sheet.judge("C232", loss("constant", 0.0) / (_D * np.sqrt(4 * _X / (_B * steps))) - 1)
    unit, log = constant(steps, 1.0), np.log(steps)
    for id, scheduled, inside in (
        ("C382", False, (_G**2 + _X / _B) * log),
        ("C383", True, _G**2 * log + 4 * _X / _B),
    ):
        best = _minimise(unit, _norms(unit, _B, scheduled=scheduled))[1]
        sheet.judge(id, best / (_D * np.sqrt(inside / steps)))


def check_peaks(sheet: Sheet) -> None:
    """How the best peak moves with horizon and batch, and the joint optimum, by minimisation."""
    exponents = []
    for name, shape in _SHAPES.items():
        # a constant rate has the exact power for the X noise alone
        grad_norm = 0.0 if name == "constant" else _G
        for scheduled in (False, True) if name != "constant" else (True,):
            peaks = []
            for steps in (4000, 32_000):
                unit = shape(steps, 1.0)
                peaks.append(_minimise(unit, _norms(unit, _B, grad_norm, scheduled=scheduled))[0])
            exponents.append(np.log(peaks[1] / peaks[0]) / np.log(8))
    sheet.judge(
        "C236", exponents, note="linear, cosine, WSD, each static and scheduled; constant scheduled, G = 0"
    )
    # weight decay falls as T^-1/2 too
    sheet.judge("C399", [0.5 - e for e in exponents[:6]])
    steps, ratios = STEPS, []
    for name, shape in _SHAPES.items():
        unit = shape(steps, 1.0)
        peak, best = _minimise(unit, _norms(unit, _B, 0.0, scheduled=True))
        joint = batch.joint_optimum(_B * steps, _X**0.5, _D, shape=name)
        ratios += [joint.loss / best, joint.total_rate / (peak * unit.sum())]
    sheet.judge("C265", ratios)
    unit, scale = cosine(2000, 1.0), _X / _G**2
    sizes = scale * np.array([0.01, 0.1, 1.0, 10.0, 100.0])
    largest = _minimise(unit, _G)[0]
    found = [_minimise(unit, _norms(unit, b, scheduled=False))[0] for b in sizes]
    sheet.judge("C391", np.array(found) / largest * np.sqrt(1 + scale / sizes))
    slopes = []
    for few in (0.002, 200.0):
        pair = []
        for times in (1, 4):
            unit = cosine(8000 // times, 1.0)
            pair.append(_minimise(unit, _norms(unit, few * times * scale, scheduled=False))[0])
        slopes.append(np.log(pair[1] / pair[0]) / np.log(4))
    sheet.judge("C392", slopes)
    # normalised updates go eta/sqrt(G² + X/B) along the gradient, with equal steps or equal samples
    slopes = []
    for equal_steps in (True, False):
        pair = []
        for larger in (1, 4):
            unit = cosine(8000 if equal_steps else 8000 // larger, 1.0)
            norms = _norms(unit, larger * scale, scheduled=False)
            pair.append(_minimise(unit / norms, norms)[0])
        slopes.append(np.log(pair[1] / pair[0]) / np.log(4))
    sheet.judge("C398", slopes)


def check_rules(sheet: Sheet) -> None:
    """Critical batch, exchange of steps and samples, sample clock, warmup, Seesaw."""
    from scipy.optimize import brentq

    steps, text = 5000, "wsd:decay=0.1"
    unit = _SHAPES[text](steps, 1.0)
    static, scheduled = batch.critical_batch_size(text, _X, _G**2)
    least = _minimise(unit, _G)[1]

    def above(log_batch: float, scheduled: bool) -> float:
        """Square of the best bound over twice that of infinite batches, minus 1: 0 at the critical batch."""
        norms = _norms(unit, np.exp(log_batch), scheduled=scheduled)
        return (_minimise(unit, norms)[1] / least) ** 2 / 2 - 1

    found = [np.exp(brentq(above, 0.0, 6.0, args=(kind,), xtol=1e-6)) for kind in (False, True)]
    sheet.judge("C263", [static / found[0], scheduled / found[1]])
    sheet.judge("C264", _exchange())
    lr = wsd(STEPS, 1.0)
    b = schedule(lr)
    before = np.cumsum(b) - 0.5 * b
    line = (2 * lr.sum() / STEPS) * (1 - before / STEPS)
    sheet.judge("C267", np.abs(lr / b - line)[: int(0.99 * STEPS)].max() / line[0])
    used, lr = 0.0, wsd(1000, 1.0)
    for rate in lr:
        used += batch.next_batch(float(rate), float(lr.sum()), 1e6, used)
    sheet.judge("C268", used / 1e6)
    quarter = np.cos(0.5 * np.pi * np.arange(20_000) / 20_000)
    sheet.judge("C273", batch.seesaw(quarter, 256, factor=1.01).steps_saved)
    lr, total = with_warmup(cosine(STEPS, 1.0), 0.02), 256.0 * STEPS
    smart = batch.plan(lr, total, min_batch=32, integer=False).noise
    naive = batch.optimal_batch_sizes(cosine(STEPS, 1.0), total, min_batch=32, integer=False)
    sheet.judge("C262", batch.noise_sum(lr, naive) / smart - 1)
    curves = [
        li.curve(linear(t, t**-0.5), at=(np.linspace(0.1, 1, 19) * t).astype(int) - 1) for t in (2000, 20_000)
    ]
    sheet.judge("C249", np.abs((curves[0] / curves[0][-1]) / (curves[1] / curves[1][-1]) - 1).max())


def _exchange() -> float:
    """T_min/T + N_min/N for the package's best loss; T_min and N_min found by minimisation and search."""
    from scipy.optimize import brentq

    steps, samples = 4000, 100_000.0
    wanted = batch.joint_optimum(samples, _X**0.5, _D, _G, steps=steps, shape="cosine").loss
    low, high = 1, steps
    while high - low > 1:  # fewest steps: no X noise
        middle = (low + high) // 2
        enough = _minimise(cosine(middle, 1.0), _G)[1] <= wanted
        low, high = (low, middle) if enough else (middle, high)
    unit = cosine(steps, 1.0)

    def short(log_samples: float) -> float:
        norms = _norms(unit, np.exp(log_samples) / steps, 0.0, scheduled=True)
        return _minimise(unit, norms)[1] / wanted - 1

    # fewest samples: no G noise, where steps do not matter
    fewest = float(np.exp(brentq(short, np.log(samples) - 4, np.log(samples) + 1, xtol=1e-6)))
    return high / steps + fewest / samples


def check_kernel(sheet: Sheet) -> None:
    """Exponents of the bound as a functional scaling law, and of B/eta in what is left of the rates."""
    steps = 2000
    flat = constant(steps, 1.0)
    bias = [li.bound(flat[:t], 0.0, form="tail") for t in (500, 2000)]
    left = np.array([10, 1000])
    # noise of one step: a huge batch everywhere else
    noise = [batch.noise_sum(flat, np.where(np.arange(steps) == steps - 1 - k, 1.0, 1e300)) for k in left]
    sizes = schedule(constant(STEPS, 1.0))
    ends = sizes[[1000, STEPS - 501]]
    sheet.judge(
        "C276",
        [
            np.log(bias[1] / bias[0]) / np.log(4),
            np.log(noise[1] / noise[0]) / np.log(left[1] / left[0]),
            np.log(ends[1] / ends[0]) / np.log(500 / (STEPS - 1001)),
        ],
    )
    slopes = []
    for shape in sims.SHAPES.values():
        lr = shape(STEPS, 1.0)
        after = np.cumsum(lr[::-1])[::-1] - 0.5 * lr
        at = [STEPS // 10, 9 * STEPS // 10]
        ratio = schedule(lr)[at] / lr[at]
        slopes.append(np.log(ratio[1] / ratio[0]) / np.log(after[at[1]] / after[at[0]]))
    sheet.judge("C395", slopes)
