"""What runs say of two claims that contradict each other, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trifecta.analysis.reconciling import Found, Place, Side
from trifecta.report import numbers, threats
from trifecta.report.comparisons import levels, place_words
from trifecta.report.explain import words as chains
from trifecta.report.explain.resampled import WORDS
from trifecta.report.figures.style import name
from trifecta.report.reconcile.read import Explained, Procedure
from trifecta.report.words import counted, listed, sentence


def answer(found: Found) -> str:
    """The outcome of a pair in one or two sentences."""
    sides = [_side(side, places) for side, places in zip(found.pair.sides, found.places, strict=True)]
    both = f"{sides[0]}; {sides[1]}"
    said = {
        "both": "Both hold here, each in its place",
        "first": "Here only the first holds",
        "second": "Here only the second holds",
        "neither": "Here neither holds",
        "open": "Not decided here",
        "not run": "Nothing was run that tells",
    }[found.outcome]
    return f"{said}. {sentence(both)}" if found.outcome != "not run" else f"{said}."


def _side(side: Side, places: Sequence[Place]) -> str:
    """``“HTTP/3 is the slowest” holds in 3 of 4 cells (ratio 1.12 to 1.40)``."""
    quoted = f"“{side.says}”"
    if not places:
        return f"{quoted} could not be looked at"
    held = [one for one in places if one.state == "confirmed"]
    denied = [one for one in places if one.state == "contradicted"]
    total = counted(len(places), "cell")
    if held:
        return f"{quoted} holds in {len(held)} of {total} ({_span(held)})"
    if denied:
        return f"{quoted} is contradicted in {len(denied)} of {total} ({_span(denied)})"
    return f"{quoted} stays open in {'the one cell' if len(places) == 1 else f'all {total}'} ({_span(places)})"


def _span(places: Sequence[Place]) -> str:
    known = sorted(one.ratio for one in places if one.ratio is not None)
    if not known:
        return "no ratio"
    low, high = numbers.ratio(known[0]), numbers.ratio(known[-1])
    return f"ratio {low}" if low == high else f"ratio {low} to {high}"


def condition(found: Found) -> str:
    """What tells the places of one side from those of the other; empty where nothing does."""
    if found.outcome != "both" or not found.differ:
        return ""
    told = [
        f"{factor.replace('_', ' ')} ({listed(first)} for the first, {listed(second)} for the second)"
        for factor, (first, second) in found.differ.items()
        if factor != "study"
    ]
    sides = found.pair.sides
    if not told:
        return ""
    return f"Where “{sides[0].says}” held and where “{sides[1].says}” held, these differ: {listed(told)}."


def label(place: Place) -> str:
    """``milicevic2023 latency: far, new connections, hypercorn``."""
    run = place.run.replace("/", " ")
    words = ", ".join(filter(None, (levels(place.cell).get("path", ""), place_words(place.cell))))
    return f"{run}: {words}"


def interval(place: Place) -> str:
    """``1.12 [1.08, 1.17]``."""
    return f"{numbers.ratio(place.ratio)} {numbers.interval((place.low, place.high))}"


METRICS = {
    "latency_p50_ns": "median time",
    "load_ns": "load time",
    "duration_ns": "first to last packet or request",
    "first_response_ns": "time to the first octet",
    "requests_per_s": "time a request, the inverse of the rate",
    "wire_bytes": "octets on the wire",
    "rss_bytes": "memory",
}


def metrics(found: Found) -> str:
    """What the ratios are of, side by side."""
    told = dict.fromkeys(METRICS.get(one.metric, one.metric) for places in found.places for one in places)
    return listed(list(told))


def because(one: Explained) -> list[str]:
    """The effect of an explained place, its causes, and what would overturn it."""
    chain, place = one.chain, one.place
    arm, reference = name(chain.comparison.arm), name(chain.comparison.reference)
    links = {link.name: link.sentences for link in chains.links(one.about, chain)}
    said = [f"{_pair(one)} {interval(place)} over {counted(place.blocks, 'block')}: {place.state}."]
    said += links.get("causes", ())
    if chain.comparison.decided:
        far = links.get("overturn", ())[:1]
        said += [f"What would overturn {arm} against {reference}: {text}" for text in far]
    return [*said, *chains.steadiness(chain.challenge), *[f"In doubt: {text}" for text in links.get("doubts", ())]]


def _pair(one: Explained) -> str:
    """``HTTP/3 ÷ HTTP/2``, as the place has it."""
    first, second = one.pair.arm, one.pair.to
    return f"{name(first)} ÷ {name(second)}"


def threat(one: Mapping[str, Any]) -> str:
    """What was measured of a threat."""
    if one.get("outcome") == "not measured":
        return sentence(f"not measured by an experiment: {one.get('reason', '')}")
    return " ".join(sentence(line) for line in [*threats.sentences(dict(one)), *_models(one)])


def _models(one: Mapping[str, Any]) -> list[str]:
    """Measured ratios beside those of round trips alone: the first few say it."""
    told = []
    for item in [item for item in one.get("model") or () if "trips" in item and item.get("ratio")][:4]:
        place = ", ".join(
            f"{key} {item['levels'][key]}" for key in ("path", "connection", "tls_version") if key in item["levels"]
        )
        trips = " to ".join(str(trip) for trip in item["trips"])
        told.append(
            f"{place}: {name(item['arm'])} ÷ {name(item['reference'])} {numbers.ratio(item['ratio'])} "
            f"{numbers.interval((item.get('low'), item.get('high')))}, round trips alone ({trips}) make "
            f"{numbers.ratio(item['expected'])}"
        )
    return told


def procedure(one: Procedure) -> str:
    """What a study's procedure would have concluded."""
    words = WORDS.get(one.name, one.name)
    return (
        f"{one.study}, {one.name} ({words}): wrong in {numbers.percent(one.rate)} of {numbers.count(one.draws)} "
        f"conclusions on our data [{numbers.percent(one.low)}, {numbers.percent(one.high)}], between "
        f"{numbers.percent(one.least)} and {numbers.percent(one.most)} by cell ({counted(one.cells, 'cell')})."
    )
