"""The command slope: tables in many forms, output, errors; public tables end to end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw import Slope
from convexlaw.cli import main
from convexlaw.cli._regression_data import read_table
from convexlaw.errors import ConvexlawError


def run(capsys: Any, *args: object) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["slope", *map(str, args)])
    out = capsys.readouterr()
    return stop.value.code, out.out, out.err


@pytest.fixture(autouse=True)
def _close_figures() -> Any:
    yield
    plt.close("all")


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 80
    table = pd.DataFrame({"id": np.arange(n), "a": rng.normal(size=n), "b": rng.normal(size=n)})
    table["kind"] = rng.choice(["u", "v"], n)
    table["day"] = pd.date_range("2021-03-01", periods=n).astype(str)
    table["flat"] = 1
    table["y"] = 2 * table["a"] + (table["kind"] == "v") + 0.5 * rng.normal(size=n)
    table.loc[[4, 9], "b"] = np.nan
    return table


@pytest.fixture
def csv(frame: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


QUICK = ("--cv", 3, "--stability", 4)


def test_screen_says_what_was_used_and_found(csv: Path, capsys: Any) -> None:
    code, out, _ = run(capsys, csv, "--y", "y", *QUICK)
    assert code == 0
    assert "n = 78, p = 3" in out
    for part in (
        "column id: an identifier",
        "column day: dates",
        "column flat: constant",
        "2 of 80 rows: a value is missing (b 2)",
        "kind[T.v]",
        "duality gap",
        "rows chose the features",
        "cross-validated",
    ):
        assert part in out, part


def test_json_holds_the_model(csv: Path, frame: pd.DataFrame, capsys: Any) -> None:
    code, out, _ = run(capsys, csv, "--y", "y", "--formula", "a + C(kind)", "--alpha", 0.1, "--json", *QUICK)
    assert code == 0
    found = json.loads(out)
    X = np.column_stack([frame["a"], frame["kind"] == "v"]).astype(float)
    model = Slope(alpha=0.1, scaling="sd").fit(X, frame["y"])
    terms = {row["feature"]: row["coef"] for row in found["coefficients"]}
    assert terms["a"] == pytest.approx(model.coef_[0], abs=1e-6)
    assert terms["C(kind)[T.v]"] == pytest.approx(model.coef_[1], abs=1e-6)
    # b is not used, its missing values cost no rows
    assert found["n"] == 80
    assert found["converged"]
    assert found["relative_gap"] <= found["tol"]
    assert found["estimates"]["descriptive"]
    assert not found["estimates_on_rows_kept_aside"]["descriptive"]


def test_folder_holds_page_tables_and_pictures(
    csv: Path, frame: pd.DataFrame, capsys: Any, tmp_path: Path
) -> None:
    new = tmp_path / "new.tsv"
    frame.drop(columns="y").head(5).drop(index=4).to_csv(new, sep="\t", index=False)
    out_dir = tmp_path / "report"
    code, out, err = run(capsys, csv, "--y", "y", "--predict", new, "--out", out_dir, *QUICK)
    assert code == 0, err
    assert f"report: {out_dir / 'report.html'}" in out
    page = (out_dir / "report.html").read_text()
    for part in (
        "Descriptive only",
        "rows kept aside",
        "What may be concluded",
        "an identifier",
        "table.csv",
    ):
        assert part in page, part
    assert page.count("<img") >= 5
    assert "split=" not in page  # no arguments of functions
    coefficients = pd.read_csv(out_dir / "coefficients.csv")
    assert coefficients["feature"].tolist() == ["a", "b", "kind[T.v]"]
    predictions = pd.read_csv(out_dir / "predictions.csv")
    assert len(predictions) == 4
    assert (predictions["low"] < predictions["prediction"]).all()
    residuals = pd.read_csv(out_dir / "residuals.csv")
    assert set(residuals["row"]) == set(range(80)) - {4, 9}
    assert json.loads((out_dir / "analysis.json").read_text())["rows_not_used"]
    for name in ("model", "cross_validation", "path", "residuals", "estimates_aside"):
        assert (out_dir / f"{name}.png").stat().st_size > 5_000
    assert {"alpha", "mean", "se"} <= set(pd.read_csv(out_dir / "cross_validation.csv"))


@pytest.mark.parametrize("form", ["csv", "tsv", "semicolons", "gz", "zip", "parquet", "bom"])
def test_tables_of_every_form_are_the_same(frame: pd.DataFrame, tmp_path: Path, form: str) -> None:
    write = {
        "csv": ("t.csv", {"index": False}),
        "tsv": ("t.tsv", {"index": False, "sep": "\t"}),
        "semicolons": ("t.txt", {"index": False, "sep": ";", "decimal": ","}),
        "gz": ("t.csv.gz", {"index": False}),
        "zip": ("t.csv.zip", {"index": False}),
        "bom": ("t.csv", {"index": False, "encoding": "utf-8-sig"}),
    }
    if form == "parquet":
        path = tmp_path / "t.parquet"
        frame.to_parquet(path)
    else:
        name, options = write[form]
        path = tmp_path / name
        frame.to_csv(path, **options)
    found = read_table(path)
    assert list(found.columns) == list(frame.columns)
    np.testing.assert_allclose(found[["a", "b", "y"]], frame[["a", "b", "y"]])
    assert found["kind"].tolist() == frame["kind"].tolist()


def test_errors_are_one_line(csv: Path, capsys: Any, tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    single = tmp_path / "single.csv"
    single.write_text("y\n1\n2\n")
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(b"no gzip")
    sheet = tmp_path / "table.xlsx"
    sheet.write_bytes(b"PK")
    for args, message in (
        ((tmp_path / "none.csv", "--y", "y"), "does not exist"),
        ((empty, "--y", "y"), "empty"),
        ((single, "--y", "y"), "1 columns"),
        ((broken, "--y", "y"), "cannot be read as a table"),
        ((sheet, "--y", "y"), "save the sheet as CSV"),
        ((csv,), "no response"),
        ((csv, "--y", "Y"), "did you mean 'y'"),
        ((csv, "--y", "y", "--without", "z"), "no such column"),
        ((csv, "--y", "y", "--penalty", "ridge"), "ridge"),
        ((csv, "--y", "y", "--alpha", "0.1", "--criterion", "bic"), "give one of them"),
        ((csv, "--y", "y", "--alpha", "much"), "give a number"),
        ((csv, "--y", "y", "--predict", csv), "--out"),
        ((csv, "--y", "y", "--out", csv), "is a file"),
        ((csv, "--y", "y", "--na", "raise"), "column 'b' rows 4, 9"),
        ((csv, "--y", "y", "--family", "huber", "--criterion", "bic"), "no likelihood"),
        ((csv, "--formula", "y ~ nope"), "nope"),
    ):
        code, out, err = run(capsys, *args)
        assert code == 2, args
        assert message in err, (args, err)
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        assert not out


def test_alpha_from_the_noise(csv: Path, capsys: Any) -> None:
    code, out, err = run(capsys, csv, "--y", "y", "--alpha", "estimate", "--stability", 0, "--split", 0)
    assert code == 0, err
    assert "estimated noise level" in out
    assert "Descriptive only" in out


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom convexlaw.cli import main\n"
        "try:\n    main(['slope', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numba', 'sklearn', 'pandas', 'matplotlib', 'scipy', 'numpy', 'statsmodels', 'formulaic'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--criterion" in done.stdout


def test_empty_table_of_new_rows_and_unwritable_formats(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"not parquet")
    with pytest.raises(ConvexlawError, match="cannot be read as parquet"):
        read_table(path)


TABLES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "bodyfat": (("--y", "y"), {"family": "gaussian", "n": 252, "selected": {"abdomen", "wrist"}}),
    "abalone": (
        ("--y", "y", "--family", "poisson"),
        {"family": "poisson", "n": 211, "selected": {"weight_shell", "weight_shucked"}},
    ),
    "student": (
        ("--y", "math", "--y", "portugese", "--rule", "1se", "--split", "0"),
        {"family": "gaussian", "n": 382, "selected": set()},
    ),
    "wine": (
        ("--y", "y", "--rule", "1se", "--split", "0"),
        {"family": "multinomial", "n": 178, "selected": {"proline", "flavanoids"}},
    ),
    "glioma": (
        ("--y", "y", "--criterion", "ebic"),
        {"family": "binomial", "n": 165, "selected": {"Kynurenine"}},
    ),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", TABLES)
def test_public_tables_end_to_end(name: str, shared: Path, tmp_path: Path, capsys: Any) -> None:
    """Two responses, counts, three classes, p near n: the report is written and its claims are checked."""
    options, expected = TABLES[name]
    path = shared / "data" / "regression" / f"{name}.csv"
    code, out, err = run(capsys, path, *options, "--stability", 10, "--out", tmp_path, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["family"] == expected["family"]
    assert found["n"] == expected["n"]
    assert found["columns_not_used"] == {}
    assert found["converged"]
    assert 0 <= found["relative_gap"] <= 1e-6
    selected = {row["feature"] for row in found["coefficients"] if row["coef"] != 0}
    assert expected["selected"] <= selected
    magnitudes = np.array([abs(row["scaled"]) for row in found["coefficients"] if row["coef"] != 0])
    distinct = (
        np.unique(np.round(magnitudes / magnitudes.max(initial=1e-300), 9)).size if magnitudes.size else 0
    )
    assert distinct == found["n_clusters"]
    # the deviance of the reported coefficients, from the file
    table = pd.read_csv(path)
    names = {row["feature"]: j for j, row in enumerate(found["coefficients"][: found["p"]])}
    X = table[list(names)].to_numpy(dtype=float)
    coef = np.array([row["coef"] for row in found["coefficients"]]).reshape(-1, found["p"])
    eta = X @ coef.T + np.array(found["intercept"])
    y = table[found["responses"]]
    if name == "bodyfat" or name == "student":
        deviance = ((y.to_numpy() - eta) ** 2).sum()
    elif name == "abalone":
        counts = y.to_numpy(dtype=float)
        deviance = 2 * (counts * np.log(counts / np.exp(eta)) - counts + np.exp(eta)).sum()
    else:
        codes = np.unique(y["y"], return_inverse=True)[1]
        full = np.column_stack([np.zeros(len(eta)), eta]) if eta.shape[1] == 1 else eta
        shifted = full - full.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        deviance = -2 * logs[np.arange(len(codes)), codes].sum()
    assert found["deviance"] == pytest.approx(deviance, rel=1e-6)
    page = (tmp_path / "report.html").read_text()
    assert found["verdict"].split(".")[0] in page
    assert len(page) > 100_000


def guide_rows() -> list[tuple[str, list[float]]]:
    """Commands and numbers of the table in the guide."""
    text = (Path(__file__).parent.parent / "docs" / "guides" / "regression.rst").read_text(encoding="utf-8")
    part = text[text.index("Five public tables") : text.index("What they teach")]
    rows = []
    for row in part.split("   * - ``")[1:]:
        command, rest = row.split("``", 1)
        rows.append((command, [float(v) for v in re.findall(r"\d+(?:\.\d+)?", rest)]))
    return rows


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(("command", "numbers"), guide_rows(), ids=[c for c, _ in guide_rows()])
def test_numbers_of_the_guide(command: str, numbers: list[float], shared: Path, capsys: Any) -> None:
    name, *options = command.split()
    path = shared / "data" / "regression" / name
    code, out, err = run(capsys, path, *options, "--json", "--stability", 0, "--split", 0)
    assert code == 0, err
    found = json.loads(out)
    selected = {row["feature"] for row in found["coefficients"] if row["coef"] != 0}
    seen = [found["n"], found["p"], len(selected), found["n_clusters"], 100 * found["deviance_ratio"]]
    if found["cross_validated_ratio"] is not None:
        seen.append(100 * found["cross_validated_ratio"])
    assert seen[:4] == numbers[:4]
    np.testing.assert_allclose(seen[4:], numbers[4:], atol=0.06)
