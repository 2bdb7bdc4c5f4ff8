"""What the constructors of the scikit-learn estimators share."""

from __future__ import annotations

from typing import Any

__all__ = ["PenaltySequence", "store"]


def store(model: Any, given: dict[str, Any]) -> None:
    """Store the arguments of a constructor (its ``locals()``) under their names, unchanged.

    That is all a constructor may do for scikit-learn's ``clone`` and ``set_params``.
    """
    vars(model).update({name: value for name, value in given.items() if name != "self"})


class PenaltySequence:
    """Mixin of the estimators whose penalty sequence is named, or given as ``lam``."""

    lam: Any
    lambda_type: str
    q: float
    theta1: float
    theta2: float

    def _penalty(self, size: int) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("lam", "lambda_type", "q", "theta1", "theta2")}

    def _sequences(self, size: int) -> list[tuple[str, dict[str, Any]]]:
        """Penalty sequences that cross-validation tries: this one."""
        name = f"lambda {self.lambda_type!r}" if self.lam is None else "lambda as given"
        return [(name, self._penalty(size))]
