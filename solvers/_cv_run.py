"""The work of a cross-validation: every fold solved on the same alphas, here or on several workers."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw._progress import progress_bar
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._cv_gram import fold_gram
from convexlaw.solvers._deviance import unit_deviance
from convexlaw.solvers._glm_path import GlmRun
from convexlaw.solvers._glm_problem import GlmProblem, make_problem
from convexlaw.solvers._slope_path import PathRun
from convexlaw.solvers._slope_problem import Problem
from convexlaw.solvers.glm import mean_deviance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._cv_gram import Moments
    from convexlaw.solvers._cv_splits import Split

    Vector = NDArray[np.float64]

# a fold of an X beyond this many bytes is seen through zero weights instead of a copy
_LARGEST_COPY = 1 << 31


@dataclass(frozen=True)
class Plan:
    """What every fold has to do.

    Attributes
    ----------
    options : dict
        Keywords of a problem that do not depend on the penalty.
    penalties : list of dict
        Keywords of the penalty sequences.
    alphas : list of ndarray
        Decreasing, one array a sequence.
    point : estimator, optional
        Unfitted, to be given coefficients and handed to ``scorer``.
    scorer : callable, optional
        ``scorer(estimator, X, y)``; the mean deviance without it.
    weighted : bool
        Whether the user gave sample weights.
    classes : ndarray, shape (K,), optional
        Labels.
    """

    options: dict[str, Any]
    penalties: list[dict[str, Any]]
    alphas: list[Vector]
    point: Any = None
    scorer: Callable[..., float] | None = None
    weighted: bool = False
    classes: NDArray[Any] | None = None


@dataclass
class Data:
    """Checked data of all rows.

    Attributes
    ----------
    X : ndarray or scipy sparse, shape (n, p)
    y : ndarray, shape (n,) or (n, q)
        Numbers of the classes where there are some.
    fit_weight, score_weight : ndarray, shape (n,)
        They differ by class weights.
    offset : ndarray, shape (n,), optional
    gram, origin : optional
        Moments of all rows for Gram matrices by subtraction, and what they were centred with.
    """

    X: Any
    y: Any
    fit_weight: Vector
    score_weight: Vector
    offset: Vector | None = None
    gram: Moments | None = None
    origin: Vector | None = None


@dataclass(frozen=True)
class FoldScores:
    """Scores of one fold, and how well its paths were solved.

    Attributes
    ----------
    scores : list of ndarray
        One array a sequence, one score an alpha; NaN where no weight falls on the rows to test on.
    short : int
        Alphas that did not reach the tolerance.
    worst : float
        Largest duality gap over P(0).
    """

    scores: list[Vector] = field(default_factory=list)
    short: int = 0
    worst: float = 0.0


def solve_fold(X: Any, gram: Moments | None, rest: Data, split: Split, plan: Plan) -> FoldScores:
    """Solve the paths of one fold and score them on the rows that were left out.

    Parameters
    ----------
    X : ndarray or scipy sparse, shape (n, p)
    gram : tuple of ndarray, optional
    rest : Data
        The rest of the data. The large arrays stand alone so that workers can share them.
    split : tuple of ndarray of int
        Rows to train and to test on.
    plan : Plan

    Returns
    -------
    FoldScores
    """
    train, test = split
    y, offset = rest.y, rest.offset
    if plan.classes is not None:
        missing = np.setdiff1d(np.arange(plan.classes.size), y[train])
        if missing.size:
            raise ConvexlawError(
                f"cv: a fold has no row of class {plan.classes[missing[0]]!r} to train on; use fewer folds, "
                "or a stratified splitter"
            )
    held = rest.fit_weight * np.bincount(train, minlength=X.shape[0])
    if not isinstance(X, np.ndarray) or X.nbytes <= _LARGEST_COPY:
        base = make_problem(
            _rows(X, train),
            y[train],
            sample_weight=rest.fit_weight[train],
            offset=None if offset is None else offset[train],
            **plan.penalties[0],
            **plan.options,
        )
    else:
        base = make_problem(X, y, sample_weight=held, offset=offset, **plan.penalties[0], **plan.options)
    if isinstance(base, Problem) and gram is not None and rest.origin is not None:
        base.gram = fold_gram(base.design, X, rest.fit_weight, held, rest.origin, gram)
        base.solver = "gram"
    scores, short, worst = [], 0, 0.0
    aside = _rows(X, test)
    for penalty, alphas in zip(plan.penalties, plan.alphas, strict=True):
        problem = base.with_penalty(**penalty)
        run: PathRun | GlmRun
        if isinstance(problem, GlmProblem):
            run = GlmRun(problem, alphas, None, progress=False)
        else:
            run = PathRun(problem, alphas, None, progress=False)
        short += int((~run.converged).sum())
        if problem.null > 0.0:
            worst = max(worst, float(run.gaps.max()) / problem.null)
        scores.append(_score(plan, run, aside, rest, test))
    return FoldScores(scores, short, worst)


def _rows(X: Any, index: NDArray[np.int64]) -> Any:
    """Rows of X, in its own memory order."""
    if not isinstance(X, np.ndarray):
        return X[index]
    if index.size and index[-1] - index[0] == index.size - 1 and (np.diff(index) == 1).all():
        return X[index[0] : index[-1] + 1]
    return X.T[:, index].T if X.strides[0] <= X.strides[1] else X[index]


def _score(plan: Plan, run: PathRun | GlmRun, X: Any, rest: Data, test: NDArray[np.int64]) -> Vector:
    m = run.coefs.shape[-1]
    y, weights = rest.y[test], rest.score_weight[test]
    if not weights.any():
        return np.full(m, np.nan)
    if plan.scorer is None:
        return _deviances(plan, run, X, y, weights, None if rest.offset is None else rest.offset[test])
    given = {"sample_weight": weights} if plan.weighted and takes_weights(plan.scorer) else {}
    if plan.classes is not None:
        plan.point.classes_ = plan.classes
        y = plan.classes[y]
    plan.point.n_features_in_ = run.coefs.shape[0]
    out = np.empty(m)
    for k in range(m):
        place(plan.point, run.coefs[..., k], run.intercepts[..., k])
        out[k] = plan.scorer(plan.point, X, y, **given)
    return out


def _deviances(
    plan: Plan, run: PathRun | GlmRun, X: Any, y: Any, weights: Vector, offset: Vector | None
) -> Vector:
    """Weighted mean deviances at every alpha."""
    loss, threshold = plan.options["loss"], plan.options.get("threshold", 0.0)
    p = run.coefs.shape[0]
    eta = np.asarray(X @ run.coefs.reshape(p, -1)).reshape(-1, *run.coefs.shape[1:]) + run.intercepts
    if offset is not None:
        eta = eta + offset.reshape(-1, *(1,) * (eta.ndim - 1))
    if eta.ndim == 2:
        with np.errstate(over="ignore"):
            units = unit_deviance(loss, np.asarray(y, dtype=np.float64).reshape(-1, 1), eta, threshold)
        return np.asarray(weights @ units / weights.sum())
    classes = () if plan.classes is None else range(plan.classes.size)
    return np.array(
        [mean_deviance(loss, y, eta[..., k], weights, threshold, classes) for k in range(eta.shape[-1])]
    )


def place(model: Any, coef: Vector, intercept: Any) -> None:
    """Give an estimator the coefficients of one alpha of a path, shape (p,) or (p, K), in its own form.

    Parameters
    ----------
    model : estimator
        A classifier has ``classes_`` already.
    coef : ndarray, shape (p,) or (p, K)
    intercept : float or ndarray, shape (K,)
    """
    model.coef_ = coef.T
    model.intercept_ = float(intercept) if np.ndim(intercept) == 0 else np.array(intercept)
    if getattr(model, "classes_", None) is None:
        return
    model.coef_, model.intercept_ = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    if model.loss == "multinomial" and model.reference:
        model.coef_ = np.vstack([model.coef_, np.zeros(coef.shape[0])])
        model.intercept_ = np.append(model.intercept_, 0.0)


def takes_weights(scorer: Callable[..., float]) -> bool:
    """Whether a scorer has an argument for sample weights."""
    names = inspect.signature(scorer).parameters
    return "sample_weight" in names or any(v.kind is v.VAR_KEYWORD for v in names.values())


def run_folds(
    data: Data,
    splits: list[Split],
    plan: Plan,
    *,
    n_jobs: Any,
    backend: str | None,
    progress: bool | None,
) -> list[FoldScores]:
    """Solve all folds.

    Parameters
    ----------
    data : Data
    splits : list of (train, test)
    plan : Plan
    n_jobs : int or None
        As in joblib.
    backend : str, optional
        Name of a joblib backend; "dask" needs a ``distributed.Client``.
    progress : bool, optional

    Returns
    -------
    list of FoldScores

    Raises
    ------
    ConvexlawError
        Unknown backend, or no cluster for "dask".
    """
    from joblib import Parallel, delayed

    total = len(splits)
    rest = replace(data, X=None, gram=None)
    with progress_bar("cross-validation", total, progress) as advance, _backend(backend):
        results = []
        workers = Parallel(n_jobs=n_jobs, return_as="generator")
        for result in workers(delayed(solve_fold)(data.X, data.gram, rest, split, plan) for split in splits):
            results.append(result)
            advance(1)
    return results


@contextlib.contextmanager
def _backend(name: str | None) -> Iterator[None]:
    if name is None:
        yield
        return
    from joblib import parallel_config

    if name == "dask":
        try:
            from distributed import get_client

            get_client()
        except ImportError:
            raise ConvexlawError(
                "backend = 'dask' needs dask.distributed: pip install 'convexlaw[cluster]'"
            ) from None
        except ValueError:
            raise ConvexlawError(
                "backend = 'dask' found no cluster: start one first, client = distributed.Client(address)"
            ) from None
    try:
        config = parallel_config(backend=name)
    except (ValueError, TypeError) as error:
        raise ConvexlawError(f"backend = {name!r} is none of joblib's: {error}") from None
    with config:
        yield
