"""The network of services: any number of hosts, each with one address of each family, whatever its devices.

::

    host1                wire host1-host2, impaired                  host2
    to-host2 =========== ra   (the engine's link)   rb =========== to-host1
    10.78.0.1                                                      10.78.0.2

Nobody forwards for others: hosts without a wire between them cannot talk. Services of one host talk over ``lo``, whose
MTU is that of the wires: both carry equal segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trifecta.lab.topology import Device, HostSpec, Route, Topology, Wire, check_graph


def addresses_of(number: int) -> tuple[str, str]:
    """The IPv4 and the IPv6 address of a graph's host, by its place among the hosts, from 1."""
    return f"10.78.0.{number}", f"fd78::{number:x}"


def host_graph(hosts: Sequence[str], wires: Sequence[Wire], congestion_control: str = "cubic") -> Topology:
    """Hosts by name and the wires between them, raised by ``with``; ValueError when they make no graph."""
    check_graph(hosts, wires)
    numbers = {name: number for number, name in enumerate(hosts, 1)}
    peers: dict[str, list[str]] = {name: [] for name in hosts}
    for wire in wires:
        peers[wire.a].append(wire.b)
        peers[wire.b].append(wire.a)
    specs = [_spec(name, peers[name], numbers) for name in hosts]
    return Topology(specs, wires, congestion_control=congestion_control)


def _spec(name: str, peers: Sequence[str], numbers: dict[str, int]) -> HostSpec:
    own, own_6 = addresses_of(numbers[name])

    def device(peer: str) -> Device:
        mac = f"02:00:0a:4e:{numbers[name]:02x}:{numbers[peer]:02x}"
        return Device(f"to-{peer}", mac, (f"{own}/32",))

    def routes() -> Iterator[Route]:
        yield Route(own, "lo", source=own, own=True)
        yield Route(own_6, "lo", own=True)
        for peer in peers:
            address, address_6 = addresses_of(numbers[peer])
            yield Route(f"{address}/32", f"to-{peer}", source=own)
            yield Route(f"{address_6}/128", f"to-{peer}", source=own_6)

    # Linux takes packets for any address of a host on any device. The IPv6 one is on a single device because the kernel
    # adds a route to the host itself for each, and ours has to take its place.
    return HostSpec(
        name, {peer: device(peer) for peer in peers}, tuple(routes()), loopback=(f"{own_6}/128", f"{own}/32")
    )
