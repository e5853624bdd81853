"""A Ray cluster of three hosts in namespaces, one of them cut off: ``-m tests.workloads.drive_partition FOLDER JSON``.

JSON: a list of settings. The head has no CPU for Ray, ``n1`` and ``n2`` have one each. After nine trials packets to
``n2`` are dropped, until its block is lost. The last line is the exit code of the run and what it said.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 400.0
BOOT = "/proc/sys/kernel/random/boot_id"


def main() -> int:
    """Run it; 0 when it came to an end."""
    folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
    from trifecta.lab import sandbox

    sandbox.enter()
    from trifecta.lab.host_graph import host_graph
    from trifecta.lab.topology import Wire

    with host_graph(["head", "n1", "n2"], [Wire("head", "n1"), Wire("head", "n2")]) as network:
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        address = f"{network.address('head')}:6379"
        for name in network.names:
            own = [f"--node-ip-address={network.address(name)}", f"--node-name={name}"]
            own += ["--head", "--port=6379", "--num-cpus=0", "--include-dashboard=false"] if name == "head" else []
            own += [] if name == "head" else [f"--address={address}", "--num-cpus=1"]
            # A machine of its own, by what tells machines apart.
            boot = Path(f"{folder}-{name}")
            boot.write_text(f"{name}\n")
            as_another = ["unshare", "-m", "sh", "-c", f'mount --bind {boot} {BOOT} && exec "$@"', "sh"]
            network.host(name).popen([*as_another, *ray, *own], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(10.0 if name == "head" else 1.0)
        words = [word for setting in settings for word in ("--set", setting)]
        command = [sys.executable, "-m", "trifecta", "run", "race", *words, "--out", str(folder), "--quiet", "--json"]
        run = network.host("head").popen(
            [*command, "--cluster", address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        until = time.monotonic() + PATIENCE_S

        def wait(done: Callable[[], bool], what: str) -> None:
            while not done():
                if run.poll() is not None or time.monotonic() > until:
                    said = run.stderr.read().decode() if run.poll() is not None and run.stderr is not None else ""
                    raise TimeoutError(f"{what}: {said}")
                time.sleep(0.1)

        def cut(off: bool) -> None:
            # Not the device: with it the routes would go, for good.
            there = f"{network.address('n2')}/32"
            way = ["blackhole", there] if off else [there, "dev", "to-n2", "src", network.address("head")]
            assert network.host("head").popen(["ip", "route", "replace", *way]).wait() == 0

        wait(lambda: len(list((folder / "trials").glob("t*.parquet"))) >= 9, "nine trials")
        cut(True)
        wait(lambda: "lost_blocks" in (folder / "run.json").read_text(), "the block is lost")
        cut(False)
        code = run.wait(max(1.0, until - time.monotonic()))
        assert run.stderr is not None
        print(json.dumps([code, run.stderr.read().decode()]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
