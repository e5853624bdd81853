"""What the checks look at: everything that was measured around one trial, or around a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from trifecta.analysis.checks.visits import Visits
from trifecta.analysis.estimate import Row
from trifecta.contract import stored
from trifecta.contract.machine import HostGrowth, MachineFacts, StaticFacts, TransportGrowth
from trifecta.design import plan
from trifecta.design.factors import DEFAULT_CLIENT
from trifecta.design.impairments import kind_of
from trifecta.design.model import Cell, CheckResult, CheckStatus, PathSpec, RequestsWorkload, Study, Trial
from trifecta.design.services import SERVER_LEVEL

# The transport below and the kernel's counters of what a host sent over it: no client can lie about that. Those of UDP
# are one for each version of IP.
_TCP, _UDP = ("TCP", ("TcpOutSegs",)), ("UDP", ("UdpOutDatagrams", "Udp6OutDatagrams"))
TRANSPORTS: dict[str, tuple[str, tuple[str, ...]]] = {"h1": _TCP, "h2": _TCP, "h3": _UDP}


class SampleFacts(Protocol):
    """Counts over the samples of a trial after its warm-up; ``protocols`` and ``bytes_in`` over the successful ones."""

    @property
    def samples(self) -> int:
        """Requests after the warm-up, failures included."""

    @property
    def warmup_samples(self) -> int:
        """Requests during the warm-up, failures included."""

    @property
    def warmup_errors(self) -> Mapping[str, int]:
        """Error class to number of requests during the warm-up."""

    @property
    def protocols(self) -> Mapping[str, int]:
        """Negotiated protocol to number of requests."""

    @property
    def tls_versions(self) -> Mapping[str, int]:
        """TLS version to number of requests."""

    @property
    def ciphers(self) -> Mapping[str, int]:
        """Cipher suite to number of requests."""

    @property
    def statuses(self) -> Mapping[str, int]:
        """HTTP status, as text, to number of requests."""

    @property
    def bytes_in(self) -> Mapping[int, int]:
        """Content octets of a response to number of requests."""

    @property
    def errors(self) -> Mapping[str, int]:
        """Error class to number of requests."""

    @property
    def handshakes(self) -> Mapping[str, int]:
        """``full``, ``resumed``, ``early`` (resumed, with early data) to successful requests that made one."""

    @property
    def first_half_p50_ns(self) -> float | None:
        """Median latency of the successful requests that started in the first half."""

    @property
    def second_half_p50_ns(self) -> float | None:
        """Median latency of those that started in the second half."""

    @property
    def in_flight_when_due(self) -> float | None:
        """Requests in flight when those that an open loop started latest were due; None of a closed loop."""


def nothing_succeeded(facts: SampleFacts) -> bool:
    """Whether no request after the warm-up succeeded, if there was one."""
    return sum(facts.errors.values()) >= facts.samples


def failed_in_warmup(facts: SampleFacts) -> bool:
    """Whether only the warm-up of a trial says why nothing succeeded: its end cut off what came after, if anything."""
    return bool(facts.warmup_errors) and set(facts.errors) <= {"interrupted"}


def telling_failures(facts: SampleFacts) -> Mapping[str, int]:
    """Error class to number of requests that say why nothing succeeded."""
    return facts.warmup_errors if failed_in_warmup(facts) else facts.errors


@dataclass(frozen=True)
class Evidence:
    """One trial. Documents are the decoded JSON of docs/architecture.md, None where there is none.

    ``load``, ``link``, ``probe``: summaries of the engine (1.1, 1.3, 1.4), several links as ``{"links": {wire: ...}}``;
    ``server``: what is known of the server, of services as ``{"services": {name: ...}}``, with ``congestion_control``
    (a name, or names by protocol) and ``tcp_nodelay`` where they are; ``machine``: shares of CPU time over the trial;
    ``transport``: growth of the kernel's counters by host; ``facts``: what does not change during a run (clock source,
    ...). ``siblings`` are the trials of the same block that ran before. ``trouble`` says why a trial has no summary
    (crashed, hung).
    """

    study: Study
    trial: Trial
    row: Row
    samples: SampleFacts | None = None
    load: stored.Load | None = None
    link: stored.Link | None = None
    server: stored.Server | None = None
    probe: stored.Probe | None = None
    machine: MachineFacts | None = None
    transport: TransportGrowth | None = None
    facts: StaticFacts | None = None
    visits: Visits | None = None
    siblings: Sequence[Evidence] = field(default_factory=tuple)
    trouble: str | None = None

    @cached_property  # most checks ask for it
    def workload(self) -> RequestsWorkload:
        """The workload as asked for in this trial, over its protocol's transport."""
        return plan.workload_for(self.study, self.trial).for_protocol(self.trial.protocol)

    @property
    def path(self) -> PathSpec:
        """The path as asked for in this trial."""
        name = str(self.trial.levels.get("path", ""))
        return self.study.paths.get(name, PathSpec(name=name or "clean"))

    @property
    def rtt_ns(self) -> float | None:
        """The path's round trip: as asked for, or of a network as it is as the probe found it; None without one."""
        if not self.path.as_is:
            return self.path.rtt_ns
        return ((self.probe or {}).get("rtt_ns") or {}).get("p50")

    @property
    def lossy(self) -> bool:
        """Whether the path may lose packets: it was asked to, or is of others or a network as it is."""
        impairments = (*self.path.forward, *self.path.backward)
        return (
            self.path.as_is or self.workload.outside or any(kind_of(impairment).removes for impairment in impairments)
        )

    @property
    def links(self) -> dict[str, stored.OneLink]:
        """What the links of this trial report, by the name of their wire; that of a two-host lab has none ("")."""
        if self.link is None:
            return {}
        return dict(self.link["links"]) if "links" in self.link else {"": self.link}

    @property
    def hosts(self) -> dict[str, HostGrowth]:
        """How much the kernel's counters of each host grew."""
        return {name: grown for name, grown in (self.transport or {}).items() if isinstance(grown, dict)}

    @property
    def client(self) -> str:
        """The client of this trial; of services of another program that is their client, too."""
        return self.trial.server if self._other_services else self.trial.client

    @property
    def foreign(self) -> bool:
        """Whether the client is another program than the engine's own: part of what is compared, and less is known."""
        return self.client != DEFAULT_CLIENT

    @property
    def _other_services(self) -> bool:
        return self.workload.family == "services" and self.trial.server != SERVER_LEVEL

    @property
    def browsing(self) -> bool:
        """Whether the client is a browser: then samples are visits."""
        return self.workload.visiting

    def asked_alike(self, other: Evidence) -> bool:
        """Whether another trial was asked for the same in all that its answers depend on.

        What the study compares may differ between arms, and nothing else.
        """
        names = self.workload.compared
        return all(getattr(self.workload, name) == getattr(other.workload, name) for name in names)

    @property
    def noun(self) -> str:
        """What the samples are."""
        return self.workload.noun

    def result(
        self,
        check: str,
        status: CheckStatus,
        evidence: str,
        *,
        value: float | None = None,
        limit: float | None = None,
        remedy: str = "",
    ) -> list[CheckResult]:
        """A result of a check of this trial."""
        return [CheckResult(check, self.trial.trial, status, evidence, value, limit, remedy)]


@dataclass(frozen=True)
class RunEvidence:
    """A whole run so far: its study, the cells it can do and the rows of its finished trials."""

    study: Study
    cells: Sequence[Cell]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Finding:
    """One measured number of a check that looks at several."""

    status: CheckStatus
    text: str
    value: float | None = None
    limit: float | None = None
    remedy: str = ""
    bounded: bool = True
    """Whether ``limit`` bounds ``value``; else it is what was asked for."""


_ORDER: tuple[CheckStatus, ...] = ("fail", "warn", "unknown", "pass")


def worst(evidence: Evidence, check: str, findings: Sequence[Finding]) -> list[CheckResult]:
    """One result from several findings: the worst status; the sentence names what is wrong, else all numbers."""
    if not findings:
        return evidence.result(check, "unknown", "nothing for this check was measured in this trial")
    status = min((finding.status for finding in findings), key=_ORDER.index)
    named = [finding for finding in findings if finding.status == status]
    if status == "unknown":
        named += [finding for finding in findings if finding.status == "pass"]
    first = named[0]
    return evidence.result(
        check,
        status,
        "; ".join(finding.text for finding in named),
        value=first.value,
        limit=first.limit,
        remedy="; ".join(dict.fromkeys(finding.remedy for finding in named if finding.remedy)),
    )


def nothing_sent(evidence: Evidence) -> bool:
    """Whether the client's host sent nothing over the transport of the protocol that was asked for."""
    client = evidence.hosts.get("client")
    counters = (client.get("counters") if client else None) or {}
    sent = [counters[name] for name in TRANSPORTS[evidence.trial.protocol][1] if name in counters]
    return bool(sent) and not any(sent)


def counts(values: Mapping[Any, int]) -> str:
    """Counts in words, largest first: ``h2 990, h1 10``."""
    ranked = sorted(values.items(), key=lambda item: (-item[1], str(item[0])))
    return ", ".join(f"{name} {count}" for name, count in ranked) or "none"


def duration(value_ns: float) -> str:
    """A time with three significant digits and its unit."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if abs(value_ns) >= size:
            return f"{value_ns / size:.3g} {unit}"
    return f"{value_ns:.3g} ns"
