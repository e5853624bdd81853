"""What a share of a core meant for a trial's programs: recorded beside what they said themselves."""

from __future__ import annotations

from typing import Any

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

    def record(self, details: dict[str, Any]) -> None:
        """Add ``cpu_share``, and ``throttled_ns`` since the start, to the documents ``load`` and ``server``."""
        for name, group in self._groups.items():
            if details[name] is not None:
                throttled_ns = group.throttled_ns() - self._before_ns[name]
                details[name] |= {"cpu_share": group.share, "throttled_ns": throttled_ns}
