"""The table of servers: a new one is a file in ``servers/`` and a line here."""

from __future__ import annotations

from trifecta.implementations.server import ServerAdapter
from trifecta.implementations.servers.caddy import Caddy
from trifecta.implementations.servers.origin import Origin

SERVERS: dict[str, ServerAdapter] = {adapter.name: adapter for adapter in (Origin(), Caddy())}
