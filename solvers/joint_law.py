"""The joint law in learning rates and batch sizes: noise b N(lr) + b_batch N(lr, 1/batch), and its rules."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convexlaw._result import Result
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._curve_fit import CurveFit
from convexlaw.solvers._fit_intervals import check_level
from convexlaw.solvers._plan_losses import draws_of, limits_of, no_batch_reason
from convexlaw.solvers._scaling_rules import ScalingRules, scaling_rules
from convexlaw.solvers.fit_curves import fit_curves
from convexlaw.theory.batch import critical_batch_size

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JointLaw", "ScalingRules", "fit_joint", "joint_law", "scaling_rules"]


@dataclass(frozen=True)
class JointLaw(Result):
    """A fitted law in (learning rates, batch sizes): what of the noise falls as 1/batch, what stays.

    Attributes
    ----------
    law : str
        Name of the law.
    params : dict
        Fitted parameters: b stands for G^2/2 of the bound, b_batch for sigma^2/2 (times the law's own units).
    noise_scale : float
        b_batch/b = sigma^2/G^2, in the unit of the logged batch size: at this batch both parts are equal.
    low, high : float
        Its interval from the bootstrap draws; NaN where the fit has none.
    level : float
    batches : (float, float)
        Smallest and largest fitted batch size.
    sentences : list of str
        What the data cannot tell.
    """

    law: str
    params: dict[str, float]
    noise_scale: float
    low: float
    high: float
    level: float
    batches: tuple[float, float]
    sentences: list[str]
    fit: CurveFit = field(repr=False)
    _figure: ClassVar[str] = "planner:plot_joint_law"

    def noise_share(self, batch_size: ArrayLike) -> Any:
        """Part of the noise at a constant batch size that falls as 1/batch, between 0 and 1."""
        b = np.asarray(batch_size, dtype=np.float64)
        if not bool(np.all(b > 0)):
            raise ConvexlawError(f"batch_size = {batch_size!r}: give positive numbers")
        share = np.ones_like(b) if math.isinf(self.noise_scale) else self.noise_scale / (self.noise_scale + b)
        return float(share) if share.ndim == 0 else share

    def critical_batch_size(self, shape: Any) -> tuple[float, float]:
        """Critical batch with a static batch, sigma^2/G^2, and with the optimal batch schedule of ``shape``.

        Parameters
        ----------
        shape : str, callable or (T,) array
            As in ``theory.batch.critical_batch_size``.
        """
        if math.isinf(self.noise_scale):
            return math.inf, math.inf
        return critical_batch_size(shape, self.noise_scale, 1.0)

    def predict(
        self, lr: ArrayLike | str, batch_size: ArrayLike, *, at: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Losses along a schedule, as ``CurveFit.predict``."""
        return self.fit.predict(lr, batch_size, at=at)

    def to_frame(self) -> pd.DataFrame:
        """Parameters and the noise scale as rows: quantity, value, low, high."""
        import pandas as pd

        known = self.fit.to_frame().rename(columns={"parameter": "quantity"})
        row = {"quantity": "noise_scale", "value": self.noise_scale, "low": self.low, "high": self.high}
        return pd.concat([known, pd.DataFrame([row])], ignore_index=True)

    def __str__(self) -> str:
        low, high = self.batches
        lines = [f"joint law {self.law}, batch sizes {low:g} to {high:g}"]
        lines += [f"  {name:<8} {value:.6g}" for name, value in list(self.params.items())[:6]]
        limits = "" if math.isnan(self.low) else f"   {self.level:.0%} [{self.low:.4g}, {self.high:.4g}]"
        lines.append(f"  noise scale b_batch/b = {self.noise_scale:.4g}{limits}")
        return "\n".join([*lines, *(f"- {s}" for s in self.sentences[:3])])


def joint_law(fit: CurveFit, *, level: float = 0.95) -> JointLaw:
    """Joint law of a fit whose runs have at least two batch sizes.

    Parameters
    ----------
    fit : CurveFit
    level : float
        Of the interval of the noise scale.

    Returns
    -------
    JointLaw

    Raises
    ------
    ConvexlawError
        The fit cannot tell the two parts of the noise apart; the message says why and which run would tell.

    References
    ----------
    arXiv 2607.27731, section 2.4: with a constant batch the columns of G^2 and sigma^2 are collinear.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from convexlaw import fit_curves
    >>> from convexlaw.theory.laws import CVX4q
    >>> law, lr = CVX4q(2.0, 0.5, 10.0, 0.5, b_batch=320.0), np.linspace(1e-3, 1e-5, 400)
    >>> rows = [
    ...     {"run": f"b{b}", "step": k, "lr": lr[k], "batch_size": b, "loss": x}
    ...     for b in (16, 64) for k, x in enumerate(law.predict(lr, batch_size=b))
    ... ]
    >>> fit = fit_curves(pd.DataFrame(rows), "cvx4q")
    >>> limits = fit.interval(resamples=20)
    >>> round(joint_law(fit).noise_scale, 2)
    32.0
    """
    check_level(level)
    reason = no_batch_reason(fit)
    if reason:
        raise ConvexlawError(f"no joint law: {reason}")
    b, b_batch = fit.params["b"], fit.params["b_batch"]
    scale = b_batch / b if b > 0 else math.inf if b_batch > 0 else math.nan
    low = high = math.nan
    draws = draws_of(fit)
    sentences = []
    if draws is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = draws[:, 3] / draws[:, 2]
        low, high = limits_of(np.where(np.isnan(ratios), 0.0, ratios), level)
    known = fit._state.ranges.batches
    batches = (math.nan, math.nan) if known is None else known
    if math.isnan(scale):
        sentences.append("No noise is seen at all: b and b_batch ended at 0; runs with cooldowns would tell.")
    elif scale == 0 or low == 0:
        sentences.append(
            "That any noise falls with the batch is not shown by the data: the noise scale may be 0; "
            "a run with a much smaller batch would tell."
        )
    if math.isinf(scale) or math.isinf(high):
        sentences.append(
            "That any noise stays at large batches is not shown by the data: the noise scale may be "
            "infinite; a run with a much larger batch would tell."
        )
    if batches[1] < 4 * batches[0]:
        sentences.append(
            f"The batch sizes differ by a factor of {batches[1] / batches[0]:.3g} only: "
            "the split of the noise rests on that."
        )
    if draws is None:
        sentences.append(
            "The fit holds no bootstrap draws: call .interval() before .to_json() for intervals."
        )
    return JointLaw(fit.law, dict(fit.params), scale, low, high, level, batches, sentences, fit)


def fit_joint(runs: Any, law: str = "auto", *, level: float = 0.95, **options: Any) -> JointLaw:
    """Fit the joint law to runs with at least two batch sizes.

    Parameters
    ----------
    runs, law, **options
        As in ``fit_curves``.
    level : float
        Of the interval of the noise scale.

    Returns
    -------
    JointLaw
        ``.fit`` is the fit itself.

    Raises
    ------
    ConvexlawError
        As in ``fit_curves`` and :func:`joint_law`.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"run": "a", "step": range(4), "lr": 1e-3, "loss": [3.0, 2.5, 2.3, 2.2]})
    >>> fit_joint(log.assign(batch_size=32), "cd3")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    convexlaw.errors.ConvexlawError: no joint law: every fitted step uses the batch size 32, so of the ...
    """
    return joint_law(fit_curves(runs, law, **options), level=level)
