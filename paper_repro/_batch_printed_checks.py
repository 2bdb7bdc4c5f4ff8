"""Checks of numbers that the paper prints: scores, fits, gains, presets, and the eta/B test."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.theory import batch
from convexlaw.theory.schedules import wsd

if TYPE_CHECKING:
    from convexlaw.paper_repro._check import Sheet

__all__ = ["check_eta_over_batch", "check_figures", "check_presets", "check_scores", "check_small_runs"]

# static and dynamic batch: LAMBADA, HellaSwag, ARC-E, ARC-C, WinoGrande, PIQA, OBQA, BoolQ
_LLAMA = ((32.23, 35.36), (42.93, 44.33), (56.22, 56.36), (29.26, 30.46),
          (53.03, 53.99), (67.89, 68.34), (32.40, 33.20), (61.89, 62.26))  # fmt: skip
_QWEN = ((36.06, 37.71), (45.61, 46.80), (57.83, 59.09), (32.49, 32.25),
         (52.49, 55.33), (68.77, 69.97), (34.00, 36.20), (61.47, 61.59))  # fmt: skip
# MMMU, ScienceQA, TextVQA, DocVQA, InfoVQA, OCRBench, MME-P, MME-C, MMStar
_VISION = ((0.2311, 0.2411), (0.3924, 0.3954), (0.3397, 0.3556), (0.1704, 0.1847), (0.1067, 0.1099),
           (0.2720, 0.2810), (653.82, 704.03), (171.79, 169.29), (0.2377, 0.2361))  # fmt: skip
# final losses of rate and of batch schedules: WSD, cosine, linear at peaks 3e-3, 1e-3, 3e-4
_ETA_OVER_BATCH = ((3.015, 3.033), (3.050, 3.082), (3.041, 3.059), (2.995, 3.035), (3.042, 3.093),
                   (3.035, 3.063), (3.077, 3.212), (3.221, 3.964), (3.239, 3.655))  # fmt: skip


def check_scores(sheet: Sheet) -> None:
    """Count the printed scores that rise."""
    for id, rows in (("C244", _LLAMA), ("C245", _QWEN), ("C260", _VISION)):
        gains = [100 * (dynamic / static - 1) for static, dynamic in rows]
        text = (
            f"arithmetic on the printed row; mean change {np.mean(gains):+.1f} %, worst {min(gains):+.1f} %"
        )
        sheet.judge(id, sum(g > 0 for g in gains), note=text)
    places = ("Muon-NSGD", "AdamW")  # section on vision-language models; Appendix C.1
    sheet.judge("C389", f"{places[0]} in the text, {places[1]} in the appendix", holds=len(set(places)) == 1)


def check_figures(sheet: Sheet) -> None:
    """Gains by base batch and by peak against the bound's, and what the printed fits allow."""
    lr = wsd(40_000, 1.0, decay=0.1)

    def saved(rates: Any, mean_batch: float) -> float:
        """Noise of the static batch minus that of the optimal batches, per X/2."""
        plan = batch.plan(rates, mean_batch * len(rates), min_batch=0, integer=False)
        return plan.static_noise - plan.noise

    base = saved(lr, 1.0)
    fewer = wsd(5000, 1.0, decay=0.1)
    equal_steps, equal_samples = base / saved(lr, 8.0), base / saved(fewer, 8.0)
    scaled = base / saved(8**0.5 * fewer, 8.0)
    sheet.judge(
        "C224",
        2.5 / 1.1,
        reference=equal_samples,
        note=f"printed gain at 1X over that at 8X; the bound's {equal_samples:.2f} at the same peak, "
        f"{scaled:.2f} where the peak goes as T^-1/2, which is near",
    )
    sheet.judge("C253", 1.7 / 1.4, reference=equal_steps)
    sheet.unobtainable("C251", computed=[saved(r * lr, 1.0) / base for r in (1.0, 10 / 3, 10.0)])
    sheet.unobtainable("C252", computed=[2.5 / 2.6, -0.1 / 2.6])
    for id, static, dynamic in (
        ("C247", (246.244, 0.097), (244.963, 0.097)),
        ("C248", (34.184, 0.056), (36.933, 0.058)),
    ):
        found = [_more_compute(static, dynamic, a, b) for a, b in product((-5e-4, 0.0, 5e-4), repeat=2)]
        sheet.unobtainable(id, computed=[min(found), _more_compute(static, dynamic, 0.0, 0.0), max(found)])
    right = [a * 1e20**-e for a, e in ((36.933, 0.058), (244.963, 0.097))]
    sheet.judge(
        "C386",
        [36.933 * 1e20**0.058, 244.963 * 1e20**0.097],
        note=f"losses at 1e20 FLOPs with the exponents as printed; with the opposite sign {right[0]:.2f}, "
        f"{right[1]:.2f}",
    )


def _more_compute(
    static: tuple[float, float], dynamic: tuple[float, float], shift_static: float, shift_dynamic: float
) -> float:
    """Compute of the static fit over 1e20 FLOPs at the dynamic fit's loss there, exponents shifted."""
    loss = dynamic[0] * 1e20 ** -(dynamic[1] + shift_dynamic)
    return float((static[0] / loss) ** (1 / (static[1] + shift_static)) / 1e20)


def check_presets(sheet: Sheet) -> None:
    """Batches and learning rates of Table 7."""
    reported = {
        "llama3-405b": ((0, 4e6), (252e6, 8e6), (2.87e12, 16e6)),
        "palm": ((0, 512), (50e3, 1024), (115e3, 2048)),
        "chinchilla": ((0, 1.5e6), (0.5, 3e6)),
        "gopher": ((0, 3e6), (0.5, 6e6)),
        "glm-130b": ((0, 192), (0.025, 4224)),
        "gpt-3": ((0, 32e3), (12e9, 3.2e6)),
        "mt-nlg": ((0, 65_536), (12e9, 3.93e6)),
        "kimi-k2": ((0, 67e6),),
        "deepseek-v4-flash": ((0, 75.5e6),),
        "deepseek-v4-pro": ((0, 94.4e6),),
    }
    wrong = sum(
        float(batch.preset(name).batch_at([at])[0]) != size
        for name, points in reported.items()
        for at, size in points
    )
    sheet.judge("C261", f"{wrong} breakpoints of {len(reported)} presets differ", holds=wrong == 0)
    # peak, last rate, steps, warmup; plateau, tokens, last rate, tokens
    rates = {"llama3-405b": "8e-5 8e-7 1.2M 8k", "kimi-k2": "2e-4 10T 2e-5 5.5T"}
    found = {name: re.findall(r"\d[\d.]*(?:e-\d+|[kMT])", batch.preset(name).lr) for name in rates}
    sheet.judge(
        "C393",
        "; ".join(f"{name} {' '.join(values)}" for name, values in found.items()),
        holds=all(found[name] == text.split() for name, text in rates.items()),
    )


def check_eta_over_batch(sheet: Sheet, found: dict[str, tuple[float, ...]], dominated: float) -> None:
    """Judge the eta/B test: sums and noise of the bound, printed losses, and the packaged small runs."""
    from convexlaw.simulations.evidence_batches import ratio_table

    names = ("WSD", "cosine", "linear")
    sheet.judge("C254", [found[n][0] for n in names])
    sheet.judge("C255", [*(found[n][1] for n in names), *(found[n][2] for n in names)])
    sheet.judge("C256", [*(found[n][3] for n in names), *(found[n][4] for n in names)])
    gaps = dict(zip(names, (grown - decayed for decayed, grown in _ETA_OVER_BATCH[6:]), strict=True))
    order = sorted(names, key=lambda n: found[n][0])
    sheet.judge(
        "C257", "order of the ratios: " + " < ".join(order), holds=order == sorted(gaps, key=gaps.__getitem__)
    )
    sheet.judge("C258", dominated)
    small = ratio_table()
    printed = sum(decayed < grown for decayed, grown in _ETA_OVER_BATCH)
    text = f"{(small.low > 0).sum()} of ours beyond the spread of the seeds"
    sheet.judge("C259", [printed, (small.difference > 0).sum()], note=text)


def check_small_runs(sheet: Sheet) -> None:
    """Judge what the packaged runs of a small transformer say about language models."""
    from convexlaw.simulations.evidence_batches import exchange_table, gain_table

    gains = gain_table().loc[["constant", "WSD 20 %", "cosine"]]
    limits = ", ".join(f"{name} {row.low:+.3f} to {row.high:+.3f}" for name, row in gains.iterrows())
    sheet.judge("C387", gains.difference, note=f"limits over the seeds: {limits}; no gain under WSD is seen")
    table = exchange_table().loc["adamw"]
    grown = table.loc["batch x 4"]
    fewer = 100 * (1 - grown.updates / table.updates["rate / 4"])
    sheet.unobtainable("C243", computed=[fewer, grown.difference, grown.low, grown.high])
