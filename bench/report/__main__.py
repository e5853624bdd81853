"""Time and peak memory of analysis and report over a run of 10 million samples.

    python -m bench.report [--samples 10000000] [--keep FOLDER]

The run is invented (tests/report/synthetic.py) in a temporary folder: 12 cells, 4 trials a block, 9 blocks. What is
measured is a fresh Python process that judges all verdicts from the trials' rows, prints them and writes the report,
imports included. The files are in the page cache, as they are right after a run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCKS = 9
TRIALS = 12 * 4 * BLOCKS
LIMIT_S = 8.0
LIMIT_BYTES = 2_000_000_000


def measure(run: Path) -> dict[str, float]:
    """Analyse and report ``run`` in this process."""
    started = time.perf_counter()
    from rich.console import Console

    from trifecta.analysis.verdict import verdicts
    from trifecta.conclude import facts
    from trifecta.report import html, terminal
    from trifecta.store.run import RunDirectory
    from trifecta.studies import load

    imported = time.perf_counter()
    study = load(str(run / "study.yaml"))
    judged = verdicts(study, RunDirectory.open(run).rows())
    analysed = time.perf_counter()
    report = html.write_report(run)
    written = time.perf_counter()
    terminal.print_verdicts(run, Console(file=sys.stderr, width=80))
    ended = time.perf_counter()
    assert facts.read(run).seed == study.seed
    return {
        "verdicts": len(judged),
        "import_s": imported - started,
        "analysis_s": analysed - imported,
        "report_s": written - analysed,
        "terminal_s": ended - written,
        "total_s": ended - started,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "report_bytes": report.stat().st_size,
    }


def main() -> int:
    """Generate, measure, print; 1 when a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000_000)
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

            write_run(run, Shape(blocks=BLOCKS, samples_per_trial=-(-options.samples // TRIALS)))
        command = [sys.executable, "-m", "bench.report", "--measure", str(run)]
        found = json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        )
    for name, value in found.items():
        shown = (
            f"{value / 1e6:,.1f} MB" if name.endswith("_bytes") else f"{value:.2f} s" if name.endswith("_s") else value
        )
        print(f"{name.removesuffix('_bytes').removesuffix('_s').replace('_', ' '):12} {shown}")
    inside = found["total_s"] <= LIMIT_S and found["peak_memory_bytes"] <= LIMIT_BYTES
    print(f"limits: {LIMIT_S:.0f} s and {LIMIT_BYTES / 1e9:.0f} GB: {'kept' if inside else 'EXCEEDED'}")
    return 0 if inside else 1


if __name__ == "__main__":
    sys.exit(main())
