"""What is read of a NetLog, also while it is being written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.implementations.browsers.net_log import NetLog
from trifecta.implementations.visit import Fetch

TYPES = {"SSL_CONNECT": 60, "QUIC_SESSION_TRANSPORT_PARAMETERS_RESUMED": 61, "QUIC_SESSION_ZERO_RTT_STATE": 62}
FIRST = (
    json.dumps({"constants": {"logEventTypes": TYPES | {"OTHER": 6}}}, separators=(",", ":"))[:-1] + ',\n"events": [\n'
)


def event(kind: int, source: int, params=None) -> str:
    said = {"params": params, "phase": 2, "source": {"id": source, "type": 1}, "time": "1", "type": kind}
    return json.dumps(said, separators=(",", ":")) + ",\n"


def test_it_is_read_as_it_grows(tmp_path):
    path = tmp_path / "net.json"
    log = NetLog(path)
    log.read()  # not there yet
    whole = (
        FIRST + event(60, 1) + event(60, 1, {"is_resumed": True}) + event(6, 9) + event(60, 2, {"is_resumed": False})
    )
    path.write_text(whole + event(62, 3, {"state": "NotAttempted"})[:20])
    log.read()
    assert (log.resumed, log.zero_rtt) == ({1: True, 2: False}, {1: False, 2: False})
    more = event(62, 3, {"state": "NotAttempted"}) + event(61, 4, {}) + event(62, 4, {"state": "AttemptedAndSucceeded"})
    path.write_text(whole + more)
    log.read()
    # Without 0-RTT Chromium does not log whether QUIC resumed.
    assert (log.resumed.get(3), log.zero_rtt[3], log.resumed[4], log.zero_rtt[4]) == (None, False, True, True)
    fetches = [Fetch("a", 1, connection=4), Fetch("b", 1, connection=5), Fetch("c", 1)]
    log.tell(fetches)
    assert [(each.resumed, each.zero_rtt) for each in fetches] == [(True, True), (None, None), (None, None)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("netlog")


@given(st.binary(), st.lists(st.binary()))
def test_nothing_in_it_harms(folder, head, lines):
    path = folder / "net.json"
    path.write_bytes(head + b"\n" + FIRST.encode() + b"\n".join(line + b'"type":60}' for line in lines) + b"\n")
    NetLog(path).read()
