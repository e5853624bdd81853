"""tshark is given whole TLS records; what it tells of them must be what it tells of the segments."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from trifecta.trace import tshark_input
from trifecta.trace.dissect import dissect
from trifecta.trace.dissection import Dissection
from trifecta.trace.segments import Stream

CAPTURES = Path(__file__).parent / "captures"


def stream(*ends: int) -> Stream:
    end = np.asarray(ends, dtype=np.int64)
    start = np.concatenate([[1], end[:-1]])
    return Stream(start, end, start + 1000, np.arange(len(end)), None)


def cut(of: Stream, *records: int) -> list[tuple[int, int, int]]:
    columns = tshark_input._cut(of, np.asarray(records, dtype=np.int64))
    return list(zip(*(one.tolist() for one in columns), strict=True))


def test_a_packet_has_the_records_that_its_segment_completes() -> None:
    segments = stream(11, 21, 31, 41, 51)
    # Records end in the second segment, twice in the third, with the fourth; the fifth begins one without an end.
    assert cut(segments, 15, 24, 30, 41) == [(1, 1, 15), (2, 15, 30), (3, 30, 41), (4, 41, 51)]
    assert cut(segments) == [(0, 1, 11), (1, 11, 21), (2, 21, 31), (3, 31, 41), (4, 41, 51)]
    assert cut(segments, 11, 21, 31, 41, 51) == cut(segments)
    assert cut(stream(60_001, 70_001), 65_000) == [(0, 1, 60_001), (1, 60_001, 70_001)]  # would not fit with a rest


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_records_and_segments_tell_the_same(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    def tables() -> Dissection:
        return dissect([CAPTURES / f"{protocol}.pcapng"], CAPTURES / f"{protocol}.keys")

    records = tables()
    whole = tshark_input._cut
    monkeypatch.setattr(tshark_input, "_cut", lambda of, _: whole(of, None))
    segments = tables()
    for name in ("frames", "messages", "connections"):
        assert getattr(records, name).equals(getattr(segments, name)), name
    # Only tshark's line may say that a record goes on in the next segment.
    assert records.packets.drop_columns(["info"]).equals(segments.packets.drop_columns(["info"]))
