"""Closed forms: pure functions on arrays, no input or output, no plotting, no torch."""
