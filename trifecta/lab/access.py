"""The network of a browser: client - router - switch - {web, video}, with the addresses of the study baccichet2021.

::

    client ---------------- router ---------------- switch ---------------- web    192.168.2.2, .11, .12, ...
    192.168.1.2   192.168.1.1   192.168.2.1        (a bridge) ------------- video  192.168.2.3, .101, .102, ...
                                                              - - - - - - - thirdparty  192.168.2.4, .181, ...

The last host is there where a page has origins of third parties; its wire to the switch cannot be impaired. Each other
wire can be impaired: then it ends in a middle, a host of its own in which the engine's link carries the packets.
The others are plain veth pairs. The router alone forwards, between its two wires only; there is no device that leads
out. Each further server on a host has an address of its own, so that all of them have port 443. Neighbours are
permanent, as in the other networks of the lab. IPv4 only, as the study, unless IPv6 is asked for: then every address
has one of IPv6 beside it (``fd7a:2::11`` for 192.168.2.11), and names have that one alone. With two of a name a browser
would race them (RFC 8305), and which one carried a load would be one more thing that differs between loads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trifecta.lab.topology import TO_LOOPBACK, TO_LOOPBACK_6, Device, HostSpec, Route, Topology, Wire

CLIENT_ADDRESS = "192.168.1.2"
ROUTER_ADDRESSES = ("192.168.1.1", "192.168.2.1")
SERVERS = ("web", "video")
THIRD_PARTY = "thirdparty"
WIRES = (("client", "router"), ("router", "switch"), ("switch", "web"), ("switch", "video"))
WIRE_NAMES = tuple(f"{a}-{b}" for a, b in WIRES)
MOST_SERVERS = 80
"""On each of the hosts ``web`` and ``video``."""
_NAMES = ("client", "router", "switch", *SERVERS, THIRD_PARTY)
_FIRST = {"web": 2, "video": 3, THIRD_PARTY: 4}
_FURTHER = {"web": 10, "video": 100, THIRD_PARTY: 180}
_LAST = 254
_SERVERS_NETWORK = "192.168.2.0/24"
_SERVERS_NETWORK_6 = "fd7a:2::/64"
PROBED_BY_CHROMIUM = "2001:4860:4860::8888"
"""Where Chromium connects a UDP socket to, and sends nothing: without a route there it asks for no IPv6 addresses
(net/dns/host_resolver_manager.cc, kIPv6ProbeAddress). Nobody has the address here, and the router has no way to it."""


def server_address(host: str, number: int = 0) -> str:
    """The address of a host's server by its number, from 0; ValueError for a host without servers, or too many."""
    if host not in _FIRST or not 0 <= number < min(MOST_SERVERS, _LAST + 1 - _FURTHER[host]):
        raise ValueError(f"no server {number} on {host}: 0 to {MOST_SERVERS - 1}, on {' or '.join(_FIRST)}")
    return f"192.168.2.{_FURTHER[host] + number if number else _FIRST[host]}"


def ipv6_address_of(address: str) -> str:
    """The address of IPv6 beside one of IPv4."""
    *_, network, host = address.split(".")
    return f"fd7a:{network}::{host}"


def access_links(
    impaired: Collection[str] = (),
    servers: Mapping[str, int] | None = None,
    congestion_control: str = "cubic",
    *,
    ipv6: bool = False,
) -> Topology:
    """The five hosts and their wires, raised by ``with``; a sixth for third parties where ``servers`` counts some.

    ``impaired``: names of the wires that get a middle; ``servers``: how many addresses web and video have; ``ipv6``:
    also of IPv6. ValueError for a wire or host that is not there.
    """
    unknown = set(impaired) - set(WIRE_NAMES)
    if unknown:
        raise ValueError(f"no wire {', '.join(sorted(unknown))}: {', '.join(WIRE_NAMES)}")
    counts = dict.fromkeys(SERVERS, 1) | dict(servers or {})
    specs = [_client(ipv6), _router(ipv6), _switch(counts)]
    specs += [
        _serving(host, [server_address(host, number) for number in range(count)], ipv6)
        for host, count in counts.items()
    ]
    wires = [Wire(a, b, impaired=f"{a}-{b}" in impaired) for a, b in WIRES]
    wires += [Wire("switch", host) for host in counts if host not in SERVERS]
    return Topology(specs, wires, ipv6=ipv6, congestion_control=congestion_control)


def _client(ipv6: bool) -> HostSpec:
    near, own = ROUTER_ADDRESSES[0], CLIENT_ADDRESS
    routes = [
        TO_LOOPBACK,
        Route(f"{near}/32", "to-router", source=own),
        Route(_SERVERS_NETWORK, "to-router", source=own, via=near),
    ]
    if ipv6:
        routes += [
            TO_LOOPBACK_6,
            Route(f"{ipv6_address_of(near)}/128", "to-router"),
            Route(_SERVERS_NETWORK_6, "to-router", via=ipv6_address_of(near)),
            Route(f"{PROBED_BY_CHROMIUM}/128", "to-router", via=ipv6_address_of(near)),
        ]
    return HostSpec("client", {"router": _device("client", "router", [own], ipv6)}, tuple(routes))


def _router(ipv6: bool) -> HostSpec:
    near, far = ROUTER_ADDRESSES
    routes = [
        Route(f"{CLIENT_ADDRESS}/32", "to-client", source=near, controlled=False),
        Route(_SERVERS_NETWORK, "to-switch", source=far, controlled=False),
    ]
    if ipv6:
        routes += [
            Route(f"{ipv6_address_of(CLIENT_ADDRESS)}/128", "to-client", controlled=False),
            Route(_SERVERS_NETWORK_6, "to-switch", controlled=False),
        ]
    devices = {
        "client": _device("router", "client", [near], ipv6),
        "switch": _device("router", "switch", [far], ipv6),
    }
    return HostSpec("router", devices, tuple(routes), forwards=True)


def _switch(serving: Collection[str]) -> HostSpec:
    return HostSpec("switch", {peer: _device("switch", peer) for peer in ("router", *serving)}, bridge=True)


def _serving(host: str, addresses: Sequence[str], ipv6: bool) -> HostSpec:
    far, own = ROUTER_ADDRESSES[1], addresses[0]
    routes = [
        TO_LOOPBACK,
        Route(_SERVERS_NETWORK, "to-switch", source=own),
        Route(f"{CLIENT_ADDRESS}/32", "to-switch", source=own, via=far),
    ]
    if ipv6:
        routes += [
            TO_LOOPBACK_6,
            Route(_SERVERS_NETWORK_6, "to-switch"),
            Route(f"{ipv6_address_of(CLIENT_ADDRESS)}/128", "to-switch", via=ipv6_address_of(far)),
        ]
    return HostSpec(host, {"switch": _device(host, "switch", addresses, ipv6)}, tuple(routes))


def _device(host: str, towards: str, addresses: Sequence[str] = (), ipv6: bool = False) -> Device:
    mac = f"02:00:0a:4f:{_NAMES.index(host):02x}:{_NAMES.index(towards):02x}"
    own = [f"{address}/32" for address in addresses]
    own += [f"{ipv6_address_of(address)}/128" for address in addresses if ipv6]
    return Device(f"to-{towards}", mac, tuple(own))
