"""Evidence on the clock of rc4: weight decay set to three values, weight norms and losses predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.simulations._evidence_data import dense, finals, logged, prolonged, spec_of
from convexlaw.simulations.evidence import EXPERIMENTS, load

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from convexlaw.simulations.sweep import RunSpec

__all__ = ["clock_losses", "clock_norms"]


def clock_norms() -> pd.DataFrame:
    """Weight norm relative to its start, predicted by the clock and measured, at constant rates.

    Returns
    -------
    DataFrame
        One row an initial spread and weight decay: rho at the last evaluation, predicted and measured (mean
        over the seeds), and the largest relative error along the runs.
    """
    import pandas as pd

    log = load("clock")
    rows = []
    for spread in ("0.02", "0.176777"):
        for decay in ("0.03", "0.1", "0.3"):
            ends, worst = [], 0.0
            for seed in (0, 1):
                name = f"constant_std{spread}_decay{decay}_seed{seed}"
                part = log[(log.run == name) & log.weight_norm.notna()]
                seen = part.weight_norm.to_numpy() / part.weight_norm.iloc[0]
                guess = _rho(spec_of("clock", name))[part.step.to_numpy()]
                ends.append((guess[-1], seen[-1]))
                worst = max(worst, float(np.abs(guess / seen - 1).max()))
            predicted, measured = np.mean(ends, axis=0)
            rows.append((spread, decay, predicted, measured, predicted / measured - 1, worst))
    names = ["init_std", "weight_decay", "predicted", "measured", "error", "worst"]
    return pd.DataFrame(rows, columns=names).set_index(["init_std", "weight_decay"])


def clock_losses() -> pd.DataFrame:
    """Losses under other weight decays, predicted by laws fitted at weight decay .1.

    Returns
    -------
    DataFrame
        One row an initial spread and held-out weight decay: mean absolute errors after the warmup of rc4 and
        of cvx4q, which is blind to weight decay (nats), and the final loss relative to that at .1 (nats):
        seen, and as rc4 predicts it; WSD runs, means over the seeds.
    """
    import pandas as pd

    from convexlaw.solvers.fit_curves import fit_curves

    errors: dict[tuple[str, str], list[list[float]]] = {}
    final = finals("clock")
    for spread in ("0.02", "0.176777"):
        for seed in (0, 1):
            specs = [s for s in EXPERIMENTS["clock"] if f"_std{spread}_" in s.name and s.options.seed == seed]
            frame = dense("clock", specs)
            given: dict[str, Any] = {
                "train": [s.name for s in specs if "_decay0.1_" in s.name],
                "split": "val",
            }
            std = specs[0].model.init_std
            rc4 = fit_curves(frame, "rc4", weight_decay=0.1, init_std=std, **given)
            plain = fit_curves(frame, "cvx4q", **given)
            base = f"wsd_std{spread}_decay0.1_seed{seed}"
            lr = prolonged(spec_of("clock", base).lr())
            for decay in ("0.03", "0.3"):
                parts: list[list[float]] = [[], []]
                for spec in specs:
                    if f"_decay{decay}_" in spec.name:
                        steps, seen = logged("clock", spec, after=100)
                        rates = prolonged(spec.lr())
                        for found, guess in zip(
                            parts,
                            (
                                rc4.predict(rates, at=steps, weight_decay=float(decay)),
                                plain.predict(rates, at=steps),
                            ),
                            strict=True,
                        ):
                            found.append(float(np.abs(guess - seen).mean()))
                last = [lr.size - 1]
                guessed = rc4.predict(lr, at=last, weight_decay=float(decay)) - rc4.predict(lr, at=last)
                change = final[base.replace("0.1_seed", f"{decay}_seed")] - final[base]
                errors.setdefault((spread, decay), []).append(
                    [*(float(np.mean(p)) for p in parts), change, float(guessed[0])]
                )
    names = ["rc4", "cvx4q", "change_seen", "change_rc4"]
    table = pd.DataFrame({key: np.mean(value, axis=0) for key, value in errors.items()}, index=names).T
    return table.rename_axis(["init_std", "weight_decay"])


def _rho(spec: RunSpec) -> NDArray[np.float64]:
    """Weight norm over its start before every update, as the clock of rc4 has it."""
    from convexlaw.theory._law_kernels import clock

    lr = prolonged(spec.lr())
    return np.asarray(lr / clock(lr, spec.options.weight_decay, spec.model.init_std))
