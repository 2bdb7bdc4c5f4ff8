"""Evidence on the clock of rc4: weight decay set to three values, weight norms and losses predicted."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.simulations._evidence_data import dense, finals, logged, prolonged, spec_of
from convexlaw.simulations.evidence import EXPERIMENTS, load

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from convexlaw.simulations.sweep import RunSpec

__all__ = ["clock_losses", "clock_norms"]

_SPREADS = ("0.02", "0.176777")
_SEEDS = (0, 1)


def clock_norms() -> pd.DataFrame:
    """Weight norm relative to its start, predicted by the clock and measured, at constant rates.

    Returns
    -------
    DataFrame
        One row an initial spread and weight decay: rho at the last evaluation, predicted and measured (means
        over the seeds), the largest relative error along the runs, and the relative errors with
        the spread of the clock set to what makes it right at the end of the runs of weight decay .1.
    """
    import pandas as pd

    rows = []
    for spread in _SPREADS:
        for decay in ("0.03", "0.1", "0.3"):
            found = []
            for seed in _SEEDS:
                name = f"constant_std{spread}_decay{decay}_seed{seed}"
                steps, seen = _measured(name)
                spec = spec_of("clock", name)
                guess = _rho(spec, spec.model.init_std)[steps]
                tuned = _rho(spec, _fitted_spread(spread, seed))[steps]
                errors = np.abs(guess / seen - 1).max(), tuned[-1] / seen[-1] - 1
                found.append((guess[-1], seen[-1], guess[-1] / seen[-1] - 1, *errors))
            rows.append((spread, decay, *np.mean(found, axis=0)))
    names = ["init_std", "weight_decay", "predicted", "measured", "error", "worst", "error_tuned"]
    return pd.DataFrame(rows, columns=names).set_index(["init_std", "weight_decay"])


def clock_losses() -> pd.DataFrame:
    """Losses under other weight decays, predicted by laws fitted at weight decay .1.

    Returns
    -------
    DataFrame
        One row an initial spread and held-out weight decay: mean absolute errors after the warmup of rc4, of
        rc4 with the spread of :func:`clock_norms` that was set by the weight norm (``tuned``), and of cvx4q,
        which is blind to weight decay (nats); then the final loss of WSD relative to that at .1, seen and as
        the two clocks have it. Means over the seeds.
    """
    import pandas as pd

    from convexlaw.solvers.fit_curves import fit_curves

    found: dict[tuple[str, str], list[list[float]]] = {}
    final = finals("clock")
    for spread, seed in itertools.product(_SPREADS, _SEEDS):
        specs = [s for s in EXPERIMENTS["clock"] if f"_std{spread}_" in s.name and s.options.seed == seed]
        given: dict[str, Any] = {"train": [s.name for s in specs if "_decay0.1_" in s.name], "split": "val"}
        frame = dense("clock", specs)
        clocks = [
            fit_curves(frame, "rc4", weight_decay=0.1, init_std=std, **given)
            for std in (specs[0].model.init_std, _fitted_spread(spread, seed))
        ]
        plain = fit_curves(frame, "cvx4q", **given)
        base = f"wsd_std{spread}_decay0.1_seed{seed}"
        lr = prolonged(spec_of("clock", base).lr())
        for decay in ("0.03", "0.3"):
            errors = []
            for spec in (s for s in specs if f"_decay{decay}_" in s.name):
                steps, seen = logged("clock", spec, after=100)
                rates = prolonged(spec.lr())
                guesses = [fit.predict(rates, at=steps, weight_decay=float(decay)) for fit in clocks]
                guesses.append(plain.predict(rates, at=steps))
                errors.append([float(np.abs(guess - seen).mean()) for guess in guesses])
            last = [lr.size - 1]
            changes = [
                float((fit.predict(lr, at=last, weight_decay=float(decay)) - fit.predict(lr, at=last))[0])
                for fit in clocks
            ]
            seen_change = final[base.replace("0.1_seed", f"{decay}_seed")] - final[base]
            found.setdefault((spread, decay), []).append([*np.mean(errors, axis=0), seen_change, *changes])
    names = ["rc4", "tuned", "cvx4q", "change_seen", "change_rc4", "change_tuned"]
    table = pd.DataFrame({key: np.mean(value, axis=0) for key, value in found.items()}, index=names).T
    return table.rename_axis(["init_std", "weight_decay"])


def _measured(name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Give the steps at which the weight norm was logged, and its ratio to the first."""
    log = load("clock")
    part = log[(log.run == name) & log.weight_norm.notna()]
    return part.step.to_numpy(), part.weight_norm.to_numpy() / part.weight_norm.iloc[0]


def _rho(spec: RunSpec, init_std: float) -> NDArray[np.float64]:
    """Weight norm over its start before every update, as the clock of rc4 has it."""
    from convexlaw.theory._law_kernels import clock

    lr = prolonged(spec.lr())
    return np.asarray(lr / clock(lr, spec.options.weight_decay, init_std))


def _fitted_spread(spread: str, seed: int) -> float:
    """Find the spread for which the clock meets the measured norm at the end of the run of decay .1."""
    from scipy.optimize import brentq

    name = f"constant_std{spread}_decay0.1_seed{seed}"
    spec = spec_of("clock", name)
    steps, seen = _measured(name)
    std = spec.model.init_std
    return float(brentq(lambda s: _rho(spec, s)[steps[-1]] - seen[-1], 0.1 * std, 10 * std, xtol=1e-6 * std))
