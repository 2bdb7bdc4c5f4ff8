"""False discovery rates of SLOPE by simulation: where a theorem holds them, and where they are not held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from convexlaw import ConvexlawError
from convexlaw.simulations.fdr import DiscoveryRates, FDRTable, discovery_rates, fdr_table


def test_orthogonal_rates_are_those_of_the_definition_and_below_the_theorem() -> None:
    rates = discovery_rates("orthogonal", "bh", n=60, p=60, signals=6, q=0.2, repeats=300, rng=1)
    # FDR <= q (p - k) / p
    assert rates.fdr <= 0.2 * 54 / 60 + 3 * rates.fdr_se
    # the same draws through the definition: the prox keeps the largest k ranks such that every run of them
    # that ends at k has a positive sum of |y| - lambda
    rng = np.random.default_rng(1)
    from scipy.special import ndtri

    lam = -ndtri(np.arange(1, 61) * 0.2 / 120)
    false = []
    for _ in range(300):
        true = np.zeros(60, dtype=bool)
        true[rng.choice(60, 6, replace=False)] = True
        y = 1.2 * np.sqrt(2 * np.log(60)) * true + rng.standard_normal(60)
        size = np.sort(np.abs(y))[::-1]
        over = size - lam
        kept = [k for k in range(1, 61) if (np.cumsum(over[:k][::-1]) > 0).all()]
        last = max(kept, default=0)
        chosen = np.zeros(60, dtype=bool)
        chosen[np.argsort(-np.abs(y), kind="stable")[:last]] = True
        false.append((chosen & ~true).sum() / max(last, 1))
    assert rates.fdr == pytest.approx(np.mean(false), abs=1e-12)


def test_bh_on_gaussian_columns_is_not_held_and_the_correction_helps() -> None:
    plain = discovery_rates("gaussian", "bh", n=150, p=150, signals=20, repeats=60)
    mended = discovery_rates("gaussian", "gaussian", n=150, p=150, signals=20, repeats=60)
    assert plain.verdict == "NO"
    assert plain.fdr - mended.fdr > 3 * np.hypot(plain.fdr_se, mended.fdr_se)
    assert mended.power < plain.power


@pytest.mark.slow
def test_the_default_table() -> None:
    table = fdr_table(repeats=60, rng=5)
    by = {(r.design, r.n, r.sequence, r.noise, r.signals): r for r in table.rows}
    for (design, _, sequence, noise, _), rates in by.items():
        if design == "orthogonal" and noise == "known":
            assert rates.verdict != "NO", rates
        if design == "gaussian" and sequence == "bh" and rates.signals >= 20:
            assert rates.verdict == "NO", rates
    for k in (0, 5, 20):
        for noise in ("known", "estimate"):
            rates = by["gaussian", 1000, "gaussian", noise, k]
            assert rates.fdr < 0.1 + 3 * rates.fdr_se, rates


def test_table_text_and_picture() -> None:
    import matplotlib.pyplot as plt

    table = fdr_table([("orthogonal", 40, 40)], signals=[0, 4], noise=["known", "estimate"], repeats=5)
    assert np.isnan(table.rows[0].power)
    frame = table.to_frame()
    assert set(frame["verdict"]) <= {"yes", "NO", "undecided"}
    assert len(frame) == 8
    assert len(str(table).splitlines()) <= 12
    axes = table.plot()
    assert len(axes.containers) == 4
    plt.close(axes.figure)


def test_verdicts() -> None:
    def rates(fdr: float) -> DiscoveryRates:
        return DiscoveryRates("gaussian", "bh", "known", 10, 10, 1, 0.1, fdr, 0.01, 1.0, 0.0, 5)

    assert [rates(x).verdict for x in (0.07, 0.09, 0.11, 0.13)] == ["yes", "undecided", "undecided", "NO"]
    text = str(FDRTable((rates(0.13), rates(0.07))))
    assert "not controlled: 1" in text
    assert "FDR 0.130 (SE 0.010) above q = 0.1" in text


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"design": "toeplitz"}, "design = 'toeplitz'"),
        ({"design": "orthogonal", "n": 5}, "n = 5 < p = 10"),
        ({"signals": 11}, "signals = 11"),
        ({"noise": "guess"}, "noise = 'guess'"),
        ({"repeats": 1}, "repeats = 1"),
    ],
)
def test_bad_settings(changes: dict[str, Any], match: str) -> None:
    given = {"design": "gaussian", "sequence": "bh", "n": 20, "p": 10, "signals": 2} | changes
    with pytest.raises(ConvexlawError, match=match):
        discovery_rates(given.pop("design"), given.pop("sequence"), **given)
