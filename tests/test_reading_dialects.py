"""Dialects of tables: blanks in headers, commas and points in numbers, the hint of a separator."""

from __future__ import annotations

from pathlib import Path

import pytest

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError


def test_a_header_of_two_names_with_blanks_is_parted_by_its_comma(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(" trainer/global_step , train/loss \n0,3\n1,2\n")
    assert read_runs(path).curve("log")[1].tolist() == [3.0, 2.0]


@pytest.mark.parametrize("rate", ["0,125", "0.125", "1,25e-1", "1.25e-1", ",125", ".125"])
@pytest.mark.parametrize("loss", ["2,625", "2.625", "2,62500"])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_points_beside_decimal_commas_are_decimal_in_measured_columns(
    rate: str, loss: str, delimiter: str, tmp_path: Path
) -> None:
    rows = [f"{10 * k};{loss};{rate}" for k in range(30)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["step;loss;lr", *rows, ""]).replace(";", delimiter))
    table = read_runs(path)
    assert set(table.frame["loss"]) == {2.625}
    assert set(table.frame["lr"]) == {0.125}
    assert not any("thousands" in note for note in table.notes)


@pytest.mark.parametrize("loss", ["1.234,5", "1.234.567,5"])
@pytest.mark.parametrize("steps", [["0", "1.000", "2.000"], ["1.000", "2.000", "12.000"], ["0", "10", "20"]])
def test_points_part_thousands_in_counts_and_before_a_comma(
    loss: str, steps: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    tokens = [1024 * (k + 1) for k in range(3)]
    rows = [f"{s};{loss};" + f"{t:,}".replace(",", ".") for s, t in zip(steps, tokens, strict=True)]
    path.write_text("\n".join(["step;loss;tokens", *rows, ""]))
    frame = read_runs(path).frame
    expected = [int(s.replace(".", "")) for s in steps]
    assert frame["step"].tolist() == expected
    assert frame["loss"].tolist() == [float(loss.replace(".", "").replace(",", "."))] * 3
    assert frame["tokens"].tolist() == tokens


@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize(("hint", "mark", "loss"), [("sep=;", ";", "2,5"), ('"sep=,"', ",", "2.5")])
def test_a_hint_for_excel_stands_above_the_header(
    bom: str, hint: str, mark: str, loss: str, tmp_path: Path
) -> None:
    rows = [f"{10 * k}{mark}{loss}" for k in range(8)]
    path = tmp_path / "log.csv"
    path.write_text(bom + "\n".join([hint, f"step{mark}loss", *rows, ""]), encoding="utf-8")
    frame = read_runs(path).frame
    assert frame["step"].tolist() == [10 * k for k in range(8)]
    assert set(frame["loss"]) == {2.5}
    rows[4] = f"40{mark}abc"
    path.write_text(bom + "\n".join([hint, f"step{mark}loss", *rows, ""]), encoding="utf-8")
    with pytest.raises(ConvexlawError, match=r"first 'abc' \(line 7\)"):
        read_runs(path)
