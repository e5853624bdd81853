"""How servers of others are asked: no more than answers the question, and what an owner may raise for a server of his.

Numbers, and what follows from them; who keeps to them is `trifecta.workloads.far` and
`trifecta.analysis.polite_planner`.
"""

from __future__ import annotations

from dataclasses import dataclass

_SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * _SECOND_NS
BACK_OFF_NS = 30 * _SECOND_NS  # after the first 429 or 503 without Retry-After; twice as long after each further one
LONGEST_BACK_OFF_NS = 10 * MINUTE_NS  # a server that asks for more is left alone: the run ends
MOST_REFUSALS = 3  # trials in a row that were answered so: then the run ends, too
PATIENCE = (429, 503)  # Too Many Requests (RFC 6585, 4) and Service Unavailable (RFC 9110, 15.6.4)
LOOKS = 3  # of `race URL` itself, before the first block and after the last; going on with a run takes two more
MOST_ADDRESSES = 4  # of a name's family, looked at one after the other
MOST_CONNECTS = 2  # beside one answer over TCP, while its content comes
LOOK_REQUESTS = 4 + 2 * MOST_CONNECTS  # the most of one address at one time: each protocol, and one more over UDP
PAGE_LOOKS = 3  # visits of one browser that looks at a page, while each of them names hosts that were not known before
ROBOTS_REQUESTS = 6  # for one robots.txt: it may redirect five times (RFC 9309, 2.3.1.2)
MOST_AUTHORITIES = 8  # of a file that browsers are given: each takes a program of its own to be taken in


@dataclass(frozen=True)
class Manners:
    """Caps: requests a second, octets a minute, and both over all of a run. Attempts to connect count as requests."""

    pace_per_s: float
    volume_bytes: int
    """A minute, both ways, as transport payload."""
    most_requests: int
    most_bytes: int

    def gap_ns(self, octets: int, requests: int = 1) -> int:
        """The least time between the starts of two turns, each of so many octets and requests at once."""
        of_volume = octets * MINUTE_NS / self.volume_bytes
        return round(max(requests * _SECOND_NS / self.pace_per_s, of_volume))


TO_OTHERS = Manners(2.0, 20_000_000, 1_000, 200_000_000)
TO_ONES_OWN = Manners(20.0, 1_000_000_000, 20_000, 10_000_000_000)
"""What holds where a study says that the server is the user's own, and not how it may be asked."""
MOST = Manners(1_000.0, 100_000_000_000, 1_000_000, 1_000_000_000_000)
"""A server of one's own has users, too."""
