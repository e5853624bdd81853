"""What the spans of a trial say as a whole: did every cycle make the calls that its graph has, and which failed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from trifecta.design.graph import Graph


def cycles(spans_file: Path, graph: Graph) -> dict[str, Any]:
    """``expected_hops`` of a cycle; ``hops`` -> cycles with that many that did not fail; ``failures`` by hop and class.

    The warm-up is left out.
    """
    table = pq.read_table(spans_file, columns=["request", "warmup", "caller", "callee", "error"])
    table = table.filter(pc.invert(table["warmup"]))
    failed = table.filter(table["error"].is_valid())
    whole = table.filter(pc.invert(pc.is_in(table["request"], failed["request"].combine_chunks().unique())))
    per_cycle = whole.group_by("request").aggregate([("caller", "count")])["caller_count"].to_pylist()
    failures: dict[str, dict[str, int]] = {}
    for row in failed.select(["caller", "callee", "error"]).to_pylist():
        hop = failures.setdefault(f"{row['caller']}-{row['callee']}", {})
        hop[row["error"]] = hop.get(row["error"], 0) + 1
    return {
        "expected_hops": len(graph.walk()),
        "hops": {str(hops): count for hops, count in sorted(Counter(per_cycle).items())},
        "failures": failures,
    }
