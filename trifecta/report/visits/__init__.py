"""What the report shows of browsers: page loads and watches of a video, protocols side by side."""

from trifecta.report.visits.said import brief
from trifecta.report.visits.section import SECTION

__all__ = ["SECTION", "brief"]
