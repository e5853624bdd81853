"""What a share of a core meant for a trial's programs: recorded beside what they said themselves."""

from __future__ import annotations

from trifecta.contract.load import LoadSummary
from trifecta.contract.stored import Server
from trifecta.lab.cpu_share import CpuShare


class Limits:
    """The control groups of a trial's client and server, where these have a share of a core only."""

    def __init__(self, client: CpuShare | None, server: CpuShare | None) -> None:
        """Read what they have waited so far."""
        self._client = client
        self._groups = {name: group for name, group in (("load", client), ("server", server)) if group is not None}
        self._before_ns = {name: group.throttled_ns() for name, group in self._groups.items()}

    def add_client(self, pid: int) -> None:
        """Limit the client, where it is to be."""
        if self._client is not None:
            self._client.add(pid)

    def record(self, load: LoadSummary | None, server: Server) -> None:
        """Add ``cpu_share``, and ``throttled_ns`` since the start, to what is known of client and server."""
        for name, group in self._groups.items():
            throttled_ns = group.throttled_ns() - self._before_ns[name]
            if name == "server":
                server |= {"cpu_share": group.share, "throttled_ns": throttled_ns}
            elif load is not None:
                load.cpu_share, load.throttled_ns = group.share, throttled_ns
