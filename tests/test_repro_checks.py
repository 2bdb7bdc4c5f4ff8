"""How a claim is judged, collected and written to the ledger."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from convexlaw.cli import main
from convexlaw.errors import ConvexlawError
from convexlaw.paper_repro import _run
from convexlaw.paper_repro._check import Claim, Paper, Sheet
from convexlaw.paper_repro._data import Data, public_data


def claim(kind, reference=None, tolerance=0.0, **options):
    return Claim("C901", "a claim", "Theorem 1", kind, reference, tolerance, **options)


@pytest.mark.parametrize(
    ("kind", "reference", "tolerance", "good", "bad"),
    [
        ("equal", 2.0, 0.1, (1.9001, 2.0999), (1.89, 2.11, math.nan)),
        ("upper", 2.0, 0.1, (-9.0, 2.1), (2.11, math.nan)),
        ("lower", 2.0, 0.1, (1.9, 9.0), (1.89, math.nan)),
    ],
)
def test_a_number_within_its_tolerance_holds(kind, reference, tolerance, good, bad):
    one = claim(kind, reference, tolerance)
    assert {one.judge(v).verdict for v in good} == {"holds"}
    assert {one.judge(v).verdict for v in bad} == {"fails"}


def test_tolerances_may_be_relative_and_references_computed():
    one = claim("equal", tolerance=0.01, relative=True)
    assert one.judge(1005.0, reference=1000.0).verdict == "holds"
    assert one.judge(1011.0, reference=1000.0).verdict == "fails"


def test_monte_carlo_claims_are_judged_in_standard_errors():
    one = claim("monte-carlo", 0.5, 3.0)
    assert one.judge(0.529, error=0.01).verdict == "holds"
    assert one.judge(0.531, error=0.01).verdict == "fails"
    for error in (None, 0.0, math.nan):
        with pytest.raises(ConvexlawError, match="standard error"):
            one.judge(0.5, error=error)


def test_vectors_are_compared_entry_by_entry():
    one = claim("equal", (1.0, 2.0), 0.1)
    assert one.judge([1.05, 1.95]).verdict == "holds"
    assert one.judge([1.05, 2.2]).verdict == "fails"
    with pytest.raises(ConvexlawError, match="compared"):
        one.judge([1.0, 2.0, 3.0])


def test_a_qualitative_claim_needs_a_verdict():
    with pytest.raises(ConvexlawError, match="say whether"):
        claim("qualitative").judge("seen")
    assert claim("qualitative").judge("seen", holds=False).verdict == "fails"


def test_surprises_are_verdicts_that_differ_from_the_expected_ones():
    known = claim("equal", 1.0, expected="fails", why="an error in the paper")
    assert known.judge(2.0).as_expected
    assert not known.judge(1.0).as_expected
    assert known.not_run("no data").as_expected
    assert known.judge(2.0).note == "an error in the paper"


def test_checks_become_plain_json():
    found = claim("equal", math.inf).judge([math.inf, 1.0])
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["computed"] == ["inf", 1.0]


def test_a_sheet_wants_one_check_for_every_claim():
    claims = (
        Claim("C901", "first", "here", "equal", 1.0),
        Claim("C902", "second", "here", expected="unobtainable", why="not public"),
        Claim("C903", "third", "here", "equal", 1.0, needs="some"),
    )
    sheet = Sheet(claims, {"some": "some data is absent"})
    with pytest.raises(ConvexlawError, match="C901 was not checked"):
        sheet.done()
    sheet.judge("C901", 1.0)
    assert [c.verdict for c in sheet.done()] == ["holds", "unobtainable", "not run"]
    with pytest.raises(ConvexlawError, match="twice"):
        sheet.judge("C901", 1.0)
    with pytest.raises(ConvexlawError, match="no claim of this paper"):
        sheet.judge("C999", 1.0)


def test_claims_are_numbered_once():
    stated = _run.all_claims()
    ids = [one.id for _, one in stated]
    assert len(set(ids)) == len(ids) >= 80
    # claims that were added later have numbers above those of their paper's neighbours
    assert all(re.fullmatch(r"C\d{3}", one) for one in ids)
    papers = {paper.id for paper, _ in stated}
    assert papers == set(_run.names())
    assert len(papers) == 12
    for _, one in stated:
        assert one.claim
        assert one.place
        if one.expected != "holds":
            assert one.why, one.id


def test_public_data_is_found_or_its_absence_said(tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "data" / "some").mkdir(parents=True)
    monkeypatch.setenv("CONVEXLAW_SHARED", str(tmp_path))
    missing = {}
    assert public_data("some", missing) == tmp_path / "data" / "some"
    assert public_data("other", missing) is None
    assert "CONVEXLAW_SHARED" in missing["other"]
    monkeypatch.setenv("CI", "true")
    with pytest.raises(ConvexlawError, match="CI=true"):
        public_data("other", missing)


def cli(*args):
    with pytest.raises(SystemExit) as stopped:
        main(list(args))
    return stopped.value.code


@pytest.fixture
def toy(monkeypatch):
    """One paper whose only number is set by the test."""
    paper = Paper("toy-2020", "A toy | with a bar", "Nobody 2020", "0000.00000")
    claims = (Claim("C901", "the answer is 42", "Theorem 1", "equal", 42.0, 0.5),)

    def check(data):
        sheet = Sheet(claims)
        sheet.judge("C901", data["answer"])
        return sheet.done()

    module = SimpleNamespace(
        PAPER=paper,
        CLAIMS=claims,
        answer=42.1,
        draw=lambda data: plt.figure(),
        check=check,
    )
    module.compute = lambda quick: Data({"numbers": pd.DataFrame({"x": [1.5]})}, {"answer": module.answer})
    monkeypatch.setattr(_run, "load", lambda name: module)
    return module


def test_exit_code_says_whether_all_is_as_expected(toy, tmp_path, capsys):
    assert cli("repro", "toy-2020", "--out", str(tmp_path)) == 0
    assert "C901 holds" in capsys.readouterr().out
    toy.answer = 41.0
    assert cli("repro", "toy-2020", "--out", str(tmp_path)) == 1
    assert "C901 fails (expected: holds)" in capsys.readouterr().out
    ledger = (tmp_path / "ledger.md").read_text()
    assert "**fails, expected: holds**" in ledger
    assert "fails unexpectedly: 1" in ledger
    page = (tmp_path / "ledger.html").read_text()
    assert "1 unexpected" in page
    checks = json.loads((tmp_path / "checks.json").read_text())
    assert checks["totals"]["unexpected"] == 1
    (one,) = checks["papers"][0]["checks"]
    assert (one["id"], one["computed"], one["reference"]) == ("C901", 41.0, 42.0)
    assert pd.read_csv(tmp_path / "toy-2020" / "numbers.csv").x.tolist() == [1.5]


def test_json_on_standard_output(toy, tmp_path, capsys):
    assert cli("repro", "toy-2020", "--out", str(tmp_path), "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["totals"]["claims"] == 1
    assert printed["checks"][0]["verdict"] == "holds"


def test_list_names_every_paper_and_its_claims(capsys):
    assert cli("repro", "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in _run.names())
    assert cli("repro", "list", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == len(_run.all_claims())


def test_an_unknown_paper_is_one_line(tmp_path, capsys):
    assert cli("repro", "nobody-1999", "--out", str(tmp_path)) == 2
    seen = capsys.readouterr()
    assert "nobody-1999" in seen.err
    assert "su-2017-lasso" in seen.err
    assert seen.err.count("\n") == 1


@pytest.mark.parametrize("out", ["/proc/nope", "/proc/nope/deep"])
def test_a_folder_that_cannot_be_made_is_said_before_anything_is_computed(out, monkeypatch, capsys):
    def run(*args):
        raise AssertionError("a paper was computed")

    monkeypatch.setattr(_run, "run_paper", run)
    assert cli("repro", "all", "--quick", "--out", out) == 2
    seen = capsys.readouterr()
    assert seen.err.count("\n") == 1
    assert f"--out {out}: cannot be written to" in seen.err


def test_a_folder_in_which_nothing_was_written_is_removed(toy, tmp_path, capsys):
    toy.compute = lambda quick: (_ for _ in ()).throw(ConvexlawError("no numbers today"))
    (tmp_path / "kept").mkdir()
    for out in ("new/deep", "kept"):
        assert cli("repro", "toy-2020", "--out", str(tmp_path / out)) == 2
        assert "no numbers today" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--out", "x"], "--out"),
        (["--jobs", "1"], "--jobs"),
        (["--quick", "--out", "x"], "--quick and --out"),
    ],
)
def test_a_list_refuses_options_that_it_cannot_use(options, named, capsys):
    assert cli("repro", "list", *options) == 2
    seen = capsys.readouterr()
    assert seen.err.count("\n") == 1
    assert f"{named} cannot be used with repro list" in seen.err
    assert seen.out == ""
