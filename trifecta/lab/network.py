"""The network of requests: hosts client and server, joined by a middle host in which the link carries the packets.

::

    client          middle            server
    eth0 ========= ra      rb ========= eth0
    10.77.0.1         (link)          10.77.0.2

Beside it, in a study with a load balancer, a way with a link of its own (what the balancer does: `lab.balancer`)::

    client          middle2          balancer             server
    eth1 ========= ra      rb ======== eth0   eth1 -------- eth1
    10.77.1.1         (link)          10.77.1.2        10.77.0.2
"""

from __future__ import annotations

from dataclasses import replace

from trifecta.lab.topology import TO_LOOPBACK, Device, HostSpec, Route, Topology, Wire

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
BALANCED_WIRE = Wire("client", BALANCER, impaired=True, middle="middle2")
_BALANCED_CLIENT = "10.77.1.1"
_BALANCED_DEVICE = "eth1"


def two_hosts(*, balanced: bool = False) -> Topology:
    """Client and server, with ``WIRE`` between them; raised by ``with``.

    ``balanced``: also the host of a load balancer, and ``BALANCED_WIRE`` from the client to it.
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
    return Topology([client, server, balancer], [WIRE, BALANCED_WIRE, Wire(BALANCER, "server")])


def _beyond(end: HostSpec, address: str, mac: int, *routes: Route) -> HostSpec:
    """An end with a device and routes towards the load balancer as well."""
    device = Device(_BALANCED_DEVICE, _mac(mac), (address,))
    return replace(end, devices={**end.devices, BALANCER: device}, routes=(*end.routes, *routes))


def _mac(number: int) -> str:
    return f"02:00:0a:4d:00:{number:02x}"


def _end(name: str, towards: str, mac: str, address: str, address_6: str) -> HostSpec:
    routes = (Route("10.77.0.0/24", DEVICE, source=address), Route("fd77::/64", DEVICE), TO_LOOPBACK)
    return HostSpec(name, {towards: Device(DEVICE, mac, (f"{address}/24", f"{address_6}/64"))}, routes)
