"""The documentation is built without a warning, holds every public name, and needs no network to be read."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import convexlaw

ROOT = Path(__file__).resolve().parent.parent
# modules behind the command line and the readers: their names are for the package itself
INTERNAL = ("convexlaw.cli", "convexlaw.errors", "convexlaw.report", "convexlaw.runs")


def build(folder: Path, *options: str) -> Path:
    """Build the pages from a copy (autosummary and the gallery write beside their sources)."""
    for name in ("docs", "gallery"):
        shutil.copytree(
            ROOT / name,
            folder / name,
            ignore=shutil.ignore_patterns("_build", "generated", "auto_examples", "__pycache__"),
        )
    out = folder / "html"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-b",
            "html",
            *options,
            "docs",
            str(out),
        ],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages without the figures of the gallery."""
    return build(tmp_path_factory.mktemp("docs"), "-D", "plot_gallery=0")


def documented(pages: Path) -> dict[str, str]:
    """Every documented Python name and its kind, from the inventory of the pages."""
    raw = (pages / "objects.inv").read_bytes()
    text = zlib.decompress(raw.split(b"\n", 4)[4]).decode()
    rows = re.findall(r"^(\S+) py:(\w+) ", text, re.MULTILINE)
    return dict(rows)


def public_modules() -> list[str]:
    found = [
        info.name
        for info in pkgutil.walk_packages(convexlaw.__path__, "convexlaw.")
        if not any(part.startswith("_") for part in info.name.split("."))
    ]
    return [name for name in found if not name.startswith(INTERNAL)]


def test_every_public_name_has_a_place(pages: Path) -> None:
    names = documented(pages)
    missing = [n for n in convexlaw.__all__ if n != "__version__" and f"convexlaw.{n}" not in names]
    for module in public_modules():
        found = importlib.import_module(module)
        exported = getattr(found, "__all__", [])
        if exported and module not in names:
            missing.append(module)
        for name in exported:
            own_page = name in convexlaw.__all__ and getattr(convexlaw, name) is getattr(found, name)
            if not own_page and f"{module}.{name}" not in names:
                missing.append(f"{module}.{name}")
    assert not missing, f"on no page of the reference: {', '.join(missing)}"


def test_every_command_has_a_section(pages: Path) -> None:
    import typer

    from convexlaw.cli import app

    html = (pages / "commands.html").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():
        for full in [f"{name} {child}" for child in getattr(command, "commands", {})] or [name]:
            assert f"convexlaw {full} --help" in html


def test_pages_load_nothing_from_elsewhere(pages: Path) -> None:
    loads = re.compile(r"""(?:src|srcset)\s*=\s*["'](?:https?:)?//|url\(\s*["']?(?:https?:)?//|@import""")
    links = re.compile(r"""<link[^>]+href\s*=\s*["'](?:https?:)?//""")
    for page in [*pages.rglob("*.html"), *pages.rglob("*.css")]:
        text = page.read_text(encoding="utf-8")
        # code shown on a page is text
        text = re.sub(r"<pre>.*?</pre>", "", text, flags=re.DOTALL)
        assert not loads.search(text), page.name
        assert not links.search(text), page.name


def test_links_between_pages_lead_somewhere(pages: Path) -> None:
    broken = []
    anchors: dict[Path, set[str]] = {}
    for page in pages.rglob("*.html"):
        if "_modules" in page.parts:
            continue
        for link in re.findall(r'<a[^>]+href="([^"]+)"', page.read_text(encoding="utf-8")):
            if re.match(r"\w+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            if target.suffix == ".html" and target.exists() and target not in anchors:
                anchors[target] = set(re.findall(r'\bid="([^"]+)"', target.read_text(encoding="utf-8")))
            if not target.exists() or (anchor and anchor not in anchors.get(target, {anchor})):
                broken.append(f"{page.name}: {link}")
    assert not broken, "\n".join(broken[:20])


def test_search_finds_what_people_type(pages: Path) -> None:
    text = (pages / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    titles = {title.lower() for title in index["alltitles"]}
    assert {"from logs to a prediction", "reproduce a figure", "how it is checked"} <= titles
    assert {"wsd", "bootstrap", "cooldown"} <= set(index["terms"])


@pytest.mark.slow
def test_gallery_runs_and_draws_every_paper(tmp_path: Path) -> None:
    from convexlaw.paper_repro._run import MODULES

    pages = build(tmp_path)
    for module in MODULES:
        (page,) = (pages / "auto_examples").glob(f"plot_*_{module}.html")
        text = page.read_text(encoding="utf-8")
        assert "sphx-glr-single-img" in text, f"{page.name} shows no figure"
        assert "holds:" in text, f"{page.name} prints no verdict"
