"""How busy a program was: one answer for the checks, the sweeps of rates and whoever else asks.

The start of a foreign client is an interpreter's, with all that it imports. In a short trial that is most of its CPU
time and says nothing of how near to its limit the client was while it asked.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Document


def span_ns(load: Document) -> int:
    """How long the client did its work, in ns: from its first request to its last."""
    return int(load.get("ended_ns") or 0) - int(load.get("started_ns") or 0)


def client_busy(load: Document) -> float | None:
    """Share of a core that a client used from its first request to its last, without what its start took.

    ``start_cpu_ns`` is known of foreign clients where it was measured. Without it, and of the engine's own load, the
    share is that of its whole life; None where nothing was measured.
    """
    span = span_ns(load)
    if load.get("start_cpu_ns") is None or load.get("cpu_user_ns") is None or span <= 0:
        return None if load.get("busy_ratio") is None else float(load["busy_ratio"])
    used_ns = int(load["cpu_user_ns"]) + int(load.get("cpu_system_ns") or 0) - int(load["start_cpu_ns"])
    return max(0.0, used_ns / span)


def server_busy(server: Document, load: Document) -> float | None:
    """Share of a core that a server used while the client did its work; None where that was not measured."""
    span = span_ns(load)
    return None if server.get("cpu_ns") is None or span <= 0 else int(server["cpu_ns"]) / span
