"""Numba's cache knows a kernel by its own file: what it inlines from other files must show there."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USED = re.compile(r"^from convexlaw\.(\w+)\.(_\w+_kernels) import", re.MULTILINE)
USERS = [
    path
    for folder in ("solvers", "theory", "simulations")
    for path in sorted((ROOT / folder).glob("_*_kernels.py"))
    if USED.search(path.read_text(encoding="utf-8"))
]


def test_there_are_kernels_that_use_others() -> None:
    assert {"_slope_sweep_kernels.py", "_slope_newton_kernels.py"} <= {path.name for path in USERS}


@pytest.mark.parametrize("path", USERS, ids=lambda path: path.stem)
def test_stamp_of_inlined_kernels(path: Path) -> None:
    # without it, an upgrade would run new kernels with the old ones inlined from another file
    text = path.read_text(encoding="utf-8")
    digest = hashlib.sha256()
    for folder, module in sorted(USED.findall(text)):
        digest.update((ROOT / folder / f"{module}.py").read_bytes())
    line = f"# inlined from other files: {digest.hexdigest()[:12]}"
    assert line in text.splitlines(), f"{path.name} needs the line {line!r} (files it uses first)"
