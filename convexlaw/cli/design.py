"""``convexlaw design``: the penalty to use for signals, noise and sizes that are known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from convexlaw.theory.designs import Design


def design(
    prior: Annotated[
        str, typer.Option(help='Law of a coefficient: "0:0.8, 4:0.2" or "N(0,1):0.1" (the rest is zero).')
    ],
    sigma: Annotated[float, typer.Option(help="Noise standard deviation.")],
    delta: Annotated[float | None, typer.Option(help="Rows per feature, n/p.")] = None,
    rows: Annotated[int | None, typer.Option(help="Number of rows n, with --features.")] = None,
    features: Annotated[
        int | None, typer.Option(help="Number of features p: writes the penalty of every rank.")
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="Also the most powerful SLOPE at this type I level.")
    ] = None,
    improve: Annotated[
        float | None,
        typer.Option(help="Also the two levels that improve the Lasso of this level (units of tau)."),
    ] = None,
    standardised: Annotated[
        bool,
        typer.Option(
            "--standardised",
            help="Coefficients belong to columns of variance 1 (else: of norm 1). Needs --rows, --features.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Figure (.png, .pdf, .svg), table (.csv), or a folder for both.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Find the Lasso, two-level SLOPE and SLOPE of smallest error, and the penalty each of them uses."""
    import pandas as pd

    from convexlaw.cli import _selection, _tables
    from convexlaw.errors import ConvexlawError
    from convexlaw.theory import designs as theory
    from convexlaw.theory.scalar_limit import Prior

    _selection.check_out(out)
    ratio = _selection.ratio(delta, rows, features)
    law = Prior.parse(prior)
    n = None if features is None else round(ratio * features)
    unit = 1.0
    if standardised:
        if n is None:
            raise ConvexlawError("--standardised needs --rows and --features: the units depend on n")
        unit = math.sqrt(n)
        law = law.scaled(unit)
    made = [
        theory.optimal_lasso(law, ratio, sigma),
        theory.optimal_two_level(law, ratio, sigma),
        theory.optimal_slope(law, ratio, sigma),
    ]
    if level is not None:
        made.append(theory.most_powerful_slope(law, ratio, sigma, level))
    if improve is not None:
        made.append(theory.improve_lasso(law, ratio, sigma, improve))
    entries = [_entry(d, unit, n, features) for d in made]
    written = []
    if out is not None:
        weights = _weights(made, features or 1000, n)
        written = _selection.save(out, "design", weights, lambda: _figure(made))
    if as_json:
        _tables.show_json(
            {
                "prior": {"weights": law.weights, "means": law.means, "variances": law.variances},
                "delta": ratio,
                "sigma": sigma,
                "units": f"columns of {'variance 1' if standardised else 'norm 1'}",
                "designs": entries,
                "files": written,
            }
        )
        return
    columns = ("design", "MSE", "TPP", "FDP", "selected", "tau")
    frame = pd.DataFrame([{c: e[c] for c in columns} for e in entries])
    typer.echo(f"delta = {ratio:g}, sigma = {sigma:g}; {law if unit == 1.0 else Prior.parse(prior)}")
    _tables.show_table(frame)
    typer.echo("The penalty to use:")
    for entry in entries:
        typer.echo(f"  - {entry['design']}: {entry['use']}")
    for path in written:
        typer.echo(f"wrote {path}")


def _entry(design: Design, unit: float, n: int | None, p: int | None) -> dict[str, Any]:
    """Row of the table; MSE and tau in the units of the coefficients that were given."""
    state = design.state
    return {
        "design": design.name,
        "MSE": state.mse / unit**2,
        "TPP": state.tpp,
        "FDP": state.fdp,
        "selected": state.selected,
        "tau": state.tau / unit,
        "threshold": state.threshold,
        "lambda_factor": state.lambda_factor,
        "penalty": _levels(design),
        "use": _use(design, n, p),
    }


def _levels(design: Design) -> dict[str, Any]:
    from convexlaw.theory.scalar_limit import Lasso, TwoLevel

    shape = design.penalty
    if isinstance(shape, Lasso):
        return {"type": "lasso", "alpha": shape.alpha}
    if isinstance(shape, TwoLevel):
        return {
            "type": "two_level",
            "alpha1": shape.alpha1,
            "alpha2": shape.alpha2,
            "fraction": shape.fraction,
        }
    ranks = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0]
    return {"type": "sequence", "rank_fraction": ranks, "alpha": shape.value(ranks).tolist()}


def _use(design: Design, n: int | None, p: int | None) -> str:
    """Sentence to act on; with standardised columns the averaged objective has lambda / sqrt(n)."""
    levels = _levels(design)
    factor = design.state.lambda_factor
    if factor <= 0:
        return "exact recovery: any penalty of this shape that tends to 0"
    if levels["type"] == "sequence":
        pairs = zip(levels["rank_fraction"], levels["alpha"], strict=True)
        shown = ", ".join(f"{factor * a:.4g}" for r, a in pairs if r >= 0.01)
        return f"lambda at the rank fractions .01 .05 .1 .25 .5 .75 1: {shown} (--out writes every rank)"
    small = factor / n**0.5 if n is not None else math.nan
    if levels["type"] == "lasso":
        text = f"lambda = {factor * levels['alpha']:.5g}"
        return text if n is None else f"{text}; standardised columns: alpha = {small * levels['alpha']:.5g}"
    high, low, share = (levels[k] for k in ("alpha1", "alpha2", "fraction"))
    text = f"lambda = {factor * high:.5g} on the top {share:.4g} of the ranks, {factor * low:.5g} below"
    if n is None or p is None:
        return text
    if share * p < 1.0:
        # less than one rank: its weight keeps the sum of the penalties
        high, share = share * p * high + (1.0 - share * p) * low, 1.0 / p
        text += f" (at p = {p}: {factor * high:.5g} on the first rank)"
    return (
        f"{text}; standardised columns: TwoLevelSlope(alpha=1, high={small * high:.5g}, "
        f"low={small * low:.5g}, fraction={share:.4g})"
    )


def _weights(made: list[Design], p: int, n: int | None) -> Any:
    """Penalty of every rank: AMP scaling and, where n is known, that of standardised columns."""
    import numpy as np
    import pandas as pd

    names = ("lasso", "two_level", "slope", *(f"extra_{k}" for k in range(1, len(made) - 2)))
    frame = pd.DataFrame({"rank": np.arange(1, p + 1)})
    for name, one in zip(names, made, strict=True):
        lam = one.weights(p) if one.state.lambda_factor > 0 else np.zeros(p)
        frame[f"{name}_lambda"] = lam
        if n is not None:
            frame[f"{name}_standardised"] = lam / n**0.5
    return frame


def _figure(made: list[Design]) -> Figure:
    from convexlaw.figures.designs import plot_designs

    figure: Any = plot_designs(made).figure
    return figure  # type: ignore[no-any-return]
