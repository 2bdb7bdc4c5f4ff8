"""Coverage of the intervals of fits by simulation: how often nominal 95 % limits hold the truth.

python benchmarks/check_coverage.py [--sets 1000] [--jobs 2] [--only WORD]

Every data set is drawn from a known law, fitted, and given intervals by both methods (200 resamples). Printed
with standard errors: the coverage of each parameter, and of a prediction outside the data.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

from convexlaw import ExtrapolationWarning, fit_curves, fit_table, read_runs
from convexlaw.theory.laws import Chinchilla, CVX4q
from convexlaw.theory.schedules import parse

CURVE_LAW = CVX4q(2.0, 0.5, 20.0, 0.45)
RUNS = {
    "constant": parse("constant:steps=400,peak=1e-3,warmup=20"),
    "cosine": parse("cosine:steps=400,peak=1e-3,warmup=20"),
    "wsd": parse("wsd:steps=400,peak=1e-3,decay=0.3,warmup=20"),
}
AHEAD = parse("wsd:steps=800,peak=1e-3,decay=0.2,warmup=20")  # twice as long, another cooldown
AT = np.arange(20, 400, 4)
TABLE_LAW = Chinchilla(E=1.8, A=480.0, B=2100.0, alpha=0.35, beta=0.37)
FLOPS = 1e21
RESAMPLES = 200


def noise(rng: np.random.Generator, n: int, correlation: float, heavy: bool) -> np.ndarray:
    """Stationary AR(1) noise of variance 1, or Student noise of 3 degrees of freedom."""
    if heavy:
        return rng.standard_t(3, n) / np.sqrt(3)
    e = rng.normal(size=n)
    for i in range(1, n):
        e[i] = correlation * e[i - 1] + np.sqrt(1 - correlation**2) * e[i]
    return e


def curve_hits(seed: int, correlation: float, heavy: bool, prior: bool) -> dict[str, list[bool]]:
    """Which limits of one cvx4q fit of three curves hold the truth."""
    rng = np.random.default_rng([seed, 5])
    parts = [
        pd.DataFrame(
            {
                "run": name,
                "step": AT,
                "loss": CURVE_LAW.predict(lr, AT) * np.exp(1.5e-3 * noise(rng, AT.size, correlation, heavy)),
            }
        )
        for name, lr in RUNS.items()
    ]
    fit = fit_curves(read_runs(pd.concat(parts), schedule=RUNS), "cvx4q", alpha_prior=prior)
    truth = np.array([CURVE_LAW.params[n] for n in CVX4q.names()])
    hits = {}
    for method in ("profile", "bootstrap"):
        options = {"resamples": RESAMPLES} if method == "bootstrap" else {}
        limits = fit.interval(method=method, **options)
        hits[method] = list((limits["low"] <= truth) & (truth <= limits["high"]))
    low, high = fit.band(AHEAD, at=[AHEAD.size - 1])
    hits["bootstrap"].append(bool(low[0] <= CURVE_LAW.predict(AHEAD, [AHEAD.size - 1])[0] <= high[0]))
    return hits


def table_hits(seed: int, random: bool, heavy: bool) -> dict[str, list[bool]]:
    """Which limits of one Chinchilla fit hold the truth: an 8 x 8 grid, or 240 rows spread at random."""
    rng = np.random.default_rng([seed, 7])
    if random:
        N = np.exp(rng.uniform(np.log(6e7), np.log(1.2e10), 240))
        D = np.exp(rng.uniform(np.log(3e8), np.log(3e11), 240))
    else:
        N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 1e10, 8), np.geomspace(1e9, 1e11, 8)))
    loss = TABLE_LAW.loss(N, D) * np.exp(5e-3 * noise(rng, N.size, 0.0, heavy))
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": loss}))
    truth = np.array(list(TABLE_LAW.params.values()))
    hits = {}
    for method in ("profile", "bootstrap"):
        options = {"resamples": RESAMPLES} if method == "bootstrap" else {}
        limits = fit.interval(method=method, **options)
        hits[method] = list((limits["low"] <= truth) & (truth <= limits["high"]))
    best = fit.optimal(FLOPS, resamples=RESAMPLES)
    n, d = TABLE_LAW.optimal(FLOPS)
    for (low, high), value in (
        (best.N_interval, float(n)),
        (best.loss_interval, float(TABLE_LAW.loss(n, d))),
    ):
        hits["bootstrap"].append(low <= value <= high)
    return hits


CURVE_NAMES = (*CVX4q.names(), "loss ahead")
TABLE_NAMES = (*TABLE_LAW.params, "best N", "its loss")
CASES = {
    "cvx4q, independent noise, no prior": (curve_hits, CURVE_NAMES, (0.0, False, False)),
    "cvx4q, independent noise, prior (default)": (curve_hits, CURVE_NAMES, (0.0, False, True)),
    "cvx4q, Student noise (3), no prior": (curve_hits, CURVE_NAMES, (0.0, True, False)),
    "cvx4q, AR(1) noise .7, no prior": (curve_hits, CURVE_NAMES, (0.7, False, False)),
    "chinchilla, 8 x 8 grid": (table_hits, TABLE_NAMES, (False, False)),
    "chinchilla, 8 x 8 grid, Student noise (3)": (table_hits, TABLE_NAMES, (False, True)),
    "chinchilla, 240 rows at random": (table_hits, TABLE_NAMES, (True, False)),
}


def coverage(case: str, sets: int, jobs: int = 1) -> dict[str, np.ndarray]:
    """Share of ``sets`` data sets whose limits hold the truth, by method."""
    from joblib import Parallel, delayed

    one, _, options = CASES[case]

    def quiet(seed: int) -> dict[str, list[bool]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return one(seed, *options)

    rows = Parallel(n_jobs=jobs)(delayed(quiet)(seed) for seed in range(sets))
    return {method: np.mean([row[method] for row in rows], axis=0) for method in ("profile", "bootstrap")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for case, (_, names, _) in CASES.items():
        if options.only not in case:
            continue
        print(f"{case} ({options.sets} data sets):\n", flush=True)
        print("| method | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
        for method, values in coverage(case, options.sets, options.jobs).items():
            cells = [f"{100 * v:.1f} +- {100 * np.sqrt(v * (1 - v) / options.sets):.1f}" for v in values]
            cells += [""] * (len(names) - len(cells))
            print(f"| {method} | " + " | ".join(cells) + " |")
        print(flush=True)


if __name__ == "__main__":
    main()
