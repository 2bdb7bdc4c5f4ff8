"""Saved fits: JSON with a schema version."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw._files import write_json
from convexlaw.errors import ConvexlawError
from convexlaw.solvers._fit_data import Constants
from convexlaw.solvers._fit_state import FitState, Ranges
from convexlaw.solvers.fit import Solution

if TYPE_CHECKING:
    from convexlaw.solvers._curve_fit import CurveFit
    from convexlaw.solvers._table_fit import TableFit

FORMAT = "convexlaw-fit"
SCHEMA = 1  # raised where an older reader would misread a file


def _plain(value: Any) -> Any:
    """JSON without NaN or infinities: those become text."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value.tolist()]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else repr(number)
    return value


def _number(value: Any) -> float:
    return float(value)


def _limits(stored: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {**entry, "limits": {n: (_number(a), _number(b)) for n, (a, b) in entry["limits"].items()}}
        for key, entry in stored.items()
    }


def write_curve_fit(fit: CurveFit, path: str | os.PathLike[str]) -> None:
    """Write a fit of curves (see CurveFit.to_json)."""
    state = fit._state
    observed = dict(state.observed)
    if state.data is not None:
        lr = {run.name: run.lr for run in state.data}
        for name, steps, loss, predicted, _ in fit._predictions(list(fit.runs), every=True):
            rates = lr[name][np.asarray(steps, dtype=np.int64)]
            observed[name] = {"step": steps, "loss": loss, "predicted": predicted, "lr": rates}
    told = fit.identifiability
    value = {
        "format": FORMAT,
        "schema": SCHEMA,
        "kind": "curves",
        "law": fit.law,
        "params": fit.params,
        "objective": fit.objective,
        "converged": fit.converged,
        "protocol": fit.protocol,
        "split": fit.split,
        "train": fit.train,
        "runs": fit.runs,
        "notes": [str(note) for note in fit.notes],
        "solution": vars(state.solution),
        "weight_decay": state.weight_decay,
        "init_std": state.init_std,
        "given_weight_decay": (
            dict(state.constants.weight_decay)
            if isinstance(state.constants.weight_decay, dict)
            else state.constants.weight_decay
        ),
        "given_init_std": state.constants.init_std,
        "skip": state.skip,
        "batch": state.batch,
        "alpha_prior": state.alpha_prior,
        "fixed": state.fixed,
        "ranges": vars(state.ranges),
        "last_value": state.last_value,
        "rows": state.rows,
        "intervals": state.intervals,
        "draws": state.draws,
        "observed": observed,
        "identifiability": told.to_dict(),
    }
    write_json(path, _plain(value))


def read(path: str | os.PathLike[str]) -> Any:
    """Read a saved fit (see solvers.fit.load_fit)."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fsdecode(path):
        raise ConvexlawError(f"path = {path!r} is no path: pass a file written by .to_json")
    place = Path(os.fsdecode(path))
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ConvexlawError(f"{place}: cannot be read ({reason}); pass a file written by .to_json") from None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConvexlawError(f"{place}: not whole JSON ({error}); write it again with .to_json") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ConvexlawError(
            f'{place}: no saved fit (no "format": "{FORMAT}"); pass a file written by .to_json'
        )
    schema = value.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ConvexlawError(f"{place}: schema {schema!r} is no version; write the file again with .to_json")
    if schema > SCHEMA:
        raise ConvexlawError(
            f"{place}: schema {schema} is newer than the {SCHEMA} that this version reads; update convexlaw"
        )
    kinds = {"curves": _curve_fit, "table": _table_fit}
    if value.get("kind") not in kinds:
        raise ConvexlawError(f"{place}: kind {value.get('kind')!r} is not known; it is 'curves' or 'table'")
    try:
        return kinds[value["kind"]](value)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, ConvexlawError):
            raise ConvexlawError(f"{place}: {error}") from None
        raise ConvexlawError(
            f"{place}: damaged ({type(error).__name__}: {error}); write it again with .to_json"
        ) from None


def _solution(stored: dict[str, Any]) -> Solution:
    values: dict[str, Any] = dict(stored)
    values["params"] = {n: _number(x) for n, x in values["params"].items()}
    for key in ("objective", "data_objective", "gradient"):
        values[key] = _number(values[key])
    return Solution(**values)


def _curve_fit(value: dict[str, Any]) -> Any:
    from convexlaw.solvers._curve_fit import CurveFit
    from convexlaw.solvers._fit_identify import Identifiability

    ranges = value["ranges"]
    state = FitState(
        solution=_solution(value["solution"]),
        constants=Constants(value["given_weight_decay"], _number(value["given_init_std"])),
        skip=int(value["skip"]),
        batch=bool(value["batch"]),
        alpha_prior=bool(value["alpha_prior"]),
        fixed={k: _number(v) for k, v in value["fixed"].items()},
        ranges=Ranges(
            int(ranges["steps"]),
            _number(ranges["total"]),
            (_number(ranges["peaks"][0]), _number(ranges["peaks"][1])),
            None if ranges["batches"] is None else tuple(map(_number, ranges["batches"])),  # type: ignore[arg-type]
        ),
        last_value=_number(value["last_value"]),
        rows=tuple(int(n) for n in value["rows"]),
        weight_decay=None if value["weight_decay"] is None else _number(value["weight_decay"]),
        init_std=_number(value["init_std"]),
        observed={
            run: {
                "step": np.array(columns["step"], dtype=np.int64),
                **{k: np.array(columns[k], dtype=np.float64) for k in ("loss", "predicted", "lr")},
            }
            for run, columns in value["observed"].items()
        },
        intervals=_limits(value["intervals"]),
        draws={k: np.array(v, dtype=np.float64) for k, v in value["draws"].items()},
        identifiability=Identifiability.from_dict(value["identifiability"]),
    )
    fit = CurveFit(
        law=str(value["law"]),
        params={k: _number(v) for k, v in value["params"].items()},
        objective=_number(value["objective"]),
        converged=bool(value["converged"]),
        protocol=str(value["protocol"]),
        split=str(value["split"]),
        train=tuple(value["train"]),
        runs=tuple(value["runs"]),
        notes=list(value["notes"]),
        _state=state,
    )
    fit.model  # noqa: B018  an unknown law or a missing parameter shows here
    return fit


def write_table_fit(fit: TableFit, path: str | os.PathLike[str]) -> None:
    """Write a fit of a table (see TableFit.to_json)."""
    state = fit._state
    value = {
        "format": FORMAT,
        "schema": SCHEMA,
        "kind": "table",
        "law": fit.law,
        "params": fit.params,
        "objective": fit.objective,
        "converged": fit.converged,
        "notes": [str(note) for note in fit.notes],
        "solution": vars(state.solution),
        "fixed": state.fixed,
        "N": state.N,
        "D": state.D,
        "loss": state.loss,
        "intervals": state.intervals,
        "draws": state.draws,
        "identifiability": fit.identifiability.to_dict(),
    }
    write_json(path, _plain(value))


def _table_fit(value: dict[str, Any]) -> Any:
    from convexlaw.solvers._fit_identify import Identifiability
    from convexlaw.solvers._table_fit import TableFit, TableState
    from convexlaw.solvers.fit import Problem
    from convexlaw.theory.laws import table_law

    cls = table_law(str(value["law"]))
    N, D, loss = (np.array(value[k], dtype=np.float64) for k in ("N", "D", "loss"))
    fixed = {k: _number(v) for k, v in value["fixed"].items()}
    problem = Problem(
        columns=cls.columns(N, D),
        y=loss,
        linear=cls.linear,
        nonlinear=cls.nonlinear,
        weights=np.ones(loss.size),
        link=cls.link,
        fixed=fixed,
    )
    state = TableState(
        solution=_solution(value["solution"]),
        N=N,
        D=D,
        loss=loss,
        fixed=fixed,
        problem=problem,
        intervals=_limits(value["intervals"]),
        draws={k: np.array(v, dtype=np.float64) for k, v in value["draws"].items()},
        identifiability=Identifiability.from_dict(value["identifiability"]),
    )
    fit = TableFit(
        law=cls.name,
        params={k: _number(v) for k, v in value["params"].items()},
        objective=_number(value["objective"]),
        converged=bool(value["converged"]),
        notes=list(value["notes"]),
        _state=state,
    )
    fit.model  # noqa: B018  a missing parameter shows here
    return fit
