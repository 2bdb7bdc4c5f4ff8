"""Nominal 95 % intervals hold the truth in 90 to 98 % of simulated sets (benchmarks/check_coverage.py)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SETS = 300  # standard error of a coverage of 95 %: 1.3 points

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).resolve().parent.parent / "benchmarks" / "check_coverage.py"
    spec = importlib.util.spec_from_file_location("check_coverage", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_coverage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "case",
    [
        "cvx4q, independent noise, no prior",
        "cvx4q, independent noise, prior (default)",
        "chinchilla, 8 x 8 grid",
    ],
)
def test_coverage(script, case, record_property):
    names = script.CASES[case][1]
    # the table law is cheap: enough sets that two standard errors above 98 % mean something
    sets = 1000 if case.startswith("chinchilla") else SETS
    for method, cover in script.coverage(case, sets).items():
        error = np.sqrt(cover * (1 - cover) / sets)
        record_property(f"{case}: {method}", dict(zip(names, cover.round(3), strict=False)))
        print(case, method, dict(zip(names, cover.round(3), strict=False)))
        assert np.all(cover >= 0.90)
        assert np.all(cover - 2 * error <= 0.98)


def test_coverage_under_correlated_noise(script):
    """AR(1) noise of .7: less than nominal, as benchmarks/sections/fit.md says, but not by much."""
    for method, cover in script.coverage("cvx4q, AR(1) noise .7, no prior", SETS).items():
        print(method, cover.round(3))
        assert np.all(cover >= 0.83)
