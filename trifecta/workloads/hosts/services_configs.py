"""What services on hosts are asked beyond those of a lab: addresses, patience, and whose clock times are of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from trifecta.contract.load import LoadConfig
from trifecta.contract.origin import OriginConfig
from trifecta.design.graph import Graph
from trifecta.design.model import ServicesWorkload
from trifecta.store import parquet
from trifecta.store.schema import SPANS_OF_HOSTS

# Of a network as it is nothing is known; how long a trial may take at most is reckoned with these, nothing else.
_SLOWEST_BITS_PER_S = 1_000_000
_STALL_NS = 400_000_000  # what a lost packet may cost a call


def placed_origin(config: OriginConfig, addresses: Mapping[str, str]) -> OriginConfig:
    """The configuration of a service that calls others at these addresses: no name server of ours answers there."""
    relay = config.relay
    if relay is None:
        return config
    called = {name: replace(one, address=addresses[name]) for name, one in relay.services.items()}
    return replace(config, relay=replace(relay, services=called))


def placed_client(config: LoadConfig, graph: Graph, workload: ServicesWorkload, address: str) -> LoadConfig:
    """The same of the client; its trial may take as long as a slow network with losses lets it."""
    calls = len(graph.walk())
    rounds = -(-workload.samples // max(1, workload.in_flight))
    more_ns = rounds * calls * _STALL_NS + (workload.octets or 0) * 8 * 10**9 // _SLOWEST_BITS_PER_S
    return replace(config, address=address, ip=None, total_timeout_ns=config.total_timeout_ns + more_ns)


def name_hosts(spans: Path, hosts: Mapping[str, str]) -> None:
    """Say in the file of a trial's hops whose clock each time is of; ``hosts``: service to the host that it was on."""
    rows = [
        {
            **row,
            "caller_host": hosts.get(row["caller"], row["caller"]),
            "callee_host": hosts.get(row["callee"], row["callee"]),
        }
        for row in parquet.read(spans)
    ]
    parquet.write(rows, SPANS_OF_HOSTS, spans)
