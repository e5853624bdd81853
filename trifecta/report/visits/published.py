"""What other studies published, beside what a run measured: ratios are compared, never absolute values.

The files in ``trifecta/studies/published`` hold what was said; ``trifecta.analysis.published`` judges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict

from trifecta import studies
from trifecta.analysis.judging import NOT_COMPARED
from trifecta.analysis.published import Evaluation, Place, evaluate, matching
from trifecta.analysis.statements import NumberDocument, Published, given, number_id
from trifecta.contract.trial import TrialValues
from trifecta.design import plan
from trifecta.design.model import Cell, Study
from trifecta.design.study_file import parse_study
from trifecta.report import naming, numbers, tables
from trifecta.report.comparisons import Comparison
from trifecta.report.facts import RunFacts
from trifecta.report.queries import Answer
from trifecta.report.tables import Column, Table
from trifecta.report.visits.metrics import MetricOfArm
from trifecta.report.words import sentence
from trifecta.store.run import RunDirectory

VERDICT_METRICS = {"page": "load_ns", "video": "startup_ns"}
"""What the latency of a visit is called among its metrics."""


class PublishedRow(TypedDict):
    """A row of the view ``published``: a number of a study in one cell, and what was measured there."""

    cell: str
    study: str
    subject: str
    place: int
    metric: str
    label: str
    arm: str
    unit: str
    published: float
    published_ratio: float | None
    value: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    relation: str | None


@dataclass(frozen=True)
class Claim:
    """A published claim and what a cell of this run says to it."""

    id: str
    study: str
    text: str
    cell: str
    relation: str
    ours: str


def known() -> tuple[Published, ...]:
    """The published studies."""
    return tuple(studies.published().values())


def study_of(about: RunFacts) -> Study:
    """The study of a run."""
    return parse_study(RunDirectory.open(about.folder).study_text, str(about.folder / "study.yaml"))


def levels_of(study: Study, cell: Cell) -> dict[str, str]:
    """What a cell is, as text: the fields of its workload and the levels of its factors, as the baseline has them."""
    own = asdict(plan.workload_for(study, plan.treatment(study, cell, study.baseline.level)))
    return {name: plan.level_text(value) for name, value in own.items() if value is not None} | {
        name: plan.level_text(level) for name, level in cell.levels.items()
    }


def places(about: RunFacts, trials: Sequence[TrialValues], found: Sequence[Comparison]) -> list[Place]:
    """The cells of one run, from rows of metrics a trial; where it may end when decided, with its verdicts."""
    study = study_of(about)
    rows: dict[str, list[TrialValues]] = {}
    for row in trials:
        rows.setdefault(row["cell"], []).append(row)
    made = []
    for cell in plan.cells(study):
        if cell.key in rows:
            one = Place(about.folder.name, cell.key, levels_of(study, cell), rows[cell.key])
            settings = {"baseline": about.baseline, "margin": about.margin, "confidence": about.confidence}
            made.append(Place(**{**vars(one), **settings, "verdicts": verdicts_of(about, study, found, cell.key)}))
    return made


def verdicts_of(
    about: RunFacts, study: Study, found: Sequence[Comparison], cell: str
) -> dict[tuple[str, str, str], tuple[float | None, float | None, float | None]]:
    """The intervals of a cell's verdicts, where the number of blocks was not set in advance."""
    if study.min_blocks == study.max_blocks:
        return {}
    metric = about.metric
    if metric == "latency_p50_ns":
        metric = VERDICT_METRICS.get(str(about.workload.get("kind")), metric)
    return {
        (metric, one.arm, one.reference): (one.row["ratio"], one.row["low"], one.row["high"])
        for one in found
        if one.cell == cell
    }


def rows(about: RunFacts, metric_rows: Sequence[MetricOfArm], here: Sequence[Place]) -> list[PublishedRow]:
    """The rows of the view ``published``: each number of a study, by cell and arm, and what we have."""
    ours = {(row["cell"], row["metric"], row["arm"]): row for row in metric_rows}
    made: list[PublishedRow] = []
    for study in known():
        base = study.document["baseline"]
        statements = {one.id: one for one in study.statements}
        for subject in study.document.get("numbers") or ():
            for place, one in enumerate(subject["metrics"]):
                arms = [arm for arm in about.arms if given(one, arm) is not None]
                told = {arm: statements.get(number_id(study.id, subject, one, arm)) for arm in arms}
                for cell in (cell for cell in here if any(x and matching(x, [cell]) for x in told.values())):
                    for arm in arms:
                        row = ours.get((cell.cell, one["metric"], arm))
                        statement = told[arm]
                        head = (cell.cell, study.id, subject["subject"], place)
                        said = None if statement is None else _relation(evaluate(statement, [cell]), one)
                        made.append(_row(head, one, (arm, base), row, said))
    cells = {cell.cell: number for number, cell in enumerate(here)}
    return sorted(made, key=lambda row: cells[row["cell"]])


def _row(
    head: tuple[str, str, str, int],
    one: NumberDocument,
    pair: tuple[str, str],
    row: MetricOfArm | None,
    relation: str | None,
) -> PublishedRow:
    """A number of an arm beside ours; ``head`` is its cell, study, subject and place in the table."""
    theirs, base = given(one, pair[0]) or 0.0, given(one, pair[1])
    return {
        "cell": head[0],
        "study": head[1],
        "subject": head[2],
        "place": head[3],
        "metric": one["metric"],
        "label": (row["label"] if row else "") or one["metric"],
        "arm": pair[0],
        "unit": one["unit"],
        "published": float(theirs),
        "published_ratio": theirs / base if pair[0] != pair[1] and base else None,
        "value": None if row is None or one["unit"] == "ratio" else row["value"],
        "ratio": row["ratio"] if row else None,
        "ratio_low": row["ratio_low"] if row else None,
        "ratio_high": row["ratio_high"] if row else None,
        "relation": relation,
    }


def _relation(said: Evaluation, number: NumberDocument) -> str | None:
    """How it stands; of what is not compared the artefact that made it, where there is one."""
    if said.state == NOT_COMPARED:
        return number.get("artefact")
    return said.state if said.blocks else None


def claims(here: Sequence[Place]) -> list[Claim]:
    """What every cell says to every published claim that is about it."""
    made = []
    for study in known():
        for claim in study.claims:
            if claim.says is None or claim.says.between_cells:
                continue  # a claim about two cells is for a campaign
            for place in matching(claim, here):
                said = evaluate(claim, [place])
                if said.blocks:
                    made.append(Claim(claim.id, study.id, claim.text, place.cell, said.state, ours(said)))
    return made


def ours(said: Evaluation) -> str:
    """``HTTP/3 ÷ HTTP/2 here: 1.12 [1.08, 1.17]``."""
    return f"{said.change()} here: {estimate_words(said)}"


def estimate_words(said: Evaluation) -> str:
    """``1.12 [1.08, 1.17]``; a difference with its sign."""
    if not said.difference:
        return f"{numbers.ratio(said.value)} {numbers.interval((said.low, said.high))}"
    ends = [_signed(end) for end in (said.low, said.high)]
    return f"{_signed(said.value)} [{ends[0]}, {ends[1]}]"


def _signed(value: float | None) -> str:
    return numbers.NO_VALUE if value is None else f"{'+' if value > 0 else ''}{numbers.significant(value)}"


def sources(answer: Answer) -> list[str]:
    """A line a study that the table names, and one for each threat to what it says."""
    told = {row["study"] for row in answer}
    made = []
    for study in known():
        if study.id in told:
            made.append(f"{study.id} ({study.year}): {study.title}. {sentence(study.stack)} {sentence(study.facts)}")
            made += [f"{name}: {fact}." for name, fact in study.threats.items()]
    return made


def published_table(answer: Answer) -> Table:
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
