"""What a table of final losses cannot tell, and which run would tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from convexlaw.solvers._fit_identify import STRONG, Identifiability, measure
from convexlaw.solvers._fit_misfit import weak_sentences
from convexlaw.solvers._fit_profile import spread
from convexlaw.theory.laws import table_law

if TYPE_CHECKING:
    from convexlaw.solvers._table_fit import TableFit

Array = NDArray[np.float64]

# which parameters of each law speak of size and of tokens
OF_SIZE = {"chinchilla": ("A", "alpha"), "kaplan": ("Nc", "alphaN"), "two_dimensional": ("A", "a", "k")}
OF_TOKENS = {"chinchilla": ("B", "beta"), "kaplan": ("Dc", "alphaD"), "two_dimensional": ("c0",)}


def distinct(values: Array, tolerance: float = 0.02) -> int:
    """Count values that differ by more than 2 %."""
    logs = np.sort(np.log(values))
    return 1 + int(np.count_nonzero(np.diff(logs) > tolerance))


def identify_table(fit: TableFit) -> Identifiability:
    """Look for what the fitted rows cannot tell (see TableFit.identifiability)."""
    from convexlaw.solvers._fit_kernels import curvature

    state = fit._state
    problem = state.problem
    values = state.solution.params
    every = [slice(i, i + 1) for i in range(state.loss.size)]
    table = spread(problem, state.solution, every)
    theta = np.array([values[q.name] for q in problem.nonlinear], dtype=np.float64)
    c = np.array([values[n] for n in problem.linear])
    X, dX = problem.columns(theta)
    kappa = float(theta[problem.link]) if problem.link >= 0 else 1.0
    _, _, J, _ = curvature(
        X, dX, np.log(problem.y), problem.weights, c, kappa, problem.link, problem.delta, 0.0
    )
    free = [problem.names.index(n) for n in table.names]
    number, errors, matrix, flat = measure(table, values, J[:, free])
    return Identifiability(
        _sentences(fit, table.names, matrix, flat, number), number, table.names, errors, matrix, flat
    )


def _sentences(
    fit: TableFit, names: tuple[str, ...], matrix: Array, flat: tuple[str, ...], number: float
) -> list[str]:
    state = fit._state
    N, D = state.N, state.D
    out = []
    sizes, tokens = distinct(N), distinct(D)
    of_size, of_tokens = " and ".join(OF_SIZE[fit.law]), " and ".join(OF_TOKENS[fit.law])
    log_loss = np.log(state.loss)
    out += weak_sentences(fit.law, log_loss, log_loss - np.log(fit.model.loss(N, D)), "the table")
    if sizes == 1:
        out.append(
            f"Every row has N = {N[0]:.3g}: {of_size} cannot be told, nor any compute-optimal size; "
            "runs at two other sizes at least would tell."
        )
    elif sizes == 2:
        out.append(f"There are two sizes only: {of_size} rest on one difference; a third size would tell.")
    if tokens == 1:
        out.append(
            f"Every row has D = {D[0]:.3g}: {of_tokens} cannot be told, nor any compute-optimal number of "
            f"tokens; "
            "runs with two other numbers of tokens at least would tell."
        )
    elif tokens == 2:
        out.append(
            f"There are two numbers of tokens only: {of_tokens} rest on one difference; a third would tell."
        )
    if sizes > 1 and tokens > 1:
        ratio = D / N
        if distinct(ratio) == 1:
            out.append(
                f"Every row has D/N = {ratio[0]:.3g}: what N does and what D does cannot be told apart; "
                "runs at another number of tokens per parameter would tell."
            )
    law = table_law(fit.law)
    public = {"k": "Nc"} if fit.law == "kaplan" else {}  # what the engine fits in its place
    for name in law.linear:
        if state.solution.params[name] == 0.0 and name not in state.fixed:
            term = {
                "E": "no floor of the loss",
                "A": "no gain from size",
                "k": "no gain from size",
                "B": "no gain from tokens",
            }
            said = f"{term.get(name, 'nothing of its term')} is seen"
            out.append(f"{public.get(name, name)} ended at 0: {said}; rows that reach further would tell.")
    for q in law.nonlinear:
        value = state.solution.params[q.name]
        if q.name not in state.fixed and q.at_end(value):
            out.append(
                f"{q.name} ended at {value:g}, the end of its range: the rows do not bound it; hold it "
                f"with fixed=, "
                "or add rows that reach further."
            )
    for name in flat:
        out.append(
            f"{public.get(name, name)} is not bounded by the rows within a factor of 7: read no meaning into "
            "its value; rows over a wider range of N and D would tell."
        )
    pairs = [
        (abs(matrix[i, j]), public.get(names[i], names[i]), public.get(names[j], names[j]))
        for i in range(len(names))
        for j in range(i)
        if abs(matrix[i, j]) > STRONG
    ]
    if pairs:
        size, one, two = max(pairs)
        out.append(
            f"{two} and {one} can be exchanged for one another (correlation {size:.4f} in size; condition "
            f"number "
            f"{number:.2g}): trust predictions near the rows and the exponent of N_opt more than either "
            f"value; "
            "rows over a wider range would tell them apart."
        )
    return out
