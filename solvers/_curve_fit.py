"""The result of fitting a law to training curves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._progress import progress_bar
from convexlaw._result import Result
from convexlaw.solvers._fit_metrics import curve_metrics
from convexlaw.solvers._fit_range import check_batch, warn_beyond
from convexlaw.solvers._fit_scores import predictions, warn_scored
from convexlaw.solvers._fit_state import FitState
from convexlaw.theory._law_inputs import floats, number
from convexlaw.theory.laws import CurveLaw, curve_law

if TYPE_CHECKING:
    import pandas as pd

    from convexlaw.solvers._fit_compare import Comparison
    from convexlaw.solvers._fit_identify import Identifiability
    from convexlaw.solvers._fit_transfer import Transfer

__all__ = ["CurveFit"]

Array = NDArray[np.float64]

LONG = 10000  # steps from which a law without a fast sum takes seconds


@dataclass(frozen=True)
class CurveFit(Result):
    """A law fitted to training curves.

    Attributes
    ----------
    law : str
        Name of the law.
    params : dict
        Fitted parameters by name: Linf in nats, a, b, alpha, ...
    objective : float
        Value at the optimum of the Huber sum on log loss (of half the sum of squares with
        ``protocol="paper"``).
    converged : bool
        Whether the fit reached its tolerance.
    protocol : {"robust", "paper"}
    split : {"train", "val"}
        The losses that were fitted.
    train : tuple of str
        Names of the fitted runs.
    runs : tuple of str
        Names of all runs given.
    notes : list of str
        What was dropped or decided.
    """

    law: str
    params: dict[str, float]
    objective: float
    converged: bool
    protocol: str
    split: str
    train: tuple[str, ...]
    runs: tuple[str, ...]
    notes: list[str]
    _state: FitState = field(repr=False)
    _figure: ClassVar[str] = "fits:plot_curve_fit"

    @property
    def model(self) -> CurveLaw:
        """The fitted law as a value, e.g. ``theory.laws.CVX4q(...)``."""
        return curve_law(self.law).from_params(self.params)

    def __str__(self) -> str:
        rows = self._state.solution
        lines = [
            f"{self.law} fitted to {len(self.train)} of {len(self.runs)} runs "
            f"({self.split} loss, protocol {self.protocol})"
        ]
        known = next((v for v in reversed(self._state.intervals.values())), None)
        for name, value in list(self.params.items())[:7]:
            text = f"  {name:<8} {value:.6g}"
            if known is not None:
                low, high = known["limits"][name]
                text += f"   {known['level']:.0%} [{low:.6g}, {high:.6g}]"
            lines.append(text)
        certificate = (
            f"converged, {rows.agreeing} of {rows.starts} starts agree" if self.converged else "NOT CONVERGED"
        )
        lines.append(f"  objective {self.objective:.6g} ({certificate})")
        held = len(self.runs) - len(self.train)
        lines.append(f"  {held} held-out run{'s' if held != 1 else ''}; {len(self.notes)} notes")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Parameters as rows: parameter, value, and low, high of the intervals computed last."""
        import pandas as pd

        frame = pd.DataFrame({"parameter": list(self.params), "value": list(self.params.values())})
        known = next((v for v in reversed(self._state.intervals.values())), None)
        if known is not None:
            frame["low"] = [known["limits"][name][0] for name in frame["parameter"]]
            frame["high"] = [known["limits"][name][1] for name in frame["parameter"]]
        return frame

    @property
    def identifiability(self) -> Identifiability:
        """What the fitted data cannot tell, and which run would tell it."""
        from convexlaw.solvers._fit_identify import identify

        if self._state.identifiability is None:
            self._state.identifiability = identify(self)
        found: Identifiability = self._state.identifiability
        return found

    def predict(
        self,
        lr: ArrayLike | str,
        batch_size: ArrayLike | None = None,
        *,
        at: ArrayLike | None = None,
        weight_decay: float | None = None,
        init_std: float | None = None,
    ) -> Array:
        """Predict the loss along a schedule.

        Parameters
        ----------
        lr : (T,) array or str
            Learning rate of every update, or the text of a schedule such as
            ``"wsd:steps=50000,peak=1e-3,decay=0.2"``.
        batch_size : float or (T,) array, optional
            Needed where the law was fitted with a batch term.
        at : (n,) int array, optional
            Steps wanted; default all. Value k is the loss after the updates 0..k-1: for the loss after the
            last update append the continued schedule.
        weight_decay, init_std : float, optional
            For rc4; default those of the fitted runs.

        Returns
        -------
        (T,) or (n,) array
            In nats.

        Raises
        ------
        ConvexlawError
            A bad schedule, or a batch size that the fit knows nothing of.

        Warns
        -----
        ExtrapolationWarning
            Beyond 4 times the steps, the sum of learning rates, or the peaks of the fitted runs.
        """
        if isinstance(lr, str):
            from convexlaw.theory.schedules import parse

            lr = parse(lr)
        rates = floats("lr", lr)
        state = self._state
        warn_beyond(state, rates, at)
        sizes = check_batch(state, rates, batch_size)
        decay = state.weight_decay if weight_decay is None else weight_decay
        constants = {
            "weight_decay": number("weight_decay", decay or 0.0),
            "init_std": state.init_std if init_std is None else init_std,
        }
        if self.law == "multipower" and at is None and rates.ndim == 1 and rates.size > LONG:
            # the only law without a fast sum: T^2/2 powers, so in pieces with a bar
            pieces = np.array_split(np.arange(rates.size), rates.size // 1000)
            parts = []
            with progress_bar("predicting", rates.size) as advance:
                for piece in pieces:
                    parts.append(self.model.predict(rates, piece, sizes, **constants))
                    advance(piece.size)
            return np.concatenate(parts)
        return self.model.predict(rates, at, sizes, **constants)

    def score(self, runs: Any = None) -> pd.DataFrame:
        """Errors of the fit, a run at a time.

        Parameters
        ----------
        runs : str, list of str, RunTable, path or frame, optional
            Names or globs of runs given to the fit, or other logs. Default: the runs held out by ``train=``,
            all runs where none is. With ``protocol="paper"`` a fitted run is scored on its second half.

        Returns
        -------
        DataFrame
            One row a run: run, trained, points, r2, mae, rmse, prede (mean |e|/L), worste (max |e|/L),
            final_error (prediction - loss at the last row), last_value_mae: the mean absolute error of the
            constant "last loss of the fitted run with the most steps" (mean over runs of that length). Rows
            before the end of the LR warmup are not scored.

        Warns
        -----
        ExtrapolationWarning
            Scored losses lie beyond 4 times the steps, the sum of rates or the peaks of the fitted runs.
        """
        import pandas as pd

        rows = []
        found = predictions(self, runs)
        warn_scored(self._state.ranges, found)
        for (name, _, loss, predicted, trained), _ in found:
            metrics = curve_metrics(loss, predicted)
            last = float(np.mean(np.abs(loss - self._state.last_value))) if loss.size else float("nan")
            rows.append(
                {"run": name, "trained": trained, "points": loss.size, **metrics, "last_value_mae": last}
            )
        return pd.DataFrame(rows)

    def _predictions(
        self, runs: Any = None, *, every: bool = False
    ) -> list[tuple[str, Any, Array, Array, bool]]:
        return [row for row, _ in predictions(self, runs, every=every)]

    def residuals(self) -> pd.DataFrame:
        """Return run, step, trained, loss, predicted, residual (log loss - log prediction) of every run."""
        import pandas as pd

        parts = [
            pd.DataFrame(
                {
                    "run": name,
                    "step": steps,
                    "trained": trained,
                    "loss": loss,
                    "predicted": predicted,
                    "residual": np.log(loss) - np.log(predicted),
                }
            )
            for name, steps, loss, predicted, trained in self._predictions(list(self.runs), every=True)
            if loss.size
        ]
        return pd.concat(parts, ignore_index=True)

    def interval(
        self,
        level: float = 0.95,
        method: str = "bootstrap",
        *,
        over: str = "auto",
        resamples: int = 1000,
        block: int = 10,
        seed: int = 0,
        jobs: int = 1,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Intervals of the parameters.

        Parameters
        ----------
        level : float, default 0.95
        method : {"bootstrap", "profile"}
            Percentiles of refits to resampled data (expanded for few blocks or curves), or the values whose
            best fit is not significantly worse.
        over : {"auto", "curves", "within"}
            Bootstrap over whole curves, or over blocks of residuals within each curve. "auto": curves where
            at least 8 are fitted, else within.
        resamples : int, default 1000
        block : int, default 10
            Rows in a block of residuals.
        seed : int, default 0
            The same seed gives the same intervals, whatever ``jobs`` is.
        jobs : int, default 1
            Processes (joblib).
        progress : bool, optional
            As in other long work: None shows a bar on a terminal.

        Returns
        -------
        DataFrame
            Indexed by parameter: estimate, low, high. A limit at the end of a parameter's range (0, infinity)
            means that the data does not bound it there.
            Within the law 95 % limits of cvx4q held the truth in 90 to 97 % of simulated data sets, noise
            independent or AR(1) with .7 (benchmarks/sections/fit.md).
        """
        from convexlaw.solvers._fit_intervals import curve_interval

        level = number("level", level)
        return curve_interval(self, level, method, over, resamples, block, seed, jobs, progress)

    def band(
        self,
        lr: ArrayLike | str,
        level: float = 0.95,
        *,
        at: ArrayLike | None = None,
        batch_size: ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Pointwise band of the predicted loss from the bootstrap refits (the law's failure is not in it).

        Parameters
        ----------
        lr, at, batch_size
            As in predict.
        level : float, default 0.95

        Returns
        -------
        low, high : (T,) or (n,) arrays

        Warns
        -----
        ExtrapolationWarning
            As predict.
        """
        from convexlaw.solvers._fit_intervals import band
        from convexlaw.theory.schedules import parse

        rates = floats("lr", parse(lr) if isinstance(lr, str) else lr)
        limits = band(self, rates, number("level", level), at, batch_size)
        warn_beyond(self._state, rates, at)
        return limits

    def compare(self, laws: Sequence[str] | None = None, *, progress: bool | None = None) -> pd.DataFrame:
        """Compare laws on the fitted runs by cross-validation over curves and horizons.

        Parameters
        ----------
        laws : sequence of str, optional
            Default: cvx4q, rc4 (where the weight decay is known), cvx4, cb4, cd3, tissue.
        progress : bool, optional
            None shows a bar on a terminal.

        Returns
        -------
        DataFrame
            One row a law, best first: law, mae and its standard error se over runs (nats), curve_mae,
            horizon_mae, ratio to the best law with ratio_low, ratio_high (95 %, paired over runs), failed
            fits, winner (true for the law that beats every other one beyond the scatter over runs; for none
            where none does). ``.attrs["sentence"]`` says it in words. ``comparison`` gives the errors of
            every run as well.
        """
        return self.comparison(laws, progress=progress).to_frame()

    def comparison(self, laws: Sequence[str] | None = None, *, progress: bool | None = None) -> Comparison:
        """Compare laws as in compare, with the errors of every fold and run, the winner and a plot."""
        from convexlaw.solvers._fit_compare import compare

        return compare(self, laws, progress=progress)

    def transfer(self, shape: str, steps: Sequence[int], **options: Any) -> Transfer:
        """Find the peak learning rate that the fitted law thinks best at several horizons.

        Parameters
        ----------
        shape : str
            Text of a schedule without steps and peak, e.g. ``"wsd:decay=0.2,warmup=300"``.
        steps : sequence of int
            Horizons.
        **options
            ``peaks=(low, high)``: the range searched (default 16 times the fitted one either way);
            ``points=41`` of its grid; ``level=0.95``; ``batch_size`` where the law has a batch term.

        Returns
        -------
        Transfer
            Best peak at each horizon with its interval, the exponent beside the theory's -1/2, and which law
            to trust.

        Warns
        -----
        ExtrapolationWarning
            A horizon, or the best peak there, lies beyond 4 times the fitted range.
        """
        from convexlaw.solvers._fit_transfer import transfer

        return transfer(self, shape, steps, **options)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the fit, its intervals so far and its predictions on the runs; ``load_fit`` reads it back."""
        from convexlaw.solvers._fit_json import write_curve_fit

        write_curve_fit(self, path)
