"""Keep the blocks of races as test data: one line a block, the medians of its four trials.

Usage: python bench/keep_blocks.py RUN... > tests/analysis/data/races.csv
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

from trifecta import studies
from trifecta.conclude import queries
from trifecta.design.model import PathSpec, Study
from trifecta.store.run import RunDirectory

USUAL_REQUESTS = 10  # of a trial over a reused connection on a path that is not clean
ARMS = ("h1", "h2", "h2#aa", "h3")
TRIALS = """
SELECT cell, path, connection, server, block, arm, started_ns, ended_ns, latency_p50_ns, valid
FROM trials ORDER BY started_ns
"""


def words(study: Study) -> str:
    """The paths of a race, as far as races differ in them: ``far 60 ms, rough 40 ms 1 % 20 requests``."""
    return ", ".join(_words(path) for path in study.paths.values() if path.rtt_ns)


def _words(path: PathSpec) -> str:
    own = path.length("reused")
    loss = f" {path.loss:.0%}".replace("%", " %") if path.loss else ""
    requests = f" {own.requests} requests" if own is not None and own.requests != USUAL_REQUESTS else ""
    return f"{path.name} {path.rtt_ns / 1e6:g} ms{loss}{requests}"


def main(runs: list[str]) -> None:
    """Write the blocks of all runs to standard output."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["seed", "paths", "path", "connection", "server", "block", "ended_ms", *ARMS])
    for run in runs:
        folder = Path(run)
        seed = RunDirectory.open(folder).facts["seed"]
        paths = words(studies.load(str(folder / "study.yaml"), [], studies.known_servers()))
        with queries.connect(folder) as connection:
            rows = connection.sql(TRIALS).fetchall()
        blocks: dict[tuple[str, int], dict[str, int | str]] = defaultdict(dict)
        about = {}
        for cell, path, link, server, block, arm, _, ended, value, valid in rows:
            key = (cell, block)
            about[key] = (path, link, server, block, round((ended - rows[0][6]) / 1e6))
            blocks[key][arm] = value if valid and value is not None else ""
        for key, values in blocks.items():
            out.writerow([seed, paths, *about[key], *(values.get(arm, "") for arm in ARMS)])


if __name__ == "__main__":
    main(sys.argv[1:])
