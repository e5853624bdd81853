"""What a trial cost each of its programs, by 1,000 requests and by MB: from readings of resources and the trial's row.

Readings begin before the first request of the warm-up and end after the last request, so the warm-up's requests and
octets are counted too. A failed request counts: it cost something. MB are 10^6 octets of content that the client sent
and received (RFC 9110, 6.4); what a service passes on to others is not added again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from trifecta.contract.resources import Reading
from trifecta.contract.trial import TrialRow

_MEGABYTE = 1_000_000
# Counters that run since the program began: what a trial used is the last reading less the first.
_COUNTERS = (
    "cpu_ns",
    "voluntary_switches",
    "involuntary_switches",
    "run_delay_ns",
    "cgroup_cpu_ns",
    "received_bytes",
    "received_packets",
    "sent_bytes",
    "sent_packets",
)
_LEVELS = ("rss_bytes", "threads", "cgroup_memory_bytes")


@dataclass(frozen=True)
class Usage:
    """What one process, or one host's devices, used between its first and last reading; None: not told.

    ``counted`` has the growth of the counters of docs/resources.md, ``peak`` the largest of the levels seen.
    """

    process: str
    readings: int
    span_ns: int
    counted: Mapping[str, int | None]
    peak: Mapping[str, int | None]

    @property
    def cpu_share(self) -> float | None:
        """CPU time as a share of one core's, over the time between the readings."""
        cpu_ns = self.counted["cpu_ns"]
        return cpu_ns / self.span_ns if cpu_ns is not None and self.span_ns else None


@dataclass(frozen=True)
class Cost:
    """A process's usage by the work that the trial did; None where usage or work is not known, or there was none."""

    usage: Usage
    requests: int
    content_bytes: int | None

    def per_1000_requests(self, counter: str) -> float | None:
        """Growth of a counter by 1,000 requests of the client, in the counter's unit."""
        return self._by(counter, self.requests / 1000)

    def per_mb(self, counter: str) -> float | None:
        """Growth of a counter by MB of content, in the counter's unit."""
        return self._by(counter, (self.content_bytes or 0) / _MEGABYTE)

    def _by(self, counter: str, work: float) -> float | None:
        used = self.usage.counted[counter]
        return used / work if used is not None and work else None


def usages(rows: Iterable[Reading]) -> dict[str, Usage]:
    """Usage by process of the readings of *one* trial, in any order."""
    by_process: dict[str, list[Reading]] = {}
    for row in rows:
        by_process.setdefault(str(row["process"]), []).append(row)
    return {process: _usage(process, readings) for process, readings in by_process.items()}


def _usage(process: str, rows: Sequence[Reading]) -> Usage:
    readings = sorted(rows, key=lambda row: int(row["time_ns"]))
    return Usage(
        process=process,
        readings=len(readings),
        span_ns=int(readings[-1]["time_ns"]) - int(readings[0]["time_ns"]),
        counted={name: _growth(_told(readings, name)) for name in _COUNTERS},
        peak={name: max(_told(readings, name), default=None) for name in _LEVELS},
    )


def _told(readings: Sequence[Reading], name: str) -> list[int]:
    """The readings that tell it: the last one of a process that just ended has its CPU time and nothing else."""
    values = (cast(Mapping[str, int | None], row).get(name) for row in readings)
    return [int(value) for value in values if value is not None]


def _growth(values: Sequence[int]) -> int | None:
    return values[-1] - values[0] if len(values) > 1 else None


def work(trial: TrialRow) -> tuple[int, int | None]:
    """Requests of the client in a trial, and octets of content, warm-up included.

    A trial's row counts octets after the warm-up only; those of the warm-up are taken to be as many a request. None:
    requests were made, but none after the warm-up.
    """
    measured = int(trial.get("samples") or 0)
    load = json.loads(trial.get("load_json") or "null") or {}
    requests = int(load.get("samples") or measured)
    octets = int(trial.get("bytes_in") or 0) + int(trial.get("bytes_out") or 0)
    if not measured:
        return requests, None if requests else 0
    return requests, round(octets * requests / measured)
