"""``python -m trifecta.lab.ray_driver FD ADDRESS``: what is connected to a Ray cluster, and does as it is told.

It is one of its own because Ray ends the process that is connected when the cluster's head is gone, writes to its
standard error, takes its signals and has threads. What it is told comes by the pipe FD as a method of a launcher and
its arguments, what came of it goes back; when the pipe is closed, it ends, and all programs with it.

A node of Ray that offers no CPU (``ray start --num-cpus 0``) is no place. An actor is pinned to a node and takes all of
its CPUs, so that nothing else of Ray's runs there meanwhile. Its process has the program as a child and hands octets
through. The actor ends with its driver, and the program with the actor, whose end of the pipe it reads.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from trifecta.design import extras
from trifecta.design.errors import CannotError, TrifectaError
from trifecta.lab.launcher import Output
from trifecta.lab.ray_actor import NodeActor
from trifecta.lab.ray_launcher import REMEDY, local_nodes

ray = extras.LazyModule("ray")
_ANSWER_S = 5.0  # an actor answers as often, also where there is nothing to say
_SILENT_S = 20.0  # then it is lost; Ray itself notices a lost node after some 15 s
_CLOSE_S = 10.0
_LONGEST_LINE = 300


class RayDriver:
    """What `trifecta.lab.ray_launcher.RayLauncher` hands on to Ray, in the process that Ray has for itself."""

    def __init__(self, address: str) -> None:
        """Connect to ``HOST:PORT`` or ``auto``, or raise ``local:N``: N nodes on this machine, until this is closed.

        UserError for an address that is none, CannotError where there is no cluster, or no Ray.
        """
        many = local_nodes(address)
        self._local: Any = None
        self._actors: dict[str, Any] = {}
        self._written: dict[str, int] = {}
        """How often was written to each place."""
        self._pending: dict[Any, str] = {}
        """By what is waited for the place that is to answer."""
        self._answered_at: dict[str, float] = {}
        """When each place answered last; none before its first answer, which it may have to wait for."""
        extras.load("ray")
        try:
            at = self._raise_local(many) if many else address
            ray.init(address=at, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # Ray raises ConnectionError, RuntimeError, ValueError, TimeoutError, and its own
            self.close()
            raise CannotError(f"--cluster {address}: {_line(error)}; {REMEDY}") from error
        self._hand = ray.remote(NodeActor)

    def _raise_local(self, many: int) -> str:
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
            raise CannotError(f"the cluster does not answer ({_line(error)}); {REMEDY}") from error
        names: dict[str, str] = {}
        for one in sorted(nodes, key=lambda node: str(node["NodeID"])):
            given = str(one.get("NodeName") or "")
            name = given if given not in ("", one["NodeManagerAddress"]) else str(one["NodeManagerHostname"])
            names[one["NodeID"]] = name if name not in names.values() else f"{name}-{one['NodeID'][:8]}"
        return names

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
        self._written[place] = 0
        self._ask(place)

    def write(self, place: str, octets: bytes) -> None:
        """As `Launcher.write`."""
        if place in self._actors:
            self._actors[place].write.remote(self._written[place], octets)
            self._written[place] += 1

    def read(self, timeout_s: float) -> Mapping[str, Output]:
        """As `Launcher.read`; a place that has answered, and does not any more, is lost, whatever Ray thinks of it."""
        outputs: dict[str, Output] = {}
        until = time.monotonic() + timeout_s
        while True:
            for answer in self._ready(max(0.0, until - time.monotonic())):
                place = self._pending.pop(answer)
                if place not in self._actors:
                    continue
                output = _answer(answer)
                self._answered_at[place] = time.monotonic()
                if output.octets or output.ended is not None:
                    outputs[place] = output
                if output.ended is None:
                    self._ask(place)
            late = time.monotonic() - _ANSWER_S - _SILENT_S
            for place in [one for one in self._pending.values() if self._answered_at.get(one, late) < late]:
                if place in self._actors and place not in outputs:
                    outputs[place] = Output(ended=f"it has not answered for {_SILENT_S:.0f} s")
            if outputs or time.monotonic() >= until:
                return outputs

    def _ready(self, wait_s: float) -> list[Any]:
        """The answers that have come, waited for so long at most."""
        if not self._pending:
            time.sleep(wait_s)
            return []
        pending = list(self._pending)
        if not ray.wait(pending, num_returns=1, timeout=wait_s)[0]:
            return []
        ready: list[Any] = ray.wait(pending, num_returns=len(pending), timeout=0)[0]
        return ready

    def _ask(self, place: str) -> None:
        self._pending[self._actors[place].read.remote(_ANSWER_S)] = place

    def end(self, place: str) -> None:
        """As `Launcher.end`: an actor that nobody holds any more ends when it has done what it was asked."""
        actor = self._actors.pop(place, None)
        self._written.pop(place, None)
        self._answered_at.pop(place, None)
        for answer in [answer for answer, pending_place in self._pending.items() if pending_place == place]:
            del self._pending[answer]
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
            shutil.rmtree(os.environ["RAY_TMPDIR"], ignore_errors=True)  # of a launcher that was killed, too


def _answer(answer: Any) -> Output:
    try:
        octets, ended = ray.get(answer)
    except Exception as error:  # the actor, its node or the way to it is gone, or it never came up
        return Output(ended=_line(error))
    return Output(octets, ended)


def plainly(kind: str, sentence: str) -> str:
    """What an error of Ray's of this class says, without what tells a user nothing: identities, names of its code."""
    sentence = " ".join(sentence.split())
    if kind == "ActorDiedError" and (why := re.search(r"because (its (?:worker process|node) has died)", sentence)):
        return why[1]
    if kind == "ActorUnavailableError":
        why = re.search(r"RPC error: ([^:;]*?) rpc_code", sentence)
        return f"Ray cannot reach it ({why[1]})" if why else "Ray cannot reach it"
    return textwrap.shorten(sentence, _LONGEST_LINE, placeholder=" ...") or kind


def _line(error: Exception) -> str:
    """What an error of Ray's says, in one line."""
    return plainly(type(error).__name__, str(error))


def main() -> int:
    """Do as one is told until the pipe is closed."""
    pipe, address = Connection(int(sys.argv[1])), sys.argv[2]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: who holds the pipe says when it is enough
    driver = None
    with suppress(EOFError, BrokenPipeError):
        try:
            driver = RayDriver(address)
            pipe.send((True, None))
        except TrifectaError as error:
            pipe.send((False, str(error)))
            return 0
        try:
            while True:
                name, arguments = pipe.recv()
                try:
                    pipe.send((True, getattr(driver, name)(*arguments)))
                except TrifectaError as error:
                    pipe.send((False, str(error)))
        finally:
            driver.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
