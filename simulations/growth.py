"""How a model becomes deeper during its training; no torch here."""

from __future__ import annotations

from dataclasses import dataclass

from convexlaw.errors import ConvexlawError
from convexlaw.theory._schedule_checks import number, unknown

__all__ = ["INITS", "Growth"]

INITS = ("random", "copy_last", "copy_stack", "copy_interpolate", "zero", "copy_zero")
"""Names of the initialisations of new blocks."""


@dataclass(frozen=True)
class Growth:
    """Train ``start`` blocks at first, all blocks of the model from update ``at`` on.

    The small model is the full one without its last blocks: both have the same shared weights at the start.
    The optimizer keeps its state for the blocks there were and has none for new ones; learning rate and text
    go on unchanged.

    Attributes
    ----------
    at : int
        Updates before the growth, at least 1. Row ``at`` of the log is measured after it.
    start : int
        Blocks before the growth, fewer than the model's depth; 0 leaves embedding, last norm and output.
    init : {"random", "copy_last", "copy_stack", "copy_interpolate", "zero", "copy_zero"}
        Weights of the new blocks. ``random``: those that the full model had at step 0; this or ``zero`` where
        ``start`` is 0. ``copy_last``: copies of the last block. ``copy_stack``: copies of all
        blocks in order, on top. ``copy_interpolate``: copies of each block right after it. ``zero``: every
        matrix 0, which preserves the function and lets no gradient in. ``copy_zero``: as ``copy_stack`` with
        the matrices that write to the residual stream 0, which preserves the function too.

    Examples
    --------
    >>> Growth(at=10, start=2, init="copy_interpolate").origins(4)
    [(0, True), (0, False), (1, True), (1, False)]
    """

    at: int
    start: int = 0
    init: str = "random"

    def __post_init__(self) -> None:
        number("at", self.at, "a whole number, at least 1", lambda x: x >= 1 and x == int(x))
        number("start", self.start, "a whole number, at least 0", lambda x: x >= 0 and x == int(x))
        if self.init not in INITS:
            raise ConvexlawError(unknown("initialisation", self.init, INITS))
        if self.start == 0 and self.init.startswith("copy"):
            raise ConvexlawError(
                f"init = {self.init!r} with start = 0: there is no block to copy; use 'random' or start = 1"
            )

    def check(self, depth: int, steps: int) -> None:
        """Refuse a model that does not grow, or growth after the end."""
        if self.start >= depth:
            raise ConvexlawError(
                f"a growth from {self.start} to {depth} blocks: the model's depth is larger than start"
            )
        if self.at >= steps:
            raise ConvexlawError(
                f"growth at step {self.at}: the run has {steps} updates; give an earlier step"
            )

    def origins(self, depth: int) -> list[tuple[int | None, bool]]:
        """Give for each block of the full model the old one it comes from, if any, and whether it is it."""
        k = self.start
        if self.init == "copy_interpolate":
            sources = [i * k // depth for i in range(depth)]
            return [(s, i == 0 or sources[i - 1] != s) for i, s in enumerate(sources)]
        old: list[tuple[int | None, bool]] = [(i, True) for i in range(k)]
        if self.init == "copy_last":
            return old + [(k - 1, False)] * (depth - k)
        copied = self.init in ("copy_stack", "copy_zero")
        return old + [(i % k if copied else None, False) for i in range(k, depth)]
