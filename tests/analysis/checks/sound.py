"""The evidence of a sound trial, and ways to spoil it."""

import dataclasses
from dataclasses import dataclass, field
from types import MappingProxyType

from tests.analysis.worlds import one_cell_study
from trifecta.analysis.checks import TRIAL_CHECKS
from trifecta.analysis.checks.evidence import Evidence
from trifecta.design import plan
from trifecta.design.model import CheckResult, PathSpec, RequestsWorkload

RTT_NS = 50_000_000
LOSSY = (
    {"kind": "loss", "probability": 0.02},
    {"kind": "rate", "bits_per_s": 20_000_000, "queue_bytes": 125_000},
    {"kind": "delay", "delay_ns": RTT_NS // 2},
)
PATH = PathSpec(name="clean", rtt_ns=RTT_NS, rate_bits_per_s=20_000_000, loss=0.02, forward=LOSSY, backward=LOSSY)
PLAIN = PathSpec(name="clean", rtt_ns=RTT_NS, forward=LOSSY[2:], backward=LOSSY[2:])


@dataclass(frozen=True)
class Facts:
    samples: int = 200
    warmup_samples: int = 20
    warmup_errors: dict = field(default_factory=dict)
    protocols: dict = field(default_factory=lambda: {"h3": 200})
    tls_versions: dict = field(default_factory=lambda: {"1.3": 200})
    ciphers: dict = field(default_factory=lambda: {"TLS_AES_128_GCM_SHA256": 200})
    statuses: dict = field(default_factory=lambda: {"200": 200})
    bytes_in: dict = field(default_factory=lambda: {1000: 200})
    errors: dict = field(default_factory=dict)
    handshakes: dict = field(default_factory=lambda: {"full": 200})
    first_half_p50_ns: float | None = 52e6
    second_half_p50_ns: float | None = 51e6
    in_flight_when_due: float | None = None


DIRECTION = MappingProxyType(
    {
        "wire_packets": 10_000,
        "delivered": 9_797,
        "out_of_order": 0,
        "lost": 200,
        "queue_dropped": 3,
        "delay_asked_ns": RTT_NS // 2,
        "delay_given_ns": {"p50": 26_000_000, "p99": 60_000_000, "max": 80_000_000},
        "lateness_ns": {"p50": 20_000, "p90": 40_000, "p99": 70_000, "max": 300_000},
        "rate_given_bits_per_s": 19_950_000.0,
        "rate_busy_ns": 6_000_000_000,
        "device_drops": 0,
        "send_errors": 0,
    }
)
LINK = MappingProxyType(
    {
        "a_to_b": DIRECTION,
        "b_to_a": DIRECTION,
        "cpu_user_ns": 100_000_000,
        "cpu_system_ns": 200_000_000,
        "wall_ns": 1_000_000_000,
        "run_delay_ns": 1_000_000,
    }
)
LOAD = MappingProxyType(
    {
        "ended": "requests",
        "started_ns": 1_010,
        "ended_ns": 1_000_000_000,
        "busy_ratio": 0.4,
        "run_delay_ns": 10_000_000,
        "udp_receive_errors": 0,
        "missed_slots": 0,
        "measured_ns": 950_000_000,
        "longest_gap_ns": 1_500_000,
        "handshakes": {"chains": [{"certificates": 1, "octets": 520, "connections": 200}], "flights": {"1": 200}},
        "schedule_lag_ns": {"p50": 10_000, "p90": 50_000, "p99": 90_000, "max": 200_000},
        "key_exchange": "X25519",
        "tcp": None,
        "quic": {"congestion_control": "cubic", "initial_window_bytes": 14_720},
    }
)
TCP = MappingProxyType({"congestion_control": "cubic", "initial_window_bytes": 14_480, "nodelay": True})
PROBE = MappingProxyType(
    {
        "sent": 200,
        "received": 192,
        "loss_forward": 0.02,
        "loss_backward": 0.02,
        "rtt_ns": {"p50": 50_150_000},
        "largest_payload_bytes": 1472,
        "rate_bits_per_s": 20_100_000.0,
    }
)
MACHINE = MappingProxyType(
    {
        "cpus": 2,
        "steal_share": 0.0,
        "other_cpu_share": 0.02,
        "resolution": 0.01,
        "pressure_share": {"cpu": 0.2, "memory": 0.0, "io": 0.0},
        "cpu_mhz": [2500.0, 2501.0],
    }
)
HOST = MappingProxyType(
    {
        "counters": {"UdpRcvbufErrors": 0, "TcpExtListenDrops": 0, "UdpInErrors": 0, "TcpExtDelayedACKs": 3},
        "conntrack": {"drop": 0, "early_drop": 0, "insert_failed": 0, "entries": 0, "max": 262_144, "limit": None},
        "devices": {"eth0": {"rx_drops": 0, "tx_drops": 0, "rx_errors": 0, "tx_errors": 0}},
    }
)
TRANSPORT = MappingProxyType({"client": dict(HOST), "server": dict(HOST), "softnet_drops": 0})
SERVER = MappingProxyType({"congestion_control": {"tcp": "cubic", "quic": "cubic"}, "tcp_nodelay": True})


def evidence(arm="h3", path=PATH, workload=None, metric="latency_p50_ns", program=None, **changes):
    """A sound trial, but for the changes."""
    base = RequestsWorkload(requests=220, response_bytes=1000, warmup_requests=20)
    workload = workload or base
    program = program or ("services" if workload.family == "services" else "origin")
    study = one_cell_study(program, paths={"clean": path}, workload=workload, metric=metric)
    trial = next(t for t in plan.block_trials(study, plan.cells(study)[0], 0, 7) if t.arm == arm)
    row = {"started_ns": 1_000, "ended_ns": 1_000_001_000, "latency_p50_ns": 52_000_000}
    given = {
        "samples": Facts(protocols={trial.protocol: 200}),
        "load": LOAD if trial.protocol == "h3" else LOAD | {"quic": None, "tcp": TCP},
        "link": LINK,
        "server": SERVER,
        "probe": PROBE,
        "machine": MACHINE,
        "transport": TRANSPORT,
        "facts": {"clocksource": "tsc"},
    }
    return Evidence(study=study, trial=trial, row=row, **(given | changes))


def judge(name, *args, **changes):
    results = TRIAL_CHECKS[name].function(evidence(*args, **changes))
    assert len(results) == 1
    result = results[0]
    assert isinstance(result, CheckResult)
    assert (result.check, result.scope) == (name, evidence(*args, **changes).trial.trial)
    if result.status in ("fail", "warn"):
        assert result.remedy or name in ("errors", "path", "headroom"), result
    return result


def facts(**changes):
    return dataclasses.replace(Facts(), **changes)


def link(**changes):
    return LINK | {"a_to_b": DIRECTION | changes}
