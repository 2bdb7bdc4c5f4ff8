"""Proximal operators, re-exported from the theory that is their home."""

from __future__ import annotations

from convexlaw.theory.sorted_l1 import prox_sorted_l1

__all__ = ["prox_sorted_l1"]
