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
    if study.min_blocks == study.max_blocks and not about.rest.get("extended"):
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
                    made.append(Claim(claim.id, study.id, claim.text, place.cell, said.state, said))
    return made
