"""How long a study will take, before anything runs: round trips, rates and lengths as they are asked for.

An estimate, good within a factor of two (tests/design/test_duration.py holds it against runs): what a machine needs to
compute is taken from one with two cores, and losses are taken to stall a round trip by a good half of a timeout.
"""

from __future__ import annotations

from trifecta.design import plan
from trifecta.design.model import Cell, Levelled, PathSpec, Study

_TRIAL_NS = 80_000_000  # link, checks, files
_RUN_NS = 1_500_000_000  # lab, servers, probe


def study_ns(study: Study) -> int:
    """Wall time of a whole study; its budget where that is less."""
    blocks = study.min_blocks if study.min_blocks == study.max_blocks else (study.min_blocks + study.max_blocks) // 2
    total_ns = _RUN_NS + sum(blocks * block_ns(study, cell) for cell in plan.cells(study))
    return total_ns if study.budget_ns is None else min(total_ns, study.budget_ns)


def trials(study: Study) -> int | None:
    """How many trials a study has, where the number of its blocks is set in advance."""
    if study.min_blocks != study.max_blocks or study.budget_ns is not None:
        return None
    return study.min_blocks * len(plan.arms(study)) * len(plan.cells(study))


def block_ns(study: Study, cell: Cell) -> int:
    """Wall time of one block of a cell: of each arm, and of the baseline again."""
    return sum(trial_ns(study, plan.treatment(study, cell, arm)) for arm in plan.arms(study))


def trial_ns(study: Study, at: Levelled) -> int:
    """Wall time of one trial, with what is around it."""
    workload = plan.workload_for(study, at)
    path = study.paths.get(str(at.levels.get("path", "")), PathSpec("none"))
    around = _TRIAL_NS + workload.around_ns(at.client)
    return round(around + workload.work_ns(path, at.connection, at.client))
