"""Monte Carlo checks of the theory: repeated fits beside the limits, resumable and in parallel."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from convexlaw._progress import progress_bar
from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.simulations._ledger import Ledger
from convexlaw.simulations.linear_model import DESIGNS, selection, simulate
from convexlaw.theory.scalar_limit import Penalty, Prior, check_problem
from convexlaw.theory.state_evolution import StateEvolution, solve

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MonteCarlo", "Setting", "along_scale", "monte_carlo"]

QUANTITIES = ("tpp", "fdp", "mse", "df", "selected")


@dataclass(frozen=True)
class Setting:
    """One experiment: a law of the coefficients, a penalty, a size and a design.

    Attributes
    ----------
    prior : Prior
    penalty : Penalty
        In units of tau; the SLOPE problem is the one that the state evolution assigns to it.
    delta, sigma : float
        Rows per feature, noise standard deviation.
    p : int
        Number of features; ``n = round(delta p)``.
    design : str
        See `convexlaw.simulations.linear_model.design_matrix`. The limits are proved for independent entries;
        beside a correlated design they are a reference, not a prediction.
    options : dict
        Options of the design.
    label : str
        For tables and figures.
    """

    prior: Prior
    penalty: Penalty
    delta: float
    sigma: float
    p: int
    design: str = "gaussian"
    options: tuple[tuple[str, float], ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            raise ConvexlawError(f"design {self.design!r} is unknown; the designs are {', '.join(DESIGNS)}")
        if isinstance(self.p, bool) or not isinstance(self.p, int | np.integer) or self.p < 2:
            raise ConvexlawError(f"p = {self.p!r}: the number of features must be an integer of at least 2")
        check_problem(self.prior, self.penalty)
        try:
            unknown = sorted(set(dict(self.options)) - {"rho", "ma", "density"}, key=str)
        except (TypeError, ValueError):
            raise ConvexlawError(f"options = {self.options!r}: give {{name: number}}") from None
        if unknown:
            raise ConvexlawError(f"option {unknown[0]!r} is unknown; designs take rho, ma and density")
        if isinstance(self.options, dict):
            object.__setattr__(self, "options", tuple(sorted(self.options.items())))

    @property
    def state(self) -> StateEvolution:
        """The limits."""
        return solve(self.prior, self.penalty, self.delta, self.sigma)

    @property
    def key(self) -> str:
        """Digest of everything but the label: what a ledger calls this setting."""
        content = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "label"}
        for name in ("prior", "penalty"):
            value = content[name]
            content[name] = [type(value).__name__, dataclasses.asdict(value)]
        text = json.dumps(content, sort_keys=True, default=float)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def along_scale(setting: Setting, scales: Sequence[float]) -> list[Setting]:
    """Return the setting with its penalty multiplied by each of ``scales``; labels are the scales."""
    return [dataclasses.replace(setting, penalty=setting.penalty.scaled(k), label=f"{k:g}") for k in scales]


@dataclass(frozen=True)
class MonteCarlo(Result):
    """Means of repeated fits, their standard errors, and the limits.

    Attributes
    ----------
    settings : tuple of Setting
    repetitions : int
    values : ndarray, shape (settings, repetitions, 5)
        tpp, fdp, mse, df, selected of every fit.
    theory : ndarray, shape (settings, 5)
        Their limits.
    """

    _figure: ClassVar[str] = "monte_carlo:plot_monte_carlo"

    settings: tuple[Setting, ...]
    repetitions: int
    values: np.ndarray[Any, np.dtype[np.float64]] = field(repr=False, compare=False)
    theory: np.ndarray[Any, np.dtype[np.float64]] = field(repr=False, compare=False)

    @property
    def mean(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Means over the repetitions, shape (settings, 5)."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def standard_error(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Standard errors of the means, shape (settings, 5); NaN with one repetition."""
        if self.repetitions < 2:
            return np.full(self.theory.shape, math.nan)
        return np.asarray(self.values.std(axis=1, ddof=1) / math.sqrt(self.repetitions))

    @property
    def deviation(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(mean - limit) / standard error, shape (settings, 5); NaN where all fits agree."""
        error = self.standard_error
        out = np.full(error.shape, math.nan)
        np.divide(self.mean - self.theory, error, out=out, where=error > 0)
        return out

    def to_frame(self) -> pd.DataFrame:
        """Columns label, design, p, quantity, mean, standard_error, theory, deviation."""
        import pandas as pd

        rows = []
        for i, setting in enumerate(self.settings):
            for j, name in enumerate(QUANTITIES):
                rows.append(
                    {
                        "label": setting.label,
                        "design": setting.design,
                        "p": setting.p,
                        "quantity": name,
                        "mean": self.mean[i, j],
                        "standard_error": self.standard_error[i, j],
                        "theory": self.theory[i, j],
                        "deviation": self.deviation[i, j],
                    }
                )
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        lines = [
            f"Monte Carlo, {len(self.settings)} settings x {self.repetitions} fits (mean +- s.e. | limit)"
        ]
        mean, error = self.mean, self.standard_error
        for i, setting in enumerate(self.settings[:10]):
            parts = [
                f"{name} {mean[i, j]:.4f}+-{error[i, j]:.4f}|{self.theory[i, j]:.4f}"
                for j, name in enumerate(QUANTITIES[:3])
            ]
            lines.append(f"  {setting.label or setting.design}: " + "  ".join(parts))
        if len(self.settings) > 10:
            lines.append(f"  ... {len(self.settings) - 10} more in .to_frame()")
        return "\n".join(lines)


def monte_carlo(
    settings: Setting | Sequence[Setting],
    repetitions: int = 10,
    *,
    seed: int = 0,
    ledger: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    backend: str = "joblib",
    client: Any = None,
    progress: bool | None = None,
) -> MonteCarlo:
    """Fit SLOPE repeatedly in every setting; put means and standard errors beside the limits.

    Parameters
    ----------
    settings : Setting or sequence of Setting
    repetitions : int
        Fits a setting. Raising it later, with the same ledger, only adds fits.
    seed : int
        Every fit has its own stream, from the seed, the setting and its number: the order does not matter.
    ledger : path-like, optional
        File of finished fits: a sweep that was killed continues where it stopped.
    n_jobs : int
        Processes for joblib.
    backend : {"joblib", "dask"}
    client : dask.distributed.Client or str, optional
        For dask: a client, or the address of a scheduler; the current client without it.
    progress : bool, optional
        Progress bar; by default on an interactive standard error.

    Returns
    -------
    MonteCarlo

    Raises
    ------
    ConvexlawError
        Unknown backend, no dask client, a penalty outside the domain, a file that is no ledger.

    Examples
    --------
    >>> from convexlaw.theory.scalar_limit import Lasso
    >>> setting = Setting(Prior.bernoulli_gaussian(0.1), Lasso(1.5), 0.5, 0.2, p=200)
    >>> result = monte_carlo(setting, repetitions=4, seed=1)
    >>> bool(abs(result.mean[0, 0] - result.theory[0, 0]) < 0.2)
    True
    """
    todo = (settings,) if isinstance(settings, Setting) else tuple(settings)
    if not all(isinstance(s, Setting) for s in todo):
        raise ConvexlawError(f"settings = {repr(settings)[:80]}: give a Setting, or a list of them")
    for what, number in (("repetitions", repetitions), ("seed", seed)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
            raise ConvexlawError(f"{what} = {number!r}: give a whole number >= 0")
    if not todo or repetitions < 1:
        raise ConvexlawError(
            f"{len(todo)} settings, repetitions = {repetitions!r}: give at least one of each"
        )
    if backend not in ("joblib", "dask"):
        raise ConvexlawError(f"backend = {backend!r}: the backends are joblib and dask")
    states = [s.state for s in todo]
    book = Ledger(ledger)
    names = [s.key for s in todo]
    jobs = {}
    for setting, state, name in zip(todo, states, names, strict=True):
        factor = state.lambda_factor
        for number in range(repetitions):
            key = f"{name}-{seed}-{number}"
            if key not in book.records:
                jobs[key] = (setting, factor, seed, number)
    if jobs:
        run = _with_dask(jobs, client) if backend == "dask" else _with_joblib(jobs, n_jobs)
        with progress_bar("Monte Carlo", len(jobs), progress) as advance:
            for key, value in run:
                book.add(key, value)
                advance(1)
    values = [
        [[book.records[f"{s.key}-{seed}-{k}"][q] for q in QUANTITIES] for k in range(repetitions)]
        for s in todo
    ]
    theory = [[getattr(state, q) for q in QUANTITIES] for state in states]
    return MonteCarlo(todo, repetitions, np.array(values, dtype=float), np.array(theory, dtype=float))


Job = tuple[Setting, float, int, int]
Done = Iterator[tuple[str, dict[str, float]]]


def _one(key: str, job: Job) -> tuple[str, dict[str, float]]:
    """One fit: a fresh model, the exact solution, what it found."""
    setting, factor, seed, number = job
    rng = np.random.default_rng(np.random.SeedSequence([seed, number, int(setting.key, 16)]))
    model = simulate(
        setting.prior,
        setting.delta,
        setting.sigma,
        setting.p,
        design=setting.design,
        rng=rng,
        options=dict(setting.options),
    )
    coef = _solution(model.X, model.y, factor * setting.penalty.weights(setting.p), setting.design)
    return key, dataclasses.asdict(selection(coef, model.beta))


def _solution(X: Any, y: Any, lam: Any, design: str) -> Any:
    """SLOPE solution to a relative gap of 1e-8: message passing for independent entries, else the solver."""
    if design in ("ar", "equicorrelated", "arma"):
        from convexlaw.solvers.path import slope_path

        return slope_path(X, y, alphas=[1.0 / y.size], lam=lam, fit_intercept=False, tol=1e-8).coefs[:, 0]
    from convexlaw.solvers.amp import amp_slope

    return amp_slope(X, y, lam=lam, tol=1e-8, max_iter=80).coef


def _with_joblib(jobs: dict[str, Job], n_jobs: int) -> Done:
    if n_jobs == 1:
        yield from (_one(key, job) for key, job in jobs.items())
        return
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    yield from pool(delayed(_one)(key, job) for key, job in jobs.items())


def _with_dask(jobs: dict[str, Job], client: Any) -> Done:
    try:
        import dask.distributed as cluster
    except ImportError as error:
        raise ConvexlawError(
            'backend="dask" needs dask.distributed: install convexlaw[cluster], or use backend="joblib"'
        ) from error
    distributed: Any = cluster
    own = isinstance(client, str)
    if own:
        client = distributed.Client(client)
    elif client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            raise ConvexlawError(
                'backend="dask" found no client: start one (dask.distributed.Client) or pass client=address'
            ) from None
    try:
        futures = [client.submit(_one, key, job, pure=False) for key, job in jobs.items()]
        for future in distributed.as_completed(futures):
            yield future.result()
    finally:
        if own:
            client.close()
