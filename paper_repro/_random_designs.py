"""Random signals, noise levels and penalties, with the limits that state evolution gives for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from convexlaw.theory.scalar_limit import BH, KLevel, Lasso, Oscar, Penalty, Prior, TwoLevel
from convexlaw.theory.state_evolution import NoFixedPointError, NonPositiveLambdaError, alpha_min, solve

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["lasso_points", "random_prior", "slope_points"]


def random_prior(epsilon: float, rng: np.random.Generator) -> Prior:
    """Signals of one to three random sizes over four decades, half the time with a normal spread."""
    k = int(rng.integers(1, 4))
    weights = epsilon * rng.dirichlet(np.full(k, 0.7))
    means = np.exp(rng.uniform(np.log(0.05), np.log(50.0), k))
    spread = means**2 * (rng.random(k) < 0.3) * rng.random(k)
    return Prior((1.0 - epsilon, *weights.tolist()), (0.0, *means.tolist()), (0.0, *spread.tolist()))


def _noise(rng: np.random.Generator) -> float:
    # one in five without noise: the trade-off is there even then
    return 0.0 if rng.random() < 0.2 else float(np.exp(rng.uniform(np.log(0.01), np.log(30.0))))


def lasso_points(delta: float, epsilon: float, count: int, seed: int) -> pd.DataFrame:
    """Limits of ``count`` random Lasso problems: tpp, fdp, mse, sigma, alpha."""
    low = max(alpha_min(delta), 1e-3)

    def penalty(rng: np.random.Generator) -> Penalty:
        return Lasso(low * 1.0005 + float(np.exp(rng.uniform(np.log(1e-3), np.log(3.5)))))

    return _points(penalty, delta, epsilon, count, seed)


def slope_points(delta: float, epsilon: float, count: int, seed: int) -> pd.DataFrame:
    """Limits of ``count`` random SLOPE problems: two levels, BH, OSCAR, four levels."""

    def penalty(rng: np.random.Generator) -> Penalty:
        kind = int(rng.integers(8))
        if kind == 0:
            return BH(float(rng.uniform(0.4, 1.5)), float(rng.uniform(0.02, 0.6)))
        if kind == 1:
            return Oscar(float(rng.uniform(0.1, 1.5)), float(rng.uniform(0.2, 3.0)))
        if kind == 2:
            levels = np.sort(rng.uniform(0.0, 3.0, 4))[::-1]
            return KLevel(tuple(levels.tolist()), tuple(rng.dirichlet(np.ones(4)).tolist()))
        low = float(rng.uniform(0.0, 2.0))
        return TwoLevel(low + float(rng.uniform(0.05, 2.5)), low, float(rng.uniform(0.02, 0.6)))

    return _points(penalty, delta, epsilon, count, seed)


def _points(
    penalty: Callable[[np.random.Generator], Penalty], delta: float, epsilon: float, count: int, seed: int
) -> pd.DataFrame:
    import pandas as pd

    rng = np.random.default_rng(seed)
    rows: list[tuple[float, float, float, float, float, str]] = []
    while len(rows) < count:
        prior, sigma, chosen = random_prior(epsilon, rng), _noise(rng), penalty(rng)
        try:
            state = solve(prior, chosen, delta, sigma)
        except (NoFixedPointError, NonPositiveLambdaError):
            continue  # no problem has this penalty
        if state.tau == 0:
            continue  # exact recovery: nothing is shrunk and no lambda > 0 belongs to it
        name = type(chosen).__name__
        # a sum of weights may round to just above 1
        rows.append((min(state.tpp, 1.0), state.fdp, state.mse, state.df, sigma, name))
    return pd.DataFrame(rows, columns=["tpp", "fdp", "mse", "df", "sigma", "penalty"])
