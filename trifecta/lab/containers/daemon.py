"""A Docker Engine of our own in a host of the lab: started for a run, gone with it.

It lives in the host's network namespace and in a mount namespace of its own. There ``/run`` is a private file system
in memory that holds all it writes: images, containers, sockets. ``/etc`` is covered by a layer in the same memory,
because the daemon writes a key there. A Docker Engine of the machine is neither needed nor touched.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from trifecta.design.errors import CannotError
from trifecta.lab import cgroups, sandbox
from trifecta.lab.container_spec import ImageSource
from trifecta.lab.containers.image import image_archive
from trifecta.lab.containers.images import bring
from trifecta.lab.containers.state import Network, docker_state
from trifecta.lab.linux import search_path
from trifecta.lab.private_files import NAMESERVER
from trifecta.lab.topology import Topology

if TYPE_CHECKING:
    from docker import APIClient

IMAGE = "trifecta/engine:lab"
NETWORK = "lab"
# Of a bridge: the same in every host, since what leaves it carries the host's address.
SUBNET, SUBNET_6 = "10.79.0.0/24", "fd79::/64"
_HOME = "/run/trifecta"
_numbers = itertools.count(1)
_START_TIMEOUT_S = 30
_ANSWER_TIMEOUT_S = 60
_END_PATIENCE_S = 2

# containerd's `opt` would make a folder in /opt; `cri` is for Kubernetes, `devmapper` complains that it is not set up.
_DISABLED = ("internal.v1.opt", "grpc.v1.cri", "snapshotter.v1.devmapper")
_CONTAINERD = f"""version = 2
root = "{_HOME}/containerd/root"
state = "{_HOME}/containerd/state"
disabled_plugins = [{", ".join(f'"io.containerd.{name}"' for name in _DISABLED)}]
[grpc]
address = "{_HOME}/containerd.sock"
[debug]
level = "warn"
"""

_CHATTER = re.compile(r"level=(debug|info|warning)")

_SCRIPT = f"""set -e
mount -t tmpfs -o mode=755 trifecta /run
mkdir -p {_HOME}/etc {_HOME}/work
mount -t overlay -o lowerdir=/etc,upperdir={_HOME}/etc,workdir={_HOME}/work trifecta /etc
rm -f /etc/resolv.conf
echo 'nameserver {NAMESERVER}' >/etc/resolv.conf
printf %s "$1" >{_HOME}/containerd.toml
echo '{{}}' >{_HOME}/daemon.json
shift
containerd --config {_HOME}/containerd.toml &
exec dockerd "$@"
"""


class DockerEngine:
    """The Docker Engine of one host. Making the object starts it, entering it waits until containers can be started."""

    def __init__(
        self, topology: Topology, host: str, network: Network, engine: Path, log: Path, *, ipv6: bool = False
    ) -> None:
        """Start it in ``host``; its diagnostics are appended to ``log``. ``engine`` is the binary for the image.

        ``network`` is that of all its containers: ``host`` is the host's own, ``bridge`` one behind Docker's bridge
        and address translation, which has IPv6 too with ``ipv6``; that of the host has whatever the host has.
        RuntimeError outside of a sandbox, CannotError when containers cannot run here.
        """
        if not sandbox.entered():
            raise RuntimeError("a Docker Engine is started inside a sandbox only")
        self.bridges_ipv6 = ipv6 and network == "bridge"
        state = docker_state(network)
        if not state.usable:
            raise CannotError(f"no containers here: {state.reason}; {state.remedy}")
        self.host = host
        self.network = network
        self.version = state.version
        self.topology = topology
        self._engine = engine
        self._log = log
        # A host of the same name may be up in another topology of this run.
        self._group = f"{sandbox.mark()}/{host}-{next(_numbers)}"
        self._client: APIClient | None = None
        self._images: dict[ImageSource, str] = {}
        self._closed = False
        with log.open("ab") as diagnostics:
            self._log_start = diagnostics.seek(0, os.SEEK_END)
            self._process = topology.host(host).popen(
                ["unshare", "--mount", "sh", "-c", _SCRIPT, "sh", _CONTAINERD, *self._arguments()],
                # With `container` set dockerd takes itself for one in a container, and loads no AppArmor profile into
                # the machine's kernel.
                environment={"PATH": search_path(), "container": "trifecta"},
                stdin=subprocess.DEVNULL,
                stdout=diagnostics,
                stderr=diagnostics,
            )

    def _arguments(self) -> list[str]:
        named = {
            "config-file": f"{_HOME}/daemon.json",  # else the machine's would count
            "containerd": f"{_HOME}/containerd.sock",
            "data-root": f"{_HOME}/data",
            "exec-root": f"{_HOME}/exec",
            "pidfile": f"{_HOME}/pid",
            "host": f"unix://{_HOME}/docker.sock",
            "bridge": "none",  # the default one; ours is made later, with a name
            "userland-proxy": "false",
            "cgroup-parent": f"/{self._group}",
            "exec-opt": "native.cgroupdriver=cgroupfs",
            "log-level": "warn",
        }
        if self.network == "host":  # no rules of a firewall, and so no connection tracking, in the host's network
            named |= {"iptables": "false", "ip-forward": "false", "ip-masq": "false"}
        if self.bridges_ipv6:  # rules for it are experimental before version 27, which knows both words, too
            named |= {"experimental": "true", "ip6tables": "true"}
        return [f"--{name}={value}" for name, value in named.items()]

    def __enter__(self) -> DockerEngine:
        """Wait until it answers, build the image, make the network; CannotError when it cannot."""
        try:
            self._client = self._connect()
            with self.asking("the image cannot be built"):
                self._client.import_image_from_data(
                    image_archive(self._engine), repository=IMAGE.partition(":")[0], tag=IMAGE.partition(":")[2]
                )
            if self.network == "bridge":
                with self.asking("the bridge cannot be made"):
                    self._make_bridge(self._client)
        except BaseException:
            self.close()
            raise
        return self

    def _make_bridge(self, client: APIClient) -> None:
        from docker.types import IPAMConfig, IPAMPool

        subnets = [SUBNET, *([SUBNET_6] if self.bridges_ipv6 else [])]
        client.create_network(
            NETWORK,
            driver="bridge",
            ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet) for subnet in subnets]),
            enable_ipv6=self.bridges_ipv6,
            options={
                "com.docker.network.bridge.name": "docker0",
                "com.docker.network.driver.mtu": str(self.topology.mtu),
            },
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it and every container of it."""
        self.close()

    @property
    def client(self) -> APIClient:
        """The client that speaks with it, while it is entered."""
        assert self._client is not None, "enter the Docker Engine first"
        return self._client

    def running(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def _stays(self) -> bool:
        """Whether it still runs, a moment after it was silent: its sockets go before it has wholly ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_PATIENCE_S)
        return self.running()

    @contextmanager
    def asking(self, problem: str) -> Iterator[None]:
        """Turn what it refuses, or its end, into a CannotError that begins with ``problem``."""
        from docker.errors import APIError, DockerException
        from requests.exceptions import RequestException

        try:
            yield
        except APIError as error:
            raise CannotError(self._sentence(problem, str(error.explanation or error))) from error
        except (RequestException, DockerException, OSError) as error:
            reason = str(error) if self._stays() else f"it ended: {self._last_words()}"
            raise CannotError(self._sentence(problem, reason)) from error

    def image(self, source: ImageSource) -> str:
        """The id of an image, which is loaded or built when it is first asked for; CannotError when that fails."""
        if source not in self._images:
            with self.asking(f"the image of {source.context or source.archive} cannot be obtained"):
                self._images[source] = bring(self.client, source)
        return self._images[source]

    def remove(self, container: str) -> None:
        """End a container at once and remove it, with its volumes; what stays ends with the Docker Engine."""
        if self._client is not None:
            with suppress(CannotError), self.asking("a container cannot be removed"):
                self._client.remove_container(container, v=True, force=True)

    def close(self) -> None:
        """End it, its containers and its control groups at once. Nothing of it is on a disk."""
        if self._client is not None:
            # Containers first: dockerd ends the process that watches over one, which is not of its own group.
            with suppress(CannotError), self.asking("its containers cannot be listed"):
                for container in self._client.containers(all=True, quiet=True):
                    self.remove(container["Id"])
            self._client.close()
            self._client = None
        if self._closed:  # the number of its process group may be somebody else's by now
            return
        self._closed = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # dockerd and containerd
        self._process.wait()
        cgroups.remove(self._group, patience_s=5, kill=True)
        cgroups.remove(sandbox.mark(), patience_s=0)  # stays while another host has groups in it

    def _connect(self) -> APIClient:
        from docker import APIClient
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        socket = Path(f"/proc/{self._process.pid}/root{_HOME}/docker.sock")
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if not self.running():
                raise CannotError(self._sentence("does not start", self._last_words()))
            if socket.exists():
                with suppress(DockerException, RequestException):  # the socket is there before the daemon answers
                    return APIClient(base_url=f"unix://{socket}", version="auto", timeout=_ANSWER_TIMEOUT_S)
            time.sleep(0.01)
        silence = f"no answer within {_START_TIMEOUT_S} s: {self._last_words()}"
        raise CannotError(self._sentence("does not start", silence))

    def _sentence(self, problem: str, reason: str) -> str:
        reason = " ".join(reason.split())
        remedy = f"see {self._log.name} in the logs, or run `trifecta doctor`"
        return f"Docker Engine of {self.host}: {problem} ({reason}); {remedy}"

    def _last_words(self) -> str:
        with self._log.open("rb") as file:
            file.seek(self._log_start)
            lines = file.read().decode(errors="replace").split("\n")
        serious = (line[-500:] for line in reversed(lines) if line.strip() and not _CHATTER.search(line))
        return next(serious, "it logged nothing")
