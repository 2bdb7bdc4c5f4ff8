"""Numbers of the laws on the public sweeps: final losses, unseen peaks, horizons, seven training sets."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from convexlaw import fit_curves, read_runs
from convexlaw.solvers.fit_curves import measured_transfer

pytestmark = [pytest.mark.shared, pytest.mark.slow]


def schedule(run):
    """Learning rates of an lr-scheduling run, one step longer than its updates."""
    steps, warmup, peak = int(run.iterations), int(run.warmup), float(run.base_lr)
    t = np.arange(steps + 1.0)
    if run.schedule == "cos":
        last = run.cos_final_lr
        end = 0.1 * peak if not np.isfinite(last) or last < 0 else float(last)
        up = 0.01 * peak + 0.99 * peak * (1 - np.cos(np.pi * t / (warmup - 1))) / 2
        part = np.clip((t - warmup + 1) / (steps - warmup), 0, 1)
        return np.where(t < warmup, up, end + (peak - end) * (1 + np.cos(np.pi * part)) / 2)
    lr = np.where(t < warmup, peak * (0.01 + 0.99 * t / warmup), peak)
    if run.cooldown_fraction > 0:
        begin = steps - round(run.cooldown_fraction * steps)
        part = np.clip((t - begin) / (steps - begin), 0, 1)
        down = 1 - (np.sqrt(part) if run.decay_type == "sqrt" else part)
        lr = np.where(t >= begin, np.minimum(lr, peak * down), lr)
    return lr


@pytest.fixture(scope="module")
def sweep(shared):
    folder = shared / "data" / "lr_scheduling"
    runs = pd.read_csv(folder / "runs.csv")
    runs = runs[(runs.params == 123587328) & (runs.dataset == "slimpajama") & (runs.base_lr < 4e-3)]
    return runs, pd.read_csv(folder / "history.csv.gz")


def test_rebuilt_schedules_are_the_logged_ones(sweep):
    runs, history = sweep
    for _, run in runs.iterrows():
        rows = history[(history.run_id == run.run_id) & history.lr.notna()]
        if run.schedule == "wsd" and run.cooldown_fraction == 0:
            rows = rows.iloc[:-1]  # constant runs log 0 at their last point
        assert schedule(run)[rows.step] == pytest.approx(rows.lr.to_numpy(), abs=1e-4 * run.base_lr)


@pytest.fixture(scope="module")
def finals(sweep):
    runs = sweep[0]
    runs = runs[runs.final_val_loss.notna()]
    assert len(runs) == 152
    frame = pd.DataFrame({"run": runs.run_id, "step": runs.iterations, "val_loss": runs.final_val_loss})
    table = read_runs(frame, schedule={run.run_id: schedule(run) for _, run in runs.iterrows()})
    short = (runs.schedule == "wsd") & (runs.cooldown_fraction == 0.2) & (runs.decay_type != "sqrt")
    splits = {
        "horizons": runs.iterations <= 25000,
        "peaks": runs.base_lr.isin([5e-4, 1e-3]),
        "shapes": (runs.schedule == "cos") | short,
    }
    return table, {name: list(runs.run_id[mask]) for name, mask in splits.items()}


@pytest.mark.parametrize(
    ("law", "prior", "horizons", "peaks", "shapes"),
    [
        ("cvx6", False, 10.5, 11.0, 5.7),
        ("rc4", True, 11.6, 15.4, 8.5),
        ("cvx4q", False, 23.5, 45.4, 19.4),
        ("cd3", False, 59.6, 173.0, 41.5),
    ],
)
def test_final_losses(finals, law, prior, horizons, peaks, shapes):
    """Mean absolute errors in 1e-3 nats, within 10 % of the reference."""
    table, splits = finals
    for name, want in (("horizons", horizons), ("peaks", peaks), ("shapes", shapes)):
        fit = fit_curves(table, law, train=splits[name], weight_decay=0.1, alpha_prior=prior)
        rest = fit.residuals()
        rest = rest[~rest.trained]
        assert 1e3 * np.abs(rest.predicted - rest.loss).mean() == pytest.approx(want, rel=0.1)


@pytest.mark.filterwarnings("ignore::convexlaw.ExtrapolationWarning")  # far runs are the question
def test_unseen_peaks(sweep):
    """Two of four peaks fitted, the others predicted, six splits: near the reference, far below cvx4q."""
    runs, history = sweep
    runs = runs[
        (runs.schedule == "wsd")
        & (runs.grad_norm_rerun == 0)
        & runs.cooldown_fraction.isin([0.0, 0.2])
        & runs.decay_type.notna()
        & (runs.base_lr < 2.5e-3)
    ]
    parts, schedules = [], {}
    for _, run in runs.iterrows():
        rows = history[(history.run_id == run.run_id) & history.val_loss.notna()]
        parts.append(pd.DataFrame({"run": run.run_id, "step": rows.step, "val_loss": rows.val_loss}))
        schedules[run.run_id] = schedule(run)
    table = read_runs(pd.concat(parts), schedule=schedules)
    errors = {"rc4": [], "cvx4q": []}
    for pair in itertools.combinations(sorted(runs.base_lr.unique()), 2):
        train = list(runs.run_id[runs.base_lr.isin(pair)])
        for law, found in errors.items():
            fit = fit_curves(table, law, train=train, weight_decay=0.1, alpha_prior=law == "rc4", split="val")
            found.append(1e3 * fit.score()["mae"].mean())
    ours, theirs = np.array(errors["rc4"]), np.array(errors["cvx4q"])
    assert ours.size == 6
    assert ours.mean() <= 17.5 * 1.1
    assert np.all(ours < theirs)
    ratio = np.exp(np.mean(np.log(ours / theirs)))
    assert 0.16 <= ratio <= 0.38  # the reference interval


def test_measured_exponent_of_the_horizon(sweep):
    runs = sweep[0]
    runs = runs[(runs.schedule == "wsd") & (runs.decay_type == "linear") & (runs.grad_norm_rerun == 0)]
    runs = runs[(runs.cooldown_fraction == 0.2) & runs.final_val_loss.notna()]
    frame = pd.DataFrame({"steps": runs.iterations, "peak": runs.base_lr, "loss": runs.final_val_loss})
    found = measured_transfer(frame)
    assert list(found.steps) == [15000, 25000, 35000, 50000]
    assert found.exponent == pytest.approx(-0.24, rel=0.1)
    assert found.exponent_interval[1] < 0


TRAIN_SETS = (
    ("cosine_24000", "constant_24000", "wsdcon_9"),
    ("cosine_24000", "wsdcon_9"),
    ("cosine_24000",),
    ("cosine_72000",),
    ("cosine_24000", "wsd_20000_24000"),
    ("constant_24000", "wsdld_20000_24000"),
    ("wsdcon_3", "wsdcon_9", "wsdcon_18"),
)


def public_schedule(name):
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


@pytest.mark.filterwarnings("ignore::convexlaw.ExtrapolationWarning")  # far runs are the question
@pytest.mark.parametrize(
    ("law", "prior", "want"),
    [
        ("rc4", True, 3.32),
        ("rc4", False, 3.52),
        ("cvx4q", True, 5.25),
        ("cvx4q", False, 5.46),
        ("cvx4", False, None),
    ],
)
def test_seven_training_sets(shared, law, prior, want):
    """Mean test error over 7 training sets and 3 sizes, 1e-3 nats, within 10 % of the reference."""
    frame = pd.read_csv(shared / "data" / "multi_power_law" / "curves.csv").rename(
        columns={"schedule": "run"}
    )
    errors = []
    for size in (25, 100, 400):
        part = frame[frame.model_m == size][["run", "step", "lr", "loss"]]
        table = read_runs(part, schedule=public_schedule)
        for train in TRAIN_SETS:
            fit = fit_curves(table, law, train=train, weight_decay=0.1, alpha_prior=prior)
            errors.append(1e3 * fit.score()["mae"].mean())
    if want is None:  # q = 0, cell by cell as in the reference table
        table = [4.86, 10.3, 11.6, 8.11, 4.68, 5.22, 11.8, 4.56, 12.4, 5.61, 6.98, 4.65, 5.81, 10.5]
        table += [5.48, 9.33, 5.95, 7.20, 4.85, 8.13, 9.41]
        assert errors == pytest.approx(table, rel=0.05)
    else:
        assert np.mean(errors) == pytest.approx(want, rel=0.1)
