"""Works out what the report says of browsers: the views ``visit_metrics`` and ``published``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from trifecta.conclude.cells import cells_in_order
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.visits import metrics, published
from trifecta.conclude.visits.metrics import MetricOfArm
from trifecta.conclude.visits.published import Claim, PublishedRow


@dataclass(frozen=True)
class Visits:
    """Rows of the derived views; what the run says to published claims; its cells in the study's order."""

    metrics: list[MetricOfArm]
    published: list[PublishedRow]
    claims: list[Claim]
    cells: list[str]

    @property
    def rows(self) -> dict[str, list[MetricOfArm] | list[PublishedRow]]:
        """By view."""
        return {"visit_metrics": self.metrics, "published": self.published}


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts, comparisons: Sequence[Comparison]) -> Visits | None:
    """Work it out from the visits; None when the run is not of browsers."""
    if not about.is_browser:
        return None
    trials = metrics.trial_values(connection, metrics.metrics_of(about))
    cells = cells_in_order(about, {row["cell"] for row in trials})
    measured = metrics.rows(about, trials, metrics.metrics_of(about))
    # What was published is of pages in labs, and no page elsewhere is one of them.
    here = [] if about.is_outside else published.places(about, trials, comparisons)
    return Visits(measured, published.rows(about, measured, here), published.claims(here), cells)
