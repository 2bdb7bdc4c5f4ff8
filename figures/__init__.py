"""Figures: data in, matplotlib Axes out, one style sheet used in a context."""
