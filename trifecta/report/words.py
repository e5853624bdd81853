"""The opening of a report: the answer in words, what failed, and what could have been seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.exclusions import UnevenExclusions, uneven
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.contract.run import RunDocument
from trifecta.design import naming, numbers
from trifecta.design.phrases import counted, listed, sentence
from trifecta.report import next_commands, nodes, open_verdicts, outcome, scope
from trifecta.report.figures.style import name
from trifecta.report.outcome import PathAnswer


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
    answer, rows = outcome.headline(facts, comparisons), check_matrix.rows
    if facts.is_map:
        answer = f"A map: blocks at {counted(len({one.cell for one in comparisons}), 'place')}."
        rows = [row for row in rows if row["check_name"] not in _OF_CELLS]
    return Words(
        headline=answer + _mostly_excluded(totals),
        uneven=[_uneven_words(one) for one in uneven(by_arm)],
        elsewhere=scope.elsewhere(facts, comparisons) if facts.is_outside else list(scope.hosts(facts)),
        nodes=nodes.sentences(comparisons, cast(RunDocument, facts.rest)),
        scope=scope.scope(facts, totals),
        count=f"{sum(one.decided for one in comparisons)} of {numbers.count(len(comparisons))} decided",
        size=f"{counted(totals['trials'], 'trial')}, {totals['excluded_trials'] or 'none'} excluded",
        by_path=[] if facts.is_map else list(outcome.by_path(facts, comparisons)),
        open=_OF_A_MAP if facts.is_map else open_verdicts.words(facts, comparisons),
        checks=_checks(totals, replace(check_matrix, rows=rows)),
        noise=_NOISE_OF_A_MAP if facts.is_map else _noise(facts, comparisons),
        seed=scope.seed(facts),
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
    left = (
        "it has no results" if exclusions.excluded == exclusions.trials else "its results rest on the remaining trials"
    )
    sentence += f", so {left}."
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


def _mostly_excluded(totals: dict[str, int]) -> str:
    excluded, trials = totals["excluded_trials"], totals["trials"]
    if excluded == trials > 1:
        return f" All {trials} trials failed a check and do not count."
    if excluded == trials == 1:
        return " The one trial failed a check and does not count."
    return f" Most trials ({excluded} of {trials}) failed a check and do not count." if excluded * 2 > trials else ""


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
