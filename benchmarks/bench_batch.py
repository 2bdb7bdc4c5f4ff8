"""Optimal batch schedules at a million steps, and the naive ways at sizes they reach, in the same process.

CPU times of one core. Peers: the plain greedy with a heap (whole batches), cvxpy with Clarabel (real ones).
Memory: how far the resident size of a fresh process rises while it computes the schedule (Linux).

    python benchmarks/bench_batch.py [--quick]
"""

from __future__ import annotations

import argparse
import heapq
import subprocess
import sys
import time
from pathlib import Path

import cvxpy as cp
import numpy as np

from convexlaw.theory import batch, schedules

LR = {
    "cosine": lambda t: schedules.with_warmup(schedules.cosine(t, 1e-3), 0.01),
    "wsd": lambda t: schedules.with_warmup(schedules.wsd(t, 1e-3, decay=0.2), 0.01),
    "linear": lambda t: schedules.linear(t, 1e-3),
}
JOBS = {
    "closed form": {"min_batch": 0, "integer": False},
    "real, 64 to 1024": {"min_batch": 64, "max_batch": 1024, "integer": False},
    "whole": {},
    "whole, 64 to 1024, multiples of 8": {"min_batch": 64, "max_batch": 1024, "multiple_of": 8},
    "wall clock, whole": {"cost": batch.WallClock(64.0, 0.75)},
    "cost B + B^2/1000, real": {"cost": lambda b: b + b * b / 1000, "integer": False},
}


def cpu(call, repeat=3):
    times = []
    for _ in range(repeat):
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return min(times), result


def greedy(lr, samples):
    """Sample after sample to the largest gain."""
    tails = np.cumsum(lr[::-1])[::-1]
    c = lr**2 / np.append(tails[1:], lr[-1])
    n = np.ones(lr.size, dtype=int)
    heap = [(-x / 2, i) for i, x in enumerate(c)]
    heapq.heapify(heap)
    for _ in range(samples - lr.size):
        _, i = heap[0]
        n[i] += 1
        heapq.heapreplace(heap, (-c[i] / (n[i] * (n[i] + 1)), i))
    return n


def solver(lr, samples, low, high):
    tails = np.cumsum(lr[::-1])[::-1]
    c = lr**2 / np.append(tails[1:], lr[-1])
    mean = samples / lr.size
    b = cp.Variable(lr.size)
    goal = cp.Minimize(cp.sum(cp.multiply(c / c.mean(), cp.inv_pos(b))))
    cp.Problem(goal, [cp.sum(b) == lr.size, b >= low / mean, b <= high / mean]).solve(solver=cp.CLARABEL)
    return b.value * mean


def peers(steps):
    lr = LR["wsd"](steps)
    print(f"\n| T = {steps} (wsd) | peer, CPU s | convexlaw, CPU s | ratio | noise over the peer's - 1 |")
    print("|---|---|---|---|---|")
    samples = 256 * steps
    slow, theirs = cpu(lambda: greedy(lr, samples), 1)
    fast, mine = cpu(lambda: batch.optimal_batch_sizes(lr, samples))
    excess = batch.noise_sum(lr, mine) / batch.noise_sum(lr, theirs) - 1
    print(f"| whole batches, heap greedy | {slow:.3g} | {fast:.3g} | {slow / fast:.0f}x | {excess:.1e} |")
    slow, theirs = cpu(lambda: solver(lr, samples, 64, 1024), 1)
    limits = {"min_batch": 64, "max_batch": 1024, "integer": False}
    fast, mine = cpu(lambda: batch.optimal_batch_sizes(lr, samples, **limits))
    excess = batch.noise_sum(lr, mine) / batch.noise_sum(lr, theirs) - 1
    print(
        f"| real batches with limits, cvxpy | {slow:.3g} | {fast:.3g} | {slow / fast:.0f}x | {excess:.1e} |"
    )


def rise(steps, job):
    """Bytes a step that a fresh process needs beyond its learning rates."""
    code = f"import bench_batch as b; print(b.grown({steps}, {job!r}))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=sys.path[0], capture_output=True, text=True, check=True
    )
    return float(run.stdout) / steps


def grown(steps, job):
    lr = LR["wsd"](steps)
    batch.optimal_batch_sizes(lr[:1000], 256e3, **JOBS[job])
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from the present size
    before = peak()
    batch.optimal_batch_sizes(lr, 256.0 * steps, **JOBS[job])
    return 1024 * (peak() - before)


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="T = 1e5 instead of 1e6, peers at T = 1000")
    quick = parser.parse_args().quick
    steps = 100_000 if quick else 1_000_000
    print(f"| T = {steps}, N = 256 T: CPU s | " + " | ".join(LR) + " |\n|---|" + "---|" * len(LR))
    for name, options in JOBS.items():
        times = []
        for build in LR.values():
            lr = build(steps)
            times.append(cpu(lambda lr=lr, o=options: batch.optimal_batch_sizes(lr, 256.0 * steps, **o))[0])
        print(f"| {name} | " + " | ".join(f"{t:.3g}" for t in times) + " |", flush=True)
    for k, options in ((4, {"multiple_of": 8}), (None, {"powers_of_two": True})):
        times = []
        for build in LR.values():
            lr = build(steps)
            call = lambda lr=lr, k=k, o=options: batch.stages(lr, 256.0 * steps, k, **o)  # noqa: E731
            call()
            times.append(cpu(call, 1)[0])
        name = "powers of two, every step" if k is None else f"{k} stages, multiples of 8"
        print(f"| {name} | " + " | ".join(f"{t:.3g}" for t in times) + " |", flush=True)
    peers(1000 if quick else 10_000)
    print("\n| rise of memory, bytes a step (wsd) | T = 250000 | T = 1000000 |\n|---|---|---|")
    for job in ("closed form", "whole"):
        print(f"| {job} | {rise(250_000, job):.0f} | {rise(1_000_000, job):.0f} |", flush=True)


if __name__ == "__main__":
    main()
