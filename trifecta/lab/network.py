"""The lab's network: hosts client and server, joined by a middle host in which the link carries the packets.

::

    client          middle            server
    eth0 ========= ra      rb ========= eth0
    10.77.0.1         (link)          10.77.0.2

The middle has no address and forwards nothing by itself: packets cross only through the engine's link. Neighbours are
permanent and IPv6 autoconfiguration is off, so nothing but the traffic of a trial asks to cross.
"""

from __future__ import annotations

from collections.abc import Iterable

from trifecta.lab.host import Host
from trifecta.lab.hosts import HostGroup, ip_batch, namespace_path

CLIENT_ADDRESS = "10.77.0.1"
SERVER_ADDRESS = "10.77.0.2"
CLIENT_ADDRESS_6 = "fd77::1"
SERVER_ADDRESS_6 = "fd77::2"
CLIENT_MAC = "02:00:0a:4d:00:01"
SERVER_MAC = "02:00:0a:4d:00:02"
DEVICE = "eth0"
LINK_DEVICES = ("ra", "rb")


class Lab(HostGroup):
    """Two hosts and the middle between them."""

    def _names(self) -> Iterable[str]:
        return ("client", "middle", "server")

    @property
    def client(self) -> Host:
        """Where clients run."""
        return self._raised["client"]

    @property
    def middle(self) -> Host:
        """Where the link runs."""
        return self._raised["middle"]

    @property
    def server(self) -> Host:
        """Where servers run."""
        return self._raised["server"]

    @property
    def hosts(self) -> tuple[Host, Host, Host]:
        """Client, middle and server."""
        return (self.client, self.middle, self.server)

    def use_congestion_control(self, name: str) -> None:
        """Give new TCP connections of both hosts this congestion control, those of a host to itself too."""
        if name == self.congestion_control:
            return
        for host, source in ((self.client, CLIENT_ADDRESS), (self.server, SERVER_ADDRESS)):
            with host.inside():
                ip_batch(_routes("replace", source, name))
        self.congestion_control = name

    def _cable(self) -> None:
        """Make both cables, then the addresses of each host: three short `ip -batch` programs."""
        left, right = LINK_DEVICES
        ip_batch(
            [
                f"link add {DEVICE} netns {namespace_path(self.client)} mtu {self.mtu} address {CLIENT_MAC} type veth "
                f"peer name {left} netns {namespace_path(self.middle)} mtu {self.mtu}",
                f"link add {DEVICE} netns {namespace_path(self.server)} mtu {self.mtu} address {SERVER_MAC} type veth "
                f"peer name {right} netns {namespace_path(self.middle)} mtu {self.mtu}",
            ],
            self.hosts,
        )
        ends = (
            (self.client, (CLIENT_ADDRESS, CLIENT_ADDRESS_6), (SERVER_ADDRESS, SERVER_ADDRESS_6), SERVER_MAC),
            (self.server, (SERVER_ADDRESS, SERVER_ADDRESS_6), (CLIENT_ADDRESS, CLIENT_ADDRESS_6), CLIENT_MAC),
        )
        for host, own, other, other_mac in ends:
            with host.inside():
                ip_batch(
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
            ip_batch([f"link set {left} up", f"link set {right} up"])


def _routes(verb: str, source: str, congestion_control: str) -> list[str]:
    """The routes to the other host and to this one, with the congestion control of the connections over them.

    A route may name any congestion control (ip-route(8), congctl), whereas the sysctl of a namespace accepts only what
    the whole machine allows unprivileged users.
    """
    return [
        f"route {verb} 10.77.0.0/24 dev {DEVICE} src {source} congctl {congestion_control}",
        f"route {verb} fd77::/64 dev {DEVICE} congctl {congestion_control}",
        # Of a proxy to the server behind it; the kernel has made this route with the address of `lo`.
        "route replace local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1 "
        f"congctl {congestion_control}",
    ]
