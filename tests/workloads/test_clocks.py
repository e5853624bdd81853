"""The clocks of two hosts: by packets, by chronyd, by both, and by packets where these contradict each other."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trifecta.contract.common import Quantiles
from trifecta.contract.machine import ChronyTracking
from trifecta.contract.probe import MeasureSummary
from trifecta.design.tables import INT64, make_schema
from trifecta.store import parquet
from trifecta.workloads.hosts.clocks import Clocks, across_clocks

MS, HOUR = 10**6, 3_600 * 10**9
SINCE, AHEAD, WALL = 10**15, 5 * HOUR + 123, 1_764_202_000 * 10**9
COLUMNS = ("sent_ns", "reflected_in_ns", "reflected_out_ns", "received_ns")


def tracking(bound_ns: int | None, stratum: int | None = 2) -> ChronyTracking:
    said = "" if bound_ns is not None else "chronyd has no time yet (Not synchronised)"
    return {
        "said": said, "stratum": stratum, "correction_ns": 0, "root_delay_ns": 0, "root_dispersion_ns": bound_ns,
        "bound_ns": bound_ns,
    }  # fmt: skip


def measured(file: Path, *, off_ns: int = 0) -> MeasureSummary:
    """Packets that take 10 ms there and 30 ms back, to a clock that is hours ahead; wall clocks this far apart."""
    rows = []
    for number in range(20):
        sent = SINCE + number * MS
        came = sent + 10 * MS + AHEAD
        rows.append(dict(zip(COLUMNS, (sent, came, came + 100, came + 100 - AHEAD + 30 * MS), strict=True)))
    parquet.write(rows, make_schema(*((name, INT64) for name in COLUMNS)), file)
    times = Quantiles(min=1, p50=1, p90=1, p99=1, max=1)
    return MeasureSummary(
        sent=20, received=20, send_errors=0, ended="done", loss_forward=0.0, loss_backward=0.0, loss=0.0, rtt_ns=times,
        one_way_forward_ns=times, one_way_backward_ns=times, reordered=0, duplicates=0, reordered_forward=0,
        duplicates_forward=0, train_received=0, rate_bits_per_s=None, largest_payload_bytes=None,
        realtime_offset_ns=WALL - SINCE, realtime_bound_ns=100, far_realtime_bound_ns=200,
        far_realtime_offset_ns=WALL + off_ns - SINCE - AHEAD,
    )  # fmt: skip


@pytest.mark.parametrize(
    "told",
    [(), (tracking(MS), None), (tracking(MS), tracking(None)), (tracking(None, None), tracking(MS))],
)
def test_without_chronyd_on_both_the_bound_is_that_of_the_packets(tmp_path: Path, told: Any) -> None:
    file = tmp_path / "probe.parquet"
    found = across_clocks(measured(file), file, *told)
    assert not file.exists()
    assert (found.clock_offset_ns, found.clock_bound_ns) == (AHEAD - 10 * MS, 20 * MS)
    assert (found.clock_exchange_offset_ns, found.clock_exchange_bound_ns) == (AHEAD - 10 * MS, 20 * MS)
    assert found.clock_chrony_offset_ns is None
    assert (found.one_way_forward_ns.p50, found.one_way_backward_ns.p50) == (20 * MS, 20 * MS)


def test_where_chronyd_agrees_one_way_times_have_the_tighter_bound(tmp_path: Path) -> None:
    file = tmp_path / "probe.parquet"
    found = across_clocks(measured(file), file, tracking(MS), tracking(2 * MS))
    assert (found.clock_chrony_offset_ns, found.clock_chrony_bound_ns) == (AHEAD, 3 * MS + 300)
    assert (found.clock_offset_ns, found.clock_bound_ns) == (AHEAD, 3 * MS + 300)
    assert (found.one_way_forward_ns.p50, found.one_way_backward_ns.p50) == (10 * MS, 30 * MS)


def test_where_chronyd_contradicts_the_packets_these_are_believed_and_both_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "probe.parquet"
    found = across_clocks(measured(file, off_ns=60 * MS), file, tracking(MS), tracking(2 * MS))
    assert (found.clock_chrony_offset_ns, found.clock_chrony_bound_ns) == (AHEAD - 60 * MS, 3 * MS + 300)
    assert (found.clock_offset_ns, found.clock_bound_ns) == (AHEAD - 10 * MS, 20 * MS)
    assert (found.one_way_forward_ns.p50, found.one_way_backward_ns.p50) == (20 * MS, 20 * MS)


def test_a_host_without_chronyd_is_asked_once_and_one_without_time_again() -> None:
    asked: list[str] = []

    def host(name: str, told: ChronyTracking) -> Any:
        return SimpleNamespace(clock=lambda: asked.append(name) or told)

    machines = {"client": host("client", tracking(None, None)), "server": host("server", tracking(None))}
    clocks = Clocks(machines)
    assert clocks.ask() == clocks.ask() == {"client": tracking(None, None), "server": tracking(None)}
    assert asked == ["client", "server", "server"]
