"""What runs say of two claims that contradict each other, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.analysis.reconciling import PairEvidence, Place, Side
from trifecta.conclude.comparisons import levels
from trifecta.conclude.reconcile.procedures import Procedure
from trifecta.conclude.reconcile.read import Explained
from trifecta.contract.reproduction import Judged
from trifecta.contract.threats import ThreatDocument
from trifecta.design import numbers
from trifecta.design.metrics import find
from trifecta.design.metrics import label as label_of
from trifecta.design.phrases import counted, listed, sentence
from trifecta.report import threats
from trifecta.report.explain import words as chains
from trifecta.report.explain.resampled import WORDS
from trifecta.report.figures.style import name
from trifecta.report.verdict_words import place_words


def answer(pair: PairEvidence) -> str:
    """The outcome of a pair, and how often either side holds in the cells of the studies."""
    if pair.outcome == "not run":
        return "No run answers this."
    sides = [_side(pair, side, places) for side, places in zip(pair.pair.sides, pair.places, strict=True)]
    return f"{_outcome(pair)}. {sentence(sides[0])} {sentence(sides[1])}"


def _outcome(pair: PairEvidence) -> str:
    """What the studies' cells say of both sides; that one is open is not that it is wrong."""
    if pair.outcome == "both":
        return "In the studies' treatments both hold, each in its place"
    if pair.outcome == "neither":
        return "In the studies' treatments neither holds"
    if pair.outcome == "open":
        return "Our runs of the studies' treatments do not decide it"
    first = pair.outcome == "first"
    one, other = ("first", "second") if first else ("second", "first")
    left = pair.holds[1 if first else 0]
    if left == "no":
        return f"In the studies' treatments only the {one} holds"
    return (
        f"In the studies' treatments the {one} holds; the {other} {'stays open' if left == 'open' else 'was not run'}"
    )


def _side(pair: PairEvidence, side: Side, places: Sequence[Place]) -> str:
    """``“HTTP/3 is the slowest” holds in 3 of 4 cells and is open in 1 (HTTP/3 ÷ HTTP/2 1.12 to 1.40)``."""
    quoted = f"“{side.says}”"
    if not places:
        return f"{quoted} could not be checked: no cell that it is about was run"
    ratio = f"({name(pair.pair.arm)} ÷ {name(pair.pair.to)} {_span(places)})"
    states = {"confirmed": "holds", "contradicted": "does not hold", "open": "stays open"}
    counts = {state: sum(one.state == state for one in places) for state in states}
    if len(places) == 1:
        return f"{quoted} {states.get(places[0].state, 'stays open')} in the one cell that it is about {ratio}"
    there = [(states[state], number) for state, number in counts.items() if number]
    if len(there) == 1:
        every = "both" if len(places) == 2 else f"all {len(places)}"
        return f"{quoted} {there[0][0]} in {every} cells {ratio}"
    head, *rest = there
    sentences = [
        f"{head[0]} in {head[1]} of {counted(len(places), 'cell')}",
        *(f"{what} in {number}" for what, number in rest),
    ]
    return f"{quoted} {listed(sentences)} {ratio}"


def _span(places: Sequence[Place]) -> str:
    known = sorted(one.ratio for one in places if one.ratio is not None)
    if not known:
        return "unknown"
    low, high = numbers.ratio(known[0]), numbers.ratio(known[-1])
    return low if low == high else f"{low} to {high}"


def condition(pair: PairEvidence) -> str:
    """What tells the places of one side from those of the other; empty where nothing does."""
    if pair.outcome != "both" or not pair.differ:
        return ""
    sentences = [
        f"{factor.replace('_', ' ')} ({listed(first)} for the first, {listed(second)} for the second)"
        for factor, (first, second) in pair.differ.items()
        if factor != "study"
    ]
    sides = pair.pair.sides
    if not sentences:
        return ""
    return f"Where “{sides[0].says}” held and where “{sides[1].says}” held, these differ: {listed(sentences)}."


def label(place: Place) -> str:
    """``milicevic2023 latency: far, new connections, hypercorn``."""
    run = place.run.replace("/", " ")
    words = ", ".join(filter(None, (levels(place.cell).get("path", ""), place_words(place.cell))))
    return f"{run}: {words}"


def interval(place: Place) -> str:
    """``1.12 [1.08, 1.17]``."""
    return f"{numbers.ratio(place.ratio)} {numbers.interval((place.low, place.high))}"


def metrics(pair: PairEvidence) -> str:
    """What the ratios are of, side by side."""
    metric_names = dict.fromkeys(_time_metric(one.metric) for places in pair.places for one in places)
    return listed(list(metric_names))


def _time_metric(name: str) -> str:
    """Rates are turned upside down before they are compared (`places`): what is left is the time a request takes."""
    known = find(name)
    return f"time per request, the inverse of {known.label}" if known and known.unit == "1/s" else label_of(name)


def because(explanation: Explained) -> list[str]:
    """The effect of an explained place, its causes, and what would overturn it."""
    chain, place = explanation.chain, explanation.place
    arm, reference = name(chain.comparison.arm), name(chain.comparison.reference)
    links = {link.name: link.sentences for link in chains.links(explanation.about, chain)}
    sentences = [f"{_pair(explanation)} {interval(place)} over {counted(place.blocks, 'block')}: {place.state}."]
    if chain.comparison.arm != explanation.pair.arm:
        sentences.append(f"What follows is the same comparison the other way round: {arm} against {reference}.")
    sentences += links.get("causes", ())
    if chain.comparison.decided:
        far = links.get("overturn", ())[:1]
        sentences += [f"What would overturn {arm} against {reference}: {text}" for text in far]
    return [*sentences, *chains.steadiness(chain.challenge), *[f"In doubt: {text}" for text in links.get("doubts", ())]]


def _pair(explanation: Explained) -> str:
    """``HTTP/3 ÷ HTTP/2``, as the place has it."""
    first, second = explanation.pair.arm, explanation.pair.to
    return f"{name(first)} ÷ {name(second)}"


def threat(one: ThreatDocument) -> str:
    """What was measured of a threat."""
    if one.get("outcome") == "not measured":
        return sentence(f"not measured by an experiment: {one.get('reason', '')}")
    if "resampled" in one or one.get("outcome") == "resampled":
        return "Carried out on our own samples: see what the studies' own procedures would have concluded."
    return " ".join(sentence(line) for line in threats.sentences(one))


def procedure(one: Procedure) -> str:
    """What a study's procedure would have concluded, and against which truth it is wrong."""
    words = WORDS.get(one.name, one.name)
    head = f"{one.study}, {one.name} ({words}), in {counted(one.cells, 'cell')}: "
    parts = []
    if one.rate is not None:
        spread = "" if one.least == one.most else f", {_percent(one.least)} to {_percent(one.most)} by cell"
        parts.append(
            f"where all blocks name the faster protocol ({counted(one.decided, 'cell')}), wrong in "
            f"{_percent(one.rate)} of "
            f"{numbers.count(one.draws)} conclusions [{_percent(one.low)}, {_percent(one.high)}]{spread}"
        )
    else:
        parts.append("in no cell do all blocks name the faster protocol, so nothing can be called wrong")
    if one.same:
        parts.append(
            f"{counted(one.same, 'cell')} without a difference beyond the margin, where it names a winner all the same"
        )
    if one.open:
        stay, count = ("stays", "counts") if one.open == 1 else ("stay", "count")
        parts.append(f"{counted(one.open, 'cell')} {stay} open by all blocks and {count} neither way")
    if one.contradict is not None:
        parts.append(f"two such studies would contradict each other in {_percent(one.contradict)} of cases")
    return f"{head}{'; '.join(parts)}."


def _percent(share: float | None) -> str:
    return numbers.percent(share)


def answered(claim: Judged, state: str) -> str:
    """What becomes of a claim, today and as published; its state where a file of before says no more."""
    return str(claim.get("answer", state)) if state != "not run" else state
