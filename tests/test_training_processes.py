"""One schedule drives all processes of a data-parallel run: two processes give the curve of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from convexlaw.cli import main
from convexlaw.errors import ConvexlawError
from convexlaw.simulations._batch_text import parse_batch_sizes
from convexlaw.theory import schedules

STEPS = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("text")
    for k in range(30):
        (root / f"f{k}.py").write_text("".join(f"def f{k * i}(x):\n    return x + {i}\n" for i in range(9)))
    return root


def words(folder: Path, out: Path, dtype: str) -> list[str]:
    # odd sizes, and updates with fewer sequences than processes
    sizes = out.parent / "batch.csv"
    pd.DataFrame({"batch_size": [1, 4, 7, 2, 5] * (STEPS // 5)}).to_csv(sizes, index=False)
    line = (
        f"train --schedule wsd:steps={STEPS},peak=1e-2,decay=0.4,warmup=4 --width 16 --depth 2 --heads 2 "
        f"--context 8 --eval-every 5 --eval-sequences 9 --dtype {dtype}"
    )
    if dtype == "float64":  # blocks that all processes must draw alike
        line += " --grow-at 7 --grow-from 1"
    return [*line.split(), "--batch-schedule", str(sizes), "--corpus", str(folder), "--out", str(out)]


def test_two_processes_give_the_curve_of_one(folder: Path, tmp_path: Path):
    tolerances = {"float64": 1e-10, "float32": 1e-5}
    launches = []
    for dtype in tolerances:
        with pytest.raises(SystemExit) as stopped:
            main(words(folder, tmp_path / f"one-{dtype}.csv", dtype))
        assert stopped.value.code == 0
        launches.append(words(folder, tmp_path / f"two-{dtype}.csv", dtype))
    script = tmp_path / "both.py"
    script.write_text(
        # registered first, so called last: no thread of the group may be left when the interpreter goes away
        "import atexit, os, pathlib\n"
        "def threads():\n"
        "    names = [task.read_text() for task in pathlib.Path('/proc/self/task').glob('*/comm')]\n"
        f"    pathlib.Path({str(tmp_path)!r}, 'threads-' + os.environ['RANK']).write_text(''.join(names))\n"
        "atexit.register(threads)\n"
        "from convexlaw.cli import main\n"
        f"for words in {launches!r}:\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit as stopped:\n"
        "        if stopped.code:\n"
        "            raise\n"
    )
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    process = subprocess.Popen(
        [*launcher, str(script)], env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said, complaints = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the launcher's children as well
        process.wait()
        raise
    assert process.returncode == 0, complaints
    for rank in range(2):
        assert "gloo" not in (tmp_path / f"threads-{rank}").read_text()
    assert said.count("TrainLog: finished") == 2  # one process of each pair speaks
    for dtype, tolerance in tolerances.items():
        one, two = (pd.read_csv(tmp_path / f"{name}-{dtype}.csv", comment="#") for name in ("one", "two"))
        assert two.columns.tolist() == one.columns.tolist()
        assert len(two) == STEPS
        for name in ("step", "lr", "batch_size", "tokens"):
            np.testing.assert_array_equal(two[name], one[name])
        for name in ("loss", "grad_norm", "val_loss", "weight_norm"):
            np.testing.assert_allclose(two[name], one[name], rtol=tolerance, err_msg=name)
        assert "# processes: 2" in (tmp_path / f"two-{dtype}.csv").read_text()


def test_batch_schedules_in_samples_and_from_files(tmp_path: Path):
    assert parse_batch_sizes("5", np.ones(3)).tolist() == [5, 5, 5]
    assert parse_batch_sizes("0:4,10:6 30:1", np.ones(8)).tolist() == [4, 4, 4, 6, 6, 6, 1, 1]
    rates = schedules.parse("constant:steps=40,peak=1e-2,warmup=5")
    sizes = parse_batch_sizes("optimal:samples=400,min=2,multiple=2", rates)
    assert sizes.sum() == 400
    assert sizes.min() >= 2
    assert not np.any(sizes % 2)
    # no move of two sequences from one update to another lowers the noise sum eta^2 / (tail B)
    tail = np.append(np.cumsum(rates[::-1])[-2::-1], rates[-1])
    cost = rates**2 / tail
    gain, loss = cost * (1 / sizes - 1 / (sizes + 2)), cost * (1 / np.maximum(sizes - 2, 1e-9) - 1 / sizes)
    assert gain.max() <= loss[sizes > 2].min() * (1 + 1e-9)
    path = tmp_path / "b.csv"
    pd.DataFrame({"step": [0, 1], "batch_size": [3, 4]}).to_csv(path, index=False)
    assert parse_batch_sizes(str(path), np.ones(2)).tolist() == [3, 4]
    for text, said in (
        ("x", "'x' in batch schedule"),
        ("optimal:min=2", "lacks samples="),
        ("optimal:samples=9,most=3", "'most=3' in batch schedule"),
        ("optimal:samples=2", "samples"),
        ("5:4", "the first start is 0"),
        ("0:4 8:6 8:7", "starts increase"),
        ("0:0", "sizes are at least 1"),
        ("", "the first start is 0"),
        (str(tmp_path / "gone.csv"), "no such file"),
    ):
        with pytest.raises(ConvexlawError, match=said):
            parse_batch_sizes(text, np.ones(4))
    with pytest.raises(ConvexlawError, match="has 2 rows, the schedule 4 updates"):
        parse_batch_sizes(str(path), np.ones(4))
    pd.DataFrame({"batch_size": [3, 0.5]}).to_csv(path, index=False)
    with pytest.raises(ConvexlawError, match="data row 2: batch sizes are whole numbers"):
        parse_batch_sizes(str(path), np.ones(2))
    pd.DataFrame({"size": [3, 1]}).to_csv(path, index=False)
    with pytest.raises(ConvexlawError, match="needs a column batch_size"):
        parse_batch_sizes(str(path), np.ones(2))
