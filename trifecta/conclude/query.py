"""A query of a report: its name, its SQL for one cell, one metric or all, and the columns that distinguish its rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from trifecta.design import naming
from trifecta.design.metrics import METRICS

_BY_ARM = re.compile(r"\{by_arm:([\w,]+)\}")


@dataclass(frozen=True)
class Query:
    """A named query and the columns that distinguish its rows."""

    name: str
    sql: str
    key: tuple[str, ...]

    def text(self, cell: str | None = None) -> str:
        """The SQL, for one cell or for all of them."""
        condition = "" if cell is None else "\n  AND t.cell = '" + cell.replace("'", "''") + "'"
        text = _BY_ARM.sub(lambda found: naming.columns_sql(found[1].split(",")), self.sql)
        return text.replace("{and_cell}", condition).strip()


def by_arm(*columns: str) -> str:
    """Columns of each arm side by side, filled in when the arms of the run are known."""
    return "{by_arm:" + ",".join(columns) + "}"


def for_metric(query: Query, metric: str) -> Query:
    """A query with ``{metric}`` filled in, which must be a column of ``trials`` that verdicts know."""
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}")
    return replace(query, sql=query.sql.replace("{metric}", metric))
