"""From a trial of a browser to the configuration of its driver (docs/architecture.md, section 1.1, "A browser")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trifecta.contract.browser import BrowserConfig, VideoConfig
from trifecta.design.model import PROTOCOLS, BrowserWorkload, Protocol, Trial
from trifecta.implementations.server import ServerOptions
from trifecta.lab.certificates import Certificates
from trifecta.store.files import disk_errors
from trifecta.store.run import RunDirectory, TrialFiles

PORT = 443
VIEWPORT = (1350, 940)  # of a common notebook's window; what is above the fold depends on it
START_NS = 30_000_000_000  # a browser from a cold disk
_VISIT_NS = 5_000_000_000  # a view is opened, what was seen is gathered


@dataclass(frozen=True)
class Drafts:
    """Where a trial's files are written before they are committed."""

    samples: Path
    visits: Path
    fetches: Path
    playback: Path | None
    har: Path
    frames: Path | None

    @property
    def files(self) -> tuple[Path, ...]:
        """Those that are files."""
        return tuple(path for path in (self.samples, self.visits, self.fetches, self.playback) if path is not None)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that are folders."""
        return tuple(path for path in (self.har, self.frames) if path is not None)

    def left(self, *, read: bool) -> TrialFiles:
        """What a trial leaves of these, once they are ``read``; folders that nothing was written to are removed."""

        def there(path: Path | None) -> Path | None:
            return path if read and path is not None and path.exists() else None

        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()
        return TrialFiles(
            samples=there(self.samples),
            visits=there(self.visits),
            fetches=there(self.fetches),
            playback=there(self.playback),
            har=there(self.har),
            frames=there(self.frames),
        )


def drafts_of(run: RunDirectory, trial: str, workload: BrowserWorkload, state: Path) -> Drafts:
    """Where the driver of a trial writes; its folders are made, and ``state``, where a browser keeps what it needs."""
    drafts = Drafts(
        samples=run.draft("samples", trial, ".parquet"),
        visits=run.draft("visits", trial, ".parquet"),
        fetches=run.draft("fetches", trial, ".parquet"),
        playback=run.draft("playback", trial, ".parquet") if workload.plays else None,
        har=run.draft("har", trial, ""),
        frames=run.draft("frames", trial, "") if workload.films else None,
    )
    with disk_errors(run.path):
        for folder in (*drafts.folders, state):
            folder.mkdir(exist_ok=True)
    return drafts


THIRD_PARTYS = ServerOptions(offered=("h2",))
"""What is asked of the server of third parties, whatever is asked of the measured one."""


def options_for(workload: BrowserWorkload, protocol: Protocol, third_parties: Collection[str]) -> ServerOptions:
    """What a cell's workload asks of its server.

    A browser that speaks HTTP/2 with ``third_parties`` cannot be kept from it elsewhere: over HTTP/1.1 the server does.
    """
    alone = protocol == "h1" and bool(third_parties)
    return ServerOptions(
        congestion_control=workload.congestion_control,
        tcp_nodelay=workload.tcp_nodelay,
        tls_version=workload.tls_version,
        zero_rtt=workload.zero_rtt,
        quinn=workload.quinn,
        ipv6=workload.ip is not None,
        alt_svc=workload.discovery == "alt-svc" and not alone,
        offered=("h1",) if alone else PROTOCOLS,
    )


def total_timeout_ns(workload: BrowserWorkload) -> int:
    """When a trial is given up: every visit at its own limit, with the unmeasured visit that some views need before."""
    each = workload.visit_timeout_ns + workload.settle_ns + _VISIT_NS
    if workload.view != "cold":
        each *= 2
    each += workload.watched_ns
    return START_NS + (workload.warmup_visits + workload.visits) * each


def browser_config(
    trial: Trial,
    workload: BrowserWorkload,
    names: Iterable[str],
    url: str,
    drafts: Drafts,
    *,
    certificates: Certificates,
    work_dir: Path,
    third_parties: Sequence[str] = (),
    floor: Sequence[float] | None = None,
    keylog_file: Path | None = None,
    qlog_dir: Path | None = None,
) -> BrowserConfig:
    """What the driver of a browser is asked to do: visits to ``url``, which asks for things of these ``names``.

    ``third_parties`` are those of them whose protocol is not forced. ``floor`` are the shares of frames that the
    machine drops on its own, by rung.
    """
    video = None
    if workload.plays:
        shares = None if floor is None else tuple(floor)
        video = VideoConfig(player_url=url, watch_ns=workload.watched_ns, live=workload.live, floor=shares)
    return BrowserConfig(
        trial=trial.trial,
        protocol=trial.protocol,
        kind="video" if video else "page",
        url=url,
        hosts=tuple(names),
        ip=workload.ip,
        third_parties=tuple(third_parties),
        port=PORT,
        ca_file=str(certificates.authority),
        discovery=workload.discovery if trial.protocol == "h3" else "forced",
        view=workload.view,
        visits=workload.visits,
        warmup_visits=workload.warmup_visits,
        seed=trial.seed,
        visit_timeout_ns=workload.visit_timeout_ns,
        total_timeout_ns=total_timeout_ns(workload),
        settle_ns=workload.settle_ns,
        filmstrip=workload.films,
        viewport=VIEWPORT,
        video=video,
        work_dir=str(work_dir),
        keylog_file=_text(keylog_file),
        samples_file=str(drafts.samples),
        visits_file=str(drafts.visits),
        fetches_file=str(drafts.fetches),
        playback_file=_text(drafts.playback),
        frames_dir=_text(drafts.frames),
        har_dir=str(drafts.har),
        qlog_dir=_text(qlog_dir),
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
