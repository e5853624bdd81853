"""One row of a run's ``resources``: what a process, or the devices of a host, had used at a moment."""

from __future__ import annotations

from typing import TypedDict


class Reading(TypedDict, total=False):
    """The columns of ``store.schema.RESOURCES`` (docs/resources.md); what was not told is None or left out."""

    trial: str
    time_ns: int
    process: str
    cpu_ns: int | None
    rss_bytes: int | None
    threads: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    run_delay_ns: int | None
    cgroup_memory_bytes: int | None
    cgroup_cpu_ns: int | None
    received_bytes: int | None
    received_packets: int | None
    sent_bytes: int | None
    sent_packets: int | None
