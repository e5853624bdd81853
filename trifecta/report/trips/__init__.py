"""What the report adds for requests made one after the other: round trips, progression, tests of no difference."""

from trifecta.report.trips.derive import Trips, derive
from trifecta.report.trips.section import SECTION

__all__ = ["SECTION", "Trips", "derive"]
