"""A load balancer in a host of the lab, as a network load balancer is: it passes flows on and ends no connection.

The host's kernel translates addresses (nft(8), NAT STATEMENTS): what comes over TCP or UDP to the balancer's address
goes on to the same port of the server, and what the server answers goes back with the balancer's address. The client's
address stays what it is. Each packet crosses one host more; nothing of TCP, TLS or QUIC is touched.

A flow over TCP is forgotten 10 s after its end, one over UDP, whose end nobody sees, 10 s after its last packet; the
kernel's 120 s would let a new connection for every request fill the table of flows. What a client sends later is a new
flow to the same server.
"""

from __future__ import annotations

import json
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.design.ip import IPV6, version_of
from trifecta.lab.conntrack import nft
from trifecta.lab.host import Host

TABLE = "trifecta_balancer"
TRANSPORTS = ("tcp", "udp")
_FLOWS = "_flows"  # of a counter's name; a transport's own is a word of nft's
_BEFORE_ROUTING = -100  # nft(8), "Standard priority names": dstnat
_REFUSED = (
    "the kernel refuses to translate addresses ({}); "
    "it needs nf_tables with connection tracking and NAT (CONFIG_NFT_CT, CONFIG_NFT_NAT)"
)
_FORGETS_S = "10"
# Settings of the host's own connection tracking (nf_conntrack-sysctl of the kernel's documentation). A packet that
# tracking finds invalid is not translated, so the path's own work must not look like a fault: what it lost or let
# overtake leaves gaps in TCP's windows, and what it damaged is for the server to throw away.
SETTINGS = {
    "nf_conntrack_tcp_be_liberal": "1",
    "nf_conntrack_checksum": "0",
    "nf_conntrack_tcp_timeout_time_wait": _FORGETS_S,
    "nf_conntrack_udp_timeout": _FORGETS_S,
    "nf_conntrack_udp_timeout_stream": _FORGETS_S,
}


class Balancer:
    """A host that passes flows on to a server, for as long as the host is up."""

    def __init__(self, host: Host, address: str, server: str) -> None:
        """Begin; ``address`` is the host's own, of the same version of IP as the server's.

        CannotError where nft(8) is missing, or the kernel refuses.
        """
        self.host = host
        self._family = _family(address)
        nft(host, "-f", "-", script=rules(address, server), refused=_REFUSED)
        with host.inside():
            for name, value in SETTINGS.items():
                try:
                    Path("/proc/sys/net/netfilter", name).write_text(value, encoding="ascii")
                except OSError as error:
                    raise CannotError(
                        f"host {host.name}: cannot set {name} to {value} ({error.strerror}); "
                        "run as root, or on Linux 5.13 or newer"
                    ) from error

    def flows(self) -> dict[str, int]:
        """How many flows it has passed on so far, by transport: ``tcp``, ``udp``."""
        listed = json.loads(nft(self.host, "-j", "list", "table", self._family, TABLE, refused=_REFUSED))
        counters = (entry["counter"] for entry in listed["nftables"] if "counter" in entry)
        return {str(counter["name"]).removesuffix(_FLOWS): int(counter["packets"]) for counter in counters}


def rules(address: str, server: str) -> str:
    """A text of nft(8): a chain of this type is asked for the first packet of each flow, the rest of it follows."""
    family = _family(address)
    counters = "".join(f"\n  counter {transport}{_FLOWS} {{ }}" for transport in TRANSPORTS)
    passed_on = "".join(
        f'\n    {family} daddr {address} meta l4proto {transport} counter name "{transport}{_FLOWS}" dnat to {server}'
        for transport in TRANSPORTS
    )
    return f"""table {family} {TABLE} {{{counters}
  chain arriving {{
    type nat hook prerouting priority {_BEFORE_ROUTING}; policy accept;{passed_on}
  }}
}}
"""


def _family(address: str) -> str:
    """The family of an address, as nft(8) has it."""
    return "ip6" if version_of(address) == IPV6 else "ip"
