"""``python -m bench.services``: suite A of bourbon2020 in full on the normal network, and a fan-in of 1,000 clients.

Targets: nine tests of 2,000 cycles each in under 2 minutes; every request of 1,000 HTTP/3 clients accounted for. There
is no peer: no published tool runs these. Ratios are in the reports; the times here hold for this machine alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CYCLES, TESTS, TARGET_S = 2_000, 9, 120
CLIENTS, EACH = 1_000, 10


def run(*arguments: str) -> float:
    """Run the command; how long it took in s."""
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "trifecta.cli.main", "run", *arguments, "-q"], check=True, stdout=subprocess.DEVNULL
    )
    return time.monotonic() - began


def ask(run_folder: Path, sql: str) -> list[dict[str, Any]]:
    """Rows of a run's views."""
    command = [sys.executable, "-m", "trifecta.cli.main", "sql", str(run_folder), sql, "--json"]
    rows: list[dict[str, Any]] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return rows


def suite_a(folder: Path) -> bool:
    """Suite A natively, on one host and on four."""
    good = True
    for scenario in ("single_02", "distributed_02"):
        out = folder / scenario
        took_s = run("bourbon2020", "--full", "--only", f"{scenario}-A", "--out", str(out))
        study = next(path for path in out.iterdir() if (path / "run.json").exists())
        rows = ask(
            study,
            "SELECT arm, json_extract_string(factors_json, 'request') AS request, sum(samples) AS cycles,"
            " median(latency_p50_ns) / 1e6 AS ms, avg(valid::INT) AS valid"
            " FROM trials WHERE NOT is_aa GROUP BY ALL ORDER BY ALL",
        )
        measured_s = ask(study, "SELECT sum(ended_ns - started_ns) / 1e9 AS s FROM trials")[0]["s"]
        cycles = [int(row["cycles"]) for row in rows]
        good &= cycles == [CYCLES] * TESTS and took_s < TARGET_S
        each = " to ".join(map(str, sorted({min(cycles), max(cycles)})))
        print(f"{scenario}, suite A: {len(cycles)} tests of {each} cycles in {took_s:.0f} s,")
        print(f"  {measured_s:.0f} s of it in trials, A/A runs included (target: under {TARGET_S} s)")
        for row in rows:
            print(f"  {row['arm']} {row['request']:>9}: {row['ms']:.3f} ms, {row['valid']:.0%} of trials valid")
    return good


def fan_in(folder: Path) -> bool:
    """A thousand clients, with new and with kept connections."""
    out = folder / "fan-in"
    settings = ("--set", f"clients={CLIENTS}", "--set", f"workload.requests={EACH}", "--blocks", "1")
    run("fan-in", *settings, "--out", str(out))
    rows = ask(out, "SELECT arm, connection, samples, errors, latency_p50_ns / 1e6 AS ms FROM trials ORDER BY 2, 1")
    for row in rows:
        print(
            f"  {row['arm']} {row['connection']}: {row['samples']} requests, {row['errors']} failed, {row['ms']:.1f} ms"
        )
    asked = CLIENTS * EACH
    print(f"fan-in of {CLIENTS} clients, {asked} requests asked for in each trial")
    return all(int(row["samples"]) == asked for row in rows)


def main() -> int:
    """Run both; 0 when the targets are met."""
    with tempfile.TemporaryDirectory(prefix="trifecta-bench-") as folder:
        results = [suite_a(Path(folder)), fan_in(Path(folder))]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
