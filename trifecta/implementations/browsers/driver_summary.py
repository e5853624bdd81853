"""How a trial of a browser went, as its worker told it, and the summary of its driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trifecta.contract.common import Declared
from trifecta.contract.errors import ErrorClass
from trifecta.contract.load import Ended, LoadSummary
from trifecta.implementations.browser import CRASHED, HUNG, Job
from trifecta.implementations.browsers import visit_traffic
from trifecta.implementations.browsers.records import VisitRecord


@dataclass
class TrialRecord:
    """How a trial went, as the worker told it."""

    began_ns: int
    ended_ns: int = 0
    why: Ended | Literal["hung"] = "requests"
    """``requests`` (all visits were made), ``total_timeout``, ``status`` (somebody elsewhere asked for patience),
    ``crashed``, ``hung``, ``signal``, ``stdin``."""
    records: list[VisitRecord] = field(default_factory=list)
    version: str = ""
    cpu_ns: tuple[int, int] = (0, 0)
    stray_lookups: int | None = None


LOST: dict[str, ErrorClass] = {
    "total_timeout": "timeout", "crashed": CRASHED, "hung": HUNG, "signal": "interrupted", "stdin": "interrupted",
    "requests": CRASHED, "status": "status",
}  # fmt: skip
"""What the visits that were not made have for an error."""


def summary(name: str, job: Job, course: TrialRecord, declared: Declared) -> LoadSummary:
    """The summary of docs/architecture.md, section 1.1."""
    measured = [record for record in course.records if not record.warmup]
    ends = [_end_ns(record) for record in measured]
    left_out: dict[str, int] = {}
    for record in course.records:
        for fetch in record.fetches:
            if fetch.missing:
                left_out[fetch.url] = left_out.get(fetch.url, 0) + 1
    far = job.elsewhere is not None
    started = min(record.visit.started_ns for record in measured)
    return LoadSummary(
        trial=job.trial,
        client=name,
        version=course.version,
        declared=declared,
        samples=len(measured),
        errors=sum(record.visit.error is not None for record in measured),
        visits=len(measured),
        ended="crashed" if course.why == "hung" else course.why,
        exit_code=0,
        started_ns=started,
        ended_ns=max(ends),
        measured_ns=max(0, max(ends) - started),
        wall_ns=course.ended_ns - course.began_ns,
        program_started_ns=course.began_ns,
        program_ended_ns=course.ended_ns,
        cpu_user_ns=course.cpu_ns[0],
        cpu_system_ns=course.cpu_ns[1],
        busy_ratio=sum(course.cpu_ns) / max(1, course.ended_ns - course.began_ns),
        connections_opened=sum(record.visit.connections or 0 for record in course.records),
        left_out=left_out,
        stray_lookups=course.stray_lookups,
        requests_made=sum(len(visit_traffic.sent_fetches(record.fetches)) for record in course.records)
        if far
        else None,
        octets_about=sum(visit_traffic.octets(record.fetches) for record in course.records) if far else None,
        response_fields=visit_traffic.fields(course.records) if far else None,
        max_rss_bytes=None,
        schedule_lag_ns=None,
        missed_slots=None,
        connections_lost_idle=None,
        wire_bytes_out=None,
        wire_bytes_in=None,
        key_exchange=None,
        tcp=None,
        quic=None,
        udp_receive_errors=None,
    )


def _end_ns(record: VisitRecord) -> int:
    """When a visit ended, as far as is known."""
    visit = record.visit
    ends = [fetch.done_ns for fetch in record.fetches if fetch.done_ns is not None]
    ends += [visit.started_ns + length for length in (visit.load_ns, visit.watched_ns) if length is not None]
    return max(ends, default=visit.started_ns)
