"""Cross-validation of SLOPE: what ten folds cost in paths, by process CPU time of one thread in the same run.

Problem: as in bench_slope.py (BH q = 0.1, equicorrelation rho, SNR 2), an automatic grid of at most 100 alphas,
10 contiguous folds, tol 1e-6, intercept. "loop" calls `slope_path` on the rows and alphas of every fold and
predicts, without anything shared. Every figure is the median of interleaved repeats.

    python benchmarks/bench_cv.py [--quick]
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import time
import warnings

import numpy as np
from sklearn.model_selection import KFold

from convexlaw import SlopeClassifierCV, SlopeCV, TwoLevelSlopeCV, slope_path

CASES = [
    (20000, 200, 0.5),
    (2000, 200, 0.5),
    (1000, 100, 0.5),
    (200, 2000, 0.0),
    (200, 2000, 0.5),
    (200, 20000, 0.5),
    (500, 500, 0.5),
]


def make(n, p, rho, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    k = max(10, min(n, p) // 20)
    b = np.zeros(p)
    b[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    mean = X @ b
    return np.asfortranarray(X), mean + np.std(mean) / np.sqrt(2.0) * rng.normal(size=n)


def cpu(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def loop(X, y, alphas):
    """Ten folds without anything shared, and the path on all rows."""
    slope_path(X, y)
    return np.stack(
        [
            ((y[test][:, None] - slope_path(X[train], y[train], alphas=alphas).predict(X[test])) ** 2).mean(
                axis=0
            )
            for train, test in KFold(10).split(X)
        ],
        axis=1,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("error")
    for shape in ((60, 90), (900, 30)):  # compile
        X, y = make(*shape, 0.0)
        SlopeCV(n_alphas=10).fit(X, y)
        SlopeClassifierCV(n_alphas=10).fit(X, y > np.median(y))
    print("| n | p | rho | alphas | path, s | 10-fold CV, paths | plain loop, paths | curves differ by |")
    print("|---|---|---|---|---|---|---|---|")
    for n, p, rho in CASES[: 3 if quick else None]:
        X, y = make(n, p, rho)
        rows = []
        for _ in range(1 if n * p >= 4_000_000 and p > n else 3):
            one, path = cpu(lambda: slope_path(X, y))
            cv, model = cpu(lambda: SlopeCV(cv=10).fit(X, y))
            plain, scores = cpu(lambda: loop(X, y, path.alphas))
            rows.append((one, cv / one, plain / one))
            off = np.abs(model.cv_scores_ / scores - 1.0).max()
        one, cv, plain = np.median(rows, axis=0)
        print(
            f"| {n} | {p} | {rho} | {path.alphas.size} | {one:.3f} | {cv:.1f} | {plain:.1f} | {off:.0e} |",
            flush=True,
        )
    X, y = make(1000, 100, 0.5)
    ratios = []
    for _ in range(3):
        one, _ = cpu(lambda: slope_path(X, y))
        ratios.append(cpu(lambda: TwoLevelSlopeCV(cv=10).fit(X, y))[0] / one)
    print(
        f"\nTwoLevelSlopeCV, 5 sequences, 1000 x 100: {np.median(ratios):.0f} paths of SLOPE (5 x 11 = 55)."
    )
    warnings.simplefilter("default")
    ratios = []
    for _ in range(2):
        labels = y > np.median(y)
        one, path = cpu(lambda: slope_path(X, labels, loss="logistic"))
        ratios.append(cpu(lambda: SlopeClassifierCV(cv=10).fit(X, labels))[0] / one)
    print(
        f"SlopeClassifierCV, logistic, 1000 x 100: {np.median(ratios):.1f} paths ({path.alphas.size} alphas)."
    )


if __name__ == "__main__":
    main()
