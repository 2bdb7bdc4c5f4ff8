"""Training logs to one tidy table."""
