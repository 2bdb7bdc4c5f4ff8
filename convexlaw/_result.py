"""What every result value has in common: a notebook form and a picture."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, ClassVar

from convexlaw import _plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Result:
    """Mixin for result values: subclasses define ``__str__`` (12 lines at most) and ``_figure``."""

    _figure: ClassVar[str] = ""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw this result; see the figure function named in ``_figure`` for the options.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure without it.
        **options
            Passed to the figure function.

        Returns
        -------
        matplotlib Axes
        """
        return _plot.dispatch(self, ax, **options)
