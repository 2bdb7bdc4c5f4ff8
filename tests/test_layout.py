"""The house stands: packages, links and wheel agree, layers hold, importing stays light."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import convexlaw

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("theory", "solvers", "simulations", "figures", "paper_repro")


@pytest.fixture(scope="session")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def source_modules() -> set[str]:
    files = [
        p
        for p in (ROOT / "convexlaw").glob("**/*.py")
        if p.relative_to(ROOT / "convexlaw").parts[0] not in LINKED
    ]
    names = {str(p.relative_to(ROOT)) for p in files}
    for folder in LINKED:
        names |= {f"convexlaw/{p.relative_to(ROOT)}" for p in (ROOT / folder).glob("**/*.py")}
    return names


def test_links_point_to_the_folders() -> None:
    for name in LINKED:
        link = ROOT / "convexlaw" / name
        assert link.is_symlink(), name
        assert str(link.readlink()) == f"../{name}"


def test_every_package_is_listed(project: dict) -> None:
    listed = set(project["tool"]["setuptools"]["packages"])
    found = {str(Path(m).parent).replace("/", ".") for m in source_modules()}
    assert listed == found


def test_sdist_holds_the_repository_and_its_wheel_every_module(tmp_path: Path, project: dict) -> None:
    # built from a copy: an in-tree build folder of an earlier run must not leak into the wheel
    copy = tmp_path / "copy"
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    for name in filter(None, tracked):
        if (ROOT / name).is_symlink() or not (ROOT / name).exists():
            continue  # a clone without symlinks must build as well
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "-o", str(tmp_path), str(copy)],
        check=True,
        capture_output=True,
    )
    (source,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    copied = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    left_out = copied - packed - {".gitignore", ".pre-commit-config.yaml"}
    assert not {n for n in left_out if "egg-info" not in n and not n.startswith("build/")}
    with zipfile.ZipFile(wheel) as unpacked:
        names = set(unpacked.namelist())
        unpacked.extractall(tmp_path / "site")
    tracked_modules = {m for m in source_modules() if m in tracked or m.removeprefix("convexlaw/") in tracked}
    assert tracked_modules <= names
    assert "convexlaw/py.typed" in names
    assert "convexlaw/figures/convexlaw.mplstyle" in names
    logs = {
        f"convexlaw/{n}" for n in tracked if n.startswith(("simulations/logs/", "simulations/evidence_logs/"))
    }
    assert logs, "the packaged training logs are missing"
    assert logs <= names
    templates = {n for n in tracked if n.startswith("convexlaw/templates/")}
    assert templates <= names
    modules = sorted(
        m.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for m in tracked_modules
    )
    code = (
        "import importlib, sys; sys.path.insert(0, sys.argv[1]); import convexlaw\n"
        "assert convexlaw.__file__.startswith(sys.argv[1]), convexlaw.__file__\n"
        "for m in sys.argv[2:]:\n    if m != 'convexlaw.__main__': importlib.import_module(m)\n"
    )
    # -S-free but isolated (-I): the working folder and PYTHONPATH do not help
    subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path / "site"), *modules], check=True, cwd=tmp_path
    )


def test_import_is_light_and_silent() -> None:
    heavy = [
        "numpy",
        "pandas",
        "numba",
        "scipy",
        "matplotlib",
        "sklearn",
        "torch",
        "cvxpy",
        "statsmodels",
        "typer",
    ]
    code = f"import convexlaw, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["demo", "--help"], ["fit", "curve", "--help"]]
)
def test_command_line_help_needs_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom convexlaw.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "names = ('numpy', 'pandas', 'numba', 'scipy', 'matplotlib', 'torch')\n"
        "heavy = [m for m in names if m in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)


def test_all_public_names_resolve() -> None:
    import convexlaw

    for name in convexlaw.__all__:
        assert getattr(convexlaw, name) is not None
    assert set(convexlaw.__all__) <= set(dir(convexlaw))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        convexlaw.nothing  # noqa: B018


def test_no_file_names_a_machine_or_a_registry() -> None:
    words = ["pypi." + "org", "files.python" + "hosted", "/ro" + "ot/", "/wo" + "rk/", "/op" + "t/pypi"]
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    for name in filter(None, tracked):
        path = ROOT / name
        if (
            path.is_symlink()
            or not path.exists()
            or path.suffix in {".png", ".parquet", ".gz"}
            or "tfevents" in name
        ):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not [w for w in words if w in text], name


def test_public_constants_say_what_they_are() -> None:
    def documented(path: Path) -> set[str]:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        found = set()
        for node, after in itertools.pairwise(body):
            named = isinstance(node, ast.Assign | ast.AnnAssign)
            if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                found.add(ast.unparse(target))
        return found

    names = [m.name for m in pkgutil.walk_packages(convexlaw.__path__, "convexlaw.")]
    modules = [importlib.import_module(name) for name in names if name != "convexlaw.__main__"]
    homes = [(m, documented(Path(str(m.__file__)))) for m in modules]
    checked = 0
    for module in modules:
        if any(part.startswith("_") for part in module.__name__.split(".")):
            continue
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.ismodule(value) or callable(value):
                continue
            checked += 1
            assert any(name in names and getattr(home, name) is value for home, names in homes), (
                module,
                name,
            )
    assert checked > 30
