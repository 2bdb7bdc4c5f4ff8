"""Fit a scaling law to a table of final losses."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._fit_optimal import Optimal
from convexlaw.solvers._table_fit import TableFit, TableState, public_params
from convexlaw.solvers.fit import Problem, Solution, held, solve
from convexlaw.theory._law_inputs import number
from convexlaw.theory.laws import table_law

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Optimal", "TableFit", "fit_table", "per_size", "table_columns"]

Array = NDArray[np.float64]

DUST = 1e-10  # share of the loss below which a term is rounding

_ALIASES = {
    "N": ("n", "params", "parameters", "n_params", "model_size"),
    "D": ("d", "tokens", "n_tokens", "training_tokens"),
    "loss": ("loss", "final_loss", "val_loss", "final_val_loss"),
    "flops": ("flops", "flop", "c", "compute", "training_flop"),
}


def table_columns(frame: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Sizes, tokens and losses of a table, checked.

    Parameters
    ----------
    frame : DataFrame
        Columns N (parameters), D (tokens), loss (nats), in any case, or the usual other names; D may be
        missing where flops = 6 N D is given.

    Returns
    -------
    N, D, loss : (n,) arrays

    Raises
    ------
    ConvexlawError
        A missing column, or a value that is not positive and finite.
    """
    if not hasattr(frame, "columns"):
        raise ConvexlawError(f"the table is of type {type(frame).__name__}: pass a frame with N, D and loss")
    lower = {str(c).strip().lower(): c for c in reversed(list(frame.columns))}
    found = {}
    for name, aliases in _ALIASES.items():
        place = next((lower[a] for a in aliases if a in lower), None)
        if place is not None:
            try:
                found[name] = frame[place].to_numpy(dtype=np.float64)
            except (TypeError, ValueError):
                raise ConvexlawError(
                    f"column {place!r} holds values that are no numbers: correct it"
                ) from None
    if "D" not in found and "flops" in found and "N" in found:
        found["D"] = found["flops"] / (6.0 * found["N"])
    for name in ("N", "D", "loss"):
        if name not in found:
            raise ConvexlawError(
                f"the table has columns {[str(c) for c in frame.columns]} but no {name}: it needs N "
                f"(parameters), "
                "D (tokens; or flops = 6 N D) and loss (nats)"
            )
        bad = np.flatnonzero(~(np.isfinite(found[name]) & (found[name] > 0)))
        if bad.size:
            raise ConvexlawError(
                f"row {bad[0]}: {name} = {found[name][bad[0]]:g} must be positive and finite; correct or "
                f"drop the row"
            )
    return found["N"], found["D"], found["loss"]


def fit_table(
    frame: pd.DataFrame,
    law: str = "chinchilla",
    *,
    exclude_largest: int = 0,
    fixed: Mapping[str, float] | None = None,
) -> TableFit:
    """Fit a scaling law to a table of final losses.

    Parameters
    ----------
    frame : DataFrame
        Columns N (parameters; without embeddings for kaplan), D (tokens) and loss (nats); flops = 6 N D may
        stand for D.
    law : {"chinchilla", "kaplan", "two_dimensional"}
    exclude_largest : int, default 0
        Leave out this many rows of largest loss (the refit of Hoffmann et al.'s points leaves out 5).
    fixed : mapping, optional
        Parameters held at a value.

    Returns
    -------
    TableFit

    Raises
    ------
    ConvexlawError
        A missing column, values that are not positive, fewer rows than parameters, an unknown law.

    Warns
    -----
    ConvergenceWarning
        The fit did not reach its tolerance.

    References
    ----------
    arXiv 2203.15556 (Huber loss on log loss, delta 1e-3); arXiv 2404.10102 (the sum, not the mean, is
    minimised).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from convexlaw.solvers.fit_table import fit_table
    >>> from convexlaw.theory.laws import Chinchilla
    >>> N, D = (a.ravel() for a in np.meshgrid([1e8, 3e8, 1e9, 3e9], [1e9, 3e9, 1e10, 3e10]))
    >>> law = Chinchilla(E=1.8, A=480.0, B=2100.0, alpha=0.35, beta=0.37)
    >>> fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": law.loss(N, D)}))
    >>> round(fit.params["alpha"], 4), round(fit.params["beta"], 4)
    (0.35, 0.37)
    """
    cls = table_law(law)
    N, D, loss = table_columns(frame)
    fixed = held(fixed)
    notes: list[str] = []
    if not isinstance(exclude_largest, (int, np.integer)) or not 0 <= exclude_largest < loss.size:
        raise ConvexlawError(
            f"exclude_largest = {exclude_largest!r}: it must be 0 or more and leave rows of the {loss.size}"
        )
    if exclude_largest:
        order = np.argsort(loss, kind="stable")[: loss.size - exclude_largest]
        keep = np.sort(order)
        notes.append(
            f"{exclude_largest} rows of largest loss are left out; the largest is {loss.max():.4g} nats."
        )
        N, D, loss = N[keep], D[keep], loss[keep]
    if law == "kaplan" and "Nc" in fixed:
        raise ConvexlawError("Nc cannot be held: fix alphaN, alphaD or Dc")
    problem = Problem(
        columns=cls.columns(N, D),
        y=loss,
        linear=cls.linear,
        nonlinear=cls.nonlinear,
        weights=np.ones(loss.size),
        link=cls.link,
        fixed=fixed,
    )
    solution = solve(problem)
    if not solution.converged:
        warnings.warn(
            f"the fit of {law} stopped before its tolerance (relative gradient {solution.gradient:.1e}): "
            "fix a parameter, or see .identifiability",
            ConvergenceWarning,
            stacklevel=2,
        )
    solution = _without_dust(problem, solution)
    state = TableState(solution, N, D, loss, fixed, problem)
    params = public_params(cls, solution.params)
    return TableFit(law, params, solution.objective, solution.converged, notes, state)


def _without_dust(problem: Problem, solution: Solution) -> Solution:
    """Set terms to 0 that are rounding in every row: an optimum between them would mean nothing."""
    if problem.link >= 0:  # kaplan: a power of the sum
        return solution
    theta = np.array([solution.params[q.name] for q in problem.nonlinear], dtype=np.float64)
    parts = problem.columns(theta)[0] * np.array([solution.params[n] for n in problem.linear])
    share = np.max(np.abs(parts) / np.abs(parts.sum(axis=1, keepdims=True)), axis=0)
    dust = {
        n: 0.0
        for n, part in zip(problem.linear, share, strict=True)
        if part < DUST and n not in problem.fixed
    }
    return replace(solution, params={**solution.params, **dust})


def per_size(frame: pd.DataFrame, *, power: float = 0.5, rtol: float = 1e-3) -> pd.DataFrame:
    """Regress the loss on ``D^-power`` for each model size by itself (ordinary least squares).

    Parameters
    ----------
    frame : DataFrame
        As in fit_table.
    power : float, default 0.5
        The rate of convex optimisation.
    rtol : float, default 1e-3
        Neighbouring sizes that differ by at most this share are one size: counts that were rounded, or read
        off a figure. 0 joins equal sizes only.

    Returns
    -------
    DataFrame
        One row a size with at least two different D: N (mean), points, Linf (nats), C, r2.

    Raises
    ------
    ConvexlawError
        As table_columns; no size with two different D; a share out of its range.

    References
    ----------
    arXiv 2602.07145, Table 2.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"N": 1e8, "D": [1e9, 4e9, 1.6e10], "loss": [3.0, 2.5, 2.25]})
    >>> per_size(table)[["Linf", "r2"]].round(6).values.tolist()
    [[2.0, 1.0]]
    """
    import pandas as pd

    N, D, loss = table_columns(frame)
    if not 0 <= (rtol := number("rtol", rtol)) < 1:
        raise ConvexlawError(f"rtol = {rtol:g}: it must be 0 or a share below 1, e.g. 0.001")
    order = np.argsort(N, kind="stable")
    group = np.empty(N.size, dtype=np.int64)
    group[order] = np.cumsum(np.diff(N[order], prepend=N[order[0]]) > rtol * N[order])
    rows = []
    for key in np.unique(group):
        part = group == key
        x, y = D[part] ** -power, loss[part]
        spread = x - x.mean()
        if np.unique(x).size < 2:
            continue
        slope = float(spread @ (y - y.mean()) / (spread @ spread))
        level = float(y.mean() - slope * x.mean())
        rest = y - level - slope * x
        total = float(np.sum((y - y.mean()) ** 2))
        r2 = 1.0 - float(rest @ rest) / total if total > 0 else float("nan")
        rows.append(
            {"N": float(N[part].mean()), "points": int(part.sum()), "Linf": level, "C": slope, "r2": r2}
        )
    if not rows:
        raise ConvexlawError("no size has two different numbers of tokens: nothing to regress; add runs")
    return pd.DataFrame(rows)
