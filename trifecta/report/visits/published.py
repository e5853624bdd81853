"""What other studies published, beside what a run measured, in words and as a table."""

from __future__ import annotations

from trifecta.analysis.published import Evaluation
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.visits.published import Claim, load_studies
from trifecta.design import metrics, naming, numbers
from trifecta.design.phrases import sentence
from trifecta.report import tables
from trifecta.report.tables import Column, Table


def with_place(claim: Claim, where: str) -> tuple[Claim, str]:
    """A claim, and where this run says what to it."""
    return claim, f"{where}. {ours(claim.said)}"


def ours(evaluation: Evaluation) -> str:
    """``HTTP/3 ÷ HTTP/2 here: 1.12 [1.08, 1.17]``."""
    return f"{evaluation.change()} here: {estimate_words(evaluation)}"


def estimate_words(evaluation: Evaluation) -> str:
    """``1.12 [1.08, 1.17]``; a difference with its sign."""
    if not evaluation.difference:
        return f"{numbers.ratio(evaluation.value)} {numbers.interval((evaluation.low, evaluation.high))}"
    assertion = evaluation.statement.says
    return difference_words(
        "" if assertion is None else assertion.metric, evaluation.value, evaluation.low, evaluation.high
    )


def difference_words(metric: str, *ends: float | None) -> str:
    """``+67.5 ms [+63.8 ms, +71.2 ms]`` of a value and the ends of its interval."""
    unit = metrics.unit(metric)
    value, low, high = (_signed(end, unit) for end in ends)
    return f"{value} [{low}, {high}]"


def _signed(value: float | None, unit: str) -> str:
    """``+67.5 ms``; of counts the number alone."""
    if value is None:
        return numbers.NO_VALUE
    size = numbers.in_unit(abs(value), unit) if unit == "ns" else numbers.significant(abs(value))
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{size}"


def sources(answer: QueryResult) -> list[str]:
    """A line a study that the table names, and one for each threat to what it says."""
    studies = {row["study"] for row in answer}
    lines = []
    for study in load_studies():
        if study.id in studies:
            lines.append(f"{study.id} ({study.year}): {study.title}. {sentence(study.stack)} {sentence(study.facts)}")
            lines += [f"{name}: {fact}." for name, fact in study.threats.items()]
    return lines


def published_table(answer: QueryResult) -> Table:
    """The published numbers with their ratios, and ours beside them."""
    columns = [
        Column("published for", "subject"),
        Column("", "label"),
        Column(naming.factor(), "arm", "protocol"),
        Column("published", "published", "unit"),
        Column("its ratio to HTTP/2", "published_ratio", "ratio"),
        Column("here", "value", "unit"),
        Column("our ratio to HTTP/2", "ratio", "ratio"),
        Column("interval", "ratio_low,ratio_high", "known_interval"),
        Column("", "relation"),
    ]
    notes = [
        "Absolute values are those of another machine, other programs and another path: only the ratios are compared. "
        "confirmed: our interval lies beyond the margin on the same side of 1, about as far from it as published; same "
        "direction, other size: clearly farther or less far. contradicted: inside the margin or on the other side. A "
        "name instead is that of the artefact that made the published number."
    ]
    return tables.build(answer, "published", "Published numbers and ours", ("cell", "cell"), columns, notes=notes)
