"""Clients that are programs of their own: what each is asked, how they begin, and what becomes of what they say."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from trifecta.contract.common import TcpSummary
from trifecta.contract.load import ClientsSummary, ClosedLoop, LoadReady, LoadSummary
from trifecta.contract.services import Begin, ClientPlacement, ProgramConfig, ServicesLoadConfig
from trifecta.design.workloads.services import FanInWorkload
from trifecta.implementations.services import rows
from trifecta.lab.engine import EngineError
from trifecta.store import parquet
from trifecta.workloads.services import clients
from trifecta.workloads.services.clients import configs_of, joined, work_together
from trifecta.workloads.services.places import Place, PlacesContext, key_of

CONFIG = ServicesLoadConfig(
    trial="t00007",
    protocol="h2",
    port=8443,
    server_name="b.lab",
    ca_file="ca.pem",
    connections=3,
    connection_mode="new",
    loop=ClosedLoop(),
    requests_per_client=2,
    warmup_requests=6,
    method="GET",
    path="/chain",
    to="B",
    samples_file="samples/.tmp-t00007.jsonl",
    spans_file="spans/.tmp-t00007.jsonl",
    program=ProgramConfig(),
)
TCP = TcpSummary(
    connections=2,
    min_rtt_ns=5,
    srtt_ns=9,
    retransmits=1,
    congestion_window_bytes=14_000,
    congestion_control="cubic",
    mss_bytes=1448,
    nodelay=True,
    initial_window_bytes=None,
)
SUMMARY = LoadSummary(
    trial="t00007",
    samples=2,
    errors=0,
    ended="requests",
    started_ns=1_000,
    ended_ns=2_000,
    measured_ns=900,
    clients=ClientsSummary(begun=1, first_begun_ns=1_010, last_begun_ns=1_010),
    cpu_user_ns=300,
    cpu_system_ns=100,
    max_rss_bytes=10,
    schedule_lag_ns=None,
    missed_slots=None,
    connections_opened=2,
    connections_lost_idle=0,
    wire_bytes_out=None,
    wire_bytes_in=None,
    key_exchange="X25519",
    tcp=TCP,
    quic=None,
    udp_receive_errors=None,
    busy_ratio=0.5,
    declared={"certificate_verified": False, "retried": 1},
)


class Client:
    """A program that notes what it is told and when it is waited for; ``error`` ends it instead of its summary."""

    def __init__(self, number: int, noted: list[tuple[int, Any]], error: str = "") -> None:
        self.number, self.noted, self.error = number, noted, error

    def configure(self, config: Any) -> None:
        self.noted.append((self.number, config))

    def wait_ready(self, kind: type, timeout_s: float, stop: Callable[[], bool]) -> None:
        assert kind is LoadReady
        self.noted.append((self.number, "ready"))

    def wait_summary(self, kind: type, timeout_s: float, stop: Callable[[], bool], tick: Callable[[], None]) -> Any:
        assert kind is LoadSummary and 0 < timeout_s <= 30
        if self.error:
            raise EngineError(f"service A-{self.number}", -9, self.error)
        return replace(SUMMARY, samples=self.number)

    def get(self, path: Path) -> None:
        self.noted.append((self.number, path))

    def close(self) -> None:
        self.noted.append((self.number, "ended"))


def together(some: Sequence[Client]) -> list[LoadSummary]:
    return work_together(some, CONFIG, 30, lambda: False, lambda: None)  # type: ignore[arg-type]


def test_each_is_asked_for_one_clients_work_and_has_files_of_its_own() -> None:
    every = configs_of(CONFIG, 3)
    assert [one.among for one in every] == [ClientPlacement(number=number, of=3) for number in range(3)]
    assert {(one.connections, one.streams, one.requests_per_client, one.warmup_requests) for one in every} == {
        (1, 1, 2, 2)
    }
    assert [one.samples_file for one in every] == [f"samples/.tmp-t00007.{number}.jsonl" for number in range(3)]
    assert [one.spans_file for one in every] == [f"spans/.tmp-t00007.{number}.jsonl" for number in range(3)]


def test_all_are_ready_before_any_begins_and_all_begin_at_one_time() -> None:
    noted: list[tuple[int, Any]] = []
    before = time.monotonic_ns()
    told = together([Client(number, noted) for number in range(3)])
    assert [one.samples for one in told] == [0, 1, 2]
    assert [number for number, _ in noted[:9]] == [0, 1, 2] * 3
    configured, ready, begun = ([what for _, what in noted[place : place + 3]] for place in (0, 3, 6))
    assert configured == configs_of(CONFIG, 3)
    assert ready == ["ready"] * 3
    assert len({one.begin_ns for one in begun}) == 1
    assert isinstance(begun[0], Begin)
    assert before + clients.HEAD_START_NS <= begun[0].begin_ns <= time.monotonic_ns() + clients.HEAD_START_NS


def test_those_that_cannot_be_told_in_time_do_not_begin_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "HEAD_START_NS", -1)
    with pytest.raises(EngineError, match="to begin together"):
        together([Client(number, []) for number in range(2)])


def test_one_that_dies_is_named_and_the_others_are_ended() -> None:
    noted: list[tuple[int, Any]] = []
    with pytest.raises(EngineError, match="service A-1: was killed by signal 9"):
        together([Client(0, noted), Client(1, noted, "was killed by signal 9"), Client(2, noted)])
    assert noted[-3:] == [(number, "ended") for number in range(3)]


def write(path: Path, columns: Sequence[str], made: Sequence[Sequence[object]], *, whole: bool = True) -> None:
    lines: list[object] = [{"columns": columns}, *made, *([{"rows": len(made)}] if whole else [])]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


SAMPLE = ["request", "connection", "client", "warmup", "started_ns", "done_ns", "error"]
SPAN = ["request", "connection", "client", "warmup", "ordinal", "depth", "caller", "callee", "method", "path"]
SPAN += ["started_ns", "error"]


def written(folder: Path) -> tuple[Path, Path]:
    """What two clients write: the first a warm-up and two requests, the second one that failed."""
    samples, spans = folder / "s.parquet", folder / "p.parquet"
    own = {
        0: [[0, 0, 0, True, 5, 9, None], [2, 2, 0, False, 10, 19, None], [4, 4, 0, False, 20, 29, None]],
        1: [[1, 1, 1, True, 6, 8, None], [3, 3, 1, False, 12, None, "timeout"]],
    }
    for client, made in own.items():
        write(rows.lines_of(samples, client), SAMPLE, made)
        hops = [[*one[:4], 0, 0, "A", "B", "GET", "/chain", one[4], one[6]] for one in made]
        write(rows.lines_of(spans, client), SPAN, hops)
    return samples, spans


def test_rows_of_all_clients_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    samples, spans = written(tmp_path)
    rows.gather("t00007", samples, spans, 2)
    found = [(one["request"], one["client"], one["done_ns"], one["error"]) for one in parquet.read(samples)]
    assert found == [(0, 0, 9, None), (1, 1, 8, None), (2, 0, 19, None), (3, 1, None, "timeout"), (4, 0, 29, None)]
    assert [one["request"] for one in parquet.read(spans)] == [0, 1, 2, 3, 4]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["p.parquet", "s.parquet"]


def test_a_client_whose_rows_are_missing_or_not_whole_is_an_error(tmp_path: Path) -> None:
    samples, spans = written(tmp_path)
    write(rows.lines_of(samples, 1), SAMPLE, [[1, 1, 1, False, 6, 8, None]], whole=False)
    with pytest.raises(ValueError, match=r"s\.1\.jsonl has no end after 1 rows"):
        rows.gather("t00007", samples, spans, 2)
    rows.lines_of(samples, 1).unlink()
    with pytest.raises(FileNotFoundError):
        rows.gather("t00007", samples, spans, 2)


def test_nothing_is_left_of_a_trial_that_is_given_up(tmp_path: Path) -> None:
    samples, spans = written(tmp_path)
    rows.lines_of(samples).touch()
    samples.touch()
    rows.discard(samples, spans)
    assert not list(tmp_path.iterdir())


def test_what_clients_say_becomes_what_one_program_would(tmp_path: Path) -> None:
    samples, spans = written(tmp_path)
    rows.gather("t00007", samples, spans, 2)
    other = replace(
        SUMMARY,
        samples=1,
        errors=1,
        started_ns=1_500,
        ended_ns=3_000,
        clients=ClientsSummary(begun=1, first_begun_ns=1_505, last_begun_ns=1_505),
        max_rss_bytes=20,
        tcp=replace(TCP, min_rtt_ns=3, congestion_window_bytes=28_000),
        declared={"certificate_verified": False, "retried": 4},
        dns_ns=7,
    )
    one = joined([SUMMARY, other], samples)
    assert (one.samples, one.errors, one.ended) == (3, 1, "requests")
    assert (one.started_ns, one.ended_ns, one.measured_ns) == (1_000, 3_000, 19)
    assert one.clients == ClientsSummary(begun=2, first_begun_ns=1_010, last_begun_ns=1_505)
    assert (one.cpu_user_ns, one.cpu_system_ns, one.max_rss_bytes, one.connections_opened) == (600, 200, 30, 4)
    assert one.busy_ratio == pytest.approx((0.5 * 1_000 + 0.5 * 1_500) / 2_000)
    assert one.declared == {"certificate_verified": False, "retried": 5}
    assert (one.key_exchange, one.dns_ns) == ("X25519", 7)
    assert one.tcp == replace(TCP, connections=4, retransmits=2, min_rtt_ns=3, congestion_window_bytes=28_000)


def test_one_client_that_is_unlike_the_others_shows(tmp_path: Path) -> None:
    samples, spans = written(tmp_path)
    rows.gather("t00007", samples, spans, 2)
    odd = replace(
        SUMMARY,
        ended="total_timeout",
        key_exchange="secp256r1",
        clients=ClientsSummary(begun=0, first_begun_ns=0, last_begun_ns=0),
        tcp=replace(TCP, congestion_control="reno", nodelay=False),
        max_rss_bytes=None,
    )
    one = joined([SUMMARY, odd, SUMMARY], samples)
    assert (one.ended, one.key_exchange, one.max_rss_bytes) == ("total_timeout", "X25519/secp256r1", None)
    assert one.clients == ClientsSummary(begun=2, first_begun_ns=1_010, last_begun_ns=1_010)
    assert one.tcp is not None
    assert (one.tcp.congestion_control, one.tcp.nodelay) == ("cubic/reno", False)


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        (None, [("A", "host1", None)]),
        ("each", [("A", "host1", number) for number in range(5)]),
        ("3", [*(("A", "host1", number) for number in range(3)), ("A", "host3", 3), ("A", "host3", 4)]),
        ("9", [("A", "host1", number) for number in range(5)]),
    ],
)
def test_programs_are_started_on_the_hosts_of_their_clients(
    processes: str | None, expected: list[tuple[Any, ...]]
) -> None:
    workload = FanInWorkload(hosts=2, clients=5, client_processes=processes)
    place = Place(
        key_of(workload.graph, workload, linked=True),
        workload.graph,
        workload,
        PlacesContext(Path("engine"), {}, Path("run")),
    )
    starts = place.starts(workload)
    assert [(one.service, one.host, one.client) for one in starts] == [*expected, ("B", "host2", None)]
    assert len({one.name for one in starts}) == len(starts)
    hosts = list(dict.fromkeys(["host1", "host2", *(one.host for one in starts)]))
    assert list(place.topology.names) == hosts
    assert {wire.name for wire in place.links} == {f"{host}-host2" for host in hosts if host != "host2"}
