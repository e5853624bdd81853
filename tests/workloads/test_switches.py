"""Switches of the transports through the whole lab: what each does to a trial, as it is seen from outside.

A path of 40 ms counts round trips: what a switch adds or takes away is a round trip or more, and no machine is as slow.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.workloads import drive
from trifecta.store.run import RunDirectory

pytestmark = pytest.mark.lab
TRIP_NS = 40_000_000
SETTINGS = [
    "path=far", "paths.far={rtt: 40 ms}", "server=origin", "budget=2 min", "blocks.at_least=1", "blocks.at_most=1",
    "in_flight=1", "warmup=1 requests", "conformance=off", "give_up=false",
]  # fmt: skip
Rows = dict[tuple[str, str], list[dict[str, Any]]]


def measured(folder: Path, switch: str, levels: str, *more: str) -> Rows:
    """The trials of a study with these levels, by protocol and level; parity holds in each."""
    code, _, _, errors = drive.finish(folder / "run", set=[*SETTINGS, *more, f"{switch}={levels}"])
    assert code == 0, errors
    rows: Rows = {}
    for row in RunDirectory.open(folder / "run").rows():
        assert (row["error"], row["error_classes_json"]) == (None, "{}")
        failed = [one["evidence"] for one in json.loads(row["checks_json"]) if one["status"] == "fail"]
        assert not [
            one for one in json.loads(row["checks_json"]) if (one["check"], one["status"]) == ("parity", "fail")
        ], failed
        key = (row["protocol"], str(json.loads(row["factors_json"])[switch]))
        rows.setdefault(key, []).append(row)
    return rows


def took(rows: Rows, protocol: str, level: str) -> float:
    """The median of a trial's requests in round trips, of its quickest trial: what else the machine does adds to it."""
    return min(row["latency_p50_ns"] for row in rows[protocol, level]) / TRIP_NS


def test_a_small_initial_window_takes_more_round_trips(tmp_path: Path) -> None:
    rows = measured(tmp_path, "initial_window", "10,2", "connection=new", "response=30 kB", "requests=4")
    for protocol in ("h1", "h2", "h3"):
        assert took(rows, protocol, "2") > took(rows, protocol, "10") + 0.9
    windows = {key: {_window(row) for row in found} for key, found in rows.items()}
    assert windows["h3", "2"] == {2905}
    assert windows["h2", "2"] == {2 * 1448}


def _window(row: dict[str, Any]) -> int:
    load = json.loads(row["load_json"])
    return int((load["tcp"] or load["quic"])["initial_window_bytes"])


def test_what_is_paced_takes_longer(tmp_path: Path) -> None:
    """After ten responses a window holds another whole: off, it is there a round trip later."""
    more = ("connection=reused", "response=200 kB", "requests=8", "warmup=4 requests")
    rows = measured(tmp_path, "pacing", "on,off", *more)
    for protocol in ("h2", "h3"):
        assert took(rows, protocol, "on") > took(rows, protocol, "off") + 0.15
    paced = {
        level: {json.loads(row["load_json"])["tcp"]["paced"] for row in rows["h2", level]} for level in ("on", "off")
    }
    assert paced == {"on": {True}, "off": {False}}


@pytest.mark.parametrize(
    ("switch", "level", "response", "trips"),
    [("stream_window", "16 kB", "400 kB", 12), ("connection_window", "65535 B", "1 MB", 5)],
)
def test_a_small_window_of_flow_control_takes_many_round_trips(
    tmp_path: Path, switch: str, level: str, response: str, trips: int
) -> None:
    more = ("connection=reused", f"response={response}", "requests=2")
    rows = measured(tmp_path, switch, f"none,{level}", *more)
    name = {key[1] for key in rows if key[1] != "none"}.pop()
    for protocol in ("h2", "h3"):
        assert took(rows, protocol, name) > took(rows, protocol, "none") + trips
    assert took(rows, "h1", name) < took(rows, "h1", "none") + trips, "HTTP/1.1 has none"


def test_small_records_take_more_octets(tmp_path: Path) -> None:
    """A record has 22 octets besides its plaintext: of 100 octets each, a fifth more."""
    rows = measured(tmp_path, "tls_record", "none,100 B", "connection=reused", "response=100 kB", "requests=4")
    octets = {key: max(json.loads(row["load_json"])["wire_bytes_in"] for row in found) for key, found in rows.items()}
    for protocol in ("h1", "h2"):
        assert octets[protocol, "100 B"] > 1.18 * octets[protocol, "none"]
    assert octets["h3", "100 B"] < 1.1 * octets["h3", "none"], "QUIC has no such records"


def test_a_client_that_waits_before_tls_takes_so_much_longer_over_tcp(tmp_path: Path) -> None:
    """200 ms are five round trips beside the three that a request takes; QUIC has no gap to wait in, and takes two."""
    rows = measured(tmp_path, "tls_wait", "none,200 ms", "connection=new", "response=1 kB", "requests=4")
    for protocol in ("h1", "h2"):
        assert 2.9 < took(rows, protocol, "none") < 7.9 < took(rows, protocol, "200 ms") < 12.9, "it waits once"
    assert 1.9 < took(rows, "h3", "200 ms") < 6.9


def test_smaller_packets_are_more_packets(tmp_path: Path) -> None:
    """Of 1280 octets instead of 1500 it takes a sixth more."""
    rows = measured(tmp_path, "mtu", "1500,1280", "connection=reused", "response=500 kB", "requests=4")
    for protocol in ("h1", "h2", "h3"):
        windows = {level: {_window(row) for row in rows[protocol, level]} for level in ("1500", "1280")}
        least, most = min(windows["1280"]), max(windows["1500"])
        assert 0.84 < least / most < 0.86, "ten packets of each"


def test_a_small_buffer_loses_what_a_large_one_holds(tmp_path: Path) -> None:
    """Half a megabyte at once, of a sender without a pace, does not fit into 8 kB."""
    more = ("connection=reused", "response=500 kB", "requests=6", "pacing=off", "initial_window=300")
    more += ("protocol=h3", "baseline=h3")
    rows = measured(tmp_path, "udp_buffer", "16 MB,8 kB", *more)
    dropped = {
        key[1]: [json.loads(row["load_json"])["udp_receive_errors"] for row in found] for key, found in rows.items()
    }
    small = next(counts for level, counts in dropped.items() if level != "16 MB")
    assert max(dropped["16 MB"]) == 0 < min(small)


def test_a_large_threshold_takes_nothing_overtaken_for_lost(tmp_path: Path) -> None:
    """Every fifth packet is 2 ms ahead of its time, and overtakes what the rate let go before it.

    By more, round trips would differ by more than the eighth that loss detection by time allows (RFC 9002, 6.1.2).
    """
    path = "paths.far={rtt: 40 ms, rate: 200 Mbit/s, queue: 500 packets, reorder: {probability: 20 %, gap: 2 ms}}"
    more = (path, "connection=reused", "method=POST", "request=200 kB", "response=1 kB", "requests=6")
    rows = measured(tmp_path, "packet_threshold", "3,1000", *more)
    lost = {key: [json.loads(row["load_json"])["quic"]["lost_packets"] for row in found]
            for key, found in rows.items() if key[0] == "h3"}  # fmt: skip
    assert max(lost["h3", "1000"]) < min(lost["h3", "3"])
    told = {key: {json.loads(row["load_json"])["tcp"]["packet_threshold"] for row in found}
            for key, found in rows.items() if key[0] == "h2"}  # fmt: skip
    assert told == {("h2", "3"): {3}, ("h2", "1000"): {1000}}


def test_a_window_that_restarts_takes_more_round_trips_after_a_rest(tmp_path: Path) -> None:
    """A request a second and 100 kB for an answer: 70 packets are one window, or 10, 20 and 40."""
    more = ("connection=reused", "response=100 kB", "loop=open", "rate=1/s", "requests=3", "warmup=2 requests")
    rows = measured(tmp_path, "idle_window", "keep,restart", *more)
    for protocol in ("h1", "h2", "h3"):
        assert took(rows, protocol, "restart") > took(rows, protocol, "keep") + 0.9


def test_without_segmentation_by_the_kernel_every_datagram_is_a_send(tmp_path: Path) -> None:
    """The kernel counts what it is handed (UdpOutDatagrams), not what it cuts from it."""
    rows = measured(tmp_path, "segmentation_offload", "on,off", "connection=reused", "response=100 kB", "requests=6")
    sends = _sends(rows, "server")
    assert sends["off"] > 6 * 70 > 2 * sends["on"]


def test_rare_acknowledgements_are_few_packets(tmp_path: Path) -> None:
    more = ("connection=reused", "response=500 kB", "requests=6")
    rows = measured(tmp_path, "ack_packets", "2,50", *more)
    sends = _sends(rows, "client")
    assert sends["50"] < sends["2"] / 2


def test_late_acknowledgements_hold_up_a_small_window(tmp_path: Path) -> None:
    """Of a window of one packet or three the last is acknowledged late, flight after flight."""
    more = ("connection=new", "response=30 kB", "requests=4", "initial_window=2", "ack_packets=1000", "protocol=h2,h3")
    rows = measured(tmp_path, "ack_delay", "1 ms,25 ms", *more)
    assert took(rows, "h3", "25 ms") > took(rows, "h3", "1 ms") + 0.5
    assert abs(took(rows, "h2", "25 ms") - took(rows, "h2", "1 ms")) < 0.5, "TCP has its own"


def _sends(rows: Rows, host: str) -> dict[str, int]:
    """What a host handed its kernel over HTTP/3, by level; the kernel counts no more of it (UdpOutDatagrams)."""
    return {
        level: max(json.loads(row["machine_json"])["transport"][host]["counters"]["UdpOutDatagrams"] for row in found)
        for (protocol, level), found in rows.items()
        if protocol == "h3"
    }
