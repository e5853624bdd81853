"""A network of the lab with any number of hosts: the graph on which the services of a study run.

::

    host1                wire host1-host2, impaired                  host2
    to-host2 =========== ra   (the engine's link)   rb =========== to-host1
    10.78.0.1                                                      10.78.0.2

Each host has one address of each family, whatever its devices. A wire that is not impaired is a plain veth pair.
Packets cross an impaired one only through the engine's link. Nobody forwards for others: hosts without a wire between
them cannot talk. Services of one host talk over ``lo``, whose MTU is that of the wires: both carry equal segments.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.lab.host import Host
from trifecta.lab.hosts import MTU, HostGroup, ip_batch, namespace_path
from trifecta.lab.network import LINK_DEVICES

MOST_HOSTS = 250
_MOST_NAME = 12  # "to-" before it makes a device's name, of which Linux allows 15 octets
_ROUTE_TIMEOUT_S = 5


def addresses_of(number: int) -> tuple[str, str]:
    """The IPv4 and the IPv6 address of a topology's host, by its place among the hosts, from 1."""
    return f"10.78.0.{number}", f"fd78::{number:x}"


@dataclass(frozen=True)
class Wire:
    """A cable between two hosts; with ``impaired`` it ends in a middle where the engine's link carries the packets."""

    a: str
    b: str
    impaired: bool = False

    @property
    def name(self) -> str:
        """Its name, as in ``host1-host2``."""
        return f"{self.a}-{self.b}"


def cable_lines(
    wire: Wire, hosts: Mapping[str, Host], middle: Host | None, *, mtu: int, mac: Callable[[str, str], str]
) -> Iterator[str]:
    """Lines of ip(8) that make a wire's devices: a veth pair, or one to each side of the ``middle`` of an impaired one.

    ``mac`` says the address of a host's device towards another.
    """

    def end(host: str, towards: str) -> str:
        return f"to-{towards} netns {namespace_path(hosts[host])} mtu {mtu} address {mac(host, towards)}"

    if middle is None:
        yield f"link add {end(wire.a, wire.b)} type veth peer name {end(wire.b, wire.a)}"
        return
    for (host, towards), device in zip(((wire.a, wire.b), (wire.b, wire.a)), LINK_DEVICES, strict=True):
        yield f"link add {end(host, towards)} type veth peer name {device} netns {namespace_path(middle)} mtu {mtu}"


class Topology(HostGroup):
    """Hosts and the wires between them; raised by ``with``."""

    def __init__(
        self, hosts: Sequence[str], wires: Sequence[Wire], mtu: int = MTU, congestion_control: str = "cubic"
    ) -> None:
        """Prepare hosts by name; ValueError when names or wires make no graph."""
        super().__init__(mtu, congestion_control)
        self.names = tuple(hosts)
        self.wires = tuple(wires)
        _verify(self.names, self.wires)
        self._number = {name: number for number, name in enumerate(self.names, 1)}

    @property
    def hosts(self) -> dict[str, Host]:
        """The raised hosts by name, without the middles."""
        return {name: self._raised[name] for name in self.names}

    def host(self, name: str) -> Host:
        """The raised host of that name."""
        return self.hosts[name]

    def address(self, host: str) -> str:
        """The host's IPv4 address."""
        return addresses_of(self._number[host])[0]

    def address_6(self, host: str) -> str:
        """The host's IPv6 address."""
        return addresses_of(self._number[host])[1]

    def middle(self, wire: Wire) -> Host:
        """Where the link of an impaired wire runs."""
        return self._raised[wire.name]

    def devices(self, wire: Wire) -> tuple[str, str]:
        """The devices in the middle of an impaired wire, towards ``wire.a`` and towards ``wire.b``."""
        if not wire.impaired:
            raise ValueError(f"the wire {wire.name} is not impaired, it has no middle")
        return LINK_DEVICES

    def use_congestion_control(self, name: str) -> None:
        """Give new TCP connections on all hosts this congestion control."""
        if name == self.congestion_control:
            return
        self.congestion_control = name
        for own, host in self.hosts.items():
            with host.inside():
                ip_batch(list(self._routes(own)))

    def _names(self) -> Iterable[str]:
        return (*self.names, *(wire.name for wire in self.wires if wire.impaired))

    def _mac(self, host: str, towards: str) -> str:
        return f"02:00:0a:4e:{self._number[host]:02x}:{self._number[towards]:02x}"

    def _peers(self, host: str) -> Iterator[str]:
        for wire in self.wires:
            if host in (wire.a, wire.b):
                yield wire.b if host == wire.a else wire.a

    def _cable(self) -> None:
        """Make all cables in one run of ``ip``, then what is inside each namespace, one run each."""
        lines = [line for wire in self.wires for line in self._pairs(wire)]
        if lines:
            ip_batch(lines, self._raised.values())
        for name, host in self.hosts.items():
            with host.inside():
                ip_batch(list(self._addresses(name)))
        for name, host in self.hosts.items():
            with host.inside():
                own_6 = self.address_6(name)
                _await_local_route(own_6)
                ip_batch([f"route del local {own_6} dev lo table local", *self._routes(name), *self._neighbours(name)])
        for wire in self.wires:
            if wire.impaired:
                with self.middle(wire).inside():
                    ip_batch([f"link set {device} up" for device in self.devices(wire)])

    def _pairs(self, wire: Wire) -> Iterator[str]:
        middle = self.middle(wire) if wire.impaired else None
        return cable_lines(wire, self._raised, middle, mtu=self.mtu, mac=self._mac)

    def _addresses(self, host: str) -> Iterator[str]:
        # Linux takes packets for any address of a host on any device. The IPv6 one is on a single device because the
        # kernel adds a route to the host itself for each, and ours has to take its place.
        own, own_6 = self.address(host), self.address_6(host)
        yield f"link set lo mtu {self.mtu} up"
        yield f"address add {own_6}/128 dev lo nodad noprefixroute"
        yield f"address add {own}/32 dev lo noprefixroute"
        for peer in self._peers(host):
            yield f"address add {own}/32 dev to-{peer} noprefixroute"
            yield f"link set to-{peer} up"

    def _routes(self, host: str) -> Iterator[str]:
        """All routes of a host, with the congestion control of the connections over them.

        A route may name any congestion control (ip-route(8), congctl), whereas the sysctl of a namespace accepts only
        what the whole machine allows unprivileged users. That holds for the route to the host itself as well.
        """
        own, own_6, control = self.address(host), self.address_6(host), self.congestion_control
        yield f"route replace local {own} dev lo table local proto kernel scope host src {own} congctl {control}"
        yield f"route replace local {own_6} dev lo table local proto kernel metric 1 congctl {control}"
        for peer in self._peers(host):
            yield f"route replace {self.address(peer)}/32 dev to-{peer} src {own} congctl {control}"
            yield f"route replace {self.address_6(peer)}/128 dev to-{peer} src {own_6} congctl {control}"

    def _neighbours(self, host: str) -> Iterator[str]:
        for peer in self._peers(host):
            for address in (self.address(peer), self.address_6(peer)):
                yield f"neighbour replace {address} lladdr {self._mac(peer, host)} dev to-{peer} nud permanent"


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


def _verify(hosts: Sequence[str], wires: Sequence[Wire]) -> None:
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
