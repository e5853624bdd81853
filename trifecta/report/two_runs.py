"""Two runs side by side in a terminal and as plain data: the answer in counts, a row a question, what else differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trifecta.analysis.intervals import Estimate
from trifecta.analysis.two_runs import ALIKE, INDISTINGUISHABLE, NEWLY, NO_LONGER, OPEN_IN_BOTH, OTHERWISE, OUTCOMES
from trifecta.conclude.comparisons import levels
from trifecta.conclude.two_runs.differences import Difference
from trifecta.conclude.two_runs.matched import Unmatched
from trifecta.conclude.two_runs.questions import Compared, Question, ratio
from trifecta.conclude.two_runs.side import Side
from trifecta.contract.values import JsonObject
from trifecta.design import naming, numbers
from trifecta.design.metric import Metric
from trifecta.design.model import Verdict
from trifecta.design.phrases import counted
from trifecta.report import grids
from trifecta.report.reproduction.compared import days, moved_words
from trifecta.report.verdict_words import place_words

NOT_COMPARABLE = "not comparable"
_SAID = {
    ALIKE: "decided alike",
    OTHERWISE: "decided differently",
    INDISTINGUISHABLE: "decided differently, but indistinguishable",
    NEWLY: "newly decided",
    NO_LONGER: "no longer decided",
    OPEN_IN_BOTH: "open in both",
    NOT_COMPARABLE: NOT_COMPARABLE,
}
_IN_TABLE = {OTHERWISE: "differently", INDISTINGUISHABLE: "indistinguishable"}  # others: as JSON has them
_ALWAYS = (ALIKE, OTHERWISE, NEWLY, NO_LONGER)
ORDER = (*OUTCOMES, NOT_COMPARABLE)
_COLOURS = {OTHERWISE: "bold red", ALIKE: "green", OPEN_IN_BOTH: "dim", NOT_COMPARABLE: "dim"}
_SIDES = ("first", "second")


def warnings(comparison: Compared) -> list[str]:
    """Why agreement or disagreement of these two may say less than it seems."""
    differences, seeds = comparison.differences, [side.study.seed for side in (comparison.first, comparison.second)]
    began = [side.facts.get("started_utc") for side in (comparison.first, comparison.second)]
    sentences = [days(*began)]
    if seeds[0] == seeds[1]:
        what = "orders and arrivals" if comparison.first.study.by_netem else "orders, losses and arrivals"
        sentences.append(f"both have the seed {seeds[0]}: the same {what}, so they are not independent")
        if began[0] == began[1] is not None:
            sentences.append("they began at the same second: one may be a copy of the other")
    versions = [one.name for one in differences if one.of == "version"]
    if versions:
        sentences.append(f"not the same versions ({', '.join(versions)}): differences may come from them")
    if not all(side.facts.get("code") for side in (comparison.first, comparison.second)):
        sentences.append(
            "runs of earlier versions do not record which code made them, and a version number does not tell"
        )
    if any(one.of == "machine" for one in differences):
        sentences.append("not the same machine: differences may come from it")
    settings = [one.name for one in differences if one.of == "settings"]
    if settings:
        sentences.append(f"not the same settings ({', '.join(settings)}): differences may come from them")
    if comparison.first.study.confidence != comparison.second.study.confidence:
        sentences.append("the verdicts have different confidence levels; intervals use the higher one")
    return [one for one in sentences if one]


def print_compared(comparison: Compared, console: Console | None = None) -> None:
    """Print the answer in counts, what warns, a row a question, and what else is not the same."""
    with naming.arms_of(comparison.first.study.compare, comparison.arms):
        _print(comparison, console or Console(highlight=False))


def _print(comparison: Compared, out: Console) -> None:
    def say(text: str, style: str = "") -> None:
        out.print(Text(grids.plain(out, text), style=style), soft_wrap=True)

    for name, side in zip(_SIDES, (comparison.first, comparison.second), strict=True):
        say(f"{name:7} {about_words(side)}")
    out.print()
    for line in answer_lines(comparison):
        say(line, "bold")
    out.print()
    warned = warnings(comparison)
    for line in warned:
        say(f"! {line}", "bold yellow")
    if warned:
        out.print()
    grids.show(out, _table(out, comparison))
    out.print()
    for line in below_lines(comparison):
        say(line)
    for one in comparison.differences:
        say(f"not the same: {difference_words(one)}", "yellow")
    if comparison.comparable:
        out.print(Text(grids.plain(out, reading_words(comparison)), style="dim"))
        has_differences = any(comparison.counts[one] for one in (ALIKE, OTHERWISE, INDISTINGUISHABLE))
        say(
            closing_words(comparison),
            "bold yellow" if not has_differences else "bold green" if comparison.agree else "bold red",
        )


def closing_words(comparison: Compared) -> str:
    """What all of it comes to."""
    if not any(comparison.counts[one] for one in (ALIKE, OTHERWISE, INDISTINGUISHABLE)):
        return "No question is decided in both."
    return f"{'Nothing' if comparison.agree else 'Something'} that both decided is decided differently."


def about_words(side: Side) -> str:
    """Which run it is: folder, study, when, version, seed, trials."""
    left = sum(not row.get("valid") for row in side.trials)
    sentences = [
        f"{side.folder}: {side.study.title or side.study.name}",
        f"begun {side.facts.get('started_utc', 'unknown')}",
        f"version {side.facts['trifecta']}",
        f"seed {side.study.seed}",
        f"{counted(len(side.trials), 'trial')}, {left or 'none'} left out",
    ]
    return ", ".join(sentences)


def answer_lines(comparison: Compared) -> Iterator[str]:
    """``Of 36 questions that both runs ask (median latency):`` and a line for each outcome."""
    total = len(comparison.questions)
    yield f"Of {counted(total, 'question')} that both runs ask ({_metrics(comparison.metrics)}):"
    for outcome in (*_ALWAYS, INDISTINGUISHABLE, OPEN_IN_BOTH, NOT_COMPARABLE):
        ones = [one for one in comparison.questions if outcome_of(one) == outcome]
        if not ones and outcome not in _ALWAYS:
            continue
        sizes = [(sum(one.size == size for one in ones), size) for size in ("larger", "smaller")]
        more = ", ".join(f"{number} with a {size} effect" for number, size in sizes if number)
        yield f"{len(ones):5} {_SAID[outcome]}{f' ({more})' if more and outcome == ALIKE else ''}"


def _metrics(metrics: tuple[Metric, Metric]) -> str:
    return metrics[0].label if metrics[0] == metrics[1] else f"{metrics[0].label} and {metrics[1].label}"


def outcome_of(question: Question) -> str:
    """What became of it, as `ORDER` has it."""
    return question.became or NOT_COMPARABLE


def _table(out: Console, comparison: Compared) -> Table:
    grid = grids.grid(out)
    grid.add_column("question", overflow="fold", ratio=4)
    grid.add_column("first", overflow="fold", ratio=3)
    grid.add_column("second", overflow="fold", ratio=3)
    grid.add_column(grids.plain(out, "second ÷ first"), overflow="fold", ratio=3)
    grid.add_column("became", overflow="fold", ratio=3)
    for one in sorted(comparison.questions, key=lambda one: ORDER.index(outcome_of(one))):
        shown = [
            f"{place_words(one.cell, '')}: {naming.name(one.arm)} ÷ {naming.name(one.reference)}",
            verdict_of(one.first, comparison.metrics[0]),
            verdict_of(one.second, comparison.metrics[1]),
            apart_words(one),
            became_words(one),
        ]
        texts = [Text(grids.plain(out, text)) for text in shown]
        texts[-1].style = _COLOURS.get(outcome_of(one), "yellow")
        grid.add_row(*texts)
    return grid


def verdict_of(verdict: Verdict, metric: Metric) -> str:
    """``faster 0.70 [0.67, 0.72]``."""
    if not verdict.blocks:
        return "no block"
    return (
        f"{metric.word(verdict.verdict)} {numbers.ratio(verdict.ratio)} {numbers.interval((verdict.low, verdict.high))}"
    )


def apart_words(question: Question) -> str:
    """The ratio of both ratios, with its intervals alone and among all."""
    if question.apart is None:
        return numbers.NO_VALUE
    alone, among = (numbers.interval(_ends(each)) for each in (question.apart.alone, question.apart.among))
    if question.apart.alone.low is None and question.apart.alone.high is None:
        return f"{numbers.ratio(ratio(question.apart.alone.value))} {alone}"
    return f"{numbers.ratio(ratio(question.apart.alone.value))} {alone}\n{{{among[1:-1]}}}"


def _ends(estimate: Estimate) -> tuple[float | None, float | None]:
    return ratio(estimate.low), ratio(estimate.high)


def became_words(question: Question) -> str:
    """What became of the verdict, or why nothing is compared."""
    if question.became is None:
        return f"{NOT_COMPARABLE}: {', '.join(_name(each) for each in question.hindrances)}"
    size = f"; effect {question.size}" if question.size and question.became != OTHERWISE else ""
    return f"{_IN_TABLE.get(question.became, question.became)}{size}"


def _name(difference: Difference) -> str:
    return difference.name if difference.of == "study" else f"{difference.of} {difference.name}"


def below_lines(comparison: Compared) -> Iterator[str]:
    """What is not in the table: questions of one run only, why some are not comparable, how far ratios lie apart."""
    if comparison.session_spread is not None:
        yield moved_words(comparison.session_spread)
    for one in dict.fromkeys(each for question in comparison.questions for each in question.hindrances):
        remedy = "; `--metric NAME` compares both by one" if (one.of, one.name) == ("study", "metric") else ""
        yield f"not comparable: {difference_words(one)}{remedy}"
    for name, lone in zip(_SIDES, (comparison.only_first, comparison.only_second), strict=True):
        yield from _unmatched_lines(name, lone)


def _unmatched_lines(name: str, lone: Sequence[Unmatched]) -> Iterator[str]:
    """``only in the first: far, new connections (HTTP/3 ÷ HTTP/2)``, a line a cell."""
    for cell, ones in groupby(lone, key=lambda one: one.cell):
        pairs = ", ".join(f"{naming.name(one.arm)} ÷ {naming.name(one.reference)}" for one in ones)
        yield f"only in the {name}: {place_words(cell, '')} ({pairs})"


def difference_words(difference: Difference) -> str:
    """``machine kernel: 6.18 | 6.19``."""
    return f"{difference.of} {difference.name}: {difference.first} | {difference.second}"


def reading_words(comparison: Compared) -> str:
    """How to read the columns."""
    level = numbers.percent(comparison.confidence)
    sessions = "no spread between sessions (of shares none is known)"
    if comparison.sessions:
        sessions = f"a standard deviation between sessions of {numbers.percent(comparison.sessions)} for each run"
    among = "the one question" if comparison.among == 1 else f"all {comparison.among} questions"
    return (
        f"first, second: the verdict of each run, its median ratio with the {level} confidence sequence. second ÷ "
        f"first: the ratio of both; [a, b]: its {level} interval, with {sessions}; {{a, b}}: the same among "
        f"{among}. An effect is different, larger or smaller only where {{a, b}} excludes 1. That one run decided "
        "what the other left open is no change by itself."
    )


def as_data(comparison: Compared) -> JsonObject:
    """The same for a program; keys are stable (docs/compare.md)."""
    with naming.arms_of(comparison.first.study.compare, comparison.arms):
        counts = {outcome: sum(outcome_of(one) == outcome for one in comparison.questions) for outcome in ORDER}
        return {
            "agree": comparison.agree,
            "first": _side_data(comparison.first, comparison.metrics[0]),
            "second": _side_data(comparison.second, comparison.metrics[1]),
            "compare": comparison.first.study.compare,
            "confidence": comparison.confidence,
            "sessions": comparison.sessions,
            "among": comparison.among,
            "counts": counts,
            "moved": None if comparison.session_spread is None else asdict(comparison.session_spread),
            "warnings": warnings(comparison),
            "differences": [asdict(one) for one in comparison.differences],
            "only_first": [asdict(one) for one in comparison.only_first],
            "only_second": [asdict(one) for one in comparison.only_second],
            "questions": [_question(one) for one in comparison.questions],
        }


def _side_data(side: Side, metric: Metric) -> JsonObject:
    return {
        "run": str(side.folder),
        "title": side.study.title,
        "metric": metric.name,
        "began": side.facts.get("started_utc"),
        "version": side.facts["trifecta"],
        "seed": side.study.seed,
        "state": side.facts.get("state"),
        "trials": len(side.trials),
        "left_out": sum(not row.get("valid") for row in side.trials),
    }


def _question(question: Question) -> JsonObject:
    apart: JsonObject = {"ratio": None, "low": None, "high": None, "among_low": None, "among_high": None}
    if question.apart is not None:
        low, high = _ends(question.apart.alone)
        among = _ends(question.apart.among)
        value = ratio(question.apart.alone.value)
        apart = {"ratio": value, "low": low, "high": high, "among_low": among[0], "among_high": among[1]}
    return {
        "cell": question.cell,
        "levels": levels(question.cell),
        "arm": question.arm,
        "reference": question.reference,
        "became": outcome_of(question),
        "size": question.size,
        "hindrances": [asdict(each) for each in question.hindrances],
        "first": _verdict_data(question.first),
        "second": _verdict_data(question.second),
        "apart": apart,
    }


def _verdict_data(verdict: Verdict) -> JsonObject:
    return {
        "metric": verdict.metric,
        "verdict": verdict.verdict,
        "likely": verdict.likely,
        "ratio": verdict.ratio,
        "low": verdict.low,
        "high": verdict.high,
        "blocks": verdict.blocks,
        "margin": verdict.margin,
        "reason": verdict.reason,
    }
