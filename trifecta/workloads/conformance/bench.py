"""One request of one client to one server over one path, and a second one with a capture when it failed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from trifecta.contract.load import LoadConfig, LoadSummary
from trifecta.design.conformance import CLEAN, ConformanceCase, ConformanceResult
from trifecta.design.errors import CannotError
from trifecta.design.factors import DEFAULT_CLIENT
from trifecta.design.model import Cell, PathSpec, Trial
from trifecta.implementations.server import ServerAdapter, Site, host_name
from trifecta.lab.certificates import Certificates
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError, EngineProgram, as_user_error
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.network import DEVICE, SERVER_ADDRESS, WIRE
from trifecta.lab.paths import link_config
from trifecta.lab.place import LocalPlace, OpenPlace
from trifecta.lab.topology import Topology
from trifecta.observers.capture import Capture
from trifecta.workloads.conformance import evidence
from trifecta.workloads.conformance.judging import Finding, judge, read_rows
from trifecta.workloads.load_configs import load_config
from trifecta.workloads.requests.places import ServerPlaces
from trifecta.workloads.requests.session import start_client
from trifecta.workloads.session import set_to_work

LOAD = DEFAULT_CLIENT
_SEED = 1
_GRACE_S = 10.0  # a client that does not end by itself this long after its own limit is ended


@dataclass(frozen=True)
class Target:
    """The server that a client is sent to."""

    name: str
    site: Site
    log: Path
    log_start: int = 0
    tls_version: str = "1.3"


@dataclass
class Bench:
    """The lab as the probe uses it: requests go one at a time, so nobody disturbs anybody."""

    engine: Path
    lab: Topology
    pins: Mapping[str, frozenset[int] | None]
    certificates: Certificates
    folder: Path
    """The run's folder: ``logs``, ``site`` and ``conformance`` lie in it."""
    stop: Callable[[], bool]
    scratch: Path = field(init=False)
    places: ServerPlaces | None = None
    """Where servers run; None: as processes of the server's host, all of them."""
    address: str = SERVER_ADDRESS
    """The server's host's, of the version of IP over which it is asked."""
    _link: EngineProgram | None = None
    _link_path: PathSpec | None = None

    def __post_init__(self) -> None:
        """Make the folders."""
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        self.scratch = Path(tempfile.mkdtemp(prefix=".tmp-conformance-", dir=self.folder))

    @property
    def launcher(self) -> Namespaces:
        """Where programs are started."""
        return Namespaces(self.lab, self.engine)

    @property
    def server(self) -> LocalPlace:
        """The server's host."""
        return self.launcher.place("server")

    def place_of(self, adapter: ServerAdapter) -> OpenPlace:
        """Where one server runs."""
        return self.server if self.places is None else self.places.of(adapter)

    def close(self) -> None:
        """End the link and remove what nobody needs."""
        self.unlink()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def log(self, name: str) -> Path:
        """The log file of a program."""
        return self.folder / "logs" / f"conformance-{evidence.safe_name(name)}.log"

    def unlink(self) -> None:
        """Take the path down."""
        if self._link is not None:
            self._link.close()
        self._link = self._link_path = None

    def use_path(self, path: PathSpec) -> None:
        """Have a path up. A clean one is kept; an impaired one begins anew, so that every protocol meets its start."""
        if self._link is not None and self._link.running() and path == self._link_path == CLEAN:
            return
        self.unlink()
        link = self.launcher.middle(WIRE).start("link", self.log("link"), cpus=self.pins["link"])
        self._link, self._link_path = set_to_work(link, link_config(path, _SEED), self.stop), path

    def transfer(
        self, client: str, target: Target, case: ConformanceCase, protocol: str, keep: Path | None = None
    ) -> Finding:
        """One request for an object; what came of it. Keys and qlog go to ``keep``."""
        self.use_path(case.path)
        with self._draft() as draft:
            samples = draft / "samples.parquet"
            qlog = None
            if keep is not None and protocol == "h3":
                qlog = keep / "qlog"
                qlog.mkdir(parents=True, exist_ok=True)
            workload = replace(case.workload(), tls_version=target.tls_version)
            config = load_config(
                Trial("t00000", 0, Cell("conformance", {"connection": "reused"}), protocol, 0, _SEED),
                workload,
                case.path,
                address=target.site.address,
                port=target.site.port,
                server_name=host_name(target.name),
                certificates=self.certificates,
                samples_file=samples,
                keylog_file=None if keep is None else keep / "tls.keys",
                qlog_dir=qlog,
            )
            limit_ns = workload.connect_timeout_ns + workload.request_timeout_ns + 1_000_000_000
            config = structs.replace(config, verify_content=True, total_timeout_ns=limit_ns)
            summary = self._run_client(client, config, samples, limit_ns / 1e9 + _GRACE_S)
            if isinstance(summary, Finding):
                return summary
            finding = judge(read_rows(samples), case, protocol)
            if finding.outcome == "pass" and summary.content_compared is False:
                finding = replace(
                    finding, reason="its length was compared, not its octets: the client does not keep them"
                )
            return finding

    def _run_client(self, client: str, config: LoadConfig, samples: Path, timeout_s: float) -> LoadSummary | Finding:
        """Let a client do its job; its summary, or a finding when it did not do it."""
        log = self.log(f"client-{client}")
        place = self.launcher.place("client")
        with start_client(client, place, log, self.pins["client"]) as process:
            try:
                process.configure(config)
                summary = process.wait_summary(LoadSummary, timeout_s, self.stop)
                process.get(samples)
                return summary
            except EngineError as error:
                if client == LOAD and error.code in (EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED):
                    raise as_user_error(error) from error
                if error.code == EXIT_UNSUPPORTED:
                    return Finding("unsupported", None, error.message)
                return Finding("fail", "client", error.message)

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        draft = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def observed(
        self, client: str, target: Target, case: ConformanceCase, protocol: str, role: str
    ) -> tuple[Finding, Path | None]:
        """``transfer`` with keys and qlog kept when it failed: the finding, and the folder of the failure."""
        subject = target.name if role == "server" else client
        with self._draft() as draft:
            finding = self.transfer(client, target, case, protocol, draft)
            if finding.outcome != "fail":
                return finding, None
            folder = self.failure_folder(role, subject, protocol, case.name)
            shutil.copytree(draft, folder / "first", dirs_exist_ok=True)
            return finding, folder

    def failure_folder(self, role: str, subject: str, protocol: str, case: str) -> Path:
        """A folder for the evidence of one failure; only its owner reads it, for it holds keys."""
        evidence.private_folder(self.folder / "conformance")
        return evidence.private_folder(self.folder / "conformance" / evidence.safe_name(role, subject, protocol, case))

    def keep_failure(
        self,
        result: ConformanceResult,
        folder: Path,
        target: Target,
        *,
        case: ConformanceCase,
        reproducible: bool,
        why_not: str = "",
    ) -> ConformanceResult:
        """Keep log and configuration of a failure and capture a second attempt, unless ``again`` is off.

        The first result stands, whatever the second attempt gives.
        """
        client = LOAD if result.role == "server" else result.name
        second: evidence.SecondAttempt | None = None
        capture = f"no second attempt: {why_not}" if not reproducible else ""
        if reproducible:
            second_folder = evidence.private_folder(folder / "second")
            self.use_path(case.path)
            file, host = second_folder / "capture.pcap", self.lab.host("client")
            with Capture(host, DEVICE, target.site.port, file, case.path.rtt_ns) as watching:
                finding = self.transfer(client, target, case, str(result.protocol), second_folder)
            second = {"outcome": finding.outcome, "error": finding.error, "reason": finding.reason}
            how = "failed again" if finding.outcome == "fail" else "passed"
            capture = watching.problem or f"captured in a second attempt, which {how} ({finding.error or 'no error'})"
        evidence.keep_log(target.log, folder / "server.log", target.log_start)
        evidence.keep_log(self.log(f"client-{client}"), folder / "client.log")
        evidence.keep_configuration(target.site.state, folder)
        kept_result = replace(result, evidence=str(folder.relative_to(self.folder)), capture=capture)
        evidence.write_result(folder, kept_result, second)
        return kept_result


def refusal(error: Exception) -> str:
    """One line for whatever an adapter raises: adapters from outside may raise anything."""
    text = " ".join(str(error).split())
    return text if isinstance(error, CannotError) else f"{type(error).__name__}: {text}"
