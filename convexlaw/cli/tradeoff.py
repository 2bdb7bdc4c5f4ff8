"""``convexlaw tradeoff``: what the Lasso, two-level SLOPE and SLOPE can reach, and with which penalty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {
    "lasso": "Lasso",
    "slope_upper": "SLOPE reached",
    "two_level": "two-level",
    "slope_lower": "SLOPE limit",
}


def tradeoff(
    delta: Annotated[float | None, typer.Option(help="Rows per feature, n/p.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Fraction of nonzero signals, k/p.")] = None,
    rows: Annotated[int | None, typer.Option(help="Number of rows n, with --features.")] = None,
    features: Annotated[int | None, typer.Option(help="Number of features p, with --rows.")] = None,
    signals: Annotated[int | None, typer.Option(help="Number of nonzero signals k, with --features.")] = None,
    tpp: Annotated[
        list[float] | None, typer.Option(help="True positive proportion to reach; may be repeated.")
    ] = None,
    fdp: Annotated[
        float | None, typer.Option(help="False discovery proportion allowed: the best TPP, and rows needed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Figure (.png, .pdf, .svg), table (.csv), or a folder for both.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compute the best false discovery proportion at each true positive proportion, and its penalty."""
    import numpy as np
    import pandas as pd

    from convexlaw.cli import _selection, _tables
    from convexlaw.errors import ConvexlawError
    from convexlaw.theory import tradeoff as theory

    _selection.check_out(out)
    share = epsilon
    if signals is not None:
        if epsilon is not None or features is None:
            raise ConvexlawError("--signals goes with --features and without --epsilon")
        share = signals / features
    if share is None:
        raise ConvexlawError("give --epsilon (fraction of nonzero signals), or --signals with --features")
    ratio = _selection.ratio(delta, rows, features)
    wanted = list(tpp) if tpp else [round(0.1 * k, 1) for k in range(1, 10)]
    curves = {
        "lasso": theory.lasso_fdp,
        "slope_upper": theory.slope_fdp_upper,
        "two_level": theory.two_level_fdp,
        "slope_lower": theory.slope_fdp_lower,
    }
    found = {kind: np.atleast_1d(f(wanted, ratio, share)) for kind, f in curves.items()}
    table = pd.DataFrame({"TPP": wanted, **{NAMES[k]: v for k, v in found.items()}})
    points = theory.crossings(ratio, share)
    designs = [_design(u, ratio, share) for u in (tpp or [])]
    inverse = {} if fdp is None else _inverse(fdp, tpp or [], ratio, share)
    written = []
    if out is not None:
        grid = {k: theory.tradeoff_curve(k, ratio, share) for k in curves}
        full = pd.DataFrame({"tpp": grid["lasso"].tpp, **{k: c.fdp for k, c in grid.items()}})
        written = _selection.save(out, "tradeoff", full, lambda: _figure(ratio, share))
    if as_json:
        _tables.show_json(
            {
                "delta": ratio,
                "epsilon": share,
                "tpp": wanted,
                "fdp": {k: v.tolist() for k, v in found.items()},
                "donoho_tanner_sparsity": theory.donoho_tanner_sparsity(ratio),
                "lasso_power_limit": points.power_limit,
                "crossings": {
                    "dagger": points.dagger,
                    "general": points.general,
                    "two_level": points.two_level,
                },
                "two_level_designs": designs,
                "at_fdp": inverse,
                "files": written,
            }
        )
        return
    typer.echo(f"Smallest FDP at each TPP, delta = {ratio:g}, epsilon = {share:g}")
    _tables.show_table(table)
    typer.echo(f"Largest TPP of the Lasso: {points.power_limit:.4f}")
    for design in designs:
        typer.echo(_sentence(design))
    if inverse:
        typer.echo(f"Largest TPP with FDP at most {fdp:g}")
        _tables.show_table(pd.DataFrame(inverse["best_tpp"]))
        if inverse["rows_needed"]:
            typer.echo(f"Rows per feature needed for FDP {fdp:g} at a TPP")
            _tables.show_table(pd.DataFrame(inverse["rows_needed"]))
    for path in written:
        typer.echo(f"wrote {path}")


def _design(u: float, delta: float, epsilon: float) -> dict[str, Any]:
    """Two-level design that attains its curve at one TPP (units of tau)."""
    from convexlaw.theory.tradeoff import attaining_design

    if not 0 < u < 1:
        return {"tpp": u, "note": "attained only in the limit"}
    made = attaining_design("two_level", u, delta, epsilon)
    return {
        "tpp": u,
        "fdp": made.fdp,
        "alpha1": made.alpha1,
        "alpha2": made.alpha2,
        "fraction": made.fraction,
        "branch": made.branch,
        "signals": [
            {"weight": w, "size": m}
            for w, m in zip(made.prior.weights, made.prior.means, strict=True)
            if m != 0
        ],
    }


def _sentence(design: dict[str, Any]) -> str:
    if "note" in design:
        return f"TPP {design['tpp']:g}: {design['note']}"
    sizes = ", ".join(f"{s['size']:.4g} ({s['weight']:.3g} of the features)" for s in design["signals"])
    return (
        f"TPP {design['tpp']:g}, FDP {design['fdp']:.4f}: two levels {design['alpha1']:.5g} on the top "
        f"{design['fraction']:.4g} of the ranks, {design['alpha2']:.5g} below, for signals of size {sizes} "
        "(all in units of tau, sigma -> 0)"
    )


def _inverse(fdp: float, tpp: list[float], delta: float, epsilon: float) -> dict[str, Any]:
    from convexlaw.theory.tradeoff import best_tpp, rows_needed

    best = [{"design": name, "TPP": best_tpp(fdp, delta, epsilon, kind)} for kind, name in NAMES.items()]
    needed = [
        {"TPP": u, **{name: rows_needed(u, fdp, epsilon, kind) for kind, name in NAMES.items()}} for u in tpp
    ]
    return {"fdp": fdp, "best_tpp": best, "rows_needed": needed}


def _figure(delta: float, epsilon: float) -> Figure:
    from convexlaw.figures.tradeoff import plot_tradeoff

    figure: Any = plot_tradeoff(delta, epsilon).figure
    return figure  # type: ignore[no-any-return]
