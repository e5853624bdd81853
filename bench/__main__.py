"""Every benchmark, one after the other: ``python -m bench``."""

from __future__ import annotations

import subprocess
import sys

PARTS = (
    "bench.peers",
    "bench.product",
    "bench.start",
    "bench.hosts",
    "bench.cluster",
    "bench.gathering",
    "bench.load",
    "bench.link",
    "bench.relay",
    "bench.services",
    "bench.visits",
    "bench.sampler",
    "bench.capture",
    "bench.trace",
    "bench.map",
    "bench.report",
    "bench.open",
    "bench.export",
    "bench.ui",
    "bench.gates",
    "bench.planted",
)


def main() -> int:
    """Run each benchmark in its own process; the worst exit code is ours."""
    codes = []
    for part in PARTS:
        print(f"\n## {part}\n", flush=True)
        codes.append(subprocess.run([sys.executable, "-m", part], check=False).returncode)
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
