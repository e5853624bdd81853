"""What answers of a server elsewhere say of where they came from and of caches, and what silence says of UDP."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from trifecta.contract.far import RequestOutcome, Udp
from trifecta.contract.stored import SeenField
from trifecta.design.far import CACHE_FIELDS

_STATES = ("hit", "miss", "expired", "stale", "revalidated", "updating", "dynamic", "bypass")
_WORD = re.compile(r"[a-z]+")
_RANDOM = re.compile(r"[0-9a-f]{6,}|\d+")  # names of machines behind one place, which differ from answer to answer
_SILENCE = ("connect_timeout", "quic:timeout", "socket:EPERM")
"""By EPERM a filter of the client's own machine stops packets on their way out: none passes, and none comes back."""
_REFUSAL = ("connect_refused", "unreachable", "connect_reset")
ENOUGH_BYTES = 100_000  # of content: less fits into the first windows, and says nothing of a rate
SLOW_SHARE = 0.5  # of the rate over TCP
LEAST_LATER_NS = 50_000_000  # by which content then comes later, too: below, it is the packets' and not a rate's
Fields = Mapping[str, SeenField]


def values(fields: Fields, name: str) -> dict[str, int]:
    """The values of a field, with how many answers had each."""
    field = fields.get(name)
    return dict(field["values"]) if field is not None else {}


def cache_states(fields: Fields) -> dict[str, int]:
    """What caches say of the answers: ``HIT``, ``MISS``, ... to how many; without such a word ``AGED``, for Age."""
    states: Counter[str] = Counter()
    for name in CACHE_FIELDS:
        for value, count in values(fields, name).items():
            states[_state(value)] += count
        if states:
            return dict(states)
    for age, count in values(fields, "age").items():
        if age.isdigit() and int(age) > 0:
            states["AGED"] += count
    return dict(states)


def _state(value: str) -> str:
    """Of ``TCP_HIT from x``, ``Miss from cloudfront``, ``ExampleCache; fwd=stale; hit`` the first word known."""
    words = _WORD.findall(value.lower())
    return next((word.upper() for word in words if word in _STATES), "OTHER")


def places(fields: Fields) -> tuple[str, ...]:
    """Where the answers came from, as far as the network that delivered them says; empty where it does not."""
    codes = set()
    for value in values(fields, "cf-ray"):
        codes.add(value.rpartition("-")[2])
    for value in values(fields, "x-amz-cf-pop"):
        codes.add(value.partition("-")[0])
    for value in values(fields, "x-served-by"):
        codes.add(value.split(",")[-1].strip().rpartition("-")[2])
    for value in values(fields, "x-vercel-id"):
        codes.add(value.partition(":")[0])
    return tuple(sorted(one.upper() for one in codes if one))


def programs(fields: Fields) -> tuple[str, ...]:
    """What the field Server says, without versions."""
    return tuple(sorted({value.partition("/")[0].strip().lower() for value in values(fields, "server")}))


def hops(fields: Fields) -> tuple[str, ...]:
    """Proxies that Via names, without the protocol in which each was asked, which is an arm's own, and random names."""
    names = set()
    for value in values(fields, "via"):
        for hop in value.split(","):
            name = hop.strip().partition(" ")[2].partition(" ")[0].lower()
            names.add(_RANDOM.sub("*", name))
    return tuple(sorted(one for one in names if one))


def timings(fields: Fields) -> tuple[str, ...]:
    """Names and descriptions that Server-Timing has; durations differ from answer to answer."""
    names = set()
    for value in values(fields, "server-timing"):
        for metric in value.split(","):
            name, *parameters = (part.strip() for part in metric.split(";"))
            sentences = [part.partition("=")[2].strip('"') for part in parameters if part.lower().startswith("desc=")]
            names.add(" ".join([name.lower(), *(_RANDOM.sub("*", one.lower()) for one in sentences)]))
    return tuple(sorted(one for one in names if one))


def udp_of(answers: Sequence[RequestOutcome], announced: Sequence[str]) -> Udp | None:
    """What the requests of one place, at one time, say of UDP there; None where HTTP/3 was not asked for."""
    quic = [one for one in answers if one["protocol"] == "h3"]
    if not quic:
        return None
    if any(one["error"] is None for one in quic):
        return "slow" if is_slow(*rates_over_both(answers)) else "open"
    error = quic[-1]["error"] or ""
    if error in _REFUSAL:
        return "closed"
    if error in _SILENCE and quic[-1]["handshake_ns"] is None:  # else it came later: packets pass
        return "blocked" if announced else "silent"
    return "other"


def rates_of(answers: Sequence[RequestOutcome]) -> list[tuple[int, int]]:
    """Octets of content and how long they came, of answers that are large enough to tell a rate."""
    return [
        (one["content_bytes"], one["transfer_ns"])
        for one in answers
        if one["transfer_ns"] and one["content_bytes"] >= ENOUGH_BYTES
    ]


def rates_over_both(answers: Iterable[RequestOutcome]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What `rates_of` tells of those over QUIC, and of those over TCP, that were answered."""
    good = [one for one in answers if one["error"] is None]
    return (
        rates_of([one for one in good if one["protocol"] == "h3"]),
        rates_of([one for one in good if one["protocol"] != "h3"]),
    )


def is_slow(quic: Sequence[tuple[int, int]], tcp: Sequence[tuple[int, int]]) -> bool:
    """Whether content comes over QUIC at less than half of its rate over TCP, and much later for it."""
    if not quic or not tcp:
        return False
    over_quic, over_tcp = (median(octets / took for octets, took in pairs) for pairs in (quic, tcp))
    later = median(took for _, took in quic) - median(took for _, took in tcp)
    return over_quic < SLOW_SHARE * over_tcp and later >= LEAST_LATER_NS


def announced(fields: Mapping[str, str], alpn: Sequence[str]) -> list[str]:
    """How HTTP/3 is announced: by the field Alt-Svc of an answer over TCP (RFC 7838), by the name's HTTPS record."""
    announcements = ["Alt-Svc"] if re.search(r'(?:^|,)\s*h3="', fields.get("alt-svc", "")) else []
    return [*announcements, "HTTPS record"] if "h3" in alpn else announcements
