"""``python -m bench.start [--rounds N] [NAME ...]``: start to ready of every server found, target 1 s median
for a native one.

A start is timed as a study does it: from before the program (a proxy's backend first) until it has answered one real
request of Trifecta's load over HTTP/1.1, HTTP/2 and HTTP/3, one after the other. Servers take turns in each round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

TARGET_S = 1.0
INTERPRETED = {"hypercorn"}  # the target is for native servers


def starts(names: Sequence[str], rounds: int, folder: Path) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Seconds of each start by server, and why the others did not come up; needs the sandbox."""
    from trifecta import studies
    from trifecta.implementations.registry import SERVERS
    from trifecta.lab.engine import find_engine
    from trifecta.store.run import RunDirectory
    from trifecta.workloads.requests.session import RequestsSession
    from trifecta.workloads.requests.supported import requests_supported
    from trifecta.workloads.session import SessionContext

    study = studies.load("race", [f"server={','.join(names)}", "path=clean", "connection=reused"], names)
    here = requests_supported(study, SERVERS, {})
    versions = {name: str(facts["version"]) for name, facts in here.servers.items()}
    run = RunDirectory.create(folder, {}, study.source)
    took: dict[str, list[float]] = {name: [] for name in versions}
    try:
        with RequestsSession(SessionContext(find_engine(), run, study, lambda: False)) as session:
            session.begin(here.cells, versions)
            standing = [server for key, server in session.servers.items() if key not in session.failed]
            for _ in range(rounds):
                for server in standing:
                    began = time.monotonic()
                    session.restart(server)
                    took[server.adapter.name].append(time.monotonic() - began)
            missing = {item["level"]: item["reason"] for item in here.left_out}
            return took, missing | {name: reason for (name, _), reason in session.failed.items()}
    finally:
        run.close()


def main() -> int:
    """Print a row a server; 1 when a native one's median is above the target, or one named does not come up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="servers; all that are found when none is named")
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    from trifecta.implementations.survey import names_of_kind, survey
    from trifecta.lab import sandbox

    unknown = [name for name in asked.names if name not in names_of_kind("server")]
    if unknown:
        parser.error(f"no server {unknown[0]!r}; known: {', '.join(names_of_kind('server'))}")
    names = asked.names or [each.name for each in survey(["server"]) if each.found]
    sandbox.enter()
    with tempfile.TemporaryDirectory() as scratch:
        took, missing = starts(names, asked.rounds, Path(scratch) / "run")
    print(
        f"start to ready over HTTP/1.1, HTTP/2 and HTTP/3, {asked.rounds} rounds, load average {os.getloadavg()[0]:.1f}"
    )
    print("| server | median | lowest | highest | starts |\n|---|---|---|---|---|")
    medians = {name: statistics.median(seconds) for name, seconds in took.items() if seconds}
    for name, median in sorted(medians.items(), key=lambda item: item[1]):
        values = took[name]
        print(f"| {name} | {median:.2f} s | {min(values):.2f} s | {max(values):.2f} s | {len(values)} |")
    for name, reason in missing.items():
        print(f"| {name} | not measured: {reason} | | | |")
    slow = any(median > TARGET_S for name, median in medians.items() if name not in INTERPRETED)
    return int(slow or not set(asked.names) <= set(medians))


if __name__ == "__main__":
    raise SystemExit(main())
