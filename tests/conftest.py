"""What every test shares: the public data beside the checkout, a headless canvas, single-threaded torch."""

from __future__ import annotations

import json
import os
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
