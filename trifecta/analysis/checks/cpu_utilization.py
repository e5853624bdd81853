"""How busy a program was: one answer for the checks, the sweeps of rates and whoever else asks.

The start of a foreign client is an interpreter's, with all that it imports. In a short trial that is most of its CPU
time and says nothing of how near to its limit the client was while it asked.
"""

from __future__ import annotations

from trifecta.contract.stored import Load, Server


def span_ns(load: Load) -> int:
    """How long the client did its work, in ns: from its first request to its last."""
    return int(load.get("ended_ns") or 0) - int(load.get("started_ns") or 0)


def client_busy(load: Load) -> float | None:
    """Share of a core that a client used from its first request to its last, without what its start took.

    ``start_cpu_ns`` is known of foreign clients where it was measured. Without it, and of the engine's own load, the
    share is that of its whole life; None where nothing was measured.
    """
    span = span_ns(load)
    user_ns, start_ns = load.get("cpu_user_ns"), load.get("start_cpu_ns")
    if start_ns is None or user_ns is None or span <= 0:
        busy = load.get("busy_ratio")
        return None if busy is None else float(busy)
    used_ns = user_ns + int(load.get("cpu_system_ns") or 0) - start_ns
    return max(0.0, used_ns / span)


def server_busy(server: Server, load: Load) -> float | None:
    """Share of a core that a server used while the client did its work; None where that was not measured."""
    span, cpu_ns = span_ns(load), server.get("cpu_ns")
    return None if cpu_ns is None or span <= 0 else cpu_ns / span
