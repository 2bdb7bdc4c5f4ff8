"""The guides tell the truth: every command and every line of Python in them is run, its output compared.

Blocks are run in the order of the page, in a folder of the page's own, so that Python finds the files of the
commands before it. Output is compared word by word; numbers may differ by 2 units of their last printed digit
(a tenth of their size at most) or by 1e-3 of their size; an ellipsis stands for anything. Blocks of class
``slow`` run in the slow suite.

``python tests/test_guides.py [PAGE...]`` writes new numbers into the pages, up to the first new word.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
# without what the gallery writes (sg_*.rst)
PAGES = sorted([DOCS.parent / "README.md", *DOCS.glob("[a-r]*.rst"), *DOCS.glob("guides/*.rst")])
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """One code block of a page."""

    kind: str
    line: int
    text: str
    slow: bool


def blocks(page: Path) -> list[Block]:
    """List the code blocks of ``page``."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        fences = re.finditer(r"^```(\S*)\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
        return [Block(m[1], text.count("\n", 0, m.start()) + 1, m[2], False) for m in fences]
    lines = text.split("\n")
    found, i = [], 0
    while i < len(lines):
        match = re.match(r"( *)\.\. code-block::\s*(\S*)", lines[i])
        if not match:
            # an indented or literal block that nobody would run
            assert not lines[i].endswith("::") or lines[i].lstrip().startswith(".. "), f"{page.name}:{i + 1}"
            i += 1
            continue
        indent, start, body = len(match[1]), i + 1, []
        i += 1
        while i < len(lines) and (not lines[i].strip() or len(lines[i]) - len(lines[i].lstrip()) > indent):
            body.append(lines[i])
            i += 1
        options = [b.strip() for b in body if re.match(r" *:\w+:", b)]
        text = textwrap.dedent("\n".join(b for b in body if b.strip() not in options)).strip("\n")
        found.append(Block(match[2], start, text, ":class: slow" in options))
    return found


def same(want: str, got: str) -> bool:
    """Whether output is as printed in the page: words equal, numbers near, an ellipsis for anything."""
    seen = numbers_in(want, got)
    return seen is not None and all(map(_near, NUMBER.findall(want), seen))


def numbers_in(want: str, got: str) -> list[str] | None:
    """Numbers of ``got`` where ``want`` has some; None where the words differ."""
    want, got = " ".join(want.split()), " ".join(got.split())
    pattern, at, count = "", 0, 0
    for match in NUMBER.finditer(want):
        pattern += _words(want[at : match.start()]) + f"(?P<n{count}>{NUMBER.pattern})"
        at, count = match.end(), count + 1
    matched = re.fullmatch(pattern + _words(want[at:]), got, re.IGNORECASE)
    return None if matched is None else [matched[f"n{i}"] for i in range(count)]


def _words(text: str) -> str:
    parts = [r"\s+".join(map(re.escape, part.split(" "))) for part in text.split("...")]
    return ".*?".join(parts)


def _near(want: str, got: str) -> bool:
    mantissa, _, power = want.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(power or 0) - digits)
    # whole numbers count something: they are exact, unless there is a power of ten
    if "." not in mantissa and not power:
        return int(want) == float(got)
    size = abs(float(want))
    return abs(float(want) - float(got)) <= max(min(2.0 * unit, 0.1 * size), 1e-3 * size) * (1 + 1e-9)


class Checker(doctest.OutputChecker):
    """Compare the output of Python as that of commands."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or same(want, got)


def run_commands(block: Block, folder: Path) -> None:
    """Run each ``$`` line of a console block and compare what it prints."""
    steps: list[tuple[str, list[str]]] = []
    for line in block.text.split("\n"):
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps and not steps[-1][1] and steps[-1][0].endswith("\\"):
            steps[-1] = (f"{steps[-1][0]}\n{line.removeprefix('> ')}", [])
        else:
            steps[-1][1].append(line)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, lines in steps:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path, "COLUMNS": "96", "MPLBACKEND": "Agg"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        want = "\n".join(lines)
        told = same(want, done.stdout)
        assert told, (
            f"line {block.line}: $ {command}\n--- the page says\n{want}\n"
            f"--- seen (exit {done.returncode})\n{done.stdout}"
        )


def run_python(page: Path, block: Block, names: dict[str, object]) -> None:
    """Run the prompts of a Python block in the page's namespace."""
    test = doctest.DocTestParser().get_doctest(block.text + "\n", names, page.name, str(page), block.line)
    test.globs = names
    report: list[str] = []
    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    result = runner.run(test, out=report.append, clear_globs=False)
    assert not result.failed, "".join(report)


def run_page(page: Path, folder: Path, slow: bool) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.slow and not slow:
            continue
        if block.kind == "console":
            run_commands(block, folder)
        else:
            run_python(page, block, names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_block_of_a_guide_can_be_run(page: Path) -> None:
    for block in blocks(page):
        prompt = {"console": "$ ", "pycon": ">>> "}.get(block.kind)
        assert prompt, f"{page.name}:{block.line}: a block is console or pycon, not {block.kind!r}"
        assert block.text.startswith(prompt), f"{page.name}:{block.line}: begins without {prompt!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_guides_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close_figures: None
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if any(b.slow for b in blocks(p))], ids=lambda p: p.stem)
def test_guides_print_what_they_say_long_runs_too(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close_figures: None
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, slow=True)


@pytest.fixture
def close_figures() -> object:
    """Leave no figure of a guide open."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(
        r"``((?:tests/)?(?:test_)[\w*]+\.py|(?:tests|simulations|benchmarks)/[\w/.]+)``", text
    ):
        folder = DOCS.parent if "/" in name else DOCS.parent / "tests"
        assert list(folder.glob(name.rstrip("/"))), f"{page.name} names {name}, which does not exist"


def test_numbers_are_compared_and_words_too() -> None:
    assert same("error 0.0170 nats, 15 runs ... (12 s)", "error 0.0171  nats,\n15 runs\nreport: x (12 s)")
    assert not same("error 0.0170 nats, 15 runs", "error 0.0175 nats, 15 runs")
    assert not same("error 0.0170 nats, 15 runs", "error 0.0170 nats, 16 runs")
    assert not same("holds", "fails")
    assert same("[1.00, 2e-3]", "[1.01, 0.0021]")
    # few digits leave no room for another order of magnitude or another sign
    for want, got in (
        ("1e-06", "1e-08"),
        ("1e-06", "3e-06"),
        ("0.01", "-0.01"),
        ("0.02", "0.00"),
        ("0.0", "0.1"),
    ):
        assert not same(want, got)


def renew(page: Path, folder: Path) -> None:
    """Run ``page`` and write the numbers seen into it."""
    compare, lines = same, []

    def note(want: str, got: str) -> bool:
        seen = numbers_in(want, got)
        if seen is None or compare(want, got):
            return compare(want, got)
        values = iter(seen)
        lines.extend(zip(want.split("\n"), NUMBER.sub(lambda _: next(values), want).split("\n"), strict=True))
        return True

    globals()["same"] = note
    try:
        os.chdir(folder)
        run_page(page, folder, slow=False)
    finally:
        globals()["same"] = compare
        text = page.read_text(encoding="utf-8")
        for old, new in lines:
            text = text.replace(old, new) if old.strip() else text
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    for chosen in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        with tempfile.TemporaryDirectory() as scratch:
            renew(chosen, Path(scratch))
            os.chdir(DOCS)
