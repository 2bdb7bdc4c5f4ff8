"""Whether a law fits at all: what it leaves of the way the losses of a run move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PARTS = 10  # stretches a run is divided into: what their medians show is trend, the rest is noise
FEW_ROWS = 12  # losses below which a run has no trend of its own
LEFT = 0.1  # share of the trend left over from which a law does not fit
SMALL = 0.01  # misfits below this share of the loss are none (log loss)
CLEAR = 3.0  # misfits below this many standard errors of the medians are noise
EXPLAINED = 0.5  # R2 of single losses below which a law tells them apart too badly to be read
SHOWN = 3


def middles(values: Array) -> tuple[Array, int]:
    """Medians of about PARTS equal stretches (rows that fill none are left out), and rows of each."""
    size = max(values.size // PARTS, 3)
    count = values.size // size
    return np.median(values[: count * size].reshape(count, size), axis=1), size


def row_noise(residual: Array) -> float:
    """Scatter from row to row, in which no trend is (median absolute difference, normal scale)."""
    return float(np.median(np.abs(np.diff(residual))) / (0.6745 * np.sqrt(2.0)))


def explained(log_loss: Array, residual: Array) -> float:
    """R2 on log loss; 1 where the losses do not differ."""
    total = float(np.sum((log_loss - log_loss.mean()) ** 2))
    return 1.0 - float(residual @ residual) / total if total > 1e-20 * log_loss.size else 1.0


def misfit_sentences(
    law: str, names: Sequence[str], groups: Sequence[slice], y: Array, f: Array
) -> list[str]:
    """Sentences on fitted runs that the law does not describe.

    A run is named where the medians of ten stretches of its log residuals are larger (root mean square) than
    1 % and three times their standard error, and hold more than a tenth of the variance of the medians of its
    log losses; or where its loss ends 2 % above an earlier median and the law explains less than half of the
    rise. Runs of few losses are looked at together: R2 below one half.

    Parameters
    ----------
    law : str
    names : sequence of str
        Fitted runs.
    groups : sequence of slice
        Rows of each.
    y, f : (n,) arrays
        Losses and predictions.
    """
    log_loss, residual = np.log(y), np.log(y / f)
    out: list[str] = []
    bad: list[tuple[float, str]] = []
    rising: list[tuple[float, str]] = []
    few: list[slice] = []
    for name, group in zip(names, groups, strict=True):
        if group.stop - group.start < FEW_ROWS:
            few.append(group)
            continue
        slow, size = middles(residual[group])
        trend, _ = middles(log_loss[group])
        error = 1.25 * row_noise(residual[group]) / np.sqrt(size)
        lowest = int(np.argmin(trend))
        rise = float(trend[-1] - trend[lowest])
        unseen = float(slow[-1] - slow[lowest])
        if rise > max(2 * SMALL, 2 * CLEAR * error) and unseen > 0.5 * rise:
            rising.append((rise, f"{name!r} by {100 * np.expm1(rise):.2g} %"))
            continue
        off = float(np.sqrt(np.mean(slow**2)))
        share = off**2 / max(float(np.var(trend)), 1e-300)
        if off > max(SMALL, CLEAR * error) and share > LEFT:
            text = f"{name!r} by {100 * off:.2g} % ({100 * min(share, 1.0):.0f} % of its trend)"
            bad.append((off, text))
    if rising:
        out.append(
            f"The loss rises where {law} sees no cause ({_worst(rising)}): no law here describes a run that "
            "diverges; leave it out (train=), or cut its log where the rise begins."
        )
    if bad:
        out.append(
            f"{law} does not fit: it misses the medians of ten stretches of {_worst(bad)}, and noise does "
            "not do that. Read nothing into these parameters; try other laws (compare), and fit runs of one "
            "model on one data set only (train=)."
        )
    if few:
        rows = np.concatenate([np.arange(g.start, g.stop) for g in few])
        out += weak_sentences(law, log_loss[rows], residual[rows], "runs of few losses")
    return out


def weak_sentences(law: str, log_loss: Array, residual: Array, what: str) -> list[str]:
    """Sentence on single losses, each with noise of its own, that the law hardly tells apart."""
    share = explained(log_loss, residual)
    if log_loss.size < FEW_ROWS or share >= EXPLAINED:
        return []
    return [
        f"{law} explains {100 * max(share, 0.0):.0f} % of the differences between the {log_loss.size} losses "
        f"of {what}: they are noise, or follow another law; read nothing into these parameters, and look at "
        "the residuals first."
    ]


def _worst(found: list[tuple[float, str]]) -> str:
    order = [text for _, text in sorted(found, key=lambda one: -one[0])]
    more = f" and {len(order) - SHOWN} more" if len(order) > SHOWN else ""
    return ", ".join(order[:SHOWN]) + more
