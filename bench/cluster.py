"""What a cluster costs a block: the pause between two blocks of a node, beyond that on one machine.

    python -m bench.cluster [--races 3] [--blocks 14]

A race of one cell, in blocks of some seconds, on a Ray cluster of one node, `--cluster local:1`, whose head shares the
cores with it, and the same race without a cluster, by turns. A block's time is from its first trial's start to that of
the next block; its pause is from the end of its last trial. What the cluster takes is a node's pause less the median
pause of one machine. The first blocks, after which a node is given one ahead, are in it. Limit: 5 % of a block's time.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LIMIT = 0.05
_SET = ("connection=reused", "server=origin", "path=far", "give_up=false")


def of_blocks(run: Path) -> list[tuple[float, float]]:
    """Seconds that each block but the last took, and of the pause at its end."""
    from trifecta.store.run import RunDirectory

    rows: list[dict[str, Any]] = sorted(
        (dict(row) for row in RunDirectory.open(run).rows()), key=lambda row: int(row["started_ns"])
    )
    blocks = [list(own) for _, own in itertools.groupby(rows, key=lambda row: (row["cell"], row["block"]))]
    took = []
    for block, following in itertools.pairwise(blocks):
        next_ns = int(following[0]["started_ns"])
        took.append(((next_ns - int(block[0]["started_ns"])) / 1e9, (next_ns - int(block[-1]["ended_ns"])) / 1e9))
    return took


def main() -> int:
    """Measure and print; 1 where the figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=14)
    asked = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {"on a node": [], "on one machine": []}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(asked.races):
            for name, where in (("on a node", ["--cluster", "local:1"]), ("on one machine", [])):
                out = Path(scratch) / f"{turn}-{len(where)}"
                changes = [word for change in _SET for word in ("--set", change)]
                changes += ["--set", f"blocks={{at_least: {asked.blocks}, at_most: {asked.blocks}}}"]
                race = [sys.executable, "-m", "trifecta", "race", *changes, *where]
                subprocess.run([*race, "--out", str(out), "--quiet"], check=False, stdout=subprocess.DEVNULL)
                found[name] += of_blocks(out)
    print("| | blocks | a block, s | its pause, s | least | most |\n|---|---|---|---|---|---|")
    for name, blocks in found.items():
        pauses = [pause for _, pause in blocks]
        whole = statistics.median(block for block, _ in blocks)
        print(
            f"| {name} | {len(blocks)} | {whole:.2f} | {statistics.median(pauses):.3f} | "
            f"{min(pauses):.3f} | {max(pauses):.3f} |"
        )
    usual = statistics.median(pause for _, pause in found["on one machine"])
    beyond = sum(pause - usual for _, pause in found["on a node"])
    share = beyond / sum(block for block, _ in found["on a node"])
    print(f"\n{share:.1%} of a block's time goes to the cluster, at most {LIMIT:.0%}: ", end="")
    print("met" if share <= LIMIT else "MISSED")
    return int(share > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
