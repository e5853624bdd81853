"""Runs beside what the four studies published: what they say to it, as tables, a page and data.

``places`` reads a run into what ``trifecta.analysis.published`` evaluates, ``result`` evaluates a whole folder.
"""

from trifecta.report.reproduction.result import Result, StudyResult, as_data, read
from trifecta.report.reproduction.shown import print_result, study_summary, write

__all__ = ["Result", "StudyResult", "as_data", "print_result", "read", "study_summary", "write"]
