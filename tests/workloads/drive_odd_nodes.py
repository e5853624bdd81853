"""A race on three nodes, one slow and one with another clock, and on one machine.

``-m ... FOLDER SETTINGS BLOCKS WORDS``, the last three JSON: a list; the number of blocks of each; and how the slow
one's command begins. ``FOLDER/run`` is of the cluster, ``FOLDER/alone`` of a machine alone; the last line has the exit
code of each, and what was said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 500.0
AHEAD_S = 3


def main() -> int:
    """Run both; 0 when they came to an end."""
    folder = Path(sys.argv[1])
    settings, blocks, slow = map(json.loads, sys.argv[2:5])
    from trifecta.lab import sandbox

    sandbox.enter()
    from tests.workloads.ray_hosts import HEAD, ahead, ray_hosts

    def command(name: str) -> list[str]:
        own = [*settings, f"blocks.at_least={blocks[name]}", f"blocks.at_most={blocks[name]}"]
        words = [word for setting in own for word in ("--set", setting)]
        return [sys.executable, "-m", "trifecta", "run", "race", *words, "--quiet", "--out", str(folder / name)]

    alone = subprocess.run(command("alone"), capture_output=True, timeout=PATIENCE_S, check=False)
    nodes = {"n1": [], "slow": slow, "ahead": ahead(AHEAD_S)}
    with ray_hosts(folder / "boot", nodes) as (network, address):
        run = network.host(HEAD).popen(
            [*command("run"), "--cluster", address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _, errors = run.communicate(timeout=PATIENCE_S)
    told = {"alone": (alone.returncode, alone.stderr.decode()), "run": (run.returncode, errors.decode())}
    print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
