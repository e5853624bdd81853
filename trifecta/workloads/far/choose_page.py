"""From what first looks found to a study of visits: robots.txt, which browsers, which hosts, and how many visits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trifecta.analysis.betting import fewest_blocks
from trifecta.analysis.polite_planner import TrialTraffic, look_requests
from trifecta.contract.far import AddressObservation, PageObservation
from trifecta.contract.values import JsonObject, JsonValue
from trifecta.design.errors import CannotError
from trifecta.design.far import MOST_HOSTS
from trifecta.design.manners import Manners
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.design.workloads.far_page import FarPageWorkload
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace
from trifecta.workloads.far import names, page_look, robots
from trifecta.workloads.far.addresses import spot_of
from trifecta.workloads.far.choose import Choice, LookRequest, body, levels_of, possible, to_look_at
from trifecta.workloads.far.page_look import PageLooker, Spot
from trifecta.workloads.far.page_session import SEEN_IN_THIS_PROCESS, look_protocol, page_pins
from trifecta.workloads.far.rate_limiter import OF_THIS_PROCESS, RateLimiter

_VISITS = ((2, 1), (1, 1))
"""Measured visits of a trial and those before, the best first: the first visit of a browser has its own start in it."""
_CONFIDENCE = 0.95  # of a study that does not say


@dataclass(frozen=True)
class PageChoice:
    """What can be compared, and what a visit takes."""

    base: Choice
    third_parties: tuple[str, ...]
    visits: tuple[int, int]
    """Measured, and before."""
    requests: int
    octets: int
    pages: tuple[PageObservation, ...]


def _workload(wanted: LookRequest) -> FarPageWorkload:
    """How a page is looked at."""
    return FarPageWorkload(url=wanted.targets[0].url, owned=wanted.owned or None)


def ask_robots(wanted: LookRequest, stop: Callable[[], bool], tell: Callable[[str], None]) -> None:
    """Before any page is asked for: CannotError where its robots.txt forbids it to us, or cannot be read."""
    keeper = RateLimiter(_workload(wanted).manners, stop, sent=OF_THIS_PROCESS)
    for target in wanted.targets:
        tell(f"{robots.ROBOTS} of {target.host}")
        families = to_look_at(names.resolve(target.host, target.port), wanted.addresses)
        if not families:
            raise CannotError(f"{target.host} has no such address; choose another (--address)")
        addresses = [address for _, address in families]
        robots.refuse_forbidden(robots.read(target, addresses, wanted.authorities, keeper).about(target))


def look(
    engine: Path,
    wanted: LookRequest,
    browsers: Sequence[str],
    observations: Sequence[AddressObservation],
    folder: Path,
    *,
    stop: Callable[[], bool],
    tell: Callable[[str], None],
) -> PageChoice:
    """Visit every page once in every browser, and again as long as it names hosts that were not known.

    ``tell`` is called with each before. CannotError for what cannot be compared, with the reasons.
    """
    base = possible(wanted, observations)
    workload = _workload(wanted)
    keeper = RateLimiter(workload.manners, stop, sent=OF_THIS_PROCESS)
    given = wanted.authorities if wanted.own_authorities else None
    looker = PageLooker(
        LocalPlace(LocalHost(), engine),
        workload,
        keeper,
        folder / "page.log",
        authorities=given,
        cpus=page_pins()["client"],
        stop=stop,
    )
    hosts: tuple[str, ...] = ()
    pages: list[PageObservation] = []
    for target in wanted.targets:
        good = [
            place["address"] for place in observations if place["url"] == target.url and spot_of(place, base.protocols)
        ]
        address = min(good)
        for browser in browsers:
            tell(f"{target.url} at {address} in {browser}")
            page, hosts = looker.visit_with_hosts(Spot(target, address, look_protocol(base.protocols)), browser, hosts)
            SEEN_IN_THIS_PROCESS[target.url, browser] = page
            pages.append(page)
    return choice_of_pages(wanted, base, hosts, pages)


def choice_of_pages(
    wanted: LookRequest, base: Choice, third_parties: tuple[str, ...], pages: Sequence[PageObservation]
) -> PageChoice:
    """What of it can be compared, in so many visits as the caps allow. CannotError where that is nothing."""
    requests = max(page["requests"] for page in pages)
    octets = max(page["octets"] for page in pages)
    if third_parties and "h1" in base.protocols:
        left = tuple(protocol for protocol in base.protocols if protocol != "h1")
        why = (
            f"{PROTOCOL_NAMES['h1']}: the page asks {len(third_parties)} other hosts, and no browser turns HTTP/2 off "
            "for one host alone"
        )
        if len(left) < 2:
            last = PROTOCOL_NAMES[left[0]]
            raise CannotError(f"{wanted.targets[0].url}: only {last} is left to compare ({why})")
        base = replace(base, protocols=left, left_out=(*base.left_out, why))
    if len(third_parties) > MOST_HOSTS:
        raise CannotError(f"{wanted.targets[0].url}: asks {len(third_parties)} other hosts; choose a simpler page")
    browsers = list(dict.fromkeys(page["browser"] for page in pages))
    cells = len({page["url"] for page in pages}) * len(browsers) * len(base.addresses)
    workload = replace(_workload(wanted), third_parties=third_parties or None)
    every = [
        TrialTraffic(replace(workload, address=level), "browser", browser)
        for browser in browsers
        for level in base.addresses
    ]
    looks = look_requests(every, requests)
    arms = cells * (len(base.protocols) + 1)
    visits = _visits(workload.manners, arms, (requests, octets), looks)
    for page in pages:
        if reason := page_look.no_room(page, (len(base.protocols) + 1) * sum(visits), workload.manners):
            raise CannotError(f"{page['url']} in {page['browser']}: {reason}")
    return PageChoice(base, third_parties, visits, requests, octets, tuple(pages))


def _visits(own: Manners, arms: int, turn: tuple[int, int], looks: int) -> tuple[int, int]:
    """The first way to make visits by which enough blocks for a verdict fit below the caps, else the last."""
    requests, octets = turn
    needed = fewest_blocks(_CONFIDENCE)
    for measured, before in _VISITS:
        turns = needed * arms * (measured + before)
        if turns * requests + looks <= own.most_requests and turns * octets <= own.most_bytes:
            return measured, before
    return _VISITS[-1]


def document(wanted: LookRequest, choice: PageChoice, browsers: Sequence[str]) -> JsonObject:
    """The study, as a study file has it."""
    measured, before = choice.visits
    own: dict[str, JsonValue] = {"kind": "far-page", "visits": measured, "warmup_visits": before}
    own |= {"third_parties": " ".join(choice.third_parties)} if choice.third_parties else {}
    factors: dict[str, JsonValue] = {"client": [*browsers]}
    return body(wanted, choice.base, own, factors, budget="30 min")


def nothing_known(wanted: LookRequest, protocols: Sequence[str]) -> PageChoice:
    """What would be compared if everything were answered: by it options are judged before a look."""
    return PageChoice(Choice(tuple(protocols), levels_of(wanted), 0, ()), (), _VISITS[0], 1, 0, ())
