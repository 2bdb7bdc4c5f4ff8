"""What the cross-validated estimators share: the path on all rows, the folds, the choice."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvergenceWarning, ConvexlawError
from convexlaw.solvers._cv_curve import SELECTIONS, CVCurve, make_curve
from convexlaw.solvers._cv_gram import fold_gram, moments, sharing_pays
from convexlaw.solvers._cv_run import Data, FoldScores, Plan, place, run_folds
from convexlaw.solvers._cv_splits import make_splits
from convexlaw.solvers._slope_problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from convexlaw.solvers._cv_splits import Split
    from convexlaw.solvers._glm_problem import GlmProblem
    from convexlaw.solvers.path import SlopePath

    Vector = NDArray[np.float64]

# what the score of a loss is called without ``scoring``
_NAMES = {"quadratic": "mean squared error", "poisson": "Poisson deviance", "huber": "Huber deviance"}


class CrossValidated:
    """Mixin of the cross-validated estimators; a subclass says which penalty sequences are tried."""

    alphas: Any
    n_alphas: int
    eps: float | None
    cv: Any
    repeats: int
    selection: str
    scoring: Any
    n_jobs: Any
    backend: str | None
    random_state: Any
    progress: bool | None
    tol: float
    solver: str
    loss: str
    threshold: float
    reference: bool

    def _point(self) -> Any:
        """Return an unfitted estimator with the predictions of this one, for scorers."""
        raise NotImplementedError

    if TYPE_CHECKING:

        def _options(self) -> dict[str, Any]: ...

        def _sequences(self, size: int) -> list[tuple[str, dict[str, Any]]]:
            """Penalty sequences to try on so many coefficients: a name, and keywords of the problem."""

    def _choose(
        self,
        data: tuple[Any, Any, list[Any] | None],
        fit_weight: Any,
        score_weight: Any,
        offset: Any,
        groups: Any,
        classes: NDArray[Any] | None = None,
    ) -> None:
        """Cross-validate checked data and set the fitted attributes.

        ``data``: matrix, response (numbers of the classes where there are some), names of the columns.
        """
        from convexlaw.solvers._glm_problem import make_problem
        from convexlaw.solvers._slope_input import as_weights

        if self.selection not in SELECTIONS:
            raise ConvexlawError(f"selection = {self.selection!r}: use 'min' or '1se'")
        matrix, y, names = data
        family: dict[str, Any] = {"loss": self.loss}
        if classes is None:
            family["threshold"] = self.threshold
        else:
            family["reference"] = bool(self.reference)
        options = self._options()
        columns = y.shape[1] if y.ndim == 2 else 1
        width = columns if classes is None or self.loss == "logistic" else classes.size - self.reference
        sequences = self._sequences(matrix.shape[1] * width)
        base = make_problem(
            matrix,
            y,
            sample_weight=fit_weight,
            offset=offset,
            names=names,
            **family,
            **sequences[0][1],
            **options,
        )
        n = matrix.shape[0]
        labels = y if classes is None else classes[y]
        splits, repeats = make_splits(
            self.cv, self.repeats, self.random_state, matrix, labels, groups, classifier=classes is not None
        )
        whole = Data(
            X=matrix,
            y=np.asarray(y, dtype=np.float64) if classes is None else y,
            fit_weight=as_weights(fit_weight, n),
            score_weight=as_weights(score_weight, n),
            offset=None if offset is None else np.asarray(offset, dtype=np.float64),
        )
        if isinstance(base, Problem):
            self._share(base, whole, splits, len(sequences))
        paths = [self._path(base.with_penalty(**penalty)) for _, penalty in sequences]
        scorer, criterion, greater = self._criterion(offset is not None)
        plan = Plan(
            options={**family, **options},
            penalties=[penalty for _, penalty in sequences],
            alphas=[path.alphas for path in paths],
            point=self._point(),
            scorer=scorer,
            weighted=score_weight is not None,
            classes=classes,
        )
        folds = run_folds(
            whole, splits, plan, n_jobs=self.n_jobs, backend=self.backend, progress=self.progress
        )
        self._warn_of_folds(folds)
        self.curves_: list[CVCurve] = [
            make_curve(
                path.alphas,
                np.stack([fold.scores[i] for fold in folds], axis=1),
                n_nonzero=np.count_nonzero(path.coefs.reshape(-1, path.alphas.size), axis=0),
                n_clusters=path.n_clusters,
                selection=self.selection,
                criterion=criterion,
                greater_is_better=greater,
                repeats=repeats,
                penalty=sequences[i][0],
            )
            for i, path in enumerate(paths)
        ]
        means = np.array([curve.mean[curve.best] for curve in self.curves_])
        self._take(paths, int(np.argmax(means) if greater else np.argmin(means)))

    def _share(self, base: Problem, whole: Data, splits: list[Split], n_sequences: int) -> None:
        """Moments of all rows where Gram matrices by subtraction pay; the full problem takes its own."""
        n_alphas = self.n_alphas if self.alphas is None else np.size(self.alphas)
        left_out = [base.n - np.unique(train).size for train, _ in splits]
        if not sharing_pays(whole.X, left_out, base.solver, n_sequences * int(n_alphas)):
            return
        whole.origin = np.zeros(base.p) if base.design.shift is None else base.design.shift
        whole.gram = moments(whole.X, whole.fit_weight, whole.origin)
        base.gram = fold_gram(
            base.design, whole.X, whole.fit_weight, whole.fit_weight, whole.origin, whole.gram
        )
        base.solver = "gram"

    def _path(self, problem: Problem | GlmProblem) -> SlopePath:
        from convexlaw.solvers.path import check_alphas, path_of

        alphas = None if self.alphas is None else np.sort(check_alphas(self.alphas))[::-1]
        return path_of(problem, alphas, self.n_alphas, self.eps, progress=False)

    def _criterion(self, offset: bool) -> tuple[Any, str, bool]:
        if self.scoring is None:
            return None, _NAMES.get(self.loss, f"{self.loss} deviance"), False
        if offset:
            raise ConvexlawError(
                f"scoring = {self.scoring!r} with an offset: scorers cannot pass one on; leave scoring out "
                "for the deviance"
            )
        from sklearn.metrics import check_scoring

        try:
            scorer = check_scoring(self._point(), scoring=self.scoring)
        except ValueError:
            raise ConvexlawError(
                f"scoring = {self.scoring!r} is no scorer: sklearn.metrics.get_scorer_names() has the names; "
                "leave scoring out for the deviance"
            ) from None
        name = self.scoring if isinstance(self.scoring, str) else getattr(scorer, "__name__", "score")
        return scorer, str(name), True

    def _warn_of_folds(self, folds: list[FoldScores]) -> None:
        short = sum(fold.short for fold in folds)
        if short:
            worst = max(fold.worst for fold in folds)
            warnings.warn(
                f"{type(self).__name__}: {short} solutions on the folds stopped at a duality gap of up to "
                f"{worst:.2e} P(0), above tol = {self.tol:g}: raise max_iter, or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _take(self, paths: list[SlopePath], best: int) -> None:
        """Set the attributes from the chosen column of the best path."""
        self.path_: SlopePath = paths[best]
        self.curve_: CVCurve = self.curves_[best]
        self.best_index_ = best
        path, k = self.path_, self.curve_.chosen
        self.alphas_: Vector = path.alphas
        self.alpha_ = float(path.alphas[k])
        self.cv_scores_: Vector = self.curve_.scores
        self.cv_mean_: Vector = self.curve_.mean
        self.cv_se_: Vector = self.curve_.se
        place(self, path.coefs[..., k].copy(), path.intercepts[..., k])
        self.lambda_: Vector = path.lambda_
        self.dual_gap_ = float(path.dual_gaps[k])
        self.null_objective_ = path.null
        self.n_iter_ = max(1, int(path.n_iter[k]))
        self.n_clusters_ = int(path.n_clusters[k])
        self.converged_ = bool(path.converged[k])
