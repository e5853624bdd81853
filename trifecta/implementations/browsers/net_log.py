"""What only Chromium's NetLog tells: whether a connection resumed a session, and whether 0-RTT was accepted.

The log is one JSON object with one event a line, written while the browser runs; its lines are read as they come. The
``connectionId`` of the DevTools protocol is the ``source.id`` of the connection's socket, or QUIC session, in it
(net/base/load_timing_info.h, ``socket_log_id``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trifecta.implementations.visit import Fetch

_WANTED = ("SSL_CONNECT", "QUIC_SESSION_TRANSPORT_PARAMETERS_RESUMED", "QUIC_SESSION_ZERO_RTT_STATE")
_MOST_LINE = 1 << 24  # the constants are on one line of some 100 kB


class NetLog:
    """A log that is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._types: dict[int, str] = {}
        self._marks: tuple[bytes, ...] = ()
        self.resumed: dict[int, bool] = {}
        """Connections whose handshake was seen to end, by their id."""
        self.zero_rtt: dict[int, bool] = {}

    def read(self) -> None:
        """Take what has been written since the last time; nothing where there is no log yet."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read()
        except FileNotFoundError:
            return
        end = data.rfind(b"\n") + 1
        self._position += end
        for line in data[:end].splitlines():
            if not self._types:
                self._constants(line)
            elif any(mark in line for mark in self._marks):
                self._take(line)

    def tell(self, fetches: Iterable[Fetch]) -> None:
        """Put what is known of their connections into fetches; those still have the browser's ids of them."""
        for fetch in fetches:
            if isinstance(fetch.connection, int):
                fetch.resumed = self.resumed.get(fetch.connection)
                fetch.zero_rtt = self.zero_rtt.get(fetch.connection)

    def _constants(self, line: bytes) -> None:
        """The first line names the types of events."""
        try:
            document = json.loads(line.strip().rstrip(b",") + b"}") if len(line) < _MOST_LINE else {}
            types = document["constants"]["logEventTypes"]
            self._types = {int(types[name]): name for name in _WANTED if name in types}
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        self._marks = tuple(b'"type":%d}' % number for number in self._types)

    def _take(self, line: bytes) -> None:
        try:
            event: dict[str, Any] = json.loads(line.strip().rstrip(b",").removesuffix(b"]}"))
            name, source = self._types.get(event["type"]), int(event["source"]["id"])
            params = event.get("params") or {}
            if name == "SSL_CONNECT" and "is_resumed" in params:
                self.resumed[source] = bool(params["is_resumed"])
                self.zero_rtt.setdefault(source, False)  # Chromium sends none over TCP (its flag is off)
            elif name == "QUIC_SESSION_TRANSPORT_PARAMETERS_RESUMED":
                self.resumed[source] = True
            elif name == "QUIC_SESSION_ZERO_RTT_STATE":
                # Without 0-RTT the log does not say whether QUIC resumed: that stays unknown.
                self.zero_rtt[source] = params.get("state") == "AttemptedAndSucceeded"
        except (ValueError, KeyError, TypeError, AttributeError):
            return
