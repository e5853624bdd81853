"""``python -m bench.visits [BLOCKS]``: how long ten cold page loads over each protocol take, and how far they vary.

Targets: ten loads x three protocols of the light page, lab included, in under 3 minutes on 2 cores; run-to-run noise of
the load time (A/A: HTTP/2 against itself) under 5 % at 20 ms and 20 Mbit/s. There is no peer. The settings that may
matter for the noise run in turns, a block each: the browser on a core of its own or on all of them, with and without a
first visit that is not measured.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trifecta.lab import sandbox

LOADS, TARGET_S, TARGET_NOISE = 10, 180, 0.05
SETTINGS: dict[str, tuple[bool, int]] = {
    "own core": (True, 0),
    "own core, after a first visit": (True, 1),
    "all cores": (False, 0),
    "all cores, after a first visit": (False, 1),
}


def run(folder: Path, seed: int, overrides: list[str], own_core: bool) -> tuple[float, list[dict[str, Any]]]:
    """A run of the study page: seconds, lab included, and the rows of its trials."""
    from trifecta import studies
    from trifecta.lab.host import browser_pin_table
    from trifecta.store.run import RunDirectory
    from trifecta.workloads.runner import run_study
    from trifecta.workloads.visits import session

    everywhere: dict[str, frozenset[int] | None] = {"client": frozenset(os.sched_getaffinity(0))}

    def pin_table(cpus: frozenset[int] | None = None) -> dict[str, frozenset[int] | None]:
        return browser_pin_table(cpus) | ({} if own_core else everywhere)

    session.browser_pin_table = pin_table  # type: ignore[attr-defined]
    study = studies.load("page", [f"seed={seed}", *overrides], studies.known_servers())
    began = time.monotonic()
    run_study(study, folder)
    return time.monotonic() - began, [dict(row) for row in RunDirectory.open(folder).rows()]


def differences(rows: list[dict[str, Any]]) -> list[float]:
    """The logarithm of HTTP/2 against itself, by block."""
    by_block: dict[int, dict[str, float]] = {}
    for row in rows:
        if row["error"] is None and row["latency_p50_ns"] is not None:
            by_block.setdefault(row["block"], {})[row["arm"]] = row["latency_p50_ns"]
    return [math.log(arms["h2#aa"] / arms["h2"]) for arms in by_block.values() if {"h2", "h2#aa"} <= set(arms)]


def compare_settings(folder: Path, blocks: int) -> None:
    """The noise of each setting."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SETTINGS}
    for block in range(blocks):
        for name, (own_core, warmup) in SETTINGS.items():
            overrides = [
                "protocol=HTTP/2", "blocks.at_least=1", "blocks.at_most=1", f"workload.warmup_visits={warmup}",
            ]  # fmt: skip
            _, rows = run(folder / f"{name.replace(' ', '-')}-{block}", block + 1, overrides, own_core)
            found[name] += [{**row, "block": block} for row in rows]
    print(f"Setting of {blocks} blocks | noise of a trial | median load time | trials that failed a check")
    for name, rows in found.items():
        noise = statistics.stdev(differences(rows)) / math.sqrt(2) if blocks > 1 else math.nan
        loads = [row["latency_p50_ns"] / 1e6 for row in rows if row["latency_p50_ns"] is not None]
        failed = sum(not row["valid"] for row in rows)
        print(f"{name} | {noise:.2%} | {statistics.median(loads):.0f} ms | {failed} of {len(rows)}", flush=True)


def ten_loads(folder: Path) -> bool:
    """The figure: the bundled study until every protocol has ten measured loads."""
    took_s, rows = run(folder / "page", 1, ["blocks.at_least=5", "blocks.at_most=5"], own_core=True)
    loads = {arm: sum(row["samples"] for row in rows if row["arm"] == arm) for arm in ("h1", "h2", "h3")}
    logs = differences(rows)
    noise = statistics.stdev(logs) / math.sqrt(2)
    mean, error = statistics.mean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    print(f"Cold loads: {loads}, in {took_s:.0f} s with the lab (target: {LOADS} each in under {TARGET_S} s)")
    print(f"A/A: HTTP/2 against itself {mean:+.2%}, standard error {error:.2%}; a trial varies by {noise:.2%}")
    print(f"(target: under {TARGET_NOISE:.0%}); {sum(not row['valid'] for row in rows)} trials failed a check")
    return min(loads.values()) >= LOADS and took_s < TARGET_S and noise < TARGET_NOISE


def main() -> int:
    """Print both; 0 when the targets are met."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    sandbox.enter()
    with tempfile.TemporaryDirectory() as scratch:
        good = ten_loads(Path(scratch))
        compare_settings(Path(scratch), blocks)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
