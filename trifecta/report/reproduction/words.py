"""How a statement, its published value and ours are put into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trifecta.analysis.answers import ANSWERS, HELD_THEN, NOT_TODAY, Answer
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, NOT_COMPARED, OPEN, OTHER_SIZE
from trifecta.analysis.published import Effect, Evaluation
from trifecta.analysis.statements import Statement
from trifecta.conclude.comparisons import levels
from trifecta.conclude.reproduction.chance import Chance
from trifecta.contract.reproduction import Spending, StatementDocument, Step
from trifecta.design import metrics, numbers
from trifecta.design.phrases import counted, listed
from trifecta.report.verdict_words import place_words
from trifecta.report.visits.published import difference_words, estimate_words

_RELATIONS = {"above": "above 1", "below": "below 1", "same": "1"}


def published_words(statement: Statement) -> str:
    """What was published: ``1.12``, ``about 20 times``, ``above 1``."""
    assertion = statement.says
    value = "" if statement.published is None else _sizes(statement, statement.published)
    if assertion is not None and assertion.by_difference and statement.published is not None:
        value = f"{statement.published:+g}"
    if statement.said:
        # Of two numbers that the study gives the ratio is ours.
        ours = ", our ratio" if " against " in statement.said else ""
        return f"{statement.said} ({value}{ours})" if value else statement.said
    if value and assertion is not None and assertion.relation == "about":
        return f"about {value}"
    if value:
        return value
    if assertion is None:
        return ""
    if assertion.by_difference:
        return {"above": "more", "below": "fewer"}.get(assertion.relation, "the same")
    return _RELATIONS.get(assertion.relation, "100 %")


def _sizes(statement: Statement, published: float) -> str:
    """``1.12``, or of two ``5.1 to 5.9``."""
    assertion = statement.says
    ends = (published, published) if assertion is None or assertion.size is None else assertion.size
    return " to ".join(f"{end:.3g}" for end in dict.fromkeys(ends))


def source_words(statement: Statement) -> str:
    """Where it stands, and the study's words."""
    return f"{statement.source}: “{statement.quote}”" if statement.quote else statement.source


def our_words(evaluation: Evaluation) -> str:
    """``1.43 [1.38, 1.49]``; of what is not compared the values of the protocols, as they are here."""
    assertion = evaluation.statement.says
    if evaluation.state == "not compared":
        if assertion is None or not evaluation.arms:
            return numbers.NO_VALUE
        values = (
            (numbers.protocol(arm), value_words(assertion.metric, v, assertion.over))
            for arm, v in evaluation.arms.items()
        )
        return ", ".join(f"{arm} {value}" for arm, value in values)
    if evaluation.value is None and evaluation.low is None:
        return numbers.NO_VALUE
    if assertion is not None and assertion.relation == "whole":
        ends = f"[{numbers.percent(evaluation.low)}, {numbers.percent(evaluation.high)}]"
        return f"{numbers.percent(evaluation.value)} {ends}"
    return estimate_words(evaluation)


def value_words(metric: str, value: float, over: str = "") -> str:
    """A value of a metric in its unit, also of one by a count; else of one by another a number."""
    known, by = metrics.find(metric), metrics.find(over) if over else None
    if by is not None and by.unit != "count":
        return numbers.number(value)
    return numbers.in_unit(value, known.unit) if known else numbers.number(value)


def effect_words(effect: Effect, evaluation: Evaluation) -> str:
    """``bare-page, page light: 1.12 [1.08, 1.17] confirmed``."""
    run = effect.run.rpartition("/")[2]
    there = levels(effect.cell)
    place = place_words(effect.cell) if len(there) > 1 else effect.cell
    pieces = [run, there.get("path", ""), place]
    sentence = f"{numbers.ratio(effect.value)} {numbers.interval((effect.low, effect.high))}"
    if evaluation.difference:
        sentence = difference_words(metric_of(evaluation), effect.value, effect.low, effect.high)
    assertion = evaluation.statement.says
    between = " to" if assertion is not None and assertion.to else ","
    against = (
        f"{between} {numbers.protocol(effect.to)}" if effect.to and len({e.to for e in evaluation.effects}) > 1 else ""
    )
    return f"{', '.join(piece for piece in pieces if piece)}{against}: {sentence}, {effect.state}"


def metric_of(evaluation: Evaluation) -> str:
    """The metric that a statement is about."""
    return "" if evaluation.statement.says is None else evaluation.statement.says.metric


def reason_words(evaluation: Evaluation) -> str:
    """Why it stands as it does, and what is not as the study had it."""
    return f"{evaluation.reason}; {evaluation.statement.here}" if evaluation.statement.here else evaluation.reason


def check_words(evaluation: Evaluation) -> str:
    """``checks: headroom in 3 trials, drops in 1``; empty where all was passed."""
    if not evaluation.checks or evaluation.state == "not compared":
        return ""
    checks = sorted(evaluation.checks.items(), key=lambda item: -item[1])
    return "checks that warned or failed: " + ", ".join(
        f"{name} in {counted(number, 'trial')}" for name, number in checks[:4]
    )


def standing_words(spending: Spending) -> str:
    """``spent 1 h 50 min of 2 h: 31 of 34 claims decided``."""
    spent, budget = (numbers.wall(round(seconds * 1e9)) for seconds in (spending["spent_s"], spending["budget_s"]))
    return f"spent {spent} of {budget}: {spending['decided']} of {counted(spending['claims'], 'claim')} decided"


def spent_words(spending: Spending) -> str:
    """The same with why it ended."""
    return f"{standing_words(spending)}; {spending['ended'] or 'it did not end yet'}"


def step_words(step: Step) -> str:
    """``2 cells of bourbon2020/lossy up to 14 blocks, took 40 s``."""
    cells = sum(len(one) for one in step["targets"].values())
    blocks = max(blocks for one in step["targets"].values() for blocks in one.values())
    took = f", took {numbers.wall(round(step['took_s'] * 1e9))}" if "took_s" in step else ", not ended"
    return f"{counted(cells, 'cell')} of {' and '.join(step['targets'])} up to {counted(blocks, 'block')}{took}"


def then_words(then: StatementDocument | None, metric: str) -> str:
    """``As published, here: 9.58 [9.25, 9.92], confirmed.``; of a ladder which. Empty where it was not tried."""
    if then is None:
        return ""
    ends = then["low"], then["high"]
    if then["value"] is None and ends == (None, None):
        sentence = then["state"]
    elif then["form"] == "difference":
        sentence = f"{difference_words(metric, then['value'], *ends)}, {then['state']}"
    else:
        sentence = f"{numbers.ratio(then['value'])} {numbers.interval(ends)}, {then['state']}"
    where = f" ({then['by']})" if then["by"].startswith("ladder ") else ""
    return f"As published, here{where}: {sentence}."


_SUMMED: dict[Answer, str] = {
    CONFIRMED: "confirmed",
    OTHER_SIZE: "of the same direction and another size",
    HELD_THEN: "held then",
    NOT_TODAY: "not today",
    CONTRADICTED: "contradicted",
    OPEN: "open",
    NOT_COMPARED: "not comparable",
}
_ALWAYS = (CONFIRMED, CONTRADICTED, OPEN)


def summary(answers: Sequence[Answer], what: str) -> str:
    """``Of 14 claims: 6 confirmed, 1 of the same direction and another size, 4 held then and 3 open.``.

    How many are contradicted is not said where some were not tried as published.
    """
    counts = Counter(answers)
    always = [one for one in _ALWAYS if one != CONTRADICTED or not counts[NOT_TODAY]]
    sentences = [f"{counts[one]} {_SUMMED[one]}" for one in ANSWERS if counts[one] or one in always]
    return f"Of {counted(len(answers), what)}: {listed(sentences)}."


def by_chance(chance: Chance) -> str:
    """How many decisions can be expected to be false, because there are many; empty where fewer than two are judged."""
    if chance.measured < 2:  # of one its own error says it
        return ""
    few = f"up to {chance.expected}" if chance.expected else "fewer than one"
    return (
        f"Each is judged by itself, with an error of at most {numbers.percent(chance.error)}, without a correction for "
        f"their number: of {chance.measured} that were measured, {few} can be expected to be decided falsely."
    )
