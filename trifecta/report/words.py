"""The answer in words: what was decided, for which cells, what stays open, what failed, what could have been seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import cast

from trifecta.analysis.verdict import SAME_BLOCKS
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.exclusions import UnevenExclusions, uneven
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.far import arms_over_places
from trifecta.conclude.queries import QueryResult
from trifecta.contract.run import RunDocument
from trifecta.design import naming, numbers
from trifecta.design.metric import TIME
from trifecta.design.metrics import METRICS
from trifecta.design.phrases import counted, listed, sentence
from trifecta.report import next_commands, nodes, single_protocol, verdict_words
from trifecta.report.far import words as far
from trifecta.report.figures.style import name
from trifecta.report.verdict_words import place_words


@dataclass(frozen=True)
class PathAnswer:
    """What was found on one path: its name, what it is, a sentence for each pair."""

    path: str
    asked: str
    sentences: list[str]


@dataclass(frozen=True)
class Words:
    """The opening of a report, from the general to the particular."""

    headline: str
    uneven: list[str]  # arms of which more trials were excluded than of others: they belong to the headline
    elsewhere: list[str]  # of servers elsewhere: over which path, and what one side cannot know; of hosts: which
    nodes: list[str]  # of a cluster: how many nodes, how much they differ, which do not count
    scope: str
    count: str  # how many verdicts are decided
    size: str  # how many trials, and how many of them excluded
    by_path: list[PathAnswer]
    open: str
    checks: str
    noise: str
    seed: str
    more: str  # the command line that gives open verdicts more blocks; empty where none would help
    left_out: list[str]  # levels of the study that this machine could not do
    warnings: list[str]  # what makes the whole run suspect


def compose(
    facts: RunFacts,
    comparisons: Sequence[Comparison],
    totals: dict[str, int],
    check_matrix: QueryResult,
    by_arm: QueryResult,
) -> Words:
    """Put the answer into words; nothing is said that a verdict does not say. ``by_arm``: `exclusions.BY_ARM`."""
    answer, rows = _headline(facts, comparisons), check_matrix.rows
    if facts.is_map:
        answer = f"A map: blocks at {counted(len({one.cell for one in comparisons}), 'place')}."
        rows = [row for row in rows if row["check_name"] not in _OF_CELLS]
    return Words(
        headline=answer + _mostly_excluded(totals),
        uneven=[_uneven_words(one) for one in uneven(by_arm)],
        elsewhere=_elsewhere(facts, comparisons) if facts.is_outside else list(_hosts(facts)),
        nodes=nodes.sentences(comparisons, cast(RunDocument, facts.rest)),
        scope=_scope(facts, totals),
        count=f"{sum(one.decided for one in comparisons)} of {numbers.count(len(comparisons))} decided",
        size=f"{counted(totals['trials'], 'trial')}, {totals['excluded_trials'] or 'none'} excluded",
        by_path=[] if facts.is_map else list(_by_path(facts, comparisons)),
        open=_OF_A_MAP
        if facts.is_map
        else " ".join(part for part in (_open(facts, comparisons), _modes(comparisons)) if part),
        checks=_checks(totals, replace(check_matrix, rows=rows)),
        noise=_NOISE_OF_A_MAP if facts.is_map else _noise(facts, comparisons),
        seed=_seed(facts),
        more=next_commands.sentence(facts, comparisons, totals["trials"]),
        left_out=[f"{item.get('factor')} {item.get('level')}: {item.get('reason')}" for item in facts.left_out],
        warnings=list(_warnings(facts)),
    )


_OF_A_MAP = (
    "A verdict below rests on the blocks of its place alone, usually one or two. map.html, next to this page, shows "
    "what all of them say together, with the border and its uncertainty."
)


_NOISE_OF_A_MAP = "How far the baseline differs from itself, over all places together, is in map.html."
_OF_CELLS = ("blocks", "noise_floor")  # they ask of each place for more blocks than a map gives it


def _uneven_words(exclusions: UnevenExclusions) -> str:
    """Two sentences for the headline, with the remedy."""
    where = "in one cell" if exclusions.cells == 1 else f"in {exclusions.cells} cells"
    sentence = (
        f"Trials of {name(exclusions.arm)} were excluded more often than others: "
        f"{numbers.count(exclusions.excluded)} of "
        f"{numbers.count(exclusions.trials)}, against {numbers.count(exclusions.others_excluded)} of "
        f"{numbers.count(exclusions.others)} ({where}"
    )
    sentence += f", mostly by the check {exclusions.check.replace('_', ' ')})" if exclusions.check else ")"
    sentence += ", so its results rest on the remaining trials."
    return f"{sentence} To fix this: {exclusions.remedy}." if exclusions.remedy else sentence


def _warnings(facts: RunFacts) -> Iterable[str]:
    if facts.faults:
        faults = listed(sorted(facts.faults))
        yield f"This run has deliberate faults ({faults}): it tests the checks and says nothing about {naming.noun(2)}."
    for doubt in facts.doubts:
        yield sentence(f"Stored results are not used unchanged: {doubt}")
    yield from map(sentence, facts.alike)
    if facts.removed:
        yield (
            f"{counted(len(facts.removed), 'finished trial')} {'was' if len(facts.removed) == 1 else 'were'} removed "
            f"from this run's folder before it continued: {listed(facts.removed)}."
        )
    if not facts.ending:
        yield "This run has not finished: it is still running, or was killed. What follows covers the finished trials."


def _seed(facts: RunFacts) -> str:
    """What the seed repeats, and what not."""
    sentence, drawn = (
        f"Seed {facts.seed}. `--seed {facts.seed}` repeats the same orders",
        "Without it a new seed is drawn.",
    )
    if facts.is_as_it_was:
        return f"{sentence} and arrivals; what the network does is not repeated. {drawn}"
    if facts.by_netem:
        where = f"on {listed(facts.by_netem)}, where the kernel's netem draws its own"
        return (
            f"{sentence} and arrivals, but not the losses {where}; such a run is not an independent repetition. {drawn}"
        )
    return f"{sentence}, losses and arrivals, so such a run is not an independent repetition. {drawn}"


def _elsewhere(facts: RunFacts, comparisons: Sequence[Comparison]) -> list[str]:
    """Of a server elsewhere: over which path, and, where it was asked from several places, what each of them says."""
    by_place = arms_over_places(one for one in comparisons if one.reference == facts.baseline)
    return [*far.here_lines(facts.looks, _hours(facts)), *far.together_lines(by_place, METRICS[facts.metric])]


def _hosts(facts: RunFacts) -> Iterable[str]:
    """Of a run between hosts: where the programs were, as the study has it, and at which addresses."""
    if not facts.is_between_hosts:
        return
    known = facts.rest.get("hosts") or {}
    sentences = []
    for role, machine in facts.study["hosts"].items():
        address = (known.get(role) or {}).get("address")
        sentences.append(f"{role} on {machine['at']}{f' ({address})' if address else ''}")
    if facts.is_as_it_was:
        yield f"Nothing is emulated: {listed(sentences)}, over the network between them as it was."
        return
    yield f"Between machines: {listed(sentences)}, where the paths are emulated. What the network adds is part of them."


def _pair(comparisons: Iterable[Comparison], arm: str, reference: str) -> list[Comparison]:
    return [one for one in comparisons if one.arm == arm and one.reference == reference]


def _span(ones: Sequence[Comparison]) -> str:
    factors = sorted(one.row["factor"] for one in ones)
    low, high = numbers.ratio(factors[0]), numbers.ratio(factors[-1])
    return f"by {low}×" if low == high else f"by {low}× to {high}×"


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


def _margin(facts: RunFacts) -> str:
    return f"within {numbers.percent(facts.margin)}"


def _headline(facts: RunFacts, comparisons: Sequence[Comparison]) -> str:
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


def _mostly_excluded(totals: dict[str, int]) -> str:
    excluded, trials = totals["excluded_trials"], totals["trials"]
    if excluded == trials > 1:
        return f" All {trials} trials failed a check and do not count."
    if excluded == trials == 1:
        return " The one trial failed a check and does not count."
    return f" Most trials ({excluded} of {trials}) failed a check and do not count." if excluded * 2 > trials else ""


def _levels(facts: RunFacts) -> str:
    """What the arms are, where they are no protocols."""
    if naming.of_protocols():
        return ""
    others = [name(arm) for arm in facts.arms if arm != facts.baseline]
    return f"The arms are levels of {naming.factor()}: {listed(others)} against {name(facts.baseline)}. "


def _scope(facts: RunFacts, totals: dict[str, int]) -> str:
    where = listed(facts.factors) if facts.factors else "place"
    better = "smaller" if facts.lower_is_better else "larger"
    best = "faster" if METRICS[facts.metric].wording is TIME else "better"
    of = "" if facts.is_browser else " of a request"
    samples = counted(totals["samples"], facts.sample_word)
    single = len(facts.arms) == 1
    sentence = (
        f"{_levels(facts)}Metric: {facts.metric_label}{of} ({better} is {best}), for {facts.workload_words()}. "
        f"A cell is one combination of {where}. {counted(totals['trials'], 'trial')} in up to "
        f"{counted(totals['blocks'] or 0, 'block')} per cell, {samples}. "
        f"The {'numbers' if single else 'verdicts'} hold for this traffic, {_conditions(facts)}, "
        f"{_machines(facts)} and this session, and for no others."
    )
    if not facts.is_outside:
        sentence += (
            " Starts of the same program differ by about 1 %, which "
            f"the {'numbers' if single else 'verdicts'} include only where the server was restarted for every block."
        )
    if facts.ending:
        sentence += f" The run ended because {facts.ending[0].lower()}{facts.ending[1:].rstrip('.')}."
    for entry in facts.rest.get("extended") or []:
        extension = f"`{entry['asked']}`" if entry.get("asked") else "more"
        sentence += (
            f" It had ended after {counted(entry['after_trials'], 'trial')} and was extended by {extension}, "
            "which intervals that stay valid at any time allow."
        )
    if facts.closed_loop and not facts.is_browser and facts.metric.startswith("latency"):
        sentence += (
            " In a closed loop the next request waits for the previous one, so this is service time: "
            "a user behind a queue would wait longer."
        )
    return sentence


def _machines(facts: RunFacts) -> str:
    """Whose machines verdicts hold for."""
    if facts.is_between_hosts:
        return "these hosts"
    return "these places" if _is_distant(facts) else "this machine"


def _is_distant(facts: RunFacts) -> bool:
    """Whether a server elsewhere was asked from hosts by SSH."""
    return any("vantage" in place for look in facts.looks for place in look["places"])


def _conditions(facts: RunFacts) -> str:
    """What of path and programs verdicts hold for."""
    if facts.is_between_hosts and facts.is_as_it_was:
        return "the network between these hosts at that time, these programs"
    if _is_distant(facts):
        return "these paths at that time, this server"
    return "this path at that time, this server" if facts.is_outside else "these paths as emulated, these programs"


def _hours(facts: RunFacts) -> tuple[str, str] | None:
    """From when to when a run went on, in UTC; None while it does."""
    began, took_ns = facts.rest.get("started_utc"), facts.rest.get("elapsed_ns")
    if not began or took_ns is None:
        return None
    first = datetime.fromisoformat(str(began))
    last = first + timedelta(microseconds=int(took_ns) // 1000)
    same_day = "%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M"
    return f"{first:%Y-%m-%d %H:%M}", f"{last:{same_day}}"


def _by_path(facts: RunFacts, comparisons: Sequence[Comparison]) -> Iterable[PathAnswer]:
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


def _open(facts: RunFacts, comparisons: Sequence[Comparison]) -> str:
    if len(facts.arms) == 1:
        return "Nothing: one protocol alone gives no verdict."
    undecided = [one for one in comparisons if not one.decided]
    if not undecided:
        if len(comparisons) == 1:
            return "The one verdict is decided."
        return f"All {len(comparisons)} verdicts are decided." if comparisons else "There is no verdict yet."
    places = list(dict.fromkeys(one.cell for one in undecided))
    stay = "stays" if len(undecided) == 1 else "stay"
    opening = f"{len(undecided)} of {counted(len(comparisons), 'verdict')} {stay} open"
    fewest, most = facts.fewest_blocks, facts.study.get("max_blocks")
    if most is not None and most < fewest:
        ends = f"and this study ends at {counted(most, 'block')}"
        return f"{opening}: none can be decided before a cell's block {fewest}, {ends}."
    if len(places) > 3:
        return f"{opening}, in {len(places)} cells. {reach(undecided)}"
    sentences = []
    for cell in places:
        here = [one for one in undecided if one.cell == cell]
        pairs = [
            f"{name(one.arm)} against {name(one.reference)} {verdict_words.interval(one)} "
            f"{verdict_words.needed_blocks(one)}"
            for one in here
        ]
        where = ", ".join(part for part in (levels(cell).get("path", ""), place_words(cell)) if part)
        sentences.append(f"{where}: {listed(pairs)}")
    return f"{opening}. In {'; '.join(sentences)}."


def _modes(comparisons: Sequence[Comparison]) -> str:
    """Trials that fall into modes, by cell: a median does not see the smaller one."""
    notes: dict[str, list[str]] = {}
    for one in comparisons:
        for mode in (one.row["modes"] or "").split("; "):
            if mode and not mode.startswith("1 of "):
                notes.setdefault(mode, [one.cell])
    if not notes:
        return ""
    parts = [
        f"{', '.join(part for part in (levels(cell).get('path', ''), place_words(cell)) if part)}: {mode}"
        for mode, (cell,) in notes.items()
    ]
    more = f"; and {len(parts) - 4} more" if len(parts) > 4 else ""
    return f"A median hides the smaller of two modes. {'; '.join(parts[:4])}{more}."


def reach(undecided: Sequence[Comparison]) -> str:
    """How far off the open verdicts are, when they are too many to name."""
    within = sum(one.likely == "same" and one.row["blocks"] < SAME_BLOCKS for one in undecided)
    likely = sum(one.likely is not None for one in undecided) - within
    reach = [one.blocks_more for one in undecided if one.blocks_more is not None]
    empty = sum(not one.row["blocks"] and one.begun for one in undecided)
    ahead = sum(not one.begun for one in undecided)
    early = sum(one.too_early for one in undecided) - empty - ahead
    far = len(undecided) - len(reach) - empty - ahead - early
    sentences = []
    if likely:
        alone = "it were" if likely == 1 else "each were"
        sentences.append(f"{likely} would be decided if {alone} the only comparison (likely).")
    if within:
        lie, need = ("lies", "needs") if within == 1 else ("lie", "need")
        sentences.append(
            f"{within} {lie} within the margin but {need} {SAME_BLOCKS} blocks to be called the same (likely)."
        )
    if reach:
        first = min(low for low, _ in reach)
        ends = [high for _, high in reach if high is not None]
        last = f" to {numbers.count(max(ends))}" if len(ends) == len(reach) and max(ends) > first else ""
        more = "more" if len(ends) == len(reach) else "or more further"
        block = "block" if first == 1 and not last and more == "more" else "blocks"
        each = " each" if len(reach) > 1 else ""
        sentences.append(f"{len(reach)} would need an estimated {numbers.count(first)}{last} {more} {block}{each}.")
    if far:
        sentences.append(f"{far} would need more than ten times the blocks so far.")
    if early:
        has = "has" if early == 1 else "have"
        sentences.append(f"{early} {has} too few blocks for a forecast.")
    if empty:
        has = "has" if empty == 1 else "have"
        sentences.append(f"{empty} {has} no valid block at all.")
    if ahead:
        has = "has" if ahead == 1 else "have"
        sentences.append(f"{ahead} {has} not been measured yet.")
    return " ".join(sentences)


def _checks(totals: dict[str, int], matrix: QueryResult) -> str:
    failed = [f"{row['check_name'].replace('_', ' ')} ({row['failed']})" for row in matrix if row["failed"]]
    warned = [f"{row['check_name'].replace('_', ' ')} ({row['warned']})" for row in matrix if row["warned"]]
    unknown = [f"{row['check_name'].replace('_', ' ')} ({row['unknown']})" for row in matrix if row["unknown"]]
    if not matrix:
        return "No check was recorded: there is no evidence for the numbers below."
    excluded = totals["excluded_trials"]
    sentences = []
    if failed:
        sentences.append(f"Failed checks: {listed(failed)}.")
    if excluded:
        are = "is" if excluded == 1 else "are"
        sentences.append(
            f"{excluded} of {counted(totals['trials'], 'trial')} {are} kept but left out of every verdict."
        )
        remedy = matrix.rows[0]["remedy"]
        if 2 * excluded >= totals["trials"] and remedy:
            sentences.append(f"To fix most of them: {remedy}.")
    if warned:
        sentences.append(f"Warnings: {listed(warned)}.")
    if unknown:
        sentences.append(f"Could not be checked: {listed(unknown)}.")
    if not failed:
        sentences.insert(0, "No check failed.")
    return " ".join(sentences)


def _noise(facts: RunFacts, comparisons: Sequence[Comparison]) -> str:
    if len(facts.arms) == 1:
        return "The check noise floor of every cell shows how well the two runs of a block agree."
    base = name(facts.baseline)
    same, across = _floors(comparisons, "noise_floor"), _floors(comparisons, "weather_floor")
    if not same:
        return f"The noise floor is not known yet: too few blocks in which {base} ran twice."
    return (
        f"Noise floors, from {base} against itself, as ratios: {same} within a block, the smallest difference that "
        f"could have been detected; {across} between blocks, which a difference from another cell or run of as many "
        "blocks must exceed."
    )


def _floors(comparisons: Sequence[Comparison], column: str) -> str:
    """``1.01``, or ``1.01 to 1.20 (by cell)``."""
    floors = {one.cell: one.row[column] for one in comparisons if one.row[column] is not None}
    if not floors:
        return ""
    low, high = (numbers.ratio(1 + end) for end in (min(floors.values()), max(floors.values())))
    return low if low == high else f"{low} to {high} (by cell)"
