"""Decorators of the compiled kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit
from numba.core.options import DefaultOptions

if TYPE_CHECKING:
    from collections.abc import Callable

# Numba counts references to the arrays of every call by atomic operations, which cost more than the body of a
# small kernel. A kernel that neither makes arrays nor calls their methods needs no counts.
_UNCOUNTED: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, cached on disk; it runs without the GIL."""
    return njit(cache=True, nogil=True)(function)


def leaf(function: Callable[..., Any]) -> Any:
    """Compile as :func:`kernel`, for functions that make no arrays: cheaper to call."""
    return njit(cache=True, nogil=True, **_UNCOUNTED)(function)


def fused(function: Callable[..., Any]) -> Any:
    """Compile as :func:`kernel`, for long polynomials: ``a * b + c`` is one instruction, rounded once."""
    return njit(cache=True, nogil=True, fastmath={"contract"})(function)


__all__ = ["fused", "kernel", "leaf"]
