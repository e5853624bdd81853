"""What a host by SSH can do, what is missing there, and the one command that mends each. Everything is tried."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from trifecta.contract.machine import ChronyTracking, HostFacts
from trifecta.design.errors import CannotError
from trifecta.design.machine import Machine
from trifecta.lab.doctor import DISK_BYTES, UDP_BUFFER_BYTES, Finding, Status
from trifecta.lab.engine import find_engine
from trifecta.lab.ssh.host import SshHost
from trifecta.lab.static_engine import to_bring

_ASKED = 5  # times; the least is the round trip
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
_ENGINE = "its sha256 is that of the one here"


def examine(machine: Machine) -> list[Finding]:
    """Everything about a host. The engine is brought there, where it stays; nothing else is left."""
    began = time.monotonic()
    host = SshHost("host", machine, to_bring(find_engine()))
    try:
        with host:
            return list(_of(host, time.monotonic() - began))
    except CannotError as error:
        text = str(error)
        message, _, remedy = text.rpartition("; ")
        return [Finding("connection", "missing", message or text, remedy, required=True)]


def _of(host: SshHost, took_s: float) -> Iterator[Finding]:
    facts = host.facts()
    yield Finding("connection", "ok", f"{facts['at']}, at {facts['address'] or 'an unknown address'}", required=True)
    how = "brought there" if host.brought else "was there"
    engine = facts.get("engine")
    kind = "static" if engine is not None and engine["linkage"] == "static" else "with the C library there"
    yield Finding("engine", "ok", f"runs, {kind}, {how}; {_ENGINE}; all of it took {took_s:.1f} s", required=True)
    details = (facts["distribution"], facts["kernel"], facts["architecture"])
    yield Finding("system", "ok", ", ".join(filter(None, details)))
    cores = facts["cpus"]
    yield Finding("cores", "ok" if cores else "warn", f"{cores} usable" if cores else "not told")
    yield _clock(facts)
    yield _chrony(host.clock())
    yield Finding("round trip", "ok", f"{_round_trip_s(host) * 1e3:.1f} ms over SSH")
    yield from _kernel(facts)
    yield _emulator(host)
    yield _netem(host)
    yield _disk(facts)


def _round_trip_s(host: SshHost) -> float:
    took = []
    for _ in range(_ASKED):
        began = time.monotonic()
        host.read("/proc/loadavg")
        took.append(time.monotonic() - began)
    return min(took)


def _clock(facts: HostFacts) -> Finding:
    source = facts["clocksource"]
    slow = source in _SLOW_CLOCKS
    remedy = "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
    return Finding("clock source", "warn" if slow else "ok", source or "not visible", remedy if slow else "")


def _chrony(tracking: ChronyTracking) -> Finding:
    """Not needed: the probe bounds clocks, too."""
    bound = tracking["bound_ns"]
    if bound is None:
        return Finding("chronyd", "ok", f"{tracking['said']}; the probe alone bounds its clock")
    return Finding("chronyd", "ok", f"bounds its clock to {bound / 1e6:.3g} ms")


def _kernel(facts: HostFacts) -> Iterator[Finding]:
    """What an ordinary user of it cannot set, and a study may want."""
    controls = facts["congestion_controls"]
    for name in ("cubic", "bbr"):
        there = name in controls
        status: Status = "ok" if there else "missing" if name == "cubic" else "warn"
        sentence = "available" if there else f"a user may choose among {', '.join(controls) or 'none'}"
        named = " ".join((*controls, name))
        remedy = "" if there else f'sudo sysctl -w net.ipv4.tcp_allowed_congestion_control="{named}"'
        yield Finding(f"TCP {name}", status, sentence, remedy, required=name == "cubic")
    limits = {"rmem_max": facts["udp_receive_limit_bytes"], "wmem_max": facts["udp_send_limit_bytes"]}
    low = {name: limit for name, limit in limits.items() if limit is not None and limit < UDP_BUFFER_BYTES}
    sentence = ", ".join(f"net.core.{name} {limit}" for name, limit in (low or limits).items())
    settings = " ".join(f"net.core.{name}={UDP_BUFFER_BYTES}" for name in low)
    yield Finding("UDP buffers", "warn" if low else "ok", sentence, f"sudo sysctl -w {settings}" if low else "")
    if facts["tcp_remembers"]:
        sentence = (
            "new connections begin with what the kernel kept of those before: trials are not independent over TCP"
        )
        yield Finding("TCP memory", "warn", sentence, "sudo sysctl -w net.ipv4.tcp_no_metrics_save=1")


def _emulator(host: SshHost) -> Finding:
    """Whether it can be the host in the middle, which is no affair of those at the ends."""
    if host.may_open_devices():
        return Finding("emulator", "ok", "can stand between client and server, as `middle`")
    sentence = "cannot stand between client and server, as `middle`: its user may not take frames from devices"
    capabilities = "cap_net_raw,cap_sys_nice+ep"
    return Finding("emulator", "missing", sentence, f"sudo setcap {capabilities} {shlex.quote(host.session.engine)}")


def _netem(host: SshHost) -> Finding:
    """Whether its kernel can be what stands in the middle; the engine's link does without."""
    if lack := host.netem_lack():
        sentence = f"{lack.problem}; only paths with `emulator: netem` need it, on the host in the middle"
        return Finding("netem", "missing", sentence, lack.remedy)
    return Finding("netem", "ok", "works: its kernel can carry paths with `emulator: netem`, as `middle`")


def _disk(facts: HostFacts) -> Finding:
    free = facts["free_bytes"]
    if free is None:
        return Finding("disk", "warn", "how much is free is unknown")
    remedy = "" if free >= DISK_BYTES else "free some space there, or set TMPDIR for its user"
    return Finding("disk", "warn" if remedy else "ok", f"{free / 1e9:.1f} GB free for working folders", remedy)
