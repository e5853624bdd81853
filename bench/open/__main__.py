"""Time until a run of 10 million samples is open and a first query of it is answered.

    python -m bench.open [--samples 10000000] [--rounds 7] [--keep FOLDER]

The run is invented (tests/report/synthetic.py) and has a manifest, so that every file is compared with what was
written, as of a real run. What is measured is a fresh Python process, ``import trifecta`` included, with the files in
the page cache. Each round is a process of its own, and the median counts: at most 1 s.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCKS = 9
TRIALS = 12 * 4 * BLOCKS
LIMIT_S = 1.0
# Of one arm in one cell, as somebody begins; and over every sample, which is said, and has no target.
FIRST = """SELECT arm, count(*), median(latency_ns) FROM samples JOIN trials USING (trial)
WHERE trials.path = 'far' AND trials.connection = 'new' AND trials.server = 'origin' AND success GROUP BY arm"""
ALL = "SELECT arm, count(*), median(latency_ns) FROM samples JOIN trials USING (trial) WHERE success GROUP BY arm"


def measure(run: Path) -> dict[str, float]:
    """Seconds of each step in this process."""
    started = time.perf_counter()
    import trifecta

    opened = trifecta.open(run)
    ready = time.perf_counter()
    assert len(opened.sql(FIRST).fetchall()) == 4
    first = time.perf_counter()
    assert len(opened.sql(ALL).fetchall()) == 4
    ended = time.perf_counter()
    both = first - started
    return {"open_s": ready - started, "first_query_s": first - ready, "both_s": both, "all_samples_s": ended - first}


def main() -> int:
    """Generate, measure, print; 1 when the limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="make the run here and keep it; an existing one is used again")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        run = options.keep or Path(temporary) / "run"
        if not (run / "run.json").exists():
            from tests.report.synthetic import Shape, write_run
            from tests.store.sealed import seal

            seal(write_run(run, Shape(blocks=BLOCKS, samples_per_trial=-(-options.samples // TRIALS))))
        octets = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
        command = [sys.executable, "-m", "bench.open", "--measure", str(run)]
        answers = [subprocess.run(command, check=True, stdout=subprocess.PIPE) for _ in range(options.rounds)]
    rounds = [json.loads(one.stdout) for one in answers]
    print(f"{'run':14} {octets / 1e6:,.0f} MB, {options.samples:,} samples")
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        middle = statistics.median(values)
        print(f"{name.removesuffix('_s'):14} {middle:.2f} s ({min(values):.2f} to {max(values):.2f})")
    inside = statistics.median(one["both_s"] for one in rounds) <= LIMIT_S
    print(f"limit for both: {LIMIT_S:.0f} s: {'kept' if inside else 'EXCEEDED'}")
    return 0 if inside else 1


if __name__ == "__main__":
    sys.exit(main())
