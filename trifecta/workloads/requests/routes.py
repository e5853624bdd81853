"""The route that the packets of a trial of requests take: over which version of IP, through whom, over which wire."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from trifecta.design.ip import IPV6
from trifecta.design.model import RequestsWorkload
from trifecta.lab.network import (
    BALANCED_WIRE,
    BALANCER,
    BALANCER_ADDRESS,
    BALANCER_ADDRESS_6,
    WIRE,
    server_address,
)
from trifecta.lab.topology import Wire


@dataclass(frozen=True)
class RequestRoute:
    """From the client to the server."""

    ipv6: bool = False
    balanced: bool = False
    """Whether a load balancer stands before the server."""

    @property
    def wire(self) -> Wire:
        """That on which the path lies."""
        return BALANCED_WIRE if self.balanced else WIRE

    @property
    def server(self) -> str:
        """The server's address."""
        return server_address(self.ipv6)

    @property
    def balancer(self) -> str:
        """The load balancer's address, where there is one."""
        return BALANCER_ADDRESS_6 if self.ipv6 else BALANCER_ADDRESS

    @property
    def towards(self) -> str:
        """Where the client sends to."""
        return self.balancer if self.balanced else self.server

    def on(self, path: str) -> Hashable:
        """What distinguishes it from other routes under other paths; the plain one is its path."""
        special = [BALANCER] * self.balanced + [IPV6] * self.ipv6
        return (path, *special) if special else path


def route_of(workload: RequestsWorkload) -> RequestRoute:
    """The route that a workload asks for."""
    return RequestRoute(ipv6=workload.ip is not None, balanced=bool(workload.load_balancer))
