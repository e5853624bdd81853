"""The network of a browser: client - router - switch - {web, video}, with the addresses of the study baccichet2021.

::

    client ---------------- router ---------------- switch ---------------- web    192.168.2.2, .11, .12, ...
    192.168.1.2   192.168.1.1   192.168.2.1        (a bridge) ------------- video  192.168.2.3, .101, .102, ...

Each wire can be impaired: then it ends in a middle, a host of its own in which the engine's link carries the packets.
The others are plain veth pairs. The router alone forwards, between its two wires only; there is no device that leads
out. Each further server on a host has an address of its own, so that all of them have port 443. Neighbours are
permanent, as in the other networks of the lab. IPv4 only, as the study: with two families a browser would race them
(RFC 8305), and which one carried a load would be one more thing that differs between loads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from trifecta.lab.host import Host
from trifecta.lab.hosts import MTU, HostGroup, ip_batch
from trifecta.lab.network import LINK_DEVICES
from trifecta.lab.topology import Wire, cable_lines

CLIENT_ADDRESS = "192.168.1.2"
ROUTER_ADDRESSES = ("192.168.1.1", "192.168.2.1")
SERVERS = ("web", "video")
WIRES = (("client", "router"), ("router", "switch"), ("switch", "web"), ("switch", "video"))
WIRE_NAMES = tuple(f"{a}-{b}" for a, b in WIRES)
MOST_SERVERS = 80
"""On each of the hosts ``web`` and ``video``."""
_NAMES = ("client", "router", "switch", *SERVERS)
_FIRST = {"web": 2, "video": 3}
_FURTHER = {"web": 10, "video": 100}
_BRIDGE = "bridge"
_AGEING_CENTISECONDS = 10_000_000  # a bridge that forgot where a host is would send its packets to all


def server_address(host: str, number: int = 0) -> str:
    """The address of a host's server by its number, from 0; ValueError for a host without servers, or too many."""
    if host not in SERVERS or not 0 <= number < MOST_SERVERS:
        raise ValueError(f"no server {number} on {host}: 0 to {MOST_SERVERS - 1}, on {' or '.join(SERVERS)}")
    return f"192.168.2.{_FURTHER[host] + number if number else _FIRST[host]}"


class AccessNetwork(HostGroup):
    """The five hosts and their wires; raised by ``with``."""

    def __init__(
        self,
        impaired: Collection[str] = (),
        servers: Mapping[str, int] | None = None,
        mtu: int = MTU,
        congestion_control: str = "cubic",
    ) -> None:
        """``impaired``: names of the wires that get a middle; ``servers``: how many addresses web and video have.

        ValueError for a wire or host that is not there.
        """
        super().__init__(mtu, congestion_control)
        unknown = set(impaired) - set(WIRE_NAMES)
        if unknown:
            raise ValueError(f"no wire {', '.join(sorted(unknown))}: {', '.join(WIRE_NAMES)}")
        counts = dict.fromkeys(SERVERS, 1) | dict(servers or {})
        self._addresses = {host: [server_address(host, n) for n in range(count)] for host, count in counts.items()}
        self.wires = tuple(Wire(a, b, impaired=f"{a}-{b}" in impaired) for a, b in WIRES)

    @property
    def hosts(self) -> dict[str, Host]:
        """The raised hosts by name, without the middles."""
        return {name: self._raised[name] for name in _NAMES}

    def host(self, name: str) -> Host:
        """The raised host of that name."""
        return self.hosts[name]

    @property
    def links(self) -> tuple[Wire, ...]:
        """The impaired wires, from the client on."""
        return tuple(wire for wire in self.wires if wire.impaired)

    def middle(self, wire: Wire) -> Host:
        """Where the link of an impaired wire runs."""
        return self._raised[wire.name]

    def devices(self, wire: Wire) -> tuple[str, str]:
        """The devices in the middle of an impaired wire, towards the client and away from it."""
        if not wire.impaired:
            raise ValueError(f"the wire {wire.name} is not impaired, it has no middle")
        return LINK_DEVICES

    def use_congestion_control(self, name: str) -> None:
        """Give new TCP connections of client and servers this congestion control."""
        if name == self.congestion_control:
            return
        self.congestion_control = name
        for own in ("client", *SERVERS):
            with self.host(own).inside():
                ip_batch(list(self._routes(own)))

    def _names(self) -> Iterable[str]:
        return (*_NAMES, *(wire.name for wire in self.wires if wire.impaired))

    def _cable(self) -> None:
        for host in self._raised.values():
            _no_ipv6(host)
        ip_batch([line for wire in self.wires for line in self._pairs(wire)], self._raised.values())
        for name, host in self.hosts.items():
            with host.inside():
                ip_batch(list(self._inside(name)))
        with self.host("router").inside():
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
        for wire in self.links:
            with self.middle(wire).inside():
                ip_batch([f"link set {device} up" for device in self.devices(wire)])

    def _pairs(self, wire: Wire) -> Iterator[str]:
        middle = self.middle(wire) if wire.impaired else None
        return cable_lines(wire, self._raised, middle, mtu=self.mtu, mac=_mac)

    def _inside(self, name: str) -> Iterator[str]:
        """Devices, addresses, neighbours and routes of a host."""
        yield "link set lo up"
        if name == "switch":
            yield (
                f"link add {_BRIDGE} mtu {self.mtu} type bridge stp_state 0 forward_delay 0 mcast_snooping 0 "
                f"ageing_time {_AGEING_CENTISECONDS}"
            )
            yield f"link set {_BRIDGE} up"
            for towards in ("router", *SERVERS):
                yield f"link set to-{towards} master {_BRIDGE}"
                yield f"link set to-{towards} up"
            return
        for device, addresses in self._devices(name).items():
            yield from (f"address add {address}/32 dev {device} noprefixroute" for address in addresses)
            yield f"link set {device} up"
        for address, device, mac in self._neighbours(name):
            yield f"neighbour replace {address} lladdr {mac} dev {device} nud permanent"
        yield from self._routes(name)

    def _devices(self, name: str) -> dict[str, list[str]]:
        """The addresses of a host, by device."""
        near, far = ROUTER_ADDRESSES
        if name == "client":
            return {"to-router": [CLIENT_ADDRESS]}
        if name == "router":
            return {"to-client": [near], "to-switch": [far]}
        return {"to-switch": self._addresses[name]}

    def _neighbours(self, name: str) -> Iterator[tuple[str, str, str]]:
        """Who is on the same wire or bridge: address, device, MAC."""
        near, far = ROUTER_ADDRESSES
        if name == "client":
            yield near, "to-router", _mac("router", "client")
            return
        if name == "router":
            yield CLIENT_ADDRESS, "to-client", _mac("client", "router")
        else:
            yield far, "to-switch", _mac("router", "switch")
        for other, addresses in self._addresses.items():
            if other != name:
                yield from ((address, "to-switch", _mac(other, "switch")) for address in addresses)

    def _routes(self, name: str) -> Iterator[str]:
        """All routes of a host, with the congestion control of the connections over them (ip-route(8), congctl)."""
        near, far = ROUTER_ADDRESSES
        with_control = f"congctl {self.congestion_control}"
        # Of a proxy to the server behind it; the kernel has made this route with the address of `lo`.
        yield f"route replace local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1 {with_control}"
        if name == "client":
            yield f"route replace {near}/32 dev to-router src {CLIENT_ADDRESS} {with_control}"
            yield f"route replace 192.168.2.0/24 via {near} dev to-router src {CLIENT_ADDRESS} {with_control}"
        elif name == "router":
            yield f"route replace {CLIENT_ADDRESS}/32 dev to-client src {near}"
            yield f"route replace 192.168.2.0/24 dev to-switch src {far}"
        else:
            own = self._addresses[name][0]
            yield f"route replace 192.168.2.0/24 dev to-switch src {own} {with_control}"
            yield f"route replace {CLIENT_ADDRESS}/32 via {far} dev to-switch src {own} {with_control}"


def _mac(host: str, towards: str) -> str:
    return f"02:00:0a:4f:{_NAMES.index(host):02x}:{_NAMES.index(towards):02x}"


def _no_ipv6(host: Host) -> None:
    """Switch IPv6 off on the devices that are made from now on; ``lo`` keeps it."""
    # A kernel without IPv6 has no such file.
    with host.inside(), suppress(FileNotFoundError):
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1", encoding="ascii")
