"""What a reproduction found: every published statement evaluated, the threats measured, and what could not be run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from trifecta import __version__, studies
from trifecta.analysis.answers import Answer, answered
from trifecta.analysis.judging import OPEN
from trifecta.analysis.published import Evaluation, Place, evaluate, matching
from trifecta.analysis.statements import Kind, Published
from trifecta.conclude.campaign import left_out
from trifecta.conclude.ladder_results import below
from trifecta.conclude.reproduction import as_published, places
from trifecta.conclude.reproduction.programs import programs_of
from trifecta.conclude.reproduction.rows import evaluation_data
from trifecta.conclude.visits.published import levels_of
from trifecta.contract.ladder import LadderDocument
from trifecta.contract.reproduction import ReproductionRun, Spending, StatementDocument
from trifecta.contract.threats import ThreatDocument
from trifecta.contract.trial import TrialValues
from trifecta.contract.values import JsonObject
from trifecta.design import plan
from trifecta.design.campaign import Campaign
from trifecta.design.errors import UserError
from trifecta.design.model import Study
from trifecta.store import documents, files, reproduction, results_manifest
from trifecta.store.campaign import CAMPAIGN_FILE
from trifecta.store.reproduction import DATA_FILE
from trifecta.store.run import RunDirectory


@dataclass(frozen=True)
class StudyResult:
    """One published study: what the runs say to it."""

    published: Published
    evaluations: tuple[Evaluation, ...]
    runs: tuple[ReproductionRun, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    """What could not be run, with the reason."""
    places: tuple[Place, ...] = field(default=(), repr=False)
    """The cells that its statements were held against."""

    @property
    def claims(self) -> list[Evaluation]:
        """The sentences a reader takes home."""
        return [one for one in self.evaluations if one.statement.kind == "claim"]

    @property
    def figures(self) -> list[Evaluation]:
        """The published figures."""
        return [one for one in self.evaluations if one.statement.kind == "figure"]


@dataclass(frozen=True)
class Result:
    """All of it."""

    folder: Path
    invocation: Mapping[str, Any]
    studies: tuple[StudyResult, ...]
    threats: tuple[ThreatDocument, ...] = ()
    ladders: tuple[LadderDocument, ...] = ()
    spending: Spending | None = None
    """How the time of a budget was spent, where there is one."""
    then: Mapping[str, StatementDocument] = field(default_factory=dict)
    """By statement what it was as published, where that was tried."""

    @property
    def as_published(self) -> bool:
        """Whether it is under the conditions of the studies."""
        return bool(self.invocation.get("as_published"))

    def answer(self, evaluation: Evaluation) -> tuple[Answer, str]:
        """What becomes of a statement here and as published, and why where that is more than its state."""
        if self.as_published:
            return evaluation.state, ""
        then = self.then.get(evaluation.statement.id)
        state = as_published.state(self.then, evaluation.statement.id)
        return answered(evaluation.state, state, tried="" if then is None else then["reason"])

    @property
    def quick(self) -> bool:
        """Whether it was the quick depth."""
        return self.invocation.get("depth") == "quick"

    def evaluations(self) -> Iterator[Evaluation]:
        """Those of every study."""
        for one in self.studies:
            yield from one.evaluations


def read(
    folder: Path,
    campaigns_read: Mapping[str, Campaign],
    problems: Mapping[str, Mapping[str, str]],
    study_results: MutableMapping[str, StudyResult] | None = None,
    runs: MutableMapping[str, list[Place]] | None = None,
) -> Result:
    """Evaluate what is there now; ``problems`` has by study what could not run in this session.

    ``study_results`` has studies evaluated before that did not change since, ``runs`` the cells of runs (``STUDY/RUN``)
    that did not; the others are added to them.
    """
    study_results, runs = {} if study_results is None else study_results, {} if runs is None else runs
    recorded = reproduction.read(folder)
    known = studies.published(as_published=bool(recorded.get("as_published")))
    names = [name for name in recorded["studies"] if name in known]
    for name in names:
        if name not in study_results:
            read_study = _Read(
                folder / name, known[name], campaigns_read[name], recorded.get("budget_ns") is not None, runs
            )
            study_results[name] = read_study.evaluated(problems.get(name, {}))
    ladders = tuple(below(folder))
    then = {} if recorded.get("as_published") else as_published.below(folder, ladders)
    return Result(
        folder, recorded, tuple(study_results[name] for name in names), tuple(_threats(folder)), ladders, then=then
    )


@dataclass(frozen=True)
class _Read:
    """A study's folder and what its statements are held against.

    With ``looking`` at looks (`analysis.interim_looks`).
    """

    folder: Path
    published: Published
    campaign: Campaign
    looking: bool
    known: MutableMapping[str, list[Place]]

    def evaluated(self, problems: Mapping[str, str]) -> StudyResult:
        """Every statement with what the runs say to it; ``problems``: what could not run."""
        published, campaign = self.published, self.campaign
        if not (self.folder / CAMPAIGN_FILE).is_file():
            evaluations = tuple(evaluate(one, []) for one in published.statements)
            return StudyResult(published, evaluations, (), dict.fromkeys(campaign.studies, "not run yet"))
        runs: list[ReproductionRun] = []
        cells: list[Place] = []
        captured: list[Place] = []
        for name, study in campaign.studies.items():
            run = self.folder / name
            if not (run / "run.json").is_file():
                continue
            here = self._places(name, study)
            (captured if study.capture else cells).extend(here)
            report = run / "report.html"
            runs.append(
                ReproductionRun(
                    study=published.id,
                    name=name,
                    folder=f"{published.id}/{name}",
                    report=f"{published.id}/{name}/report.html" if report.exists() else "",
                    trials=sum(place.trials for place in here),
                    valid=sum(len(place.rows) for place in here),
                )
            )
        cells += [_without_times(place) for place in captured] if cells else captured
        missing = left_out(campaign, self.folder, problems)
        absent = _absent(campaign, missing)
        evaluations = tuple(_with_absent(evaluate(one, cells), absent) for one in published.statements)
        return StudyResult(published, evaluations, tuple(runs), missing, tuple(cells))

    def _places(self, name: str, study: Study) -> list[Place]:
        key = f"{self.published.id}/{name}"
        if key not in self.known:
            self.known[key] = places.read(self.folder / name, key, self.campaign.tolerate)
        if not self.looking:
            return self.known[key]
        # A cell that its run gave up before its first blocks were over gets no more of them.
        over = RunDirectory.open(self.folder / name).facts.get("state") not in ("running", "interrupted")
        first = study.min_blocks
        return [replace(one, first=first, done=max(one.done, first) if over else one.done) for one in self.known[key]]


def _absent(campaign: Campaign, problems: Mapping[str, str]) -> list[tuple[Place, str]]:
    """The cells that were not run, each with the reason (empty: not yet), as ``conclude.campaign`` names them."""
    absent_places = []
    for name, study in campaign.studies.items():
        reasons = {what: why for what, why in problems.items() if what == name or what.startswith(f"{name}, ")}
        for cell in plan.cells(study) if reasons else ():
            parts = (reasons.get(f"{name}, {factor} {level}") for factor, level in cell.levels.items())
            why = next((part for part in parts if part), reasons.get(name))
            if why:
                absent_places.append(
                    (Place(name, cell.key, levels_of(study, cell), []), "" if why == "not run" else why)
                )
    return absent_places


def _with_absent(evaluation: Evaluation, absent: Sequence[tuple[Place, str]]) -> Evaluation:
    """An open statement about cells that were not run names them, and why they were not."""
    if evaluation.state != OPEN or evaluation.blocks:
        return evaluation
    runs: dict[str, list[str]] = {}
    for place, why in absent:
        names = runs.setdefault(why, [])
        if place.run not in names and matching(evaluation.statement, [place]):
            names.append(place.run)
    sentences = [
        f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} not run{why and f': {why}'}"
        for why, names in runs.items()
        if names
    ]
    return replace(evaluation, reason="; ".join([evaluation.reason, *sentences])) if sentences else evaluation


def _without_times(place: Place) -> Place:
    """Capturing costs time: where the same was timed without, a captured run tells of packets only."""
    timed = ("_ns", "_per_s", "progression", "later_to")
    rows = [
        {name: value for name, value in row.items() if not any(word in name for word in timed)} for row in place.rows
    ]
    return replace(place, rows=cast(list[TrialValues], rows))


def _threats(folder: Path) -> list[ThreatDocument]:
    """What the experiments left in ``threats.json``, run by run."""
    path = folder / reproduction.THREATS_FOLDER / "threats.json"
    if not path.is_file():
        return []
    remedy = "remove it; the experiments of the threats stay, and `trifecta resume` reads them again"
    document = documents.read_json(path, remedy)
    results_manifest.check(path.parent, [path.name], remedy)
    if not isinstance(document, list):
        raise UserError(f"{path}: is not a list; {remedy}")
    return [cast(ThreatDocument, one) for one in document if isinstance(one, dict)]


def as_data(result: Result) -> JsonObject:
    """The same for a program; keys are stable (docs/reproduce.md)."""
    runs = [run for study in result.studies for run in study.runs]
    document = {"version": __version__, "folder": str(result.folder), "machine": machine_of(result)}
    return {
        "reproduction": {name: value for name, value in result.invocation.items() if name != "campaigns"}
        | document
        | {"programs": programs_of(result.folder, [run["folder"] for run in runs])},
        "claims": _rows(result, "claim"),
        "figures": _rows(result, "figure"),
        "threats": [cast(JsonObject, one) for one in result.threats],
        "ladders": [cast(JsonObject, one) for one in result.ladders],
        "runs": [cast(JsonObject, run) for run in runs],
        **({"budget": cast(JsonObject, result.spending)} if result.spending is not None else {}),
        "missing": [
            {"study": study.published.id, "what": name, "reason": reason}
            for study in result.studies
            for name, reason in study.missing.items()
        ],
    }


def _rows(result: Result, kind: Kind) -> list[JsonObject]:
    return [
        evaluation_data(one, result.answer(one), result.then.get(one.statement.id))
        for one in result.evaluations()
        if one.statement.kind == kind
    ]


def machine_of(result: Result) -> Any:
    """The machine and the seed of the first run there is; None without any."""
    for study in result.studies:
        for run in study.runs:
            facts = RunDirectory.open(result.folder / run["folder"]).facts
            return {name: facts.get(name) for name in ("machine", "versions", "seed") if name in facts}
    return None


def write_data(result: Result) -> Path:
    """Write ``reproduction.json``."""
    path = result.folder / DATA_FILE
    with files.disk_errors(path):
        files.write_text(path, json.dumps(as_data(result), indent=1, ensure_ascii=False, default=str) + "\n")
        results_manifest.note(result.folder, [DATA_FILE])
    return path
