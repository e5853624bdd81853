"""What the report shows of services that call each other: hops, success, costs, places, scaling, mixed protocols."""

from trifecta.report.services.findings import brief
from trifecta.report.services.section import SECTION

__all__ = ["SECTION", "brief"]
