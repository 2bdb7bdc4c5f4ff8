"""Errors and warnings of the package; every message names the value seen, the rule, and what to do."""

from __future__ import annotations

__all__ = ["ConvergenceWarning", "ConvexlawError", "ExtrapolationWarning"]


class ConvexlawError(ValueError):
    """Bad input, or a question that has no answer (infeasible, outside the domain, not identifiable).

    Examples
    --------
    >>> raise ConvexlawError("steps = 0: a schedule needs at least one step; pass steps >= 1")
    Traceback (most recent call last):
    ...
    convexlaw.errors.ConvexlawError: steps = 0: a schedule needs at least one step; pass steps >= 1
    """


class ConvergenceWarning(UserWarning):
    """A solver stopped before it reached its tolerance; the certificate reached is in the message."""


class ExtrapolationWarning(UserWarning):
    """A prediction lies far outside the data that a law was fitted on."""
