"""Speed of the fits against peers in the same run, and their accuracy on public data.

python benchmarks/bench_fit.py [--quick]          ratios of process CPU time
python benchmarks/bench_fit.py --accuracy         tables on the public data (needs ../shared or
$CONVEXLAW_SHARED)
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from convexlaw import ConvergenceWarning, fit_curves, fit_table, read_runs
from convexlaw.solvers.fit import Problem, solve
from convexlaw.theory.laws import Chinchilla, MultiPower, RunPath, curve_law

SHARED = Path(os.environ.get("CONVEXLAW_SHARED", Path(__file__).resolve().parents[2] / "shared"))
SIZES = (25, 100, 400)


def table(rows: list[dict[str, object]]) -> None:
    """Print rows as a Markdown table."""
    names = list(rows[0])
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()) + " |")
    print()


def best_of(repeats: int, call) -> float:
    """Smallest process CPU time of several calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def public_schedule(name: str) -> np.ndarray:
    """Learning rates of the Multi-Power curves (25M, 100M, 400M)."""
    steps = 16000 if name.startswith("wsdcon") else int(name.split("_")[-1])
    t = np.arange(steps)
    lr = np.full(steps, 3e-4)
    if name.startswith("cosine"):
        lr = 3e-5 + 1.35e-4 * (1 + np.cos(np.pi * (t - 2160) / (steps - 2160)))
    elif name.startswith("wsd_"):
        lr = np.where(t < 20000, 3e-4, 3e-4 * 0.1 ** ((t - 20000) / 4000))
    elif name.startswith("wsdld_"):
        lr = np.where(t < 20000, 3e-4, 3e-4 - 2.7e-4 * (t - 20000) / 4000)
    elif name.startswith("wsdcon_"):
        lr[8000:] = int(name.split("_")[1]) * 1e-5
    lr[:2160] = np.linspace(0, 3e-4, 2160)
    return lr


def sweep_schedule(run: pd.Series) -> np.ndarray:
    """Learning rates of an lr-scheduling run, one step longer than its updates."""
    steps, warmup, peak = int(run.iterations), int(run.warmup), float(run.base_lr)
    t = np.arange(steps + 1.0)
    if run.schedule == "cos":
        last = run.cos_final_lr
        end = 0.1 * peak if not np.isfinite(last) or last < 0 else float(last)
        start = 0.01 * peak
        up = start + (peak - start) * (1 - np.cos(np.pi * t / (warmup - 1))) / 2
        part = np.clip((t - warmup + 1) / (steps - warmup), 0, 1)
        return np.where(t < warmup, up, end + (peak - end) * (1 + np.cos(np.pi * part)) / 2)
    lr = np.where(t < warmup, peak * (0.01 + 0.99 * t / warmup), peak)
    if run.cooldown_fraction > 0:
        begin = steps - round(run.cooldown_fraction * steps)
        part = np.clip((t - begin) / (steps - begin), 0, 1)
        down = 1 - (np.sqrt(part) if run.decay_type == "sqrt" else part)
        lr = np.where(t >= begin, np.minimum(lr, peak * down), lr)
    return lr


# ---------------------------------------------------------------------------------------------------- speed


def curve_speed(quick: bool) -> list[dict[str, object]]:
    """Fits of three 24k-step curves: each law from building its sums to the multi-start optimum."""
    names = ("constant_24000", "cosine_24000", "wsd_20000_24000")
    truth = MultiPower(3.04, 0.525, 364.0, 0.508, 2.07, 0.583, 0.641)
    rng = np.random.default_rng(0)
    paths, losses = [], []
    for name in names:
        lr = public_schedule(name)
        at = np.arange(2176, 24000, 128)
        paths.append(RunPath.make(lr, at, None, 0.1, 0.02))
        losses.append(truth.predict(lr, at) * np.exp(1e-3 * rng.normal(size=at.size)))
    y = np.concatenate(losses)

    def fit(name: str, polish: int = 8):
        law = curve_law(name)
        problem = Problem(law.columns(paths), y, law.linear(), law.nonlinear, np.ones(y.size))
        return solve(problem, polish=polish)

    rows = []
    laws = ("cvx4q", "rc4", "cvx5", "tissue", "multipower")
    seconds = {}
    for name in laws:
        short = name == "multipower"
        polish = 2 if short and quick else 8
        fit("cvx4q" if short else name)  # compile
        if short:
            fit(name, 1)
        found = fit(name, polish) if not short else None
        seconds[name] = best_of(1 if short else 5, lambda n=name, p=polish: fit(n, p))
        starts = found.starts if found else polish
        rows.append(
            {
                "law": name,
                "starts followed": starts,
                "CPU s": seconds[name],
                "CPU s a start": seconds[name] / starts,
            }
        )
    for row in rows:
        row["Multi-Power / this"] = seconds["multipower"] / float(row["CPU s"])
        row["a start"] = float(rows[-1]["CPU s a start"]) / float(row["CPU s a start"])
    return rows


def points() -> tuple[pd.DataFrame, str]:
    """The public table of 240 rows, or one of its shape where it is not here."""
    path = SHARED / "data" / "chinchilla" / "points.csv"
    if path.exists():
        return pd.read_csv(path).sort_values("loss").iloc[:-5], "public points"
    rng = np.random.default_rng(0)
    N = np.exp(rng.uniform(np.log(6e7), np.log(1.2e10), 240))
    D = np.exp(rng.uniform(np.log(3e8), np.log(3e11), 240))
    loss = Chinchilla(1.82, 478.0, 2143.0, 0.347, 0.367).loss(N, D) * np.exp(5e-3 * rng.normal(size=240))
    return pd.DataFrame({"N": N, "D": D, "loss": loss}), "simulated points"


def chinchilla_speed(quick: bool) -> list[dict[str, object]]:
    """One multi-start fit against the `chinchilla` package on the grid of its README, and 1000 bootstraps."""
    frame, source = points()
    fit_table(frame)
    ours = best_of(5, lambda: fit_table(frame))
    fit = fit_table(frame)
    start = time.process_time()
    fit.interval(resamples=1000, progress=False)
    boot = time.process_time() - start
    rows: list[dict[str, object]] = [
        {"what": f"convexlaw, multi-start ({source}, {len(frame)} rows)", "CPU s": ours, "ratio": 1.0},
        {"what": "convexlaw, 1000 bootstrap refits", "CPU s": boot, "ratio": boot / ours},
    ]
    try:
        import tempfile

        from chinchilla import Chinchilla as Peer
        from chinchilla._metrics import log_huber
        from scipy import optimize
    except ImportError:
        print("the chinchilla package is not installed: no ratio to it\n")
        return rows
    import logging

    logging.disable(logging.WARNING)
    grid = {
        "E": np.linspace(1, 2, 5),
        "a": np.linspace(1, 10, 5),
        "b": np.linspace(1, 10, 5),
        "alpha": np.linspace(0.1, 0.7, 5),
        "beta": np.linspace(0.1, 0.7, 5),
    }
    with tempfile.TemporaryDirectory() as folder:
        frame.assign(C=6 * frame.N * frame.D)[["C", "N", "D", "loss"]].to_csv(
            Path(folder) / "df.csv", index=False
        )
        own = Peer(folder, param_grid=grid, log_level=50)
        same = Peer(folder, param_grid=grid, log_level=50, loss_fn=partial(log_huber, delta=1e-3))
    for peer, loss, few in (
        (own, "its own loss", 25 if quick else None),
        (same, "Huber 1e-3 on log loss", 100),
    ):
        # what its .fit does for each start, in one process and without its figures
        peer._const = {
            "log_N": np.log(frame.N.to_numpy(np.longdouble)),
            "log_D": np.log(frame.D.to_numpy(np.longdouble)),
            "y_true": frame.loss.to_numpy(np.longdouble),
            "weights": None,
        }
        peer._autoscale_range = np.array([np.ptp(v) for v in grid.values()])
        starts = np.array(list(itertools.product(*grid.values()))) / peer._autoscale_range
        pick = np.random.default_rng(0).permutation(len(starts))[:few]
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = [optimize.minimize(peer._evaluate_params, starts[i], method="BFGS") for i in pick]
        whole = (time.process_time() - begin) / len(pick) * len(starts)
        best = min((r for r in results if np.isfinite(r.fun)), key=lambda r: r.fun)
        E, a, b, alpha, beta = map(float, best.x * peer._autoscale_range)
        theirs = Chinchilla(E, np.exp(a), np.exp(b), alpha, beta)
        size = np.abs(np.log(frame.loss) - np.log(theirs.loss(frame.N, frame.D)))
        huber = np.where(size <= 1e-3, size**2 / 2, 1e-3 * (size - 5e-4)).sum()
        scaled = "" if len(pick) == len(starts) else f", {len(pick)} run and scaled up"
        rows.append(
            {
                "what": f"chinchilla 0.2, README grid of {len(starts)} starts{scaled}, {loss}",
                "CPU s": whole,
                "ratio": whole / ours,
                "Huber sum": f"{huber:.6e}",
            }
        )
    rows[0]["Huber sum"] = f"{fit.objective:.6e}"
    rows[1]["Huber sum"] = ""
    return rows


# ------------------------------------------------------------------------------------------------- accuracy

TRAIN_SETS = (
    ("cosine_24000", "constant_24000", "wsdcon_9"),
    ("cosine_24000", "wsdcon_9"),
    ("cosine_24000",),
    ("cosine_72000",),
    ("cosine_24000", "wsd_20000_24000"),
    ("constant_24000", "wsdld_20000_24000"),
    ("wsdcon_3", "wsdcon_9", "wsdcon_18"),
)
LAWS = (
    ("rc4", True),
    ("rc4", False),
    ("cvx4q", True),
    ("cvx4q", False),
    ("tissue", False),
    ("multipower", False),
)


def label(law: str, prior: bool) -> str:
    return f"{law} + prior" if prior else law


def multi_power_curves(laws=LAWS, quick: bool = False) -> None:
    """Default training set by size, and the mean over seven training sets and three sizes."""
    frame = pd.read_csv(SHARED / "data" / "multi_power_law" / "curves.csv").rename(
        columns={"schedule": "run"}
    )
    first, cells = [], {}
    for law, prior in laws:
        row: dict[str, object] = {"law": label(law, prior)}
        errors = []
        for size in SIZES:
            part = frame[frame.model_m == size]
            runs = read_runs(part[["run", "step", "lr", "loss"]], schedule=public_schedule)
            # a Multi-Power fit of a 72k-step cosine takes minutes: the default set only
            for train in TRAIN_SETS[:1] if quick or law == "multipower" else TRAIN_SETS:
                fit = fit_curves(runs, law, train=list(train), weight_decay=0.1, alpha_prior=prior)
                score = fit.score().mean(numeric_only=True)
                errors.append(1e3 * score["mae"])
                if train == TRAIN_SETS[0]:
                    row[f"{size}M MAE e-3"] = 1e3 * score["mae"]
                    row[f"{size}M R2"] = f"{score['r2']:.5f}"
        first.append(row)
        cells[label(law, prior)] = np.array(errors)
    print("Multi-Power curves, trained on cosine_24000, constant_24000, wsdcon_9:\n")
    table(first)
    if quick:
        return
    base = cells["cvx4q"]
    print(
        "Seven training sets by three sizes (21 cells), mean test MAE e-3 and geometric mean ratio to "
        "cvx4q:\n"
    )
    table(
        [
            {
                "law": name,
                "MAE e-3": float(e.mean()),
                "ratio": float(np.exp(np.mean(np.log(e / base)))),
                "better in": f"{int(np.sum(e < base))} of {e.size}",
            }
            for name, e in cells.items()
            if e.size == base.size
        ]
    )


def sweep() -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = SHARED / "data" / "lr_scheduling"
    return pd.read_csv(folder / "runs.csv"), pd.read_csv(folder / "history.csv.gz")


def final_losses() -> None:
    """152 final validation losses of 124M models, three splits."""
    runs, _ = sweep()
    runs = runs[
        (runs.params == 123587328)
        & (runs.dataset == "slimpajama")
        & runs.final_val_loss.notna()
        & (runs.base_lr < 4e-3)
    ]
    frame = pd.DataFrame({"run": runs.run_id, "step": runs.iterations, "val_loss": runs.final_val_loss})
    read = read_runs(frame, schedule={r.run_id: sweep_schedule(r) for _, r in runs.iterrows()})
    short_wsd = (runs.schedule == "wsd") & (runs.cooldown_fraction == 0.2) & (runs.decay_type != "sqrt")
    splits = {
        "<= 25k -> 35k, 50k": runs.iterations <= 25000,
        "peaks 5e-4, 1e-3 -> 1e-4, 2e-3, 3e-3": runs.base_lr.isin([5e-4, 1e-3]),
        "cosine, WSD .2 linear -> rest": (runs.schedule == "cos") | short_wsd,
    }
    rows = []
    for law, prior in (("cvx6", False), *LAWS[:4], ("cd3", False), ("tissue", False)):
        row: dict[str, object] = {"law": label(law, prior)}
        for name, mask in splits.items():
            fit = fit_curves(read, law, train=list(runs.run_id[mask]), weight_decay=0.1, alpha_prior=prior)
            rest = fit.residuals()
            rest = rest[~rest.trained]
            row[name] = f"{1e3 * np.abs(rest.predicted - rest.loss).mean():.2f}"
        rows.append(row)
    print(f"{len(runs)} final losses, MAE e-3 nats on the runs not fitted:\n")
    table(rows)


def stand_in() -> None:
    """Stable run and shortest 20 % cooldown -> cooldowns of longer horizons, on 33M, 53M and 124M."""
    runs, history = sweep()
    groups = {
        "33M 1e-3": ("r226", "r021", ("r022",)),
        "53M 1e-3": ("r202", "r023", ("r024",)),
        "124M 1e-4": ("r230", "r039", ("r040",)),
        "124M 5e-4": ("r231", "r043", ("r044", "r045", "r046")),
        "124M 5e-4, other code version": ("r214", "r013", ("r014",)),
        "124M 1e-3": ("r232", "r049", ("r050", "r051", "r052")),
        "124M 2e-3": ("r233", "r055", ("r056", "r057", "r058")),
    }
    table_rows, mean = [], {}
    for group, (stable, short, longer) in groups.items():
        parts, schedules = [], {}
        horizon = int(runs[runs.run_id == short].iterations.iloc[0])
        for run_id in (stable, short, *longer):
            run = runs[runs.run_id == run_id].iloc[0]
            rows = history[(history.run_id == run_id) & history.val_loss.notna()]
            if run_id == stable:
                rows = rows[rows.step <= horizon]
            else:
                rows = rows[rows.step >= run.iterations - round(0.2 * run.iterations)]
            parts.append(pd.DataFrame({"run": run_id, "step": rows.step, "val_loss": rows.val_loss}))
            schedules[run_id] = sweep_schedule(run)
        read = read_runs(pd.concat(parts), schedule=schedules)
        row: dict[str, object] = {"group": group}
        for law, prior in LAWS:
            if (law, prior) == ("rc4", False):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fit = fit_curves(
                    read, law, train=[stable, short], weight_decay=0.1, alpha_prior=prior, split="val"
                )
            mae = 1e3 * float(fit.score()["mae"].mean())
            row[label(law, prior)] = f"{mae:.2f}"
            mean.setdefault(label(law, prior), []).append(mae)
        table_rows.append(row)
    table_rows.append({"group": "mean", **{k: f"{np.mean(v):.2f}" for k, v in mean.items()}})
    print("Stand-in for the runs kept aside: test MAE e-3 nats on the cooldowns of longer horizons\n")
    table(table_rows)


def unseen_peaks() -> None:
    """124M WSD runs at one peak fitted, all other peaks predicted (validation losses)."""
    runs, history = sweep()
    runs = runs[
        (runs.params == 123587328)
        & (runs.dataset == "slimpajama")
        & (runs.schedule == "wsd")
        & (runs.grad_norm_rerun == 0)
        & runs.cooldown_fraction.isin([0.0, 0.2])
        & (runs.decay_type.notna())
        & (runs.base_lr < 2.5e-3)
    ]
    parts, schedules = [], {}
    for _, run in runs.iterrows():
        rows = history[(history.run_id == run.run_id) & history.val_loss.notna()]
        parts.append(pd.DataFrame({"run": run.run_id, "step": rows.step, "val_loss": rows.val_loss}))
        schedules[run.run_id] = sweep_schedule(run)
    read = read_runs(pd.concat(parts), schedule=schedules)
    peaks = sorted(runs.base_lr.unique())
    table_rows = []
    for law, prior in (*LAWS[:5], ("cvx6", False)):
        row: dict[str, object] = {"law": label(law, prior)}
        errors = []
        for peak in peaks:
            train = list(runs.run_id[runs.base_lr == peak])
            options = {"fixed": {"r": 0.0}} if law == "cvx6" else {}  # one peak cannot tell r
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fit = fit_curves(
                    read, law, train=train, weight_decay=0.1, alpha_prior=prior, split="val", **options
                )
            errors.append(1e3 * float(fit.score()["mae"].mean()))
            row[f"fitted at {peak:g}"] = f"{errors[-1]:.1f}"
        row["mean"] = f"{np.mean(errors):.1f}"
        table_rows.append(row)
    print(f"{len(runs)} WSD runs of 124M, fitted at one peak, MAE e-3 nats at the three others:\n")
    table(table_rows)
    table_rows = []
    for law, prior in LAWS[:5]:
        errors = []
        for pair in itertools.combinations(peaks, 2):
            train = list(runs.run_id[runs.base_lr.isin(pair)])
            fit = fit_curves(read, law, train=train, weight_decay=0.1, alpha_prior=prior, split="val")
            errors.append(1e3 * float(fit.score()["mae"].mean()))
        table_rows.append(
            {"law": label(law, prior), **{f"pair {i + 1}": f"{e:.1f}" for i, e in enumerate(errors)}}
            | {"mean": f"{np.mean(errors):.1f}"}
        )
    print("The same runs, fitted at two peaks, at the two others:\n")
    table(table_rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--accuracy", action="store_true")
    options = parser.parse_args()
    if options.accuracy:
        stand_in()
        final_losses()
        unseen_peaks()
        multi_power_curves(quick=options.quick)
        return
    print("Three 24k-step curves, one core:\n")
    table(curve_speed(options.quick))
    print("Chinchilla law:\n")
    table(chinchilla_speed(options.quick))


if __name__ == "__main__":
    main()
