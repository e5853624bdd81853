"""Connection tracking in a host of the lab: switched on, with a table of a given size, or bypassed.

A host of the lab tracks nothing until a rule asks for a connection's state: the kernel's hooks come with the first such
rule of a namespace. The size of the kernel's table (nf_conntrack_max) is one for the whole machine and is left alone;
a namespace can read it, not set it. A smaller table is made with ``ct count`` (nft(8), CONNLIMIT STATEMENT): it counts
the tracked connections of this host that still live, and what the packet of a new one meets beyond the size is what it
meets at a full table: it is dropped without a word, and a program of this host itself is refused with EPERM.
Two things differ. A full table may first throw out a connection that nobody has answered yet (``early_drop``).
And ``ct count`` forgets a TCP connection when it closes, the kernel's table up to two minutes later. The end of a QUIC
connection is seen by neither: it stays for 30 s, or 120 s after 2 s of life (nf_conntrack_udp_timeout, _stream).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.design.errors import CannotError
from trifecta.lab.host import Host
from trifecta.lab.linux import search_path

TABLE = "trifecta_conntrack"
_COUNTER = "refused"
_REFUSED = (
    "the kernel refuses to track connections ({}); "
    "it needs nf_tables with connection tracking and `ct count` (CONFIG_NFT_CT, CONFIG_NFT_CONNLIMIT)"
)
# Priorities of netfilter hooks (nft(8), "Standard priority names"): tracking itself is at -200. Not to be tracked is
# said before it; what is new can be asked after it.
_BEFORE, _AFTER = -300, -150


@dataclass(frozen=True)
class Tracking:
    """Connection tracking as it was switched on in a host."""

    host: Host
    table_size: int | None
    """How many connections are let in; None: as many as the kernel's own table has room for."""

    def refused(self) -> int:
        """Packets of new connections that found no room since ``track``; 0 without a size."""
        if self.table_size is None:
            return 0
        listed = nft(self.host, "-j", "list", "counter", "inet", TABLE, _COUNTER, refused=_REFUSED)
        return sum(int(entry["counter"]["packets"]) for entry in json.loads(listed)["nftables"] if "counter" in entry)


def track(host: Host, table_size: int | None = None) -> Tracking:
    """Track the connections of ``host`` from now on, in a table of ``table_size`` of them; CannotError if it cannot be.

    Called again it begins anew: with an empty table, a counter at zero and without a bypass.
    """
    if table_size is not None and table_size < 1:
        raise ValueError(f"a table of {table_size} connections")
    if table_size is None:
        new = "ct state new accept"
    else:
        new = f'ct state new ct count over {table_size} counter name "{_COUNTER}" drop'
    # What goes over the loopback was new when it was sent: it is asked once. Both hooks share one rule, so one table.
    _apply(
        host,
        f"""
        {_remove()}
        table inet {TABLE} {{
          counter {_COUNTER} {{ }}
          chain new_connections {{
            {new}
          }}
          chain arriving {{
            type filter hook prerouting priority {_AFTER}; policy accept;
            iifname != "lo" jump new_connections
          }}
          chain leaving {{
            type filter hook output priority {_AFTER}; policy accept;
            jump new_connections
          }}
        }}
        """,
    )
    tracking = host.tracking = Tracking(host, table_size)
    return tracking


def bypass(host: Host, ports: Sequence[int] = ()) -> None:
    """Take connections to and from these ports (none given: all) out of the tracking of ``host``: the remedy.

    In nft's words ``notrack``, in iptables' ``-j NOTRACK``. A container behind a bridge needs tracking: its published
    ports are translated by it. CannotError when the kernel refuses.
    """
    if ports:
        wanted = "{ " + ", ".join(str(int(port)) for port in ports) + " }"
        rules = [f"meta l4proto {{ tcp, udp }} th {end} {wanted} notrack" for end in ("dport", "sport")]
    else:
        rules = ["notrack"]
    lines = "\n".join(f"            {rule}" for rule in rules)
    chains = "\n".join(
        f"""
          chain bypass_{hook} {{
            type filter hook {hook} priority {_BEFORE}; policy accept;
{lines}
          }}"""
        for hook in ("prerouting", "output")
    )
    _apply(host, f"table inet {TABLE} {{{chains}\n        }}\n")


def find_nft() -> str:
    """Where nft(8) is; CannotError with the remedy when it is not installed."""
    program = shutil.which("nft", path=search_path())
    if program is None:
        raise CannotError("`nft` is missing; install nftables (apt-get install nftables)")
    return program


def _remove() -> str:
    """Remove the table, also where there is none: nft carries out the whole text or nothing of it."""
    return f"table inet {TABLE}\n        delete table inet {TABLE}\n"


def nft(host: Host, *arguments: str, refused: str, script: str = "") -> str:
    """Run nft(8) in a host; what it printed. CannotError when it fails: ``refused``, with its words in the braces."""
    program = find_nft()
    with host.inside():
        done = subprocess.run(
            [program, *arguments], input=script, capture_output=True, text=True, check=False, timeout=20
        )
    if done.returncode != 0:
        words = " ".join(done.stderr.split())
        raise CannotError(f"host {host.name}: {refused.format(words)}")
    return done.stdout


def _apply(host: Host, script: str) -> None:
    """Carry out a text of nft(8): the whole of it, or nothing when a part is refused."""
    nft(host, "-f", "-", script=script, refused=_REFUSED)
