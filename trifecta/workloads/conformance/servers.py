"""Probes one server with the engine's load: started alone, asked for every object over every protocol, ended."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trifecta.design.conformance import ConformanceCase, ConformanceResult
from trifecta.design.model import PROTOCOLS, PathSpec
from trifecta.implementations.running import RunningServer
from trifecta.implementations.server import ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.lab.engine import Stopped
from trifecta.store.files import full
from trifecta.workloads.conformance.bench import LOAD, Bench, Target, refusal
from trifecta.workloads.conformance.judging import Finding, result_of

READY_S = 15.0  # for the first protocol asked; a busy machine has taken more than 5 s
READY_MORE_S = 3.0  # for each further one, and after a restart: the program has had its time by then
BUDGET_S = 75.0  # for one implementation: a hanging one must not take the time of the others
_SETTLE_S = 2.0
_PAUSE_S = 0.05
MAX_RESTARTS = 8
# Nothing is there yet, or it hangs: asked again until the time is up.
_SILENT = {"connect_refused", "connect_timeout", "connect_reset", "unreachable", "timeout", "quic:timeout"}
# It is there and will not change its mind.
_SETTLED = {"tls:certificate", "tls:alpn", "tls:version", "length", "content", "protocol", None}
_ASK = ConformanceCase("ready", "ready", "GET", 1, PathSpec("clean"), 2_000_000_000)


@dataclass
class ServerProbe:
    """The probe of one server; ``run`` yields a result for every protocol and object, whatever the server does."""

    bench: Bench
    adapter: ServerAdapter
    version: str
    cases: tuple[ConformanceCase, ...]
    port: int
    depth: str = "full"
    _server: RunningServer | None = None
    _restarts: int = 0
    _began: float = field(default_factory=time.monotonic)
    _had_its_time: bool = False

    def run(self) -> Iterator[ConformanceResult]:
        """Every result. Stopped when the user asks for it; what the server does wrong is in the results."""
        self._began = time.monotonic()
        try:
            dead = self._start()
            for protocol in PROTOCOLS:
                if protocol not in self.adapter.protocols:
                    yield self._one(protocol, None, Finding("unsupported", None, f"does not speak {protocol}"))
                    continue
                dead = yield from self._protocol(protocol, dead)
        finally:
            if self._server is not None:
                self._server.close()

    def _protocol(self, protocol: str, dead: Finding | None) -> Generator[ConformanceResult, None, Finding | None]:
        """The results of one protocol; returns the finding that ends the whole probe, if there is one."""
        problem = dead or self._wait_ready(protocol)
        if problem is not None:
            yield from self._all_failed(protocol, problem)
            return problem if problem.error in ("server_ended", "cannot_start") else None
        for place, case in enumerate(self.cases):
            not_offered = self._not_offered(case)
            if not_offered is not None:
                yield self._one(protocol, case, not_offered)
                continue
            if time.monotonic() - self._began > BUDGET_S:
                yield self._one(protocol, case, Finding("not_run", None, f"its {BUDGET_S:g} s were used up"))
                continue
            finding, folder = self.bench.observed(LOAD, self._target(), case, protocol, "server")
            assert self._server is not None
            if not self._server.running():
                ended = Finding("fail", "server_ended", f"{self._server.describe_end()}: {self._server.last_words()}")
                problem = self._restart(protocol)
                why_not = "" if problem is None else "the server is no longer running"
                yield self._with_evidence(self._one(protocol, case, ended), case, folder, why_not)
                if problem is None and not self._server.running():  # the second attempt ended it, too
                    problem = self._restart(protocol)
                if problem is not None:
                    yield from self._all_failed(protocol, problem, self.cases[place + 1 :])
                    return problem
                continue
            result = self._one(protocol, case, finding)
            yield self._with_evidence(result, case, folder) if finding.outcome == "fail" else result
        return None

    def _start(self) -> Finding | None:
        """Start it; the finding when it cannot be started."""
        bench = self.bench
        state = bench.folder / "logs" / f"conformance-{self.port}-{self.adapter.name.replace('/', '_')}"
        site = Site(bench.folder / "site", bench.certificates, bench.address, self.port, state)
        self._server = RunningServer(
            self.adapter,
            self.version,
            site,
            ServerOptions(),
            bench.place_of(self.adapter),
            log=bench.log(f"server-{self.adapter.name}"),
            cpus=bench.pins["server"],
        )
        return self._launch()

    def _launch(self) -> Finding | None:
        assert self._server is not None
        try:
            self._server.start()
        except Stopped:
            raise
        except Exception as error:
            if isinstance(error, OSError) and (no_room := full(error, self.bench.folder)) is not None:
                raise no_room from error
            return Finding("fail", "cannot_start", refusal(error))
        return None

    def _restart(self, protocol: str) -> Finding | None:
        """Start it again after it died; the finding when that leads nowhere."""
        self._restarts += 1
        if self._restarts > MAX_RESTARTS:
            return Finding("fail", "server_ended", f"it died {self._restarts} times and was not started again")
        return self._launch() or self._wait_ready(protocol)

    def _wait_ready(self, protocol: str) -> Finding | None:
        """Ask until it answers over a protocol, rightly or not; the finding when it does not."""
        assert self._server is not None
        began = time.monotonic()
        limit = READY_MORE_S if self._had_its_time else READY_S
        self._had_its_time = True
        while True:
            if self.bench.stop():
                raise Stopped
            if not self._server.running():
                words = f"{self._server.describe_end()} before it was ready: {self._server.last_words()}"
                return Finding("fail", "server_ended", words)
            finding = self.bench.transfer(LOAD, self._target(), _ASK, protocol)
            waited = time.monotonic() - began
            if not self._server.running():
                continue
            if finding.error in _SETTLED or (finding.error not in _SILENT and waited > _SETTLE_S):
                return None
            if waited > limit:
                return Finding("fail", finding.error, f"not ready within {limit:g} s: {finding.reason}")
            time.sleep(_PAUSE_S)

    def _not_offered(self, case: ConformanceCase) -> Finding | None:
        try:
            self.adapter.check_workload(case.workload())
        except Unsupported as error:
            return Finding("not_offered", None, str(error))
        except Exception as error:
            return Finding("fail", "cannot_start", refusal(error))
        return None

    def _target(self) -> Target:
        assert self._server is not None
        return Target(self.adapter.name, self._server.site, self.bench.log(f"server-{self.adapter.name}"))

    def _all_failed(
        self, protocol: str, finding: Finding, cases: tuple[ConformanceCase, ...] | None = None
    ) -> Iterator[ConformanceResult]:
        """The same finding for every object: it was met before any could be asked for. One folder for all."""
        last: ConformanceResult | None = None
        for case in self.cases if cases is None else cases:
            not_offered = self._not_offered(case)
            if not_offered is not None and not_offered.outcome == "not_offered":
                yield self._one(protocol, case, not_offered)
                continue
            result = self._one(protocol, case, finding)
            if last is None:
                alive = self._server is not None and self._server.running()
                why_not = "" if alive else "the server does not run"
                last = result = self._with_evidence(result, _ASK, None, why_not)
            else:
                result = self._one(protocol, case, finding, evidence=last.evidence, capture=last.capture)
            yield result

    def _with_evidence(
        self, result: ConformanceResult, case: ConformanceCase, folder: Path | None, why_not: str = ""
    ) -> ConformanceResult:
        folder = folder or self.bench.failure_folder("server", self.adapter.name, str(result.protocol), case.name)
        if not why_not and time.monotonic() - self._began > BUDGET_S:
            why_not = f"its {BUDGET_S:g} s were used up"
        return self.bench.keep_failure(
            result, folder, self._target(), case=case, reproducible=not why_not, why_not=why_not
        )

    def _one(
        self,
        protocol: str,
        case: ConformanceCase | None,
        finding: Finding,
        evidence: str | None = None,
        capture: str = "",
    ) -> ConformanceResult:
        return result_of(
            finding, case, protocol,
            depth=self.depth, role="server", name=self.adapter.name, version=self.version, peer=LOAD,
            proxy=bool(getattr(self.adapter, "is_proxy", False)), evidence=evidence, capture=capture,
        )  # fmt: skip
