"""Counters of /proc: what kernels print, and what they never should."""

from __future__ import annotations

import os
import random
import time

import pytest

from trifecta.observers.kernel_text import (
    parse_conntrack,
    parse_counters,
    parse_devices,
    parse_pairs,
    parse_softnet_drops,
)
from trifecta.observers.machine import MachineObserver, static_facts
from trifecta.observers.resources import ResourceObserver, rss_bytes, run_delay_ns

SNMP = "Udp: InDatagrams RcvbufErrors\nUdp: 12 3\nTcp: RetransSegs MaxConn\nTcp: 7 -1\n"
DEVICES = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"  # noqa: E501
    "  eth0:  1000      10    1    2    0     0          0         0     2000      20    3    4    0     0       0          0\n"  # noqa: E501
)


def test_counters_are_paired_by_protocol() -> None:
    assert parse_counters(SNMP) == {
        "Udp": {"InDatagrams": 12, "RcvbufErrors": 3},
        "Tcp": {"RetransSegs": 7, "MaxConn": -1},
    }


def test_devices() -> None:
    assert parse_devices(DEVICES) == {
        "eth0": {
            "rx_bytes": 1000, "rx_packets": 10, "rx_errors": 1, "rx_drops": 2,
            "tx_bytes": 2000, "tx_packets": 20, "tx_errors": 3, "tx_drops": 4,
        }
    }  # fmt: skip


def test_counters_of_ipv6_stand_one_a_line() -> None:
    text = "Udp6InDatagrams                 \t12\nUdp6RcvbufErrors\t3\nodd line here\nIp6X\t-\n"
    assert parse_pairs(text) == {"Udp6InDatagrams": 12, "Udp6RcvbufErrors": 3}


def test_counters_of_connection_tracking_are_summed_over_cpus_but_the_entries() -> None:
    text = "entries  clashres drop early_drop\n0000000c  00000001 00000002 00000000\n"
    text += "0000000c  00000000 0000000a 00000001\n"
    assert parse_conntrack(text) == {"entries": 12, "clashres": 1, "drop": 12, "early_drop": 1}
    assert parse_conntrack("") == {}


def test_softnet_drops_are_summed_over_cpus() -> None:
    assert parse_softnet_drops("0000abcd 00000002 00000000\n00000001 0000000a 00000000\n") == 12


def test_odd_text_is_never_an_error_in_counters() -> None:
    generator = random.Random(7)
    for _ in range(500):
        text = list(SNMP)
        for _ in range(generator.randrange(1, 6)):
            text[generator.randrange(len(text))] = generator.choice("\n :-x0\t")
        parse_counters("".join(text))


def test_the_real_files_of_this_machine_parse() -> None:
    with open("/proc/net/snmp") as file:  # noqa: PTH123
        assert "RetransSegs" in parse_counters(file.read())["Tcp"]


def test_resources_follow_a_process() -> None:
    observer = ResourceObserver("t00001", {"client": os.getpid(), "gone": 2**22 - 3})
    observer.sample()
    until = time.process_time_ns() + 20_000_000
    while time.process_time_ns() < until:
        pass
    observer.sample()
    used = observer.cpu_used_ns("client")
    assert used is not None
    assert used >= 20_000_000
    assert observer.cpu_used_ns("gone") is None
    assert {row["process"] for row in observer.rows} == {"client"}
    assert (observer.peak_rss_bytes("client") or 0) > 1 << 20


def test_a_process_that_is_gone_has_no_memory_and_no_delay() -> None:
    assert rss_bytes(2**22 - 3) is None
    assert run_delay_ns(2**22 - 3) is None


def test_the_machine_is_seen_to_be_busy() -> None:
    observer = MachineObserver()
    observer.begin(time.monotonic_ns(), 0)
    until = time.process_time_ns() + 300_000_000
    while time.process_time_ns() < until:
        pass
    seen = observer.end(time.monotonic_ns(), 0)
    # as `own` was given as 0, this process counts as another
    assert seen["other_cpu_share"] * seen["wall_ns"] > 200e6
    assert 0 <= seen["steal_share"] <= seen["cpus"]
    assert seen["resolution"] == pytest.approx(1e9 / os.sysconf("SC_CLK_TCK") / seen["wall_ns"])


def test_static_facts_name_the_machine() -> None:
    facts = static_facts()
    assert facts["kernel"].startswith("Linux ")
    assert facts["cpus"] >= 1
    assert facts["memory_bytes"] > 1 << 20
