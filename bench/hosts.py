"""What a host by SSH costs beyond a namespace: until its engine is ready, and each trial.

    python -m bench.hosts [--rounds 9] [--blocks 6]

Two hosts are namespaces with OpenSSH's server, and one is where the user sits (tests/lab/three_hosts.py); nothing lies
between them. A start is timed from nothing to the answer of the probe that reflects, where the engine was brought
before; the connection's own share is a connection that does nothing, first and second by turns. What a trial costs is
its length, and that of the pause after it, without the time in which its load ran: of a race between the two hosts, and
of the same race in namespaces, by turns. There a trial starts a link, and between hosts it does not. Limits: 100 ms
for a start, 20 ms for a trial.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START_LIMIT_MS = 100.0
TRIAL_LIMIT_MS = 20.0
RACES = 3
_SET = ("connection=reused", "server=origin", "requests=40", "warmup=5 requests")
_IN_NAMESPACES = ("--set", "path=clean")  # hosts have the path that lies between them
_PORT = 9000
_REST_S = 0.3


def starts(rounds: int) -> list[dict[str, float]]:
    """Milliseconds of each start's parts; needs the sandbox."""
    from tests.lab.three_hosts import CLIENT, HERE, three_hosts
    from trifecta.contract.probe import ReflectConfig, ReflectReady
    from trifecta.design.machine import Machine
    from trifecta.lab import linux
    from trifecta.lab.engine import find_engine
    from trifecta.lab.ssh.connection import Connection
    from trifecta.lab.ssh.host import SshHost
    from trifecta.lab.ssh.place import SshPlace

    found = []
    with tempfile.TemporaryDirectory() as scratch, three_hosts(Path(scratch)) as hosts:
        linux.setns(hosts.lab.host(HERE).descriptor, linux.CLONE_NEWNET)
        os.environ.update(HOME=str(hosts.home), SSH_AUTH_SOCK="")
        machine = Machine(hosts.url(CLIENT))
        with SshHost(CLIENT, machine, find_engine()):
            pass  # the engine is there from now on
        for turn in range(rounds):
            parts: dict[str, float] = {}
            for what in ("connection", "start")[:: 1 if turn % 2 else -1]:
                time.sleep(_REST_S)  # the server ends what was before
                began = time.perf_counter()
                if what == "connection":
                    alone = Connection(machine)
                    parts["connection"] = time.perf_counter() - began
                    alone.close()
                    continue
                with SshHost(CLIENT, machine, find_engine()) as host:
                    opened = time.perf_counter()
                    with SshPlace(host).start("probe", Path(scratch) / "log") as reflect:
                        reflect.configure(ReflectConfig(address=host.address, port=_PORT))
                        reflect.wait_ready(ReflectReady, 10)
                        parts |= {"host": opened - began, "engine": time.perf_counter() - opened}
            parts["beyond the connection"] = parts["host"] + parts["engine"] - parts["connection"]
            found.append({name: seconds * 1e3 for name, seconds in sorted(parts.items())})
    return found


def race_between(out: Path, blocks: int) -> None:
    """Run the race between two hosts; needs the sandbox."""
    from tests.lab.three_hosts import CLIENT, SERVER, three_hosts

    with tempfile.TemporaryDirectory() as scratch, three_hosts(Path(scratch)) as hosts:
        places = [word for role in (CLIENT, SERVER) for word in ("--host", f"{role}={hosts.url(role)}")]
        code, said, errors = hosts.run(*_race(out, blocks), *places, timeout_s=600)
        if code != 0:
            raise SystemExit(f"{said}{errors}")


def _race(out: Path, blocks: int) -> list[str]:
    changes = [word for change in _SET for word in ("--set", change)]
    return ["race", *changes, "--blocks", str(blocks), "--out", str(out), "--quiet"]


def of_trials(run: Path) -> list[float]:
    """Milliseconds that each trial but the last took, its pause included and its load left out."""
    from trifecta.store.run import RunDirectory

    rows = sorted(RunDirectory.open(run).rows(), key=lambda row: int(row["started_ns"]))
    failed = [row["trial"] for row in rows if row["error"] is not None]
    if failed:
        raise SystemExit(f"{run}: trial {failed[0]} failed")
    took = []
    for row, following in itertools.pairwise(rows):
        load = json.loads(row["load_json"] or "{}")
        whole = int(following["started_ns"]) - int(row["started_ns"])
        took.append((whole - (load["ended_ns"] - load["started_ns"])) / 1e6)
    return took


def main() -> int:
    """Measure and print; 1 where a figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--inside", choices=("starts", "race"), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        from trifecta.lab import sandbox

        sandbox.enter()
        if asked.inside == "starts":
            print(json.dumps(starts(asked.rounds)))
        else:
            race_between(asked.out, asked.blocks)
        return 0
    from tests.lab.three_hosts import missing

    if why := missing():
        print(f"not measured: {why}")
        return 0
    inside = [sys.executable, "-m", "bench.hosts", "--rounds", str(asked.rounds), "--blocks", str(asked.blocks)]
    done = subprocess.run([*inside, "--inside", "starts"], check=True, stdout=subprocess.PIPE)
    print("| start of an engine | median ms | least | most |\n|---|---|---|---|")
    rounds = json.loads(done.stdout)
    for name in rounds[0]:
        print(f"| {name} | {_row([one[name] for one in rounds])} |")
    beyond = statistics.median(one["beyond the connection"] for one in rounds)
    far: list[float] = []
    near: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(RACES):
            between, within = Path(scratch) / f"hosts{turn}", Path(scratch) / f"namespaces{turn}"
            subprocess.run([*inside, "--inside", "race", "--out", str(between)], check=True, stdout=sys.stderr)
            near_race = [sys.executable, "-m", "trifecta", *_race(within, asked.blocks), *_IN_NAMESPACES]
            subprocess.run(near_race, check=True, stdout=sys.stderr)
            far += of_trials(between)
            near += of_trials(within)
    print("\n| a trial, without its load | median ms | least | most |\n|---|---|---|---|")
    print(f"| between hosts by SSH | {_row(far)} |\n| in namespaces | {_row(near)} |")
    more = statistics.median(far) - statistics.median(near)
    print(
        f"\nstart: {beyond:.0f} ms beyond the connection, at most {START_LIMIT_MS:.0f}: {_met(beyond, START_LIMIT_MS)}"
    )
    print(f"trial: {more:.0f} ms more than in a namespace, at most {TRIAL_LIMIT_MS:.0f}: {_met(more, TRIAL_LIMIT_MS)}")
    return int(beyond > START_LIMIT_MS or more > TRIAL_LIMIT_MS)


def _row(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} | {min(values):.0f} | {max(values):.0f}"


def _met(value: float, limit: float) -> str:
    return "met" if value <= limit else "MISSED"


if __name__ == "__main__":
    raise SystemExit(main())
