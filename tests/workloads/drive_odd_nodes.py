"""A race on three nodes, one slow and one with another clock: ``-m ...drive_odd_nodes FOLDER JSON N JSON``.

The first JSON is a list of settings, N the number of blocks, the second how the slow node's command begins. The last
line has the exit code of the run, and what was said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 500.0
AHEAD_S = 3


def main() -> int:
    """Run it; 0 when it came to an end."""
    folder, blocks = Path(sys.argv[1]), sys.argv[3]
    settings, slow = json.loads(sys.argv[2]), json.loads(sys.argv[4])
    from trifecta.lab import sandbox

    sandbox.enter()
    from tests.workloads.ray_hosts import HEAD, ahead, ray_hosts

    own = [*settings, f"blocks.at_least={blocks}", f"blocks.at_most={blocks}"]
    words = [word for setting in own for word in ("--set", setting)]
    nodes = {"n1": [], "slow": slow, "ahead": ahead(AHEAD_S)}
    with ray_hosts(folder.with_name("boot"), nodes) as (network, address):
        command = [sys.executable, "-m", "trifecta", "run", "race", *words, "--quiet", "--out", str(folder)]
        run = network.host(HEAD).popen(
            [*command, "--cluster", address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _, errors = run.communicate(timeout=PATIENCE_S)
    print(json.dumps([run.returncode, errors.decode()]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
