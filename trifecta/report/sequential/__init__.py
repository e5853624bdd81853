"""What the report adds for requests made one after the other: round trips, progression, tests of no difference."""

from trifecta.report.sequential.section import SECTION

__all__ = ["SECTION"]
