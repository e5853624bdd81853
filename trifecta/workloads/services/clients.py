"""Clients of a fan-in that are programs of their own: they begin together, and what they say becomes one summary.

Every client has one request in flight and writes rows of its own, with numbers that no other has (`contract.services`).
Joined, a trial has the files and the summary of one program with as many clients: whatever reads them knows no other.
"""
# Statements are put together from constants and a quoted path.
# ruff: noqa: S608

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from trifecta.contract.common import TcpSummary
from trifecta.contract.load import ClientsSummary, LoadReady, LoadSummary
from trifecta.contract.services import Begin, ClientPlacement, ServicesLoadConfig
from trifecta.implementations.services import rows
from trifecta.lab.engine import EngineError, EngineProgram
from trifecta.store import parquet

READY_S = 15.0
HEAD_START_NS = 50_000_000  # to tell all of them when to begin: 200 take a tenth of it


def configs_of(config: ServicesLoadConfig, clients: int) -> list[ServicesLoadConfig]:
    """What each client is asked, from what one program with so many ``clients`` would be."""
    samples, spans = Path(str(config.samples_file)), Path(str(config.spans_file))
    return [
        replace(
            config,
            connections=1,
            streams=1,
            warmup_requests=config.warmup_requests // clients,
            samples_file=str(rows.lines_of(samples, number)),
            spans_file=str(rows.lines_of(spans, number)),
            among=ClientPlacement(number=number, of=clients),
        )
        for number in range(clients)
    ]


def work_together(
    clients: Sequence[EngineProgram],
    config: ServicesLoadConfig,
    timeout_s: float,
    stop: Callable[[], bool],
    tick: Callable[[], None],
) -> list[LoadSummary]:
    """Set all clients to work at one time and wait for each.

    EngineError when one of them does not do its work: then the others are ended, and write nothing any more.
    """
    try:
        return _work_together(clients, configs_of(config, len(clients)), timeout_s, stop, tick)
    except EngineError:
        for client in clients:
            client.close()
        raise


def _work_together(
    clients: Sequence[EngineProgram],
    configs: Sequence[ServicesLoadConfig],
    timeout_s: float,
    stop: Callable[[], bool],
    tick: Callable[[], None],
) -> list[LoadSummary]:
    for client, own in zip(clients, configs, strict=True):
        client.configure(own)
    for client in clients:
        client.wait_ready(LoadReady, READY_S, stop)
    begin_ns = time.monotonic_ns() + HEAD_START_NS
    for client in clients:
        client.configure(Begin(begin_ns=begin_ns))
    if time.monotonic_ns() > begin_ns:
        raise EngineError("clients", None, f"could not be told within {HEAD_START_NS // 10**6} ms to begin together")
    deadline = time.monotonic() + timeout_s
    summaries = []
    for client, own in zip(clients, configs, strict=True):
        summaries.append(client.wait_summary(LoadSummary, max(0.0, deadline - time.monotonic()), stop, tick))
        for file in (own.samples_file, own.spans_file):
            client.get(Path(str(file)))
    return summaries


def joined(summaries: Sequence[LoadSummary], samples: Path) -> LoadSummary:
    """The summaries of all clients as that of one program, whose rows are in ``samples``.

    CPU time and memory are added up (pages that processes share count in each), ``busy_ratio`` with it.
    """
    first = summaries[0]
    started_ns, ended_ns = min(one.started_ns for one in summaries), max(one.ended_ns for one in summaries)
    busy_ns = sum(one.busy_ratio * (one.ended_ns - one.started_ns) for one in summaries)
    declared = dict(first.declared or {})
    if "retried" in declared:
        declared["retried"] = sum(cast(int, (one.declared or {})["retried"]) for one in summaries)
    return replace(
        first,
        samples=sum(one.samples for one in summaries),
        errors=sum(one.errors for one in summaries),
        ended=next((one.ended for one in summaries if one.ended != "requests"), "requests"),
        started_ns=started_ns,
        ended_ns=ended_ns,
        measured_ns=_measured_ns(samples),
        clients=_at_begin([one.clients for one in summaries if one.clients is not None and one.clients.begun]),
        cpu_user_ns=sum(one.cpu_user_ns for one in summaries),
        cpu_system_ns=sum(one.cpu_system_ns for one in summaries),
        max_rss_bytes=_sum(one.max_rss_bytes for one in summaries),
        connections_opened=_sum(one.connections_opened for one in summaries),
        connections_lost_idle=_sum(one.connections_lost_idle for one in summaries),
        key_exchange=_single_value([one.key_exchange for one in summaries]),
        tcp=_tcp([one.tcp for one in summaries if one.tcp is not None]),
        busy_ratio=busy_ns / max(1, ended_ns - started_ns),
        dns_ns=max((one.dns_ns for one in summaries if one.dns_ns is not None), default=None),
        declared=declared,
    )


def _measured_ns(samples: Path) -> int:
    (row,) = parquet.select(
        "SELECT coalesce(max(done_ns) - min(started_ns), 0) AS measured_ns "
        f"FROM {parquet.scan([samples])} WHERE NOT warmup"
    )
    return max(0, int(row["measured_ns"]))


def _at_begin(summaries: Sequence[ClientsSummary]) -> ClientsSummary:
    return ClientsSummary(
        begun=sum(one.begun for one in summaries),
        first_begun_ns=min((one.first_begun_ns for one in summaries), default=0),
        last_begun_ns=max((one.last_begun_ns for one in summaries), default=0),
    )


def _tcp(summaries: Sequence[TcpSummary]) -> TcpSummary | None:
    """As one program says it; the smoothed round trip is the median of theirs."""
    if not summaries:
        return None
    return replace(
        summaries[0],
        connections=sum(one.connections for one in summaries),
        min_rtt_ns=min((one.min_rtt_ns for one in summaries if one.min_rtt_ns is not None), default=None),
        srtt_ns=sorted(one.srtt_ns for one in summaries)[len(summaries) // 2],
        retransmits=sum(one.retransmits for one in summaries),
        congestion_window_bytes=max(one.congestion_window_bytes for one in summaries),
        congestion_control=_single_value([one.congestion_control for one in summaries]),
        mss_bytes=min(one.mss_bytes for one in summaries),
        nodelay=None if any(one.nodelay is None for one in summaries) else all(one.nodelay for one in summaries),
    )


def _single_value(values: Sequence[str | None]) -> str | None:
    """What all of them say; several answers stand beside each other, so that the checks see them."""
    return "/".join(sorted({one for one in values if one is not None})) or None


def _sum(values: Iterable[int | None]) -> int | None:
    """None where one of them does not know."""
    known = list(values)
    return None if None in known else sum(one for one in known if one is not None)
