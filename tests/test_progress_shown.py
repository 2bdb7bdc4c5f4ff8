"""Long work shows a bar where a person watches, and nothing where nobody does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import convexlaw
from convexlaw._progress import progress_bar
from convexlaw.theory import schedules
from convexlaw.theory.laws import CVX4q


def test_bar_is_drawn_on_request_only(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws as on a terminal
    with progress_bar("counting sheep", 2, show=True) as advance:
        advance(1)
        advance(1)
    shown = capfd.readouterr()
    assert "counting sheep" in shown.err
    assert shown.out == ""
    with progress_bar("counting sheep", 2) as advance:
        advance(2)
    assert capfd.readouterr().err == ""


def test_resampling_of_a_fit_shows_its_bar(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lr = schedules.parse("cosine:steps=800,peak=1e-3,warmup=20")
    loss = CVX4q(Linf=2.0, a=0.5, b=40.0, alpha=0.5).predict(lr)
    noise = 1 + 1e-3 * np.random.default_rng(0).standard_normal(800)
    fit = convexlaw.fit_curves(
        pd.DataFrame({"run": "a", "step": np.arange(800), "lr": lr, "loss": loss * noise}), "cvx4q"
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    fit.interval(resamples=50, progress=True)
    assert capfd.readouterr().err.strip()
    fit.interval(resamples=60, progress=False)
    assert capfd.readouterr().err == ""
