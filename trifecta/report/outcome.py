"""What was decided, for which cells, in a sentence for each pair of arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.facts import RunFacts
from trifecta.design import naming, numbers
from trifecta.design.phrases import listed, sentence
from trifecta.report import single_protocol
from trifecta.report.figures.style import name


@dataclass(frozen=True)
class PathAnswer:
    """What was found on one path: its name, what it is, a sentence for each pair."""

    path: str
    asked: str
    sentences: list[str]


def headline(facts: RunFacts, comparisons: Sequence[Comparison]) -> str:
    """Say what came out over all cells; of protocols only for the newest two."""
    if len(facts.arms) == 1:
        return single_protocol.headline(facts)
    sentences = []
    for arm, reference in facts.pairs:
        ones = _pair(comparisons, arm, reference)
        if ones and (naming.of_protocols() or reference == facts.baseline):
            sentences.append(sentence(_outcome(facts, ones, arm, reference)))
    if naming.of_protocols():
        del sentences[1:]  # the newest two are what is asked most; of other levels none is
    return " ".join(sentences) or "Nothing can be said yet: no block is complete."


def by_path(facts: RunFacts, comparisons: Sequence[Comparison]) -> Iterable[PathAnswer]:
    """Say it path by path, for every pair of arms."""

    def path_of(comparison: Comparison) -> str:
        return levels(comparison.cell).get("path", "")

    for path, ones in groupby(comparisons, key=path_of):
        here = list(ones)
        sentences = []
        for arm, reference in facts.pairs:
            pair = _pair(here, arm, reference)
            if pair:
                sentences.append(sentence(_outcome(facts, pair, arm, reference)))
        yield PathAnswer(path, facts.path_words(path), sentences)


def _pair(comparisons: Iterable[Comparison], arm: str, reference: str) -> list[Comparison]:
    return [one for one in comparisons if one.arm == arm and one.reference == reference]


def _outcome(facts: RunFacts, ones: Sequence[Comparison], arm: str, reference: str) -> str:
    """What came out for one pair over some cells, most telling first."""
    total, margin = len(ones), _margin(facts)
    metric = ones[0].metric
    verb, _, what = facts.verb_phrase.partition(" ")
    was = f"{verb}ed {what}" if verb else metric.wording.was
    alike = f"{was} the same, {margin}," if verb else f"were the same {margin}"
    groups = {kind: [one for one in ones if one.kind == kind] for kind in ("faster", "slower", "same", "undecided")}
    if len(groups["undecided"]) == total:
        where = "this cell" if total == 1 else f"any of the {total} cells"
        does = f"{verb}s {what} faster" if verb else f"{metric.wording.is_} {metric.has('faster')}"
        return f"whether {name(arm)} or {name(reference)} {does} could not be decided in {where}"
    for kind in ("faster", "slower", "same"):
        if len(groups[kind]) == total:
            where = "the one cell" if total == 1 else f"all {total} cells"
            if kind == "same":
                return f"{name(arm)} and {name(reference)} {alike} in {where}"
            return f"{name(arm)} {was} {metric.has(kind)} than {name(reference)} in {where}, {_span(groups[kind])}"
    parts: list[str] = []
    for kind in ("faster", "slower"):
        if groups[kind]:
            than, of = (f" than {name(reference)}", f" of {total} cells") if not parts else ("", "")
            parts.append(f"{metric.has(kind)}{than} in {len(groups[kind])}{of} ({_span(groups[kind])})")
    sentence = f"{name(arm)} {was} {listed(parts)}" if parts else ""
    if groups["same"]:
        count = len(groups["same"])
        both = f"{name(arm)} and {name(reference)} {alike} in {count} of {total} cells"
        sentence = f"{sentence}, the same {margin} in {count}" if sentence else both
    if groups["undecided"]:
        sentence += f"; {len(groups['undecided'])} stay{'s' if len(groups['undecided']) == 1 else ''} open"
    return sentence


def _span(ones: Sequence[Comparison]) -> str:
    factors = sorted(one.row["factor"] for one in ones)
    low, high = numbers.ratio(factors[0]), numbers.ratio(factors[-1])
    return f"by {low}×" if low == high else f"by {low}× to {high}×"


def _margin(facts: RunFacts) -> str:
    return f"within {numbers.percent(facts.margin)}"
