"""What a reproduction computes (tables for its figure, values for its checks), and where public data lies."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Data", "public_data"]


@dataclass(frozen=True)
class Data:
    """Result of ``compute`` of one paper.

    Attributes
    ----------
    tables : dict of str to DataFrame
        The numbers behind the figure, a CSV each.
    values : dict of str to anything
        What else the checks read, by name.
    missing : dict of str to str
        Public data that is absent, with the reason.
    """

    tables: dict[str, pd.DataFrame]
    values: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Value or table ``name``."""
        return self.values[name] if name in self.values else self.tables[name]


def public_data(folder: str, missing: dict[str, str]) -> Path | None:
    """Folder of public data, or None with the reason written to ``missing``.

    It is looked for in ``$CONVEXLAW_SHARED/data``, or in ``shared/data`` beside the checkout.

    Parameters
    ----------
    folder : str
        Name below ``data``.
    missing : dict
        Where the reason goes.

    Returns
    -------
    pathlib.Path or None

    Raises
    ------
    ConvexlawError
        The data is absent and ``CI=true`` (there every check has to run).
    """
    given = os.environ.get("CONVEXLAW_SHARED")
    root = Path(given) if given else Path(__file__).resolve().parents[2] / "shared"
    path = root / "data" / folder
    if path.is_dir():
        return path
    reason = f"public data {folder} not found in {root / 'data'}: set CONVEXLAW_SHARED"
    if os.environ.get("CI") == "true":
        raise ConvexlawError(f"CI=true but {reason}")
    missing[folder] = reason
    return None
