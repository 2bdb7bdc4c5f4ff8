"""The ledger of claims: one page and one Markdown file with every check, its number and its verdict."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import convexlaw
from convexlaw._files import write_json, write_text
from convexlaw.report.page import format_number

if TYPE_CHECKING:
    from convexlaw.paper_repro._check import Check
    from convexlaw.paper_repro._run import PaperRun

__all__ = ["totals", "write_ledger"]

_MARK = {"holds": "holds", "fails": "fails", "unobtainable": "not obtained", "not run": "not run"}


def totals(runs: Sequence[PaperRun]) -> dict[str, int]:
    """Count the checks of all papers.

    Parameters
    ----------
    runs : sequence of PaperRun

    Returns
    -------
    dict
        claims, holds, fails as expected, fails unexpectedly, not obtained, not run, unexpected (any verdict
        that is not the expected one).
    """
    checks = [check for run in runs for check in run.checks]

    def count(verdict: str, expected: bool | None = None) -> int:
        return sum(c.verdict == verdict and expected in (None, c.as_expected) for c in checks)

    return {
        "claims": len(checks),
        "holds": count("holds"),
        "fails as expected": count("fails", True),
        "fails unexpectedly": count("fails", False),
        "not obtained": count("unobtainable"),
        "not run": count("not run"),
        "unexpected": sum(not c.as_expected for c in checks),
    }


def write_ledger(
    runs: Sequence[PaperRun], out: str | os.PathLike[str], *, command: str, quick: bool
) -> list[Path]:
    """Write ``checks.json``, ``ledger.md`` and ``ledger.html`` (figures inside), each whole or not at all.

    Parameters
    ----------
    runs : sequence of PaperRun
        Their figures are read from ``out``.
    out : path-like
    command : str
        What reproduces the ledger.
    quick : bool
        Whether fewer points and repetitions were used.

    Returns
    -------
    list of pathlib.Path
        The three files.
    """
    import jinja2

    folder = Path(out)
    counted = totals(runs)
    write_json(
        folder / "checks.json",
        {
            "schema": 1,
            "version": convexlaw.__version__,
            "command": command,
            "quick": quick,
            "totals": counted,
            "papers": [
                {
                    "id": run.paper.id,
                    "title": run.paper.title,
                    "authors": run.paper.authors,
                    "arxiv": run.paper.arxiv,
                    "files": run.files,
                    "checks": [check.to_dict() for check in run.checks],
                }
                for run in runs
            ],
        },
    )
    papers = [_paper(run, folder) for run in runs]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("convexlaw"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    values = {
        "papers": papers,
        "totals": counted,
        "command": command,
        "quick": quick,
        "version": convexlaw.__version__,
    }
    write_text(folder / "ledger.html", environment.get_template("ledger.html.j2").render(values))
    write_text(folder / "ledger.md", _markdown(values))
    return [folder / name for name in ("ledger.html", "ledger.md", "checks.json")]


def _paper(run: PaperRun, folder: Path) -> dict[str, Any]:
    figure = next((name for name in run.files if name.endswith(".png")), None)
    picture = base64.b64encode((folder / figure).read_bytes()).decode() if figure else ""
    return {
        "paper": run.paper,
        "counts": dict(run.counts),
        "figure": figure,
        "picture": picture,
        "tables": [name for name in run.files if name.endswith(".csv")],
        "rows": [_row(check) for check in run.checks],
    }


def _row(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "claim": check.claim,
        "place": check.place,
        "source": check.source,
        "computed": _with_error(check),
        "reference": _reference(check),
        "verdict": _MARK[check.verdict],
        "state": check.verdict if check.as_expected else "unexpected",
        "expected": "" if check.as_expected else _MARK[check.expected],
        "note": check.note,
    }


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(format_number(v, 5) for v in value)
    return format_number(value, 5)


def _with_error(check: Check) -> str:
    text = _shown(check.computed)
    return f"{text} ± {format_number(check.error, 2)}" if check.error is not None else text


def _reference(check: Check) -> str:
    if check.reference is None:
        return "–"
    text = _shown(check.reference)
    if check.kind == "upper":
        return f"≤ {text}"
    if check.kind == "lower":
        return f"≥ {text}"
    if check.kind == "monte-carlo":
        return f"{text} (within {check.tolerance:g} standard errors)"
    if check.kind == "equal" and check.tolerance:
        room = f"{100 * check.tolerance:g} %" if check.relative else format_number(check.tolerance, 2)
        return f"{text} ± {room}"
    return text


def _markdown(values: dict[str, Any]) -> str:
    counted = values["totals"]
    lines = [
        "# Ledger of claims",
        "",
        f"convexlaw {values['version']}, `{values['command']}`{' (quick)' if values['quick'] else ''}.",
        "",
        "; ".join(f"{name}: {number}" for name, number in counted.items()) + ".",
        "",
    ]
    for entry in values["papers"]:
        paper = entry["paper"]
        lines += [f"## {paper.authors}: {paper.title}", "", f"arXiv {paper.arxiv}.", ""]
        if entry["figure"]:
            lines += [f"![figure]({entry['figure']})", ""]
        lines += ["| id | claim | place | computed | reference | verdict | note |"]
        lines += ["|---|---|---|---|---|---|---|"]
        for row in entry["rows"]:
            verdict = (
                f"**{row['verdict']}, expected: {row['expected']}**" if row["expected"] else row["verdict"]
            )
            cells = [
                row["id"],
                row["claim"],
                row["place"],
                row["computed"],
                row["reference"],
                verdict,
                row["note"],
            ]
            lines.append(
                "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |"
            )
        lines.append("")
    return "\n".join(lines)
