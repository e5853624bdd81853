"""What the spans of a trial say as a whole: did every cycle make the calls that its graph has, and which failed."""
# Statements are put together from constants and a quoted path.
# ruff: noqa: S608

from __future__ import annotations

from pathlib import Path

from trifecta.contract.stored import Cycles
from trifecta.design.graph import Graph
from trifecta.store import parquet


def cycles(spans_file: Path, graph: Graph) -> Cycles:
    """``expected_hops`` of a cycle; ``hops`` -> cycles with that many that did not fail; ``failures`` by hop and class.

    The warm-up is left out.
    """
    calls = f"(SELECT request, caller, callee, error FROM {parquet.scan([spans_file])} WHERE NOT warmup)"
    hop_counts = parquet.select(
        f"SELECT hops, count(*) AS cycles FROM (SELECT count(caller) AS hops FROM {calls} GROUP BY request "
        "HAVING count(error) = 0) GROUP BY hops ORDER BY hops"
    )
    failed = parquet.select(
        f"SELECT caller, callee, error, count(*) AS cycles FROM {calls} WHERE error IS NOT NULL "
        "GROUP BY ALL ORDER BY caller, callee, error"
    )
    failures: dict[str, dict[str, int]] = {}
    for row in failed:
        failures.setdefault(f"{row['caller']}-{row['callee']}", {})[row["error"]] = row["cycles"]
    return {
        "expected_hops": len(graph.walk()),
        "hops": {str(row["hops"]): row["cycles"] for row in hop_counts},
        "failures": failures,
    }
