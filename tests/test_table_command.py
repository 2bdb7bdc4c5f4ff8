"""``convexlaw fit table``: a table of final losses in, parameters and compute-optimal sizes out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "convexlaw", "fit", "table", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grid of sizes and tokens whose losses follow a known law but for noise of 1e-3."""
    rng = np.random.default_rng(1)
    n, d = (a.ravel() for a in np.meshgrid(np.geomspace(1e7, 1e10, 9), np.geomspace(1e9, 1e11, 8)))
    loss = (1.7 + 400 * n**-0.34 + 410 * d**-0.28) * np.exp(1e-3 * rng.standard_normal(n.size))
    path = tmp_path_factory.mktemp("table") / "finals.csv"
    pd.DataFrame({"N": n, "D": d, "loss": loss}).to_csv(path, index=False)
    return path


def test_optimum_agrees_with_a_grid_search_on_the_true_law(table: Path, tmp_path: Path) -> None:
    done = command(str(table), "--flops", "1e20", "--out", "r", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    n = np.geomspace(1e7, 1e11, 200_001)
    best = n[np.argmin(1.7 + 400 * n**-0.34 + 410 * (1e20 / (6 * n)) ** -0.28)]
    (row,) = told["optimal"]
    assert row["N low"] <= best <= row["N high"]
    assert row["N"] * row["D"] * 6 == pytest.approx(1e20, rel=1e-9)
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "Compute-optimal sizes" in page
    names = {p.name for p in (tmp_path / "r").iterdir()}
    assert {"parameters.csv", "optimal.csv", "residuals.csv", "fit.json", "fit.png", "profiles.png"} <= names
    by_name = {p["parameter"]: p for p in told["params"]}
    assert by_name["E"]["low"] < by_name["E"]["estimate"] < by_name["E"]["high"]


def test_screen_output_reads_well(table: Path, tmp_path: Path) -> None:
    done = command(str(table), "--flops", "1e20", "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "chinchilla fitted to 72 rows" in done.stdout
    assert "compute-optimal, 95% limits" in done.stdout
    assert "report: " in done.stdout


@pytest.mark.parametrize(
    ("columns", "words"),
    [({"N": [1e7], "D": [1e9]}, "loss"), ({"N": [1e7], "D": [1e9], "loss": [3.0]}, "at least 6 are needed")],
)
def test_tables_that_cannot_be_fitted_are_one_line(columns: dict, words: str, tmp_path: Path) -> None:
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    done = command("t.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
