"""qlog files of the engine, put right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace import qvis
from trifecta.trace.qlog import mend

HEAD = {
    "qlog_version": "0.3", "qlog_format": "JSON-SEQ", "title": "t00001",
    "trace": {"vantage_point": {"type": "unknown"}, "title": "t00001", "configuration": {"time_offset": 0.0}},
}  # fmt: skip


def event(name: str, data: dict[str, Any], group: str = "abcd") -> dict[str, Any]:
    return {"time": 1.5, "name": name, "data": data, "group_id": group}


SENT = event("transport:packet_sent", {"header": {"packet_type": "1RTT", "packet_number": 7, "length": 1452}})
METRICS = event(
    "recovery:metrics_updated", {"smoothed_rtt": 0.0413, "congestion_window": 14520, "ssthresh": 2**64 - 1}, "ef"
)
LOST = event(
    "recovery:packet_lost",
    {"header": {"packet_type": "1RTT", "packet_number": 7, "length": 9}, "trigger": "reordering_threshold"},
)


def write(file: Path, *records: dict[str, Any], end: str = "") -> Path:
    file.write_text("".join("\x1e" + json.dumps(each, separators=(",", ":")) + "\n" for each in records) + end)
    return file


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().replace("\x1e", "").splitlines()]


def test_what_the_engine_writes_becomes_what_it_claims(tmp_path: Path) -> None:
    file = write(tmp_path / "a.sqlog", HEAD, SENT, METRICS, LOST, end='\x1e{"time":2,"na')
    assert mend(file, "client")
    head, sent, metrics, lost = read(file)
    assert head["trace"]["vantage_point"] == {"name": "trifecta", "type": "client"}
    assert head["trace"]["common_fields"] == {
        "protocol_type": ["QUIC"], "time_format": "relative", "reference_time": 0, "group_id": "abcd",
    }  # fmt: skip
    assert (head["qlog_version"], head["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert sent["data"] == {"header": {"packet_type": "1RTT", "packet_number": 7}, "raw": {"length": 1452}}
    assert metrics["data"] == {"smoothed_rtt": 41.3, "congestion_window": 14520}
    assert lost["data"] == {"header": {"packet_type": "1RTT", "packet_number": 7}, "raw": {"length": 9}}
    assert all("group_id" not in each for each in (sent, metrics, lost))
    assert [each["time"] for each in (sent, metrics, lost)] == [1.5] * 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.sqlog"]
    assert not qvis.complaints(file)
    assert set(qvis.complaints(write(tmp_path / "raw.sqlog", HEAD, SENT, METRICS))) == {
        "group_id: one connection is taken for several",
        "vantage_point",
    }


def test_the_file_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    other = {**HEAD, "trace": {"vantage_point": {"name": "ngtcp2", "type": "client"}}}
    file = write(tmp_path / "b.sqlog", other, SENT)
    before = file.read_bytes()
    assert not mend(file, "client")
    assert file.read_bytes() == before
    assert mend(write(file, HEAD, SENT), "server")
    assert not mend(file, "server")  # once is enough


@given(data=st.binary(max_size=200), headed=st.booleans())
def test_any_octets_are_taken(tmp_path_factory: pytest.TempPathFactory, data: bytes, headed: bool) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzzed.sqlog"
    file.write_bytes((b"\x1e" + json.dumps(HEAD).encode() + b"\n\x1e" if headed else b"") + data)
    assert mend(file, "client") == headed
