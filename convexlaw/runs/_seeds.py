"""Several seeds of one run: found by their names, pooled on request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from convexlaw.errors import ConvexlawError
from convexlaw.runs._raw import Note, listed, plural

if TYPE_CHECKING:
    from convexlaw.runs._run_table import RunTable

__all__ = ["pool", "seed_groups"]

_SEED = re.compile(r"(?:^|[_\-./ ])seed[_=\-: ]?\d+(?!\d)", re.IGNORECASE)
_SHORT = re.compile(r"[_\-./ ]s\d{1,5}$")


def _without_seed(name: str) -> str | None:
    for pattern in (_SEED, _SHORT):
        rest, count = pattern.subn("", name)
        if count:
            return re.sub(r"[_\-./ ]+$|^[_\-./ ]+", "", rest) or "run"
    return None


def seed_groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Group runs whose names differ by the seed alone; groups of one are left out.

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    dict of str to list of str
        Name without the seed to the runs.
    """
    bases = {name: _without_seed(name) for name in names}
    groups: dict[str, list[str]] = {}
    for name in names:
        base = bases[name] or name  # a run without a seed in its name is one more of them
        groups.setdefault(base, []).append(name)
    return {base: members for base, members in groups.items() if len(members) > 1}


def pool(
    table: RunTable, groups: Mapping[str, Sequence[str]]
) -> tuple[pd.DataFrame, dict[str, dict[str, Any]], list[str]]:
    """Average the runs of every group over the steps that all of them logged.

    Returns
    -------
    frame : pandas.DataFrame
        Rows of the pooled runs, with ``loss_min``, ``loss_max``, ``loss_std`` (over seeds, n - 1) and
        ``seeds``.
    meta : dict of str to dict
    notes : list of str
    """
    frames: list[pd.DataFrame] = []
    metas: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for base, members in groups.items():
        rows = table.frame.loc[table.frame["run"].isin(list(members))]
        parts = []
        dropped = 0
        for split, own in rows.groupby("split", sort=False):
            losses = own.pivot(index="step", columns="run", values="loss")
            whole = losses.dropna()
            dropped += len(losses) - len(whole)
            if whole.empty:
                continue
            rates = own.pivot(index="step", columns="run", values="lr").loc[whole.index]
            spread = (rates.max(axis=1) - rates.min(axis=1)) > 1e-6 * rates.max(axis=1)
            if spread.any():
                raise ConvexlawError(
                    f"runs {listed(members)} differ in learning rate at "
                    f"{plural(int(spread.sum()), 'step')} (first {whole.index[spread.to_numpy()][0]}): "
                    "only seeds of one run are pooled"
                )
            others = own.groupby("step")[["batch_size", "tokens", "grad_norm"]].mean().loc[whole.index]
            parts.append(
                pd.DataFrame(
                    {
                        "run": base,
                        "step": whole.index.to_numpy(),
                        "lr": rates.mean(axis=1).to_numpy(),
                        **{c: others[c].to_numpy() for c in ("batch_size", "tokens")},
                        "loss": whole.mean(axis=1).to_numpy(),
                        "split": split,
                        "grad_norm": others["grad_norm"].to_numpy(),
                        "loss_min": whole.min(axis=1).to_numpy(),
                        "loss_max": whole.max(axis=1).to_numpy(),
                        "loss_std": whole.std(axis=1, ddof=1).to_numpy(),
                        "seeds": float(len(members)),
                    }
                )
            )
        if not parts:
            raise ConvexlawError(f"runs {listed(members)} have no step in common: they cannot be pooled")
        frame = pd.concat(parts, ignore_index=True)
        frames.append(frame)
        metas[base] = {**table.meta[members[0]], "pooled": list(members)}
        last = frame.loc[frame["step"] == frame["step"].max(), "loss_std"].iloc[0]
        text = (
            f"mean of {len(members)} seeds ({listed(members, 3)}), "
            f"standard deviation {last:.3g} nats at the last step"
        )
        if dropped:
            text += f"; {plural(dropped, 'row')} that not every seed logged left out"
        notes.append(Note(base, "pooled", text))
    return pd.concat(frames, ignore_index=True), metas, notes
