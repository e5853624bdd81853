"""What was seen of the machine around a trial, and of its hosts: ``machine_json`` (docs/architecture.md, 2.1)."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class StaticFacts(TypedDict):
    """What does not change during a run; None is what this machine does not tell."""

    kernel: str
    architecture: str
    cpu_model: str | None
    cpus: int | None
    cpus_allowed: int
    memory_bytes: int | None
    virtual_machine: bool
    clocksource: str | None
    governor: str | None
    distribution: str | None


class ChronyTracking(TypedDict):
    """What chronyd says of a host's CLOCK_REALTIME (chronyc(1), tracking); None is what it does not tell."""

    said: str
    """Why it gives no bound; empty where it does."""
    stratum: int | None
    """None: no chronyd answered."""
    correction_ns: int | None
    """How far the clock is behind (or, negative, ahead of) what chronyd takes for the time, and is being moved."""
    root_delay_ns: int | None
    root_dispersion_ns: int | None
    bound_ns: int | None
    """How far the clock can be from the time of the servers: correction, dispersion, and half of the delay."""


class HostClock(TypedDict, total=False):
    """A host's clock by its chronyd, before a run and after it."""

    before: ChronyTracking
    after: ChronyTracking


class BroughtEngine(TypedDict):
    """Which program was started on a host."""

    sha256: str
    linkage: Literal["static", "shared"]
    """``shared``: it needs a C library there."""


class HostFacts(TypedDict):
    """What a host by SSH says of itself, for ``run.json``; None is what it does not tell."""

    at: str
    """As the study has it."""
    address: str
    """At which the other host finds it."""
    kernel: str | None
    architecture: str | None
    distribution: str | None
    cpu_model: str | None
    cpus: int | None
    clocksource: str | None
    udp_receive_limit_bytes: int | None
    udp_send_limit_bytes: int | None
    congestion_controls: list[str]
    """Those that its user may ask for over TCP."""
    tcp_remembers: bool | None
    """Whether a connection begins with what the kernel kept of one before it (net.ipv4.tcp_no_metrics_save is 0)."""
    free_bytes: int | None
    """Where working folders are."""
    clock: NotRequired[HostClock]
    engine: NotRequired[BroughtEngine]


class MachineShares(TypedDict):
    """What the machine did over a trial, in shares of one second of one CPU."""

    wall_ns: int
    steal_share: float | None
    other_cpu_share: float | None
    interrupt_share: float | None
    iowait_share: float | None
    resolution: float
    pressure_share: dict[str, float]
    load_average_1m: float | None
    cpu_mhz: list[float] | None
    cpus: int | None


class HostGrowth(TypedDict):
    """How much the counters of a host grew, by the kernel's names; ``conntrack`` has what there is now besides."""

    counters: dict[str, int]
    devices: dict[str, dict[str, int]]
    loopback: dict[str, int]
    conntrack: dict[str, int | None] | None


TransportGrowth = dict[str, HostGrowth | int | None]
"""By host; and ``softnet_drops``, packets dropped by the machine's backlog."""


class NetworkFacts(TypedDict):
    """Settings of the lab's kernel, for ``run.json``, and those that this kernel does not know."""

    settings: dict[str, str]
    unknown_settings: list[str]


class SamplerCost(TypedDict):
    """What reading the resources cost so far."""

    samples: int
    cpu_ns: int
    wall_ns: int
    share: float


class MachineFacts(MachineShares):
    """``machine_json`` of a trial."""

    transport: TransportGrowth
    sampler: SamplerCost
