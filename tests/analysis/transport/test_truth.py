"""Losses, retransmissions and blocking over a link that drops exactly the packets it is told to: exact, not about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analysis.transport.scripted import LATE, Transfer, transfer
from tests.engine.netns import ENGINE, Hosts, can_make_namespaces
from trifecta.analysis.transport.attribution import attribute
from trifecta.analysis.transport.blocking import Blocking, blocking
from trifecta.analysis.transport.parts import CONGESTION, FLOW, LOSS, PROPAGATION, REST, TRANSMISSION
from trifecta.analysis.transport.recovery import Recovery, recovery

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built"),
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (scripts/setup.sh dev)"),
    pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces are not allowed here"),
]


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts() as hosts:
        yield hosts


def recovered(one: Transfer) -> Recovery:
    """Loss recovery of the server, compared with the link's log and the octets of the capture."""
    found, notes = recovery(one.tables())
    down = next(each for each in found if each.direction == "down")
    assert notes == []
    assert down.lost == len(one.lost(1))
    assert down.lost_by_fate.get("lost", 0) == sum(down.lost_by_fate.values()) == len(one.lost(1))
    again, needless = one.repeats() if down.transport == "tcp" else one.quic_repeats()
    assert (down.retransmissions, down.spurious) == (len(again), len(needless))
    assert (down.by_acknowledgement or 0) + (down.by_probe or 0) + (down.by_timeout or 0) == len(again)
    sent = {each.number: each for each in one.down}
    for repair in down.repairs:
        assert sent[repair.number].ordinal in one.lost(1)
        assert repair.sent_ns == sent[repair.number].sent_ns
        assert repair.repaired_by is not None
        assert repair.repaired_ns == sent[repair.repaired_by].arrived_ns < LATE
    return down


def waited(one: Transfer) -> Blocking:
    """Blocking of every request, compared octet by octet."""
    found = blocking(one.tables())
    assert found.notes == []
    truth = one.blocking()
    down = [each for each in found.requests if each.direction == "down"]
    assert len(down) == 2
    for each in down:
        mine = {"own": each.by_own_ns, "records": each.by_records_ns, "others": each.by_others_ns}
        assert mine == truth[each.stream]
    return found


def split(one: Transfer) -> None:
    """Every request's parts add up to its load time, from its first to its last octet at the client."""
    found, _ = attribute(one.tables())
    messages = {row["request"]: row for row in one.dissection.messages.to_pylist()}
    assert len(found) == 2
    for each in found:
        assert sum(each.parts.values()) == each.whole_ns
        assert each.whole_ns == messages[each.request]["response_end_ns"] - messages[each.request]["request_start_ns"]


def test_http_2_one_loss_holds_up_the_other_stream(hosts: Hosts, tmp_path: Path) -> None:
    # Responses go one after the other: near the end of the first, so that octets of the second are behind the hole.
    one = transfer(hosts, tmp_path, "h2", down=[36])
    assert one.lost(1) == [36]
    down = recovered(one)
    assert (down.lost_carrying, down.retransmissions, down.spurious, down.by_acknowledgement) == (1, 1, 0, 1)
    found = waited(one)
    (hole,) = found.holes
    (whose,) = hole.streams
    others = {each.stream: each.by_others_ns for each in found.requests if each.direction == "down"}
    # What waits is the stream whose octets these are not: from its first record that is there as a whole until the
    # repair. How much comes behind a hole before it is closed is the congestion window's business.
    assert others.pop(whose) == 0
    (repair,) = down.repairs
    assert repair.repaired_ns is not None
    (other,) = others
    behind = one.behind_ns(repair.number, other)
    assert min(behind) < repair.repaired_ns
    if one.torn(repair.number, other):  # of a record with DATA of both: the other waits for a record of its own
        records = {each.stream: each.by_records_ns for each in found.requests if each.direction == "down"}
        assert others[other] == 0 < records[other]
    else:
        assert others[other] == repair.repaired_ns - min(behind)
    split(one)


def test_http_2_several_losses(hosts: Hosts, tmp_path: Path) -> None:
    one = transfer(hosts, tmp_path, "h2", down=[16, 17, 30, 44, 45])
    assert recovered(one).lost == 5
    assert len(waited(one).holes) >= 3
    split(one)


def test_http_3_a_loss_holds_up_its_own_stream_only(hosts: Hosts, tmp_path: Path) -> None:
    one = transfer(hosts, tmp_path, "h3", down=[20])
    down = recovered(one)
    assert (down.lost_carrying, down.spurious) == (1, 0)
    found = waited(one)
    (hole,) = found.holes
    waits = {each.stream: each.by_own_ns for each in found.requests if each.direction == "down"}
    assert hole.waited == hole.streams
    assert hole.filled_ns is not None
    assert waits.pop(hole.streams[0]) == hole.filled_ns - hole.opened_ns > 0
    assert set(waits.values()) == {0}
    assert all(each.by_others_ns == each.by_records_ns == 0 for each in found.requests)
    split(one)


def test_http_3_several_losses(hosts: Hosts, tmp_path: Path) -> None:
    one = transfer(hosts, tmp_path, "h3", down=[14, 15, 40, 60])
    assert recovered(one).lost == 4
    waited(one)
    split(one)


def test_http_1_waits_for_itself(hosts: Hosts, tmp_path: Path) -> None:
    one = transfer(hosts, tmp_path, "h1", down=[20])
    assert recovered(one).retransmissions == 1
    found = blocking(one.tables())
    assert [each.by_others_ns for each in found.requests] == [0, 0, 0, 0]
    assert max(each.by_own_ns for each in found.requests) > 39_000_000
    split(one)


def test_lost_acknowledgements_make_a_sender_repeat_what_had_arrived(hosts: Hosts, tmp_path: Path) -> None:
    # The handshake and the requests pass, then eight packets of the client do not.
    one = transfer(hosts, tmp_path, "h2", up=list(range(8, 16)))
    down = recovered(one)
    assert down.lost == 0
    assert down.spurious == down.retransmissions
    assert (down.spurious or 0) > 0
    assert down.by_acknowledgement == 0
    assert (down.probes or 0) + (down.timeouts or 0) > 0
    assert down.repairs == []
    waited(one)


LARGE = {"streams": 1, "requests": 1, "path": "/bytes/1000000", "expect_body_bytes": 1_000_000}


def parts_of(one: Transfer) -> tuple[dict[str, int], int]:
    """Of the only request, and its time."""
    (found,), notes = attribute(one.tables(), setup=False)
    assert notes == []
    return found.parts, found.whole_ns


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_round_trips_of_slow_start_are_the_congestion_windows(hosts: Hosts, tmp_path: Path, protocol: str) -> None:
    one = transfer(hosts, tmp_path, protocol, delay_ms=40, **LARGE)
    parts, whole = parts_of(one)
    # A flight, and silence until it is acknowledged: as many round trips as there are flights but the first.
    (row,) = one.dissection.messages.to_pylist()
    asked = row["request_start_ns"] + 40_000_000
    times = [each.sent_ns for each in one.down if each.tcp[1] > 0 and each.sent_ns > asked]
    times = [at for at in times if at < row["response_end_ns"] - 39_000_000]  # the server says goodbye, too
    flights, begun = 1, times[0]
    for at in times:  # not by silences: a host that is short of CPU time may fall silent within a flight
        if at - begun > 79_000_000:
            flights, begun = flights + 1, at
    assert flights >= 4
    waited = (flights - 1) * 80_000_000
    assert 0.99 * waited < parts[CONGESTION] < 1.05 * waited  # a host that is short of CPU time lengthens a round
    assert parts[PROPAGATION] == pytest.approx(80_000_000, rel=0.01)
    assert parts[TRANSMISSION] == parts[LOSS] == parts[FLOW] == 0
    assert parts[REST] < whole / 10


def test_a_paced_sender_waits_for_its_congestion_window_too(hosts: Hosts, tmp_path: Path) -> None:
    parts, whole = parts_of(transfer(hosts, tmp_path, "h3", delay_ms=40, **LARGE))
    assert parts[PROPAGATION] == pytest.approx(80_000_000, rel=0.01)
    assert parts[CONGESTION] > whole / 2
    assert parts[REST] < whole / 10


@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_at_the_rate_of_the_link_all_octets_are_transmission(hosts: Hosts, tmp_path: Path, protocol: str) -> None:
    rate = 20_000_000
    one = transfer(hosts, tmp_path, protocol, delay_ms=10, rate_bits_per_s=rate, **LARGE)
    parts, whole = parts_of(one)
    asked = min(row["request_start_ns"] for row in one.dissection.messages.to_pylist()) + 10_000_000
    octets = sum(len(each.octets) for each in one.down if each.sent_ns > asked and each.arrived_ns < LATE)
    assert parts[TRANSMISSION] == pytest.approx(octets * 8 * 10**9 / rate, rel=0.02)
    assert parts[PROPAGATION] == pytest.approx(20_000_000, rel=0.05)
    assert parts[REST] < whole / 10


def test_a_small_response_is_propagation(hosts: Hosts, tmp_path: Path) -> None:
    parts, whole = parts_of(
        transfer(hosts, tmp_path, "h2", delay_ms=40, streams=1, requests=1, path="/bytes/1000", expect_body_bytes=1000)
    )
    assert parts[PROPAGATION] == pytest.approx(80_000_000, rel=0.01) == pytest.approx(whole, rel=0.4)
    assert parts[CONGESTION] == parts[TRANSMISSION] == 0


@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_packets_that_overtake_others_are_taken_for_losses(hosts: Hosts, tmp_path: Path, protocol: str) -> None:
    # TCP waits a quarter of a round trip and two ticks of the kernel's timer (RFC 8985, 6.2): less than these 50 ms.
    one = transfer(hosts, tmp_path, protocol, overtaking=0.1, delay_ms=60)
    down = recovered(one)
    assert (down.lost, down.repairs) == (0, [])
    assert down.reordered == len(one.late()) > 0
    assert down.spurious == down.retransmissions
    assert down.reordered_taken_for_lost == len(one.taken_for_lost()) > 0
    waited(one)
