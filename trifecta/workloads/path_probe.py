"""Raises a lab with one path and measures from outside what it delivers: asked against given, without any study."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from trifecta.analysis.checks import path as path_check
from trifecta.analysis.checks.evidence import Finding
from trifecta.contract.codec import plain
from trifecta.contract.common import Quantiles
from trifecta.contract.link import LinkReady, LinkSummary
from trifecta.contract.probe import MeasureConfig, MeasureSummary, ReflectConfig, ReflectReady
from trifecta.design import impairments, probe_packets
from trifecta.design.capacity import ETHERNET_FRAME_BYTES
from trifecta.design.errors import CannotError
from trifecta.design.ip import IPV4, IPV6, version_of
from trifecta.design.model import PathSpec
from trifecta.design.percentiles import holds
from trifecta.lab.engine import EngineError, find_engine
from trifecta.lab.host import pin_table
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.network import WIRE, server_address, two_hosts
from trifecta.lab.paths import link_config

PROBE_PORT = 9
TRAIN_PACKETS = 100  # of full size, back to back: their spacing at the far end is the rate
LARGEST_PAYLOAD_BYTES = {IPV4: 1472, IPV6: 1452}
"""Of UDP, below an MTU of 1500."""
_START_S = 10.0
_QUESTIONS_S = 40.0  # what the probe allows itself for its questions on a path that loses most packets
_REPLY_TIMEOUT_NS = 2_000_000_000


@dataclass(frozen=True)
class PathMeasurement:
    """What the probe saw from the hosts, and what the link says of itself (architecture, sections 1.3 and 1.4)."""

    path: PathSpec
    seed: int
    probe: MeasureSummary
    link: LinkSummary
    ip: str = IPV4


@dataclass(frozen=True)
class Line:
    """One property of the path: what was asked, what the probe found, in the unit named."""

    name: str
    asked: float | None
    given: float | None
    unit: str
    note: str = ""


def measure(
    path: PathSpec,
    *,
    packets: int,
    interval_ns: int,
    seed: int,
    stop: Callable[[], bool] | None = None,
    given: PathSpec | None = None,
    ipv6: bool = False,
) -> PathMeasurement:
    """Probe a path with ``packets`` packets, one every ``interval_ns``, over IPv4 or IPv6. Must run inside the sandbox.

    ``given``: what the link is given instead of the path, so that tests can see a link that lies.
    CannotError when the lab, the link or the probe cannot work.
    """
    engine = find_engine()
    pins = pin_table()
    address = server_address(ipv6)
    with tempfile.TemporaryDirectory(prefix="trifecta-link-") as folder, ExitStack() as stack:
        log = Path(folder) / "engine.log"
        lab = stack.enter_context(two_hosts())
        there = Namespaces(lab, engine)
        if path.emulator == "netem":
            lab.send_wire_frames(WIRE)
        try:
            link = stack.enter_context(there.middle(WIRE).start("link", log, cpus=pins["link"]))
            link.configure(link_config(given or path, seed))
            link.wait_ready(LinkReady, _START_S, stop)
            far = stack.enter_context(there.place("server").start("probe", log, name="reflector"))
            far.configure(ReflectConfig(address=address, port=PROBE_PORT))
            far.wait_ready(ReflectReady, _START_S, stop)
            near = stack.enter_context(there.place("client").start("probe", log))
            timeout_ns = _REPLY_TIMEOUT_NS + 2 * path.rtt_ns
            near.configure(
                MeasureConfig(
                    address=address,
                    port=PROBE_PORT,
                    packets=packets,
                    interval_ns=interval_ns,
                    payload_bytes=probe_packets.PAYLOAD_BYTES,
                    timeout_ns=timeout_ns,
                    train_packets=TRAIN_PACKETS if path.rate_bits_per_s else 0,
                    largest=True,
                )
            )
            longest_s = (packets * interval_ns + 4 * timeout_ns) / 1e9 + _START_S + _QUESTIONS_S
            if path.rate_bits_per_s:
                longest_s += TRAIN_PACKETS * ETHERNET_FRAME_BYTES * 8 / path.rate_bits_per_s
            probe = near.wait_summary(MeasureSummary, longest_s, stop)
            link_summary = link.finish(LinkSummary)
        except EngineError as error:
            raise CannotError(f"{error}; run `trifecta doctor`") from error
    if probe.received == 0 and path.loss < 1:
        raise CannotError("no packet of the probe came back; run `trifecta doctor`")
    return PathMeasurement(path=path, seed=seed, probe=probe, link=link_summary, ip=version_of(address))


def compare(measured: PathMeasurement) -> list[Line]:
    """What was asked beside what was given, a line each."""
    path, probe = measured.path, measured.probe
    sending_ns = probe_packets.sending_ns(path, measured.ip)
    note = f"and {sending_ns / 1e6:.3g} ms to send the packet at the rate" if sending_ns else ""
    lines = [Line("round trip, median", path.rtt_ns / 1e6, _ms(probe.rtt_ns.p50), "ms", note)]
    directions = (
        ("forward", path.forward, measured.link.a_to_b, probe.one_way_forward_ns, probe.loss_forward),
        ("backward", path.backward, measured.link.b_to_a, probe.one_way_backward_ns, probe.loss_backward),
    )
    for title, documents, summary, one_way, lost in directions:
        asked_ms = sum(d["delay_ns"] for d in documents if d["kind"] == "delay") / 1e6
        lines.append(Line(f"{title} delay, median", asked_ms, _ms(one_way.p50), "ms"))
        tail = _ms(one_way.p99) if holds(0.99, probe.received) else None
        note = "" if tail is not None else f"{probe.received} packets hold no 99th percentile"
        lines.append(Line(f"{title} delay, 99th percentile", None, tail, "ms", note))
        missing = impairments.missing_share(documents)
        asked = None if missing is None else 100 * missing
        note = f"{summary.lost} of {summary.wire_packets} packets lost in the link"
        lines.append(Line(f"{title} loss", asked, None if lost is None else 100 * lost, "%", note))
        untimed = "netem times no packet" if measured.link.netem is not None else ""
        lines.append(_lateness(title, summary.lateness_ns, summary.device_drops, summary.wire_packets, untimed))
    rate = probe.rate_bits_per_s
    if path.rate_bits_per_s and rate is not None:
        lines.append(Line("rate, from a packet train", path.rate_bits_per_s / 1e6, rate / 1e6, "Mbit/s"))
    largest = probe.largest_payload_bytes
    lines.append(
        Line(
            "largest datagram",
            float(LARGEST_PAYLOAD_BYTES[measured.ip]),
            None if largest is None else float(largest),
            "B",
        )
    )
    return lines


def _lateness(title: str, lateness: Quantiles, dropped: int, packets: int, untimed: str) -> Line:
    note = untimed or f"{dropped} packets dropped by the device"
    if lateness.max is not None:
        note = f"largest {lateness.max / 1e3:.0f} us; {note}"
    late = None if lateness.p99 is None or not holds(0.99, packets) else lateness.p99 / 1e3
    return Line(f"{title} lateness, 99th percentile", 0.0, late, "us", note)


def judge(measured: PathMeasurement) -> list[Finding]:
    """Whether the path was as asked, by the limits of the check `path`: what the link says, and what the probe saw."""
    documents = plain(measured.link), plain(measured.probe)
    return path_check.findings_of_link(measured.path, measured.seed, *documents, ip=measured.ip)


def _ms(value_ns: int | None) -> float | None:
    return None if value_ns is None else value_ns / 1e6
