"""Public tables: two classes with p near n, three classes, counts, two responses; every answer certified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw import slope_path, sorted_l1_dual_gap

pytestmark = pytest.mark.shared

TABLES = {
    "glioma": ("logistic", ["y"]),
    "wine": ("multinomial", ["y"]),
    "abalone": ("poisson", ["y"]),
    "student": ("quadratic", ["math", "portugese"]),
}


@pytest.mark.parametrize("name", TABLES)
def test_paths_of_public_tables(shared: Path, name: str) -> None:
    loss, responses = TABLES[name]
    frame = pd.read_csv(shared / "data" / "regression" / f"{name}.csv")
    X = frame.drop(columns=responses)
    y = frame[responses[0]].to_numpy() if len(responses) == 1 else frame[responses].to_numpy()
    path = slope_path(X, y, loss=loss, scaling="sd", n_alphas=30, alpha_min_ratio=0.02)
    assert path.converged.all()
    assert (np.diff(path.deviance_ratios) > -1e-6).all()
    assert path.deviance_ratios[-1] > 0.1
    scale = X.to_numpy(float).std(axis=0)
    for k in (5, path.alphas.size - 1):
        seen = path.coefs[..., k] * (scale if path.coefs.ndim == 2 else scale[:, None])
        gap = sorted_l1_dual_gap(
            X.to_numpy(float) / scale,
            y,
            seen,
            path.intercepts[..., k],
            path.alphas[k],
            path.lambda_,
            loss=loss,
        )
        assert -1e-12 <= gap / path.null <= 1.05e-6
