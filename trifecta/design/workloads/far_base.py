"""What workloads have in common whose servers are elsewhere: where they go, and how much is asked at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trifecta.design import manners, quantity
from trifecta.design.machine import HERE
from trifecta.design.manners import Manners
from trifecta.design.path_spec import PathSpec
from trifecta.design.workloads.requests import Problem, RequestsWorkload

ROUND_TRIP_NS = 100_000_000  # of a path of which nothing is known before it is looked at


@dataclass(frozen=True)
class FarBaseWorkload(RequestsWorkload):
    """A workload that leaves the machine, for ``url``, over the path as it is.

    ``address`` is where the name's requests go: an IP address, or ``IPv4`` or ``IPv6``, one of whose addresses is
    chosen for every block. ``ca`` is a file of certificate authorities. ``pace_per_s``, ``volume_bytes`` a minute, and
    ``most_requests`` and ``most_bytes`` in all are caps; None: as they are at servers of others, or, with ``owned``, at
    one's own (``trifecta.design.manners``). ``vantage`` is from where it is asked: a machine by SSH; None: this one.
    """

    url: str = ""
    address: str = "IPv4"
    ca: str | None = None
    owned: bool | None = None
    pace_per_s: float | None = None
    volume_bytes: int | None = None
    most_requests: int | None = None
    most_bytes: int | None = None
    in_flight: int = 1
    vantage: str | None = None

    outside: ClassVar[bool] = True
    """It does."""

    @property
    def elsewhere_at(self) -> str | None:
        """None, too, where it is a factor."""
        return self.url or None

    @property
    def octets(self) -> int | None:
        """Nobody knows before it was looked at."""
        return None

    @property
    def wires(self) -> tuple[str, ...]:
        """None of ours."""
        return ()

    @property
    def impaired_wires(self) -> tuple[str, ...]:
        """So nothing lies on one."""
        return ()

    @property
    def asked_from(self) -> str:
        """From where it is asked, as a study writes it: ``here``, or ``ssh://HOST``."""
        return self.vantage or HERE

    @property
    def distant(self) -> bool:
        """From a vantage point."""
        return self.asked_from != HERE

    @property
    def manners(self) -> Manners:
        """The caps in force."""
        usual = manners.TO_ONES_OWN if self.owned else manners.TO_OTHERS
        return Manners(
            self.pace_per_s or usual.pace_per_s,
            self.volume_bytes or usual.volume_bytes,
            self.most_requests or usual.most_requests,
            self.most_bytes or usual.most_bytes,
        )

    @property
    def hosts_beside(self) -> tuple[str, ...]:
        """Hosts besides that of the URL that are asked."""
        return ()

    @property
    def look_turns(self) -> int:
        """How many turns looks take at most, besides single requests."""
        return 0

    def turns(self, connection: str) -> int:
        """How often a trial asks: all of its requests, or of its visits, each of which is many."""
        raise NotImplementedError

    def unaskable(self, path: PathSpec) -> Problem | None:
        """What no program can carry out, and what is more than a server should be asked."""
        if not self.url:
            return "url", "is missing; give what is asked for, such as 'url: https://www.example.org/'"
        if path.linked or path.trial is not None:
            return "path", "nothing of a path to a server elsewhere is emulated; remove its fields"
        return self._cap_problem()

    def _cap_problem(self) -> Problem | None:
        own, most = self.manners, manners.MOST if self.owned else manners.TO_OTHERS
        rate, size = quantity.format_frequency, quantity.format_size
        caps = (
            ("pace", own.pace_per_s, most.pace_per_s, rate(own.pace_per_s), rate(most.pace_per_s)),
            ("volume", own.volume_bytes, most.volume_bytes, size(own.volume_bytes), size(most.volume_bytes)),
            ("most_requests", own.most_requests, most.most_requests, f"{own.most_requests}", f"{most.most_requests}"),
            ("most_volume", own.most_bytes, most.most_bytes, size(own.most_bytes), size(most.most_bytes)),
        )
        for field, given, allowed, text, limit in caps:
            if given > allowed:
                what = f"{text} is more than {limit}"
                if self.owned:
                    return field, f"{what}, the most that is asked of any server; lower it"
                return field, f"{what}, the most at a server of others; lower it, or claim it as yours (--i-own-this)"
        return None
