"""How often `trifecta gate` is right on real runs: a baseline against itself, and a candidate that is 5 % slower.

``python -m bench.gates [--runs N] [--path clean far] [--kind itself slower] [--protocol HTTP/3]`` runs gates of the
origin one after the other, kinds and paths in turns, and prints a table for RESULTS.md. Leave the machine alone: a gate
is at most three minutes long.

A candidate is 5 % slower by construction: the far path's round trip is 63 ms instead of 60, and the clean path is as
fast as 200 Mbit/s or 5 % less, with responses long enough that nothing else takes their time: a rate that two cores
carry with ease, since one that they hardly do makes a candidate slower by other numbers than 5 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

TRIFECTA = Path(sys.executable).with_name("trifecta")
STUDY = """
study: five-percent
title: "A candidate that is 5 % slower"
workload: {{kind: requests, response: {response}, in_flight: 1, requests: {requests}, warmup: 5 requests}}
factors:
  protocol: [{protocol}]
  path: [{path}, {path}-slower]
  connection: [reused]
  server: [origin]
baseline: {protocol}
paths:
  {path}: {{{fast}}}
  {path}-slower: {{{slow}}}
metric: latency_p50
blocks: {{at_least: 5, at_most: 200}}
"""
PATHS = {
    "clean": {"response": "500 kB", "requests": "10", "fast": "rate: 200 Mbit/s", "slow": "rate: 190.476 Mbit/s"},
    "far": {"response": "1 kB", "requests": "10", "fast": "rtt: 60 ms", "slow": "rtt: 63 ms"},
}


def gate(study: Path, path: str, kind: str, out: Path) -> dict[str, object]:
    """One gate; its document."""
    candidate = path if kind == "itself" else f"{path}-slower"
    asked = ["--baseline", f"path={path}", "--candidate", f"path={candidate}", "--fail-on", "slower:3%"]
    asked += ["--budget", "3 min", "--quiet", "--json"]
    command: list[str | Path] = [TRIFECTA, "gate", study, *asked, "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 4):
        raise SystemExit(f"the gate ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def line(path: str, kind: str, found: list[dict[str, object]]) -> str:
    """A row of the table."""
    states = [str(one["state"]) for one in found]
    took = [int(str(one["elapsed_ns"])) / 1e9 for one in found]
    trials = statistics.median(int(str(one["trials"])) for one in found)
    counts = " | ".join(str(states.count(state)) for state in ("pass", "fail", "undecided"))
    times = f"{statistics.median(took):.0f} s | {max(took):.0f} s"
    return f"| {path} | {kind} | {len(found)} | {counts} | {times} | {trials:.0f} |"


def main() -> int:
    """Run the gates; 0 whatever they say."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--runs", type=int, default=3, help="gates of each kind on each path; 20 for RESULTS.md")
    reader.add_argument("--path", nargs="+", choices=["clean", "far"], default=["clean", "far"])
    reader.add_argument("--kind", nargs="+", choices=["itself", "slower"], default=["itself", "slower"])
    reader.add_argument("--protocol", default="HTTP/3")
    asked = reader.parse_args()
    found: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        studies = {path: Path(scratch) / f"{path}.yaml" for path in asked.path}
        for path, study in studies.items():
            study.write_text(STUDY.format(path=path, protocol=asked.protocol, **PATHS[path]))
        for turn in range(asked.runs):
            for path in asked.path:
                for kind in asked.kind:
                    out = Path(scratch) / f"{path}-{kind}-{turn}"
                    found[path, kind].append(gate(studies[path], path, kind, out))
                    print(line(path, kind, found[path, kind]), file=sys.stderr, flush=True)
    print("| path | candidate | gates | pass | fail | undecided | median | longest | trials, median |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (path, kind), gates in found.items():
        print(line(path, kind, gates))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
