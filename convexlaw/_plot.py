"""Late binding from result objects to the figure functions that draw them (the only one in the package)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def dispatch(result: object, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw ``result`` with the figure function its class names in ``_figure`` ("module:function").

    Parameters
    ----------
    result : object
        A result value whose class has ``_figure``, e.g. ``"curves:plot_curve_fit"`` for
        ``convexlaw.figures.curves.plot_curve_fit(result, ax=..., **options)``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    **options
        Passed on to the figure function.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ConvexlawError
        The class names no figure.
    """
    target = getattr(type(result), "_figure", "")
    module, _, function = target.partition(":")
    if not function:
        raise ConvexlawError(f"{type(result).__name__} has no figure of its own; use its .to_frame()")
    draw = getattr(importlib.import_module(f"convexlaw.figures.{module}"), function)
    axes: Axes = draw(result, ax=ax, **options)
    return axes
