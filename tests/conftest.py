"""What every test shares: the public data beside the checkout, a headless canvas, single-threaded torch."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("CONVEXLAW_SHARED", HERE.parent.parent / "shared"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SHARED.is_dir() or os.environ.get("CI") == "true":
        return  # under CI a missing folder is a failure, raised by the shared fixture
    skip = pytest.mark.skip(reason=f"public data not found at {SHARED} (set CONVEXLAW_SHARED)")
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the public data and fixtures; tests that use it carry the mark ``shared``."""
    if not SHARED.is_dir():
        pytest.fail(f"CI=true but the public data folder {SHARED} is missing: set CONVEXLAW_SHARED")
    return SHARED


@pytest.fixture(scope="session")
def golden() -> Any:
    """``golden(name)``: parsed reference values from tests/golden/<name>.json."""

    def load(name: str) -> Any:
        return json.loads((HERE / "golden" / f"{name}.json").read_text())

    return load


@pytest.fixture(scope="session")
def solved() -> Any:
    """``solved(problem, tol)``: solve a cvxpy problem to a tolerance its solver really reports as met.

    Clarabel's steps can shrink to nothing before the tolerance is met, which depends on the order in which a
    version of cvxpy states the cones; the point it stops at ("optimal_inaccurate") can be 4e-5 off and is no
    reference.
    """
    import cvxpy as cp

    def solve(problem: Any, tol: float) -> Any:
        for factor, static in itertools.product((1, 10, 100, 1000), (1e-8, 1e-10)):
            limits = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol * factor)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about an inaccurate solution, which is refused here
                problem.solve(solver=cp.CLARABEL, static_regularization_constant=static, **limits)
            if problem.status == "optimal":
                return problem
        return pytest.fail(f"no accurate reference: Clarabel ends {problem.status} at {1000 * tol:g}")

    return solve
