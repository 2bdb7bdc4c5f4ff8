"""Nominal 95 % intervals hold the truth in 90 to 98 % of simulated sets (benchmarks/check_coverage.py)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

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
    for method, cover in script.coverage(case, SETS).items():
        record_property(f"{case}: {method}", dict(zip(names, cover.round(3), strict=False)))
        print(case, method, dict(zip(names, cover.round(3), strict=False)))
        assert np.all(cover >= 0.90)
        # so few misses happen once in a hundred times at 98 % (a standard error taken near 100 % is none)
        misses = np.round((1 - cover) * SETS)
        assert np.all(binom.cdf(misses, SETS, 0.02) >= 0.01), misses


def test_coverage_under_correlated_noise(script):
    """AR(1) noise of .7: less than nominal, as benchmarks/sections/fit.md says, but not by much."""
    for method, cover in script.coverage("cvx4q, AR(1) noise .7, no prior", SETS).items():
        print(method, cover.round(3))
        assert np.all(cover >= 0.83)
