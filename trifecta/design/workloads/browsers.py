"""The workloads of browsers: a page that is loaded, a video that is watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from trifecta.design.path_spec import PathSpec
from trifecta.design.workloads import estimates
from trifecta.design.workloads.requests import Family, Problem, RequestsWorkload


@dataclass(frozen=True)
class BrowserWorkload(RequestsWorkload):
    """What a browser does in a trial: ``visits`` one after the other, the first ``warmup_visits`` besides not measured.

    ``view``: ``cold``, with nothing kept from before; ``warm``, over connections that stand, with an empty HTTP cache;
    ``repeat``, over new connections, with the cache and the session tickets of a visit before. ``discovery``: the
    protocol is ``forced`` from the first request, or HTTP/3 is found by ``alt-svc`` (RFC 7838) after a TCP connection.
    The path lies on the wire ``impaired`` of the network client - router - switch - web and video, or on ``all``.
    ``settle_ns`` is how long a visit goes on after the page has loaded, for what comes late.
    """

    view: Literal["cold", "warm", "repeat"] = "cold"
    discovery: Literal["forced", "alt-svc"] = "forced"
    visits: int = 2
    warmup_visits: int = 1
    visit_timeout_ns: int = 60_000_000_000
    settle_ns: int = 500_000_000
    impaired: str = "client-router"

    # What its samples are.

    family: ClassVar[Family] = "visits"
    """A browser visits."""
    visiting: ClassVar[bool] = True
    """Its samples are visits."""
    direct: ClassVar[bool] = False
    """A visit makes many requests."""
    noun: ClassVar[str] = "visits"
    """What its samples are called."""

    @property
    def samples(self) -> int:
        """A trial has as many visits as are asked for."""
        return self.visits

    @property
    def warmup_samples(self) -> int:
        """So has its warm-up."""
        return self.warmup_visits

    @property
    def octets(self) -> int | None:
        """Nobody knows before the page was loaded."""
        return None

    @property
    def watched_ns(self) -> int:
        """How long a visit watches; 0 where it ends with the page."""
        return 0

    @property
    def shown(self) -> tuple[str, str]:
        """What it shows: the field that names it, and the name."""
        raise NotImplementedError

    @property
    def material(self) -> tuple[object, ...]:
        """What distinguishes what two workloads have served."""
        raise NotImplementedError

    def unhindered(self, watch_ns: int) -> Self:
        """For one visit without a network, with all there is to see: a watch takes ``watch_ns``."""
        return replace(self, view="cold", visits=1, warmup_visits=0)

    # Where it runs.

    serving_host: ClassVar[str] = "web"
    """The host of the lab whose servers the browser talks to."""

    @property
    def wires(self) -> tuple[str, ...]:
        """Two to the switch, and the one of the host that serves."""
        return ("client-router", "router-switch", f"switch-{self.serving_host}")

    @property
    def impaired_wires(self) -> tuple[str, ...]:
        """The wires on which the path lies, from the client on."""
        return self.wires if self.impaired == "all" else (self.impaired,)

    # As a trial meets it.

    def completed(self) -> Self:
        """A browser chooses its connections itself."""
        return self

    # How long it takes.

    def least_ns(self, rtt_ns: int, protocol: str, connection: str) -> int:
        """A name, a handshake, the page and one thing that the page names; a video plays in real time."""
        return (self.warmup_visits + self.visits) * max(3 * rtt_ns + self.settle_ns, self.watched_ns)

    def around_ns(self, client: str) -> int:
        """Every browser is a program of its own."""
        return estimates.PROGRAM_NS

    def work_ns(self, path: PathSpec, connection: str, client: str) -> float:
        """A visit after the other."""
        return (self.visits + self.warmup_visits) * self._visit_ns(path)

    def _visit_ns(self, path: PathSpec) -> float:
        raise NotImplementedError

    # What no program can carry out.

    def problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        """A browser makes its own requests: of them nothing can be asked that would be impossible."""
        if path.trial is not None:
            text = f"path {path.name!r} has a 'trial', but a browser's trial is as long as its visits; remove it"
            return "visits", text
        if self.discovery == "alt-svc" and "h3" not in protocols:
            return "discovery", "only HTTP/3 is found by Alt-Svc (RFC 9114 section 3.1); list HTTP/3 as a protocol"
        wires = ("all", *self.wires)
        if self.impaired not in wires:
            where = f"{self.impaired!r} is not a wire between the browser and its server"
            return "impaired", f"{where}; give one of: {', '.join(wires)}"
        return None


@dataclass(frozen=True)
class PageWorkload(BrowserWorkload):
    """The workload ``page``: a browser loads a page. ``page`` is a bundled one's name, or the folder of an archive.

    ``place``: how its server runs on the host ``web``.
    """

    page: str = "light"
    filmstrip: bool = True
    place: Literal["native", "docker-host", "docker-bridge"] = "native"
    kind: str = "page"

    compared: ClassVar[tuple[str, ...]] = ("page", "view")
    """What a visit gets depends on these."""

    @property
    def films(self) -> bool:
        """As the study asks."""
        return self.filmstrip

    @property
    def shown(self) -> tuple[str, str]:
        """The page."""
        return "page", self.page

    @property
    def material(self) -> tuple[object, ...]:
        """The archive of the page."""
        return "page", self.page

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """Containers."""
        return (("place", self.place),)

    def problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        """A server has an address of its host to itself, which a container behind a bridge has not."""
        if self.place == "docker-bridge":
            return "place", "the server of a page has an address of its host; give native or docker-host"
        return super().problem(protocols, path)

    def _visit_ns(self, path: PathSpec) -> float:
        sending = estimates.sending_ns(estimates.PAGES.get(self.page, estimates.OTHER_PAGE), path)
        return estimates.VISIT_NS + self.settle_ns + sending + 12 * estimates.trip_ns(path)


@dataclass(frozen=True)
class VideoWorkload(BrowserWorkload):
    """The workload ``video``: a browser plays HLS for ``watch_ns`` of wall time.

    ``clip`` is a bundled one's name or a file. The ``ladder`` holds height in lines and bit/s of each rung, the lowest
    first; a segment plays for ``segment_ns``. ``mode``: all of it is there (``on-demand``), or it comes as it plays
    (``live``, from files; ``live-rtmp``, through nginx's RTMP module).
    """

    clip: str = "synthetic"
    mode: Literal["on-demand", "live", "live-rtmp"] = "on-demand"
    codec: Literal["h264", "vp9"] = "h264"
    ladder: tuple[tuple[int, int], ...] = ((240, 400_000), (480, 1_200_000), (720, 2_800_000))
    segment_ns: int = 3_000_000_000
    watch_ns: int = 90_000_000_000
    visits: int = 1
    warmup_visits: int = 0
    kind: str = "video"

    compared: ClassVar[tuple[str, ...]] = ("clip", "codec", "ladder", "segment_ns", "mode")
    """What a segment holds depends on these."""
    plays: ClassVar[bool] = True
    """Its visits are watches."""

    @property
    def live(self) -> bool:
        """Whether it comes as it plays."""
        return self.mode != "on-demand"

    @property
    def watched_ns(self) -> int:
        """Wall time of a watch."""
        return self.watch_ns

    @property
    def shown(self) -> tuple[str, str]:
        """The clip."""
        return "clip", self.clip

    @property
    def material(self) -> tuple[object, ...]:
        """The clip as it is encoded, cut up and served."""
        return "video", self.clip, self.mode, self.codec, self.ladder, self.segment_ns, self.watch_ns

    def unhindered(self, watch_ns: int) -> Self:
        """For one watch without a network, with the whole video there."""
        return replace(super().unhindered(watch_ns), mode="on-demand", watch_ns=watch_ns)

    serving_host: ClassVar[str] = "video"
    """Videos have a host of their own."""

    def _visit_ns(self, path: PathSpec) -> float:
        return self.watch_ns + estimates.WATCH_NS

    def problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        """Players have limits of their own."""
        base_problem = super().problem(protocols, path)
        if base_problem is not None:
            return base_problem
        if not 1_000_000_000 <= self.segment_ns <= 20_000_000_000:
            return "segment", "a segment plays for 1 s to 20 s; HLS players expect some seconds (RFC 8216)"
        if self.watch_ns < 2 * self.segment_ns:
            return "watch", "is shorter than two segments; watch longer, or make the segments shorter"
        return None
