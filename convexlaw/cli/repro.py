"""``convexlaw repro``: figures, data and verdicts of the papers."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from convexlaw.paper_repro._run import PaperRun


def repro(
    context: typer.Context,
    paper: Annotated[
        str, typer.Argument(help="A paper (see: convexlaw repro list), all, or list.", metavar="list|ID|all")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points and repetitions, seconds a paper.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of figures, CSV, checks.json and the ledger.")] = Path(
        "convexlaw-repro"
    ),
    jobs: Annotated[int, typer.Option(help="Papers run at the same time.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Reproduce papers: figure (PDF, PNG), data (CSV), every claim with its verdict.

    The exit code is 0 where every verdict is the expected one, else 1.
    """
    from convexlaw.cli import _tables
    from convexlaw.paper_repro import _run
    from convexlaw.report.ledger import totals, write_ledger

    if paper == "list":
        _nothing_else(context)
        _list(as_json)
        return
    wanted = _run.names() if paper == "all" else [_run.load(paper).PAPER.id]
    with _folder(out):
        runs, broken = _all(wanted, quick, out, jobs)
        if not runs:
            raise ConvexlawError("; ".join(broken))
        files = write_ledger(runs, out, command=_tables.command_line(), quick=quick)
    counted = totals(runs)
    if as_json:
        checks = [check.to_dict() for run in runs for check in run.checks]
        _tables.show_json({"totals": counted, "checks": checks, "files": files})
    else:
        _show(runs, counted, files)
    if broken:
        raise ConvexlawError(f"the ledger lacks what ended with an error: {'; '.join(broken)}")
    if counted["unexpected"]:
        raise typer.Exit(1)


@contextlib.contextmanager
def _folder(out: Path) -> Iterator[None]:
    """Make the folder before anything is computed, or refuse it; remove what was made and stayed empty."""
    made: list[Path] = []
    try:
        made = [path for path in (out, *out.parents) if not path.exists()]
        folder = next(path for path in (out, *out.absolute().parents) if path.exists())
        if not folder.is_dir():
            raise ConvexlawError(f"--out {out}: {folder} is a file; name a folder")
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        _remove_empty(made)
        raise ConvexlawError(
            f"--out {out}: cannot be written to ({error.strerror or error}); name another folder"
        ) from None
    try:
        yield
    finally:
        _remove_empty(made)


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or never made
            folder.rmdir()


def _nothing_else(context: typer.Context) -> None:
    """Refuse options that a list of the papers has no use for."""
    ignored = [
        f"--{name}"
        for name in ("quick", "out", "jobs")
        if getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT"
    ]
    if ignored:
        raise ConvexlawError(
            f"{' and '.join(ignored)} cannot be used with repro list, which writes nothing: leave it out"
        )


def _list(as_json: bool) -> None:
    import pandas as pd

    from convexlaw.cli import _tables
    from convexlaw.paper_repro._run import all_claims

    stated = all_claims()
    if as_json:
        rows = [
            {"paper": p.id, "id": c.id, "claim": c.claim, "place": c.place, "expected": c.expected}
            for p, c in stated
        ]
        _tables.show_json(rows)
        return
    papers = list(dict.fromkeys(p for p, _ in stated))
    counts = [sum(q is p for q, _ in stated) for p in papers]
    names = [f"{p.authors}: {p.title}" for p in papers]
    _tables.show_table(pd.DataFrame({"id": [p.id for p in papers], "claims": counts, "paper": names}))
    typer.echo(
        f"{len(stated)} claims; convexlaw repro ID checks those of one paper, convexlaw repro all every one"
    )


def _all(wanted: list[str], quick: bool, out: Path, jobs: int) -> tuple[list[PaperRun], list[str]]:
    """Run the papers; a sentence for each that ended with an error."""
    from convexlaw._progress import progress_bar

    runs, broken = [], []
    with progress_bar("papers", len(wanted)) as advance:
        for run in _each(wanted, quick, out, jobs):
            if isinstance(run, str):
                broken.append(run)
            else:
                runs.append(run)
            advance(1)
    return runs, broken


def _each(wanted: list[str], quick: bool, out: Path, jobs: int) -> Iterable[PaperRun | str]:
    if len(wanted) == 1:
        from convexlaw.paper_repro._run import run_paper

        return [run_paper(wanted[0], quick, out)]
    if jobs == 1:
        return (_attempt(name, quick, out) for name in wanted)
    from joblib import Parallel, delayed

    work = (delayed(_attempt)(name, quick, out) for name in wanted)
    found: Iterable[PaperRun | str] = Parallel(n_jobs=jobs, return_as="generator")(work)
    return found


def _attempt(name: str, quick: bool, out: Path) -> PaperRun | str:
    """Run a paper; an error of one does not end the others."""
    from convexlaw.paper_repro._run import run_paper

    try:
        return run_paper(name, quick, out)
    except Exception as error:
        kind = "" if isinstance(error, ConvexlawError) else f"{type(error).__name__}: "
        return f"{name}: {kind}{error}"


def _show(runs: list[PaperRun], counted: dict[str, int], files: list[Path]) -> None:
    import pandas as pd

    from convexlaw.cli import _tables

    if len(runs) == 1:
        for check in runs[0].checks:
            typer.echo(str(check))
    rows = [{"paper": run.paper.id, **run.counts, "seconds": round(run.seconds, 1)} for run in runs]
    _tables.show_table(pd.DataFrame(rows))
    if len(runs) > 1:
        surprises = [str(check) for run in runs for check in run.checks if not check.as_expected]
        _tables.show_lines(surprises, "Not as expected:")
    typer.echo("; ".join(f"{name}: {number}" for name, number in counted.items()))
    typer.echo("written: " + ", ".join(map(str, files)))
