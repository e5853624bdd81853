"""What qvis asks of a qlog file: its loader's rules (quiclog/qvis, textsequencejsontoqlog.ts and QlogLoaderV2.ts)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VERSIONS = ("draft-02", "draft-02-RC1", "qlog-03-WIP", "0.3")
PACKET_TYPES = ("initial", "handshake", "0RTT", "1RTT", "retry", "version_negotiation", "stateless_reset", "unknown")
CATEGORIES = ("connectivity", "security", "transport", "recovery", "http", "qpack", "error", "info", "simulation")
# Names of later drafts (draft-ietf-quic-qlog-quic-events-12): qvis takes them and draws nothing of them.
CATEGORIES += ("quic", "http3")


def load(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The head and the events of a text sequence (RFC 7464), or of one JSON text with one trace."""
    text = file.read_text(encoding="utf-8")
    if text.startswith("\x1e"):
        head, *events = (json.loads(one) for one in text.split("\x1e")[1:])
        return head, events
    whole = json.loads(text)
    (trace,) = whole["traces"]
    return {**whole, "trace": trace}, trace["events"]


def complaints(file: Path) -> list[str]:
    """What qvis would refuse, or alert its user of."""
    head, events = load(file)
    found = []
    if head.get("qlog_version") not in VERSIONS:
        found.append(f"qlog_version {head.get('qlog_version')}")
    if head.get("qlog_format") not in ("JSON", "JSON-SEQ"):
        found.append(f"qlog_format {head.get('qlog_format')}")
    if head.get("trace", {}).get("vantage_point", {}).get("type") not in ("client", "server"):
        found.append("vantage_point")
    if any("group_id" in one for one in events):
        found.append("group_id: one connection is taken for several")
    times = [float(one["time"]) for one in events]
    if times != sorted(times):
        found.append("times are not in order")
    for one in events:
        category, _, name = one["name"].partition(":")
        if category not in CATEGORIES or not name:
            found.append(f"name {one['name']}")
        header = one.get("data", {}).get("header", {})
        if {"packet_size", "payload_length"} & set(header) or "packet_type" in one["data"]:
            found.append(f"fields of older drafts in {one['name']}")
        if name in ("packet_sent", "packet_received") and header.get("packet_type") not in PACKET_TYPES:
            found.append(f"packet_type {header.get('packet_type')}")
    return sorted(set(found))
