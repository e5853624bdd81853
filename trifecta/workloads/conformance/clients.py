"""Probes one client against a server that is the same for all of them: the project's own origin, or that of a study."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from trifecta.design.conformance import ConformanceCase, ConformanceResult
from trifecta.design.model import PROTOCOLS
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.server import Unsupported
from trifecta.lab.engine import Stopped
from trifecta.workloads.conformance.bench import Bench, Target, refusal
from trifecta.workloads.conformance.judging import Finding, result_of
from trifecta.workloads.conformance.servers import BUDGET_S


def speaks(target: Target, protocol: str) -> bool:
    """Whether a server's version of TLS carries a protocol: QUIC has 1.3 alone (RFC 9001, 4.2)."""
    return protocol != "h3" or target.tls_version == "1.3"


@dataclass
class ClientProbe:
    """The probe of one client; ``run`` yields a result for every protocol and object, whatever the client does."""

    bench: Bench
    adapter: ClientAdapter
    version: str
    cases: tuple[ConformanceCase, ...]
    origin: Target
    depth: str = "full"
    others: Mapping[tuple[str, str], Target] = field(default_factory=dict)
    """By protocol and name the cases that another server than the ``origin`` answers."""
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> Iterator[ConformanceResult]:
        """Every result. Stopped when the user asks for it."""
        self._began = time.monotonic()
        for protocol in PROTOCOLS:
            if protocol not in self.adapter.protocols:
                yield self._one(protocol, None, Finding("unsupported", None, f"does not speak {protocol}"))
                continue
            for case in self.cases:
                yield self._case(protocol, case)

    def _case(self, protocol: str, case: ConformanceCase) -> ConformanceResult:
        if self.bench.stop():
            raise Stopped
        refused = self._refused(protocol, case)
        if refused is not None:
            return self._one(protocol, case, refused)
        if time.monotonic() - self._began > BUDGET_S:
            return self._one(protocol, case, Finding("not_run", None, f"its {BUDGET_S:g} s were used up"))
        target = self._target(protocol, case)
        target = replace(target, log_start=target.log.stat().st_size if target.log.exists() else 0)
        finding, folder = self.bench.observed(self.adapter.name, target, case, protocol, "client")
        result = self._one(protocol, case, finding)
        if finding.outcome != "fail":
            return result
        folder = folder or self.bench.failure_folder("client", self.adapter.name, protocol, case.name)
        why_not = "" if time.monotonic() - self._began <= BUDGET_S else f"its {BUDGET_S:g} s were used up"
        return self.bench.keep_failure(result, folder, target, case=case, reproducible=not why_not, why_not=why_not)

    def _target(self, protocol: str, case: ConformanceCase | None) -> Target:
        return self.origin if case is None else self.others.get((protocol, case.name), self.origin)

    def _refused(self, protocol: str, case: ConformanceCase) -> Finding | None:
        target = self._target(protocol, case)
        if not speaks(target, protocol):
            reason = f"HTTP/3 needs TLS 1.3 (RFC 9001, 4.2), and {target.name} has {target.tls_version} here"
            return Finding("not_run", None, reason)
        try:
            self.adapter.check_workload(case.workload(), protocol, "reused")  # type: ignore[arg-type]
        except Unsupported as error:
            return Finding("not_offered", None, str(error))
        except Exception as error:
            return Finding("fail", "client", refusal(error))
        return None

    def _one(self, protocol: str, case: ConformanceCase | None, finding: Finding) -> ConformanceResult:
        return result_of(
            finding,
            case,
            protocol,
            depth=self.depth,
            role="client",
            name=self.adapter.name,
            version=self.version,
            peer=self._target(protocol, case).name,
        )
