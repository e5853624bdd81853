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


def warnings(made: Compared) -> list[str]:
    """Why agreement or disagreement of these two may say less than it seems."""
    found, seeds = made.differences, [side.study.seed for side in (made.first, made.second)]
    began = [side.facts.get("started_utc") for side in (made.first, made.second)]
    said = [days(*began)]
    if seeds[0] == seeds[1]:
        what = "orders and arrivals" if made.first.study.by_netem else "orders, losses and arrivals"
        said.append(f"both have the seed {seeds[0]}: the same {what}, so they are not independent")
        if began[0] == began[1] is not None:
            said.append("they began at the same second: one may be a copy of the other")
    versions = [one.name for one in found if one.of == "version"]
    if versions:
        said.append(f"not the same versions ({', '.join(versions)}): differences may come from them")
    if not all(side.facts.get("code") for side in (made.first, made.second)):
        said.append("runs of earlier versions do not record which code made them, and a version number does not tell")
    if any(one.of == "machine" for one in found):
        said.append("not the same machine: differences may come from it")
    settings = [one.name for one in found if one.of == "settings"]
    if settings:
        said.append(f"not the same settings ({', '.join(settings)}): differences may come from them")
    if made.first.study.confidence != made.second.study.confidence:
        said.append("the verdicts have different confidence levels; intervals use the higher one")
    return [one for one in said if one]


def print_compared(made: Compared, console: Console | None = None) -> None:
    """Print the answer in counts, what warns, a row a question, and what else is not the same."""
    with naming.arms_of(made.first.study.compare, made.arms):
        _print(made, console or Console(highlight=False))


def _print(made: Compared, out: Console) -> None:
    def say(text: str, style: str = "") -> None:
        out.print(Text(grids.plain(out, text), style=style), soft_wrap=True)

    for name, side in zip(_SIDES, (made.first, made.second), strict=True):
        say(f"{name:7} {about_words(side)}")
    out.print()
    for line in answer_lines(made):
        say(line, "bold")
    out.print()
    warned = warnings(made)
    for line in warned:
        say(f"! {line}", "bold yellow")
    if warned:
        out.print()
    grids.show(out, _table(out, made))
    out.print()
    for line in below_lines(made):
        say(line)
    for one in made.differences:
        say(f"not the same: {difference_words(one)}", "yellow")
    if made.comparable:
        out.print(Text(grids.plain(out, how_words(made)), style="dim"))
        told = any(made.counts[one] for one in (ALIKE, OTHERWISE, INDISTINGUISHABLE))
        say(closing_words(made), "bold yellow" if not told else "bold green" if made.agree else "bold red")


def closing_words(made: Compared) -> str:
    """What all of it comes to."""
    if not any(made.counts[one] for one in (ALIKE, OTHERWISE, INDISTINGUISHABLE)):
        return "No question is decided in both."
    return f"{'Nothing' if made.agree else 'Something'} that both decided is decided differently."


def about_words(side: Side) -> str:
    """Which run it is: folder, study, when, version, seed, trials."""
    left = sum(not row.get("valid") for row in side.trials)
    said = [
        f"{side.folder}: {side.study.title or side.study.name}",
        f"begun {side.facts.get('started_utc', 'unknown')}",
        f"version {side.facts['trifecta']}",
        f"seed {side.study.seed}",
        f"{counted(len(side.trials), 'trial')}, {left or 'none'} left out",
    ]
    return ", ".join(said)


def answer_lines(made: Compared) -> Iterator[str]:
    """``Of 36 questions that both runs ask (median latency):`` and a line for each outcome."""
    total = len(made.questions)
    yield f"Of {counted(total, 'question')} that both runs ask ({_metrics(made.metrics)}):"
    for outcome in (*_ALWAYS, INDISTINGUISHABLE, OPEN_IN_BOTH, NOT_COMPARABLE):
        ones = [one for one in made.questions if outcome_of(one) == outcome]
        if not ones and outcome not in _ALWAYS:
            continue
        sizes = [(sum(one.size == size for one in ones), size) for size in ("larger", "smaller")]
        more = ", ".join(f"{number} with a {size} effect" for number, size in sizes if number)
        yield f"{len(ones):5} {_SAID[outcome]}{f' ({more})' if more and outcome == ALIKE else ''}"


def _metrics(found: tuple[Metric, Metric]) -> str:
    return found[0].label if found[0] == found[1] else f"{found[0].label} and {found[1].label}"


def outcome_of(one: Question) -> str:
    """What became of it, as `ORDER` has it."""
    return one.became or NOT_COMPARABLE


def _table(out: Console, made: Compared) -> Table:
    grid = grids.grid(out)
    grid.add_column("question", overflow="fold", ratio=4)
    grid.add_column("first", overflow="fold", ratio=3)
    grid.add_column("second", overflow="fold", ratio=3)
    grid.add_column(grids.plain(out, "second ÷ first"), overflow="fold", ratio=3)
    grid.add_column("became", overflow="fold", ratio=3)
    for one in sorted(made.questions, key=lambda one: ORDER.index(outcome_of(one))):
        shown = [
            f"{place_words(one.cell, '')}: {naming.name(one.arm)} ÷ {naming.name(one.reference)}",
            verdict_of(one.first, made.metrics[0]),
            verdict_of(one.second, made.metrics[1]),
            apart_words(one),
            became_words(one),
        ]
        texts = [Text(grids.plain(out, text)) for text in shown]
        texts[-1].style = _COLOURS.get(outcome_of(one), "yellow")
        grid.add_row(*texts)
    return grid


def verdict_of(one: Verdict, metric: Metric) -> str:
    """``faster 0.70 [0.67, 0.72]``."""
    if not one.blocks:
        return "no block"
    return f"{metric.word(one.verdict)} {numbers.ratio(one.ratio)} {numbers.interval((one.low, one.high))}"


def apart_words(one: Question) -> str:
    """The ratio of both ratios, with its intervals alone and among all."""
    if one.apart is None:
        return numbers.NO_VALUE
    alone, among = (numbers.interval(_ends(each)) for each in (one.apart.alone, one.apart.among))
    if one.apart.alone.low is None and one.apart.alone.high is None:
        return f"{numbers.ratio(ratio(one.apart.alone.value))} {alone}"
    return f"{numbers.ratio(ratio(one.apart.alone.value))} {alone}\n{{{among[1:-1]}}}"


def _ends(one: Estimate) -> tuple[float | None, float | None]:
    return ratio(one.low), ratio(one.high)


def became_words(one: Question) -> str:
    """What became of the verdict, or why nothing is compared."""
    if one.became is None:
        return f"{NOT_COMPARABLE}: {', '.join(_name(each) for each in one.hindrances)}"
    size = f"; effect {one.size}" if one.size and one.became != OTHERWISE else ""
    return f"{_IN_TABLE.get(one.became, one.became)}{size}"


def _name(one: Difference) -> str:
    return one.name if one.of == "study" else f"{one.of} {one.name}"


def below_lines(made: Compared) -> Iterator[str]:
    """What is not in the table: questions of one run only, why some are not comparable, how far ratios lie apart."""
    if made.moved is not None:
        yield moved_words(made.moved)
    for one in dict.fromkeys(each for question in made.questions for each in question.hindrances):
        remedy = "; `--metric NAME` compares both by one" if (one.of, one.name) == ("study", "metric") else ""
        yield f"not comparable: {difference_words(one)}{remedy}"
    for name, lone in zip(_SIDES, (made.only_first, made.only_second), strict=True):
        yield from _only(name, lone)


def _only(name: str, lone: Sequence[Unmatched]) -> Iterator[str]:
    """``only in the first: far, new connections (HTTP/3 ÷ HTTP/2)``, a line a cell."""
    for cell, ones in groupby(lone, key=lambda one: one.cell):
        pairs = ", ".join(f"{naming.name(one.arm)} ÷ {naming.name(one.reference)}" for one in ones)
        yield f"only in the {name}: {place_words(cell, '')} ({pairs})"


def difference_words(one: Difference) -> str:
    """``machine kernel: 6.18 | 6.19``."""
    return f"{one.of} {one.name}: {one.first} | {one.second}"


def how_words(made: Compared) -> str:
    """How to read the columns."""
    level = numbers.percent(made.confidence)
    sessions = "no spread between sessions (of shares none is known)"
    if made.sessions:
        sessions = f"a standard deviation between sessions of {numbers.percent(made.sessions)} for each run"
    among = "the one question" if made.among == 1 else f"all {made.among} questions"
    return (
        f"first, second: the verdict of each run, its median ratio with the {level} confidence sequence. second ÷ "
        f"first: the ratio of both; [a, b]: its {level} interval, with {sessions}; {{a, b}}: the same among {among}. "
        "An effect is different, larger or smaller only where {a, b} excludes 1. That one run decided what the other "
        "left open is no change by itself."
    )


def as_data(made: Compared) -> JsonObject:
    """The same for a program; keys are stable (docs/compare.md)."""
    with naming.arms_of(made.first.study.compare, made.arms):
        counts = {outcome: sum(outcome_of(one) == outcome for one in made.questions) for outcome in ORDER}
        return {
            "agree": made.agree,
            "first": _side_data(made.first, made.metrics[0]),
            "second": _side_data(made.second, made.metrics[1]),
            "compare": made.first.study.compare,
            "confidence": made.confidence,
            "sessions": made.sessions,
            "among": made.among,
            "counts": counts,
            "moved": None if made.moved is None else asdict(made.moved),
            "warnings": warnings(made),
            "differences": [asdict(one) for one in made.differences],
            "only_first": [asdict(one) for one in made.only_first],
            "only_second": [asdict(one) for one in made.only_second],
            "questions": [_question(one) for one in made.questions],
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


def _question(one: Question) -> JsonObject:
    apart: JsonObject = {"ratio": None, "low": None, "high": None, "among_low": None, "among_high": None}
    if one.apart is not None:
        low, high = _ends(one.apart.alone)
        among = _ends(one.apart.among)
        value = ratio(one.apart.alone.value)
        apart = {"ratio": value, "low": low, "high": high, "among_low": among[0], "among_high": among[1]}
    return {
        "cell": one.cell,
        "levels": levels(one.cell),
        "arm": one.arm,
        "reference": one.reference,
        "became": outcome_of(one),
        "size": one.size,
        "hindrances": [asdict(each) for each in one.hindrances],
        "first": _verdict_data(one.first),
        "second": _verdict_data(one.second),
        "apart": apart,
    }


def _verdict_data(one: Verdict) -> JsonObject:
    return {
        "metric": one.metric,
        "verdict": one.verdict,
        "likely": one.likely,
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high,
        "blocks": one.blocks,
        "margin": one.margin,
        "reason": one.reason,
    }
