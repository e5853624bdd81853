"""A race on a Ray cluster of three hosts, of which one is hit: ``-m tests.workloads.drive_hits FOLDER JSON N HIT``.

JSON: a list of settings; N: how many blocks. ``HIT``: ``node`` and ``worker`` are killed with signal 9, ``frozen`` is a
node stopped for good, ``cut`` a host whose line is gone until its block is lost, ``run`` the command itself and
``head`` Ray's head, both killed with signal 9 and gone on with by `trifecta resume`, on the cluster or without it. All
of it comes while the node ``n2`` runs a block. The last line is the exit code of what ended the race, and what it said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.workloads.ray_hosts import HEAD, cut_until_lost, ray_hosts, trials, wait

if TYPE_CHECKING:
    from trifecta.lab.topology import Topology

PATIENCE_S = 300.0
HITS = ("node", "worker", "frozen", "cut", "run", "head")
HIT = "n2"
PROGRAM = "trifecta.workloads.cluster.node"


def main() -> int:
    """Run it; 0 when it came to an end."""
    folder, settings, blocks, hit = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]
    from trifecta.lab import sandbox

    sandbox.enter()
    own = [*settings, f"blocks.at_least={blocks}", f"blocks.at_most={blocks}"]
    words = [word for setting in own for word in ("--set", setting)]
    with ray_hosts(folder.with_name("boot"), {"n1": (), "n2": (), "n3": ()}) as (network, address):

        def trifecta(*command: str) -> subprocess.Popen[bytes]:
            return network.host(HEAD).popen(
                [sys.executable, "-m", "trifecta", *command, "--quiet"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )

        run = trifecta("run", "race", *words, "--out", str(folder), "--cluster", address)
        # A machine that goes on alone does not decide alone: the nodes have to have had their half by then.
        many = 3 * int(blocks) // 2 if hit == "head" else 9
        wait(run, lambda: trials(folder) >= many and _at_work(network, folder), f"{many} trials", PATIENCE_S)
        _strike(hit, network, run, folder)
        if hit in ("run", "head"):
            run.wait(PATIENCE_S)
            run = trifecta("resume", str(folder), *(("--cluster", address) if hit == "run" else ()))
        _, errors = run.communicate(timeout=PATIENCE_S)
        print(json.dumps([run.returncode, errors.decode()]), flush=True)
    return 0


def _strike(hit: str, network: Topology, run: subprocess.Popen[bytes], folder: Path) -> None:
    raylet = _raylet(network.address(HIT))
    if hit == "node":
        raylet.kill()
    elif hit == "worker":
        worker = _program(raylet).parent()
        assert worker is not None
        worker.kill()
    elif hit == "frozen":
        for one in [raylet, *raylet.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                one.suspend()
    elif hit == "cut":
        cut_until_lost(network, HIT, run, folder, PATIENCE_S)
    elif hit == "run":
        run.kill()
    else:
        _gcs().kill()


def _at_work(network: Topology, folder: Path) -> bool:
    """Whether the node that is to be hit has joined and has programs of a trial below it."""
    if HIT not in (folder / "run.json").read_text():
        return False
    with suppress(psutil.Error, LookupError):
        return any("load" in one.cmdline() for one in _program(_raylet(network.address(HIT))).children(recursive=True))
    return False


def _own() -> list[psutil.Process]:
    return psutil.Process(os.getpid()).children(recursive=True)


def _raylet(address: str) -> psutil.Process:
    for one in _own():
        with suppress(psutil.Error):
            if one.name() == "raylet" and f"--node_ip_address={address}" in one.cmdline():
                return one
    raise LookupError(f"no raylet has the address {address}")


def _gcs() -> psutil.Process:
    return next(one for one in _own() if one.name() == "gcs_server")


def _program(raylet: psutil.Process) -> psutil.Process:
    """The outermost of the node's program."""
    for one in raylet.children(recursive=True):
        with suppress(psutil.Error):
            if PROGRAM in one.cmdline():
                return one
    raise LookupError("its program does not run")


if __name__ == "__main__":
    sys.exit(main())
