"""Papers as modules: compute(quick) -> data, draw(data) -> Figure, check(data) -> list of checks."""
