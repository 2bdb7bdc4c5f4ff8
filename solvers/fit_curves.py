"""Fit a loss law to training curves."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw._progress import progress_bar
from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._curve_fit import CurveFit
from convexlaw.solvers._fit_data import Constants, RunData, as_runs, choose_split, pick
from convexlaw.solvers._fit_problem import has_batch_term, looks_long, make_problem
from convexlaw.solvers._fit_state import FitState, Ranges, least_squares
from convexlaw.solvers._fit_transfer import measured_transfer
from convexlaw.solvers.fit import held, solve
from convexlaw.theory.laws import curve_law, warmup_end

if TYPE_CHECKING:
    from convexlaw.runs.table import RunTable

STARTS = 8  # starts followed to the end

__all__ = ["CurveFit", "fit_curves", "measured_transfer"]


def fit_curves(
    runs: RunTable | Any,
    law: str = "auto",
    *,
    train: str | Sequence[str] | None = None,
    weight_decay: float | Mapping[str, float] | None = None,
    init_std: float = 0.02,
    alpha_prior: bool = True,
    protocol: str = "robust",
    split: str = "auto",
    fixed: Mapping[str, float] | None = None,
    skip: int = 0,
    progress: bool | None = None,
) -> CurveFit:
    """Fit a loss law to training curves.

    Parameters
    ----------
    runs : RunTable, path, glob, list of them, or frame
        Anything that ``read_runs`` takes; every fitted run needs its learning rates.
    law : str, default "auto"
        A name of ``theory.laws.CURVE_LAWS``. "auto": rc4 where the weight decay of every fitted run is known
        (argument or log) and none is trained by SGD, else cvx4q.
    train : str or list of str, optional
        Names or globs of the runs to fit; the others are held out. Default: all.
    weight_decay : float or mapping of run to float, optional
        Decoupled weight decay, for rc4; default what the logs say.
    init_std : float, default 0.02
        Standard deviation of the initial weights, for rc4. A log that states another one beats the default.
    alpha_prior : bool, default True
        Add the residual ``0.01 (ln alpha - ln 1/2)/0.15`` (laws of the convex family with alpha free).
    protocol : {"robust", "paper"}
        "paper": non-negative least squares of the loss on the terms of the convex bound (law cd3; a term in
        1/batch where the batch varies), on the first half of the steps of each run; ``.score()`` is about the
        second half.
    split : {"auto", "train", "val"}
        Losses to fit. "auto": validation losses where every fitted run has at least 30 of them after its
        warmup, else training losses.
    fixed : mapping, optional
        Parameters held at a value, e.g. ``{"lam": 0.999}``.
    skip : int, default 0
        Rows in this many steps after the LR warmup are dropped too.
    progress : bool, optional
        True or False to force a progress bar; None shows one on a terminal where the fit takes seconds.

    Returns
    -------
    CurveFit

    Raises
    ------
    ConvexlawError
        An unknown law or run, no learning rates, no usable losses, fewer losses than parameters, rc4 without
        a weight decay.

    Warns
    -----
    ConvergenceWarning
        The fit did not reach its tolerance.

    References
    ----------
    arXiv 2602.07145 (the convex bound as a law of loss curves).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from convexlaw import fit_curves
    >>> from convexlaw.theory.laws import CVX4q
    >>> lr = np.concatenate([np.full(300, 1e-3), np.linspace(1e-3, 1e-5, 100)])
    >>> loss = CVX4q(Linf=2.0, a=0.5, b=20.0, alpha=0.5).predict(lr)
    >>> log = pd.DataFrame({"run": "a", "step": np.arange(400), "lr": lr, "loss": loss})
    >>> fit = fit_curves(log, "cvx4q")
    >>> round(fit.params["Linf"], 4), round(fit.params["alpha"], 4)
    (2.0, 0.5)
    """
    if protocol not in ("robust", "paper"):
        raise ConvexlawError(f"protocol = {protocol!r}: choose 'robust' or 'paper'")
    if not isinstance(skip, (int, np.integer)) or skip < 0:
        raise ConvexlawError(f"skip = {skip!r}: it must be 0 or a number of steps")
    fixed = held(fixed)
    data, _ = as_runs(runs)
    names = tuple(run.name for run in data)
    chosen = pick(names, train)
    fitted = [run for run in data if run.name in chosen]
    constants = Constants(weight_decay, init_std)
    notes: list[str] = []
    name = _choose_law(law, protocol, fitted, constants, notes)
    cls = curve_law(name)
    used_split, sentence = choose_split(fitted, split, skip)
    notes += [sentence] if sentence else []
    paper = protocol == "paper"
    batch = has_batch_term(cls, fitted)
    if batch:
        sizes = [run.batch for run in fitted if run.batch is not None]
        low, high = min(float(b.min()) for b in sizes), max(float(b.max()) for b in sizes)
        notes.append(
            f"Batch sizes run from {low:g} to {high:g}: the noise has a part b and a part b_batch/batch."
        )
    notes += _left_out(fitted, used_split, skip)
    rows = [_first_half(run) for run in fitted] if paper else fitted
    show = False if progress is None and not looks_long(cls, fitted) else progress
    with progress_bar(f"fitting {name}", len(rows) + STARTS, show) as advance:
        problem, prepared = make_problem(
            cls,
            rows,
            used_split,
            skip,
            constants,
            batch=batch,
            alpha_prior=alpha_prior,
            fixed=fixed,
            tick=lambda: advance(1),
        )
        solution = least_squares(problem) if paper else solve(problem, polish=STARTS, tick=lambda: advance(1))
    if not solution.converged:
        warnings.warn(
            f"the fit of {name} stopped before its tolerance (relative gradient {solution.gradient:.1e}): "
            "fix a parameter or take a law with fewer",
            ConvergenceWarning,
            stacklevel=2,
        )
    decays = [constants.of(run)[0] for run in fitted]
    stds = [constants.of(run)[1] for run in fitted]
    state = FitState(
        solution=solution,
        constants=constants,
        skip=skip,
        batch=batch,
        alpha_prior=alpha_prior,
        fixed=fixed,
        ranges=Ranges.of(fitted),
        last_value=_last_value(fitted, used_split, skip),
        weight_decay=None
        if any(d is None for d in decays)
        else float(np.mean([d for d in decays if d is not None])),
        init_std=float(np.mean(stds)),
        rows=tuple(g.stop - g.start for g in prepared.groups),
        problem=problem,
        prepared=prepared,
        data=tuple(data),
    )
    return CurveFit(
        law=name,
        params=dict(solution.params),
        objective=solution.objective,
        converged=solution.converged,
        protocol=protocol,
        split=used_split,
        train=prepared.names,
        runs=names,
        notes=notes,
        _state=state,
    )


def _choose_law(
    law: str, protocol: str, fitted: list[RunData], constants: Constants, notes: list[str]
) -> str:
    if protocol == "paper":
        if law not in ("auto", "cd3"):
            raise ConvexlawError(
                f"law = {law!r}: the papers' protocol fits the terms of the convex bound, law 'cd3'"
            )
        return "cd3"
    if law != "auto":
        curve_law(law)
        return law
    unknown = [run.name for run in fitted if constants.of(run)[0] is None]
    sgd = [run.name for run in fitted if run.optimizer is not None and "sgd" in run.optimizer]
    if unknown:
        notes.append(f"Law cvx4q: rc4 would need the weight decay, which is not known of {unknown[0]!r}.")
        return "cvx4q"
    if sgd:
        notes.append(
            f"Law cvx4q: the clock of rc4 is about Adam-like updates, and {sgd[0]!r} was trained by SGD."
        )
        return "cvx4q"
    notes.append("Law rc4: the weight decay of every fitted run is known.")
    return "rc4"


def _left_out(fitted: list[RunData], split: str, skip: int) -> list[str]:
    """Say how many losses of the fitted runs are not fitted, and why."""
    early = bad = 0
    for run in fitted:
        steps, loss = run.losses.get(split, (np.empty(0, np.int64), np.empty(0)))
        bad += int(np.count_nonzero(~(loss > 0)))
        early += int(np.count_nonzero(steps < warmup_end(run.lr) + skip))
    where = "in the LR warmup" + (f" and the {skip} steps after it" if skip else "")
    out = [f"{early} losses {where} are left out of the fit."] if early else []
    if bad:
        out.append(f"{bad} losses are not positive and are left out: fits work on log loss.")
    return out


def _first_half(run: RunData) -> RunData:
    half = run.lr.size / 2
    losses = {s: (steps[steps < half], loss[steps < half]) for s, (steps, loss) in run.losses.items()}
    return RunData(run.name, run.lr, run.batch, losses, run.weight_decay, run.init_std, run.optimizer)


def _last_value(fitted: list[RunData], split: str, skip: int) -> float:
    most = max(run.lr.size for run in fitted)
    last = [run.rows(split, skip)[1] for run in fitted if run.lr.size == most]
    return float(np.mean([loss[-1] for loss in last if loss.size]))
