"""``python -m bench.product [help|lab|race]``: start of the command line, lab up and down, and the shares of a race."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRIFECTA = Path(sys.executable).with_name("trifecta")

RAISE_A_LAB = """
import time
from trifecta.lab import sandbox
sandbox.enter()
from trifecta.lab.network import two_hosts
for _ in range(11):
    began = time.monotonic()
    with two_hosts():
        up = time.monotonic()
    print(up - began, time.monotonic() - up, flush=True)
"""


def help_time() -> None:
    """Wall time of ``trifecta --help``, target 300 ms; peer: the interpreter doing nothing."""
    commands = {"trifecta --help": [str(TRIFECTA), "--help"], "python -c pass": [sys.executable, "-c", "pass"]}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(15):
        for name, command in commands.items():
            began = time.monotonic()
            subprocess.run(command, check=True, capture_output=True)
            times[name].append((time.monotonic() - began) * 1000)
    for name, values in times.items():
        print(f"| {name} | median {statistics.median(values):.0f} ms | max {max(values):.0f} ms |")


def lab_time() -> None:
    """Wall time to raise a lab of two hosts and take it down, target 400 ms."""
    done = subprocess.run([sys.executable, "-c", RAISE_A_LAB], check=True, capture_output=True, text=True)
    pairs = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    up, down = (statistics.median(pair[i] for pair in pairs) * 1000 for i in (0, 1))
    total = statistics.median(sum(pair) for pair in pairs) * 1000
    print(f"| lab, 2 hosts | up {up:.0f} ms | down {down:.0f} ms | together, median of {len(pairs)}: {total:.0f} ms |")


def race_shares() -> None:
    """Run the bundled race once; what share of its time was not spent measuring, target 25 %."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "race"
        began = time.monotonic()
        subprocess.run([str(TRIFECTA), "race", "--out", str(out), "--quiet"], check=False, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - began
        shares = json.loads((out / "run.json").read_text())["time_share"]
        shutil.rmtree(out, ignore_errors=True)
    print(f"| race | wall {wall:.0f} s | " + " | ".join(f"{name} {share:.1%}" for name, share in shares.items()) + " |")


PARTS = {"help": help_time, "lab": lab_time, "race": race_shares}


def main() -> int:
    """Run the parts named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench.product", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    for part in parser.parse_args().parts or PARTS:
        PARTS[part]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
