"""The probe against paths whose faults are known exactly."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.engine.marks import IN_NAMESPACES
from tests.engine.netns import ENGINE, SERVER, Hosts

pytestmark = IN_NAMESPACES
MS = 1_000_000


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts() as hosts:
        yield hosts


def drop(*ordinals: int) -> list[dict[str, Any]]:
    return [{"kind": "loss_schedule", "drop": list(ordinals)}]


def test_loss_is_told_apart_by_direction(hosts: Hosts) -> None:
    with hosts.link(drop(3, 4, 5, 6, 7), drop(0, 1)):
        measured = hosts.probe(packets=100, timeout_ns=2000 * MS)
    assert measured["sent"] == 100
    assert measured["received"] == 93
    assert measured["loss_forward"] == 0.05
    assert measured["loss_backward"] == pytest.approx(2 / 95)
    assert measured["loss"] == 0.07


def test_duplicates_and_order_are_counted_on_each_way(hosts: Hosts) -> None:
    twice = [{"kind": "duplicate", "probability": 1.0}]
    with hosts.link(twice, []):
        measured = hosts.probe(packets=50)
    assert measured["duplicates_forward"] == 50
    early = [{"kind": "delay", "delay_ns": 20 * MS}, {"kind": "reorder", "probability": 0.3, "gap_ns": 15 * MS}]
    with hosts.link([], early, seed=2):
        measured = hosts.probe(packets=100)
    assert measured["reordered"] > 10
    assert measured["reordered_forward"] == 0
    assert measured["received"] == 100


def test_nobody_answers(hosts: Hosts) -> None:
    measure = {
        "role": "measure",
        "address": SERVER,
        "port": 9011,
        "packets": 20,
        "timeout_ns": 300 * MS,
        "largest": True,
    }
    with hosts.link():
        measured = hosts.start_engine("client", "probe", measure).wait()
    assert (measured["sent"], measured["received"], measured["loss"]) == (20, 0, 1.0)
    assert measured["loss_forward"] is None
    assert measured["rtt_ns"]["p50"] is None
    assert measured["largest_payload_bytes"] is None


def test_largest_payload_is_found_when_a_device_in_between_takes_less() -> None:
    with Hosts() as hosts:
        hosts.run("middle", ["ip", "link", "set", "ra", "mtu", "1300"])
        with hosts.link():
            measured = hosts.probe(packets=20, largest=True)
    # veth tolerates a VLAN tag of 4 octets beyond its MTU.
    assert 1300 - 28 <= measured["largest_payload_bytes"] <= 1300 - 28 + 4


def test_samples_hold_every_round_trip_in_order_of_time(hosts: Hosts, tmp_path: Path) -> None:
    file = tmp_path / "probe.parquet"
    delay = [{"kind": "delay", "delay_ns": 4 * MS}]
    with hosts.link(delay, delay):
        measured = hosts.probe(packets=30, samples_file=str(file))
    rows = pq.read_table(file).to_pylist()
    assert len(rows) == measured["received"] == 30
    for row in rows:
        assert row["sent_ns"] + 4 * MS <= row["reflected_in_ns"] <= row["reflected_out_ns"]
        assert row["reflected_out_ns"] + 4 * MS <= row["received_ns"]


def test_a_port_that_is_taken_is_said(hosts: Hosts) -> None:
    config = {"role": "reflect", "address": SERVER, "port": 9012}
    first = hosts.start_engine("server", "probe", config)
    second = subprocess.run(
        hosts.command("server", [str(ENGINE), "probe", "-"]),
        input=json.dumps(config) + "\n",
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert second.returncode == 3
    assert second.stderr.startswith("error: address: ")
    assert first.stop()["received"] == 0
