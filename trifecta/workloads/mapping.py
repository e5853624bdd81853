"""Runs a map: one run whose cells are the places of a plane, with a planner that looks for the border."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trifecta.contract.run import RunDocument
from trifecta.design.errors import UserError
from trifecta.design.mapping import MapPlan, read_plan
from trifecta.design.model import Cell, Study
from trifecta.design.study_file import parse_study
from trifecta.store import facts as run_facts
from trifecta.store import manifest
from trifecta.store.run import RunDirectory

# What is not needed to read a plan starts threads, which must not be there when the sandbox is entered.
if TYPE_CHECKING:
    from trifecta.analysis.mapping.planner import MapPlanner
    from trifecta.analysis.mapping.result import MapResult
    from trifecta.workloads.cluster.options import Cluster
    from trifecta.workloads.progress import Progress
    from trifecta.workloads.runner import StudyOutcome

FACT: Final = "map"  # in run.json: the plan of a run that is a map


def is_map(folder: Path) -> bool:
    """Whether a folder is the run of a map."""
    return (folder / "run.json").is_file() and FACT in RunDirectory.open(folder).facts


def plan_in(folder: Path) -> MapPlan:
    """The plan of a map that was begun."""
    document = RunDirectory.open(folder).facts.get(FACT)
    if document is None:
        raise UserError(f"{folder} is not a map; give the folder that `trifecta map` made, or the name of a study")
    try:
        return read_plan(document)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{folder / 'run.json'}: map: is damaged ({error}); start a new map") from error


def study_in(folder: Path) -> Study:
    """The study of a map that was begun."""
    return parse_study(RunDirectory.open(folder).study_text, str(folder / "study.yaml"))


def run_map(
    plan: MapPlan,
    study: Study,
    folder: Path,
    progress: Progress,
    stop: Callable[[], bool],
    *,
    resume: bool = False,
    facts: RunDocument | None = None,
    cluster: Cluster | None = None,
) -> StudyOutcome:
    """Measure a map into a new folder, or go on with it: inside the sandbox, as `run_study`, or with ``cluster`` on the
    nodes of a cluster, as `run_on_cluster`.
    """
    from trifecta.analysis.mapping.planner import MapPlanner
    from trifecta.workloads.run_on import runner_on

    def planner(of: Study, cells: Sequence[Cell], _: int) -> MapPlanner:
        return MapPlanner(plan, of, cells)

    return runner_on(cluster)(
        study,
        folder,
        progress,
        stop,
        resume=resume,
        more_facts={**(facts or {}), FACT: plan.document()},
        planner=planner,
    )


def result_of(folder: Path) -> MapResult:
    """The map that the trials in a folder give, finished or not."""
    from trifecta.analysis.mapping.result import work_out

    run = RunDirectory.open(folder)
    facts = run.facts
    run_facts.require(folder, facts, "study.name", "seed", "trifecta", "engine", "servers", "argv", "started_utc")
    manifest.check(run.path, rows_only=True)
    manifest.check_study(run.path)
    about = {
        "study": facts["study"]["name"],
        "seed": facts["seed"],
        "trifecta": facts["trifecta"],
        "engine": facts["engine"],
        "servers": {name: str(one.get("version", "")) for name, one in facts["servers"].items()},
        "argv": ["trifecta", *facts["argv"][1:]] if facts["argv"] else [],
        "started_utc": facts["started_utc"],
        "elapsed_s": round(facts.get("elapsed_ns", 0) / 1e9, 1),
    }
    ending = str(facts.get("ended_because", ""))
    return work_out(plan_in(folder), study_in(folder), run.rows(), ending=ending, about=about)
