"""A network of the lab: hosts, the wires between them, and the middles in which the engine's link carries packets.

::

    host1                wire host1-host2, impaired                  host2
    to-host2 =========== ra   (the engine's link)   rb =========== to-host1

A wire that is not impaired is a plain veth pair. Packets cross an impaired one only through the engine's link: its
middle has no address and forwards nothing by itself. Neighbours are permanent and IPv6 autoconfiguration is off, so
nothing but the traffic of a trial asks to cross.

What each host is given, a `HostSpec` says. The networks there are: `network.two_hosts`, `access.access_links` and
`host_graph.host_graph`.
"""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from trifecta.design.errors import CannotError
from trifecta.design.tuning import TcpSettings
from trifecta.lab import linux
from trifecta.lab.host import Host
from trifecta.lab.hosts import MTU, SYSCTLS, KernelSettings, cut_super_packets, ip_batch, namespace_path

LINK_DEVICES = ("ra", "rb")
MOST_HOSTS = 250
_MOST_NAME = 12  # "to-" before it makes a device's name, of which Linux allows 15 octets
_BRIDGE = "bridge"
_AGEING_CENTISECONDS = 10_000_000  # a bridge that forgot where a host is would send its packets to all
_ROUTE_TIMEOUT_S = 5
_RUNNING_TIMEOUT_S = 5.0
_MOST_REORDERING = int(SYSCTLS["net/ipv4/tcp_max_reordering"])


@dataclass(frozen=True)
class Wire:
    """A cable between two hosts; with ``impaired`` it ends in a middle where the engine's link carries the packets."""

    a: str
    b: str
    impaired: bool = False
    middle: str = ""
    """The middle's name; empty: that of the wire."""

    @property
    def name(self) -> str:
        """Its name, as in ``host1-host2``."""
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class Device:
    """A host's end of a wire: its name, MAC address, and IP addresses with their prefix lengths."""

    name: str
    mac: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Route:
    """A route of a host (ip-route(8))."""

    to: str
    device: str
    source: str = ""
    via: str = ""
    own: bool = False
    """To the host itself; it takes the place of one that the kernel makes."""
    controlled: bool = True
    """Whether the connections over it have the congestion control of the network."""

    def line(self, congestion_control: str, initial_window: int | None = None, mtu: int | None = None) -> str:
        """The line of ip(8) that makes it.

        A route may name any congestion control (congctl), whereas the sysctl of a namespace accepts only what the
        whole machine allows unprivileged users. There is no other way to an initial window (initcwnd, in packets).
        ``mtu`` becomes the size of the segments that are asked for (advmss): a route's own mtu would hold for UDP, too.
        """
        words = ["route replace", *(["local"] if self.own else []), self.to]
        words += ["via", self.via] if self.via else []
        words += ["dev", self.device]
        if self.own:
            words.append("table local proto kernel " + ("metric 1" if ":" in self.to else "scope host"))
        words += ["src", self.source] if self.source else []
        words += ["congctl", congestion_control] if self.controlled else []
        words += ["initcwnd", str(initial_window)] if self.controlled and initial_window else []
        words += ["advmss", str(mtu - _headers(self.to))] if self.controlled and mtu else []
        return " ".join(words)


TO_LOOPBACK = Route("127.0.0.0/8", "lo", source="127.0.0.1", own=True)
TO_LOOPBACK_6 = Route("::1", "lo", own=True)
"""Of a proxy to the server behind it."""


@dataclass(frozen=True)
class HostSpec:
    """What a host of a network has. Who shares a wire or bridge with it are its neighbours."""

    name: str
    devices: Mapping[str, Device] = field(default_factory=dict)
    """By the host at the other end of the wire."""
    routes: tuple[Route, ...] = ()
    loopback: tuple[str, ...] = ()
    """Addresses of the host itself, whatever its devices, with their prefix lengths.

    Then ``lo`` has the MTU of the wires, so that what programs of one host say to each other has segments as any other.
    """
    bridge: bool = False
    """Whether it is a switch: its devices are joined and have no addresses."""
    forwards: bool = False
    """Whether it is a router: it forwards between its wires, over each version of IP that it has an address of."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """All its addresses, each once, IPv4 first."""
        every = [*(one for device in self.devices.values() for one in device.addresses), *self.loopback]
        bare = dict.fromkeys(one.partition("/")[0] for one in every)
        return tuple(sorted(bare, key=lambda one: ":" in one))


class Topology:
    """Hosts that are raised and taken down together, with the wires between them; a context manager.

    Needs a sandbox (or root with CAP_SYS_ADMIN).
    """

    def __init__(
        self,
        hosts: Sequence[HostSpec],
        wires: Sequence[Wire],
        *,
        ipv6: bool = True,
        mtu: int = MTU,
        congestion_control: str = "cubic",
    ) -> None:
        """Prepare; nothing is made before ``__enter__``. ValueError when names or wires make no graph.

        ``congestion_control`` becomes that of every TCP connection in the network, also of programs that do not choose
        one. Without ``ipv6`` only ``lo`` has it.
        """
        self.names = tuple(spec.name for spec in hosts)
        self.wires = tuple(wires)
        check_graph(self.names, self.wires)
        self.mtu = mtu
        self.congestion_control = congestion_control
        self.tcp = TcpSettings()
        self.kernel = KernelSettings()
        """What was set in each namespace, read back from the kernel."""
        self._ipv6 = ipv6
        self._specs = {spec.name: spec for spec in hosts}
        self._raised: dict[str, Host] = {}
        self._cut: set[Wire] = set()

    def __enter__(self) -> Self:
        """Raise the hosts; CannotError when the kernel refuses."""
        with ExitStack() as undo:
            try:
                home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
                undo.callback(os.close, home)
                for name in (*self.names, *(_middle_name(wire) for wire in self.links)):
                    host = self._raised[name] = Host(name, home)
                    undo.callback(host.close)
                    self.kernel.apply(host)
                    if not self._ipv6:
                        _no_ipv6(host)
                self._cable()
            except OSError as error:
                raise CannotError(f"cannot raise the lab: {error.strerror or error}; run `trifecta doctor`") from error
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the hosts down: the kernel removes devices with their namespaces."""
        self._undo.close()

    @property
    def hosts(self) -> dict[str, Host]:
        """The raised hosts by name, without the middles."""
        return {name: self._raised[name] for name in self.names}

    @property
    def raised(self) -> tuple[str, ...]:
        """The names of all hosts that are raised, the middles among them."""
        return tuple(self._raised)

    def host(self, name: str) -> Host:
        """The raised host of that name."""
        return self._raised[name]

    def address(self, host: str) -> str:
        """The host's IPv4 address, the first of several."""
        return next(one for one in self._specs[host].addresses if ":" not in one)

    def address_6(self, host: str) -> str:
        """The host's IPv6 address."""
        return next(one for one in self._specs[host].addresses if ":" in one)

    @property
    def links(self) -> tuple[Wire, ...]:
        """The impaired wires."""
        return tuple(wire for wire in self.wires if wire.impaired)

    def middle(self, wire: Wire) -> Host:
        """Where the link of an impaired wire runs."""
        return self._raised[_middle_name(wire)]

    def devices(self, wire: Wire) -> tuple[str, str]:
        """The devices in the middle of an impaired wire, towards ``wire.a`` and towards ``wire.b``."""
        if not wire.impaired:
            raise ValueError(f"the wire {wire.name} is not impaired, it has no middle")
        return LINK_DEVICES

    def send_wire_frames(self, wire: Wire) -> None:
        """Have both hosts of a wire cut super-packets before they leave, once: netem would lose and delay them whole.

        CannotError without ethtool(8).
        """
        if wire in self._cut:
            return
        for host, towards in ((wire.a, wire.b), (wire.b, wire.a)):
            device = self._specs[host].devices[towards].name
            with self.host(host).inside():
                cut_super_packets(device)
        self._cut.add(wire)

    def use_congestion_control(self, name: str) -> None:
        """Give new TCP connections of all hosts this congestion control, those of a host to itself too."""
        self.use_tcp(name, self.tcp)

    def use_tcp(self, congestion_control: str, settings: TcpSettings) -> None:
        """Give new TCP connections of all hosts this congestion control and these settings."""
        before, requested = (self.congestion_control, self.tcp), (congestion_control, settings)
        if requested == before:
            return
        self.congestion_control, self.tcp = requested
        same_routes = _of_routes(*requested) == _of_routes(*before)
        sysctls = [] if settings == before[1] else list(_sysctls(settings))
        for spec in self._specs.values():
            lines = [] if same_routes else [self._line(route) for route in spec.routes if route.controlled]
            if not lines and not sysctls:
                continue
            with self.host(spec.name).inside():
                if lines:
                    ip_batch(lines)
                for name, value in sysctls:
                    (Path("/proc/sys/net/ipv4") / name).write_text(value, encoding="ascii")

    def _line(self, route: Route) -> str:
        return route.line(*_of_routes(self.congestion_control, self.tcp))

    def _cable(self) -> None:
        """Make all cables in one run of ``ip``, then what is inside each namespace, one run each.

        One more for a host whose IPv6 route to itself the kernel makes, which takes a moment.
        """
        lines = [line for wire in self.wires for line in self._pair(wire)]
        if lines:
            ip_batch(lines, self._raised.values())
        late = [spec for spec in self._specs.values() if _made_by_kernel(spec)]
        for spec in self._specs.values():
            with self.host(spec.name).inside():
                ip_batch([*self._devices(spec), *(self._routes(spec) if spec not in late else ())])
                if spec.forwards:
                    _forward(spec)
        for spec in late:
            with self.host(spec.name).inside():
                for address in _made_by_kernel(spec):
                    _await_local_route(address)
                removed = [f"route del local {address} dev lo table local" for address in _made_by_kernel(spec)]
                ip_batch([*removed, *self._routes(spec)])
        for wire in self.links:
            with self.middle(wire).inside():
                ip_batch([f"link set {device} up" for device in self.devices(wire)])
        for wire in self.wires:
            first, second = sorted((wire.a, wire.b), key=self.names.index)
            self._await_running(first, second)
            if wire.impaired or self._specs[second].bridge:
                self._await_running(second, first)

    def _await_running(self, host: str, towards: str) -> None:
        """Wait until packets can cross a host's end of a wire.

        Needed where the end was set up before what it is wired to, and for a port of a bridge. Any other lets packets
        through at once, and the kernel may take a second to call it running (net/core/link_watch.c).
        """
        device = self._specs[host].devices[towards].name
        with self.host(host).inside():
            try:
                linux.await_running(device, _RUNNING_TIMEOUT_S)
            except TimeoutError as error:
                raise CannotError(f"the kernel passes no packets over {device} of {host} in the lab") from error

    def _pair(self, wire: Wire) -> Iterator[str]:
        """The devices of a wire: a veth pair, or one to each side of the middle of an impaired one."""

        def end(host: str, towards: str) -> str:
            device = self._specs[host].devices[towards]
            return f"{device.name} netns {namespace_path(self.host(host))} mtu {self.mtu} address {device.mac}"

        if not wire.impaired:
            yield f"link add {end(wire.a, wire.b)} type veth peer name {end(wire.b, wire.a)}"
            return
        there = f"netns {namespace_path(self.middle(wire))} mtu {self.mtu}"
        for (host, towards), device in zip(((wire.a, wire.b), (wire.b, wire.a)), self.devices(wire), strict=True):
            yield f"link add {end(host, towards)} type veth peer name {device} {there}"

    def _devices(self, spec: HostSpec) -> Iterator[str]:
        """Devices and addresses of a host."""
        yield f"link set lo mtu {self.mtu} up" if spec.loopback else "link set lo up"
        yield from (_address(one, "lo") for one in spec.loopback)
        if spec.bridge:
            yield (
                f"link add {_BRIDGE} mtu {self.mtu} type bridge stp_state 0 forward_delay 0 mcast_snooping 0 "
                f"ageing_time {_AGEING_CENTISECONDS}"
            )
            yield f"link set {_BRIDGE} up"
        for device in spec.devices.values():
            yield from (_address(one, device.name) for one in device.addresses)
            if spec.bridge:
                yield f"link set {device.name} master {_BRIDGE}"
            yield f"link set {device.name} up"

    def _routes(self, spec: HostSpec) -> Iterator[str]:
        """Routes and neighbours of a host."""
        yield from map(self._line, spec.routes)
        if spec.bridge:
            return
        for towards, device in spec.devices.items():
            for neighbour, mac in self._reachable_from(spec.name, towards):
                for address in neighbour:
                    yield f"neighbour replace {address} lladdr {mac} dev {device.name} nud permanent"

    def _reachable_from(self, host: str, towards: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """Who can be reached at the end of a host's wire, without a router: addresses, and the MAC they are at."""
        peer = self._specs[towards]
        joined = [(name, towards) for name in peer.devices if name != host] if peer.bridge else [(towards, host)]
        for name, wired_to in joined:
            other = self._specs[name]
            device = other.devices[wired_to]
            yield (
                tuple(one.partition("/")[0] for one in dict.fromkeys((*device.addresses, *other.loopback))),
                device.mac,
            )


def _of_routes(congestion_control: str, settings: TcpSettings) -> tuple[str, int | None, int | None]:
    """What routes say of TCP."""
    return congestion_control, settings.initial_window, settings.mtu


def _headers(to: str) -> int:
    """Octets of the headers of IP and TCP, without options."""
    return 60 if ":" in to else 40


def _sysctls(settings: TcpSettings) -> Iterator[tuple[str, str]]:
    """Of a host's network: what is no route's, in the order in which the kernel takes it."""
    most = settings.reordering
    # No more than its own limit is taken, and that only follows.
    for name, value in (
        ("tcp_reordering", min(most, _MOST_REORDERING)),
        ("tcp_max_reordering", max(most, _MOST_REORDERING)),
        ("tcp_reordering", most),
        ("tcp_slow_start_after_idle", int(settings.idle_restarts)),
    ):
        yield name, str(value)


def check_graph(hosts: Sequence[str], wires: Sequence[Wire]) -> None:
    """ValueError when names or wires make no graph."""
    if not 1 <= len(hosts) <= MOST_HOSTS:
        raise ValueError(f"a topology has 1 to {MOST_HOSTS} hosts, not {len(hosts)}")
    if len(set(hosts)) < len(hosts):
        raise ValueError("two hosts have the same name")
    for host in hosts:
        if not host.isalnum() or not host.isascii() or len(host) > _MOST_NAME:
            raise ValueError(f"{host!r} is not a host name: 1 to {_MOST_NAME} letters and digits")
    pairs: set[frozenset[str]] = set()
    for wire in wires:
        pair = frozenset((wire.a, wire.b))
        if len(pair) == 1 or not pair <= set(hosts):
            raise ValueError(f"the wire {wire.name} does not join two hosts of the topology")
        if pair in pairs:
            raise ValueError(f"two wires join {wire.a} and {wire.b}")
        pairs.add(pair)


def _middle_name(wire: Wire) -> str:
    return wire.middle or wire.name


def _address(address: str, device: str) -> str:
    return f"address add {address} dev {device} {'nodad ' if ':' in address else ''}noprefixroute"


def _forward(spec: HostSpec) -> None:
    """Have the host that the calling thread is in forward what it has addresses for."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    if any(":" in one for one in spec.addresses):
        Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1", encoding="ascii")


def _made_by_kernel(spec: HostSpec) -> list[str]:
    """The host's own IPv6 addresses to which the kernel makes routes that ours replace: IPv6 has them side by side."""
    return [route.to for route in spec.routes if route.own and ":" in route.to]


def _await_local_route(address_6: str) -> None:
    """Wait for the kernel's own route to an IPv6 address: it is added by a worker of the kernel, after the address."""
    wanted = ipaddress.IPv6Address(address_6).packed.hex() + " 80 "
    deadline = time.monotonic() + _ROUTE_TIMEOUT_S
    while not any(line.startswith(wanted) and line.endswith(" lo") for line in _ipv6_routes()):
        if time.monotonic() > deadline:
            raise CannotError(f"the kernel makes no route to {address_6} in the lab; is IPv6 off (ipv6.disable=1)?")
        time.sleep(0.001)


def _ipv6_routes() -> list[str]:
    return Path("/proc/thread-self/net/ipv6_route").read_text(encoding="ascii").splitlines()


def _no_ipv6(host: Host) -> None:
    """Switch IPv6 off on the devices that are made from now on; ``lo`` keeps it."""
    # A kernel without IPv6 has no such file.
    with host.inside(), suppress(FileNotFoundError):
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1", encoding="ascii")
