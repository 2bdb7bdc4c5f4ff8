"""What looks wrong in a tidy run: it is kept and said, never mended."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convexlaw.runs._raw import Floats, Ints, listed, plural
from convexlaw.runs._tables import sequence_length
from convexlaw.runs.clean import Stream, TidyRun

__all__ = ["examine", "find_spikes"]

_WINDOW = 11  # rows on each side that make the level a spike rises above
_SPIKE = 1.1  # a spike is at least 10 % above that level, and six standard deviations of the noise
_DIVERGED = 1.5  # times the lowest loss so far
_LASTING = 200  # steps


@np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")
def examine(run: TidyRun, kind: str) -> list[tuple[str, str]]:
    """List what a reader should know of a run before fitting it.

    Parameters
    ----------
    run : TidyRun
    kind : str
        The format it was read from; what some tools do to a loss is known.

    Returns
    -------
    list of (kind, sentence)
    """
    steps, losses = run.train
    found: list[tuple[str, str]] = []
    own = steps if steps.size else run.val[0]
    if own[0] not in (0, 1):
        found.append(
            ("first_step", f"first step is {own[0]}, not 0 or 1: kept as given, nothing is re-indexed")
        )
    found += _cadence(run, kind)
    found += _plateaus(run)
    diverged, spans = _divergence(run)
    found += diverged
    spikes = [k for k in find_spikes(steps, losses) if not any(a <= steps[k] <= b for a, b in spans)]
    if spikes:
        at = listed([f"{steps[k]} ({losses[k]:.4g})" for k in spikes], 4)
        found.append(("spikes", f"{plural(len(spikes), 'spike')} in the training loss at step {at}: kept"))
    found += _multiple(run)
    found += _tokens(run)
    found += _step_units(run)
    return found


def _cadence(run: TidyRun, kind: str) -> list[tuple[str, str]]:
    steps = run.train[0] if run.train[0].size else run.val[0]
    if run.lost.size:
        steps = np.union1d(steps, run.lost)
    found = []
    gaps = np.diff(steps)
    usual = int(gaps[0]) if gaps.size else 0
    if gaps.size > 2 and gaps[-1] < gaps[0] and np.all(gaps[:-1] == gaps[0]):
        gaps = gaps[:-1]  # the last row of a run comes when it ends
    if gaps.size > 1 and gaps.min() != gaps.max():
        sizes, counts = np.unique(gaps, return_counts=True)
        usual = int(sizes[np.argmax(counts)])
        odd = gaps[gaps != usual]
        widest = int(np.argmax(np.where(gaps != usual, gaps, 0)))
        where = f"{gaps[widest]} steps, {steps[widest]} to {steps[widest + 1]}"
        if odd.size > 1:
            where = f"the widest {where}"
        if odd.size <= 0.2 * gaps.size:
            found.append(
                (
                    "irregular",
                    f"logged every {plural(usual, 'step')} but for {plural(odd.size, 'gap')} of another "
                    f"size ({where})",
                )
            )
        else:
            hint = ""
            if kind in ("wandb_chart", "wandb_history", "jsonl") and 300 <= steps.size <= 1600:
                hint = "; W&B samples histories and charts: scan_history() gives every row"
            found.append(
                (
                    "irregular",
                    f"logged at irregular steps, {sizes[0]} to {sizes[-1]} apart (median "
                    f"{np.median(gaps):g}; {where}){hint}",
                )
            )
    window = _window(run, kind, usual)
    if window:
        found.append(("averaged", window))
    return found


def _window(run: TidyRun, kind: str, usual: int) -> str:
    """Say over which window the training loss is a mean, where the tool that wrote it is known to average."""
    own = run.meta.get("columns", {})
    every = run.meta.get("every")
    if "convexlaw-log" in run.meta and isinstance(every, int) and every > 1:
        return f"each training loss is the mean over the {every} steps around its step (thinned when written)"
    if not run.train[0].size or not (kind == "huggingface" or own.get("step") == "train/global_step"):
        return ""
    gaps = np.diff(np.union1d(run.train[0], run.lost))
    size = (
        f"{usual} steps"
        if not gaps.size or gaps.min() == gaps.max()
        else f"{gaps.min()} to {gaps.max()} steps since the row before"
    )
    if usual <= 1 and (not gaps.size or gaps.max() <= 1):
        return ""
    text = (
        f"each training loss is the mean over the {size} up to its step (Hugging Face averages between logs)"
    )
    return text


def _plateaus(run: TidyRun) -> list[tuple[str, str]]:
    """Find a loss that stands still to the last digit right before a NaN: a filter that repeats a mean."""
    steps, losses = run.train
    if not run.lost.size or steps.size < 3:
        return []
    found = []
    for stop in np.unique(np.searchsorted(steps, run.lost))[:200]:
        if stop < 3:
            continue
        before = losses[max(0, stop - 1000) : stop]
        differs = np.flatnonzero(before != before[-1])
        length = before.size - (int(differs[-1]) + 1 if differs.size else 0)
        if length >= 3:
            lost = run.lost[np.searchsorted(run.lost, steps[stop - 1])]
            found.append(
                (
                    "plateau",
                    f"the loss stands at exactly {before[-1]:g} on {length} rows (steps "
                    f"{steps[stop - length]} to {steps[stop - 1]}) before it is "
                    f"lost at step {lost}: probably NaN that the logger hid; kept, consider dropping "
                    f"these rows",
                )
            )
    return found[:5]


def _divergence(run: TidyRun) -> tuple[list[tuple[str, str]], list[tuple[int, int]]]:
    """Find stretches above 1.5 times the lowest loss so far that last, and losses that end in NaN."""
    steps, losses = run.train
    found: list[tuple[str, str]] = []
    spans: list[tuple[int, int]] = []
    if steps.size >= 5 and losses.min() > 0 and _ever_high(losses):
        lowest = np.minimum.accumulate(losses)
        high = losses > _DIVERGED * lowest
        edges = np.flatnonzero(np.diff(np.concatenate(([False], high, [False])).astype(np.int8)))
        lasting = min(_LASTING, 0.1 * (steps[-1] - steps[0]))
        long = [
            (a, b)
            for a, b in zip(edges[::2], edges[1::2] - 1, strict=True)
            if b - a >= 2 and steps[b] - steps[a] >= lasting
        ]
        spans = [(int(steps[a]), int(steps[b])) for a, b in long]
        if spans:
            first = long[0][0]
            count = int(np.sum(high[first:]))
            end = "to the end" if spans[-1][1] == steps[-1] else f"until step {spans[-1][1]}"
            found.append(
                (
                    "divergence",
                    f"diverged at step {spans[0][0]}: {end} {count} of {losses.size - first} rows are "
                    f"above {_DIVERGED} x the lowest loss "
                    f"({lowest[first]:.4g}): kept, fit the steps before",
                )
            )
    if run.lost.size and steps.size and run.lost[-1] > steps[-1] and np.sum(run.lost > steps[-1]) > 1:
        count = int(np.sum(run.lost > steps[-1]))
        found.append(
            (
                "divergence",
                f"no finite loss after step {steps[-1]}: the last {count} rows are NaN or infinite, the "
                f"run diverged",
            )
        )
    return found, spans


def _ever_high(losses: Floats) -> bool:
    """Tell whether any loss is above 1.5 times the lowest so far; blocks that cannot hold one are skipped."""
    size = 256
    whole = losses.size // size * size
    blocks = losses[:whole].reshape(-1, size)
    low = np.minimum.accumulate(np.concatenate(([np.inf], blocks.min(axis=1))))
    suspect = np.flatnonzero(blocks.max(axis=1) > _DIVERGED * low[1:])
    for k in [*suspect.tolist(), len(blocks)]:
        part = losses[k * size : (k + 1) * size]
        if np.any(part > _DIVERGED * np.minimum(np.minimum.accumulate(part), low[k])):
            return True
    return False


@np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")
def find_spikes(steps: Ints, losses: Floats) -> Ints:
    """Find rows that stand out above the rows on both sides.

    Parameters
    ----------
    steps, losses : (n,) arrays
        Training rows by step.

    Returns
    -------
    (k,) int array
        Places of rows more than 10 % and six standard deviations of the row-to-row noise above the medians
        of the 11 rows before and the 11 rows after; the first three rows never count.
    """
    none = np.empty(0, np.int64)
    n = losses.size
    if n < 5 or not losses.min() > 0:
        return none
    # the noise from one row to the next, from 100 000 pairs at most
    pairs = np.arange(n - 1) if n <= 100_001 else np.linspace(0, n - 2, 100_000).astype(np.int64)
    jumps = np.abs(np.log(losses[pairs + 1]) - np.log(losses[pairs]))
    height = max(math.log(_SPIKE), 6 * 1.4826 * float(np.median(jumps)) / math.sqrt(2))
    factor = math.exp(min(height, 700.0))
    candidates = _risen(losses, factor)
    candidates = candidates[candidates >= 3]
    if not candidates.size:
        return none
    found = []
    for part in np.array_split(candidates, max(1, candidates.size // 50_000)):
        before, after = _level(losses, part, -1), _level(losses, part, 1)
        level = np.fmax(before, after)
        found.append(part[losses[part] / level > factor])
    return np.concatenate(found)


def _level(losses: Floats, places: Ints, side: int) -> Floats:
    """Median of the rows before (side -1) or after (side 1) each place; NaN where there are none."""
    reach = places[:, None] + side * np.arange(1, _WINDOW + 1)
    inside = (reach >= 0) & (reach < losses.size)
    rows = np.where(inside, losses[np.clip(reach, 0, losses.size - 1)], np.inf)
    rows.sort(axis=1)
    count = inside.sum(axis=1)
    there = np.arange(places.size)
    middle = np.maximum(count - 1, 0)
    rows[count == 0] = np.nan
    low, high = rows[there, middle // 2], rows[there, (middle + 1) // 2]
    level: Floats = low + 0.5 * (high - low)
    return level


def _risen(losses: Floats, factor: float) -> Ints:
    """Places above ``factor`` times the lowest of the six rows before: few rows pass, and every spike does.

    A spike stands above the median of the eleven rows before it, so six of those are low and one of the last
    six is. Blocks that never rise that much are passed over whole.
    """
    size = 256
    whole = losses.size // size * size
    blocks = losses[:whole].reshape(-1, size)
    low = (
        np.minimum(blocks.min(axis=1), np.concatenate(([np.inf], blocks[:-1, -6:].min(axis=1))))
        if whole
        else np.empty(0)
    )
    rising = np.flatnonzero(blocks.max(axis=1) > factor * low) if whole else np.empty(0, np.int64)
    if rising.size > 0.05 * len(blocks):
        return _risen_in(losses, 0, losses.size, factor)
    starts = [*(rising * size).tolist(), *([whole] if whole < losses.size else [])]
    found = [_risen_in(losses, start, min(start + size, losses.size), factor) for start in starts]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _risen_in(losses: Floats, start: int, stop: int, factor: float) -> Ints:
    first = max(start - 6, 0)
    part = losses[first:stop]
    six = part.copy()
    for reach in (1, 2, 2):  # windows of 2, 4, 6
        six[reach:] = np.minimum(six[reach:], six[:-reach])
    risen = np.flatnonzero(part[1:] > factor * six[:-1]) + 1 + first
    return risen[risen >= start]


def _multiple(run: TidyRun) -> list[tuple[str, str]]:
    """Find a training loss that is an integer multiple of the evaluation loss: a sum over micro-batches."""
    (steps, losses), (at, val) = run.train, run.val
    good = (val > 0) & (at >= (steps[0] if steps.size else 0))
    if good.sum() < 2 or steps.size < 2:
        return []
    near = np.interp(at[good], steps, losses)
    ratios = near / val[good]
    middle = float(np.median(ratios))
    factor = round(middle) if 1.5 < middle < 1e6 else 1
    if (
        factor < 2
        or abs(middle / factor - 1) > 0.1
        or np.percentile(np.abs(np.minimum(ratios, 1e9) / middle - 1), 75) > 0.1
    ):
        return []
    return [
        (
            "loss_multiple",
            f"the training loss is about {factor} x the evaluation loss (ratio {middle:.3g} at "
            f"{plural(int(good.sum()), 'evaluation')}): a sum over "
            f"{factor} micro-batches (gradient accumulation)? kept; pass loss_scale={factor} to divide it",
        )
    ]


def _tokens(run: TidyRun) -> list[tuple[str, str]]:
    stream = run.side.get("tokens")
    if stream is None or stream[0].size < 2:
        return []
    steps, tokens = stream
    back = int(np.sum(np.diff(tokens) < 0))
    if back:
        return [
            (
                "tokens",
                f"tokens fall back {plural(back, 'time')} while steps go on: a counter reset by a "
                f"restart? kept",
            )
        ]
    expected = _samples(run, steps)
    length = sequence_length(run.meta)
    guessed = ""
    if expected is None:
        return _tokens_alone(steps, tokens)
    if length is None:
        ratios = np.diff(tokens) / np.diff(expected[0])
        ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
        if not ratios.size:
            return []
        length = float(np.median(ratios))
        guessed = " (the length that fits most rows)"
    # tokens may count before or after the update of their step
    misses = [np.abs(tokens - length * e) / (length * np.maximum(e, expected[1])) for e in expected]
    miss = min(misses, key=lambda m: float(np.median(m)))
    wrong = np.flatnonzero(miss > 0.01)
    wrong = wrong[length * expected[0][wrong] > 0]
    if not wrong.size:
        return []
    k = int(wrong[0])
    return [
        (
            "tokens",
            f"tokens disagree with step x batch x length by more than 1 % on {wrong.size} of "
            f"{plural(tokens.size, 'row')}, first at step {steps[k]}: "
            f"{tokens[k]:.6g} logged, {length * expected[0][k]:.6g} expected with length "
            f"{length:g}{guessed}; kept",
        )
    ]


def _samples(run: TidyRun, steps: Ints) -> tuple[Floats, Floats] | None:
    """Return samples used before and after the update of every step; None where batch sizes are unknown."""
    batch: Stream | None = run.side.get("batch_size")
    if batch is None or not batch[0].size:
        stated: Any = run.meta.get("batch_size")
        if not isinstance(stated, (int, float)) or isinstance(stated, bool) or not stated > 0:
            return None
        batch = np.array([0]), np.array([float(stated)])
    own, sizes = batch
    edges = np.concatenate(([0], own[1:])).astype(np.float64)
    used = np.concatenate(([0.0], np.cumsum(np.diff(edges) * sizes[:-1])))
    place = np.searchsorted(edges, steps, side="right") - 1
    before = used[place] + (steps - edges[place]) * sizes[place]
    return before, before + sizes[place]


def _tokens_alone(steps: Ints, tokens: Floats) -> list[tuple[str, str]]:
    rates = np.diff(tokens) / np.diff(steps)
    if not np.isfinite(rates).all() or rates.min() <= 0 or rates.max() <= 1.01 * rates.min():
        return []
    return [
        (
            "tokens",
            f"tokens grow by {rates.min():.6g} to {rates.max():.6g} a step: a batch schedule, or rows of "
            f"another run; add batch_size to check",
        )
    ]


def _step_units(run: TidyRun) -> list[tuple[str, str]]:
    """Find steps that count tokens or samples rather than updates."""
    steps = run.train[0] if run.train[0].size else run.val[0]
    stream = run.side.get("tokens")
    if stream is not None and stream[0].size > 1 and np.array_equal(stream[1], stream[0]):
        return [
            (
                "step_units",
                "step and tokens are the same numbers: steps must count updates, divide them by the "
                "tokens of one update",
            )
        ]
    positive = steps[np.searchsorted(steps, 1) :]
    if positive.size < 3 or positive[0] < 16384:
        return []
    unit = int(np.gcd.reduce(positive))
    if unit >= 4096 and unit % 1024 == 0:
        return [
            (
                "step_units",
                f"every step is a multiple of {unit}: these look like tokens or samples, not updates; "
                f"divide them by the tokens of one update",
            )
        ]
    return []
