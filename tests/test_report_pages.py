"""Reports are self-contained, whole or absent, and show numbers a person can read."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw._files import replacing, write_json, write_text
from convexlaw.report.page import Page, digests, format_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (24000, "24000"),
        (np.float64(2.5), "2.5"),
        (np.float64(2.50001), "2.500"),
        (0.003, "0.003"),
        (np.int64(3), "3"),
        (123456.789, "123457"),
        (0.00099999, "0.001000"),
        (1e-9, "1.000e-09"),
        (3.2e9 + 0.5, "3.200e+09"),
        (float("inf"), "∞"),
        (-float("inf"), "-∞"),
        (None, "–"),
        (True, "True"),
        ("a<b", "a<b"),
    ],
)
def test_numbers_for_people(value: object, text: str) -> None:
    assert format_number(value) == text


def test_format_keeps_the_value_to_its_digits() -> None:
    rng = np.random.default_rng(0)
    for x in rng.standard_normal(300) * 10 ** rng.uniform(-8, 8, 300):
        assert float(format_number(float(x))) == pytest.approx(x, rel=5.1e-4)


def test_page_is_self_contained_and_escapes(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("a\n1\n")
    page = Page(tmp_path / "out", "A <b>title</b>", "sub")
    page.add("verdict", "x < y & z")
    page.add("heading", "Part")
    page.bullets(["one", "two"])
    page.bullets([])
    page.table(pd.DataFrame({"run": ["r<1>"], "mae": [0.123456789]}), "scores", best=0)
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1])
    page.figure(fig, "line", "A line.")
    assert not plt.fignum_exists(fig.number)
    path = page.write("convexlaw something", [source, tmp_path / "missing.csv"])
    text = path.read_text(encoding="utf-8")
    assert "<b>title</b>" not in text
    assert "A &lt;b&gt;title" in text
    assert "r&lt;1&gt;" in text
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", text), "the page must not load anything"
    (data,) = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", text)
    assert base64.b64decode(data) == (tmp_path / "out" / "line.png").read_bytes()
    assert pd.read_csv(tmp_path / "out" / "scores.csv")["mae"].item() == 0.123456789
    assert digests([source])[0][1][:16] in text
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["line.png", "report.html", "scores.csv"]


def test_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "report.html"
    write_text(target, "old")

    def interrupted() -> None:
        with replacing(target) as tmp:
            tmp.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert [p.name for p in target.parent.iterdir()] == ["report.html"]


def test_json_refuses_nan_and_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    write_json(target, {"a": 1})
    with pytest.raises(ValueError, match="Out of range"):
        write_json(target, {"a": float("nan")})
    assert target.read_text() == '{\n  "a": 1\n}\n'
