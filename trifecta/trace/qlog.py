"""qlog files of the engine put right: what its QUIC library (quinn-proto 0.11) writes is not quite what it claims.

It claims qlog 0.3 (draft-ietf-quic-qlog-main-schema-02 and quic-events-02) and writes round trips in s where ms are
asked for, lengths of packets where only a header's belongs, one connection under two group ids, times relative to a
start that it does not say, a slow start threshold of 2^64 - 1 for none, no side, and always the same reason for a loss.
A viewer believes all of that. Frames of packets it does not write: the capture has them.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

_RECORD = b"\x1e"  # RFC 7464
_GROUP = re.compile(rb',"group_id":"[0-9a-f]*"')
_LENGTH = re.compile(rb'("header":\{[^{}]*),"length":(\d+)\}')
_TRIGGER = re.compile(rb',"trigger":"[a-z_]*"')
_ROUND_TRIPS = ("min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance")
_NO_THRESHOLD = 1 << 53  # above, JSON numbers are not exact, and no window is


def mend(file: Path, side: str) -> bool:
    """Rewrite a file of the engine's, written by the ``client`` or the ``server``; others are left as they are.

    Whether it was one. A line that was cut off, when the program died, is left out.
    """
    with file.open("rb") as source:
        head = _record(source.readline())
        trace_head = head.get("trace") if head else None
        if head is None or not isinstance(trace_head, dict) or trace_head.get("vantage_point") != {"type": "unknown"}:
            return False
        draft = file.with_name(f".tmp-{file.name}")
        with draft.open("wb", buffering=1 << 20) as out:
            first, group = source.readline(), None
            if match := _GROUP.search(first):
                group = match[0].split(b'"')[3].decode()
            common: dict[str, Any] = {"protocol_type": ["QUIC"], "time_format": "relative", "reference_time": 0}
            trace = {"vantage_point": {"name": "trifecta", "type": side}, "title": head.get("title")}
            trace["common_fields"] = common | ({} if group is None else {"group_id": group})
            head_without_events = {"qlog_version": head.get("qlog_version"), "qlog_format": head.get("qlog_format")}
            out.write(_RECORD + _dumped({**head_without_events, "title": head.get("title"), "trace": trace}))
            for line in itertools.chain((first,), source):
                if line.startswith(_RECORD) and line.endswith(b"}\n"):
                    out.write(_event(line))
        draft.replace(file)
    return True


def _event(line: bytes) -> bytes:
    line = _GROUP.sub(b"", line)
    if b'"recovery:metrics_updated"' in line:
        event = _record(line)
        data = event.get("data") if event else None
        if event is None or not isinstance(data, dict):
            return b""
        for name in _ROUND_TRIPS:
            if isinstance(data.get(name), int | float):
                data[name] = round(data[name] * 1e3, 6)
        threshold = data.get("ssthresh")
        if isinstance(threshold, int) and threshold >= _NO_THRESHOLD:
            del data["ssthresh"]
        return _RECORD + _dumped(event)
    if b'"recovery:packet_lost"' in line:
        line = _TRIGGER.sub(b"", line)
    return _LENGTH.sub(rb'\1},"raw":{"length":\2}', line)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.removeprefix(_RECORD))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _dumped(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
