"""The lab's network: hosts client and server, joined by a middle host in which the link carries the packets.

::

    client          middle            server
    eth0 ========= ra      rb ========= eth0
    10.77.0.1         (link)          10.77.0.2

The middle has no address and forwards nothing by itself: packets cross only through the engine's link. Neighbours are
permanent and IPv6 autoconfiguration is off, so nothing but the traffic of a trial asks to cross.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType

from trifecta.design.errors import CannotError
from trifecta.lab.host import Host

CLIENT_ADDRESS = "10.77.0.1"
SERVER_ADDRESS = "10.77.0.2"
CLIENT_ADDRESS_6 = "fd77::1"
SERVER_ADDRESS_6 = "fd77::2"
CLIENT_MAC = "02:00:0a:4d:00:01"
SERVER_MAC = "02:00:0a:4d:00:02"
MTU = 1500
DEVICE = "eth0"
LINK_DEVICES = ("ra", "rb")

# Settings of a network namespace that a result may depend on: pinned, because distributions and kernels differ.
SYSCTLS: dict[str, str] = {
    "net/ipv4/tcp_no_metrics_save": "1",  # else a trial inherits ssthresh and RTT from the one before
    "net/ipv4/tcp_slow_start_after_idle": "1",
    "net/ipv4/tcp_ecn": "2",
    "net/ipv4/tcp_sack": "1",
    "net/ipv4/tcp_timestamps": "1",
    "net/ipv4/tcp_window_scaling": "1",
    "net/ipv4/tcp_fastopen": "0",
    "net/ipv4/tcp_rmem": "4096 131072 16777216",
    "net/ipv4/tcp_wmem": "4096 16384 16777216",
    "net/ipv4/ip_local_port_range": "1024 65535",
    "net/ipv4/tcp_tw_reuse": "1",  # a new connection per request must not run out of ports
    "net/ipv4/tcp_fin_timeout": "5",
    "net/ipv4/tcp_max_syn_backlog": "16384",
    "net/core/somaxconn": "16384",
    "net/ipv6/conf/all/accept_ra": "0",
    "net/ipv6/conf/default/accept_ra": "0",
    "net/ipv6/conf/all/autoconf": "0",
    "net/ipv6/conf/default/autoconf": "0",
    "net/ipv6/conf/default/addr_gen_mode": "1",
    "net/ipv6/conf/default/dad_transmits": "0",
}


class Lab:
    """Two hosts and the middle between them; a context manager. Needs a sandbox (or root with CAP_SYS_ADMIN)."""

    def __init__(self, mtu: int = MTU, congestion_control: str = "cubic") -> None:
        """Prepare; nothing is made before ``__enter__``.

        ``congestion_control`` becomes that of every TCP connection in the lab, also of programs that do not choose one.
        """
        self.mtu = mtu
        self.congestion_control = congestion_control
        self.settings: dict[str, str] = {}
        """What was set in each namespace, read back from the kernel."""
        self.missing_settings: list[str] = []
        """What this kernel does not know."""

    def __enter__(self) -> Lab:
        """Raise the lab; CannotError when the kernel refuses."""
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        hosts: list[Host] = []
        try:
            for name in ("client", "middle", "server"):
                hosts.append(Host(name, self._home))  # noqa: PERF401
            self.client, self.middle, self.server = hosts
            for host in hosts:
                self._apply_settings(host)
            self._cable()
        except OSError as error:
            for host in hosts:
                host.close()
            os.close(self._home)
            raise CannotError(f"cannot raise the lab: {error.strerror or error}; run `trifecta doctor`") from error
        except BaseException:
            for host in hosts:
                host.close()
            os.close(self._home)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the lab down: the kernel removes devices with their namespaces."""
        for host in self.hosts:
            host.close()
        os.close(self._home)

    @property
    def hosts(self) -> tuple[Host, Host, Host]:
        """Client, middle and server."""
        return (self.client, self.middle, self.server)

    def use_congestion_control(self, name: str) -> None:
        """Give new TCP connections on both hosts this congestion control."""
        if name == self.congestion_control:
            return
        for host, source in ((self.client, CLIENT_ADDRESS), (self.server, SERVER_ADDRESS)):
            with host.inside():
                _ip_batch(_routes("replace", source, name))
        self.congestion_control = name

    def _apply_settings(self, host: Host) -> None:
        with host.inside():
            for name, value in SYSCTLS.items():
                path = Path("/proc/sys") / name
                key = name.replace("/", ".")
                try:
                    path.write_text(value, encoding="ascii")
                    self.settings[key] = " ".join(path.read_text(encoding="ascii").split())
                except FileNotFoundError:
                    if key not in self.missing_settings:
                        self.missing_settings.append(key)
                except OSError as error:
                    raise CannotError(
                        f"cannot set {key} to {value!r} in the lab ({error.strerror}); "
                        "run as root, or on a kernel whose network namespaces own this setting"
                    ) from error

    def _cable(self) -> None:
        """Make both cables, then the addresses of each host: three short `ip -batch` programs."""
        descriptors = {host.name: host.descriptor for host in self.hosts}

        def place(host: str) -> str:
            return f"/proc/self/fd/{descriptors[host]}"

        left, right = LINK_DEVICES
        _ip_batch(
            [
                f"link add {DEVICE} netns {place('client')} mtu {self.mtu} address {CLIENT_MAC} type veth "
                f"peer name {left} netns {place('middle')} mtu {self.mtu}",
                f"link add {DEVICE} netns {place('server')} mtu {self.mtu} address {SERVER_MAC} type veth "
                f"peer name {right} netns {place('middle')} mtu {self.mtu}",
            ],
            tuple(descriptors.values()),
        )
        ends = (
            (self.client, (CLIENT_ADDRESS, CLIENT_ADDRESS_6), (SERVER_ADDRESS, SERVER_ADDRESS_6), SERVER_MAC),
            (self.server, (SERVER_ADDRESS, SERVER_ADDRESS_6), (CLIENT_ADDRESS, CLIENT_ADDRESS_6), CLIENT_MAC),
        )
        for host, own, other, other_mac in ends:
            with host.inside():
                _ip_batch(
                    [
                        "link set lo up",
                        f"address add {own[0]}/24 dev {DEVICE} noprefixroute",
                        f"address add {own[1]}/64 dev {DEVICE} nodad noprefixroute",
                        f"link set {DEVICE} up",
                        *_routes("add", own[0], self.congestion_control),
                        f"neighbour replace {other[0]} lladdr {other_mac} dev {DEVICE} nud permanent",
                        f"neighbour replace {other[1]} lladdr {other_mac} dev {DEVICE} nud permanent",
                    ]
                )
        with self.middle.inside():
            _ip_batch([f"link set {left} up", f"link set {right} up"])


def _routes(verb: str, source: str, congestion_control: str) -> list[str]:
    """The routes to the other host, with the congestion control of the connections over them.

    A route may name any congestion control (ip-route(8), congctl), whereas the sysctl of a namespace accepts only what
    the whole machine allows unprivileged users.
    """
    return [
        f"route {verb} 10.77.0.0/24 dev {DEVICE} src {source} congctl {congestion_control}",
        f"route {verb} fd77::/64 dev {DEVICE} congctl {congestion_control}",
    ]


def _ip_batch(lines: list[str], descriptors: tuple[int, ...] = ()) -> None:
    try:
        done = subprocess.run(
            ["ip", "-batch", "-"],
            input="\n".join(lines).encode() + b"\n",
            capture_output=True,
            pass_fds=descriptors,
            check=False,
            timeout=20,
        )
    except FileNotFoundError as error:
        raise CannotError("`ip` is missing; install iproute2 (apt-get install iproute2)") from error
    if done.returncode != 0:
        message = " ".join(done.stderr.decode(errors="replace").split())
        raise CannotError(f"`ip` could not raise the lab: {message}; run `trifecta doctor`")
