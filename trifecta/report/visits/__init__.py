"""What the report shows of browsers: page loads and watches of a video, protocols side by side."""

from trifecta.report.visits.section import SECTION
from trifecta.report.visits.words import brief

__all__ = ["SECTION", "brief"]
