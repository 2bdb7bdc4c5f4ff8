"""What a fit cannot tell, and which run would tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from convexlaw._result import Result
from convexlaw.solvers._fit_misfit import misfit_sentences
from convexlaw.solvers._fit_profile import Spread, spread
from convexlaw.theory.laws import curve_law, warmup_end

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers._curve_fit import CurveFit
    from convexlaw.solvers._fit_data import Prepared, RunData

Array = NDArray[np.float64]

STRONG = 0.995  # correlation from which two parameters are called exchangeable
WIDE = 2.0  # 95 % limits beyond a factor of e^WIDE (log scale) call a profile flat
SAME = 1.05  # ratio up to which peaks, batch sizes, weight decays are one value
LEVELS = 10.0  # runs that lie this many times their own scatter apart are not of one Linf
SPAN = 3.0  # ratio of the last to the first sum of learning rates below which alpha has little to show itself


@dataclass(frozen=True)
class Identifiability(Result):
    """What the data of a fit can tell of its parameters.

    Attributes
    ----------
    sentences : list of str
        What cannot be told and which run would tell it; empty where nothing was found.
    condition_number : float
        Of the normalised sensitivities of the rows to the parameters: 1 is best, above about 1e3 some
        direction is lost.
    names : tuple of str
        Parameters that the data could move (neither fixed nor at the end of their range).
    errors : (k,) array
        Standard errors of ``names``.
    matrix : (k, k) array
        Correlations of the estimates.
    flat : tuple of str
        Parameters that the data does not bound within a factor of about 7.
    """

    sentences: list[str]
    condition_number: float
    names: tuple[str, ...]
    errors: Array
    matrix: Array
    flat: tuple[str, ...]

    _figure: ClassVar[str] = "fits:plot_correlations"

    @property
    def correlations(self) -> pd.DataFrame:
        """Correlations of the estimates as a frame."""
        import pandas as pd

        return pd.DataFrame(self.matrix, index=list(self.names), columns=list(self.names))

    def to_frame(self) -> pd.DataFrame:
        """Return parameter, standard_error, flat, strongest correlation and with which parameter."""
        import pandas as pd

        rows = []
        for j, name in enumerate(self.names):
            others = np.abs(self.matrix[j]).copy()
            others[j] = -1.0
            k = int(np.argmax(others)) if len(self.names) > 1 else j
            rows.append(
                {
                    "parameter": name,
                    "standard_error": float(self.errors[j]),
                    "flat": name in self.flat,
                    "correlation": float(self.matrix[j, k]) if k != j else float("nan"),
                    "with": self.names[k] if k != j else "",
                }
            )
        return pd.DataFrame(rows, columns=["parameter", "standard_error", "flat", "correlation", "with"])

    def __str__(self) -> str:
        head = f"condition number {self.condition_number:.3g}"
        return "\n".join(
            [head, *(f"- {s}" for s in self.sentences[:10])] if self.sentences else [head, "nothing found"]
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "sentences": self.sentences,
            "condition_number": self.condition_number,
            "names": list(self.names),
            "errors": self.errors.tolist(),
            "matrix": self.matrix.tolist(),
            "flat": list(self.flat),
        }

    @staticmethod
    def from_dict(value: dict[str, Any]) -> Identifiability:
        """Undo to_dict."""
        names = tuple(value["names"])
        return Identifiability(
            [str(s) for s in value["sentences"]],
            float(value["condition_number"]),
            names,
            np.array(value["errors"], dtype=np.float64),
            np.array(value["matrix"], dtype=np.float64).reshape(len(names), len(names)),
            tuple(value["flat"]),
        )


def condition(J: Array) -> float:
    """Condition number of a matrix with its columns scaled to length one."""
    size = np.linalg.norm(J, axis=0)
    if not J.size or np.any(size == 0):
        return float("inf")
    singular = np.linalg.svd(J / size, compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")


def measure(table: Spread, params: dict[str, float], J: Array) -> tuple[float, Array, Array, tuple[str, ...]]:
    """Condition number, standard errors, correlations, flat parameters."""
    errors = np.sqrt(np.maximum(np.diag(table.naive), 0.0))
    safe = np.where(errors > 0, errors, 1.0)
    matrix = np.clip(table.naive / np.outer(safe, safe), -1.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    robust = np.sqrt(np.maximum(np.diag(table.robust), 0.0))
    flat = tuple(
        n for n, e in zip(table.names, robust, strict=True) if 1.96 * e > WIDE * max(abs(params[n]), 1e-300)
    )
    return condition(J), robust, matrix, flat


def identify(fit: CurveFit) -> Identifiability:
    """Look for what the fitted curves cannot tell (see CurveFit.identifiability)."""
    state = fit._state
    problem, prepared = state.needs_data(".identifiability")
    if fit.protocol == "paper":  # least squares: no row lies beyond the threshold
        problem = replace(problem, delta=1e6)
    from convexlaw.solvers._fit_kernels import curvature

    table = spread(problem, state.solution, prepared.groups)
    theta = np.array([fit.params[q.name] for q in problem.nonlinear], dtype=np.float64)
    c = np.array([fit.params[n] for n in problem.linear])
    X, dX = problem.columns(theta)
    _, _, J, _ = curvature(X, dX, np.log(problem.y), problem.weights, c, 1.0, -1, problem.delta, 0.0)
    free = [problem.names.index(n) for n in table.names]
    number, errors, matrix, flat = measure(table, fit.params, J[:, free])
    runs = [run for run in state.data or () if run.name in fit.train]
    fitted = X @ c
    sentences = _level_sentences(prepared, np.log(problem.y / fitted))
    sentences += misfit_sentences(fit.law, prepared.names, prepared.groups, problem.y, fitted)
    sentences += _design_sentences(fit, runs)
    sentences += _estimate_sentences(fit, table.names, matrix, flat, number)
    return Identifiability(sentences, number, table.names, errors, matrix, flat)


def _decays(run: RunData) -> bool:
    after = run.lr[warmup_end(run.lr) :]
    return bool(after.size and after.min() < 0.9 * after.max())


def _schedules(runs: Sequence[RunData]) -> int:
    """Count the schedules that differ by more than 1 % of the peak somewhere, or in length."""
    seen: list[Array] = []
    for run in runs:
        if not any(
            lr.size == run.lr.size and np.abs(lr - run.lr).max() <= 0.01 * run.lr.max() for lr in seen
        ):
            seen.append(run.lr)
    return len(seen)


def _level_sentences(prepared: Prepared, residual: Array) -> list[str]:
    """Sentence on runs whose losses lie apart by far more than they scatter (other models, other data)."""
    parts = [residual[g] for g in prepared.groups if g.stop - g.start > 3]
    if len(parts) < 2:
        return []
    middle = np.array([float(np.median(part)) for part in parts])
    scatter = float(np.median([np.median(np.abs(part - np.median(part))) for part in parts]))
    if np.ptp(middle) < max(LEVELS * scatter, 0.02):
        return []
    named = [n for n, g in zip(prepared.names, prepared.groups, strict=True) if g.stop - g.start > 3]
    low, high = named[middle.argmin()], named[middle.argmax()]
    return [
        f"The fitted runs lie {100 * np.ptp(middle):.0f} % apart after the fit ({low!r} to {high!r}) and "
        f"scatter by {100 * scatter:.1g} % each: no one Linf holds for all, read nothing into these "
        "parameters; fit runs of one model on one data set together (train=)."
    ]


def _design_sentences(fit: CurveFit, runs: Sequence[RunData]) -> list[str]:
    """Sentences that follow from the runs alone."""
    state = fit._state
    out = []
    free = [n for n in fit.params if n not in state.fixed]
    decaying = [run.name for run in runs if _decays(run)]
    if not decaying and fit.law not in ("averaged",):
        what = (
            "b" if fit.law not in ("tissue", "multipower") else "b (and the shape of the response to a drop)"
        )
        out.append(
            f"No fitted run lowers its learning rate: {what} and so the gain of a cooldown cannot be told; "
            "one run with a cooldown would tell."
        )
    shapes = _schedules(runs)
    if "q" in free and shapes < 3:
        curves = f"{len(runs)} fitted curve{'' if len(runs) == 1 else 's'}"
        if shapes < len(runs):
            curves += f" of {shapes} schedule{'' if shapes == 1 else 's'}"
        out.append(
            f"{curves}: q cannot be told from so few; use law 'cvx4q' (q = 1/8), or "
            f"fit at least three "
            "runs of different shapes."
        )
    peaks = [float(run.lr.max()) for run in runs]
    if max(peaks) <= SAME * min(peaks):
        peak = f"{float(f'{max(peaks):.3g}'):g}"
        if "r" in free:
            out.append(
                f"Every fitted run has the peak learning rate {peak}: r cannot be told; "
                "one run with another peak (twice or half) would tell."
            )
        else:
            out.append(
                f"Every fitted run has the peak learning rate {peak}: how the loss moves with the "
                f"peak is the law's "
                "belief, not the data's; one run with another peak (twice or half) would tell."
            )
    sizes = [run.batch for run in runs if run.batch is not None]
    if sizes and len(sizes) == len(runs) and not state.batch:
        low = min(float(b.min()) for b in sizes)
        if max(float(b.max()) for b in sizes) <= SAME * low:
            out.append(
                f"Every fitted step uses the batch size {low:g}: which part of the noise falls with the "
                f"batch cannot be "
                "told; one run with another batch size would tell."
            )
    if curve_law(fit.law).needs_clock:
        decays = [state.constants.of(run)[0] or 0.0 for run in runs]
        value = max(decays)
        if value <= SAME * min(decays):
            out.append(
                f"Every fitted run has the weight decay {value:g}: the clock's dependence on it is theory "
                f"alone; "
                "one run with another weight decay would test it."
            )
    if "alpha" in free:
        spans = []
        for run in runs:
            steps, _ = run.rows(fit.split, state.skip)
            if steps.size:
                S = np.cumsum(run.lr)
                spans.append((S[steps[0]], S[steps[-1]]))
        if spans and max(b for _, b in spans) < SPAN * min(a for a, _ in spans):
            out.append(
                "The sum of learning rates grows by less than a factor of 3 over the fitted rows: alpha "
                "and Linf cannot be "
                "told apart; a longer run, or losses logged earlier, would tell."
            )
    return out


def _estimate_sentences(
    fit: CurveFit, names: Sequence[str], matrix: Array, flat: Sequence[str], number: float
) -> list[str]:
    """Sentences that follow from the estimate and its curvature."""
    out = []
    law = curve_law(fit.law)
    for name in law.linear(fit._state.batch):
        if fit.params[name] == 0.0 and name not in fit._state.fixed:
            meaning = {
                "Linf": "the data does not bound the loss at infinity from below; a longer run would tell",
                "a": "no decrease with the sum of learning rates is seen; losses logged earlier would tell",
                "b": "no noise is seen; a run with a cooldown would tell",
                "b_batch": "no noise that falls with the batch is seen; a run with a very different batch "
                "size would tell",
            }[name]
            out.append(f"{name} ended at 0: {meaning}.")
    for q in law.nonlinear:
        value = fit.params[q.name]
        if q.name not in fit._state.fixed and q.at_end(value):
            runs = "runs with other peaks" if q.name == "r" else "runs of more different shapes"
            out.append(
                f"{q.name} ended at {value:g}, the end of its range: the data does not bound it; "
                f"hold it with fixed= or fit {runs}."
            )
    for name in flat:
        out.append(
            f"{name} is not bounded by the data within a factor of 7: read no meaning into its value; "
            "longer runs and runs of other shapes would tell."
        )
    pairs = [
        (abs(matrix[i, j]), names[i], names[j])
        for i in range(len(names))
        for j in range(i)
        if abs(matrix[i, j]) > STRONG
    ]
    if pairs:
        size, one, two = max(pairs)
        out.append(
            f"{two} and {one} can be exchanged for one another (correlation {size:.3f} in size; condition "
            f"number "
            f"{number:.2g}): their values are uncertain together, predictions near the data are not; "
            "a run 2 to 4 times as long would tell them apart."
        )
    return out
