"""Programs at the nodes of a Ray cluster: `trifecta.lab.ray_driver` is told what to do there. It is never measured."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any

from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.lab.agent_place import AgentPlaces
from trifecta.lab.launcher import Output
from trifecta.lab.place import Place

LOCAL = "local:"
MOST_LOCAL = 64
REMEDY = "check that `ray start --head` runs there, with the same Python and Ray as here"
_SHORT = "/tmp"  # noqa: S108 - where Ray itself would have it: sockets there need short names
_REACH_S = 5.0
_HEALTH_S = 20.0
_BEGIN_S = 120.0  # of so many nodes of this machine, on a busy one
_END_S = 30.0
_HEAD_GONE_S = "30"  # then Ray takes a head that does not answer for gone, and ends who is connected


class RayLauncher:
    """A `trifecta.lab.launcher.StreamLauncher` over a Ray cluster."""

    def __init__(self, address: str) -> None:
        """Connect to ``HOST:PORT`` or ``auto``, or raise ``local:N``: N nodes on this machine, until this is closed.

        UserError for an address that is none, CannotError where there is no cluster, or no Ray.
        """
        self.shared = local_nodes(address) > 1
        self._address = address
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it is there as long as the launcher
        self._talked = AgentPlaces(self)
        self._pipe, theirs = Pipe()
        environment = {
            "RAY_USAGE_STATS_ENABLED": "0",  # nobody is told what runs here
            "RAY_worker_niceness": "0",  # else 15, and all that is started below inherits it
            "RAY_gcs_rpc_server_reconnect_timeout_s": _HEAD_GONE_S,
            **os.environ,
        }
        self._folder: str | None = None
        if local_nodes(address):
            # Not beside another cluster of this machine, whose address lies there.
            self._folder = environment["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="trifecta-ray-", dir=_SHORT)
            environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # everywhere: the loopback stands for this machine
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "trifecta.lab.ray_driver", str(theirs.fileno()), address],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            env=environment,
            start_new_session=True,  # Ctrl-C is for this process
        )
        theirs.close()
        try:
            if not self._pipe.poll(_BEGIN_S):
                raise CannotError(f"--cluster {address}: Ray did not begin within {_BEGIN_S:.0f} s; {REMEDY}")
            self._answer()
        except BaseException:
            self.close()
            raise

    def places(self) -> Mapping[str, str]:
        """As `Launcher.places`: by Ray's identity of a node what ``--node-name`` calls it, else its host's name."""
        place_names: Mapping[str, str] = self._ask("places")
        return place_names

    def place(self, key: str) -> Place:
        """As `Launcher.place`: in the network of the node, as it is there."""
        return self._talked.place(key)

    def start(self, place: str, arguments: Sequence[str]) -> None:
        """As `Launcher.start`; it waits while others have the node's CPUs."""
        self._ask("start", place, list(arguments))

    def write(self, place: str, octets: bytes) -> None:
        """As `Launcher.write`."""
        self._ask("write", place, octets)

    def read(self, timeout_s: float) -> Mapping[str, Output]:
        """As `Launcher.read`; a place that has answered, and does not any more, is lost, whatever Ray thinks of it."""
        outputs: Mapping[str, Output] = self._ask("read", timeout_s)
        return outputs

    def end(self, place: str) -> None:
        """As `Launcher.end`."""
        self._talked.forget(place)
        self._ask("end", place)

    def close(self) -> None:
        """As `Launcher.close`."""
        self._pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _ask(self, method: str, *arguments: object) -> Any:
        try:
            self._pipe.send((method, arguments))
        except OSError:
            raise self._gone() from None
        return self._answer()

    def _answer(self) -> Any:
        try:
            well, answer = self._pipe.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if not well:
            raise CannotError(answer)
        return answer

    def _gone(self) -> CannotError:
        """Ray has ended the process that is connected to it."""
        self._output.seek(0)
        lines = [line for line in self._output.read().decode(errors="replace").splitlines() if line.strip()]
        words = (
            re.sub(r"^\[[^]]*\] (\S+:\d+: )?", "", lines[-1].strip()) if lines else ""
        )  # Ray's mark of a line of its log
        last = f" ({words.partition('. ')[0]})" if words else ""
        return CannotError(
            f"--cluster {self._address}: the cluster's head is gone{last}; what is finished is kept: "
            "`trifecta resume` goes on, with --cluster once there is a head again, or without"
        )


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
        message = getattr(error, "strerror", None) or str(error)
        raise CannotError(f"--cluster {address}: nothing answers there ({message}); {REMEDY}") from error
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:  # in a process of its own: this one must have no threads yet, and Ray asks for as long as it likes
        stands = subprocess.run(command, capture_output=True, timeout=_HEALTH_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        stands = False
    if not stands:
        raise CannotError(f"--cluster {address}: what answers there is no head of this Ray; {REMEDY}")
