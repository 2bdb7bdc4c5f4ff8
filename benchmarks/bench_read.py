"""How fast and in how much memory logs are read, against plain pandas and plain tensorboard.

``OMP_NUM_THREADS=1 python benchmarks/bench_read.py [--quick]`` prints a Markdown table.
Every figure is process CPU time on
one core (the median of the repeats, the two sides in turn in one process) or the peak resident memory of a
process of its own.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from convexlaw import read_runs


def write_csv(path: Path, rows: int) -> None:
    """A dense log: step, lr, loss at full precision."""
    rng = np.random.default_rng(0)
    steps = np.arange(rows)
    losses = (2 + 8 / (1 + steps / 100) ** 0.5) * np.exp(0.02 * rng.standard_normal(rows))
    rates = 1e-3 * np.minimum(1, (steps + 1) / 3000) * np.minimum(1, (rows - steps) / (0.2 * rows))
    pd.DataFrame({"step": steps, "lr": rates, "loss": losses}).to_csv(path, index=False)


def write_events(folder: Path, scalars: int) -> Path:
    """Half training losses, half learning rates, by tensorboard's own writer."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder), max_queue_size=100_000, flush_secs=600)
    for k in range(scalars):
        tag, value = ("train/loss", 2 + 1 / (1 + k)) if k % 2 else ("lr", 1e-3)
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(event_pb2.Event(wall_time=1e9 + k, step=k // 2, summary=summary))
    writer.close()
    return next(folder.glob("events.*"))


def tensorboard_alone(path: Path) -> int:
    """What a user would write: an accumulator that keeps every scalar."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(path), size_guidance={"scalars": 0}, purge_orphaned_data=False)
    accumulator.Reload()
    return sum(len(accumulator.Scalars(tag)) for tag in accumulator.Tags()["scalars"])


def in_turn(repeats: int, *sides: Callable[[], object]) -> list[float]:
    """Median CPU seconds of each side, the sides in turn."""
    times: list[list[float]] = [[] for _ in sides]
    for side in sides:  # imports and the first touch of memory are nobody's speed
        side()
    for _ in range(repeats):
        for k, side in enumerate(sides):
            start = time.process_time()
            result = side()
            times[k].append(time.process_time() - start)
            del result
    return [statistics.median(t) for t in times]


def peak_memory(code: str) -> float:
    """Peak resident memory (MB) of a fresh interpreter that runs ``code``: its own high-water mark."""
    script = (
        "from pathlib import Path\nimport pandas as pd\nfrom convexlaw import read_runs\n"
        "import convexlaw.runs.table\nPath('/proc/self/clear_refs').write_text('5')\n"
        f"{code}\n"
        "line = next(x for x in Path('/proc/self/status').read_text().splitlines() if "
        "x.startswith('VmHWM'))\n"
        "print(line.split()[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, fewer repeats")
    quick = parser.parse_args().quick
    rows, scalars, repeats = (200_000, 20_000, 5) if quick else (2_000_000, 200_000, 9)
    lines = [
        "| what | plain tool (s) | read_runs (s) | speed against it | peak memory, plain | read_runs |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "log.csv"
        write_csv(path, rows)
        packed = folder / "packed.csv.gz"
        packed.write_bytes(gzip.compress(path.read_bytes(), 1))
        ragged = folder / "cut.csv"
        ragged.write_bytes(path.read_bytes()[:-1])
        read_runs(pd.DataFrame({"step": [0], "loss": [1.0]}))  # imports
        for what, file in (
            (f"CSV, {rows:.0e} rows x 3 ({path.stat().st_size / 1e6:.0f} MB)", path),
            ("the same without its last line end", ragged),
            ("the same gzipped", packed),
        ):
            plain, ours = in_turn(repeats, lambda f=file: pd.read_csv(f), lambda f=file: read_runs(f))
            memory = [peak_memory(f"{call}({str(file)!r})") for call in ("pd.read_csv", "read_runs")]
            lines.append(
                f"| {what} | {plain:.3f} | {ours:.3f} | {plain / ours:.2f}x | {memory[0]:.0f} MB | "
                f"{memory[1]:.0f} MB |"
            )
        events = write_events(folder / "events", scalars)
        plain, ours = in_turn(3, lambda: tensorboard_alone(events), lambda: read_runs(events))
        memory = [peak_memory(f"read_runs({str(events)!r})")]
        size = events.stat().st_size / 1e6
        lines.append(
            f"| TensorBoard, {scalars:.0e} scalars ({size:.0f} MB) | {plain:.2f} | {ours:.2f} | "
            f"{plain / ours:.2f}x | - | {memory[0]:.0f} MB |"
        )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
