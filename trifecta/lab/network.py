"""The network of requests: hosts client and server, joined by a middle host in which the link carries the packets.

::

    client          middle            server
    eth0 ========= ra      rb ========= eth0
    10.77.0.1         (link)          10.77.0.2
    fd77::1                           fd77::2

Beside it, in a study with a load balancer, a way with a link of its own (what the balancer does: `lab.balancer`)::

    client          middle2          balancer             server
    eth1 ========= ra      rb ======== eth0   eth1 -------- eth1
    10.77.1.1         (link)          10.77.1.2        10.77.0.2
    fd77:1::1                         fd77:1::2        fd77::2

That way has IPv6 only where a study asks for both, so that it is in all others what it was.
"""

from __future__ import annotations

from dataclasses import replace

from trifecta.lab.topology import TO_LOOPBACK, TO_LOOPBACK_6, Device, HostSpec, Route, Topology, Wire

CLIENT_ADDRESS = "10.77.0.1"
SERVER_ADDRESS = "10.77.0.2"
CLIENT_ADDRESS_6 = "fd77::1"
SERVER_ADDRESS_6 = "fd77::2"
CLIENT_MAC = "02:00:0a:4d:00:01"
SERVER_MAC = "02:00:0a:4d:00:02"
DEVICE = "eth0"
WIRE = Wire("client", "server", impaired=True, middle="middle")
BALANCER = "balancer"
BALANCER_ADDRESS = "10.77.1.2"
BALANCER_ADDRESS_6 = "fd77:1::2"
BALANCED_WIRE = Wire("client", BALANCER, impaired=True, middle="middle2")
_BALANCED_CLIENT = "10.77.1.1"
_BALANCED_CLIENT_6 = "fd77:1::1"
_BALANCED_DEVICE = "eth1"


def server_address(ipv6: bool) -> str:
    """The server's, of that version of IP."""
    return SERVER_ADDRESS_6 if ipv6 else SERVER_ADDRESS


def two_hosts(*, balanced: bool = False, balanced_6: bool = False) -> Topology:
    """Client and server, with ``WIRE`` between them; raised by ``with``.

    ``balanced``: also the host of a load balancer, and ``BALANCED_WIRE`` from the client to it; with ``balanced_6``
    that way has IPv6, too.
    """
    client = _end("client", "server", CLIENT_MAC, CLIENT_ADDRESS, CLIENT_ADDRESS_6)
    server = _end("server", "client", SERVER_MAC, SERVER_ADDRESS, SERVER_ADDRESS_6)
    if not balanced:
        return Topology([client, server], [WIRE])
    client = _beyond(
        client, f"{_BALANCED_CLIENT}/24", 3, Route("10.77.1.0/24", _BALANCED_DEVICE, source=_BALANCED_CLIENT)
    )
    server = _beyond(
        server,
        f"{SERVER_ADDRESS}/32",
        6,
        Route(f"{BALANCER_ADDRESS}/32", _BALANCED_DEVICE, source=SERVER_ADDRESS),
        Route(f"{_BALANCED_CLIENT}/32", _BALANCED_DEVICE, source=SERVER_ADDRESS, via=BALANCER_ADDRESS),
    )
    devices = {
        "client": Device(DEVICE, _mac(4), (f"{BALANCER_ADDRESS}/24",)),
        "server": Device(_BALANCED_DEVICE, _mac(5), (f"{BALANCER_ADDRESS}/32",)),
    }
    routes = (
        Route("10.77.1.0/24", DEVICE, source=BALANCER_ADDRESS),
        Route(f"{SERVER_ADDRESS}/32", _BALANCED_DEVICE, source=BALANCER_ADDRESS),
    )
    balancer = HostSpec(BALANCER, devices, routes, forwards=True)
    hosts = _with_6(client, server, balancer) if balanced_6 else [client, server, balancer]
    return Topology(hosts, [WIRE, BALANCED_WIRE, Wire(BALANCER, "server")])


def _beyond(end: HostSpec, address: str, mac: int, *routes: Route) -> HostSpec:
    """An end with a device and routes towards the load balancer as well."""
    device = Device(_BALANCED_DEVICE, _mac(mac), (address,))
    return replace(end, devices={**end.devices, BALANCER: device}, routes=(*end.routes, *routes))


def _with_6(client: HostSpec, server: HostSpec, balancer: HostSpec) -> list[HostSpec]:
    """With the way through the load balancer over IPv6. No route names a source: a device has one address of IPv6."""
    near = Route("fd77:1::/64", _BALANCED_DEVICE)
    back = Route(f"{BALANCER_ADDRESS_6}/128", _BALANCED_DEVICE)
    beyond = Route(f"{_BALANCED_CLIENT_6}/128", _BALANCED_DEVICE, via=BALANCER_ADDRESS_6)
    balancer = _with_address(balancer, "client", f"{BALANCER_ADDRESS_6}/64", replace(near, device=DEVICE))
    onwards = Route(f"{SERVER_ADDRESS_6}/128", _BALANCED_DEVICE)
    return [
        _with_address(client, BALANCER, f"{_BALANCED_CLIENT_6}/64", near),
        _with_address(server, BALANCER, f"{SERVER_ADDRESS_6}/128", back, beyond),
        _with_address(balancer, "server", f"{BALANCER_ADDRESS_6}/128", onwards),
    ]


def _with_address(host: HostSpec, towards: str, address: str, *routes: Route) -> HostSpec:
    """A host with one more address on the device of a wire, and more routes."""
    device = host.devices[towards]
    device = replace(device, addresses=(*device.addresses, address))
    return replace(host, devices={**host.devices, towards: device}, routes=(*host.routes, *routes))


def _mac(number: int) -> str:
    return f"02:00:0a:4d:00:{number:02x}"


def _end(name: str, towards: str, mac: str, address: str, address_6: str) -> HostSpec:
    routes = (Route("10.77.0.0/24", DEVICE, source=address), Route("fd77::/64", DEVICE), TO_LOOPBACK, TO_LOOPBACK_6)
    return HostSpec(name, {towards: Device(DEVICE, mac, (f"{address}/24", f"{address_6}/64"))}, routes)
