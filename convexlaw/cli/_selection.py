"""What the commands tradeoff and design share: sizes, files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIGURES = (".png", ".pdf", ".svg")


def ratio(delta: float | None, rows: int | None, features: int | None) -> float:
    """Rows per feature from ``--delta``, or from ``--rows`` and ``--features``."""
    if delta is not None:
        if rows is not None and features is not None:
            raise ConvexlawError(
                f"--delta {delta} with --rows and --features: give delta, or the two numbers"
            )
        return delta
    if rows is None or features is None:
        raise ConvexlawError("give --delta (rows per feature), or --rows and --features")
    if rows < 1 or features < 1:
        raise ConvexlawError(f"--rows {rows}, --features {features}: both must be at least 1")
    return rows / features


def check_out(out: Path | None) -> None:
    """Refuse names of files that are neither figures nor tables."""
    if out is not None and out.suffix and out.suffix not in (*FIGURES, ".csv") and not out.is_dir():
        raise ConvexlawError(
            f"--out {out}: give a figure ({', '.join(FIGURES)}), a .csv, or a folder for both"
        )


def save(out: Path, name: str, table: pd.DataFrame, draw: Any) -> list[Path]:
    """Write the table, the figure, or both into a folder; return the paths."""
    from convexlaw._files import replacing

    tables = [out] if out.suffix == ".csv" else [] if out.suffix in FIGURES else [out / f"{name}.csv"]
    figures = [out] if out.suffix in FIGURES else [] if out.suffix == ".csv" else [out / f"{name}.png"]
    for path in tables:
        with replacing(path) as tmp:
            table.to_csv(tmp, index=False)
    for path in figures:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        figure: Figure = draw()
        with replacing(path) as tmp:
            figure.savefig(tmp)
        plt.close(figure)
    return [*tables, *figures]
