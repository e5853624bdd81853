"""The whole probe: every server found with the engine's load, every client found with the project's origin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trifecta.design.conformance import CASES, ConformanceCase, ConformanceResult, Role
from trifecta.design.errors import CannotError
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.isolated import call_apart
from trifecta.implementations.running import RunningServer
from trifecta.implementations.server import ServerAdapter, ServerOptions, Site, Unsupported, host_name
from trifecta.implementations.servers.origin import Origin
from trifecta.lab.certificates import make_certificates
from trifecta.lab.host import pin_table
from trifecta.lab.network import SERVER_ADDRESS, SERVER_ADDRESS_6, server_address, two_hosts
from trifecta.workloads.conformance.bench import LOAD, Bench, Target
from trifecta.workloads.conformance.clients import ClientProbe
from trifecta.workloads.conformance.judging import Finding, result_of
from trifecta.workloads.conformance.servers import ServerProbe
from trifecta.workloads.requests.site import write_site

FIND_TIMEOUT_S = 30.0
FIRST_PORT = 9443  # one for each implementation: what is left of a dead one never answers in place of the next
Tell = Callable[[str, str, list[ConformanceResult]], None]


@dataclass(frozen=True)
class Subjects:
    """What is to be probed."""

    servers: Mapping[str, ServerAdapter]
    clients: Mapping[str, ClientAdapter]
    cases: tuple[ConformanceCase, ...] = CASES


@dataclass
class Probe:
    """A probe in a lab that is up. It never raises for what an implementation does."""

    bench: Bench
    subjects: Subjects
    tell: Tell
    """Called with the role, the name and the results of each implementation as it is done."""
    results: list[ConformanceResult] = field(default_factory=list)
    _port: int = FIRST_PORT

    def run(self) -> list[ConformanceResult]:
        """Every result, servers first. Stopped when the user asks for it: ``results`` holds what is finished."""
        sizes = {case.octets for case in self.subjects.cases} | {1}
        write_site(self.bench.folder / "site", sizes)
        versions = look_for(self.subjects)
        try:
            for name, server in self.subjects.servers.items():
                version, missing = versions["server", name]
                probe = ServerProbe(self.bench, server, version, self.subjects.cases, self._next_port())
                self._done("server", name, [self._missing("server", name, missing)] if missing else probe.run())
            if self.subjects.clients:
                with self._origin() as origin:
                    for name, client in self.subjects.clients.items():
                        version, missing = versions["client", name]
                        one = ClientProbe(self.bench, client, version, self.subjects.cases, origin)
                        self._done("client", name, [self._missing("client", name, missing)] if missing else one.run())
        finally:
            self.bench.unlink()
        return self.results

    def _done(self, role: Role, name: str, results: Iterable[ConformanceResult]) -> None:
        first = len(self.results)
        for result in results:
            self.results.append(result)
        self.tell(role, name, self.results[first:])

    def _missing(self, role: Role, name: str, finding: Finding) -> ConformanceResult:
        peer = LOAD if role == "server" else Origin.name
        adapters: Mapping[str, Any] = self.subjects.servers if role == "server" else self.subjects.clients
        proxy = bool(getattr(adapters[name], "is_proxy", False))
        return result_of(finding, None, None, depth="full", role=role, name=name, version="", peer=peer, proxy=proxy)

    def _next_port(self) -> int:
        self._port += 1
        return self._port

    @contextmanager
    def _origin(self) -> Iterator[Target]:
        """The origin that answers the clients; without it there is nothing to probe them with."""
        bench, adapter = self.bench, Origin()
        port = self._next_port()
        state = bench.folder / "logs" / f"conformance-{port}-origin"
        site = Site(bench.folder / "site", bench.certificates, bench.address, port, state)
        log = bench.log("server-origin")
        server = RunningServer(
            adapter, adapter.find(), site, ServerOptions(), bench.server, log=log, cpus=bench.pins["server"]
        )
        target = Target(adapter.name, site, log)
        try:
            server.start()
            server.wait_ready(lambda: self._ask(target), bench.stop)
            yield target
        finally:
            server.close()

    def _ask(self, target: Target) -> str | None:
        finding = self.bench.transfer(LOAD, target, CASES[1], "h2")
        return None if finding.outcome == "pass" else finding.reason


def look_for(subjects: Subjects) -> dict[tuple[Role, str], tuple[str, Finding | None]]:
    """The version of every implementation, or why it cannot be probed; each is looked for in a process of its own."""
    tables: tuple[tuple[Role, Mapping[str, ServerAdapter | ClientAdapter]], ...] = (
        ("server", subjects.servers),
        ("client", subjects.clients),
    )
    calls = {(role, name): _finder(adapter) for role, table in tables for name, adapter in table.items()}
    versions: dict[tuple[Role, str], tuple[str, Finding | None]] = {}
    for key, answer in call_apart(calls, timeout_s=FIND_TIMEOUT_S).items():
        version, missing = answer.value or ("", None)
        if answer.problem is not None:
            versions[key] = "", Finding("fail", "cannot_start", f"its version cannot be determined: {answer.problem}")
        else:
            versions[key] = version, None if missing is None else Finding("unsupported", None, missing)
    return versions


def _finder(adapter: ServerAdapter | ClientAdapter) -> Callable[[], tuple[str, str | None]]:
    def find() -> tuple[str, str | None]:
        try:
            return str(adapter.find()), None
        except Unsupported as error:
            return "", str(error)

    return find


@contextmanager
def standalone_bench(
    engine: Path, folder: Path, servers: Iterable[str], stop: Callable[[], bool], *, ipv6: bool = False
) -> Iterator[Bench]:
    """A lab, certificates for these servers and a bench, over IPv4 or IPv6; needs the sandbox."""
    if folder.exists() and any(folder.iterdir()):
        raise CannotError(f"{folder} is not empty; choose another with --out")
    folder.mkdir(parents=True, exist_ok=True)
    names = [host_name(name) for name in dict.fromkeys((*servers, Origin.name))]
    certificates = make_certificates(folder / "pki", names, [SERVER_ADDRESS, SERVER_ADDRESS_6])
    with two_hosts() as lab:
        bench = Bench(engine, lab, pin_table(), certificates, folder, stop, address=server_address(ipv6))
        try:
            yield bench
        finally:
            bench.close()
