"""A race on three nodes, one slow and one with another clock, and on one machine: ``-m ... FOLDER JSON WORDS``.

JSON: a list of settings; WORDS, a list too, begin the slow one's command. ``FOLDER/run`` is of the cluster,
``FOLDER/alone`` of a machine alone; the last line has the exit codes and what was said.
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
    folder, settings, slow = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
    from trifecta.lab import sandbox

    sandbox.enter()
    from tests.workloads.ray_hosts import HEAD, ahead, ray_hosts

    words = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "trifecta", "run", "race", *words, "--quiet", "--json", "--out"]
    told = []
    alone = subprocess.run([*command, str(folder / "alone")], capture_output=True, timeout=PATIENCE_S, check=False)
    told.append((alone.returncode, alone.stderr.decode()))
    nodes = {"n1": [], "slow": slow, "ahead": ahead(AHEAD_S)}
    with ray_hosts(folder / "boot", nodes) as (network, address):
        run = network.host(HEAD).popen(
            [*command, str(folder / "run"), "--cluster", address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _, errors = run.communicate(timeout=PATIENCE_S)
        told.append((run.returncode, errors.decode()))
        print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
