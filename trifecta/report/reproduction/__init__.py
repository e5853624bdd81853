"""Runs beside what the four studies published: what they say to it, as tables and a page."""

from trifecta.report.reproduction.output import print_result, study_summary, write

__all__ = ["print_result", "study_summary", "write"]
