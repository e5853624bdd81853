"""From what a first look found to a study: which protocols, and which addresses, can be compared from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.contract.far import AddressObservation
from trifecta.contract.values import JsonObject, JsonValue
from trifecta.design.errors import CannotError
from trifecta.design.far import FAMILIES, family_of
from trifecta.design.manners import MOST_ADDRESSES
from trifecta.design.model import PROTOCOL_NAMES, PROTOCOLS
from trifecta.design.stat import Target
from trifecta.design.workloads.far import FarWorkload
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace
from trifecta.workloads.far import names
from trifecta.workloads.far.addresses import no_room, spot_of, why_not
from trifecta.workloads.far.configs import Request
from trifecta.workloads.far.look import Looker
from trifecta.workloads.far.rate_limiter import OF_THIS_PROCESS, RateLimiter

MOST_LEVELS = 2  # addresses that are levels by themselves; of more, a block goes to one that is drawn
_SETS = (PROTOCOLS, ("h2", "h3"), ("h1", "h3"), ("h1", "h2"))
"""What may be compared, the best first."""
_REQUESTS = 4  # a trial that are measured
_LOOK_TIMEOUT_NS = 5_000_000_000


@dataclass(frozen=True)
class LookRequest:
    """What a user asks for, before anything was looked at."""

    targets: tuple[Target, ...]
    authorities: Path
    addresses: tuple[str, ...] = ()
    """Levels of ``address``; none: whatever the names stand for."""
    own_authorities: bool = False
    owned: bool = False
    connect_timeout_ns: int = _LOOK_TIMEOUT_NS
    """Of a look: where nobody answers, all of it is waited out."""

    @property
    def workload(self) -> FarWorkload:
        """How it is looked at."""
        return FarWorkload(
            url=self.targets[0].url,
            owned=self.owned or None,
            requests=1,
            connect_timeout_ns=self.connect_timeout_ns,
            request_timeout_ns=_LOOK_TIMEOUT_NS,
        )


@dataclass(frozen=True)
class Choice:
    """What can be compared, and what was left out, in sentences."""

    protocols: tuple[str, ...]
    addresses: tuple[str, ...]
    answer_bytes: int
    """The most of one answer with its connection, both ways."""
    left_out: tuple[str, ...]


def look(
    engine: Path, wanted: LookRequest, stop: Callable[[], bool], folder: Path, tell: Callable[[str], None]
) -> list[AddressObservation]:
    """One look at every address; ``tell`` is called with each before. CannotError for a name that stands for none."""
    workload = wanted.workload
    keeper = RateLimiter(workload.manners, stop, sent=OF_THIS_PROCESS)
    looker = Looker(LocalPlace(LocalHost(), engine), workload, keeper, folder / "look.log", stop)
    observations: list[AddressObservation] = []
    for target in wanted.targets:
        resolved = names.resolve(target.host, target.port)
        record = names.https_record(target.host, target.port)
        for level, address in to_look_at(resolved, wanted.addresses):
            tell(f"{target.url} at {address}")
            request = Request(target, address, "", wanted.authorities)
            observations.append(looker.see(request, level, resolved, record))
    return observations


def to_look_at(resolved: names.Resolved, levels: Sequence[str]) -> list[tuple[str, str]]:
    """(level, address) of a name; UserError-free: a level without an address is said of the choice."""
    wanted = levels or tuple(dict.fromkeys(map(family_of, resolved.addresses)))
    return [(level, address) for level in wanted for address in sorted(resolved.of(level))[:MOST_ADDRESSES]]


def choose(wanted: LookRequest, observations: Sequence[AddressObservation]) -> Choice:
    """What can be compared by single requests; CannotError, with the reasons, where that is nothing, or too much."""
    choice = possible(wanted, observations)
    # Every protocol, the baseline twice, with the request that opens a connection.
    requests = (len(choice.protocols) + 1) * (_REQUESTS + 1)
    if reason := no_room(choice.answer_bytes, requests, wanted.workload.manners):
        raise CannotError(f"{wanted.targets[0].url}: {reason}")
    return choice


def possible(wanted: LookRequest, observations: Sequence[AddressObservation]) -> Choice:
    """What is answered alike at every URL; CannotError, with the reasons, where that is nothing."""
    for protocols in _SETS:
        good = [place for place in observations if spot_of(place, protocols) is not None]
        addresses = _levels(wanted, good)
        if addresses:
            break
    else:
        reasons = [why_not(place, PROTOCOLS) for place in observations] or ["no address was found"]
        raise CannotError("; ".join(dict.fromkeys(reasons)))
    notes = [_without(protocol, observations) for protocol in PROTOCOLS if protocol not in protocols]
    notes += [why_not(place, protocols) for place in observations if place not in good]
    spots = (spot_of(place, protocols) for place in good)
    most = max(spot.answer_bytes for spot in spots if spot is not None)
    return Choice(protocols, addresses, most, tuple(dict.fromkeys(notes)))


def _levels(wanted: LookRequest, good: Sequence[AddressObservation]) -> tuple[str, ...]:
    """The levels of ``address`` that every URL has: addresses, where these are few and shared, or families."""
    if wanted.addresses:
        return _shared(wanted, good, wanted.addresses, lambda place: place["level"])
    single = tuple(dict.fromkeys(place["address"] for place in good))
    if len(single) <= MOST_LEVELS and _shared(wanted, good, single, lambda place: place["address"]) == single:
        return single
    return _shared(wanted, good, FAMILIES, lambda place: family_of(place["address"]))


def _shared(
    wanted: LookRequest,
    good: Sequence[AddressObservation],
    levels: Sequence[str],
    level_of: Callable[[AddressObservation], str],
) -> tuple[str, ...]:
    """Those of the levels that places of every URL have."""
    there = {(place["url"], level_of(place)) for place in good}
    return tuple(level for level in levels if all((target.url, level) in there for target in wanted.targets))


def _without(protocol: str, observations: Sequence[AddressObservation]) -> str:
    """Why a protocol is not among those that are compared."""
    for place in observations:
        answers = [one for one in place["answers"] if one["protocol"] == protocol]
        if answers and answers[-1]["error"] is not None:
            udp = f"; UDP is {place['udp']}" if protocol == "h3" and place["udp"] else ""
            return f"{PROTOCOL_NAMES[protocol]} failed at {place['address']} ({answers[-1]['error']}{udp})"
    return f"{PROTOCOL_NAMES[protocol]} was not answered like the others"


def levels_of(wanted: LookRequest) -> tuple[str, ...]:
    """The levels of ``address`` as far as they are known before a look."""
    return wanted.addresses or FAMILIES[:1]


def document(wanted: LookRequest, choice: Choice) -> JsonObject:
    """The study, as a study file has it."""
    own: dict[str, JsonValue] = {"kind": "far", "requests": _REQUESTS}
    return body(wanted, choice, own, {"connection": ["new", "reused"]}, budget="15 min")


def body(
    wanted: LookRequest,
    choice: Choice,
    workload: Mapping[str, JsonValue],
    more: Mapping[str, JsonValue],
    *,
    budget: str,
) -> JsonObject:
    """A study of this workload, with these factors besides protocols, URLs and addresses."""
    urls = [target.url for target in wanted.targets]
    own = dict(workload)
    own |= {"ca": str(wanted.authorities.resolve())} if wanted.own_authorities else {}
    own |= {"owned": True} if wanted.owned else {}
    factors: dict[str, JsonValue] = {
        "protocol": [PROTOCOL_NAMES[one] for one in choice.protocols],
        **more,
    }
    for name, levels in (("url", urls), ("address", list(choice.addresses))):
        if len(levels) > 1:
            factors[name] = [*levels]
        else:
            own[name] = levels[0]
    first = wanted.targets[0].host
    others = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
    return {
        "study": _name_of(first),
        "title": f"{first}{others}, from here",
        "workload": own,
        "factors": factors,
        "baseline": PROTOCOL_NAMES["h2" if "h2" in choice.protocols else choice.protocols[0]],
        "budget": budget,
    }


def _name_of(host: str) -> str:
    """A study's name, which is part of its folder's."""
    return f"far-{''.join(letter if letter.isalnum() and letter.isascii() else '-' for letter in host)}"[:64]
