"""Programs at the nodes of a Ray cluster: it is asked which nodes there are, and carries octets. It is never measured.

A node of Ray that offers no CPU (``ray start --num-cpus 0``) is no place. An actor is pinned to a node and takes all of
its CPUs, so that nothing else of Ray's runs there meanwhile. Its process has the program as a child and hands octets
through. The actor ends with its driver, and the program with the actor, whose end of the pipe it reads.
"""

from __future__ import annotations

import logging
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.lab.launcher import Said

ray = extras.Later("ray")
LOCAL = "local:"
MOST_LOCAL = 64
_ANSWER_S = 5.0  # an actor answers as often, also where there is nothing to say
_SILENT_S = 20.0  # then it is lost; Ray itself notices a lost node after some 15 s
_REACH_S = 5.0
_GRACE_S = 5.0
_CLOSE_S = 10.0
_MOST_OCTETS = 1 << 22  # of one answer: it passes through Ray's memory
_LONGEST_LINE = 300
_SHORT = "/tmp"
_REMEDY = "see that `ray start --head` runs there, with the Python and the Ray that are here"


class Hand:
    """What runs in an actor's process on a node: it starts a program and hands octets through."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Start the program, in a session of its own."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it is there as long as the actor
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,
            bufsize=0,
        )

    def read(self, wait_s: float) -> tuple[bytes, str | None]:
        """What it wrote, waited for so long at most; and how it ended, once all that it wrote was read."""
        out = self._process.stdout
        assert out is not None
        pieces: list[bytes] = []
        many, until = 0, time.monotonic() + wait_s
        while many < _MOST_OCTETS:
            left = 0.0 if pieces else max(0.0, until - time.monotonic())
            if not select.select([out], [], [], left)[0]:
                break
            piece = os.read(out.fileno(), 1 << 16)
            if not piece:
                return b"".join(pieces), self._ending()
            pieces.append(piece)
            many += len(piece)
        return b"".join(pieces), None

    def write(self, octets: bytes) -> None:
        """To its standard input; that it has ended, `read` says."""
        assert self._process.stdin is not None
        view = memoryview(octets)
        with suppress(BrokenPipeError, ValueError):  # ValueError: it was closed
            while view:
                view = view[self._process.stdin.write(view) or 0 :]

    def end(self) -> None:
        """Close its standard input, and kill it where it does not end by that; what it started goes with it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ending(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        how = f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        return lines[-1].removeprefix("trifecta: ") if lines and code >= 0 else how


class RayLauncher:
    """A `trifecta.lab.launcher.Launcher` over a Ray cluster."""

    def __init__(self, address: str) -> None:
        """Connect to ``HOST:PORT`` or ``auto``, or raise ``local:N``: N nodes on this machine, until this is closed.

        UserError for an address that is none, CannotError where there is no cluster, or no Ray.
        """
        many = local_nodes(address)
        self.shared = many > 1
        self._local: Any = None
        self._folder: str | None = None
        self._actors: dict[str, Any] = {}
        self._asked: dict[Any, str] = {}
        """By what is waited for the place that is to answer."""
        self._answered_at: dict[str, float] = {}
        """When each place answered last; none before its first answer, which it may have to wait for."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told what runs here
        if many:
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # everywhere: the loopback stands for this machine
        extras.load("ray")
        kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            at = self._raise_local(many) if many else address
            ray.init(address=at, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # Ray raises ConnectionError, RuntimeError, ValueError, TimeoutError, and its own
            self.close()
            raise CannotError(f"--cluster {address}: {_line(error)}; {_REMEDY}") from error
        finally:
            for number, handler in kept.items():  # Ray takes some
                signal.signal(number, handler)
        self._hand = ray.remote(Hand)

    def _raise_local(self, many: int) -> str:
        os.environ.setdefault("RAY_worker_niceness", "0")  # else 15, and all that is started there inherits it
        # Not beside another cluster of this machine, whose address lies there. Its sockets there need short names.
        self._folder = tempfile.mkdtemp(prefix="trifecta-ray-", dir=_SHORT)
        os.environ["RAY_TMPDIR"] = self._folder
        # Nobody else is to reach it; what others would see, and nobody here looks at, is not started.
        every = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_log_monitor": False}
        cluster = extras.load("ray.cluster_utils").Cluster
        self._local = cluster(
            initialize_head=True, head_node_args={**every, "node_name": "node1", "include_dashboard": False}
        )
        for number in range(2, many + 1):
            self._local.add_node(**every, node_name=f"node{number}")
        return str(self._local.address)

    def places(self) -> Mapping[str, str]:
        """As `Launcher.places`: by Ray's identity of a node what ``--node-name`` calls it, else its host's name."""
        try:
            nodes = [one for one in ray.nodes() if one["Alive"] and one.get("Resources", {}).get("CPU", 0) > 0]
        except Exception as error:
            raise CannotError(f"the cluster does not answer ({_line(error)}); {_REMEDY}") from error
        found: dict[str, str] = {}
        for one in sorted(nodes, key=lambda node: str(node["NodeID"])):
            given = str(one.get("NodeName") or "")
            name = given if given not in ("", one["NodeManagerAddress"]) else str(one["NodeManagerHostname"])
            found[one["NodeID"]] = name if name not in found.values() else f"{name}-{one['NodeID'][:8]}"
        return found

    def start(self, place: str, arguments: Sequence[str]) -> None:
        """As `Launcher.start`; it waits while others have the node's CPUs."""
        strategy = extras.load("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        cpus = next((one["Resources"]["CPU"] for one in ray.nodes() if one["NodeID"] == place and one["Alive"]), 1)
        cpus = int(cpus) if cpus >= 1 else cpus  # Ray takes no part of a core beside whole ones
        self._actors[place] = self._hand.options(
            num_cpus=cpus,
            max_restarts=0,
            max_concurrency=2,  # `write` passes a `read` that waits
            scheduling_strategy=strategy(node_id=place, soft=False),
        ).remote(list(arguments))
        self._ask(place)

    def write(self, place: str, octets: bytes) -> None:
        """As `Launcher.write`."""
        if place in self._actors:
            self._actors[place].write.remote(octets)

    def read(self, timeout_s: float) -> Mapping[str, Said]:
        """As `Launcher.read`; a place that has answered, and does not any more, is lost, whatever Ray thinks of it."""
        found: dict[str, Said] = {}
        until = time.monotonic() + timeout_s
        while True:
            for answer in self._ready(max(0.0, until - time.monotonic())):
                place = self._asked.pop(answer)
                if place not in self._actors:
                    continue
                said = _answer(answer)
                self._answered_at[place] = time.monotonic()
                if said.octets or said.ended is not None:
                    found[place] = said
                if said.ended is None:
                    self._ask(place)
            late = time.monotonic() - _ANSWER_S - _SILENT_S
            for place in [one for one in self._asked.values() if self._answered_at.get(one, late) < late]:
                if place in self._actors and place not in found:
                    found[place] = Said(ended=f"it has not answered for {_SILENT_S:.0f} s")
            if found or time.monotonic() >= until:
                return found

    def _ready(self, wait_s: float) -> list[Any]:
        """The answers that have come, waited for so long at most."""
        if not self._asked:
            time.sleep(wait_s)
            return []
        asked = list(self._asked)
        if not ray.wait(asked, num_returns=1, timeout=wait_s)[0]:
            return []
        ready: list[Any] = ray.wait(asked, num_returns=len(asked), timeout=0)[0]
        return ready

    def _ask(self, place: str) -> None:
        self._asked[self._actors[place].read.remote(_ANSWER_S)] = place

    def end(self, place: str) -> None:
        """As `Launcher.end`: an actor that nobody holds any more ends when it has done what it was asked."""
        actor = self._actors.pop(place, None)
        self._answered_at.pop(place, None)
        for answer in [answer for answer, asked in self._asked.items() if asked == place]:
            del self._asked[answer]
        if actor is not None:
            actor.end.remote()

    def close(self) -> None:
        """As `Launcher.close`."""
        with suppress(Exception):  # whatever is left ends with this process
            ending = [actor.end.remote() for actor in self._actors.values()]
            self._actors.clear()
            if ending:
                ray.wait(ending, num_returns=len(ending), timeout=_CLOSE_S)
        with suppress(Exception):
            ray.shutdown()
        if self._local is not None:
            with suppress(Exception):
                self._local.shutdown()
            self._local = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def local_nodes(address: str) -> int:
    """N of ``local:N``, 0 for the address of a cluster; UserError for what is neither."""
    if address.startswith(LOCAL):
        many = address.removeprefix(LOCAL)
        if not re.fullmatch(r"[1-9]\d*", many) or int(many) > MOST_LOCAL:
            raise UserError(f"option --cluster {address}: write local:N with N from 1 to {MOST_LOCAL}")
        return int(many)
    if address != "auto" and not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}", address):
        raise UserError(f"option --cluster {address}: write HOST:PORT of a Ray cluster's head, auto, or local:N")
    return 0


def reach(address: str) -> None:
    """UserError for an address that is none, CannotError without Ray or where nobody listens; starts nothing."""
    many = local_nodes(address)
    if extras.missing("cluster"):
        extras.load("ray")
    if many or address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise CannotError(f"--cluster {address}: nobody answers there ({said}); {_REMEDY}") from error


def _answer(answer: Any) -> Said:
    try:
        octets, ended = ray.get(answer)
    except Exception as error:  # the actor, its node or the way to it is gone, or it never came up
        return Said(ended=_line(error))
    return Said(octets, ended)


def _line(error: Exception) -> str:
    """What an error of Ray's says, in one line."""
    return " ".join(str(error).split())[:_LONGEST_LINE] or type(error).__name__
