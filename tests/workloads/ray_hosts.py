"""A Ray cluster of hosts in network namespaces: what each has of its own, and who is slow or has another clock."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trifecta.lab.cpu_share import CpuShare
from trifecta.lab.host_graph import host_graph
from trifecta.lab.topology import Topology, Wire

HEAD = "head"
BOOT = "/proc/sys/kernel/random/boot_id"
RAY = "/tmp/ray"  # where Ray has its sockets, whose names must be short
_ENDED_S = 20.0


@contextmanager
def slowed(share: float) -> Iterator[list[str]]:
    """The head of a command whose programs have this share of a core together; they end before this does."""
    group = CpuShare("slow", share)
    try:
        yield ["sh", "-c", f'echo $$ >{group.folder}/cgroup.procs && exec "$@"', "sh"]
    finally:
        until = time.monotonic() + _ENDED_S
        while group.folder.exists() and time.monotonic() < until:
            group.close()
            time.sleep(0.1)


def ahead(seconds: int) -> list[str]:
    """The head of a command whose programs have a monotonic clock that much ahead (time_namespaces(7))."""
    return ["unshare", "--time", "--monotonic", str(seconds), "--boottime", str(seconds)]


def trials(run: Path) -> int:
    """How many are committed."""
    return len(list((run / "trials").glob("t*.parquet")))


def wait(command: subprocess.Popen[bytes], done: Callable[[], bool], what: str, patience_s: float) -> None:
    """Until it is so while a command runs; TimeoutError, with what it said if it has ended."""
    until = time.monotonic() + patience_s
    while not done():
        if command.poll() is not None or time.monotonic() > until:
            ended = command.poll() is not None and command.stderr is not None
            raise TimeoutError(f"{what}: {command.stderr.read().decode() if ended else ''}")
        time.sleep(0.05)


def cut_until_lost(
    network: Topology, name: str, command: subprocess.Popen[bytes], run: Path, patience_s: float
) -> None:
    """Drop packets to a host until its block is lost."""

    def cut(off: bool) -> None:
        # Not the device: with it the routes would go, for good.
        there = f"{network.address(name)}/32"
        way = ["blackhole", there] if off else [there, "dev", f"to-{name}", "src", network.address(HEAD)]
        assert network.host(HEAD).popen(["ip", "route", "replace", *way]).wait() == 0

    cut(True)
    wait(command, lambda: "lost_blocks" in (run / "run.json").read_text(), "the block is lost", patience_s)
    cut(False)


@contextmanager
def ray_hosts(folder: Path, wrapped: dict[str, Sequence[str]]) -> Iterator[tuple[Topology, str]]:
    """The head, which has no CPU for Ray, and hosts with one each; ``wrapped``: what a host's command begins with.

    Yields the network and the cluster's address. Runs inside the sandbox, which ends all of it.
    """
    with host_graph([HEAD, *wrapped], [Wire(HEAD, name) for name in wrapped]) as network:
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        address = f"{network.address(HEAD)}:6379"
        Path(RAY).mkdir(exist_ok=True)
        for name in network.names:
            own = [f"--node-ip-address={network.address(name)}", f"--node-name={name}"]
            own += ["--head", "--port=6379", "--num-cpus=0", "--include-dashboard=false"] if name == HEAD else []
            own += [] if name == HEAD else [f"--address={address}", "--num-cpus=1"]
            # A machine of its own, by what distinguishes machines; with a folder of Ray's of its own, in which two that
            # begin at once would take the same name for their sockets, and one of them would end by that.
            boot, own_ray = Path(f"{folder}-{name}"), Path(f"{folder}-{name}-ray")
            boot.write_text(f"{name}\n")
            own_ray.mkdir()
            mounts = f"mount --bind {boot} {BOOT}"
            mounts += (
                "" if name == HEAD else f" && mount --bind {own_ray} {RAY}"
            )  # whoever connects to the head looks into its own
            as_another = ["unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh"]
            command = [*wrapped.get(name, ()), *as_another, *ray, *own]
            network.host(name).popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(10.0 if name == HEAD else 1.0)
        yield network, address
