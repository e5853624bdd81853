"""What was seen of servers elsewhere, in sentences: looks, what is coming, and what one side cannot know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trifecta.contract.far import AddressObservation, Look, PageObservation, RequestOutcome, RobotsObservation
from trifecta.design import naming, numbers, quantity
from trifecta.design.machine import from_where
from trifecta.design.manners import Manners
from trifecta.design.metric import Metric
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.report.verdict_words import place_words

if TYPE_CHECKING:
    from trifecta.conclude.far import ArmOverPlaces

UDP = {
    "open": "UDP passes",
    "slow": "UDP is slow: content comes over HTTP/3 at less than half of TCP's rate (throttled, or the server's own)",
    "closed": "nothing listens on UDP",
    "blocked": "UDP is blocked: HTTP/3 is announced, and no packet came back",
    "silent": "no packet came back over UDP, and HTTP/3 is not announced: not offered, or blocked",
    "other": "UDP passes, HTTP/3 fails",
}
OF_PAGES = (
    "Browsers were made to speak each protocol with the host of the URL. Names were looked up once a block, before the "
    "visits, which have no look-up in them. Certificates were verified by the roots that a browser brings, and by "
    "those of --ca."
)
OF_THIRD_PARTIES = (
    "Third parties were not forced: where HTTP/2 was to be used a browser has HTTP/3 switched off, for them "
    "too; where HTTP/3 was, they may have used it."
)
UNKNOWN = (
    "One side cannot know what the path loses on the way here, its rate, the server's congestion control, load and "
    "software, or a cache that does not identify itself: checks that need the other side say so."
)
OF_VANTAGES = (
    "Every block was measured from one place, so places are never mixed: each has its own verdicts, adjusted for the "
    "number of places."
)
NOTHING_EMULATED = "Nothing is emulated"


def place_lines(place: AddressObservation) -> list[str]:
    """A place in two or three sentences, a line each."""
    where = f"{place['url']} at {place['address']}{from_where(place.get('vantage'))}"
    sentences = [f"{where}: {', '.join(map(_answer, place['answers']))}."]
    idle, loaded = place["idle_rtt_ns"], place["loaded_rtt_ns"]
    if idle is not None:
        busy = f", {numbers.duration(loaded)} while content arrived." if loaded is not None else f". {_unloaded(place)}"
        sentences.append(f"Round trip {numbers.duration(idle)} idle{busy} {_udp(place)}".rstrip())
    else:
        sentences.append(_udp(place))
    return [line for line in sentences if line]


def _unloaded(place: AddressObservation) -> str:
    """Why there is no round trip while content arrived, and how it is had."""
    if place.get("vantage") is not None:
        why = "it is only measured from this machine"
    elif not any(one["error"] is None and one["content_bytes"] for one in place["answers"] if one["protocol"] != "h3"):
        why = "no content arrived over TCP"
    else:
        why = (
            "responses over TCP were too short for a connect meanwhile at this pace; "
            "use a larger URL, or --i-own-this for your own server"
        )
    return f"Not measured while content arrived: {why}."


def _answer(outcome: RequestOutcome) -> str:
    name = PROTOCOL_NAMES[outcome["protocol"]]
    if outcome["error"] is not None:
        return f"{name} {outcome['error']}"
    small = f" in packets of {outcome['udp_payload_bytes']:,} B" if outcome["udp_payload_bytes"] == 1200 else ""
    return f"{name} {outcome['status']} with {numbers.size(outcome['content_bytes'])}{small}"


def _udp(place: AddressObservation) -> str:
    state = place["udp"]
    announcements = " and ".join(place["announced"])
    announced = (
        f"HTTP/3 is announced by {announcements}" if announcements else "HTTP/3 is not announced, but was forced"
    )
    record = place["https_record"]
    unread = f"; the HTTPS record could not be read ({record['error']})" if record and record["found"] is None else ""
    return f"{UDP[state]}{_unjudged(place)}; {announced}{unread}." if state is not None else ""


def _unjudged(place: AddressObservation) -> str:
    """That nothing was said of UDP's rate, where no answer was large enough for it, over one or the other."""
    from trifecta.analysis.far import ENOUGH_BYTES
    from trifecta.conclude.far import judges_rates

    if place["udp"] != "open" or judges_rates(place["answers"]):
        return ""
    enough = numbers.without_zeros(numbers.size(ENOUGH_BYTES))
    return f" (its rate is not judged: that takes responses of {enough} over both)"


def coming_line(
    hosts: Sequence[str],
    requests: tuple[int, int],
    most_bytes: int,
    time_ns: tuple[int, int],
    own: Manners,
    *,
    at_once: bool = False,
) -> str:
    """What is about to be sent, in one sentence. ``at_once``: many together, as a visit of a page asks."""
    few, many = requests
    number = f"{few:,} to {many:,}" if few < many else f"{many:,}"
    if not few:  # nobody knows yet
        number = f"up to {many:,}"
    low, high = (numbers.wall(ns) for ns in time_ns)
    took = low if low == high else f"{low} to {high}"
    octets, cap = (numbers.without_zeros(numbers.size(size)) for size in (most_bytes, own.most_bytes))
    most = f"{cap} both ways at most"
    if most_bytes < own.most_bytes:
        most = f"up to {octets} both ways if responses keep their size ({cap} at most)"
    pace, volume = quantity.format_frequency(own.pace_per_s), quantity.format_size(own.volume_bytes)
    if at_once:
        pace += " on average, since a visit requests its page at once,"
    return (
        f"This sends {number} requests to {', '.join(hosts)}, and {most}, in {took}: no more than {pace} "
        f"and {volume} a minute, less when the server asks to slow down."
    )


def vantage_line(vantages: Sequence[str]) -> list[str]:
    """From where requests come, where that is not this machine alone."""
    if vantages in ([], ["here"]):
        return []
    return [f"They come from {', '.join(vantages)}, never from two at once, and the caps hold for all together."]


def too_few_line(blocks: int | None, needed: int) -> list[str]:
    """What is to be said where the caps end a run before anything can be decided; nothing where they do not."""
    if blocks is None or blocks >= needed:
        return []
    return [
        f"The caps allow {blocks} {'block' if blocks == 1 else 'blocks'} of every cell, and nothing is decided "
        f"before {needed}: verdicts will stay open. Use fewer protocols, browsers, addresses or visits, a page "
        "of fewer requests, or --i-own-this where the server is yours."
    ]


def page_lines(page: PageObservation) -> list[str]:
    """A visit of a page in a sentence or two."""
    took = f" in {numbers.duration(page['load_ns'])}" if page["load_ns"] is not None else ""
    name = PROTOCOL_NAMES[page["protocol"]]
    where = f"{page['url']} at {page['address']} in {page['browser']}"
    what = f"failed with {page['error']}" if page["error"] is not None else f"loaded{took} over {name}"
    sentences = [f"{where}: {what}, {page['requests']:,} requests and about {numbers.size(page['octets'])}."]
    if page["third_parties"]:
        hosts = ", ".join(f"{host} ({count})" for host, count in page["third_parties"].items())
        sentences.append(f"Third parties, not forced, with their requests: {hosts}.")
    if page["unnamed"]:
        sentences.append(
            f"Not contacted, because they were named too late or have no address: {', '.join(page['unnamed'])}."
        )
    return sentences


def robots_line(robots: RobotsObservation) -> str:
    """What a robots.txt said, in a sentence."""
    if robots["rule"] is not None:
        return f"{robots['robots']} says of {robots['url']}: {robots['rule']}."
    there = "is not there" if robots["status"] >= 400 else "has no rule about it"
    return f"{robots['robots']} {there} ({robots['url']})."


def here_lines(looks: Sequence[Look], hours: tuple[str, str] | None) -> list[str]:
    """The first screen: over which path it was, and what nobody here knows."""
    places = {
        (place.get("vantage"), place["url"], place["address"]): place for look in looks for place in look["places"]
    }
    when = f", as it was from {hours[0]} to {hours[1]} UTC" if hours is not None else ""
    first = [
        f"{NOTHING_EMULATED}: this is the path from {vantage or 'this machine'} to "
        f"{_hosts([place for (by, *_), place in places.items() if by == vantage])}{when}."
        for vantage in dict.fromkeys(by for by, *_ in places) or [None]
    ]
    together = [OF_VANTAGES] if len(first) > 1 else []
    return [*first, *together, *_udp_results(looks), *_of_pages(looks), UNKNOWN]


def _hosts(places: Sequence[AddressObservation]) -> str:
    """Which hosts, at which addresses, how far away."""
    where = [
        f"{place['address']} ({numbers.duration(place['idle_rtt_ns'])})"
        if place["idle_rtt_ns"] is not None
        else place["address"]
        for place in places
    ]
    hosts = dict.fromkeys(_host(place["url"]) for place in places)
    return f"{', '.join(hosts)} at {', '.join(dict.fromkeys(where))}" if places else "a server elsewhere"


def together_lines(arms: Sequence[ArmOverPlaces], metric: Metric) -> list[str]:
    """What was decided at each place, a sentence for each arm and cell."""
    sentences = []
    for one in arms:
        verdicts = [f"{metric.word(kind)} from {', '.join(places)}" for kind, places in one.places.items()]
        what = f"{naming.name(one.arm)} against {naming.name(one.reference)}, {place_words(one.rest)}"
        sentences.append(f"{what}: {'; '.join(verdicts)}.")
    return sentences


def _of_pages(looks: Sequence[Look]) -> list[str]:
    """How pages were visited; nothing where there were none."""
    pages = [page for look in looks for page in look.get("pages", [])]
    if not pages:
        return []
    return [OF_PAGES, OF_THIRD_PARTIES] if any(page["third_parties"] for page in pages) else [OF_PAGES]


def _udp_results(looks: Sequence[Look]) -> list[str]:
    """What of UDP is not as it should be, each once."""
    bad = [
        f"{_host(place['url'])} at {place['address']}{from_where(place.get('vantage'))}: {UDP[place['udp']]}."
        for look in looks
        for place in look["places"]
        if place["udp"] not in (None, "open")
    ]
    return list(dict.fromkeys(bad))


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def slow(addresses: Sequence[str]) -> list[str]:
    """What the trials say of content over HTTP/3."""
    if not addresses:
        return []
    where = ", ".join(addresses)
    return [f"Over all trials at {where}: {UDP['slow']}."]
