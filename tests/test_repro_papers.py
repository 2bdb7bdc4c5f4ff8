"""The papers: every verdict as expected, figures that show the data beside them, the same numbers again."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from convexlaw.cli import main
from convexlaw.paper_repro import _run

NAMES = _run.names()


def cli(*args):
    with pytest.raises(SystemExit) as stopped:
        main(list(args))
    return stopped.value.code


def drawn(figure):
    """All points of the lines of a figure, a row each."""
    lines = [line for ax in figure.axes for line in ax.get_lines()]
    parts = [np.column_stack([np.ravel(line.get_xdata()), np.ravel(line.get_ydata())]) for line in lines]
    points = np.concatenate([p.astype(float) for p in parts if len(p)])
    return points[np.isfinite(points).all(axis=1)]


def shows(figure, x, y):
    """Whether every point (x, y) is drawn somewhere in the figure."""
    points = drawn(figure)
    wanted = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    wanted = wanted[np.isfinite(wanted).all(axis=1)]
    assert len(wanted)
    return all((np.abs(points - w) <= 1e-9 * (1 + np.abs(w))).all(axis=1).any() for w in wanted)


# paper -> what of its tables must be drawn, as (x, y) pairs
def _su(t):
    return [(t["random_designs"].tpp, t["random_designs"].fdp), (t["curves"].tpp, t["curves"].fdp)]


def _wang(t):
    return [(t["regions"].tpp, t["regions"].lower), (t["regions"].tpp, t["regions"].upper)]


def _amp(t):
    paths, line = t["distances"], t["along_scale"].query("quantity == 'tpp'")
    levels = t["noise_levels"]
    return [
        (paths.iteration, paths.distance),
        (paths.iteration, paths.support),
        (levels.iteration, levels.tau),
        (line.label.astype(float), line.theory),
    ]


def _tradeoff(t):
    curves, families = t["curves"].query("delta == 0.3"), t["families"]
    return [
        (curves.tpp, curves.fdp),
        (t["zoom"].tpp, t["zoom"].slope_lower),
        (families.tpp, families.reached),
        (families.tpp, families.limit),
    ]


def _designs(t):
    return [(t["weights"]["rank"], t["weights"]["two levels"]), (t["steps"].step, t["steps"].tau)]


def _two_level(t):
    curves, lines = t["curves"].query("delta == 0.3 and epsilon == 0.2"), t["error_lines"]
    gain = 100 * (1 - lines.two_level / lines.lasso)
    return [(curves.tpp, curves.two_level), (lines.value, gain)]


def _last_iterate(t):
    bounds, peaks = t["bounds"], t["measured_peaks"].dropna()
    return [(bounds.step / bounds.step.max(), bounds.cosine), (peaks.cooldown, peaks.relative)]


def _dominance(t):
    bounds, points = t["scaled_bounds"], t["points"]
    return [(bounds.steps, bounds.scaled), (1e5 * points.D**-0.5, points.loss)]


def _batches(t):
    table = t["batch_schedules"]
    return [(table.fraction, table.cosine), (table.fraction, table["WSD 20 %"])]


def _depth(t):
    growth = t["growth"].query("schedule != 'constant'")
    return [(growth.tau, growth.average_gap), (t["curves"].step, t["curves"]["WSD, whole"])]


def _multi_power(t):
    late = t["predictions"].query("step > 5000")
    return [(late.step / 1000, late.loss), (late.step / 1000, late.rc4)]


def _chinchilla(t):
    table, points = t["tokens_per_parameter"], t["residuals"]
    return [(table.flops, table.refit), (points.D, points.loss)]


DRAWN = {
    "su-2017-lasso": _su,
    "wang-2020-lasso-diagram": _wang,
    "bu-2019-slope-amp": _amp,
    "bu-2021-slope-tradeoff": _tradeoff,
    "zhang-2021-slope-designs": _designs,
    "bu-2025-two-level": _two_level,
    "defazio-2023-last-iterate": _last_iterate,
    "bu-2026-convex-dominance": _dominance,
    "li-2026-batch-schedules": _batches,
    "bu-2025-depth": _depth,
    "luo-2025-multi-power": _multi_power,
    "hoffmann-2022-chinchilla": _chinchilla,
}


def test_all_papers_in_a_quick_run(tmp_path, monkeypatch, capsys):
    """``repro all --quick``: verdicts, files, and the data of every figure in the figure."""
    seen = {}
    write = _run._write

    def keep(module, data, out):
        seen[module.PAPER.id] = (module, data)
        return write(module, data, out)

    monkeypatch.setattr(_run, "_write", keep)
    code = cli("repro", "all", "--quick", "--out", str(tmp_path))
    assert code == 0, capsys.readouterr().out
    ledger = json.loads((tmp_path / "checks.json").read_text())
    assert [paper["id"] for paper in ledger["papers"]] == NAMES
    checks = [check for paper in ledger["papers"] for check in paper["checks"]]
    assert len(checks) == ledger["totals"]["claims"] == len(_run.all_claims())
    assert all(check["as_expected"] for check in checks)
    page = (tmp_path / "ledger.html").read_text()
    text = (tmp_path / "ledger.md").read_text()
    assert all(check["id"] in page and check["id"] in text for check in checks)
    assert page.count("data:image/png;base64,") == 12
    for paper in ledger["papers"]:
        for name in paper["files"]:
            assert (tmp_path / name).stat().st_size > 0
        document = (tmp_path / paper["id"] / "figure.pdf").read_bytes()
        assert document.startswith(b"%PDF")
        assert b"/Type3" not in document  # fonts are embedded as outlines that print well
        assert b"/FontFile2" in document
        module, data = seen[paper["id"]]
        if data.missing:
            continue
        for name, frame in data.tables.items():
            saved = pd.read_csv(tmp_path / paper["id"] / f"{name}.csv")
            assert saved.shape == frame.shape
        figure = module.draw(data)
        for ax in figure.axes:
            assert ax.get_xlabel() or ax.get_xticklabels()
        for x, y in DRAWN[paper["id"]](data.tables):
            assert shows(figure, x, y), paper["id"]
        plt.close(figure)
    assert set(DRAWN) == set(NAMES)


def test_the_same_numbers_again():
    first, second = (_run.run_paper("wang-2020-lasso-diagram", quick=True) for _ in range(2))
    assert [c.to_dict() for c in first.checks] == [c.to_dict() for c in second.checks]


def test_absent_data_is_not_run_and_an_error_under_ci(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("CONVEXLAW_SHARED", str(tmp_path / "nowhere"))
    out = tmp_path / "out"
    assert cli("repro", "hoffmann-2022-chinchilla", "--quick", "--out", str(out)) == 0
    totals = json.loads((out / "checks.json").read_text())["totals"]
    assert totals["not run"] == 18
    assert totals["holds"] == 1
    assert (out / "hoffmann-2022-chinchilla" / "figure.pdf").is_file()
    capsys.readouterr()
    monkeypatch.setenv("CI", "true")
    assert cli("repro", "hoffmann-2022-chinchilla", "--quick", "--out", str(out)) == 2
    assert "CI=true" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["bu-2026-convex-dominance", "defazio-2023-last-iterate", "luo-2025-multi-power"]
)
def test_the_rest_of_a_paper_runs_without_its_data(tmp_path, monkeypatch, name):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("CONVEXLAW_SHARED", str(tmp_path / "nowhere"))
    found = _run.run_paper(name, quick=True, out=tmp_path)
    assert found.counts["unexpected"] == 0
    assert found.counts["not run"] > 0


def test_papers_run_side_by_side(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_run, "MODULES", ("wang_2020_lasso_diagram", "bu_2025_depth"))
    assert cli("repro", "all", "--quick", "--jobs", "2", "--out", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "wang-2020-lasso-diagram" in shown
    assert "bu-2025-depth" in shown


def test_an_error_in_one_paper_leaves_the_ledger_of_the_others(tmp_path, monkeypatch, capsys):
    run = _run.run_paper

    def broken(name, quick, out):
        if name == "bu-2025-depth":
            raise ZeroDivisionError("a bug")
        return run(name, quick, out)

    monkeypatch.setattr(_run, "MODULES", ("bu_2025_depth", "wang_2020_lasso_diagram"))
    monkeypatch.setattr(_run, "run_paper", broken)
    out = tmp_path / "out"
    assert cli("repro", "all", "--quick", "--out", str(out)) == 2
    told = capsys.readouterr()
    assert "the ledger lacks what ended with an error: bu-2025-depth: ZeroDivisionError: a bug" in told.err
    assert "wang-2020-lasso-diagram" in told.out
    papers = json.loads((out / "checks.json").read_text())
    assert papers["totals"]["claims"] == len(_run.load("wang-2020-lasso-diagram").CLAIMS)


def test_a_folder_that_cannot_be_made_is_refused_at_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(_run, "run_paper", None)
    assert cli("repro", "bu-2025-depth", "--out", str(tmp_path / "file" / "out")) == 2
    assert "file is a file; name a folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["wang_2020_lasso_diagram", "bu_2021_slope_tradeoff", "bu_2025_depth"])
@pytest.mark.mpl_image_compare(
    baseline_dir="baseline", style="default", tolerance=6, savefig_kwargs={"dpi": 60}
)
def test_canonical_figures(name):
    module = _run.load(name)
    return module.draw(module.compute(quick=True))
