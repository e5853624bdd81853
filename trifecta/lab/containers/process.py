"""A program of the engine in a container."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trifecta.design.errors import CannotError
from trifecta.lab import linux
from trifecta.lab.cgroups import cgroup_paths
from trifecta.lab.container_spec import ContainerSpec
from trifecta.lab.containers.daemon import IMAGE, NETWORK, SUBNET, SUBNET_6, DockerEngine
from trifecta.lab.containers.image import PROGRAM
from trifecta.lab.engine import EngineError, EngineProgram, Role
from trifecta.lab.hosts import ip_batch
from trifecta.lab.private_files import NAMESERVER

_STDOUT, _STDERR = 1, 2
_HEADER_BYTES = 8
_SEND_TIMEOUT_S = 10
_PREFIX_METRIC = 256  # which the kernel gives the route of an address of IPv6: ours takes its place


class ContainerProcess(EngineProgram):
    """A program of the engine as the only process of a container; used like ``EngineProcess``."""

    def __init__(
        self,
        docker: DockerEngine,
        role: Role,
        log: Path,
        *,
        cpus: frozenset[int] | None = None,
        name: str = "",
        aliases: Sequence[str] = (),
        ports: Iterable[int] = (),
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        instead: Sequence[str | Path] = (),
        environment: Mapping[str, str] | None = None,
        contained: ContainerSpec | None = None,
    ) -> None:
        """Create and start the container; CannotError when Docker refuses.

        ``readable`` and ``writable`` are files and folders it sees at the same paths as the machine. On a bridge,
        ``ports`` (TCP and UDP) are published at the host's address and ``aliases`` are names by which other
        containers of that host find it; on the host's network both mean nothing, the ports are the host's anyway.
        ``instead`` is the command of another program, ``environment`` what it has of variables; it is in the engine's
        image, or what ``contained`` says.
        """
        super().__init__(role, name, log)
        ports = list(ports)
        self._docker = docker
        self._pending = bytearray()
        self._pidfd: int | None = None
        self._pid = 0
        with docker.asking(f"the container of {self.name} cannot be made"):
            self._id: str = docker.client.create_container(
                IMAGE if contained is None else docker.image(contained.image),
                **_program(contained, instead, role),
                stdin_open=True,
                environment=dict(environment or {}),
                host_config=self._host_config(cpus, ports, readable, writable, contained.mounts if contained else ()),
                ports=[(port, kind) for port in ports for kind in ("tcp", "udp")] or None,
                networking_config=self._networking(aliases),
                use_config_proxy=False,
            )["Id"]
        try:
            with docker.asking(f"the container of {self.name} cannot be started"):
                self._attach()
                docker.client.start(self._id)
                self._follow(docker.client.inspect_container(self._id))
        except BaseException:
            self.close()
            raise

    def _host_config(
        self,
        cpus: frozenset[int] | None,
        ports: list[int],
        readable: Iterable[Path],
        writable: Iterable[Path],
        more: Iterable[tuple[Path, str]],
    ) -> Any:
        from docker.types import LogConfig, Mount, Ulimit

        docker = self._docker
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        bridged = docker.network == "bridge"
        mounts = [
            Mount(os.path.abspath(path), os.path.realpath(path), type="bind", read_only=read_only)  # noqa: PTH100
            for paths, read_only in ((readable, True), (writable, False))
            for path in paths
        ]
        mounts += [Mount(target, str(source.resolve()), type="bind", read_only=True) for source, target in more]
        return docker.client.create_host_config(
            network_mode=NETWORK if bridged else "host",
            port_bindings={f"{port}/{kind}": port for port in ports for kind in ("tcp", "udp")} if bridged else None,
            mounts=mounts,
            cpuset_cpus=",".join(map(str, sorted(cpus))) if cpus else None,
            dns=[docker.topology.address(docker.host) if bridged else NAMESERVER],
            dns_search=["lab"],
            sysctls=docker.topology.kernel.known if bridged else None,
            # Equal terms with a native service: as large UDP buffers (SO_RCVBUFFORCE, socket(7)), as many files.
            cap_add=["NET_ADMIN"],
            ulimits=[Ulimit(name="nofile", soft=soft, hard=hard)],
            log_config=LogConfig(type="none"),  # we are attached, nobody else reads
        )

    def _networking(self, aliases: Sequence[str]) -> Any:
        if self._docker.network != "bridge":
            return None
        return {"EndpointsConfig": {NETWORK: {"Aliases": list(aliases)}}}

    def _attach(self) -> None:
        """Hold its standard streams, from before it starts, so that no word is lost."""
        query = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        self._stream = self._docker.client.attach_socket(self._id, params=query)
        self._socket = socket.socket(fileno=os.dup(self._stream.fileno()))
        self._socket.settimeout(_SEND_TIMEOUT_S)
        self._listen(self._socket.fileno())

    def _follow(self, facts: Any) -> None:
        """Remember the process; one that has ended already shows itself, with its words, in the next wait."""
        with suppress(ProcessLookupError, FileNotFoundError):
            if pid := facts["State"]["Pid"]:
                self._pidfd = os.pidfd_open(pid)
                self._pid = pid
                self.cgroup_paths = cgroup_paths(pid)
                if self._docker.network == "bridge":
                    self._control_congestion(facts["NetworkSettings"]["Networks"][NETWORK])

    def _control_congestion(self, address: Mapping[str, str]) -> None:
        """Give its routes the lab's congestion control, as the host's have it; no sysctl may (see ``topology.Route``).

        The program opens nothing before it is configured, so this comes in time.
        """
        control, own = self._docker.topology.congestion_control, address["IPAddress"]
        lines = [
            f"route replace {SUBNET} dev eth0 proto kernel scope link src {own} congctl {control}",
            f"route replace default via {address['Gateway']} dev eth0 congctl {control}",
        ]
        if self._docker.bridges_ipv6:
            lines += [
                f"route replace {SUBNET_6} dev eth0 proto kernel metric {_PREFIX_METRIC} congctl {control}",
                f"route replace ::/0 via {address['IPv6Gateway']} dev eth0 congctl {control}",
            ]
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.open(f"/proc/{self._pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                with linux.network_namespace(there, home):
                    ip_batch(lines)
            finally:
                os.close(there)
        finally:
            os.close(home)

    @property
    def pid(self) -> int:
        """Process id as this process sees it; 0 when it ended at once."""
        return self._pid

    def running(self) -> bool:
        """Whether it still runs."""
        if self._pidfd is None:
            return False
        wait_s = linux.EXIT_S if linux.exiting(self._pid) else 0  # as of a child
        return not select.select([self._pidfd], [], [], wait_s)[0]

    def wait_end(self, timeout_s: float) -> None:
        """Wait until it has ended by itself, for so long at most."""
        if self._pidfd is not None:
            select.select([self._pidfd], [], [], timeout_s)

    def get(self, path: Path) -> None:
        """It is there: what is writable in the container is this machine's own folder."""

    def close(self) -> None:
        """End it at once and remove the container."""
        self._signal(signal.SIGKILL)
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        for end in ("_socket", "_stream"):
            if hasattr(self, end):
                with suppress(OSError):
                    getattr(self, end).close()
        self._docker.remove(self._id)

    def _signal(self, number: signal.Signals) -> None:
        if self._pidfd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _send(self, line: bytes) -> None:
        try:
            self._socket.sendall(line)
        except OSError as error:
            raise BrokenPipeError from error

    def _receive(self) -> bytes | None:
        """Standard output; standard error goes to the log. Docker frames both (attach in its API reference)."""
        try:
            chunk = os.read(self._socket.fileno(), 1 << 16)
        except BlockingIOError:
            return b""
        except ConnectionError:
            return None
        if not chunk:
            return None
        self._pending += chunk
        received = b""
        while len(self._pending) >= _HEADER_BYTES:
            end = _HEADER_BYTES + int.from_bytes(self._pending[4:_HEADER_BYTES])
            if len(self._pending) < end:
                break
            kind, payload = self._pending[0], bytes(self._pending[_HEADER_BYTES:end])
            del self._pending[:end]
            if kind == _STDOUT:
                received += payload
            elif kind == _STDERR:
                with self._log.open("ab") as diagnostics:
                    diagnostics.write(payload)
        return received

    def _terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def _exit_code(self) -> int:
        try:
            with self._docker.asking(f"how {self.name} ended is unknown"):
                code: int = self._docker.client.wait(self._id)["StatusCode"]
        except CannotError as error:
            raise EngineError(self.name, None, str(error)) from error
        return 128 - code if code > 128 else code  # 128 + signal, as a shell says it


def _program(contained: ContainerSpec | None, instead: Sequence[str | Path], role: Role) -> dict[str, Any]:
    """What is run in a container, and as whom, as `create_container` takes it."""
    words = list(map(str, instead))
    if contained is None:
        return {"command": words or [PROGRAM, role, "-"]}
    return {
        "entrypoint": words[:1] if contained.starts else None,
        "command": (words[1:] if contained.starts else words) or None,
        "working_dir": contained.working_dir or None,
        "user": "0:0",  # as every server of the lab is, whatever the image says: only root reads the key
        "healthcheck": {"test": ["NONE"]},  # an image's own would run beside the server
    }
