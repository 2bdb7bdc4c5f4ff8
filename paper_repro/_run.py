"""Run the reproduction of one paper: compute, check, draw, write."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from convexlaw._files import replacing
from convexlaw.errors import ConvexlawError
from convexlaw.paper_repro._check import Check, Claim, Paper
from convexlaw.paper_repro._data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MODULES", "PaperRun", "Reproduction", "all_claims", "load", "names", "run_paper"]

MODULES: tuple[str, ...] = (
    "su_2017_lasso",
    "wang_2020_lasso_diagram",
    "bu_2019_slope_amp",
    "bu_2021_slope_tradeoff",
    "zhang_2021_slope_designs",
    "bu_2025_two_level",
    "defazio_2023_last_iterate",
    "bu_2026_convex_dominance",
    "li_2026_batch_schedules",
    "bu_2025_depth",
    "luo_2025_multi_power",
    "hoffmann_2022_chinchilla",
)
"""Modules of this package, one a paper, in the order of the ledger."""


class Reproduction(Protocol):
    """What every module of a paper has."""

    PAPER: Paper
    CLAIMS: tuple[Claim, ...]

    def compute(self, quick: bool = False) -> Data:
        """Compute everything that figure and checks need; ``quick`` with fewer points and repetitions."""

    def draw(self, data: Data) -> Figure:
        """Draw the paper's figure."""

    def check(self, data: Data) -> list[Check]:
        """Judge every claim."""


@dataclass(frozen=True)
class PaperRun:
    """What one reproduction gave.

    Attributes
    ----------
    paper : Paper
    checks : list of Check
    seconds : float
        Wall time.
    files : list of str
        Files written, relative to the output folder; figures first.
    """

    paper: Paper
    checks: list[Check]
    seconds: float
    files: list[str] = field(default_factory=list)

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of checks of each verdict, and ``unexpected``."""
        found = Counter(check.verdict for check in self.checks)
        out = {name: found[name] for name in ("holds", "fails", "unobtainable", "not run")}
        return {**out, "unexpected": sum(not check.as_expected for check in self.checks)}


def names() -> list[str]:
    """Names of the papers on the command line, in the order of the ledger."""
    return [module.replace("_", "-") for module in MODULES]


def load(name: str) -> Reproduction:
    """Import the module that reproduces a paper.

    Parameters
    ----------
    name : str
        As in :func:`names`; underscores do too.

    Raises
    ------
    ConvexlawError
        Unknown name.
    """
    module = name.replace("-", "_").lower()
    if module not in MODULES:
        raise ConvexlawError(f"paper {name!r} is not known: choose one of {', '.join(names())}, or all")
    return cast(Reproduction, importlib.import_module(f"convexlaw.paper_repro.{module}"))


def all_claims() -> list[tuple[Paper, Claim]]:
    """List every claim of every paper, in the order of the ledger."""
    found = []
    for module in MODULES:
        stated = importlib.import_module(f"convexlaw.paper_repro._claims_{module}")
        found += [(stated.PAPER, claim) for claim in stated.CLAIMS]
    return found


def run_paper(name: str, quick: bool = False, out: str | Path | None = None) -> PaperRun:
    """Reproduce one paper.

    Parameters
    ----------
    name : str
        As in :func:`names`.
    quick : bool
        Fewer points and repetitions; the same claims.
    out : path-like, optional
        Folder: ``<out>/<paper>/`` gets figure.pdf, figure.png and a CSV for each table behind it.

    Returns
    -------
    PaperRun

    Raises
    ------
    ConvexlawError
        Unknown name; public data absent under ``CI=true``.
    """
    module = load(name)
    start = time.perf_counter()
    data = module.compute(quick)
    checks = module.check(data)
    files = _write(module, data, Path(out)) if out is not None else []
    return PaperRun(module.PAPER, checks, time.perf_counter() - start, files)


def _write(module: Reproduction, data: Data, out: Path) -> list[str]:
    import matplotlib.pyplot as plt

    from convexlaw.figures.style import STYLE

    folder = out / module.PAPER.id
    figure = module.draw(data)
    files = []
    with plt.style.context(STYLE):
        # no date in the file: the same numbers give the same bytes
        for suffix, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None})):
            target = folder / f"figure.{suffix}"
            with replacing(target) as tmp:
                figure.savefig(tmp, format=suffix, metadata=metadata)
            files.append(str(target.relative_to(out)))
    plt.close(figure)
    for table, frame in data.tables.items():
        target = folder / f"{table}.csv"
        with replacing(target) as tmp:
            frame.to_csv(tmp, index=False)
        files.append(str(target.relative_to(out)))
    return files
