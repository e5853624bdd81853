"""Replays a page archive by real servers in a lab of one host, and compares everything: ``trifecta page check``."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.design.model import PROTOCOL_NAMES, PROTOCOLS, PageWorkload, Protocol
from trifecta.implementations.clients.curl import curl_command
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers.replaying import WELL_KNOWN
from trifecta.lab.certificates import make_certificates
from trifecta.lab.host_graph import host_graph
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.place import OpenPlace
from trifecta.lab.topology import Topology
from trifecta.pages.archive import Page, read_page
from trifecta.workloads.replay_diff import ProtocolReplay, ReplayTarget, ask_all

PORT = 443
_HOST = "server"
_MOST_TOLD = 10
_ASKED_S = 10.0  # curl ends by itself before


@dataclass(frozen=True)
class Replayed:
    """How one server replayed a page."""

    server: str
    version: str
    responses: int
    """How many the archive has."""
    bytes: int
    asked: tuple[ProtocolReplay, ...]
    """One a protocol; empty when the server cannot."""
    reason: str = ""
    """Why the server could not be asked."""

    @property
    def same(self) -> bool:
        """Whether every response came as it was recorded, over every protocol."""
        return bool(self.asked) and not any(one.differences for one in self.asked)


def check(
    folder: Path,
    adapters: Mapping[str, ServerAdapter],
    work: Path,
    protocols: Sequence[Protocol] = PROTOCOLS,
    stop: Callable[[], bool] = lambda: False,
    *,
    ipv6: bool = False,
) -> Iterator[Replayed]:
    """Replay the archive in ``folder`` by each server and compare, over IPv4 or IPv6; must run inside the sandbox.

    ``work`` is a folder for logs and what is received, which is removed again. UserError for a bad archive, CannotError
    without curl with HTTP/3.
    """
    page = read_page(folder)
    try:
        curl_command()
    except Unsupported as error:
        raise CannotError(f"the comparison asks with curl: {error}") from error
    work.mkdir(parents=True, exist_ok=True)
    with host_graph([_HOST], []) as lab:
        address = lab.address_6(_HOST) if ipv6 else lab.address(_HOST)
        replay = _Replay(folder, page, lab, address, work, protocols, stop)
        for name, adapter in adapters.items():
            yield replay.by(name, adapter)


@dataclass(frozen=True)
class _Replay:
    """A page in a lab, and what is asked of every server."""

    folder: Path
    page: Page
    lab: Topology
    address: str
    work: Path
    protocols: Sequence[Protocol]
    stop: Callable[[], bool]

    def by(self, name: str, adapter: ServerAdapter) -> Replayed:
        """Replay it by one server."""
        scratch = Path(tempfile.mkdtemp(prefix=f".tmp-{name}-", dir=self.work))
        version, reason = "", ""
        replays: tuple[ProtocolReplay, ...] = ()
        try:
            version = adapter.find()
            adapter.check_workload(PageWorkload())
            replays = tuple(self._ask(name, adapter, version, scratch))
        except (Unsupported, ServerFailed) as error:
            reason = str(error)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return Replayed(name, version, len(self.page.responses), self.page.bytes, replays, reason)

    def _ask(self, name: str, adapter: ServerAdapter, version: str, scratch: Path) -> Iterator[ProtocolReplay]:
        there, address = Namespaces(self.lab).place(_HOST), self.address
        certificates = make_certificates(scratch / "pki", [f"{name}.lab", *self.page.hosts], [address])
        state = scratch / "state"
        state.mkdir()
        site = Site(self.folder, certificates, address, PORT, state, replay=self.folder)
        log = self.work / f"{name}.log"
        running = RunningServer(adapter, version, site, ServerOptions(), there, log=log, cpus=None)
        with ready(running, there, self.page.hosts[0], self.stop):
            for protocol in (each for each in self.protocols if each in adapter.protocols):
                received = scratch / protocol
                yield ask_all(self.page, protocol, ReplayTarget(address, PORT, certificates.authority, there), received)
                shutil.rmtree(received, ignore_errors=True)


@contextmanager
def ready(running: RunningServer, place: OpenPlace, name: str, stop: Callable[[], bool]) -> Iterator[None]:
    """The server while it runs; ready when it answers the path that every replaying server has."""
    command, environment = curl_command()
    site = running.site
    words = ["-q", "-sS", "--http1.1", "--cacert", str(site.certificates.authority), "-o", "/dev/null", "-m", "2"]
    words += ["--noproxy", "*", "--connect-to", f"::{site.endpoint}", "-w", "%{http_code}"]

    def ask() -> str | None:
        answer = site.state / "asked"
        answer.unlink(missing_ok=True)
        asking = place.run([*command, *words, f"https://{name}{WELL_KNOWN}"], answer, environment=environment)
        asking.wait_end(_ASKED_S)
        asking.close()
        output = answer.read_text(encoding="utf-8", errors="replace").strip()
        return None if output.endswith("200") else output or "no answer"

    try:
        running.start()
        running.wait_ready(ask, stop)
        yield
    finally:
        running.close()


def in_words(replayed: Replayed) -> list[str]:
    """Lines for a user: one a protocol, the first differences, and what the server adds."""
    label = f"{replayed.server} {replayed.version}".rstrip()
    if not replayed.asked:
        return [f"{label}: cannot replay it: {replayed.reason}"]
    lines = []
    for one in replayed.asked:
        outcome = "no difference" if not one.differences else f"{len(one.differences)} differences"
        lines.append(
            f"{label}, {PROTOCOL_NAMES[one.protocol]}: {one.responses} of {replayed.responses} responses, "
            f"{one.bytes} octets: {outcome}"
        )
        lines += [f"  {difference}" for difference in one.differences[:_MOST_TOLD]]
        if len(one.differences) > _MOST_TOLD:
            lines.append(f"  and {len(one.differences) - _MOST_TOLD} more")
    added = sorted({name for one in replayed.asked for name in one.added})
    lines.append(f"{label} adds {', '.join(added) or 'nothing'}" + _order(replayed))
    return lines


def _order(replayed: Replayed) -> str:
    return (
        "; it sends fields in a different order than recorded" if any(one.reordered for one in replayed.asked) else ""
    )
