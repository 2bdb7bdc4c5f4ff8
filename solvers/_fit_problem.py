"""Rows of some runs and a law: the problem that the engine solves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fit_data import Constants, Prepared, RunData, prepare
from convexlaw.solvers.fit import Problem
from convexlaw.theory.laws import CurveLaw


def make_problem(
    cls: type[CurveLaw],
    runs: Sequence[RunData],
    split: str,
    skip: int,
    constants: Constants,
    *,
    batch: bool,
    alpha_prior: bool,
    fixed: Mapping[str, float],
    tick: Callable[[], None] | None = None,
) -> tuple[Problem, Prepared]:
    """Lay out the rows of ``runs`` and state the problem of fitting ``cls`` to them."""
    if cls.needs_clock:
        for run in runs:
            if constants.of(run)[0] is None:
                raise ConvexlawError(
                    f"law {cls.name!r} needs the weight decay and run {run.name!r} does not state it: "
                    f"pass weight_decay="
                )
    prepared = prepare(runs, split, skip, constants, batch=batch)
    if not prepared.y.size:
        raise ConvexlawError("no loss after the warmup is left to fit: log more often or lower skip")
    prior = alpha_prior and cls.convex and any(p.name == "alpha" for p in cls.nonlinear)
    problem = Problem(
        columns=cls.columns(prepared.paths, batch=batch, tick=tick),
        y=prepared.y,
        linear=cls.linear(batch),
        nonlinear=cls.nonlinear,
        weights=np.ones(prepared.y.size),
        prior=("alpha",) if prior else (),
        fixed=dict(fixed),
    )
    return problem, prepared


def looks_long(cls: type[CurveLaw], runs: Sequence[RunData]) -> bool:
    """Tell whether a fit will take more than about two seconds (so that a progress bar is due)."""
    if cls.name == "multipower":
        return True
    steps = sum(run.lr.size for run in runs)
    sums = 11 if any(q.name == "q" for q in cls.nonlinear) else 1
    passes = 3e-8 if cls.name == "tissue" else 3e-7 * sums
    return steps * passes > 1.5


def has_batch_term(cls: type[CurveLaw], runs: Sequence[RunData]) -> bool:
    """Tell whether the law can have a part in 1/batch and the batch sizes differ by more than 5 %."""
    if "b_batch" not in cls.__dataclass_fields__ or any(run.batch is None for run in runs):
        return False
    sizes = [run.batch for run in runs if run.batch is not None]
    low = min(float(b.min()) for b in sizes)
    return max(float(b.max()) for b in sizes) > 1.05 * low
