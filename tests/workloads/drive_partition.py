"""A Ray cluster of three hosts in namespaces, one of them cut off: ``-m tests.workloads.drive_partition FOLDER JSON``.

JSON: a list of settings. The head has no CPU for Ray, ``n1`` and ``n2`` have one each. After nine trials packets to
``n2`` are dropped, until its block is lost. The last line is the exit code of the run and what it said.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_S = 400.0


def main() -> int:
    """Run it; 0 when it came to an end."""
    folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
    from trifecta.lab import sandbox

    sandbox.enter()
    from tests.workloads.ray_hosts import HEAD, cut_until_lost, ray_hosts, trials, wait

    with ray_hosts(folder, {"n1": (), "n2": ()}) as (network, address):
        words = [word for setting in settings for word in ("--set", setting)]
        command = [sys.executable, "-m", "trifecta", "run", "race", *words, "--out", str(folder), "--quiet", "--json"]
        run = network.host(HEAD).popen(
            [*command, "--cluster", address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        until = time.monotonic() + PATIENCE_S
        wait(run, lambda: trials(folder) >= 9, "nine trials", PATIENCE_S)
        cut_until_lost(network, "n2", run, folder, until - time.monotonic())
        code = run.wait(max(1.0, until - time.monotonic()))
        assert run.stderr is not None
        print(json.dumps([code, run.stderr.read().decode()]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
