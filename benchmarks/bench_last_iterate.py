"""Every horizon of a run at once: sums of exponentials against the direct Numba sum.

One core, form tail, cosine and WSD. The direct sum is timed in the same process, at T = 1e5 and above on
sampled horizons and extrapolated by its number of terms; times are CPU times of the process. Memory is how
far the resident size of a fresh process rises while it computes the curve (Linux).

    python benchmarks/bench_last_iterate.py [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numba import njit

from convexlaw.theory import schedules
from convexlaw.theory.last_iterate import curve

BUILD = {"cosine": lambda t: schedules.cosine(t, 1e-3), "wsd": lambda t: schedules.wsd(t, 1e-3, decay=0.2)}


@njit(cache=False)
def direct_sum(lr, at):
    """Formula (1) at each horizon, one loop from the back with a running tail; D = G = 1."""
    out = np.empty(at.size)
    for i in range(at.size):
        k = at[i]
        tail = lr[k]
        noise = lr[k]
        for s in range(k - 1, -1, -1):
            noise += lr[s] * lr[s] / tail
            tail += lr[s]
        out[i] = 0.5 / tail + 0.5 * noise
    return out


def cpu(call, repeat):
    """Smallest CPU time of ``repeat`` calls, and the last result."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return min(times), result


def row(name, steps, horizons):
    lr = BUILD[name](steps)
    at = np.unique(np.linspace(0, steps - 1, horizons).astype(int))
    direct, expected = cpu(lambda: direct_sum(lr, at), 1)
    terms = at.sum() + at.size
    whole = direct * (steps * (steps + 1) / 2) / terms
    fast, values = cpu(lambda: curve(lr, form="tail", method="fast"), 3)
    free, _ = cpu(lambda: curve(lr, form="free", method="fast"), 3)
    error = np.abs(values[at] / expected - 1).max()
    note = "measured" if at.size == steps else f"extrapolated from {at.size} horizons"
    cells = [name, f"{steps:g}", f"{whole:.3g} ({note})", f"{fast:.3g}", f"{whole / fast:.0f}x"]
    return "| " + " | ".join([*cells, f"{error:.1e}", f"{free:.3g}"]) + " |"


def memory(name, steps):
    """Rise of the resident size in bytes a step, of a fresh process that computes the curve."""
    code = f"import bench_last_iterate as b; print(b.grown({name!r}, {steps}))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=sys.path[0], capture_output=True, text=True, check=True
    )
    return float(run.stdout) / steps


def grown(name, steps):
    curve(BUILD[name](100), form="tail", method="fast")
    # filled in pieces: building must not set the peak
    lr, h = np.empty(steps), schedules.shape(name)
    for start in range(0, steps, 10_000):
        stop = min(start + 10_000, steps)
        lr[start:stop] = 1e-3 * h(np.arange(start, stop) / steps)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from the present size
    before = peak()
    curve(lr, form="tail", method="fast")
    return 1024 * (peak() - before)


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="T = 1e4 and 1e5, few horizons")
    quick = parser.parse_args().quick
    direct_sum(np.ones(10), np.arange(10))
    for form in ("tail", "free"):
        curve(np.linspace(1, 2, 100), form=form, method="fast")
    print(
        "| schedule | T | direct sum, CPU s | fast tail, CPU s | ratio | relative error | fast free, CPU s |"
    )
    print("|---|---|---|---|---|---|---|")
    sizes = (
        [(10_000, 10_000), (100_000, 100)] if quick else [(10_000, 10_000), (100_000, 1000), (1_000_000, 200)]
    )
    for steps, horizons in sizes:
        for name in BUILD:
            print(row(name, steps, horizons), flush=True)
    print("\n| schedule | T | rise of memory, bytes a step |\n|---|---|---|")
    for steps in [1_000_000] if quick else [250_000, 1_000_000, 4_000_000]:
        for name in BUILD:
            print(f"| {name} | {steps:g} | {memory(name, steps):.0f} |", flush=True)


if __name__ == "__main__":
    main()
