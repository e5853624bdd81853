"""Was the path delivered as requested?

## Fails when
By the link: its configuration differs from the plan, or its hits from its random draws; the median delay is off by more
than 2 % and 100 µs; losses are outside the 99.9 % binomial interval; the rate over 100 ms of busy time is off by more
than 2 % (more where packets left late, in a transfer of many short bursts); one packet in a
hundred left more than 1 ms and 2 % of the RTT late (in a study of medians, which a tail does not move: one in ten, or
one in a hundred more than 5 ms and 5 % of the RTT); the link itself dropped a packet; the load balancer that a study
asks for forwarded none of the trial's flows. By the probe: the RTT, less the time to send its packet at the rate, is
off by more than 2 % and 200 µs, the rate by more than 5 %, losses as above, or the largest UDP payload is below 1,452
octets. A probe holds for all trials until the next: once a minute, and before every block while the last one failed, so
that one bad moment of the machine costs one block.

## Warns when
For a server elsewhere: an arm's minimum RTT differs from that of another arm of its block by more than a fifth and
2 ms. Loss on the way back and the path's rate are not observable there.
Between hosts, over a network without emulation: the largest UDP payload is below 1,452 octets. Otherwise what that
network did to a trial is unknown, and the last probe's result is reported.

## Why
A verdict holds for one path; on another it may differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trifecta.analysis.chance import consistent, plausible_share
from trifecta.analysis.checks import echo, from_here, lateness
from trifecta.analysis.checks.evidence import TRANSPORTS, Evidence, Finding, duration, worst
from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.stored import Direction, OneLink, OneProbe, Probe
from trifecta.design import probe_packets
from trifecta.design.impairments import kind_of, lost_share
from trifecta.design.ip import IPV4, ip_document
from trifecta.design.model import CheckResult, CheckStatus, PathSpec, RequestsWorkload
from trifecta.design.numbers import requested_percent
from trifecta.design.phrases import numbered

DELAY_SHARE, DELAY_FLOOR_NS = 0.02, 100_000  # one direction, by the link: whichever allows more
RTT_SHARE, RTT_FLOOR_NS = 0.02, 200_000  # both directions and both hosts, by the probe
RATE_SHARE = 0.02
PROBED_RATE_SHARE = 0.05  # by a train of tens of packets
# A direction that was busy for less (acknowledgements, in many short bursts) does not show its rate; the probe does.
RATE_BUSY_NS = 100_000_000
MOST_SHOWN = 3  # sentences about links that did not deliver what was asked
SMALLEST_PAYLOAD_BYTES = 1452  # that must pass: MTU 1500 less headers of IPv6 (RFC 8200, 3) and UDP (RFC 768)
_BUSY = "give the link a core and real-time priority, and stop other programs"
_NOT_REAL_TIME = "allow this user real-time priority (see `trifecta doctor`), and stop other programs"
_ASKED_WRONG = "check the link's configuration in the run's log"


def check(evidence: Evidence) -> list[CheckResult]:
    """Compare the link's report and the probe with the study's path."""
    if evidence.workload.outside:
        return worst(evidence, "path", from_here.findings(evidence))
    path = evidence.path
    links = {name: _link(evidence, name, link) for name, link in evidence.links.items()}
    missing = _wires(path, evidence.workload) - set(links)
    findings = [
        Finding("fail", f"path {path.name} is impaired, but had no link{f' on wire {name}' if name else ''}")
        for name in sorted(missing)
    ]
    findings += _worst_by_wire(links)
    findings += _of_probes(path, evidence.workload, evidence.probe)
    findings += _balancer(evidence)
    if not findings and not evidence.workload.wires:
        findings.append(Finding("pass", "all services share a host: there is no wire between them"))
    return worst(evidence, "path", findings)


def was_delivered(path: PathSpec, workload: RequestsWorkload, probe: Probe | None) -> bool:
    """Whether the probe (its summary, as in a trial's ``probe_json``) found the path that was asked for."""
    return all(finding.status != "fail" for finding in _of_probes(path, workload, probe))


def _of_probes(path: PathSpec, workload: RequestsWorkload, probe: Probe | None) -> list[Finding]:
    if probe is None:
        return []
    if path.as_is:
        return _as_it_is(probe)
    findings = []
    every = probe["links"] if "links" in probe else {str(probe.get("wire") or ""): probe}
    for name, summary in every.items():
        on_path = not name or name in _wires(path, workload)
        asked = path if on_path else PathSpec(path.name)
        findings += _probed(asked, f"probe {name}".rstrip(), summary, ip_document(workload.ip))
    return findings


def _as_it_is(probe: OneProbe) -> list[Finding]:
    """Of a network as it is nothing was asked, so nothing of it is wrong; what it did to a trial, nobody saw."""
    if not probe.get("received"):
        text = f"none of {probe.get('sent', 0)} probe packets came back over the network between the hosts"
        return [Finding("unknown", text, 0.0, None, "allow UDP to the port one below the server's")]
    findings = _size("probe", probe, "warn", "read HTTP/3 as over a path too small for its packets")
    way = f" on {probe['wire']}" if probe.get("wire") else ""  # of several, the first
    sentences = [f"median RTT {duration(float((probe.get('rtt_ns') or {}).get('p50') or 0))}{way}"]
    for name, share in (("to the server", probe.get("loss_forward")), ("to the client", probe.get("loss_backward"))):
        sentences += [] if share is None else [f"{100 * share:.2f} % lost {name}"]
    text = f"the network between the hosts is not emulated: {', '.join(sentences)} in the last probe"
    return [*findings, Finding("unknown", text)]


def _balancer(evidence: Evidence) -> list[Finding]:
    """Whether the trial's flows passed the load balancer that it was asked to have."""
    if not evidence.workload.load_balancer or evidence.server is None:
        return []
    transport = TRANSPORTS[evidence.trial.protocol][0]
    flows = (evidence.server.get("load_balancer") or {}).get(transport.lower(), 0)
    text = f"the load balancer forwarded {flows} flows over {transport}"
    return [Finding("pass" if flows else "fail", text, float(flows), 1.0, "" if flows else _ASKED_WRONG)]


def _wires(path: PathSpec, workload: RequestsWorkload) -> set[str]:
    """The wires on which the path lies, as named in ``Evidence.links``."""
    return set(workload.impaired_wires) if path.impaired else set()


def _link(evidence: Evidence, wire: str, link: OneLink) -> list[Finding]:
    path = evidence.path
    planned = (path.forward, path.backward) if not wire or wire in _wires(path, evidence.workload) else ((), ())
    near, _, far = wire.partition("-")
    names = (f"{wire} to {far}", f"{wire} to {near}") if wire else ("to the server", "to the client")
    by_direction = _directions(path, link, names, planned, of_median=lateness.tail_is_free(evidence.study.metric))
    return echo.of_link(path, evidence.trial.seed, wire, link) + by_direction


def findings_of_link(path: PathSpec, seed: int, link: OneLink, probe: Probe | None, *, ip: str = IPV4) -> list[Finding]:
    """What a link without any study did, and what a probe saw of it (`trifecta link measure`)."""
    by_link = _directions(path, link, ("to the server", "to the client"), (path.forward, path.backward))
    by_probe = [] if probe is None else _probed(path, "probe", probe, ip)
    return echo.of_link(path, seed, "", link) + by_link + by_probe


def _directions(
    path: PathSpec,
    link: OneLink,
    names: tuple[str, str],
    planned: tuple[Sequence[ImpairmentDocument], Sequence[ImpairmentDocument]],
    *,
    of_median: bool = False,
) -> list[Finding]:
    """``of_median``: what is compared is a median of requests, which late packets of a tail do not move."""
    findings = []
    keys: tuple[echo.DirectionKey, echo.DirectionKey] = ("a_to_b", "b_to_a")
    for key, name, impairments in zip(keys, names, planned, strict=True):
        report = link.get(key)
        if report is None:
            findings.append(Finding("fail", f"the link did not report on the packets {name}"))
        else:
            late = _NOT_REAL_TIME if link.get("realtime") is False else _BUSY
            findings += _direction(path, name, report, impairments, late)
            findings += lateness.of_direction(path, name, report, late, of_median=of_median)
            findings += echo.of_direction(name, key, link, impairments)
    return findings


def _worst_by_wire(links: Mapping[str, list[Finding]]) -> list[Finding]:
    """All findings of one link; of several the worst, so that a sentence stays one."""
    every = [finding for findings in links.values() for finding in findings]
    wrong = [finding for finding in every if finding.status != "pass"]
    if len(links) < 2 or not every:
        return every
    if not wrong:
        nearest = max(every, key=_use_of_limit)
        text = f"{len(links)} links delivered what was requested; nearest to its limit: {nearest.text}"
        return [Finding("pass", text, nearest.value, nearest.limit)]
    wrong.sort(key=_use_of_limit, reverse=True)
    shown = wrong[:MOST_SHOWN]
    if len(wrong) > len(shown):
        shown.append(Finding(wrong[-1].status, f"and {len(wrong) - len(shown)} more"))
    return shown


def _use_of_limit(finding: Finding) -> float:
    """How much of its limit a finding takes: above 1 is too much. Where nothing is allowed, any number is the worst."""
    if finding.value is None or finding.limit is None or not finding.bounded:
        return float("inf") if finding.status == "fail" else 0.0
    if not finding.limit:
        return float("inf") if finding.value else 0.0
    return abs(finding.value / finding.limit)


def _direction(
    path: PathSpec, name: str, report: Direction, impairments: Sequence[ImpairmentDocument], late: str
) -> list[Finding]:
    """``late``: what helps a link that is too slow."""
    packets = int(report.get("wire_packets") or 0)
    findings = []
    if packets:
        findings += _delay(name, report, impairments, late, one_by_one=path.frames == "wire")
        findings += _loss(name, report, impairments, packets)
        findings += _rate(name, report, impairments)
    for what, lost in (("device drops", report.get("device_drops")), ("send errors", report.get("send_errors"))):
        count = int(lost or 0)
        if count:
            text = f"{name}: the link itself lost {numbered(count, 'packet')} ({what})"
            findings.append(Finding("fail", text, float(count), 0.0, late))
    return findings


def _delay(
    name: str, report: Direction, impairments: Sequence[ImpairmentDocument], late: str, *, one_by_one: bool
) -> list[Finding]:
    given = (report.get("delay_given_ns") or {}).get("p50")
    if given is None:
        return []
    delay_ns = sum(int(impairment["delay_ns"]) for impairment in impairments if impairment["kind"] == "delay")
    limit = max(DELAY_FLOOR_NS, DELAY_SHARE * delay_ns)
    off = int(given) - delay_ns
    kinds = [kind_of(impairment) for impairment in impairments]
    # The frames of a super-packet that leave one by one wait for each other.
    variable = one_by_one or any(kind.wavers or kind.queues for kind in kinds)
    text = f"{name}: median delay {duration(float(given))}, requested {duration(delay_ns)}"
    # Queues and jitter come on top of the constant delay; they never take from it, but for jitter that may.
    jittered = any(kind.wavers and not kind.queues for kind in kinds)
    wrong = off < -limit if variable and not jittered else abs(off) > limit and not variable
    if wrong:
        meant = (report.get("delay_scheduled_ns") or {}).get("p50")
        only_late = meant is not None and abs(int(meant) - delay_ns) <= limit
        return [Finding("fail", text, float(off), limit, late if only_late else _ASKED_WRONG)]
    return [Finding("pass", text, float(off), limit)]


def _loss(name: str, report: Direction, impairments: Sequence[ImpairmentDocument], packets: int) -> list[Finding]:
    kinds = [kind_of(impairment) for impairment in impairments]
    if any(kind.uncounted for kind in kinds):
        return []
    first_loss = next((i for i, kind in enumerate(kinds) if kind.loses), len(kinds))
    met = packets
    if any(kind.queues for kind in kinds[:first_loss]):
        met -= int(report.get("queue_dropped") or 0)  # the queue comes first: what it dropped met no loss
    probability, inflation = lost_share(impairments)
    lost = int(report.get("lost") or 0)
    given = lost / met if met else 0.0
    low, high = plausible_share(met, probability, inflation)
    text = f"{name}: lost {lost} of {met} packets ({100 * given:.2f} %), requested {requested_percent(probability)}"
    if not consistent(lost, met, probability, inflation):
        text += f", chance allows {100 * low:.2f} % to {100 * high:.2f} %"
        return [Finding("fail", text, given, probability, _ASKED_WRONG, bounded=False)]
    return [Finding("pass", text, given, probability, bounded=False)]


def _rate(name: str, report: Direction, impairments: Sequence[ImpairmentDocument]) -> list[Finding]:
    rates = [float(impairment["bits_per_s"]) for impairment in impairments if impairment["kind"] == "rate"]
    given = report.get("rate_given_bits_per_s")
    if not rates or not given:
        return []
    busy_ns = report.get("rate_busy_ns")
    if busy_ns is not None and busy_ns < RATE_BUSY_NS:
        return []
    rate = min(rates)
    text = f"{name}: {float(given) / 1e6:.4g} Mbit/s while busy, requested {rate / 1e6:.4g} Mbit/s"
    off = float(given) / rate - 1
    # The end of a busy period is known as well as packets leave on time. Earlier links did not count the periods: with
    # losses, a burst is about a window of TCP, sqrt(3 / 2p) packets (Mathis et al. 1997).
    late = report.get("lateness_ns") or {}
    bursts = float(
        report["rate_busy_periods"]
        if "rate_busy_periods" in report
        else int(report.get("wire_packets") or 0) * math.sqrt(2 * lost_share(impairments)[0] / 3)
    )
    unsure = 4 * float(late.get("p99") or 0) + bursts * float(late.get("p50") or 0)
    limit = RATE_SHARE + (unsure / float(busy_ns) if busy_ns else 0.0)
    if abs(off) > limit:
        return [Finding("fail", text, off, limit, _BUSY)]
    return [Finding("pass", text, off, limit)]


def _probed(path: PathSpec, who: str, probe: OneProbe, ip: str) -> list[Finding]:
    if not probe.get("received"):
        text = f"{who}: none of {probe.get('sent', 0)} packets came back"
        return [Finding("fail", text, 0.0, None, "check that the path carries UDP")]
    findings = []
    impairments = (*path.forward, *path.backward)
    rtt = (probe.get("rtt_ns") or {}).get("p50")
    if rtt is not None and not any(kind_of(impairment).wavers for impairment in impairments):
        limit = max(RTT_FLOOR_NS, RTT_SHARE * path.rtt_ns)
        sending_ns = probe_packets.sending_ns(path, ip)
        off = float(rtt) - path.rtt_ns - sending_ns
        text = f"{who}: median RTT {duration(float(rtt))}, requested {duration(path.rtt_ns)}"
        if sending_ns > RTT_FLOOR_NS:
            text += f" and {duration(sending_ns)} to send the probe's packet at the rate"
        remedy = "check the link's configuration, and what else the machine runs"
        wrong = abs(off) > limit
        findings.append(Finding("fail" if wrong else "pass", text, off, limit, remedy if wrong else ""))
    findings += _size(who, probe, "fail", "set an MTU of 1500 (`ip link set DEV mtu 1500`)")
    return findings + _probed_rate(who, probe, path.forward) + _probed_loss(who, probe, path)


def _size(who: str, probe: OneProbe, otherwise: CheckStatus, remedy: str) -> list[Finding]:
    """Whether datagrams pass that are as large as those of QUIC are here."""
    largest = probe.get("largest_payload_bytes")
    if largest is None or int(largest) >= SMALLEST_PAYLOAD_BYTES:
        return []
    text = f"{who}: the largest UDP payload that passes is {largest} B"
    return [Finding(otherwise, text, float(largest), float(SMALLEST_PAYLOAD_BYTES), remedy)]


def _probed_rate(who: str, probe: OneProbe, forward: Sequence[ImpairmentDocument]) -> list[Finding]:
    """Rate of a train of full-size packets, where nothing but a rate shapes it."""
    rates = [float(impairment["bits_per_s"]) for impairment in forward if impairment["kind"] == "rate"]
    given = probe.get("rate_bits_per_s")
    if not rates or not given or not {impairment["kind"] for impairment in forward} <= {"rate", "delay", "loss"}:
        return []
    rate = min(rates)
    off = float(given) / rate - 1
    text = f"{who}: {float(given) / 1e6:.4g} Mbit/s, requested {rate / 1e6:.4g} Mbit/s"
    wrong = abs(off) > PROBED_RATE_SHARE
    return [Finding("fail" if wrong else "pass", text, off, PROBED_RATE_SHARE, _BUSY if wrong else "")]


def _probed_loss(who: str, probe: OneProbe, path: PathSpec) -> list[Finding]:
    """Loss as the probe saw it, where the path asks for independent loss or none."""
    findings = []
    sent = int(probe.get("sent") or 0)
    arrived = sent
    for name, share, planned in (
        ("to the server", probe.get("loss_forward"), path.forward),
        ("to the client", probe.get("loss_backward"), path.backward),
    ):
        if share is None or any(kind_of(impairment).hidden for impairment in planned):
            continue
        probability, _ = lost_share(planned)
        lost = round(float(share) * arrived)
        text = f"{who} {name}: lost {lost} of {arrived} packets, requested {requested_percent(probability)}"
        wrong = not consistent(lost, arrived, probability)
        findings.append(Finding("fail" if wrong else "pass", text, float(share), probability))
        arrived -= lost
    return findings
