"""The network of requests: hosts client and server, joined by a middle host in which the link carries the packets.

::

    client          middle            server
    eth0 ========= ra      rb ========= eth0
    10.77.0.1         (link)          10.77.0.2
"""

from __future__ import annotations

from trifecta.lab.topology import TO_LOOPBACK, Device, HostSpec, Route, Topology, Wire

CLIENT_ADDRESS = "10.77.0.1"
SERVER_ADDRESS = "10.77.0.2"
CLIENT_ADDRESS_6 = "fd77::1"
SERVER_ADDRESS_6 = "fd77::2"
CLIENT_MAC = "02:00:0a:4d:00:01"
SERVER_MAC = "02:00:0a:4d:00:02"
DEVICE = "eth0"
WIRE = Wire("client", "server", impaired=True, middle="middle")


def two_hosts() -> Topology:
    """Client and server, with ``WIRE`` between them; raised by ``with``."""
    return Topology(
        [
            _end("client", "server", CLIENT_MAC, CLIENT_ADDRESS, CLIENT_ADDRESS_6),
            _end("server", "client", SERVER_MAC, SERVER_ADDRESS, SERVER_ADDRESS_6),
        ],
        [WIRE],
    )


def _end(name: str, towards: str, mac: str, address: str, address_6: str) -> HostSpec:
    routes = (Route("10.77.0.0/24", DEVICE, source=address), Route("fd77::/64", DEVICE), TO_LOOPBACK)
    return HostSpec(name, {towards: Device(DEVICE, mac, (f"{address}/24", f"{address_6}/64"))}, routes)
