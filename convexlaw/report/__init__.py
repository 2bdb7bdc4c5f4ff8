"""Self-contained HTML reports, one module a kind of report."""

from convexlaw.report.page import Page, format_number

__all__ = ["Page", "format_number"]
