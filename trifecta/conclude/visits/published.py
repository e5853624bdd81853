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
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.visits.metrics import MetricOfArm
from trifecta.contract.trial import TrialValues
from trifecta.design import plan
from trifecta.design.model import Cell, Study
from trifecta.design.study_file import parse_study
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
    said: Evaluation


def load_studies() -> tuple[Published, ...]:
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


def places(about: RunFacts, trials: Sequence[TrialValues], comparisons: Sequence[Comparison]) -> list[Place]:
    """The cells of one run, from rows of metrics a trial; where it may end when decided, with its verdicts."""
    study = study_of(about)
    rows: dict[str, list[TrialValues]] = {}
    for row in trials:
        rows.setdefault(row["cell"], []).append(row)
    measured_places = []
    for cell in plan.cells(study):
        if cell.key in rows:
            one = Place(about.folder.name, cell.key, levels_of(study, cell), rows[cell.key])
            settings = {"baseline": about.baseline, "margin": about.margin, "confidence": about.confidence}
            measured_places.append(
                Place(**{**vars(one), **settings, "verdicts": verdicts_of(about, study, comparisons, cell.key)})
            )
    return measured_places


def verdicts_of(
    about: RunFacts, study: Study, comparisons: Sequence[Comparison], cell: str
) -> dict[tuple[str, str, str], tuple[float | None, float | None, float | None]]:
    """The intervals of a cell's verdicts, where the number of blocks was not set in advance."""
    if study.min_blocks == study.max_blocks and not about.rest.get("extended"):
        return {}
    metric = about.metric
    if metric == "latency_p50_ns":
        metric = VERDICT_METRICS.get(str(about.workload.get("kind")), metric)
    return {
        (metric, one.arm, one.reference): (one.row["ratio"], one.row["low"], one.row["high"])
        for one in comparisons
        if one.cell == cell
    }


def rows(about: RunFacts, metric_rows: Sequence[MetricOfArm], here: Sequence[Place]) -> list[PublishedRow]:
    """The rows of the view ``published``: each number of a study, by cell and arm, and what we have."""
    ours = {(row["cell"], row["metric"], row["arm"]): row for row in metric_rows}
    published_rows: list[PublishedRow] = []
    for study in load_studies():
        base = study.document["baseline"]
        statements = {one.id: one for one in study.statements}
        for subject in study.document.get("numbers") or ():
            for place, one in enumerate(subject["metrics"]):
                arms = [arm for arm in about.arms if given(one, arm) is not None]
                published = {arm: statements.get(number_id(study.id, subject, one, arm)) for arm in arms}
                for cell in (cell for cell in here if any(x and matching(x, [cell]) for x in published.values())):
                    for arm in arms:
                        row = ours.get((cell.cell, one["metric"], arm))
                        statement = published[arm]
                        head = (cell.cell, study.id, subject["subject"], place)
                        published_value = None if statement is None else _relation(evaluate(statement, [cell]), one)
                        published_rows.append(_row(head, one, (arm, base), row, published_value))
    cells = {cell.cell: number for number, cell in enumerate(here)}
    return sorted(published_rows, key=lambda row: cells[row["cell"]])


def _row(
    head: tuple[str, str, str, int],
    number: NumberDocument,
    pair: tuple[str, str],
    row: MetricOfArm | None,
    relation: str | None,
) -> PublishedRow:
    """A number of an arm beside ours; ``head`` is its cell, study, subject and place in the table."""
    theirs, base = given(number, pair[0]) or 0.0, given(number, pair[1])
    return {
        "cell": head[0],
        "study": head[1],
        "subject": head[2],
        "place": head[3],
        "metric": number["metric"],
        "label": (row["label"] if row else "") or number["metric"],
        "arm": pair[0],
        "unit": number["unit"],
        "published": float(theirs),
        "published_ratio": theirs / base if pair[0] != pair[1] and base else None,
        "value": None if row is None or number["unit"] == "ratio" else row["value"],
        "ratio": row["ratio"] if row else None,
        "ratio_low": row["ratio_low"] if row else None,
        "ratio_high": row["ratio_high"] if row else None,
        "relation": relation,
    }


def _relation(evaluation: Evaluation, number: NumberDocument) -> str | None:
    """How it stands; of what is not compared the artefact that made it, where there is one."""
    if evaluation.state == NOT_COMPARED:
        return number.get("artefact")
    return evaluation.state if evaluation.blocks else None


def claims(here: Sequence[Place]) -> list[Claim]:
    """What every cell says to every published claim that is about it."""
    evaluated = []
    for study in load_studies():
        for claim in study.claims:
            if claim.says is None or claim.says.between_cells:
                continue  # a claim about two cells is for a campaign
            for place in matching(claim, here):
                evaluation = evaluate(claim, [place])
                if evaluation.blocks:
                    evaluated.append(Claim(claim.id, study.id, claim.text, place.cell, evaluation.state, evaluation))
    return evaluated
