"""What a path adds to the probe's packets by its rate, and what it takes away."""

from __future__ import annotations

from typing import Any

import pytest

from trifecta.contract.probe import MeasureConfig
from trifecta.design.document import Document
from trifecta.design.impairments import missing_share
from trifecta.design.model import PathSpec
from trifecta.design.paths import read_path
from trifecta.design.probe_packets import least_interval_ns, sending_ns
from trifecta.workloads.probing import measure_config


def path(**fields: Any) -> PathSpec:
    return read_path("p", Document(fields, "test").root())[0]


@pytest.mark.parametrize(
    ("fields", "ip", "sending", "interval"),
    [
        ({"rtt": "20 ms"}, "IPv4", 0, 1_000_000),
        ({"rate": "1 Mbit/s"}, "IPv4", 2 * 848_000, 2 * 848_000),
        ({"rate": "1 Mbit/s"}, "IPv6", 2 * 1_008_000, 2 * 1_008_000),
        ({"rate": {"forward": "1 Mbit/s", "backward": "16 Mbit/s"}}, "IPv4", 901_000, 2 * 848_000),
        ({"rate": "100 Mbit/s"}, "IPv4", 16_960, 1_000_000),
        ({"trace": {"opportunities": [0, 40, 55, 90, 160]}}, "IPv4", 4_480_845, 4_480_845),
    ],
)
def test_a_packet_takes_its_octets_by_the_rate(fields: dict, ip: str, sending: int, interval: int) -> None:
    spec = path(**fields)
    assert sending_ns(spec, ip) == sending
    assert least_interval_ns(spec, ip, 1_000_000) == interval


def test_a_slow_path_gets_fewer_packets_so_that_a_probe_stays_short() -> None:
    def asked(rate: str) -> MeasureConfig:
        return measure_config(path(rtt="20 ms", rate=rate), "10.0.0.1", first=True)

    assert (asked("10 Mbit/s").packets, asked("10 Mbit/s").interval_ns) == (200, 1_000_000)
    assert asked("100 kbit/s").packets * asked("100 kbit/s").interval_ns <= 5_000_000_000
    assert asked("100 kbit/s").packets == 200
    assert asked("10 kbit/s").packets == 29


@pytest.mark.parametrize(
    ("fields", "share"),
    [
        ({}, 0.0),
        ({"loss": "2 %"}, 0.02),
        ({"loss": "2 %", "corrupt": "10 %"}, 1 - 0.98 * 0.9),
        ({"gilbert_elliott": {"good_to_bad": "1 %", "bad_to_good": "30 %"}}, 1 / 31),
        ({"duplicate": "5 %"}, 0.0),
        ({"loss_schedule": [3, 7]}, None),
    ],
)
def test_what_reaches_no_program_is_lost_or_damaged(fields: dict, share: float | None) -> None:
    found = missing_share(path(**fields).forward)
    assert found is None if share is None else found == pytest.approx(share)
